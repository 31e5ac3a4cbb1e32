package session

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/eventlog"
)

// place is a place between two records of the log: skip records after pos. One
// append writes several records, and only the first one's position is known.
type place struct {
	pos  eventlog.Position
	skip int
}

// node is one published event in the shared list.
type node struct {
	ev      *event.Event
	after   place    // where the log goes on after the event
	not     []string // clients that are not to see it
	weight  int64    // bytes published up to and including this event
	serial  int64    // grows by one with each event
	removed bool     // a boundary was made behind it; guarded by feed.mu
	next    *node
}

// hidden is an event that some clients are not to see, kept for those who will
// meet it in the log.
type hidden struct {
	id  string
	not []string
	pos eventlog.Position // of the log, behind the event
}

// feed is the list of recent events of a session. Nodes are kept alive by the
// subscriptions that have not passed them.
type feed struct {
	mu     sync.Mutex
	tail   *node // of the newest event; never nil
	subs   []*Subscription
	hidden []hidden
	closed bool
	close  func() // ends the log, once nobody reads it any more
	maxLag int64
	log    eventlog.Log

	head  *node         // the place before the events that are kept for cursors; nil: none are
	epoch string        // names this list in cursors
	moved chan struct{} // closed at the next publication; nil: nobody waits
}

func newFeed(log eventlog.Log, maxLag int64) *feed {
	return &feed{tail: &node{after: place{pos: log.End()}}, maxLag: maxLag, log: log}
}

// publication is an event on its way into the feed.
type publication struct {
	ev    *event.Event
	after place
	not   []string
}

// publish appends events and wakes subscribers. It never blocks.
func (f *feed) publish(ps []publication) {
	if len(ps) == 0 {
		return
	}
	f.mu.Lock()
	for _, p := range ps {
		if b, ok := p.ev.Payload.(event.SnapshotRewind); ok {
			f.remove(b.UpToEventID)
		}
		n := &node{ev: p.ev, after: p.after, not: p.not, weight: f.tail.weight + int64(len(p.ev.Line)), serial: f.tail.serial + 1}
		f.tail.next = n
		f.tail = n
		if len(p.not) > 0 {
			f.hide(p)
		}
	}
	f.trim()
	if f.moved != nil {
		close(f.moved)
		f.moved = nil
	}
	for _, s := range f.subs {
		if s.at != nil && f.tail.weight-s.at.weight > f.maxLag {
			s.at = nil // from here on it reads the log
		}
		s.notify()
	}
	f.mu.Unlock()
}

// hide notes an event for subscribers who read the log, and forgets those that
// every subscriber has passed. f.mu is held.
func (f *feed) hide(p publication) {
	// A reader may stop inside of an append, whose events know only where it begins:
	// the end of the log is behind all of them.
	end := f.log.End()
	passed := end
	for _, s := range f.subs {
		passed = min(passed, s.from.pos)
	}
	f.hidden = slices.DeleteFunc(f.hidden, func(h hidden) bool { return h.pos <= passed })
	f.hidden = append(f.hidden, hidden{p.ev.ID, p.not, end})
}

// open places a subscription after the newest event.
func (f *feed) open(s *Subscription) {
	f.mu.Lock()
	s.feed, s.at, s.from, s.seen = f, f.tail, f.tail.after, f.tail.weight
	if f.closed {
		s.ended = true
	} else {
		f.subs = append(f.subs, s)
	}
	close(s.opened)
	f.mu.Unlock()
	if s.early.Load() {
		s.Close()
	}
}

// end closes the feed: subscribers get what is left, then the end. closeLog is
// called once none of them reads the log any more.
func (f *feed) end(closeLog func()) {
	f.mu.Lock()
	f.closed, f.close = true, closeLog
	for _, s := range f.subs {
		s.ended = true
		s.notify()
	}
	f.subs = slices.DeleteFunc(f.subs, func(s *Subscription) bool { return s.at != nil })
	done := len(f.subs) == 0
	f.mu.Unlock()
	if done {
		closeLog()
	}
}

// leave takes a subscription out. f.mu is held; what is returned is to be called
// without it.
func (f *feed) leave(s *Subscription) (then func()) {
	n := len(f.subs)
	f.subs = slices.DeleteFunc(f.subs, func(o *Subscription) bool { return o == s })
	if f.closed && n > 0 && len(f.subs) == 0 {
		return f.close
	}
	return func() {}
}

// ErrEnded is returned by [Subscription.Next] after the last event.
var ErrEnded = errors.New("the session has ended")

