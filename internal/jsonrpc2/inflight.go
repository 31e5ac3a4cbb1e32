package jsonrpc2

import "strconv"

// connState is where in its life a connection is.
type connState string

const (
	stateNew    connState = "new"    // made, not served yet
	stateOpen   connState = "open"   // being served
	stateClosed connState = "closed" // nothing more is admitted or enqueued
)

// Stats is what a connection counts: for diagnostics and tests.
type Stats struct {
	InFlight       int   // requests of the peer without an answer
	Pending        int   // our calls without an answer
	BadMessages    int64 // bodies and headers that were no message, or too large
	UnknownAnswers int64 // answers to no call of ours
	RepliedTwice   int64 // second answers to one request, dropped
	DroppedReplies int64 // answers that came after the connection had closed
	Panics         int64 // handlers and callbacks that panicked
}

// inFlight is everything about a connection that changes. It is accessed only
// in Conn.update, which does no I/O and runs no callback.
//
// Invariant: a request is in incoming, and a call in outgoing, exactly from its
// admission to the moment its one answer is taken on. Whoever removes the entry
// has the right, and the duty, to deliver the answer.
type inFlight struct {
	state    connState
	reason   error // why it closed
	incoming map[ID]*Responder
	outgoing map[int64]*call
	lastID   int64 // of our calls: 1, 2, 3 …; some clients need small integers
	bodies   int   // goroutines of Responder.Go
	stats    Stats
}

// update runs f with the table locked.
func (c *Conn) update(f func(t *inFlight)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(&c.table)
}

func (c *Conn) count(f func(s *Stats)) {
	c.update(func(t *inFlight) { f(&t.stats) })
}

// Stats returns a copy of the counters.
func (c *Conn) Stats() Stats {
	var s Stats
	c.update(func(t *inFlight) {
		s = t.stats
		s.InFlight, s.Pending = len(t.incoming), len(t.outgoing)
	})
	return s
}

// admit enters a request. It reports whether the connection takes any, and why
// this one is refused.
func (t *inFlight) admit(r *Responder, limit int) (open bool, refused *Error) {
	switch id := r.req.ID; {
	case t.state == stateClosed:
		return false, nil
	case id == "":
		return true, nil
	case t.incoming[id] != nil:
		t.stats.BadMessages++
		return true, Errorf(CodeInvalidRequest, "Invalid request: id %s is in use by a request that has no answer yet", id)
	case len(t.incoming) >= limit || t.bodies >= limit:
		return true, Errorf(CodeOverloaded, "Overloaded: %d requests have no answer yet; wait for some before sending more", max(len(t.incoming), t.bodies))
	default:
		t.incoming[id] = r
		return true, nil
	}
}

// settle takes a request out; it reports whether there is still a peer to
// answer.
func (t *inFlight) settle(r *Responder) (open bool) {
	if t.incoming[r.req.ID] == r {
		delete(t.incoming, r.req.ID)
	}
	if t.state == stateClosed {
		t.stats.DroppedReplies++
		return false
	}
	return true
}

// begin reserves the place of a goroutine that Serve will wait for.
func (c *Conn) begin() (open bool) {
	c.update(func(t *inFlight) {
		if open = t.state != stateClosed; open {
			t.bodies++
			c.wg.Add(1)
		}
	})
	return open
}

// end gives the place back.
func (c *Conn) end() {
	c.update(func(t *inFlight) { t.bodies-- })
	c.wg.Done()
}

// enter adds a call and gives it its id.
func (t *inFlight) enter(k *call) error {
	if t.state == stateClosed {
		return closedBy(t.reason)
	}
	t.lastID++
	k.id = t.lastID
	t.outgoing[k.id] = k
	return nil
}

// take removes a call, if it is still there.
func (t *inFlight) take(id int64) *call {
	k := t.outgoing[id]
	delete(t.outgoing, id)
	return k
}

// wasOurs reports whether id, as the peer wrote it, was ever the id of a call.
func (t *inFlight) wasOurs(id ID) bool {
	n, err := strconv.ParseInt(string(id), 10, 64)
	return err == nil && 0 < n && n <= t.lastID
}

// takeAll empties the table at the end of the connection.
func (t *inFlight) takeAll() []*call {
	calls := make([]*call, 0, len(t.outgoing))
	for _, k := range t.outgoing {
		calls = append(calls, k)
	}
	clear(t.outgoing)
	clear(t.incoming)
	return calls
}
