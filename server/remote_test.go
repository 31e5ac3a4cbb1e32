package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/eventlog"
	"github.com/transom-run/transom/eventlog/memlog"
	"github.com/transom-run/transom/internal/jsonrpc2"
	"github.com/transom-run/transom/internal/turn"
	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/model/modelfile"
	"github.com/transom-run/transom/model/scripted"
	"github.com/transom-run/transom/remote"
	"github.com/transom-run/transom/server"
)

// wire is the way to a server that listens on loopback; it can be cut, and
// blocked.
type wire struct {
	t testing.TB

	mu      sync.Mutex
	address string
	blocked bool
	conns   []net.Conn
	dials   int
	tried   chan struct{} // closed and replaced with every attempt
}

func (w *world) wire(t testing.TB) *wire {
	t.Helper()
	r := &wire{t: t, tried: make(chan struct{})}
	r.lead(w)
	return r
}

// lead makes the wire end at a server.
func (r *wire) lead(w *world) {
	r.t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		r.t.Fatal(err)
	}
	go w.srv.Serve(context.Background(), ln)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.address = ln.Addr().String()
}

func (r *wire) dial(ctx context.Context) (io.ReadWriteCloser, error) {
	r.mu.Lock()
	address, blocked := r.address, r.blocked
	r.dials++
	close(r.tried)
	r.tried = make(chan struct{})
	r.mu.Unlock()
	if blocked {
		return nil, errors.New("the wire is cut")
	}
	c, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.conns = append(r.conns, c)
	return c, nil
}

// cut breaks all connections, and lets no new ones be made until mend.
func (r *wire) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.blocked = true
	for _, c := range r.conns {
		c.Close()
	}
	r.conns = nil
}

func (r *wire) mend() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.blocked = false
}

// awaitTry waits for one more attempt to dial.
func (r *wire) awaitTry() {
	r.t.Helper()
	r.mu.Lock()
	tried := r.tried
	r.mu.Unlock()
	select {
	case <-tried:
	case <-time.After(watchdog):
		r.t.Fatal("nobody tries to mend the link")
	}
}

func (r *wire) peer(name string) remote.Peer {
	return remote.Peer{Name: name, Address: r.address, Dial: r.dial}
}

// near is a server that knows peers, and has no model.
func near(t testing.TB, peers ...remote.Peer) *world {
	t.Helper()
	return newWorld(t, scripted.New(scripted.Config{}), server.Config{Peers: peers})
}

// pair is a far server with a session, and a near one that knows it.
func pair(t testing.TB, replies ...modelfile.Message) (far *world, owner *client, w *wire, nearby *world) {
	far = play(t, replies...)
	owner = far.connect(t)
	w = far.wire(t)
	return far, owner, w, near(t, w.peer("far"))
}

// follow attaches a client to a session of the peer, with tools.
func (c *client) follow(id string, tools ...obj) {
	c.t.Helper()
	c.ok("sessions.connect", obj{"sessionId": id})
	var o struct{ IsRemote bool }
	c.ok("session.resume", obj{"sessionId": id, "tools": tools, "requestPermission": true, "continuePendingWork": true}, &o)
	if !o.IsRemote {
		c.t.Error("session.resume does not say that the session is remote")
	}
}

// linked calls a method, which may be done twice, until no broken link prevents it.
func (c *client) linked(method string, params any) {
	c.t.Helper()
	for {
		if f := c.reply(c.send(method, params)); f.Error == nil || f.Error.Code != -32018 {
			return
		}
	}
}

// same compares what a client saw live with the log.
func same(t *testing.T, c *client, owner *client, session string) {
	t.Helper()
	_, live := c.events(session, true)
	_, logged := owner.history(session)
	if diff := cmp.Diff(logged, live); diff != "" {
		t.Errorf("events differ from the log (-log +live)\n%s\n%s", diff, c.transcript())
	}
}

