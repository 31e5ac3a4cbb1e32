package host

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/transom-run/transom/mcp"
	"github.com/transom-run/transom/mcp/mcptest"
	"github.com/transom-run/transom/tool"
)

func TestMain(m *testing.M) {
	mcptest.Main()
	goleak.VerifyTestMain(m)
}

// watchdog bounds a wait that should be short.
const watchdog = 4 * time.Minute

// rig is a host and what it told.
type rig struct {
	t *testing.T
	mcp.Host
	mu     sync.Mutex
	states []mcp.State
	warned []string
	lists  []string
	news   chan struct{}
}

func newRig(t *testing.T, change func(*mcp.Context)) *rig {
	t.Helper()
	r := &rig{t: t, news: make(chan struct{}, 1)}
	note := func(f func()) {
		r.mu.Lock()
		defer r.mu.Unlock()
		f()
		select {
		case r.news <- struct{}{}:
		default:
		}
	}
	c := mcp.Context{
		Dir: t.TempDir, Environ: os.Environ,
		StateChanged: func(st mcp.State) { note(func() { r.states = append(r.states, st) }) },
		Warn:         func(w string) { note(func() { r.warned = append(r.warned, w) }) },
		ListChanged:  func(server, what string) { note(func() { r.lists = append(r.lists, server+" "+what) }) },
	}
	dir := t.TempDir()
	c.Dir = func() string { return dir }
	if change != nil {
		change(&c)
	}
	h, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = h
	t.Cleanup(func() { h.Close() })
	return r
}

func (r *rig) set(servers map[string]mcp.Server, disabled ...string) {
	r.t.Helper()
	r.Set(servers, disabled)
	r.Start()
	r.settle()
}

func (r *rig) settle() {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), watchdog)
	defer cancel()
	if err := r.Settle(ctx); err != nil {
		r.t.Fatal(err)
	}
}

// until waits until f holds of what was told.
func (r *rig) until(what string, f func() bool) {
	r.t.Helper()
	end := time.After(watchdog)
	for {
		r.mu.Lock()
		ok := f()
		r.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-r.news:
		case <-end:
			r.t.Fatalf("%s: not within %s", what, watchdog)
		}
	}
}

func (r *rig) state(name string) mcp.State {
	r.t.Helper()
	for _, st := range r.States() {
		if st.Name == name {
			return st
		}
	}
	r.t.Fatalf("there is no server %s", name)
	return mcp.State{}
}

func (r *rig) find(name string) tool.Tool {
	r.t.Helper()
	for _, t := range r.Tools() {
		if t.Name == name {
			return t
		}
	}
	r.t.Fatalf("there is no tool %s among %v", name, r.names())
	return tool.Tool{}
}

func (r *rig) names() (names []string) {
	for _, t := range r.Tools() {
		names = append(names, t.Name)
	}
	return names
}

func (r *rig) call(name, args string) tool.Result {
	r.t.Helper()
	return r.make(tool.Call{ID: "c", Name: name, Arguments: json.RawMessage(args)})
}

func (r *rig) make(call tool.Call) tool.Result {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), watchdog)
	defer cancel()
	res, err := r.find(call.Name).Handler(ctx, call)
	if err != nil {
		r.t.Fatalf("%s: %v", call.Name, err)
	}
	return res
}

