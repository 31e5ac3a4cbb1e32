package turn

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/tool"
)

// AgentDef is a kind of agent: one that the model, or a host, can start.
type AgentDef struct {
	Name        string
	DisplayName string
	Description string
	Tools       Filter // what it may use; one that is not set is everything
	Model       string // "" is the session's
	Effort      string
	NoInfer     bool // only a host starts it
}

// Agent is a sub-agent: a loop with a window of its own. It is never changed in
// place.
type Agent struct {
	ID          string
	Type        string // the name of its definition
	Display     string // of its definition
	Name        string // for people
	Description string // of what it is to do
	Prompt      string // the newest
	Call        string // the tool call that started it; "" is a host
	Background  bool
	Asked       string // the model that the start named
	Clears      uint64 // the window of the session that it reports to: clears
	Boundaries  int64  // and truncations made before it
	Status      string
	Started     time.Time
	Ended       time.Time // zero: it works
	Answer      string    // its newest message
	Error       string    // why it failed
	Turns       int       // prompts it was given
	ToolCalls   int
	Tokens      int64
	State       Durable // its own fold
}

// What becomes of an agent.
const (
	AgentRunning   = "running"
	AgentCompleted = "completed"
	AgentFailed    = "failed"
	AgentCancelled = "cancelled"
	AgentRemoved   = "removed" // its id is not used again
)

// LiveAgent is what only this process knows of an agent that works.
type LiveAgent struct {
	ID   string
	Live Live
}

// Agent finds a sub-agent; nil where there is none.
func (d *Durable) Agent(id string) *Agent {
	for _, a := range d.Agents {
		if a.ID == id {
			return a
		}
	}
	return nil
}

// At is the sub-agent of that id, as a state; the session itself where id is "" or
// the agent does not work.
func (s *State) At(id string) *State {
	i := s.liveAgent(id)
	if i < 0 {
		return s
	}
	c := s.child(i)
	return &c
}

func (s *State) liveAgent(id string) int {
	return slices.IndexFunc(s.Live.Agents, func(a *LiveAgent) bool { return a.ID == id })
}

// child is a sub-agent as a state. Clients and settings are the session's, but for
// what is its own.
func (s *State) child(i int) State {
	a := s.Live.Agents[i]
	own := a.Live.Settings
	l := a.Live
	l.Clients, l.Settings = s.Live.Clients, s.Live.Settings
	l.Settings.System, l.Settings.Wanted, l.Settings.Made = own.System, own.Wanted, own.Made
	l.Settings.Agent, l.Settings.Hidden, l.Settings.Notice = own.Agent, rootOnly, ""
	l.Settings.Kind, l.Settings.Arrived, l.Settings.OwnArrived = s.Durable.Agent(a.ID).Type, own.Arrived, own.OwnArrived
	return State{Durable: s.Durable.Agent(a.ID).State, Live: l}
}

// rootOnly are the tools that no sub-agent has: an agent starts no agents, and
// does not talk to the user.
var rootOnly = Filter{Set: true, Patterns: []string{
	"builtin:" + TaskTool, "builtin:" + ReadAgentTool, "builtin:" + ListAgentsTool, "builtin:" + WriteAgentTool,
	"builtin:skill", "builtin:ask_user", "builtin:exit_plan_mode", "builtin:" + CompleteTool,
}}

// works reports whether something of the state goes on without a client.
func (l *Live) works() bool { return l.Model != nil || l.Awaiting || len(l.Running) > 0 }

// agentsWork reports whether some sub-agent goes on without a client.
func (s *State) agentsWork() bool {
	return slices.ContainsFunc(s.Live.Agents, func(a *LiveAgent) bool { return a.Live.works() })
}

// awaited reports whether agents work in the background that will report into the
// window as it is (S9): the session is not idle before they have.
func (s *State) awaited() bool {
	return slices.ContainsFunc(s.Live.Agents, func(l *LiveAgent) bool {
		a := s.Agent(l.ID)
		return a.Background && s.reports(a)
	})
}

// reports reports whether what an agent comes to is for the window as it is: no
// clear, and no truncation, was made since it was given what it does.
func (d *Durable) reports(a *Agent) bool {
	return a.Clears == d.Clears && a.Boundaries == d.Boundaries
}

