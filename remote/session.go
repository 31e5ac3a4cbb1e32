package remote

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/transom-run/transom/internal/jsonrpc2"
)

// Config says what is attached to, and who is told.
type Config struct {
	// Peer is the server where the session lives.
	Peer Peer
	// Protocol is the version of the protocol that the peer must speak.
	Protocol int
	// SessionID names the session, there and here.
	SessionID string
	// Params are those of the session.resume that attaches, a JSON object; nil is
	// an attachment that declares nothing.
	Params json.RawMessage
	// History: what the session holds already is handed on first, as events.
	History bool
	// Events takes one event: the params of its session.event notification, in
	// pieces that are not changed any more. It may wait for the client; ctx ends
	// when the session is left. An error leaves it.
	Events func(ctx context.Context, params ...[]byte) error
	// Ask puts a request of the peer to the client. nil refuses all.
	Ask func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)
	// Tell takes every other notification of the peer about the session. It must
	// not block. nil takes none.
	Tell func(method string, params json.RawMessage)
	// Over is called once where the session ends by itself, after its last event:
	// the peer has no such session any more, or refuses us. nil is not told.
	Over func(error)
	// Report is told why links broke and attempts failed, for logging. It must not
	// block. nil is silence.
	Report func(error)

	// AttachTimeout bounds an attempt to attach; 0 is 30 s.
	AttachTimeout time.Duration
	// MinWait and MaxWait bound the time between attempts to mend the link, which
	// doubles from one to the next; 0 is 100 ms and 10 s.
	MinWait, MaxWait time.Duration
	// MaxFrameBytes is the largest message taken and sent; 0 is 64 MiB.
	MaxFrameBytes int64
}

func (cfg *Config) complete() {
	if cfg.Ask == nil {
		cfg.Ask = func(_ context.Context, method string, _ json.RawMessage) (json.RawMessage, error) {
			return nil, jsonrpc2.MethodNotFound(method)
		}
	}
	if cfg.Tell == nil {
		cfg.Tell = func(string, json.RawMessage) {}
	}
	if cfg.Over == nil {
		cfg.Over = func(error) {}
	}
	if cfg.Report == nil {
		cfg.Report = func(error) {}
	}
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{{&cfg.AttachTimeout, 30 * time.Second}, {&cfg.MinWait, 100 * time.Millisecond}, {&cfg.MaxWait, 10 * time.Second}} {
		if *d.field <= 0 {
			*d.field = d.value
		}
	}
}

// Session is an attachment to a session of a peer. Its methods may be called from
// any goroutine.
type Session struct {
	cfg    Config
	opened json.RawMessage
	feed   *feed

	ctx    context.Context // ends when the session is left
	cancel context.CancelFunc
	tasks  sync.WaitGroup
	done   chan struct{}
	prefix []byte // what stands before the event in a notification's params

	mu        sync.Mutex
	link      *link // nil while there is none
	over      error // why it ended
	params    map[string]json.RawMessage
	kept      []*request
	interests map[string]interest
	place     place
	work      work
	fresh     bool // nothing was handed over yet
}

// request is what a client asks of the peer.
type request struct {
	ctx    context.Context
	method string
	params json.RawMessage
	done   func(json.RawMessage, error)
}

// Attach attaches to a session. Events wait until [Session.Start].
//
// The error is of type [Error], or the peer's own where it refused the parameters.
func Attach(ctx context.Context, cfg Config) (*Session, error) {
	cfg.complete()
	s := &Session{cfg: cfg, feed: newFeed(), done: make(chan struct{}), interests: map[string]interest{}, fresh: true}
	if err := s.remember(cfg.Params); err != nil {
		return nil, err
	}
	name, err := json.Marshal(cfg.SessionID)
	if err != nil {
		return nil, err
	}
	s.prefix = append(append([]byte(`{"sessionId":`), name...), `,"event":`...)
	l, opened, err := s.establish(ctx)
	if err != nil {
		return nil, err
	}
	l.history = nil
	s.opened, s.link = opened, l
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.tasks.Go(func() { s.keep(l) })
	go func() {
		<-s.ctx.Done()
		s.tasks.Wait()
		s.feed.abandon()
		close(s.done)
	}()
	return s, nil
}

// Opened is the peer's answer to the session.resume that attached.
func (s *Session) Opened() json.RawMessage { return s.opened }

// Start begins to hand events on. It is called once.
func (s *Session) Start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() == nil {
		s.tasks.Go(s.deliver)
	}
}

// leave begins the end.
func (s *Session) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cancel() // no task is begun after it
}

// deliver hands events on until the session is left or over.
func (s *Session) deliver() {
	for {
		items, open := s.feed.next(s.ctx)
		for i, it := range items {
			if it.mark != nil {
				it.mark()
				continue
			}
			if err := s.cfg.Events(s.ctx, it.pieces...); err != nil {
				for _, rest := range items[i:] {
					if rest.mark != nil {
						rest.mark()
					}
				}
				s.leave()
				return
			}
			s.feed.sent(it)
		}
		if open {
			continue
		}
		s.mu.Lock()
		over := s.over
		s.mu.Unlock()
		if s.ctx.Err() == nil && over != nil {
			s.cfg.Over(over)
		}
		s.leave()
		return
	}
}

