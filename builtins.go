package transom

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/internal/session"
	"github.com/transom-run/transom/internal/turn"
	"github.com/transom-run/transom/tool"
)

// BuiltIns are Transom's own tools, for one session.
type BuiltIns interface {
	// Tools lists the tools, always in the same order.
	Tools() []tool.Tool
	// Todos reads the model's list of what is to be done, in the order of its
	// making, and what of it waits for what. A session without a list has none.
	Todos(context.Context) ([]Todo, []TodoDependency, error)
	// Close ends what the tools started.
	Close() error
}

// Todo is an entry of the model's list of what is to be done; fields that the
// model left out are "".
type Todo struct {
	ID          string `json:"id,omitempty"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	Status      string `json:"status,omitempty"`
}

// TodoDependency says that one entry waits for another.
type TodoDependency struct {
	TodoID    string `json:"todoId"`
	DependsOn string `json:"dependsOn"`
}

// BuiltInContext is what built-in tools may use of their session.
type BuiltInContext struct {
	SessionID string
	// Dir is the session's working directory; it may change.
	Dir func() string
	// Dirs are all directories where the tools may work without asking, Dir among
	// them; they may change.
	Dirs func() []string
	// Files is the directory that belongs to the session; "" is none.
	Files string
	// Kept are the session's files where its host keeps them, and Files is "" then;
	// nil: nobody does.
	Kept *KeptFiles
	// Home is the directory of Transom's own files.
	Home string
	// Environ is the environment of child processes, without what the runtime was
	// given to keep; HideEnv names variables that must not be in it whatever they
	// hold, also where they come to be later.
	Environ []string
	HideEnv func(name string) bool
	// Secrets are values that must not reach a child process.
	Secrets func() []string
	// Ask puts a request of the protocol to a host that answers it, such as
	// "userInput.request"; without one it is a PeerGone error.
	Ask func(ctx context.Context, method string, params any) (json.RawMessage, error)
	// Complete tells the hosts that the model holds its task to be done.
	Complete func(summary string)
	// BeforeWrite is to be told of each file that a tool is about to write to, and
	// may refuse: nothing must be written then.
	BeforeWrite func(ctx context.Context, change FileChange) error
	// TodosChanged tells the hosts that the list may have changed.
	TodosChanged func()
	// ExitPlan asks the host's user to approve a plan, and puts the session into the
	// mode that was chosen.
	ExitPlan func(context.Context, PlanQuestion) (PlanAnswer, error)
}

// RequestHandler answers requests of the protocol that a runtime makes of its
// host: method is a name such as "userInput.request", params and result are its
// objects.
type RequestHandler func(ctx context.Context, method string, params json.RawMessage) (result json.RawMessage, err error)

// hostTools names the built-in tools that need a host to answer a request, each with
// the request.
var hostTools = [][2]string{
	{"ask_user", "userInput.request"},
	{"exit_plan_mode", "exitPlanMode.request"},
}

// ownTools are a session's built-in tools, made when they are first needed: a
// session whose host filters them out needs none.
type ownTools struct {
	once sync.Once
	make func() (BuiltIns, error) // nil: there are none
	set  BuiltIns
	err  error
}

// get makes the tools; nil where there are none.
func (o *ownTools) get() (BuiltIns, error) {
	if o.make == nil {
		return nil, nil
	}
	o.once.Do(func() { o.set, o.err = o.make() })
	return o.set, o.err
}

// close ends what the tools started, where they were made; they are not made after it.
func (o *ownTools) close() error {
	o.once.Do(func() { o.err = session.ErrUnloaded })
	if o.set == nil {
		return nil
	}
	return o.set.Close()
}

// builtIns makes the built-in tools of a session, where there are any.
func (r *Runtime) builtIns(s *loaded, id string) (BuiltIns, error) {
	return r.cfg.BuiltIns(BuiltInContext{
		SessionID: id, Files: r.storage().Dir(id), Kept: r.keptFiles(id), Home: r.cfg.Home, Environ: r.environ(), HideEnv: hiddenVariable, Secrets: r.keys.list, Ask: s.ask,
		Dir:          func() string { return s.View().Dir },
		Dirs:         func() []string { _, all := directories(s.View()); return all },
		Complete:     func(summary string) { s.tell(event.TaskComplete{Summary: summary, Success: true}) },
		BeforeWrite:  s.capture,
		TodosChanged: func() { s.tell(event.TodosChanged{}) },
		ExitPlan:     func(ctx context.Context, q PlanQuestion) (PlanAnswer, error) { return r.exitPlan(ctx, s, q) },
	})
}

// offered are the built-in tools that the attached hosts, and one that attaches
// now, make possible. They are made when somebody looks at them, which nobody does
// while the session's filters let none of them through.
func (s *loaded) offered(answers []string) *tool.Registry {
	var without []string // tools that nobody could answer
	for _, t := range hostTools {
		name, method := t[0], t[1]
		if !slices.Contains(answers, method) && !s.answered(method) {
			without = append(without, name)
		}
	}
	searching := s.searching.Load()
	return tool.Deferred(func() ([]tool.Tool, error) { return s.ownTools(without, searching) })
}

// ownTools lists the built-in tools, but for some.
func (s *loaded) ownTools(without []string, searching bool) ([]tool.Tool, error) {
	own, err := s.own.get()
	if err != nil {
		return nil, err
	}
	var tools []tool.Tool
	if own != nil {
		tools = slices.DeleteFunc(own.Tools(), func(t tool.Tool) bool { return slices.Contains(without, t.Name) })
	}
	if t, ok := s.skillTool(); ok {
		tools = append(tools, t)
	}
	if own != nil || len(s.agents.custom()) > 0 {
		agents, err := s.agents.tools()
		if err != nil {
			return nil, err
		}
		tools = append(tools, agents...)
	}
	if searching {
		tools = append(tools, s.searchTool())
	}
	return tools, nil
}

// sound reports what is wrong with built-in tools that the filters may let through.
func sound(own *tool.Registry, s *turn.Settings) error {
	if !s.Admits(tool.BuiltIn) {
		return nil
	}
	return own.Err()
}

// reoffer makes the built-in tools anew where a command changes which there are.
func (s *loaded) reoffer(set *Configure) error {
	if set.reoffers = set.scanned || set.ToolSearch != nil; !set.reoffers {
		return nil
	}
	before := s.searching.Load()
	if set.ToolSearch != nil {
		s.searching.Store(set.ToolSearch.settings().On)
	}
	own := s.offered(nil)
	v := s.View()
	err := sound(own, &v.Live.Settings)
	for _, client := range v.Live.Clients {
		var tools []tool.Tool
		for _, t := range client.Tools.All() {
			tools = append(tools, t.Tool)
		}
		err = errors.Join(err, clash(own, tools, v.Live.Settings))
	}
	if err != nil {
		s.searching.Store(before)
		return err
	}
	set.own = own
	return nil
}

// requester answers requests for one client.
type requester struct {
	answers []string
	handle  RequestHandler
}

// answered reports whether an attached client answers a method.
func (s *loaded) answered(method string) bool { return s.requester(method) != nil }

// requester finds the newest attached client that answers a method.
func (s *loaded) requester(method string) RequestHandler {
	clients := s.View().Live.Clients
	for i := len(clients) - 1; i >= 0; i-- {
		if v, ok := s.requesters.Load(clients[i].ID); ok {
			if r := v.(requester); slices.Contains(r.answers, method) {
				return r.handle
			}
		}
	}
	return nil
}

// ask puts a request to a host.
func (s *loaded) ask(ctx context.Context, method string, params any) (json.RawMessage, error) {
	handle := s.requester(method)
	if handle == nil {
		return nil, &Error{Op: method, Kind: KindPeerGone, SessionID: s.ID(), Msg: "no client is attached that answers " + method}
	}
	raw, err := json.Marshal(params)
	if err != nil {
		return nil, err
	}
	return handle(ctx, method, raw)
}

// clash names the first of a host's tools that has the name of a built-in one
// without saying that it means to take its place.
func clash(own *tool.Registry, tools []tool.Tool, s turn.Settings) error {
	if !s.Admits(tool.BuiltIn) {
		return nil
	}
	for _, t := range tools {
		b, taken := own.Lookup(t.Name)
		if !taken || t.OverridesBuiltIn {
			continue
		}
		if hidden := s.Available.Set && !s.Available.Matches(b.Source, b.Name) || s.Excluded.Matches(b.Source, b.Name); !hidden {
			return &Error{Kind: KindInvalidParams, Msg: "the tool " + t.Name + " has the name of a built-in tool: choose another name, or set overridesBuiltInTool to take its place"}
		}
	}
	return nil
}

// Todos reads the model's list of what is to be done, which the session's own
// tools keep; a session without a list has none.
func (h *Session) Todos(ctx context.Context) ([]Todo, []TodoDependency, error) {
	own, err := h.sess.own.get()
	if own == nil || err != nil {
		return nil, nil, wrap("session.plan.readSqlTodosWithDependencies", h.id, err)
	}
	todos, waits, err := own.Todos(ctx)
	return todos, waits, wrap("session.plan.readSqlTodosWithDependencies", h.id, err)
}

// cleanup ends what the built-in tools started.
func (s *loaded) cleanup() error { return s.own.close() }
