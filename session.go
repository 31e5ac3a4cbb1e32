package transom

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/eventlog/hostlog"
	"github.com/transom-run/transom/internal/policy"
	"github.com/transom-run/transom/internal/session"
	"github.com/transom-run/transom/internal/turn"
	"github.com/transom-run/transom/tool"
)

// Session is one host's attachment to a session. Several may be attached to the
// same one, in this process or over connections: each sees all events. Its
// methods may be called from any goroutine, tool handlers included.
type Session struct {
	rt     *Runtime
	id     string
	sess   *loaded
	client turn.Client
	asker  PermissionHandler
	hooker HookHandler
	asked  requester
	events *Events
	others bool // another process had the session when it was loaded

	ended sync.Once
	gone  chan struct{} // closed when the attachment has ended
}

func newHandle(r *Runtime, tools []tool.Tool, ask PermissionHandler, answers bool, hook HookHandler) (*Session, error) {
	h := &Session{rt: r, asker: ask, hooker: hook, gone: make(chan struct{})}
	h.client = turn.Client{ID: session.NewID(), Permission: ask != nil || answers, Hooks: hook != nil}
	if tools != nil {
		reg, err := tool.NewRegistry(tools)
		if err != nil {
			return nil, &Error{Kind: KindInvalidParams, Msg: err.Error(), Err: err}
		}
		h.client.Tools = reg
	}
	h.events = newEvents(h.client.ID)
	return h, nil
}

// prepare checks a configuration and makes the attachment for it.
func (r *Runtime) prepare(cfg SessionConfig) (*Session, turn.Settings, error) {
	h, err := newHandle(r, cfg.Tools, cfg.OnPermission, cfg.RequestPermission, cfg.OnHook)
	if err != nil {
		return nil, turn.Settings{}, err
	}
	h.asked = requester{cfg.Answers, cfg.OnRequest}
	h.offers(cfg.Elicits, cfg.Commands)
	h.client.Quiet = cfg.QuietAgents
	if err := tiered(&cfg.ContextTier); err != nil {
		return nil, turn.Settings{}, err
	}
	if _, err := cfg.SystemMessage.config(); err != nil {
		return nil, turn.Settings{}, err
	}
	compaction, err := or(cfg.Compaction).settings()
	if err == nil && cfg.TrackFiles {
		err = r.trackable(cfg.ID)
	}
	if err != nil {
		return nil, turn.Settings{}, err
	}
	return h, turn.Settings{
		Traced: r.cfg.Observer != nil, Trace: cfg.Trace,
		Streaming: cfg.Streaming, ApproveAll: r.cfg.ApproveAll, Version: Version,
		Compaction: compaction, Available: filter(cfg.AvailableTools), Excluded: filter(cfg.ExcludedTools),
		Hidden: filter(cfg.HiddenTools), Notice: limits(cfg.MaxAICredits), Credits: cfg.MaxAICredits,
	}, nil
}

