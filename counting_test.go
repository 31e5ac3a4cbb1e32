package transom_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/eventlog/memlog"
	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/model/tokens"
)

// TestWindowsAreCounted: a window near its threshold is counted with the vocabulary of
// the model, where that is known: a text of which the estimate says far too much makes
// no summary, one of which it says too little makes one before the model is asked. Where
// the vocabulary is not known the estimate decides.
func TestWindowsAreCounted(t *testing.T) {
	const window = 60000
	long := strings.Repeat("internationalization ", 9300) // fewer tokens than it looks
	odd := strings.Repeat("qzxvkjwq ", 22000)             // more
	for _, c := range []struct {
		model, text string
		summary     bool
	}{
		{"gpt-4o", long, false},
		{"openai/gpt-5-mini", long, false},
		{"somebody-elses", long, true},
		{"gpt-4o", odd, true},
		{"gpt-4", odd, true},
		{"somebody-elses", odd, false},
	} {
		estimate := model.EstimateText(c.text)
		if exact := tokens.Of(c.model).Count(c.text); exact > 0 && (exact > estimate) != c.summary {
			t.Fatalf("%d tokens are estimated as %d: the text is no case", exact, estimate)
		}
		sc := &script{}
		for range 6 {
			sc.replies = append(sc.replies, model.Message{Text: "done"})
		}
		rt, err := transom.Open(transom.Config{Store: memlog.New(), Provider: sc, ContextWindow: window})
		if err != nil {
			t.Fatal(err)
		}
		s, err := rt.CreateSession(t.Context(), transom.SessionConfig{Model: c.model})
		if err != nil {
			t.Fatal(err)
		}
		size, summaries := 0, 0
		for _, prompt := range []string{"hello", c.text} {
			for _, e := range turnOf(t, s, prompt) {
				switch e.Type {
				case event.TypeCompactionStart:
					summaries++
				case event.TypeUsageInfo:
					var u struct{ CurrentTokens int }
					json.Unmarshal(e.Data, &u)
					size = u.CurrentTokens
				}
			}
		}
		if (summaries > 0) != c.summary {
			t.Errorf("%s, a text of %d tokens by the estimate in a window of %d: %d summaries", c.model, estimate, window, summaries)
		}
		if exact := tokens.Of(c.model).Count(c.text); exact > 0 && !c.summary && (size < exact || size > exact+10000) {
			t.Errorf("%s: the window is said to be %d tokens, of which the text alone has %d", c.model, size, exact)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		rt.Close(ctx)
		cancel()
	}
}

// turnOf sends a prompt and returns the events up to the end of the turn.
func turnOf(t *testing.T, s *transom.Session, prompt string) (events []*event.Event) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	sub := s.Subscribe()
	defer sub.Close()
	if _, err := s.Send(ctx, transom.Message{Prompt: prompt}); err != nil {
		t.Fatal(err)
	}
	for e, err := range sub.All(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		if events = append(events, e); e.Type == event.TypeSessionIdle {
			break
		}
	}
	return events
}
