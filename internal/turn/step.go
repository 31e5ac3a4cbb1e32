package turn

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/transom-run/transom/event"
)

// machine is one step being made.
type machine struct {
	s     State
	in    Input
	ready Ready
	quiet bool  // the loop did not end of itself: no agent-stop hook
	err   error // the first failure to encode or fold an event

	outer *State   // the session's state, while s is a sub-agent's
	agent string   // whose state s is; "" is the session's
	over  []string // sub-agents whose loops are over
}

// machines are machines that no step uses. A state is large, and there is a step
// for each piece of a streamed answer.
var machines = sync.Pool{New: func() any { return new(machine) }}

// Step makes one step. The result is the state after the input and what has to
// be done about it. On an error nothing has happened: the state given goes on.
// A *Refusal says why the state does not take the input.
func Step(s State, in Input) (State, Ready, error) {
	if agent := s.recipient(in.Body); agent != "" {
		m := machines.Get().(*machine)
		m.s, m.in = s, in
		defer m.release()
		return m.made(s, m.stepAgent(agent, in.Body))
	}
	phase := s.Phase()
	rule, ok := table.Get()[phase][in.Body.kind()]
	if !ok {
		return s, Ready{}, refuse(phase, in.Body)
	}
	if rule.ignore {
		return s, Ready{Result: rule.result}, nil
	}
	m := machines.Get().(*machine)
	m.s, m.in = s, in
	defer m.release()
	return m.made(s, m.step(in.Body))
}

// release gives a machine back.
func (m *machine) release() {
	*m = machine{}
	machines.Put(m)
}

// made is what a step has come to; s is the state before it.
func (m *machine) made(s State, err error) (State, Ready, error) {
	if err == nil {
		m.sweep()
	}
	if err != nil {
		return s, Ready{}, err
	}
	if m.err != nil {
		return s, Ready{}, m.err
	}
	m.parted(&s, nil)
	return m.s, m.ready, nil
}

func (m *machine) step(body Body) error {
	switch in := body.(type) {
	case Begin:
		m.begin(in)
	case Resume:
		m.resume(in)
	case Attach:
		m.attach(in.Client)
	case Detach:
		m.detach(in)
	case Configure:
		return m.configure(in)
	case Send:
		m.send(in)
	case Clear:
		return m.clear(in)
	case Abort:
		m.abort(in)
	case ModelChunk:
		m.modelChunk(in)
	case ModelRetry:
		m.modelRetry(in)
	case ModelDone:
		m.modelDone(in)
	case ModelFailed:
		m.modelFailed(in)
	case ToolDone:
		m.toolDone(in)
	case ToolAnswer:
		m.toolAnswer(in)
	case PermissionPrepared:
		m.permissionPrepared(in)
	case PermissionAnswer:
		m.permissionAnswer(in)
	case Note:
		m.ready.Result, m.ready.Sync = m.emitOf(in.Agent, in.Payload), in.Sync
	case StoreFailed:
		m.storeFailed(in)
	case Compact:
		return m.compact(in)
	case CancelCompaction:
		m.cancelCompaction()
	case CompactionDone:
		m.compactionDone(in)
	case Counted:
		m.counted(in)
	case HookDone:
		m.hookDone(in)
	case GoBack:
		return m.goBack(in)
	case PastFound:
		m.pastFound(in)
	case FilesRestored:
		m.filesRestored(in)
	case Arrange:
		return m.arrange(in)
	case ChangeSchedule:
		return m.changeSchedule(in)
	case Tick:
		m.tick()
	case TimeUp:
		m.timeUp(in)
	case StartAgent:
		return m.startAgent(in)
	case ChangeAgent:
		m.changeAgent(in)
	case CommandDone:
		m.commandDone(in)
	case Close:
		m.closes(in)
	case Suspend:
		m.suspend(in)
	default:
		return fmt.Errorf("turn: unknown input %T", body)
	}
	return nil
}

// closes ends the session, once the hook for that was asked where one is.
func (m *machine) closes(in Close) {
	if in.Ask && m.hooked() && m.s.Phase() != Ending && m.s.SessionID != "" {
		m.hangUp(in)
		return
	}
	m.close(in)
}

// emit makes an event, folds it, and puts it on the list of what is to be
// written and published. It returns the event's id.
func (m *machine) emit(p event.Payload) string { return m.emitOf(m.agent, p) }

// emitOf makes an event of a sub-agent; "" is the session's own.
func (m *machine) emitOf(agent string, p event.Payload) string {
	d := &m.root().Durable
	parent := d.LastID
	if strings.HasPrefix(p.EventType(), event.PrivatePrefix) {
		parent = "" // no part of the chain that clients see
	}
	e, err := event.NewOf(p, agent, m.in.NewID(), parent, m.in.At)
	if err != nil {
		if m.err == nil {
			m.err = err
		}
		return ""
	}
	if e.Persisted() {
		next, err := d.Apply(e)
		if err != nil {
			if m.err == nil {
				m.err = err
			}
			return ""
		}
		*d = next
		if m.outer != nil {
			m.s.Durable = next.Agent(m.agent).State
		}
	}
	m.ready.Events = append(m.ready.Events, e)
	return e.ID
}

