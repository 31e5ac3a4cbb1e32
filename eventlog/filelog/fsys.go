package filelog

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// fsys is every file operation of the package but locking, so that tests can
// make each of them fail.
type fsys struct {
	open      func(name string, flag int) (file, error)
	mkdirAll  func(name string) error
	lstat     func(name string) (fs.FileInfo, error)
	stat      func(name string) (fs.FileInfo, error)
	readDir   func(name string) ([]fs.DirEntry, error)
	rename    func(from, to string) error
	link      func(from, to string) error
	remove    func(name string) error
	removeAll func(name string) error
	// syncDir puts a directory's entries on the disk.
	syncDir func(name string) error
}

// file is an open file. Write goes to the end.
type file interface {
	io.Writer
	io.ReaderAt
	Stat() (fs.FileInfo, error)
	Truncate(size int64) error
	// syncData puts the content, and what is needed to find it, on the disk.
	syncData() error
	Close() error
}

type osFile struct{ *os.File }

func (f osFile) syncData() error { return fdatasync(f.File) }

var realFS = fsys{
	open: func(name string, flag int) (file, error) {
		f, err := os.OpenFile(name, flag, 0o600)
		if err != nil {
			return nil, err
		}
		return osFile{f}, nil
	},
	mkdirAll:  func(name string) error { return os.MkdirAll(name, 0o700) },
	lstat:     os.Lstat,
	stat:      os.Stat,
	readDir:   os.ReadDir,
	rename:    os.Rename,
	link:      link,
	remove:    os.Remove,
	removeAll: os.RemoveAll,
	syncDir:   syncDir,
}

// link gives a file a second name; where the file system knows no such thing, it
// makes a copy.
func link(from, to string) error {
	err := os.Link(from, to)
	if err == nil || errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) {
		return err
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err == nil {
		err = out.Sync()
	}
	return errors.Join(err, out.Close())
}

// advice says what can be done about an error of the file system, as the end of
// a sentence; "" where there is nothing to say.
func advice(err error) string {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return " (the disk or quota is full: free some space, then try again)"
	case errors.Is(err, syscall.EFBIG):
		return " (a file may not be that large here: raise the limit with ulimit -f, or choose another home directory)"
	case errors.Is(err, syscall.EROFS):
		return " (the file system is read-only: mount it writable, or choose another home directory)"
	case errors.Is(err, fs.ErrPermission):
		return " (check who owns it and its permissions)"
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return " (too many files are open: raise the limit with ulimit -n, or close sessions)"
	case errors.Is(err, syscall.EIO):
		return " (the disk reports a fault: see the system's log)"
	case errors.Is(err, syscall.ENOLCK):
		return " (the file system gives no locks: on NFS, start its lock service, or choose another home directory)"
	}
	return ""
}
