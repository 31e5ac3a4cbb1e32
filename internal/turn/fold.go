package turn

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/internal/lazy"
	"github.com/transom-run/transom/internal/policy"
	"github.com/transom-run/transom/tool"
)

// Apply folds one record of the history. Ephemeral events and unknown types change
// nothing. A record that cannot be read is an error; the state stays as it was,
// and the fold may go on with the next record.
func (d Durable) Apply(e *event.Event) (Durable, error) {
	if e.Ephemeral {
		return d, nil
	}
	next, err := d.Behind(e)
	if err != nil {
		return d, err
	}
	if next.Thread, err = d.Thread.Apply(e); err != nil {
		return d, err
	}
	return next, nil
}

// Behind folds one record that lies behind a boundary: it is no part of the history
// and of the window, and counts for all else.
func (d Durable) Behind(e *event.Event) (Durable, error) {
	if e.Ephemeral {
		return d, nil
	}
	next := d
	if e.AgentID != "" {
		if err := next.applyAgent(e); err != nil {
			return d, fmt.Errorf("agent %s: %w", e.AgentID, err)
		}
	}
	if fold, ok := folds.Get()[e.Type]; ok && e.AgentID == "" {
		if err := fold(&next, e); err != nil {
			return d, fmt.Errorf("fold %s %s: %w", e.Type, e.ID, err)
		}
	}
	if !e.Private() {
		next.Events++
	}
	return next, nil
}

// folds has one function a record type that changes more than the window.
var folds = lazy.Value[map[string]func(*Durable, *event.Event) error]{Make: func() map[string]func(*Durable, *event.Event) error {
	return map[string]func(*Durable, *event.Event) error{
		event.TypeSessionStart:          foldInto((*Durable).foldStart),
		event.TypeSessionResume:         foldInto((*Durable).foldResume),
		event.TypeModelChange:           foldInto((*Durable).foldModel),
		event.TypeModeChanged:           foldInto((*Durable).foldMode),
		event.TypeContextChanged:        foldInto((*Durable).foldContext),
		event.TypeNamed:                 foldInto((*Durable).foldName),
		event.TypeSystemMessage:         foldInto((*Durable).foldSystem),
		event.TypeQueued:                foldInto((*Durable).foldQueued),
		event.TypeUnqueued:              foldInto((*Durable).foldUnqueued),
		event.TypeUserMessage:           foldInto((*Durable).foldUser),
		event.TypeTurnStart:             foldInto((*Durable).foldTurnStart),
		event.TypeTurnEnd:               foldInto((*Durable).foldTurnEnd),
		event.TypeAssistantMessage:      foldInto((*Durable).foldAssistant),
		event.TypeToolStart:             foldInto((*Durable).foldToolStart),
		event.TypeToolComplete:          foldInto((*Durable).foldToolComplete),
		event.TypeIntent:                foldInto((*Durable).foldIntent),
		event.TypeToolSearchActivated:   foldInto((*Durable).foldFound),
		event.TypePermissionRequested:   foldInto((*Durable).foldAsked),
		event.TypePermissionCompleted:   foldInto((*Durable).foldDecided),
		event.TypeExternalToolRequested: foldInto((*Durable).foldExternal),
		event.TypeExternalToolCompleted: foldInto((*Durable).foldExternalDone),
		event.TypeLoopEnd:               foldInto((*Durable).foldLoopEnd),
		event.TypeUsage:                 foldInto((*Durable).foldUsage),
		event.TypePermissionsChanged:    foldInto((*Durable).foldPermissions),
		event.TypeApprovalsReset:        foldInto((*Durable).foldReset),
		event.TypeClientMetadata:        foldInto((*Durable).foldClientMetadata),
		event.TypeQueueOrder:            foldInto((*Durable).foldOrder),
		event.TypeCanvasRecorded:        foldInto((*Durable).foldCanvas),
		event.TypeCanvasRemoved:         foldInto((*Durable).foldUncanvas),
		event.TypeScheduleCreated:       foldScheduled,
		event.TypeScheduleCancelled:     foldInto((*Durable).foldUnscheduled),
		event.TypeScheduleRearmed:       foldInto((*Durable).foldRearmed),
		event.TypeScheduleSkipped:       foldInto((*Durable).foldSkipped),
		event.TypeAgentStarted:          foldAgent,
		event.TypeAgentEnded:            foldAgentEnded,
		event.TypeAgentMoved:            foldInto((*Durable).foldAgentMoved),
		event.TypeAgentRemoved:          foldInto((*Durable).foldAgentRemoved),
		event.TypeSubagentSelected:      foldInto((*Durable).foldSelected),
		event.TypeSubagentDeselected:    foldInto((*Durable).foldDeselected),
		event.TypeTruncated:             foldInto((*Durable).foldTruncated),
		event.TypeTracking:              foldInto((*Durable).foldTracking),
		event.TypeRewindBegun:           foldInto((*Durable).foldRewind),
		event.TypeRewindDropped:         foldInto((*Durable).foldDropped),
		event.TypeContextCleared:        func(d *Durable, e *event.Event) error { d.foldClear(e.ID); return nil },
	}
}}

