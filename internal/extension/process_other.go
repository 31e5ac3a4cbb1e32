//go:build !unix

package extension

import "os/exec"

func apart(*exec.Cmd) {}

// terminate does nothing: there is no gentle way, and the closed connection is one.
func terminate(*exec.Cmd) {}

func kill(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
