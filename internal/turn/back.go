package turn

import (
	"fmt"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/internal/window"
)

// Going back is a boundary like a clear: one record, after which the history and
// the window are what they were before an event. What they were stands in the log,
// so an effect reads it while messages wait; and where files are brought back as
// well, a record says so before the first is touched.
//
//	GoBack ─▶ FindPast ─▶ PastFound ─▶ transom.truncated
//	                          └─ with files ─▶ transom.rewind_begun, RestoreFiles
//	                                           FilesRestored ─▶ transom.truncated

// Thread is the part of a fold that follows the history: a boundary takes it back.
type Thread struct {
	LastID      string // of the last persisted public event: the next one's parent
	Shown       int64  // persisted public events that are part of the history
	Compactions int    // summaries that have taken the place of messages
	Window      window.Window
}

// Apply folds one record that is part of the history.
func (t Thread) Apply(e *event.Event) (Thread, error) {
	if e.Ephemeral {
		return t, nil
	}
	next := t
	var err error
	if next.Window, err = t.Window.Apply(e); err != nil {
		return t, err
	}
	if e.Type == event.TypeCompactionComplete && e.AgentID == "" {
		p, err := event.As[event.CompactionComplete](e)
		if err != nil {
			return t, fmt.Errorf("fold %s %s: %w", e.Type, e.ID, err)
		}
		if p.Success {
			next.Compactions++
		}
	}
	if !e.Private() {
		next.LastID = e.ID
		next.Shown++
	}
	return next, nil
}

// GoBack takes the history back to before an event. Its Result is a Parked; the
// answer is a Back.
type GoBack struct {
	EventID string
	Files   bool // bring the files back that were changed since
}

// FindPast reads what the history was before an event, and posts PastFound.
type FindPast struct {
	ID      uint64
	EventID string
	Files   bool // say which files have to be brought back, too
}

// PastFound is what the history was.
type PastFound struct {
	ID    uint64
	Past  Thread
	Files []event.FileRestore
	Err   error
}

// RestoreFiles brings files back and posts FilesRestored.
type RestoreFiles struct {
	ID    uint64
	Files []event.FileRestore
}

// FilesRestored says what became of the files. Where there is an error, those that
// were brought back were changed again to what they had been, unless Torn.
type FilesRestored struct {
	ID       uint64
	Restored []string
	Skipped  []SkippedFile
	Err      error
	Torn     bool
}

// ForgetCheckpoints removes the files of summaries that are no part of the history
// any more. Nothing is posted.
type ForgetCheckpoints struct{ Above int }

// SkippedFile is a file that was left alone.
type SkippedFile struct {
	Path   string
	Reason string // "user-modified" or "skipped-capture"
}

// Back is the answer to GoBack.
type Back struct {
	EventsRemoved int64
	Restored      []string
	Skipped       []SkippedFile
	Failed        error // of the files: nothing was removed
	Torn          bool
}

// UnwrittenError says that a boundary could not be written.
type UnwrittenError struct{ Err error }

func (e *UnwrittenError) Error() string {
	return "the history was not truncated, because the session's log could not be written: " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *UnwrittenError) Unwrap() error { return e.Err }

// Parked is the Result of an input that is answered later, in a Ready's Answers.
type Parked uint64

// Answer answers a parked input.
type Answer struct {
	ID     uint64
	Result any
	Err    error
}

// The kinds of these inputs.
const (
	KindGoBack        Kind = "go_back"
	KindPastFound     Kind = "past_found"
	KindFilesRestored Kind = "files_restored"
)

func (GoBack) kind() Kind        { return KindGoBack }
func (PastFound) kind() Kind     { return KindPastFound }
func (FilesRestored) kind() Kind { return KindFilesRestored }

// back is a history on its way back. It is never changed in place.
type back struct {
	id      uint64
	eventID string
	files   bool
	past    *Thread // once it is known
	asked   bool    // somebody waits for the answer
	held    bool    // messages were left waiting before it began
	ordered int64   // messages that had come to wait by then
	onward  bool    // a resume wants to go on afterwards
}

// goingBack is the history on its way back; nil where it is not.
func (s *State) goingBack() *back {
	if s.Live.Prep == nil {
		return nil
	}
	return s.Live.Prep.back
}

// Settled reports whether nothing is under way that could change the history, or
// files.
func (s *State) Settled() bool { return s.Phase() == Idle && len(s.Live.Agents) == 0 }

func (m *machine) goBack(in GoBack) error {
	switch phase := m.s.Phase(); {
	case in.EventID == "":
		return &Refusal{Kind: "invalid_params", Msg: "an eventId is needed: that of the first event to be removed"}
	case m.s.Live.Settings.Remote:
		return &Refusal{Kind: "unsupported", Msg: "the history of a remote session can only be changed on the server that the session lives on"}
	case m.s.goingBack() != nil:
		return &Refusal{Kind: "wrong_state", Msg: "the history is being truncated already: wait for session.snapshot_rewind"}
	case phase == Stranded:
		return &Refusal{Kind: "wrong_state", Msg: "the history cannot be truncated while a turn that was cut off is open: abort it first, or resume the session"}
	case phase != Idle:
		return &Refusal{Kind: "wrong_state", Msg: "the history cannot be truncated while a turn is running: wait for session.idle, or abort the turn first"}
	case in.Files && len(m.s.Live.Agents) > 0:
		return &Refusal{Kind: "wrong_state", Msg: "files cannot be brought back while agents are at work in the background: wait for them, or cancel them"}
	case in.Files && !m.s.Tracked:
		return &Refusal{Kind: "unsupported", Msg: "the session does not keep track of the files that it changes: create it with enableFileChangeTracking, or rewind the conversation only"}
	}
	m.ready.Result = Parked(m.takeBack(back{eventID: in.EventID, files: in.Files, asked: true, held: m.s.drains()}))
	return nil
}

