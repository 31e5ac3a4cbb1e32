package transom

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/internal/preimage"
	"github.com/transom-run/transom/internal/session"
	"github.com/transom-run/transom/internal/turn"
)

// Truncate removes an event and all that follow it from the history: messages,
// event reads and the window are what they were before it, as if nothing had
// happened since. The log keeps everything. It is refused while a turn is running.
// Settings, totals, and messages that wait for their turn stay as they are.
// Result: how many events were removed (int64).
type Truncate struct{ EventID string }

func (Truncate) op() string                 { return "session.history.truncate" }
func (c Truncate) body() (turn.Body, error) { return turn.GoBack{EventID: c.EventID}, nil }

func (Truncate) settle(v any, err error) (any, error) {
	if b, ok := v.(turn.Back); ok {
		return b.EventsRemoved, err
	}
	return v, err
}

// Rewind is Truncate to a message of a user, with an outcome in the place of an
// error where that is what the session's state comes to. Result: a RewindResult.
type Rewind struct {
	EventID string
	// Files brings back the files that tools have written to since, too.
	Files bool
}

func (Rewind) op() string { return "session.history.rewind" }
func (c Rewind) body() (turn.Body, error) {
	return turn.GoBack{EventID: c.EventID, Files: c.Files}, nil
}

// RewindOutcome says what a rewind came to, in the protocol's words.
type RewindOutcome string

// The outcomes.
const (
	// Rewound: done.
	Rewound RewindOutcome = "success"
	// RewindBusy: a turn is running; nothing was done.
	RewindBusy RewindOutcome = "session-busy"
	// RewindUntracked: the session keeps no track of files; nothing was done.
	RewindUntracked RewindOutcome = "file-change-tracking-disabled"
	// RewindRemote: the session lives on another server; nothing was done.
	RewindRemote RewindOutcome = "unsupported-remote-session"
	// RewindRolledBack: a file could not be brought back, and all are as before.
	RewindRolledBack RewindOutcome = "files-rolled-back"
	// RewindTorn: a file could not be brought back, and others not be changed again.
	RewindTorn RewindOutcome = "rollback-incomplete"
	// RewindUnwritten: files were brought back, and the history could not be written.
	RewindUnwritten RewindOutcome = "truncation-failed"
)

// RewindResult is what a rewind came to.
type RewindResult struct {
	Outcome       RewindOutcome
	EventsRemoved int64
	Restored      []string // absolute paths of files that are as they were
	Skipped       []SkippedFile
	Error         string // what failed
}

// SkippedFile is a file that a rewind left alone.
type SkippedFile struct {
	Path   string
	Reason string // "user-modified": not what a tool left there; or "skipped-capture": what it held was not kept
}

func (c Rewind) settle(v any, err error) (any, error) {
	var refusal *turn.Refusal
	var unwritten *turn.UnwrittenError
	switch b, ok := v.(turn.Back); {
	case errors.As(err, &unwritten):
		return RewindResult{Outcome: RewindUnwritten, Error: err.Error()}, nil
	case errors.As(err, &refusal):
		switch refusal.Kind {
		case "wrong_state":
			return RewindResult{Outcome: RewindBusy}, nil
		case "unsupported":
			if c.Files {
				return RewindResult{Outcome: RewindUntracked}, nil
			}
			return RewindResult{Outcome: RewindRemote}, nil
		}
		return nil, err
	case err != nil || !ok:
		return nil, err
	default:
		out := RewindResult{Outcome: Rewound, EventsRemoved: b.EventsRemoved, Restored: b.Restored}
		for _, s := range b.Skipped {
			out.Skipped = append(out.Skipped, SkippedFile(s))
		}
		if b.Failed != nil {
			out.Outcome, out.Error = RewindRolledBack, b.Failed.Error()
			if b.Torn {
				out.Outcome = RewindTorn
			}
		}
		return out, nil
	}
}

// Truncate is the command [Truncate].
func (h History) Truncate(ctx context.Context, eventID string) (removed int64, err error) {
	v, err := h.s.do(ctx, Truncate{EventID: eventID})
	if err != nil {
		return 0, err
	}
	return v.(int64), nil
}

// Rewind is the command [Rewind].
func (h History) Rewind(ctx context.Context, eventID string, files bool) (RewindResult, error) {
	v, err := h.s.do(ctx, Rewind{EventID: eventID, Files: files})
	if err != nil {
		return RewindResult{}, err
	}
	return v.(RewindResult), nil
}

// RewindPoint is a message of a user that began a turn.
type RewindPoint struct {
	EventID      string
	Time         time.Time
	Text         string
	Files        int // that tools wrote to in this turn and later ones
	Restorable   int // those of them that can be brought back
	Changed      bool
	Added        int // lines, in this turn
	Removed      int
	Continuation bool // not a user's, but made for the autopilot mode
}

// FileTracking reports whether the session captures the files that its tools
// change.
func (h *Session) FileTracking() bool { return h.sess.View().Tracked }

// Busy says, as an outcome, why the history cannot go back now; "" where it can.
func (h History) Busy() RewindOutcome {
	v := h.s.sess.View()
	switch {
	case v.Live.Settings.Remote:
		return RewindRemote
	case !v.Settled():
		return RewindBusy
	}
	return ""
}

