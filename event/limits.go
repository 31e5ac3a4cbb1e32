package event

// The types of events about limits: of a model's rate, and of what a session may
// cost.
const (
	TypeAutoModeSwitchRequested         = "auto_mode_switch.requested"
	TypeAutoModeSwitchCompleted         = "auto_mode_switch.completed"
	TypeSessionLimitsExhaustedRequested = "session_limits_exhausted.requested"
	TypeSessionLimitsExhaustedCompleted = "session_limits_exhausted.completed"
	TypeSessionLimitsChanged            = "session.session_limits_changed"
	TypeUsageCheckpoint                 = "session.usage_checkpoint"
)

// AutoModeSwitchRequested asks whether another model may go on with the work, since
// the one in use limits the rate of requests.
type AutoModeSwitchRequested struct {
	RequestID         string   `json:"requestId"`
	ErrorCode         string   `json:"errorCode,omitempty"`         // the provider's
	RetryAfterSeconds *float64 `json:"retryAfterSeconds,omitempty"` // as the provider said
}

// AutoModeSwitchCompleted says what a host answered: "yes", "yes_always" or "no".
type AutoModeSwitchCompleted struct {
	RequestID string `json:"requestId"`
	Response  string `json:"response"`
}

// SessionLimits is what a session may cost.
type SessionLimits struct {
	MaxAICredits float64 `json:"maxAiCredits,omitempty"`
}

// SessionLimitsExhaustedRequested asks what to do, since the session has cost what
// it may.
type SessionLimitsExhaustedRequested struct {
	RequestID     string  `json:"requestId"`
	MaxAICredits  float64 `json:"maxAiCredits"`
	UsedAICredits float64 `json:"usedAiCredits"`
}

// LimitsResponse is what a host wants done: "add" Additional to the limit, "set" it
// to MaxAICredits, "unset" it, or "cancel" the model call.
type LimitsResponse struct {
	Action       string  `json:"action"`
	Additional   float64 `json:"additionalAiCredits,omitempty"`
	MaxAICredits float64 `json:"maxAiCredits,omitempty"`
}

// SessionLimitsExhaustedCompleted says what a host answered.
type SessionLimitsExhaustedCompleted struct {
	RequestID string         `json:"requestId"`
	Response  LimitsResponse `json:"response"`
}

// SessionLimitsChanged says what the session may cost from now on; nil is anything.
type SessionLimitsChanged struct {
	Limits *SessionLimits `json:"sessionLimits"`
}

// UsageCheckpoint says what the session has cost so far, in billionths of an AI
// credit.
type UsageCheckpoint struct {
	TotalNanoAIU int64 `json:"totalNanoAiu"`
}

// CopilotUsage is what a provider charged for a request, in billionths of an AI
// credit.
type CopilotUsage struct {
	TotalNanoAIU int64 `json:"totalNanoAiu"`
}

// EventType returns "auto_mode_switch.requested".
func (AutoModeSwitchRequested) EventType() string { return TypeAutoModeSwitchRequested }

// EventType returns "auto_mode_switch.completed".
func (AutoModeSwitchCompleted) EventType() string { return TypeAutoModeSwitchCompleted }

// EventType returns "session_limits_exhausted.requested".
func (SessionLimitsExhaustedRequested) EventType() string { return TypeSessionLimitsExhaustedRequested }

// EventType returns "session_limits_exhausted.completed".
func (SessionLimitsExhaustedCompleted) EventType() string { return TypeSessionLimitsExhaustedCompleted }

// EventType returns "session.session_limits_changed".
func (SessionLimitsChanged) EventType() string { return TypeSessionLimitsChanged }

// EventType returns "session.usage_checkpoint".
func (UsageCheckpoint) EventType() string { return TypeUsageCheckpoint }

func (AutoModeSwitchRequested) ephemeralEvent()         {}
func (AutoModeSwitchCompleted) ephemeralEvent()         {}
func (SessionLimitsExhaustedRequested) ephemeralEvent() {}
func (SessionLimitsExhaustedCompleted) ephemeralEvent() {}
