package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/internal/jsonrpc2"
)

var eventEnd = []byte("}")

// startPump begins to send a session's events to the client. The lines are sent
// as they are; the client's pace is the pump's, and nobody else's.
func (c *conn) startPump(l *lane, a *attachment) {
	c.pumps.Go(func() {
		defer close(a.delivered)
		err := c.pump(l.id, a)
		switch {
		case errors.Is(err, transom.ErrEnded):
			l.forget(a)
		case errors.Is(err, jsonrpc2.ErrClosed), c.rpc.Context().Err() != nil:
			// Sending fails a moment before the context ends.
		default:
			c.srv.cfg.Logger.Error("events cannot be read", "session", l.id, "peer", c.peer, "error", err)
			c.rpc.Close() // the client must not wait for events that never come
		}
	})
}

// pump sends events until the session or the connection ends.
func (c *conn) pump(id string, a *attachment) error {
	name, err := json.Marshal(id)
	if err != nil {
		return err
	}
	begin := append(append([]byte(`{"sessionId":`), name...), `,"event":`...)
	pieces := [][]byte{begin, nil, eventEnd}
	ctx := c.rpc.Context()
	events := a.sess.Events()
	var buf []*event.Event
	for {
		var ended error
		buf, ended = events.Next(ctx, buf[:0])
		if len(buf) > 0 {
			if err := c.deliver(ctx, a, pieces, buf); err != nil {
				return err
			}
		}
		if ended != nil {
			return ended
		}
		clear(buf)
		if cap(buf) > 16 {
			buf = nil // idle sessions keep little
		}
	}
}

// deliver sends a batch of events.
func (c *conn) deliver(ctx context.Context, a *attachment, pieces [][]byte, batch []*event.Event) error {
	select {
	case a.gate <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-a.gate }()
	for _, e := range batch {
		pieces[1] = e.Line
		if e.Type == event.TypeSessionIdle && !c.greeted.Load() {
			pieces[1] = firstIdle(e)
		}
		err := c.rpc.NotifyWait(ctx, "session.event", pieces...)
		if errors.Is(err, jsonrpc2.ErrTooLarge) {
			c.srv.cfg.Logger.Warn("an event is larger than a frame may be and was not sent", "event", e.ID, "type", e.Type, "bytes", len(e.Line))
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// firstIdle is a session.idle event as the first SDKs of the protocol read it, which
// do not send connect: they take an event with a mode they do not know for broken,
// and would wait for ever.
func firstIdle(e *event.Event) []byte {
	var p event.SessionIdle
	if e.Into(&p) != nil {
		return e.Line
	}
	line := bytes.Replace(e.Line, []byte(`,"mode":"`+p.Mode+`"`), nil, 1)
	return bytes.Replace(line, []byte(`"mode":"`+p.Mode+`"`), nil, 1)
}
