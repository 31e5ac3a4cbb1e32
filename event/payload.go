package event

import (
	"encoding/json"
	"strconv"

	"github.com/transom-run/transom/internal/jsonstring"
)

// The payloads below are those that a session's life consists of. Names and
// meanings are those of the protocol's published event types; a payload that
// only passes through is kept as raw JSON instead.

// SessionStart is the first record of a session.
type SessionStart struct {
	SessionID       string         `json:"sessionId"`
	Version         int            `json:"version"`
	Producer        string         `json:"producer"`
	CopilotVersion  string         `json:"copilotVersion"`
	StartTime       string         `json:"startTime"`
	SelectedModel   string         `json:"selectedModel,omitempty"`
	ReasoningEffort string         `json:"reasoningEffort,omitempty"`
	ContextTier     *string        `json:"contextTier"`
	Context         Context        `json:"context"`
	RemoteSteerable bool           `json:"remoteSteerable"`
	AlreadyInUse    bool           `json:"alreadyInUse"`
	Limits          *SessionLimits `json:"sessionLimits,omitempty"`
}

// Context is where a session works, and what is known of the repository there.
type Context struct {
	Cwd            string `json:"cwd"`
	GitRoot        string `json:"gitRoot,omitempty"`
	Branch         string `json:"branch,omitempty"`
	Repository     string `json:"repository,omitempty"` // such as "owner/name"
	RepositoryHost string `json:"repositoryHost,omitempty"`
	HostType       string `json:"hostType,omitempty"` // "github" or "ado"
	HeadCommit     string `json:"headCommit,omitempty"`
	BaseCommit     string `json:"baseCommit,omitempty"`
}

// SessionResume is written each time a session is resumed.
type SessionResume struct {
	ResumeTime          string         `json:"resumeTime"`
	SelectedModel       string         `json:"selectedModel,omitempty"`
	ReasoningEffort     string         `json:"reasoningEffort,omitempty"`
	ContextTier         *string        `json:"contextTier"`
	Context             Context        `json:"context"`
	RemoteSteerable     bool           `json:"remoteSteerable"`
	ContinuePendingWork bool           `json:"continuePendingWork"`
	EventsFileSizeBytes int64          `json:"eventsFileSizeBytes"`
	EventCount          int64          `json:"eventCount"`
	AlreadyInUse        bool           `json:"alreadyInUse"`
	SessionWasActive    bool           `json:"sessionWasActive"`
	Limits              *SessionLimits `json:"sessionLimits,omitempty"`
}

// SessionShutdown is the last record of a session's life in a process.
type SessionShutdown struct {
	ShutdownType        string                 `json:"shutdownType"` // "routine" or "error"
	ErrorReason         string                 `json:"errorReason,omitempty"`
	TotalAPIDurationMs  int64                  `json:"totalApiDurationMs"`
	TotalPremium        float64                `json:"totalPremiumRequests"`
	SessionStartTime    int64                  `json:"sessionStartTime"` // Unix milliseconds
	EventsFileSizeBytes int64                  `json:"eventsFileSizeBytes"`
	CurrentModel        string                 `json:"currentModel,omitempty"`
	CodeChanges         CodeChanges            `json:"codeChanges"`
	ModelMetrics        map[string]ModelMetric `json:"modelMetrics"`
	NanoAIU             int64                  `json:"totalNanoAiu"`
}

// CodeChanges counts what a session's tools wrote.
type CodeChanges struct {
	LinesAdded    int64    `json:"linesAdded"`
	LinesRemoved  int64    `json:"linesRemoved"`
	FilesModified []string `json:"filesModified"`
}

// ModelMetric is what one model was asked and cost in a session.
type ModelMetric struct {
	Requests struct {
		Count int64   `json:"count"`
		Cost  float64 `json:"cost"`
	} `json:"requests"`
	Usage struct {
		InputTokens      int64 `json:"inputTokens"`
		OutputTokens     int64 `json:"outputTokens"`
		CacheReadTokens  int64 `json:"cacheReadTokens"`
		CacheWriteTokens int64 `json:"cacheWriteTokens"`
	} `json:"usage"`
	NanoAIU int64 `json:"totalNanoAiu,omitempty"` // what providers charged, in billionths of an AI credit
}

// SessionError says that a turn failed, or what a host logged at level error.
type SessionError struct {
	ErrorType  string `json:"errorType"`
	Message    string `json:"message"`
	StatusCode int    `json:"statusCode,omitempty"`
	ErrorCode  string `json:"errorCode,omitempty"`
	URL        string `json:"url,omitempty"`
}

