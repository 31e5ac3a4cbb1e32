package transom

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/internal/factory"
	"github.com/transom-run/transom/internal/session"
)

// Factory is work that a host does in steps when it is asked to: it answers the
// requests "factory.execute" and "factory.abort" by its [RequestHandler].
type Factory = factory.Meta

// FactoryPhase is a part of a factory's work.
type FactoryPhase = factory.Phase

// FactoryLine is a line of a run's progress.
type FactoryLine = factory.Line

// FactoryRun is a run of a factory as it stands.
type FactoryRun struct {
	factory.Run
	// CanResume: another attempt can be made.
	CanResume bool
}

// FactoryError is why a run cannot be resumed, by the protocol's code:
// "not_found", "non_resumable", "already_active", "factory_limits_invalid".
type FactoryError struct{ Code, Msg string }

func (e *FactoryError) Error() string { return e.Msg }

// maxFactoryRuns is how many runs of a session may be under way.
const maxFactoryRuns = 8

// factories are those of one session.
type factories struct {
	mu       sync.Mutex
	store    *factory.Store // nil: none was needed yet
	declared []declaredFactory
	runs     map[string]*factoryRun // under way, by run id
	ended    bool
	running  sync.WaitGroup
}

type declaredFactory struct {
	client string
	Factory
}

// factoryRun is an attempt that is under way.
type factoryRun struct {
	id, token, client string
	attempt           int
	stop              context.CancelCauseFunc
	pausing           bool
}

// ended is the cause of an attempt that was stopped, and how it ends.
type stopped struct{ factory.Outcome }

func (s *stopped) Error() string { return "the run was stopped: " + s.Reason }

// declare notes a client's factories in the place of what it said before; the
// newest declaration of a name counts.
func (f *factories) declare(client string, list []Factory) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.declared = slices.DeleteFunc(slices.Clone(f.declared), func(d declaredFactory) bool { return d.client == client })
	for _, one := range list {
		f.declared = append(f.declared, declaredFactory{client, one})
	}
}

func (f *factories) find(name string) (declaredFactory, bool) {
	for i := len(f.declared) - 1; i >= 0; i-- {
		if f.declared[i].Name == name {
			return f.declared[i], true
		}
	}
	return declaredFactory{}, false
}

// runsOf is the session's store of runs, in its own directory.
func (s *loaded) runsOf(r *Runtime) *factory.Store {
	s.factories.mu.Lock()
	defer s.factories.mu.Unlock()
	if s.factories.store == nil {
		dir := r.storage().Dir(s.ID())
		if dir != "" {
			dir = filepath.Join(dir, "factories")
		}
		s.factories.store = factory.New(dir, func() time.Time { return time.Now().UTC() })
	}
	return s.factories.store
}

// Factories lists what clients of the session have declared.
func (h *Session) Factories() []Factory {
	f := &h.sess.factories
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []Factory
	for _, d := range f.declared {
		out = append(out, d.Factory)
	}
	return out
}

// RunFactory begins a run of a factory and returns at once; [Session.FactoryRun]
// says what becomes of it, and so does the event factory.run_updated. limits is an
// object with timeoutSeconds, or nil for what the factory declares.
func (h *Session) RunFactory(name string, args, limits json.RawMessage) (FactoryRun, error) {
	const op = "session.factory.run"
	f := &h.sess.factories
	f.mu.Lock()
	d, known := f.find(name)
	f.mu.Unlock()
	if !known {
		return FactoryRun{}, &Error{Op: op, Kind: KindNotFound, SessionID: h.id, Msg: fmt.Sprintf("no client of session %s has declared a factory %q", h.id, name)}
	}
	limit, err := timeLimit(d.Limits, limits)
	if err != nil {
		return FactoryRun{}, &Error{Op: op, Kind: KindInvalidParams, SessionID: h.id, Msg: err.Error()}
	}
	store, id := h.sess.runsOf(h.rt), session.NewID()
	if store.Actives() >= maxFactoryRuns {
		return FactoryRun{}, &Error{Op: op, Kind: KindOverloaded, SessionID: h.id, Msg: fmt.Sprintf("%d runs of factories are under way in session %s: wait for one, or cancel it", maxFactoryRuns, h.id)}
	}
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	err = store.Create(id, d.Factory, args)
	if err == nil {
		err = h.begin(store, id, d, args, limit)
	}
	if err != nil {
		return FactoryRun{}, wrap(op, h.id, err)
	}
	return h.FactoryRun(id)
}

