package jsonrpc2

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"strconv"
)

// cancelMethod is the one method this package knows, in both directions.
const cancelMethod = "$/cancelRequest"

var closingBrace = []byte("}")

// call is an outgoing request without an answer. It is in the table until
// whoever removes it finishes it.
type call struct {
	id     int64
	method string
	done   func(result json.RawMessage, err error)
	// unwatch stops the watch on the caller's context, if there is one.
	unwatch func() bool
}

// finish delivers the outcome of a call that was taken out of the table.
func (c *Conn) finish(k *call, result json.RawMessage, err error) {
	if k.unwatch != nil {
		k.unwatch()
	}
	defer func() {
		if v := recover(); v != nil {
			c.count(func(s *Stats) { s.Panics++ })
			c.cfg.Report(fmt.Errorf("jsonrpc2: callback of %s panicked: %v\n%s", k.method, v, debug.Stack()))
		}
	}()
	k.done(result, err)
}

// resolve finishes the call with that id, as the peer wrote it. It reports
// whether there was one.
func (c *Conn) resolve(id ID, result json.RawMessage, err error) bool {
	n, bad := strconv.ParseInt(string(id), 10, 64)
	if bad != nil {
		return false
	}
	var k *call
	c.update(func(t *inFlight) { k = t.take(n) })
	if k == nil {
		return false
	}
	c.finish(k, result, err)
	return true
}

// Notify enqueues a notification. Nil params are left out; a json.RawMessage is
// sent as it is. It does not block.
//
// It fails where params do not encode, with ErrTooLarge, or with an error that
// matches ErrClosed.
func (c *Conn) Notify(method string, params any) error {
	b := newBuffer()
	if err := encodeCall(b, "", method, params); err != nil {
		return err
	}
	return c.enqueue(b, method)
}

// enqueue sends the body in b, and frees b.
func (c *Conn) enqueue(b *bytes.Buffer, method string) error {
	if err := c.checkSize(method, b.Len()); err != nil {
		return err
	}
	kept, err := c.out.put(nil, b.Bytes())
	if !kept {
		freeBuffer(b)
	}
	return err
}

func (c *Conn) checkSize(method string, size int) error {
	if int64(size) > c.cfg.MaxSendBytes {
		return fmt.Errorf("%w: %s has %d bytes, the limit is %d", ErrTooLarge, method, size, c.cfg.MaxSendBytes)
	}
	return nil
}

// NotifyRaw is Notify with params that are JSON already, in pieces that are
// joined as they stand (so that an event encoded once can be wrapped for many
// clients). Without pieces there is no params member. It does not block, and
// allocates nothing; pieces must not be changed afterwards.
func (c *Conn) NotifyRaw(method string, params ...[]byte) error {
	var stack [256]byte
	head, err := c.rawHead(stack[:0], method, params)
	if err != nil {
		return err
	}
	var pieces [8][]byte
	_, err = c.out.put(head, append(append(pieces[:0], params...), closingBrace)...)
	return err
}

// NotifyWait is NotifyRaw that first waits until fewer than
// Config.SoftQueueBytes are queued: the form for a pump that reads from a
// cursor and must neither lose anything nor run ahead of its client. Any number
// of waiters overshoot the mark by one message at most.
//
// It returns the cause of ctx if that ends first; the message is then not sent.
func (c *Conn) NotifyWait(ctx context.Context, method string, params ...[]byte) error {
	var stack [256]byte
	head, err := c.rawHead(stack[:0], method, params)
	if err != nil {
		return err
	}
	var pieces [8][]byte
	_, err = c.out.putWait(ctx, head, append(append(pieces[:0], params...), closingBrace)...)
	return err
}

// rawHead appends what comes before the params to dst.
func (c *Conn) rawHead(dst []byte, method string, params [][]byte) ([]byte, error) {
	head := appendCallHead(dst, "", method)
	size := 0
	for _, p := range params {
		size += len(p)
	}
	if size > 0 {
		head = append(head, `,"params":`...)
	}
	return head, c.checkSize(method, len(head)+size+len(closingBrace))
}

// QueuedBytes returns how many bytes wait to be written to the peer.
func (c *Conn) QueuedBytes() int64 { return c.out.size() }

