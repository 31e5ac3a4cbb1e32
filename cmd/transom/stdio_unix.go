//go:build unix

package main

import (
	"io/fs"
	"os"
	"syscall"
)

// pollable returns the file in a form whose reads and writes can be interrupted,
// where it is a pipe or a socket. Other files stay as they are: a terminal is
// shared with the shell, which would be surprised.
func pollable(f *os.File) *os.File {
	info, err := f.Stat()
	if err != nil || info.Mode()&(fs.ModeNamedPipe|fs.ModeSocket) == 0 {
		return f
	}
	fd := int(f.Fd())
	if syscall.SetNonblock(fd, true) != nil {
		return f
	}
	return os.NewFile(uintptr(fd), f.Name())
}
