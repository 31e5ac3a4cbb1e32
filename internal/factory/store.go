package factory

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/transom-run/transom/internal/lazy"
)

// Status says where a run stands. Its values are those of the protocol.
type Status string

// Where a run can stand. Of those, Running is the only one that an attempt is under
// way in.
const (
	Pending   Status = "pending"
	Running   Status = "running"
	Paused    Status = "paused"
	Completed Status = "completed"
	Halted    Status = "halted"
	Cancelled Status = "cancelled"
	Failed    Status = "error"
)

// Meta is what a client declares of a factory.
type Meta struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Phases      []Phase         `json:"phases,omitempty"`
	Limits      json.RawMessage `json:"limits,omitempty"`
	ArgsSchema  json.RawMessage `json:"argsSchema,omitempty"`
}

// Phase is a part of a factory's work.
type Phase struct {
	Title  string `json:"title"`
	Detail string `json:"detail,omitempty"`
}

// Line is a line of a run's progress.
type Line struct {
	Seq     int64     `json:"seq"`  // from 0, over all attempts
	Kind    string    `json:"kind"` // "log", or "phase": then Text is its title
	Text    string    `json:"text"`
	Phase   string    `json:"phase,omitempty"` // that it stands in; "" is none
	Attempt int       `json:"attempt"`
	At      time.Time `json:"at"`
}

