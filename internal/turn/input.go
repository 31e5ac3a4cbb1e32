package turn

import (
	"time"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/internal/policy"
	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/tool"
)

// Input is one thing that happens to a session.
type Input struct {
	At    time.Time     // when it happens
	NewID func() string // makes the ids of what it causes
	Body  Body
}

// Body is what happens: one of the types below.
type Body interface{ kind() Kind }

// Kind names a type of input.
type Kind string

// The kinds of input.
const (
	KindBegin              Kind = "begin"
	KindResume             Kind = "resume"
	KindAttach             Kind = "attach"
	KindDetach             Kind = "detach"
	KindConfigure          Kind = "configure"
	KindSend               Kind = "send"
	KindClear              Kind = "clear"
	KindAbort              Kind = "abort"
	KindModelChunk         Kind = "model_chunk"
	KindModelRetry         Kind = "model_retry"
	KindModelDone          Kind = "model_done"
	KindModelFailed        Kind = "model_failed"
	KindToolDone           Kind = "tool_done"
	KindToolAnswer         Kind = "tool_answer"
	KindPermissionAnswer   Kind = "permission_answer"
	KindPermissionPrepared Kind = "permission_prepared"
	KindNote               Kind = "note"
	KindStoreFailed        Kind = "store_failed"
	KindClose              Kind = "close"
	KindSuspend            Kind = "suspend"
	KindArrange            Kind = "arrange"
	KindCommandDone        Kind = "command_done"
)

// Begin starts a new session.
type Begin struct {
	SessionID    string
	Model        string
	Effort       string
	Tier         string // of the context window; "" is none
	Dir          string
	Settings     Settings
	Client       Client
	AlreadyInUse bool
	Select       *event.SubagentSelected // nil: the default agent
	Track        bool                    // capture the files that Transom's tools change
}

// Resume takes up a session, from the log or live. Result: nothing.
type Resume struct {
	Client       Client
	Settings     *Settings // nil leaves a live session's as they are
	Model        *string   // nil: unchanged
	Effort       *string
	Tier         *string // "" is none
	Dir          *string
	Continue     bool // take up what was under way
	Quiet        bool // write no session.resume event
	WasActive    bool
	AlreadyInUse bool
	EventsBytes  int64
	Loaded       bool                    // just now, from a log that others may have written since
	PID          int                     // of this process
	Select       *event.SubagentSelected // as of Configure
	Track        bool                    // capture files, where no turn was made without that
}

// Attach adds a client, or gives an attached one other tools.
type Attach struct{ Client Client }

// Detach takes a client away. Lost says that its connection broke; where it did
// not and nobody else is attached, the session ends. Result: whether it ended.
type Detach struct {
	ClientID    string
	Lost        bool
	EventsBytes int64
}

// Suspend takes the session out of this process: what is under way stays open in
// the log, to be taken up by a resume.
type Suspend struct{ EventsBytes int64 }

// Configure changes settings of the running session; nil leaves one as it is.
type Configure struct {
	Model      *string
	Cause      string // of the change of model; "" is a host's wish
	Effort     *string
	Tier       *string // of the context window; nil: unchanged, but none with a change of model
	Mode       *string
	Name       *string
	AutoName   bool // Name came from Transom: it never replaces a host's
	Dir        *string
	Place      *event.Context          // what is known of the repository in the directory
	ApproveAll *bool                   // calls run unasked
	Answerer   *Answerer               // who answers permission questions from now on, or no more
	Forget     bool                    // what was approved for the session
	Settings   func(*Settings)         // pure
	Select     *event.SubagentSelected // what the session's own agent is; without a name the default one
}

// Answerer says whether a client answers permission questions.
type Answerer struct {
	ClientID string
	Answers  bool
}

// Send is a message of a user. Result: its message id (string).
type Send struct {
	Message event.Queued // MessageID may be empty: one is made
	Headers map[string]string
}

// Clear replaces the window by a seed. Result: the number of messages cleared.
type Clear struct{ Prompt string }

// Abort ends the running turn.
type Abort struct{ Reason string }

// ModelChunk is a piece of a streamed answer.
type ModelChunk struct {
	Fence Fence
	Chunk model.Chunk
}

// ModelRetry says that an attempt failed and that another one follows.
type ModelRetry struct {
	Fence Fence
	Err   *model.Error
	Took  time.Duration // of the failed attempt
	Wait  time.Duration // before the next one
}

// ModelDone is the whole answer.
type ModelDone struct {
	Fence    Fence
	Response model.Response
	Took     time.Duration
}

// ModelFailed says that no answer will come.
type ModelFailed struct {
	Fence Fence
	Err   *model.Error
	Took  time.Duration
}

