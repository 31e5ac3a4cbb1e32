// Package trace says what sessions did, for whoever makes traces and metrics of it:
// the turns of agents, the requests to models, the calls of tools.
//
//	invoke_agent ──┬── chat          one request to a model
//	               ├── execute_tool  one call
//	               └── chat
//
// A [Span] is told of once it has ended. Its ids are made of what the session has
// anyway (see [Context.Child]), so that a tool's span has its id before the tool
// runs, also in a process that has been started anew meanwhile.
//
// # Ownership
//
// An [Observer] is called from sessions' own goroutines: it must not block.
//
// # Secrets
//
// A span has no prompt, answer, argument or result in it unless its observer wants
// content. Errors are named by their kind only.
package trace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"
)

// Context is a place in a trace, as W3C Trace Context writes it down.
type Context struct {
	Parent string // the header traceparent; "" is no place
	State  string // the header tracestate
}

// Parse takes what somebody else says; ok is false where that is no place in a
// trace. A state without a parent is none.
func Parse(parent, state string) (c Context, ok bool) {
	p := strings.Split(strings.TrimSpace(parent), "-")
	if len(p) < 4 || !isHex(p[0], 2) || p[0] == "ff" || p[0] == "00" && len(p) != 4 || !isHex(p[1], 32) || !isHex(p[2], 16) || !isHex(p[3], 2) ||
		strings.Trim(p[1], "0") == "" || strings.Trim(p[2], "0") == "" {
		return Context{}, false
	}
	if len(state) > 512 || strings.ContainsFunc(state, func(r rune) bool { return r < ' ' || r > '~' }) {
		state = ""
	}
	return Context{"00-" + strings.Join(p[1:4], "-"), strings.TrimSpace(state)}, true
}

func isHex(s string, n int) bool {
	return len(s) == n && strings.Trim(s, "0123456789abcdef") == ""
}

// Root begins a trace, whose id is made of a seed.
func Root(seed string) Context {
	sum := sha256.Sum256([]byte("trace\x00" + seed))
	return Context{Parent: "00-" + hex.EncodeToString(sum[:16]) + "-0000000000000000-01"}
}

// Child is a place below this one; equal seeds make equal places.
func (c Context) Child(seed string) Context {
	if len(c.Parent) != 55 {
		return Context{}
	}
	sum := sha256.Sum256([]byte(c.Parent[:52] + "\x00" + seed))
	return Context{c.Parent[:36] + hex.EncodeToString(sum[:8]) + c.Parent[52:], c.State}
}

// IDs are the ids of the trace and of the place in it, and whether it is sampled. A
// root that has no place yet has a span of zeros.
func (c Context) IDs() (trace [16]byte, span [8]byte, sampled bool) {
	if len(c.Parent) != 55 {
		return trace, span, false
	}
	hex.Decode(trace[:], []byte(c.Parent[3:35]))
	hex.Decode(span[:], []byte(c.Parent[36:52]))
	var flags [1]byte
	hex.Decode(flags[:], []byte(c.Parent[53:]))
	return trace, span, flags[0]&1 != 0
}

// The operations of spans.
const (
	Agent = "invoke_agent"
	Chat  = "chat"
	Tool  = "execute_tool"
)

// Span is a piece of work that has ended.
type Span struct {
	Op         string
	At         Context // its own place
	Parent     Context // the zero Context, or a span of zeros: it is the first
	Start, End time.Time
	SessionID  string
	// Error is the kind of a failure, such as "rate_limit"; "" where there was none.
	Error string

	// Of agents and chats: the model that was asked for, and of chats what answered.
	Model         string
	ResponseModel string
	ResponseID    string
	Finish        string
	InputTokens   int
	OutputTokens  int
	CachedTokens  int
	HasUsage      bool

	// Of tools.
	ToolName, CallID string

	// Content, where it is wanted: messages as JSON, or arguments and result.
	Input, Output string
}

// Observer is told what sessions did.
type Observer interface {
	// Ended tells of a span that has ended. It must not block.
	Ended(s *Span)
	// Content reports whether spans are to have what was said in them.
	Content() bool
}

// Flusher is implemented by observers that hold back what they are told. Flush
// hands it on; ctx bounds how long that may take.
type Flusher interface {
	Flush(ctx context.Context) error
}