// SessionWarning says that something works less well than asked for.
type SessionWarning struct {
	WarningType string `json:"warningType"`
	Message     string `json:"message"`
	URL         string `json:"url,omitempty"`
}

// SessionInfo is a remark for people.
type SessionInfo struct {
	InfoType string `json:"infoType"`
	Message  string `json:"message"`
	URL      string `json:"url,omitempty"`
}

// EphemeralNote is an event that is persisted otherwise, and this time only shown:
// a remark that session.log sends with ephemeral set, a question put again.
type EphemeralNote struct{ Payload }

// MarshalJSON encodes the note as the payload it wraps.
func (n EphemeralNote) MarshalJSON() ([]byte, error) { return marshal(n.Payload) }

// ContextCleared says that the window was replaced by InitialMessage.
type ContextCleared struct {
	MessagesCleared int    `json:"messagesCleared"`
	InitialMessage  string `json:"initialMessage"`
}

// CompactionStart says that the window is being summarised. The figures are
// estimates, corrected upwards by what the provider counted of the session's earlier
// requests; the window is folded by them: its summary takes a part of what TokenLimit
// leaves for the conversation. A TokenLimit of 0 is not known.
type CompactionStart struct {
	Trigger               string `json:"trigger,omitempty"` // "manual", "background" or "blocking" as the protocol names it
	Model                 string `json:"model,omitempty"`
	TokenLimit            int    `json:"tokenLimit"`
	CurrentTokens         int    `json:"currentTokens"`
	SystemTokens          int    `json:"systemTokens"`
	ConversationTokens    int    `json:"conversationTokens"`
	ToolDefinitionsTokens int    `json:"toolDefinitionsTokens"`
}

// CompactionComplete ends a compaction: the messages that stood in the window at
// its start are replaced by SummaryContent, where it succeeded.
type CompactionComplete struct {
	Success            bool            `json:"success"`
	Error              string          `json:"error,omitempty"`
	StatusCode         int             `json:"statusCode,omitempty"`
	Trigger            string          `json:"trigger,omitempty"`
	CustomInstructions string          `json:"customInstructions,omitempty"`
	SummaryContent     string          `json:"summaryContent,omitempty"`
	MessagesBefore     int             `json:"preCompactionMessagesLength"`
	TokensBefore       int             `json:"preCompactionTokens"`
	MessagesRemoved    int             `json:"messagesRemoved"`
	TokensRemoved      int             `json:"tokensRemoved"`
	TokensUsed         *CompactionCost `json:"compactionTokensUsed,omitempty"`
	CheckpointNumber   int             `json:"checkpointNumber,omitempty"` // of the summary, from 1
	CheckpointPath     string          `json:"checkpointPath,omitempty"`   // where it is kept as a file, too
}

// CompactionCost is what making a summary cost.
type CompactionCost struct {
	Model            string `json:"model"`
	InputTokens      int    `json:"inputTokens"`
	OutputTokens     int    `json:"outputTokens"`
	CacheReadTokens  int    `json:"cacheReadTokens"`
	CacheWriteTokens int    `json:"cacheWriteTokens"`
	Duration         int64  `json:"duration"` // milliseconds
}

// AttachedImage is an image as a model is shown it, read from an attached file when
// the message was sent: the file may be another, or gone, when the window is folded
// again.
type AttachedImage struct {
	Name     string `json:"name"`
	MIMEType string `json:"mimeType"`
	Data     string `json:"data"` // base64
}

// UserMessage is a prompt as it reaches the model.
type UserMessage struct {
	Content            string            `json:"content"`
	TransformedContent string            `json:"transformedContent,omitempty"`
	MessageID          string            `json:"messageId,omitempty"`
	Source             string            `json:"source,omitempty"`
	Attachments        []json.RawMessage `json:"attachments,omitempty"`
	Images             []AttachedImage   `json:"images,omitempty"` // read from attached files
	NativeDocTypes     []string          `json:"supportedNativeDocumentMimeTypes"`
	Delivery           string            `json:"delivery"` // "idle", "queued" or "steering"
	AgentMode          string            `json:"agentMode,omitempty"`
	InteractionID      string            `json:"interactionId"`
	TurnID             string            `json:"turnId"`
}

// SystemMessage is written when the system prompt is new or has changed.
type SystemMessage struct {
	Role          string `json:"role"`
	Content       string `json:"content"`
	InteractionID string `json:"interactionId,omitempty"`
}

// TurnStart begins one model call and the tools it asks for.
type TurnStart struct {
	TurnID        string `json:"turnId"`
	InteractionID string `json:"interactionId"`
}