// RewindPoints lists what the history can be rewound to, oldest first.
func (h History) RewindPoints() ([]RewindPoint, error) {
	s, err := session.NewSurvey(h.s.sess.Log())
	if err != nil {
		return nil, wrap("session.history.listRewindPoints", h.s.id, err)
	}
	out := make([]RewindPoint, len(s.Points))
	for i, p := range s.Points {
		out[i] = RewindPoint{EventID: p.EventID, Time: p.At, Text: p.Text, Continuation: p.Mode == "autopilot-continuation"}
		files, _ := s.Since(p.EventID)
		out[i].Files = len(files)
		for _, f := range files {
			if !f.Lost {
				out[i].Restorable++
			}
		}
	}
	for _, c := range s.Captures {
		if c.Point >= 0 {
			p := &out[c.Point]
			p.Changed, p.Added, p.Removed = true, p.Added+c.Added, p.Removed+c.Gone
		}
	}
	return out, nil
}

// FilePreview is a file that a rewind would bring back.
type FilePreview struct {
	Path           string
	Change         string // what the turns did: "created", "modified" or "deleted"
	Added, Removed int    // lines
}

// PreviewRewind lists the files that a rewind to before a message of a user would
// bring back, by path.
func (h History) PreviewRewind(eventID string) ([]FilePreview, error) {
	const op = "session.history.previewRewind"
	s, err := session.NewSurvey(h.s.sess.Log())
	if err != nil {
		return nil, wrap(op, h.s.id, err)
	}
	files, ok := s.Since(eventID)
	if !ok {
		return nil, &Error{Op: op, Kind: KindNotFound, SessionID: h.s.id, Msg: "Event ID not found: " + eventID + ": it is no message of a user in the session's history"}
	}
	out := make([]FilePreview, 0, len(files))
	for _, f := range files {
		if f.Lost {
			continue
		}
		p := FilePreview{Path: f.Path, Change: "modified"}
		if f.To.Hash == "" {
			p.Change = "created"
		}
		p.Added, p.Removed = s.Lines(eventID, f.Path)
		out = append(out, p)
	}
	return out, nil
}

// FileChange is a file before a tool writes to it.
type FileChange struct {
	// Path is absolute, with every symbolic link followed.
	Path string
	// Exists tells whether there is a file; Before is its contents and Mode its
	// permissions.
	Exists bool
	Before []byte
	Mode   fs.FileMode
	// After is what the file will hold; Added and Removed count the lines in which
	// that differs.
	After          []byte
	Added, Removed int
}

// captures are the files of a session as they were before its tools wrote to them.
type captures struct {
	mu    sync.Mutex // held while one is kept and noted
	store preimage.Store
}

// snapshotDir is where they are, in the session's directory.
const snapshotDir = "rewind"

// capture keeps a file as it is, where the session keeps track: it is noted in the
// log before the tool writes. A file that cannot be kept is written to all the
// same, and a rewind says that it left it alone.
func (s *loaded) capture(ctx context.Context, ch FileChange) error {
	if !s.View().Tracked {
		return nil
	}
	s.captured.mu.Lock()
	defer s.captured.mu.Unlock()
	note := event.FileCaptured{Path: ch.Path, After: preimage.Hash(ch.After), Added: ch.Added, Gone: ch.Removed}
	if ch.Exists {
		hash, err := s.captured.store.Keep(ch.Before)
		note.Before, note.Lost = event.FileImage{Hash: hash, Mode: uint32(ch.Mode.Perm())}, err != nil
	}
	_, err := s.Do(ctx, turn.Note{Payload: note}, nil)
	return err
}

// restore brings files back.
func (s *loaded) restore(files []event.FileRestore) turn.FilesRestored {
	s.captured.mu.Lock()
	defer s.captured.mu.Unlock()
	r := s.captured.store.Restore(files)
	out := turn.FilesRestored{Restored: r.Restored, Err: r.Err, Torn: r.Torn}
	for _, f := range r.Skipped {
		out.Skipped = append(out.Skipped, turn.SkippedFile(f))
	}
	return out
}

// Prune forgets the files that no rewind can bring back any more.
func (h History) Prune() error {
	s := h.s.sess
	if !s.View().Tracked {
		return nil
	}
	s.captured.mu.Lock()
	defer s.captured.mu.Unlock()
	survey, err := session.NewSurvey(s.Log())
	if err != nil {
		return wrap("session.history.rewind", h.s.id, err)
	}
	var needed []string
	for _, c := range survey.Captures {
		needed = append(needed, c.Before.Hash)
	}
	slices.Sort(needed)
	return wrap("session.history.rewind", h.s.id, s.captured.store.Prune(slices.Compact(needed)))
}

// snapshots is where a session keeps files as they were; "" where it keeps none.
func (r *Runtime) snapshots(id string) string {
	if dir := r.storage().Dir(id); dir != "" {
		return filepath.Join(dir, snapshotDir)
	}
	return ""
}

// trackable says why the files of a session cannot be kept as they were; nil where
// they can.
func (r *Runtime) trackable(id string) error {
	switch {
	case r.snapshots(id) != "":
		return nil
	case r.kept.Load() != nil:
		return &Error{Kind: KindUnsupported, Msg: "files cannot be kept track of (enableFileChangeTracking) where a host keeps the session's files: leave it out"}
	}
	return &Error{Kind: KindUnsupported, Msg: "files cannot be kept track of: the store of this runtime has no directory for a session"}
}