// Settle waits until all events that came so far were handed on.
func (s *Session) Settle(ctx context.Context) {
	reached := make(chan struct{})
	s.feed.put(item{mark: func() { close(reached) }})
	select {
	case <-reached:
	case <-ctx.Done():
	}
}

// Drop leaves as a lost client does: what runs there goes on. It does not wait;
// see [Session.Done].
func (s *Session) Drop() { s.leave() }

// Done is closed once the session was left and nothing of it runs any more.
func (s *Session) Done() <-chan struct{} { return s.done }

// Close leaves in order: it asks the peer by method, session.destroy or
// session.detach, waits until the last event was handed on, and returns the
// peer's answer. Where there is no link it just leaves: the peer has noticed.
func (s *Session) Close(ctx context.Context, method string) (json.RawMessage, error) {
	result := json.RawMessage(`{"success":true}`)
	s.mu.Lock()
	l := s.link
	s.mu.Unlock()
	var err error
	if l != nil {
		var answer json.RawMessage
		answer, err = l.conn.Call(ctx, method, sessionOnly{s.cfg.SessionID})
		if err == nil {
			result = answer
		} else if errors.Is(err, jsonrpc2.ErrClosed) {
			err = nil
		}
		s.Settle(ctx)
	}
	s.leave()
	<-s.done
	return result, err
}

// Forward hands a request on to the peer; done is called once with the answer,
// and must not block. ctx cancels the request there.
func (s *Session) Forward(ctx context.Context, method string, params json.RawMessage, done func(json.RawMessage, error)) {
	r := &request{ctx, method, params, done}
	s.mu.Lock()
	l, over := s.link, s.over
	if l == nil && over == nil && isAnswer(method) {
		s.kept = append(s.kept, r)
		s.mu.Unlock()
		return
	}
	s.mu.Unlock()
	switch {
	case over != nil:
		done(nil, over)
	case l == nil:
		done(nil, s.down(method))
	default:
		s.send(l, r)
	}
}

// Call is Forward that waits for the answer.
func (s *Session) Call(ctx context.Context, method string, params any) (json.RawMessage, error) {
	raw, err := json.Marshal(params)
	if err != nil {
		return nil, err
	}
	type outcome struct {
		result json.RawMessage
		err    error
	}
	answer := make(chan outcome, 1)
	s.Forward(ctx, method, raw, func(result json.RawMessage, err error) { answer <- outcome{result, err} })
	select {
	case o := <-answer:
		return o.result, o.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// isAnswer reports whether a method answers something that the peer asked, by the
// id of its question: such may be sent twice, and counts once.
func isAnswer(method string) bool {
	return strings.HasPrefix(method[strings.LastIndexByte(method, '.')+1:], "handlePending")
}

// send puts a request on a link.
func (s *Session) send(l *link, r *request) {
	l.conn.Go(r.ctx, r.method, s.translate(r.method, r.params), func(result json.RawMessage, err error) {
		if err == nil {
			s.answered(r, result)
		}
		if !errors.Is(err, jsonrpc2.ErrClosed) {
			r.done(result, err)
			return
		}
		s.mu.Lock()
		over, now := s.over, s.link
		again := over == nil && isAnswer(r.method) && s.ctx.Err() == nil
		if again && (now == nil || now == l) {
			s.kept = append(s.kept, r)
		}
		s.mu.Unlock()
		switch {
		case again && now != nil && now != l:
			s.send(now, r) // the link was mended meanwhile
		case again:
		case over != nil:
			r.done(nil, over)
		default:
			r.done(nil, s.lost(r.method, err))
		}
	})
}

// answered remembers what a link that is made again needs to know.
func (s *Session) answered(r *request, result json.RawMessage) {
	switch r.method {
	case "session.resume":
		if err := s.remember(r.params); err != nil {
			s.cfg.Report(err)
		}
	case registerInterest:
		s.registered(r.params, result)
	case releaseInterest:
		s.released(r.params)
	}
}

// remember keeps the parameters of the newest session.resume.
func (s *Session) remember(params json.RawMessage) error {
	given := map[string]json.RawMessage{}
	if params != nil {
		if err := json.Unmarshal(params, &given); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.params = given
	return nil
}

// resumeParams are those of the next session.resume. What is under way goes on:
// no link's end, nor a client that only looks, may cut it off. Of an attachment
// that no host asked for in these words nothing is written.
func (s *Session) resumeParams() (map[string]json.RawMessage, error) {
	id, err := json.Marshal(s.cfg.SessionID)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make(map[string]json.RawMessage, len(s.params)+3)
	for k, v := range s.params {
		out[k] = v
	}
	out["sessionId"] = id
	if s.fresh && len(s.params) > 0 {
		return out, nil
	}
	out["continuePendingWork"] = json.RawMessage("true")
	out["disableResume"] = json.RawMessage("true")
	return out, nil
}

// wait is the time before an attempt: the bounds doubled, give or take a quarter.
func (s *Session) wait(attempt int) time.Duration {
	d := s.cfg.MinWait << min(attempt, 20)
	if d > s.cfg.MaxWait || d <= 0 {
		d = s.cfg.MaxWait
	}
	return d - d/4 + rand.N(d/2+1)
}