// HasRoom reports whether fewer than Config.SoftQueueBytes are queued, which is
// when it makes sense to send what could as well be merged or left out.
func (c *Conn) HasRoom() bool { return c.out.size() < c.cfg.SoftQueueBytes }

// WaitRoom blocks until HasRoom, ctx ends (it returns the cause), or the
// connection closes (an error that matches ErrClosed).
func (c *Conn) WaitRoom(ctx context.Context) error { return c.out.wait(ctx) }

// Go sends a request and returns at once. done is called exactly once, with the
// result or an error: an *Error from the peer, the cause of ctx, ErrTooLarge, an
// error that matches ErrClosed, or why params do not encode.
//
// done must not block. It mostly runs on the reader, but where the request
// could not be sent it runs before Go returns: callers hold no lock that done
// takes. When ctx ends first the peer is told with $/cancelRequest.
func (c *Conn) Go(ctx context.Context, method string, params any, done func(result json.RawMessage, err error)) {
	k := &call{method: method, done: done}
	if ctx.Err() != nil {
		c.finish(k, nil, context.Cause(ctx))
		return
	}
	if ctx.Done() != nil {
		// Entered and watched before it is sent: the answer may come at once.
		ready := make(chan struct{})
		defer close(ready)
		k.unwatch = context.AfterFunc(ctx, func() {
			if c.begin() {
				defer c.end()
				<-ready
				if c.abandon(k.id) {
					c.finish(k, nil, context.Cause(ctx))
				}
			}
		})
	}
	if err := c.send(k, params); err != nil {
		c.finish(k, nil, err)
	}
}

// Call sends a request and waits for the answer; errors are those of Go. It
// must not be called on the reader, that is in Handler.Admit or in a callback
// of Go: the answer could not be read.
func (c *Conn) Call(ctx context.Context, method string, params any) (json.RawMessage, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	type outcome struct {
		result json.RawMessage
		err    error
	}
	answer := make(chan outcome, 1)
	k := &call{method: method, done: func(result json.RawMessage, err error) { answer <- outcome{result, err} }}
	if err := c.send(k, params); err != nil {
		return nil, err
	}
	select {
	case o := <-answer:
		return o.result, o.err
	case <-ctx.Done():
		if c.abandon(k.id) {
			return nil, context.Cause(ctx)
		}
		o := <-answer // it was being delivered at this moment
		return o.result, o.err
	}
}

// send enters a call in the table and enqueues its request. On an error the
// call is out of the table again and not finished.
func (c *Conn) send(k *call, params any) error {
	var err error
	c.update(func(t *inFlight) { err = t.enter(k) })
	if err != nil {
		return err
	}
	b := newBuffer()
	err = encodeCall(b, ID(strconv.FormatInt(k.id, 10)), k.method, params)
	if err == nil {
		err = c.enqueue(b, k.method)
	}
	if err == nil {
		return nil
	}
	var mine bool
	c.update(func(t *inFlight) { mine = t.take(k.id) != nil })
	if !mine {
		return nil // the connection closed meanwhile, and finished the call
	}
	return err
}

// abandon takes a call out of the table because its caller gave up, and tells
// the peer. It reports whether the call was still there.
func (c *Conn) abandon(id int64) bool {
	var k *call
	c.update(func(t *inFlight) { k = t.take(id) })
	if k == nil {
		return false
	}
	_ = c.Notify(cancelMethod, json.RawMessage(`{"id":`+strconv.FormatInt(id, 10)+`}`))
	return true
}

// receiveCancel serves the peer's $/cancelRequest: it ends the context of the
// request named, whose handler then answers as it sees fit. A request that has
// its answer, or never was, is no error: the two messages crossed.
func (c *Conn) receiveCancel(req Request) {
	var o outline
	o.feed(req.Params)
	if s := o.spans[memberID]; o.isObject && s.found() {
		var r *Responder
		c.update(func(t *inFlight) { r = t.incoming[ID(s.of(req.Params))] })
		if r != nil {
			r.cancel(ErrCancelled)
		}
	}
	if !req.IsNotification() {
		b := newBuffer()
		_ = encodeResult(b, req.ID, nil)
		_ = c.enqueue(b, req.Method)
	}
}
