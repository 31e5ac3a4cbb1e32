//go:build !unix

package host

import (
	"os"
	"os/exec"
)

// There are no process groups here: ending a program ends it alone.
func lead(*exec.Cmd) {}

func ask(p *os.Process) { _ = p.Kill() }

func force(p *os.Process) { _ = p.Kill() }
