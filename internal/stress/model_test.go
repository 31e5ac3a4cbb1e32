//go:build unix

package stress

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/model/openai"
)

// reply is what the model answers.
type reply struct {
	text   string
	calls  []model.Call
	status int    // of a failure
	body   string // of a failure, or garbage in the place of an answer
	cut    bool   // the connection ends in the middle
}

// brain is a model of the test behind a port: it checks every request and answers
// what decide says.
type brain struct {
	*httptest.Server
	t      testing.TB
	decide func(h http.Header, req *model.Request, body string) reply

	n     atomic.Int64
	mu    sync.Mutex
	fault string
}

func newBrain(t testing.TB, decide func(http.Header, *model.Request, string) reply) *brain {
	b := &brain{t: t, decide: decide}
	b.Server = httptest.NewServer(b)
	t.Cleanup(b.Close)
	return b
}

func (b *brain) provider() obj { return obj{"type": "openai", "baseUrl": b.URL + "/v1"} }

// broken is what was wrong with a request, if anything.
func (b *brain) broken() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.fault
}

func (b *brain) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if !strings.HasSuffix(r.URL.Path, "/chat/completions") {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	b.n.Add(1)
	req, err := openai.DecodeRequest(body)
	if err == nil {
		err = paired(req.Messages)
	}
	if err != nil {
		b.mu.Lock()
		b.fault = fmt.Sprintf("%v\n%s", err, body)
		b.mu.Unlock()
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	a := b.decide(r.Header, req, string(body))
	switch {
	case a.status != 0:
		w.WriteHeader(a.status)
		_, _ = io.WriteString(w, a.body)
	case req.Stream:
		b.stream(w, a)
	case a.body != "":
		_, _ = io.WriteString(w, a.body)
	default:
		msg := obj{"role": "assistant", "content": a.text}
		if len(a.calls) > 0 {
			msg["tool_calls"] = wireCalls(a.calls)
		}
		raw, _ := json.Marshal(obj{"id": "x", "object": "chat.completion", "choices": []obj{{"index": 0, "message": msg, "finish_reason": finish(a)}},
			"usage": obj{"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}})
		if a.cut {
			raw = raw[:len(raw)/2]
			w.Header().Set("Content-Length", fmt.Sprint(2*len(raw)))
		}
		_, _ = w.Write(raw)
	}
}

func finish(a reply) string {
	if len(a.calls) > 0 {
		return "tool_calls"
	}
	return "stop"
}

func wireCalls(calls []model.Call) []obj {
	out := []obj{}
	for i, c := range calls {
		out = append(out, obj{"index": i, "id": c.ID, "type": "function", "function": obj{"name": c.Name, "arguments": c.Arguments}})
	}
	return out
}

func (b *brain) stream(w http.ResponseWriter, a reply) {
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(delta obj, finish any) {
		raw, _ := json.Marshal(obj{"id": "x", "object": "chat.completion.chunk", "choices": []obj{{"index": 0, "delta": delta, "finish_reason": finish}}})
		fmt.Fprintf(w, "data: %s\n\n", raw)
		w.(http.Flusher).Flush()
	}
	if a.body != "" {
		fmt.Fprintf(w, "data: %s\n\n", a.body)
	}
	for _, piece := range strings.SplitAfter(a.text, " ") {
		send(obj{"role": "assistant", "content": piece}, nil)
	}
	if a.cut {
		return
	}
	if len(a.calls) > 0 {
		send(obj{"tool_calls": wireCalls(a.calls)}, nil)
	}
	send(obj{}, finish(a))
	_, _ = io.WriteString(w, "data: [DONE]\n\n")
}

// paired holds a conversation against what strict providers ask: every call has one
// result, directly behind it, and no result is without a call.
func paired(messages []model.Message) error {
	open := map[string]bool{}
	seen := map[string]bool{}
	user := false
	for i, m := range messages {
		if m.Role != model.ToolRole && len(open) > 0 {
			return fmt.Errorf("message %d comes before the results of %v", i, open)
		}
		switch m.Role {
		case model.Assistant:
			for _, c := range m.Calls {
				if open[c.ID] {
					return fmt.Errorf("message %d has the call %s twice", i, c.ID)
				}
				open[c.ID], seen[c.ID] = true, true
				if !json.Valid([]byte(c.Arguments)) {
					return fmt.Errorf("message %d: the arguments of %s are no JSON", i, c.ID)
				}
			}
		case model.ToolRole:
			if !open[m.CallID] {
				return fmt.Errorf("message %d is a result for %s, which is not open", i, m.CallID)
			}
			delete(open, m.CallID)
		case model.User:
			user = true
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("%v have no result", open)
	}
	if !user {
		return fmt.Errorf("no message of a user")
	}
	return nil
}
