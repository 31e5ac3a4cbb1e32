package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/internal/jsonrpc2"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const watchdog = 2 * time.Minute

// stand is a peer that answers by hand.
type stand struct {
	t *testing.T
	// answer, if set, goes before the usual answers; false leaves it to them.
	answer func(r *jsonrpc2.Responder) bool

	mu     sync.Mutex
	conns  []*jsonrpc2.Conn
	asked  []string // methods
	closed bool
	serves sync.WaitGroup
}

func newStand(t *testing.T) *stand {
	s := &stand{t: t}
	t.Cleanup(func() {
		s.mu.Lock()
		s.closed = true
		s.mu.Unlock()
		s.cut()
		s.serves.Wait()
	})
	return s
}

func (s *stand) dial(context.Context) (io.ReadWriteCloser, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errors.New("closed")
	}
	ours, theirs := net.Pipe()
	c := jsonrpc2.New(theirs, jsonrpc2.Config{Handler: jsonrpc2.HandlerFunc(s.admit)})
	s.conns = append(s.conns, c)
	s.serves.Go(func() { c.Serve(context.Background()) })
	return ours, nil
}

func (s *stand) admit(_ context.Context, _ *jsonrpc2.Conn, r *jsonrpc2.Responder) {
	method := r.Request().Method
	s.mu.Lock()
	s.asked = append(s.asked, method)
	s.mu.Unlock()
	if s.answer != nil && s.answer(r) {
		return
	}
	switch method {
	case "connect":
		r.Reply(map[string]any{"ok": true, "protocolVersion": 3}, nil)
	case "session.getMessages":
		r.Reply(json.RawMessage(`{"events":[]}`), nil)
	default:
		r.Reply(json.RawMessage(`{"success":true}`), nil)
	}
}

// cut breaks all links.
func (s *stand) cut() {
	s.mu.Lock()
	conns := s.conns
	s.conns = nil
	s.mu.Unlock()
	for _, c := range conns {
		c.Close()
		<-c.Done()
	}
}

// now is the newest link.
func (s *stand) now() *jsonrpc2.Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conns[len(s.conns)-1]
}

func (s *stand) event(n int, typ, more string) {
	s.now().Notify("session.event", json.RawMessage(fmt.Sprintf(`{"sessionId":"s","event":{"type":%q,"id":"e%d","timestamp":"2026-01-02T03:04:05Z"%s}}`, typ, n, more)))
}

// attach attaches to it; events goes to seen.
func (s *stand) attach(cfg Config) (*Session, chan string) {
	s.t.Helper()
	seen := make(chan string, 10_000)
	cfg.Peer, cfg.Protocol, cfg.SessionID = Peer{Name: "stand", Dial: s.dial}, 3, "s"
	cfg.MinWait, cfg.MaxWait = time.Millisecond, 5*time.Millisecond
	if cfg.Events == nil {
		cfg.Events = func(_ context.Context, params ...[]byte) error {
			var all string
			for _, p := range params {
				all += string(p)
			}
			seen <- all
			return nil
		}
	}
	r, err := Attach(context.Background(), cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		r.Drop()
		<-r.Done()
	})
	r.Start()
	return r, seen
}

func await(t *testing.T, seen chan string, what string) string {
	t.Helper()
	timeout := time.After(watchdog)
	for {
		select {
		case e := <-seen:
			if strings.Contains(e, what) {
				return e
			}
		case <-timeout:
			t.Fatalf("%s did not come", what)
		}
	}
}

// Requests in flight when the link breaks: an answer is sent again, anything else
// fails and says that it may have been carried out.
func TestInFlight(t *testing.T) {
	p := newStand(t)
	var hang atomic.Bool
	hang.Store(true)
	held := make(chan struct{}, 10)
	p.answer = func(r *jsonrpc2.Responder) bool {
		if m := r.Request().Method; hang.Load() && (m == "session.send" || isAnswer(m)) {
			held <- struct{}{}
			return true // never answered
		}
		return false
	}
	s, seen := p.attach(Config{})
	type outcome struct {
		result json.RawMessage
		err    error
	}
	send, answer := make(chan outcome, 1), make(chan outcome, 1)
	into := func(c chan outcome) func(json.RawMessage, error) {
		return func(r json.RawMessage, err error) { c <- outcome{r, err} }
	}
	s.Forward(context.Background(), "session.send", json.RawMessage(`{"sessionId":"s","prompt":"x"}`), into(send))
	s.Forward(context.Background(), "session.tools.handlePendingToolCall", json.RawMessage(`{"sessionId":"s","requestId":"r"}`), into(answer))
	<-held
	<-held
	hang.Store(false)
	p.cut()
	var e *Error
	if o := <-send; !errors.As(o.err, &e) || e.Kind != transom.KindPeerGone || e.Retryable {
		t.Errorf("session.send: %v", o.err)
	}
	if o := <-answer; o.err != nil || string(o.result) != `{"success":true}` {
		t.Errorf("the answer: %s, %v", o.result, o.err)
	}
	await(t, seen, WarningLost)
	await(t, seen, InfoRestored)
	if _, err := s.Call(context.Background(), "session.mode.get", sessionOnly{"s"}); err != nil {
		t.Error(err)
	}
}

// Answers wait where there is no link; leaving ends the wait.
func TestLeaveWhileDown(t *testing.T) {
	p := newStand(t)
	s, seen := p.attach(Config{})
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.cut()
	await(t, seen, WarningLost)
	answer := make(chan error, 1)
	s.Forward(context.Background(), "session.tools.handlePendingToolCall", json.RawMessage(`{}`), func(_ json.RawMessage, err error) { answer <- err })
	_, err := s.Call(context.Background(), "session.send", sessionOnly{"s"})
	var e *Error
	if !errors.As(err, &e) || !e.Retryable {
		t.Errorf("session.send: %v", err)
	}
	if result, err := s.Close(context.Background(), "session.destroy"); err != nil || !strings.Contains(string(result), "true") {
		t.Errorf("close: %s, %v", result, err)
	}
	if err := <-answer; err == nil {
		t.Error("an answer that nobody takes any more succeeded")
	}
}

