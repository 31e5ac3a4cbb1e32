package session

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/eventlog"
	"github.com/transom-run/transom/internal/history"
	"github.com/transom-run/transom/internal/policy"
	"github.com/transom-run/transom/internal/turn"
	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/model/tokens"
)

// Config is what a session needs from the outside.
type Config struct {
	ID  string
	Log eventlog.Log
	// Hold is the caller's mark on the session; the session releases it at its
	// end. nil: there is no other process to settle with.
	Hold eventlog.Hold
	// Pen: the caller has taken the pen already.
	Pen bool
	// State is the fold of the log so far; nil: there is nothing in it. Start copies it.
	State *turn.State
	// Model resolves the provider of a request just before it is made, and may
	// set the request's model where the session has none.
	Model func(ctx context.Context, req *model.Request) (model.Provider, error)
	// Encoding says how a model cuts text into tokens; "" where that is not known, and
	// nil where nothing is. It may wait like Model.
	Encoding func(ctx context.Context, model string) tokens.Encoding
	// Allow is asked before a model call of a loop; its error fails the turn. nil: all
	// are allowed.
	Allow func(ctx context.Context) error
	// Another names a model that answers in place of one that limits the rate of
	// requests; "" is none. last says that no further attempt would follow. nil: none.
	Another func(ctx context.Context, limited string, err *model.Error, last bool) string
	// Retry decides about further attempts; the zero policy is the default one.
	Retry model.RetryPolicy
	// Dir is the directory for files beside the log; "" is none.
	Dir string
	// Keep keeps a file beside the log, by its path below the session's directory,
	// where Dir is not where they are. It may wait for somebody else where the log
	// does; nil: Dir says where they go.
	Keep func(name, text string) error
	// MaxLag is how many bytes of events a subscriber may be behind before it
	// reads the log instead; 0 is 4 MiB.
	MaxLag int64
	// Cleanup ends what belongs to the session, once its effects have ended; nil:
	// there is nothing.
	Cleanup func() error
	// Command runs a slash command whose turn has come, and says whether what waits
	// behind it is to go on waiting. nil: there are none.
	Command func(ctx context.Context, text string) (stop bool)
	// Compose makes the system message for a working directory, each time the one
	// that is there no longer fits; nil: that never happens.
	// agent names the kind of sub-agent that it is for; "" is the session's own.
	Compose func(ctx context.Context, dir, agent string) (string, error)
	// Restore brings files back to what they held before tools wrote to them; nil
	// where none are kept.
	Restore func([]event.FileRestore) turn.FilesRestored
	// Connect waits until the MCP servers that the session was given are connected
	// to, or have failed, and those that a kind of agent has of its own; sub says that
	// a sub-agent waits. It ends with its context. nil: there are none.
	Connect func(ctx context.Context, kind string, sub bool)
	// Redact takes secrets out of what handlers threw; nil leaves it as it is.
	Redact func(string) string
	// Written is told, from the session's own goroutine, each time records were
	// written that clients may see. It must not block. nil: nobody is told.
	Written func(at time.Time)
	// Observe is told of each step that was made, from the session's own goroutine,
	// with the state that it led to. It must not block. nil: nobody is told.
	Observe func(in turn.Input, s *turn.State, ready *turn.Ready)
	// Logger gets what nobody else is told; nil is silence.
	Logger *slog.Logger
}

// Asker answers permission questions in this process.
type Asker func(ctx context.Context, q Question) policy.Decision

// Question is a permission question.
type Question struct {
	RequestID string
	Request   event.PermissionRequested
	Tool      string
	CallID    string
	Arguments []byte
}

// Errors of sessions.
var (
	// ErrUnloaded: the session is no longer in this process; resume it.
	ErrUnloaded = errors.New("the session is not loaded")
)

// ConflictError says that another process has the session.
type ConflictError struct{ Err error }

func (e *ConflictError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *ConflictError) Unwrap() error { return e.Err }