// backAgain completes a rewind that was cut off between its files and its boundary.
func (m *machine) backAgain(onward bool) {
	m.takeBack(back{eventID: m.s.Rewind.EventID, files: true, onward: onward, held: onward})
}

func (m *machine) takeBack(b back) uint64 {
	l := &m.s.Live
	l.BackSerial++
	b.id, b.ordered = l.BackSerial, m.s.Ordered
	l.Prep = &preparation{back: &b}
	m.start(&FindPast{ID: b.id, EventID: b.eventID, Files: b.files && m.s.Rewind == nil})
	return b.id
}

// pastFound goes back, or has files brought back first.
func (m *machine) pastFound(in PastFound) {
	b := m.s.goingBack()
	if b == nil || b.id != in.ID || b.past != nil {
		return
	}
	if in.Err != nil {
		m.drop(b, in.Err, nil)
		return
	}
	if !b.files {
		m.cut(b, in.Past, FilesRestored{})
		return
	}
	files := in.Files
	if m.s.Rewind != nil {
		files = m.s.Rewind.Files
	} else {
		m.emit(event.RewindBegun{EventID: b.eventID, Files: files})
		m.ready.Sync = true
	}
	found := *b
	found.past = &in.Past
	m.s.Live.Prep = &preparation{back: &found}
	m.start(&RestoreFiles{ID: b.id, Files: files})
}

// filesRestored goes back once the files are.
func (m *machine) filesRestored(in FilesRestored) {
	b := m.s.goingBack()
	switch {
	case b == nil || b.id != in.ID || b.past == nil:
	case in.Err != nil:
		m.drop(b, nil, &Back{Restored: in.Restored, Skipped: in.Skipped, Failed: in.Err, Torn: in.Torn})
	default:
		m.cut(b, *b.past, in)
	}
}

// cut writes the boundary.
func (m *machine) cut(b *back, past Thread, files FilesRestored) {
	l := &m.s.Live
	removed, had := m.s.Shown-past.Shown, m.s.Compactions
	m.dropCompaction("the history was truncated meanwhile")
	m.s.Thread = past
	m.emit(event.Truncated{UpToEventID: b.eventID, Kept: past.Shown, Restored: files.Restored})
	m.emit(event.SnapshotRewind{UpToEventID: b.eventID, EventsRemoved: removed})
	m.ready.Sync = true
	l.CompactedAt, l.Noticed = 0, notice{}
	if past.Compactions < had {
		m.start(&ForgetCheckpoints{Above: past.Compactions})
	}
	if !b.asked {
		m.emit(event.SessionInfo{InfoType: "rewind", Message: fmt.Sprintf("A rewind that was cut off is complete now: %d events removed, %d files brought back, %d left alone.", removed, len(files.Restored), len(files.Skipped))})
	}
	m.leave(b, &Back{EventsRemoved: removed, Restored: files.Restored, Skipped: files.Skipped}, nil)
}

// drop gives up: the history stays as it is. An error answers, else a Back.
func (m *machine) drop(b *back, err error, result *Back) {
	if m.s.Rewind != nil {
		m.emit(event.RewindDropped{})
		m.ready.Sync = true
	}
	if !b.asked {
		why := err
		if why == nil {
			why = result.Failed
		}
		m.emit(event.SessionWarning{WarningType: "rewind", Message: "A rewind that was cut off could not be completed, and was given up: " + why.Error() + ". Files may be older than the conversation: rewind again."})
	}
	m.leave(b, result, err)
}

// leave goes on with what waits: what came while the history went back, and what a
// resume wants to go on with.
func (m *machine) leave(b *back, result *Back, err error) {
	m.s.Live.Prep = nil
	m.quiet = true // no turn has ended
	if b.asked {
		a := Answer{ID: b.id, Err: err}
		if err == nil {
			a.Result = *result
		}
		m.ready.Answers = append(m.ready.Answers, a)
	}
	if b.onward && m.waiting() || m.s.drains() && (!b.held || m.s.Ordered != b.ordered) {
		m.next(b.onward)
		return
	}
	m.rested()
}

// parted answers whoever waits for a history that goes back no more.
func (m *machine) parted(before *State, why error) {
	b := before.goingBack()
	if b == nil || !b.asked {
		return
	}
	if now := m.s.goingBack(); now != nil && now.id == b.id {
		return
	}
	for _, a := range m.ready.Answers {
		if a.ID == b.id {
			return
		}
	}
	if why == nil {
		why = &Refusal{Kind: "closing", Msg: "the session ended before its history was truncated: resume it, and see whether it was"}
	}
	m.ready.Answers = append(m.ready.Answers, Answer{ID: b.id, Err: why})
}

func (d *Durable) foldTracking(event.Tracking)     { d.Tracked = true }
func (d *Durable) foldRewind(p event.RewindBegun)  { d.Rewind = &p }
func (d *Durable) foldDropped(event.RewindDropped) { d.Rewind = nil }

func (d *Durable) foldTruncated(event.Truncated) {
	d.Boundaries, d.Rewind = d.Boundaries+1, nil
	d.unreport()
}