func TestRemoteSession(t *testing.T) {
	far, owner, _, nearby := pair(t, scripted.Say("before"), scripted.Call("look", `{}`), scripted.Say("after"))
	owner.create(id1)
	owner.prompt(id1, "first")
	owner.idle(0)

	c := nearby.connect(t)
	var found struct {
		SessionID string
		Metadata  struct{ Kind, StartTime, Summary, ResourceID string }
	}
	connected := c.send("sessions.connect", obj{"sessionId": id1})
	if f := c.reply(connected); f.Error != nil {
		t.Fatal(f.Error.Message)
	} else if err := json.Unmarshal(f.Result, &found); err != nil {
		t.Fatal(err)
	}
	if m := found.Metadata; found.SessionID != id1 || m.Kind != "remote-session" || m.StartTime == "" || m.Summary != "first" || m.ResourceID != "far/"+id1 {
		t.Errorf("connected to %+v", found)
	}
	_, history := owner.history(id1)
	var before []string
	for i := range c.replyAt(connected) {
		if f := c.at(i); f.Method == "session.event" {
			before = append(before, f.event.ID)
		}
	}
	if diff := cmp.Diff(history, before); diff != "" {
		t.Errorf("the history was not sent before the answer (-log +sent)\n%s", diff)
	}

	c.ok("session.resume", obj{"sessionId": id1, "tools": []obj{hostTool("look", "ask")}, "requestPermission": true})
	from := c.count()
	c.prompt(id1, "second")
	var p, q ask
	i := c.eventFrom(from, "permission.requested", &p)
	c.ok("session.permissions.handlePendingPermissionRequest", obj{"sessionId": id1, "requestId": p.RequestID, "result": obj{"kind": "approve-once"}})
	i = c.eventFrom(i, "external_tool.requested", &q)
	c.ok("session.tools.handlePendingToolCall", obj{"sessionId": id1, "requestId": q.RequestID, "result": "seen"})
	c.idle(i)
	var m struct{ Content string }
	c.eventFrom(i, "assistant.message", &m)
	if m.Content != "after" {
		t.Errorf("the answer is %q", m.Content)
	}
	same(t, c, owner, id1)
	nowhere(t, nearby)

	var gone struct{ Success bool }
	c.ok("session.destroy", obj{"sessionId": id1}, &gone)
	if !gone.Success {
		t.Error("destroy did not succeed")
	}
	c.fails(-32010, "session.send", obj{"sessionId": id1, "prompt": "x"})
	owner.ok("session.mode.get", obj{"sessionId": id1}) // others stay attached
	if n := len(far.model.Requests()); n != 3 {
		t.Errorf("the model was asked %d times", n)
	}
}

// nowhere checks that a server stores nothing.
func nowhere(t *testing.T, w *world) {
	t.Helper()
	if list, err := w.rt.Sessions(context.Background()); err != nil || len(list) > 0 {
		t.Errorf("the near server stores %v, %v", list, err)
	}
}

