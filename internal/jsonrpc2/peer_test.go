package jsonrpc2

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// peer is the other end of a connection under test: it writes what a test says,
// well-formed or not, and reads frames.
type peer struct {
	t    testing.TB
	conn net.Conn
	in   *frameReader
	// served gets the result of Serve.
	served chan error
}

// dial serves a Conn on one end of a pipe and returns it with the other end.
// Faults reported fail the test unless cfg.Report is set.
func dial(t testing.TB, cfg Config) (*Conn, *peer) {
	t.Helper()
	if cfg.Report == nil {
		cfg.Report = func(err error) { t.Errorf("reported: %v", err) }
	}
	here, there := net.Pipe()
	c := New(here, cfg)
	p := &peer{t: t, conn: there, in: newFrameReader(there), served: make(chan error, 1)}
	go func() { p.served <- c.Serve(context.Background()) }()
	return c, p
}

// hangUp closes the peer's end and returns what Serve returned.
func (p *peer) hangUp() error {
	_ = p.conn.Close()
	return <-p.served
}

func frame(body string) string { return string(appendHeader(nil, len(body))) + body }

func (p *peer) write(raw string) {
	p.t.Helper()
	if _, err := io.WriteString(p.conn, raw); err != nil {
		p.t.Fatalf("peer write: %v", err)
	}
}

func (p *peer) send(body string) {
	p.t.Helper()
	p.write(frame(body))
}

func (p *peer) read() (string, error) {
	n, err := p.in.header()
	if err != nil {
		return "", err
	}
	body, err := p.in.body(n)
	return string(body), err
}

func (p *peer) next() string {
	p.t.Helper()
	body, err := p.read()
	if err != nil {
		p.t.Fatalf("peer read: %v", err)
	}
	return body
}

func (p *peer) expect(want string) {
	p.t.Helper()
	if got := p.next(); got != want {
		p.t.Fatalf("on the wire:\n got %s\nwant %s", got, want)
	}
}

// expectError reads an error answer and compares id and code.
func (p *peer) expectError(id string, code int) {
	p.t.Helper()
	body := p.next()
	var m struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   *struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	if err := json.Unmarshal([]byte(body), &m); err != nil || m.Error == nil {
		p.t.Fatalf("want an error answer, got %s (%v)", body, err)
	}
	if string(m.ID) != id || m.Error.Code != code || m.Version != "2.0" || m.Error.Message == "" {
		p.t.Fatalf("want error %d with id %s, got %s", code, id, body)
	}
}

// ping shows that the connection is alive and in step.
func (p *peer) ping(id string) {
	p.t.Helper()
	p.send(`{"jsonrpc":"2.0","id":` + id + `,"method":"ping"}`)
	p.expect(`{"jsonrpc":"2.0","id":` + id + `,"result":"pong"}`)
}

// pong answers ping, and echo with its params; other requests are not found.
func pong(_ context.Context, _ *Conn, r *Responder) {
	switch req := r.Request(); req.Method {
	case "ping":
		r.Reply("pong", nil)
	case "echo":
		r.Reply(req.Params, nil)
	default:
		r.Reply(nil, MethodNotFound(req.Method))
	}
}

// bubble runs a test in a synctest bubble.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

func longName(n int) string { return strings.Repeat("x", n) }

func request(id int, method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params)
}
