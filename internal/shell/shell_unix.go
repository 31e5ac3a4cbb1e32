//go:build unix

package shell

import (
	"os"
	"os/exec"
	"syscall"
)

// command is a shell, or a program, that leads a process group of its own.
func command(cfg Config) *exec.Cmd {
	argv := cfg.Argv
	if argv == nil {
		shell := "/bin/sh"
		if path, err := exec.LookPath("bash"); err == nil {
			shell = path
		}
		argv = []string{shell, "-c", cfg.Command}
	}
	cmd := exec.Command(argv[0], argv[1:]...)
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