func TestRemoteMetadata(t *testing.T) {
	_, owner, _, nearby := pair(t, scripted.Say("ok"))
	owner.create(id1)
	owner.prompt(id1, "hello")
	owner.idle(0)
	c, other := nearby.connect(t), nearby.connect(t)
	var opened struct {
		Status, SessionID, RemoteSessionID string
		Metadata                           struct {
			IsRemote         bool
			RemoteSessionIDs []string
		}
	}
	c.ok("sessions.open", obj{"kind": "remote", "remoteSessionId": "far/" + id1}, &opened)
	if opened.Status != "connected" || opened.SessionID != id1 || opened.RemoteSessionID != id1 || !opened.Metadata.IsRemote || len(opened.Metadata.RemoteSessionIDs) != 1 {
		t.Errorf("opened %+v", opened)
	}
	type entry struct {
		SessionID, Summary string
		IsRemote           bool
	}
	want := entry{id1, "hello", true}
	var list struct{ Sessions []entry }
	other.ok("session.list", obj{}, &list)
	if diff := cmp.Diff([]entry{want}, list.Sessions); diff != "" {
		t.Errorf("session.list (-want +got)\n%s", diff)
	}
	var one struct{ Session entry }
	other.ok("session.getMetadata", obj{"sessionId": id1}, &one)
	if diff := cmp.Diff(want, one.Session); diff != "" {
		t.Errorf("session.getMetadata (-want +got)\n%s", diff)
	}
	other.fails(-32010, "session.send", obj{"sessionId": id1, "prompt": "x"}) // not attached
	var resumed map[string]any
	other.ok("session.resume", obj{"sessionId": id1, "tools": []obj{}}, &resumed)
	if resumed["isRemote"] != true || resumed["workspacePath"] != nil {
		t.Errorf("session.resume answered %v", resumed)
	}
	c.fails(-32012, "session.create", obj{"sessionId": id1})
	nearby.connect(t).fails(-32012, "session.create", obj{"sessionId": id1})
	before := c.count()
	c.ok("sessions.connect", obj{"sessionId": id1}) // again: nothing is sent twice
	for i := before; i < c.count(); i++ {
		if f := c.at(i); f.Method == "session.event" && !f.event.Ephemeral && f.event.Type != "session.resume" {
			t.Errorf("%s was sent again", f.event.Type)
		}
	}
	var deleted struct{ Success bool }
	c.ok("session.delete", obj{"sessionId": id1}, &deleted)
	if deleted.Success {
		t.Error("a session of a peer was deleted")
	}
	c.ok("session.detach", obj{"sessionId": id1})
	other.ok("session.send", obj{"sessionId": id1, "prompt": "x"})
	other.ok("session.destroy", obj{"sessionId": id1})
	var after struct{ Sessions []entry }
	other.ok("session.list", obj{}, &after)
	if len(after.Sessions) > 0 {
		t.Errorf("nobody follows the session, and it is still listed: %v", after.Sessions)
	}
	other.fails(-32010, "session.resume", obj{"sessionId": id1})
}

