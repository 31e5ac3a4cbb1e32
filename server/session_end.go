package server

import (
	"cmp"
	"context"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/internal/jsonrpc2"
)

// destroySession detaches the client; where it was the last the session ends, and
// can be resumed. An id that is not attached here is no error.
func destroySession(c *conn, r *jsonrpc2.Responder) { detach(c, r, false) }

// detachSession is destroySession by another name, and succeeds for any id.
func detachSession(c *conn, r *jsonrpc2.Responder) { detach(c, r, true) }

func detach(c *conn, r *jsonrpc2.Responder, unknown bool) {
	inLane(c, r, func(l *lane, _ *target) bool {
		a := l.attached()
		if a == nil {
			r.Reply(successResult{unknown}, nil)
			return false
		}
		r.Go(func(ctx context.Context) (any, error) {
			defer l.leave()
			r.Reply(successResult{true}, fail(r.Request().Method, c.close(ctx, l, a)))
			return nil, nil
		})
		return true
	})
}

// close ends an attachment and waits until its last event was sent.
func (c *conn) close(ctx context.Context, l *lane, a *attachment) error {
	a.reads.Wait()
	c.releaseExtensions(l.id)
	l.ends()
	if err := a.sess.Close(ctx); err != nil {
		return err
	}
	select {
	case <-a.delivered:
	case <-ctx.Done():
	}
	l.forget(a)
	return nil
}

// deleteSession removes a session for good, attached or not.
func deleteSession(c *conn, r *jsonrpc2.Responder) {
	inLane(c, r, func(l *lane, p *target) bool {
		r.Go(func(ctx context.Context) (any, error) {
			defer l.leave()
			a := l.attached()
			if a != nil {
				a.reads.Wait()
				l.ends()
			}
			c.claim(p.SessionID)
			err := c.srv.cfg.Runtime.DeleteSession(ctx, p.SessionID)
			if a != nil && err == nil {
				select {
				case <-a.delivered:
				case <-ctx.Done():
				}
				l.forget(a)
			}
			if err != nil {
				switch transom.KindOf(err) {
				case transom.KindNotFound, transom.KindInvalidParams, transom.KindConflict:
					r.Reply(failure{Error: err.Error()}, nil)
					return nil, nil
				}
			}
			r.Reply(successResult{true}, fail(r.Request().Method, err))
			return nil, nil
		})
		return true
	})
}

type shutdownParams struct {
	target
	Type   string `json:"type"`
	Reason string `json:"reason"`
}

// shutdownSession ends the session for all clients, in order. Each gets its last
// event; the caller before the answer.
func shutdownSession(c *conn, r *jsonrpc2.Responder) {
	endSession(c, r, func(ctx context.Context, s *transom.Session, p *shutdownParams) error {
		failure := ""
		if p.Type == "error" {
			failure = cmp.Or(p.Reason, "the client ended the session because of an error")
		}
		return s.Shutdown(ctx, failure)
	})
}

// suspendSession ends the session for all clients and leaves its work open.
func suspendSession(c *conn, r *jsonrpc2.Responder) {
	endSession(c, r, func(ctx context.Context, s *transom.Session, _ *target) error { return s.Suspend(ctx) })
}

// endSession holds the lane while a session ends.
func endSession[P any, T aimed[P]](c *conn, r *jsonrpc2.Responder, end func(ctx context.Context, s *transom.Session, p *P) error) {
	inLane[P, T](c, r, func(l *lane, p *P) bool {
		a := l.attached()
		if a == nil {
			r.Reply(nil, notFound(r.Request().Method, l.id))
			return false
		}
		r.Go(func(ctx context.Context) (any, error) {
			defer l.leave()
			a.reads.Wait()
			l.ends()
			err := end(ctx, a.sess, p)
			if err == nil {
				select {
				case <-a.delivered:
				case <-ctx.Done():
				}
				l.forget(a)
			}
			r.Reply(nil, fail(r.Request().Method, err))
			return nil, nil
		})
		return true
	})
}
