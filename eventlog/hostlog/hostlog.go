// Package hostlog keeps session logs with a host: every record is appended to a
// file that the host keeps, wherever that is.
//
//	Append ──▶ sessionfs.FS.AppendFile("…/events.jsonl") ──▶ answered: it is durable
//	Read   ◀── memory                                        not in time: it is void
//
// A log is read once, when it is opened, and held in memory while it is open: a
// host offers no reading of a part of a file. A [eventlog.Position] counts records.
//
// # Ownership
//
// Nobody but the host knows who else writes to its files, so there is one writer
// at a time by the host's word, and no lock: holders are those of this process.
//
// # Durability
//
// An append is as durable as the host's answer to it. One that is refused, or not
// answered in time, has not happened: its records are not read back, even where the
// host wrote them after all. The next append says so, in a record of its own
// ([TypeVoid]) that names them; until that is written, a process that ends leaves
// the question to the file.
//
// # Errors
//
// What cannot be read is passed over and reported, as in other logs. A torn end is
// not cut off: the next append begins a new line behind it.
package hostlog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/transom-run/transom/eventlog"
	"github.com/transom-run/transom/eventlog/internal/holds"
	"github.com/transom-run/transom/sessionfs"
)

// File is the name of a log below the session's directory.
const File = "events.jsonl"

// DefaultAppendTime and DefaultReadTime bound how long a host may take.
const (
	DefaultAppendTime = 10 * time.Second
	DefaultReadTime   = 60 * time.Second
)

// Config says how hosts are reached. Open is required.
type Config struct {
	// Open returns the files of a session, for each piece of work anew: who keeps
	// them may change. It does not wait.
	Open func(id string) (sessionfs.FS, error)
	// Layout says where a session's files are.
	Layout sessionfs.Layout
	// Begin is called before the first record of a session is written, with the
	// records that are about to be. nil: nothing has to be done.
	Begin func(ctx context.Context, id string, files sessionfs.FS, lines [][]byte) error
	// AppendTime is how long a host may take to answer an append, and ReadTime
	// anything else; 0 is the default.
	AppendTime time.Duration
	ReadTime   time.Duration
}

// Store keeps logs with hosts. Its methods may be called from any goroutine.
//
// A host cannot be asked what sessions there are: List knows those that were
// created or opened through this Store.
type Store struct {
	cfg   Config
	holds *holds.Table

	mu    sync.Mutex
	known map[string]*entry
}

// entry is what is known of a session. Its fields are guarded by Store.mu.
type entry struct {
	stored bool
	info   eventlog.Info
}

// New makes a store.
func New(cfg Config) *Store {
	if cfg.AppendTime <= 0 {
		cfg.AppendTime = DefaultAppendTime
	}
	if cfg.ReadTime <= 0 {
		cfg.ReadTime = DefaultReadTime
	}
	return &Store{cfg: cfg, holds: holds.New(nil), known: map[string]*entry{}}
}

// reach returns a session's files, and a context for asking about them.
func (s *Store) reach(ctx context.Context, id string) (sessionfs.FS, context.Context, context.CancelFunc, error) {
	if err := eventlog.CheckID(id); err != nil {
		return nil, nil, nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, nil, nil, err
	}
	files, err := s.cfg.Open(id)
	if err != nil {
		return nil, nil, nil, err
	}
	bounded, cancel := context.WithTimeoutCause(ctx, s.cfg.ReadTime, fmt.Errorf("the host that keeps session %s has not answered for %v", id, s.cfg.ReadTime))
	return files, bounded, cancel, nil
}

// Create implements eventlog.Store.
func (s *Store) Create(ctx context.Context, id string) (eventlog.Log, error) {
	files, ctx, cancel, err := s.reach(ctx, id)
	if err != nil {
		return nil, err
	}
	defer cancel()
	s.mu.Lock()
	_, taken := s.known[id]
	if !taken {
		s.known[id] = &entry{info: eventlog.Info{SessionID: id, Started: time.Now()}}
	}
	s.mu.Unlock()
	if !taken {
		if taken, err = files.Exists(ctx, s.cfg.Layout.Must(File)); taken || err != nil {
			s.forget(id)
		}
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("create session %s: %w", id, err)
	case taken:
		return nil, fmt.Errorf("create session %s: %w", id, eventlog.ErrExists)
	}
	return &Log{store: s, id: id}, nil
}

