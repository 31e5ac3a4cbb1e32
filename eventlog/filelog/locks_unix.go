//go:build unix

package filelog

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/transom-run/transom/eventlog/internal/holds"
)

// fileID tells a file from every other one that is open or has a name.
type fileID struct{ dev, ino uint64 }

// tableOf returns the table of the store in a directory, and makes its lock
// files if need be.
//
// A lock file is opened once and never closed: closing any descriptor of it
// would drop every lock that this process has on it. For that reason a file is
// looked at before it is opened, and a descriptor that turns out to be a second
// one of a known file stays open too. A store is known by the file of its pens:
// whatever happens to the other, the pen stays exclusive.
func tableOf(dir string) (*holds.Table, error) {
	tables.mu.Lock()
	defer tables.mu.Unlock()
	presence, pens := filepath.Join(dir, presenceName), filepath.Join(dir, penName)
	if fi, err := os.Lstat(pens); err == nil {
		if st, ok := fi.Sys().(*syscall.Stat_t); ok {
			if t := tables.byFile[fileID{uint64(st.Dev), uint64(st.Ino)}]; t != nil { //nolint:unconvert // the types differ between systems
				return t, nil
			}
		}
	}
	penFD, id, err := openLocks(pens)
	if err != nil {
		return nil, err
	}
	if t := tables.byFile[id]; t != nil {
		return t, nil
	}
	presenceFD, _, err := openLocks(presence)
	if err != nil {
		// The first file stays open, unused: it may be known by another name.
		return nil, err
	}
	t := holds.New(recordLocks{presence: presenceFD, pens: penFD})
	tables.keep(id, t)
	return t, nil
}

func openLocks(path string) (fd uintptr, id fileID, err error) {
	n, err := unix.Open(path, unix.O_RDWR|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return 0, id, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	var st unix.Stat_t
	if err := unix.Fstat(n, &st); err != nil {
		return 0, id, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		_ = unix.Close(n) // no lock of ours is on it
		return 0, id, fmt.Errorf("%s is not a regular file: remove it", path)
	}
	return uintptr(n), fileID{uint64(st.Dev), uint64(st.Ino)}, nil //nolint:unconvert // the types differ between systems
}

// recordLocks are POSIX record locks (fcntl): they end with the process, however
// it ends, and belong to the process, not to the descriptor.
type recordLocks struct{ presence, pens uintptr }

func (r recordLocks) Share(key int64) error { return set(r.presence, unix.F_RDLCK, key) }

func (r recordLocks) Unshare(key int64) error { return set(r.presence, unix.F_UNLCK, key) }

func (r recordLocks) SharedElsewhere(key int64) (bool, error) {
	lk, err := get(r.presence, key)
	return lk.Type != unix.F_UNLCK, err
}

func (r recordLocks) TakePen(key int64) (bool, int, error) {
	for {
		err := set(r.pens, unix.F_WRLCK, key)
		if err == nil {
			return true, 0, nil
		}
		if !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EACCES) {
			return false, 0, err
		}
		lk, err := get(r.pens, key)
		if err != nil {
			return false, 0, err
		}
		if lk.Type != unix.F_UNLCK {
			return false, int(lk.Pid), nil
		}
		// It was given back between the two questions.
	}
}

func (r recordLocks) DropPen(key int64) error { return set(r.pens, unix.F_UNLCK, key) }

func set(fd uintptr, typ int16, at int64) error {
	return call(fd, unix.F_SETLK, &unix.Flock_t{Type: typ, Whence: io.SeekStart, Start: at, Len: 1})
}

// get describes a lock of another process that stands in the way of an
// exclusive one; its Type is F_UNLCK where there is none.
func get(fd uintptr, at int64) (unix.Flock_t, error) {
	lk := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart, Start: at, Len: 1}
	err := call(fd, unix.F_GETLK, &lk)
	return lk, err
}

func call(fd uintptr, cmd int, lk *unix.Flock_t) error {
	for {
		if err := unix.FcntlFlock(fd, cmd, lk); err != unix.EINTR {
			return os.NewSyscallError("fcntl", err)
		}
	}
}
