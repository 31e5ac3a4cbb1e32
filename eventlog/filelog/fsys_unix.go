//go:build unix

package filelog

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

func syncDir(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		err = nil // a file system that has no notion of it
	}
	if e := d.Close(); err == nil {
		err = e
	}
	return err
}

// unlinked reports whether an open file has lost its last name.
func unlinked(fi fs.FileInfo) bool {
	st, ok := fi.Sys().(*syscall.Stat_t)
	return ok && st.Nlink == 0
}
