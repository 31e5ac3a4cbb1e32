// Package shell runs commands that a person or a file of hooks asked for, beside the
// tools of a session.
//
//	p, err := shell.Start(shell.Config{Dir: dir, Command: "make test", Output: show})
//	…
//	p.Signal(shell.Terminate)
//	code := p.Wait()
//
// # Ownership
//
// A Process owns the command and the process group that it leads. Ending it ends
// the whole group; what has left the group, by making a session of its own, is
// nobody's. A command that ends by itself leaves what it started running.
//
// # Ordering
//
// Output is handed over as it comes, piece by piece, from one goroutine a stream;
// all of it before Wait returns, but for what descendants write later.
//
// # Errors
//
// Start fails where no shell can be started. That a command is not there, or
// fails, is its exit code.
package shell

import (
	"bytes"
	"errors"
	"os/exec"
	"sync"
	"time"
)

// Config says what to run.
type Config struct {
	Command string
	Argv    []string // run instead of Command, without a shell; nil is none
	Stdin   []byte   // what it reads; nil is nothing
	Dir     string   // the working directory
	Env     []string // the whole environment
	// Timeout ends the command; 0 lets it run.
	Timeout time.Duration
	// Grace is how long a command has between the request to end and its end by
	// force; 0 is two seconds.
	Grace time.Duration
	// Output is given what the command prints; errors says on which stream. It must
	// not keep the bytes.
	Output func(errors bool, data []byte)
}

// Signal is how a command is told to end.
type Signal string

// The signals.
const (
	Interrupt Signal = "SIGINT"
	Terminate Signal = "SIGTERM"
	Kill      Signal = "SIGKILL"
)

// Process is a command that was started.
type Process struct {
	cfg   Config
	cmd   *exec.Cmd
	done  chan struct{} // closed when the command has ended
	ended sync.Once
	code  int // of the shell; 128 + n where signal n ended it
}

// lingering bounds the wait for output of descendants once the command has ended.
const lingering = 500 * time.Millisecond

// Start starts a command.
func Start(cfg Config) (*Process, error) {
	if cfg.Grace <= 0 {
		cfg.Grace = 2 * time.Second
	}
	p := &Process{cfg: cfg, cmd: command(cfg), done: make(chan struct{})}
	p.cmd.Dir, p.cmd.Env, p.cmd.WaitDelay = cfg.Dir, cfg.Env, lingering
	if cfg.Stdin != nil {
		p.cmd.Stdin = bytes.NewReader(cfg.Stdin)
	}
	p.cmd.Stdout, p.cmd.Stderr = stream{cfg.Output, false}, stream{cfg.Output, true}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go p.watch()
	return p, nil
}

type stream struct {
	output func(bool, []byte)
	errors bool
}

func (s stream) Write(b []byte) (int, error) {
	if s.output != nil {
		s.output(s.errors, b)
	}
	return len(b), nil
}

func (p *Process) watch() {
	if p.cfg.Timeout > 0 {
		late := time.AfterFunc(p.cfg.Timeout, func() { p.End() })
		defer late.Stop()
	}
	err := p.cmd.Wait()
	p.code = -1
	var exit *exec.ExitError
	switch {
	case err == nil, errors.Is(err, exec.ErrWaitDelay):
		p.code = p.cmd.ProcessState.ExitCode()
	case errors.As(err, &exit):
		p.code = exitCode(exit.ProcessState)
	}
	close(p.done)
}

// Done is closed when the command has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait waits for the end of the command and returns its exit code.
func (p *Process) Wait() int {
	<-p.done
	return p.code
}

// Signal tells the command and its group to end; false where it has ended.
func (p *Process) Signal(s Signal) bool {
	select {
	case <-p.done:
		return false
	default:
		return signal(p.cmd.Process, s)
	}
}

// End ends the command: it is asked to, and forced to after the grace.
func (p *Process) End() {
	p.ended.Do(func() {
		if !p.Signal(Terminate) {
			return
		}
		go func() {
			t := time.NewTimer(p.cfg.Grace)
			defer t.Stop()
			select {
			case <-p.done:
			case <-t.C:
				p.Signal(Kill)
			}
		}()
	})
}