func (s *Store) forget(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.known, id)
}

// Open implements eventlog.Store. The whole log is read.
func (s *Store) Open(ctx context.Context, id string) (eventlog.Log, []eventlog.Damage, error) {
	files, ctx, cancel, err := s.reach(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	defer cancel()
	text, err := files.ReadFile(ctx, s.cfg.Layout.Must(File))
	if err != nil {
		return nil, nil, s.failed("open", id, err)
	}
	l := &Log{store: s, id: id, stored: true}
	damages := l.load(text)
	s.note(id, func(i *eventlog.Info) {
		i.Bytes = l.bytes
		if i.Modified.IsZero() {
			i.Modified = l.newest()
		}
		if i.Started.IsZero() {
			i.Started = l.oldest()
		}
	})
	return l, damages, nil
}

// note changes what is known of a stored session.
func (s *Store) note(id string, change func(*eventlog.Info)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.known[id]
	if e == nil {
		e = &entry{info: eventlog.Info{SessionID: id}}
		s.known[id] = e
	}
	e.stored = true
	change(&e.info)
}

func (s *Store) failed(verb, id string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		err = eventlog.ErrNotFound
	}
	return fmt.Errorf("%s session %s: %w", verb, id, err)
}

// Stat implements eventlog.Store.
func (s *Store) Stat(ctx context.Context, id string) (eventlog.Info, error) {
	if err := eventlog.CheckID(id); err != nil {
		return eventlog.Info{}, err
	}
	if err := ctx.Err(); err != nil {
		return eventlog.Info{}, err
	}
	s.mu.Lock()
	e := s.known[id]
	var info eventlog.Info
	stored := e != nil && e.stored
	if stored {
		info = e.info
	}
	s.mu.Unlock()
	if stored {
		return info, nil
	}
	files, ctx, cancel, err := s.reach(ctx, id)
	if err != nil {
		return info, err
	}
	defer cancel()
	i, err := files.Stat(ctx, s.cfg.Layout.Must(File))
	if err != nil {
		return info, s.failed("look at", id, err)
	}
	info = eventlog.Info{SessionID: id, Started: i.Born, Modified: i.Modified, Bytes: i.Bytes}
	if info.Started.IsZero() {
		info.Started = i.Modified
	}
	return info, nil
}

// List implements eventlog.Store: see [Store].
func (s *Store) List(ctx context.Context) ([]eventlog.Info, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var infos []eventlog.Info
	for _, e := range s.known {
		if e.stored {
			infos = append(infos, e.info)
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

// Delete implements eventlog.Store: all of the session's directory goes.
func (s *Store) Delete(ctx context.Context, id string) error {
	files, ctx, cancel, err := s.reach(ctx, id)
	if err != nil {
		return err
	}
	defer cancel()
	there, err := files.Exists(ctx, s.cfg.Layout.Must(File))
	switch {
	case err != nil:
		return s.failed("delete", id, err)
	case !there:
		return fmt.Errorf("delete session %s: %w", id, eventlog.ErrNotFound)
	}
	if err := files.Remove(ctx, s.cfg.Layout.Root, true, true); err != nil {
		return s.failed("delete", id, err)
	}
	s.forget(id)
	return nil
}

// Dir implements eventlog.Store: there is no directory on this machine.
func (s *Store) Dir(string) string { return "" }

// Hold implements eventlog.Store. The holders are those of this Store.
func (s *Store) Hold(id string) (eventlog.Hold, error) {
	if err := eventlog.CheckID(id); err != nil {
		return nil, err
	}
	return s.holds.Hold(id)
}
