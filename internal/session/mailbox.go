package session

import (
	"sync"

	"github.com/transom-run/transom/internal/turn"
)

// item is an input on its way to the actor.
type item struct {
	body turn.Body
	// sub is opened at the place before the events that the input causes.
	sub *Subscription
	// done is told the outcome, from the actor: it must not block. It may be nil.
	done func(result any, err error)
	// wrote, where set, is all there is: the outcome of writing the staged step.
	wrote *wrote
}

// mailbox is an unbounded queue with one reader. Posting never blocks. A reader that
// rests has no goroutine: the next post starts one.
type mailbox struct {
	mu      sync.Mutex
	items   []item
	closed  bool
	resting bool
	reader  func()        // takes what comes, until it rests or the mailbox is closed
	wake    chan struct{} // capacity 1
}

// newMailbox makes a mailbox whose reader rests.
func newMailbox(reader func()) *mailbox {
	return &mailbox{wake: make(chan struct{}, 1), reader: reader, resting: true}
}

// post adds an item; false where the reader has gone.
func (m *mailbox) post(it item) bool {
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return false
	}
	m.items = append(m.items, it)
	first, rested := len(m.items) == 1, m.resting
	m.resting = false
	m.mu.Unlock()
	if rested {
		go m.reader()
	} else if first {
		select {
		case m.wake <- struct{}{}:
		default:
		}
	}
	return true
}

// take returns all items that wait, reusing buf.
func (m *mailbox) take(buf []item) []item {
	m.mu.Lock()
	defer m.mu.Unlock()
	items := m.items
	clear(buf)
	m.items = buf[:0]
	return items
}

// rest lets the reader end until the next post; false where something waits.
func (m *mailbox) rest() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.items) > 0 {
		return false
	}
	m.resting = true
	if cap(m.items) > 4 {
		m.items = nil
	}
	select {
	case <-m.wake: // for what was taken already
	default:
	}
	return true
}

// closeIfEmpty ends the mailbox unless something waits in it.
func (m *mailbox) closeIfEmpty() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.items) > 0 {
		return false
	}
	m.closed = true
	return true
}

// close ends the mailbox and returns what was left in it.
func (m *mailbox) close() []item {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	items := m.items
	m.items = nil
	return items
}