func TestRemoteClearIsRefused(t *testing.T) {
	far, owner, _, nearby := pair(t, scripted.Call("clear_context", `{}`), scripted.Say("went on"))
	owner.create(id1)
	c := nearby.connect(t)
	c.follow(id1, hostTool("clear_context"))
	clearing := obj{"sessionId": id1, "prompt": "SEED"}
	refused := c.fails(-32014, "session.history.clearContext", clearing) // idle
	c.prompt(id1, "go")
	var q ask
	c.awaitEvent("external_tool.requested", &q)
	_, before := owner.history(id1)
	if again := c.fails(-32014, "session.history.clearContext", clearing); again != refused {
		t.Errorf("refused with %q and %q", refused, again)
	}
	blank := c.fails(-32602, "session.history.clearContext", obj{"sessionId": id1, "prompt": " \n"})
	c.fails(-32602, "session.history.clearContext", obj{"sessionId": id1})
	c.fails(-32602, "session.history.clearContext", obj{"sessionId": id1, "prompt": 7})
	_, after := owner.history(id1)
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("a refused clear left something behind\n%s", diff)
	}
	c.ok("session.tools.handlePendingToolCall", obj{"sessionId": id1, "requestId": q.RequestID, "result": "not cleared"})
	c.idle(0)
	last := far.model.Requests()[1].Messages
	if n := len(last); n < 3 || last[n-1].Text != "not cleared" {
		t.Errorf("the window is %v", last)
	}
	if types, _ := c.events(id1, false); slices.Contains(types, "session.context_cleared") {
		t.Error("the context was cleared")
	}

	// The words are the core's own.
	for prompt, msg := range map[string]string{"SEED": refused, " \n": blank} {
		step := func(s turn.State, b turn.Body) (turn.State, error) {
			s, _, err := turn.Step(s, turn.Input{At: time.Now(), NewID: func() string { return "id" }, Body: b})
			return s, err
		}
		s, err := step(turn.State{}, turn.Begin{SessionID: id1, Settings: turn.Settings{Remote: true}, Client: turn.Client{ID: "a"}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = step(s, turn.Clear{Prompt: prompt})
		if err == nil || err.Error() != msg {
			t.Errorf("the core refuses with %v, the server with %q", err, msg)
		}
	}
}

func TestRemoteSteeringAndAbort(t *testing.T) {
	far, owner, _, nearby := pair(t, scripted.Call("wait", `{}`), scripted.Call("wait", `{}`), scripted.Say("later"))
	owner.create(id1)
	c := nearby.connect(t)
	c.follow(id1, hostTool("wait"))
	c.prompt(id1, "go")
	var q ask
	i := c.eventFrom(0, "external_tool.requested", &q)
	c.ok("session.send", obj{"sessionId": id1, "prompt": "faster", "mode": "immediate"})
	c.ok("session.tools.handlePendingToolCall", obj{"sessionId": id1, "requestId": q.RequestID, "result": "ok"})
	i = c.eventFrom(i+1, "external_tool.requested", &q)
	if last := far.model.Requests()[1].Messages; !strings.HasSuffix(last[len(last)-1].Text, "\nfaster") {
		t.Errorf("the steering message is not in the window: %v", last)
	}
	c.ok("session.abort", obj{"sessionId": id1})
	var idle struct{ Aborted bool }
	c.eventFrom(i, "session.idle", &idle)
	if !idle.Aborted {
		t.Error("the turn was not aborted")
	}
	var late struct{ Success bool }
	c.ok("session.tools.handlePendingToolCall", obj{"sessionId": id1, "requestId": q.RequestID, "result": "late"}, &late)
	if late.Success {
		t.Error("a late answer counted")
	}
	same(t, c, owner, id1)
}

func TestRemoteLinkLost(t *testing.T) {
	_, owner, w, nearby := pair(t, scripted.Call("look", `{}`), scripted.Say("done"))
	owner.create(id1)
	// The far session belongs to the near client alone.
	c := nearby.connect(t)
	c.follow(id1, hostTool("look"))
	owner.ok("session.detach", obj{"sessionId": id1})
	c.prompt(id1, "go")
	var q ask
	c.awaitEvent("external_tool.requested", &q)

	w.cut()
	i := c.await(0, "the warning", func(f frame) bool {
		return f.event.Type == "session.warning" && strings.Contains(string(f.event.Data), remote.WarningLost)
	})
	f := c.reply(c.send("session.send", obj{"sessionId": id1, "prompt": "meanwhile"}))
	if f.Error == nil || f.Error.Code != -32018 || f.Error.Data.Kind != "peer_gone" || !f.Error.Data.Retryable {
		t.Errorf("a request without a link was answered with %+v", f.Error)
	}
	answer := c.send("session.tools.handlePendingToolCall", obj{"sessionId": id1, "requestId": q.RequestID, "result": "seen"})
	c.fails(-32014, "session.history.clearContext", obj{"sessionId": id1, "prompt": "SEED"})
	w.awaitTry()
	w.awaitTry()
	w.mend()
	var answered struct{ Success bool }
	if f := c.reply(answer); f.Error != nil || json.Unmarshal(f.Result, &answered) != nil || !answered.Success {
		t.Errorf("the answer kept for the new link: %+v %s", f.Error, f.Result)
	}
	c.await(i, "the remark", func(f frame) bool {
		return f.event.Type == "session.info" && strings.Contains(string(f.event.Data), remote.InfoRestored)
	})
	c.idle(i)
	back := owner
	back.ok("session.resume", obj{"sessionId": id1, "disableResume": true})
	same(t, c, back, id1)
	if types, _ := c.events(id1, false); count(types, "session.idle") != 1 {
		t.Errorf("idle came %d times\n%s", count(types, "session.idle"), c.transcript())
	}
}

func count(list []string, what string) (n int) {
	for _, s := range list {
		if s == what {
			n++
		}
	}
	return n
}

// A turn that ends while there is no link ends for the client as well.
func TestRemoteTurnEndsMeanwhile(t *testing.T) {
	reply := scripted.Say("ended meanwhile")
	gate := make(chan struct{})
	far := newWorld(t, &gated{Provider: scripted.New(scripted.Config{Replies: []modelfile.Message{reply, scripted.Say("and on")}}), gate: gate}, server.Config{})
	owner := far.connect(t)
	w := far.wire(t)
	nearby := near(t, w.peer("far"))
	owner.create(id1)
	c := nearby.connect(t)
	c.follow(id1)
	c.prompt(id1, "go")
	c.eventAt(0, "assistant.turn_start")
	w.cut()
	lost := c.eventAt(0, "session.warning")
	close(gate)
	owner.idle(0)
	w.mend()
	end := c.idle(lost)
	restored := c.eventAt(lost, "session.info")
	if message := c.eventAt(lost, "assistant.message"); message > end || end > restored {
		t.Errorf("message, idle and remark out of order\n%s", c.transcript())
	}
	same(t, c, owner, id1)
	c.prompt(id1, "more")
	c.idle(restored)
	same(t, c, owner, id1)
	if types, _ := c.events(id1, false); count(types, "session.idle") != 2 {
		t.Errorf("idle came %d times\n%s", count(types, "session.idle"), c.transcript())
	}
}

// The far process ends and another one takes its place.
func TestRemotePeerRestarts(t *testing.T) {
	store := memlog.New()
	begin := func(replies ...modelfile.Message) *world {
		return newWorldIn(t, store, scripted.New(scripted.Config{Replies: replies}), server.Config{})
	}
	far := begin(scripted.Call("look", `{}`))
	w := far.wire(t)
	nearby := near(t, w.peer("far"))
	owner := far.connect(t)
	owner.create(id1)
	c := nearby.connect(t)
	c.follow(id1, hostTool("look"))
	owner.ok("session.detach", obj{"sessionId": id1})
	c.prompt(id1, "go")
	var q ask
	c.awaitEvent("external_tool.requested", &q)
	w.cut()
	c.eventAt(0, "session.warning")
	end(t, far)

	again := begin(scripted.Say("done"))
	w.lead(again)
	w.mend()
	c.eventAt(0, "session.info")
	c.ok("session.tools.handlePendingToolCall", obj{"sessionId": id1, "requestId": q.RequestID, "result": "seen"})
	c.idle(0)
	back := again.connect(t)
	back.ok("session.resume", obj{"sessionId": id1, "disableResume": true})
	same(t, c, back, id1)

	// And for good.
	w.cut()
	end(t, again)
	if err := store.Delete(context.Background(), id1); err != nil {
		t.Fatal(err)
	}
	w.lead(begin())
	w.mend()
	c.await(0, "the end", func(f frame) bool { return strings.Contains(string(f.event.Data), remote.WarningEnded) })
	c.fails(-32010, "session.send", obj{"sessionId": id1, "prompt": "x"})
}

func end(t *testing.T, w *world) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), watchdog)
	defer cancel()
	if err := w.rt.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if err := w.srv.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
}

