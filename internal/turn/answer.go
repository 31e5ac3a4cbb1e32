package turn

import (
	"strconv"
	"time"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/model"
)

// current reports whether a fence is that of the model call under way.
func (m *machine) current(f Fence) bool { return m.s.Live.Model != nil && m.s.Live.Model.Fence == f }

// modelChunk publishes a piece of an answer as it comes.
func (m *machine) modelChunk(in ModelChunk) {
	if !m.current(in.Fence) || !m.s.Live.Settings.Streaming {
		return
	}
	call, c := m.s.Live.Model, in.Chunk
	if c.Text != "" {
		if !call.Shown {
			shown := *call
			shown.Shown = true
			m.s.Live.Model = &shown
			m.emit(event.MessageStart{MessageID: call.MessageID})
		}
		m.emit(event.MessageDelta{MessageID: call.MessageID, DeltaContent: c.Text})
	}
	if c.Reasoning != "" {
		m.emit(event.ReasoningDelta{ReasoningID: call.MessageID, DeltaContent: c.Reasoning})
	}
	if c.Call != nil && c.Call.ID != "" && c.Call.Arguments != "" {
		m.emit(event.ToolCallDelta{ToolCallID: c.Call.ID, ToolName: c.Call.Name, ToolType: "function", InputDelta: c.Call.Arguments})
	}
}

// modelRetry gives the next attempt a message id of its own, so that text shown
// of the failed one is never taken for part of the answer.
func (m *machine) modelRetry(in ModelRetry) {
	if !m.current(in.Fence) {
		return
	}
	m.failure(in.Err, in.Took.Milliseconds())
	call := *m.s.Live.Model
	m.emit(event.TurnRetry{TurnID: strconv.Itoa(m.s.Loop.Turn), Model: m.s.Model, Reason: in.Err.Error()})
	if call.Shown {
		call.MessageID, call.Shown = m.in.NewID(), false
	}
	m.s.Live.Model = &call
}

func (m *machine) failure(err *model.Error, ms int64) {
	kind := "api"
	if err.Status == 0 {
		kind = "transport"
	}
	source := "top_level"
	if m.agent != "" {
		source = "subagent"
	}
	m.emit(event.ModelCallFailure{
		Model: m.s.Model, Source: source, StatusCode: err.Status, FailureKind: kind,
		ErrorMessage: err.Error(), DurationMs: ms,
	})
}

// modelFailed ends the turn, unless a summary may help: what the user said stays in
// the window, and what waits goes on.
func (m *machine) modelFailed(in ModelFailed) {
	if !m.current(in.Fence) {
		return
	}
	call := m.s.Live.Model
	m.s.Live.Model = nil
	m.failure(in.Err, in.Took.Milliseconds())
	if in.Err.Kind == model.ContextLimit && m.tooLarge(in.Err, call.Tokens) {
		return
	}
	m.fail(in.Err, nil)
}

// trouble says why a turn has failed. A sub-agent's failure is not the session's.
func (m *machine) trouble(e event.SessionError) {
	if m.agent != "" {
		m.s.Live.Failure = e.Message
		return
	}
	m.emit(e)
}

// modelDone takes the model's answer: it enters the log, and its calls begin.
func (m *machine) modelDone(in ModelDone) {
	if !m.current(in.Fence) {
		return
	}
	call := m.s.Live.Model
	m.s.Live.Model = nil
	r := in.Response
	m.s.Live.Squeezed = false
	m.measure(r.Usage, call)
	m.usage(in)
	answered := r.Model
	if answered == "" {
		answered = m.s.Model
	}
	msg := event.AssistantMessage{
		MessageID: call.MessageID, OriginatingMessageID: m.s.Loop.MessageID, Model: answered,
		Content: valid(r.Message.Text), ReasoningText: valid(r.Message.Reasoning), ReasoningWireField: r.Message.ReasoningField,
		ReasoningOpaque: valid(r.Message.ReasoningOpaque), EncryptedContent: valid(r.Message.EncryptedContent), ToolRequests: []event.ToolRequest{},
		InteractionID: m.s.Loop.InteractionID, TurnID: strconv.Itoa(m.s.Loop.Turn), APICallID: r.ID,
	}
	if r.Usage != nil {
		msg.OutputTokens = r.Usage.OutputTokens
	}
	calls := m.examine(r.Message.Calls)
	for _, c := range calls {
		msg.ToolRequests = append(msg.ToolRequests, event.ToolRequest{ToolCallID: c.id, Name: c.name, Arguments: c.args, Type: "function"})
	}
	m.emit(msg)
	m.beginCalls(calls)
	m.settle()
}

// usage publishes what the call cost and adds it to the session's totals. Where
// the provider gave no figures they are estimates.
func (m *machine) usage(in ModelDone) {
	r := in.Response
	u := r.Usage
	if u == nil || u.InputTokens == 0 && u.OutputTokens == 0 {
		u = &model.Usage{
			InputTokens:  m.size().total(),
			OutputTokens: model.EstimateMessage(&r.Message),
		}
	}
	name := r.Model
	if name == "" {
		name = m.s.Model
	}
	initiator := "user"
	if m.s.Loop.Turn > 0 || m.agent != "" {
		initiator = "agent"
	}
	var charged *event.CopilotUsage
	if u.NanoAIU > 0 {
		charged = &event.CopilotUsage{TotalNanoAIU: u.NanoAIU}
	}
	m.emit(event.AssistantUsage{
		Model: name, InputTokens: u.InputTokens, OutputTokens: u.OutputTokens, CacheReadTokens: u.CacheReadTokens,
		CacheWriteTokens: u.CacheWriteTokens, ReasoningTokens: u.ReasoningTokens, Duration: in.Took.Milliseconds(),
		Initiator: initiator, FinishReason: r.Finish, APICallID: r.ID, NumToolCalls: len(r.Message.Calls),
		Charged: charged,
	})
	m.count(name, u, in.Took)
}

// count adds what a model call cost to the session's totals.
func (m *machine) count(name string, u *model.Usage, took time.Duration) {
	m.emit(event.Usage{
		Model: name, Input: int64(u.InputTokens), Output: int64(u.OutputTokens), CacheRead: int64(u.CacheReadTokens),
		CacheWrite: int64(u.CacheWriteTokens), DurationMs: took.Milliseconds(), NanoAIU: u.NanoAIU,
	})
	if u.NanoAIU > 0 {
		m.emit(event.UsageCheckpoint{TotalNanoAIU: m.root().NanoAIU()})
	}
}
