package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/internal/jsonrpc2"
	"github.com/transom-run/transom/remote"
)

// farSession is a session of a peer as one connection sees it.
type farSession struct {
	c    *conn
	id   string
	sess *remote.Session // nil while it is being attached; guarded by conn.mu
}

// exposure is a session of a peer that clients here are attached to. Others may
// resume it by its id while it is.
type exposure struct {
	peer  *remote.Peer // nil until the first attached
	uses  map[*farSession]bool
	entry remoteEntry
}

// remoteEntry describes a session of a peer as the lists of sessions show it.
type remoteEntry struct {
	sessionEntry
	RemoteSessionIDs []string   `json:"remoteSessionIds"`
	Repository       repository `json:"repository"`
	ResourceID       string     `json:"resourceId"`
}

// repository is required of remote sessions; a peer's has none that is known.
type repository struct {
	Owner  string `json:"owner"`
	Name   string `json:"name"`
	Branch string `json:"branch"`
}

type connectedMetadata struct {
	Kind         string     `json:"kind"`
	SessionID    string     `json:"sessionId"`
	StartTime    string     `json:"startTime"`
	ModifiedTime string     `json:"modifiedTime"`
	Name         string     `json:"name,omitempty"`
	Summary      string     `json:"summary,omitempty"`
	Repository   repository `json:"repository"`
	ResourceID   string     `json:"resourceId"`
}

type connectedResult struct {
	SessionID string            `json:"sessionId"`
	Metadata  connectedMetadata `json:"metadata"`
}

// connectRemote attaches to a session of a peer, named by its id or by PEER/ID.
// What it holds is sent first, then the answer, then what happens.
func connectRemote(c *conn, r *jsonrpc2.Responder) {
	p := new(target)
	if err := decode(r.Request(), p); err != nil {
		r.Reply(nil, err)
		return
	}
	c.attachRemote(r, p.SessionID, func(e remoteEntry) any {
		return connectedResult{e.SessionID, connectedMetadata{
			Kind: "remote-session", SessionID: e.SessionID, StartTime: e.StartTime, ModifiedTime: e.ModifiedTime,
			Name: e.Name, Summary: e.Summary, Repository: e.Repository, ResourceID: e.ResourceID,
		}}
	})
}

type openParams struct {
	Kind            string `json:"kind"`
	RemoteSessionID string `json:"remoteSessionId"`
}

type openResult struct {
	Status          string       `json:"status"`
	SessionID       string       `json:"sessionId,omitempty"`
	RemoteSessionID string       `json:"remoteSessionId,omitempty"`
	Metadata        *remoteEntry `json:"metadata,omitempty"`
}

// openSession is connectRemote by another name, for the one kind that is served.
func openSession(c *conn, r *jsonrpc2.Responder) {
	p := new(openParams)
	if err := decode(r.Request(), p); err != nil {
		r.Reply(nil, err)
		return
	}
	switch p.Kind {
	case "remote":
		c.attachRemote(r, p.RemoteSessionID, func(e remoteEntry) any {
			return openResult{"connected", e.SessionID, e.SessionID, &e}
		})
	case "", "resumeLast":
		r.Go(func(ctx context.Context) (any, error) {
			last, err := c.srv.cfg.Runtime.LastSessionID(ctx)
			if err == nil && last != "" {
				err = failKind("sessions.open", transom.KindUnsupported, "sessions.open resumes nothing by itself: the last session is "+last+", use session.resume")
			}
			return openResult{Status: "not_found"}, fail("sessions.open", err)
		})
	default:
		r.Reply(nil, failKind("sessions.open", transom.KindUnsupported, "sessions.open serves the kind remote; use session.create and session.resume for sessions of this server"))
	}
}

// attachRemote attaches the client to a session of a peer.
func (c *conn) attachRemote(r *jsonrpc2.Responder, name string, result func(remoteEntry) any) {
	op := r.Request().Method
	peers, id, err := c.srv.peersOf(op, name)
	if err != nil {
		r.Reply(nil, err)
		return
	}
	f, mine, err := c.reserveFar(op, id)
	if err != nil {
		r.Reply(nil, err)
		return
	}
	c.enter(id, func(l *lane) bool {
		r.Go(func(ctx context.Context) (any, error) {
			defer l.leave()
			if mine {
				if err := c.attachFirst(ctx, op, f, peers); err != nil {
					return nil, err
				}
			}
			s := f.session()
			if s == nil {
				return nil, notFound(op, id)
			}
			if mine {
				s.Start()
				s.Settle(ctx)
			}
			e, _ := c.srv.remoteEntry(ctx, id)
			return result(e), nil
		})
		return true
	})
}

