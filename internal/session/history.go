package session

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/eventlog"
	"github.com/transom-run/transom/internal/history"
	"github.com/transom-run/transom/internal/turn"
)

// records reads a log from a place on. What cannot be read is passed to damaged,
// where that is given.
func records(log eventlog.Log, from eventlog.Position, damaged func(eventlog.Damage), each func(eventlog.Record, *event.Event) error) error {
	for rec, err := range log.Read(from) {
		if err != nil {
			var damage *eventlog.DamageError
			if !errors.As(err, &damage) {
				return err
			}
			if damaged != nil {
				damaged(damage.Damage)
			}
			continue
		}
		e, err := event.Decode(rec.Line)
		if err == nil {
			if err = each(rec, e); errors.Is(err, errEnough) {
				return nil
			}
		}
		if err != nil && damaged != nil {
			damaged(eventlog.Damage{Pos: rec.Pos, Bytes: int64(rec.Next - rec.Pos), Reason: err.Error()})
		}
	}
	return nil
}

// errEnough ends a reading.
var errEnough = errors.New("enough was read")

// index says which records of a log are no part of its history.
func index(log eventlog.Log) (*history.Index, error) {
	x := &history.Index{}
	err := records(log, 0, nil, func(rec eventlog.Record, e *event.Event) error {
		x.Add(int64(rec.Pos), e)
		return nil
	})
	return x, err
}

// History reads the public events of a log that are part of its history, in order.
// What cannot be read is passed over.
func History(log eventlog.Log) ([]json.RawMessage, error) {
	var out []json.RawMessage
	x := history.Index{}
	err := records(log, 0, nil, func(rec eventlog.Record, e *event.Event) error {
		x.Add(int64(rec.Pos), e)
		if e.Type == event.TypeTruncated {
			out = out[:x.Shown()]
		}
		if e.Public() && e.Persisted() {
			out = append(out, json.RawMessage(rec.Line))
		}
		return nil
	})
	return out, err
}

// Past is what a log's history was before an event of it.
func Past(log eventlog.Log, id string) (turn.Thread, error) {
	x, err := index(log)
	if err != nil {
		return turn.Thread{}, err
	}
	place, before, ok := x.Find(id)
	switch {
	case !ok:
		return turn.Thread{}, &turn.Refusal{Kind: "not_found", Msg: "Event ID not found: " + id + ": it is no event of the session's history, or was removed from it"}
	case before == 0:
		return turn.Thread{}, &turn.Refusal{Kind: "invalid_params", Msg: "event " + id + " is the first of the session, which stays: name a later one"}
	}
	var t turn.Thread
	err = records(log, 0, nil, func(rec eventlog.Record, e *event.Event) error {
		switch {
		case int64(rec.Pos) >= place:
			return errEnough
		case x.Hidden(int64(rec.Pos)):
			return nil
		}
		next, err := t.Apply(e)
		if err == nil {
			t = next
		}
		return err
	})
	return t, err
}

// Survey is what a history can be rewound to.
type Survey struct {
	Points   []Point
	Captures []Capture
	places   map[string]eventlog.Position // of user messages, by id
}

// Point is a message of a user that began a turn.
type Point struct {
	EventID string
	At      time.Time
	Text    string
	Mode    string // the agent's, as the message says
}

// Capture is a file that a tool wrote to and that was not brought back since.
type Capture struct {
	event.FileCaptured
	Point int // the number of the newest point before it; -1 is none
	pos   eventlog.Position
}

// NewSurvey reads a log for what it can be rewound to.
func NewSurvey(log eventlog.Log) (*Survey, error) {
	x, err := index(log)
	if err != nil {
		return nil, err
	}
	s := &Survey{places: map[string]eventlog.Position{}}
	var sofar history.Index // as of each record
	err = records(log, 0, nil, func(rec eventlog.Record, e *event.Event) error {
		switch e.Type {
		case event.TypeFileCaptured:
			p, err := event.As[event.FileCaptured](e)
			if err != nil {
				return err
			}
			s.Captures = append(s.Captures, Capture{p, len(s.Points) - 1, rec.Pos})
		case event.TypeTruncated:
			p, err := event.As[event.Truncated](e)
			if from, _, ok := sofar.Find(p.UpToEventID); ok && err == nil {
				s.Captures = slices.DeleteFunc(s.Captures, func(c Capture) bool {
					return int64(c.pos) >= from && slices.Contains(p.Restored, c.Path)
				})
			}
		case event.TypeUserMessage:
			if x.Hidden(int64(rec.Pos)) || e.AgentID != "" {
				break
			}
			s.places[e.ID] = rec.Pos
			if p, err := event.As[event.UserMessage](e); err == nil && p.Source == "" && p.Delivery != "steering" {
				s.Points = append(s.Points, Point{e.ID, e.Timestamp, p.Content, p.AgentMode})
			}
		}
		sofar.Add(int64(rec.Pos), e)
		return nil
	})
	return s, err
}

