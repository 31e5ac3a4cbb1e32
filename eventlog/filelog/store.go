package filelog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/transom-run/transom/eventlog"
	"github.com/transom-run/transom/eventlog/internal/record"
)

const logName = "events.jsonl"

// Config says where and how a Store keeps its logs.
type Config struct {
	// Home is the directory that holds session-state. Required; it is made when
	// the first session is.
	Home string
	// SyncInterval is how long a record may wait before it is brought to the
	// disk, where its batch did not ask for that at once. 0 means one second;
	// below 0 such records are left to the operating system.
	SyncInterval time.Duration
	// OnSyncError, where it is set, is told of each sync in the background that
	// failed. It is called from the store's timer and must not call the store.
	// The Log remembers the error as well: see "Errors" in the package comment.
	OnSyncError func(sessionID string, err error)
	// Seam stands between the store and the operating system, for tests; nil:
	// nothing does.
	Seam Seam
}

// Store keeps logs in files. Its methods may be called from any goroutine.
// Several stores, in one process or in many, may share a home.
type Store struct {
	cfg    Config
	root   string // HOME/session-state
	fs     *fsys
	syncer *syncer
}

// New makes a store. It touches no file.
func New(cfg Config) (*Store, error) {
	if cfg.Home == "" {
		return nil, errors.New("session store: no home directory given")
	}
	home, err := filepath.Abs(cfg.Home)
	if err != nil {
		return nil, fmt.Errorf("session store in %s: %w", cfg.Home, err)
	}
	cfg.Home = home
	if cfg.SyncInterval == 0 {
		cfg.SyncInterval = time.Second
	}
	s := &Store{cfg: cfg, root: filepath.Join(home, "session-state"), fs: &realFS, syncer: newSyncer(cfg.SyncInterval)}
	if cfg.Seam != nil {
		s.fs = seamed(realFS, cfg.Seam)
	}
	return s, nil
}

// Close brings what is still unsynced to the disk and ends the background work.
// It does not close the logs; what is appended to them afterwards is synced at
// once.
func (s *Store) Close() error { return s.syncer.close() }

// Create implements eventlog.Store. The id is kept for the Log until its first
// batch that is not provisional, or its Close. A session of the same id that
// another process makes meanwhile is found out by that batch, which fails with
// ErrExists.
func (s *Store) Create(ctx context.Context, id string) (eventlog.Log, error) {
	if err := check(ctx, id); err != nil {
		return nil, err
	}
	l := s.log(id)
	if !reserved.take(l.path) {
		return nil, s.wrap("create", id, eventlog.ErrExists)
	}
	// In this order: whoever had the reservation before has made the file.
	switch _, err := s.fs.lstat(l.path); {
	case err == nil:
		reserved.drop(l.path)
		return nil, s.wrap("create", id, eventlog.ErrExists)
	case !errors.Is(err, fs.ErrNotExist):
		reserved.drop(l.path)
		return nil, s.wrap("create", id, err)
	}
	l.reserved = true
	return l, nil
}

// Open implements eventlog.Store. A log that may not be written to is opened all
// the same; its appends fail. Nothing is changed: see the package comment for
// what is reported and what becomes of it.
func (s *Store) Open(ctx context.Context, id string) (eventlog.Log, []eventlog.Damage, error) {
	if err := check(ctx, id); err != nil {
		return nil, nil, err
	}
	l := s.log(id)
	fi, err := s.fs.stat(l.path)
	if err == nil && !fi.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", l.path) // a pipe would block
	}
	if err != nil {
		return nil, nil, s.wrap("open", id, err)
	}
	l.file, err = s.fs.open(l.path, os.O_RDWR|os.O_APPEND)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		readOnly := err
		if l.file, err = s.fs.open(l.path, os.O_RDONLY); err == nil {
			l.readOnly = readOnly
		}
	}
	if err != nil {
		return nil, nil, s.wrap("open", id, err)
	}
	if fi, err = l.file.Stat(); err == nil {
		l.size = fi.Size()
		l.tail, err = examine(l.file, l.size)
	}
	if err != nil {
		_ = l.file.Close()
		return nil, nil, s.wrap("open", id, err)
	}
	damage := l.tail.damage
	l.tail.damage = nil
	return l, damage, nil
}

func (s *Store) log(id string) *Log {
	dir := filepath.Join(s.root, id)
	return &Log{store: s, id: id, dir: dir, path: filepath.Join(dir, logName)}
}

// Stat implements eventlog.Store.
func (s *Store) Stat(ctx context.Context, id string) (eventlog.Info, error) {
	if err := check(ctx, id); err != nil {
		return eventlog.Info{}, err
	}
	info, err := s.info(id, make([]byte, firstRecord))
	if err != nil {
		return eventlog.Info{}, s.wrap("look at", id, err)
	}
	return info, nil
}

