//go:build unix

package filelog

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/transom-run/transom/eventlog/internal/holds"
)

// fileID tells a file from every other one that is open or has a name.
type fileID struct{ dev, ino uint64 }

func identify(fi fs.FileInfo) (fileID, error) {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return fileID{}, errors.New("the system does not say which file it is")
	}
	return fileID{uint64(st.Dev), uint64(st.Ino)}, nil //nolint:unconvert // the types differ between systems
}

// tableOf returns the table of a lock file, which it makes if need be.
//
// The file is opened once and never closed: closing any descriptor of it would
// drop every lock that this process has on it. For that reason a path is looked
// at before it is opened, and a descriptor that turns out to be a second one of
// a known file stays open too.
func tableOf(path string) (*holds.Table, error) {
	tables.mu.Lock()
	defer tables.mu.Unlock()
	if fi, err := os.Lstat(path); err == nil {
		if id, err := identify(fi); err != nil {
			return nil, err
		} else if t := tables.byFile[id]; t != nil {
			return t, nil
		}
	}
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		_ = unix.Close(fd) // no lock of ours is on it
		return nil, fmt.Errorf("%s is not a regular file: remove it", path)
	}
	id := fileID{uint64(st.Dev), uint64(st.Ino)} //nolint:unconvert // the types differ between systems
	t := tables.byFile[id]
	if t == nil {
		t = holds.New(recordLocks{uintptr(fd)})
		tables.byFile[id] = t
	}
	return t, nil
}

// recordLocks are POSIX record locks (fcntl): they end with the process, however
// it ends, and belong to the process, not to the descriptor.
type recordLocks struct{ fd uintptr }

func (r recordLocks) Share(key int64) error { return r.set(unix.F_RDLCK, presenceByte(key)) }

func (r recordLocks) Unshare(key int64) error { return r.set(unix.F_UNLCK, presenceByte(key)) }

func (r recordLocks) SharedElsewhere(key int64) (bool, error) {
	lk, err := r.get(presenceByte(key))
	return lk.Type != unix.F_UNLCK, err
}

func (r recordLocks) TakePen(key int64) (bool, int, error) {
	for {
		err := r.set(unix.F_WRLCK, penByte(key))
		if err == nil {
			return true, 0, nil
		}
		if !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EACCES) {
			return false, 0, err
		}
		lk, err := r.get(penByte(key))
		if err != nil {
			return false, 0, err
		}
		if lk.Type != unix.F_UNLCK {
			return false, int(lk.Pid), nil
		}
		// It was given back between the two questions.
	}
}

func (r recordLocks) DropPen(key int64) error { return r.set(unix.F_UNLCK, penByte(key)) }

func (r recordLocks) set(typ int16, at int64) error {
	return r.call(unix.F_SETLK, &unix.Flock_t{Type: typ, Whence: io.SeekStart, Start: at, Len: 1})
}

// get describes a lock of another process that stands in the way of an
// exclusive one; its Type is F_UNLCK where there is none.
func (r recordLocks) get(at int64) (unix.Flock_t, error) {
	lk := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart, Start: at, Len: 1}
	err := r.call(unix.F_GETLK, &lk)
	return lk, err
}

func (r recordLocks) call(cmd int, lk *unix.Flock_t) error {
	for {
		if err := unix.FcntlFlock(r.fd, cmd, lk); err != unix.EINTR {
			return os.NewSyscallError("fcntl", err)
		}
	}
}
