package turn

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/internal/lazy"
	"github.com/transom-run/transom/internal/policy"
	"github.com/transom-run/transom/internal/window"
	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/tool"
)

// examined is a call of an answer after T0 (1) and (4): its arguments, or what is
// wrong with it.
type examined struct {
	id, name string
	args     json.RawMessage
	wrong    *tool.Outcome // nil: the call may run
	hooked   bool          // wrong, and the hooks are asked all the same
}

// anyTool takes any object: what is checked of a call to a tool there is not.
var anyTool = lazy.Value[*tool.Compiled]{Make: func() *tool.Compiled {
	c, err := tool.Compile(tool.Tool{Name: "any"})
	if err != nil {
		panic(err) // impossible: the definition is a constant
	}
	return c
}}

// checkUnknown checks the arguments of a call to a tool there is not.
func checkUnknown(name, arguments string) (json.RawMessage, *tool.Problem) {
	unknown := *anyTool.Get()
	unknown.Name = name
	return unknown.Check(arguments)
}

// examine checks the calls of an answer. Ids that are missing or used before get
// new ones, so that every call of a window can be told apart.
func (m *machine) examine(calls []model.Call) []examined {
	out := make([]examined, 0, len(calls))
	for _, c := range calls {
		e := examined{id: valid(c.ID), name: valid(c.Name)}
		taken := func(x examined) bool { return x.id == e.id }
		if e.id == "" || slices.ContainsFunc(out, taken) || m.s.Window.HasCall(e.id) {
			e.id = "call_" + m.in.NewID()
		}
		offer, known := m.s.Live.Offers.Lookup(c.Name)
		var problem *tool.Problem
		if known {
			e.args, problem = offer.Check(c.Arguments)
		} else if e.args, problem = checkUnknown(c.Name, c.Arguments); problem == nil {
			problem = tool.UnknownTool(c.Name, m.s.Live.Offers.Names())
		}
		if problem != nil {
			e.hooked = problem.Kind == tool.UnknownName
			o := problem.Outcome()
			e.wrong = &o
		}
		out = append(out, e)
	}
	return out
}

// beginCalls starts a batch. All calls are announced before any of them runs;
// where there are hooks, each is announced once they have seen it.
func (m *machine) beginCalls(calls []examined) {
	hooked := m.hooked()
	for _, c := range calls {
		if !hooked || c.wrong != nil && !c.hooked {
			m.announce(c.id, c.args)
		}
	}
	for _, c := range calls {
		switch {
		case hooked && (c.wrong == nil || c.hooked):
			m.preTool(c.id)
		case c.wrong != nil:
			m.complete(c.id, *c.wrong)
		default:
			m.permit(c.id, "")
		}
	}
}

// permit runs a call, once it is allowed to. A hook may have decided: "allow"
// asks nobody, "ask" asks whatever the rules say. A rule that denies goes before
// all of that. What there is to ask about may
// have to be found out first, by looking at files.
func (m *machine) permit(id, hook string) {
	c := m.find(id)
	offer, known := m.s.Live.Offers.Lookup(c.Name)
	free := hook == "allow" || hook != "ask" && (m.s.Live.Settings.ApproveAll || known && offer.SkipPermission)
	switch {
	case free && len(m.s.Live.Settings.Rules.Denied) == 0:
		m.run(id)
	case known && offer.Permission != nil:
		m.s.Live.Running = append(slices.Clone(m.s.Live.Running), id)
		m.start(&PreparePermission{Fence: m.fence(id), Tool: offer.Compiled, Call: m.call(c), Forced: hook == "ask", Free: free})
	default:
		m.question(id, m.customRequest(c), nil, hook == "ask", free)
	}
}

