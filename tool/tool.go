// Package tool defines what a model can call: the definition, the call's
// arguments and its result.
//
//	reg, err := tool.NewRegistry([]tool.Tool{{Name: "add", Parameters: schema, Handler: add}})
//	c, known := reg.Lookup("add")
//	args, problem := c.Check(raw)                   // before any handler runs
//	out := tool.Run(ctx, c, tool.Call{Arguments: args}, nil)
//
// The way of one call through this package:
//
//	raw arguments ─ Check ─▶ arguments ─ Run ──────────▶ Result, error ─ Settle ─▶ Outcome
//	                  │                  └ host's answer ─ ParseAnswer ─┘             ▲
//	                  └ Problem ──────────────────────────────────────────────────────┘
//
// # Ownership
//
// A [Registry] is an immutable snapshot: a session that gains or loses tools
// makes a new one, and a running call keeps the one it began with. A [Compiled]
// is shared, between sessions too, and never changes. [Run] starts one goroutine
// a call; it outlives the call only where a handler ignores its context.
//
// # Errors
//
// A tool that cannot be offered is a *[DefinitionError]. Everything that goes
// wrong with a call is an [Outcome], never an error: the model has to read it.
package tool

import (
	"context"
	"encoding/json"
	"time"
)

// Tool is one tool.
type Tool struct {
	// Name is what the model calls: ASCII letters, digits, '_' and '-', at most
	// 64 bytes for the strictest provider (longer names are accepted).
	Name string
	// Description is what the model reads; it may be empty.
	Description string
	// Parameters is the JSON Schema (Draft 2020-12 or 7) of the arguments; nil
	// accepts any object.
	Parameters json.RawMessage
	// IsTerminal: a successful call ends the turn, and its result is not fed
	// back to the model for another round. A call that does not succeed is shown
	// to the model as with any other tool.
	IsTerminal bool
	// SkipPermission: calls run without asking.
	SkipPermission bool
	// OverridesBuiltIn: the tool may take the name of a built-in one.
	OverridesBuiltIn bool
	// Defer is "never" (always in the model's list), "auto" or "" (may be left
	// to tool search where that is on).
	Defer string
	// Timeout bounds one call of Handler; 0 is no limit.
	Timeout time.Duration
	// Tolerant lets properties pass that the schema does not list, even where it
	// says that there may be none. Built-in tools are tolerant, because recorded
	// and trained calls carry arguments of their relatives; a host's tool is as
	// strict as its schema.
	Tolerant bool
	// Effects: a call may change what is outside of the session, such as files or
	// processes. Where a call was under way when its process was killed, nobody knows
	// what became of it: the model is told so, and to look before it tries again. For
	// tools with a Handler; what a host's tool did, the host says.
	Effects bool
	// Metadata is kept for hosts; the model never sees it.
	Metadata json.RawMessage
	// Source says where the tool comes from, for the patterns that hosts filter
	// tools by ("builtin:NAME"); "" is [Custom].
	Source Source
	// Origin says where a tool of an MCP server comes from; nil for others.
	Origin *Origin
	// Permission says what has to be asked before a call runs, with what a person
	// needs to decide: the command, the change, the path. It may look at files,
	// and must not change anything. nil: a call is asked about as one of a custom
	// tool, by name and arguments.
	Permission func(ctx context.Context, call Call) (Permission, error)
	// Handler runs the call in this process. nil: the host that declared the
	// tool answers over its connection.
	Handler Handler
}

// Source says where a tool comes from. Its values are those of tool patterns.
type Source string

// The sources of tools.
const (
	Custom  Source = "custom"  // a host's
	BuiltIn Source = "builtin" // Transom's
	MCP     Source = "mcp"     // an MCP server's
)

// Origin is the MCP server that has a tool, and the tool's name there.
type Origin struct{ Server, Tool string }

// Permission is what has to be asked before a call runs.
type Permission struct {
	// None: the call needs no approval.
	None bool
	// Request is the question as the protocol's permissionRequest: an object with
	// kind ("shell", "write", "read", "url", "memory", …) and the fields of that
	// kind. The id of the call is added by whoever asks.
	Request json.RawMessage
	// Prompt is the same for display, as promptRequest; nil shows Request.
	Prompt json.RawMessage
}

// Handler runs one call. An error is shown to people (up to [MaxDetail]) and to the model
// as a bare failure; a failure that the model should read is a [Result] of type
// [Failure]. The context ends when the turn is aborted or the timeout is over.
type Handler func(ctx context.Context, call Call) (Result, error)

// Call is one call of a tool.
type Call struct {
	SessionID string
	AgentID   string          // the sub-agent that calls; "" is the session's own agent
	ID        string          // the model's id of the call
	Name      string          // of the tool
	Arguments json.RawMessage // a JSON object that satisfies the tool's schema
	Dir       string          // the session's working directory
	// Traceparent and Tracestate are the call's place in a trace (W3C Trace Context);
	// "" where there is none.
	Traceparent, Tracestate string
}

// ResultType says how a call ended. Its values are those of the wire.
type ResultType string

// How a call can end. Only Success ends a turn that a terminal tool was called in.
const (
	Success  ResultType = "success"
	Failure  ResultType = "failure"
	Timeout  ResultType = "timeout"
	Denied   ResultType = "denied"   // the model is told and goes on
	Rejected ResultType = "rejected" // by a person: the turn ends, unless the tool is terminal
)

// Result is what a call came to.
type Result struct {
	// Text is what the model reads.
	Text string
	// Type is Success where empty; a type outside the list is a Failure.
	Type ResultType
	// Error is shown to people instead of Text where the call did not succeed.
	Error string
	// Detail is shown to people instead of Text where the call succeeded.
	Detail string
	// Binary holds images and files for the model.
	Binary []Binary
	// Telemetry is a JSON object that is passed on to clients; the model never
	// sees it.
	Telemetry json.RawMessage
	// References are the names of tools that a tool search found.
	References []string
	// Structured is the result as JSON, for clients; the model reads Text.
	Structured json.RawMessage
	// Whole keeps a text of any size in the window, where the model has asked for all
	// of it: without it, one of more than MaxResultBytes is cut to a preview.
	Whole bool
	// Skill is a skill that the call loaded: where it succeeds, the skill's text
	// follows the results of its batch in the conversation, as a message of its own.
	Skill *Skill
}

// Skill is instructions for one kind of task, as they were read.
type Skill struct {
	Name        string
	Path        string // of its SKILL.md, absolute
	Text        string // without the front matter
	Description string
	// Source is one of the protocol's sources of skills, such as "custom".
	Source string
	// Plugin and PluginVersion name the plugin that it belongs to; "" is none.
	Plugin, PluginVersion string
	// AllowedTools are what its author wants to run unasked. It is shown to hosts;
	// nothing is approved by it.
	AllowedTools []string
}

// Binary is one file of a result.
type Binary struct {
	Data        string // base64
	MIMEType    string
	Type        string // "image" or "resource"
	Description string
}
