package event

import "encoding/json"

// The types of the payloads below.
const (
	TypePlanChanged          = "session.plan_changed"
	TypeWorkspaceFileChanged = "session.workspace_file_changed"
	TypePermissionsChanged   = "session.permissions_changed"
	TypeCapabilitiesChanged  = "capabilities.changed"
	TypeCommandsChanged      = "commands.changed"
	TypeCommandExecute       = "command.execute"
	TypeCommandQueued        = "command.queued"
	TypeCommandCompleted     = "command.completed"
	TypeElicitationRequested = "elicitation.requested"
	TypeElicitationCompleted = "elicitation.completed"
	TypeTodosChanged         = "session.todos_changed"
	TypeExitPlanRequested    = "exit_plan_mode.requested"
	TypeExitPlanCompleted    = "exit_plan_mode.completed"
	TypeEphemeralQuery       = "ui.ephemeral_query"
	TypeApprovalsReset       = "transom.approvals_reset"
	TypeClientMetadata       = "transom.client_metadata"
	TypeQueueOrder           = "transom.queue_order"
)

// PlanChanged says that the session's plan was made, changed or deleted.
type PlanChanged struct {
	Operation string `json:"operation"` // "create", "update" or "delete"
}

// WorkspaceFileChanged says that a file of the session's own directory was
// written. Path is relative to the directory "files" in it, with slashes.
type WorkspaceFileChanged struct {
	Path      string `json:"path"`
	Operation string `json:"operation"` // "create" or "update"
}

// PermissionsChanged says that calls are approved in another way from now on.
type PermissionsChanged struct {
	PreviousMode string `json:"previousMode,omitempty"` // "manual" or "allow-all"
	Mode         string `json:"mode,omitempty"`
}

// CapabilitiesChanged says what can be asked of the session's clients from now
// on.
type CapabilitiesChanged struct {
	UI UICapabilities `json:"ui"`
}

// UICapabilities are what a client shows to its user.
type UICapabilities struct {
	Elicitation bool `json:"elicitation"`
}

// CommandsChanged lists the slash commands that clients have registered.
type CommandsChanged struct {
	Commands []CommandInfo `json:"commands"`
}

// CommandInfo describes a client's slash command.
type CommandInfo struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

// CommandExecute asks the client that registered a command to run it.
type CommandExecute struct {
	RequestID   string `json:"requestId"`
	Command     string `json:"command"` // as it was typed, such as "/deploy production"
	CommandName string `json:"commandName"`
	Args        string `json:"args"`
}

// CommandQueued asks clients to run a slash command whose turn has come.
type CommandQueued struct {
	RequestID string `json:"requestId"`
	Command   string `json:"command"`
}

// CommandCompleted says that a command is done with.
type CommandCompleted struct {
	RequestID string `json:"requestId"`
}

// ElicitationRequested asks a client's user for something.
type ElicitationRequested struct {
	RequestID       string          `json:"requestId"`
	Message         string          `json:"message"`
	Mode            string          `json:"mode,omitempty"`              // "form" or "url"
	Source          string          `json:"elicitationSource,omitempty"` // the MCP server that asks
	URL             string          `json:"url,omitempty"`
	RequestedSchema json.RawMessage `json:"requestedSchema,omitempty"`
}

// ElicitationCompleted says that a question to the user is settled.
type ElicitationCompleted struct {
	RequestID string          `json:"requestId"`
	Action    string          `json:"action,omitempty"` // "accept", "decline" or "cancel"
	Content   json.RawMessage `json:"content,omitempty"`
}

// TodosChanged says that the model's list of what is to be done may have changed.
type TodosChanged struct{}

// ExitPlanRequested says that the host's user is asked to approve a plan.
type ExitPlanRequested struct {
	RequestID         string   `json:"requestId"`
	Summary           string   `json:"summary"`
	PlanContent       string   `json:"planContent"` // of the session's plan; "" is none
	Actions           []string `json:"actions"`
	RecommendedAction string   `json:"recommendedAction"`
	Model             string   `json:"model,omitempty"`
}

