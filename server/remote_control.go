package server

import (
	"context"

	"github.com/transom-run/transom"
)

// Remote control is the following and steering of a session from a hosted web
// page. There is no such service here: it is off, and what would switch it on is
// refused. (Sessions that live on another server are a different thing: see
// remote.go.)

const refusedControl = "there is no hosted service here to follow or steer sessions with; clients on other machines can connect to this server, and other servers can be given it as a peer"

type controlStatus struct {
	State string `json:"state"`
}

type controlResult struct {
	Status      controlStatus `json:"status"`
	Stopped     *bool         `json:"stopped,omitempty"`
	Transferred *bool         `json:"transferred,omitempty"`
}

var controlOff = controlStatus{"off"}

func controlState(*conn, *noParams) (any, error) { return controlResult{Status: controlOff}, nil }

// steerControl has nothing to steer while remote control is off.
func steerControl(*conn, *noParams) (any, error) { return controlResult{Status: controlOff}, nil }

func stopControl(*conn, *noParams) (any, error) {
	return controlResult{Status: controlOff, Stopped: new(bool)}, nil
}

func transferControl(*conn, *noParams) (any, error) {
	return controlResult{Status: controlOff, Transferred: new(bool)}, nil
}

// startControl is an error: for a session that is not there, and for all others.
func startControl(ctx context.Context, c *conn, p *target) (any, error) {
	const op = "sessions.startRemoteControl"
	if p.SessionID == "" {
		return nil, invalid(op, "Missing sessionId in "+op+" request")
	}
	c.mu.Lock()
	l := c.lanes[p.SessionID]
	attached := l != nil && l.att != nil
	c.mu.Unlock()
	if !attached {
		if _, err := c.srv.cfg.Runtime.Stored(ctx, p.SessionID); err != nil {
			return nil, err
		}
	}
	return nil, failKind(op, transom.KindUnsupported, "remote control of session "+p.SessionID+" cannot be started: "+refusedControl)
}

type enableParams struct {
	target
	Mode *string `json:"mode"`
}

type enableResult struct {
	RemoteSteerable bool `json:"remoteSteerable"`
}

// enableRemote serves the one mode that needs no hosted service.
func enableRemote(q *call, p *enableParams) {
	if p.Mode == nil || *p.Mode != "off" {
		q.Reply(nil, failKind(q.op(), transom.KindUnsupported, "session.remote.enable serves the mode off only: "+refusedControl))
		return
	}
	q.Reply(enableResult{}, nil)
}

// disableRemote has nothing to switch off.
func disableRemote(q *call, _ *target) { q.Reply(struct{}{}, nil) }

type steerableParams struct {
	target
	RemoteSteerable *bool `json:"remoteSteerable"`
}

// notifySteerable keeps what the host says in the session's log.
func notifySteerable(q *call, p *steerableParams) {
	if p.RemoteSteerable == nil {
		q.Reply(nil, invalid(q.op(), q.op()+" needs remoteSteerable, true or false"))
		return
	}
	q.sess.Post(transom.NoteSteerable{Steerable: *p.RemoteSteerable}, q.answer(func(any) any { return struct{}{} }))
}
