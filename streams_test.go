package transom_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/eventlog/memlog"
	"github.com/transom-run/transom/model/endpoint"
	"github.com/transom-run/transom/model/modeltest"
	"github.com/transom-run/transom/tool"
)

// earlier is an answer that calls the tool "before" under an id.
var earlier = map[string]string{
	modeltest.Chat:      `{"choices":[{"message":{"content":null,"tool_calls":[{"id":%q,"function":{"name":"before","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`,
	modeltest.Responses: `{"id":"r","status":"completed","output":[{"type":"function_call","call_id":%q,"name":"before","arguments":"{}"}]}`,
	modeltest.Messages:  `{"type":"message","role":"assistant","content":[{"type":"tool_use","id":%q,"name":"before","input":{}}],"stop_reason":"tool_use"}`,
}

// streamServer answers the requests of one session: with calls under the ids that the
// stream takes for given, then once with the stream, and from then on with "fine".
type streamServer struct {
	stream modeltest.Stream
	wire   *modelWire

	mu     sync.Mutex
	taken  int
	ready  bool // the stream is next
	played bool
	after  []string // bodies of the requests behind it
}

func (s *streamServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.played:
		s.after = append(s.after, string(body))
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, s.wire.fine)
	case s.ready:
		s.played = true
		for k, v := range s.stream.Header {
			w.Header()[k] = []string{v}
		}
		w.WriteHeader(s.stream.Status)
		w.Write(s.stream.Body)
		if s.stream.Cut {
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}
	default:
		w.Header().Set("Content-Type", "application/json")
		if s.taken < len(s.stream.Taken) {
			fmt.Fprintf(w, earlier[s.stream.Wire], s.stream.Taken[s.taken])
			s.taken++
			return
		}
		io.WriteString(w, s.wire.fine)
	}
}

// TestStreamsThroughSessions plays every stream of the kit to a session: its calls are
// run, each once and with its arguments, its text is in the log, its usage is told, what
// the provider must have back is in the next request, and a failure is repeated or ends
// the turn.
func TestStreamsThroughSessions(t *testing.T) {
	all, err := modeltest.Streams()
	if err != nil {
		t.Fatal(err)
	}
	defer endpoint.CloseIdleConnections()
	retry := atOnce
	retry.MaxRetryAfter = 1 // nobody waits here
	rt, err := transom.Open(transom.Config{Store: memlog.New(), Retry: retry, ApproveAll: true, Getenv: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close(context.Background())
	for _, stream := range all {
		for _, streaming := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/%s/%v", stream.Name, stream.Wire, streaming), func(t *testing.T) {
				p := &streamServer{stream: stream, wire: &modelWires[slices.Index([]string{modeltest.Chat, modeltest.Responses, modeltest.Messages}, stream.Wire)]}
				p.play(t, rt, streaming)
				if t.Failed() {
					t.Logf("%s\n%s", stream.About, stream.Body)
				}
			})
		}
	}
}

func (s *streamServer) play(t *testing.T, rt *transom.Runtime, streaming bool) {
	srv := httptest.NewServer(s)
	defer srv.Close()
	var mu sync.Mutex
	var ran []string
	tools := []tool.Tool{{Name: "before"}}
	for _, c := range s.stream.Expect.Calls {
		if !slices.ContainsFunc(tools, func(o tool.Tool) bool { return o.Name == c.Name }) {
			tools = append(tools, tool.Tool{Name: c.Name})
		}
	}
	for i := range tools {
		tools[i].Handler = func(_ context.Context, c tool.Call) (tool.Result, error) {
			mu.Lock()
			defer mu.Unlock()
			if s.playedAlready() {
				ran = append(ran, c.Name+" "+string(c.Arguments))
			}
			return tool.Result{Text: "result"}, nil
		}
	}
	cfg := s.wire.config
	cfg.BaseURL = srv.URL
	session, err := rt.CreateSession(t.Context(), transom.SessionConfig{Model: "m", Provider: &cfg, Tools: tools, Streaming: streaming})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close(context.Background())
	if len(s.stream.Taken) > 0 {
		turnOf(t, session, "before")
	}
	s.mu.Lock()
	s.ready = true
	s.mu.Unlock()
	events := turnOf(t, session, "hi")
	if want := s.stream.Expect.Error; want != nil {
		s.failed(t, events, want)
		return
	}
	s.answered(t, events, ran)
}

func (s *streamServer) playedAlready() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.played
}

