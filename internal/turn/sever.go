package turn

import (
	"time"

	"github.com/transom-run/transom/event"
)

// Sever ends, in a copy of a session's history, what only the session itself can go
// on with: open calls, an open loop, schedules, and approvals. It returns the records to add
// to the copy.
func Sever(d Durable, at time.Time, newID func() string) ([]*event.Event, error) {
	m := &machine{s: State{Durable: d}, in: Input{At: at, NewID: newID}}
	m.closeLost() // agents of the source
	if m.s.Loop.Open {
		m.stop()
	}
	for _, e := range m.s.Schedules {
		m.emit(event.ScheduleCancelled{ID: e.ID}) // or two sessions would do its work
	}
	if len(m.s.Approved) > 0 {
		m.emit(event.ApprovalsReset{})
	}
	m.forgotten()
	var out []*event.Event
	for _, e := range m.ready.Events {
		if e.Persisted() {
			out = append(out, e)
		}
	}
	return out, m.err
}
