package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
)

// modelServer is a chat-completions endpoint that does what the last user
// message says, at once:
//
//	say TEXT          answer with TEXT
//	stream N          answer with N pieces
//	loop TOOL N       call TOOL N times, one call a request, then answer
//	call TOOL JSON    call TOOL once, then answer
//
// So a turn's time is the runtime's.
type modelServer struct {
	url    string
	server *http.Server
}

func serveModel() (*modelServer, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	m := &modelServer{url: "http://" + ln.Addr().String() + "/v1"}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", m.complete)
	m.server = &http.Server{Handler: mux}
	go m.server.Serve(ln)
	return m, nil
}

func (m *modelServer) close() { m.server.Close() }

// chat is as much of a request as the server looks at.
type chat struct {
	Stream   bool `json:"stream"`
	Messages []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
}

// order finds the order that stands, and how many results came since it.
func (c *chat) order() (words []string, results int) {
	for i := len(c.Messages) - 1; i >= 0; i-- {
		switch msg := &c.Messages[i]; msg.Role {
		case "tool":
			results++
		case "user":
			var text string
			if json.Unmarshal(msg.Content, &text) != nil {
				text = string(msg.Content)
			}
			for _, verb := range []string{"say ", "stream ", "loop ", "call "} {
				if at := strings.LastIndex(text, verb); at >= 0 && (at == 0 || text[at-1] == '\n') {
					return strings.SplitN(text[at:], " ", 3), results
				}
			}
		}
	}
	return []string{"say", "ok"}, results
}

func (m *modelServer) complete(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var c chat
	if err := json.Unmarshal(body, &c); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	words, results := c.order()
	n, tool, args := 1, "", "{}"
	switch words[0] {
	case "loop":
		tool = words[1]
		fmt.Sscan(words[2], &n)
		args = fmt.Sprintf(`{"i":%d}`, results)
	case "call":
		tool, args = words[1], words[2]
	case "stream":
		fmt.Sscan(words[1], &n)
	}
	switch {
	case tool != "" && results < n:
		answer(w, map[string]any{"role": "assistant", "content": nil, "tool_calls": []any{map[string]any{
			"id": fmt.Sprintf("call_%d_%d", len(c.Messages), results), "type": "function",
			"function": map[string]any{"name": tool, "arguments": args}}}}, "tool_calls")
	case c.Stream:
		stream(w, n)
	default:
		answer(w, map[string]any{"role": "assistant", "content": "ok"}, "stop")
	}
}

var usage100 = map[string]any{"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}

func answer(w http.ResponseWriter, message map[string]any, finish string) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(map[string]any{"id": "bench", "object": "chat.completion", "model": "bench", "usage": usage100,
		"choices": []any{map[string]any{"index": 0, "message": message, "finish_reason": finish}}})
}

func stream(w http.ResponseWriter, n int) {
	w.Header().Set("Content-Type", "text/event-stream")
	piece := []byte(`data: {"id":"bench","object":"chat.completion.chunk","model":"bench","choices":[{"index":0,"delta":{"content":"word "}}]}` + "\n\n")
	flusher, _ := w.(http.Flusher)
	for range n {
		w.Write(piece)
		flusher.Flush()
	}
	last, _ := json.Marshal(map[string]any{"id": "bench", "object": "chat.completion.chunk", "model": "bench", "usage": usage100,
		"choices": []any{map[string]any{"index": 0, "delta": map[string]any{}, "finish_reason": "stop"}}})
	fmt.Fprintf(w, "data: %s\n\ndata: [DONE]\n\n", last)
}