// within makes a part of a step for a sub-agent: while f runs, the machine's state
// is the agent's, and what it emits is the agent's.
func (m *machine) within(id string, f func()) {
	i := m.s.liveAgent(id)
	if i < 0 {
		return
	}
	outer, quiet := m.s, m.quiet
	m.s, m.outer, m.agent, m.quiet = outer.child(i), &outer, id, false
	f()
	live := m.s.Live
	m.s, m.outer, m.agent, m.quiet = outer, nil, "", quiet
	m.s.Live.Agents = slices.Clone(m.s.Live.Agents)
	m.s.Live.Agents[i] = &LiveAgent{id, live}
}

// root is the session's own state, whoever's the machine looks at.
func (m *machine) root() *State {
	if m.outer != nil {
		return m.outer
	}
	return &m.s
}

// eachAgent makes a part of a step for every sub-agent that works.
func (m *machine) eachAgent(f func(id string)) {
	for _, a := range m.s.Live.Agents {
		m.within(a.ID, func() { f(a.ID) })
	}
}

// recipient says which sub-agent an input is for; "" is the session itself.
func (s *State) recipient(b Body) string {
	switch in := b.(type) {
	case ModelChunk:
		return in.Fence.Agent
	case ModelRetry:
		return in.Fence.Agent
	case ModelDone:
		return in.Fence.Agent
	case ModelFailed:
		return in.Fence.Agent
	case ToolDone:
		return in.Fence.Agent
	case PermissionPrepared:
		return in.Fence.Agent
	case HookDone:
		return in.Agent
	case CompactionDone:
		return in.Agent
	case Counted:
		return in.Agent
	case ToolAnswer:
		return s.asker(func(c Call) bool { return c.External == in.RequestID && in.RequestID != "" })
	case PermissionAnswer:
		return s.asker(func(c Call) bool { return c.Permission == in.RequestID && in.RequestID != "" })
	}
	return ""
}

// asker is the sub-agent that has a call of that kind open; "" is none.
func (s *State) asker(is func(Call) bool) string {
	for _, a := range s.Live.Agents {
		if slices.ContainsFunc(s.Agent(a.ID).State.Loop.Calls, is) {
			return a.ID
		}
	}
	return ""
}

// stepAgent makes a step of a sub-agent. What is for one that works no more
// changes nothing.
func (m *machine) stepAgent(id string, body Body) error {
	i := m.s.liveAgent(id)
	if i < 0 {
		return nil
	}
	c := m.s.child(i)
	rule, ok := table.Get()[c.Phase()][body.kind()]
	switch {
	case !ok:
		return refuse(c.Phase(), body)
	case rule.ignore:
		m.ready.Result = rule.result
		return nil
	}
	var err error
	m.within(id, func() { err = m.step(body) })
	return err
}

// launch is an agent to start.
type launch struct {
	def         AgentDef
	call        string // "" is a host
	name        string
	description string
	prompt      string
	model       string
	effort      string
	background  bool
}

// maxAgents bounds how many agents of a session work at a time.
const maxAgents = 16

// crowded says why no further agent can be started; "" where one can.
func (m *machine) crowded() string {
	if len(m.s.Live.Agents) < maxAgents {
		return ""
	}
	return fmt.Sprintf("%d agents are at work already, as many as a session may have: wait for one of them to end, or cancel one", maxAgents)
}

// spawn starts an agent and returns its id.
func (m *machine) spawn(l launch) string {
	id := m.agentID(cmp.Or(l.name, l.def.Name))
	named := cmp.Or(l.model, l.def.Model)
	model, effort := cmp.Or(named, m.s.Model), cmp.Or(l.effort, l.def.Effort)
	if effort == "" && model == m.s.Model {
		effort = m.s.Effort // of another model it would mean something else
	}
	m.emit(event.AgentStarted{
		AgentID: id, ToolCallID: l.call, AgentType: l.def.Name, DisplayName: cmp.Or(l.def.DisplayName, l.def.Name), Name: valid(l.name),
		Description: valid(l.description), Prompt: valid(l.prompt), Background: l.background, Model: model, Asked: l.model, ReasoningEffort: effort,
	})
	m.emitOf(id, event.SubagentStarted{
		ToolCallID: l.call, AgentName: l.def.Name, AgentDisplayName: cmp.Or(l.def.DisplayName, l.def.Name),
		AgentDescription: cmp.Or(valid(l.description), l.def.Description), Model: model,
	})
	m.emit(event.TasksChanged{})
	live := Live{Titled: true, Settings: Settings{Agent: l.def.Tools, Wanted: 1}}
	m.enlist(id, live)
	m.within(id, func() { m.prompted(l.prompt) })
	return id
}

