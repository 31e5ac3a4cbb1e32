//go:build unix

package host

import (
	"os"
	"os/exec"
	"syscall"
)

// lead makes a program the leader of a process group of its own.
func lead(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// ask tells a group to end, and force ends it.
func ask(p *os.Process) {
	_ = syscall.Kill(-p.Pid, syscall.SIGTERM)
	_ = syscall.Kill(-p.Pid, syscall.SIGCONT) // a stopped one cannot listen
}

func force(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) }