// Session is a loaded session.
type Session struct {
	cfg  Config
	box  *mailbox
	feed *feed
	view atomic.Pointer[turn.State]
	done chan struct{}

	cut struct { // what is no part of the history, as of a number of boundaries
		mu         sync.Mutex
		boundaries int64
		cuts       []history.Cut
	}

	ending struct { // what is to be done when the session is done
		mu   sync.Mutex
		over bool
		then func()
	}

	askers  sync.Map // client id → Asker
	counter tokens.Counter
	hookers sync.Map // client id → Hooker

	// owned by the actor
	state          turn.State
	pen            bool
	due            bool               // a checkpoint is worth its while
	kept           kept               // of the newest checkpoint
	real           bool               // the log holds a record that makes it worth keeping
	wrote          eventlog.Position  // of the step's first record
	spare          []item             // room for what is taken next
	out            []publication      // readied, not yet in the feed
	waits          bool               // writing waits for somebody else
	staged         *staged            // the step that is being written; nil: none is
	held           []item             // what came meanwhile, in order
	stopCompaction context.CancelFunc // nil: none was made
	parked         map[turn.Parked]func(any, error)
	alarm          alarm
	cancel         context.CancelFunc
	effects        context.Context
	agents         map[string]scope // effects of sub-agents; nil: there were none
	running        sync.WaitGroup
}

