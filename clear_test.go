package transom_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/eventlog/memlog"
	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/tool"
)

// script answers requests in order and keeps them.
type script struct {
	mu       sync.Mutex
	replies  []model.Message
	requests []model.Request
}

func (s *script) Stream(ctx context.Context, req *model.Request) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		s.mu.Lock()
		n := len(s.requests)
		s.requests = append(s.requests, *req)
		var m model.Message
		if n < len(s.replies) {
			m = s.replies[n]
		}
		s.mu.Unlock()
		if n >= len(s.replies) {
			yield(model.Chunk{}, &model.Error{Kind: model.Query, Msg: "no reply left"})
			return
		}
		if m.Text != "" && !yield(model.Chunk{Text: m.Text}, nil) {
			return
		}
		for i, c := range m.Calls {
			if !yield(model.Chunk{Call: &model.CallChunk{Index: i, ID: c.ID, Name: c.Name, Arguments: c.Arguments}}, nil) {
				return
			}
		}
		yield(model.Chunk{Finish: "stop"}, nil)
	}
}

func TestClearInProcess(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	sc := &script{replies: []model.Message{
		{Text: "hello"},
		{Calls: []model.Call{{ID: "c1", Name: "clear_context", Arguments: `{"prompt":"SEED"}`}}},
		{Text: "fresh"},
	}}
	rt, err := transom.Open(transom.Config{Store: memlog.New(), Provider: sc})
	if err != nil {
		t.Fatal(err)
	}
	var s *transom.Session
	type args struct {
		Prompt string `json:"prompt"`
	}
	clear, err := tool.Func("clear_context", "clears", func(ctx context.Context, in args) (string, error) {
		n, err := s.History().ClearContext(ctx, in.Prompt)
		return fmt.Sprintf("Cleared %d messages.", n), err
	})
	if err != nil {
		t.Fatal(err)
	}
	clear.IsTerminal = true
	s, err = rt.CreateSession(ctx, transom.SessionConfig{Tools: []tool.Tool{clear}, OnPermission: transom.ApproveAll, SystemMessage: transom.SystemMessage{Mode: "replace", Content: "SYS"}})
	if err != nil {
		t.Fatal(err)
	}
	if m, err := s.SendAndWait(ctx, transom.Message{Prompt: "hi"}); err != nil || m.Content != "hello" {
		t.Fatal(m, err)
	}
	m, err := s.SendAndWait(ctx, transom.Message{Prompt: "go"})
	if err != nil || m.Content != "fresh" {
		t.Fatal(m, err)
	}
	for i, r := range sc.requests {
		t.Log(i, r.Messages)
	}
	if n := len(sc.requests[2].Messages); n != 2 {
		t.Errorf("seeded request has %d messages", n)
	}
	if err := s.Close(ctx); err != nil {
		t.Fatal(err)
	}
	for e, err := range s.Events().All(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		t.Log(e.Type, string(e.Data))
	}
	if err := rt.Close(ctx); err != nil {
		t.Fatal(err)
	}
}

// TestHandlerErrorsHoldNoSecret: what a host's handler threw is written without
// the keys that the runtime was given.
func TestHandlerErrorsHoldNoSecret(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	const secret = "sk-very-secret-0123456789"
	sc := &script{replies: []model.Message{{Calls: []model.Call{{ID: "c1", Name: "probe", Arguments: `{}`}}}, {Text: "done"}}}
	rt, err := transom.Open(transom.Config{Store: memlog.New(), Provider: sc})
	if err != nil {
		t.Fatal(err)
	}
	s, err := rt.CreateSession(ctx, transom.SessionConfig{
		Tools: []tool.Tool{{Name: "probe", SkipPermission: true}}, Custom: sc,
		Provider: &transom.ProviderConfig{BaseURL: "http://127.0.0.1:1/v1", APIKey: secret},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Send(ctx, transom.Message{Prompt: "go"}); err != nil {
		t.Fatal(err)
	}
	seen := false
	for e, err := range s.Events().All(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(e.Line), secret) {
			t.Errorf("%s holds the key", e.Line)
		}
		switch p := e.Payload.(type) {
		case event.ExternalToolRequested:
			s.Post(transom.AnswerTool{RequestID: p.RequestID, Error: json.RawMessage(`"cannot log in with ` + secret + `"`)}, nil)
		case event.ToolComplete:
			seen = strings.Contains(p.Error.Message, "cannot log in with")
		}
		if e.Type == event.TypeSessionIdle {
			break
		}
	}
	if !seen {
		t.Error("the rest of the detail is lost")
	}
	if err := rt.Close(ctx); err != nil {
		t.Fatal(err)
	}
}
