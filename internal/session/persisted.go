package session

import (
	"fmt"
	"slices"
	"strings"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/eventlog"
	"github.com/transom-run/transom/internal/history"
)

// PersistedQuery says which of a stored session's events to read.
type PersistedQuery struct {
	SessionID string
	Cursor    string // "" is the beginning; backward, the end
	Backward  bool   // of the first read; a cursor knows its direction
	Max       int
}

// snapshotCursor is a place in a log as it stood at the first read.
type snapshotCursor struct {
	backward bool
	pos, end int64 // where to go on, and where the log ended
	cuts     int   // stretches that were no part of the history
	from     int64 // where the newest of them begins
}

func (c snapshotCursor) encode(session string) string {
	way := "f"
	if c.backward {
		way = "b"
	}
	return fmt.Sprintf("p%s.%x.%d.%d.%d.%d", way, sum(session), c.pos, c.end, c.cuts, c.from)
}

func decodeSnapshot(session, text string) (c snapshotCursor, err error) {
	var way string
	var of uint32
	_, err = fmt.Sscanf(strings.ReplaceAll(text, ".", " "), "%s %x %d %d %d %d", &way, &of, &c.pos, &c.end, &c.cuts, &c.from)
	if err != nil || (way != "pf" && way != "pb") || of != sum(session) || c.pos < 0 || c.pos > c.end {
		return c, ErrBadCursor
	}
	c.backward = way == "pb"
	return c, nil
}

// ReadPersisted reads a page of a log's history, as the log stood at the first read.
// A log that is shorter now, or whose history was truncated since, has no such pages
// any more: the page is empty and Expired.
func ReadPersisted(log eventlog.Log, q PersistedQuery) (Page, error) {
	x, err := index(log)
	if err != nil {
		return Page{}, err
	}
	cuts := x.Cuts()
	end := int64(log.End())
	at := snapshotCursor{backward: q.Backward, end: end, cuts: len(cuts)}
	if len(cuts) > 0 {
		at.from = cuts[len(cuts)-1].From
	}
	if q.Backward {
		at.pos = end
	}
	if q.Cursor != "" {
		c, err := decodeSnapshot(q.SessionID, q.Cursor)
		if err != nil {
			return Page{}, err
		}
		if c.end > end || c.cuts != at.cuts || c.from != at.from {
			return Page{Expired: true, Cursor: q.Cursor}, nil
		}
		at = c
	}
	read := readOn
	if at.backward {
		read = readBack
	}
	p, err := read(log, &at, cuts, q.Max)
	p.Cursor = at.encode(q.SessionID)
	return p, err
}

// pageable calls each with the events of a history from a place on.
func pageable(log eventlog.Log, from, end int64, cuts []history.Cut, each func(eventlog.Record, *event.Event) error) error {
	return records(log, eventlog.Position(from), nil, func(rec eventlog.Record, e *event.Event) error {
		if int64(rec.Pos) >= end {
			return errEnough
		}
		if _, hidden := history.Behind(cuts, int64(rec.Pos)); hidden || !e.Public() || !e.Persisted() {
			return nil
		}
		return each(rec, e)
	})
}

func readOn(log eventlog.Log, at *snapshotCursor, cuts []history.Cut, limit int) (p Page, err error) {
	bytes := 0
	err = pageable(log, at.pos, at.end, cuts, func(rec eventlog.Record, e *event.Event) error {
		if len(p.Events) >= limit || len(p.Events) > 0 && bytes+len(e.Line) > pageBytes {
			p.More = true
			return errEnough
		}
		p.Events, bytes, at.pos = append(p.Events, e), bytes+len(e.Line), int64(rec.Next)
		return nil
	})
	return p, err
}

func readBack(log eventlog.Log, at *snapshotCursor, cuts []history.Cut, limit int) (p Page, err error) {
	var places []int64
	bytes := 0
	err = pageable(log, 0, at.pos, cuts, func(rec eventlog.Record, e *event.Event) error {
		p.Events, places, bytes = append(p.Events, e), append(places, int64(rec.Pos)), bytes+len(e.Line)
		for len(p.Events) > limit || len(p.Events) > 1 && bytes > pageBytes {
			bytes -= len(p.Events[0].Line)
			p.Events, places, p.More = slices.Delete(p.Events, 0, 1), places[1:], true
		}
		return nil
	})
	if at.pos = 0; len(places) > 0 {
		at.pos = places[0]
	}
	return p, err
}

// Newest is the newest event of a type in the history that a log holds; nil where
// there is none.
func Newest(log eventlog.Log, typ string) (found *event.Event, err error) {
	x, err := index(log)
	if err != nil {
		return nil, err
	}
	err = records(log, 0, nil, func(rec eventlog.Record, e *event.Event) error {
		if e.Type == typ && !x.Hidden(int64(rec.Pos)) {
			found = e
		}
		return nil
	})
	return found, err
}
