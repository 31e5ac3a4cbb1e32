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
}

// machines are machines that no step uses. A state is large, and there is a step
// for each piece of a streamed answer.
var machines = sync.Pool{New: func() any { return new(machine) }}

// Step makes one step. The result is the state after the input and what has to
// be done about it. On an error nothing has happened: the state given goes on.
// A *Refusal says why the state does not take the input.
func Step(s State, in Input) (State, Ready, error) {
	phase := s.Phase()
	rule, ok := table[phase][in.Body.kind()]
	if !ok {
		return s, Ready{}, refuse(phase, in.Body)
	}
	if rule.ignore {
		return s, Ready{Result: rule.result}, nil
	}
	m := machines.Get().(*machine)
	m.s, m.in = s, in
	defer func() {
		*m = machine{}
		machines.Put(m)
	}()
	if err := m.step(in.Body); err != nil {
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
		m.ready.Result, m.ready.Sync = m.emit(in.Payload), in.Sync
	case StoreFailed:
		m.storeFailed(in)
	case Compact:
		return m.compact(in)
	case CancelCompaction:
		m.cancelCompaction()
	case CompactionDone:
		m.compactionDone(in)
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
	case CommandDone:
		m.commandDone(in)
	case Close:
		if in.Ask && m.hooked() && m.s.Phase() != Ending && m.s.SessionID != "" {
			m.hangUp(in)
			return nil
		}
		m.close(in)
	case Suspend:
		m.suspend(in)
	default:
		return fmt.Errorf("turn: unknown input %T", body)
	}
	return nil
}

// emit makes an event, folds it, and puts it on the list of what is to be
// written and published. It returns the event's id.
func (m *machine) emit(p event.Payload) string {
	parent := m.s.LastID
	if strings.HasPrefix(p.EventType(), event.PrivatePrefix) {
		parent = "" // no part of the chain that clients see
	}
	e, err := event.New(p, m.in.NewID(), parent, m.in.At)
	if err != nil {
		if m.err == nil {
			m.err = err
		}
		return ""
	}
	if e.Persisted() {
		next, err := m.s.Durable.Apply(e)
		if err != nil {
			if m.err == nil {
				m.err = err
			}
			return ""
		}
		m.s.Durable = next
	}
	m.ready.Events = append(m.ready.Events, e)
	return e.ID
}

func (m *machine) start(e Effect) { m.ready.Start = append(m.ready.Start, e) }

// now is the time of the input as events write it.
func (m *machine) now() string { return m.in.At.UTC().Format(event.TimeFormat) }

func (m *machine) fence(call string) Fence {
	return Fence{Turn: m.s.Live.Turn, Window: m.s.Clears, Call: call}
}

func unmarshal(raw json.RawMessage, into any) error {
	if len(raw) == 0 {
		return fmt.Errorf("no data")
	}
	return json.Unmarshal(raw, into)
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
		StartTime: m.now(), SelectedModel: in.Model, ReasoningEffort: in.Effort,
		Context: event.Context{Cwd: in.Dir}, AlreadyInUse: in.AlreadyInUse, Limits: m.s.limits(),
	})
	if in.Track {
		m.emit(event.Tracking{})
	}
	m.attach(in.Client)
}

// configure changes settings.
func (m *machine) configure(in Configure) error {
	if in.Settings != nil {
		before := m.s.Live.Settings.Credits
		in.Settings(&m.s.Live.Settings)
		m.reoffer()
		m.limited(before)
	}
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
		m.emit(event.ModeChanged{PreviousMode: m.s.Mode, NewMode: *in.Mode})
	}
	model, effort := m.s.Model, m.s.Effort
	if in.Model != nil {
		model = *in.Model
	}
	if in.Effort != nil {
		effort = *in.Effort
	}
	if model != m.s.Model {
		m.s.Live.Scale, m.s.Live.Ceiling = 0, 0 // another model has other words
	}
	if in.Model != nil && model != m.s.Model || effort != m.s.Effort {
		m.emit(event.ModelChange{PreviousModel: m.s.Model, NewModel: model, PreviousReasoningEffort: m.s.Effort, ReasoningEffort: effort, Cause: in.Cause})
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
