package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/transom-run/transom/internal/jsonrpc2"
)

// patience ends a wait for something that does not come.
const patience = 10 * time.Minute

// process is a runtime launched over stdio, and the one client it serves.
type process struct {
	cmd  *exec.Cmd
	conn *jsonrpc2.Conn
	home string

	mu       sync.Mutex
	sessions map[string]*session
}

// pipes joins a child's output and input into one stream.
type pipes struct {
	io.Reader
	io.Writer
	close func() error
}

func (p pipes) Close() error { return p.close() }

// launch starts bin with a home of its own and says hello.
func launch(bin, home string) (*process, error) {
	p := &process{home: home, sessions: map[string]*session{}}
	p.cmd = exec.Command(bin, "--headless", "--no-auto-update", "--log-level", "none", "--stdio")
	p.cmd.Dir = home
	p.cmd.Env = append(os.Environ(), "HOME="+home, "COPILOT_HOME="+home, "NO_PROXY=*")
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	p.conn = jsonrpc2.New(pipes{out, in, func() error { return errors.Join(in.Close(), out.Close()) }},
		jsonrpc2.Config{Handler: jsonrpc2.HandlerFunc(p.admit)})
	go p.conn.Serve(context.Background())
	return p, p.call("connect", map[string]any{}, nil)
}

// kill ends the runtime at once, as a crash does.
func (p *process) kill() {
	p.cmd.Process.Kill()
	p.cmd.Wait()
	p.conn.Close()
	<-p.conn.Done()
}

func (p *process) call(method string, params, result any) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	raw, err := p.conn.Call(ctx, method, params)
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	if result == nil {
		return nil
	}
	return json.Unmarshal(raw, result)
}

// admit takes what the runtime sends. Events are decoded as far as needed.
func (p *process) admit(_ context.Context, _ *jsonrpc2.Conn, r *jsonrpc2.Responder) {
	req := r.Request()
	if req.Method != "session.event" {
		r.Reply(nil, jsonrpc2.MethodNotFound(req.Method))
		return
	}
	var e struct {
		SessionID string `json:"sessionId"`
		Event     struct {
			Type string          `json:"type"`
			Data json.RawMessage `json:"data"`
		} `json:"event"`
	}
	if json.Unmarshal(req.Params, &e) != nil {
		return
	}
	p.mu.Lock()
	s := p.sessions[e.SessionID]
	p.mu.Unlock()
	if s != nil {
		s.event(e.Event.Type, e.Event.Data)
	}
}

// session is one session of a process.
type session struct {
	p      *process
	id     string
	idle   chan error // one entry each time the session ends its work
	deltas atomic.Int64
	// clear, when set, is what the clear_context tool does.
	clear func() error
}

// open calls session.create or session.resume.
func (p *process) open(method, id string, m *modelServer, streaming bool) (*session, error) {
	s := &session{p: p, id: id, idle: make(chan error, 1)}
	p.mu.Lock()
	p.sessions[id] = s
	p.mu.Unlock()
	object := func(properties map[string]any) map[string]any {
		return map[string]any{"type": "object", "properties": properties}
	}
	return s, p.call(method, map[string]any{
		"sessionId": id, "model": "bench", "streaming": streaming, "requestPermission": false,
		"provider":      map[string]any{"type": "openai", "wireApi": "completions", "baseUrl": m.url, "apiKey": "none"},
		"systemMessage": map[string]any{"mode": "replace", "content": "Do as you are told."},
		"tools": []any{
			map[string]any{"name": "probe", "description": "Says ok", "skipPermission": true,
				"parameters": object(map[string]any{"i": map[string]any{"type": "integer"}})},
			map[string]any{"name": "clear_context", "description": "Clears the conversation", "skipPermission": true,
				"isTerminal": true, "defer": "never", "parameters": object(map[string]any{})},
		},
		"availableTools": []string{"custom:*"}, "envValueMode": "direct", "enableConfigDiscovery": false,
	}, nil)
}

func (s *session) event(kind string, data json.RawMessage) {
	switch kind {
	case "session.idle":
		s.done(nil)
	case "session.error":
		s.done(fmt.Errorf("session.error: %s", data))
	case "assistant.message_delta":
		s.deltas.Add(1)
	case "external_tool.requested":
		var call struct{ RequestID, ToolName string }
		json.Unmarshal(data, &call)
		go s.answer(call.RequestID, call.ToolName)
	}
}

func (s *session) done(err error) {
	select {
	case s.idle <- err:
	default:
	}
}

func (s *session) answer(request, tool string) {
	if tool == "clear_context" && s.clear != nil {
		if err := s.clear(); err != nil {
			s.done(err)
			return
		}
	}
	err := s.p.call("session.tools.handlePendingToolCall", map[string]any{"sessionId": s.id, "requestId": request, "result": "ok"}, nil)
	if err != nil {
		s.done(err)
	}
}

// ask sends a prompt and waits until the session is idle.
func (s *session) ask(prompt string) (time.Duration, error) {
	begin := time.Now()
	if err := s.p.call("session.send", map[string]any{"sessionId": s.id, "prompt": prompt}, nil); err != nil {
		return 0, err
	}
	select {
	case err := <-s.idle:
		return time.Since(begin), err
	case <-s.p.conn.Done():
		return 0, errors.New("the runtime ended")
	case <-time.After(patience):
		return 0, errors.New("the session did not become idle")
	}
}

// memory is the proportional set size of the runtime and its children, in KiB.
func (p *process) memory() float64 {
	children := map[int][]int{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range stats {
		b, err := os.ReadFile(name)
		if err != nil {
			continue // ended meanwhile
		}
		fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		parent, _ := strconv.Atoi(fields[1])
		children[parent] = append(children[parent], pid)
	}
	var sum float64
	for todo := []int{p.cmd.Process.Pid}; len(todo) > 0; todo = todo[1:] {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", todo[0]))
		for line := range strings.Lines(string(b)) {
			var kib float64
			if n, _ := fmt.Sscanf(line, "Pss: %f kB", &kib); n == 1 {
				sum += kib
			}
		}
		todo = append(todo, children[todo[0]]...)
	}
	return sum
}