// A client that is lost here is lost there: its turn stays open.
func TestRemoteClientIsLost(t *testing.T) {
	_, owner, w, nearby := pair(t, scripted.Call("look", `{}`), scripted.Say("done"))
	owner.create(id1)
	c := nearby.connect(t)
	c.follow(id1, hostTool("look"))
	c.prompt(id1, "go")
	c.awaitEvent("external_tool.requested", nil)
	c.conn.Close()
	// Its tool's calls fail, since the owner of the session is still there.
	owner.idle(0)
	w.mu.Lock()
	dials := w.dials
	w.mu.Unlock()
	if dials != 1 {
		t.Errorf("dialled %d times", dials)
	}
}

func TestRemoteErrors(t *testing.T) {
	far := newWorld(t, scripted.New(scripted.Config{}), server.Config{Token: "right"})
	w := far.wire(t)
	good, wrong, none, cut := w.peer("good"), w.peer("wrong"), w.peer("none"), w.peer("cut")
	good.Token, wrong.Token = "right", "guess"
	cut.Dial = func(context.Context) (io.ReadWriteCloser, error) { return nil, errors.New("no way there") }
	old := remote.Peer{Name: "old", Dial: func(context.Context) (io.ReadWriteCloser, error) {
		ours, theirs := net.Pipe()
		go func() { // a server that knows version 2
			defer theirs.Close()
			buf := make([]byte, 4096)
			if _, err := theirs.Read(buf); err == nil {
				body := `{"jsonrpc":"2.0","id":1,"result":{"ok":true,"protocolVersion":2}}`
				fmt.Fprintf(theirs, "Content-Length: %d\r\n\r\n%s", len(body), body)
				io.Copy(io.Discard, theirs)
			}
		}()
		return ours, nil
	}}
	web := remote.Peer{Name: "web", Dial: func(context.Context) (io.ReadWriteCloser, error) {
		ours, theirs := net.Pipe()
		go func() {
			defer theirs.Close()
			buf := make([]byte, 4096)
			theirs.Read(buf)
			io.WriteString(theirs, "HTTP/1.1 400 Bad Request\r\n\r\n")
		}()
		return ours, nil
	}}
	nearby := near(t, good, wrong, none, cut, old, web)
	c := nearby.connect(t)
	for _, tt := range []struct {
		name string
		code int
		says string
	}{
		{"good/nope", -32010, "Session not found: nope"},
		{"wrong/nope", -32001, "does not accept the token"},
		{"none/nope", -32001, "asks for a token"},
		{"cut/nope", -32018, "no way there"},
		{"old/nope", -32014, "version 2"},
		{"web/nope", -32018, "did not answer as a server"},
		{"who/nope", -32010, "no peer is named who"},
		{"good/", -32602, "PEER/ID"},
		{"", -32602, "PEER/ID"},
		{"good/..", -32602, ""},
	} {
		msg := c.fails(tt.code, "sessions.connect", obj{"sessionId": tt.name})
		if !strings.Contains(msg, tt.says) || strings.Contains(msg, "right") || strings.Contains(msg, "guess") {
			t.Errorf("%s: %s", tt.name, msg)
		}
	}
	c.create(id1)
	c.fails(-32012, "sessions.connect", obj{"sessionId": id1})
	c.fails(-32014, "sessions.open", obj{"kind": "cloud"})
	alone := play(t).connect(t)
	if msg := alone.fails(-32010, "sessions.connect", obj{"sessionId": "nope"}); !strings.Contains(msg, "--peer") {
		t.Error(msg)
	}
}