// ResumeFactory makes another attempt at a run that has ended without being
// complete: steps that it had done are not done again. What speaks against it is a
// *[FactoryError].
func (h *Session) ResumeFactory(id string, limits json.RawMessage) (FactoryRun, error) {
	const op = "session.factory.resume"
	store := h.sess.runsOf(h.rt)
	run, err := store.Read(id)
	switch {
	case errors.Is(err, factory.ErrUnknown):
		return FactoryRun{}, &FactoryError{"not_found", fmt.Sprintf("session %s has no factory run %q", h.id, id)}
	case err != nil:
		return FactoryRun{}, wrap(op, h.id, err)
	case store.Running(id):
		return FactoryRun{}, &FactoryError{"already_active", "the factory run " + id + " is under way"}
	case run.Over():
		return FactoryRun{}, &FactoryError{"non_resumable", "the factory run " + id + " is complete: there is nothing left to do"}
	}
	f := &h.sess.factories
	f.mu.Lock()
	d, known := f.find(run.Meta.Name)
	f.mu.Unlock()
	if !known {
		return FactoryRun{}, &FactoryError{"non_resumable", fmt.Sprintf("no client of session %s declares the factory %q any more", h.id, run.Meta.Name)}
	}
	limit, err := timeLimit(d.Limits, limits)
	if err != nil {
		return FactoryRun{}, &FactoryError{"factory_limits_invalid", err.Error()}
	}
	if err := h.begin(store, id, d, run.Args, limit); err != nil {
		return FactoryRun{}, wrap(op, h.id, err)
	}
	return h.FactoryRun(id)
}

// timeLimit is the time that an attempt may take; 0 is no limit. The last of the
// limits that names one counts.
func timeLimit(all ...json.RawMessage) (time.Duration, error) {
	seconds := 0.0
	for _, raw := range all {
		var l struct {
			TimeoutSeconds *float64 `json:"timeoutSeconds"`
		}
		if len(raw) == 0 {
			continue
		}
		if err := json.Unmarshal(raw, &l); err != nil {
			return 0, fmt.Errorf("the limits of a factory are an object: %w", err)
		}
		if l.TimeoutSeconds != nil {
			if seconds = *l.TimeoutSeconds; seconds <= 0 || seconds > 1e7 {
				return 0, fmt.Errorf("timeoutSeconds must be more than 0 and at most 10000000, not %g", seconds)
			}
		}
	}
	return time.Duration(seconds * float64(time.Second)), nil
}

// begin starts an attempt.
func (h *Session) begin(store *factory.Store, id string, d declaredFactory, args json.RawMessage, limit time.Duration) error {
	f := &h.sess.factories
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		return session.ErrUnloaded
	}
	attempt, err := store.Begin(id)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(context.Background())
	run := &factoryRun{id: id, token: session.NewID(), client: d.client, attempt: attempt, stop: stop}
	if f.runs == nil {
		f.runs = map[string]*factoryRun{}
	}
	f.runs[id] = run
	h.sess.tell(event.FactoryStarted{RunID: id, FactoryName: d.Name, Attempt: attempt})
	f.running.Go(func() {
		defer stop(nil)
		if limit > 0 {
			timer := time.AfterFunc(limit, func() {
				stop(&stopped{factory.Outcome{Status: factory.Halted, Reason: "its time is over", Failure: json.RawMessage(fmt.Sprintf(`{"type":"factory_limit_reached","runId":%q,"kind":"timeout","value":%g}`, id, limit.Seconds()))}})
			})
			defer timer.Stop()
		}
		h.sess.execute(ctx, store, run, d.Name, args)
	})
	return nil
}

