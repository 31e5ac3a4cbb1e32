package session

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/eventlog"
	"github.com/transom-run/transom/internal/history"
)

// maxKept bounds the bytes of events that are kept for readers with cursors, and
// pageBytes those of one page.
const (
	maxKept   = 1 << 20
	pageBytes = 1 << 20
)

// cursor is a place in a session's events: behind an event.
//
// The log says where it goes on, for good. Events that the log does not keep lie
// between its records; where this process still has them, serial says which of
// them were read.
type cursor struct {
	place
	epoch    string // of the feed that serial is of; "" where nothing is known
	serial   int64
	backward bool
}

// ErrBadCursor is the error of a cursor that no read has given.
var ErrBadCursor = errors.New("the cursor is none that a read of this session's events has given: pass on what the last read returned, or leave it out")

// encode writes a cursor, with the session that it belongs to.
func (c cursor) encode(session string) string {
	way := "f"
	if c.backward {
		way = "b"
	}
	return fmt.Sprintf("%s.%x.%d.%d.%d.%s", way, sum(session), c.pos, c.skip, c.serial, c.epoch)
}

func decodeCursor(session, text string) (c cursor, err error) {
	var way string
	var of uint32
	n, err := fmt.Sscanf(strings.ReplaceAll(text, ".", " "), "%s %x %d %d %d %s", &way, &of, &c.pos, &c.skip, &c.serial, &c.epoch)
	if (err != nil && n < 5) || (way != "f" && way != "b") || of != sum(session) || c.pos < 0 || c.skip < 0 {
		return cursor{}, ErrBadCursor
	}
	c.backward = way == "b"
	return c, nil
}

func sum(s string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(s))
	return h.Sum32()
}

// PageQuery says which events to read.
type PageQuery struct {
	Cursor    string // "" is the beginning; backward, the end
	Backward  bool   // towards older events
	Max       int    // events of a page
	Wait      time.Duration
	Persisted bool                    // only events that the log keeps
	Match     func(*event.Event) bool // nil matches all
	Client    string
}

// Page is what was read, oldest first.
type Page struct {
	Events []*event.Event
	Cursor string // for the next read
	More   bool   // there is more already
	// Expired: events that the log does not keep were lost since the cursor, or the
	// log does not reach to it any more, and reading began anew.
	Expired bool
}

// TailCursor is the place behind the newest event.
func (s *Session) TailCursor() string {
	f := s.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	f.keep()
	return cursor{f.tail.after, f.epoch, f.tail.serial, false}.encode(s.cfg.ID)
}

// ReadPage reads a page of events. Reading forwards it waits for one, if asked to.
func (s *Session) ReadPage(ctx context.Context, q PageQuery) (Page, error) {
	if q.Match == nil {
		q.Match = func(*event.Event) bool { return true }
	}
	var at cursor
	if q.Cursor != "" {
		var err error
		if at, err = decodeCursor(s.cfg.ID, q.Cursor); err != nil {
			return Page{}, err
		}
	}
	if q.Backward || at.backward {
		return s.pageBack(at, q)
	}
	r := pageReader{s: s, q: q, at: at, first: true}
	deadline := time.NewTimer(q.Wait)
	defer deadline.Stop()
	for {
		moved, err := r.read()
		if err != nil || len(r.events) > 0 || q.Wait <= 0 {
			return r.page(), err
		}
		select {
		case <-moved:
		case <-deadline.C:
			return r.page(), nil
		case <-s.Done():
			return r.page(), nil
		case <-ctx.Done():
			return Page{}, context.Cause(ctx)
		}
	}
}

// pageReader reads forwards.
type pageReader struct {
	s       *Session
	q       PageQuery
	at      cursor
	events  []*event.Event
	bytes   int
	more    bool
	expired bool
	first   bool
}

func (r *pageReader) page() Page {
	return Page{r.events, r.at.encode(r.s.cfg.ID), r.more, r.expired}
}

// take adds an event; false where the page is full and has to end before it.
func (r *pageReader) take(e *event.Event) bool {
	if !e.Public() || r.q.Persisted && e.Ephemeral || !r.q.Match(e) {
		return true
	}
	if len(r.events) >= r.q.Max || len(r.events) > 0 && r.bytes+len(e.Line) > pageBytes {
		r.more = true
		return false
	}
	r.events = append(r.events, e)
	r.bytes += len(e.Line)
	return true
}