// permissionPrepared goes on with a call once it is known what to ask.
func (m *machine) permissionPrepared(in PermissionPrepared) {
	id := in.Fence.Call
	if !slices.Contains(m.s.Live.Running, id) || in.Fence.Turn != m.s.Live.Turn {
		return
	}
	m.unrun(id)
	switch {
	case in.Err != nil:
		m.finish(id, m.settled(id, tool.Result{Text: in.Err.Error(), Type: tool.Failure}))
	case in.Permission.None && !in.Forced:
		m.run(id)
	default:
		m.question(id, withCall(in.Permission.Request, id), withCall(in.Permission.Prompt, id), in.Forced, in.Free)
	}
	m.settle()
}

// question puts the question about a call, unless an approval covers it.
func (m *machine) question(id string, request, prompt json.RawMessage, forced, free bool) {
	rules := m.rules()
	switch {
	case rules.Denies(request):
		m.refused(id, policy.DeniedByRules())
	case free || !forced && !rules.Asks(request, prompt):
		m.run(id)
	case !m.answersPermission():
		m.refused(id, policy.NotAvailable())
	default:
		m.askPermission(id, request, prompt)
	}
}

// withCall adds the call's id to a question.
func withCall(question json.RawMessage, id string) json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(question, &fields) != nil || fields == nil {
		return question
	}
	fields["toolCallId"], _ = json.Marshal(id)
	raw, err := json.Marshal(fields)
	if err != nil {
		return question
	}
	return raw
}

func (m *machine) find(id string) *Call {
	for i := range m.s.Loop.Calls {
		if m.s.Loop.Calls[i].ID == id {
			return &m.s.Loop.Calls[i]
		}
	}
	return nil
}

// askPermission puts a question to every client; the first valid answer counts.
func (m *machine) askPermission(id string, request, prompt json.RawMessage) {
	if len(prompt) == 0 {
		prompt = request
	}
	c := m.find(id)
	p := event.PermissionRequested{RequestID: m.in.NewID(), PermissionRequest: request, PromptRequest: prompt, AgentMode: m.s.Mode}
	m.emit(p)
	m.start(&AskPermission{Agent: m.agent, RequestID: p.RequestID, Request: p, Tool: c.Name, Call: id, Arguments: c.Args})
}

// reask puts a question that stands in the log again, under its old id: to clients
// that attach as the SDKs document it, and to one in this process.
func (m *machine) reask(c Call) {
	p := event.PermissionRequested{RequestID: c.Permission, PermissionRequest: c.Ask, PromptRequest: c.Ask, AgentMode: m.s.Mode}
	m.emit(event.EphemeralNote{Payload: p})
	m.start(&AskPermission{Agent: m.agent, RequestID: c.Permission, Request: p, Tool: c.Name, Call: c.ID, Arguments: c.Args})
}

// customRequest is the question about a call of a host's tool.
func (m *machine) customRequest(c *Call) json.RawMessage {
	type custom struct {
		Kind        string          `json:"kind"`
		ToolCallID  string          `json:"toolCallId"`
		ToolName    string          `json:"toolName"`
		Description string          `json:"toolDescription"`
		Args        json.RawMessage `json:"args"`
	}
	description := ""
	if offer, ok := m.s.Live.Offers.Lookup(c.Name); ok {
		description = offer.Description
	}
	raw, err := json.Marshal(custom{"custom-tool", c.ID, c.Name, description, c.Args})
	if err != nil {
		m.err = err
	}
	return raw
}

// permissionAnswer takes a decision. Late, repeated and unknown ids change
// nothing and say so.
func (m *machine) permissionAnswer(in PermissionAnswer) {
	m.ready.Result = false
	i := slices.IndexFunc(m.s.Loop.Calls, func(c Call) bool { return c.Permission == in.RequestID && in.RequestID != "" })
	if i < 0 {
		return
	}
	m.ready.Result = true
	if in.Decision.Verdict == policy.None {
		return
	}
	m.decide(m.s.Loop.Calls[i].ID, in.Decision)
	m.settle()
}

var notAvailable = policy.NotAvailable()

