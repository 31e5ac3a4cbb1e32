package transom

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/eventlog"
	"github.com/transom-run/transom/eventlog/filelog"
	"github.com/transom-run/transom/internal/session"
	"github.com/transom-run/transom/internal/turn"
	"github.com/transom-run/transom/internal/vault"
	"github.com/transom-run/transom/model/catalog"
	"github.com/transom-run/transom/model/endpoint"
	"github.com/transom-run/transom/trace"
)

// Version is the version of this module.
const Version = "0.1.0"

// Runtime holds sessions. Its methods may be called from any goroutine.
type Runtime struct {
	cfg     Config
	store   eventlog.Store
	owns    bool // the store was made here
	keys    secrets
	logins  logins
	user    userSettings
	places  stateFile[located]
	mcpFile stateFile[serverFile]
	tokens  *vault.Vault // of MCP servers, where they are to be kept

	plugged pluginStore

	accounts catalog.Accounts
	client   *http.Client // makes the requests of all providers
	outbound outbound

	mu       sync.Mutex
	kept     atomic.Pointer[keeping] // nil: sessions are in store
	sessions map[string]*slot
	watchers map[int]func(Lifecycle)
	serial   int
	closed   bool
}

// slot is a session id's place in this process: being opened, loaded, or ending.
type slot struct {
	sess   *loaded       // nil while it is being opened
	opened chan struct{} // closed when sess is set or the opening failed
	gone   chan struct{} // closed when the id is free again
}

// loaded is a session in this process.
type loaded struct {
	*session.Session
	models     *models
	system     *systemMessage
	agents     *agentSet
	requests   shaping
	own        ownTools
	requesters sync.Map // client id → requester
	questions  questions
	takers     sync.Map // taken: which clients take questions that are asked by events
	switching  switching
	written    atomic.Int64 // when the newest record was written, in Unix milliseconds; 0: none here
	shells     shells       // commands of users
	skills     skills
	plugins    plugins
	canvases   canvases
	factories  factories
	files      sync.Mutex  // held while the session's own files are changed
	captured   captures    // files as they were before tools wrote to them
	servers    servers     // MCP
	searching  atomic.Bool // tools may be held back
}