// TurnEnd ends what TurnStart began.
type TurnEnd struct {
	TurnID string `json:"turnId"`
}

// AssistantMessage is the model's answer.
type AssistantMessage struct {
	MessageID            string        `json:"messageId"`
	OriginatingMessageID string        `json:"originatingMessageId,omitempty"`
	Model                string        `json:"model,omitempty"`
	Content              string        `json:"content"`
	ReasoningText        string        `json:"reasoningText,omitempty"`
	ReasoningWireField   string        `json:"reasoningWireField,omitempty"`
	ReasoningOpaque      string        `json:"reasoningOpaque,omitempty"`
	EncryptedContent     string        `json:"encryptedContent,omitempty"`
	ToolRequests         []ToolRequest `json:"toolRequests"`
	InteractionID        string        `json:"interactionId"`
	TurnID               string        `json:"turnId"`
	OutputTokens         int           `json:"outputTokens,omitempty"`
	APICallID            string        `json:"apiCallId,omitempty"`
}

// ToolRequest is a call the model asked for.
type ToolRequest struct {
	ToolCallID string          `json:"toolCallId"`
	Name       string          `json:"name"`
	Arguments  json.RawMessage `json:"arguments"`
	Type       string          `json:"type"`
}

// ToolStart begins a call.
type ToolStart struct {
	ToolCallID string          `json:"toolCallId"`
	ToolName   string          `json:"toolName"`
	Arguments  json.RawMessage `json:"arguments"`
	TurnID     string          `json:"turnId"`
	Model      string          `json:"model,omitempty"`
	// Of a tool of an MCP server: the server, and the tool's name there.
	MCPServerName string `json:"mcpServerName,omitempty"`
	MCPToolName   string `json:"mcpToolName,omitempty"`
}

// ToolComplete ends a call. Where the call did not succeed, Error.Message is
// for people and Result.Content, where present, is what the model read instead.
type ToolComplete struct {
	ToolCallID    string          `json:"toolCallId"`
	Model         string          `json:"model,omitempty"`
	InteractionID string          `json:"interactionId,omitempty"`
	TurnID        string          `json:"turnId,omitempty"`
	Success       bool            `json:"success"`
	Result        *ToolResult     `json:"result,omitempty"`
	Error         *ToolError      `json:"error,omitempty"`
	ToolTelemetry json.RawMessage `json:"toolTelemetry,omitempty"`
}

// ToolResult is what a call returned.
type ToolResult struct {
	Content         string         `json:"content"`
	DetailedContent string         `json:"detailedContent,omitempty"`
	Binary          []BinaryResult `json:"binaryResultsForLlm,omitempty"`
	// Structured is what the tool of an MCP server returned as JSON.
	Structured json.RawMessage `json:"structuredContent,omitempty"`
}

// BinaryResult is a file that a call returned.
type BinaryResult struct {
	Type        string `json:"type"`
	Data        string `json:"data"`
	MIMEType    string `json:"mimeType"`
	Description string `json:"description,omitempty"`
}

// ToolError is why a call did not succeed. Code is the result type.
type ToolError struct {
	Message string `json:"message"`
	Code    string `json:"code"`
}

// PermissionRequested asks clients whether a call may run.
type PermissionRequested struct {
	RequestID         string          `json:"requestId"`
	PermissionRequest json.RawMessage `json:"permissionRequest"`
	PromptRequest     json.RawMessage `json:"promptRequest"`
	AgentMode         string          `json:"agentMode,omitempty"`
}

// PermissionCompleted says what was decided.
type PermissionCompleted struct {
	RequestID  string           `json:"requestId"`
	ToolCallID string           `json:"toolCallId,omitempty"`
	Result     PermissionResult `json:"result"`
}

// PermissionResult is a decision as clients see it. The last four members belong
// to one kind each, which always has them: typed clients drop the event otherwise.
type PermissionResult struct {
	Kind        string            `json:"kind"`
	Feedback    string            `json:"feedback,omitempty"`
	Reason      string            `json:"reason,omitempty"`
	Approval    json.RawMessage   `json:"approval,omitempty"`
	LocationKey string            `json:"locationKey,omitempty"` // of "approved-for-location"
	Rules       []json.RawMessage `json:"rules,omitempty"`       // of "denied-by-rules"
	Path        string            `json:"path,omitempty"`        // of "denied-by-content-exclusion-policy"
	Message     string            `json:"message,omitempty"`     // of the same
}

