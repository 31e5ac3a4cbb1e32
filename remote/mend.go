package remote

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"time"

	"github.com/transom-run/transom/event"
)

// The types of the notes that tell a client of its link. They are ephemeral: the
// session's log, which is the peer's, knows nothing of links.
const (
	// WarningLost is the warningType of a session.warning: the link broke.
	WarningLost = "remote_link_lost"
	// InfoRestored is the infoType of a session.info: there is a link again, and
	// all persisted events that were missed were handed on.
	InfoRestored = "remote_link_restored"
	// WarningEnded is the warningType of a session.warning: the link cannot be
	// mended, and the session is gone from this server.
	WarningEnded = "remote_session_ended"
)

// keep watches the link and mends it until the session is left.
func (s *Session) keep(l *link) {
	for {
		select {
		case <-l.conn.Context().Done():
		case <-s.ctx.Done():
		}
		s.mu.Lock()
		s.link = nil
		s.mu.Unlock()
		l.conn.Close()
		<-l.served
		if s.ctx.Err() != nil {
			s.refuseKept(s.lost("the request", context.Canceled))
			return
		}
		s.say(event.SessionWarning{WarningType: WarningLost, Message: fmt.Sprintf(
			"The link to peer %s, where session %s lives, broke. It is being mended; the session goes on there.", s.cfg.Peer.Name, s.cfg.SessionID)})
		var err error
		if l, err = s.mend(); err != nil {
			s.end(err)
			return
		}
		if l == nil {
			s.refuseKept(s.lost("the request", context.Canceled))
			return
		}
	}
}

// mend makes a new link; nil where the session is left first.
func (s *Session) mend() (*link, error) {
	for attempt := 0; ; attempt++ {
		pause := time.NewTimer(s.wait(attempt))
		select {
		case <-pause.C:
		case <-s.ctx.Done():
			pause.Stop()
			return nil, nil
		}
		l, _, err := s.establish(s.ctx)
		switch {
		case err == nil:
			s.settleWork(l)
			s.registerAgain(l)
			s.relink(l)
			s.say(event.SessionInfo{InfoType: InfoRestored, Message: fmt.Sprintf(
				"The link to peer %s is there again; %d events of session %s were caught up on.", s.cfg.Peer.Name, l.missed, s.cfg.SessionID)})
			return l, nil
		case s.ctx.Err() != nil:
			return nil, nil
		case final(err):
			return nil, err
		}
		s.cfg.Report(err)
	}
}

// settleWork makes up the session.idle of a turn that ended while there was no
// link: whoever waits for it must not wait for ever.
func (s *Session) settleWork(l *link) {
	s.mu.Lock()
	busy := s.work.busy
	s.mu.Unlock()
	if busy {
		ctx, cancel := context.WithTimeout(s.ctx, s.cfg.AttachTimeout)
		defer cancel()
		if l.atWork(ctx) {
			l.history = nil
			return
		}
		mode := l.mode(ctx)
		s.mu.Lock()
		if s.work.busy {
			s.work = work{made: true}
			s.sayLocked(event.AssistantIdle{})
			s.sayLocked(event.SessionIdle{Mode: mode})
		}
		s.mu.Unlock()
	}
	l.history = nil
}

