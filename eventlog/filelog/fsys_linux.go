package filelog

import (
	"os"

	"golang.org/x/sys/unix"
)

// fdatasync leaves out the file's times, which saves a write a sync.
func fdatasync(f *os.File) error {
	c, err := f.SyscallConn()
	if err != nil {
		return err
	}
	// Control keeps the descriptor from being closed, and so reused, meanwhile.
	cerr := c.Control(func(fd uintptr) {
		for {
			if err = unix.Fdatasync(int(fd)); err != unix.EINTR {
				return
			}
		}
	})
	if cerr != nil {
		return cerr
	}
	return os.NewSyscallError("fdatasync", err)
}
