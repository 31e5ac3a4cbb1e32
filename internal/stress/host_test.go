//go:build unix

package stress

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/transom-run/transom/mcp/mcptest"
)

var (
	seed    = flag.Uint64("stress.seed", 0, "the seed of a run to play again; 0 takes a new one")
	runFor  = flag.Duration("stress.for", 0, "how long to play; 0 is a few seconds")
	useRace = flag.Bool("stress.race", false, "build the server with the race detector")
)

// watchdog is how long anything may take before it counts as hung.
const watchdog = 4 * time.Minute

// program is the server, built once.
var program string

func TestMain(m *testing.M) {
	mcptest.Main() // serves, where this process is to be an MCP server
	flag.Parse()
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "stress")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		program = filepath.Join(dir, "transom")
		args := []string{"build", "-o", program}
		if *useRace {
			args = append(args, "-race")
		}
		if out, err := exec.Command("go", append(args, "github.com/transom-run/transom/cmd/transom")...).CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "%v\n%s", err, out)
			return 1
		}
		return m.Run()
	}())
}

// server is a transom that runs.
type server struct {
	t      testing.TB
	cmd    *exec.Cmd
	home   string
	stderr *buffer
	port   string
	std    io.ReadWriteCloser // of a server on stdio
	ended  chan struct{}
}

// buffer collects what is written to it.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.b.Len() > 4<<20 {
		b.b.Reset()
	}
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

type pipes struct {
	io.Reader
	io.WriteCloser
}

var listening = regexp.MustCompile(`listening on port (\d+)`)

// start starts a server, on stdio or on a port.
func start(t testing.TB, home string, stdio bool, env []string, args ...string) *server {
	t.Helper()
	s := &server{t: t, home: home, stderr: &buffer{}, ended: make(chan struct{})}
	args = append([]string{"--headless", "--log-level", "all"}, args...)
	if stdio {
		args = append(args, "--stdio")
	}
	s.cmd = exec.Command(program, args...)
	s.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "COPILOT_HOME=" + filepath.Join(home, "transom"), "TMPDIR=" + os.TempDir()}, env...)
	s.cmd.Dir = home
	s.cmd.Stderr = s.stderr
	in, err := s.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if stdio {
		s.std = pipes{out, in}
	} else {
		line, err := bufio.NewReader(out).ReadString('\n')
		if m := listening.FindStringSubmatch(line); m != nil {
			s.port = m[1]
		} else {
			t.Fatalf("stdout begins with %q (%v)\n%s", line, err, s.stderr)
		}
	}
	go func() {
		_ = s.cmd.Wait()
		close(s.ended)
	}()
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		<-s.ended
	})
	return s
}

// running reports whether the server has not ended.
func (s *server) running() bool {
	select {
	case <-s.ended:
		return false
	default:
		return true
	}
}

// stop ends the server in order and checks that it ends well.
func (s *server) stop() {
	s.t.Helper()
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.ended:
	case <-time.After(watchdog):
		s.dump("the server does not end")
	}
	if code := s.cmd.ProcessState.ExitCode(); code != 0 {
		s.t.Errorf("the server ended with %d\n%s", code, tail(s.stderr.String()))
	}
	s.sound()
}

// sound checks that nothing went wrong inside.
func (s *server) sound() {
	s.t.Helper()
	for _, bad := range []string{"panic:", "fatal error:", "DATA RACE", "goroutine 1 ["} {
		if text := s.stderr.String(); strings.Contains(text, bad) {
			s.t.Fatalf("the server's log has %q:\n%s", bad, text[strings.Index(text, bad):])
		}
	}
}

// dump ends a server that hangs, for its goroutines, and the test.
func (s *server) dump(why string) {
	s.t.Helper()
	_ = s.cmd.Process.Signal(syscall.SIGQUIT)
	select {
	case <-s.ended:
	case <-time.After(10 * time.Second):
	}
	s.t.Fatalf("%s\n%s", why, tail(s.stderr.String()))
}

func tail(s string) string {
	if len(s) > 60_000 {
		return "…" + s[len(s)-60_000:]
	}
	return s
}

// dial connects to the server's port, or takes its stdio.
func (s *server) dial() (io.ReadWriteCloser, error) {
	if s.std != nil {
		return s.std, nil
	}
	return net.Dial("tcp", "127.0.0.1:"+s.port)
}

// message is one from the server.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`

	raw   []byte
	event event
}

type event struct {
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	Ephemeral bool            `json:"ephemeral"`
	Data      json.RawMessage `json:"data"`

	session string
}

// client is one connection. Its callbacks run on the reader's goroutine and must
// not wait for the connection.
type client struct {
	s    *server
	conn io.ReadWriteCloser

	onEvent   func(event)
	onRequest func(m message) (result any, answer bool)
	onFrame   func([]byte)

	write   sync.Mutex
	mu      sync.Mutex
	serial  int
	pending map[int]chan message
	oddly   []string // answers to nothing, second answers
	ended   chan struct{}
}

