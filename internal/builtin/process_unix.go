//go:build unix

package builtin

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"syscall"

	"github.com/creack/pty"
)

// process is a shell that runs one command, in a session and process group of
// its own.
//
// Its output is a terminal, so that programs write each line at once and errors
// stand where they happened. It is not its controlling terminal: nobody could
// answer what a program asks there (a password), and what a command leaves
// running is not hung up on when the command ends.
type process struct {
	cmd *exec.Cmd
	out *os.File // what it prints
	in  *os.File // what it reads; nil where it has no input
}

func startProcess(dir string, env []string, command string, input bool) (*process, error) {
	cmd := exec.Command(shellPath(), "-c", command)
	cmd.Dir, cmd.Env = dir, env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	p := &process{cmd: cmd}
	ours, theirs, err := pty.Open()
	if err != nil {
		return p, p.startPiped(input) // a place without terminals
	}
	_ = pty.Setsize(ours, &pty.Winsize{Rows: 50, Cols: 160})
	cmd.Stdout, cmd.Stderr = theirs, theirs
	p.out = ours
	if input {
		cmd.Stdin, p.in = theirs, ours
	}
	err = cmd.Start()
	theirs.Close()
	if err != nil {
		ours.Close()
	}
	return p, err
}

func (p *process) startPiped(input bool) error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	p.cmd.Stdout, p.cmd.Stderr, p.out = w, w, r
	opened := []*os.File{w}
	if input {
		in, theirs, err := os.Pipe()
		if err != nil {
			r.Close()
			w.Close()
			return err
		}
		p.cmd.Stdin, p.in = in, theirs
		opened = append(opened, in)
	}
	err = p.cmd.Start()
	for _, f := range opened {
		f.Close()
	}
	if err != nil {
		p.release()
	}
	return err
}

// release gives back the ends of the terminal. It may be called twice.
func (p *process) release() {
	p.out.Close()
	if p.in != nil && p.in != p.out {
		p.in.Close()
	}
}

// wait returns the exit code once the shell has ended; what it started may go
// on. A shell that was killed by signal n ends with 128 + n, as shells say it.
func (p *process) wait() int {
	err := p.cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			return 128 + int(ws.Signal())
		}
		return exit.ExitCode()
	}
	if err != nil {
		return -1
	}
	return 0
}

// alive reports whether anything is left of the process group.
func (p *process) alive() bool {
	err := syscall.Kill(-p.cmd.Process.Pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}

// ask tells the whole group to end, and force ends it.
func (p *process) ask() {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGTERM)
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGCONT) // a stopped one cannot listen
}

func (p *process) force() { _ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) }

func (p *process) interrupt() { _ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGINT) }

// shellPath is the shell that runs commands. Neither start-up files nor history
// are read: -c is not interactive.
func shellPath() string {
	if path, err := exec.LookPath("bash"); err == nil {
		return path
	}
	return "/bin/sh"
}

// startDetached starts a command that belongs to nobody: in a session of its own,
// without a terminal, its output in a file. It returns the command's process id.
func startDetached(dir string, env []string, command, file string) (string, error) {
	// The outer shell is ours and ends at once; the inner one is orphaned, so that
	// nobody has to wait for it.
	const outer = `"$0" -c "$1" </dev/null >"$2" 2>&1 & echo $!`
	cmd := exec.Command(shellPath(), "-c", outer, shellPath(), command, file)
	cmd.Dir, cmd.Env = dir, env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := cmd.Output()
	return string(out), err
}

var _ io.Writer = (*output)(nil)
