package scripted

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/model/endpoint"
	"github.com/transom-run/transom/model/modelfile"
	"github.com/transom-run/transom/model/openai"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const script = `
models:
  - {id: demo, context_window: 32000, vision: true}
conversations:
  - when: {user: {contains: weather}}
    replies:
      - content: I will look.
        reasoning: A question about the weather.
        tool_calls:
          - {id: w1, name: forecast, arguments: {city: Oslo, days: 2}}
          - {id: w2, name: clock}
        chunk_size: 4
        usage: {input: 10, output: 5, cache_read: 3, reasoning: 2}
      - content: It rains, 雨。
        chunks: ["It ", "rains, ", "雨。"]
        finish: end_turn
  - when: {user: {equals: flaky}}
    replies:
      - content: At last.
        chunk_size: 3
        failures:
          - {status: 503, message: overloaded}
          - {status: 429, code: rate_limit_exceeded, message: slow down, retry_after: 1500ms}
          - {cut: 1}
          - {cut_bytes: 4}
  - when: {user: {equals: stall}}
    replies:
      - {content: abcdef, chunk_size: 3, failures: [{stall: 1, times: always}]}
  - messages:
      - {role: user, content: both}
      - role: assistant
        content: One.
        tool_calls: [{id: a, function: {name: x, arguments: "{}"}}]
      - role: assistant
        content: Two.
        tool_calls: [{id: b, function: {name: y, arguments: ""}}]
  - messages:
      - {role: user, content: silence}
  - when: {user: {equals: refuse}}
    replies: [{refusal: I would rather not.}]
`