// MarshalJSON encodes the decision with all members that its kind has.
func (r PermissionResult) MarshalJSON() ([]byte, error) {
	type plain PermissionResult
	p := plain(r)
	switch r.Kind {
	case "approved-for-location":
		return marshal(struct {
			plain
			LocationKey string `json:"locationKey"`
		}{p, r.LocationKey})
	case "denied-by-rules":
		rules := r.Rules
		if rules == nil {
			rules = []json.RawMessage{}
		}
		return marshal(struct {
			plain
			Rules []json.RawMessage `json:"rules"`
		}{p, rules})
	case "denied-by-content-exclusion-policy":
		return marshal(struct {
			plain
			Path    string `json:"path"`
			Message string `json:"message"`
		}{p, r.Path, r.Message})
	}
	return marshal(p)
}

// ExternalToolRequested asks the host that declared a tool to run it.
type ExternalToolRequested struct {
	RequestID        string          `json:"requestId"`
	SessionID        string          `json:"sessionId"`
	ToolCallID       string          `json:"toolCallId"`
	ToolName         string          `json:"toolName"`
	Arguments        json.RawMessage `json:"arguments"`
	WorkingDirectory string          `json:"workingDirectory,omitempty"`
	Traceparent      string          `json:"traceparent,omitempty"` // W3C Trace Context, where there is a trace
	Tracestate       string          `json:"tracestate,omitempty"`
}

// ExternalToolCompleted says that a request to a host is settled or withdrawn.
type ExternalToolCompleted struct {
	RequestID string `json:"requestId"`
}

// Abort says that the running turn was stopped.
type Abort struct {
	Reason string `json:"reason"`
}

// ModelChange says that another model answers from now on.
type ModelChange struct {
	PreviousModel           string  `json:"previousModel,omitempty"`
	NewModel                string  `json:"newModel"`
	PreviousReasoningEffort string  `json:"previousReasoningEffort,omitempty"`
	ReasoningEffort         string  `json:"reasoningEffort,omitempty"`
	ContextTier             *string `json:"contextTier,omitempty"`
	Cause                   string  `json:"cause,omitempty"` // "rate_limit_auto_switch"; "" is a host's wish
}

// ModeChanged says that the session is in another mode.
type ModeChanged struct {
	PreviousMode string `json:"previousMode"`
	NewMode      string `json:"newMode"`
}

// ContextChanged says that the session works in another directory, or that more
// is known of its repository.
type ContextChanged Context

// The ephemeral events.

// TitleChanged is a new title for display.
type TitleChanged struct {
	Title string `json:"title"`
}

// ToolsUpdated says that the model's list of tools has changed.
type ToolsUpdated struct {
	Model string `json:"model"`
}

// PendingModified says that the queue of messages has changed.
type PendingModified struct{}

// UsageInfo is the size of the window, estimated, before a model call.
type UsageInfo struct {
	TokenLimit            int  `json:"tokenLimit"`
	CurrentTokens         int  `json:"currentTokens"`
	MessagesLength        int  `json:"messagesLength"`
	SystemTokens          int  `json:"systemTokens"`
	ConversationTokens    int  `json:"conversationTokens"`
	ToolDefinitionsTokens int  `json:"toolDefinitionsTokens"`
	IsInitial             bool `json:"isInitial,omitempty"`
}

// AssistantUsage is what one model call cost.
type AssistantUsage struct {
	Model            string `json:"model"`
	InputTokens      int    `json:"inputTokens"`
	OutputTokens     int    `json:"outputTokens"`
	CacheReadTokens  int    `json:"cacheReadTokens"`
	CacheWriteTokens int    `json:"cacheWriteTokens"`
	ReasoningTokens  int    `json:"reasoningTokens,omitempty"`
	Cost             int    `json:"cost"`
	Duration         int64  `json:"duration"` // milliseconds
	Initiator        string `json:"initiator,omitempty"`
	FinishReason     string `json:"finishReason,omitempty"`
	APICallID        string `json:"apiCallId,omitempty"`
	NumToolCalls     int    `json:"numToolCalls"`

	Charged *CopilotUsage `json:"copilotUsage,omitempty"`
}

// ModelCallFailure is one failed attempt at a model call.
type ModelCallFailure struct {
	Model        string `json:"model,omitempty"`
	Source       string `json:"source"` // "top_level"
	StatusCode   int    `json:"statusCode,omitempty"`
	FailureKind  string `json:"failureKind,omitempty"` // "api" or "transport"
	ErrorMessage string `json:"errorMessage,omitempty"`
	DurationMs   int64  `json:"durationMs"`
}