// Open makes a runtime. It does no network access, and reads nothing of the
// sessions stored.
func Open(cfg Config) (*Runtime, error) {
	if cfg.Getenv == nil {
		cfg.Getenv = os.Getenv
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Dir == "" {
		dir, err := os.Getwd()
		if err != nil {
			return nil, &Error{Op: "open", Kind: KindInternal, Msg: "find the working directory: " + err.Error(), Err: err}
		}
		cfg.Dir = dir
	}
	r := &Runtime{cfg: cfg, store: cfg.Store, tokens: vault.Memory(), sessions: map[string]*slot{}, watchers: map[int]func(Lifecycle){}}
	r.client = &http.Client{Transport: &r.outbound, CheckRedirect: endpoint.SameHost}
	for _, name := range []string{"COPILOT_PROVIDER_API_KEY", "COPILOT_PROVIDER_BEARER_TOKEN", "COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN", "COPILOT_CONNECTION_TOKEN"} {
		r.keys.add(cfg.Getenv(name))
	}
	r.keys.add(cfg.GitHubToken)
	if r.store == nil {
		home, err := home(cfg)
		if err != nil {
			return nil, err
		}
		r.cfg.Home = home
		store, err := filelog.New(filelog.Config{Home: home})
		if err != nil {
			return nil, wrap("open", "", err)
		}
		r.store, r.owns = store, true
		r.user.file.path = filepath.Join(home, "settings.json")
		r.places.path = filepath.Join(home, "permissions.json")
		r.mcpFile.path = filepath.Join(home, "mcp-config.json")
		r.tokens = vault.Files(filepath.Join(home, "mcp-oauth"))
		r.plugged.file.path = filepath.Join(home, "plugins.json")
	}
	return r, nil
}

func home(cfg Config) (string, error) {
	if cfg.Home != "" {
		return cfg.Home, nil
	}
	if h := cfg.Getenv("COPILOT_HOME"); h != "" {
		return h, nil
	}
	h, err := os.UserHomeDir()
	if err != nil {
		return "", &Error{Op: "open", Kind: KindInvalidParams, Msg: "no place for the sessions: set COPILOT_HOME, or HOME", Err: err}
	}
	return filepath.Join(h, ".transom"), nil
}

// NewSessionID makes a random id, as sessions have that are given none.
func NewSessionID() string { return session.NewID() }

// Warm makes what the first session of the process needs and opening a runtime leaves
// for later. Nothing depends on it but how long that session takes to be made; a
// server calls it when it has answered its first client. Calls after the first cost
// nothing.
func (r *Runtime) Warm() { turn.Warm() }

// Home returns the directory of all state; "" where the store was given.
func (r *Runtime) Home() string { return r.cfg.Home }

// CreateSession begins a session. The id must be free: a Conflict otherwise.
func (r *Runtime) CreateSession(ctx context.Context, cfg SessionConfig) (*Session, error) {
	const op = "session.create"
	if cfg.ID == "" {
		cfg.ID = session.NewID()
	}
	h, settings, err := r.prepare(cfg)
	if err == nil {
		cfg.Dir, err = r.begins(cfg.Dir)
	}
	if err != nil {
		return nil, wrap(op, cfg.ID, err)
	}
	r.keys.provider(cfg.Provider)
	r.keys.named(cfg.Providers)
	r.keys.add(cfg.GitHubToken)
	models := r.models(cfg.ID, access{cfg.Provider, cfg.Custom, cfg.GitHubToken, cfg.Providers, cfg.Models, cfg.Model})
	if err := models.usable(ctx); err != nil {
		return nil, wrap(op, cfg.ID, err)
	}
	sl, err := r.reserve(ctx, op, cfg.ID)
	if err != nil {
		return nil, err
	}
	settings.FilesDir, settings.Transcript = r.workspace(cfg.ID), r.transcript(cfg.ID)
	hold, others, err := r.hold(cfg.ID)
	if err != nil {
		r.free(cfg.ID, sl, nil)
		return nil, wrap(op, cfg.ID, err)
	}
	var log eventlog.Log
	if others {
		err = eventlog.ErrExists // in another process, though nothing of it is stored yet
	} else {
		log, err = r.storage().Create(ctx, cfg.ID)
	}
	if err != nil {
		hold.Release()
		r.free(cfg.ID, sl, nil)
		return nil, wrap(op, cfg.ID, err)
	}
	sess := r.load(cfg.ID, log, hold, turn.State{}, models)
	selected, err := r.furnish(ctx, sess, cfg, &settings)
	if err != nil {
		sess.Post(turn.Close{}, nil, nil)
		<-sess.Done()
		r.free(cfg.ID, sl, nil)
		return nil, wrap(op, cfg.ID, err)
	}
	h.load(sess)
	begin := turn.Begin{
		SessionID: cfg.ID, Model: models.selected(), Effort: cfg.ReasoningEffort, Tier: cfg.ContextTier, Dir: cfg.Dir,
		Settings: settings, Client: h.client, Track: cfg.TrackFiles, Select: selected,
	}
	sess.agents.answer(&begin)
	models.bounds = cfg.Abilities.window()
	begin.Settings.TokenLimit, begin.Settings.Count = models.window(), true
	if _, err := sess.Do(context.WithoutCancel(ctx), begin, h.events.sub); err != nil {
		sess.Post(turn.Close{}, nil, nil)
		<-sess.Done()
		r.free(cfg.ID, sl, nil)
		return nil, wrap(op, cfg.ID, err)
	}
	r.fill(cfg.ID, sl, sess)
	h.warn(cfg.Unserved)
	sess.tellEquipment()
	h.showCanvases(cfg.CanvasProvider, cfg.Canvases, nil)
	sess.factories.declare(h.client.ID, cfg.Factories)
	h.warnProvider()
	return h, nil
}

// load starts a session's actor, which owns the log and the hold from here on.
func (r *Runtime) load(id string, log eventlog.Log, hold eventlog.Hold, state turn.State, models *models) *loaded {
	begun, what := state.Started, "session.updated"
	if state.SessionID == "" {
		what = "session.created" // the first record is its session.start
	}
	s := &loaded{models: models, agents: &agentSet{id: id, selected: state.Selected}}
	s.agents.servers.connect = func(ctx context.Context, kind string) { r.connectOwn(ctx, s, kind) }
	s.agents.skill = s.skillText
	s.captured.store.Dir = r.snapshots(id)
	s.system = &systemMessage{ask: s.ask, id: id, agents: s.agents, servers: s.serversSay}
	models.sized = func(tokens int) {
		s.Post(turn.Configure{Settings: func(v *turn.Settings) { v.TokenLimit = tokens }}, nil, nil)
	}
	models.warn = func(message string) {
		s.Post(turn.Note{Payload: event.SessionWarning{WarningType: "configuration", Message: message}}, nil, nil)
	}
	models.ask = s.ask
	if r.cfg.BuiltIns != nil {
		s.own.make = func() (BuiltIns, error) { return r.builtIns(s, id) }
	}
	s.Session = session.Start(session.Config{
		ID: id, Log: log, Hold: hold, Pen: state.SessionID != "", State: &state, Model: s.model, Encoding: models.encoding, Allow: s.affordable, Another: s.another, Retry: r.cfg.Retry,
		Dir: r.storage().Dir(id), Logger: r.cfg.Logger, Redact: r.keys.redact, Command: s.runQueued, Compose: s.system.compose, Connect: s.connect, Cleanup: s.release,
		Keep: r.keeps(id), Restore: s.restore, Observe: r.observe(id),
		Written: func(at time.Time) {
			if begun.IsZero() {
				begun = at
			}
			s.written.Store(at.UnixMilli())
			r.tell(Lifecycle{Type: what, SessionID: id, Started: begun, Modified: at})
			what = "session.updated"
		},
	})
	return s
}

// reserve takes an id for a session to be created. An id whose session is ending
// is waited for.
func (r *Runtime) reserve(ctx context.Context, op, id string) (*slot, error) {
	for {
		r.mu.Lock()
		if r.closed {
			r.mu.Unlock()
			return nil, closing(op, id)
		}
		sl, taken := r.sessions[id]
		if !taken {
			sl = newSlot()
			r.sessions[id] = sl
			r.mu.Unlock()
			return sl, nil
		}
		ending := sl.sess != nil && sl.sess.View().Live.Closed
		r.mu.Unlock()
		if !ending {
			return nil, wrap(op, id, eventlog.ErrExists)
		}
		select {
		case <-sl.gone:
		case <-ctx.Done():
			return nil, wrap(op, id, context.Cause(ctx))
		}
	}
}

// find returns the slot of a session that is loaded, or a fresh one (mine) to
// load it into.
func (r *Runtime) find(ctx context.Context, op, id string) (sl *slot, mine bool, err error) {
	for {
		r.mu.Lock()
		if r.closed {
			r.mu.Unlock()
			return nil, false, closing(op, id)
		}
		sl, taken := r.sessions[id]
		if !taken {
			sl = newSlot()
			r.sessions[id] = sl
			r.mu.Unlock()
			return sl, true, nil
		}
		r.mu.Unlock()
		select {
		case <-sl.opened:
			if sl.sess != nil {
				return sl, false, nil
			}
		case <-ctx.Done():
			return nil, false, wrap(op, id, context.Cause(ctx))
		}
		<-sl.gone // the opening failed
	}
}

func newSlot() *slot { return &slot{opened: make(chan struct{}), gone: make(chan struct{})} }

// fill says that a slot's session is loaded, and frees the slot when it ends.
func (r *Runtime) fill(id string, sl *slot, s *loaded) {
	r.mu.Lock()
	sl.sess = s
	closed := r.closed
	r.mu.Unlock()
	close(sl.opened)
	if closed { // while the session was being opened
		s.Post(turn.Suspend{}, nil, nil)
	}
	s.Then(func() { r.free(id, sl, s) })
}

func (r *Runtime) free(id string, sl *slot, s *loaded) {
	r.mu.Lock()
	if r.sessions[id] == sl {
		delete(r.sessions, id)
	}
	r.mu.Unlock()
	if s == nil {
		close(sl.opened)
	}
	close(sl.gone)
}

func closing(op, id string) error {
	return &Error{Op: op, Kind: KindClosing, SessionID: id, Msg: "the runtime is shutting down"}
}

// live returns a loaded session; nil where there is none.
func (r *Runtime) live(id string) *loaded {
	r.mu.Lock()
	defer r.mu.Unlock()
	if sl := r.sessions[id]; sl != nil {
		return sl.sess
	}
	return nil
}

// DeleteSession removes a session for good. One that is loaded here ends first;
// NotFound where there is none.
func (r *Runtime) DeleteSession(ctx context.Context, id string) error {
	const op = "session.delete"
	existed := false
	if s := r.live(id); s != nil {
		existed = true
		s.Post(turn.Close{}, nil, nil)
		select {
		case <-s.Done():
		case <-ctx.Done():
			return wrap(op, id, context.Cause(ctx))
		}
	}
	if err := r.unused(id); err != nil {
		return wrap(op, id, err)
	}
	err := r.storage().Delete(ctx, id)
	if err != nil && !(existed && errors.Is(err, eventlog.ErrNotFound)) {
		return wrap(op, id, err)
	}
	r.tell(Lifecycle{Type: "session.deleted", SessionID: id})
	return nil
}

// unused reports, as an error, that another process has a session.
func (r *Runtime) unused(id string) error {
	hold, others, err := r.hold(id)
	if err != nil {
		return err
	}
	defer hold.Release()
	if err := hold.TakePen(); err != nil {
		return err
	}
	if others {
		return &Error{Kind: KindConflict, Msg: "session " + id + " is in use in another process: close it there first"}
	}
	return nil
}

// flushTime bounds how long the end of a runtime waits for its telemetry.
const flushTime = 1500 * time.Millisecond

// Close takes all sessions out of this process and releases the store. Work under
// way stays open in the logs, for a resume. It returns the error of ctx where
// that ends first.
func (r *Runtime) Close(ctx context.Context) error {
	r.mu.Lock()
	r.closed = true
	var waits []<-chan struct{}
	for _, sl := range r.sessions {
		if sl.sess != nil {
			sl.sess.Post(turn.Suspend{}, nil, nil)
		}
		waits = append(waits, sl.gone)
	}
	r.mu.Unlock()
	for _, w := range waits {
		select {
		case <-w:
		case <-ctx.Done():
			return wrap("close", "", context.Cause(ctx))
		}
	}
	if f, ok := r.cfg.Observer.(trace.Flusher); ok { // whoever hears that all is closed may end the process
		flush, cancel := context.WithTimeout(ctx, flushTime)
		defer cancel()
		if err := f.Flush(flush); err != nil {
			r.cfg.Logger.Warn("telemetry is not complete", "error", err)
		}
	}
	if c, ok := r.store.(io.Closer); ok && r.owns {
		if err := c.Close(); err != nil {
			return wrap("close", "", err)
		}
	}
	return nil
}
