package turn

import (
	"slices"
	"time"

	"github.com/transom-run/transom/event"
)

// applyAgent folds a record of a sub-agent. One of an agent that the log does not
// know changes nothing.
func (d *Durable) applyAgent(e *event.Event) error {
	i := slices.IndexFunc(d.Agents, func(a *Agent) bool { return a.ID == e.AgentID })
	if i < 0 {
		return nil
	}
	own := *e
	own.AgentID = ""
	a := *d.Agents[i]
	before := a.State.Approved
	var err error
	if a.State, err = a.State.Apply(&own); err != nil {
		return err
	}
	if err := a.note(&own); err != nil {
		return err
	}
	d.Agents = slices.Clone(d.Agents)
	d.Agents[i] = &a
	for _, key := range a.State.Approved[len(before):] { // for the session, whoever asked
		if !slices.Contains(d.Approved, key) {
			d.Approved = append(slices.Clone(d.Approved), key)
		}
	}
	if e.Type == event.TypeToolComplete {
		p, err := event.As[event.ToolComplete](e)
		if err != nil {
			return err
		}
		d.foldChanges(p)
	}
	if e.Type == event.TypeUsage {
		p, err := event.As[event.Usage](e)
		if err != nil {
			return err
		}
		in, out := d.LastInput, d.LastOutput
		d.addUsage(p)
		d.LastInput, d.LastOutput = in, out
	}
	return nil
}

// note keeps the figures and the answer of an agent.
func (a *Agent) note(e *event.Event) error {
	switch e.Type {
	case event.TypeAssistantMessage:
		p, err := event.As[event.AssistantMessage](e)
		a.Answer = p.Content
		return err
	case event.TypeToolStart:
		a.ToolCalls++
	case event.TypeToolComplete:
		p, err := event.As[event.ToolComplete](e)
		if err != nil || !p.Success || p.Result == nil {
			return err
		}
		if i := slices.IndexFunc(a.State.Loop.Calls, func(c Call) bool { return c.ID == p.ToolCallID && c.Terminal }); i >= 0 {
			a.Answer = joined(a.Answer, p.Result.Content) // the last word of its loop
		}
	case event.TypeUsage:
		p, err := event.As[event.Usage](e)
		a.Tokens += p.Input + p.Output
		return err
	}
	return nil
}

func joined(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n\n" + b
}

// foldAgent begins an agent, or gives one more to do. What it comes to goes to the
// window as it is now.
func foldAgent(d *Durable, e *event.Event) error {
	p, err := event.As[event.AgentStarted](e)
	if err != nil {
		return err
	}
	a := &Agent{ID: p.AgentID, Started: e.Timestamp, State: Durable{
		SessionID: p.AgentID, Started: e.Timestamp, Model: p.Model, Effort: p.ReasoningEffort, Mode: d.Mode, Dir: d.Dir, Place: d.Place,
	}}
	i := slices.IndexFunc(d.Agents, func(a *Agent) bool { return a.ID == p.AgentID })
	if i >= 0 {
		again := *d.Agents[i]
		a = &again
	}
	a.Type, a.Display, a.Name, a.Description, a.Prompt = p.AgentType, p.DisplayName, p.Name, p.Description, p.Prompt
	a.Call, a.Background, a.Asked, a.Clears = p.ToolCallID, p.Background, p.Asked, d.Clears
	a.Boundaries = d.Boundaries
	a.Status, a.Ended, a.Error, a.Answer = AgentRunning, time.Time{}, "", ""
	a.Turns++
	d.Agents = slices.Clone(d.Agents)
	if i >= 0 {
		d.Agents[i] = a
	} else {
		d.Agents = append(d.Agents, a)
	}
	if p.ToolCallID != "" && !p.Background {
		d.call(p.ToolCallID, func(c *Call) { c.Agent = p.AgentID })
	}
	return nil
}

func foldAgentEnded(d *Durable, e *event.Event) error {
	p, err := event.As[event.AgentEnded](e)
	if err != nil {
		return err
	}
	d.agent(p.AgentID, func(a *Agent) {
		a.Status, a.Answer, a.Error, a.Ended = p.Status, p.Result, p.Error, e.Timestamp
		if !a.Background {
			a.State = Durable{Model: a.State.Model} // nobody can talk to it any more
		}
	})
	return nil
}

// foldAgentMoved: the call that waited for the agent's end waits no more.
func (d *Durable) foldAgentMoved(p event.AgentMoved) {
	d.agent(p.AgentID, func(a *Agent) { a.Background = true })
	for _, c := range d.Loop.Calls {
		if c.Agent == p.AgentID {
			d.call(c.ID, func(c *Call) { c.Agent = "" })
		}
	}
}

// foldAgentRemoved keeps the id alone: it is not used again.
func (d *Durable) foldAgentRemoved(p event.AgentRemoved) {
	d.agent(p.AgentID, func(a *Agent) { *a = Agent{ID: a.ID, Status: AgentRemoved} })
}

func (d *Durable) foldSelected(p event.SubagentSelected)   { d.Selected = p.AgentName }
func (d *Durable) foldDeselected(event.SubagentDeselected) { d.Selected = "" }

// agent changes one agent, in a copy.
func (d *Durable) agent(id string, change func(*Agent)) {
	for i, have := range d.Agents {
		if have.ID == id {
			a := *have
			change(&a)
			d.Agents = slices.Clone(d.Agents)
			d.Agents[i] = &a
			return
		}
	}
}

// unreport takes out the reports of agents that wait: they are of a window that is
// gone (S9).
func (d *Durable) unreport() {
	old := func(q event.Queued) bool { return q.Source == agentSource }
	if slices.ContainsFunc(d.Steering, old) {
		d.Steering = slices.DeleteFunc(slices.Clone(d.Steering), old)
	}
}