// Since lists the files that have to be brought back for a rewind to before a
// message of a user; ok is false where the history has no such message.
func (s *Survey) Since(id string) (files []event.FileRestore, ok bool) {
	from, ok := s.places[id]
	if !ok {
		return nil, false
	}
	at := map[string]int{}
	for _, c := range s.Captures {
		if c.pos < from {
			continue
		}
		i, known := at[c.Path]
		if !known {
			i = len(files)
			at[c.Path] = i
			files = append(files, event.FileRestore{Path: c.Path, To: c.Before, Lost: c.Lost})
		}
		files[i].From = []string{c.After, c.Before.Hash}
	}
	slices.SortFunc(files, func(a, b event.FileRestore) int {
		if a.Path < b.Path {
			return -1
		}
		return 1
	})
	return files, true
}

// Lines counts the lines that tools added to a file and took out of it since a
// message of a user.
func (s *Survey) Lines(id, path string) (added, removed int) {
	for _, c := range s.Captures {
		if c.pos >= s.places[id] && c.Path == path {
			added, removed = added+c.Added, removed+c.Gone
		}
	}
	return added, removed
}

// findPast reads what a boundary needs to know.
func (s *Session) findPast(e *turn.FindPast) turn.PastFound {
	out := turn.PastFound{ID: e.ID}
	if out.Past, out.Err = Past(s.cfg.Log, e.EventID); out.Err != nil || !e.Files {
		return out
	}
	survey, err := NewSurvey(s.cfg.Log)
	if err != nil {
		out.Err = err
		return out
	}
	files, ok := survey.Since(e.EventID)
	if !ok {
		out.Err = &turn.Refusal{Kind: "invalid_params", Msg: "event " + e.EventID + " is no message of a user: files can only be brought back to where a user said something. session.history.truncate takes any event"}
	}
	out.Files = files
	return out
}

// restoreFiles brings files back.
func (s *Session) restoreFiles(e *turn.RestoreFiles) turn.FilesRestored {
	if s.cfg.Restore == nil && len(e.Files) > 0 {
		return turn.FilesRestored{ID: e.ID, Err: fmt.Errorf("session %s keeps no files", s.cfg.ID)}
	}
	out := turn.FilesRestored{}
	if len(e.Files) > 0 {
		out = s.cfg.Restore(e.Files)
	}
	out.ID = e.ID
	return out
}

// Summary is what a compaction has put in the place of messages.
type Summary struct {
	Number int
	Text   string
}

// Summaries lists the summaries of a log's history, oldest first.
func Summaries(log eventlog.Log) ([]Summary, error) {
	x, err := index(log)
	if err != nil {
		return nil, err
	}
	var out []Summary
	err = records(log, 0, nil, func(rec eventlog.Record, e *event.Event) error {
		if e.Type != event.TypeCompactionComplete || e.AgentID != "" || x.Hidden(int64(rec.Pos)) {
			return nil
		}
		p, err := event.As[event.CompactionComplete](e)
		if err == nil && p.Success {
			out = append(out, Summary{len(out) + 1, p.SummaryContent})
		}
		return err
	})
	return out, err
}

// forgetCheckpoints removes the files of summaries with higher numbers. The log says
// which there are: a file that stays is only in the way of people.
func (s *Session) forgetCheckpoints(above int) {
	if s.cfg.Dir == "" || s.cfg.Keep != nil {
		return
	}
	dir := filepath.Join(s.cfg.Dir, turn.CheckpointDir)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // there are none
	}
	for _, e := range entries {
		var n int
		if _, err := fmt.Sscanf(e.Name(), "%03d", &n); err != nil || n <= above || !e.Type().IsRegular() {
			continue
		}
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
			s.cfg.Logger.Warn("remove the file of a summary", "session", s.cfg.ID, "file", e.Name(), "error", err)
		}
	}
}

// cuts says which stretches of the log are no part of the history. It reads the log
// only where there are any, and once for each boundary.
func (s *Session) cuts() ([]history.Cut, error) {
	n := s.View().Boundaries
	if n == 0 {
		return nil, nil
	}
	s.cut.mu.Lock()
	defer s.cut.mu.Unlock()
	if s.cut.boundaries != n {
		x, err := index(s.cfg.Log)
		if err != nil {
			return nil, err
		}
		s.cut.boundaries, s.cut.cuts = n, x.Cuts()
	}
	return s.cut.cuts, nil
}
