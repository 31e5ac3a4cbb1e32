package server_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/model/anthropic"
	"github.com/transom-run/transom/model/openai"
	"github.com/transom-run/transom/model/responses"
	"github.com/transom-run/transom/server"
)

// smallWindow is an endpoint of one of the three wires whose model takes requests
// of so many tokens. It calls the tool "look" for every prompt, and answers its
// result.
type smallWindow struct {
	t      *testing.T
	limit  int
	decode func([]byte) (*model.Request, error)

	mu        sync.Mutex
	calls     int
	summaries int
	newest    *model.Request // that was answered, other than for a summary
}

func (s *smallWindow) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has gone
	}
	req, err := s.decode(body)
	if err != nil {
		s.t.Errorf("decode %s: %v", body, err)
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if err := paired(req.Messages); err != nil {
		s.t.Errorf("%v in %.3000s", err, body)
	}
	tokens := 0
	for i := range req.Messages {
		tokens += model.EstimateMessage(&req.Messages[i])
	}
	if tokens > s.limit {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"error":{"code":"context_length_exceeded","message":"prompt is too long"}}`)
		return
	}
	last := req.Messages[len(req.Messages)-1]
	text, call := "Done.", ""
	switch {
	case strings.Contains(last.Text, "create a detailed summary"):
		s.summaries++
		text = fmt.Sprintf("SUMMARY %d. %s", s.summaries, strings.Repeat("It went on. ", 150))
	case last.Role != model.ToolRole:
		s.calls++
		text, call = "", fmt.Sprintf("call%d", s.calls)
		fallthrough
	default:
		s.newest = req
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, answerOn(r.URL.Path, text, call))
}

// answerOn is an answer on the wire that a path belongs to: a text, or a call.
func answerOn(path, text, call string) string {
	quote := func(s string) string {
		b, _ := json.Marshal(s) // strings always encode
		return string(b)
	}
	switch {
	case strings.HasSuffix(path, "/messages") && call != "":
		return `{"content":[{"type":"tool_use","id":` + quote(call) + `,"name":"look","input":{}}],"stop_reason":"tool_use"}`
	case strings.HasSuffix(path, "/messages"):
		return `{"content":[{"type":"text","text":` + quote(text) + `}],"stop_reason":"end_turn"}`
	case strings.HasSuffix(path, "/responses") && call != "":
		return `{"status":"completed","output":[{"type":"function_call","call_id":` + quote(call) + `,"name":"look","arguments":"{}"}]}`
	case strings.HasSuffix(path, "/responses"):
		return `{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":` + quote(text) + `}]}]}`
	case call != "":
		return `{"choices":[{"message":{"tool_calls":[{"id":` + quote(call) + `,"function":{"name":"look","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`
	default:
		return `{"choices":[{"message":{"content":` + quote(text) + `},"finish_reason":"stop"}]}`
	}
}

// A session of many prompts goes on in a small window, on every wire: each
// request is well-formed and fits, the newest prompt stands in it word for word, and
// nothing fails.
func TestLongSessionInSmallWindow(t *testing.T) {
	const turns = 120
	for wire, decode := range map[string]func([]byte) (*model.Request, error){
		"completions": openai.DecodeRequest, "responses": responses.DecodeRequest, "anthropic": anthropic.DecodeRequest,
	} {
		t.Run(wire, func(t *testing.T) {
			m := &smallWindow{t: t, limit: 3000, decode: decode}
			endpoint := httptest.NewServer(m)
			defer endpoint.Close()
			provider := obj{"type": "openai", "baseUrl": endpoint.URL + "/v1", "maxPromptTokens": m.limit}
			switch wire {
			case "responses":
				provider["wireApi"] = wire
			case "anthropic":
				provider["type"] = wire
			}
			c := newWorld(t, nil, server.Config{}).connect(t)
			c.ok("session.create", in(obj{
				"model": "m", "provider": provider, "tools": []obj{hostTool("look")}, "availableTools": []string{"look"},
				"systemMessage": obj{"mode": "replace", "content": "You look at things."},
			}))
			for n := range turns {
				from := c.count()
				text := fmt.Sprintf("This is prompt number %d, and it asks for a look at the thing of that number.", n)
				c.prompt(id1, text)
				var q ask
				at := c.eventFrom(from, "external_tool.requested", &q)
				size := 40
				if n%40 == 39 {
					size = 3 * m.limit // more than there is room for
				}
				c.settle(q, strings.Repeat("word ", size))
				c.idle(at)
				m.mu.Lock()
				newest := m.newest
				m.mu.Unlock()
				if said := strings.Join(texts(newest.Messages), "\n"); !strings.Contains(said, text) {
					t.Fatalf("turn %d: the prompt is not in the request:\n%.3000s", n, said)
				}
			}
			types, _ := c.events(id1, false)
			count := map[string]int{}
			for _, typ := range types {
				count[typ]++
			}
			if count["session.error"] > 0 || count["session.warning"] > 0 || count["session.idle"] != turns || count["tool.execution_complete"] != turns {
				t.Errorf("%v", count)
			}
			m.mu.Lock()
			defer m.mu.Unlock()
			if m.summaries < 5 || m.summaries > turns/3 {
				t.Errorf("%d summaries in %d turns", m.summaries, turns)
			}
			said := strings.Join(texts(m.newest.Messages), "\n")
			// One may be made beside the last request, and stand in none yet.
			told := strings.Contains(said, fmt.Sprintf("SUMMARY %d.", m.summaries)) || strings.Contains(said, fmt.Sprintf("SUMMARY %d.", m.summaries-1))
			if !strings.Contains(said, "earlier user messages are left out here") || !told || strings.Contains(said, "prompt number 0,") {
				t.Errorf("the last request is\n%.4000s", said)
			}
		})
	}
}