// Subscription is one reader's place in a session's events.
type Subscription struct {
	client string
	opened chan struct{}
	wake   chan struct{}
	early  atomic.Bool // Close was called, perhaps before the opening

	// guarded by feed.mu once opened
	feed  *feed
	at    *node // the event passed last; nil while the log is read
	from  place // where the log goes on after it
	seen  int64 // its weight
	ended bool
	gone  bool
}

// NewSubscription makes a subscription for a client; it is opened by the post
// that it is given to.
func NewSubscription(client string) *Subscription {
	return &Subscription{client: client, opened: make(chan struct{}), wake: make(chan struct{}, 1)}
}

func (s *Subscription) notify() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Close ends the subscription: Next returns ErrEnded. Closing twice is fine.
func (s *Subscription) Close() {
	s.early.Store(true)
	select {
	case <-s.opened:
	default:
		return // the opening closes it
	}
	s.feed.mu.Lock()
	s.gone, s.ended, s.at = true, true, nil
	then := s.feed.leave(s)
	s.notify()
	s.feed.mu.Unlock()
	then()
}

// Next appends the events that have come to buf, waiting for at least one. It
// returns [ErrEnded] after the last event of the session, and the error of ctx.
func (s *Subscription) Next(ctx context.Context, buf []*event.Event) ([]*event.Event, error) {
	select {
	case <-s.opened: // also where ctx has ended: what is there is given
	default:
		select {
		case <-s.opened:
		case <-ctx.Done():
			return buf, context.Cause(ctx)
		}
	}
	n := len(buf)
	for {
		out, ended, behind := s.collect(buf)
		if len(out) > n {
			return out, nil
		}
		if behind {
			out, err := s.catchUp(buf)
			if err != nil || len(out) > n {
				return out, err
			}
			continue
		}
		if ended {
			return buf, ErrEnded
		}
		select {
		case <-s.wake:
		case <-ctx.Done():
			return buf, context.Cause(ctx)
		}
	}
}

// batchMax bounds what one Next returns, so that a reader that waits for room
// between batches holds little.
const batchMax = 256

// collect takes events from the list.
func (s *Subscription) collect(buf []*event.Event) (out []*event.Event, ended, behind bool) {
	s.feed.mu.Lock()
	defer s.feed.mu.Unlock()
	if s.gone {
		return buf, true, false
	}
	if s.at == nil {
		return buf, false, true
	}
	out = buf
	for s.at.next != nil && len(out)-len(buf) < batchMax {
		s.at = s.at.next
		s.from, s.seen = s.at.after, s.at.weight
		if !slices.Contains(s.at.not, s.client) {
			out = append(out, s.at.ev)
		}
	}
	return out, s.ended && s.at.next == nil, false
}

// catchUp reads records that the list no longer holds, and goes back to the list
// once there are none left. It reads no further than what was published: a record
// beyond that comes with the list.
func (s *Subscription) catchUp(buf []*event.Event) ([]*event.Event, error) {
	f := s.feed
	f.mu.Lock()
	if s.gone {
		f.mu.Unlock()
		return buf, nil
	}
	from, until := s.from, f.tail.after.pos
	if from.pos >= until {
		s.at = f.tail
		if newest := s.at.ev; newest != nil && newest.Type == event.TypeSessionIdle && s.at.weight > s.seen {
			buf = append(buf, newest) // nobody waits for an end that has come
		}
		s.seen = s.at.weight
		then := func() {}
		if f.closed {
			then = f.leave(s)
		}
		f.mu.Unlock()
		then()
		return buf, nil
	}
	secret := map[string]bool{}
	for _, h := range f.hidden {
		if slices.Contains(h.not, s.client) {
			secret[h.id] = true
		}
	}
	f.mu.Unlock()
	n, more := len(buf), false
	for rec, err := range f.log.Read(from.pos) {
		if err != nil {
			var damage *eventlog.DamageError
			if errors.As(err, &damage) {
				continue
			}
			return buf, err
		}
		if more = rec.Pos < until && len(buf)-n >= batchMax; more || rec.Pos >= until {
			break
		}
		if from.skip > 1 {
			from.skip--
			continue
		}
		passed := from.skip == 1
		from = place{pos: rec.Next}
		if passed {
			continue
		}
		if e, err := event.Decode(rec.Line); err == nil && e.Public() && !secret[e.ID] {
			buf = append(buf, e)
		}
	}
	if !more {
		from = place{pos: until} // also where records before it cannot be read
	}
	f.mu.Lock()
	s.from = from
	f.mu.Unlock()
	return buf, nil
}

// Subscribe opens a subscription after the newest event.
func (s *Session) Subscribe(sub *Subscription) { s.feed.open(sub) }