// A request of the peer goes to the client, whose answer goes back; what is about
// other sessions does not concern it.
func TestPeerAsks(t *testing.T) {
	p := newStand(t)
	told := make(chan string, 10)
	_, _ = p.attach(Config{
		Ask: func(_ context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
			if method != "hooks.invoke" {
				return nil, jsonrpc2.MethodNotFound(method)
			}
			return params, nil
		},
		Tell: func(method string, params json.RawMessage) { told <- method + string(params) },
	})
	ctx, cancel := context.WithTimeout(context.Background(), watchdog)
	defer cancel()
	raw, err := p.now().Call(ctx, "hooks.invoke", json.RawMessage(`{"sessionId":"s"}`))
	if err != nil || string(raw) != `{"sessionId":"s"}` {
		t.Errorf("%s, %v", raw, err)
	}
	if _, err := p.now().Call(ctx, "other", nil); codeOf(err) != jsonrpc2.CodeMethodNotFound {
		t.Errorf("an unknown method: %v", err)
	}
	p.now().Notify("session.lifecycle", json.RawMessage(`{"type":"session.updated","sessionId":"another"}`))
	p.now().Notify("session.lifecycle", json.RawMessage(`{"type":"session.updated","sessionId":"s"}`))
	if got := <-told; !strings.Contains(got, `"s"`) {
		t.Errorf("told %s", got)
	}
}

// A client that does not read makes the peer wait; memory is bounded.
func TestSlowClient(t *testing.T) {
	p := newStand(t)
	gate := make(chan struct{})
	var got atomic.Int64
	last := make(chan struct{})
	const events = 900
	s, _ := p.attach(Config{Events: func(ctx context.Context, _ ...[]byte) error {
		select {
		case <-gate:
		case <-ctx.Done():
		}
		if got.Add(1) == events {
			close(last)
		}
		return nil
	}})
	body := `,"data":"` + strings.Repeat("x", 8<<10) + `"`
	wrote := make(chan struct{})
	go func() {
		defer close(wrote)
		c := p.now()
		for n := range events {
			c.NotifyWait(context.Background(), "session.event", fmt.Appendf(nil, `{"sessionId":"s","event":{"type":"x","id":"e%d"%s}}`, n, body))
		}
	}()
	full := func() bool {
		s.feed.mu.Lock()
		defer s.feed.mu.Unlock()
		return s.feed.room != nil
	}
	for deadline := time.Now().Add(watchdog); !full(); {
		if time.Now().After(deadline) {
			t.Fatal("the feed never fills")
		}
		select {
		case <-wrote:
			t.Fatal("all events were taken, though the client reads none")
		case <-time.After(time.Millisecond):
		}
	}
	s.feed.mu.Lock()
	waits := s.feed.bytes
	s.feed.mu.Unlock()
	if waits > feedLimit+64<<10 {
		t.Errorf("%d bytes wait", waits)
	}
	close(gate)
	<-wrote
	<-last
}

// What a client registered at the peer is registered again on a new link, and
// known there by another handle.
func TestInterests(t *testing.T) {
	p := newStand(t)
	var serial atomic.Int64
	released := make(chan string, 1)
	p.answer = func(r *jsonrpc2.Responder) bool {
		switch r.Request().Method {
		case registerInterest:
			r.Reply(map[string]string{"handle": fmt.Sprint("h", serial.Add(1))}, nil)
		case releaseInterest:
			released <- string(r.Request().Params)
			return false
		default:
			return false
		}
		return true
	}
	s, seen := p.attach(Config{})
	raw, err := s.Call(context.Background(), registerInterest, map[string]string{"sessionId": "s", "eventType": "x"})
	if err != nil || !strings.Contains(string(raw), "h1") {
		t.Fatalf("%s, %v", raw, err)
	}
	p.cut()
	await(t, seen, InfoRestored)
	if _, err := s.Call(context.Background(), releaseInterest, map[string]string{"sessionId": "s", "handle": "h1"}); err != nil {
		t.Fatal(err)
	}
	if got := <-released; !strings.Contains(got, "h2") {
		t.Errorf("released %s", got)
	}
}

// The link is mended with what the client's newest resume said, and goes on with
// what was under way.
func TestResumesWithItsTools(t *testing.T) {
	p := newStand(t)
	resumes := make(chan string, 10)
	p.answer = func(r *jsonrpc2.Responder) bool {
		if r.Request().Method == "session.resume" {
			resumes <- string(r.Request().Params)
		}
		return false
	}
	s, seen := p.attach(Config{})
	if got := <-resumes; !strings.Contains(got, `"disableResume":true`) || !strings.Contains(got, `"continuePendingWork":true`) {
		t.Errorf("attached with %s", got)
	}
	if _, err := s.Call(context.Background(), "session.resume", map[string]any{"sessionId": "s", "tools": []any{map[string]string{"name": "look"}}}); err != nil {
		t.Fatal(err)
	}
	<-resumes
	p.event(1, "user.message", "")
	await(t, seen, `"e1"`)
	p.cut()
	await(t, seen, InfoRestored)
	if got := <-resumes; !strings.Contains(got, `"look"`) || !strings.Contains(got, `"continuePendingWork":true`) {
		t.Errorf("attached again with %s", got)
	}
}