var errEnded = errors.New("the connection has ended")

func (s *server) client(onEvent func(event), onRequest func(message) (any, bool), onFrame func([]byte)) *client {
	s.t.Helper()
	conn, err := s.dial()
	if err != nil {
		s.t.Fatalf("dial: %v\n%s", err, tail(s.stderr.String()))
	}
	c := &client{s: s, conn: conn, onEvent: onEvent, onRequest: onRequest, onFrame: onFrame, pending: map[int]chan message{}, ended: make(chan struct{})}
	go c.read()
	return c
}

func (c *client) read() {
	defer close(c.ended)
	r := bufio.NewReaderSize(c.conn, 64<<10)
	for {
		m, err := readMessage(r)
		if err != nil {
			return
		}
		if c.onFrame != nil {
			c.onFrame(m.raw)
		}
		switch {
		case m.Method == "session.event":
			if c.onEvent != nil {
				c.onEvent(m.event)
			}
		case m.Method != "" && len(m.ID) > 0:
			if c.onRequest == nil {
				go c.answer(m, nil, true)
				continue
			}
			result, answer := c.onRequest(m)
			go c.answer(m, result, answer)
		case m.Method == "":
			c.settle(m)
		}
	}
}

func readMessage(r *bufio.Reader) (m message, err error) {
	n := -1
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return m, err
		}
		line = strings.TrimRight(line, "\r\n")
		if line == "" {
			break
		}
		if _, err := fmt.Sscanf(line, "Content-Length: %d", &n); err != nil {
			return m, fmt.Errorf("header %q", line)
		}
	}
	m.raw = make([]byte, n)
	if _, err := io.ReadFull(r, m.raw); err != nil {
		return m, err
	}
	if err := json.Unmarshal(m.raw, &m); err != nil {
		return m, err
	}
	if m.Method == "session.event" {
		var p struct {
			SessionID string `json:"sessionId"`
			Event     event  `json:"event"`
		}
		if err := json.Unmarshal(m.Params, &p); err != nil {
			return m, err
		}
		m.event = p.Event
		m.event.session = p.SessionID
	}
	return m, nil
}

// answer answers a request of the server.
func (c *client) answer(m message, result any, answer bool) {
	if !answer {
		return
	}
	if raw, ok := result.(json.RawMessage); ok && raw == nil {
		result = nil
	}
	if e, ok := result.(error); ok {
		_ = c.send(map[string]any{"jsonrpc": "2.0", "id": m.ID, "error": map[string]any{"code": -32603, "message": e.Error()}})
		return
	}
	_ = c.send(map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": result})
}

// settle takes an answer of the server.
func (c *client) settle(m message) {
	var id int
	known := json.Unmarshal(m.ID, &id) == nil
	c.mu.Lock()
	ch := c.pending[id]
	if ch == nil || !known {
		if string(m.ID) != "null" {
			c.oddly = append(c.oddly, string(m.raw))
		}
		c.mu.Unlock()
		return
	}
	delete(c.pending, id)
	c.mu.Unlock()
	ch <- m
}

func (c *client) send(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return c.sendRaw(b)
}

func (c *client) sendRaw(body []byte) error {
	c.write.Lock()
	defer c.write.Unlock()
	_, err := c.conn.Write(append(fmt.Appendf(nil, "Content-Length: %d\r\n\r\n", len(body)), body...))
	return err
}

// begin sends a request whose params are JSON, or something that is none.
func (c *client) begin(method string, params []byte) (<-chan message, error) {
	ch := make(chan message, 1)
	c.mu.Lock()
	c.serial++
	id := c.serial
	c.pending[id] = ch
	c.mu.Unlock()
	name, err := json.Marshal(method)
	if err != nil {
		return nil, err
	}
	return ch, c.sendRaw(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":%s,"params":%s}`, id, name, params))
}

// call asks and waits.
func (c *client) call(method string, params any) (message, error) {
	b, err := json.Marshal(params)
	if err != nil {
		return message{}, err
	}
	ch, err := c.begin(method, b)
	if err != nil {
		return message{}, errEnded
	}
	return c.wait(method, ch)
}

func (c *client) wait(method string, ch <-chan message) (message, error) {
	select {
	case m := <-ch:
		return m, nil
	case <-c.ended:
		return message{}, errEnded
	case <-time.After(watchdog):
		c.s.dump(method + " has no answer")
		return message{}, errEnded
	}
}

// ok asks what must succeed.
func (c *client) ok(method string, params, result any) {
	c.s.t.Helper()
	m, err := c.call(method, params)
	if err != nil || m.Error != nil {
		c.s.t.Fatalf("%s: %v %s\n%s", method, err, m.raw, tail(c.s.stderr.String()))
	}
	if result != nil {
		if err := json.Unmarshal(m.Result, result); err != nil {
			c.s.t.Fatalf("%s: %v in %s", method, err, m.Result)
		}
	}
}

type obj = map[string]any

// Raw is the message as it came.
func (m message) Raw() string { return string(m.raw) }
