package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// modelRun is the scripted model of one case in one language: it answers the
// n-th request with the n-th assistant message of the case and keeps what it
// was asked. It does not judge; match.go does that once the case is over, so
// that a host is never stuck because of a wrong request.
type modelRun struct {
	replies []scripted

	mu       sync.Mutex
	changed  chan struct{} // closed and replaced on every request
	requests []json.RawMessage
	released map[int]chan struct{}
}

// scripted is one expected request and the reply to it.
type scripted struct {
	before []Message // the whole window the request must show
	fails  *Failure  // the reply where it is a failure
	reply  Message
	agent  bool // the request is a sub-agent's
}

// newModelRun lays the windows of a case out as a list of exchanges.
func newModelRun(c *Case) *modelRun {
	m := &modelRun{changed: make(chan struct{}), released: map[int]chan struct{}{}}
	for _, conv := range c.Conversations {
		for i, msg := range conv.Messages {
			if msg.Role != "assistant" || msg.Said {
				continue
			}
			for _, f := range msg.Failures {
				m.replies = append(m.replies, scripted{before: conv.Messages[:i], fails: &f, agent: conv.Agent})
			}
			if msg.Content != "" || len(msg.ToolCalls) > 0 {
				m.replies = append(m.replies, scripted{before: conv.Messages[:i], reply: msg, agent: conv.Agent})
			}
		}
	}
	return m
}

// ServeHTTP is POST …/chat/completions.
func (m *modelRun) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	m.mu.Lock()
	m.requests = append(m.requests, body)
	n := len(m.requests)
	close(m.changed)
	m.changed = make(chan struct{})
	m.mu.Unlock()

	next := scripted{reply: Message{Role: "assistant", Content: "(no further reply is scripted)"}}
	if n <= len(m.replies) {
		next = m.replies[n-1]
	}
	if next.reply.Hold {
		select {
		case <-m.gate(n):
		case <-r.Context().Done():
			return
		}
	}
	var req struct {
		Model  string `json:"model"`
		Stream bool   `json:"stream"`
	}
	_ = json.Unmarshal(body, &req) // a request that is not JSON is reported by the matcher
	answer{id: fmt.Sprintf("reply-%d", n), model: req.Model, scripted: next, promptTokens: len(body) / 4}.write(w, req.Stream)
}

// gate returns the channel that holds reply n back.
func (m *modelRun) gate(n int) chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.released[n] == nil {
		m.released[n] = make(chan struct{})
	}
	return m.released[n]
}

// release lets reply n go. Releasing twice is harmless.
func (m *modelRun) release(n int) {
	gate := m.gate(n)
	m.mu.Lock()
	defer m.mu.Unlock()
	select {
	case <-gate:
	default:
		close(gate)
	}
}

// wait returns true once n requests have arrived, false after the time is up.
func (m *modelRun) wait(n int, limit time.Duration) bool {
	deadline := time.After(limit)
	for {
		m.mu.Lock()
		have, changed := len(m.requests), m.changed
		m.mu.Unlock()
		if have >= n {
			return true
		}
		select {
		case <-changed:
		case <-deadline:
			return false
		}
	}
}

// seen returns the requests so far.
func (m *modelRun) seen() []json.RawMessage {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]json.RawMessage(nil), m.requests...)
}

// answer is one reply on the chat-completions wire.
type answer struct {
	id, model    string
	scripted     // its reply or failure
	promptTokens int
}

func (a answer) write(w http.ResponseWriter, stream bool) {
	if a.fails != nil {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(a.fails.Status)
		_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"message": a.fails.Message, "type": "invalid_request_error"}})
		return
	}
	if stream {
		a.writeStream(w)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	message := map[string]any{"role": "assistant", "content": nil}
	if a.reply.Content != "" {
		message["content"] = a.reply.Content
	}
	if len(a.reply.ToolCalls) > 0 {
		calls := []wireCall{}
		for _, call := range a.reply.ToolCalls {
			calls = append(calls, wireCall{ID: call.ID, Type: "function", Function: wireFunction{Name: call.Name, Arguments: call.arguments()}})
		}
		message["tool_calls"] = calls
	}
	_ = json.NewEncoder(w).Encode(map[string]any{
		"id": a.id, "object": "chat.completion", "created": 1, "model": a.model,
		"choices": []any{map[string]any{"index": 0, "message": message, "finish_reason": a.finish()}},
		"usage":   a.usage(),
	})
}

// writeStream cuts the text in two and the arguments of each call in two, so
// that a client which does not join the pieces is found out.
func (a answer) writeStream(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/event-stream")
	chunk := func(delta map[string]any, finish any) {
		a.event(w, map[string]any{
			"id": a.id, "object": "chat.completion.chunk", "created": 1, "model": a.model,
			"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}},
		})
	}
	chunk(map[string]any{"role": "assistant", "content": ""}, nil)
	for _, piece := range halves(a.reply.Content) {
		chunk(map[string]any{"content": piece}, nil)
	}
	for i, call := range a.reply.ToolCalls {
		chunk(map[string]any{"tool_calls": []any{map[string]any{
			"index": i, "id": call.ID, "type": "function",
			"function": map[string]any{"name": call.Name, "arguments": ""},
		}}}, nil)
		for _, piece := range halves(call.arguments()) {
			chunk(map[string]any{"tool_calls": []any{map[string]any{
				"index": i, "function": map[string]any{"arguments": piece},
			}}}, nil)
		}
	}
	chunk(map[string]any{}, a.finish())
	a.event(w, map[string]any{
		"id": a.id, "object": "chat.completion.chunk", "created": 1, "model": a.model,
		"choices": []any{}, "usage": a.usage(),
	})
	fmt.Fprint(w, "data: [DONE]\n\n")
}

func (a answer) event(w http.ResponseWriter, v any) {
	line, _ := json.Marshal(v) // maps of strings and numbers always encode
	fmt.Fprintf(w, "data: %s\n\n", line)
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
}

func (a answer) finish() string {
	if len(a.reply.ToolCalls) > 0 {
		return "tool_calls"
	}
	return "stop"
}

func (a answer) usage() map[string]any {
	return map[string]any{"prompt_tokens": a.promptTokens, "completion_tokens": 10, "total_tokens": a.promptTokens + 10}
}

// halves cuts a text in two at a rune boundary; an empty text has no halves.
func halves(s string) []string {
	runes := []rune(s)
	switch len(runes) {
	case 0:
		return nil
	case 1:
		return []string{s}
	}
	mid := len(runes) / 2
	return []string{string(runes[:mid]), string(runes[mid:])}
}
