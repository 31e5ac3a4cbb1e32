package transom

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/internal/session"
	"github.com/transom-run/transom/internal/shell"
)

// Shells runs commands that a host's user asked for, beside the turns. They are
// part of no conversation. The session ends those that run when it ends.
type Shells struct{ s *Session }

// Shells returns what runs commands for the session's users.
func (h *Session) Shells() Shells { return Shells{h} }

// shells are the commands of one session that run.
type shells struct {
	mu     sync.Mutex
	byID   map[string]*shell.Process
	closed bool
}

func (t *shells) add(id string, p *shell.Process) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	if t.byID == nil {
		t.byID = map[string]*shell.Process{}
	}
	t.byID[id] = p
	return true
}

func (t *shells) find(id string) *shell.Process {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byID[id]
}

func (t *shells) forget(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.byID, id)
}

// end ends all commands and waits for them.
func (t *shells) end() {
	t.mu.Lock()
	t.closed = true
	var all []*shell.Process
	for _, p := range t.byID {
		all = append(all, p)
	}
	t.mu.Unlock()
	for _, p := range all {
		p.End()
	}
	for _, p := range all {
		p.Wait()
	}
}

// ShellCommand is a command for the system's shell.
type ShellCommand struct {
	Command string
	Dir     string        // "" is the session's working directory
	Timeout time.Duration // 0 lets it run
	// Output is given what it prints, as it comes; errors says on which stream.
	Output func(errors bool, data []byte)
}

// start starts a command under an id.
func (t Shells) start(op, id string, c ShellCommand) (*shell.Process, error) {
	s := t.s.sess
	bad := func(msg string) error { return &Error{Op: op, Kind: KindInvalidParams, SessionID: t.s.id, Msg: msg} }
	dir := c.Dir
	switch {
	case strings.TrimSpace(c.Command) == "":
		return nil, bad("the command is empty")
	case strings.ContainsRune(c.Command, 0):
		return nil, bad("the command holds a zero byte, which no command line can")
	case dir == "":
		dir = s.View().Dir
	case !filepath.IsAbs(dir):
		dir = filepath.Join(s.View().Dir, dir)
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, bad("there is no directory " + dir + " to run the command in")
	}
	p, err := shell.Start(shell.Config{Command: c.Command, Dir: dir, Env: t.s.rt.environ(), Timeout: c.Timeout, Output: c.Output})
	if err != nil {
		return nil, &Error{Op: op, Kind: KindInternal, SessionID: t.s.id, Msg: "the command could not be started: " + err.Error(), Err: err}
	}
	if !s.shells.add(id, p) {
		p.End()
		return nil, notFound(op, t.s.id)
	}
	return p, nil
}

// Exec starts a command and returns its id at once. done is called once with its
// exit code when it has ended.
func (t Shells) Exec(c ShellCommand, done func(id string, code int)) (string, error) {
	id := "shell-" + session.NewID()
	p, err := t.start("session.shell.exec", id, c)
	if err != nil {
		return "", err
	}
	go func() {
		code := p.Wait()
		t.s.sess.shells.forget(id)
		done(id, code)
	}()
	return id, nil
}

// Kill tells a command to end by a signal ("SIGTERM", "SIGINT" or "SIGKILL"). It
// reports whether there was one.
func (t Shells) Kill(id, signal string) bool {
	p := t.s.sess.shells.find(id)
	return p != nil && p.Signal(shell.Signal(signal))
}

// ShellResult is what a command came to.
type ShellResult struct {
	ToolCallID string // of the events that tell of it
	Code       int
	Output     string // of both streams, as it came
}

// maxShellOutput bounds the output that is returned of a command.
const maxShellOutput = 1 << 20

// Run runs a command to its end, and tells clients of it as of a tool's call. The
// name cancels it: see [Shells.Cancel].
func (t Shells) Run(ctx context.Context, name, command string) (ShellResult, error) {
	const op = "session.shell.executeUserRequested"
	r := ShellResult{ToolCallID: "user-" + session.NewID()}
	if name == "" || t.s.sess.shells.find("run-"+name) != nil {
		return r, &Error{Op: op, Kind: KindInvalidParams, SessionID: t.s.id, Msg: "a command needs a requestId that no other one has"}
	}
	var out sharedOutput
	p, err := t.start(op, "run-"+name, ShellCommand{Command: command, Output: func(_ bool, b []byte) { out.add(b) }})
	if err != nil {
		return r, err
	}
	defer t.s.sess.shells.forget("run-" + name)
	args, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		return r, wrap(op, t.s.id, err)
	}
	t.s.sess.tell(event.ToolStart{ToolCallID: r.ToolCallID, ToolName: "bash", Arguments: args})
	select {
	case <-p.Done():
	case <-ctx.Done():
		p.End()
	}
	r.Code, r.Output = p.Wait(), t.s.rt.keys.redact(out.text())
	done := event.ToolComplete{ToolCallID: r.ToolCallID, Success: r.Code == 0, Result: &event.ToolResult{Content: r.Output}}
	if !done.Success {
		done.Error = &event.ToolError{Code: "failure", Message: fmt.Sprintf("the command ended with exit code %d", r.Code)}
	}
	t.s.sess.tell(done)
	return r, wrap(op, t.s.id, context.Cause(ctx))
}

// Cancel ends a command that [Shells.Run] runs under a name. It reports whether
// there was one.
func (t Shells) Cancel(name string) bool {
	p := t.s.sess.shells.find("run-" + name)
	if p == nil {
		return false
	}
	p.End()
	return true
}

// sharedOutput collects both streams.
type sharedOutput struct {
	mu   sync.Mutex
	b    []byte
	more int
}

func (o *sharedOutput) add(b []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := min(len(b), maxShellOutput-len(o.b))
	o.b = append(o.b, b[:n]...)
	o.more += len(b) - n
}

func (o *sharedOutput) text() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := strings.ToValidUTF8(string(o.b), "\ufffd")
	if o.more > 0 {
		s += fmt.Sprintf("\n[… %d more bytes of output …]\n", o.more)
	}
	return s
}

// release ends what the session started beside its turns.
func (s *loaded) release() error {
	s.shells.end()
	s.stopFactories()
	var ending sync.WaitGroup
	var own error
	ending.Go(func() { own = s.agents.servers.close() })
	var err error
	if h := s.hostOf(); h != nil {
		err = h.Close()
	}
	ending.Wait()
	return errors.Join(err, own, s.cleanup())
}
