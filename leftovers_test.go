package transom_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/model/endpoint"
	"github.com/transom-run/transom/tool"
)

// answers of the three wires: a text and a call of the tool "clear", with ids,
// reasoning and signatures of the provider that all hold the mark OLD.
var marked = map[string]string{
	"/chat/completions": `{"id":"chat-OLD","model":"m","choices":[{"message":{"content":"text-OLD","reasoning_content":"think-OLD","reasoning_opaque":"opaque-OLD","tool_calls":[{"id":"call-OLD","function":{"name":"clear","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`,
	"/responses": `{"id":"resp-OLD","status":"completed","conversation":{"id":"conv-OLD"},"output":[{"type":"reasoning","id":"rs-OLD","summary":[],"encrypted_content":"enc-OLD"},` +
		`{"type":"message","id":"msg-OLD","role":"assistant","content":[{"type":"output_text","text":"text-OLD"}]},{"type":"function_call","id":"fc-OLD","call_id":"call-OLD","name":"clear","arguments":"{}"}]}`,
	"/v1/messages": `{"id":"msg-OLD","type":"message","role":"assistant","container":{"id":"container-OLD"},"content":[{"type":"thinking","thinking":"think-OLD","signature":"sig-OLD"},` +
		`{"type":"text","text":"text-OLD"},{"type":"tool_use","id":"call-OLD","name":"clear","input":{}}],"stop_reason":"tool_use"}`,
}

var plainAnswer = map[string]string{
	"/chat/completions": `{"choices":[{"message":{"content":"fresh"}}]}`,
	"/responses":        `{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"fresh"}]}]}`,
	"/v1/messages":      `{"content":[{"type":"text","text":"fresh"}],"stop_reason":"end_turn"}`,
}

// TestNothingOldAtTheProvider: after a clear, its first request made again or not, and
// after an abort, a request of any wire names nothing of what was: no id of a response, a conversation or a cache,
// no reasoning, in neither its body nor its headers.
func TestNothingOldAtTheProvider(t *testing.T) {
	for _, p := range []transom.ProviderConfig{{}, {WireAPI: "responses"}, {Type: "anthropic"}} {
		t.Run(p.Type+p.WireAPI, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
			defer cancel()
			var mu sync.Mutex
			var seen []string // requests, headers first
			hang := make(chan struct{})
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				mu.Lock()
				seen = append(seen, fmt.Sprint(r.Header)+"\n"+string(body))
				n := len(seen)
				mu.Unlock()
				w.Header().Set("Content-Type", "application/json")
				switch n {
				case 1: // a call that clears
					io.WriteString(w, marked[r.URL.Path])
				case 2: // is made again
					w.Header().Set("Retry-After", "0")
					w.WriteHeader(http.StatusServiceUnavailable)
				case 4: // half an answer, which is aborted
					io.WriteString(w, marked[r.URL.Path][:40])
					w.(http.Flusher).Flush()
					close(hang)
					<-r.Context().Done()
				default:
					io.WriteString(w, plainAnswer[r.URL.Path])
				}
			}))
			defer srv.Close()
			defer endpoint.CloseIdleConnections()
			rt := open(t, nil)
			var s *transom.Session
			clear, err := tool.Func("clear", "Clear", func(ctx context.Context, _ struct{}) (string, error) {
				_, err := s.History().ClearContext(ctx, "the seed")
				return "", err
			})
			if err != nil {
				t.Fatal(err)
			}
			clear.IsTerminal, clear.SkipPermission = true, true
			p.BaseURL, p.ModelID, p.APIKey = srv.URL, "m", "key"
			if s, err = rt.CreateSession(ctx, transom.SessionConfig{Provider: &p, Tools: []tool.Tool{clear}, ReasoningEffort: "low"}); err != nil {
				t.Fatal(err)
			}
			if _, err := s.SendAndWait(ctx, transom.Message{Prompt: "prompt-OLD"}); err != nil {
				t.Fatal(err)
			}
			sub := s.Subscribe()
			defer sub.Close()
			if _, err := s.Send(ctx, transom.Message{Prompt: "next"}); err != nil {
				t.Fatal(err)
			}
			<-hang
			if err := s.Abort(ctx); err != nil {
				t.Fatal(err)
			}
			for e, err := range sub.All(ctx) {
				if err != nil {
					t.Fatal(err)
				}
				if e.Type == event.TypeSessionIdle {
					break
				}
			}
			if _, err := s.SendAndWait(ctx, transom.Message{Prompt: "last"}); err != nil {
				t.Fatal(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if len(seen) != 5 || !strings.Contains(seen[0], "OLD") {
				t.Fatalf("%d requests:\n%s", len(seen), strings.Join(seen, "\n"))
			}
			for i, r := range seen[1:] {
				if strings.Contains(r, "OLD") || strings.Contains(r, "previous_response_id") || strings.Contains(r, `"conversation"`) || strings.Contains(r, "prompt_cache_key") || strings.Contains(r, `"container"`) {
					t.Errorf("request %d holds something of what was:\n%s", i+2, r)
				}
				if !strings.Contains(r, "the seed") {
					t.Errorf("request %d lacks the seed:\n%s", i+2, r)
				}
			}
		})
	}
}
