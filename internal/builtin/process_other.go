//go:build !unix

package builtin

import (
	"errors"
	"os"
	"os/exec"
)

// process is a shell that runs one command. Without the process groups of Unix
// only the shell itself can be ended, and there is no terminal.
type process struct {
	cmd *exec.Cmd
	out *os.File
	in  *os.File
}

func startProcess(dir string, env []string, command string, input bool) (*process, error) {
	path, err := exec.LookPath("bash")
	if err != nil {
		return nil, errors.New("no bash was found in PATH: install one, such as that of Git for Windows")
	}
	p := &process{cmd: exec.Command(path, "-c", command)}
	p.cmd.Dir, p.cmd.Env = dir, env
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer w.Close()
	p.cmd.Stdout, p.cmd.Stderr, p.out = w, w, r
	if input {
		in, theirs, err := os.Pipe()
		if err != nil {
			r.Close()
			return nil, err
		}
		defer in.Close()
		p.cmd.Stdin, p.in = in, theirs
	}
	if err := p.cmd.Start(); err != nil {
		p.release()
		return nil, err
	}
	return p, nil
}

func (p *process) release() {
	p.out.Close()
	if p.in != nil {
		p.in.Close()
	}
}

func (p *process) wait() int {
	err := p.cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	if err != nil {
		return -1
	}
	return 0
}

func (p *process) alive() bool { return false }
func (p *process) ask()        { _ = p.cmd.Process.Kill() }
func (p *process) force()      { _ = p.cmd.Process.Kill() }
func (p *process) interrupt()  { _ = p.cmd.Process.Signal(os.Interrupt) }

func startDetached(dir string, env []string, command, file string) (string, error) {
	return "", errors.New("commands cannot be detached on this system")
}
