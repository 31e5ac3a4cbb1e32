package filelog

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/windows"

	"github.com/transom-run/transom/eventlog/internal/holds"
)

// fileID is the path of the store; one that is reached by two paths is two
// stores here, whose locks keep each other out all the same.
type fileID string

// tableOf returns the table of the store in a directory, and makes its lock
// files if need be.
func tableOf(dir string) (*holds.Table, error) {
	tables.mu.Lock()
	defer tables.mu.Unlock()
	id := fileID(strings.ToLower(filepath.Clean(dir)))
	if t := tables.byFile[id]; t != nil {
		return t, nil
	}
	presence, err := os.OpenFile(filepath.Join(dir, presenceName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	pens, err := os.OpenFile(filepath.Join(dir, penName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, errors.Join(err, presence.Close())
	}
	t := holds.New(regionLocks{presence: presence, pens: pens})
	tables.keep(id, t)
	return t, nil
}

// regionLocks are the system's byte-range locks. They belong to the handle and
// end with the process. The system does not say who has one.
type regionLocks struct{ presence, pens *os.File }

// Share waits, for the moment that another process is asking.
func (r regionLocks) Share(key int64) error {
	_, err := lock(r.presence, key, 0)
	return err
}

func (r regionLocks) Unshare(key int64) error { return unlock(r.presence, key) }

// SharedElsewhere tries for the exclusive lock, for which its own shared one has
// to go for a moment: a process that asks in that moment may miss this one.
func (r regionLocks) SharedElsewhere(key int64) (bool, error) {
	if err := unlock(r.presence, key); err != nil {
		return false, err
	}
	alone, err := lock(r.presence, key, exclusiveNow)
	if alone {
		err = unlock(r.presence, key)
	}
	return !alone, errors.Join(err, r.Share(key))
}

func (r regionLocks) TakePen(key int64) (bool, int, error) {
	free, err := lock(r.pens, key, exclusiveNow)
	return free, 0, err
}

func (r regionLocks) DropPen(key int64) error { return unlock(r.pens, key) }

const exclusiveNow = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY

func lock(f *os.File, at int64, flags uint32) (bool, error) {
	err := windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, place(at))
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return false, nil
	}
	return err == nil, os.NewSyscallError("LockFileEx", err)
}

func unlock(f *os.File, at int64) error {
	return os.NewSyscallError("UnlockFileEx", windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, place(at)))
}

func place(at int64) *windows.Overlapped {
	return &windows.Overlapped{Offset: uint32(at), OffsetHigh: uint32(at >> 32)}
}