// relink sends what was kept for the new link, and opens it for the rest.
func (s *Session) relink(l *link) {
	for {
		s.mu.Lock()
		kept := s.kept
		s.kept = nil
		if len(kept) == 0 {
			s.link = l
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		for _, r := range kept {
			s.send(l, r)
		}
		if l.conn.Context().Err() != nil {
			return // they are kept again
		}
	}
}

// end tells that the link cannot be mended.
func (s *Session) end(err error) {
	s.say(event.SessionWarning{WarningType: WarningEnded, Message: fmt.Sprintf(
		"Session %s is no longer reached through this server: %v.", s.cfg.SessionID, err)})
	s.mu.Lock()
	s.over = err
	s.mu.Unlock()
	s.refuseKept(err)
	s.feed.close()
}

func (s *Session) refuseKept(err error) {
	s.mu.Lock()
	kept := s.kept
	s.kept = nil
	s.mu.Unlock()
	for _, r := range kept {
		r.done(nil, err)
	}
}

// handOver puts into the feed what a client does not have yet: a part of the
// history, and the live events that came before it. It returns how much of the
// history that was.
func (s *Session) handOver(history []record, live []early) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	part := s.place.missing(history, live)
	first := s.fresh
	s.fresh = false
	for i := range part {
		r := &part[i]
		s.place.add(&r.head)
		if passes := s.work.note(&r.head); passes && (!first || s.cfg.History) {
			s.feed.put(item{pieces: [][]byte{s.prefix, r.line, []byte("}")}})
		}
	}
	if first { // a history has no session.idle: its end tells
		s.work = work{busy: !over(part)}
	}
	for i := range live {
		e := &live[i]
		if !e.Ephemeral {
			if s.place.has(e.ID) {
				continue
			}
			s.place.add(&e.head)
		}
		if s.work.note(&e.head) {
			s.feed.put(item{pieces: [][]byte{e.params}})
		}
	}
	return len(part)
}

// passes notes a live event; false where it must not be handed on: one that was
// written before the history was read, and is sent after it, has come with it.
func (s *Session) passes(h *head) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !h.Ephemeral {
		if s.place.has(h.ID) {
			return false
		}
		s.place.add(h)
	}
	return s.work.note(h)
}

// say hands on an event that is made here.
func (s *Session) say(p event.Payload) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sayLocked(p)
}

func (s *Session) sayLocked(p event.Payload) {
	switch p.(type) {
	case event.SessionIdle, event.AssistantIdle:
	default:
		p = event.EphemeralNote{Payload: p}
	}
	e, err := event.New(p, newID(), s.place.last, time.Now())
	if err != nil {
		s.cfg.Report(err)
		return
	}
	s.feed.put(item{pieces: [][]byte{s.prefix, e.Line, []byte("}")}})
}

// newID makes a random UUID.
func newID() string {
	var b [16]byte
	rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

const (
	registerInterest = "session.eventLog.registerInterest"
	releaseInterest  = "session.eventLog.releaseInterest"
)

// interest is a registration of the client: the peer forgets it with the link.
type interest struct {
	params json.RawMessage
	handle string // as the peer knows it now
}

type handleParam struct {
	Handle string `json:"handle"`
}

func (s *Session) registered(params, result json.RawMessage) {
	var h handleParam
	if json.Unmarshal(result, &h) != nil || h.Handle == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.interests[h.Handle] = interest{params, h.Handle}
}

func (s *Session) released(params json.RawMessage) {
	var h handleParam
	if json.Unmarshal(params, &h) != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.interests, h.Handle)
}

// translate puts the peer's handle for the client's.
func (s *Session) translate(method string, params json.RawMessage) any {
	if method != releaseInterest {
		return params
	}
	var h handleParam
	if json.Unmarshal(params, &h) != nil {
		return params
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	i, ok := s.interests[h.Handle]
	if !ok || i.handle == h.Handle {
		return params
	}
	return map[string]string{"sessionId": s.cfg.SessionID, "handle": i.handle}
}

// registerAgain registers on a new link what was registered on the old one.
func (s *Session) registerAgain(l *link) {
	s.mu.Lock()
	var handles []string
	for h := range s.interests {
		handles = append(handles, h)
	}
	s.mu.Unlock()
	for _, h := range handles {
		s.mu.Lock()
		i := s.interests[h]
		s.mu.Unlock()
		ctx, cancel := context.WithTimeout(s.ctx, s.cfg.AttachTimeout)
		raw, err := l.conn.Call(ctx, registerInterest, i.params)
		cancel()
		var again handleParam
		if err == nil {
			err = json.Unmarshal(raw, &again)
		}
		if err != nil {
			s.cfg.Report(err)
			continue
		}
		s.mu.Lock()
		s.interests[h] = interest{i.params, again.Handle}
		s.mu.Unlock()
	}
}
