// Package memlog keeps session logs in memory: for tests, and for hosts that
// want nothing on the disk. What it holds ends with the process.
//
//	store := memlog.New()
//	log, err := store.Create(ctx, "s1")
//
// A [eventlog.Position] counts records here. There is nothing to damage, and a
// synced batch is as durable as any other: not at all.
//
// # Ownership
//
// Every Create and Open returns a Log of its own on the same records, as a file
// store does: one that did not make the last append fails its Verify.
package memlog

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/transom-run/transom/eventlog"
	"github.com/transom-run/transom/eventlog/internal/holds"
	"github.com/transom-run/transom/eventlog/internal/record"
)

// Store holds logs in memory. Its methods may be called from any goroutine.
type Store struct {
	holds *holds.Table

	mu       sync.Mutex
	sessions map[string]*session
}

// session is one session's records. Its fields are guarded by Store.mu.
type session struct {
	id string
	// stored is false until the first batch that is not provisional.
	stored  bool
	deleted bool
	// lines only grows; a line is never changed.
	lines     [][]byte
	bytes     int64
	started   time.Time
	modified  time.Time
	saved     eventlog.Position // of the checkpoint
	savedData []byte            // nil: there is none
	savedBy   *Log              // which may add to it; nil: nobody
}

// New makes an empty store.
func New() *Store {
	return &Store{holds: holds.New(nil), sessions: map[string]*session{}}
}

// Create implements eventlog.Store.
func (s *Store) Create(ctx context.Context, id string) (eventlog.Log, error) {
	if err := check(ctx, id); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sessions[id] != nil {
		return nil, fmt.Errorf("create session %s: %w", id, eventlog.ErrExists)
	}
	data := &session{id: id, started: time.Now()}
	s.sessions[id] = data
	return &Log{store: s, session: data}, nil
}

// Open implements eventlog.Store. The damage is always nil.
func (s *Store) Open(ctx context.Context, id string) (eventlog.Log, []eventlog.Damage, error) {
	data, unlock, err := s.find(ctx, "open", id)
	if err != nil {
		return nil, nil, err
	}
	defer unlock()
	return &Log{store: s, session: data, end: len(data.lines)}, nil, nil
}

// Stat implements eventlog.Store.
func (s *Store) Stat(ctx context.Context, id string) (eventlog.Info, error) {
	data, unlock, err := s.find(ctx, "look at", id)
	if err != nil {
		return eventlog.Info{}, err
	}
	defer unlock()
	return data.info(), nil
}

// List implements eventlog.Store.
func (s *Store) List(ctx context.Context) ([]eventlog.Info, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var infos []eventlog.Info
	for _, data := range s.sessions {
		if data.stored {
			infos = append(infos, data.info())
		}
	}
	slices.SortFunc(infos, func(a, b eventlog.Info) int {
		if c := b.Modified.Compare(a.Modified); c != 0 {
			return c
		}
		return strings.Compare(a.SessionID, b.SessionID)
	})
	return infos, nil
}

// Delete implements eventlog.Store.
func (s *Store) Delete(ctx context.Context, id string) error {
	data, unlock, err := s.find(ctx, "delete", id)
	if err != nil {
		return err
	}
	defer unlock()
	data.deleted = true
	delete(s.sessions, id)
	return nil
}

// Dir implements eventlog.Store: there is no directory.
func (s *Store) Dir(string) string { return "" }

// Hold implements eventlog.Store. The holders are those of this Store.
func (s *Store) Hold(id string) (eventlog.Hold, error) {
	if err := eventlog.CheckID(id); err != nil {
		return nil, err
	}
	return s.holds.Hold(id)
}

// find returns a stored session with the store locked.
func (s *Store) find(ctx context.Context, verb, id string) (*session, func(), error) {
	if err := check(ctx, id); err != nil {
		return nil, nil, err
	}
	s.mu.Lock()
	data := s.sessions[id]
	if data == nil || !data.stored {
		s.mu.Unlock()
		return nil, nil, fmt.Errorf("%s session %s: %w", verb, id, eventlog.ErrNotFound)
	}
	return data, s.mu.Unlock, nil
}

func check(ctx context.Context, id string) error {
	if err := eventlog.CheckID(id); err != nil {
		return err
	}
	return ctx.Err()
}

func (d *session) info() eventlog.Info {
	return eventlog.Info{SessionID: d.id, Started: d.started, Modified: d.modified, Bytes: d.bytes}
}

// Log is a session's log in memory.
type Log struct {
	store   *Store
	session *session

	// guarded by Store.mu
	closed  bool
	end     int      // of session.lines, as this Log knows it
	pending [][]byte // provisional lines
}

