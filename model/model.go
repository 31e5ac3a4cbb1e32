// Package model defines how Transom talks to a language model.
//
// A [Provider] turns one [Request] into a sequence of [Chunk]s. Adapters for
// real endpoints, and the two built-in models that need no network, live in the
// packages below this one:
//
//	model/openai     any server that speaks chat completions, Azure included
//	model/responses  OpenAI's responses, Azure included
//	model/anthropic  Anthropic's messages
//	model/endpoint   what these share: address, credentials, one exchange, errors
//	model/scripted   plays a file: demos and tests
//	model/replay     records real traffic to such a file, and plays it back
//
// # Ordering
//
// Chunks come in the order in which the model wrote them. A provider makes one
// attempt; whoever calls it decides about another one, by [Error.Retryable].
//
// # Errors
//
// A provider fails with *[Error], which names the endpoint and the setting to
// check, and never holds a key. A cancelled context ends the attempt at once,
// connection included.
package model

import (
	"context"
	"encoding/json"
	"iter"
)

// Role says who speaks in a message.
type Role string

// The roles of messages.
const (
	System    Role = "system"
	Developer Role = "developer"
	User      Role = "user"
	Assistant Role = "assistant"
	ToolRole  Role = "tool"
)

// Message is one message of the window as a model sees it. It is never changed
// after it was made.
type Message struct {
	Role Role
	Text string
	// Images follow the text (user and tool messages).
	Images []Image
	// Documents stand before the text (user messages).
	Documents []Document
	// Calls are the tool calls of an assistant message, in order.
	Calls []Call
	// CallID is the call that a tool message answers.
	CallID string
	// Reasoning is the model's reasoning text, for people, and for servers of chat
	// completions that want it back: those that sent it in ReasoningField get it
	// there again.
	Reasoning      string
	ReasoningField string
	// ReasoningOpaque and EncryptedContent are reasoning in the form in which a
	// provider wants it back, kept as it wrote it and never looked into:
	// Anthropic's thinking blocks (a JSON array) or the reasoning_opaque of chat
	// completions, and OpenAI's reasoning items (a JSON array, with the places of
	// text and calls between them). A wire sends its own and passes over the rest.
	ReasoningOpaque  string
	EncryptedContent string
}

// Image is a picture in a message.
type Image struct {
	Name     string // text that stands before it, such as its path; "" is none
	MIMEType string
	Data     string // base64
}

// Document is a file in a message that the model reads as a whole, such as a PDF.
type Document struct {
	Title    string
	MIMEType string
	Data     string // base64
}

// Call is one tool call of an assistant message.
type Call struct {
	ID   string
	Name string
	// Arguments is the JSON text of the arguments: what the model wrote in a
	// Response, a valid object in a Request.
	Arguments string
}

// ToolDef is a tool as the model is told of it.
type ToolDef struct {
	Name        string
	Description string
	Parameters  json.RawMessage // a JSON Schema of type object; never nil
}

// Request asks for one assistant message.
type Request struct {
	Model           string
	Messages        []Message
	Tools           []ToolDef
	Stream          bool // as the session's streaming setting: never otherwise
	ReasoningEffort string
	// ContextTier is the tier of the context window that was chosen; "" is none.
	ContextTier string
	// MaxOutput bounds the answer, in tokens; 0 is as the provider is set up.
	MaxOutput int
	// ReasoningSummary asks for summaries of the reasoning ("auto", "concise",
	// "detailed"), where the wire has them.
	ReasoningSummary string
	// Citations asks for citations of the documents, where the wire has them.
	Citations bool
	// Headers are added to this request only.
	Headers map[string]string
	// SessionID and InteractionID identify the work to the provider's logs.
	SessionID     string
	InteractionID string
	// AgentID is the sub-agent that asks; "" is the session's own agent.
	AgentID string
	// Initiator is "user" for the first request of a loop, "agent" after it.
	Initiator string
	// NoSockets keeps the request off WebSockets, where it would go over one.
	NoSockets bool
	// Interaction says what the request is for; empty: [ForAgent].
	Interaction Interaction
}

