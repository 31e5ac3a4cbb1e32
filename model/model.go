// Package model defines how Transom talks to a language model.
//
// A [Provider] turns one [Request] into a sequence of [Chunk]s. Adapters for
// real endpoints, and the two built-in models that need no network, live in the
// packages below this one:
//
//	model/openai     any server that speaks chat completions
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
	// Calls are the tool calls of an assistant message, in order.
	Calls []Call
	// CallID is the call that a tool message answers.
	CallID string
	// Reasoning is the model's reasoning text, sent back where the provider
	// needs it.
	Reasoning string
}

// Image is a picture in a message.
type Image struct {
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
	// Headers are added to this request only.
	Headers map[string]string
	// SessionID and InteractionID identify the work to the provider's logs.
	SessionID     string
	InteractionID string
	// Initiator is "user" for the first request of a loop, "agent" after it.
	Initiator string
}

// Chunk is a piece of the answer. Any of its fields may be set.
type Chunk struct {
	Text      string
	Reasoning string
	// Call is a fragment of a tool call; nil where the chunk has none.
	Call *CallChunk
	// Usage is the provider's figure for the whole request so far: the last one
	// counts, figures are never added up.
	Usage *Usage
	// Finish is the provider's reason for the end, as it wrote it.
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
	InputTokens      int
	OutputTokens     int
	CacheReadTokens  int
	CacheWriteTokens int
	ReasoningTokens  int
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
	// Raw is the provider's own description, where it gave one.
	Raw json.RawMessage
}

// Lister is a provider that knows which models there are.
type Lister interface {
	Models(ctx context.Context) ([]Info, error)
}
