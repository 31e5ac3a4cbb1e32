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

// Tools of Transom's own that the core itself runs: they have no handler.
const (
	TaskTool       = "task"
	ReadAgentTool  = "read_agent"
	ListAgentsTool = "list_agents"
	WriteAgentTool = "write_agent"
	// CompleteTool is offered in autopilot mode only.
	CompleteTool = "task_complete"
)

// StartTimer posts TimeUp after a while.
type StartTimer struct {
	Fence Fence
	After time.Duration
}

// TimeUp says that a call has waited long enough.
type TimeUp struct{ Fence Fence }

// StartAgent has a host start an agent in the background. Result: its id (string).
type StartAgent struct {
	Type        string
	Name        string
	Description string
	Prompt      string
	Model       string
}

// AgentOp is what a host does to sub-agents.
type AgentOp string

// What can be done, and its result.
const (
	AgentCancel    AgentOp = "cancel"     // ID: whether it worked (bool)
	AgentCancelAll AgentOp = "cancel_all" // all in the background: their ids ([]string)
	AgentRemove    AgentOp = "remove"     // ID, that has ended: whether it was there (bool)
	AgentTell      AgentOp = "tell"       // ID, Message: why it was not taken (string), "" where it was
	AgentPromote   AgentOp = "promote"    // ID, whose end a call waits for: whether it did (bool)
)

// ChangeAgent does something to sub-agents.
type ChangeAgent struct {
	Op      AgentOp
	ID      string
	Message string
}

// The kinds of these inputs.
const (
	KindTimeUp      Kind = "time_up"
	KindStartAgent  Kind = "start_agent"
	KindChangeAgent Kind = "change_agent"
)

func (TimeUp) kind() Kind      { return KindTimeUp }
func (StartAgent) kind() Kind  { return KindStartAgent }
func (ChangeAgent) kind() Kind { return KindChangeAgent }

// reader is a call that waits for an agent. It is never changed in place.
type reader struct {
	Call  string
	Agent string
	At    time.Time // when it began to wait
}

// maxRead bounds how long a call waits for an agent.
const maxRead = 10 * time.Minute

// runAgentTool runs a call of one of the core's own tools.
func (m *machine) runAgentTool(id, name string) {
	c := m.find(id)
	var a struct {
		Name        string   `json:"name"`
		Prompt      string   `json:"prompt"`
		Type        string   `json:"agent_type"`
		Description string   `json:"description"`
		Mode        string   `json:"mode"`
		Model       string   `json:"model"`
		Effort      string   `json:"reasoning_effort"`
		AgentID     string   `json:"agent_id"`
		AgentIDs    []string `json:"agent_ids"`
		Message     string   `json:"message"`
		Wait        bool     `json:"wait"`
		Timeout     float64  `json:"timeout"`
		Ended       *bool    `json:"include_completed"`
	}
	if err := unmarshal(c.Args, &a); err != nil {
		m.reply(id, tool.Result{Text: "The arguments of " + name + " could not be read: " + err.Error(), Type: tool.Failure})
		return
	}
	switch name {
	case TaskTool:
		m.task(id, launch{
			call: id, name: a.Name, description: a.Description, prompt: a.Prompt, model: a.Model, effort: a.Effort, background: a.Mode == "background",
		}, a.Type)
	case ReadAgentTool:
		m.readAgent(id, a.AgentID, a.Wait, a.Timeout)
	case ListAgentsTool:
		m.reply(id, tool.Result{Text: m.listAgents(a.Ended == nil || *a.Ended)})
	case WriteAgentTool:
		m.writeAgents(id, slices.Concat([]string{a.AgentID}, a.AgentIDs), a.Message)
	}
}

// reply ends a call of one of the core's own tools.
func (m *machine) reply(id string, r tool.Result) { m.finish(id, m.settled(id, r)) }

func (m *machine) failed(id, text string) { m.reply(id, tool.Result{Text: text, Type: tool.Failure}) }

// definition finds a kind of agent.
func (m *machine) definition(name string) (AgentDef, bool) {
	defs := m.s.Live.Settings.Agents
	i := slices.IndexFunc(defs, func(d AgentDef) bool { return d.Name == name })
	if i < 0 {
		return AgentDef{}, false
	}
	return defs[i], true
}

// unknownAgent says that there is no such kind of agent.
func (m *machine) unknownAgent(name string) string {
	var names []string
	for _, d := range m.s.Live.Settings.Agents {
		if !d.NoInfer {
			names = append(names, d.Name)
		}
	}
	return fmt.Sprintf("There is no agent type %q. The agent types are: %s.", name, strings.Join(names, ", "))
}

// task starts an agent for the model.
func (m *machine) task(id string, l launch, kind string) {
	def, ok := m.definition(kind)
	if !ok || def.NoInfer {
		m.failed(id, m.unknownAgent(kind))
		return
	}
	if strings.TrimSpace(l.prompt) == "" {
		m.failed(id, "The agent was not started: its prompt is blank. Say in the prompt what it is to do.")
		return
	}
	if why := m.crowded(); why != "" {
		m.failed(id, "The agent was not started: "+why+".")
		return
	}
	l.def = def
	agent := m.spawn(l)
	if l.background {
		m.reply(id, tool.Result{Text: agentStarted(agent)})
	}
}

