//go:build unix

package stress

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/transom-run/transom/model"
)

// figures are what a process holds.
type figures struct {
	rss     int // KiB
	fds     int
	threads int
	// turn is how long a turn with one tool took, the median of a few.
	turn time.Duration
}

func (f figures) String() string {
	return fmt.Sprintf("%d KiB, %d handles, %d threads, %v a turn", f.rss, f.fds, f.threads, f.turn.Round(10*time.Microsecond))
}

// measure reads the figures of the server, from the system.
func (s *server) measure() (f figures) {
	s.t.Helper()
	pid := strconv.Itoa(s.cmd.Process.Pid)
	status, err := os.ReadFile(filepath.Join("/proc", pid, "status"))
	if err != nil {
		s.t.Skip("this system has no /proc, where the figures would be read")
	}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		n, _ := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(value), " kB"))
		switch name {
		case "VmRSS":
			f.rss = n
		case "Threads":
			f.threads = n
		}
	}
	fds, err := os.ReadDir(filepath.Join("/proc", pid, "fd"))
	if err != nil {
		s.t.Skipf("the handles of another process may not be listed here: %v", err)
	}
	f.fds = len(fds)
	return f
}

// atRest is the least that the server holds within a second: what has ended is let go
// of a little later.
func (s *server) atRest() figures {
	s.t.Helper()
	least := s.measure()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for range 10 {
		<-tick.C
		f := s.measure()
		least.rss, least.fds, least.threads = min(least.rss, f.rss), min(least.fds, f.fds), min(least.threads, f.threads)
	}
	return least
}

// locks are how many locks the process holds on files.
func (s *server) locks() int {
	b, _ := os.ReadFile("/proc/locks")
	n := 0
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 4 && f[4] == strconv.Itoa(s.cmd.Process.Pid) {
			n++
		}
	}
	return n
}

// lodger is a client that uses sessions as hosts do.
type lodger struct {
	*client
	mu   sync.Mutex
	idle map[string]chan struct{}
}

func (s *server) lodger() *lodger {
	l := &lodger{idle: map[string]chan struct{}{}}
	l.client = s.client(func(e event) {
		switch e.Type {
		case "session.idle":
			l.mu.Lock()
			ch := l.idle[e.session]
			l.mu.Unlock()
			if ch != nil {
				ch <- struct{}{}
			}
		case "external_tool.requested":
			var d struct{ RequestID, ToolName string }
			_ = json.Unmarshal(e.Data, &d)
			go func() {
				if d.ToolName == "clear" {
					_, _ = l.call("session.history.clearContext", obj{"sessionId": e.session, "prompt": "go on"})
				}
				if d.ToolName != "never" {
					_, _ = l.call("session.tools.handlePendingToolCall", obj{"sessionId": e.session, "requestId": d.RequestID, "result": "done"})
				}
			}()
		}
	}, nil, nil)
	return l
}

func (l *lodger) create(id string, b *brain, dir string) {
	l.mu.Lock()
	l.idle[id] = make(chan struct{}, 64)
	l.mu.Unlock()
	l.ok("session.create", obj{"sessionId": id, "model": "m", "provider": b.provider(), "workingDirectory": dir, "streaming": true, "tools": []obj{
		{"name": "host", "description": "d", "skipPermission": true}, {"name": "never", "description": "d", "skipPermission": true},
		{"name": "clear", "description": "d", "skipPermission": true, "isTerminal": true}}}, nil)
}

func (l *lodger) leave(id string) {
	l.mu.Lock()
	delete(l.idle, id)
	l.mu.Unlock()
}

// turn sends a prompt and waits for its end.
func (l *lodger) turn(id, prompt string) {
	l.mu.Lock()
	idle := l.idle[id]
	l.mu.Unlock()
	l.ok("session.send", obj{"sessionId": id, "prompt": prompt}, nil)
	l.until(id, idle)
}

func (l *lodger) until(id string, idle chan struct{}) {
	select {
	case <-idle:
	case <-time.After(watchdog):
		l.s.dump(id + " does not become idle")
	case <-l.ended:
		l.s.t.Errorf("the connection has ended")
	}
}

// soakModel calls the tool that the newest prompt names, once.
func soakModel(_ http.Header, req *model.Request, _ string) reply {
	last := req.Messages[len(req.Messages)-1]
	if last.Role == model.User {
		for _, name := range []string{"host", "never", "clear", "bash"} {
			if strings.Contains(last.Text, "call "+name) {
				return reply{calls: []model.Call{{ID: fmt.Sprintf("c%d", rand.Int64()), Name: name, Arguments: `{"command":"echo x","description":"d"}`}}}
			}
		}
	}
	return reply{text: strings.Repeat("some words of an answer ", 20)}
}

// life is a session from its beginning to its end.
func (l *lodger) life(id string, b *brain, dir string, end int) {
	l.create(id, b, dir)
	defer l.leave(id)
	l.turn(id, "call host")
	l.turn(id, "call clear")
	l.turn(id, "hello")
	if end%4 == 0 {
		l.ok("session.permissions.setApproveAll", obj{"sessionId": id, "enabled": true}, nil)
		l.turn(id, "call bash")
	}
	if end%3 == 0 {
		l.mu.Lock()
		idle := l.idle[id]
		l.mu.Unlock()
		l.ok("session.send", obj{"sessionId": id, "prompt": "call never"}, nil)
		l.ok("session.abort", obj{"sessionId": id}, nil)
		l.until(id, idle)
	}
	switch end % 5 {
	case 0:
		l.ok("session.delete", obj{"sessionId": id}, nil)
	case 1:
		l.ok("session.shutdown", obj{"sessionId": id}, nil)
	case 2:
		l.ok("session.destroy", obj{"sessionId": id}, nil)
		l.mu.Lock()
		l.idle[id] = make(chan struct{}, 64)
		l.mu.Unlock()
		l.ok("session.resume", obj{"sessionId": id, "provider": b.provider()}, nil)
		l.turn(id, "hello again")
		l.ok("session.destroy", obj{"sessionId": id}, nil)
	default:
		l.ok("session.destroy", obj{"sessionId": id}, nil)
	}
}