// decide closes a call's open question and acts on the decision.
func (m *machine) decide(id string, d policy.Decision) {
	c := m.find(id)
	approval := d.Approval
	if d.Lasting && len(approval) == 0 {
		approval = policy.Approval(c.Ask)
	}
	m.emit(event.PermissionCompleted{RequestID: c.Permission, ToolCallID: id, Result: event.PermissionResult{
		Kind: d.Kind, Feedback: d.Feedback, Approval: approval,
		LocationKey: d.LocationKey, Rules: d.Rules, Path: d.Path, Message: d.Message,
	}})
	if d.Unknown {
		m.emit(event.SessionWarning{WarningType: "permission", Message: "A client answered a permission question about the tool " + c.Name + " with a decision of an unknown kind: the call was denied."})
	}
	if d.Verdict == policy.Allow {
		m.run(id)
		return
	}
	m.refused(id, d)
}

// refused completes a call that was not allowed.
func (m *machine) refused(id string, d policy.Decision) {
	t := tool.Denied
	if d.Verdict == policy.Reject {
		t = tool.Rejected
	}
	m.complete(id, m.settled(id, tool.Result{Text: d.Text, Type: t}))
}

// run starts a call: in this process, or at the host that declared the tool.
func (m *machine) run(id string) {
	c := m.find(id)
	offer, ok := m.s.Live.Offers.Lookup(c.Name)
	switch {
	case !ok && len(m.s.Live.Clients) > 0:
		m.complete(id, m.settled(id, gone(c.Name)))
	case ok && offer.Handler == nil && offer.Source == tool.BuiltIn:
		m.runAgentTool(id, c.Name)
	case ok && offer.Handler != nil:
		m.s.Live.Running = append(slices.Clone(m.s.Live.Running), id)
		m.start(&StartTool{Fence: m.fence(id), Tool: offer.Compiled, Call: m.call(c)})
	default: // a host's, or nobody is left to ask: it waits for a resume
		at := m.s.ToolTrace(id)
		m.emit(event.ExternalToolRequested{
			RequestID: m.in.NewID(), SessionID: m.root().SessionID, ToolCallID: id, ToolName: c.Name,
			Arguments: c.Args, WorkingDirectory: m.s.Dir, Traceparent: at.Parent, Tracestate: at.State,
		})
	}
}

// call is a call as handlers see it.
func (m *machine) call(c *Call) tool.Call {
	at := m.s.ToolTrace(c.ID)
	return tool.Call{SessionID: m.root().SessionID, AgentID: m.agent, ID: c.ID, Name: c.Name, Arguments: c.Args, Dir: m.s.Dir, Traceparent: at.Parent, Tracestate: at.State}
}

// settled is the outcome of a call that Transom answers itself.
func (m *machine) settled(id string, r tool.Result) tool.Outcome {
	return tool.Settle(m.call(m.find(id)), r, nil, nil)
}

// toolDone takes the end of a call that ran in this process.
func (m *machine) toolDone(in ToolDone) {
	if !slices.Contains(m.s.Live.Running, in.Fence.Call) || in.Fence.Turn != m.s.Live.Turn {
		return
	}
	m.finish(in.Fence.Call, in.Outcome)
	m.settle()
}

// toolAnswer takes a host's answer. Late, repeated and unknown ids change
// nothing and say so.
func (m *machine) toolAnswer(in ToolAnswer) {
	m.ready.Result = false
	i := slices.IndexFunc(m.s.Loop.Calls, func(c Call) bool { return c.External == in.RequestID && in.RequestID != "" })
	if i < 0 {
		return
	}
	m.ready.Result = true
	c := m.s.Loop.Calls[i]
	m.finish(c.ID, tool.Settle(m.call(&c), in.Result, in.Thrown, in.Redact))
	m.settle()
}