// Outcome is how an attempt ended.
type Outcome struct {
	Status  Status          `json:"status"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   string          `json:"error,omitempty"`
	Reason  string          `json:"reason,omitempty"`
	Failure json.RawMessage `json:"failure,omitempty"`
	// PausedAt is the checkpoint that it paused at; "" where a user asked.
	PausedAt string `json:"pausedAt,omitempty"`
}

// Run is a run as its file has it.
type Run struct {
	ID       string
	Meta     Meta
	Args     json.RawMessage
	Created  time.Time
	Begun    time.Time // its newest attempt
	Updated  time.Time
	Ended    time.Time     // zero while it runs
	Active   time.Duration // of the attempts that are over
	Attempt  int
	Revision int64 // grows with each record
	Outcome
	Lines []Line

	steps map[string]json.RawMessage // by key; of the store
}

// Over reports whether a run can never go on: it is done.
func (r *Run) Over() bool { return r.Status == Completed }

// Phase is the phase that the run is in, or was in last; "" is none.
func (r *Run) Phase() string {
	for i := len(r.Lines) - 1; i >= 0; i-- {
		if r.Lines[i].Kind == "phase" {
			return r.Lines[i].Text
		}
	}
	return ""
}

// The errors of a store.
var (
	ErrUnknown = errors.New("there is no run of that id")
	ErrStale   = errors.New("the attempt is over")
)

// record is one line of a file.
type record struct {
	Kind    string          `json:"k"` // "run", "attempt", "lines", "step" or "end"
	At      time.Time       `json:"at"`
	Run     string          `json:"run,omitempty"`
	Meta    *Meta           `json:"meta,omitempty"`
	Args    json.RawMessage `json:"args,omitempty"`
	Attempt int             `json:"attempt,omitempty"`
	Lines   []Line          `json:"lines,omitempty"`
	Key     string          `json:"key,omitempty"`
	Value   json.RawMessage `json:"value,omitempty"`
	Outcome *Outcome        `json:"outcome,omitempty"`
}

// Store keeps the runs of one session.
type Store struct {
	dir string // "" keeps them in memory
	now func() time.Time

	mu     sync.Mutex
	runs   map[string]*Run
	read   bool           // the directory was read
	active map[string]int // the attempt under way here, by run
}

// New makes a store on a directory, which need not exist; "" keeps the runs in
// memory.
func New(dir string, now func() time.Time) *Store {
	return &Store{dir: dir, now: now, runs: map[string]*Run{}, active: map[string]int{}}
}

// Create notes a new run.
func (s *Store) Create(id string, m Meta, args json.RawMessage) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.load(); err != nil {
		return err
	}
	return s.write(id, record{Kind: "run", Run: id, Meta: &m, Args: args})
}

// Begin begins the next attempt of a run, and returns its number.
func (s *Store) Begin(id string) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.run(id)
	if err != nil {
		return 0, err
	}
	n := r.Attempt + 1
	if err := s.write(id, record{Kind: "attempt", Attempt: n}); err != nil {
		return 0, err
	}
	s.active[id] = n
	return n, nil
}

// Running reports whether an attempt of a run is under way here.
func (s *Store) Running(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.active[id] > 0
}

// Actives counts the runs that are under way here.
func (s *Store) Actives() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.active)
}

// Log adds lines to a run's progress.
func (s *Store) Log(id string, attempt int, lines []Line) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.current(id, attempt)
	if err != nil || len(lines) == 0 {
		return err
	}
	phase, now := r.Phase(), s.now()
	out := slices.Clone(lines)
	for i := range out {
		if out[i].Kind != "phase" {
			out[i].Kind = "log"
		} else {
			phase = out[i].Text
		}
		out[i].Seq, out[i].Phase, out[i].Attempt, out[i].At = int64(len(r.Lines)+i), phase, attempt, now
	}
	return s.write(id, record{Kind: "lines", Lines: out})
}

// Get returns what a step came to that was done before.
func (s *Store) Get(id string, attempt int, key string) (json.RawMessage, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.current(id, attempt)
	if err != nil {
		return nil, false, err
	}
	v, hit := r.steps[key]
	return v, hit, nil
}

// Put notes what a step came to.
func (s *Store) Put(id string, attempt int, key string, value json.RawMessage) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.current(id, attempt); err != nil {
		return err
	}
	return s.write(id, record{Kind: "step", Key: key, Value: value})
}

// Settle ends an attempt. One that is over already stays as it ended.
func (s *Store) Settle(id string, attempt int, o Outcome) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.current(id, attempt); err != nil {
		return err
	}
	delete(s.active, id)
	return s.write(id, record{Kind: "end", Outcome: &o})
}

// Read returns a run as it stands. It must not be changed.
func (s *Store) Read(id string) (Run, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.run(id)
	if err != nil {
		return Run{}, err
	}
	return *r, nil
}

// List returns all runs, oldest first.
func (s *Store) List() ([]Run, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.load(); err != nil {
		return nil, err
	}
	out := make([]Run, 0, len(s.runs))
	for _, r := range s.runs {
		out = append(out, *r)
	}
	slices.SortFunc(out, func(a, b Run) int {
		if c := a.Created.Compare(b.Created); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	return out, nil
}

func (s *Store) current(id string, attempt int) (*Run, error) {
	r, err := s.run(id)
	if err != nil {
		return nil, err
	}
	if s.active[id] != attempt || attempt == 0 {
		return nil, ErrStale
	}
	return r, nil
}

func (s *Store) run(id string) (*Run, error) {
	if err := s.load(); err != nil {
		return nil, err
	}
	r := s.runs[id]
	if r == nil {
		return nil, ErrUnknown
	}
	return r, nil
}

// write appends a record to a run's file, and folds it. mu is held.
func (s *Store) write(id string, rec record) error {
	rec.At = s.now()
	if s.dir != "" {
		line, err := json.Marshal(rec)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(s.dir, 0o700); err != nil {
			return err
		}
		if err := appendLine(s.path(id), append(line, '\n')); err != nil {
			return err
		}
	}
	next := Run{}
	if have := s.runs[id]; have != nil {
		next = *have
	}
	next.fold(rec)
	s.runs[id] = &next
	return nil
}

// appendLine writes a line whole or not at all, as far as later reads go.
func appendLine(path string, line []byte) (err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if _, err = f.Write(line); err == nil {
		err = f.Sync()
	}
	if err != nil {
		return errors.Join(err, f.Truncate(info.Size()))
	}
	return nil
}

func (s *Store) path(id string) string { return filepath.Join(s.dir, id+".jsonl") }

// runID is what a run's id looks like: it is a file's name, too.
var runID = lazy.Regexp{Expr: `^[A-Za-z0-9][A-Za-z0-9-]{0,63}$`}

// load reads the directory, once. mu is held.
func (s *Store) load() error {
	if s.read || s.dir == "" {
		return nil
	}
	entries, err := os.ReadDir(s.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), ".jsonl")
		if !ok || !runID.Get().MatchString(id) {
			continue
		}
		raw, err := os.ReadFile(s.path(id))
		if err != nil {
			return err
		}
		r, good := parse(raw)
		if good < len(raw) { // torn: what follows would be lost behind it
			if err := os.Truncate(s.path(id), int64(good)); err != nil {
				return err
			}
		}
		if r.ID == id {
			s.runs[id] = &r
		}
	}
	s.read = true
	return nil
}

// parse folds a file, and says how much of it could be read. A run that was under
// way when its process ended is halted.
func parse(raw []byte) (r Run, good int) {
	for rest := raw; len(rest) > 0; {
		line, after, whole := bytes.Cut(rest, []byte("\n"))
		var rec record
		if !whole || json.Unmarshal(line, &rec) != nil {
			break
		}
		r.fold(rec)
		rest = after
		good = len(raw) - len(rest)
	}
	if r.Status == Running || r.Status == Pending {
		r.Outcome = Outcome{Status: Halted, Reason: "the runtime ended while it was under way"}
		r.Ended = r.Updated
	}
	return r, good
}

// fold is a run after a record.
func (r *Run) fold(rec record) {
	r.Revision++
	r.Updated = rec.At
	switch rec.Kind {
	case "run":
		r.ID, r.Args, r.Created, r.Outcome = rec.Run, rec.Args, rec.At, Outcome{Status: Pending}
		if rec.Meta != nil {
			r.Meta = *rec.Meta
		}
	case "attempt":
		r.Attempt, r.Begun, r.Ended, r.Outcome = rec.Attempt, rec.At, time.Time{}, Outcome{Status: Running}
	case "lines":
		r.Lines = append(r.Lines, rec.Lines...) // values that were handed out end before them
	case "step":
		if r.steps == nil {
			r.steps = map[string]json.RawMessage{}
		}
		r.steps[rec.Key] = rec.Value
	case "end":
		if rec.Outcome != nil {
			r.Outcome = *rec.Outcome
		}
		r.Ended = rec.At
		r.Active += rec.At.Sub(r.Begun)
	}
}