// List implements eventlog.Store. A session that cannot be looked at is left out.
func (s *Store) List(ctx context.Context) ([]eventlog.Info, error) {
	entries, err := s.fs.readDir(s.root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("list sessions: %w%s", err, advice(err))
	}
	infos := make([]eventlog.Info, 0, len(entries))
	buf := make([]byte, firstRecord)
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if e.Type().IsRegular() || eventlog.CheckID(e.Name()) != nil {
			continue
		}
		if info, err := s.info(e.Name(), buf); err == nil {
			infos = append(infos, info)
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

// firstRecord is how much of a log is read to learn when it began.
const firstRecord = 4 << 10

func (s *Store) info(id string, buf []byte) (eventlog.Info, error) {
	l := s.log(id)
	fi, err := s.fs.stat(l.path)
	if err != nil {
		return eventlog.Info{}, err
	}
	if !fi.Mode().IsRegular() {
		return eventlog.Info{}, fmt.Errorf("%s is not a regular file", l.path)
	}
	info := eventlog.Info{SessionID: id, Modified: fi.ModTime(), Bytes: fi.Size()}
	if info.Started = s.started(l.path, buf); info.Started.IsZero() {
		info.Started = info.Modified
		if di, err := s.fs.stat(l.dir); err == nil && di.ModTime().Before(info.Started) {
			info.Started = di.ModTime()
		}
	}
	return info, nil
}

// started returns the time of the first record if it is short and well formed.
func (s *Store) started(path string, buf []byte) time.Time {
	f, err := s.fs.open(path, os.O_RDONLY)
	if err != nil {
		return time.Time{}
	}
	defer f.Close()
	n, _ := f.ReadAt(buf, 0)
	line, _, _ := bytes.Cut(buf[:n], []byte{'\n'})
	var first struct {
		Timestamp time.Time `json:"timestamp"`
	}
	if json.Unmarshal(line, &first) != nil {
		return time.Time{}
	}
	return first.Timestamp
}

// Head implements eventlog.Header. It looks at the first 64 KiB.
func (s *Store) Head(ctx context.Context, id string, see func(line []byte) bool) error {
	if err := check(ctx, id); err != nil {
		return err
	}
	l := s.log(id)
	f, err := s.fs.open(l.path, os.O_RDONLY)
	if err != nil {
		return s.wrap("look at", id, err)
	}
	defer f.Close()
	seen := 0 // bytes of records that see has had
	for size := firstRecord; ; size = block {
		buf := make([]byte, size)
		n, err := f.ReadAt(buf, 0)
		if err != nil && err != io.EOF {
			return s.wrap("look at", id, err)
		}
		rest, whole := buf[:n], n < size
		for at := 0; len(rest) > 0; {
			line, more, ended := bytes.Cut(rest, []byte{'\n'})
			if !ended && !whole {
				break // what follows was not read
			}
			rest = more
			at += len(line) + 1
			if at <= seen {
				continue
			}
			seen = at
			if line = record.Trim(line); record.Valid(line) && !see(line) {
				return nil
			}
		}
		if whole || size == block {
			return nil
		}
	}
}

// Delete implements eventlog.Store. It removes the session's directory and what
// is in it; where that is a symbolic link, the link alone. A session that was
// never stored but has a directory loses that.
func (s *Store) Delete(ctx context.Context, id string) error {
	if err := check(ctx, id); err != nil {
		return err
	}
	l := s.log(id)
	fi, err := s.fs.lstat(l.dir)
	switch {
	case err != nil:
	case fi.IsDir():
		// The log first: if this is cut short, no half of a session is left.
		if err = s.fs.remove(l.path); err == nil || errors.Is(err, fs.ErrNotExist) {
			err = s.fs.removeAll(l.dir)
		}
	case fi.Mode()&fs.ModeSymlink != 0:
		err = s.fs.remove(l.dir)
	default:
		err = fs.ErrNotExist // a file of someone else's
	}
	if err == nil {
		err = s.fs.syncDir(s.root)
	}
	if err != nil {
		return s.wrap("delete", id, err)
	}
	return nil
}

// Dir implements eventlog.Store. It is "" for an id that is not valid.
func (s *Store) Dir(id string) string {
	if eventlog.CheckID(id) != nil {
		return ""
	}
	return filepath.Join(s.root, id)
}

// Hold implements eventlog.Store.
func (s *Store) Hold(id string) (eventlog.Hold, error) {
	if err := eventlog.CheckID(id); err != nil {
		return nil, err
	}
	if err := s.fs.mkdirAll(s.root); err != nil {
		// Not wrapped: that a directory is missing says nothing about the session.
		return nil, fmt.Errorf("the directory of the sessions, %s, cannot be made: %v: choose another home", s.root, err)
	}
	table, err := tableOf(s.root)
	if err != nil {
		return nil, s.wrap("hold", id, err)
	}
	if s.cfg.Seam == nil {
		return table.Hold(fold(id))
	}
	h := seamedHold{id: id, seam: s.cfg.Seam}
	err = s.cfg.Seam.Do(Op{OpHold, id}, func() (err error) { h.Hold, err = table.Hold(fold(id)); return err })
	if err != nil {
		return nil, err // a hold that was taken all the same ends with the process
	}
	return h, nil
}

func check(ctx context.Context, id string) error {
	if err := eventlog.CheckID(id); err != nil {
		return err
	}
	return ctx.Err()
}

func (s *Store) wrap(verb, id string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		err = eventlog.ErrNotFound
	}
	return fmt.Errorf("%s session %s in %s: %w%s", verb, id, s.root, err, advice(err))
}

// fold makes one name of those that the file system usually takes for one.
func fold(name string) string {
	if runtime.GOOS == "darwin" || runtime.GOOS == "windows" {
		return strings.ToLower(name)
	}
	return name
}

// reserved holds the logs that Create has given out and that are not made yet,
// for all stores of the process.
var reserved reservations

type reservations struct {
	mu    sync.Mutex
	paths map[string]bool
}

func (r *reservations) take(path string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	path = fold(path)
	if r.paths[path] {
		return false
	}
	if r.paths == nil {
		r.paths = map[string]bool{}
	}
	r.paths[path] = true
	return true
}

func (r *reservations) drop(path string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.paths, fold(path))
}