func TestCalls(t *testing.T) {
	r := newRig(t, nil)
	cfg := mcptest.Server("plain")
	cfg.Env["GREETING"] = "$HOME is not looked up"
	r.Set(map[string]mcp.Server{"my server": cfg}, nil)
	if st := r.state("my server"); st.Status != mcp.NotStarted || len(r.Tools()) > 0 {
		t.Fatalf("before it starts: %+v", st)
	}
	r.Start()
	r.settle()
	if st := r.state("my server"); st.Status != mcp.Connected || st.PID == 0 || st.Protocol < "2026" {
		t.Errorf("%+v", st)
	}
	if got := r.call("my_server-get_env", `{"name":"GREETING"}`); got.Text != "$HOME is not looked up" || got.Type != "" {
		t.Errorf("%+v", got)
	}
	got := r.call("my_server-mixed", `{}`)
	want := tool.Result{Text: "one\ntwo\nthree\nfour file:///c", Binary: []tool.Binary{
		{Type: "image", Data: "UE5H", MIMEType: "image/png"}, {Type: "resource", Data: "UERG", MIMEType: "application/pdf", Description: "file:///b"},
		{Type: "resource", Data: "V0FW", MIMEType: "audio/wav"},
	}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if got := r.call("my_server-structured", `{}`); got.Text != `{"sum":5}` || string(got.Structured) != `{"sum":5}` {
		t.Errorf("%+v", got)
	}
	if got := r.call("my_server-fails", `{}`); got.Type != tool.Failure || got.Text != "the disk is full" {
		t.Errorf("%+v", got)
	}
	if got := r.call("my_server-large", `{}`); len(got.Text) != 33<<20 {
		t.Errorf("%d bytes", len(got.Text))
	}
	env := r.find("my_server-get_env")
	p, err := env.Permission(context.Background(), tool.Call{Arguments: json.RawMessage(`{"name":"A"}`)})
	if err != nil || env.Source != tool.MCP || *env.Origin != (tool.Origin{Server: "my server", Tool: "get_env"}) {
		t.Errorf("%+v, %v", env, err)
	}
	var asked any
	if err := json.Unmarshal(p.Request, &asked); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(any(map[string]any{
		"kind": "mcp", "serverName": "my server", "toolName": "my_server-get_env", "toolTitle": "Environment", "args": map[string]any{"name": "A"}, "readOnly": true,
	}), asked); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(map[string]string{"my server": "Be kind to it."}, r.Instructions()); d != "" {
		t.Error(d)
	}
	raw, err := r.Call(context.Background(), "my server", "resources/read", json.RawMessage(`{"uri":"test://readme"}`))
	if err != nil || !strings.Contains(string(raw), "Read me.") {
		t.Errorf("%s, %v", raw, err)
	}
}

// One server that is not there, one that ends, one that speaks something else: each
// says why, and the good one works.
func TestBrokenServers(t *testing.T) {
	r := newRig(t, nil)
	r.set(map[string]mcp.Server{
		"good": mcptest.Server("plain"), "gone": {Command: filepath.Join(t.TempDir(), "not here")}, "garbage": mcptest.Server("garbage"),
		"refuses": mcptest.Server("refuses"), "remote": {URL: "http://127.0.0.1:1/mcp"}, "nameless": {}, "odd": {Type: "carrier pigeon"},
		"chatty": mcptest.Server("chatty"),
	})
	for name, why := range map[string]string{
		"gone": "could not be started", "garbage": "its process ended", "refuses": "exit status 3); it printed: the licence has run out",
		"remote": "connection refused", "nameless": "names no command", "odd": `"carrier pigeon" is none of`,
	} {
		if st := r.state(name); st.Status != mcp.Failed || !strings.Contains(st.Error, why) {
			t.Errorf("%s: %s %q, want %q", name, st.Status, st.Error, why)
		}
	}
	for _, name := range []string{"good", "chatty"} {
		if got := r.call(name+"-where", `{}`); got.Text == "" {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if err := r.Run(context.Background(), "refuses", nil); err == nil || !strings.Contains(err.Error(), "licence") {
		t.Errorf("started again: %v", err)
	}
}

// A server of the older generation is spoken to in its way, whether it refuses the
// newer one or keeps silent.
func TestGenerations(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.set(map[string]mcp.Server{"old": mcptest.Server("silent"), "older": mcptest.Server("legacy"), "new": mcptest.Server("plain")})
	if st := r.state("older"); st.Status != mcp.Connected || st.Protocol != "2025-11-25" {
		t.Errorf("%+v", st)
	}
	if st := r.state("old"); st.Status != mcp.Connected || st.Protocol != "2024-11-05" {
		t.Errorf("%+v", st)
	}
	if st := r.state("new"); st.Status != mcp.Connected || st.Protocol != "2026-07-28" {
		t.Errorf("%+v", st)
	}
}

// Tools that cannot be offered are left out with a warning each (T4); filters say
// what of the rest is offered.
func TestTools(t *testing.T) {
	r := newRig(t, nil)
	cfg := mcptest.Server("broken")
	cfg.Tools, cfg.ExcludeTools = []string{"odd", "worse", "dotted.name", "get_*"}, []string{"get_no*"}
	r.set(map[string]mcp.Server{"s": cfg})
	if d := cmp.Diff([]string{"s-dotted_name", "s-get_env"}, slices.Sorted(slices.Values(r.names()))); d != "" {
		t.Error(d)
	}
	r.until("two warnings", func() bool { return len(r.warned) == 2 })
	slices.Sort(r.warned)
	for i, want := range []string{`"odd" of the MCP server "s" is disabled`, `"worse" of the MCP server "s" is disabled`} {
		if !strings.Contains(r.warned[i], want) {
			t.Errorf("warned %q, want %q", r.warned[i], want)
		}
	}
	all, err := r.ListTools("s")
	if err != nil || len(all) < 10 {
		t.Errorf("%d tools, %v", len(all), err)
	}
	if _, err := r.ListTools("t"); err == nil || !strings.Contains(err.Error(), `"t" is not connected: this session has s`) {
		t.Errorf("%v", err)
	}
}

// A server that grows tools is asked for them.
func TestListChanged(t *testing.T) {
	r := newRig(t, nil)
	r.set(map[string]mcp.Server{"s": mcptest.Server("plain")})
	r.call("s-grow", `{}`)
	r.until("the new list", func() bool { return slices.Contains(r.lists, "s tools") })
	if got := r.call("s-grown", `{}`); got.Text != "grown" {
		t.Errorf("%+v", got)
	}
}

// A server may say that its tools changed before it has answered the handshake: it is
// asked for them once the connection stands.
func TestListChangedEarly(t *testing.T) {
	r := newRig(t, nil)
	r.set(map[string]mcp.Server{"s": mcptest.Server("early")})
	if st := r.state("s"); st.Status != mcp.Connected {
		t.Fatalf("%+v", st)
	}
	r.until("the new list", func() bool { return slices.Contains(r.lists, "s tools") })
	if got := r.call("s-where", `{}`); got.Type != "" {
		t.Errorf("%+v", got)
	}
}

// A server that dies during a call fails the call, its tools are withdrawn, and the
// next Start connects to it again.
func TestCrash(t *testing.T) {
	r := newRig(t, nil)
	r.set(map[string]mcp.Server{"s": mcptest.Server("plain"), "t": mcptest.Server("plain")})
	pid := r.state("s").PID
	got := r.call("s-dies", `{}`)
	if got.Type != tool.Failure || !strings.Contains(got.Text, "MCP server 's' is gone: its process ended (exit status 7); it printed: a fatal fault") {
		t.Errorf("%+v", got)
	}
	r.until("the failure", func() bool {
		return slices.ContainsFunc(r.states, func(st mcp.State) bool { return st.Name == "s" && st.Status == mcp.Failed && st.Retry })
	})
	if slices.ContainsFunc(r.names(), func(n string) bool { return strings.HasPrefix(n, "s-") }) || !slices.Contains(r.names(), "t-where") {
		t.Errorf("still offered: %v", r.names())
	}
	r.Start()
	r.settle()
	if st := r.state("s"); st.Status != mcp.Connected || st.PID == pid {
		t.Errorf("%+v", st)
	}
	if got := r.call("s-where", `{}`); got.Type != "" {
		t.Errorf("%+v", got)
	}
}

// A server whose answer cannot be read is not said to be gone, and can be called again.
func TestUnreadable(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip(err)
	}
	r := newRig(t, nil)
	r.set(map[string]mcp.Server{"s": {Command: "sh", Args: []string{"-c", `while read -r l; do
		id=$(printf '%s' "$l" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
		case "$l" in
		*'"initialize"'*) a='"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}' ;;
		*tools/list*) a='"result":{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}' ;;
		*tools/call*) a='"result":{"content":[{"type":"hologram"}]}' ;;
		*) a='"error":{"code":-32601,"message":"no"}' ;;
		esac
		[ -z "$id" ] || printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$a"
	done`}}})
	for range 2 {
		if got := r.call("s-t", `{}`); got.Type != tool.Failure || strings.Contains(got.Text, "gone") || !strings.Contains(got.Text, "hologram") {
			t.Errorf("%+v", got)
		}
	}
}

// A server that is killed between two calls takes its children with it and its tools
// out of the list; what is offered after the next Start can be called.
func TestKilled(t *testing.T) {
	r := newRig(t, nil)
	r.set(map[string]mcp.Server{"s": mcptest.Server("forks")})
	if got := r.call("s-where", `{}`); got.Type != "" {
		t.Fatalf("%+v", got)
	}
	pid, child := r.state("s").PID, r.child("s")
	old := r.find("s-where")
	if p, err := os.FindProcess(pid); err != nil || p.Kill() != nil {
		t.Fatalf("the server could not be killed: %v", err)
	}
	r.until("the failure", func() bool {
		return slices.ContainsFunc(r.states, func(st mcp.State) bool { return st.Status == mcp.Failed && st.Error != "" })
	})
	if len(r.Tools()) > 0 {
		t.Errorf("still offered: %v", r.names())
	}
	if got, err := old.Handler(context.Background(), tool.Call{ID: "c", Arguments: json.RawMessage(`{}`)}); err != nil || got.Type != tool.Failure {
		t.Errorf("a call to the server that is gone: %+v, %v", got, err)
	}
	gone(t, child)
	r.Start()
	r.settle()
	if st := r.state("s"); st.Status != mcp.Connected || st.PID == pid {
		t.Errorf("%+v", st)
	}
	if got := r.call("s-where", `{}`); got.Type != "" {
		t.Errorf("%+v", got)
	}
}

// child is the process that a server of the kind "forks" started.
func (r *rig) child(name string) int {
	r.t.Helper()
	l, err := r.Host.(*Host).linked(name)
	if err != nil {
		r.t.Fatal(err)
	}
	m := regexp.MustCompile(`child (\d+)`).FindStringSubmatch(l.proc.stderr.String())
	if m == nil {
		r.t.Fatalf("%q names no child", l.proc.stderr.String())
	}
	pid, _ := strconv.Atoi(m[1])
	return pid
}

// A server's own children end with it, in time, by Stop and by Close.
func TestEnd(t *testing.T) {
	r := newRig(t, nil)
	forks := mcptest.Server("forks")
	r.set(map[string]mcp.Server{"a": forks, "b": forks})
	var pids []int
	for _, name := range []string{"a", "b"} {
		pids = append(pids, r.state(name).PID, r.child(name))
	}
	begun := time.Now()
	if err := r.Stop(context.Background(), "a"); err != nil {
		t.Fatal(err)
	}
	if st := r.state("a"); st.Status != mcp.Stopped {
		t.Errorf("%+v", st)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begun); took > 20*time.Second {
		t.Errorf("took %v", took)
	}
	for _, pid := range pids {
		gone(t, pid)
	}
}

// gone waits until a process that was killed has ended.
func gone(t *testing.T, pid int) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(watchdog); alive(pid); {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("process %d is left", pid)
		}
	}
}

