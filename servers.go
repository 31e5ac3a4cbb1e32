package transom

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/internal/turn"
	"github.com/transom-run/transom/mcp"
	"github.com/transom-run/transom/tool"
)

// MCPConfig says which MCP servers a session has. Nothing is connected to before
// the first message, or before a host asks how the servers stand.
type MCPConfig struct {
	// Servers are the host's own, by name. The model calls a tool of one by
	// server-tool.
	Servers map[string]mcp.Server
	// Disabled names servers that must not run, whoever configured them.
	Disabled []string
	// Indirect: values of Env and Headers that name a variable of the runtime's
	// environment (NAME, $NAME or ${NAME}) stand for its value.
	Indirect bool
	// Apps: the host can show pages of servers.
	Apps bool
	// GitHub asks for GitHub's own MCP server, with the session's account; nil: it is
	// left out.
	GitHub *GitHubMCP
}

// GitHubMCP says what the session wants of GitHub's MCP server.
type GitHubMCP struct {
	AllTools bool     // the whole of it, not only what reads
	Toolsets []string // further ones
	Tools    []string // further ones
	Insiders bool
}

// servers are the MCP servers of a session. The zero value has none and costs
// nothing.
type servers struct {
	setting sync.Mutex // held while the configuration changes; never by a callback

	mu      sync.Mutex
	host    mcp.Host              // nil: none was ever configured
	cfg     MCPConfig             // as it was given last
	all     map[string]mcp.Server // what came of it, and of files
	off     []string
	context json.RawMessage // what pages are told about the host
	count   uint64          // of what the session was given to wait for

	samplings samplings
	tokens    loginKept
	loads     loads

	posting sync.Mutex // held from reading the tools to posting them
	posted  []tool.Tool
	said    map[string]string // what the newest system message is to hold of servers
}

// maxConnect bounds how long the first model call waits for servers: those that
// take longer bring their tools when they come.
const maxConnect = 30 * time.Second

// hostOf returns the session's MCP host; nil where it has no servers.
func (s *loaded) hostOf() mcp.Host {
	s.servers.mu.Lock()
	defer s.servers.mu.Unlock()
	return s.servers.host
}

// tools finds out what a new session has of tools besides those of its host.
func (r *Runtime) tools(s *loaded, cfg SessionConfig, set *turn.Settings) (err error) {
	s.servers.tokens.set(cfg.MCPLogin)
	if set.Awaited, err = r.serve(s, cfg.MCP, cfg.Dir); err != nil {
		return err
	}
	set.Search = cfg.ToolSearch.settings()
	s.searching.Store(set.Search.On)
	set.BuiltIns = s.offered(cfg.Answers)
	if err := sound(set.BuiltIns, set); err != nil {
		return err
	}
	return clash(set.BuiltIns, cfg.Tools, *set)
}

// furnish gives a new session what it works with: plugins, skills, agents, tools
// and the system message. It returns what the session's own agent is; nil is the
// default one.
func (r *Runtime) furnish(ctx context.Context, s *loaded, cfg SessionConfig, set *turn.Settings) (*event.SubagentSelected, error) {
	r.equip(s, cfg.Dir, true, cfg.Skills, &cfg.ConfigDiscovery, cfg.PluginDirectories)
	set.FileHooks = s.plugins.hooked()
	selected, err := s.agents.begin(cfg)
	if err != nil {
		return nil, err
	}
	s.agents.settle(set)
	if err := r.tools(s, cfg, set); err != nil {
		return nil, err
	}
	s.requests.set(shape{&cfg.ClientName, &cfg.ReasoningSummary, &cfg.Citations, cfg.Vision, cfg.Abilities, &cfg.NoSockets})
	return selected, s.system.begin(ctx, r.cfg.Dir, cfg, set)
}

// serve takes a session's configuration of MCP servers; nil leaves it as it is. It
// returns the number of what the next model call waits for.
func (r *Runtime) serve(s *loaded, cfg *MCPConfig, dir string) (awaited uint64, err error) {
	v := &s.servers
	v.setting.Lock()
	defer v.setting.Unlock()
	if cfg == nil {
		v.mu.Lock()
		now := v.cfg
		v.mu.Unlock()
		cfg = &now
	}
	all, disabled, err := r.configured(s, cfg, dir)
	if err != nil {
		return 0, err
	}
	v.mu.Lock()
	v.cfg = *cfg
	same := maps.EqualFunc(v.all, all, mcp.Server.Same) && slices.Equal(v.off, disabled)
	v.all, v.off = all, disabled
	v.mu.Unlock()
	if same || len(all) == 0 && s.hostOf() == nil {
		return v.awaited(false), nil
	}
	h, err := r.hosted(s)
	if err != nil {
		return 0, err
	}
	h.Set(all, disabled)
	return v.awaited(true), nil
}

