package jsonrpc2

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// Handler takes the requests and notifications of one connection.
type Handler interface {
	// Admit is called on the reader, for one message at a time, in the order of
	// arrival. It must not block: it looks at the request, hands it to whoever
	// will do the work, and sees to it that r.Reply is called, now or later, from
	// any goroutine, once. In particular it must not wait for Conn.Call.
	//
	// ctx is r.Context(). A panic is answered with -32603.
	Admit(ctx context.Context, c *Conn, r *Responder)
}

// HandlerFunc is a function as a Handler.
type HandlerFunc func(ctx context.Context, c *Conn, r *Responder)

// Admit calls f.
func (f HandlerFunc) Admit(ctx context.Context, c *Conn, r *Responder) { f(ctx, c, r) }

// Config is what New needs. Zero fields take the defaults named.
type Config struct {
	// Handler takes what the peer asks. Without one every request is answered
	// with MethodNotFound.
	Handler Handler
	// MaxSendBytes is the largest body sent: an answer beyond it is an error
	// instead. Default 512 MiB.
	MaxSendBytes int64
	// MaxFrameBytes is the largest body accepted. An incoming
	// message beyond it is read, thrown away and fails alone. Default 64 MiB.
	MaxFrameBytes int64
	// MaxQueueBytes is how many bytes may wait to be written when one more message
	// comes; beyond it the peer has stopped reading and the connection is closed
	// with ErrSlowPeer. The most that is ever held is this plus one frame.
	// Default 64 MiB.
	MaxQueueBytes int64
	// SoftQueueBytes is the watermark above which NotifyWait, WaitRoom and the
	// results of Responder.Go wait. Default 1 MiB.
	SoftQueueBytes int64
	// MaxInFlight is how many requests of the peer may be unanswered at once; more
	// are answered with CodeOverloaded. Default 10,000.
	MaxInFlight int
	// FlushTimeout is how long a connection that is being closed goes on writing
	// what is queued, to a peer that does not read it. Default 2 s.
	FlushTimeout time.Duration
	// Report, if set, is told of faults that nobody else hears of: a request
	// answered twice, a panic, an answer to no call. It runs on the goroutine
	// where the fault showed, must not block, and is for counting or logging; the
	// connection goes on.
	Report func(error)
}

func (cfg *Config) validate() {
	setDefault(&cfg.MaxFrameBytes, 64<<20)
	setDefault(&cfg.MaxSendBytes, 512<<20)
	setDefault(&cfg.MaxQueueBytes, 64<<20)
	setDefault(&cfg.SoftQueueBytes, 1<<20)
	setDefault(&cfg.MaxInFlight, 10_000)
	setDefault(&cfg.FlushTimeout, 2*time.Second)
	cfg.SoftQueueBytes = min(cfg.SoftQueueBytes, cfg.MaxQueueBytes)
	if cfg.Handler == nil {
		cfg.Handler = HandlerFunc(func(_ context.Context, _ *Conn, r *Responder) {
			r.Reply(nil, MethodNotFound(r.Request().Method))
		})
	}
	if cfg.Report == nil {
		cfg.Report = func(error) {}
	}
}

func setDefault[T int | int64 | time.Duration](field *T, value T) {
	if *field <= 0 {
		*field = value
	}
}

// Conn is one connection. Its methods may be called from any goroutine.
type Conn struct {
	cfg Config
	rwc io.ReadWriteCloser
	in  *frameReader
	out *queue

	maxFrame atomic.Int64 // what is accepted now

	// ctx is the parent of the contexts of all requests; it ends, with a cause
	// that matches ErrClosed, when the connection does.
	ctx    context.Context
	cancel context.CancelCauseFunc

	mu    sync.Mutex
	table inFlight // accessed only in update

	stopping  chan struct{} // closed when table.state becomes stateClosed
	written   chan struct{} // closed when the writer has ended
	done      chan struct{} // closed when Serve has ended, or never will start
	closeOnce sync.Once
	wg        sync.WaitGroup // writer, guard, Responder.Go bodies, late cancels
}

var (
	errUserClosed = errors.New("closed by this side")
	errPeerClosed = errors.New("the peer closed it")
)

// closedBy is ErrClosed with the reason.
func closedBy(reason error) error { return fmt.Errorf("%w: %w", ErrClosed, reason) }

// New makes a connection on a stream, which it owns from now on. Messages may
// be enqueued at once; they are written, and the peer's are read, by Serve.
func New(rwc io.ReadWriteCloser, cfg Config) *Conn {
	cfg.validate()
	c := &Conn{
		cfg:      cfg,
		rwc:      rwc,
		in:       newFrameReader(rwc),
		stopping: make(chan struct{}),
		written:  make(chan struct{}),
		done:     make(chan struct{}),
	}
	c.out = newQueue(cfg.SoftQueueBytes, cfg.MaxQueueBytes, func() { c.stop(ErrSlowPeer) })
	c.maxFrame.Store(cfg.MaxFrameBytes)
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	c.table.state = stateNew
	c.table.incoming = make(map[ID]*Responder)
	c.table.outgoing = make(map[int64]*call)
	return c
}

