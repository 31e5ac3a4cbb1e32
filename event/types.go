package event

// The types of the events, as they stand on the wire.
const (
	TypeSessionStart          = "session.start"
	TypeSessionResume         = "session.resume"
	TypeSessionShutdown       = "session.shutdown"
	TypeSessionError          = "session.error"
	TypeSessionWarning        = "session.warning"
	TypeSessionInfo           = "session.info"
	TypeContextCleared        = "session.context_cleared"
	TypeCompactionStart       = "session.compaction_start"
	TypeCompactionComplete    = "session.compaction_complete"
	TypeUserMessage           = "user.message"
	TypeSystemMessage         = "system.message"
	TypeTurnStart             = "assistant.turn_start"
	TypeTurnEnd               = "assistant.turn_end"
	TypeAssistantMessage      = "assistant.message"
	TypeToolStart             = "tool.execution_start"
	TypeToolComplete          = "tool.execution_complete"
	TypePermissionRequested   = "permission.requested"
	TypePermissionCompleted   = "permission.completed"
	TypeExternalToolRequested = "external_tool.requested"
	TypeExternalToolCompleted = "external_tool.completed"
	TypeAbort                 = "abort"
	TypeModelChange           = "session.model_change"
	TypeModeChanged           = "session.mode_changed"
	TypeContextChanged        = "session.context_changed"
	TypeTitleChanged          = "session.title_changed"
	TypeToolsUpdated          = "session.tools_updated"
	TypePendingModified       = "pending_messages.modified"
	TypeUsageInfo             = "session.usage_info"
	TypeAssistantUsage        = "assistant.usage"
	TypeModelCallFailure      = "model.call_failure"
	TypeTurnRetry             = "assistant.turn_retry"
	TypeMessageStart          = "assistant.message_start"
	TypeMessageDelta          = "assistant.message_delta"
	TypeReasoningDelta        = "assistant.reasoning_delta"
	TypeStreamingDelta        = "assistant.streaming_delta"
	TypeToolCallDelta         = "assistant.tool_call_delta"
	TypeAssistantIdle         = "assistant.idle"
	TypeSessionIdle           = "session.idle"
	TypeQueued                = "transom.queued"
	TypeIntent                = "transom.intent"
	TypeEpoch                 = "transom.epoch"
	TypeNamed                 = "transom.named"
	TypeLoopEnd               = "transom.loop_end"
	TypeUsage                 = "transom.usage"
	TypeUnqueued              = "transom.unqueued"
)

// EventType returns "session.start".
func (SessionStart) EventType() string { return TypeSessionStart }

// EventType returns "session.resume".
func (SessionResume) EventType() string { return TypeSessionResume }

// EventType returns "session.shutdown".
func (SessionShutdown) EventType() string { return TypeSessionShutdown }

// EventType returns "session.error".
func (SessionError) EventType() string { return TypeSessionError }

// EventType returns "session.warning".
func (SessionWarning) EventType() string { return TypeSessionWarning }

// EventType returns "session.info".
func (SessionInfo) EventType() string { return TypeSessionInfo }

// EventType returns "session.context_cleared".
func (ContextCleared) EventType() string { return TypeContextCleared }

// EventType returns "session.compaction_start".
func (CompactionStart) EventType() string { return TypeCompactionStart }

// EventType returns "session.compaction_complete".
func (CompactionComplete) EventType() string { return TypeCompactionComplete }

// EventType returns "user.message".
func (UserMessage) EventType() string { return TypeUserMessage }

// EventType returns "system.message".
func (SystemMessage) EventType() string { return TypeSystemMessage }

// EventType returns "assistant.turn_start".
func (TurnStart) EventType() string { return TypeTurnStart }

// EventType returns "assistant.turn_end".
func (TurnEnd) EventType() string { return TypeTurnEnd }

// EventType returns "assistant.message".
func (AssistantMessage) EventType() string { return TypeAssistantMessage }

// EventType returns "tool.execution_start".
func (ToolStart) EventType() string { return TypeToolStart }

