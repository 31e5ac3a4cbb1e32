package session

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/eventlog"
)

// node is one published event in the shared list.
type node struct {
	ev     *event.Event
	after  eventlog.Position // of the log once the event was written
	not    []string          // clients that are not to see it
	weight int64             // bytes published up to and including this event
	next   *node
}

// feed is the list of recent events of a session. Nodes are kept alive by the
// subscriptions that have not passed them.
type feed struct {
	mu     sync.Mutex
	tail   *node // of the newest event; never nil
	subs   []*Subscription
	closed bool
	maxLag int64
	log    eventlog.Log
}

func newFeed(log eventlog.Log, maxLag int64) *feed {
	return &feed{tail: &node{after: log.End()}, maxLag: maxLag, log: log}
}

// publication is an event on its way into the feed.
type publication struct {
	ev    *event.Event
	after eventlog.Position
	not   []string
}

// publish appends events and wakes subscribers. It never blocks.
func (f *feed) publish(ps []publication) {
	if len(ps) == 0 {
		return
	}
	f.mu.Lock()
	for _, p := range ps {
		n := &node{ev: p.ev, after: p.after, not: p.not, weight: f.tail.weight + int64(len(p.ev.Line))}
		f.tail.next = n
		f.tail = n
	}
	for _, s := range f.subs {
		if s.at != nil && f.tail.weight-s.at.weight > f.maxLag {
			s.at = nil // from here on it reads the log
		}
		s.notify()
	}
	f.mu.Unlock()
}

// open places a subscription after the newest event.
func (f *feed) open(s *Subscription) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s.feed, s.at, s.pos = f, f.tail, f.tail.after
	if f.closed {
		s.ended = true
	} else {
		f.subs = append(f.subs, s)
	}
	close(s.opened)
}

// end closes the feed: subscribers get what is left, then the end.
func (f *feed) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	for _, s := range f.subs {
		s.ended = true
		s.notify()
	}
	f.subs = nil
}

// ErrEnded is returned by [Subscription.Next] after the last event.
var ErrEnded = errors.New("the session has ended")

// Subscription is one reader's place in a session's events.
type Subscription struct {
	client string
	opened chan struct{}
	wake   chan struct{}

	// guarded by feed.mu once opened
	feed  *feed
	at    *node // the event passed last; nil while the log is read
	pos   eventlog.Position
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
	select {
	case <-s.opened:
	default:
		return
	}
	s.feed.mu.Lock()
	defer s.feed.mu.Unlock()
	s.gone, s.ended, s.at = true, true, nil
	s.feed.subs = slices.DeleteFunc(s.feed.subs, func(o *Subscription) bool { return o == s })
	s.notify()
}

// Next appends the events that have come to buf, waiting for at least one. It
// returns [ErrEnded] after the last event of the session, and the error of ctx.
func (s *Subscription) Next(ctx context.Context, buf []*event.Event) ([]*event.Event, error) {
	select {
	case <-s.opened:
	case <-ctx.Done():
		return buf, context.Cause(ctx)
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
		s.pos = s.at.after
		if !slices.Contains(s.at.not, s.client) {
			out = append(out, s.at.ev)
		}
	}
	return out, s.ended && s.at.next == nil, false
}

// catchUp reads records that the list no longer holds, and goes back to the list
// once there are none left.
func (s *Subscription) catchUp(buf []*event.Event) ([]*event.Event, error) {
	s.feed.mu.Lock()
	if s.pos >= s.feed.tail.after {
		s.at = s.feed.tail
		s.feed.mu.Unlock()
		return buf, nil
	}
	from := s.pos
	s.feed.mu.Unlock()
	n := len(buf)
	for rec, err := range s.feed.log.Read(from) {
		if err != nil {
			var damage *eventlog.DamageError
			if errors.As(err, &damage) {
				continue
			}
			return buf, err
		}
		from = rec.Next
		if e, err := event.Decode(rec.Line); err == nil && e.Public() {
			buf = append(buf, e)
		}
		if len(buf)-n >= batchMax {
			break
		}
	}
	s.feed.mu.Lock()
	s.pos = from
	s.feed.mu.Unlock()
	return buf, nil
}

// Subscribe opens a subscription after the newest event.
func (s *Session) Subscribe(sub *Subscription) { s.feed.open(sub) }
