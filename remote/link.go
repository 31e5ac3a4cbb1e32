package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/internal/jsonrpc2"
)

// link is one connection to the peer, attached to the session.
type link struct {
	s      *Session
	conn   *jsonrpc2.Conn
	served chan struct{} // closed when the connection has ended

	resumed atomic.Bool

	// of the reader
	caught bool    // the history was read: events go straight on
	early  []early // live events until then

	// written while it is being opened
	err     error // why the history cannot be followed
	history []record
	missed  int // events of the history that were handed on
}

// establish makes a connection and attaches. The context bounds all of it.
func (s *Session) establish(ctx context.Context) (*link, json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.AttachTimeout)
	defer cancel()
	peer := &s.cfg.Peer
	rwc, err := peer.dial(ctx)
	if err != nil {
		return nil, nil, peer.unreachable(err)
	}
	l := &link{s: s, served: make(chan struct{})}
	l.conn = jsonrpc2.New(rwc, jsonrpc2.Config{Handler: jsonrpc2.HandlerFunc(l.admit), MaxFrameBytes: s.cfg.MaxFrameBytes, Report: s.cfg.Report})
	go func() {
		defer close(l.served)
		if err := l.conn.Serve(context.Background()); err != nil {
			s.cfg.Report(fmt.Errorf("link to peer %s: %w", peer.Name, err))
		}
	}()
	opened, err := l.open(ctx)
	if err != nil {
		l.conn.Close()
		<-l.served
		return nil, nil, err
	}
	return l, opened, nil
}

// open shakes hands, attaches, and reads the history.
func (l *link) open(ctx context.Context) (json.RawMessage, error) {
	peer := &l.s.cfg.Peer
	if err := l.shakeHands(ctx); err != nil {
		return nil, err
	}
	params, err := l.s.resumeParams()
	if err != nil {
		return nil, err
	}
	type outcome struct {
		result json.RawMessage
		err    error
	}
	answer := make(chan outcome, 1)
	l.conn.Go(ctx, "session.resume", params, func(result json.RawMessage, err error) {
		l.resumed.Store(err == nil)
		answer <- outcome{result, err}
	})
	read := make(chan struct{})
	l.conn.Go(ctx, "session.getMessages", sessionOnly{l.s.cfg.SessionID}, func(raw json.RawMessage, err error) {
		defer close(read)
		l.catchUp(raw, err)
	})
	o := <-answer // both calls end with ctx
	<-read
	if o.err != nil {
		return nil, peer.resumeFailed(l.s.cfg.SessionID, o.err)
	}
	if l.err != nil {
		return nil, l.err
	}
	return o.result, nil
}

type sessionOnly struct {
	SessionID string `json:"sessionId"`
}

// shakeHands shows the token and compares versions.
func (l *link) shakeHands(ctx context.Context) error {
	peer := &l.s.cfg.Peer
	raw, err := l.conn.Call(ctx, "connect", map[string]string{"token": peer.Token})
	switch code := codeOf(err); {
	case code == codeTokenMissing || code == codeTokenWrong:
		return peer.refused(err)
	case err != nil && ctx.Err() != nil:
		return peer.unreachable(context.Cause(ctx))
	case err != nil:
		return peer.noProtocol(err)
	}
	var hello struct {
		ProtocolVersion int `json:"protocolVersion"`
	}
	if err := json.Unmarshal(raw, &hello); err != nil {
		return peer.noProtocol(err)
	}
	if hello.ProtocolVersion != l.s.cfg.Protocol {
		return peer.otherVersion(hello.ProtocolVersion, l.s.cfg.Protocol)
	}
	return nil
}

// catchUp takes the history: what of it is new to the client, then the live
// events that came meanwhile.
func (l *link) catchUp(raw json.RawMessage, err error) {
	var answered *jsonrpc2.Error
	switch {
	case !l.resumed.Load():
		return
	case err == nil:
		l.history, err = parseHistory(raw)
	case !errors.As(err, &answered) && !errors.Is(err, jsonrpc2.ErrTooLarge):
		l.err = l.s.cfg.Peer.unreachable(err) // the link broke meanwhile
		return
	}
	if err != nil {
		l.err = &Error{
			Kind: transom.KindInternal, Peer: l.s.cfg.Peer.Name, Err: err,
			Msg: fmt.Sprintf("session %s of peer %s cannot be followed, because its history cannot be read: %v", l.s.cfg.SessionID, l.s.cfg.Peer.Name, err),
		}
		return
	}
	l.missed = l.s.handOver(l.history, l.early)
	l.caught, l.early = true, nil
}

// admit takes what the peer sends, on the reader.
func (l *link) admit(ctx context.Context, _ *jsonrpc2.Conn, r *jsonrpc2.Responder) {
	req := r.Request()
	if !req.IsNotification() {
		r.Go(func(ctx context.Context) (any, error) { return l.s.cfg.Ask(ctx, req.Method, req.Params) })
		return
	}
	if req.Method == "session.event" {
		l.event(ctx, req.Params)
		return
	}
	var p sessionOnly
	if json.Unmarshal(req.Params, &p) == nil && p.SessionID == l.s.cfg.SessionID {
		l.s.cfg.Tell(req.Method, req.Params)
	}
}

// event takes a live event. Where the client here does not read, it waits, and
// with it all the peer sends on this link: the peer then goes at the client's
// pace.
func (l *link) event(ctx context.Context, params json.RawMessage) {
	var p struct {
		SessionID string `json:"sessionId"`
		Event     head   `json:"event"`
	}
	if json.Unmarshal(params, &p) != nil || p.SessionID != l.s.cfg.SessionID {
		return
	}
	if !l.caught {
		l.early = append(l.early, early{p.Event, params})
		return
	}
	if l.s.passes(&p.Event) {
		l.s.feed.putWait(ctx, item{pieces: [][]byte{params}})
	}
}

// atWork asks the peer whether a turn runs.
func (l *link) atWork(ctx context.Context) bool {
	raw, err := l.conn.Call(ctx, "session.metadata.isProcessing", sessionOnly{l.s.cfg.SessionID})
	var answer struct {
		Processing *bool `json:"processing"`
	}
	if err == nil && json.Unmarshal(raw, &answer) == nil && answer.Processing != nil {
		return *answer.Processing
	}
	return !over(l.history)
}

// mode asks the peer for the session's mode.
func (l *link) mode(ctx context.Context) string {
	mode := "interactive"
	if raw, err := l.conn.Call(ctx, "session.mode.get", sessionOnly{l.s.cfg.SessionID}); err == nil {
		_ = json.Unmarshal(raw, &mode) // else it stays what it mostly is
	}
	return mode
}
