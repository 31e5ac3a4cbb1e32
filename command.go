package transom

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/internal/policy"
	"github.com/transom-run/transom/internal/prompt"
	"github.com/transom-run/transom/internal/turn"
	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/tool"
	"github.com/transom-run/transom/trace"
)

// Command is something to do to a session: one of the types below, for
// [Session.Post]. Each says what its result is.
type Command interface {
	op() string
	body() (turn.Body, error)
}

// MaxPromptBytes is how long a prompt may be: its event, which holds it twice, has
// to fit a frame of the protocol.
const MaxPromptBytes = 30 << 20

// Message is a prompt. Result: its message id (string).
type Message struct {
	// Prompt is what the model reads.
	Prompt string
	// DisplayPrompt is shown to people instead; "" shows Prompt.
	DisplayPrompt string
	// Immediate steers the running turn: the message is in its next model call.
	// Otherwise it has a turn of its own, after those that wait already.
	Immediate bool
	// Attachments are objects of the protocol, such as {"type":"file","path":"…"}.
	// They are kept with the message as the host gave them; the model reads of files,
	// directories, selections and references in the prompt's text, and gets PDF
	// documents as they are and images, those in files too, as far as it takes them.
	Attachments []json.RawMessage
	// AgentMode is kept with the message.
	AgentMode string
	// RequestHeaders are added to the model calls of the message's turn. They are
	// never written down.
	RequestHeaders map[string]string
	// Trace is the place in a trace that the message's turn belongs to; the zero
	// Context is the session's.
	Trace trace.Context

	read prompt.Attached // what the model reads of the attachments
}

func (Message) op() string { return "session.send" }

// fits reports, as an error, that a message is too long for its event.
func (m Message) fits() error {
	size := len(m.Prompt) + len(m.DisplayPrompt) + len(m.read.Trail) + len(m.read.Lead)
	for _, a := range m.Attachments {
		size += len(a)
	}
	for i := range m.read.Images {
		size += len(m.read.Images[i].Data)
	}
	if size > MaxPromptBytes {
		return &Error{Op: m.op(), Kind: KindInvalidParams, Msg: fmt.Sprintf("the prompt has %d bytes with its attachments, more than the %d that one message may have: attach files by their path, or send it in parts", size, MaxPromptBytes)}
	}
	return nil
}

// attach finds out what the model reads of a message's attachments.
func (h *Session) attach(m *Message) (err error) {
	if err := m.fits(); err != nil || len(m.Attachments) == 0 {
		return err
	}
	if m.read, err = prompt.Attach(context.Background(), h.sess.View().Dir, m.Attachments); err != nil {
		return &Error{Kind: KindInvalidParams, Msg: err.Error(), Err: err}
	}
	return m.fits()
}

func (m Message) body() (turn.Body, error) {
	if err := m.fits(); err != nil {
		return nil, err
	}
	return turn.Send{Headers: turn.WithTrace(m.RequestHeaders, m.Trace), Message: event.Queued{
		Prompt: m.Prompt, DisplayPrompt: m.DisplayPrompt, Attachments: m.Attachments, Lead: m.read.Lead, Trail: m.read.Trail,
		Images: m.read.Images, AgentMode: m.AgentMode, Steering: m.Immediate,
	}}, nil
}

// ClearContext replaces the window by Prompt, from inside a tool call. Result:
// the number of messages cleared (int).
type ClearContext struct{ Prompt string }

func (ClearContext) op() string                 { return "session.history.clearContext" }
func (c ClearContext) body() (turn.Body, error) { return turn.Clear{Prompt: c.Prompt}, nil }

// Abort ends the running turn; an idle session is left alone. Result: nil.
type Abort struct{ Reason string }

func (Abort) op() string                 { return "session.abort" }
func (a Abort) body() (turn.Body, error) { return turn.Abort{Reason: a.Reason}, nil }

// AnswerTool answers an open request to run a tool, by the request's id. Result:
// whether the answer counted (bool); a late, repeated or unknown one does not.
type AnswerTool struct {
	RequestID string
	// Result is what the host's tool returned: text, or a result object.
	Result json.RawMessage
	// Error is why it threw, a JSON string; it goes before Result.
	Error json.RawMessage
}

func (AnswerTool) op() string { return "session.tools.handlePendingToolCall" }
func (a AnswerTool) body() (turn.Body, error) {
	res, thrown := tool.ParseAnswer(a.Result, a.Error)
	return turn.ToolAnswer{RequestID: a.RequestID, Result: res, Thrown: thrown}, nil
}

// AnswerPermission answers an open permission question, by its id. Result:
// whether the answer counted (bool).
type AnswerPermission struct {
	RequestID string
	// Decision is the protocol's decision object.
	Decision json.RawMessage
}

func (AnswerPermission) op() string { return "session.permissions.handlePendingPermissionRequest" }
func (a AnswerPermission) body() (turn.Body, error) {
	return turn.PermissionAnswer{RequestID: a.RequestID, Decision: policy.Parse(a.Decision)}, nil
}