// execute has the client do the work, and notes how it ended.
func (s *loaded) execute(ctx context.Context, store *factory.Store, run *factoryRun, name string, args json.RawMessage) {
	o := factory.Outcome{Status: factory.Completed}
	raw, err := s.askFactory(ctx, run, "factory.execute", map[string]any{"name": name, "args": args})
	var out struct {
		Result json.RawMessage `json:"result"`
	}
	if err == nil && len(raw) > 0 {
		err = json.Unmarshal(raw, &out)
	}
	var stop *stopped
	switch {
	case errors.As(context.Cause(ctx), &stop):
		o = stop.Outcome
		s.abortFactory(run)
	case err != nil:
		o = factory.Outcome{Status: factory.Failed, Error: err.Error()}
		if _, there := s.requesters.Load(run.client); !there || !s.attachedClient(run.client) {
			o.Failure = json.RawMessage(fmt.Sprintf(`{"type":"factory_provider_disconnected","runId":%q}`, run.id))
		}
	default:
		o.Result = out.Result
	}
	s.factories.mu.Lock()
	delete(s.factories.runs, run.id)
	s.factories.mu.Unlock()
	if err := store.Settle(run.id, run.attempt, o); err != nil {
		s.tell(event.SessionWarning{WarningType: "factory", Message: "How the factory run " + run.id + " ended could not be written: " + err.Error()})
	}
	settled := event.FactorySettled{RunID: run.id, Status: string(o.Status)}
	if r, err := store.Read(run.id); err == nil {
		settled.ElapsedMs = r.Active.Milliseconds()
	}
	var failure struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(o.Failure, &failure) == nil {
		settled.FailureType = failure.Type
	}
	s.tell(settled)
	s.updatedFactory(store, run.id)
}

func (s *loaded) attachedClient(id string) bool {
	for _, c := range s.View().Live.Clients {
		if c.ID == id {
			return true
		}
	}
	return false
}

func (s *loaded) askFactory(ctx context.Context, run *factoryRun, method string, more map[string]any) (json.RawMessage, error) {
	v, ok := s.requesters.Load(run.client)
	if !ok || v.(requester).handle == nil {
		return nil, &Error{Kind: KindPeerGone, Msg: "the client that declared the factory is gone"}
	}
	params := map[string]any{"sessionId": s.ID(), "runId": run.id, "executionToken": run.token}
	for k, v := range more {
		params[k] = v
	}
	raw, err := json.Marshal(params)
	if err != nil {
		return nil, err
	}
	return v.(requester).handle(ctx, method, raw)
}

// abortTime is how long a client may take to hear that a run is to end.
const abortTime = 2 * time.Second

func (s *loaded) abortFactory(run *factoryRun) {
	ctx, cancel := context.WithTimeout(context.Background(), abortTime)
	defer cancel()
	_, _ = s.askFactory(ctx, run, "factory.abort", nil) // the run is over, whatever the client says
}

func (s *loaded) updatedFactory(store *factory.Store, id string) {
	if r, err := store.Read(id); err == nil {
		s.tell(event.FactoryUpdated{RunID: id, Revision: r.Revision})
	}
}

// stopFactories ends what is under way; it is resumable.
func (s *loaded) stopFactories() {
	f := &s.factories
	f.mu.Lock()
	f.ended = true
	for _, run := range f.runs {
		run.stop(&stopped{factory.Outcome{Status: factory.Halted, Reason: "the session ended while it was under way"}})
	}
	f.mu.Unlock()
	f.running.Wait()
}

// lostFactories ends the runs of a client that has gone.
func (s *loaded) lostFactories(client string) {
	f := &s.factories
	f.mu.Lock()
	defer f.mu.Unlock()
	f.declared = slices.DeleteFunc(slices.Clone(f.declared), func(d declaredFactory) bool { return d.client == client })
	for _, run := range f.runs {
		if run.client == client {
			run.stop(&stopped{factory.Outcome{Status: factory.Failed, Error: "the client that ran it has gone",
				Failure: json.RawMessage(fmt.Sprintf(`{"type":"factory_provider_disconnected","runId":%q}`, run.id))}})
		}
	}
}

// FactoryRun reads a run.
func (h *Session) FactoryRun(id string) (FactoryRun, error) {
	const op = "session.factory.getRun"
	store := h.sess.runsOf(h.rt)
	r, err := store.Read(id)
	if errors.Is(err, factory.ErrUnknown) {
		return FactoryRun{}, &Error{Op: op, Kind: KindNotFound, SessionID: h.id, Msg: fmt.Sprintf("session %s has no factory run %q", h.id, id)}
	}
	return FactoryRun{r, !r.Over() && !store.Running(id)}, wrap(op, h.id, err)
}