// startAgent starts an agent for a host.
func (m *machine) startAgent(in StartAgent) error {
	m.closeLost()
	def, ok := m.definition(in.Type)
	switch {
	case !ok:
		return &Refusal{Kind: "invalid_params", Msg: m.unknownAgent(in.Type)}
	case strings.TrimSpace(in.Prompt) == "":
		return &Refusal{Kind: "invalid_params", Msg: "the agent was not started: its prompt is blank"}
	case m.crowded() != "":
		return &Refusal{Kind: "wrong_state", Msg: "the agent was not started: " + m.crowded()}
	}
	m.ready.Result = m.spawn(launch{def: def, name: in.Name, description: in.Description, prompt: in.Prompt, model: in.Model, background: true})
	return nil
}

// readAgent tells the model what an agent came to, and waits for it where it
// should.
func (m *machine) readAgent(id, agent string, wait bool, seconds float64) {
	a := m.s.Agent(agent)
	switch {
	case a == nil || a.Status == AgentRemoved:
		m.failed(id, m.noAgent(agent))
	case !wait || m.s.liveAgent(agent) < 0:
		m.reply(id, tool.Result{Text: m.told(a)})
	default:
		if seconds <= 0 {
			seconds = 30
		}
		l := &m.s.Live
		l.Readers = append(slices.Clip(l.Readers), reader{id, agent, m.in.At})
		l.Running = append(slices.Clone(l.Running), id)
		m.start(&StartTimer{Fence: m.fence(id), After: min(time.Duration(seconds*float64(time.Second)), maxRead)})
	}
}

func (m *machine) noAgent(id string) string {
	var ids []string
	for _, a := range m.s.Agents {
		if a.Status != AgentRemoved {
			ids = append(ids, a.ID)
		}
	}
	if len(ids) == 0 {
		return fmt.Sprintf("There is no agent %q: none was started in this session.", id)
	}
	return fmt.Sprintf("There is no agent %q. The agents are: %s.", id, strings.Join(ids, ", "))
}

// told is what the model reads of an agent.
func (m *machine) told(a *Agent) string {
	return agentStatus(a, m.s.liveAgent(a.ID) >= 0, m.in.At)
}

// answerReaders ends the calls that wait for an agent that has ended, and reports
// whether there were any.
func (m *machine) answerReaders(a *Agent) bool {
	var mine, others []reader
	for _, r := range m.s.Live.Readers {
		if r.Agent == a.ID {
			mine = append(mine, r)
		} else {
			others = append(others, r)
		}
	}
	m.s.Live.Readers = others
	orphans := true
	for _, r := range mine {
		c := m.find(r.Call)
		if c == nil || c.Done {
			continue
		}
		orphans = orphans && c.Orphan
		m.reply(r.Call, tool.Result{Text: m.told(a)})
	}
	m.settle()
	return len(mine) > 0 && !orphans
}

// timeUp answers a call that has waited long enough.
func (m *machine) timeUp(in TimeUp) {
	l := &m.s.Live
	i := slices.IndexFunc(l.Readers, func(r reader) bool { return r.Call == in.Fence.Call })
	if i < 0 || in.Fence.Turn != l.Turn {
		return
	}
	r := l.Readers[i]
	l.Readers = slices.Delete(slices.Clone(l.Readers), i, i+1)
	m.reply(r.Call, tool.Result{Text: m.told(m.s.Agent(r.Agent))})
	m.settle()
}