// Start takes a session into this process. Its first input should be a
// turn.Begin or a turn.Resume.
func Start(cfg Config) *Session {
	if cfg.MaxLag == 0 {
		cfg.MaxLag = 4 << 20
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Session{cfg: cfg, feed: newFeed(cfg.Log, cfg.MaxLag), done: make(chan struct{})}
	if s.cfg.State = nil; cfg.State != nil {
		s.state = *cfg.State
	}
	s.real, s.pen, s.kept = cfg.Log.End() > 0, cfg.Pen, kept{at: cfg.Log.End(), whole: cfg.Log.End()}
	_, s.waits = cfg.Log.(eventlog.Waiting)
	s.effects, s.cancel = context.WithCancel(context.Background())
	s.box = newMailbox(s.run)
	s.publishView()
	return s
}

// ID returns the session's id.
func (s *Session) ID() string { return s.cfg.ID }

// View returns the state as of the last step. It is immutable.
func (s *Session) View() *turn.State { return s.view.Load() }

// Shared reports whether anyone else has the session, in another process.
func (s *Session) Shared() (bool, error) {
	if s.cfg.Hold == nil {
		return false, nil
	}
	return s.cfg.Hold.Others()
}

// Done is closed when the session has left this process: everything it held is
// released, but for a log that a slow subscriber still reads.
func (s *Session) Done() <-chan struct{} { return s.done }

// Log returns the session's log, for reading.
func (s *Session) Log() eventlog.Log { return s.cfg.Log }

// SetAsker says who answers permission questions for a client that lives in this
// process.
func (s *Session) SetAsker(clientID string, a Asker) { s.askers.Store(clientID, a) }

// Post hands the session an input. It never blocks; inputs are taken in the
// order of the posts. done, where given, is called once with the outcome, from
// the session's own goroutine: it must not block. sub, where given, is opened at
// the place just before the events that the input causes.
func (s *Session) Post(body turn.Body, sub *Subscription, done func(any, error)) {
	if !s.box.post(item{body: body, sub: sub, done: done}) && done != nil {
		done(nil, ErrUnloaded)
	}
}

// Do posts an input and waits for its outcome, or for the end of ctx: the input
// takes effect all the same.
func (s *Session) Do(ctx context.Context, body turn.Body, sub *Subscription) (any, error) {
	type outcome struct {
		v   any
		err error
	}
	ch := make(chan outcome, 1)
	s.Post(body, sub, func(v any, err error) { ch <- outcome{v, err} })
	select {
	case o := <-ch:
		return o.v, o.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// run is the actor. With nothing to do it rests: an idle session has no goroutine,
// and whoever posts next starts another one, which goes on where this one was. There
// is never more than one (see mailbox.rest).
func (s *Session) run() {
	for {
		for {
			items := s.box.take(s.spare)
			if len(items) == 0 {
				s.spare = items
				break
			}
			for _, it := range items {
				s.take(it)
			}
			s.flush()
			s.spare = items
		}
		if s.due && (!s.state.Busy() || s.state.Phase() == turn.Thinking) { // nobody waits for it
			s.due = false
			s.checkpoint()
		}
		if s.staged == nil && (s.state.Live.Closed || s.state.Abandoned() && s.state.SessionID != "") && s.box.closeIfEmpty() {
			s.finish()
			return
		}
		if s.staged == nil && !s.state.Busy() {
			s.lighten()
			if s.box.rest() {
				return
			}
		}
		<-s.box.wake
	}
}

// lighten lets go of what the next work makes again.
func (s *Session) lighten() {
	if cap(s.spare) > 4 {
		s.spare = nil
	}
	if cap(s.out) > 4 {
		s.out = nil
	}
	if len(s.held) == 0 {
		s.held = nil
	}
}

// finish releases what the session holds, once its effects have ended.
func (s *Session) finish() {
	for _, done := range s.parked {
		done(nil, ErrUnloaded)
	}
	for _, it := range s.box.close() {
		if it.done != nil {
			it.done(nil, ErrUnloaded)
		}
	}
	s.stopAlarm()
	s.cancel()
	s.cancelAgents()
	if s.stopCompaction != nil {
		s.stopCompaction()
	}
	s.running.Wait()
	if s.cfg.Cleanup != nil {
		if err := s.cfg.Cleanup(); err != nil {
			s.cfg.Logger.Warn("end what the session started", "session", s.cfg.ID, "error", err)
		}
	}
	s.checkpoint()
	s.feed.end(func() {
		if err := s.cfg.Log.Close(); err != nil {
			s.cfg.Logger.Warn("close session log", "session", s.cfg.ID, "error", err)
		}
	})
	if s.cfg.Hold != nil {
		if err := s.cfg.Hold.Release(); err != nil {
			s.cfg.Logger.Warn("release session", "session", s.cfg.ID, "error", err)
		}
	}
	close(s.done)
	s.ending.mu.Lock()
	s.ending.over = true
	then := s.ending.then
	s.ending.mu.Unlock()
	if then != nil {
		then()
	}
}

// Then calls f once the session has left this process, from its own goroutine; at
// once where it has already. There is one f at most.
func (s *Session) Then(f func()) {
	s.ending.mu.Lock()
	over := s.ending.over
	if !over {
		s.ending.then = f
	}
	s.ending.mu.Unlock()
	if over {
		f()
	}
}

// handle makes one step.
func (s *Session) handle(it item) {
	if _, rung := it.body.(turn.Tick); rung {
		s.stopAlarm()
	}
	in := turn.Input{At: time.Now(), NewID: newID, Body: s.complete(it.body)}
	next, ready, err := turn.Step(s.state, in)
	if err == nil {
		s.wrote = s.cfg.Log.End()
		if s.stage(it, in, &next, &ready) {
			return
		}
		err = s.persist(&next, &ready)
	}
	if err != nil {
		s.failed(it, err)
		return
	}
	s.commit(it, in, next, ready)
}

// commit makes a step that is written the session's state, and says and does what
// follows from it.
func (s *Session) commit(it item, in turn.Input, next turn.State, ready turn.Ready) {
	before, bounds := s.state.Clears, s.state.Boundaries
	s.state = next
	if _, piece := in.Body.(turn.ModelChunk); piece {
		s.publish(ready.Events) // together with the pieces that wait behind it
		return
	}
	if s.cfg.Observe != nil {
		s.cfg.Observe(in, &s.state, &ready)
	}
	s.flush()
	s.publishView()
	if it.sub != nil {
		s.feed.open(it.sub)
	}
	s.publish(ready.Events)
	s.flush()
	if s.cfg.Written != nil && s.written(ready.Events) {
		s.cfg.Written(in.At)
	}
	if ready.CancelCompaction && s.stopCompaction != nil {
		s.stopCompaction()
	}
	if ready.Cancel {
		s.cancel()
		s.effects, s.cancel = context.WithCancel(context.Background())
	}
	for _, id := range ready.CancelAgents {
		s.cancelAgent(id)
	}
	for _, e := range ready.Start {
		s.start(e)
	}
	if p, ok := ready.Result.(turn.Parked); ok && it.done != nil {
		if s.parked == nil {
			s.parked = map[turn.Parked]func(any, error){}
		}
		s.parked[p] = it.done
	} else if it.done != nil {
		it.done(ready.Result, nil)
	}
	s.answer(ready.Answers)
	s.setAlarm()
	if s.state.Clears != before || s.state.Boundaries != bounds {
		s.due, s.kept.saved = true, turn.Saved{}
	}
	s.due = s.due || s.kept.due(s.cfg.Log.End())
}

// answer answers inputs that were parked.
func (s *Session) answer(answers []turn.Answer) {
	for _, a := range answers {
		if done := s.parked[turn.Parked(a.ID)]; done != nil {
			delete(s.parked, turn.Parked(a.ID))
			done(a.Result, a.Err)
		}
	}
}

// complete fills in what the input's maker could not know.
func (s *Session) complete(body turn.Body) turn.Body {
	switch b := body.(type) {
	case turn.Close:
		b.EventsBytes = s.size()
		return b
	case turn.Detach:
		b.EventsBytes = s.size()
		return b
	case turn.Suspend:
		b.EventsBytes = s.size()
		return b
	case turn.Resume:
		b.EventsBytes = s.size()
		b.WasActive = len(s.state.Live.Clients) > 0 && s.state.Phase() != turn.Idle
		return b
	}
	return body
}

// failed undoes an input. An outcome that the turn waits for and that could not
// be written ends the turn instead: it comes only once.
func (s *Session) failed(it item, err error) {
	var refusal *turn.Refusal
	refused := errors.As(err, &refusal)
	if _, rung := it.body.(turn.Tick); rung {
		if !refused {
			s.ringLater(err)
		}
		return
	}
	_, leaves := it.body.(turn.Detach)
	if _, aborts := it.body.(turn.Abort); aborts && !refused {
		s.abandon(err) // the turn ends, if not as the log would have it
		if it.done != nil {
			it.done(nil, nil)
		}
		return
	}
	if it.done != nil && (refused || !leaves) {
		it.done(nil, err)
		if it.sub != nil {
			s.feed.open(it.sub)
			it.sub.Close()
		}
	}
	if refused || it.done != nil && !leaves && !outcome(it.body) {
		return
	}
	if s.abandon(err) && leaves {
		s.handle(it) // the turn is over: what is left of it needs no record
	}
}

// abandon ends what is under way, because the log could not be written.
func (s *Session) abandon(err error) bool {
	s.cfg.Logger.Error("session log", "session", s.cfg.ID, "error", err)
	next, ready, err := turn.Step(s.state, turn.Input{At: time.Now(), NewID: newID, Body: turn.StoreFailed{Err: err}})
	if err != nil {
		return false
	}
	s.state = next
	s.dropPen()
	s.publishView()
	s.publish(ready.Events)
	s.flush()
	s.cancel()
	s.cancelAgents()
	s.effects, s.cancel = context.WithCancel(context.Background())
	s.answer(ready.Answers)
	return true
}

// outcome reports whether an input is what a turn waits for.
func outcome(body turn.Body) bool {
	switch body.(type) {
	case turn.ToolAnswer, turn.PermissionAnswer:
		return true
	}
	return false
}

func (s *Session) publishView() {
	v := s.state
	s.view.Store(&v)
}

// publish readies the public events of a step for the feed.
func (s *Session) publish(events []*event.Event) {
	if len(events) == 0 {
		return
	}
	last := 0 // of those that clients see
	for i, e := range events {
		if e.Public() {
			last = i
		}
	}
	end, passed := s.cfg.Log.End(), 0
	for i, e := range events {
		if e.Persisted() {
			passed++
		}
		if !e.Public() {
			continue
		}
		p := publication{ev: e, after: place{pos: s.wrote, skip: passed}, not: s.hiddenFrom(e)}
		if i == last {
			p.after = place{pos: end}
		}
		s.out = append(s.out, p)
	}
}

// flush puts what was readied into the feed.
func (s *Session) flush() {
	s.feed.publish(s.out)
	clear(s.out)
	s.out = s.out[:0]
}

func (s *Session) written(events []*event.Event) bool {
	return slices.ContainsFunc(events, func(e *event.Event) bool { return e.Persisted() && e.Public() })
}

// others names all clients but one.
func (s *Session) others(owner string) []string {
	var out []string
	for _, c := range s.state.Live.Clients {
		if c.ID != owner {
			out = append(out, c.ID)
		}
	}
	return out
}

// hiddenFrom names the clients that are not to see an event: a request to run a
// tool is not shown to clients that declared the tool as well but are not the
// one asked, since each would run it; and not everybody wants the pieces of
// sub-agents' answers.
func (s *Session) hiddenFrom(e *event.Event) []string {
	switch c := e.Payload.(type) {
	case event.CommandExecute:
		return s.others(s.state.Owner(c.CommandName))
	case event.MessageStart, event.MessageDelta, event.ReasoningDelta, event.StreamingDelta, event.ToolCallDelta:
		if e.AgentID != "" {
			return s.quiet()
		}
		return nil
	}
	p, ok := e.Payload.(event.ExternalToolRequested)
	if !ok {
		return nil
	}
	offer, ok := s.state.At(e.AgentID).Live.Offers.Lookup(p.ToolName)
	if !ok {
		return nil
	}
	var not []string
	for _, c := range s.state.Live.Clients {
		if c.ID == offer.Owner || c.Tools == nil {
			continue
		}
		if _, declared := c.Tools.Lookup(p.ToolName); declared {
			not = append(not, c.ID)
		}
	}
	return not
}