func play(t testing.TB, text string) *Provider {
	t.Helper()
	f, err := modelfile.Parse("demo.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return New(Config{File: f})
}

// overHTTP serves a script and returns a provider that asks it over the wire.
func overHTTP(t testing.TB, p *Provider) model.Provider {
	t.Helper()
	srv := httptest.NewServer(p.Handler())
	client := srv.Client()
	t.Cleanup(func() { client.CloseIdleConnections(); srv.Close() })
	o, err := openai.New(openai.Config{Server: endpoint.Server{BaseURL: srv.URL, HTTPClient: client}})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func ask(text string, stream bool, more ...model.Message) *model.Request {
	return &model.Request{Model: "demo", Stream: stream, Messages: append([]model.Message{{Role: model.User, Text: text}}, more...)}
}

// TestPlay: in process and over the wire, streaming or not, an answer is the same.
func TestPlay(t *testing.T) {
	said := model.Message{Role: model.Assistant, Text: "I will look."}
	tests := []struct {
		name string
		req  *model.Request
		want model.Response
	}{
		{"calls", ask("the weather?", false), model.Response{Finish: "tool_calls",
			Message: model.Message{Text: "I will look.", Reasoning: "A question about the weather.", Calls: []model.Call{
				{ID: "w1", Name: "forecast", Arguments: `{"city":"Oslo","days":2}`}, {ID: "w2", Name: "clock"}}},
			Usage: &model.Usage{InputTokens: 10, OutputTokens: 5, CacheReadTokens: 3, ReasoningTokens: 2}}},
		{"second reply", ask("the weather?", false, said, model.Message{Role: model.ToolRole, CallID: "w1"}),
			model.Response{Message: model.Message{Text: "It rains, 雨。"}, Finish: "end_turn"}},
		{"several choices", ask("both", false), model.Response{Finish: "tool_calls",
			Message: model.Message{Text: "One.\n\nTwo.", Calls: []model.Call{{ID: "a", Name: "x", Arguments: "{}"}, {ID: "b", Name: "y"}}}}},
		{"refusal", ask("refuse", false), model.Response{Message: model.Message{Text: "I would rather not."}, Finish: "stop"}},
	}
	for _, tt := range tests {
		for _, stream := range []bool{false, true} {
			p := play(t, script)
			for name, provider := range map[string]model.Provider{"direct": p, "http": overHTTP(t, p)} {
				req := *tt.req
				req.Stream = stream
				got, err := model.Collect(provider.Stream(t.Context(), &req))
				if err != nil {
					t.Fatalf("%s, %s, stream %v: %v", tt.name, name, stream, err)
				}
				want := tt.want
				want.Message.Role = model.Assistant
				want.ID, want.Model = got.ID, "demo"
				got.Message.ReasoningField = "" // only a wire has one
				if diff := cmp.Diff(&want, got); diff != "" || got.ID == "" {
					t.Errorf("%s, %s, stream %v:\n%s", tt.name, name, stream, diff)
				}
			}
		}
	}
}

func TestChunks(t *testing.T) {
	p := play(t, script)
	var texts []string
	for c, err := range p.Stream(t.Context(), ask("the weather?", true)) {
		if err != nil {
			t.Fatal(err)
		}
		if c.Text != "" {
			texts = append(texts, c.Text)
		}
	}
	if diff := cmp.Diff([]string{"I wi", "ll l", "ook."}, texts); diff != "" {
		t.Error(diff)
	}
	n := 0
	for range p.Stream(t.Context(), ask("the weather?", false)) {
		n++
	}
	if n != 5 { // reasoning, text, two calls, end
		t.Errorf("%d chunks", n)
	}
}

// TestFailures walks through the failures before a reply.
func TestFailures(t *testing.T) {
	for _, kind := range []string{"direct", "http"} {
		p := play(t, script)
		var provider model.Provider = p
		if kind == "http" {
			provider = overHTTP(t, p)
		}
		type seen struct {
			status int
			text   string
			after  time.Duration
			again  bool
		}
		var got []seen
		for range 6 {
			r, err := model.Collect(provider.Stream(t.Context(), ask("flaky", true)))
			var e *model.Error
			errors.As(err, &e)
			if e == nil {
				e = &model.Error{}
			}
			got = append(got, seen{e.Status, r.Message.Text, e.RetryAfter, e.Retryable})
		}
		bytes := "At " // of four bytes, in process
		if kind == "http" {
			bytes = "" // of the body
		}
		want := []seen{{503, "", 0, true}, {429, "", 1500 * time.Millisecond, true}, {0, "At ", 0, true}, {0, bytes, 0, true},
			{0, "At last.", 0, false}, {503, "", 0, true}}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(seen{})); diff != "" {
			t.Errorf("%s:\n%s", kind, diff)
		}
	}
}

// TestFailuresBySession: attempts of one session are not those of another.
func TestFailuresBySession(t *testing.T) {
	p := play(t, script)
	for _, id := range []string{"a", "b"} {
		req := ask("flaky", true)
		req.SessionID = id
		_, err := model.Collect(p.Stream(t.Context(), req))
		var e *model.Error
		if !errors.As(err, &e) || e.Status != 503 {
			t.Errorf("session %s: %v", id, err)
		}
	}
}

func TestSilence(t *testing.T) {
	for _, text := range []string{"silence", "stall"} {
		for _, kind := range []string{"direct", "http"} {
			p := play(t, script)
			var provider model.Provider = p
			if kind == "http" {
				provider = overHTTP(t, p)
			}
			ctx, cancel := context.WithCancel(t.Context())
			if text == "silence" {
				ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
			}
			got := ""
			r, err := model.Collect(func(yield func(model.Chunk, error) bool) {
				for c, err := range provider.Stream(ctx, ask(text, true)) {
					if got += c.Text; got == "abc" {
						cancel() // it says no more
					}
					if !yield(c, err) {
						return
					}
				}
			})
			cancel()
			if ctx.Err() == nil || !errors.Is(err, ctx.Err()) || text == "stall" && r.Message.Text != "abc" {
				t.Errorf("%s, %s: %+v, %v", text, kind, r, err)
			}
		}
	}
}

func TestNoReply(t *testing.T) {
	p := play(t, script)
	for name, provider := range map[string]model.Provider{"direct": p, "http": overHTTP(t, p)} {
		_, err := model.Collect(provider.Stream(t.Context(), ask("botH", false)))
		var e *model.Error
		if !errors.As(err, &e) || e.Code != CodeNoReply || e.Retryable || !strings.Contains(e.Msg, "messages[0].content") {
			t.Errorf("%s: %+v", name, err)
		}
	}
}

func TestErrorRules(t *testing.T) {
	p := play(t, `
errors:
  - {status: 500, times: 1, messages: [{role: user, content: hi}]}
  - {model: other, status: 404}
conversations:
  - when: {}
    replies: [{content: hello}]
`)
	status := func(req *model.Request) int {
		_, err := model.Collect(p.Stream(t.Context(), req))
		var e *model.Error
		if errors.As(err, &e) {
			return e.Status
		}
		return 0
	}
	other := ask("ho", false)
	other.Model = "other"
	got := []int{status(ask("ho", false)), status(ask("hi", false)), status(ask("hi", false)), status(other), status(other)}
	if diff := cmp.Diff([]int{0, 500, 0, 404, 404}, got); diff != "" {
		t.Error(diff)
	}
}

func TestTiming(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := play(t, `
conversations:
  - when: {}
    replies: [{content: abc, chunk_size: 1, delay: 3s, chunk_delay: 1s}]
`)
		start := time.Now()
		if _, err := model.Collect(p.Stream(t.Context(), ask("x", true))); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took != 6*time.Second {
			t.Errorf("streamed in %v", took)
		}
		start = time.Now()
		if _, err := model.Collect(p.Stream(t.Context(), ask("x", false))); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("whole in %v", took)
		}
	})
}