// What a client sends without waiting keeps its order across the link.
func TestRemotePipelined(t *testing.T) {
	far, owner, _, nearby := pair(t, scripted.Say("one"), scripted.Say("two"), scripted.Say("three"))
	owner.create(id1)
	c := nearby.connect(t)
	c.send("sessions.connect", obj{"sessionId": id1})
	for _, p := range []string{"a", "b", "c"} {
		c.send("session.send", obj{"sessionId": id1, "prompt": p})
	}
	owner.idle(owner.await(0, "the last message", func(f frame) bool {
		return f.event.Type == "user.message" && strings.Contains(string(f.event.Data), `"content":"c"`)
	}))
	last := far.model.Requests()[2].Messages
	var texts []string
	for _, m := range last {
		if i := strings.LastIndexByte(m.Text, '\n'); m.Role == "user" {
			texts = append(texts, m.Text[i+1:])
		}
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, texts); diff != "" {
		t.Error(diff)
	}
}

// gated is a model that answers once the gate is open.
type gated struct {
	model.Provider
	gate <-chan struct{}
}

func (g *gated) Stream(ctx context.Context, r *model.Request) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		select {
		case <-g.gate:
		case <-ctx.Done():
		}
		g.Provider.Stream(ctx, r)(yield)
	}
}

// newWorldIn is newWorld on a store that outlives it.
func newWorldIn(t testing.TB, store eventlog.Store, p model.Provider, cfg server.Config) *world {
	t.Helper()
	rt, err := transom.Open(transom.Config{Store: store, Provider: p, Dir: "/work", Getenv: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Runtime = rt
	w := &world{rt: rt, srv: server.New(cfg)}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), watchdog)
		defer cancel()
		rt.Close(ctx)
		w.srv.Shutdown(ctx)
	})
	return w
}

