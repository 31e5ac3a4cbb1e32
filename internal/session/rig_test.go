package session

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/eventlog"
	"github.com/transom-run/transom/eventlog/memlog"
	"github.com/transom-run/transom/internal/turn"
	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(twice{m}) }

// watchdog bounds every wait of these tests.
const watchdog = 2 * time.Minute

// fakeModel answers requests by a function and keeps them.
type fakeModel struct {
	mu       sync.Mutex
	requests []*model.Request
	answer   func(ctx context.Context, n int, req *model.Request) (model.Message, error)
}

func (f *fakeModel) Stream(ctx context.Context, req *model.Request) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		f.mu.Lock()
		f.requests = append(f.requests, req)
		n := len(f.requests)
		f.mu.Unlock()
		m, err := f.answer(ctx, n, req)
		if err != nil {
			yield(model.Chunk{}, err)
			return
		}
		for i, c := range m.Calls {
			if !yield(model.Chunk{Call: &model.CallChunk{Index: i, ID: c.ID, Name: c.Name, Arguments: c.Arguments}}, nil) {
				return
			}
		}
		yield(model.Chunk{Text: m.Text, Finish: "stop"}, nil)
	}
}

// seen returns the requests so far.
func (f *fakeModel) seen() []*model.Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.requests)
}

func text(s string) model.Message { return model.Message{Role: model.Assistant, Text: s} }

func calls(cs ...string) model.Message {
	m := model.Message{Role: model.Assistant}
	for _, c := range cs {
		id, name, _ := strings.Cut(c, ":")
		m.Calls = append(m.Calls, model.Call{ID: id, Name: name, Arguments: "{}"})
	}
	return m
}

// faultLog fails appends on demand.
type faultLog struct {
	*memlog.Log
	mu   sync.Mutex
	fail func(b eventlog.Batch) error
}

func (l *faultLog) Append(b eventlog.Batch) (eventlog.Position, error) {
	l.mu.Lock()
	fail := l.fail
	l.mu.Unlock()
	if fail != nil {
		if err := fail(b); err != nil {
			return 0, err
		}
	}
	return l.Log.Append(b)
}

func (l *faultLog) set(fail func(b eventlog.Batch) error) {
	l.mu.Lock()
	l.fail = fail
	l.mu.Unlock()
}

// slowly has all sessions of rigs write by a goroutine of its own, as to a host.
var slowly bool

// twice runs all tests twice: with a log that is written at once, and with one that
// waits for somebody else.
type twice struct{ m *testing.M }

func (t twice) Run() int {
	code := t.m.Run()
	if f := flag.Lookup("test.fuzz"); code == 0 && (f == nil || f.Value.String() == "") {
		slowly = true
		code = t.m.Run()
	}
	return code
}

// waitingLog is a log whose appends may not be waited for.
type waitingLog struct{ eventlog.Log }

func (waitingLog) Waits() {}

// Verify passes the question on, where the log can be asked.
func (l waitingLog) Verify() error {
	if v, ok := l.Log.(eventlog.Verifier); ok {
		return v.Verify()
	}
	return nil
}

// SaveCheckpoint and LoadCheckpoint pass on as well.
func (l waitingLog) SaveCheckpoint(pos eventlog.Position, data []byte) error {
	if c, ok := l.Log.(eventlog.Checkpointer); ok {
		return c.SaveCheckpoint(pos, data)
	}
	return nil
}

func (l waitingLog) LoadCheckpoint() (eventlog.Position, string, bool) {
	if c, ok := l.Log.(eventlog.Checkpointer); ok {
		return c.LoadCheckpoint()
	}
	return 0, "", false
}

var errFull = errors.New("disk full")

// failOn fails batches that hold a record of a type.
func failOn(typ string) func(eventlog.Batch) error {
	return func(b eventlog.Batch) error {
		for _, line := range b.Lines {
			if e, err := event.Decode(line); err == nil && e.Type == typ {
				return errFull
			}
		}
		return nil
	}
}

// rig is a session with a model and a subscriber.
type rig struct {
	t     testing.TB
	store *memlog.Store
	log   *faultLog
	model *fakeModel
	s     *Session
	sub   *Subscription
	buf   []*event.Event
}

type rigConfig struct {
	tools    []tool.Tool
	ask      bool
	asker    Asker
	stream   bool
	maxLag   int64
	retry    model.RetryPolicy
	resolver func(ctx context.Context, req *model.Request) (model.Provider, error)
}