// enlist adds an agent to those that work.
func (m *machine) enlist(id string, live Live) {
	live.Settings.Arrived = m.s.Live.Settings.Arrived
	m.s.Live.Agents = append(slices.Clip(m.s.Live.Agents), &LiveAgent{id, live})
	m.within(id, func() {
		m.reoffer()
		m.s.Live.Fresh, m.s.Live.Gone = false, nil
	})
}

// prompted begins a loop of the agent that the machine looks at.
func (m *machine) prompted(prompt string) {
	m.startLoop(deliveredIdle, event.Queued{MessageID: m.in.NewID(), Prompt: valid(prompt), Source: taskSource})
}

// Sources of messages that nobody typed.
const (
	taskSource  = "task"         // what an agent is to do
	agentSource = "agent-notice" // that an agent has ended
)

// agentID makes an id of a name: ids are read and written by models.
func (m *machine) agentID(name string) string {
	id := strings.Trim(strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
			return r
		}
		return '-'
	}, name), "-")
	if len(id) > 64 {
		id = id[:64]
	}
	id = cmp.Or(id, "agent")
	for n, first := 2, id; m.s.Agent(id) != nil || id == m.s.SessionID; n++ {
		id = fmt.Sprintf("%s-%d", first, n)
	}
	return id
}

// sweep ends the agents whose loops are over. That may begin something else, and
// end others.
func (m *machine) sweep() {
	for len(m.over) > 0 {
		id := m.over[0]
		m.over = m.over[1:]
		i := m.s.liveAgent(id)
		if i < 0 {
			continue
		}
		if why := m.s.Live.Agents[i].Live.Failure; why != "" {
			m.endAgent(id, AgentFailed, why)
		} else {
			m.endAgent(id, AgentCompleted, "")
		}
	}
}

// endAgent writes what became of an agent, and tells whoever waits for it.
func (m *machine) endAgent(id, status, why string) {
	m.closeAgent(id, status, why)
	a := m.s.Agent(id)
	if c := m.find(a.Call); c != nil && c.Agent == id && !a.Background {
		m.finish(c.ID, m.settled(c.ID, a.outcome()))
		m.settle()
		return
	}
	if !m.answerReaders(a) && status != AgentCancelled && m.s.reports(a) {
		m.report(a)
	}
	m.rested()
}

// closeAgent writes what became of an agent.
func (m *machine) closeAgent(id, status, why string) {
	i := m.s.liveAgent(id)
	if i >= 0 {
		m.s.Live.Agents = slices.Delete(slices.Clone(m.s.Live.Agents), i, i+1)
	}
	m.ready.CancelAgents = append(m.ready.CancelAgents, id)
	a := m.s.Agent(id)
	ms := m.in.At.Sub(a.Started).Milliseconds()
	if status == AgentFailed {
		m.emitOf(id, event.SubagentFailed{
			ToolCallID: a.Call, AgentName: a.Type, AgentDisplayName: a.Display, Error: why, Model: a.State.Model,
			TotalToolCalls: a.ToolCalls, TotalTokens: a.Tokens, DurationMs: ms,
		})
	} else {
		m.emitOf(id, event.SubagentCompleted{
			ToolCallID: a.Call, AgentName: a.Type, AgentDisplayName: a.Display, Model: a.State.Model,
			TotalToolCalls: a.ToolCalls, TotalTokens: a.Tokens, DurationMs: ms, Cancelled: status == AgentCancelled,
		})
	}
	m.emit(event.AgentEnded{AgentID: id, Status: status, Result: a.Answer, Error: why})
	m.emit(event.TasksChanged{})
}

