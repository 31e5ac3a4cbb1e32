package transom

import (
	"context"
	"errors"
	"iter"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/internal/session"
)

// Events is one reader's place in a session's events: each is seen once, in
// order. A reader that falls far behind misses ephemeral events, never a
// persisted one. It is for one goroutine.
type Events struct{ sub *session.Subscription }

func newEvents(client string) *Events { return &Events{session.NewSubscription(client)} }

// Events returns this attachment's events, from the session.start or
// session.resume that it caused on. Every call returns the same place.
func (h *Session) Events() *Events { return h.events }

// Subscribe opens another place in the session's events, after the newest one.
func (h *Session) Subscribe() *Events {
	e := newEvents(h.client.ID)
	h.sess.Subscribe(e.sub)
	return e
}

// ErrEnded is returned by [Events.Next] after the last event: the session has ended
// in this process, or the reader was closed.
var ErrEnded = session.ErrEnded

// Next appends the events that have come to buf, waiting for at least one.
// [ErrEnded] after the last; the error of ctx where that ends first.
func (e *Events) Next(ctx context.Context, buf []*event.Event) ([]*event.Event, error) {
	return e.sub.Next(ctx, buf)
}

// Close ends the reader: Next returns [ErrEnded].
func (e *Events) Close() { e.sub.Close() }

// All yields events until the session ends. The error of ctx, where that ends
// first, is yielded last.
func (e *Events) All(ctx context.Context) iter.Seq2[*event.Event, error] {
	return func(yield func(*event.Event, error) bool) {
		var buf []*event.Event
		for {
			var err error
			buf, err = e.Next(ctx, buf[:0])
			for _, ev := range buf {
				if !yield(ev, nil) {
					return
				}
			}
			if errors.Is(err, ErrEnded) {
				return
			}
			if err != nil {
				yield(nil, err)
				return
			}
		}
	}
}