// TurnRetry says that the model call of a turn is made again, and why. Text
// streamed under an earlier message id is void.
type TurnRetry struct {
	TurnID string `json:"turnId"`
	Model  string `json:"model,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// MessageStart precedes the first delta of a message.
type MessageStart struct {
	MessageID string `json:"messageId"`
}

// MessageDelta is a piece of text as the model wrote it.
type MessageDelta struct {
	MessageID    string
	DeltaContent string
}

// ReasoningDelta is a piece of the model's reasoning.
type ReasoningDelta struct {
	ReasoningID  string `json:"reasoningId"`
	DeltaContent string `json:"deltaContent"`
}

// StreamingDelta is how much of an answer has come so far.
type StreamingDelta struct {
	TotalResponseSizeBytes int64
}

// ToolCallDelta is a piece of a call's arguments as the model wrote them.
type ToolCallDelta struct {
	ToolCallID string `json:"toolCallId"`
	ToolName   string `json:"toolName,omitempty"`
	ToolType   string `json:"toolType"`
	InputDelta string `json:"inputDelta"`
}

// AssistantIdle comes just before SessionIdle.
type AssistantIdle struct {
	Aborted bool `json:"aborted,omitempty"`
}

// SessionIdle is the last event of a piece of work.
type SessionIdle struct {
	Aborted bool   `json:"aborted,omitempty"`
	Mode    string `json:"mode"`
	// BackgroundTasks is work that goes on all the same; nil is none.
	BackgroundTasks *IdleTasks `json:"backgroundTasks,omitempty"`
}

// The private records.

// Queued is a prompt that waits for its turn.
type Queued struct {
	MessageID      string            `json:"messageId"`
	Prompt         string            `json:"prompt"`
	DisplayPrompt  string            `json:"displayPrompt,omitempty"`
	Source         string            `json:"source,omitempty"`
	Attachments    []json.RawMessage `json:"attachments,omitempty"`
	Images         []AttachedImage   `json:"images,omitempty"`
	Lead           string            `json:"lead,omitempty"`  // what the model reads before the prompt
	Trail          string            `json:"trail,omitempty"` // and after it
	AgentMode      string            `json:"agentMode,omitempty"`
	Steering       bool              `json:"steering,omitempty"`
	Command        bool              `json:"command,omitempty"` // Prompt is a slash command
	Order          int64             `json:"order,omitempty"`   // grows with each one that comes to wait
	Fired          *ScheduleFired    `json:"fired,omitempty"`   // a schedule sent it; not kept with what waits
	RequestHeaders map[string]string `json:"-"`                 // may hold a secret: never written
}

// Intent is written before a call of a terminal tool runs, so that the call
// keeps its terminality whoever answers it.
type Intent struct {
	ToolCallID string `json:"toolCallId"`
	Terminal   bool   `json:"terminal"`
}

// Epoch says that a process took the session over.
type Epoch struct {
	PID int `json:"pid"`
}

// Named is the session's name as a host set it.
type Named struct {
	Name string `json:"name"`
	Auto bool   `json:"auto,omitempty"`
}

// Usage is what one model call cost, for the session's totals.
type Usage struct {
	Model      string `json:"model"`
	Input      int64  `json:"input"`
	Output     int64  `json:"output"`
	CacheRead  int64  `json:"cacheRead,omitempty"`
	CacheWrite int64  `json:"cacheWrite,omitempty"`
	DurationMs int64  `json:"durationMs"`
	NanoAIU    int64  `json:"nanoAiu,omitempty"` // what the provider charged
}

// LoopEnd says that the work on a prompt is over.
type LoopEnd struct{}

// Unqueued takes a waiting message out of the queue without sending it.
type Unqueued struct {
	MessageID string `json:"messageId"`
}

// MarshalJSON encodes the delta.
func (d MessageDelta) MarshalJSON() ([]byte, error) { return d.appendJSON(nil), nil }

func (d MessageDelta) appendJSON(b []byte) []byte {
	b = append(b, `{"messageId":`...)
	b = jsonstring.Append(b, d.MessageID)
	b = append(b, `,"deltaContent":`...)
	return append(jsonstring.Append(b, d.DeltaContent), '}')
}

// MarshalJSON encodes the figure.
func (d StreamingDelta) MarshalJSON() ([]byte, error) { return d.appendJSON(nil), nil }

func (d StreamingDelta) appendJSON(b []byte) []byte {
	b = append(b, `{"totalResponseSizeBytes":`...)
	return append(strconv.AppendInt(b, d.TotalResponseSizeBytes, 10), '}')
}