// peersOf finds out who may have a session that is named ID or PEER/ID.
func (s *Server) peersOf(op, name string) (peers []*remote.Peer, id string, err error) {
	at, id, named := strings.Cut(name, "/")
	if !named {
		at, id = "", name
	}
	if id == "" {
		return nil, "", invalid(op, op+" needs the id of a session of a peer: ID, or PEER/ID")
	}
	for i := range s.cfg.Peers {
		if p := &s.cfg.Peers[i]; at == "" || p.Name == at {
			peers = append(peers, p)
		}
	}
	switch {
	case len(s.cfg.Peers) == 0:
		return nil, "", failKind(op, transom.KindNotFound, "Session not found: "+id+": this server knows no other servers where sessions could live; start it with --peer NAME=URL")
	case len(peers) == 0:
		return nil, "", failKind(op, transom.KindNotFound, fmt.Sprintf("Session not found: %s: no peer is named %s; the peers are %s", id, at, s.peerNames()))
	}
	return peers, id, nil
}

func (s *Server) peerNames() string {
	names := make([]string, len(s.cfg.Peers))
	for i, p := range s.cfg.Peers {
		names[i] = p.Name
	}
	return strings.Join(names, ", ")
}

// reserveFar takes an id for a session of a peer, so that what the client asks of
// it from here on goes there. mine is false where the client has it already.
func (c *conn) reserveFar(op, id string) (f *farSession, mine bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.far[id]; f != nil {
		return f, false, nil
	}
	if l := c.lanes[id]; l != nil && l.att != nil {
		return nil, false, conflictHere(op, id)
	}
	f = &farSession{c: c, id: id}
	if c.far == nil {
		c.far = map[string]*farSession{}
	}
	c.far[id] = f
	c.srv.use(f)
	return f, true, nil
}

func conflictHere(op, id string) error {
	return failKind(op, transom.KindConflict, "session "+id+" lives on this server: resume it here")
}

// session returns the attachment; nil where there is none, or not yet.
func (f *farSession) session() *remote.Session {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	return f.sess
}

// release gives the id back.
func (f *farSession) release() {
	f.c.mu.Lock()
	if f.c.far[f.id] == f {
		delete(f.c.far, f.id)
	}
	f.sess = nil
	f.c.mu.Unlock()
	f.c.srv.unuse(f)
}

// attachFirst attaches to the first of the peers that has the session.
func (c *conn) attachFirst(ctx context.Context, op string, f *farSession, peers []*remote.Peer) (err error) {
	defer func() {
		if err != nil {
			f.release()
		}
	}()
	switch _, err := c.srv.cfg.Runtime.Stored(ctx, f.id); {
	case err == nil:
		return conflictHere(op, f.id)
	case transom.KindOf(err) != transom.KindNotFound:
		return fail(op, err)
	}
	var failure error
	for _, p := range peers {
		err := c.attachAt(ctx, f, p, nil, true)
		if err == nil {
			return nil
		}
		var e *remote.Error
		if !errors.As(err, &e) || e.Kind != transom.KindNotFound {
			failure = errors.Join(failure, err)
		}
	}
	if failure != nil {
		return failRemote(op, failure)
	}
	return failKind(op, transom.KindNotFound, fmt.Sprintf("Session not found: %s, on peer %s", f.id, peerList(peers)))
}

func peerList(peers []*remote.Peer) string {
	names := make([]string, len(peers))
	for i, p := range peers {
		names[i] = p.Name
	}
	return strings.Join(names, " or ")
}

// attachAt attaches at one peer. Events wait until the session is started.
func (c *conn) attachAt(ctx context.Context, f *farSession, p *remote.Peer, params json.RawMessage, history bool) error {
	s, err := remote.Attach(ctx, remote.Config{
		Peer: *p, Protocol: ProtocolVersion, SessionID: f.id, Params: params, History: history,
		MaxFrameBytes: c.srv.cfg.MaxFrameBytes,
		Events:        func(ctx context.Context, params ...[]byte) error { return c.sendFar(ctx, f.id, params) },
		Ask: func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
			return c.rpc.Call(ctx, method, params)
		},
		Tell: func(method string, params json.RawMessage) {
			_ = c.rpc.Notify(method, params) // fails only where the client has gone
		},
		Over: func(error) { f.release() },
		Report: func(err error) {
			c.srv.cfg.Logger.Info("remote session", "session", f.id, "peer", p.Name, "error", err)
		},
	})
	if err != nil {
		return err
	}
	c.pumps.Go(func() { <-s.Done() })
	c.mu.Lock()
	f.sess = s
	ended := c.ended
	c.mu.Unlock()
	if ended {
		s.Drop()
	}
	c.srv.exposeAt(f, p, s.Opened())
	return nil
}