// awaited counts what the next model call waits for, one more where there is news.
func (v *servers) awaited(news bool) uint64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	if news {
		v.count++
	}
	return v.count
}

// hosted returns the session's host of servers, and makes it where there is none.
func (r *Runtime) hosted(s *loaded) (mcp.Host, error) {
	v := &s.servers
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.host == nil {
		h, err := r.newHost(s, "", &v.cfg, hostNews{s.changed, s.serverCame, s.listChanged})
		if err != nil {
			return nil, err
		}
		v.host = h
	}
	return v.host, nil
}

// hostNews is who is told of what a host of servers comes to.
type hostNews struct {
	changed func()          // its tools, or the state of its servers, changed
	came    func(mcp.State) // a server came to a state
	lists   func(server, what string)
}

// newHost makes a host of MCP servers that works for a session, or for a kind of
// agent in it; "" is the session.
func (r *Runtime) newHost(s *loaded, kind string, cfg *MCPConfig, news hostNews) (mcp.Host, error) {
	if r.cfg.MCP == nil {
		return nil, &Error{Kind: KindUnsupported, Msg: "this runtime was made without MCP: give transom.Config.MCP, such as host.New, or leave the MCP servers out"}
	}
	c := mcp.Context{
		SessionID: s.ID(), Agent: kind, Environ: r.environ, Redact: r.keys.redact, Changed: news.changed, Apps: cfg.Apps,
		Logger:       r.cfg.Logger,
		Dir:          func() string { return s.View().Dir },
		Roots:        func() []string { _, all := directories(s.View()); return all },
		StateChanged: news.came,
		ListChanged:  news.lists,
		Warn:         func(text string) { s.tell(event.SessionWarning{WarningType: "mcp", Message: text}) },
		BeforeCall:   s.beforeCall,
		Progress: func(c tool.Call, text string, done func()) {
			s.Post(turn.Note{Agent: c.AgentID, Payload: event.ToolProgress{ToolCallID: c.ID, ProgressMessage: text}}, nil, func(any, error) { done() })
		},
		Elicits:   func() bool { return s.View().Elicits() },
		Elicit:    s.elicitFor,
		Samples:   func() bool { return s.taker(event.TypeSamplingRequested) },
		Sample:    s.sampleFor,
		Authorize: func(ctx context.Context, a mcp.AuthRequest) (mcp.Token, error) { return r.authorize(ctx, s, a) },
		Vault:     sessionVault{r, s}, Secret: r.keys.hold, ClientMetadata: s.servers.tokens.metadata,
	}
	c.Apps = c.Apps && r.appsEnabled()
	c.Getenv = r.cfg.Getenv
	c.Indirect = func() bool {
		s.servers.mu.Lock()
		defer s.servers.mu.Unlock()
		return s.servers.cfg.Indirect
	}
	return r.cfg.MCP(c)
}

// connect begins to connect to what the session, and a kind of agent, has of
// servers, and waits for them; those that failed hold nobody up. How they stand is
// told where it is not a sub-agent that waits.
func (s *loaded) connect(ctx context.Context, kind string, sub bool) {
	ctx, cancel := context.WithTimeout(ctx, maxConnect)
	defer cancel()
	defer s.servers.loads.wait(cancel)()
	h := s.hostOf()
	if h != nil {
		h.Start()
	}
	s.agents.servers.connect(ctx, kind)
	if h == nil {
		return
	}
	_ = h.Settle(ctx) // whoever is late comes later
	s.changed()
	if !sub {
		s.tell(event.MCPServersLoaded{Servers: serverInfos(h.States())})
	}
}

func serverInfos(states []mcp.State) []event.MCPServerInfo {
	out := make([]event.MCPServerInfo, 0, len(states))
	for _, st := range states {
		out = append(out, event.MCPServerInfo{
			Name: st.Name, Status: string(st.Status), Source: string(st.Config.Source), Error: st.Error, Transport: st.Transport,
			PluginName: st.Config.SourcePlugin, PluginVersion: st.Config.SourcePluginVersion,
		})
	}
	return out
}