// ExitPlanCompleted says what the user answered.
type ExitPlanCompleted struct {
	RequestID      string `json:"requestId"`
	Approved       bool   `json:"approved"`
	SelectedAction string `json:"selectedAction,omitempty"`
	Feedback       string `json:"feedback,omitempty"`
}

// EphemeralQuery is a piece of the answer to a question that is no part of the
// conversation.
type EphemeralQuery struct {
	RequestID string `json:"requestId"`
	Phase     string `json:"phase"` // "started", "chunk", "completed", "failed" or "aborted"
	Chunk     string `json:"chunk,omitempty"`
	Answer    string `json:"answer,omitempty"`
	Error     string `json:"error,omitempty"`
}

// ClientMetadata changes what clients keep with the session: in the order of the
// fields.
type ClientMetadata struct {
	Clear  bool              `json:"clear,omitempty"` // all goes
	Remove []string          `json:"remove,omitempty"`
	Set    map[string]string `json:"set,omitempty"`
}

// ApprovalsReset takes back what was approved for the session.
type ApprovalsReset struct{}

// QueueOrder says which messages wait, in which order, each as it reads now: what
// waited and is not named waits no more.
type QueueOrder struct {
	Items []Queued `json:"items"`
}

// EventType returns "session.plan_changed".
func (PlanChanged) EventType() string { return TypePlanChanged }

// EventType returns "session.workspace_file_changed".
func (WorkspaceFileChanged) EventType() string { return TypeWorkspaceFileChanged }

// EventType returns "session.permissions_changed".
func (PermissionsChanged) EventType() string { return TypePermissionsChanged }

// EventType returns "capabilities.changed".
func (CapabilitiesChanged) EventType() string { return TypeCapabilitiesChanged }

// EventType returns "commands.changed".
func (CommandsChanged) EventType() string { return TypeCommandsChanged }

// EventType returns "command.execute".
func (CommandExecute) EventType() string { return TypeCommandExecute }

// EventType returns "command.queued".
func (CommandQueued) EventType() string { return TypeCommandQueued }

// EventType returns "command.completed".
func (CommandCompleted) EventType() string { return TypeCommandCompleted }

// EventType returns "elicitation.requested".
func (ElicitationRequested) EventType() string { return TypeElicitationRequested }

// EventType returns "elicitation.completed".
func (ElicitationCompleted) EventType() string { return TypeElicitationCompleted }

// EventType returns "session.todos_changed".
func (TodosChanged) EventType() string { return TypeTodosChanged }

// EventType returns "exit_plan_mode.requested".
func (ExitPlanRequested) EventType() string { return TypeExitPlanRequested }

// EventType returns "exit_plan_mode.completed".
func (ExitPlanCompleted) EventType() string { return TypeExitPlanCompleted }

// EventType returns "ui.ephemeral_query".
func (EphemeralQuery) EventType() string { return TypeEphemeralQuery }

// EventType returns "transom.approvals_reset".
func (ApprovalsReset) EventType() string { return TypeApprovalsReset }

// EventType implements Payload.
func (ClientMetadata) EventType() string { return TypeClientMetadata }

// EventType returns "transom.queue_order".
func (QueueOrder) EventType() string { return TypeQueueOrder }

func (CapabilitiesChanged) ephemeralEvent()  {}
func (CommandsChanged) ephemeralEvent()      {}
func (CommandExecute) ephemeralEvent()       {}
func (CommandQueued) ephemeralEvent()        {}
func (CommandCompleted) ephemeralEvent()     {}
func (ElicitationRequested) ephemeralEvent() {}
func (ElicitationCompleted) ephemeralEvent() {}
func (TodosChanged) ephemeralEvent()         {}
func (ExitPlanRequested) ephemeralEvent()    {}
func (ExitPlanCompleted) ephemeralEvent()    {}
func (EphemeralQuery) ephemeralEvent()       {}

// TypeSaved is the type of [Saved].
const TypeSaved = "transom.saved"

// Saved is written where a host wants a session kept that nothing was said in yet.
type Saved struct{}

// EventType returns "transom.saved".
func (Saved) EventType() string { return TypeSaved }
