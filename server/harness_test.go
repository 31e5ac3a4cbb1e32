package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/eventlog/memlog"
	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/model/modelfile"
	"github.com/transom-run/transom/model/scripted"
	"github.com/transom-run/transom/server"
)

// watchdog ends a wait for something that does not come.
const watchdog = 2 * time.Minute

func TestMain(m *testing.M) {
	serveSmall() // where this process is to be an MCP server
	goleak.VerifyTestMain(m)
}

// world is a server with a runtime whose model plays replies.
type world struct {
	rt    *transom.Runtime
	srv   *server.Server
	model *scripted.Provider
}

// play makes a world whose sessions get these replies, in order.
func play(t testing.TB, replies ...modelfile.Message) *world {
	t.Helper()
	p := scripted.New(scripted.Config{Replies: replies})
	w := newWorld(t, p, server.Config{})
	w.model = p
	return w
}

func newWorld(t testing.TB, p model.Provider, cfg server.Config) *world {
	t.Helper()
	return worldOf(t, transom.Config{Store: memlog.New(), Provider: p, Dir: "/work", Getenv: func(string) string { return "" }}, cfg)
}

// worldOf makes a world of a runtime's configuration.
func worldOf(t testing.TB, of transom.Config, cfg server.Config) *world {
	t.Helper()
	rt, err := transom.Open(of)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Runtime = rt
	w := &world{rt: rt, srv: server.New(cfg)}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), watchdog)
		defer cancel()
		if err := rt.Close(ctx); err != nil {
			t.Errorf("close runtime: %v", err)
		}
		if err := w.srv.Shutdown(ctx); err != nil {
			t.Errorf("shut down: %v", err)
		}
	})
	return w
}

// connect makes a client on a pipe that did not send connect yet.
func (w *world) connect(t testing.TB) *client {
	t.Helper()
	ours, theirs := net.Pipe()
	go w.srv.ServeConn(context.Background(), theirs)
	return newClient(t, ours)
}

// tcp serves a port and returns what connects to it.
func (w *world) tcp(t testing.TB) (dial func() *client) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go w.srv.Serve(context.Background(), ln)
	return func() *client {
		c, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		return newClient(t, c)
	}
}

// frame is one message from the server.
type frame struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *wireError      `json:"error"`

	event event // of a session.event
}

type event struct {
	Type string          `json:"type"`
	ID   string          `json:"id"`
	Data json.RawMessage `json:"data"`
	// session is of the params.
	session   string
	Ephemeral bool `json:"ephemeral"`
}

type wireError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    struct {
		Kind string `json:"kind"`
		Op   string `json:"op"`

		Retryable bool `json:"retryable"`
	} `json:"data"`
}

// client is a client that keeps everything the server says, in order.
type client struct {
	t    testing.TB
	conn net.Conn

	mu     sync.Mutex
	frames []frame
	closed bool
	moved  chan struct{} // closed and replaced when frames or closed change
	paused chan struct{} // closed while the client reads
	serial int
	sent   map[int]int // how many frames there were when a request was sent
}

func newClient(t testing.TB, conn net.Conn) *client {
	c := &client{t: t, conn: conn, moved: make(chan struct{}), paused: make(chan struct{}), sent: map[int]int{}}
	close(c.paused)
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.read()
	}()
	t.Cleanup(func() {
		conn.Close()
		c.proceed()
		<-done
	})
	return c
}

// pause stops reading after the frame that is being read.
func (c *client) pause() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.paused = make(chan struct{})
}

// proceed goes on reading.
func (c *client) proceed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.paused:
	default:
		close(c.paused)
	}
}

func (c *client) read() {
	r := textproto.NewReader(bufio.NewReader(c.conn))
	for {
		c.mu.Lock()
		gate := c.paused
		c.mu.Unlock()
		<-gate
		f, err := readFrame(r)
		c.mu.Lock()
		if err != nil {
			c.closed = true
		} else {
			c.frames = append(c.frames, f)
		}
		close(c.moved)
		c.moved = make(chan struct{})
		c.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func readFrame(r *textproto.Reader) (f frame, err error) {
	h, err := r.ReadMIMEHeader()
	if err != nil {
		return f, err
	}
	n, err := strconv.Atoi(h.Get("Content-Length"))
	if err != nil {
		return f, err
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(r.R, body); err != nil {
		return f, err
	}
	if err := json.Unmarshal(body, &f); err != nil {
		return f, fmt.Errorf("%w: %s", err, body)
	}
	if f.Method == "session.event" {
		var p struct {
			SessionID string `json:"sessionId"`
			Event     event  `json:"event"`
		}
		if err := json.Unmarshal(f.Params, &p); err != nil {
			return f, err
		}
		f.event = p.Event
		f.event.session = p.SessionID
	}
	return f, nil
}

// write sends raw bytes.
func (c *client) write(s string) {
	c.t.Helper()
	if _, err := io.WriteString(c.conn, s); err != nil {
		c.t.Fatalf("write: %v", err)
	}
}

type obj = map[string]any

// send sends a request and returns its id.
func (c *client) send(method string, params any) int {
	c.t.Helper()
	c.serial++
	c.sent[c.serial] = c.count()
	b, err := json.Marshal(obj{"jsonrpc": "2.0", "id": c.serial, "method": method, "params": params})
	if err != nil {
		c.t.Fatal(err)
	}
	c.write(fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(b), b))
	return c.serial
}

// await returns the place of the first frame from a place on that matches.
func (c *client) await(from int, what string, match func(frame) bool) int {
	c.t.Helper()
	timeout := time.After(watchdog)
	for {
		c.mu.Lock()
		for ; from < len(c.frames); from++ {
			if match(c.frames[from]) {
				c.mu.Unlock()
				return from
			}
		}
		moved, closed := c.moved, c.closed
		c.mu.Unlock()
		if closed {
			c.t.Fatalf("the connection closed before %s came\n%s", what, c.transcript())
		}
		select {
		case <-moved:
		case <-timeout:
			c.t.Fatalf("%s did not come\n%s", what, c.transcript())
		}
	}
}

// awaitClosed waits until the server has closed the connection.
func (c *client) awaitClosed() {
	c.t.Helper()
	timeout := time.After(watchdog)
	for {
		c.mu.Lock()
		moved, closed := c.moved, c.closed
		c.mu.Unlock()
		if closed {
			return
		}
		select {
		case <-moved:
		case <-timeout:
			c.t.Fatalf("the connection was not closed\n%s", c.transcript())
		}
	}
}

// transcript shows the last frames.
func (c *client) transcript() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := ""
	for i, f := range c.frames[max(0, len(c.frames)-40):] {
		out += fmt.Sprintf("%3d id=%s %s %s %.200s %v\n", i, f.ID, f.Method, f.event.Type, f.Result, f.Error)
	}
	return out
}

func (c *client) at(i int) frame {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.frames[i]
}

func (c *client) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.frames)
}