// LimitFrames changes the largest body accepted, Config.MaxFrameBytes until then:
// a server may trust a peer with less before it knows who it is. n of 0 or less
// goes back to the Config's.
func (c *Conn) LimitFrames(n int64) {
	if n <= 0 {
		n = c.cfg.MaxFrameBytes
	}
	c.maxFrame.Store(n)
}

// Serve reads, writes and dispatches until the peer closes the stream, ctx
// ends, Close is called, or the stream fails. Then it fails the outgoing calls,
// cancels the contexts of the requests in flight, writes what was already
// queued (for at most Config.FlushTimeout), closes the stream and waits for
// every goroutine of the connection, Responder.Go bodies included.
//
// It returns nil after a close by either side between two messages; the cause
// of ctx; ErrSlowPeer; a *FrameError, after having told the peer with -32700
// and id null; or the error of the stream. It may be called once.
func (c *Conn) Serve(ctx context.Context) error {
	var err error
	c.update(func(t *inFlight) {
		switch t.state {
		case stateNew:
			t.state = stateOpen
			c.wg.Add(2)
		case stateOpen:
			err = errors.New("jsonrpc2: Serve called twice on one connection")
		case stateClosed:
			err = t.reason
		}
	})
	if err != nil {
		return serveResult(err)
	}
	go c.write()
	go c.guard(ctx)

	c.stop(c.read())
	// What the peer still sends is of no interest, but it must be able to send
	// it: a peer stuck in its own write would never read our last words, and a
	// socket closed over unread bytes resets the connection under them.
	c.in.drain()
	c.wg.Wait()
	c.update(func(t *inFlight) { err = t.reason })
	close(c.done)
	return serveResult(err)
}

func serveResult(reason error) error {
	if errors.Is(reason, errUserClosed) || errors.Is(reason, errPeerClosed) {
		return nil
	}
	return reason
}

// Close starts the end of the connection and returns at once: nothing more is
// admitted or enqueued, and what was enqueued before is still written, within
// Config.FlushTimeout. Done tells when all is over. Further calls do nothing.
func (c *Conn) Close() { c.stop(errUserClosed) }

// Done is closed when Serve has returned, or when the connection was closed
// without ever being served.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Context ends when the connection does, with a cause that matches ErrClosed.
// It carries no values.
func (c *Conn) Context() context.Context { return c.ctx }

// stop marks the connection closed for a reason; the first one counts. The
// consequences are the guard's: stop runs on whatever goroutine noticed, and
// must not run callbacks there.
func (c *Conn) stop(reason error) {
	var first, unserved bool
	c.update(func(t *inFlight) {
		if t.state == stateClosed {
			return
		}
		first, unserved = true, t.state == stateNew
		t.state, t.reason = stateClosed, reason
		close(c.stopping)
	})
	if !first {
		return
	}
	c.out.close(closedBy(reason), unserved || !flushable(reason))
	if unserved {
		c.release(reason)
		c.closeStream()
		close(c.done)
	}
}

// flushable reports whether the peer may still read, given why we stop.
func flushable(reason error) bool {
	var failed *writeError
	return !errors.Is(reason, ErrSlowPeer) && !errors.As(reason, &failed)
}

// guard waits for the end of the connection and carries it out.
func (c *Conn) guard(ctx context.Context) {
	defer c.wg.Done()
	select {
	case <-ctx.Done():
		c.stop(context.Cause(ctx))
	case <-c.stopping:
	}
	var reason error
	c.update(func(t *inFlight) { reason = t.reason })
	c.release(reason)
	if flushable(reason) {
		patience := time.NewTimer(c.cfg.FlushTimeout)
		defer patience.Stop()
		select {
		case <-c.written:
		case <-patience.C:
			c.out.close(closedBy(reason), true)
		}
	}
	c.closeStream()
	<-c.written
}

// release fails the outgoing calls and cancels the incoming requests.
func (c *Conn) release(reason error) {
	var calls []*call
	c.update(func(t *inFlight) { calls = t.takeAll() })
	err := closedBy(reason)
	c.cancel(err)
	for _, call := range calls {
		c.finish(call, nil, err)
	}
}

func (c *Conn) closeStream() { c.closeOnce.Do(func() { _ = c.rwc.Close() }) }

// writeError is a failure of the stream's Write.
type writeError struct{ err error }

