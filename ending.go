package transom

import (
	"context"
	"errors"

	"github.com/transom-run/transom/internal/session"
	"github.com/transom-run/transom/internal/turn"
)

// Shutdown ends the session in this process for everybody: a running turn is
// stopped, session-end hooks are asked, session.shutdown is written, and all is
// released when Shutdown returns. It can be resumed. failure says why, where it
// ends because of a fault; "" is routine.
func (h *Session) Shutdown(ctx context.Context, failure string) error {
	return wrap("session.shutdown", h.id, finish(ctx, h.sess, turn.Close{Reason: failure, Ask: true}))
}

// Suspend takes the session out of this process for everybody, and leaves what is
// under way open in its log: a resume with ContinuePendingWork takes it up.
func (h *Session) Suspend(ctx context.Context) error {
	return wrap("session.suspend", h.id, finish(ctx, h.sess, turn.Suspend{}))
}

// finish posts what ends a session and waits until it is out of the process.
func finish(ctx context.Context, s *loaded, body turn.Body) error {
	failed := make(chan error, 1)
	s.Post(body, nil, func(_ any, err error) {
		if err != nil && !errors.Is(err, session.ErrUnloaded) {
			failed <- err
		}
	})
	select {
	case err := <-failed:
		return err
	case <-s.Done():
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// CloseSession ends a session in this process for everybody, as [Session.Shutdown]
// does. One that is not loaded here is no error.
func (r *Runtime) CloseSession(ctx context.Context, id string) error {
	const op = "sessions.close"
	r.mu.Lock()
	sl := r.sessions[id]
	r.mu.Unlock()
	if sl == nil {
		return nil
	}
	select {
	case <-sl.opened:
	case <-ctx.Done():
		return wrap(op, id, context.Cause(ctx))
	}
	if sl.sess == nil {
		return nil // its opening failed
	}
	if err := finish(ctx, sl.sess, turn.Close{Ask: true}); err != nil {
		return wrap(op, id, err)
	}
	select {
	case <-sl.gone:
		return nil
	case <-ctx.Done():
		return wrap(op, id, context.Cause(ctx))
	}
}
