package filelog

import (
	"os"

	"github.com/transom-run/transom/eventlog"
)

// Action is the kind of an [Op].
type Action string

// What a Store does that changes something, or that may wait.
const (
	OpOpen     Action = "open" // to write; a file that is only read is no Op
	OpMkdir    Action = "mkdir"
	OpWrite    Action = "write"
	OpSync     Action = "sync" // a file's content
	OpSyncDir  Action = "sync directory"
	OpTruncate Action = "truncate"
	OpRename   Action = "rename"
	OpLink     Action = "link"
	OpRemove   Action = "remove"
	OpHold     Action = "hold" // a session is marked as loaded
	OpTakePen  Action = "take pen"
	OpDropPen  Action = "drop pen"
	OpRelease  Action = "release" // the pen and the mark
)

// Op is one operation of a Store on the file system, or on a lock.
type Op struct {
	Action Action
	Path   string // the file or directory; the session's id where it is a lock
}

// Seam stands between a Store and the operating system: it lets each operation
// pass, delays it, makes it fail, or ends the process before, in the middle of or
// after it. It is there for tests of what becomes of sessions then, an embedder's
// too. A Store without one calls the operating system directly, for nothing.
//
// Its methods are called from any goroutine, the store's own timer included.
type Seam interface {
	// Do carries out an operation other than a write by calling do, and returns its
	// error or one of its own.
	Do(op Op, do func() error) error
	// Write carries out a write of b by calling write with b, or with a part of it,
	// which is then all that is written. It returns what write returned, or an error
	// of its own.
	Write(op Op, b []byte, write func([]byte) (int, error)) (int, error)
}

// seamed is a file system behind a seam.
func seamed(under fsys, s Seam) *fsys {
	do := func(a Action, path string, f func() error) error { return s.Do(Op{a, path}, f) }
	named := func(a Action, f func(string) error) func(string) error {
		return func(name string) error { return do(a, name, func() error { return f(name) }) }
	}
	over := under
	over.open = func(name string, flag int) (file, error) {
		var f file
		open := func() (err error) { f, err = under.open(name, flag); return err }
		if flag&(os.O_WRONLY|os.O_RDWR) == 0 {
			err := open()
			return f, err
		}
		if err := do(OpOpen, name, open); err != nil {
			if f != nil {
				_ = f.Close()
			}
			return nil, err
		}
		return seamedFile{f, name, s}, nil
	}
	over.mkdirAll = named(OpMkdir, under.mkdirAll)
	over.remove = named(OpRemove, under.remove)
	over.removeAll = named(OpRemove, under.removeAll)
	over.syncDir = named(OpSyncDir, under.syncDir)
	over.rename = func(from, to string) error {
		return do(OpRename, to, func() error { return under.rename(from, to) })
	}
	over.link = func(from, to string) error {
		return do(OpLink, to, func() error { return under.link(from, to) })
	}
	return &over
}

type seamedFile struct {
	file
	path string
	seam Seam
}

func (f seamedFile) Write(b []byte) (int, error) {
	return f.seam.Write(Op{OpWrite, f.path}, b, f.file.Write)
}

func (f seamedFile) Truncate(size int64) error {
	return f.seam.Do(Op{OpTruncate, f.path}, func() error { return f.file.Truncate(size) })
}

func (f seamedFile) syncData() error { return f.seam.Do(Op{OpSync, f.path}, f.file.syncData) }

// seamedHold is a hold behind a seam.
type seamedHold struct {
	eventlog.Hold
	id   string
	seam Seam
}

func (h seamedHold) TakePen() error { return h.seam.Do(Op{OpTakePen, h.id}, h.Hold.TakePen) }
func (h seamedHold) DropPen() error { return h.seam.Do(Op{OpDropPen, h.id}, h.Hold.DropPen) }
func (h seamedHold) Release() error { return h.seam.Do(Op{OpRelease, h.id}, h.Hold.Release) }
