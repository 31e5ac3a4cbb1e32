package filelog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"github.com/transom-run/transom/eventlog"
	"github.com/transom-run/transom/eventlog/internal/record"
)

// keepBuffer is how large a write buffer a Log keeps between batches.
const keepBuffer = 64 << 10

// Log is one session's log in a file.
type Log struct {
	store *Store
	id    string
	dir   string
	path  string

	// writing is held for the whole of an Append, Close or SaveCheckpoint, and
	// guards buf. It may be held when mu is taken, never the other way round.
	writing sync.Mutex
	buf     []byte
	saved   savedCheckpoint // guarded by writing, too

	// mu guards what follows. It is not held across I/O.
	mu       sync.Mutex
	file     file  // nil: not made yet
	readOnly error // why the file could not be opened for writing
	tail     tail  // where the records in the file end
	size     int64 // of the file as this Log knows it; more than tail.good() where something is to be cut
	// pending holds the provisional lines. It only grows until it is replaced,
	// so that a reader may keep a slice of it.
	pending  []byte
	reserved bool  // Create keeps the id for this Log
	closed   bool  //
	dirty    bool  // there are records that no sync was asked for; the store's syncer has the Log
	handover bool  // closed while dirty: the syncer closes the file
	dirsDone bool  // the directory entries are on the disk
	syncErr  error // a sync failed: see "Errors" in the package comment
}

// Append implements eventlog.Log.
func (l *Log) Append(b eventlog.Batch) (eventlog.Position, error) {
	for _, line := range b.Lines {
		if err := record.Check(line); err != nil {
			return 0, l.wrap("append to", err)
		}
		if len(line) > maxRecord {
			return 0, l.wrap("append to", fmt.Errorf("a record of %d bytes, at most %d are taken", len(line), maxRecord))
		}
	}
	l.writing.Lock()
	defer l.writing.Unlock()
	l.mu.Lock()
	was := state{l.file, l.tail, l.size, l.pending}
	err := l.refusal(b.Sync)
	pos := was.tail.end + int64(len(was.pending))
	if err == nil && b.Provisional && !b.Sync {
		l.pending = record.Join(l.pending, b.Lines)
		l.mu.Unlock()
		return eventlog.Position(pos), nil
	}
	l.mu.Unlock()
	if err == nil {
		err = l.write(was, b)
	}
	if err != nil {
		return 0, l.wrap("append to", err)
	}
	return eventlog.Position(pos), nil
}

// refusal says why nothing can be appended. The caller has mu.
func (l *Log) refusal(sync bool) error {
	switch {
	case l.closed:
		return eventlog.ErrClosed
	case l.readOnly != nil:
		return l.readOnly
	case sync && l.syncErr != nil:
		return fmt.Errorf("an earlier sync failed, so that records may be missing on the disk: resume the session to go on: %w", l.syncErr)
	}
	return nil
}

// state is what a write starts from.
type state struct {
	file    file
	tail    tail
	size    int64
	pending []byte
}

// write puts the pending lines and the batch into the file, as one write, or
// leaves everything as it was. The caller has writing.
func (l *Log) write(was state, b eventlog.Batch) error {
	f, size, made := was.file, was.size, false
	switch {
	case f == nil:
		var err error
		if f, err = l.make(); err != nil {
			return err
		}
		made = true
	case size > was.tail.good():
		if err := cut(f, size, was.tail.good()); err != nil {
			return err
		}
		size = was.tail.good()
		l.setSize(size)
	}
	l.buf = l.buf[:0]
	feed := 0
	if was.tail.bare && len(was.pending)+len(b.Lines) > 0 {
		l.buf, feed = append(l.buf, '\n'), 1
	}
	l.buf = record.Join(append(l.buf, was.pending...), b.Lines)
	n, err := 0, error(nil)
	if len(l.buf) > 0 {
		n, err = f.Write(l.buf)
	}
	if err == nil && b.Sync {
		if err = l.sync(f); err != nil && !made {
			l.setSyncErr(err)
		}
	}
	if err != nil {
		if e := l.undo(f, made, size, n); e != nil {
			return fmt.Errorf("%w; what was begun could not be removed: %w", err, e)
		}
		return err
	}
	grown := int64(len(l.buf))
	if cap(l.buf) > keepBuffer {
		l.buf = nil
	}
	l.wrote(f, was, size+grown, grown-int64(feed), b.Sync)
	return nil
}

// wrote makes a successful write known.
func (l *Log) wrote(f file, was state, size, grown int64, synced bool) {
	l.mu.Lock()
	l.file, l.size, l.pending = f, size, nil
	l.tail = tail{end: was.tail.end + grown, bare: was.tail.bare && grown == 0}
	if l.reserved {
		l.reserved = false
		reserved.drop(l.path)
	}
	mark := false
	if synced {
		l.dirty = false
	} else if !l.dirty && l.store.syncer.every > 0 {
		l.dirty, mark = true, true
	}
	l.mu.Unlock()
	if mark {
		l.store.syncer.mark(l, was.file == nil)
	}
}

