package server

import (
	"context"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/internal/jsonrpc2"
)

// conn is one client.
type conn struct {
	srv *Server
	rpc *jsonrpc2.Conn
	// peer names the other side in the log; host is its address, for attempts.
	peer, host string
	// only is the session of a connection that is an extension's; "" is no bound.
	only string

	// of the reader alone
	greeted  atomic.Bool // connect was answered
	open     bool        // no token is asked for, or a good one was given
	failures int         // connect requests with a bad token
	// handshake closes the connection where no good token comes; nil where none
	// is asked for.
	handshake *time.Timer

	mu     sync.Mutex
	lanes  map[string]*lane       // by session id
	far    map[string]*farSession // sessions of peers, by id
	ended  bool                   // attachments are dropped; none is added any more
	serial int                    // of handles of event interests
	// inference is there where the client makes the requests to models.
	inference *inference

	pumps sync.WaitGroup
}

func newConn(s *Server, rwc io.ReadWriteCloser) *conn {
	c := &conn{srv: s, lanes: map[string]*lane{}, open: s.cfg.Token == "", peer: "stdio"}
	if nc, ok := rwc.(net.Conn); ok && nc.RemoteAddr() != nil {
		c.peer, c.host = nc.RemoteAddr().String(), hostOf(nc.RemoteAddr())
	}
	c.rpc = jsonrpc2.New(rwc, jsonrpc2.Config{
		Handler: jsonrpc2.HandlerFunc(c.admit), MaxQueueBytes: s.cfg.MaxQueueBytes, MaxFrameBytes: s.cfg.MaxFrameBytes,
		Report: func(err error) { s.cfg.Logger.Warn("protocol fault", "peer", c.peer, "error", err) },
	})
	return c
}

// handshakeTime is how long a connection may stay open without a good connect
// where a token is asked for.
const handshakeTime = 30 * time.Second

// strangerFrame is the largest message taken of a client that has not shown the
// server's token yet: nobody unknown makes it hold more.
const strangerFrame = 64 << 10

// serve runs the connection to its end.
func (c *conn) serve(ctx context.Context) error {
	news := newLifecycle(c)
	stop := c.srv.cfg.Runtime.Watch(news.add)
	defer stop()
	c.pumps.Go(news.run)
	defer context.AfterFunc(c.rpc.Context(), c.drop)()
	if !c.open {
		c.rpc.LimitFrames(strangerFrame)
		c.handshake = time.AfterFunc(handshakeTime, c.rpc.Close)
		defer c.handshake.Stop()
		c.srv.attempts.enter(c, time.Now())
		defer c.srv.attempts.leave(c)
	}
	err := c.rpc.Serve(ctx)
	c.drop()
	c.pumps.Wait()
	return err
}

// admit takes one message, on the reader: it must not block.
func (c *conn) admit(_ context.Context, _ *jsonrpc2.Conn, r *jsonrpc2.Responder) {
	name := r.Request().Method
	if !c.open && name != "connect" {
		r.Reply(nil, &jsonrpc2.Error{
			Code: codeAuthenticationRequired, Message: "AUTHENTICATION_REQUIRED: send connect with the server's token first",
			Data: errorData{Kind: string(transom.KindUnauthenticated), Op: name},
		})
		return
	}
	if c.only != "" {
		if err := c.mayAsk(r.Request()); err != nil {
			r.Reply(nil, err)
			return
		}
	}
	if len(c.srv.cfg.Peers) > 0 && c.takeRemote(r) {
		return
	}
	if name == "connect" {
		connect(c, r)
		return
	}
	h, ok := c.srv.served()[name]
	if !ok {
		r.Reply(nil, refuse(name))
		return
	}
	h(c, r)
}

// drop lets go of every attachment, as a lost client does.
func (c *conn) drop() {
	c.mu.Lock()
	c.ended = true
	var lost []*attachment
	var ids []string
	for _, l := range c.lanes {
		if l.att != nil {
			lost = append(lost, l.att)
			ids = append(ids, l.id)
			l.att = nil
		}
	}
	in := c.inference
	c.mu.Unlock()
	in.end()
	c.unclaim()
	for i, a := range lost {
		c.releaseExtensions(ids[i])
		a.sess.Drop()
	}
	c.dropFar()
}