// or is what a pointer points to, or nothing.
func or[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// transcript is where a session's log can be read, in its host's words where that
// keeps it; "" where the store has no files.
func (r *Runtime) transcript(id string) string {
	if k := r.kept.Load(); k != nil {
		return k.layout.Must(hostlog.File)
	}
	if dir := r.storage().Dir(id); dir != "" {
		return filepath.Join(dir, "events.jsonl")
	}
	return ""
}

// load ties the attachment to its session. At a later resume it is tied already, and
// others may be using it: nothing is written that they read.
func (h *Session) load(s *loaded) {
	if h.sess != s { // also where one that was ending meanwhile has been tried before
		h.sess, h.id = s, s.ID()
	}
	if asker := h.asker; asker != nil {
		s.SetAsker(h.client.ID, func(ctx context.Context, q session.Question) policy.Decision { return h.answer(ctx, asker, q) })
	}
	if h.asked.handle != nil {
		s.requesters.Store(h.client.ID, h.asked)
	}
	if h.hooker != nil {
		s.SetHooker(h.client.ID, session.Hooker(h.hooker))
	}
}

// answer asks the host's permission handler.
func (h *Session) answer(ctx context.Context, asker PermissionHandler, q session.Question) policy.Decision {
	d := asker(ctx, PermissionRequest{
		SessionID: h.id, RequestID: q.RequestID, ToolCallID: q.CallID, ToolName: q.Tool,
		Arguments: q.Arguments, Raw: q.Request.PermissionRequest,
	})
	raw, err := json.Marshal(d)
	if err != nil {
		return policy.NotAvailable()
	}
	return policy.Parse(raw)
}

// resume takes a loaded session up.
func (h *Session) resume(ctx context.Context, s *loaded, cfg ResumeConfig, sub *session.Subscription) error {
	fresh := len(s.View().Live.Clients) == 0
	in := turn.Resume{
		Client: h.client, Model: cfg.Model, Effort: cfg.ReasoningEffort, Tier: cfg.ContextTier, Continue: cfg.ContinuePendingWork,
		Quiet: cfg.Quiet, Track: cfg.TrackFiles && s.captured.store.Dir != "", AlreadyInUse: h.others, Loaded: s.View().Live.Settings.Version == "", PID: os.Getpid(),
	}
	if cfg.Dir != nil {
		dir, err := h.rt.dir(*cfg.Dir)
		if err != nil {
			return err
		}
		in.Dir = &dir
	}
	if err := tiered(cfg.ContextTier); err != nil {
		return err
	}
	if err := h.rt.access(ctx, cfg); err != nil {
		return err
	}
	if cfg.brings() || cfg.GitHubToken != nil {
		s.models.replace(cfg, s.View().Model)
	}
	dir := s.View().Dir
	if in.Dir != nil {
		dir = *in.Dir
	}
	settings, err := h.rt.resumed(ctx, s, cfg, dir, fresh)
	if err != nil {
		return err
	}
	if cfg.MCPLogin != nil {
		s.servers.tokens.set(*cfg.MCPLogin)
	}
	if settings.Awaited, err = h.rt.serve(s, cfg.MCP, dir); err != nil {
		return err
	}
	in.Settings = &settings
	in.Select = s.agents.selection()
	if cfg.Model != nil && *cfg.Model != s.View().Model {
		s.requests.switched(nil, nil)
		s.models.bound(0)
	}
	s.requests.set(shape{cfg.ClientName, cfg.ReasoningSummary, cfg.Citations, cfg.Vision, cfg.Abilities, cfg.NoSockets})
	if cfg.Abilities != nil {
		s.models.bound(cfg.Abilities.window())
	}
	h.load(s)
	_, err = s.Do(context.WithoutCancel(ctx), in, sub)
	s.reposted()
	if err == nil {
		s.tellEquipment()
		h.showCanvases(cfg.CanvasProvider, cfg.Canvases, cfg.OpenCanvases)
		if cfg.Factories != nil {
			s.factories.declare(h.client.ID, cfg.Factories)
		}
	}
	return err
}

// resumed computes the settings of a session after a resume.
func (r *Runtime) resumed(ctx context.Context, s *loaded, cfg ResumeConfig, dir string, fresh bool) (turn.Settings, error) {
	v := s.View()
	out := v.Live.Settings
	if out.Version == "" { // just loaded
		out = turn.Settings{Traced: r.cfg.Observer != nil, ApproveAll: r.cfg.ApproveAll, Version: Version, FilesDir: r.workspace(s.ID()), Transcript: r.transcript(s.ID())}
	}
	if fresh {
		out.Streaming = false
	}
	if cfg.Trace.Parent != "" {
		out.Trace = cfg.Trace
	}
	if cfg.Streaming != nil {
		out.Streaming = *cfg.Streaming
	}
	if cfg.AvailableTools != nil {
		out.Available = filter(*cfg.AvailableTools)
	}
	if cfg.ExcludedTools != nil {
		out.Excluded = filter(*cfg.ExcludedTools)
	}
	if cfg.HiddenTools != nil {
		out.Hidden = filter(*cfg.HiddenTools)
	}
	if cfg.MaxAICredits != nil {
		out.Notice, out.Credits = limits(*cfg.MaxAICredits), *cfg.MaxAICredits
	}
	if cfg.Compaction != nil || !out.Compaction.Enabled && fresh {
		compaction, err := or(cfg.Compaction).settings()
		if err != nil {
			return out, err
		}
		out.Compaction = compaction
	}
	out.TokenLimit, out.Count = s.models.window(), true
	r.equip(s, dir, fresh || dir != v.Dir, cfg.Skills, cfg.ConfigDiscovery, cfg.PluginDirectories)
	out.FileHooks = s.plugins.hooked()
	renewed, err := s.agents.resume(cfg)
	if err != nil {
		return out, err
	}
	s.agents.settle(&out)
	if cfg.ToolSearch != nil {
		out.Search = cfg.ToolSearch.settings()
		s.searching.Store(out.Search.On)
	}
	own := s.offered(cfg.Answers)
	out.BuiltIns = own
	if err := sound(own, &out); err != nil {
		return out, err
	}
	if err := clash(own, cfg.Tools, out); err != nil {
		return out, err
	}
	changed, err := s.system.update(r.cfg.Dir, cfg.SystemMessage, instructionConfig{cfg.InstructionDirectories, cfg.OrganizationInstructions, cfg.SkipCustomInstructions})
	if err == nil && (changed || renewed || out.Wanted == 0 || dir != v.Dir) {
		err = s.system.renew(ctx, dir, &out)
	}
	return out, err
}

// warn tells once of settings that are not served.
func (h *Session) warn(names []string) {
	if len(names) > 0 {
		h.sess.Post(turn.Note{Payload: event.SessionWarning{WarningType: "configuration", Message: unserved(names)}}, nil, nil)
	}
}

// ID returns the session's id.
func (h *Session) ID() string { return h.id }

// Post hands the session a command without waiting: commands are taken in the
// order of the posts. done is called once, with the result that the command's
// type documents, from the session's own goroutine: it must not block, and may be
// nil.
func (h *Session) Post(c Command, done func(result any, err error)) {
	c, err := h.located(c)
	var body turn.Body
	if err == nil {
		body, err = c.body()
	}
	if err == nil {
		select {
		case <-h.gone:
			err = session.ErrUnloaded
		default:
		}
	}
	if err != nil {
		if done != nil {
			done(nil, wrap(c.op(), h.id, err))
		}
		return
	}
	if a, ok := body.(turn.ToolAnswer); ok {
		a.Redact = h.rt.keys.redact
		body = a
	}
	h.sess.Post(body, nil, func(v any, err error) {
		if s, ok := c.(settler); ok {
			v, err = s.settle(v, err)
		}
		if done != nil {
			done(v, wrap(c.op(), h.id, err))
		}
	})
	if set, ok := c.(Configure); ok && set.scanned {
		h.sess.tellSkills()
	}
}

// settler is a command that makes its result of what the core gave.
type settler interface {
	settle(v any, err error) (any, error)
}

// located is the command with what it needs of the machine: directories and
// attached files are looked at.
func (h *Session) located(c Command) (Command, error) {
	switch c := c.(type) {
	case Message:
		err := h.attach(&c)
		return c, err
	case Arrange:
		err := h.attach(&c.Message)
		return c, err
	}
	set, ok := c.(Configure)
	if !ok {
		return c, nil
	}
	if set.Dir != nil {
		dir, err := h.rt.dir(*set.Dir)
		if err != nil {
			return c, err
		}
		set.Dir = &dir
		if h.sess.skills.follow() {
			h.rt.scan(h.sess, dir)
			set.scanned = true
		}
	}
	err := h.sess.reoffer(&set)
	if err != nil {
		return c, err
	}
	h.sess.reshape(&set)
	if set.AvailableTools != nil {
		v := h.sess.View().Live.Settings
		v.Available = filter(*set.AvailableTools)
		if err := sound(v.BuiltIns, &v); err != nil {
			return c, err
		}
	}
	if set.SkipCustomInstructions != nil {
		set.renews, err = h.sess.system.update(h.rt.cfg.Dir, nil, instructionConfig{skip: set.SkipCustomInstructions})
	}
	return set, err
}

// do posts a command and waits for its result.
func (h *Session) do(ctx context.Context, c Command) (any, error) {
	type outcome struct {
		v   any
		err error
	}
	ch := make(chan outcome, 1)
	h.Post(c, func(v any, err error) { ch <- outcome{v, err} })
	select {
	case o := <-ch:
		return o.v, o.err
	case <-ctx.Done():
		return nil, wrap(c.op(), h.id, context.Cause(ctx))
	}
}

// Send sends a message and returns its id at once; the turn goes on.
func (h *Session) Send(ctx context.Context, m Message) (string, error) {
	v, err := h.do(ctx, m)
	if err != nil {
		return "", err
	}
	return v.(string), nil
}

// SendAndWait sends a message and waits until the session is idle again, seeded
// turns and queued messages included. It returns the last message of the
// assistant, nil where there was none. A turn that failed is an Upstream error.
// Called from a tool handler of the same session it would wait for its own
// caller: that is refused.
func (h *Session) SendAndWait(ctx context.Context, m Message) (*event.AssistantMessage, error) {
	const op = "session.send"
	if p := h.sess.View().Phase(); p == turn.Acting {
		return nil, &Error{Op: op, Kind: KindWrongState, SessionID: h.id, Msg: "a tool call of this session is in flight: waiting for the turn from inside it would never end. Use Send"}
	}
	events := h.Subscribe()
	defer events.Close()
	if _, err := h.Send(ctx, m); err != nil {
		return nil, err
	}
	var last *event.AssistantMessage
	var failure error
	for e, err := range events.All(ctx) {
		if err != nil {
			return last, wrap(op, h.id, err)
		}
		if e.AgentID != "" {
			continue // of a sub-agent
		}
		switch p := e.Payload.(type) {
		case event.AssistantMessage:
			last = &p
		case event.SessionError:
			failure = &Error{Op: op, Kind: KindUpstream, SessionID: h.id, Msg: p.Message}
		case event.SessionIdle:
			return last, failure
		}
	}
	return last, &Error{Op: op, Kind: KindClosing, SessionID: h.id, Msg: "the session ended before the turn did"}
}

// Abort ends the running turn. What is queued stays queued.
func (h *Session) Abort(ctx context.Context) error {
	_, err := h.do(ctx, Abort{})
	return err
}

// History returns what can be done to the session's history.
func (h *Session) History() History { return History{h} }

// History changes what the model remembers.
type History struct{ s *Session }

// ClearContext replaces the window by prompt, which becomes its first user
// message, and returns how many messages that removed. It is for tool handlers:
// with no tool call in flight it is refused, and nothing changes. The seeded turn
// starts by itself when the running turn has ended.
func (h History) ClearContext(ctx context.Context, prompt string) (int, error) {
	v, err := h.s.do(ctx, ClearContext{Prompt: prompt})
	if err != nil {
		return 0, err
	}
	return v.(int), nil
}

// Configure changes settings.
func (h *Session) Configure(ctx context.Context, c Configure) error {
	_, err := h.do(ctx, c)
	return err
}

// Info describes the session as it stands.
func (h *Session) Info() Info {
	i := describe(h.sess.View())
	i.Modified = i.Started
	if ms := h.sess.written.Load(); ms > 0 {
		i.Modified = time.UnixMilli(ms)
	}
	return i
}

// Messages returns the session's persisted events, oldest first: one JSON object
// each, as clients see them. A clear hides nothing.
func (h *Session) Messages() ([]json.RawMessage, error) {
	select {
	case <-h.gone:
		return nil, notFound("session.getMessages", h.id)
	default:
	}
	events, err := session.History(h.sess.Log())
	return events, wrap("session.getMessages", h.id, err)
}

// Resume takes the session up again with another configuration, on the same
// attachment: tools given replace those declared before.
func (h *Session) Resume(ctx context.Context, cfg ResumeConfig) error {
	const op = "session.resume"
	if cfg.Tools != nil {
		reg, err := tool.NewRegistry(cfg.Tools)
		if err != nil {
			return &Error{Op: op, Kind: KindInvalidParams, SessionID: h.id, Msg: err.Error(), Err: err}
		}
		h.client.Tools = reg
	}
	if cfg.OnPermission != nil {
		h.asker = cfg.OnPermission
	}
	if cfg.OnHook != nil {
		h.hooker = cfg.OnHook
	}
	if cfg.OnRequest != nil {
		h.asked = requester{cfg.Answers, cfg.OnRequest}
	}
	h.client.Permission = h.asker != nil || cfg.RequestPermission
	h.client.Hooks = h.hooker != nil
	h.offers(cfg.Elicits, cfg.Commands)
	h.client.Quiet = cfg.QuietAgents
	err := h.resume(ctx, h.sess, cfg, nil)
	h.warn(cfg.Unserved)
	if err == nil && cfg.brings() {
		h.warnProvider()
	}
	return wrap(op, h.id, err)
}

// Close detaches. Where nobody else is attached the session ends in this process:
// a running turn is stopped, session.shutdown is written, and everything is
// released when Close returns; it can be resumed. Closing twice is fine.
func (h *Session) Close(ctx context.Context) error {
	var err error
	h.ended.Do(func() {
		var ended any
		close(h.gone)
		ended, err = h.sess.Do(context.WithoutCancel(ctx), turn.Detach{ClientID: h.client.ID}, nil)
		if errors.Is(err, session.ErrUnloaded) {
			err = nil
		}
		h.left()
		if ended == true {
			select {
			case <-h.sess.Done():
			case <-ctx.Done():
				err = context.Cause(ctx)
			}
			return
		}
		h.events.Close()
	})
	return wrap("session.destroy", h.id, err)
}

// Drop detaches as a lost connection does: a running turn goes on until it ends
// or needs a client, and open calls and questions stay open in the log where
// nobody else is attached.
func (h *Session) Drop() {
	h.ended.Do(func() {
		close(h.gone)
		h.sess.Post(turn.Detach{ClientID: h.client.ID, Lost: true}, nil, func(any, error) { h.left() })
		h.events.Close()
	})
}

// Info describes a session.
type Info struct {
	ID              string
	Model           string
	ReasoningEffort string
	ContextTier     string // as a host chose it; "" is none
	Mode            string
	Name            string // as a host set it
	AutoNamed       bool   // Name is a guess: one that a host sets takes its place
	Title           string // Name, else made of the first prompt
	Dir             string
	Repository      Repository // at Dir, as far as a host told
	Started         time.Time
	Modified        time.Time
	Loaded          bool // in this process
	Processing      bool // a turn is running
	Acting          bool // tool calls are open
	Remote          bool
	Clears          int
	Messages        int // in the window
	WindowTokens    int // estimated
	Pending         []PendingPermission
	Queue           []Pending
}

// PendingPermission is a question that is open.
type PendingPermission struct {
	RequestID  string
	ToolCallID string
	ToolName   string
	// Description is the tool's; "" where it is not declared at the moment.
	Description string
	Arguments   json.RawMessage
}

// Pending is a message or slash command that waits.
type Pending struct {
	MessageID string
	Prompt    string // or the command's text
	Display   string // for people; "" shows Prompt
	AgentMode string
	Immediate bool // it steers the running turn
	Command   bool
}

func describe(v *turn.State) Info {
	i := Info{
		ID: v.SessionID, Model: v.Model, ReasoningEffort: v.Effort, ContextTier: v.Tier, Mode: v.Mode, Name: v.Name, Title: v.Name, Dir: v.Dir,
		AutoNamed: v.AutoNamed, Repository: repository(v.Place), Started: v.Started, Loaded: true, Processing: v.Loop.Open && !v.Live.Parked, Acting: v.Phase() == turn.Acting, Remote: v.Live.Settings.Remote,
		Clears: int(v.Clears), Messages: v.Window.Len(), WindowTokens: v.Window.Tokens(),
	}
	if i.Title == "" {
		i.Title = v.Title
	}
	for _, c := range v.Loop.Calls {
		if c.Permission != "" {
			p := PendingPermission{RequestID: c.Permission, ToolCallID: c.ID, ToolName: c.Name, Arguments: c.Args}
			if offer, ok := v.Live.Offers.Lookup(c.Name); ok {
				p.Description = offer.Description
			}
			i.Pending = append(i.Pending, p)
		}
	}
	i.Queue = pending(v)
	return i
}
