package transom_test

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/eventlog/memlog"
	"github.com/transom-run/transom/mcp"
	"github.com/transom-run/transom/mcp/host"
	"github.com/transom-run/transom/mcp/mcptest"
	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/tool"
)

func TestMain(m *testing.M) {
	mcptest.Main()
	os.Exit(m.Run())
}

// world is a runtime with a scripted model and real MCP servers.
type world struct {
	*transom.Runtime
	t   *testing.T
	ctx context.Context
	sc  *script
}

func servers(t *testing.T, replies ...model.Message) *world {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	w := &world{t: t, ctx: ctx, sc: &script{replies: replies}}
	rt, err := transom.Open(transom.Config{Store: memlog.New(), Provider: w.sc, MCP: host.New, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	w.Runtime = rt
	t.Cleanup(func() {
		defer cancel()
		if err := rt.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *world) create(cfg transom.SessionConfig) *transom.Session {
	w.t.Helper()
	s, err := w.CreateSession(w.ctx, cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

func (w *world) send(s *transom.Session, prompt string) string {
	w.t.Helper()
	m, err := s.SendAndWait(w.ctx, transom.Message{Prompt: prompt})
	if err != nil {
		w.t.Fatal(err)
	}
	if m == nil {
		return ""
	}
	return m.Content
}

// request is the n-th model call.
func (w *world) request(n int) model.Request {
	w.sc.mu.Lock()
	defer w.sc.mu.Unlock()
	if n >= len(w.sc.requests) {
		w.t.Fatalf("there were %d model calls", len(w.sc.requests))
	}
	return w.sc.requests[n]
}

func call(id, name, args string) model.Message {
	return model.Message{Calls: []model.Call{{ID: id, Name: name, Arguments: args}}}
}

func offered(r model.Request) (names []string) {
	for _, d := range r.Tools {
		names = append(names, d.Name)
	}
	return names
}

// lastResult is what the model reads of the newest call.
func lastResult(r model.Request) string { return r.Messages[len(r.Messages)-1].Text }

func status(s *transom.Session, name string) mcp.State {
	for _, st := range s.MCP().List() {
		if st.Name == name {
			return st
		}
	}
	return mcp.State{}
}

// A server starts with the first message, its tools are offered and run where they
// are approved, and it keeps its process through any number of clears.
func TestServers(t *testing.T) {
	const clears = 20
	replies := []model.Message{call("c1", "s-get_env", `{"name":"GREETING"}`), {Text: "one"}}
	for range clears {
		replies = append(replies, call("c2", "clear_context", `{"prompt":"SEED"}`), call("c3", "s-get_env", `{"name":"GREETING"}`), model.Message{Text: "two"})
	}
	w := servers(t, replies...)
	var s *transom.Session
	clear, err := tool.Func("clear_context", "clears", func(ctx context.Context, in struct {
		Prompt string `json:"prompt"`
	}) (string, error) {
		_, err := s.History().ClearContext(ctx, in.Prompt)
		return "cleared", err
	})
	if err != nil {
		t.Fatal(err)
	}
	clear.IsTerminal = true
	var mu sync.Mutex
	var asked []string
	server := mcptest.Server("plain")
	server.Env["GREETING"] = "hello"
	s = w.create(transom.SessionConfig{
		Tools: []tool.Tool{clear}, MCP: &transom.MCPConfig{Servers: map[string]mcp.Server{"s": server}},
		OnPermission: func(_ context.Context, r transom.PermissionRequest) transom.Decision {
			mu.Lock()
			defer mu.Unlock()
			asked = append(asked, string(r.Raw))
			return transom.Decision{Kind: "approve-once"}
		},
	})
	events := s.Subscribe()
	defer events.Close()
	if got := w.send(s, "go"); got != "one" {
		t.Errorf("answered %q", got)
	}
	if names := offered(w.request(0)); names[0] != "clear_context" || !slices.Contains(names, "s-get_env") {
		t.Errorf("offered %v", names)
	}
	if got := lastResult(w.request(1)); got != "hello" {
		t.Errorf("the model read %q", got)
	}
	pid := status(s, "s").PID
	for n := range clears {
		if got := w.send(s, "clear"); got != "two" {
			t.Errorf("answered %q", got)
		}
		if st := status(s, "s"); st.PID != pid || st.Status != mcp.Connected {
			t.Errorf("after clear %d: %+v, the process was %d", n, st, pid)
		}
		if got := lastResult(w.request(4 + 3*n)); got != "hello" {
			t.Errorf("after clear %d the model read %q", n, got)
		}
	}
	if len(asked) != 1+2*clears || !strings.Contains(asked[0], `"kind":"mcp"`) || !strings.Contains(asked[0], `"toolCallId":"c1"`) {
		t.Errorf("asked %v", asked)
	}
	var loaded, started bool
	for e, err := range events.All(w.ctx) {
		if err != nil {
			t.Fatal(err)
		}
		switch p := e.Payload.(type) {
		case event.MCPServersLoaded:
			loaded = loaded || len(p.Servers) == 1 && p.Servers[0].Status == "connected" && p.Servers[0].Transport == "stdio"
		case event.ToolStart:
			started = started || p.MCPServerName == "s" && p.MCPToolName == "get_env" && p.ToolName == "s-get_env"
		}
		if e.Type == event.TypeSessionIdle && loaded {
			break
		}
	}
	if !loaded || !started {
		t.Errorf("servers loaded: %t; tool started with its origin: %t", loaded, started)
	}
}

// Nobody is asked, and nothing runs, where nobody approves; a denied call
// leaves the server alone.
func TestServersUnapproved(t *testing.T) {
	w := servers(t, call("c1", "s-where", `{}`), model.Message{Text: "done"})
	s := w.create(transom.SessionConfig{MCP: &transom.MCPConfig{Servers: map[string]mcp.Server{"s": mcptest.Server("plain")}}})
	w.send(s, "go")
	if got := lastResult(w.request(1)); !strings.Contains(got, "Permission denied and could not request permission from user") {
		t.Errorf("the model read %q", got)
	}
}

// A server that dies in a call is connected to anew before the next model call: what
// is offered can be called.
func TestServerDies(t *testing.T) {
	w := servers(t, call("c1", "s-dies", `{}`), call("c2", "s-get_env", `{"name":"PATH"}`), model.Message{Text: "done"})
	s := w.create(transom.SessionConfig{
		OnPermission: transom.ApproveAll, MCP: &transom.MCPConfig{Servers: map[string]mcp.Server{"s": mcptest.Server("plain")}},
	})
	if got := w.send(s, "go"); got != "done" {
		t.Errorf("answered %q", got)
	}
	if got := lastResult(w.request(1)); !strings.Contains(got, "is gone") {
		t.Errorf("the model read %q of the call", got)
	}
	if got := lastResult(w.request(2)); got != os.Getenv("PATH") {
		t.Errorf("the model read %q of the next one", got)
	}
}

// A call under way at a clear ends in the log only.
func TestServerLate(t *testing.T) {
	w := servers(t, model.Message{Calls: []model.Call{
		{ID: "c1", Name: "s-hangs", Arguments: `{}`}, {ID: "c2", Name: "clear_context", Arguments: `{"prompt":"SEED"}`},
	}}, model.Message{Text: "fresh"})
	var s *transom.Session
	cleared := make(chan struct{})
	clear, err := tool.Func("clear_context", "clears", func(ctx context.Context, in struct {
		Prompt string `json:"prompt"`
	}) (string, error) {
		defer close(cleared)
		_, err := s.History().ClearContext(ctx, in.Prompt)
		return "cleared", err
	})
	if err != nil {
		t.Fatal(err)
	}
	slow := mcptest.Server("plain")
	slow.Timeout = 5000
	s = w.create(transom.SessionConfig{
		OnPermission: transom.ApproveAll, Tools: []tool.Tool{clear}, MCP: &transom.MCPConfig{Servers: map[string]mcp.Server{"s": slow}},
	})
	if got := w.send(s, "go"); got != "fresh" {
		t.Errorf("answered %q", got)
	}
	<-cleared
	for _, m := range w.request(1).Messages {
		if raw, _ := json.Marshal(m); strings.Contains(string(raw), "hangs") || strings.Contains(string(raw), "did not answer") {
			t.Errorf("the new window has %s", raw)
		}
	}
}

// A session begins and works without the servers that do not: each is named with what
// is wrong with it, and the others' tools run.
func TestServersThatFail(t *testing.T) {
	w := servers(t, call("c1", "good-get_env", `{"name":"GREETING"}`), model.Message{Text: "done"})
	good := mcptest.Server("plain")
	good.Env["GREETING"] = "hello"
	s := w.create(transom.SessionConfig{OnPermission: transom.ApproveAll, MCP: &transom.MCPConfig{Servers: map[string]mcp.Server{
		"good": good, "refused": {URL: "http://127.0.0.1:1/mcp"}, "garbage": mcptest.Server("garbage"), "missing": {Command: "/nowhere/at/all"},
	}}})
	events := s.Subscribe()
	defer events.Close()
	if got := w.send(s, "go"); got != "done" {
		t.Errorf("answered %q", got)
	}
	if got := lastResult(w.request(1)); got != "hello" {
		t.Errorf("the model read %q", got)
	}
	if names := offered(w.request(0)); slices.ContainsFunc(names, func(n string) bool { return !strings.HasPrefix(n, "good-") && strings.Contains(n, "-") }) {
		t.Errorf("offered %v", names)
	}
	told := map[string]string{}
	for e, err := range events.All(w.ctx) {
		if err != nil {
			t.Fatal(err)
		}
		switch p := e.Payload.(type) {
		case event.MCPServersLoaded:
			for _, i := range p.Servers {
				told[i.Name] = i.Status + " " + i.Error
			}
		case event.MCPServerStatusChanged:
			told[p.ServerName] = p.Status + " " + p.Error
		}
		if e.Type == event.TypeSessionIdle {
			break
		}
	}
	for name, want := range map[string]string{"good": "connected", "refused": "connection refused", "garbage": "its process ended", "missing": "could not be started"} {
		if !strings.Contains(told[name], want) || name != "good" && !strings.HasPrefix(told[name], "failed ") {
			t.Errorf("%s: told %q, want %q", name, told[name], want)
		}
	}
}

// An agent waits for servers by itself: it may be the first to need them, and the one
// whose call a server died in.
func TestServersOfAgent(t *testing.T) {
	w := servers(t, call("c1", "s-dies", `{}`), call("c2", "s-get_env", `{"name":"PATH"}`), model.Message{Text: "found"}, model.Message{Text: "told"})
	s := w.create(transom.SessionConfig{
		OnPermission: transom.ApproveAll, Agents: []transom.Agent{{Name: "finder", Prompt: "You find."}},
		MCP: &transom.MCPConfig{Servers: map[string]mcp.Server{"s": mcptest.Server("plain")}},
	})
	if _, err := s.StartTask(w.ctx, transom.StartTask{Kind: "finder", Prompt: "Find it."}); err != nil {
		t.Fatal(err)
	}
	if err := s.WaitTasks(w.ctx); err != nil {
		t.Fatal(err)
	}
	if list := s.Tasks(); len(list) != 1 || list[0].Status != "completed" || list[0].Answer != "found" {
		t.Fatalf("the agent came to %+v", list)
	}
	if got := lastResult(w.request(2)); got != os.Getenv("PATH") {
		t.Errorf("the agent read %q of the server that was started again", got)
	}
}

// A message that was taken is kept, also while servers are waited for.
func TestServersAwaitedMessageKept(t *testing.T) {
	w := servers(t, model.Message{Text: "done"}, model.Message{Text: "and that"})
	s := w.create(transom.SessionConfig{
		MCP: &transom.MCPConfig{Servers: map[string]mcp.Server{"s": mcptest.Server("silent")}}, // slow to be known
	})
	if _, err := s.Send(w.ctx, transom.Message{Prompt: "KEPT"}); err != nil {
		t.Fatal(err)
	}
	if err := s.Suspend(w.ctx); err != nil {
		t.Fatal(err)
	}
	s, err := w.ResumeSession(w.ctx, s.ID(), transom.ResumeConfig{})
	if err != nil {
		t.Fatal(err)
	}
	w.send(s, "next")
	w.sc.mu.Lock()
	defer w.sc.mu.Unlock()
	if first := w.sc.requests[0].Messages; !slices.ContainsFunc(first, func(m model.Message) bool { return strings.Contains(m.Text, "KEPT") }) {
		t.Errorf("the model was first shown %+v", first)
	}
}

// What servers of both generations say of themselves is in the system message of the
// session and of its agents, through a clear, until the server goes.
func TestServerInstructions(t *testing.T) {
	w := servers(t, model.Message{Text: "one"}, call("c1", "clear", `{}`), model.Message{Text: "two"},
		call("t", "task", `{"agent_type":"helper","name":"h","description":"d","prompt":"do","mode":"sync"}`), model.Message{Text: "helped"}, model.Message{Text: "three"},
		model.Message{Text: "four"}, model.Message{Text: "five"}, model.Message{Text: "six"})
	var s *transom.Session
	clear := tool.Tool{Name: "clear", Description: "d", IsTerminal: true, SkipPermission: true, Handler: func(ctx context.Context, _ tool.Call) (tool.Result, error) {
		_, err := s.History().ClearContext(ctx, "SEED")
		return tool.Result{Text: "cleared"}, err
	}}
	s = w.create(transom.SessionConfig{
		MCP:   &transom.MCPConfig{Servers: map[string]mcp.Server{"newer": mcptest.Server("plain"), "older": mcptest.Server("legacy"), "silent": mcptest.Server("early")}, Disabled: []string{"silent"}},
		Tools: []tool.Tool{clear}, OnPermission: transom.ApproveAll,
		Agents: []transom.Agent{{Name: "helper", Prompt: "Help.", MCPServers: map[string]any{"own": mcptest.Server("plain")}}},
	})
	said := func(n int) (names []string) {
		t.Helper()
		system := w.request(n).Messages[0]
		if system.Role != model.System {
			t.Fatalf("request %d begins with %s", n, system.Role)
		}
		for _, name := range []string{"newer", "older", "own", "silent"} {
			if strings.Contains(system.Text, "<mcp_server name=\""+name+"\">\nBe kind to it.\n</mcp_server>") {
				names = append(names, name)
			}
		}
		return names
	}
	check := func(n int, want ...string) {
		t.Helper()
		if got := said(n); !slices.Equal(got, want) {
			t.Errorf("request %d: %q speak, not %q", n, got, want)
		}
	}
	w.send(s, "go")
	check(0, "newer", "older")
	w.send(s, "clear")
	check(1, "newer", "older")
	check(2, "newer", "older") // behind the clear
	if w.request(1).Messages[0].Text != w.request(2).Messages[0].Text {
		t.Error("the system message changed by the clear")
	}
	w.send(s, "help")
	check(4, "newer", "older", "own") // of the agent
	check(5, "newer", "older")
	if err := s.MCP().Disable(w.ctx, "older"); err != nil {
		t.Fatal(err)
	}
	w.send(s, "go")
	check(6, "newer")
	if err := s.MCP().Enable("older"); err != nil {
		t.Fatal(err)
	}
	w.send(s, "go")
	if err := s.MCP().Settle(w.ctx); err != nil {
		t.Fatal(err)
	}
	w.send(s, "go")
	check(8, "newer", "older")
}

// A request that a server wants answered says so of itself.
func TestSamplingInteraction(t *testing.T) {
	w := servers(t, model.Message{Text: "sampled"})
	s := w.create(transom.SessionConfig{Model: "m"})
	raw, err := s.MCP().Sample(w.ctx, "r", json.RawMessage(`{"messages":[{"role":"user","content":{"type":"text","text":"say"}}]}`))
	if err != nil || !strings.Contains(string(raw), "sampled") {
		t.Fatalf("%s %v", raw, err)
	}
	if got := w.request(0).Interaction; got != model.ForSampling {
		t.Errorf("the request is for %q", got)
	}
}
