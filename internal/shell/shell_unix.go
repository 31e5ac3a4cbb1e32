//go:build unix

package shell

import (
	"os"
	"os/exec"
	"syscall"
)

// command is a shell that leads a process group of its own.
func command(text string) *exec.Cmd {
	shell := "/bin/sh"
	if path, err := exec.LookPath("bash"); err == nil {
		shell = path
	}
	cmd := exec.Command(shell, "-c", text)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

func signal(p *os.Process, s Signal) bool {
	n := syscall.SIGTERM
	switch s {
	case Interrupt:
		n = syscall.SIGINT
	case Kill:
		n = syscall.SIGKILL
	case Terminate:
	}
	err := syscall.Kill(-p.Pid, n)
	_ = syscall.Kill(-p.Pid, syscall.SIGCONT) // a stopped one cannot listen
	return err == nil
}

// exitCode is 128 + n of a shell that signal n ended, as shells say it.
func exitCode(s *os.ProcessState) int {
	if ws, ok := s.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return s.ExitCode()
}