func TestReplies(t *testing.T) {
	p := New(Config{Replies: []modelfile.Message{Say("one"), Call("t", "{}"), Fail(401, "no")}})
	got, err := model.Collect(p.Stream(t.Context(), ask("x", true)))
	if err != nil || got.Message.Text != "one" {
		t.Fatalf("%+v, %v", got, err)
	}
	got, err = model.Collect(p.Stream(t.Context(), ask("y", true)))
	if err != nil || len(got.Message.Calls) != 1 || !strings.HasPrefix(got.Message.Calls[0].ID, "call_") {
		t.Fatalf("%+v, %v", got, err)
	}
	for range 2 {
		var e *model.Error
		if _, err := model.Collect(p.Stream(t.Context(), ask("z", true))); !errors.As(err, &e) || e.Kind != model.Authentication || e.Retryable {
			t.Fatalf("%v", err)
		}
	}
	if reqs := p.Requests(); len(reqs) != 4 || reqs[1].Messages[0].Text != "y" {
		t.Errorf("%+v", reqs)
	}
	p = New(Config{})
	_, err = model.Collect(p.Stream(t.Context(), ask("x", true)))
	if err == nil || !strings.Contains(err.Error(), `the script has 0 replies, and all are played; this request has 1 messages, the last: user "x"`) {
		t.Errorf("%v", err)
	}
	if models, _ := p.Models(t.Context()); len(models) != 1 || models[0].ID != "scripted" {
		t.Errorf("%+v", models)
	}
}

func TestHandlerOthers(t *testing.T) {
	p := play(t, script)
	srv := httptest.NewServer(p.Handler())
	defer srv.Close()
	defer srv.Client().CloseIdleConnections()
	o, err := openai.New(openai.Config{Server: endpoint.Server{BaseURL: srv.URL + "/any/v1", HTTPClient: srv.Client()}})
	if err != nil {
		t.Fatal(err)
	}
	infos, err := o.Models(t.Context())
	if err != nil || len(infos) != 1 || infos[0].ContextWindow != 32000 || !infos[0].Vision {
		t.Errorf("%+v, %v", infos, err)
	}
	for path, body := range map[string]string{"/x": "", "/chat/completions": "{"} {
		resp, err := srv.Client().Post(srv.URL+path, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode/100 != 4 || !strings.Contains(string(text), `"message":`) {
			t.Errorf("%s: %d %s", path, resp.StatusCode, text)
		}
	}
	resp, err := srv.Client().Head(srv.URL + "/models")
	if err != nil || resp.StatusCode != http.StatusNotFound {
		t.Errorf("%v, %v", resp, err)
	}
	resp.Body.Close()
}

func TestOpen(t *testing.T) {
	if _, err := Open("missing.yaml"); err == nil || !strings.Contains(err.Error(), "missing.yaml") {
		t.Errorf("%v", err)
	}
}