// failed checks a stream that is a failure.
func (s *streamServer) failed(t *testing.T, events []*event.Event, want *modeltest.ExpectError) {
	errs, failures := ofType[event.SessionError](t, events), ofType[event.ModelCallFailure](t, events)
	if want.Retryable && want.RetryAfter == "" {
		messages := ofType[event.AssistantMessage](t, events)
		if len(errs) != 0 || len(failures) != 1 || len(messages) != 1 || messages[0].Content != "fine" {
			t.Errorf("it was not repeated: %d failures, %+v, answers %+v", len(failures), errs, messages)
		}
		return
	}
	if len(errs) != 1 || errs[0].ErrorType != want.Kind || errs[0].StatusCode != want.Status {
		t.Fatalf("got %+v, want %+v", errs, want)
	}
	for _, text := range want.Says {
		if !strings.Contains(errs[0].Message, text) {
			t.Errorf("%q does not say %q", errs[0].Message, text)
		}
	}
}

// answered checks a stream that is an answer; ran are the calls that were run.
func (s *streamServer) answered(t *testing.T, events []*event.Event, ran []string) {
	want := s.stream.Expect
	if errs := ofType[event.SessionError](t, events); len(errs) > 0 {
		t.Fatalf("the turn failed: %+v", errs)
	}
	messages := ofType[event.AssistantMessage](t, events)
	rounds := 1
	if len(want.Calls) > 0 {
		rounds = 2
	}
	if len(messages) != rounds || messages[0].Content != want.Text || len(messages[0].ToolRequests) != len(want.Calls) {
		t.Fatalf("answers %+v, want %q with %d calls first, of %d", messages, want.Text, len(want.Calls), rounds)
	}
	var wants []string
	for _, c := range want.Calls {
		if args := strings.TrimSpace(c.Arguments); args == "" || args == "null" {
			wants = append(wants, c.Name+" {}")
		} else if strings.HasPrefix(args, "{") && json.Valid([]byte(args)) {
			wants = append(wants, c.Name+" "+args)
		}
	}
	slices.Sort(wants)
	slices.Sort(ran)
	if !slices.EqualFunc(wants, ran, sameCall) {
		t.Errorf("ran %q, want %q", ran, wants)
	}
	if done := ofType[event.ToolComplete](t, events); len(done) != len(want.Calls) {
		t.Errorf("%d calls were completed, of %d", len(done), len(want.Calls))
	}
	if u := want.Usage; u != nil && *u != (modeltest.ExpectUsage{}) {
		used := ofType[event.AssistantUsage](t, events)
		if len(used) != rounds {
			t.Fatalf("usage %+v", used)
		}
		got := modeltest.ExpectUsage{Input: used[0].InputTokens, Output: used[0].OutputTokens, CacheRead: used[0].CacheReadTokens, CacheWrite: used[0].CacheWriteTokens, Reasoning: used[0].ReasoningTokens}
		if got != *u {
			t.Errorf("usage %+v, want %+v", got, *u)
		}
	}
	if rounds == 1 {
		return
	}
	if len(s.after) != 1 {
		t.Fatalf("%d requests behind the stream", len(s.after))
	}
	rest := s.after[0]
	for _, text := range want.Back {
		_, after, ok := strings.Cut(rest, text)
		if !ok {
			t.Errorf("the next request lacks %q, or has it elsewhere:\n%s", text, s.after[0])
			break
		}
		rest = after
	}
	for _, text := range want.NotBack {
		if strings.Contains(s.after[0], text) {
			t.Errorf("the next request has %q:\n%s", text, s.after[0])
		}
	}
}

// sameCall compares a name with arguments, as JSON.
func sameCall(a, b string) bool {
	nameA, argsA, _ := strings.Cut(a, " ")
	nameB, argsB, _ := strings.Cut(b, " ")
	var x, y any
	if json.Unmarshal([]byte(argsA), &x) != nil || json.Unmarshal([]byte(argsB), &y) != nil {
		return a == b
	}
	left, _ := json.Marshal(x)
	right, _ := json.Marshal(y)
	return nameA == nameB && string(left) == string(right)
}

// ofType are the payloads of one type of event.
func ofType[P event.Payload](t *testing.T, events []*event.Event) (out []P) {
	t.Helper()
	var zero P
	for _, e := range events {
		if e.Type == zero.EventType() {
			p, err := event.As[P](e)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, p)
		}
	}
	return out
}
