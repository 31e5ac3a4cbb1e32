package transom

import (
	"context"
	"errors"
	"fmt"

	"github.com/transom-run/transom/eventlog"
	"github.com/transom-run/transom/internal/session"
	"github.com/transom-run/transom/internal/turn"
	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/model/catalog"
)

// Kind sorts errors. The list is closed and only ever grows at its end; servers
// map each kind to a code of their protocol.
type Kind string

// The kinds of error.
const (
	KindInvalidParams   Kind = "invalid_params"  // the caller's input is at fault
	KindInternal        Kind = "internal"        // Transom's, or the store's, fault
	KindCancelled       Kind = "cancelled"       // the caller's context ended
	KindDeadline        Kind = "deadline"        // the caller's deadline passed
	KindNotFound        Kind = "not_found"       // no such session, model, event
	KindWrongState      Kind = "wrong_state"     // not possible at this moment
	KindConflict        Kind = "conflict"        // the id exists, or another process has the session
	KindDenied          Kind = "denied"          // by policy
	KindUnauthenticated Kind = "unauthenticated" // a token is missing or wrong
	KindUnsupported     Kind = "unsupported"     // known, and not served
	KindOverloaded      Kind = "overloaded"      // too much is waiting
	KindClosing         Kind = "closing"         // the runtime or session is ending
	KindUpstream        Kind = "upstream"        // a model provider failed
	KindPeerGone        Kind = "peer_gone"       // a client that had to answer has gone
)

// Kinds lists every kind.
func Kinds() []Kind {
	return []Kind{
		KindInvalidParams, KindInternal, KindCancelled, KindDeadline, KindNotFound, KindWrongState, KindConflict,
		KindDenied, KindUnauthenticated, KindUnsupported, KindOverloaded, KindClosing, KindUpstream, KindPeerGone,
	}
}

// Error is the error of every operation of this package. Msg says what happened,
// to what, and what to do; it is stable and safe to show.
type Error struct {
	Op        string // such as "session.send"
	Kind      Kind
	SessionID string
	Msg       string
	Err       error // the cause, where there is one
}

func (e *Error) Error() string { return e.Msg }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is matches an error of the same kind: errors.Is(err, &Error{Kind: KindNotFound}).
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Kind == e.Kind && (t.Op == "" || t.Op == e.Op) && t.Msg == ""
}

// KindOf returns the kind of an error of this package; KindInternal for others.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return KindInternal
}

// Retryable reports whether the same request may succeed a little later, by itself.
func Retryable(err error) bool {
	switch KindOf(err) {
	case KindCancelled, KindDeadline, KindOverloaded, KindClosing:
		return true
	case KindConflict: // another process is at work on the session, and will have done
		return errors.As(err, new(*eventlog.HeldError))
	}
	return false
}

func notFound(op, id string) *Error {
	return &Error{Op: op, Kind: KindNotFound, SessionID: id, Msg: "Session not found: " + id}
}

// wrap gives an error from below its kind. It is total.
func wrap(op, id string, err error) error {
	if err == nil {
		return nil
	}
	var own *Error
	if errors.As(err, &own) {
		return err
	}
	kind := KindInternal
	var refusal *turn.Refusal
	var conflict *session.ConflictError
	var held *eventlog.HeldError
	var upstream *model.Error
	switch {
	case errors.As(err, &refusal):
		kind = Kind(refusal.Kind)
	case errors.As(err, &conflict), errors.As(err, &held), errors.Is(err, eventlog.ErrMoved):
		kind = KindConflict
	case errors.Is(err, eventlog.ErrExists):
		return &Error{Op: op, Kind: KindConflict, SessionID: id, Err: err, Msg: fmt.Sprintf("session %s exists already: resume it, or choose another id", id)}
	case errors.Is(err, eventlog.ErrNotFound), errors.Is(err, session.ErrUnloaded):
		e := notFound(op, id)
		e.Err = err
		return e
	case errors.Is(err, eventlog.ErrInvalidID):
		kind = KindInvalidParams
	case errors.As(err, &upstream):
		kind = KindUpstream
		if upstream.Kind == model.Authentication {
			kind = KindUnauthenticated
		} else if upstream.Code == catalog.CodeUnsupported {
			kind = KindUnsupported
		}
	case errors.Is(err, context.DeadlineExceeded):
		kind = KindDeadline
	case errors.Is(err, context.Canceled):
		kind = KindCancelled
	}
	return &Error{Op: op, Kind: kind, SessionID: id, Msg: err.Error(), Err: err}
}