// Links break at any moment, in the middle of turns; the client has the whole log
// at the end, each event once, and one idle for each work that ended.
func TestRemoteManyBreaks(t *testing.T) {
	const turns = 8
	var replies []modelfile.Message
	for range turns {
		replies = append(replies, scripted.Call("look", `{}`), scripted.Say("done"))
	}
	_, owner, w, nearby := pair(t, replies...)
	owner.create(id1)
	c := nearby.connect(t)
	c.follow(id1, hostTool("look"))
	owner.ok("session.detach", obj{"sessionId": id1}) // nobody else's: calls wait for this client
	at := 0
	for turn := range turns {
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range turn % 4 {
				runtime.Gosched()
			}
			w.cut()
			w.mend()
		}()
		for {
			f := c.reply(c.send("session.send", obj{"sessionId": id1, "prompt": "go"}))
			if f.Error == nil {
				break
			}
			if f.Error.Data.Retryable {
				continue
			}
			break // sent; whether it arrived, the call that follows tells
		}
		<-done
		// Either the call comes, or the prompt was lost on the way: then again.
		var q ask
		for {
			i := c.await(at, "the call, or a link without one", func(f frame) bool {
				return f.event.Type == "external_tool.requested" || strings.Contains(string(f.event.Data), remote.InfoRestored)
			})
			at = i + 1
			if f := c.at(i); f.event.Type == "external_tool.requested" {
				if err := json.Unmarshal(f.event.Data, &q); err != nil {
					t.Fatal(err)
				}
				break
			}
			c.linked("session.getMessages", obj{"sessionId": id1}) // the notice may be of an earlier break
			types, _ := c.history(id1)
			if count(types, "user.message") <= turn {
				c.send("session.send", obj{"sessionId": id1, "prompt": "go"})
			}
		}
		c.linked("session.tools.handlePendingToolCall", obj{"sessionId": id1, "requestId": q.RequestID, "result": "seen"})
		at = c.idle(at) + 1
	}
	c.linked("session.getMessages", obj{"sessionId": id1})
	same(t, c, c, id1)
	if types, _ := c.events(id1, false); count(types, "session.idle") != turns {
		t.Errorf("%d turns ended with %d idle events", turns, count(types, "session.idle"))
	}
}

// Answers that describe the session say that it is remote, whatever the peer says.
func TestRemoteSnapshot(t *testing.T) {
	answers := map[string]string{
		"connect":                   `{"ok":true,"protocolVersion":3}`,
		"session.resume":            `{"sessionId":"s","isRemote":false,"workspacePath":"/far/s","startTime":"2026-01-02T03:04:05.000Z"}`,
		"session.getMessages":       `{"events":[]}`,
		"session.getMetadata":       `{}`,
		"session.metadata.snapshot": `{"sessionId":"s","isRemote":false,"workspacePath":"/far/s","workspace":{"id":"s"},"currentMode":"plan"}`,
		"session.destroy":           `{"success":true}`,
	}
	peer := remote.Peer{Name: "far", Dial: func(context.Context) (io.ReadWriteCloser, error) {
		ours, theirs := net.Pipe()
		c := jsonrpc2.New(theirs, jsonrpc2.Config{Handler: jsonrpc2.HandlerFunc(func(_ context.Context, _ *jsonrpc2.Conn, r *jsonrpc2.Responder) {
			r.Reply(json.RawMessage(answers[r.Request().Method]), nil)
		})})
		go c.Serve(context.Background())
		return ours, nil
	}}
	c := near(t, peer).connect(t)
	c.follow("s")
	var got map[string]any
	c.ok("session.metadata.snapshot", obj{"sessionId": "s"}, &got)
	want := map[string]any{
		"sessionId": "s", "isRemote": true, "workspacePath": nil, "currentMode": "plan",
		"remoteMetadata": map[string]any{"resourceId": "far/s", "repository": map[string]any{"owner": "", "name": "", "branch": ""}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("session.metadata.snapshot (-want +got)\n%s", diff)
	}
	c.ok("session.destroy", obj{"sessionId": "s"})
}
