package transom

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/internal/agents"
	"github.com/transom-run/transom/internal/lazy"
	"github.com/transom-run/transom/internal/prompt"
	"github.com/transom-run/transom/internal/turn"
	"github.com/transom-run/transom/tool"
)

// Agent is a kind of agent: one that the model, or a host, can start as a
// sub-agent, or that the session's own agent can be.
type Agent struct {
	// Name identifies it among the session's agents.
	Name        string
	DisplayName string // "" is Name
	// Description tells the model what it is for.
	Description string
	// Prompt is what the agent is told of itself.
	Prompt string
	// Tools are names or patterns of the tools that it may use; nil is all that the
	// session has.
	Tools []string
	// NoInfer: the model is not offered to start it.
	NoInfer bool
	// Skills are loaded into its context from the start.
	Skills []string
	// Model and ReasoningEffort are those of the agent's requests; "" is the
	// session's.
	Model           string
	ReasoningEffort string
	// MCPServers are its own servers by name, as the protocol configures them: they
	// are connected to when it first works, and their tools are offered to it alone.
	MCPServers map[string]any
	// Path is the file that it was read from, Source where that is: "user",
	// "project", "plugin" or "builtin"; "" for a host's own.
	Path   string
	Source string
}

// agentSet is what a session knows of agents.
type agentSet struct {
	id string // of the session

	// skill is the text of a skill as the conversation has it; "" where there is none.
	skill func(name string) string

	mu       sync.Mutex
	own      []agents.Definition // of the host
	found    []agents.Definition // in files
	excluded []string            // built-in ones that are not there
	disabled []string            // that are not started
	prompts  map[string]string   // of agents whose prompt a host has changed
	selected string              // what the session's own agent is; "" is the default one
	before   modelChoice         // what answered before an agent with a model was selected

	servers ownServers
}

type modelChoice struct{ model, effort string }

func definition(a Agent) agents.Definition {
	return agents.Definition{
		Name: a.Name, DisplayName: cmp.Or(a.DisplayName, a.Name), Description: a.Description, Prompt: a.Prompt, Tools: a.Tools,
		NoInfer: a.NoInfer, Skills: a.Skills, Model: a.Model, ReasoningEffort: a.ReasoningEffort, MCPServers: a.MCPServers,
	}
}

func described(d agents.Definition) Agent {
	return Agent{
		Name: d.Name, DisplayName: cmp.Or(d.DisplayName, d.Name), Description: d.Description, Prompt: d.Prompt, Tools: d.Tools, NoInfer: d.NoInfer,
		Skills: d.Skills, Model: d.Model, ReasoningEffort: d.ReasoningEffort, MCPServers: d.MCPServers, Path: d.Path, Source: d.Source,
	}
}