// EventType returns "tool.execution_complete".
func (ToolComplete) EventType() string { return TypeToolComplete }

// EventType returns "permission.requested".
func (PermissionRequested) EventType() string { return TypePermissionRequested }

// EventType returns "permission.completed".
func (PermissionCompleted) EventType() string { return TypePermissionCompleted }

// EventType returns "external_tool.requested".
func (ExternalToolRequested) EventType() string { return TypeExternalToolRequested }

// EventType returns "external_tool.completed".
func (ExternalToolCompleted) EventType() string { return TypeExternalToolCompleted }

// EventType returns "abort".
func (Abort) EventType() string { return TypeAbort }

// EventType returns "session.model_change".
func (ModelChange) EventType() string { return TypeModelChange }

// EventType returns "session.mode_changed".
func (ModeChanged) EventType() string { return TypeModeChanged }

// EventType returns "session.context_changed".
func (ContextChanged) EventType() string { return TypeContextChanged }

// EventType returns "session.title_changed".
func (TitleChanged) EventType() string { return TypeTitleChanged }

// EventType returns "session.tools_updated".
func (ToolsUpdated) EventType() string { return TypeToolsUpdated }

// EventType returns "pending_messages.modified".
func (PendingModified) EventType() string { return TypePendingModified }

// EventType returns "session.usage_info".
func (UsageInfo) EventType() string { return TypeUsageInfo }

// EventType returns "assistant.usage".
func (AssistantUsage) EventType() string { return TypeAssistantUsage }

// EventType returns "model.call_failure".
func (ModelCallFailure) EventType() string { return TypeModelCallFailure }

// EventType returns "assistant.turn_retry".
func (TurnRetry) EventType() string { return TypeTurnRetry }

// EventType returns "assistant.message_start".
func (MessageStart) EventType() string { return TypeMessageStart }

// EventType returns "assistant.message_delta".
func (MessageDelta) EventType() string { return TypeMessageDelta }

// EventType returns "assistant.reasoning_delta".
func (ReasoningDelta) EventType() string { return TypeReasoningDelta }

// EventType returns "assistant.streaming_delta".
func (StreamingDelta) EventType() string { return TypeStreamingDelta }

// EventType returns "assistant.tool_call_delta".
func (ToolCallDelta) EventType() string { return TypeToolCallDelta }

// EventType returns "assistant.idle".
func (AssistantIdle) EventType() string { return TypeAssistantIdle }

// EventType returns "session.idle".
func (SessionIdle) EventType() string { return TypeSessionIdle }

// EventType returns "transom.queued".
func (Queued) EventType() string { return TypeQueued }

// EventType returns "transom.intent".
func (Intent) EventType() string { return TypeIntent }

// EventType returns "transom.epoch".
func (Epoch) EventType() string { return TypeEpoch }

// EventType returns "transom.named".
func (Named) EventType() string { return TypeNamed }

// EventType returns "transom.loop_end".
func (LoopEnd) EventType() string { return TypeLoopEnd }

// EventType returns "transom.usage".
func (Usage) EventType() string { return TypeUsage }

// EventType returns "transom.unqueued".
func (Unqueued) EventType() string { return TypeUnqueued }

func (TitleChanged) ephemeralEvent()     {}
func (ToolsUpdated) ephemeralEvent()     {}
func (PendingModified) ephemeralEvent()  {}
func (UsageInfo) ephemeralEvent()        {}
func (AssistantUsage) ephemeralEvent()   {}
func (ModelCallFailure) ephemeralEvent() {}
func (TurnRetry) ephemeralEvent()        {}
func (MessageStart) ephemeralEvent()     {}
func (MessageDelta) ephemeralEvent()     {}
func (ReasoningDelta) ephemeralEvent()   {}
func (StreamingDelta) ephemeralEvent()   {}
func (ToolCallDelta) ephemeralEvent()    {}
func (AssistantIdle) ephemeralEvent()    {}
func (SessionIdle) ephemeralEvent()      {}
func (EphemeralNote) ephemeralEvent()    {}