// ToolDone is the end of a call that ran in this process.
type ToolDone struct {
	Fence   Fence
	Outcome tool.Outcome
}

// ToolAnswer is a host's answer to an open request. Result: whether it counted.
type ToolAnswer struct {
	RequestID string
	Result    tool.Result
	Thrown    error               // what the handler threw; goes before Result
	Redact    func(string) string // takes secrets out of a detail; nil leaves it
}

// PermissionPrepared says what has to be asked about a call.
type PermissionPrepared struct {
	Fence      Fence
	Permission tool.Permission
	Forced     bool
	Free       bool
	Err        error // why the call cannot run; the model reads it
}

// PermissionAnswer is a decision on an open question. Result: whether it counted.
type PermissionAnswer struct {
	RequestID string
	Decision  policy.Decision
}

// Note writes a remark of a host (an information, a warning or an error).
type Note struct {
	Payload event.Payload
	Agent   string // whose it is; "" is the session's own
	Sync    bool   // it is on the disk before anything is answered
}

// StoreFailed says that the log could not be written while an effect's outcome
// was being recorded.
type StoreFailed struct{ Err error }

// Close ends the session in this process.
type Close struct {
	EventsBytes int64
	Reason      string // "" is routine
	Ask         bool   // the session-end hook is asked first
}

func (Begin) kind() Kind              { return KindBegin }
func (Resume) kind() Kind             { return KindResume }
func (Attach) kind() Kind             { return KindAttach }
func (Detach) kind() Kind             { return KindDetach }
func (Configure) kind() Kind          { return KindConfigure }
func (Send) kind() Kind               { return KindSend }
func (Clear) kind() Kind              { return KindClear }
func (Abort) kind() Kind              { return KindAbort }
func (ModelChunk) kind() Kind         { return KindModelChunk }
func (ModelRetry) kind() Kind         { return KindModelRetry }
func (ModelDone) kind() Kind          { return KindModelDone }
func (ModelFailed) kind() Kind        { return KindModelFailed }
func (ToolDone) kind() Kind           { return KindToolDone }
func (ToolAnswer) kind() Kind         { return KindToolAnswer }
func (PermissionAnswer) kind() Kind   { return KindPermissionAnswer }
func (PermissionPrepared) kind() Kind { return KindPermissionPrepared }
func (Note) kind() Kind               { return KindNote }
func (StoreFailed) kind() Kind        { return KindStoreFailed }
func (Close) kind() Kind              { return KindClose }
func (Suspend) kind() Kind            { return KindSuspend }

// Ready is what has to be done, in the order of the fields.
type Ready struct {
	// Events are to be appended (those that are persisted, as one batch) and then
	// published (those that are public), in order.
	Events []*event.Event
	// Files are to be written into the session's directory before the append.
	Files []File
	// Sync: the batch must be on the disk before anything is published.
	Sync bool
	// CancelCompaction: end the summary being made.
	CancelCompaction bool
	// Cancel: end all effects that run, but for those of sub-agents.
	Cancel bool
	// CancelAgents: end all effects of these sub-agents.
	CancelAgents []string
	// Start holds the effects to begin.
	Start []Effect
	// Result answers the input; a Parked says that the answer comes later.
	Result any
	// Answers answer inputs that were parked.
	Answers []Answer
}

// File is text that is kept beside the log: one that is too large for the window, or
// for people.
type File struct {
	Name     string // a relative path
	Text     string
	Optional bool // the records do without it
}

// Effect is work outside the core: one of *StartModel, *StartTool, *AskPermission.
type Effect any

// StartModel makes a model call and posts ModelChunk, ModelRetry and one of
// ModelDone and ModelFailed.
type StartModel struct {
	Fence   Fence
	Request model.Request
}

// StartTool runs a call in this process and posts ToolDone.
type StartTool struct {
	Fence Fence
	Tool  *tool.Compiled
	Call  tool.Call
}

// PreparePermission finds out what has to be asked about a call, and posts
// PermissionPrepared.
type PreparePermission struct {
	Fence  Fence
	Tool   *tool.Compiled
	Call   tool.Call
	Forced bool // a hook wants somebody to be asked
	Free   bool // nobody needs to be asked; a rule may deny it all the same
}

// AskPermission puts a question to a client that lives in this process; clients
// on connections have read it from the event.
type AskPermission struct {
	Agent     string // the sub-agent whose call it is
	RequestID string
	Request   event.PermissionRequested
	Tool      string
	Call      string
	Arguments []byte
}

// Refusal is the error of an input that a state does not take.
type Refusal struct {
	Kind string // a kind of transom.Error: "wrong_state", "invalid_params", "unsupported", "conflict"
	Msg  string
}

func (e *Refusal) Error() string { return e.Msg }
