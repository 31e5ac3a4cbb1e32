package modeltest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/transom-run/transom/model"
)

// Script is the model file that [TestProvider] has played.
const Script = `
models: [demo]
conversations:
  - when: {user: {equals: talk}}
    replies:
      - {content: "Hello, 世界. 😀", chunk_size: 3, usage: {input: 9, output: 4}}
  - when: {user: {equals: calls}}
    replies:
      - content: Looking.
        tool_calls:
          - {id: a, name: one, arguments: {x: "😀\n"}}
          - {id: b, name: two}
        chunk_size: 2
  - when: {user: {equals: refused}}
    replies: [{failures: [{status: 401, message: no, times: always}]}]
  - when: {user: {equals: busy}}
    replies: [{failures: [{status: 429, message: slow down, retry_after: 2s, times: always}]}]
  - when: {user: {equals: cut}}
    replies: [{content: abcdef, chunk_size: 3, failures: [{cut: 1, times: always}]}]
  - when: {user: {equals: stall}}
    replies: [{content: abcdef, chunk_size: 3, failures: [{stall: 1, times: always}]}]
`

// TestProvider checks the contract of [model.Provider]. open returns a provider
// behind which a model plays [Script].
func TestProvider(t *testing.T, open func(t *testing.T) model.Provider) {
	ask := func(text string, stream bool) *model.Request {
		return &model.Request{Model: "demo", Stream: stream, Messages: []model.Message{{Role: model.User, Text: text}}}
	}
	for _, stream := range []bool{false, true} {
		name := map[bool]string{false: "whole", true: "stream"}[stream]
		t.Run("talk "+name, func(t *testing.T) {
			r, err := model.Collect(open(t).Stream(t.Context(), ask("talk", stream)))
			if err != nil || r.Message.Text != "Hello, 世界. 😀" || r.Finish != "stop" || r.Usage == nil || r.Usage.InputTokens != 9 || r.Message.Role != model.Assistant {
				t.Errorf("got %+v, %v", r, err)
			}
		})
		t.Run("calls "+name, func(t *testing.T) {
			r, err := model.Collect(open(t).Stream(t.Context(), ask("calls", stream)))
			if err != nil || len(r.Message.Calls) != 2 || r.Message.Text != "Looking." {
				t.Fatalf("got %+v, %v", r, err)
			}
			if c := r.Message.Calls[0]; c != (model.Call{ID: "a", Name: "one", Arguments: `{"x":"😀\n"}`}) {
				t.Errorf("got %+v", c)
			}
		})
		for text, want := range map[string]model.Error{
			"refused": {Kind: model.Authentication, Status: 401},
			"busy":    {Kind: model.RateLimit, Status: 429, Retryable: true, RetryAfter: 2 * time.Second},
			"cut":     {Kind: model.Query, Retryable: true},
		} {
			t.Run(text+" "+name, func(t *testing.T) {
				n := 0
				var last error
				for _, err := range open(t).Stream(t.Context(), ask(text, stream)) {
					if last != nil {
						t.Fatal("the sequence goes on after its error")
					}
					last = err
					n++
				}
				var e *model.Error
				if !errors.As(last, &e) || e.Kind != want.Kind || e.Status != want.Status || e.Retryable != want.Retryable || e.RetryAfter != want.RetryAfter || e.Msg == "" || e.Endpoint == "" {
					t.Errorf("got %+v after %d", last, n)
				}
			})
		}
	}
	t.Run("cancel", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var last error
		for c, err := range open(t).Stream(ctx, ask("stall", true)) {
			if c.Text != "" {
				cancel()
			}
			last = err
		}
		cancel()
		var e *model.Error
		if !errors.Is(last, context.Canceled) || !errors.As(last, &e) || e.Retryable {
			t.Errorf("got %v", last)
		}
	})
	t.Run("leave", func(t *testing.T) {
		for range open(t).Stream(t.Context(), ask("stall", true)) {
			break
		}
	})
	t.Run("twice", func(t *testing.T) {
		seq := open(t).Stream(t.Context(), ask("talk", true))
		for range 2 {
			if r, err := model.Collect(seq); err != nil || r.Message.Text == "" {
				t.Errorf("got %+v, %v", r, err)
			}
		}
	})
}