// Servers whose configuration did not change keep their process; what is disabled
// does not run, and does where it is enabled.
func TestSet(t *testing.T) {
	r := newRig(t, nil)
	s, other := mcptest.Server("plain"), mcptest.Server("plain")
	other.Env["OTHER"] = "1"
	r.set(map[string]mcp.Server{"keeps": s, "changes": s, "goes": s, "off": s}, "off")
	keeps, changes := r.state("keeps").PID, r.state("changes").PID
	if r.state("off").Status != mcp.Disabled {
		t.Errorf("%+v", r.state("off"))
	}
	r.set(map[string]mcp.Server{"keeps": s, "changes": other, "off": s}, "off")
	if r.state("keeps").PID != keeps || r.state("changes").PID == changes || len(r.States()) != 3 {
		t.Errorf("%+v", r.States())
	}
	if err := r.Enable("off"); err != nil {
		t.Fatal(err)
	}
	r.settle()
	if r.state("off").Status != mcp.Connected {
		t.Errorf("%+v", r.state("off"))
	}
	if err := r.Disable(context.Background(), "keeps"); err != nil {
		t.Fatal(err)
	}
	if r.state("keeps").Status != mcp.Disabled || alive(keeps) {
		t.Errorf("%+v", r.state("keeps"))
	}
	if err := r.Enable("nobody"); err == nil || !strings.Contains(err.Error(), "is not configured") {
		t.Errorf("%v", err)
	}
}

