package replay

import (
	"errors"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/model/anthropic"
	"github.com/transom-run/transom/model/endpoint"
	"github.com/transom-run/transom/model/modelfile"
	"github.com/transom-run/transom/model/openai"
	"github.com/transom-run/transom/model/responses"
	"github.com/transom-run/transom/model/scripted"
)

// TestWires: a session that is recorded over a wire, and played back over it by
// the scripted endpoint, goes as it went; and it goes so over every wire.
func TestWires(t *testing.T) {
	wires := map[string]func(endpoint.Server) (model.Provider, error){
		"chat":      func(s endpoint.Server) (model.Provider, error) { return openai.New(openai.Config{Server: s}) },
		"responses": func(s endpoint.Server) (model.Provider, error) { return responses.New(responses.Config{Server: s}) },
		"messages":  func(s endpoint.Server) (model.Provider, error) { return anthropic.New(anthropic.Config{Server: s}) },
	}
	f, err := modelfile.Parse("script.yaml", []byte(script))
	if err != nil {
		t.Fatal(err)
	}
	var chat []*model.Response
	for _, name := range []string{"chat", "responses", "messages"} {
		t.Run(name, func(t *testing.T) {
			over := func(p *scripted.Provider) model.Provider {
				srv := httptest.NewServer(p.Handler())
				client := srv.Client()
				t.Cleanup(func() { client.CloseIdleConnections(); srv.Close() })
				out, err := wires[name](endpoint.Server{BaseURL: srv.URL, HTTPClient: client})
				if err != nil {
					t.Fatal(err)
				}
				return out
			}
			cfg := Config{WorkDir: "/proj/x"}
			path := filepath.Join(t.TempDir(), "recorded.yaml")
			n := 0
			ids := func() string { n++; return "call_" + string(rune('a'+n)) }
			rec, err := Record(path, over(scripted.New(scripted.Config{File: f, NewID: ids})), cfg)
			if err != nil {
				t.Fatal(err)
			}
			want, wantErrs := session(t, rec, cfg.WorkDir, "2026-01-01T00:00:00Z", nil)
			if err := rec.Close(); err != nil {
				t.Fatal(err)
			}
			p, err := Open(path, cfg)
			if err != nil {
				t.Fatal(err)
			}
			got, gotErrs := session(t, over(p), cfg.WorkDir, "2027-02-02T00:00:00Z", nil)
			for i := range got {
				if diff := cmp.Diff(want[i], got[i]); diff != "" {
					t.Errorf("request %d: %s", i, diff)
				}
				if a, b := brief(wantErrs[i]), brief(gotErrs[i]); a != b {
					t.Errorf("request %d: %v, replayed %v", i, wantErrs[i], gotErrs[i])
				}
			}
			if rest := p.Rest(); len(rest) != 0 {
				t.Errorf("left: %v", rest)
			}
			if name == "chat" {
				chat = got
			}
			for i := range got {
				if diff := cmp.Diff(chat[i].Message, got[i].Message); diff != "" {
					t.Errorf("request %d is another than over chat completions: %s", i, diff)
				}
			}
		})
	}
}

// brief is what two failures must have in common.
func brief(err error) model.Error {
	var e *model.Error
	if !errors.As(err, &e) {
		return model.Error{}
	}
	return model.Error{Kind: e.Kind, Status: e.Status, Retryable: e.Retryable, RetryAfter: e.RetryAfter}
}
