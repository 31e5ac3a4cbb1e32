package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/model/modelfile"
	"github.com/transom-run/transom/model/scripted"
	"github.com/transom-run/transom/server"
)

func TestHandshake(t *testing.T) {
	w := play(t)
	c := w.connect(t)
	var hello struct {
		OK              bool
		ProtocolVersion int
		Version         string
	}
	c.ok("connect", obj{"token": nil, "clientInfo": obj{}}, &hello)
	if !hello.OK || hello.ProtocolVersion != 3 || hello.Version == "" {
		t.Errorf("connect: %+v", hello)
	}
	var pong struct {
		Message   string
		Timestamp time.Time
	}
	c.ok("ping", obj{"message": "test message"}, &pong)
	if pong.Message != "pong: test message" || pong.Timestamp.IsZero() {
		t.Errorf("ping: %+v", pong)
	}
	var auth struct {
		IsAuthenticated bool
		StatusMessage   string
	}
	c.ok("auth.getStatus", obj{}, &auth)
	if !auth.IsAuthenticated || auth.StatusMessage == "" {
		t.Errorf("auth: %+v", auth)
	}
	var models struct {
		Models []struct {
			ID, Name     string
			Capabilities struct{ Supports, Limits obj }
		}
	}
	c.ok("models.list", nil, &models)
	if len(models.Models) != 1 || models.Models[0].ID != "scripted" || models.Models[0].Capabilities.Limits == nil {
		t.Errorf("models: %+v", models)
	}
	if got := models.Models[0].Capabilities.Limits["max_context_window_tokens"]; got != 128_000.0 {
		t.Errorf("a window whose size nobody states has %v tokens", got)
	}
	var out struct {
		Success bool
		Error   string
	}
	c.ok("session.getForeground", obj{})
	c.ok("session.setForeground", obj{"sessionId": id1}, &out)
	if out.Success || !strings.Contains(out.Error, "Not running in TUI+server mode") {
		t.Errorf("setForeground: %+v", out)
	}
	if msg := c.fails(-32601, "session.nope", obj{}); msg != "Unhandled method session.nope" {
		t.Errorf("unknown method: %s", msg)
	}
	msg := c.fails(-32014, "session.canvas.provider.register", obj{})
	if !strings.Contains(msg, "a client that shows canvases") || strings.Contains(msg, "Unhandled method") {
		t.Errorf("refused method: %s", msg)
	}
}

func TestNoAccount(t *testing.T) {
	w := newWorld(t, nil, server.Config{})
	c := w.connect(t)
	var auth struct {
		IsAuthenticated bool
		StatusMessage   string
	}
	c.ok("auth.getStatus", obj{}, &auth)
	if auth.IsAuthenticated || auth.StatusMessage == "" {
		t.Errorf("auth: %+v", auth)
	}
	if msg := c.fails(-32001, "models.list", obj{}); !strings.Contains(msg, "Not authenticated") {
		t.Errorf("models.list: %s", msg)
	}
	// A session can be created all the same; its first turn says what to set.
	c.create(id1)
	c.prompt(id1, "hi")
	var failed struct{ Message string }
	c.awaitEvent("session.error", &failed)
	c.idle(0)
}

func TestToken(t *testing.T) {
	w := newWorld(t, scripted.New(scripted.Config{}), server.Config{Token: "right-token"})
	dial := w.tcp(t)
	good, bad := dial(), dial()
	good.fails(-32001, "ping", obj{})
	good.ok("connect", obj{"token": "right-token"})
	good.ok("ping", obj{})
	for i := range 5 {
		params := obj{"token": "wrong"}
		if i == 1 {
			params = obj{}
		}
		if msg := bad.fails(-32002, "connect", params); !strings.Contains(msg, "AUTHENTICATION_FAILED") {
			t.Errorf("message: %s", msg)
		}
	}
	bad.awaitClosed()
	good.ok("ping", obj{})
}

// Tokens that are sent without waiting for the answers are not compared beyond the
// few that a connection may give: a right one among them opens nothing.
func TestTokenGuesses(t *testing.T) {
	w := newWorld(t, scripted.New(scripted.Config{}), server.Config{Token: "right-token"})
	c := w.tcp(t)()
	for range 5 {
		c.send("connect", obj{"token": "wrong"})
	}
	late := c.send("connect", obj{"token": "right-token"})
	ping := c.send("ping", obj{})
	c.awaitClosed()
	for i := range c.count() {
		if f := c.at(i); f.Error == nil && (string(f.ID) == fmt.Sprint(late) || string(f.ID) == fmt.Sprint(ping)) {
			t.Errorf("request %s was answered %s", f.ID, f.Result)
		}
	}
}