// outcome is what the model reads of an agent whose end it waited for.
func (a *Agent) outcome() tool.Result {
	switch {
	case a.Status == AgentFailed:
		return tool.Result{Text: "The agent failed: " + a.Error, Type: tool.Failure}
	case a.Status == AgentCancelled:
		return tool.Result{Text: "The agent was cancelled before it had finished.", Type: tool.Failure}
	case a.Answer == "":
		return tool.Result{Text: "The agent has finished and said nothing."}
	}
	return tool.Result{Text: a.Answer}
}

// report tells the model of an agent that worked in the background.
func (m *machine) report(a *Agent) {
	text := agentNotice(a)
	m.emit(event.Notification{Content: text, Kind: event.NotificationKind{
		Type: "agent_completed", AgentID: a.ID, AgentType: a.Type, DisplayName: a.Name, Description: a.Description,
		Prompt: a.Prompt, Status: a.Status,
	}})
	m.emit(event.Queued{MessageID: m.in.NewID(), Prompt: text, Source: agentSource, Steering: true})
	if m.s.Phase() == Idle {
		m.next(false)
	}
}

// cutAgent stops an agent in the middle of what it does. Each of its open calls is
// completed once.
func (m *machine) cutAgent(id, status, why string) {
	m.within(id, m.stop)
	m.closeAgent(id, status, why)
}

// cutWaited stops the agents whose ends the open calls of the session wait for.
func (m *machine) cutWaited() {
	for _, l := range m.s.Live.Agents {
		if a := m.s.Agent(l.ID); !a.Background {
			m.cutAgent(l.ID, AgentCancelled, "")
		}
	}
}

// cutAll stops every agent: the session ends.
func (m *machine) cutAll() {
	m.closeLost()
	for _, l := range m.s.Live.Agents {
		m.cutAgent(l.ID, AgentCancelled, "")
	}
	m.s.Live.Resting = false
}

// closeLost ends the agents that the log says are at work and that no process
// drives any more. Each of their open calls is completed once.
func (m *machine) closeLost() {
	for _, a := range m.s.Agents {
		if a.Status == AgentRunning && m.s.liveAgent(a.ID) < 0 {
			m.s.Live.Agents = append(slices.Clip(m.s.Live.Agents), &LiveAgent{ID: a.ID})
			m.cutAgent(a.ID, AgentFailed, agentInterrupted)
		}
	}
}

// rest leaves the session as it is until the agents that it waits for have
// reported.
func (m *machine) rest() {
	m.s.Live.Resting = true
}

// resumeAgents does for the sub-agents what a resume does for the session's own
// calls, where no client was attached before.
func (m *machine) resumeAgents(goOn bool) {
	for _, l := range m.s.Live.Agents {
		i := m.s.liveAgent(l.ID)
		if i < 0 {
			continue
		}
		c := m.s.child(i)
		switch {
		case c.Phase() != Acting || len(l.Live.Running) > 0:
		case goOn:
			m.within(l.ID, func() { m.rerun(true) })
		default:
			m.dropAgent(l.ID)
		}
	}
	m.rested()
}

// dropAgent stops an agent that nobody can answer. A call that waits for it has
// its end; a report would begin a turn that nobody asked for.
func (m *machine) dropAgent(id string) {
	if a := m.s.Agent(id); a.Background {
		m.cutAgent(id, AgentFailed, agentInterrupted)
		return
	}
	m.within(id, m.stop)
	m.endAgent(id, AgentFailed, agentInterrupted)
}

// rested goes on where the session waited for agents and they have ended without a
// word.
func (m *machine) rested() {
	if m.s.Live.Resting && m.s.Phase() == Idle && !m.s.awaited() {
		m.next(false)
	}
}

// deserted stops the agents that wait for a hook of a client that is gone.
func (m *machine) deserted() {
	for _, l := range m.s.Live.Agents {
		if l.Live.Prep != nil || len(l.Live.Waits) > 0 {
			m.dropAgent(l.ID)
		}
	}
	m.rested()
}
