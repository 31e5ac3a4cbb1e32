package transom_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/mcp"
	"github.com/transom-run/transom/mcp/host"
	"github.com/transom-run/transom/mcp/mcptest"
	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/model/scripted"
	"github.com/transom-run/transom/tool"
)

// ownServer is a test server as the protocol configures it.
func ownServer(kind string, env ...string) map[string]any {
	s := mcptest.Server(kind)
	vars := map[string]any{}
	for k, v := range s.Env {
		vars[k] = v
	}
	for i := 0; i+1 < len(env); i += 2 {
		vars[env[i]] = env[i+1]
	}
	return map[string]any{"command": s.Command, "env": vars}
}

// staffed is a runtime that can connect to servers, with one session.
func staffed(t *testing.T, p model.Provider, cfg transom.SessionConfig) (context.Context, *transom.Runtime, *transom.Session) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	rt, err := transom.Open(transom.Config{Provider: p, MCP: host.New, Home: t.TempDir(), Dir: t.TempDir(), Getenv: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := rt.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	s, err := rt.CreateSession(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return ctx, rt, s
}

// runs reports whether there is a process.
func runs(t *testing.T, pid string) bool {
	t.Helper()
	n, err := strconv.Atoi(pid)
	if err != nil {
		t.Fatalf("the process %q: %v", pid, err)
	}
	p, err := os.FindProcess(n)
	return err == nil && p.Signal(syscall.Signal(0)) == nil
}

// results are what the model read of calls, in order.
func results(p *scripted.Provider) (texts []string) {
	calls := p.Requests()
	for _, r := range calls {
		if m := r.Messages[len(r.Messages)-1]; m.Role == model.ToolRole {
			texts = append(texts, m.Text)
		}
	}
	return texts
}

// The servers of an agent are for its own model calls: they start with its first
// run, keep their process for the next ones and across a clear, are started again
// where they broke down, and end with the session. A broken one fails alone.
func TestAgentServers(t *testing.T) {
	task := scripted.Call("task", `{"name":"k","agent_type":"buyer","description":"d","prompt":"BUY"}`)
	own := says(task, scripted.Say("one"), scripted.Call("clear", `{"prompt":"SEED"}`), task, scripted.Say("two"))
	agent := says(scripted.Call("s-pid", `{}`), scripted.Say("bought"), scripted.Call("s-pid", `{}`), scripted.Call("s-dies", `{}`), scripted.Call("s-pid", `{}`), scripted.Say("bought"))
	var s *transom.Session
	clear, err := tool.Func("clear", "clears", func(ctx context.Context, in struct {
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
	ctx, rt, s := staffed(t, bySystem{"You buy.", own, agent}, transom.SessionConfig{
		Tools: []tool.Tool{clear},
		Agents: []transom.Agent{{Name: "buyer", Prompt: "You buy.", MCPServers: map[string]any{
			"s": ownServer("plain"), "broken": ownServer("refuses"), "odd": "no object",
		}}},
		OnPermission: func(_ context.Context, r transom.PermissionRequest) transom.Decision {
			mu.Lock()
			defer mu.Unlock()
			asked = append(asked, string(r.Raw))
			return transom.Decision{Kind: "approve-once"}
		},
	})
	events := s.Subscribe()
	defer events.Close()
	for _, want := range []string{"one", "two"} {
		if m, err := s.SendAndWait(ctx, transom.Message{Prompt: "go"}); err != nil || m.Content != want {
			t.Fatalf("%+v, %v, want %q", m, err, want)
		}
	}
	for i, r := range own.Requests() {
		if names := offered(r); slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, "s-") }) {
			t.Errorf("the session's call %d is offered %v", i, names)
		}
	}
	for i, r := range agent.Requests() {
		if names := offered(r); !slices.Contains(names, "s-pid") || slices.Contains(names, "broken-pid") {
			t.Errorf("the agent's call %d is offered %v", i, names)
		}
	}
	got := results(agent)
	if len(got) != 4 || got[0] != got[1] || !strings.Contains(got[2], "is gone") || got[3] == got[0] || !runs(t, got[3]) {
		t.Fatalf("the agent read %q", got)
	}
	mu.Lock()
	if !slices.ContainsFunc(asked, func(a string) bool {
		return strings.Contains(a, `"kind":"mcp"`) && strings.Contains(a, `"serverName":"s"`)
	}) {
		t.Errorf("asked %v", asked)
	}
	mu.Unlock()
	var started bool
	warned := map[string]bool{}
	idle := 0
	for e, err := range events.All(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		switch p := e.Payload.(type) {
		case event.ToolStart:
			started = started || p.MCPServerName == "s" && p.MCPToolName == "pid" && e.AgentID == "k"
		case event.SessionWarning:
			for _, name := range []string{"broken", "odd"} {
				warned[name] = warned[name] || strings.HasPrefix(p.Message, "The MCP server "+name+" of the agent buyer cannot be used: ")
			}
		}
		if e.Type == event.TypeSessionIdle {
			if idle++; idle == 2 {
				break
			}
		}
	}
	if !started || !warned["broken"] || !warned["odd"] {
		t.Errorf("a call of the agent: %t; warned: %v", started, warned)
	}
	if err := rt.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if runs(t, got[3]) {
		t.Error("the agent's server outlives the session")
	}
}

// The session's own agent has the servers of the agent that is selected, as long as
// it is; nothing was started before.
func TestSelectedAgentServers(t *testing.T) {
	p := says(scripted.Say("1"), scripted.Call("s-get_env", `{"name":"GREETING"}`), scripted.Say("2"), scripted.Say("3"))
	ctx, _, s := staffed(t, p, transom.SessionConfig{
		OnPermission: transom.ApproveAll,
		Agents:       []transom.Agent{{Name: "buyer", Prompt: "You buy.", MCPServers: map[string]any{"s": ownServer("plain", "GREETING", "hello")}}},
	})
	for _, name := range []string{"", "buyer", ""} {
		if err := s.SelectAgent(ctx, name); err != nil {
			t.Fatal(err)
		}
		if _, err := s.SendAndWait(ctx, transom.Message{Prompt: "go"}); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range []bool{false, true, true, false} {
		if names := offered(p.Requests()[i]); slices.Contains(names, "s-get_env") != want {
			t.Errorf("call %d is offered %v", i, names)
		}
	}
	if got := results(p); len(got) != 1 || got[0] != "hello" {
		t.Errorf("the model read %q", got)
	}
}

// A plugin's agents can be started, with servers of their own; a host's own agent
// goes before one of its name.
func TestPluginAgents(t *testing.T) {
	dir := t.TempDir()
	self := mcptest.Server("plain")
	file := fmt.Sprintf("---\ndescription: Buys.\nmcp-servers:\n  s:\n    command: %q\n    env: {%s: plain, ROOT: \"${PLUGIN_ROOT}\"}\n---\nYou buy.\n", self.Command, mcptest.Variable)
	for name, text := range map[string]string{"plugin.json": `{"name":"pack"}`, "agents/buyer.md": file, "agents/cook.md": "You cook.", "agents/none.md": "---\n"} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	own := says(scripted.Call("task", `{"name":"k","agent_type":"buyer","description":"d","prompt":"BUY"}`), scripted.Say("done"))
	agent := says(scripted.Call("s-get_env", `{"name":"ROOT"}`), scripted.Say("bought"))
	ctx, _, s := staffed(t, bySystem{"You buy.", own, agent}, transom.SessionConfig{
		OnPermission: transom.ApproveAll, PluginDirectories: []string{dir}, Agents: []transom.Agent{{Name: "cook", Prompt: "You cook well."}},
	})
	var names []string
	for _, a := range s.Agents(false) {
		names = append(names, a.Name+" "+a.Source+" "+a.Prompt)
	}
	if want := []string{"cook  You cook well.", "buyer plugin You buy."}; !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
	if _, err := s.SendAndWait(ctx, transom.Message{Prompt: "go"}); err != nil {
		t.Fatal(err)
	}
	if got := results(agent); len(got) != 1 || got[0] != dir {
		t.Errorf("the agent read %q, want %q", got, dir)
	}
}

// What was approved of a session's server is not approved of an agent's own server of
// the same name. Whoever calls, the hook before the call is told.
func TestSameNamedServers(t *testing.T) {
	task := func(id string) model.Message {
		return call(id, "task", `{"agent_type":"buyer","name":"`+id+`","description":"d","prompt":"buy","mode":"sync"}`)
	}
	w := servers(t,
		call("a", "s-where", `{}`), call("b", "s-where", `{}`), model.Message{Text: "one"},
		task("k"), call("c", "s-where", `{}`), call("d", "s-where", `{}`), model.Message{Text: "bought"}, model.Message{Text: "two"},
		call("e", "s-where", `{}`), model.Message{Text: "three"})
	var mu sync.Mutex
	var asked, hooked []string
	s := w.create(transom.SessionConfig{
		MCP:    &transom.MCPConfig{Servers: map[string]mcp.Server{"s": mcptest.Server("plain")}},
		Agents: []transom.Agent{{Name: "buyer", Prompt: "You buy.", MCPServers: map[string]any{"s": ownServer("plain")}}},
		OnPermission: func(_ context.Context, r transom.PermissionRequest) transom.Decision {
			mu.Lock()
			defer mu.Unlock()
			if strings.Contains(string(r.Raw), `"kind":"mcp"`) {
				asked = append(asked, r.ToolCallID)
			}
			return transom.Decision{Kind: "approve-for-session"}
		},
		OnHook: func(_ context.Context, kind string, input json.RawMessage) (json.RawMessage, error) {
			if kind == "preMcpToolCall" {
				var in struct{ SessionID, ParentSessionID, ToolCallID string }
				if err := json.Unmarshal(input, &in); err != nil {
					return nil, err
				}
				mu.Lock()
				defer mu.Unlock()
				hooked = append(hooked, in.ToolCallID+" "+in.SessionID+" "+in.ParentSessionID)
			}
			return nil, nil
		},
	})
	for _, want := range []string{"one", "two", "three"} {
		if got := w.send(s, "go"); got != want {
			t.Fatalf("answered %q, not %q", got, want)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if !slices.Equal(asked, []string{"a", "c"}) {
		t.Errorf("asked about %q", asked)
	}
	if want := []string{"a " + s.ID() + " ", "b " + s.ID() + " ", "c k " + s.ID(), "d k " + s.ID(), "e " + s.ID() + " "}; !slices.Equal(hooked, want) {
		t.Errorf("hooks were told %q, not %q", hooked, want)
	}
}
