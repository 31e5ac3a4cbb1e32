package transom_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/eventlog/memlog"
	"github.com/transom-run/transom/mcp"
	"github.com/transom-run/transom/mcp/host"
	"github.com/transom-run/transom/mcp/mcptest"
	"github.com/transom-run/transom/model"
)

// logIn logs in to a session's server as a user does who approves.
func logIn(t *testing.T, ctx context.Context, s *transom.Session, g *mcptest.Guarded) {
	t.Helper()
	page, err := s.MCP().Login(ctx, "s", mcp.Login{})
	if err != nil || page == "" {
		t.Fatalf("%q, %v", page, err)
	}
	if _, err := g.Approve(page); err != nil {
		t.Fatal(err)
	}
	becomes(t, ctx, s, mcp.Connected)
}

// becomes waits until the server "s" stands so.
func becomes(t *testing.T, ctx context.Context, s *transom.Session, want mcp.Status) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		states := s.MCP().List()
		if len(states) == 1 && states[0].Status == want {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("the server does not become %s: %+v", want, states)
		}
	}
}

// Where tokens are kept is a session's own choice: with it, or under the home for all
// that choose so, in other processes, too.
func TestLoginStorage(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	g := mcptest.NewGuarded()
	defer g.Close()
	home := t.TempDir()
	open := func() *transom.Runtime {
		rt, err := transom.Open(transom.Config{Home: home, Provider: &script{}, MCP: host.New, Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = rt.Close(context.Background()) })
		return rt
	}
	cfg := func(persist bool) transom.SessionConfig {
		return transom.SessionConfig{
			MCP: &transom.MCPConfig{Servers: map[string]mcp.Server{"s": {URL: g.URL()}}}, MCPLogin: transom.MCPLogin{Persist: persist},
		}
	}
	begin := func(rt *transom.Runtime, persist bool, want mcp.Status) *transom.Session {
		t.Helper()
		s, err := rt.CreateSession(ctx, cfg(persist))
		if err != nil {
			t.Fatal(err)
		}
		becomes(t, ctx, s, want)
		return s
	}
	one := open()
	logIn(t, ctx, begin(one, false, mcp.NeedsAuth), g)
	if files, _ := filepath.Glob(filepath.Join(home, "mcp-oauth", "*")); len(files) > 0 {
		t.Errorf("a session that keeps its tokens in memory wrote %v", files)
	}
	begin(one, false, mcp.NeedsAuth)
	kept := begin(one, true, mcp.NeedsAuth)
	logIn(t, ctx, kept, g)
	begin(one, true, mcp.Connected)
	two := open()
	begin(two, false, mcp.NeedsAuth)
	begin(two, true, mcp.Connected)
	// A session of the other runtime begins anew; what is kept changes for both.
	third := begin(two, true, mcp.Connected)
	page, err := third.MCP().Login(ctx, "s", mcp.Login{Anew: true})
	if err != nil || page == "" {
		t.Fatalf("%q, %v", page, err)
	}
	if _, err := g.Approve(page); err != nil {
		t.Fatal(err)
	}
	becomes(t, ctx, third, mcp.Connected)
	if err := kept.MCP().LoginChanged(ctx, "s", true); err != nil {
		t.Error(err)
	}
	becomes(t, ctx, kept, mcp.Connected)
	if p := g.Problems(); len(p) > 0 {
		t.Errorf("problems: %q", p)
	}
}

// A model call that waits for a server goes on where the host says so.
func TestLoadingInBackground(t *testing.T) {
	release := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(func() {
		close(release)
		slow.CloseClientConnections()
		slow.Close()
	})
	w := servers(t, model.Message{Text: "done"})
	s := w.create(transom.SessionConfig{MCP: &transom.MCPConfig{Servers: map[string]mcp.Server{"s": {URL: slow.URL}}}})
	if s.MCP().ToBackground() {
		t.Error("nothing waits, and was released")
	}
	answered := make(chan string, 1)
	go func() { answered <- w.send(s, "go") }()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !s.MCP().ToBackground() {
		select {
		case <-tick.C:
		case got := <-answered:
			t.Fatalf("answered %q before it was released", got)
		}
	}
	if got := <-answered; got != "done" {
		t.Errorf("answered %q", got)
	}
	if states := s.MCP().List(); states[0].Status != mcp.Pending {
		t.Errorf("%+v", states)
	}
}

// The servers that an agent has of its own are logged in to like the session's.
func TestLoginOfAgent(t *testing.T) {
	g := mcptest.NewGuarded()
	t.Cleanup(g.Close)
	w := servers(t, model.Message{Text: "found"})
	s := w.create(transom.SessionConfig{Agents: []transom.Agent{
		{Name: "finder", Prompt: "You find.", MCPServers: map[string]any{"theirs": map[string]any{"type": "http", "url": g.URL()}}},
	}})
	if _, err := s.StartTask(w.ctx, transom.StartTask{Kind: "finder", Prompt: "Find it."}); err != nil {
		t.Fatal(err)
	}
	if err := s.WaitTasks(w.ctx); err != nil {
		t.Fatal(err)
	}
	if p := s.MCP().Probe(w.ctx, "theirs"); p.Status != mcp.ProbeNeedsAuth {
		t.Errorf("%+v", p)
	}
	page, err := s.MCP().Login(w.ctx, "theirs", mcp.Login{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.Approve(page); err != nil {
		t.Fatal(err)
	}
	if p := s.MCP().Probe(w.ctx, "theirs"); p.Status != mcp.ProbeAuthenticated {
		t.Errorf("%+v", p)
	}
}

// What a session without servers, or with others, says.
func TestLoginRefused(t *testing.T) {
	ctx := context.Background()
	rt, err := transom.Open(transom.Config{Store: memlog.New(), Provider: &script{}, MCP: host.New, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close(ctx)
	bare, err := rt.CreateSession(ctx, transom.SessionConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bare.MCP().Login(ctx, "s", mcp.Login{}); transom.KindOf(err) != transom.KindWrongState {
		t.Errorf("%v", err)
	}
	if p := bare.MCP().Probe(ctx, "s"); p.Status != mcp.ProbeFailed || p.Error == "" {
		t.Errorf("%+v", p)
	}
	if err := bare.MCP().LoginChanged(ctx, "", false); transom.KindOf(err) != transom.KindWrongState {
		t.Errorf("%v", err)
	}
	s, err := rt.CreateSession(ctx, transom.SessionConfig{MCP: &transom.MCPConfig{Servers: map[string]mcp.Server{"s": mcptest.Server("plain")}}})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"nobody": "is not configured", "s": "not a remote server"} {
		if _, err := s.MCP().Login(ctx, name, mcp.Login{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if s.MCP().Decline("nobody") {
		t.Error("an answer to nothing counted")
	}
}
