package server

import (
	"sync"

	"github.com/transom-run/transom"
)

// lane keeps what a client asks of one session in order. Most requests only post
// something and leave at once; one that opens or closes the session holds the
// lane, and what comes meanwhile waits behind it.
//
// The fields are guarded by conn.mu.
type lane struct {
	c     *conn
	id    string
	busy  bool               // somebody is in the lane
	queue []func(*lane) bool // who waits
	att   *attachment        // nil: not attached through this connection
	// ending: who holds the lane ends the session. asking counts the hooks that this
	// client has been asked about meanwhile.
	ending bool
	asking int
}

// attachment is a session as one connection sees it.
type attachment struct {
	sess *transom.Session
	// gate is held by the pump while it sends, and by a resume that must answer
	// before its events are sent.
	gate chan struct{}
	// delivered is closed when the pump has sent the last event.
	delivered chan struct{}
	// reads counts requests that read the session outside the lane; a destroy
	// waits for them.
	reads sync.WaitGroup

	// filing is closed when the newest request that works on the session's files
	// has ended; of the lane.
	filing chan struct{}

	// guarded by conn.mu
	interests map[string]string // event types by handle
}

// enter runs f in the lane of a session, now or once those before it are through.
// f returns true to keep the lane: then leave must be called, from anywhere.
func (c *conn) enter(id string, f func(l *lane) (held bool)) {
	c.mu.Lock()
	l := c.lanes[id]
	if l == nil {
		l = &lane{c: c, id: id}
		c.lanes[id] = l
	}
	if l.busy {
		l.queue = append(l.queue, f)
		c.mu.Unlock()
		return
	}
	l.busy = true
	c.mu.Unlock()
	if !l.run(f) {
		l.leave()
	}
}

// pass runs f, which does not keep the lane, as enter does; but where the session is
// ending, and this client is asked about that by a hook, f is run at once. The
// handler of the hook may ask anything: nothing that it waits for waits for it.
func (c *conn) pass(id string, f func(l *lane)) {
	if l := c.endingLane(id); l != nil {
		f(l)
		return
	}
	c.enter(id, func(l *lane) bool {
		f(l)
		return false
	})
}

// endingLane is the lane of a session that is ending while this client is asked about
// that, with nobody waiting; nil otherwise.
func (c *conn) endingLane(id string) *lane {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l := c.lanes[id]; l != nil && l.busy && l.ending && l.asking > 0 && len(l.queue) == 0 {
		return l
	}
	return nil
}

// asked notes that the client is asked by a hook of a session, until done is called.
func (c *conn) asked(id string) (done func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.lanes[id]
	if l == nil {
		return func() {}
	}
	l.asking++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		l.asking--
	}
}

// ends notes that who holds the lane ends the session, until the lane is left.
func (l *lane) ends() {
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	l.ending = true
}

// run calls f; a panic gives the lane back on its way up.
func (l *lane) run(f func(*lane) bool) (held bool) {
	done := false
	defer func() {
		if !done {
			l.leave()
		}
	}()
	held = f(l)
	done = true
	return held
}

// leave lets the next one in. A lane that nobody uses is forgotten.
func (l *lane) leave() {
	for {
		l.c.mu.Lock()
		l.ending = false
		if len(l.queue) == 0 {
			l.busy, l.queue = false, nil
			if l.att == nil {
				delete(l.c.lanes, l.id)
			}
			l.c.mu.Unlock()
			return
		}
		f := l.queue[0]
		l.queue = l.queue[1:]
		l.c.mu.Unlock()
		if l.run(f) {
			return
		}
	}
}

// attached returns the lane's attachment; nil where there is none.
func (l *lane) attached() *attachment {
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	return l.att
}

// attach ties a session to the lane. Where the connection has ended meanwhile the
// session is dropped; what is returned still answers.
func (l *lane) attach(s *transom.Session) *attachment {
	a := &attachment{sess: s, gate: make(chan struct{}, 1), delivered: make(chan struct{})}
	l.c.mu.Lock()
	ended := l.c.ended
	if !ended {
		l.att = a
	}
	l.c.mu.Unlock()
	if ended {
		s.Drop()
	}
	return a
}

// forget takes an attachment out of the lane once its session is gone.
func (l *lane) forget(a *attachment) {
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	if l.att != a {
		return
	}
	l.att = nil
	if !l.busy {
		delete(l.c.lanes, l.id)
	}
}
