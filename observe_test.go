package transom_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/eventlog/memlog"
	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/tool"
	"github.com/transom-run/transom/trace"
)

// watcher keeps the spans that it is told of.
type watcher struct {
	content bool
	mu      sync.Mutex
	spans   []trace.Span
	flushed int
}

func (w *watcher) Content() bool { return w.content }

func (w *watcher) Flush(context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.flushed = len(w.spans)
	return nil
}

func (w *watcher) Ended(s *trace.Span) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.spans = append(w.spans, *s)
}

// all are the spans as "op name error", in order, and by their op.
func (w *watcher) all() (list []string, by map[string][]trace.Span) {
	w.mu.Lock()
	defer w.mu.Unlock()
	by = map[string][]trace.Span{}
	for _, s := range w.spans {
		list = append(list, strings.Join(strings.Fields(s.Op+" "+s.ToolName+" "+s.Error), " "))
		by[s.Op] = append(by[s.Op], s)
	}
	return list, by
}

func observed(t *testing.T, w *watcher, replies ...model.Message) (*transom.Runtime, *script) {
	t.Helper()
	sc := &script{replies: replies}
	rt, err := transom.Open(transom.Config{Store: memlog.New(), Provider: sc, Observer: w})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rt.Close(context.Background()) })
	return rt, sc
}

const hostPlace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// A turn is an agent's span with its requests and calls below, in the host's trace;
// tools and providers are told where they are in it; nothing that was said is in it.
func TestSpans(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	w := &watcher{}
	rt, sc := observed(t, w,
		model.Message{Calls: []model.Call{{ID: "c1", Name: "good", Arguments: `{"secret":"words"}`}, {ID: "c2", Name: "bad", Arguments: `{}`}}}, model.Message{Text: "private answer"}, model.Message{Text: "again"})
	var seen string
	tools := []tool.Tool{
		{Name: "good", SkipPermission: true, Handler: func(_ context.Context, c tool.Call) (tool.Result, error) {
			seen = c.Traceparent
			return tool.Result{Text: "private result"}, nil
		}},
		{Name: "bad", SkipPermission: true, Handler: func(context.Context, tool.Call) (tool.Result, error) {
			return tool.Result{Text: "private failure", Type: tool.Failure}, nil
		}},
	}
	s, err := rt.CreateSession(ctx, transom.SessionConfig{ID: "s", Tools: tools})
	if err != nil {
		t.Fatal(err)
	}
	host, _ := trace.Parse(hostPlace, "a=b")
	if _, err := s.SendAndWait(ctx, transom.Message{Prompt: "private prompt", Trace: host, RequestHeaders: map[string]string{"X": "y"}}); err != nil {
		t.Fatal(err)
	}
	list, by := w.all()
	if diff := cmp.Diff([]string{"chat", "execute_tool good", "execute_tool bad failure", "chat", "invoke_agent"}, sorted(list)); diff != "" {
		t.Fatalf("spans (-want +got):\n%s", diff)
	}
	agent := by[trace.Agent][0]
	if agent.Parent != host || agent.SessionID != "s" || agent.End.Before(agent.Start) {
		t.Errorf("agent %+v", agent)
	}
	id, _, _ := host.IDs()
	places := map[string]bool{}
	for _, span := range append(append(by[trace.Chat], by[trace.Tool]...), agent) {
		if got, _, _ := span.At.IDs(); got != id || span.Op != trace.Agent && span.Parent != agent.At {
			t.Errorf("%s is at %v below %v", span.Op, span.At, span.Parent)
		}
		if places[span.At.Parent] {
			t.Errorf("two spans are at %v", span.At)
		}
		places[span.At.Parent] = true
		if b, _ := json.Marshal(span); strings.Contains(string(b), "private") || strings.Contains(string(b), "words") {
			t.Errorf("a span has content: %s", b)
		}
		if span.ToolName == "good" && span.At.Parent != seen {
			t.Errorf("the tool was told %q and is at %q", seen, span.At.Parent)
		}
	}
	for i, r := range sc.requests {
		want := by[trace.Chat][i].At
		if r.Headers["traceparent"] != want.Parent || r.Headers["tracestate"] != "a=b" || r.Headers["X"] != "y" || len(r.Headers) != 3 {
			t.Errorf("request %d has the headers %v, and is at %v", i, r.Headers, want)
		}
	}
	if _, err := s.SendAndWait(ctx, transom.Message{Prompt: "more"}); err != nil {
		t.Fatal(err)
	}
	_, by = w.all()
	second := by[trace.Agent][1]
	if own, above, sampled := second.At.IDs(); own == id || !sampled || above == [8]byte{} || second.Parent.Parent != "" {
		t.Errorf("a turn without a host's trace: %+v", second)
	}
}