func registry(t testing.TB, tools []tool.Tool) *tool.Registry {
	t.Helper()
	if tools == nil {
		return nil
	}
	r, err := tool.NewRegistry(tools)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// newRig begins a session whose model gives the answers in order, and then text.
func newRig(t testing.TB, cfg rigConfig, answers ...model.Message) *rig {
	t.Helper()
	r := &rig{t: t, store: memlog.New()}
	r.model = &fakeModel{answer: func(_ context.Context, n int, _ *model.Request) (model.Message, error) {
		if n <= len(answers) {
			return answers[n-1], nil
		}
		return text("ok"), nil
	}}
	log, err := r.store.Create(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	r.log = &faultLog{Log: log.(*memlog.Log)}
	r.s = r.start(r.log, turn.State{}, cfg)
	r.sub = NewSubscription("A")
	r.do(turn.Begin{
		SessionID: "s", Model: "m", Settings: turn.Settings{System: "SYS", ApproveAll: !cfg.ask, Streaming: cfg.stream},
		Client: turn.Client{ID: "A", Tools: registry(t, cfg.tools), Permission: true},
	}, r.sub)
	return r
}

// start starts an actor; it is closed at the end of the test.
func (r *rig) start(log eventlog.Log, state turn.State, cfg rigConfig) *Session {
	hold, err := r.store.Hold("s")
	if err != nil {
		r.t.Fatal(err)
	}
	if slowly {
		log = waitingLog{log}
	}
	c := Config{ID: "s", Log: log, Hold: hold, State: &state, Retry: cfg.retry, MaxLag: cfg.maxLag, Model: cfg.resolver}
	if c.Model == nil {
		c.Model = func(context.Context, *model.Request) (model.Provider, error) { return r.model, nil }
	}
	s := Start(c)
	if cfg.asker != nil {
		s.SetAsker("A", cfg.asker)
	}
	r.t.Cleanup(func() {
		s.Post(turn.Close{}, nil, nil)
		r.gone(s)
	})
	return s
}

func (r *rig) gone(s *Session) {
	r.t.Helper()
	select {
	case <-s.Done():
	case <-time.After(watchdog):
		r.t.Fatal("the session did not end")
	}
}

// do posts an input that is to succeed.
func (r *rig) do(body turn.Body, sub *Subscription) any {
	r.t.Helper()
	v, err := r.try(body, sub)
	if err != nil {
		r.t.Fatalf("%T: %v", body, err)
	}
	return v
}

func (r *rig) try(body turn.Body, sub *Subscription) (any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), watchdog)
	defer cancel()
	return r.s.Do(ctx, body, sub)
}

func (r *rig) send(prompt string) {
	r.t.Helper()
	r.do(turn.Send{Message: event.Queued{Prompt: prompt}}, nil)
}

// until reads events up to one of a type, which it returns with those before it.
func (r *rig) until(typ string) []*event.Event {
	r.t.Helper()
	return r.read(r.sub, func(e *event.Event) bool { return e.Type == typ })
}

func (r *rig) read(sub *Subscription, last func(*event.Event) bool) []*event.Event {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), watchdog)
	defer cancel()
	var out []*event.Event
	pending := r.buf
	r.buf = nil
	for {
		for i, e := range pending {
			out = append(out, e)
			if last(e) {
				if sub == r.sub {
					r.buf = pending[i+1:]
				}
				return out
			}
		}
		var err error
		if pending, err = sub.Next(ctx, nil); err != nil {
			r.t.Fatalf("events ended with %v after %v", err, types(out))
		}
	}
}

// request waits for a request to the host to run a call, and returns its id.
func (r *rig) request() event.ExternalToolRequested {
	r.t.Helper()
	es := r.until(event.TypeExternalToolRequested)
	p, err := event.As[event.ExternalToolRequested](es[len(es)-1])
	if err != nil {
		r.t.Fatal(err)
	}
	return p
}

func (r *rig) answer(requestID, text string) any {
	r.t.Helper()
	return r.do(turn.ToolAnswer{RequestID: requestID, Result: tool.Result{Text: text}}, nil)
}

// records reads the log.
func (r *rig) records() []*event.Event {
	r.t.Helper()
	log, _, err := r.store.Open(context.Background(), "s")
	if err != nil {
		r.t.Fatal(err)
	}
	defer log.Close()
	var out []*event.Event
	for rec, err := range log.Read(0) {
		if err != nil {
			r.t.Fatal(err)
		}
		e, err := event.Decode(rec.Line)
		if err != nil {
			r.t.Fatal(err)
		}
		out = append(out, e)
	}
	return out
}

func types(es []*event.Event) []string {
	var out []string
	for _, e := range es {
		out = append(out, e.Type)
	}
	return out
}

func count(es []*event.Event, typ string) int {
	n := 0
	for _, e := range es {
		if e.Type == typ {
			n++
		}
	}
	return n
}

func prompts(req *model.Request) string {
	var out []string
	for _, m := range req.Messages {
		t := m.Text
		if i := strings.LastIndex(t, "\n\n"); i >= 0 && m.Role == model.User {
			t = t[i+2:]
		}
		out = append(out, fmt.Sprintf("%s:%s", m.Role, t))
	}
	return strings.Join(out, " ")
}

var clearTool = tool.Tool{Name: "clear", IsTerminal: true}