// read reads what there is: from the log up to what is kept, and then that. moved
// is closed when there is more.
func (r *pageReader) read() (moved <-chan struct{}, err error) {
	f := r.s.feed
	f.mu.Lock()
	f.keep()
	head := f.head
	known := r.at.epoch == f.epoch && r.at.serial >= head.serial && r.at.serial <= f.tail.serial
	if !known && r.first {
		end := f.log.End()
		lost := r.at.epoch == f.epoch && r.at.serial > 0 && !r.q.Persisted
		if r.at.pos > end {
			r.at, lost = cursor{}, true
		}
		r.expired = lost
	}
	r.first = false
	f.mu.Unlock()
	if !known {
		full, err := r.readLog(head)
		if full || err != nil {
			return nil, err
		}
		r.at = cursor{head.after, f.epoch, head.serial, false}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	n := head
	for n.serial < r.at.serial && n.next != nil {
		n = n.next
	}
	for n.next != nil {
		n = n.next
		if !n.removed && !slices.Contains(n.not, r.q.Client) && !r.take(n.ev) {
			return nil, nil
		}
		r.at = cursor{n.after, f.epoch, n.serial, false}
	}
	return f.movedLocked(), nil
}

// readLog reads records up to what is kept. full says that the page ended before.
func (r *pageReader) readLog(head *node) (full bool, err error) {
	skip := r.at.skip
	cuts, err := r.s.cuts()
	if err != nil {
		return false, err
	}
	for rec, err := range r.s.cfg.Log.Read(r.at.pos) {
		if err != nil {
			var damage *eventlog.DamageError
			if errors.As(err, &damage) {
				continue
			}
			return false, err
		}
		if rec.Pos >= head.after.pos {
			break
		}
		if skip > 0 {
			skip--
			continue
		}
		if _, hidden := history.Behind(cuts, int64(rec.Pos)); !hidden {
			if e, err := event.Decode(rec.Line); err == nil && !r.take(e) {
				return true, nil
			}
		}
		r.at = cursor{place: place{pos: rec.Next}, epoch: r.s.feed.epoch}
	}
	return false, nil
}

// pageBack reads the newest events before a cursor.
func (s *Session) pageBack(at cursor, q PageQuery) (Page, error) {
	end := s.cfg.Log.End()
	p := Page{}
	if at.backward {
		p.Expired = at.pos > end
		end = min(end, at.pos)
	} else if q.Cursor != "" {
		p.Expired = at.pos > end
		end = min(end, at.pos)
	}
	cuts, err := s.cuts()
	if err != nil {
		return p, err
	}
	type found struct {
		pos eventlog.Position
		e   *event.Event
	}
	var last []found // at most Max
	bytes := 0
	for rec, err := range s.cfg.Log.Read(0) {
		if err != nil {
			var damage *eventlog.DamageError
			if errors.As(err, &damage) {
				continue
			}
			return Page{}, err
		}
		if rec.Pos >= end {
			break
		}
		if _, hidden := history.Behind(cuts, int64(rec.Pos)); hidden {
			continue
		}
		e, err := event.Decode(rec.Line)
		if err != nil || !e.Public() || !q.Match(e) {
			continue
		}
		last = append(last, found{rec.Pos, e})
		bytes += len(e.Line)
		for len(last) > q.Max || len(last) > 1 && bytes > pageBytes {
			bytes -= len(last[0].e.Line)
			last, p.More = last[1:], true
		}
	}
	next := cursor{backward: true}
	for _, f := range last {
		p.Events = append(p.Events, f.e)
	}
	if len(last) > 0 {
		next.pos = last[0].pos
	}
	p.Cursor = next.encode(s.cfg.ID)
	return p, nil
}

// keep begins to hold recent events for readers with cursors. f.mu is held.
func (f *feed) keep() {
	if f.head == nil {
		f.head, f.epoch = f.tail, newID()[:8]
	}
}

// remove takes events that a boundary has removed out of what is kept: from the one
// that it names, or from the first where that is kept no more. Subscribers who have
// not come so far get them all the same, and then the boundary. f.mu is held.
func (f *feed) remove(upTo string) {
	if f.head == nil {
		return
	}
	from := f.head
	for n := f.head; n.next != nil; n = n.next {
		if strings.EqualFold(n.next.ev.ID, upTo) {
			from = n
		}
	}
	for n := from.next; n != nil; n = n.next {
		n.removed = true
	}
}

// trim lets go of what is kept beyond the limit. It goes on behind an event that
// is the last of its append, where log and list meet. f.mu is held.
func (f *feed) trim() {
	for f.head != nil && f.tail.weight-f.head.weight > maxKept && f.head != f.tail {
		n := f.head.next
		for n != f.tail && n.after.skip > 0 {
			n = n.next
		}
		if n.after.skip > 0 {
			return
		}
		f.head = n
	}
}

// movedLocked is closed at the next publication. f.mu is held.
func (f *feed) movedLocked() <-chan struct{} {
	if f.moved == nil {
		f.moved = make(chan struct{})
	}
	return f.moved
}
