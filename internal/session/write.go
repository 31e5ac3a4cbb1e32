package session

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/eventlog"
	"github.com/transom-run/transom/internal/turn"
)

// staged is a step that is being written while the session's own goroutine goes on
// taking what comes: nothing of it has happened yet.
type staged struct {
	it    item
	in    turn.Input
	next  turn.State
	ready turn.Ready
	batch eventlog.Batch
}

// wrote is what became of a staged step.
type wrote struct {
	start eventlog.Position
	err   error
}

// take takes what has come. While a step is being written, the rest waits in order.
func (s *Session) take(it item) {
	switch {
	case it.wrote != nil:
		s.settle(it.wrote)
	case s.staged != nil:
		s.held = append(s.held, it)
	default:
		s.handle(it)
	}
	for s.staged == nil && len(s.held) > 0 {
		first := s.held[0]
		s.held = s.held[1:]
		s.handle(first)
	}
}

// stage hands a step's records to whoever writes them, where that takes its time;
// false where the step can be written at once, or has nothing to write. Invariant:
// one step is written at a time, so that one which fails leaves none behind it.
func (s *Session) stage(it item, in turn.Input, next *turn.State, ready *turn.Ready) bool {
	if !s.waits {
		return false
	}
	b := s.batch(ready)
	if len(b.Lines) == 0 || b.Provisional && !b.Sync {
		return false
	}
	if s.takePen() != nil {
		return false // persist meets it, too
	}
	s.staged = &staged{it: it, in: in, next: *next, ready: *ready, batch: b}
	files := ready.Files
	s.running.Go(func() {
		start, err := s.write(files, b)
		s.box.post(item{wrote: &wrote{start, err}})
	})
	return true
}

// settle goes on with a staged step once it is written, or could not be.
func (s *Session) settle(w *wrote) {
	st := s.staged
	s.staged = nil
	if err := s.settled(&st.next, &st.ready, st.batch, w.start, w.err); err != nil {
		s.failed(st.it, err)
		return
	}
	s.commit(st.it, st.in, st.next, st.ready)
}

// persist writes what a step asks for. Nothing of it is published yet.
func (s *Session) persist(next *turn.State, ready *turn.Ready) error {
	b := s.batch(ready)
	if len(b.Lines) == 0 {
		return nil
	}
	if err := s.takePen(); err != nil {
		return s.unwritten(next, ready, err) // the session may be another's by now
	}
	start, err := s.write(ready.Files, b)
	return s.settled(next, ready, b, start, err)
}

// batch is what a step asks to be written.
func (s *Session) batch(ready *turn.Ready) eventlog.Batch {
	lines, provisional := s.lines(ready.Events)
	return eventlog.Batch{Lines: lines, Provisional: provisional, Sync: ready.Sync}
}

// write writes files, and then the records that speak of them. It touches nothing
// that the session's goroutine owns.
func (s *Session) write(files []turn.File, b eventlog.Batch) (eventlog.Position, error) {
	for _, f := range files {
		if err := s.writeFile(f); err != nil && f.Optional {
			s.cfg.Logger.Warn("keep a file beside the log", "session", s.cfg.ID, "file", f.Name, "error", err)
		} else if err != nil {
			return 0, err
		}
	}
	start, err := s.cfg.Log.Append(b)
	if err != nil {
		return 0, fmt.Errorf("session %s: %w", s.cfg.ID, err)
	}
	return start, nil
}

// settled notes that a step is written, or gives it up.
func (s *Session) settled(next *turn.State, ready *turn.Ready, b eventlog.Batch, start eventlog.Position, err error) error {
	if err != nil {
		return s.unwritten(next, ready, err)
	}
	s.wrote = start
	s.real = s.real || !b.Provisional
	if !next.Busy() {
		s.dropPen() // before session.idle is published: whoever hears it may write
	}
	return nil
}

// size is the size of the log in bytes.
func (s *Session) size() int64 {
	if l, ok := s.cfg.Log.(eventlog.Sized); ok {
		return l.Bytes()
	}
	return int64(s.cfg.Log.End())
}

// unwritten gives a step up that could not be written, but for one that ends the
// session: that ends here all the same, without a word, and as the log has it.
func (s *Session) unwritten(next *turn.State, ready *turn.Ready, err error) error {
	if !s.state.Busy() {
		s.dropPen()
	}
	if !next.Live.Closed {
		return err
	}
	s.cfg.Logger.Warn("session ends without a record of it", "session", s.cfg.ID, "error", err)
	next.Durable, ready.Events = s.state.Durable, nil
	return nil
}

// lines returns the records to write, and whether they alone are not worth a
// log: a session that was opened, warned and closed leaves nothing behind.
func (s *Session) lines(events []*event.Event) (lines [][]byte, provisional bool) {
	provisional = !s.real
	for _, e := range events {
		if !e.Persisted() {
			continue
		}
		lines = append(lines, e.Line)
		switch e.Type {
		case event.TypeSessionStart, event.TypeSessionWarning, event.TypeSessionShutdown, event.TypeTracking:
		default:
			provisional = false
		}
	}
	return lines, provisional
}

// takePen makes sure that this process may write, and that nobody else has
// written since it last did.
func (s *Session) takePen() error {
	if s.pen || s.cfg.Hold == nil {
		return nil
	}
	if err := s.cfg.Hold.TakePen(); err != nil {
		return &ConflictError{err}
	}
	if v, ok := s.cfg.Log.(eventlog.Verifier); ok {
		if err := v.Verify(); err != nil {
			if err := s.cfg.Hold.DropPen(); err != nil {
				s.cfg.Logger.Warn("drop pen", "session", s.cfg.ID, "error", err)
			}
			return &ConflictError{fmt.Errorf("session %s: %w", s.cfg.ID, err)}
		}
	}
	s.pen = true
	return nil
}

func (s *Session) dropPen() {
	if !s.pen {
		return
	}
	s.pen = false
	if err := s.cfg.Hold.DropPen(); err != nil {
		s.cfg.Logger.Warn("drop pen", "session", s.cfg.ID, "error", err)
	}
}

// writeFile keeps what is too large for the window in the session's directory.
func (s *Session) writeFile(f turn.File) error {
	if s.cfg.Keep != nil {
		if err := s.cfg.Keep(filepath.ToSlash(f.Name), f.Text); err != nil {
			return fmt.Errorf("keep a large tool result: %w", err)
		}
		return nil
	}
	if s.cfg.Dir == "" {
		return nil
	}
	path := filepath.Join(s.cfg.Dir, f.Name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("keep a large tool result: %w", err)
	}
	if err := os.WriteFile(path, []byte(f.Text), 0o600); err != nil {
		return fmt.Errorf("keep a large tool result: %w", err)
	}
	return nil
}
