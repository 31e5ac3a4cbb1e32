package transom_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/event"
)

// TestContextTier: the tier that a host chooses says which of a model's windows counts,
// as the account's list has them; it is in the log, goes with a change of model, and one
// that a model has not is told once.
func TestContextTier(t *testing.T) {
	w := newAccountWorld(t)
	w.models = `{"data":[
		{"id":"tiered","capabilities":{"limits":{"max_prompt_tokens":300000}},"billing":{"token_prices":{"batch_size":1000,"default":{"context_max":200000},"long_context":{"context_max":900000}}}},
		{"id":"plain","capabilities":{"limits":{"max_prompt_tokens":64000}},"billing":{"token_prices":{"batch_size":1000,"default":{"context_max":5000}}}}]}`
	ask := func(s *transom.Session) (limit int, warnings []string) {
		for range 2 { // the window is known from the first request on
			for _, e := range turnOf(t, s, "hello") {
				switch e.Type {
				case event.TypeUsageInfo:
					var u struct{ TokenLimit int }
					json.Unmarshal(e.Data, &u)
					limit = u.TokenLimit
				case event.TypeSessionWarning:
					warnings = append(warnings, string(e.Data))
				}
			}
		}
		return limit, warnings
	}
	check := func(s *transom.Session, what, tier string, window, warned int) {
		t.Helper()
		limit, warnings := ask(s)
		if limit != window || len(warnings) != warned || s.Info().ContextTier != tier {
			t.Errorf("%s: the window has %d tokens, the tier is %q, warned of %q; want %d, %q and %d warnings", what, limit, s.Info().ContextTier, warnings, window, tier, warned)
		}
		if warned > 0 && !strings.Contains(warnings[0], "contextTier long_context has no effect") {
			t.Errorf("%s: warned of %q", what, warnings)
		}
	}
	ctx := t.Context()
	s, err := w.rt.CreateSession(ctx, transom.SessionConfig{Model: "tiered", ContextTier: "long_context"})
	if err != nil {
		t.Fatal(err)
	}
	check(s, "the larger tier", "long_context", 900000, 0)
	change := func(c transom.Configure) {
		t.Helper()
		if err := s.Do(ctx, c); err != nil {
			t.Fatal(err)
		}
	}
	model, long, normal := "plain", "long_context", "default"
	change(transom.Configure{Model: &model})
	check(s, "another model", "", 64000, 0)
	change(transom.Configure{ContextTier: &long})
	check(s, "a model without tiers", "long_context", 64000, 1)
	model = "tiered"
	change(transom.Configure{Model: &model, ContextTier: &normal})
	check(s, "the default tier", "default", 200000, 0)
	change(transom.Configure{ContextTier: &long})
	check(s, "the larger tier again", "long_context", 900000, 0)

	id := s.ID()
	s.Close(ctx)
	if s, err = w.rt.ResumeSession(ctx, id, transom.ResumeConfig{}); err != nil {
		t.Fatal(err)
	}
	check(s, "a resume", "long_context", 900000, 0)
	none := ""
	if s, err = w.rt.ResumeSession(ctx, id, transom.ResumeConfig{ContextTier: &none}); err != nil {
		t.Fatal(err)
	}
	check(s, "a resume without a tier", "", 200000, 0)
	huge := "huge"
	if _, err := w.rt.CreateSession(ctx, transom.SessionConfig{ContextTier: huge}); err == nil || !strings.Contains(err.Error(), `"huge"`) {
		t.Errorf("an unknown tier: %v", err)
	}
	if _, err := w.rt.ResumeSession(ctx, id, transom.ResumeConfig{ContextTier: &huge}); err == nil || !strings.Contains(err.Error(), `"huge"`) {
		t.Errorf("a resume with an unknown tier: %v", err)
	}
}
