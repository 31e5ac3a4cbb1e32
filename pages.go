package transom

import (
	"context"
	"errors"
	"time"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/internal/session"
)

// EventQuery says which of a session's events to read.
type EventQuery struct {
	// Cursor is what the last read returned; "" begins with the first event, and
	// backwards with the newest.
	Cursor string
	// Backward reads towards older events, which are then the persisted ones.
	Backward bool
	// Max is how many events a page may have, 1 to 1000; 0 is 200. A page has at
	// most about 1 MiB of them.
	Max int
	// Wait is how long to wait for an event where there is none.
	Wait time.Duration
	// Persisted leaves out events that the log does not keep.
	Persisted bool
	// Match says which events are wanted; nil wants all.
	Match func(*event.Event) bool
}

// EventPage is what was read, oldest first.
type EventPage struct {
	Events []*event.Event
	Cursor string // for the next read; it holds across clears and restarts
	More   bool   // there is more already
	// Expired: some events that the log does not keep were lost since the cursor, or
	// the log ends before it and reading began anew.
	Expired bool
}

// ReadEvents reads a page of events. From the first read on, the session keeps
// its newest megabyte of events, so that readers with cursors see those too that
// the log does not keep.
func (h *Session) ReadEvents(ctx context.Context, q EventQuery) (EventPage, error) {
	const op = "session.eventLog.read"
	select {
	case <-h.gone:
		return EventPage{}, notFound(op, h.id)
	default:
	}
	if q.Max <= 0 {
		q.Max = 200
	}
	p, err := h.sess.ReadPage(ctx, session.PageQuery{
		Cursor: q.Cursor, Backward: q.Backward, Max: min(q.Max, 1000), Wait: q.Wait, Persisted: q.Persisted, Match: q.Match, Client: h.client.ID,
	})
	if errors.Is(err, session.ErrBadCursor) {
		err = &Error{Op: op, Kind: KindInvalidParams, SessionID: h.id, Msg: err.Error(), Err: err}
	}
	return EventPage(p), wrap(op, h.id, err)
}

// TailCursor is the place behind the newest event, for reading what comes.
func (h *Session) TailCursor() string { return h.sess.TailCursor() }
