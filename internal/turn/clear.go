package turn

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/transom-run/transom/event"
)

// clear replaces the window by a seed (S1 to S4). The turn goes on: its calls are
// orphans from here on, and the seeded turn starts when its loop has ended.
func (m *machine) clear(in Clear) error {
	switch loop := &m.s.Loop; {
	case strings.TrimSpace(in.Prompt) == "":
		return &Refusal{Kind: "invalid_params", Msg: "session.history.clearContext needs a prompt that is not blank: it becomes the first user message of the fresh window"}
	case m.s.Live.Settings.Remote:
		return &Refusal{Kind: "unsupported", Msg: "session.history.clearContext is not possible on a remote session: make the call on the server that the session lives on"}
	case loop.Cleared != "":
		return &Refusal{Kind: "wrong_state", Msg: fmt.Sprintf("the context was cleared in this turn already, by event %s: only one clear a turn is possible, wait for the seeded turn", loop.Cleared)}
	case m.s.Phase() == Acting && m.onlyAgents() != "":
		return &Refusal{Kind: "wrong_state", Msg: fmt.Sprintf("session.history.clearContext is not for sub-agents: the only calls in flight wait for %s to end. Make the clear in a tool that the session's own agent calls", m.onlyAgents())}
	case m.s.Phase() != Acting || !slices.ContainsFunc(loop.Calls, func(c Call) bool { return c.open() }):
		return &Refusal{Kind: "wrong_state", Msg: "session.history.clearContext can only be called from inside a tool handler: no tool call of this session is in flight, so no turn would take up the seed prompt"}
	}
	m.dropCompaction("the context was cleared meanwhile")
	n := m.s.Window.Len()
	m.emit(event.ContextCleared{MessagesCleared: n, InitialMessage: valid(in.Prompt)})
	m.s.Live.Offers = m.offered() // what a search found is held back again
	m.s.Live.Gone = nil           // the fresh window never had these tools
	m.ready.Sync = true
	m.ready.Result = n
	return nil
}

// onlyAgents names the calls in flight where all of them run sub-agents (S1); ""
// where there are others, or none.
func (m *machine) onlyAgents() string {
	var names []string
	for _, c := range m.s.Loop.Calls {
		switch {
		case c.Done:
		case c.Agent == "":
			return ""
		default:
			names = append(names, "the agent "+c.Agent+" (call "+c.ID+")")
		}
	}
	return strings.Join(names, ", ")
}

// abort ends the running turn. What waits stays waiting (S8).
func (m *machine) abort(in Abort) {
	if m.s.goingBack() != nil || m.s.Phase() == Idle && !m.s.Live.Resting {
		return // no turn is running
	}
	m.dropCompaction("the turn was aborted")
	if in.Reason == "" {
		in.Reason = "user_initiated"
	}
	m.emit(event.Abort{Reason: in.Reason})
	m.stop()
	m.idle(true)
}

// stop cuts the open loop off: every call is completed, the loop is over.
func (m *machine) stop() {
	l := &m.s.Live
	if m.agent == "" {
		m.ready.Cancel = true
		m.cutWaited()
	}
	l.Model, l.Running, l.Readers, l.Parked, l.Headers, l.Awaiting, l.Counting, l.Resting = nil, nil, nil, false, nil, false, nil, false
	if l.Prep != nil && (l.Prep.source != "" || len(l.Prep.contexts) > 0) {
		l.Greeted = false // its answer is lost: it is asked again
	}
	l.Prep, l.Waits, l.Notes = nil, nil, nil
	l.Turn++ // whatever comes back late is of an older fence
	m.interrupt()
	if m.s.Loop.InTurn {
		m.emit(event.TurnEnd{TurnID: strconv.Itoa(m.s.Loop.Turn)})
	}
	if m.s.Loop.Open {
		m.emit(event.LoopEnd{})
	}
}

// storeFailed ends a turn whose outcome could not be written. The log still
// holds the loop: the next message closes it there.
func (m *machine) storeFailed(in StoreFailed) {
	l := &m.s.Live
	if m.s.Phase() == Idle && l.Compacting == nil && len(l.Agents) == 0 {
		return // nothing was under way
	}
	idle, agents := m.s.Phase() == Idle, len(l.Agents) > 0
	for _, a := range l.Agents {
		m.ready.CancelAgents = append(m.ready.CancelAgents, a.ID)
	}
	l.Agents, l.Readers = nil, nil // the next record that can be written closes them
	if m.s.Phase() == Ending {
		m.ready.Cancel = true
		l.Prep, l.Closed = nil, true // the last record is lost, nothing else
		return
	}
	before := m.s
	if c := l.Compacting; c != nil { // whoever waits for the summary is told
		m.emit(event.EphemeralNote{Payload: event.CompactionComplete{
			Error: in.Err.Error(), Trigger: c.trigger, CustomInstructions: c.instructions, MessagesBefore: c.before, TokensBefore: c.tokens,
		}})
	}
	if l.Compacting, m.ready.CancelCompaction = nil, true; idle && !agents {
		return
	}
	m.ready.Cancel = true
	l.Model, l.Running, l.Parked, l.Headers, l.Awaiting, l.Counting = nil, nil, m.s.Loop.Open, nil, false, nil
	l.Prep, l.Waits, l.Notes = nil, nil, nil
	l.Turn++
	if before.goingBack() != nil {
		m.parted(&before, &UnwrittenError{in.Err})
		if l.Resting {
			m.idle(false)
		}
		return
	}
	m.emit(event.EphemeralNote{Payload: event.SessionError{
		ErrorType: "persistence", Message: "The turn was ended because the session's log could not be written: " + in.Err.Error() + ". Make room or mend the store, then send the message again.",
	}})
	if !idle || l.Resting {
		m.idle(false)
	}
}

// suspend leaves the session as it is. One that is idle ends in the ordinary way.
func (m *machine) suspend(in Suspend) {
	if !m.s.Loop.Open && len(m.s.Live.Agents) == 0 {
		m.close(Close{EventsBytes: in.EventsBytes})
		return
	}
	m.ready.Cancel, m.ready.CancelCompaction = true, true
	m.s.Live.Closed = true
}

// close ends the session in this process.
func (m *machine) close(in Close) {
	if m.s.SessionID == "" {
		m.s.Live.Closed = true // nothing was begun
		return
	}
	m.dropCompaction("the session ended")
	if m.s.Loop.Open || m.s.Live.Prep != nil {
		m.stop()
	}
	m.cutAll()
	p := event.SessionShutdown{
		ShutdownType: "routine", ErrorReason: in.Reason, TotalAPIDurationMs: m.s.APIMs, SessionStartTime: m.s.Started.UnixMilli(),
		EventsFileSizeBytes: in.EventsBytes, CurrentModel: m.s.Model, ModelMetrics: m.s.Usage, NanoAIU: m.s.NanoAIU(),
		CodeChanges: m.s.Changes,
	}
	if p.CodeChanges.FilesModified == nil {
		p.CodeChanges.FilesModified = []string{}
	}
	if p.ModelMetrics == nil {
		p.ModelMetrics = map[string]event.ModelMetric{}
	}
	if in.Reason != "" {
		p.ShutdownType = "error"
	}
	m.emit(p)
	m.s.Live.Closed = true
}