// serversSay is what the connected servers say that a kind of agent has, by name; ""
// is the session's own agent. What a kind has of its own goes before the session's.
func (s *loaded) serversSay(kind string) map[string]string {
	out := map[string]string{}
	if h := s.hostOf(); h != nil {
		maps.Copy(out, h.Instructions())
	}
	if kind == "" {
		return out
	}
	own := &s.agents.servers
	if k := own.of(kind); k != nil {
		own.mu.Lock()
		h := k.host
		own.mu.Unlock()
		if h != nil {
			maps.Copy(out, h.Instructions())
		}
	}
	return out
}

// changed gives the model the tools that the servers have now.
func (s *loaded) changed() {
	h := s.hostOf()
	if h == nil {
		return
	}
	v := &s.servers
	v.posting.Lock()
	defer v.posting.Unlock()
	tools, said := h.Tools(), h.Instructions()
	told := maps.Equal(said, v.said)
	if told && slices.EqualFunc(tools, v.posted, func(a, b tool.Tool) bool { return a.Origin == b.Origin }) {
		return
	}
	reg, err := tool.NewRegistry(tools)
	if err != nil {
		s.tell(event.SessionWarning{WarningType: "mcp", Message: "The tools of the MCP servers are not offered: " + err.Error()})
		return
	}
	v.posted, v.said = tools, said
	s.Post(turn.Configure{Settings: func(set *turn.Settings) {
		set.Servers = reg
		if !told && set.Wanted > 0 {
			set.Wanted++ // the system message holds what servers say
		}
	}}, nil, nil)
}

// reposted forgets what was posted, and posts it again: settings that were made
// meanwhile may have lost it.
func (s *loaded) reposted() {
	s.servers.posting.Lock()
	s.servers.posted, s.servers.said = nil, nil
	s.servers.posting.Unlock()
	s.changed()
	s.renewOwn()
}

// switchedOff names the servers that must not run, whoever configured them.
func (s *loaded) switchedOff() []string {
	s.servers.mu.Lock()
	defer s.servers.mu.Unlock()
	return s.servers.off
}

// serverCame tells what became of a server. One that broke down is connected to
// anew before the next model call.
func (s *loaded) serverCame(st mcp.State) {
	if st.Status == mcp.NotStarted {
		return
	}
	s.tell(event.MCPServerStatusChanged{ServerName: st.Name, Status: string(st.Status), Error: st.Error})
	if !st.Retry {
		return
	}
	n := s.servers.awaited(true)
	s.Post(turn.Configure{Settings: func(set *turn.Settings) { set.Awaited = max(set.Awaited, n) }}, nil, nil)
}

func (s *loaded) listChanged(server, what string) {
	switch what {
	case "tools":
		s.tell(event.MCPToolsListChanged{ServerName: server})
	case "prompts":
		s.tell(event.MCPPromptsListChanged{ServerName: server})
	case "resources":
		s.tell(event.MCPResourcesListChanged{ServerName: server})
	}
}

// beforeCall asks the hooks about a call to a server. A hook that gave no verdict
// because it failed has not consented.
func (s *loaded) beforeCall(ctx context.Context, c mcp.PreCall) (map[string]any, error) {
	v := s.View()
	if !v.Hooked() {
		return nil, nil
	}
	fields := map[string]any{
		"sessionId": s.ID(), "timestamp": time.Now().UnixMilli(), "cwd": v.Dir,
		"serverName": c.Server, "toolName": c.Tool, "arguments": c.Arguments, "toolCallId": c.CallID,
	}
	if c.AgentID != "" { // as all hooks are told of a sub-agent
		fields["sessionId"], fields["parentSessionId"] = c.AgentID, s.ID()
	}
	input, err := json.Marshal(fields)
	if err != nil {
		return nil, err
	}
	raw, err := s.AskHooks(ctx, turn.HookPreMCP, input)
	if err != nil {
		return nil, errors.New(turn.DeniedByHook(turn.HookPreMCP, "the hook gave no verdict: "+err.Error()))
	}
	var out struct {
		Meta map[string]any `json:"metaToUse"`
	}
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &out); err != nil {
			return nil, errors.New(turn.DeniedByHook(turn.HookPreMCP, "its metaToUse is not an object"))
		}
	}
	return out.Meta, nil
}

// elicitFor asks the session's user in the name of a server.
func (s *loaded) elicitFor(ctx context.Context, server string, e mcp.Elicitation) (mcp.ElicitationAnswer, error) {
	if !s.View().Elicits() {
		return mcp.ElicitationAnswer{Action: "cancel"}, nil
	}
	a, err := s.elicit(ctx, Elicitation{Message: e.Message, Schema: e.Schema, Mode: e.Mode, URL: e.URL, Server: server})
	return mcp.ElicitationAnswer{Action: a.Action, Content: a.Content}, err
}
