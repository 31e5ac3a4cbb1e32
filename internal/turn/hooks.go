package turn

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/tool"
)

// HookKind names a hook as hosts know it.
type HookKind string

// The hooks.
const (
	HookSessionStart HookKind = "sessionStart"
	HookPrompt       HookKind = "userPromptSubmitted"
	HookTransformed  HookKind = "userPromptTransformed"
	HookPreTool      HookKind = "preToolUse"
	HookPostTool     HookKind = "postToolUse"
	HookPostFailure  HookKind = "postToolUseFailure"
	HookAgentStop    HookKind = "agentStop"
	HookError        HookKind = "errorOccurred"
	HookSessionEnd   HookKind = "sessionEnd"
	HookAgentStart   HookKind = "subagentStart"  // of a sub-agent, before its first model call
	HookSubagentStop HookKind = "subagentStop"   // of a sub-agent, as agentStop
	HookPreMCP       HookKind = "preMcpToolCall" // asked by whoever makes the call

	// HookCompose is no hook of a host: the session itself composes the system
	// message for its working directory, and posts it as "system".
	HookCompose HookKind = "compose"
	// HookConnect is none either: the session waits until the MCP servers that it was
	// given are connected to, or have failed.
	HookConnect HookKind = "connect"
)

// CallHook asks the hooks of files and the clients that have some, in turn, and posts
// HookDone. What they answer is merged: a denial stands, later values replace
// earlier ones.
type CallHook struct {
	Agent   string // the sub-agent that it is about; "" is the session's own
	Type    string // of that agent; for HookConnect of the session's own as well
	ID      uint64
	Kind    HookKind
	Clients []string
	Input   json.RawMessage
}

// HookDone is what the hooks came to. An error is a hook that gave no verdict: it
// failed, took too long, or its client is gone.
type HookDone struct {
	Agent  string
	ID     uint64
	Output json.RawMessage // null or empty: no verdict
	Err    error
}

func (HookDone) kind() Kind { return KindHookDone }

// KindHookDone is the kind of HookDone.
const KindHookDone Kind = "hook_done"

// wait is a hook that was asked and has not answered.
type wait struct {
	id      uint64
	kind    HookKind
	call    string        // the tool call it is about; "" for others
	outcome *tool.Outcome // of the call, where it has run
}

// hooked reports whether there are hooks.
func (m *machine) hooked() bool { return m.s.Hooked() }

// FileHooks stands in the list of clients for the hooks of files.
const FileHooks = "files"

// hook asks. fields are added to what every hook is told.
func (m *machine) hook(kind HookKind, call string, outcome *tool.Outcome, fields map[string]any) {
	input := map[string]any{"sessionId": m.s.SessionID, "timestamp": m.in.At.UnixMilli(), "cwd": m.s.Dir}
	for k, v := range fields {
		input[k] = v
	}
	agent := ""
	if kind == HookConnect {
		agent = m.s.Live.Settings.Kind
	}
	if m.outer != nil {
		agent = m.outer.Agent(m.agent).Type
		input["parentSessionId"] = m.outer.SessionID
	}
	raw, err := json.Marshal(input)
	if err != nil {
		m.err = err
		return
	}
	l := &m.s.Live
	l.HookSerial++
	var clients []string
	if l.Settings.FileHooks {
		clients = append(clients, FileHooks)
	}
	for _, c := range l.Clients {
		if c.Hooks {
			clients = append(clients, c.ID)
		}
	}
	l.Waits = append(slices.Clone(l.Waits), wait{l.HookSerial, kind, call, outcome})
	m.start(&CallHook{Agent: m.agent, Type: agent, ID: l.HookSerial, Kind: kind, Clients: clients, Input: raw})
}

// awaited reports whether hooks are being asked about a call.
func (m *machine) awaited(call string) bool {
	return slices.ContainsFunc(m.s.Live.Waits, func(w wait) bool { return w.call == call })
}

// hookDone takes an answer. One that is no longer waited for changes nothing.
func (m *machine) hookDone(in HookDone) {
	l := &m.s.Live
	i := slices.IndexFunc(l.Waits, func(w wait) bool { return w.id == in.ID })
	if i < 0 {
		return
	}
	w := l.Waits[i]
	l.Waits = slices.Delete(slices.Clone(l.Waits), i, i+1)
	var out hookOutput
	err := in.Err
	if err == nil && len(in.Output) > 0 {
		if e := json.Unmarshal(in.Output, &out); e != nil {
			err = fmt.Errorf("its answer is not an object of the documented form: %w", e)
		}
	}
	switch w.kind {
	case HookPreTool:
		m.preToolDone(w.call, out, err)
	case HookPostTool, HookPostFailure:
		m.postToolDone(w, out, err)
	case HookSessionStart, HookAgentStart, HookPrompt, HookTransformed, HookCompose, HookConnect:
		m.prepared(w.kind, out, err)
	case HookAgentStop, HookSubagentStop:
		m.stopDone(out, err)
	case HookSessionEnd:
		m.ended()
	}
}

// hookOutput is what hooks may answer; each kind reads its own part.
type hookOutput struct {
	PermissionDecision       *string         `json:"permissionDecision"`
	PermissionDecisionReason string          `json:"permissionDecisionReason"`
	ModifiedArgs             json.RawMessage `json:"modifiedArgs"`
	ModifiedResult           json.RawMessage `json:"modifiedResult"`
	ModifiedPrompt           *string         `json:"modifiedPrompt"`
	ModifiedTransformed      *string         `json:"modifiedTransformedPrompt"`
	AdditionalContext        string          `json:"additionalContext"`
	SuppressOutput           bool            `json:"suppressOutput"`
	Decision                 string          `json:"decision"`
	Reason                   string          `json:"reason"`
	System                   string          `json:"system"`
}

