package host

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/transom-run/transom/mcp"
)

// The times of a process's end: after its input was closed, and after it was asked
// to end, before it is forced to.
const (
	closeGrace = 400 * time.Millisecond
	termGrace  = 600 * time.Millisecond
)

// silence is how long a server may leave the question what it is unanswered before
// it is taken for one of the older generation.
const silence = 8 * time.Second

// maxLine bounds one message of a server.
const maxLine = 64 << 20

// maxStderr is how much of what a server prints last is kept for people.
const maxStderr = 2 << 10

// process is a server that runs as a child: one message a line, on its stdin and
// stdout. Lines of its stdout that are no messages are passed over: programs print
// there what they should not.
type process struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	in     *io.PipeReader // what the client reads
	out    *io.PipeWriter
	stderr tail
	done   chan struct{} // closed when the program has ended and was waited for
	err    error         // of Wait

	ended   sync.Once
	over    atomic.Bool // its output has ended, or it reads no more: so has it, or will
	cut     atomic.Bool // it ran and spoke when it was closed
	writing sync.Mutex
	asked   bool        // the first message was seen
	unheard *time.Timer // until the question what it is counts as unanswered
	id      json.RawMessage
}

// start runs a server's program.
func start(cfg mcp.Server, dir string, environ []string, getenv func(string) string) (*process, error) {
	if cfg.Command == "" {
		return nil, errors.New("its configuration names no command to start")
	}
	cmd := exec.Command(cfg.Command, cfg.Args...)
	cmd.Env = append([]string(nil), environ...)
	for name, value := range cfg.Env {
		if getenv != nil {
			value = resolve(value, getenv)
		}
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	cmd.Dir = dir
	if cfg.Dir != "" {
		cmd.Dir = cfg.Dir
		if !filepath.IsAbs(cfg.Dir) {
			cmd.Dir = filepath.Join(dir, cfg.Dir)
		}
	}
	p := &process{cmd: cmd, done: make(chan struct{})}
	lead(cmd)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, theirs, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = theirs, &p.stderr
	cmd.WaitDelay = termGrace // descendants may hold stderr
	p.stdin = stdin
	p.in, p.out = io.Pipe()
	err = cmd.Start()
	theirs.Close()
	if err != nil {
		stdout.Close()
		return nil, fmt.Errorf("it could not be started: %w", err)
	}
	go p.run(stdout)
	return p, nil
}

// run passes messages on until the program ends, and ends what it leaves behind in
// its group.
func (p *process) run(stdout *os.File) {
	defer close(p.done)
	read := make(chan struct{})
	go func() {
		defer close(read)
		r := bufio.NewReaderSize(stdout, 64<<10)
		err := p.lines(r)
		if err == nil {
			err = io.EOF
		}
		p.out.CloseWithError(err)
		_, _ = io.Copy(io.Discard, r) // so that it can end
	}()
	p.err = p.cmd.Wait()
	force(p.cmd.Process)
	_ = stdout.SetReadDeadline(time.Now().Add(termGrace)) // what left the group may hold it
	<-read
	stdout.Close()
	p.quiet()
}

// lines copies messages, whole lines only.
func (p *process) lines(r *bufio.Reader) error {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull) && len(line) <= maxLine:
			continue
		case len(line) > maxLine:
			return fmt.Errorf("it sent a message of more than %d MiB", maxLine>>20)
		}
		if text := bytes.TrimSpace(line); len(text) > 0 && (text[0] == '{' || text[0] == '[') {
			p.quiet()
			if !bytes.HasSuffix(line, []byte("\n")) {
				line = append(line, '\n')
			}
			if _, err := p.out.Write(line); err != nil {
				return nil //nolint:nilerr // nobody reads any more
			}
		}
		if err != nil {
			p.over.Store(true)
			return nil //nolint:nilerr // the end of the output is said by Wait
		}
		line = line[:0]
		if cap(line) > 1<<20 {
			line = nil
		}
	}
}

// quiet ends the wait for the answer to the first question.
func (p *process) quiet() {
	p.writing.Lock()
	defer p.writing.Unlock()
	if p.unheard != nil {
		p.unheard.Stop()
		p.unheard = nil
	}
}

// Read reads what the server sends.
func (p *process) Read(b []byte) (int, error) { return p.in.Read(b) }

// Write sends to the server. The question what it is, is answered in its name
// where it keeps silent: older programs may pass over what they do not know.
func (p *process) Write(b []byte) (int, error) {
	p.writing.Lock()
	if !p.asked {
		p.asked = true
		var first struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		if json.Unmarshal(b, &first) == nil && first.Method == "server/discover" {
			p.id = first.ID
			p.unheard = time.AfterFunc(silence, p.answer)
		}
	}
	p.writing.Unlock()
	n, err := p.stdin.Write(b)
	if err != nil {
		p.over.Store(true)
	}
	return n, err
}

// answer says in the server's name that it does not know the question.
func (p *process) answer() {
	p.writing.Lock()
	waits := p.unheard != nil
	p.unheard = nil
	p.writing.Unlock()
	if waits {
		fmt.Fprintf(p.out, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no answer"}}`+"\n", p.id)
	}
}

// Close ends the program and everything in its group: its input is closed, then it
// is asked to end, then forced to.
func (p *process) Close() error {
	p.ended.Do(func() {
		select {
		case <-p.done:
		default:
			p.cut.Store(!p.over.Load())
		}
		p.quiet()
		p.in.Close()
		p.stdin.Close()
		if !p.within(closeGrace) {
			ask(p.cmd.Process)
			if !p.within(termGrace) {
				force(p.cmd.Process)
			}
		}
		<-p.done
	})
	return nil
}

func (p *process) within(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-p.done:
		return true
	case <-t.C:
		return false
	}
}

// ending says how the program ended, with what it printed last. why is the error that
// its connection ended with, if any.
func (p *process) ending(why error) string {
	text := "its process ended"
	select {
	case <-p.done:
		switch {
		case p.cut.Load() && why != nil:
			text = fmt.Sprintf("it was ended, because what it sent cannot be read: %v", why)
		case p.err != nil:
			text += " (" + p.err.Error() + ")"
		}
	default:
		text = "it closed its output"
	}
	if said := p.stderr.String(); said != "" {
		text += "; it printed: " + said
	}
	return text
}

// tail keeps the end of what is written to it.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, b...)
	if over := len(t.buf) - maxStderr; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.ToValidUTF8(strings.TrimSpace(string(t.buf)), "\ufffd")
}

// resolve looks a reference up: $NAME or ${NAME} anywhere in the value, or the
// whole value as a name. What names nothing is as it stands.
func resolve(value string, getenv func(string) string) string {
	if strings.Contains(value, "$") {
		return os.Expand(value, getenv)
	}
	if found := getenv(value); found != "" {
		return found
	}
	return value
}
