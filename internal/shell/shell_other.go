//go:build !unix

package shell

import (
	"os"
	"os/exec"
)

// command is a shell, or a program. There are no process groups here: ending it ends
// the one process alone.
func command(cfg Config) *exec.Cmd {
	if cfg.Argv != nil {
		return exec.Command(cfg.Argv[0], cfg.Argv[1:]...)
	}
	return exec.Command("cmd", "/c", cfg.Command)
}

func signal(p *os.Process, _ Signal) bool { return p.Kill() == nil }

func exitCode(s *os.ProcessState) int { return s.ExitCode() }