// complete ends a call: exactly once, whatever it came to.
func (m *machine) complete(id string, o tool.Outcome) {
	c := m.find(id)
	if c == nil || c.Done {
		return
	}
	m.announce(id, c.Args) // where the process ended between the answer and its calls
	c = m.find(id)
	if c.Permission != "" {
		m.emit(event.PermissionCompleted{RequestID: c.Permission, ToolCallID: id, Result: event.PermissionResult{Kind: "cancelled"}})
	}
	if c.External != "" {
		m.emit(event.ExternalToolCompleted{RequestID: c.External})
	}
	m.unrun(id)
	if o.Success && c.Name == SearchTool && len(o.References) > 0 && !c.Orphan {
		m.activate(&o)
	}
	o = m.fit(m.noted(id, o))
	p := event.ToolComplete{
		ToolCallID: id, Model: m.s.Model, InteractionID: m.s.Loop.InteractionID,
		TurnID: strconv.Itoa(m.s.Loop.Turn), Success: o.Success, ToolTelemetry: o.Telemetry,
	}
	if o.Success {
		p.Result = &event.ToolResult{Content: o.Content, DetailedContent: o.DetailedContent}
	} else {
		p.Error = &event.ToolError{Message: o.EventMessage, Code: o.Code}
		if o.ModelText != o.EventMessage || len(o.Binary) > 0 {
			p.Result = &event.ToolResult{Content: o.ModelText}
		}
	}
	if p.Result != nil && len(o.Structured) <= tool.MaxResultBytes {
		p.Result.Structured = o.Structured
	}
	for _, b := range o.Binary {
		p.Result.Binary = append(p.Result.Binary, event.BinaryResult{Type: b.Type, Data: b.Data, MIMEType: b.MIMEType, Description: b.Description})
	}
	orphan := c.Orphan
	m.emit(p)
	if o.Success && o.Skill != nil && !orphan {
		m.invoked(*o.Skill)
	}
}

// invoked brings the text of a skill that a call loaded into the window. One whose
// call was open at a clear stays outside, as its result does.
func (m *machine) invoked(s tool.Skill) {
	m.emit(event.SkillInvoked{
		Name: valid(s.Name), Path: valid(s.Path), Content: valid(s.Text), Description: valid(s.Description), AllowedTools: s.AllowedTools,
		Source: s.Source, PluginName: s.Plugin, PluginVersion: s.PluginVersion, Trigger: event.SkillByAgent, Model: m.s.Model,
	})
}

// unrun notes that a call no longer runs in this process.
func (m *machine) unrun(id string) {
	if i := slices.Index(m.s.Live.Running, id); i >= 0 {
		m.s.Live.Running = slices.Delete(slices.Clone(m.s.Live.Running), i, i+1)
	}
}

// fit cuts a result that is too large for the window to a preview, and keeps the
// whole in a file. The model is told of the file only where it has a tool that
// can read it.
func (m *machine) fit(o tool.Outcome) tool.Outcome {
	if o.Whole || !tool.Oversized(o.ModelText) {
		return o
	}
	l := m.s.Live.Settings
	name := filepath.Join("temp", tool.OutputFileName(m.in.At, m.in.NewID()))
	m.ready.Files = append(m.ready.Files, File{Name: name, Text: o.ModelText})
	path := ""
	if view, ok := m.s.Live.Offers.Lookup("view"); ok && view.Source == tool.BuiltIn && l.FilesDir != "" {
		path = filepath.Join(l.FilesDir, name)
	}
	return o.WithText(tool.OversizedNotice(o.ModelText, path))
}

// interrupt completes every open call of the loop as cut off.
func (m *machine) interrupt() {
	for _, c := range slices.Clone(m.s.Loop.Calls) {
		if c.open() {
			m.complete(c.ID, cutOff)
		}
	}
}

// cutOff is the outcome of a call that an abort or a restart ended.
var cutOff = tool.Outcome{
	Type: "interrupted", Code: "interrupted", ModelText: window.Interrupted, EventMessage: window.Interrupted,
}

// lost is the outcome of a call whose own outcome is not in the log. One that had begun, waits for
// nobody, and changes things may have done so.
func (m *machine) lost(c Call) tool.Outcome {
	offer, ok := m.s.Live.Offers.Lookup(c.Name)
	if !ok || !offer.Effects || offer.Handler == nil || !c.Started || c.Permission != "" || c.External != "" {
		return cutOff
	}
	o := cutOff
	o.ModelText += window.Unknown
	return o
}