// FactoryRuns lists the session's runs, oldest first.
func (h *Session) FactoryRuns() ([]FactoryRun, error) {
	store := h.sess.runsOf(h.rt)
	all, err := store.List()
	var out []FactoryRun
	for _, r := range all {
		out = append(out, FactoryRun{r, !r.Over() && !store.Running(r.ID)})
	}
	return out, wrap("session.factory.listRuns", h.id, err)
}

// CancelFactory ends a run that is under way, and returns it as it stands then. One
// that has ended stays as it is.
func (h *Session) CancelFactory(ctx context.Context, id string) (FactoryRun, error) {
	return h.stopFactory(ctx, id, factory.Outcome{Status: factory.Cancelled, Reason: "it was cancelled"})
}

// PauseFactory has a run pause at its next checkpoint.
func (h *Session) PauseFactory(id string) (FactoryRun, error) {
	f := &h.sess.factories
	f.mu.Lock()
	if run := f.runs[id]; run != nil {
		run.pausing = true
	}
	f.mu.Unlock()
	return h.FactoryRun(id)
}

func (h *Session) stopFactory(ctx context.Context, id string, o factory.Outcome) (FactoryRun, error) {
	if _, err := h.FactoryRun(id); err != nil {
		return FactoryRun{}, err
	}
	events := h.Subscribe()
	defer events.Close()
	f := &h.sess.factories
	f.mu.Lock()
	run := f.runs[id]
	f.mu.Unlock()
	if run == nil {
		return h.FactoryRun(id)
	}
	run.stop(&stopped{o})
	for e, err := range events.All(ctx) {
		if err != nil {
			return FactoryRun{}, wrap("session.factory.cancel", h.id, err)
		}
		if p, ok := e.Payload.(event.FactorySettled); ok && p.RunID == id {
			break
		}
	}
	return h.FactoryRun(id)
}

// executing finds the attempt that a client speaks for.
func (h *Session) executing(op, id, token string) (*factory.Store, *factoryRun, error) {
	f := &h.sess.factories
	store := h.sess.runsOf(h.rt)
	f.mu.Lock()
	defer f.mu.Unlock()
	run := f.runs[id]
	if run == nil || run.token != token || run.client != h.client.ID {
		return nil, nil, &Error{Op: op, Kind: KindWrongState, SessionID: h.id, Msg: "this is no attempt at the factory run " + id + " that is under way: it has ended, or another client makes it"}
	}
	return store, run, nil
}

// LogFactory adds lines to the progress of a run that this host executes.
func (h *Session) LogFactory(id, token string, lines []FactoryLine) error {
	const op = "session.factory.log"
	store, run, err := h.executing(op, id, token)
	if err == nil {
		if err = store.Log(id, run.attempt, lines); err == nil {
			h.sess.updatedFactory(store, id)
		}
	}
	return wrap(op, h.id, err)
}

// FactoryStep returns what a step of a run came to that was done before.
func (h *Session) FactoryStep(id, token, key string) (value json.RawMessage, hit bool, err error) {
	const op = "session.factory.journal.get"
	store, run, err := h.executing(op, id, token)
	if err == nil {
		value, hit, err = store.Get(id, run.attempt, key)
	}
	return value, hit, wrap(op, h.id, err)
}

// PutFactoryStep notes what a step of a run came to: no attempt does it again.
func (h *Session) PutFactoryStep(id, token, key string, value json.RawMessage) error {
	const op = "session.factory.journal.put"
	store, run, err := h.executing(op, id, token)
	if err == nil {
		err = store.Put(id, run.attempt, key, value)
	}
	return wrap(op, h.id, err)
}

// FactoryCheckpoint says whether a run is to pause here: then its attempt is over,
// and another one goes on.
func (h *Session) FactoryCheckpoint(id, token, key string) (pause bool, err error) {
	const op = "session.factory.pauseAtCheckpoint"
	_, run, err := h.executing(op, id, token)
	if err != nil {
		return false, wrap(op, h.id, err)
	}
	h.sess.factories.mu.Lock()
	pause = run.pausing
	h.sess.factories.mu.Unlock()
	if pause {
		run.stop(&stopped{factory.Outcome{Status: factory.Paused, Reason: "it was asked to pause", PausedAt: key}})
	}
	return pause, nil
}