// Interaction is what a request is for, in the words in which the SDK's request
// handler (interactionType) and GitHub's model API are told.
type Interaction string

// What requests are for.
const (
	ForAgent      Interaction = "conversation-agent"      // a loop of the session's own agent
	ForSubagent   Interaction = "conversation-subagent"   // a loop of another agent
	ForUser       Interaction = "conversation-user"       // a question of the user beside the conversation
	ForCompaction Interaction = "conversation-compaction" // a summary that takes the place of messages
	ForBackground Interaction = "conversation-background" // what a host wants made of the conversation
	ForSampling   Interaction = "conversation-sampling"   // asked by a tool's server
)

// Chunk is a piece of the answer. Any of its fields may be set.
type Chunk struct {
	Text      string
	Reasoning string
	// ReasoningField, ReasoningOpaque and EncryptedContent are those of Message,
	// whole: the last ones count.
	ReasoningField   string
	ReasoningOpaque  string
	EncryptedContent string
	// Call is a fragment of a tool call; nil where the chunk has none.
	Call *CallChunk
	// Usage is the provider's figure for the whole request so far: the last one
	// counts, figures are never added up.
	Usage *Usage
	// Finish is the provider's reason for the end in the words of chat completions
	// ("stop", "tool_calls", "length", "content_filter"); one that has no such word
	// stays as the provider wrote it.
	Finish string
	// ID and Model are the provider's response id and the model that answered.
	ID    string
	Model string
}

// CallChunk is a fragment of a tool call. Fragments of one call share Index.
type CallChunk struct {
	Index     int
	ID        string // in the first fragment
	Name      string // in the first fragment
	Arguments string // to append
}

// Usage is what a request cost.
type Usage struct {
	// InputTokens is the whole prompt, what was read from or written to a cache
	// included.
	InputTokens      int
	OutputTokens     int
	CacheReadTokens  int
	CacheWriteTokens int
	ReasoningTokens  int
	// NanoAIU is what the provider charges, in billionths of an AI credit; 0 where it
	// does not say.
	NanoAIU int64
}

// Response is a whole answer.
type Response struct {
	Message Message
	Usage   *Usage // nil where the provider gave none
	Finish  string
	ID      string
	Model   string
}

// Provider answers requests.
type Provider interface {
	// Stream makes one attempt. The sequence ends after its first error; leaving
	// it early closes the connection.
	Stream(ctx context.Context, req *Request) iter.Seq2[Chunk, error]
}

// Info describes a model that can be selected.
type Info struct {
	ID            string
	Name          string
	ContextWindow int // tokens; 0 where unknown
	MaxOutput     int // tokens; 0 where unknown
	Vision        bool
	Images        ImageLimits // where Vision is set
	// Tiers are the sizes of the window by context tier ("default", "long_context"),
	// where there are several. It is never changed.
	Tiers     map[string]int
	Tokenizer string // the name of its vocabulary, such as o200k_base; "" where unknown
	// Raw is the provider's own description, where it gave one.
	Raw json.RawMessage
}

// Window is the size of the window in a context tier; "" is the default one. It is
// ContextWindow where the model has no such tier, and 0 where that is unknown.
func (i *Info) Window(tier string) int {
	if tier == "" {
		tier = "default"
	}
	if n := i.Tiers[tier]; n > 0 {
		return n
	}
	return i.ContextWindow
}

// LongContext is the context tier of a model's larger window.
const LongContext = "long_context"

// ImageLimits is what a model takes of images. Zero fields are unknown.
type ImageLimits struct {
	Types []string // MIME types
	Count int      // images in one request
	Bytes int      // of one image
}

// Over returns l with what o knows in its place.
func (l ImageLimits) Over(o ImageLimits) ImageLimits {
	if o.Types != nil {
		l.Types = o.Types
	}
	if o.Count > 0 {
		l.Count = o.Count
	}
	if o.Bytes > 0 {
		l.Bytes = o.Bytes
	}
	return l
}

// Lister is a provider that knows which models there are.
type Lister interface {
	Models(ctx context.Context) ([]Info, error)
}
