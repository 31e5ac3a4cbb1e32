package modelfile

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/transom-run/transom/model"
)

// Always as a count means: every time.
const Always = -1

// SystemPlaceholder as the content of a system message stands for any text.
const SystemPlaceholder = "${system}"

// File is a model file.
type File struct {
	// Path names the file in errors; it may be empty.
	Path string
	// Models are the models on offer; the first is the default.
	Models []Model
	// Conversations are tried in order.
	Conversations []Conversation
	// Errors are requests that fail, tried before the conversations.
	Errors []ErrorRule
}

// Model is a model on offer.
type Model struct {
	ID            string
	Name          string // empty: the ID
	ContextWindow int    // tokens; 0 where unknown
	MaxOutput     int    // tokens; 0 where unknown
	Vision        bool
}

// Info returns the model as a provider lists it.
func (m Model) Info() model.Info {
	name := m.Name
	if name == "" {
		name = m.ID
	}
	return model.Info{ID: m.ID, Name: name, ContextWindow: m.ContextWindow,
		MaxOutput: m.MaxOutput, Vision: m.Vision}
}

// Conversation is a recorded exchange (Messages) or a dialogue (When, Replies).
// It has exactly one of Messages and Replies.
type Conversation struct {
	Line int // in the file; 0 where there is none
	// When holds for the requests that this conversation may answer; nil holds
	// for all. A dialogue has it always.
	When *When
	// Tools, where not nil, are the names of the tools that the request must
	// offer, in order.
	Tools []string
	// Messages is a recorded exchange: a request that equals the messages before
	// one of its assistant messages is answered with that message. Assistant
	// messages that stand directly after one another are one answer.
	Messages []Message
	// Replies are answered in turn; see docs/model-files.md.
	Replies []Message
}

// When is a rule on requests. Its set fields must all hold.
type When struct {
	User  *TextRule // on a user message
	Model string    // on the model asked for
}

// TextRule is a rule on a text. Exactly one field is set.
type TextRule struct {
	Equals   string
	Contains string
	Matches  *regexp.Regexp
}

// Holds reports whether the text follows the rule.
func (r *TextRule) Holds(text string) bool {
	switch {
	case r == nil:
		return true
	case r.Matches != nil:
		return r.Matches.MatchString(text)
	case r.Contains != "":
		return strings.Contains(text, r.Contains)
	default:
		return text == r.Equals
	}
}

func (r *TextRule) String() string {
	switch {
	case r == nil:
		return "any text"
	case r.Matches != nil:
		return fmt.Sprintf("matches %q", r.Matches)
	case r.Contains != "":
		return fmt.Sprintf("contains %q", r.Contains)
	default:
		return fmt.Sprintf("equals %q", r.Equals)
	}
}

// Message is one message. The fields from Finish on are for the assistant's
// only: they say how the answer is given.
type Message struct {
	Line       int // in the file; 0 where there is none
	Role       model.Role
	Content    string
	Reasoning  string
	Refusal    string
	ToolCalls  []model.Call // an empty ID gets one when it is played
	ToolCallID string

	// Finish is the finish reason; empty: "tool_calls" beside calls, "stop"
	// otherwise.
	Finish string
	// Usage is what the answer says that it cost; nil: nothing is said.
	Usage *model.Usage
	// Chunks are the pieces of Content in a stream; nil: pieces of ChunkSize
	// characters. Arguments of calls are cut by ChunkSize always.
	Chunks []string
	// ChunkSize is in characters; 0 is [DefaultChunkSize].
	ChunkSize int
	// Delay comes before the answer, ChunkDelay between its chunks.
	Delay, ChunkDelay time.Duration
	// Failures come before the answer: attempt by attempt.
	Failures []Failure
	// Repeat makes the reply of a dialogue stand for so many replies; 0 is 1.
	Repeat int
}

// DefaultChunkSize is the length of a chunk of text, in characters, where the
// file says nothing. (The replay server of the Copilot SDKs' suites cuts so.)
const DefaultChunkSize = 200

// FinishReason is Finish, or the default for such a message.
func (m *Message) FinishReason() string {
	switch {
	case m.Finish != "":
		return m.Finish
	case len(m.ToolCalls) > 0:
		return "tool_calls"
	default:
		return "stop"
	}
}

// Failure is a failed attempt. Exactly one of Status, Cut, CutBytes and Stall
// says how it fails.
type Failure struct {
	// Status is an HTTP status from 400 to 599.
	Status int
	// Cut breaks the connection after so many chunks of the reply.
	Cut *int
	// CutBytes breaks it after so many bytes of the body. (In process, where
	// there is no body, it counts bytes of text and arguments.)
	CutBytes *int
	// Stall sends so many chunks and then nothing until the client gives up.
	Stall *int

	// Code, Message, RetryAfter, Headers and Body go with Status. An empty Body
	// is built from Code and Message as OpenAI writes it.
	Code, Message string
	RetryAfter    time.Duration
	Headers       map[string]string
	Body          string

	// Times is the number of attempts that fail so; 0 is 1; [Always].
	Times int
}

// ErrorRule makes a request fail.
type ErrorRule struct {
	Line int
	// Model restricts the rule to requests for that model.
	Model string
	// Messages are the whole request; nil: any.
	Messages []Message
	Failure  Failure
}

// Error says what is wrong with a file.
type Error struct {
	File  string // may be empty
	Line  int    // from 1; 0 where unknown
	Field string // such as conversations[0].messages[2].role
	Msg   string
}

func (e *Error) Error() string {
	var b strings.Builder
	if e.File != "" {
		b.WriteString(e.File)
	} else {
		b.WriteString("model file")
	}
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d", e.Line)
	}
	b.WriteString(": ")
	if e.Field != "" {
		b.WriteString(e.Field)
		b.WriteString(": ")
	}
	b.WriteString(e.Msg)
	return b.String()
}
