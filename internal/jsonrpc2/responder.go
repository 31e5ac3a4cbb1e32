package jsonrpc2

import (
	"bytes"
	"context"
	"fmt"
	"runtime/debug"
	"sync/atomic"
)

// Responder stands for one incoming request and the right to answer it, once.
// For a notification it is the same, except that answers go nowhere.
type Responder struct {
	conn     *Conn
	req      Request
	ctx      context.Context
	cancel   context.CancelCauseFunc // nil for notifications
	answered atomic.Bool
}

// Request returns the request.
func (r *Responder) Request() Request { return r.req }

// Context ends when the peer cancels the request (cause ErrCancelled), when the
// connection closes (a cause that matches ErrClosed), and once the request has
// been answered. It is not the context for work that outlives the request.
func (r *Responder) Context() context.Context { return r.ctx }

// Reply answers the request with result or, where err is not nil, with
// AsError(err). It does not block. A nil result is sent as null; a
// json.RawMessage is sent as it is.
//
// A result that does not encode, or does not fit Config.MaxSendBytes, is
// replaced with a -32603 error that says so. After the connection has closed,
// and for notifications, the answer is dropped. A second answer is dropped,
// counted and reported.
func (r *Responder) Reply(result any, err error) {
	r.reply(result, err, false, nil)
}

// ReplyThen is Reply, and then after: it runs on the same goroutine once the
// answer is queued, so that all it enqueues follows the answer on the wire. It
// runs even when the answer was dropped or replaced, so that it may release
// things, but not with an answer that came second.
func (r *Responder) ReplyThen(result any, err error, after func()) {
	r.reply(result, err, false, after)
}

// Go runs fn on a goroutine of its own and answers with what it returns. Serve
// waits for it. A large backlog of unread bytes delays the answer (and nothing
// else), so that many large results do not pile up in the queue.
//
// Where something must follow the answer, fn answers itself with ReplyThen, and
// what it returns is ignored. A panic in fn is answered with -32603 and reported. If the connection has
// already closed, fn is not run.
func (r *Responder) Go(fn func(ctx context.Context) (any, error)) {
	if !r.conn.begin() {
		r.Reply(nil, ErrClosed)
		return
	}
	go func() {
		defer r.conn.end()
		returned := false
		defer func() {
			if v := recover(); v != nil || !returned {
				if v == nil {
					v = "goroutine ended without returning"
				}
				r.panicked(v, debug.Stack())
			}
		}()
		result, err := fn(r.ctx)
		returned = true
		if r.answered.Load() {
			return
		}
		r.reply(result, err, true, nil)
	}()
}

// reply delivers the one answer.
func (r *Responder) reply(result any, err error, wait bool, after func()) {
	if r.answered.Swap(true) {
		r.conn.count(func(s *Stats) { s.RepliedTwice++ })
		r.conn.cfg.Report(fmt.Errorf("%w: %s, id %s", ErrRepliedTwice, r.req.Method, r.req.ID))
		return
	}
	if e, ok := err.(*Error); ok && e == nil {
		err = nil // a typed nil: the caller meant success
	}
	if !r.req.IsNotification() {
		r.deliver(result, err, wait)
	}
	if after != nil {
		after()
	}
}

func (r *Responder) deliver(result any, err error, wait bool) {
	// Out of the table first: the peer may use the id again as soon as it has
	// read the answer.
	var open bool
	r.conn.update(func(t *inFlight) { open = t.settle(r) })
	defer r.cancel(nil)
	if !open {
		return
	}
	b := newBuffer()
	r.encode(b, result, err)
	var kept bool
	if wait {
		kept, _ = r.conn.out.putWait(context.Background(), nil, b.Bytes())
	} else {
		kept, _ = r.conn.out.put(nil, b.Bytes())
	}
	if !kept {
		freeBuffer(b)
	}
}

// encode builds the answer, or the error that says why there is none.
func (r *Responder) encode(b *bytes.Buffer, result any, err error) {
	if err == nil {
		bad := encodeResult(b, r.req.ID, result)
		size, limit := int64(b.Len()), r.conn.cfg.MaxSendBytes
		switch {
		case bad == nil && size <= limit:
			return
		case bad == nil:
			err = Errorf(CodeInternalError, "the result of %s has %d bytes; the limit is %d: ask for less", r.req.Method, size, limit)
		default:
			err = Errorf(CodeInternalError, "the result of %s does not encode: %v", r.req.Method, bad)
		}
		*b = bytes.Buffer{} // let go of what may be very large
	}
	e := AsError(err)
	encodeFailure(b, r.req.ID, e)
	if int64(b.Len()) > r.conn.cfg.MaxSendBytes {
		b.Reset()
		encodeFailure(b, r.req.ID, &Error{Code: e.Code, Message: fmt.Sprintf("the error of %s is too long to send", r.req.Method)})
	}
}

// panicked answers for a handler that could not, unless it had answered.
func (r *Responder) panicked(v any, stack []byte) {
	r.conn.count(func(s *Stats) { s.Panics++ })
	r.conn.cfg.Report(fmt.Errorf("jsonrpc2: handler of %s panicked: %v\n%s", r.req.Method, v, stack))
	if !r.answered.Swap(true) && !r.req.IsNotification() {
		r.deliver(nil, Errorf(CodeInternalError, "Internal error: the handler of %s panicked", r.req.Method), false)
	}
}
