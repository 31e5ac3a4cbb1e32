package server

import (
	"context"
	"time"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/internal/jsonrpc2"
	"github.com/transom-run/transom/internal/stack"
)

const (
	// maxFailures is how many bad tokens a connection may give before it is
	// closed, and failureDelay how long the answer to each is held back. Nobody
	// else waits for it.
	maxFailures  = 5
	failureDelay = 100 * time.Millisecond
)

type connectParams struct {
	Token string `json:"token"`
}

type connectResult struct {
	OK              bool   `json:"ok"`
	ProtocolVersion int    `json:"protocolVersion"`
	Version         string `json:"version"`
}

// connect opens the connection. Where the server has a token the client must give
// it here; a client that guesses is slowed down, logged and closed.
func connect(c *conn, r *jsonrpc2.Responder) {
	p := new(connectParams)
	err := decode(r.Request(), p)
	if err == nil && c.srv.cfg.Token != "" && (c.failures >= maxFailures || !c.heldBack() || !c.srv.authorized(p.Token)) {
		c.rejected(r)
		return
	}
	if err != nil {
		r.Reply(nil, err)
		return
	}
	if c.handshake != nil {
		c.handshake.Stop()
		c.srv.attempts.leave(c)
	}
	c.rpc.LimitFrames(0)
	c.open = true
	c.greeted.Store(true)
	r.Reply(connectResult{true, ProtocolVersion, transom.Version}, nil)
	// The client will ask for more, and shall not wait for what was left for later at
	// the start. It is little, and made once.
	served, warm := c.srv.served, c.srv.cfg.Runtime.Warm
	go func() { stack.Grow(); served(); warm() }()
}

// heldBack waits until the client's address may give a token again; false where the
// connection has ended meanwhile. It is the reader of one unknown client that
// waits, and nobody else.
func (c *conn) heldBack() bool {
	d := c.srv.attempts.wait(c.host, time.Now())
	if d == 0 || c.open {
		return true
	}
	pause := time.NewTimer(d)
	defer pause.Stop()
	select {
	case <-pause.C:
		return true
	case <-c.rpc.Context().Done():
		return false
	}
}

// rejected answers a connect with a bad token.
func (c *conn) rejected(r *jsonrpc2.Responder) {
	c.failures++
	c.srv.attempts.failed(c.host, time.Now())
	last := c.failures >= maxFailures
	c.srv.cfg.Logger.Warn("client rejected: wrong or missing token", "peer", c.peer, "attempt", c.failures)
	r.Go(func(ctx context.Context) (any, error) {
		pause := time.NewTimer(failureDelay)
		defer pause.Stop()
		select {
		case <-pause.C:
		case <-ctx.Done():
		}
		r.ReplyThen(nil, &jsonrpc2.Error{
			Code:    codeAuthenticationFailed,
			Message: "AUTHENTICATION_FAILED: the token is missing or wrong; give the one that the server was started with (COPILOT_CONNECTION_TOKEN)",
			Data:    errorData{Kind: string(transom.KindUnauthenticated), Op: "connect"},
		}, func() {
			if last {
				c.rpc.Close()
			}
		})
		return nil, nil
	})
}

type pingParams struct {
	Message string `json:"message"`
}

type pingResult struct {
	Message         string `json:"message"`
	Timestamp       any    `json:"timestamp"`
	ProtocolVersion int    `json:"protocolVersion"`
}

func ping(c *conn, p *pingParams) (any, error) {
	answer := "pong"
	if p.Message != "" {
		answer = "pong: " + p.Message
	}
	if !c.greeted.Load() {
		// The first SDKs of the protocol ping before they connect, or never connect,
		// and read the time as a number.
		return pingResult{answer, time.Now().UnixMilli(), ProtocolVersion}, nil
	}
	return pingResult{answer, wireTime(time.Now()), ProtocolVersion}, nil
}

type noParams struct{}

type statusResult struct {
	Version         string `json:"version"`
	ProtocolVersion int    `json:"protocolVersion"`
}

func status(*conn, *noParams) (any, error) {
	return statusResult{transom.Version, ProtocolVersion}, nil
}

// shutdown takes the sessions out of the process and says that it may end. It is
// answered once everything is written and what the client asked before is
// answered; then the client has a moment to end the process by itself.
func shutdown(c *conn, r *jsonrpc2.Responder) {
	r.Go(func(context.Context) (any, error) {
		err := c.srv.closeRuntime()
		if err != nil {
			c.srv.cfg.Logger.Warn("the sessions could not all be closed in time", "error", err)
		}
		c.settle()
		r.Reply(nil, nil)
		limit := time.NewTimer(c.srv.cfg.Linger)
		defer limit.Stop()
		select {
		case <-c.rpc.Context().Done():
		case <-limit.C:
		}
		c.srv.stopOnce.Do(func() { close(c.srv.stopped) })
		return nil, nil // it is answered
	})
}

const (
	settleTick = time.Millisecond
	settleTime = 500 * time.Millisecond
)

// settle waits a little until only one request of the client has no answer. The
// sessions are gone by then, so what is left is being answered right now.
func (c *conn) settle() {
	limit := time.NewTimer(settleTime)
	defer limit.Stop()
	tick := time.NewTicker(settleTick)
	defer tick.Stop()
	for c.rpc.Stats().InFlight > 1 {
		select {
		case <-tick.C:
		case <-limit.C:
			return
		}
	}
}