func foldInto[T event.Payload](f func(*Durable, T)) func(*Durable, *event.Event) error {
	return func(d *Durable, e *event.Event) error {
		p, err := event.As[T](e)
		if err == nil {
			f(d, p)
		}
		return err
	}
}

func (d *Durable) foldStart(p event.SessionStart) {
	d.SessionID, d.Model, d.Effort, d.Dir, d.Place = p.SessionID, p.SelectedModel, p.ReasoningEffort, p.Context.Cwd, p.Context
	d.Mode, d.Tier = "interactive", tierOf(p.ContextTier)
	d.Started, _ = time.Parse(time.RFC3339Nano, p.StartTime)
}

func (d *Durable) foldResume(p event.SessionResume) {
	if p.SelectedModel != "" {
		d.Model = p.SelectedModel
	}
	if p.ReasoningEffort != "" {
		d.Effort = p.ReasoningEffort
	}
	d.Tier = tierOf(p.ContextTier)
	if p.Context.Cwd != "" && p.Context.Cwd != d.Dir {
		d.Dir, d.Place = p.Context.Cwd, p.Context
	}
}

func (d *Durable) foldModel(p event.ModelChange) {
	d.Model, d.Effort, d.Tier = p.NewModel, p.ReasoningEffort, tierOf(p.ContextTier)
}

// tierOf reads a context tier of an event, where null is none, and tier writes it.
func tierOf(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}

func tier(name string) *string {
	if name == "" {
		return nil
	}
	return &name
}

func (d *Durable) foldMode(p event.ModeChanged) { d.Mode = p.NewMode }

func (d *Durable) foldSystem(p event.SystemMessage) {
	if p.Role == "system" {
		d.System = p.Content
	}
}

func (d *Durable) foldQueued(p event.Queued) {
	d.Ordered++
	p.Order = d.Ordered
	if p.Fired != nil {
		d.fired(*p.Fired)
		p.Fired = nil
	}
	if p.Steering {
		d.Steering = append(slices.Clone(d.Steering), p)
	} else {
		d.Queue = append(slices.Clone(d.Queue), p)
	}
}

func (d *Durable) foldUnqueued(p event.Unqueued) {
	is := func(q event.Queued) bool { return q.MessageID == p.MessageID }
	if slices.ContainsFunc(d.Steering, is) {
		d.Steering = slices.DeleteFunc(slices.Clone(d.Steering), is)
	}
	if slices.ContainsFunc(d.Queue, is) {
		d.Queue = slices.DeleteFunc(slices.Clone(d.Queue), is)
	}
}

func (d *Durable) foldUser(p event.UserMessage) {
	d.foldUnqueued(event.Unqueued{MessageID: p.MessageID})
	if d.Title == "" && p.Source != agentSource {
		d.Title = Title(p.Content)
	}
	if p.Source == "" && p.Delivery != deliveredSteering {
		d.Prompts++
	}
	if p.InteractionID != d.Loop.InteractionID || !d.Loop.Open {
		// A seeded turn, one that a hook asked for, and one that only steers belong
		// to the message that led to them: whoever waits for its answer waits for
		// theirs.
		if p.Source != seedSource && p.Source != hookSource && p.Source != agentSource && p.Delivery != deliveredSteering || d.Origin == "" {
			d.Origin = p.MessageID
		}
		d.Loop = Loop{Open: true, InteractionID: p.InteractionID, MessageID: d.Origin, ByHook: p.Source == hookSource}
	} else if d.Loop.ByHook && p.Source != hookSource && p.Source != noticeSource && p.Source != seedSource && !d.Loop.InTurn && !d.Loop.Answered {
		// The context that a hook put before a prompt is not what began the loop.
		d.Origin = p.MessageID
		d.Loop.MessageID, d.Loop.ByHook = p.MessageID, false
	}
}

func (d *Durable) foldTurnStart(p event.TurnStart) {
	n, err := strconv.Atoi(p.TurnID)
	if err != nil {
		n = d.Loop.Turn + 1
	}
	if p.InteractionID != d.Loop.InteractionID || !d.Loop.Open {
		d.Loop = Loop{Open: true, InteractionID: p.InteractionID}
	}
	d.Loop.Turn, d.Loop.InTurn, d.Loop.Answered, d.Loop.Calls = n, true, false, nil
}