// sendFar sends an event of a peer on.
func (c *conn) sendFar(ctx context.Context, id string, params [][]byte) error {
	err := c.rpc.NotifyWait(ctx, "session.event", params...)
	if errors.Is(err, jsonrpc2.ErrTooLarge) {
		c.srv.cfg.Logger.Warn("an event is larger than a frame may be and was not sent", "session", id)
		return nil
	}
	return err
}

// dropFar leaves all sessions of peers, as a lost client does.
func (c *conn) dropFar() {
	c.mu.Lock()
	lost := slices.Collect(maps.Values(c.far))
	var sessions []*remote.Session
	for _, f := range lost {
		if f.sess != nil {
			sessions = append(sessions, f.sess)
		}
	}
	c.mu.Unlock()
	for _, s := range sessions {
		s.Drop()
	}
	for _, f := range lost {
		f.release()
	}
}

// use counts a client of a peer's session in.
func (s *Server) use(f *farSession) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.exposed[f.id]
	if e == nil {
		e = &exposure{uses: map[*farSession]bool{}}
		if s.exposed == nil {
			s.exposed = map[string]*exposure{}
		}
		s.exposed[f.id] = e
	}
	e.uses[f] = true
}

// unuse counts a client out; the last one takes the exposure with it.
func (s *Server) unuse(f *farSession) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.exposed[f.id]; e != nil {
		delete(e.uses, f)
		if len(e.uses) == 0 {
			delete(s.exposed, f.id)
		}
	}
}

// exposeAt notes where a session lives.
func (s *Server) exposeAt(f *farSession, p *remote.Peer, opened json.RawMessage) {
	var o struct {
		StartTime string `json:"startTime"`
	}
	_ = json.Unmarshal(opened, &o) // a peer that says nothing is described by less
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.exposed[f.id]
	if e == nil || e.peer != nil {
		return
	}
	e.peer = p
	e.entry = remoteEntry{
		sessionEntry:     sessionEntry{SessionID: f.id, StartTime: o.StartTime, ModifiedTime: o.StartTime, IsRemote: true},
		RemoteSessionIDs: []string{f.id}, ResourceID: p.Name + "/" + f.id,
	}
}

// exposedOn returns the peer of a session that somebody here is attached to; nil
// where there is none.
func (s *Server) exposedOn(id string) *remote.Peer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.exposed[id]; e != nil {
		return e.peer
	}
	return nil
}

// describeTime is how long a peer may take to describe a session before what was
// known of it must do.
const describeTime = 2 * time.Second

// remoteEntry describes a session of a peer that somebody here is attached to.
func (s *Server) remoteEntry(ctx context.Context, id string) (remoteEntry, bool) {
	s.mu.Lock()
	e := s.exposed[id]
	if e == nil || e.peer == nil {
		s.mu.Unlock()
		return remoteEntry{}, false
	}
	entry, users := e.entry, slices.Collect(maps.Keys(e.uses))
	s.mu.Unlock()
	for _, f := range users {
		sess := f.session()
		if sess == nil {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, describeTime)
		raw, err := sess.Call(ctx, "session.getMetadata", target{id})
		cancel()
		var answer struct {
			Session *sessionEntry `json:"session"`
		}
		if err != nil || json.Unmarshal(raw, &answer) != nil || answer.Session == nil {
			break
		}
		entry.sessionEntry = *answer.Session
		entry.SessionID, entry.IsRemote = id, true
		s.mu.Lock()
		e.entry = entry
		s.mu.Unlock()
		break
	}
	return entry, true
}

// remoteEntries describes all of them, by id.
func (s *Server) remoteEntries(ctx context.Context) []remoteEntry {
	s.mu.Lock()
	ids := slices.Sorted(maps.Keys(s.exposed))
	s.mu.Unlock()
	var out []remoteEntry
	for _, id := range ids {
		if e, ok := s.remoteEntry(ctx, id); ok {
			out = append(out, e)
		}
	}
	return out
}

// failRemote turns an error of a link, or of a peer, into what the client reads.
// What a peer answered is passed on as it is.
func failRemote(op string, err error) error {
	var theirs *jsonrpc2.Error
	var e *remote.Error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, jsonrpc2.ErrCancelled):
		return err
	case errors.As(err, &e):
		return &jsonrpc2.Error{Code: Code(e.Kind), Message: err.Error(), Data: errorData{string(e.Kind), op, e.Retryable}}
	case errors.As(err, &theirs):
		return theirs
	}
	return fail(op, err)
}