// replyAt is the place of the answer to a request.
func (c *client) replyAt(id int) int {
	c.t.Helper()
	return c.await(c.sent[id], fmt.Sprintf("the answer to request %d", id), func(f frame) bool {
		return f.Method == "" && string(f.ID) == strconv.Itoa(id)
	})
}

// reply is the answer to a request.
func (c *client) reply(id int) frame {
	c.t.Helper()
	return c.at(c.replyAt(id))
}

// answered reports whether the answer to a request has come already.
func (c *client) answered(id int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.frames[c.sent[id]:], func(f frame) bool { return f.Method == "" && string(f.ID) == strconv.Itoa(id) })
}

// ok calls a method that must succeed and decodes its result.
func (c *client) ok(method string, params any, into ...any) {
	c.t.Helper()
	f := c.reply(c.send(method, params))
	if f.Error != nil {
		c.t.Fatalf("%s: %d %s", method, f.Error.Code, f.Error.Message)
	}
	for _, p := range into {
		if err := json.Unmarshal(f.Result, p); err != nil {
			c.t.Fatalf("%s: %v in %s", method, err, f.Result)
		}
	}
}

// fails calls a method that must fail with a code.
func (c *client) fails(code int, method string, params any) string {
	c.t.Helper()
	f := c.reply(c.send(method, params))
	if f.Error == nil {
		c.t.Fatalf("%s succeeded: %s", method, f.Result)
	}
	if f.Error.Code != code {
		c.t.Fatalf("%s: code %d (%s), want %d", method, f.Error.Code, f.Error.Message, code)
	}
	return f.Error.Message
}

// eventAt is the place of the first event of a type from a place on.
func (c *client) eventAt(from int, typ string) int {
	c.t.Helper()
	return c.await(from, "event "+typ, func(f frame) bool { return f.event.Type == typ })
}

// awaitEvent returns the data of the first event of a type.
func (c *client) awaitEvent(typ string, into any) {
	c.t.Helper()
	c.eventFrom(0, typ, into)
}

// eventFrom returns the place of the first event of a type from a place on, and
// decodes its data.
func (c *client) eventFrom(from int, typ string, into any) int {
	c.t.Helper()
	i := c.eventAt(from, typ)
	if into != nil {
		if err := json.Unmarshal(c.at(i).event.Data, into); err != nil {
			c.t.Fatal(err)
		}
	}
	return i
}

// events returns the types of the events so far.
func (c *client) events(session string, persisted bool) (types, ids []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.frames {
		if f.event.Type != "" && f.event.session == session && !(persisted && f.event.Ephemeral) {
			types = append(types, f.event.Type)
			ids = append(ids, f.event.ID)
		}
	}
	return types, ids
}

// history returns the types and ids of session.getMessages.
func (c *client) history(session string) (types, ids []string) {
	c.t.Helper()
	var out struct{ Events []event }
	c.ok("session.getMessages", obj{"sessionId": session}, &out)
	for _, e := range out.Events {
		types = append(types, e.Type)
		ids = append(ids, e.ID)
	}
	return types, ids
}

// ask is the data of the events that ask a client for something.
type ask struct {
	RequestID  string `json:"requestId"`
	ToolCallID string `json:"toolCallId"`
	ToolName   string `json:"toolName"`
}

// cleared is a terminal tool that needs no approval.
func hostTool(name string, more ...string) obj {
	o := obj{"name": name, "description": "does " + name, "parameters": obj{"type": "object"}, "skipPermission": true}
	if slices.Contains(more, "terminal") {
		o["isTerminal"] = true
	}
	if slices.Contains(more, "ask") {
		o["skipPermission"] = false
	}
	return o
}

// create opens a session with tools.
func (c *client) create(id string, tools ...obj) {
	c.t.Helper()
	c.ok("session.create", obj{"sessionId": id, "tools": tools, "requestPermission": true, "toolFilterPrecedence": "excluded", "availableTools": nil})
}

// prompt sends a prompt.
func (c *client) prompt(id, text string) {
	c.t.Helper()
	c.ok("session.send", obj{"sessionId": id, "prompt": text})
}

// idle waits for the first idle event from a place on.
func (c *client) idle(from int) int {
	c.t.Helper()
	return c.eventAt(from, "session.idle")
}
