package event

// The types of the payloads below.
const (
	TypeSubagentStarted    = "subagent.started"
	TypeSubagentCompleted  = "subagent.completed"
	TypeSubagentFailed     = "subagent.failed"
	TypeSubagentSelected   = "subagent.selected"
	TypeSubagentDeselected = "subagent.deselected"
	TypeNotification       = "system.notification"
	TypeTasksChanged       = "session.background_tasks_changed"
	TypeTaskComplete       = "session.task_complete"
	TypeAgentStarted       = "transom.agent_started"
	TypeAgentEnded         = "transom.agent_ended"
	TypeAgentMoved         = "transom.agent_moved"
	TypeAgentRemoved       = "transom.agent_removed"
)

// SubagentStarted says that an agent works on something of its own from now on.
// The envelope's agent id is the one that its events carry.
type SubagentStarted struct {
	ToolCallID       string `json:"toolCallId"` // "" where a host started it
	AgentName        string `json:"agentName"`
	AgentDisplayName string `json:"agentDisplayName"`
	AgentDescription string `json:"agentDescription"`
	Model            string `json:"model,omitempty"`
}

// SubagentCompleted says that an agent has finished, or was cancelled.
type SubagentCompleted struct {
	ToolCallID       string `json:"toolCallId"`
	AgentName        string `json:"agentName"`
	AgentDisplayName string `json:"agentDisplayName"`
	Model            string `json:"model,omitempty"`
	TotalToolCalls   int    `json:"totalToolCalls,omitempty"`
	TotalTokens      int64  `json:"totalTokens,omitempty"`
	DurationMs       int64  `json:"durationMs,omitempty"`
	Cancelled        bool   `json:"cancelled,omitempty"`
}

// SubagentFailed says that an agent could not finish, and why.
type SubagentFailed struct {
	ToolCallID       string `json:"toolCallId"`
	AgentName        string `json:"agentName"`
	AgentDisplayName string `json:"agentDisplayName"`
	Error            string `json:"error"`
	Model            string `json:"model,omitempty"`
	TotalToolCalls   int    `json:"totalToolCalls,omitempty"`
	TotalTokens      int64  `json:"totalTokens,omitempty"`
	DurationMs       int64  `json:"durationMs,omitempty"`
}

// SubagentSelected says that the session's own agent is a custom one from now on.
type SubagentSelected struct {
	AgentName        string   `json:"agentName"`
	AgentDisplayName string   `json:"agentDisplayName"`
	Tools            []string `json:"tools"` // nil is all
}

// SubagentDeselected says that the session's own agent is the default one again.
type SubagentDeselected struct{}

// Notification tells what the model is told without anybody having typed it.
type Notification struct {
	Content string           `json:"content"`
	Kind    NotificationKind `json:"kind"`
}

// NotificationKind says what a notification is about: an agent that has ended.
type NotificationKind struct {
	Type        string `json:"type"` // "agent_completed"
	AgentID     string `json:"agentId"`
	AgentType   string `json:"agentType"`
	DisplayName string `json:"displayName,omitempty"`
	Description string `json:"description,omitempty"`
	Prompt      string `json:"prompt,omitempty"`
	Status      string `json:"status"` // "completed" or "failed"
}

// TaskComplete says that the model holds its task to be done.
type TaskComplete struct {
	Summary string `json:"summary,omitempty"`
	Success bool   `json:"success,omitempty"`
}

// TasksChanged says that the list of background tasks has changed.
type TasksChanged struct{}

// IdleTasks names work that goes on while the session is idle.
type IdleTasks struct {
	Agents []IdleAgent `json:"agents"`
}

// IdleAgent is an agent that works while its session is idle.
type IdleAgent struct {
	AgentID     string `json:"agentId"`
	AgentType   string `json:"agentType"`
	Description string `json:"description,omitempty"`
}

// AgentStarted begins an agent, or gives one that has ended more to do.
type AgentStarted struct {
	AgentID         string `json:"agentId"`
	ToolCallID      string `json:"toolCallId,omitempty"` // the call that started it; "" is a host
	AgentType       string `json:"agentType"`
	DisplayName     string `json:"displayName,omitempty"` // of the agent type
	Name            string `json:"name,omitempty"`        // of this agent, for people
	Description     string `json:"description,omitempty"`
	Prompt          string `json:"prompt"`
	Background      bool   `json:"background,omitempty"`
	Model           string `json:"model,omitempty"`
	Asked           string `json:"asked,omitempty"` // the model that the start named
	ReasoningEffort string `json:"reasoningEffort,omitempty"`
}

// AgentEnded says what an agent came to.
type AgentEnded struct {
	AgentID string `json:"agentId"`
	Status  string `json:"status"` // "completed", "failed" or "cancelled"
	Result  string `json:"result,omitempty"`
	Error   string `json:"error,omitempty"`
}

// AgentMoved says that nobody waits for an agent's end any more: it goes on in the
// background.
type AgentMoved struct {
	AgentID string `json:"agentId"`
}

// AgentRemoved takes an agent that has ended off the list.
type AgentRemoved struct {
	AgentID string `json:"agentId"`
}

// EventType returns "subagent.started".
func (SubagentStarted) EventType() string { return TypeSubagentStarted }

// EventType returns "subagent.completed".
func (SubagentCompleted) EventType() string { return TypeSubagentCompleted }

// EventType returns "subagent.failed".
func (SubagentFailed) EventType() string { return TypeSubagentFailed }

// EventType returns "subagent.selected".
func (SubagentSelected) EventType() string { return TypeSubagentSelected }

// EventType returns "subagent.deselected".
func (SubagentDeselected) EventType() string { return TypeSubagentDeselected }

// EventType returns "system.notification".
func (Notification) EventType() string { return TypeNotification }

// EventType returns "session.background_tasks_changed".
func (TasksChanged) EventType() string { return TypeTasksChanged }

// EventType returns "session.task_complete".
func (TaskComplete) EventType() string { return TypeTaskComplete }

// EventType returns "transom.agent_started".
func (AgentStarted) EventType() string { return TypeAgentStarted }

// EventType returns "transom.agent_ended".
func (AgentEnded) EventType() string { return TypeAgentEnded }

// EventType returns "transom.agent_moved".
func (AgentMoved) EventType() string { return TypeAgentMoved }

// EventType returns "transom.agent_removed".
func (AgentRemoved) EventType() string { return TypeAgentRemoved }

func (TasksChanged) ephemeralEvent() {}