// Append implements eventlog.Log.
func (l *Log) Append(b eventlog.Batch) (eventlog.Position, error) {
	for _, line := range b.Lines {
		if err := record.Check(line); err != nil {
			return 0, fmt.Errorf("append to session %s: %w", l.session.id, err)
		}
	}
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	if l.closed {
		return 0, fmt.Errorf("append to session %s: %w", l.session.id, eventlog.ErrClosed)
	}
	if err := l.verify(); err != nil {
		return 0, fmt.Errorf("append to session %s: %w", l.session.id, err)
	}
	pos := eventlog.Position(l.end + len(l.pending))
	for _, line := range b.Lines {
		l.pending = append(l.pending, bytes.Clone(line))
	}
	if b.Provisional && !b.Sync {
		return pos, nil
	}
	d := l.session
	for _, line := range l.pending {
		d.bytes += int64(len(line)) + 1
	}
	d.lines = append(d.lines, l.pending...)
	d.stored, d.modified = true, time.Now()
	l.end, l.pending = len(d.lines), nil
	return pos, nil
}

// Read implements eventlog.Log.
func (l *Log) Read(from eventlog.Position) iter.Seq2[eventlog.Record, error] {
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	written, pending := l.session.lines[:l.end:l.end], l.pending[:len(l.pending):len(l.pending)]
	var err error
	switch end := len(written) + len(pending); {
	case l.closed:
		err = fmt.Errorf("read session %s: %w", l.session.id, eventlog.ErrClosed)
	case from < 0 || int(from) > end:
		err = fmt.Errorf("read session %s: position %d is not in the log, which ends at %d", l.session.id, from, end)
	}
	return func(yield func(eventlog.Record, error) bool) {
		if err != nil {
			yield(eventlog.Record{}, err)
			return
		}
		for i := int(from); i < len(written)+len(pending); i++ {
			var line []byte
			if i < len(written) {
				line = written[i]
			} else {
				line = pending[i-len(written)]
			}
			pos := eventlog.Position(i)
			if !yield(eventlog.Record{Pos: pos, Next: pos + 1, Line: bytes.Clone(line)}, nil) {
				return
			}
		}
	}
}

// End implements eventlog.Log.
func (l *Log) End() eventlog.Position {
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	return eventlog.Position(l.end + len(l.pending))
}

// Close implements eventlog.Log. A second Close does nothing.
func (l *Log) Close() error {
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed, l.pending = true, nil
	if d := l.session; !d.stored && !d.deleted {
		delete(l.store.sessions, d.id) // it never came to be
		d.deleted = true
	}
	return nil
}

// Verify implements eventlog.Verifier.
func (l *Log) Verify() error {
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	if l.closed {
		return eventlog.ErrClosed
	}
	return l.verify()
}

func (l *Log) verify() error {
	switch {
	case l.session.deleted:
		return eventlog.ErrNotFound
	case l.end != len(l.session.lines):
		return eventlog.ErrMoved
	}
	return nil
}

// SaveCheckpoint implements eventlog.Checkpointer.
func (l *Log) SaveCheckpoint(pos eventlog.Position, data []byte) error {
	return l.checkpoint(pos, data, false)
}

// ExtendCheckpoint implements eventlog.Extender.
func (l *Log) ExtendCheckpoint(pos eventlog.Position, data []byte) error {
	return l.checkpoint(pos, data, true)
}

func (l *Log) checkpoint(pos eventlog.Position, data []byte, more bool) error {
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	mine := l.session.savedBy == l
	l.session.savedBy = nil // until this has succeeded
	if more && mine && pos < l.session.saved {
		return fmt.Errorf("add to the checkpoint of session %s: position %d lies before it", l.session.id, pos)
	}
	if more && !mine {
		return fmt.Errorf("add to the checkpoint of session %s: none was saved here", l.session.id)
	}
	switch {
	case l.closed:
		return fmt.Errorf("save a checkpoint of session %s: %w", l.session.id, eventlog.ErrClosed)
	case pos < 0 || int(pos) > l.end+len(l.pending):
		return fmt.Errorf("save a checkpoint of session %s: position %d is not in the log, which ends at %d", l.session.id, pos, l.end+len(l.pending))
	case int(pos) > l.end || !l.session.stored:
		return nil
	}
	if !more {
		l.session.savedData = []byte{}
	}
	l.session.saved, l.session.savedBy, l.session.savedData = pos, l, append(l.session.savedData, data...)
	return nil
}

// LoadCheckpoint implements eventlog.Checkpointer.
func (l *Log) LoadCheckpoint() (eventlog.Position, string, bool) {
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	if d := l.session; !l.closed && d.savedData != nil && int(d.saved) <= l.end {
		return d.saved, string(d.savedData), true
	}
	return 0, "", false
}
