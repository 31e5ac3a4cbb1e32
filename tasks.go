package transom

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/internal/turn"
)

// Task is a sub-agent: one that works, or one that has ended.
type Task struct {
	ID          string
	Kind        string // the name of its [Agent]
	Name        string // for people
	Description string
	Prompt      string // the newest that it was given
	Status      string // "running", "completed", "failed" or "cancelled"
	ToolCallID  string // the call that started it; "" is a host
	Background  bool   // no call waits for its end
	Answer      string // its newest message
	Error       string // why it failed
	Asked       string // the model that the start named
	Model       string // that answers it
	Started     time.Time
	Ended       time.Time // zero: it works
	Turns       int       // prompts it was given
	ToolCalls   int
	Tokens      int64
	// Clears is how often the context had been cleared when it was started: what an
	// agent of an older window comes to is not told to the model.
	Clears int
	// Calls are the names of its calls that are open.
	Calls []string
}

// Tasks lists the session's sub-agents, oldest first.
func (h *Session) Tasks() []Task {
	v := h.sess.View()
	var out []Task
	for _, a := range v.Agents {
		if a.Status == turn.AgentRemoved {
			continue
		}
		t := Task{
			ID: a.ID, Kind: a.Type, Name: a.Name, Description: a.Description, Prompt: a.Prompt, Status: v.Standing(a), ToolCallID: a.Call,
			Background: a.Background, Answer: a.Answer, Error: a.Error, Asked: a.Asked, Model: a.State.Model, Started: a.Started, Ended: a.Ended,
			Turns: a.Turns, ToolCalls: a.ToolCalls, Tokens: a.Tokens, Clears: int(a.Clears),
		}
		for _, c := range a.State.Loop.Calls {
			if !c.Done {
				t.Calls = append(t.Calls, c.Name)
			}
		}
		out = append(out, t)
	}
	return out
}

// StartTask starts a sub-agent in the background.
type StartTask struct {
	Kind        string // the name of an [Agent]
	Name        string // a short name: its id is made of it
	Prompt      string
	Description string
	Model       string // "" is the agent's, else the session's
}

// StartTask starts a sub-agent in the background and returns its id. When it has
// ended the model is told, unless the context was cleared meanwhile.
func (h *Session) StartTask(ctx context.Context, t StartTask) (string, error) {
	const op = "session.tasks.startAgent"
	if err := h.known(ctx, t.Model); err != nil {
		return "", wrap(op, h.id, err)
	}
	v, err := h.sess.Do(ctx, turn.StartAgent{Type: t.Kind, Name: t.Name, Description: t.Description, Prompt: t.Prompt, Model: t.Model}, nil)
	if err != nil {
		return "", wrap(op, h.id, err)
	}
	return v.(string), nil
}

// known reports, as an error, that the session has no such model. Where nobody
// lists the models every name is taken.
func (h *Session) known(ctx context.Context, id string) error {
	if id == "" || id == h.sess.View().Model {
		return nil
	}
	list, err := h.Models(ctx)
	if err != nil {
		return err // whoever lists them would answer the agent, too
	}
	if len(list) == 0 {
		return nil
	}
	var names []string
	for _, m := range list {
		if m.ID == id {
			return nil
		}
		names = append(names, m.ID)
	}
	return &Error{Kind: KindInvalidParams, Msg: "there is no model " + id + " in this session: its models are " + strings.Join(names, ", ")}
}

// CancelTask stops a sub-agent, and reports whether it was at work.
func (h *Session) CancelTask(ctx context.Context, id string) (bool, error) {
	return changed[bool](ctx, h, "session.tasks.cancel", turn.ChangeAgent{Op: turn.AgentCancel, ID: id})
}

// CancelTasks stops all sub-agents in the background and returns their ids.
func (h *Session) CancelTasks(ctx context.Context) ([]string, error) {
	return changed[[]string](ctx, h, "session.cancelAllBackgroundAgents", turn.ChangeAgent{Op: turn.AgentCancelAll})
}

// RemoveTask takes a sub-agent that has ended off the list, and reports whether
// there was one.
func (h *Session) RemoveTask(ctx context.Context, id string) (bool, error) {
	return changed[bool](ctx, h, "session.tasks.remove", turn.ChangeAgent{Op: turn.AgentRemove, ID: id})
}

// TellTask sends a sub-agent a message: one that works reads it at its next model
// call, one in the background that has ended goes on with it. It returns why the
// message was not taken; "" where it was.
func (h *Session) TellTask(ctx context.Context, id, message string) (string, error) {
	return changed[string](ctx, h, "session.tasks.sendMessage", turn.ChangeAgent{Op: turn.AgentTell, ID: id, Message: message})
}

// PromoteTask has the call that waits for a sub-agent's end go on without it, and
// reports whether one did.
func (h *Session) PromoteTask(ctx context.Context, id string) (bool, error) {
	return changed[bool](ctx, h, "session.tasks.promoteToBackground", turn.ChangeAgent{Op: turn.AgentPromote, ID: id})
}

func changed[T any](ctx context.Context, h *Session, op string, in turn.ChangeAgent) (zero T, err error) {
	v, err := h.sess.Do(ctx, in, nil)
	if err != nil {
		return zero, wrap(op, h.id, err)
	}
	return v.(T), nil
}

// WaitTasks waits until no sub-agent is at work. Called while a tool call of the
// session is open it might wait for its own caller: that is refused.
func (h *Session) WaitTasks(ctx context.Context) error {
	const op = "session.tasks.waitForPending"
	working := func() bool { return len(h.sess.View().Live.Agents) > 0 }
	if !working() {
		return nil
	}
	v := h.sess.View()
	if v.Phase() == turn.Acting || slices.ContainsFunc(v.Agents, func(a *turn.Agent) bool { return len(a.State.OpenHosts()) > 0 }) {
		return &Error{Op: op, Kind: KindWrongState, SessionID: h.id, Msg: "a tool call of this session is in flight: waiting for its agents from inside it might never end. Wait for session.background_tasks_changed, or ask with session.tasks.list"}
	}
	events := h.Subscribe()
	defer events.Close()
	if !working() {
		return nil
	}
	for e, err := range events.All(ctx) {
		if err != nil {
			return wrap(op, h.id, err)
		}
		if e.Type == event.TypeTasksChanged && !working() {
			return nil
		}
	}
	return &Error{Op: op, Kind: KindClosing, SessionID: h.id, Msg: "the session ended before its agents did"}
}