// Configure changes a session's settings; nil leaves one as it is. Result: nil.
type Configure struct {
	Model           *string
	ReasoningEffort *string
	// ContextTier is as in [SessionConfig]; a change of the model without it is none.
	ContextTier *string
	// Mode is "interactive", "plan" or "autopilot".
	Mode *string
	// Name is the session's name; AutoName never replaces one that a host gave.
	Name     *string
	AutoName bool
	// AvailableTools and ExcludedTools are as in [SessionConfig].
	AvailableTools *[]string
	ExcludedTools  *[]string
	Streaming      *bool
	// Dir is the working directory from now on; it must exist.
	Dir *string
	// SkipCustomInstructions is as in [SessionConfig].
	SkipCustomInstructions *bool

	// Vision says whether the model takes pictures; a change of the model without it
	// goes back to what the provider says.
	Vision *bool
	// Abilities is what else is known better of the model than its provider knows; a
	// change of the model without it takes what was said before away.
	Abilities *Abilities

	// ReasoningSummary and Citations are as in [SessionConfig].
	ReasoningSummary *string
	Citations        *bool

	// MaxAICredits is as in [SessionConfig]; 0 takes a limit away.
	MaxAICredits *float64

	// ToolSearch is as in [SessionConfig], from the next model call on; nil leaves it
	// as it is.
	ToolSearch *ToolSearch

	renews   bool // the system message is another one
	scanned  bool // skills were looked for anew
	reoffers bool // the built-in tools are own
	own      *tool.Registry
}

func (Configure) op() string { return "session.configure" }
func (c Configure) body() (turn.Body, error) {
	if c.Mode != nil {
		switch *c.Mode {
		case "interactive", "plan", "autopilot":
		default:
			return nil, &Error{Op: "session.mode.set", Kind: KindInvalidParams, Msg: "unknown mode " + *c.Mode + ": the modes are interactive, plan and autopilot"}
		}
	}
	if err := tiered(c.ContextTier); err != nil {
		return nil, err
	}
	in := turn.Configure{Model: c.Model, Effort: c.ReasoningEffort, Tier: c.ContextTier, Mode: c.Mode, Name: c.Name, AutoName: c.AutoName, Dir: c.Dir}
	if c.AvailableTools != nil || c.ExcludedTools != nil || c.Streaming != nil || c.renews || c.reoffers || c.MaxAICredits != nil || c.ToolSearch != nil {
		in.Settings = func(s *turn.Settings) {
			if c.renews {
				s.Wanted++
			}
			if c.MaxAICredits != nil {
				s.Credits, s.Notice = *c.MaxAICredits, limits(*c.MaxAICredits)
			}
			if c.reoffers {
				s.BuiltIns = c.own
			}
			if c.ToolSearch != nil {
				s.Search = c.ToolSearch.settings()
			}
			if c.AvailableTools != nil {
				s.Available = filter(*c.AvailableTools)
			}
			if c.ExcludedTools != nil {
				s.Excluded = filter(*c.ExcludedTools)
			}
			if c.Streaming != nil {
				s.Streaming = *c.Streaming
			}
		}
	}
	return in, nil
}

// tiered checks the name of a context tier.
func tiered(name *string) error {
	if name == nil || *name == "" || *name == "default" || *name == model.LongContext {
		return nil
	}
	return &Error{Kind: KindInvalidParams, Msg: fmt.Sprintf("unknown context tier %q: the tiers are default and long_context", *name)}
}

// filter makes a filter of a list of patterns; nil is no filter.
func filter(patterns []string) turn.Filter {
	return turn.Filter{Set: patterns != nil, Patterns: patterns}
}

// Note writes a remark into a session's log. Result: the event's id (string).
type Note struct {
	// Level is "info", "warning" or "error".
	Level   string
	Message string
	// Type is the info, warning or error type; "" is "notification".
	Type string
	URL  string
	// Ephemeral: shown live, not kept.
	Ephemeral bool
}

func (Note) op() string { return "session.log" }
func (n Note) body() (turn.Body, error) {
	if n.Type == "" {
		n.Type = "notification"
	}
	var p event.Payload
	switch n.Level {
	case "", "info":
		p = event.SessionInfo{InfoType: n.Type, Message: n.Message, URL: n.URL}
	case "warning":
		p = event.SessionWarning{WarningType: n.Type, Message: n.Message, URL: n.URL}
	case "error":
		p = event.SessionError{ErrorType: n.Type, Message: n.Message, URL: n.URL}
	default:
		return nil, &Error{Op: "session.log", Kind: KindInvalidParams, Msg: "unknown level " + n.Level + ": the levels are info, warning and error"}
	}
	if n.Ephemeral {
		p = event.EphemeralNote{Payload: p}
	}
	return turn.Note{Payload: p}, nil
}
