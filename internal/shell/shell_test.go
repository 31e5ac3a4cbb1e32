//go:build unix

package shell

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// prints collects what a command prints.
type prints struct {
	mu       sync.Mutex
	out, err bytes.Buffer
	grown    chan struct{}
}

func (p *prints) output(errors bool, data []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if errors {
		p.err.Write(data)
	} else {
		p.out.Write(data)
	}
	select {
	case p.grown <- struct{}{}:
	default:
	}
}

func start(t *testing.T, cfg Config) (*Process, *prints) {
	t.Helper()
	w := &prints{grown: make(chan struct{}, 1)}
	cfg.Output, cfg.Env = w.output, os.Environ()
	if cfg.Dir == "" {
		cfg.Dir = t.TempDir()
	}
	p, err := Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return p, w
}

func TestRun(t *testing.T) {
	dir := t.TempDir()
	p, w := start(t, Config{Command: "echo out; echo err >&2; pwd; exit 3", Dir: dir})
	if code := p.Wait(); code != 3 {
		t.Errorf("code %d", code)
	}
	real, _ := filepath.EvalSymlinks(dir)
	if w.out.String() != "out\n"+real+"\n" && w.out.String() != "out\n"+dir+"\n" || w.err.String() != "err\n" {
		t.Errorf("%q and %q", w.out.String(), w.err.String())
	}
	if p.Signal(Kill) {
		t.Error("an ended command took a signal")
	}
	p.End()
	p, _ = start(t, Config{Command: "nothing-of-this-name"})
	if code := p.Wait(); code != 127 {
		t.Errorf("code %d of a command that is not there", code)
	}
	if _, err := Start(Config{Command: "true", Dir: filepath.Join(dir, "nowhere")}); err == nil {
		t.Error("started nowhere")
	}
}

// The whole group ends: by a signal, a timeout, and by force where it will not.
func TestEnd(t *testing.T) {
	for name, tc := range map[string]struct {
		command string
		cfg     Config
		end     func(*Process)
		code    int
	}{
		"terminate": {"sleep 100 & echo go; wait", Config{}, func(p *Process) { p.Signal(Terminate) }, 143},
		"interrupt": {"trap 'exit 9' INT; echo go; while :; do sleep 0.05; done", Config{}, func(p *Process) { p.Signal(Interrupt) }, 9},
		"kill":      {"trap '' TERM INT; echo go; sleep 100", Config{}, func(p *Process) { p.Signal(Kill) }, 137},
		"end":       {"trap '' TERM; echo go; sleep 100; sleep 100", Config{Grace: 20 * time.Millisecond}, (*Process).End, 137},
		"timeout":   {"echo go; sleep 100", Config{Timeout: 50 * time.Millisecond}, func(*Process) {}, 143},
	} {
		t.Run(name, func(t *testing.T) {
			tc.cfg.Command = tc.command
			p, w := start(t, tc.cfg)
			if tc.cfg.Timeout == 0 {
				<-w.grown // it says that it has begun
			}
			tc.end(p)
			if code := p.Wait(); code != tc.code {
				t.Errorf("code %d, want %d", code, tc.code)
			}
		})
	}
}

// Output that nobody keeps up with does not end the command, and a descendant that
// holds the pipe does not keep its end from being told.
func TestOutput(t *testing.T) {
	p, w := start(t, Config{Command: "sleep 1 & head -c 300000 /dev/zero | tr '\\0' x"})
	if p.Wait() != 0 || w.out.String() != strings.Repeat("x", 300000) {
		t.Errorf("%d bytes", w.out.Len())
	}
}