// update takes what a host configures; nil leaves a part as it is.
func (s *agentSet) update(own []Agent, excluded *[]string) error {
	var defs []agents.Definition
	for _, a := range own {
		switch {
		case strings.TrimSpace(a.Name) == "":
			return &Error{Kind: KindInvalidParams, Msg: "a custom agent has no name: give each one a name of its own"}
		case slices.ContainsFunc(defs, func(d agents.Definition) bool { return d.Name == a.Name }):
			return &Error{Kind: KindInvalidParams, Msg: "two custom agents are called " + a.Name + ": give each one a name of its own"}
		}
		defs = append(defs, definition(a))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if own != nil {
		s.own, s.prompts = defs, nil
	}
	if excluded != nil {
		s.excluded = slices.Clone(*excluded)
	}
	return nil
}

// custom lists the agents that are not Transom's own.
func (s *agentSet) custom() []agents.Definition {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := slices.Clone(s.own)
	for _, d := range s.found {
		if !slices.ContainsFunc(s.own, func(o agents.Definition) bool { return o.Name == d.Name }) {
			list = append(list, d)
		}
	}
	return s.prompted(list)
}

// prompted puts the prompts that a host has changed into a list. mu is held.
func (s *agentSet) prompted(list []agents.Definition) []agents.Definition {
	for i := range list {
		if p, ok := s.prompts[list[i].Name]; ok {
			list[i].Prompt = p
		}
	}
	return list
}

// builtIn lists Transom's own agents, but for those that are excluded and those
// that a custom one takes the place of.
func (s *agentSet) builtIn() []agents.Definition {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.prompted(slices.DeleteFunc(agents.BuiltIn(), func(d agents.Definition) bool {
		return slices.Contains(s.excluded, d.Name) || slices.ContainsFunc(slices.Concat(s.own, s.found), func(o agents.Definition) bool { return o.Name == d.Name })
	}))
}

// find looks an agent up, whoever's it is.
func (s *agentSet) find(name string) (agents.Definition, bool) {
	for _, d := range slices.Concat(s.custom(), s.builtIn()) {
		if d.Name == name {
			return d, true
		}
	}
	return agents.Definition{}, false
}

// startable are the agents that can be started: infer says by the model.
func (s *agentSet) startable(infer bool) []agents.Definition {
	all := slices.Concat(s.builtIn(), s.custom())
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(all, func(d agents.Definition) bool {
		return infer && d.NoInfer || slices.Contains(s.disabled, d.Name)
	})
}

// kinds are the agents that can be started, as the core knows them. Sessions that
// have Transom's own and no others share one list.
func (s *agentSet) kinds() []turn.AgentDef {
	s.mu.Lock()
	usual := len(s.own)+len(s.found)+len(s.excluded)+len(s.disabled) == 0
	s.mu.Unlock()
	if usual {
		return usualKinds.Get()
	}
	return defined(s.startable(false))
}

var usualKinds = lazy.Value[[]turn.AgentDef]{Make: func() []turn.AgentDef { return defined(agents.BuiltIn()) }}

func defined(list []agents.Definition) []turn.AgentDef {
	var out []turn.AgentDef
	for _, d := range list {
		out = append(out, turn.AgentDef{
			Name: d.Name, DisplayName: d.DisplayName, Description: d.Description, Tools: filter(d.Tools), Model: d.Model, Effort: d.ReasoningEffort,
			NoInfer: d.NoInfer,
		})
	}
	return out
}

// tools are those by which the model starts agents.
func (s *agentSet) tools() ([]tool.Tool, error) { return agents.Tools(s.startable(true)) }

// current is what the session's own agent is.
func (s *agentSet) current() (agents.Definition, bool) {
	s.mu.Lock()
	name := s.selected
	s.mu.Unlock()
	if name == "" {
		return agents.Definition{}, false
	}
	return s.find(name)
}

// choose notes which agent is selected; "" is the default one.
func (s *agentSet) choose(name string) (*event.SubagentSelected, error) {
	p := &event.SubagentSelected{}
	if name != "" {
		d, ok := s.find(name)
		if !ok {
			return nil, s.missing(name)
		}
		p = &event.SubagentSelected{AgentName: d.Name, AgentDisplayName: d.DisplayName, Tools: d.Tools}
	}
	s.mu.Lock()
	s.selected = name
	s.mu.Unlock()
	return p, nil
}

// answer puts the model of the agent that was selected into a session's beginning.
func (s *agentSet) answer(begin *turn.Begin) {
	if d, ok := s.current(); ok {
		s.mu.Lock()
		s.before = modelChoice{begin.Model, begin.Effort}
		s.mu.Unlock()
		begin.Model, begin.Effort = cmp.Or(d.Model, begin.Model), cmp.Or(d.ReasoningEffort, begin.Effort)
	}
}

// resume takes what a resume brings, and reports whether the system message may be
// another one.
func (s *agentSet) resume(cfg ResumeConfig) (renewed bool, err error) {
	if err := s.update(cfg.Agents, cfg.ExcludedAgents); err != nil {
		return false, err
	}
	return s.reselect(cfg)
}

// begin takes what a new session begins with.
func (s *agentSet) begin(cfg SessionConfig) (*event.SubagentSelected, error) {
	if err := s.update(cfg.Agents, &cfg.ExcludedAgents); err != nil || cfg.Agent == "" {
		return nil, err
	}
	return s.choose(cfg.Agent)
}

// reselect finds out what the session's own agent is after a resume, and reports
// whether the system message may be another one. An agent that is not there any
// more is the default one.
func (s *agentSet) reselect(cfg ResumeConfig) (renewed bool, err error) {
	if cfg.Agent != nil {
		_, err := s.choose(*cfg.Agent)
		return true, err
	}
	s.mu.Lock()
	name := s.selected
	s.mu.Unlock()
	if name == "" {
		return false, nil
	}
	if _, ok := s.find(name); ok {
		return cfg.Agents != nil, nil
	}
	_, err = s.choose("")
	return true, err
}

// selection says what the session's own agent is.
func (s *agentSet) selection() *event.SubagentSelected {
	d, ok := s.current()
	if !ok {
		return &event.SubagentSelected{}
	}
	return &event.SubagentSelected{AgentName: d.Name, AgentDisplayName: d.DisplayName, Tools: d.Tools}
}

func (s *agentSet) missing(name string) error {
	var names []string
	for _, d := range s.custom() {
		names = append(names, d.Name)
	}
	msg := "there is no agent " + name + " in this session"
	if len(names) > 0 {
		msg += ": its agents are " + strings.Join(names, ", ")
	} else {
		msg += ", which has no custom agents"
	}
	return &Error{Kind: KindInvalidParams, Msg: msg}
}

// settle puts what a session knows of agents into its settings.
func (s *agentSet) settle(v *turn.Settings) {
	v.Agents = s.kinds()
	d, _ := s.current()
	v.Agent, v.Kind = filter(d.Tools), d.Name
	v.OwnServers = s.servers.update(s.custom(), v.OwnServers)
}

// agentMessage is the system message of a sub-agent.
func (m *systemMessage) agentMessage(ctx context.Context, dir, kind string) (string, error) {
	d, ok := m.agents.find(kind)
	if !ok {
		return "", m.agents.missing(kind) // it was there when the agent was started
	}
	m.mu.Lock()
	s := prompt.Surroundings{Dir: dir, System: systemName(), Organization: m.organization}
	m.mu.Unlock()
	s.Repository = prompt.Repository(dir)
	s.Instructions = m.instructions(dir)
	s.Servers = m.servers(kind)
	c := prompt.Config{Mode: "customize", Sections: map[string]prompt.Override{prompt.Identity: {Action: prompt.Replace, Content: d.Prompt}}, Content: m.agents.preloaded(d)}
	return prompt.Compose(ctx, c, s, nil)
}

// role is what the session's own agent is told of what it is; "" for the default
// one.
func (s *agentSet) role() string {
	d, ok := s.current()
	if !ok {
		return ""
	}
	return strings.TrimSpace("<agent name=\"" + strings.NewReplacer(`"`, "&quot;", "<", "&lt;", "\n", " ").Replace(d.Name) + "\">\n" + strings.TrimSpace(d.Prompt) + "\n</agent>\n\n" + s.preloaded(d))
}

// preloaded are the skills that an agent has from the start, as text.
func (s *agentSet) preloaded(d agents.Definition) string {
	var texts []string
	for _, name := range d.Skills {
		if text := s.skill(name); text != "" {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "\n\n")
}

// Agents lists the session's custom agents, and Transom's own where builtIn.
func (h *Session) Agents(builtIn bool) []Agent {
	var out []Agent
	for _, d := range h.sess.agents.custom() {
		out = append(out, described(d))
	}
	if builtIn {
		for _, d := range h.sess.agents.builtIn() {
			a := described(d)
			a.Source = "builtin"
			out = append(out, a)
		}
	}
	return out
}

// CurrentAgent is the agent that was selected; nil for the default one.
func (h *Session) CurrentAgent() *Agent {
	d, ok := h.sess.agents.current()
	if !ok {
		return nil
	}
	a := described(d)
	return &a
}

// SelectAgent makes a custom agent the session's own: its prompt, its tools and
// its model are those of the next model call. "" goes back to the default one. The
// window stays as it is.
func (h *Session) SelectAgent(ctx context.Context, name string) error {
	const op = "session.agent.select"
	set := h.sess.agents
	v := h.sess.View()
	was, _ := set.current()
	p, err := set.choose(name)
	if err != nil {
		return wrap(op, h.id, err)
	}
	is, _ := set.current()
	in := turn.Configure{Select: p, Settings: func(s *turn.Settings) {
		set.settle(s)
		s.Wanted++
	}}
	set.mu.Lock()
	if was.Model == "" {
		set.before = modelChoice{v.Model, v.Effort}
	}
	switch before := set.before; {
	case is.Model != "":
		in.Model, in.Effort = &is.Model, &is.ReasoningEffort
	case was.Model != "":
		in.Model, in.Effort = &before.model, &before.effort
	case is.ReasoningEffort != "":
		in.Effort = &is.ReasoningEffort
	}
	set.mu.Unlock()
	_, err = h.sess.Do(ctx, in, nil)
	return wrap(op, h.id, err)
}

// SetAgentPrompt gives an agent another prompt, as long as the session is loaded.
func (h *Session) SetAgentPrompt(ctx context.Context, name, text string) error {
	const op = "session.agent.setPrompt"
	set := h.sess.agents
	if _, ok := set.find(name); !ok {
		return wrap(op, h.id, set.missing(name))
	}
	set.mu.Lock()
	prompts := map[string]string{name: text}
	for k, v := range set.prompts {
		if k != name {
			prompts[k] = v
		}
	}
	set.prompts = prompts
	renews := set.selected == name
	set.mu.Unlock()
	_, err := h.sess.Do(ctx, turn.Configure{Settings: func(s *turn.Settings) {
		if renews {
			s.Wanted++
		}
	}}, nil)
	return wrap(op, h.id, err)
}

// DisableAgents names the agents that are not started from now on; nil is none.
func (h *Session) DisableAgents(ctx context.Context, names []string) error {
	const op = "session.tools.updateSubagentSettings"
	set := h.sess.agents
	set.mu.Lock()
	set.disabled = slices.Clone(names)
	set.mu.Unlock()
	return wrap(op, h.id, h.refreshAgents(ctx))
}

// refreshAgents offers the model the agents as they are now.
func (h *Session) refreshAgents(ctx context.Context) error {
	own := h.sess.offered(nil)
	_, err := h.sess.Do(ctx, turn.Configure{Settings: func(s *turn.Settings) {
		s.BuiltIns = own
		h.sess.agents.settle(s)
	}}, nil)
	h.sess.reposted()
	return err
}

// DiscoverAgents reads the agents in files: those of the user, where host, and
// those of the projects. The warnings say which files are none, and why.
func (r *Runtime) DiscoverAgents(projects []string, host bool) (found []Agent, warnings []string) {
	defs, warnings := agents.Discover(r.agentPlaces(projects, host))
	for _, d := range defs {
		found = append(found, described(d))
	}
	return found, warnings
}

// AgentPlace is a directory that may hold agents in files.
type AgentPlace struct {
	Dir     string // absolute; it need not exist
	Source  string // "user" or "project"
	Project string // the project that it belongs to; "" for the user's
	First   bool   // where new ones of its source and project go
}

// AgentPlaces lists where [Runtime.DiscoverAgents] looks.
func (r *Runtime) AgentPlaces(projects []string, host bool) []AgentPlace {
	var out []AgentPlace
	seen := map[string]bool{}
	for _, p := range r.agentPlaces(projects, host) {
		key := p.Source + "\x00" + p.Project
		out = append(out, AgentPlace{p.Dir, p.Source, p.Project, !seen[key]})
		seen[key] = true
	}
	return out
}

func (r *Runtime) agentPlaces(projects []string, host bool) []agents.Place {
	home := r.cfg.Home
	if !host {
		home = ""
	}
	return agents.Places(home, projects)
}

// Fleet is a message that asks the model to work on a prompt with several
// sub-agents side by side. People are shown the prompt alone.
func Fleet(m Message) (Message, error) {
	text, err := agents.Fleet(m.Prompt)
	if err != nil {
		return m, &Error{Op: "session.fleet.start", Kind: KindInternal, Msg: err.Error(), Err: err}
	}
	m.DisplayPrompt = cmp.Or(m.DisplayPrompt, m.Prompt)
	m.Prompt = text
	return m, nil
}

// scanAgents reads the agents in files: those of a working directory and of the
// user, where the host wants them to be found, and those of the session's plugins.
// It reports whether there may be others than before.
func (r *Runtime) scanAgents(s *loaded, dir string) bool {
	var found []agents.Definition
	var problems []string
	if s.skills.discovers() {
		root := cmp.Or(prompt.Repository(dir), dir)
		found, problems = agents.Discover(r.agentPlaces([]string{root}, true))
	}
	for _, p := range s.plugins.all() {
		var more []string
		found, more = agents.Plugged(found, p.Dir, p.Agents)
		problems = append(problems, more...)
	}
	for _, w := range problems {
		r.cfg.Logger.Warn("read agents", "session", s.agents.id, "problem", w)
	}
	set := s.agents
	set.mu.Lock()
	defer set.mu.Unlock()
	changed := len(found)+len(set.found) > 0
	set.found = found
	return changed
}

// ReloadAgents reads the agents anew that are kept in files.
func (h *Session) ReloadAgents(ctx context.Context) error {
	h.rt.scanAgents(h.sess, h.sess.View().Dir)
	return wrap("session.agent.reload", h.id, h.refreshAgents(ctx))
}