// TestSoak uses a server for as long as it is told to, and then looks whether it
// holds what it held at the start.
func TestSoak(t *testing.T) {
	d := *runFor
	if d == 0 {
		d = 4 * time.Second
	}
	for name, stdio := range map[string]bool{"stdio": true, "tcp": false} {
		t.Run(name, func(t *testing.T) { soak(t, stdio, d) })
	}
}

func soak(t *testing.T, stdio bool, d time.Duration) {
	b, dir := newBrain(t, soakModel), t.TempDir()
	s := start(t, t.TempDir(), stdio, nil, "--no-auto-login")
	first := s.lodger()
	timed := func(round string) figures {
		id := "timed-" + round
		first.create(id, b, dir)
		var took []time.Duration
		for range 21 {
			begun := time.Now()
			first.turn(id, "call host")
			took = append(took, time.Since(begun))
		}
		first.ok("session.delete", obj{"sessionId": id}, nil)
		first.leave(id)
		f := s.atRest()
		slices.Sort(took)
		f.turn = took[len(took)/2]
		return f
	}
	n := 0
	play := func(d time.Duration) {
		until := time.Now().Add(d)
		var mu sync.Mutex
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				l := first
				for time.Now().Before(until) && !t.Failed() {
					mu.Lock()
					n++
					i := n
					mu.Unlock()
					if !stdio && i%7 == 0 { // a client that goes without a word, its session open
						l = s.lodger()
						id := fmt.Sprintf("lost-%d", i)
						l.create(id, b, dir)
						l.ok("session.send", obj{"sessionId": id, "prompt": "call never"}, nil)
						l.conn.Close()
						<-l.ended
						l = first
						continue
					}
					l.life(fmt.Sprintf("life-%d", i), b, dir, i)
				}
			})
		}
		all.Wait()
	}
	play(d / 8) // caches, pools and stacks come to the size that they have
	before := timed("before")
	locks := s.locks()
	play(d - d/8)
	after := timed("after")
	t.Logf("%d sessions in %v; before: %v; after: %v", n, d, before, after)
	if got := s.locks(); got > locks+1 {
		t.Errorf("%d locks are held, %d at the start", got, locks)
	}
	if after.fds > before.fds+8 {
		t.Errorf("%d handles are open, %d at the start", after.fds, before.fds)
	}
	if after.threads > before.threads+12 {
		t.Errorf("%d threads, %d at the start", after.threads, before.threads)
	}
	// What is remembered of a session that ended is its name, in a list of the store.
	if most := before.rss + before.rss/2 + 20<<10 + n; after.rss > most {
		t.Errorf("%d KiB are in use, %d at the start", after.rss, before.rss)
	}
	if after.turn > 10*before.turn+200*time.Millisecond {
		t.Errorf("a turn takes %v, %v at the start", after.turn, before.turn)
	}
	if why := b.broken(); why != "" {
		t.Errorf("a request that no provider takes: %.3000s", why)
	}
	s.stop()
}

// TestSlowClient: a client that does not read costs what is said of it, and then
// its connection; nobody else waits for it.
func TestSlowClient(t *testing.T) {
	b, dir := newBrain(t, func(_ http.Header, req *model.Request, _ string) reply {
		if strings.Contains(req.Messages[len(req.Messages)-1].Text, "much") {
			return reply{text: strings.Repeat(strings.Repeat("much", 250)+" ", 600)}
		}
		return soakModel(nil, req, "")
	}), t.TempDir()
	s := start(t, t.TempDir(), false, nil, "--no-auto-login")
	l := s.lodger()
	l.create("shared", b, dir)
	l.create("own", b, dir)
	l.turn("own", "call host")
	before := s.measure()

	// The deaf ones attach, and never read again.
	var deaf []net.Conn
	for i := range 4 {
		conn, err := net.Dial("tcp", "127.0.0.1:"+s.port)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"session.resume","params":{"sessionId":"shared"}}`, i)
		fmt.Fprintf(conn, "Content-Length: %d\r\n\r\n%s", len(body), body)
		deaf = append(deaf, conn)
	}
	l.turn("shared", "hello")
	longest := time.Duration(0)
	for range 12 {
		l.turn("shared", "much") // 600 KB of text in 600 deltas, for each of the deaf
		begun := time.Now()
		l.turn("own", "call host")
		l.ok("ping", obj{}, nil)
		longest = max(longest, time.Since(begun))
	}
	// And they ask without reading the answers.
	for _, conn := range deaf {
		body := `{"jsonrpc":"2.0","id":9,"method":"session.getMessages","params":{"sessionId":"shared"}}`
		_ = conn.SetWriteDeadline(time.Now().Add(2 * time.Second))
		for range 40 {
			if _, err := fmt.Fprintf(conn, "Content-Length: %d\r\n\r\n%s", len(body), body); err != nil {
				break
			}
		}
	}
	l.turn("own", "call host")
	after := s.measure()
	t.Logf("before: %v; with 4 deaf clients: %v; the longest turn of another session: %v", before, after, longest)
	if most := before.rss + 4*(64+24)<<10 + 100<<10; after.rss > most {
		t.Errorf("%d KiB are in use, %d before", after.rss, before.rss)
	}
	if longest > 10*time.Second {
		t.Errorf("another session waited %v", longest)
	}
	s.stop()
}