// listAgents is the list of agents as the model reads it.
func (m *machine) listAgents(ended bool) string {
	var b strings.Builder
	for _, a := range m.s.Agents {
		live := m.s.liveAgent(a.ID) >= 0
		if a.Status == AgentRemoved || !live && !ended {
			continue
		}
		fmt.Fprintf(&b, "%s (%s): %s", a.ID, a.Type, a.standing(live))
		if a.Description != "" {
			b.WriteString(", " + a.Description)
		}
		b.WriteString("\n")
	}
	if b.Len() == 0 {
		return "There are no agents."
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// standing is an agent's status. One that the log leaves at work and that nobody
// drives was interrupted.
func (a *Agent) standing(live bool) string {
	if a.Status == AgentRunning && !live {
		return AgentFailed
	}
	return a.Status
}

// Standing is the agent's status as the session stands.
func (s *State) Standing(a *Agent) string { return a.standing(s.liveAgent(a.ID) >= 0) }

// writeAgents sends agents a message for the model.
func (m *machine) writeAgents(id string, agents []string, message string) {
	agents = slices.DeleteFunc(agents, func(a string) bool { return a == "" })
	if len(agents) == 0 {
		m.failed(id, "write_agent needs the agent_id of the agent that the message is for.")
		return
	}
	var lines []string
	failed := false
	for _, a := range agents {
		if why := m.tell(a, message); why != "" {
			failed = true
			lines = append(lines, fmt.Sprintf("The message was not sent to %s: %s.", a, why))
			continue
		}
		lines = append(lines, fmt.Sprintf("The message was sent to %s. You'll be notified when it has finished.", a))
	}
	r := tool.Result{Text: strings.Join(lines, "\n")}
	if failed {
		r.Type = tool.Failure
	}
	m.reply(id, r)
}

// tell sends an agent a message: one that works reads it at its next model call,
// one that has ended goes on with it. It returns why not.
func (m *machine) tell(id, message string) string {
	a := m.s.Agent(id)
	switch {
	case strings.TrimSpace(message) == "":
		return "the message is blank"
	case a == nil || a.Status == AgentRemoved:
		return "there is no agent of that id"
	case m.s.liveAgent(id) >= 0:
		m.within(id, func() {
			m.emit(event.Queued{MessageID: m.in.NewID(), Prompt: valid(message), Source: taskSource, Steering: true})
		})
		return ""
	case !a.Background:
		return "the agent has finished, and only agents in the background can go on"
	case a.State.SessionID == "":
		return "nothing is left of what the agent knew"
	case m.crowded() != "":
		return m.crowded()
	}
	m.emit(event.AgentStarted{
		AgentID: id, AgentType: a.Type, DisplayName: a.Display, Name: a.Name, Description: a.Description, Prompt: valid(message),
		Background: true, Model: a.State.Model, Asked: a.Asked, ReasoningEffort: a.State.Effort,
	})
	m.emitOf(id, event.SubagentStarted{AgentName: a.Type, AgentDisplayName: a.Display, AgentDescription: a.Description, Model: a.State.Model})
	m.emit(event.TasksChanged{})
	def, _ := m.definition(a.Type)
	m.enlist(id, Live{Titled: true, Settings: Settings{Agent: def.Tools, System: a.State.System, Wanted: 1}})
	m.within(id, func() { m.prompted(message) })
	return ""
}

// changeAgent does to agents what a host wants.
func (m *machine) changeAgent(in ChangeAgent) {
	a := m.s.Agent(in.ID)
	live := m.s.liveAgent(in.ID) >= 0
	m.ready.Result = false
	switch in.Op {
	case AgentCancel:
		if live {
			m.cancelAgent(in.ID)
			m.ready.Result = true
		}
	case AgentCancelAll:
		ids := []string{}
		for _, l := range m.s.Live.Agents {
			if m.s.Agent(l.ID).Background {
				m.cancelAgent(l.ID)
				ids = append(ids, l.ID)
			}
		}
		m.ready.Result = ids
	case AgentRemove:
		m.closeLost()
		if a != nil && !live && a.Status != AgentRemoved {
			m.emit(event.AgentRemoved{AgentID: in.ID})
			m.emit(event.TasksChanged{})
			m.ready.Result = true
		}
	case AgentTell:
		m.closeLost()
		m.ready.Result = m.tell(in.ID, in.Message)
	case AgentPromote:
		if live && !a.Background {
			m.promote(a)
			m.ready.Result = true
		}
	}
}

// OpenHosts are the calls that wait for a host.
func (d *Durable) OpenHosts() []Call {
	var out []Call
	for _, c := range d.Loop.Calls {
		if c.External != "" || c.Permission != "" {
			out = append(out, c)
		}
	}
	return out
}

// cancelAgent stops an agent because a host wants it.
func (m *machine) cancelAgent(id string) {
	result := m.ready.Result
	m.within(id, m.stop)
	m.endAgent(id, AgentCancelled, "")
	m.ready.Result = result
}

// promote has the call that waits for an agent go on without it.
func (m *machine) promote(a *Agent) {
	m.emit(event.AgentMoved{AgentID: a.ID})
	m.emit(event.TasksChanged{})
	if c := m.find(a.Call); c != nil && !c.Done {
		m.reply(c.ID, tool.Result{Text: agentStarted(a.ID)})
		m.settle()
	}
}

// backgroundTasks are the agents that work; nil is none.
func (m *machine) backgroundTasks() *event.IdleTasks {
	if len(m.s.Live.Agents) == 0 {
		return nil
	}
	t := &event.IdleTasks{}
	for _, l := range m.s.Live.Agents {
		a := m.s.Agent(l.ID)
		t.Agents = append(t.Agents, event.IdleAgent{AgentID: a.ID, AgentType: a.Type, Description: cmp.Or(a.Description, a.Name)})
	}
	return t
}

// agentInput is what hooks are told of the agent that they are asked about.
func (m *machine) agentInput() map[string]any {
	a := m.outer.Agent(m.agent)
	fields := map[string]any{
		"agentName": a.Type, "agentDisplayName": a.Display, "agentDescription": a.Description, "agentId": a.ID,
	}
	if tp := m.outer.Live.Settings.Transcript; tp != "" {
		fields["transcriptPath"] = tp
	}
	return fields
}