func (l *Log) setSize(n int64) {
	l.mu.Lock()
	l.size = n
	l.mu.Unlock()
}

// make creates the session's directory and file.
func (l *Log) make() (file, error) {
	if err := l.store.fs.mkdirAll(l.dir); err != nil {
		return nil, err
	}
	f, err := l.store.fs.open(l.path, os.O_RDWR|os.O_APPEND|os.O_CREATE|os.O_EXCL)
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil, fmt.Errorf("another process has made it meanwhile: %w", eventlog.ErrExists)
	case err != nil:
		_ = l.store.fs.remove(l.dir) // goes only if it is empty
	}
	return f, err
}

// undo takes back a write of n bytes behind size. Where that fails, the bytes
// stay behind the known end: they are not read, and the next append cuts them.
func (l *Log) undo(f file, made bool, size int64, n int) error {
	if made {
		err := errors.Join(f.Close(), l.store.fs.remove(l.path))
		_ = l.store.fs.remove(l.dir) // goes only if it is empty
		return err
	}
	if n == 0 {
		return nil
	}
	if err := cut(f, size+int64(n), size); err != nil {
		l.setSize(size + int64(n))
	}
	return nil
}

// cut shortens the file to n bytes if it still has the size that is known: what
// another process has written is never cut.
func cut(f file, known, n int64) error {
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	if fi.Size() != known {
		return eventlog.ErrMoved
	}
	return f.Truncate(n)
}

// sync puts the file on the disk and, the first time, its place in the
// directories. It may run beside an append.
func (l *Log) sync(f file) error {
	err := f.syncData()
	if err == nil {
		l.mu.Lock()
		done := l.dirsDone
		l.mu.Unlock()
		for _, dir := range []string{l.dir, l.store.root, l.store.cfg.Home} {
			if err == nil && !done {
				err = l.store.fs.syncDir(dir)
			}
		}
	}
	if err == nil {
		l.mu.Lock()
		l.dirsDone = true
		l.mu.Unlock()
	}
	return err
}

func (l *Log) setSyncErr(err error) {
	l.mu.Lock()
	l.syncErr = err
	l.mu.Unlock()
}

// background is the syncer's turn with a dirty log.
func (l *Log) background() error {
	l.mu.Lock()
	f, dirty, handover := l.file, l.dirty, l.handover
	l.dirty, l.handover = false, false
	l.mu.Unlock()
	var err error
	if dirty {
		if err = l.sync(f); err != nil && gone(f) {
			err = nil // deleted meanwhile: there is nothing to keep
		}
		if err != nil {
			l.setSyncErr(err)
			err = l.wrap("sync", err)
			if l.store.cfg.OnSyncError != nil {
				l.store.cfg.OnSyncError(l.id, err)
			}
		}
	}
	if handover {
		err = errors.Join(err, f.Close())
	}
	return err
}

func gone(f file) bool {
	fi, err := f.Stat()
	return err == nil && unlinked(fi)
}

// End implements eventlog.Log.
func (l *Log) End() eventlog.Position {
	l.mu.Lock()
	defer l.mu.Unlock()
	return eventlog.Position(l.tail.end + int64(len(l.pending)))
}

// Verify implements eventlog.Verifier.
func (l *Log) Verify() error {
	l.mu.Lock()
	f, size, closed := l.file, l.size, l.closed
	l.mu.Unlock()
	if closed {
		return l.wrap("verify", eventlog.ErrClosed)
	}
	if f == nil {
		switch _, err := l.store.fs.lstat(l.path); {
		case err == nil:
			return l.wrap("verify", eventlog.ErrMoved)
		case errors.Is(err, fs.ErrNotExist):
			return nil
		default:
			return l.wrap("verify", err)
		}
	}
	fi, err := f.Stat()
	switch {
	case err != nil:
		return l.wrap("verify", err)
	case unlinked(fi):
		return l.wrap("verify", eventlog.ErrNotFound)
	case fi.Size() != size:
		return l.wrap("verify", eventlog.ErrMoved)
	}
	return nil
}

// Close implements eventlog.Log. Records that are not on the disk yet are
// brought there in the background all the same. Provisional lines are dropped. A
// second Close does nothing.
func (l *Log) Close() error {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed, l.pending = true, nil
	if l.reserved {
		l.reserved = false
		reserved.drop(l.path)
	}
	f := l.file
	l.handover = l.dirty
	mine := f != nil && !l.dirty
	l.mu.Unlock()
	if mine {
		if err := f.Close(); err != nil {
			return l.wrap("close", err)
		}
	}
	return nil
}

// wrap says what was done to which log, and what to do about it.
func (l *Log) wrap(verb string, err error) error {
	return fmt.Errorf("%s the log of session %s (%s): %w%s", verb, l.id, l.path, err, advice(err))
}