func (e *writeError) Error() string { return "jsonrpc2: write to the peer: " + e.err.Error() }
func (e *writeError) Unwrap() error { return e.err }

// write is the writer goroutine.
func (c *Conn) write() {
	defer c.wg.Done()
	err := c.out.drainTo(c.rwc)
	close(c.written)
	if err != nil {
		c.stop(&writeError{err})
	}
}

// read is the reader: it returns why there is nothing more to read.
func (c *Conn) read() error {
	for {
		n, err := c.in.header()
		var bad *FrameError
		switch {
		case err == nil:
		case errors.As(err, &bad):
			c.count(func(s *Stats) { s.BadMessages++ })
			c.sendFailure("", Errorf(CodeParseError, "Parse error: %s; closing the connection", bad.Reason))
			return bad
		case errors.Is(err, io.EOF):
			return errPeerClosed
		default:
			return fmt.Errorf("jsonrpc2: read a header from the peer: %w", err)
		}
		if n > c.maxFrame.Load() {
			o, err := c.in.skim(n)
			if err != nil {
				return fmt.Errorf("jsonrpc2: read past a message of %d bytes: %w", n, err)
			}
			c.receiveTooLarge(n, o)
			continue
		}
		body, err := c.in.body(n)
		if err != nil {
			return fmt.Errorf("jsonrpc2: read a message of %d bytes: %w", n, err)
		}
		c.receive(body)
	}
}

// receive deals with one body.
func (c *Conn) receive(body []byte) {
	m, bad := decode(body)
	switch {
	case bad != nil:
		c.count(func(s *Stats) { s.BadMessages++ })
		if m.fault != nil && c.resolve(m.ID, nil, Errorf(CodeInternalError, "the peer's answer is malformed: %s", bad.Message)) {
			return
		}
		c.sendFailure("", bad)
	case !m.isRequest:
		c.receiveAnswer(m)
	case m.Method == cancelMethod:
		c.receiveCancel(m.Request)
	default:
		c.admit(m.Request)
	}
}

// receiveAnswer completes the call that the answer names.
func (c *Conn) receiveAnswer(m message) {
	var err error
	if m.err != nil {
		err = m.err
	}
	if c.resolve(m.ID, m.result, err) {
		return
	}
	var late bool
	c.update(func(t *inFlight) {
		t.stats.UnknownAnswers++
		late = t.wasOurs(m.ID)
	})
	switch {
	case late: // it crossed our $/cancelRequest
	case m.err != nil:
		c.cfg.Report(fmt.Errorf("jsonrpc2: the peer sent an error for id %s, which no call had: %w", m.ID, m.err))
	default:
		c.cfg.Report(fmt.Errorf("jsonrpc2: the peer answered id %s, which no call had", m.ID))
	}
}

// receiveTooLarge fails the one request, or the one call of ours, whose message
// was too large to keep.
func (c *Conn) receiveTooLarge(size int64, o *outline) {
	c.count(func(s *Stats) { s.BadMessages++ })
	e := Errorf(CodeInvalidRequest, "Invalid request: the message has %d bytes; the limit is %d", size, c.maxFrame.Load())
	var id ID
	if raw := o.id; o.isObject && !o.repeated && len(raw) <= longestSkimID {
		if raw = bytes.TrimSpace(raw); validID(raw) {
			id = ID(raw)
		}
	}
	if !o.spans[memberMethod].found() && id != "" &&
		c.resolve(id, nil, fmt.Errorf("%w: the peer's answer has %d bytes, the limit is %d", ErrTooLarge, size, c.maxFrame.Load())) {
		return
	}
	if !o.spans[memberMethod].found() {
		id = "" // an answer to nothing, or no message at all
	}
	c.sendFailure(id, e)
}

// admit enters a request in the table and shows it to the handler.
func (c *Conn) admit(req Request) {
	r := &Responder{conn: c, req: req, ctx: c.ctx}
	if !req.IsNotification() {
		r.ctx, r.cancel = context.WithCancelCause(c.ctx)
	}
	var refused *Error
	var open bool
	c.update(func(t *inFlight) { open, refused = t.admit(r, c.cfg.MaxInFlight) })
	if refused != nil {
		c.sendFailure(req.ID, refused)
	}
	if !open || refused != nil {
		if r.cancel != nil {
			r.cancel(ErrClosed)
		}
		return
	}
	defer func() {
		if v := recover(); v != nil {
			r.panicked(v, debug.Stack())
		}
	}()
	c.cfg.Handler.Admit(r.ctx, c, r)
}

// sendFailure enqueues an error answer; without a connection it is dropped.
func (c *Conn) sendFailure(id ID, e *Error) {
	b := newBuffer()
	encodeFailure(b, id, e)
	if kept, _ := c.out.put(nil, b.Bytes()); !kept {
		freeBuffer(b)
	}
}
