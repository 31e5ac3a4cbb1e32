//go:build !unix

package shell

import (
	"os"
	"os/exec"
)

// command is a shell. There are no process groups here: ending it ends the shell
// alone.
func command(text string) *exec.Cmd { return exec.Command("cmd", "/c", text) }

func signal(p *os.Process, _ Signal) bool { return p.Kill() == nil }

func exitCode(s *os.ProcessState) int { return s.ExitCode() }