// Connections that show no token are bounded: the oldest gives way. Who has shown
// one stays, and a new one with the right token is served, though many guess.
func TestStrangers(t *testing.T) {
	w := newWorld(t, scripted.New(scripted.Config{}), server.Config{Token: "right-token"})
	dial := w.tcp(t)
	known, first := dial(), dial()
	known.ok("connect", obj{"token": "right-token"})
	first.fails(-32001, "ping", obj{})
	for range 12 {
		guess := dial()
		guess.fails(-32002, "connect", obj{"token": "wrong"})
	}
	for range 64 {
		dial().fails(-32001, "ping", obj{})
	}
	first.awaitClosed()
	known.ok("ping", obj{})
	late := dial()
	late.ok("connect", obj{"token": "right-token"})
	late.ok("ping", obj{})
}

func TestNotTheProtocol(t *testing.T) {
	w := play(t)
	dial := w.tcp(t)
	c := dial()
	c.write("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
	c.awaitClosed()
	dial().ok("ping", obj{})
}

func TestShutdown(t *testing.T) {
	w := newWorld(t, scripted.New(scripted.Config{Replies: []modelfile.Message{scripted.Call("slow", `{}`)}}), server.Config{Linger: time.Millisecond})
	c, other := w.connect(t), w.connect(t)
	c.create(id1, hostTool("slow"))
	c.prompt(id1, "go")
	c.eventAt(0, "external_tool.requested")
	waiting := other.send("session.resume", obj{"sessionId": id1})
	other.reply(waiting)
	id := c.send("runtime.shutdown", obj{})
	if f := c.reply(id); f.Error != nil || string(f.Result) != "null" {
		t.Fatalf("runtime.shutdown: %+v", f)
	}
	<-w.srv.Stopped()
	ctx, cancel := context.WithTimeout(context.Background(), watchdog)
	defer cancel()
	if err := w.srv.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	c.awaitClosed()
	other.awaitClosed()
	a, b := net.Pipe()
	defer b.Close()
	if err := w.srv.ServeConn(ctx, a); err != server.ErrServerClosed {
		t.Errorf("a connection after the end: %v", err)
	}
}

// SDKs end the process that they launched once runtime.shutdown is answered, and
// call it a failure where the process was faster.
func TestShutdownLeavesTheEndToTheClient(t *testing.T) {
	w := newWorld(t, scripted.New(scripted.Config{}), server.Config{Linger: time.Hour})
	c := w.connect(t)
	c.ok("runtime.shutdown", obj{})
	c.ok("ping", obj{})
	c.fails(-32016, "session.create", obj{"sessionId": id1})
	select {
	case <-w.srv.Stopped():
		t.Error("the process may end while the client is there")
	default:
	}
	c.conn.Close()
	<-w.srv.Stopped()
}

// A connection that this side closes while events are sent is no fault to log.
func TestShutdownIsNoFault(t *testing.T) {
	for range 20 {
		var logged bytes.Buffer
		w := newWorld(t, scripted.New(scripted.Config{}), server.Config{
			Logger: slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelError})),
		})
		c := w.connect(t)
		c.create(id1)
		for range 50 {
			c.send("session.log", obj{"sessionId": id1, "message": "hello"})
		}
		c.eventAt(0, "session.info")
		ctx, cancel := context.WithTimeout(context.Background(), watchdog)
		if err := w.srv.Shutdown(ctx); err != nil {
			t.Fatal(err)
		}
		cancel()
		if logged.Len() > 0 {
			t.Fatal(logged.String())
		}
	}
}

// Every request that a client pipelines before runtime.shutdown has its answer.
func TestShutdownAnswersAll(t *testing.T) {
	w := play(t, scripted.Say("x"))
	c := w.connect(t)
	ids := []int{
		c.send("session.create", obj{"sessionId": id1}), c.send("session.send", obj{"sessionId": id1, "prompt": "hi", "wait": true}),
		c.send("session.list", obj{}), c.send("session.getMessages", obj{"sessionId": id1}), c.send("runtime.shutdown", obj{}),
	}
	for _, id := range ids {
		c.reply(id)
	}
}

