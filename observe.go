package transom

import (
	"encoding/json"
	"time"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/internal/turn"
	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/trace"
)

// observe makes what tells the runtime's observer of a session's work; nil where
// there is no observer.
func (r *Runtime) observe(id string) func(turn.Input, *turn.State, *turn.Ready) {
	if r.cfg.Observer == nil {
		return nil
	}
	w := &witness{to: r.cfg.Observer, id: id, content: r.cfg.Observer.Content(), redact: r.keys.redact}
	return w.step
}

// witness makes spans of the steps of one session. It is of the session's own
// goroutine.
type witness struct {
	to      trace.Observer
	id      string
	content bool
	redact  func(string) string

	agent       *trace.Span // of the running loop
	interaction string
	chat        *trace.Span
	fence       turn.Fence // of chat
	tools       []*trace.Span
}

// step looks at a step that was made.
func (w *witness) step(in turn.Input, s *turn.State, ready *turn.Ready) {
	switch b := in.Body.(type) {
	case turn.ModelDone:
		if w.chat != nil && b.Fence == w.fence {
			w.answered(&b.Response)
			w.endChat(in.At, "")
		}
	case turn.ModelFailed:
		if w.chat != nil && b.Fence == w.fence {
			w.endChat(in.At, string(b.Err.Kind))
		}
	}
	for _, e := range ready.Events {
		if p, ok := e.Payload.(event.ToolComplete); ok {
			w.toolEnded(e.Timestamp, p)
		}
	}
	if w.agent != nil && w.interaction != s.Loop.InteractionID { // one loop followed the other
		w.endAgent(in.At, w.ending(ready))
	}
	if w.agent == nil && s.Loop.Open && !s.Live.Parked && s.Loop.InteractionID != "" {
		w.begin(in.At, s)
	}
	for _, e := range ready.Events {
		if p, ok := e.Payload.(event.ToolStart); ok {
			w.toolStarted(e.Timestamp, s, p)
			w.endedAtOnce(ready, p.ToolCallID)
		}
	}
	if ready.Cancel && w.chat != nil {
		w.endChat(in.At, "cancelled")
	}
	for _, e := range ready.Start {
		if m, ok := e.(*turn.StartModel); ok {
			w.asked(in.At, s, m)
		}
	}
	if w.agent != nil && (!s.Loop.Open || s.Live.Closed || s.Live.Parked) {
		w.endAgent(in.At, w.ending(ready))
	}
}

// ending is the kind of failure that a step ended a loop with; "" where it did not
// fail.
func (w *witness) ending(ready *turn.Ready) string {
	for _, e := range ready.Events {
		switch p := e.Payload.(type) {
		case event.SessionError:
			if p.ErrorType != "" {
				return p.ErrorType
			}
			return "error"
		case event.Abort:
			return "cancelled"
		}
	}
	return ""
}

// begin notes that a loop has begun.
func (w *witness) begin(at time.Time, s *turn.State) {
	w.interaction = s.Loop.InteractionID
	w.agent = &trace.Span{Op: trace.Agent, At: s.AgentTrace(), Parent: s.HostTrace(), Start: at, SessionID: w.id, Model: s.Model}
}

func (w *witness) endAgent(at time.Time, failure string) {
	if w.chat != nil {
		w.endChat(at, "cancelled")
	}
	for _, t := range w.tools { // open still: they wait for a resume
		t.End, t.Error = at, "suspended"
		w.to.Ended(t)
	}
	w.tools = nil
	w.agent.End, w.agent.Error = at, failure
	w.to.Ended(w.agent)
	w.agent = nil
}

// asked notes a request to a model.
func (w *witness) asked(at time.Time, s *turn.State, m *turn.StartModel) {
	if w.agent == nil || s.Live.Model == nil {
		return
	}
	w.fence = m.Fence
	w.chat = &trace.Span{Op: trace.Chat, At: s.ChatTrace(s.Live.Model.MessageID), Parent: w.agent.At, Start: at, SessionID: w.id, Model: m.Request.Model}
	if w.content {
		w.chat.Input = w.messages(m.Request.Messages)
	}
}

// answered notes what the model said.
func (w *witness) answered(r *model.Response) {
	c := w.chat
	c.ResponseModel, c.ResponseID, c.Finish = r.Model, r.ID, r.Finish
	if r.Usage != nil {
		c.HasUsage, c.InputTokens, c.OutputTokens, c.CachedTokens = true, r.Usage.InputTokens, r.Usage.OutputTokens, r.Usage.CacheReadTokens
		w.agent.HasUsage = true
		w.agent.InputTokens += r.Usage.InputTokens
		w.agent.OutputTokens += r.Usage.OutputTokens
	}
	if w.content {
		c.Output = w.messages([]model.Message{r.Message})
	}
}

func (w *witness) endChat(at time.Time, failure string) {
	w.chat.End, w.chat.Error = at, failure
	w.to.Ended(w.chat)
	w.chat = nil
}

func (w *witness) toolStarted(at time.Time, s *turn.State, p event.ToolStart) {
	if w.agent == nil {
		return
	}
	t := &trace.Span{Op: trace.Tool, At: s.ToolTrace(p.ToolCallID), Parent: w.agent.At, Start: at, SessionID: w.id, ToolName: p.ToolName, CallID: p.ToolCallID}
	if w.content {
		t.Input = w.redact(string(p.Arguments))
	}
	w.tools = append(w.tools, t)
}

// endedAtOnce ends a call that the step which began it ended, too: one whose
// arguments do not fit, or whose tool is not there.
func (w *witness) endedAtOnce(ready *turn.Ready, callID string) {
	for _, e := range ready.Events {
		if p, ok := e.Payload.(event.ToolComplete); ok && p.ToolCallID == callID {
			w.toolEnded(e.Timestamp, p)
		}
	}
}

func (w *witness) toolEnded(at time.Time, p event.ToolComplete) {
	for i, t := range w.tools {
		if t.CallID != p.ToolCallID {
			continue
		}
		w.tools = append(w.tools[:i], w.tools[i+1:]...)
		t.End = at
		if !p.Success {
			if t.Error = "error"; p.Error != nil && p.Error.Code != "" {
				t.Error = p.Error.Code
			}
		}
		if w.content && p.Result != nil {
			t.Output = w.redact(p.Result.Content)
		}
		w.to.Ended(t)
		return
	}
}

// part and said are messages in the form of the semantic conventions.
type part struct {
	Type      string          `json:"type"`
	Content   string          `json:"content,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Response  string          `json:"response,omitempty"`
}

type said struct {
	Role  string `json:"role"`
	Parts []part `json:"parts"`
}

func (w *witness) messages(ms []model.Message) string {
	out := make([]said, len(ms))
	for i, m := range ms {
		s := said{Role: string(m.Role), Parts: []part{}}
		switch {
		case m.Role == model.ToolRole:
			s.Parts = append(s.Parts, part{Type: "tool_call_response", ID: m.CallID, Response: m.Text})
		case m.Text != "":
			s.Parts = append(s.Parts, part{Type: "text", Content: m.Text})
		}
		for _, c := range m.Calls {
			p := part{Type: "tool_call", ID: c.ID, Name: c.Name}
			if json.Valid([]byte(c.Arguments)) {
				p.Arguments = json.RawMessage(c.Arguments)
			}
			s.Parts = append(s.Parts, p)
		}
		out[i] = s
	}
	b, err := json.Marshal(out)
	if err != nil {
		return ""
	}
	return w.redact(string(b))
}