// sorted puts what runs side by side into one order.
func sorted(list []string) []string {
	if len(list) > 2 && list[1] > list[2] {
		return list
	}
	if len(list) > 2 {
		list[1], list[2] = list[2], list[1]
	}
	return list
}

// With content, spans have the messages, arguments and results, without secrets.
func TestSpanContent(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	w := &watcher{content: true}
	rt, _ := observed(t, w, model.Message{Calls: []model.Call{{ID: "c1", Name: "good", Arguments: `{"a":"sk-secret-0123456789"}`}}}, model.Message{Text: "ANSWER"})
	rt.AddSecrets("sk-secret-0123456789")
	s, err := rt.CreateSession(ctx, transom.SessionConfig{Tools: []tool.Tool{{Name: "good", SkipPermission: true, Handler: func(context.Context, tool.Call) (tool.Result, error) {
		return tool.Result{Text: "RESULT"}, nil
	}}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.SendAndWait(ctx, transom.Message{Prompt: "PROMPT"}); err != nil {
		t.Fatal(err)
	}
	_, by := w.all()
	chat, call := by[trace.Chat], by[trace.Tool][0]
	if !strings.Contains(chat[0].Input, "PROMPT") || !strings.Contains(chat[1].Input, "RESULT") || !strings.Contains(chat[1].Output, "ANSWER") || call.Output != "RESULT" || !strings.HasPrefix(call.Input, `{"a":`) {
		t.Errorf("chats %+v, call %+v", chat, call)
	}
	if err := rt.Close(ctx); err != nil || w.flushed != len(w.spans) || w.flushed == 0 {
		t.Errorf("at the end of the runtime %d of %d spans are handed on, %v", w.flushed, len(w.spans), err)
	}
	if b, _ := json.Marshal(w.spans); strings.Contains(string(b), "sk-secret") {
		t.Errorf("a secret is in the spans: %s", b)
	}
}

// What fails and what is cut off says so.
func TestSpanEndings(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	w := &watcher{}
	rt, _ := observed(t, w, model.Message{Calls: []model.Call{{ID: "c1", Name: "nobody", Arguments: `{}`}}}, model.Message{Calls: []model.Call{{ID: "c1", Name: "slow", Arguments: `{}`}}})
	var s *transom.Session
	s, err := rt.CreateSession(ctx, transom.SessionConfig{Tools: []tool.Tool{{Name: "slow", SkipPermission: true, Handler: func(ctx context.Context, _ tool.Call) (tool.Result, error) {
		go s.Abort(context.WithoutCancel(ctx))
		<-ctx.Done()
		return tool.Result{}, ctx.Err()
	}}}})
	if err != nil {
		t.Fatal(err)
	}
	s.SendAndWait(ctx, transom.Message{Prompt: "go"})
	s.SendAndWait(ctx, transom.Message{Prompt: "no reply is left"})
	list, _ := w.all()
	if diff := cmp.Diff([]string{"chat", "execute_tool nobody failure", "chat", "execute_tool slow interrupted", "invoke_agent cancelled", "chat query", "invoke_agent query"}, list); diff != "" {
		t.Errorf("spans (-want +got):\n%s", diff)
	}
}
