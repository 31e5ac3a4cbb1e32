package tool

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
)

// Run calls a tool's handler in this process and settles what came of it; see
// [Settle] for redact.
//
// It returns when the handler does, when the tool's Timeout is over (an outcome
// of type [Timeout]), or when ctx ends: by its deadline a time-out as well, by
// cancellation a failure that says the call was interrupted. A handler that
// ignores its context goes on in its goroutine after Run has returned, and what
// it gives in the end is dropped: Go cannot stop it. Panics become errors, whose
// stack is in the event and never shown to the model.
func Run(ctx context.Context, c *Compiled, call Call, redact func(string) string) Outcome {
	call.Name = c.Name
	if len(call.Arguments) == 0 {
		call.Arguments = []byte(noArguments)
	}
	if c.Handler == nil {
		return Settle(call, Result{}, fmt.Errorf("the tool %q has no handler in this process: the host that declared it has to answer", c.Name), redact)
	}
	if ctx.Err() != nil {
		return Settle(call, cutOff(ctx, c), nil, redact)
	}
	if c.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, c.Timeout, errTimeout)
		defer cancel()
	}
	ended := make(chan ending, 1)
	go func() {
		e := ending{err: errGone}
		defer func() {
			if p := recover(); p != nil {
				e = ending{err: fmt.Errorf("panic: %v\n\n%s", p, debug.Stack())}
			}
			ended <- e
		}()
		e.res, e.err = c.Handler(context.WithValue(ctx, callKey{}, call), call)
	}()
	var e ending
	select {
	case e = <-ended:
	case <-ctx.Done():
		select {
		case e = <-ended: // it came just in time
		default:
			return Settle(call, cutOff(ctx, c), nil, redact)
		}
	}
	if e.err != nil && ctx.Err() != nil && errors.Is(e.err, ctx.Err()) {
		return Settle(call, cutOff(ctx, c), nil, redact)
	}
	return Settle(call, e.res, e.err, redact)
}

type ending struct {
	res Result
	err error
}

// errGone stands until the handler returns: runtime.Goexit, as testing's FailNow
// calls it, ends a handler without a return and without a panic.
var errGone = errors.New("the handler ended its goroutine without returning")

// errTimeout tells a tool's own time limit from one of the caller's.
var errTimeout = errors.New("the tool's time limit")

// cutOff is the result of a call whose context ended first.
func cutOff(ctx context.Context, c *Compiled) Result {
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return Result{Type: Failure, Text: interrupted}
	}
	text := fmt.Sprintf("The tool '%s' did not finish in time.", c.Name)
	if context.Cause(ctx) == errTimeout {
		text = fmt.Sprintf("The tool '%s' did not finish within %v.", c.Name, c.Timeout)
	}
	return Result{Type: Timeout, Text: text}
}

type callKey struct{}

// CallFrom returns the call that a handler's context belongs to: its id, session
// and working directory, for handlers made by [Func].
func CallFrom(ctx context.Context) (Call, bool) {
	c, ok := ctx.Value(callKey{}).(Call)
	return c, ok
}