func given(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// preTool asks the hooks about a call before anything else is done with it (T0).
func (m *machine) preTool(id string) {
	c := m.find(id)
	m.hook(HookPreTool, id, nil, map[string]any{"toolName": c.Name, "toolArgs": c.Args, "toolCallId": id})
}

// preToolDone goes on with a call as the hooks decided. A hook that gave no
// verdict because it failed has not consented.
func (m *machine) preToolDone(id string, out hookOutput, err error) {
	c := m.find(id)
	if c == nil || c.Done {
		return
	}
	args, problem := m.recheck(c, out.ModifiedArgs)
	m.announce(id, args)
	if out.AdditionalContext != "" {
		m.note(id, out.AdditionalContext)
	}
	decision := ""
	if out.PermissionDecision != nil {
		decision = *out.PermissionDecision
	}
	switch {
	case err != nil:
		m.complete(id, m.settled(id, tool.Result{Text: deniedByHook("the hook gave no verdict: " + err.Error()), Type: tool.Denied}))
	case decision == "deny":
		m.complete(id, m.settled(id, tool.Result{Text: deniedByHook(out.PermissionDecisionReason), Type: tool.Denied}))
	case decision != "" && decision != "allow" && decision != "ask":
		m.complete(id, m.settled(id, tool.Result{Text: deniedByHook("the hook's decision \"" + decision + "\" is not known"), Type: tool.Denied}))
	case problem != nil && problem.Kind == tool.UnknownName:
		m.finish(id, problem.Outcome())
	case problem != nil:
		m.complete(id, problem.Outcome())
	default:
		m.permit(id, decision)
	}
	m.settle()
}

// recheck returns a call's arguments after its hooks: as they were, or as a hook
// changed them, held against the schema again.
func (m *machine) recheck(c *Call, modified json.RawMessage) (json.RawMessage, *tool.Problem) {
	offer, known := m.s.Live.Offers.Lookup(c.Name)
	args := c.Args
	if given(modified) {
		var problem *tool.Problem
		if known {
			args, problem = offer.Check(string(modified))
		} else {
			args, problem = checkUnknown(c.Name, string(modified))
		}
		if problem != nil {
			return args, problem
		}
	}
	if !known {
		return args, tool.UnknownTool(c.Name, m.s.Live.Offers.Names())
	}
	return args, nil
}

// finish ends a call that ran, or could not: the hooks may look at the result
// before the model does.
func (m *machine) finish(id string, o tool.Outcome) {
	c := m.find(id)
	if c == nil || c.Done {
		return
	}
	if !m.hooked() {
		m.complete(id, o)
		return
	}
	if c.External != "" {
		m.emit(event.ExternalToolCompleted{RequestID: c.External})
	}
	m.unrun(id)
	fields := map[string]any{"toolName": c.Name, "toolArgs": c.Args, "toolCallId": id}
	if o.Success {
		fields["toolResult"] = map[string]any{"textResultForLlm": o.ModelText, "resultType": string(o.Type), "sessionLog": o.DetailedContent}
		m.hook(HookPostTool, id, &o, fields)
		return
	}
	fields["error"] = o.EventMessage
	m.hook(HookPostFailure, id, &o, fields)
}

// postToolDone completes a call with what the hooks made of its result. A hook
// that failed withholds the result: it was there to look at it.
func (m *machine) postToolDone(w wait, out hookOutput, err error) {
	c := m.find(w.call)
	if c == nil || c.Done {
		return
	}
	o := *w.outcome
	switch {
	case err != nil && w.kind == HookPostTool:
		o = m.settled(w.call, tool.Result{Text: "The tool ran, but its result is withheld: the postToolUse hook failed: " + err.Error(), Type: tool.Failure})
	case given(out.ModifiedResult):
		res, thrown := tool.ParseAnswer(out.ModifiedResult, nil)
		res.Skill = w.outcome.Skill
		o = tool.Settle(m.call(c), res, thrown, nil)
	}
	if out.SuppressOutput {
		o.DetailedContent = ""
	}
	if out.AdditionalContext != "" {
		m.note(w.call, out.AdditionalContext)
	}
	m.complete(w.call, o)
	m.settle()
}

// note adds a text to what the model will read of a call.
func (m *machine) note(call, text string) {
	notes := map[string]string{}
	for k, v := range m.s.Live.Notes {
		notes[k] = v
	}
	if have := notes[call]; have != "" {
		text = have + "\n\n" + text
	}
	notes[call] = text
	m.s.Live.Notes = notes
}

// noted adds the notes of a call to its outcome.
func (m *machine) noted(id string, o tool.Outcome) tool.Outcome {
	text, ok := m.s.Live.Notes[id]
	if !ok {
		return o
	}
	notes := map[string]string{}
	for k, v := range m.s.Live.Notes {
		if k != id {
			notes[k] = v
		}
	}
	m.s.Live.Notes = notes
	message := o.EventMessage
	o = o.WithText(o.ModelText + "\n\n" + text)
	o.EventMessage = message
	return o
}

// announce writes that a call begins, with the arguments it begins with.
func (m *machine) announce(id string, args json.RawMessage) {
	c := m.find(id)
	if c == nil || c.Started {
		return
	}
	e := event.ToolStart{ToolCallID: id, ToolName: c.Name, Arguments: args, TurnID: strconv.Itoa(m.s.Loop.Turn), Model: m.s.Model}
	offer, known := m.s.Live.Offers.Lookup(c.Name)
	if known && offer.Origin != nil {
		e.MCPServerName, e.MCPToolName = offer.Origin.Server, offer.Origin.Tool
	}
	m.emit(e)
	if known && offer.IsTerminal {
		m.emit(event.Intent{ToolCallID: id, Terminal: true})
	}
}