func TestLifecycle(t *testing.T) {
	w := play(t, scripted.Say("x"))
	c, other := w.connect(t), w.connect(t)
	other.ok("ping", obj{})
	c.create(id1)
	c.prompt(id1, "hi")
	c.idle(0)
	type news struct {
		Type, SessionID string
		Metadata        struct{ StartTime, ModifiedTime time.Time }
	}
	read := func(i int) (n news) {
		if err := json.Unmarshal(other.at(i).Params, &n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	is := func(typ string) func(frame) bool {
		return func(f frame) bool {
			return f.Method == "session.lifecycle" && strings.Contains(string(f.Params), `"`+typ+`"`)
		}
	}
	created := other.await(0, "session.created", is("session.created"))
	updated := other.await(created, "session.updated", is("session.updated"))
	if n := read(updated); n.SessionID != id1 || n.Metadata.StartTime.IsZero() || n.Metadata.ModifiedTime.Before(n.Metadata.StartTime) {
		t.Errorf("session.updated: %+v", n)
	}
	c.ok("session.delete", obj{"sessionId": id1})
	other.await(updated, "session.deleted", is("session.deleted"))
	for i := range other.count() {
		if f := other.at(i); is("session.created")(f) && i != created {
			t.Error("session.created came twice")
		}
	}
}

func TestCodes(t *testing.T) {
	seen := map[int]transom.Kind{}
	for _, k := range transom.Kinds() {
		code := server.Code(k)
		if code == 0 {
			t.Errorf("%s has no code", k)
		}
		if other, taken := seen[code]; taken {
			t.Errorf("%s and %s share the code %d", k, other, code)
		}
		seen[code] = k
	}
	if got := server.Code("no such kind"); got != -32603 {
		t.Errorf("an unknown kind has code %d", got)
	}
}

// bad are params that no method takes as they stand.
var bad = []string{
	`[]`, `null`, `"x"`, `7`, `{}`, `{"sessionId":null}`, `{"sessionId":7}`, `{"sessionId":""}`, `{"sessionId":"unknown"}`,
	`{"sessionId":{"a":1},"prompt":[],"tools":{},"filter":7}`, `{"sessionId":"` + id1 + `"}`,
	`{"sessionId":"` + id1 + `","prompt":7,"message":7,"mode":7,"modelId":7,"name":7,"summary":7,"requestId":7,"eventType":7,"handle":7}`,
	`{"sessionId":"` + id1 + `","result":{},"requestId":"nobody's"}`,
}

// Whatever a method is given, it answers once, and the session stays usable.
func TestBadParams(t *testing.T) {
	w := play(t, scripted.Say("hello"))
	c := w.connect(t)
	c.create(id1)
	for _, method := range server.Methods() {
		switch method {
		case "runtime.shutdown", "session.destroy", "session.detach", "session.delete", "session.shutdown", "session.suspend", "sessions.close", "sessions.releaseLock":
			continue
		}
		for _, params := range bad {
			c.serial++
			body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, c.serial, method, params)
			c.write(fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body))
			f := c.reply(c.serial)
			if f.Error != nil && (f.Error.Message == "" || f.Error.Code == -32603) {
				t.Errorf("%s %s: %d %q", method, params, f.Error.Code, f.Error.Message)
			}
		}
	}
	msg := c.fails(-32602, "session.send", obj{"sessionId": id1, "prompt": 7})
	if !strings.Contains(msg, "prompt must be a string") {
		t.Errorf("message: %s", msg)
	}
	c.fails(-32602, "session.send", obj{"sessionId": id1})
	if msg := c.fails(-32602, "session.abort", []any{id1}); !strings.Contains(msg, "Missing sessionId") {
		t.Errorf("message: %s", msg)
	}
}

func FuzzParams(f *testing.F) {
	methods := server.Methods()
	for i := range methods {
		for _, p := range bad {
			f.Add(uint8(i), p)
		}
	}
	f.Add(uint8(0), `{"tools":[{"name":"a","parameters":{"type":["object"]}}],"systemMessage":{"mode":"x"},"sessionId":"`+id1+`"}`)
	f.Fuzz(func(t *testing.T, method uint8, params string) {
		if !json.Valid([]byte(params)) || !utf8.ValidString(params) {
			return
		}
		w := play(t, scripted.Say("hello"), scripted.Say("again"))
		c := w.connect(t)
		c.create(id1)
		name := methods[int(method)%len(methods)]
		c.serial++
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, c.serial, name, params)
		c.write(fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body))
		id := c.serial
		c.reply(id)
		if name != "runtime.shutdown" {
			c.ok("ping", obj{})
		}
		n := 0
		for i := range c.count() {
			if fr := c.at(i); fr.Method == "" && string(fr.ID) == fmt.Sprint(id) {
				n++
			}
		}
		if n != 1 {
			t.Fatalf("%s was answered %d times", name, n)
		}
	})
}