// A call that takes too long, and one whose turn is aborted, end; the server goes
// on.
func TestTimes(t *testing.T) {
	r := newRig(t, nil)
	quick := mcptest.Server("plain")
	quick.Timeout = 3000
	r.set(map[string]mcp.Server{"s": quick, "t": mcptest.Server("plain")})
	if got := r.call("s-hangs", `{}`); got.Type != tool.Timeout || !strings.Contains(got.Text, "did not answer within 3s") {
		t.Errorf("%+v", got)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		_, err := r.find("t-hangs").Handler(ctx, tool.Call{Arguments: json.RawMessage(`{}`)})
		ended <- err
	}()
	cancel()
	select {
	case err := <-ended:
		if err == nil {
			t.Error("an aborted call succeeded")
		}
	case <-time.After(watchdog):
		t.Fatal("an aborted call goes on")
	}
	for _, name := range []string{"s-where", "t-where"} {
		if got := r.call(name, `{}`); got.Type != "" {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// What a server asks back: the user, and where the session works.
func TestAsksBack(t *testing.T) {
	r := newRig(t, func(c *mcp.Context) {
		c.Roots = func() []string { return []string{"/a b", "/ü"} }
		c.Elicit = func(_ context.Context, server string, e mcp.Elicitation) (mcp.ElicitationAnswer, error) {
			if server != "s" || e.Message != "Which?" || !strings.Contains(string(e.Schema), "which") {
				t.Errorf("%s asks %+v", server, e)
			}
			return mcp.ElicitationAnswer{Action: "accept", Content: json.RawMessage(`{"which":"that"}`)}, nil
		}
		c.BeforeCall = func(_ context.Context, c mcp.PreCall) (map[string]any, error) {
			if c.Tool == "where" {
				return nil, fmt.Errorf("not there")
			}
			return map[string]any{"who": "a hook"}, nil
		}
	})
	for _, kind := range []string{"plain", "legacy"} {
		r.set(map[string]mcp.Server{"s": mcptest.Server(kind)})
		if got := r.call("s-ask", `{}`); got.Text != "accept that" {
			t.Errorf("%s: %+v", kind, got)
		}
		if got := r.call("s-roots", `{}`); got.Text != "file:///%C3%BC file:///a%20b" {
			t.Errorf("%s: %+v", kind, got)
		}
	}
	if got := r.call("s-meta", `{}`); !strings.Contains(got.Text, `"who":"a hook"`) {
		t.Errorf("%+v", got)
	}
	if got := r.call("s-where", `{}`); got.Type != tool.Denied || got.Text != "not there" {
		t.Errorf("%+v", got)
	}
}

// A call goes out with its place in a trace, unless it has none or a hook says another.
func TestTraceContext(t *testing.T) {
	var hook map[string]any
	r := newRig(t, func(c *mcp.Context) {
		c.BeforeCall = func(context.Context, mcp.PreCall) (map[string]any, error) { return hook, nil }
	})
	r.set(map[string]mcp.Server{"s": mcptest.Server("plain")})
	const parent, other = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "00-11111111111111111111111111111111-2222222222222222-00"
	for _, c := range []struct {
		name                         string
		hook                         map[string]any
		parent, state                string
		who, wantsParent, wantsState any
	}{
		{name: "none"},
		{name: "a place", parent: parent, wantsParent: parent},
		{name: "with a state", parent: parent, state: "a=b", wantsParent: parent, wantsState: "a=b"},
		{name: "beside a hook's", hook: map[string]any{"who": "a hook"}, parent: parent, state: "a=b", who: "a hook", wantsParent: parent, wantsState: "a=b"},
		{name: "a hook's own", hook: map[string]any{"traceparent": other}, parent: parent, state: "a=b", wantsParent: other},
	} {
		hook = c.hook
		before := maps.Clone(hook)
		var got map[string]any
		text := r.make(tool.Call{ID: "c", Name: "s-meta", Arguments: json.RawMessage(`{}`), Traceparent: c.parent, Tracestate: c.state}).Text
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Fatalf("%s: %q: %v", c.name, text, err)
		}
		if got["who"] != c.who || got["traceparent"] != c.wantsParent || got["tracestate"] != c.wantsState {
			t.Errorf("%s: the server got %v", c.name, got)
		}
		if !maps.Equal(hook, before) {
			t.Errorf("%s: the hook's map is %v now", c.name, hook)
		}
	}
}

// References in a configuration are looked up where the session says so.
func TestIndirect(t *testing.T) {
	r := newRig(t, func(c *mcp.Context) {
		c.Indirect = func() bool { return true }
		c.Getenv = func(name string) string { return map[string]string{"THE_TOKEN": "abc"}[name] }
	})
	cfg := mcptest.Server("plain")
	cfg.Env["A"], cfg.Env["B"], cfg.Env["C"] = "THE_TOKEN", "x-${THE_TOKEN}", "as it is"
	r.set(map[string]mcp.Server{"s": cfg})
	for name, want := range map[string]string{"A": "abc", "B": "x-abc", "C": "as it is"} {
		if got := r.call("s-get_env", `{"name":"`+name+`"}`); got.Text != want {
			t.Errorf("%s is %q, want %q", name, got.Text, want)
		}
	}
}