func (m *machine) start(e Effect) { m.ready.Start = append(m.ready.Start, e) }

// now is the time of the input as events write it.
func (m *machine) now() string { return m.in.At.UTC().Format(event.TimeFormat) }

func (m *machine) fence(call string) Fence {
	return Fence{Agent: m.agent, Turn: m.s.Live.Turn, Window: m.s.Clears, Call: call}
}

func unmarshal(raw json.RawMessage, into any) error {
	if len(raw) == 0 {
		return fmt.Errorf("no data")
	}
	return json.Unmarshal(raw, into)
}

// TitleOf is the title that a message gives its session: "" where nobody has written
// it, as what a hook adds before the first prompt.
func TitleOf(p event.UserMessage) string {
	if p.Source == agentSource || p.Source == hookSource {
		return ""
	}
	return Title(p.Content)
}

// Title makes a title of a prompt: its first line, at most 80 characters.
func Title(prompt string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(prompt), "\n")
	if r := []rune(line); len(r) > 80 {
		return strings.TrimSpace(string(r[:79])) + "…"
	}
	return strings.TrimSpace(line)
}

// valid is a text as the log keeps it: what is not UTF-8 is lost there.
func valid(s string) string { return strings.ToValidUTF8(s, "\ufffd") }

// begin writes the first record of a session.
func (m *machine) begin(in Begin) {
	m.s.Live.Settings = in.Settings
	m.emit(event.SessionStart{
		SessionID: in.SessionID, Version: 1, Producer: "transom", CopilotVersion: in.Settings.Version,
		StartTime: m.now(), SelectedModel: in.Model, ReasoningEffort: in.Effort, ContextTier: tier(in.Tier),
		Context: event.Context{Cwd: in.Dir}, AlreadyInUse: in.AlreadyInUse, Limits: m.s.limits(),
	})
	if in.Track {
		m.emit(event.Tracking{})
	}
	m.choose(in.Select)
	m.attach(in.Client)
}

// choose writes which agent the session's own is; nil leaves it.
func (m *machine) choose(p *event.SubagentSelected) {
	switch {
	case p == nil || p.AgentName == m.s.Selected:
	case p.AgentName == "":
		m.emit(event.SubagentDeselected{})
	default:
		m.emit(*p)
	}
}

// configure changes settings.
func (m *machine) configure(in Configure) error {
	if in.Settings != nil {
		before := m.s.Live.Settings.Credits
		in.Settings(&m.s.Live.Settings)
		m.reoffer()
		m.limited(before)
	}
	m.choose(in.Select)
	if in.Name != nil {
		if *in.Name == "" {
			return &Refusal{Kind: "invalid_params", Msg: "a session's name must not be empty"}
		}
		if !in.AutoName || m.s.Name == "" || m.s.AutoNamed {
			m.emit(event.Named{Name: *in.Name, Auto: in.AutoName})
			m.emit(event.TitleChanged{Title: *in.Name})
		}
	}
	if in.Mode != nil && *in.Mode != m.s.Mode {
		pilots := m.s.Mode == autopilot || *in.Mode == autopilot
		m.emit(event.ModeChanged{PreviousMode: m.s.Mode, NewMode: *in.Mode})
		if pilots {
			m.reoffer() // some tools are of that mode alone
		}
	}
	model, effort, chosen := m.s.Model, m.s.Effort, m.s.Tier
	if in.Model != nil {
		model = *in.Model
	}
	if in.Effort != nil {
		effort = *in.Effort
	}
	if in.Tier != nil {
		chosen = *in.Tier
	} else if model != m.s.Model {
		chosen = "" // it was, for the model that was
	}
	if model != m.s.Model {
		m.s.Live.Scale, m.s.Live.Ceiling, m.s.Live.Counted = 0, 0, nil // another model has other words
	}
	// Who chooses a model waits for the event, also where it is the one in use.
	if in.Model != nil || effort != m.s.Effort || chosen != m.s.Tier {
		m.emit(event.ModelChange{PreviousModel: m.s.Model, NewModel: model, PreviousReasoningEffort: m.s.Effort, ReasoningEffort: effort, ContextTier: tier(chosen), Cause: in.Cause})
	}
	if in.Dir != nil && *in.Dir != m.s.Dir {
		m.emit(event.ContextChanged{Cwd: *in.Dir})
		if m.s.Live.Settings.Wanted > 0 {
			m.s.Live.Settings.Wanted++ // the system message names the directory
		}
	}
	if in.Place != nil {
		m.place(*in.Place)
	}
	if in.ApproveAll != nil {
		m.approveAll(*in.ApproveAll)
	}
	if in.Answerer != nil {
		m.answerer(*in.Answerer)
	}
	if in.Forget && len(m.s.Approved) > 0 {
		m.emit(event.ApprovalsReset{})
	}
	return nil
}