func (d *Durable) foldLoopEnd(event.LoopEnd) { d.Loop = Loop{} }
func (d *Durable) foldUsage(p event.Usage)   { d.addUsage(p) }
func (d *Durable) foldIntent(p event.Intent) {
	d.call(p.ToolCallID, func(c *Call) { c.Terminal = p.Terminal })
}
func (d *Durable) foldToolStart(p event.ToolStart) {
	d.call(p.ToolCallID, func(c *Call) { c.Started, c.Args = true, p.Arguments })
}

// foldTurnEnd ends the loop as well, unless its batch asks for another turn (T2).
func (d *Durable) foldTurnEnd(event.TurnEnd) {
	d.Loop.InTurn = false
	if !d.Loop.Answered || over(&d.Loop) {
		d.Loop = Loop{}
	}
}

func (d *Durable) foldAssistant(p event.AssistantMessage) {
	d.Loop.Answered = true
	d.Loop.Calls = nil
	for _, r := range p.ToolRequests {
		d.Loop.Calls = append(d.Loop.Calls, Call{ID: r.ToolCallID, Name: r.Name, Args: r.Arguments})
	}
}

func (d *Durable) foldToolComplete(p event.ToolComplete) {
	d.foldChanges(p)
	d.call(p.ToolCallID, func(c *Call) {
		c.Done, c.Success, c.Type, c.Permission, c.External = true, p.Success, tool.Success, "", ""
		if p.Error != nil {
			c.Type = tool.ResultType(p.Error.Code)
		}
	})
}

func (d *Durable) foldAsked(p event.PermissionRequested) {
	var r struct {
		ToolCallID string `json:"toolCallId"`
	}
	if unmarshal(p.PermissionRequest, &r) == nil {
		d.call(r.ToolCallID, func(c *Call) { c.Permission, c.Ask = p.RequestID, p.PermissionRequest })
	}
}

func (d *Durable) foldDecided(p event.PermissionCompleted) {
	granted := false
	switch p.Result.Kind {
	case "approved":
		granted = true
	case "approved-for-session", "approved-for-location":
		granted = true
		var asked json.RawMessage
		for _, c := range d.Loop.Calls {
			if c.Permission == p.RequestID {
				asked = c.Ask
			}
		}
		for _, key := range policy.Grants(p.Result.Approval, "", asked) {
			if !slices.Contains(d.Approved, key) {
				d.Approved = append(slices.Clone(d.Approved), key)
			}
		}
	}
	for _, c := range d.Loop.Calls {
		if c.Permission == p.RequestID {
			d.call(c.ID, func(c *Call) { c.Permission, c.Granted = "", granted })
		}
	}
}

func (d *Durable) foldExternal(p event.ExternalToolRequested) {
	d.call(p.ToolCallID, func(c *Call) { c.External = p.RequestID })
}

func (d *Durable) foldExternalDone(p event.ExternalToolCompleted) {
	for _, c := range d.Loop.Calls {
		if c.External == p.RequestID {
			d.call(c.ID, func(c *Call) { c.External = "" })
		}
	}
}

func (d *Durable) foldClear(id string) {
	d.Clears++
	d.Loop.Cleared = id
	d.Found = nil // the new window has found nothing yet
	d.unreport()
	d.Loop.Calls = slices.Clone(d.Loop.Calls)
	for i := range d.Loop.Calls {
		d.Loop.Calls[i].Orphan = !d.Loop.Calls[i].Done
	}
}

func (d *Durable) addUsage(p event.Usage) {
	usage := make(map[string]event.ModelMetric, len(d.Usage)+1)
	for k, v := range d.Usage {
		usage[k] = v
	}
	u := usage[p.Model]
	u.Requests.Count++
	u.Usage.InputTokens += p.Input
	u.Usage.OutputTokens += p.Output
	u.Usage.CacheReadTokens += p.CacheRead
	u.Usage.CacheWriteTokens += p.CacheWrite
	u.NanoAIU += p.NanoAIU
	usage[p.Model] = u
	d.Usage = usage
	d.APIMs += p.DurationMs
	d.LastInput, d.LastOutput = p.Input, p.Output
}

// call changes one call of the open batch, in a copy.
func (d *Durable) call(id string, change func(*Call)) {
	for i := range d.Loop.Calls {
		if d.Loop.Calls[i].ID == id {
			d.Loop.Calls = slices.Clone(d.Loop.Calls)
			change(&d.Loop.Calls[i])
			return
		}
	}
}

// NanoAIU is what providers charged for the session, in billionths of an AI credit.
func (d *Durable) NanoAIU() (n int64) {
	for _, u := range d.Usage {
		n += u.NanoAIU
	}
	return n
}
