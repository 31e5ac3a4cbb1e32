package turn

import (
	"slices"
	"strconv"
	"strings"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/tool"
)

// startLoop begins a loop with messages of users: they enter the window, and the
// model is asked. Hooks that want to see the messages first are asked before.
func (m *machine) startLoop(delivery string, msgs ...event.Queued) {
	drafts := make([]draft, len(msgs))
	for i, msg := range msgs {
		drafts[i] = draft{Queued: msg}
	}
	m.s.Live.StopActive, m.s.Live.Blocks, m.s.Live.Squeezed, m.s.Live.Resting = false, 0, false, false
	m.prepare(preparation{drafts: drafts, delivery: delivery, source: m.startSource(msgs)})
}

// firstTurn asks the model for the first time in a loop.
func (m *machine) firstTurn() {
	if !m.s.Live.Titled && m.s.Title != "" {
		m.s.Live.Titled = true
		m.emit(event.TitleChanged{Title: m.s.Title})
	}
	if m.s.Live.Fresh {
		m.s.Live.Fresh = false
		m.emit(event.ToolsUpdated{Model: m.s.Model})
	}
	m.think(0)
}

// say puts a message into the window.
func (m *machine) say(delivery string, msg draft, interaction string, turn int) {
	content := msg.DisplayPrompt
	if content == "" {
		content = msg.Prompt
	}
	if !msg.made {
		msg.text = m.transform(msg.Queued)
	}
	m.emit(event.UserMessage{
		Content: content, TransformedContent: msg.text, MessageID: msg.MessageID,
		Source: msg.Source, Attachments: msg.Attachments, Images: msg.Images, NativeDocTypes: []string{}, Delivery: delivery,
		AgentMode: msg.AgentMode, InteractionID: interaction, TurnID: strconv.Itoa(turn),
	})
	if h, ok := m.s.Live.Waiting[msg.MessageID]; ok {
		m.s.Live.Headers = h
		waiting := map[string]map[string]string{}
		for k, v := range m.s.Live.Waiting {
			if k != msg.MessageID {
				waiting[k] = v
			}
		}
		m.s.Live.Waiting = waiting
	}
}

// transform is what the model reads of a prompt: the time, a notice of tools
// that went away, the prompt, and around all of it what tells of its attachments.
func (m *machine) transform(msg event.Queued) string {
	var b strings.Builder
	b.WriteString(msg.Lead)
	b.WriteString("<current_datetime>")
	b.WriteString(m.now())
	b.WriteString("</current_datetime>\n\n")
	if len(m.s.Live.Gone) > 0 {
		b.WriteString(toolsGone(m.s.Live.Gone))
		m.s.Live.Gone = nil
	}
	b.WriteString(msg.Prompt)
	b.WriteString(msg.Trail)
	return b.String()
}

// think makes the loop's next model call.
func (m *machine) think(turn int) {
	if m.s.Live.Settings.System != m.s.System {
		m.emit(event.SystemMessage{Role: "system", Content: m.s.Live.Settings.System, InteractionID: m.s.Loop.InteractionID})
	}
	m.emit(event.TurnStart{TurnID: strconv.Itoa(turn), InteractionID: m.s.Loop.InteractionID})
	if m.uncertain() {
		m.startCount()
		return
	}
	if m.maybeCompact() {
		m.s.Live.Awaiting = true
		m.s.Live.Parked = false
		return
	}
	m.ask()
}

// ask starts the model call of the turn that has begun.
func (m *machine) ask() {
	l := &m.s.Live
	l.Turn++
	l.Parked = false
	now := m.size()
	messages := m.s.Window.Messages(m.s.System)
	m.emit(event.UsageInfo{
		TokenLimit: m.s.Limit(), CurrentTokens: now.total(), MessagesLength: len(messages),
		SystemTokens: now.system, ConversationTokens: now.words, ToolDefinitionsTokens: now.tools, IsInitial: m.s.Loop.Turn == 0,
	})
	l.Asked = true
	l.Model = &ModelCall{Fence: m.fence(""), MessageID: m.in.NewID(), Started: m.in.At, Tokens: now.total(), Estimate: m.estimated().total()}
	initiator := "user"
	if m.s.Loop.Turn > 0 || m.agent != "" {
		initiator = "agent"
	}
	var interaction model.Interaction
	if m.agent != "" {
		interaction = model.ForSubagent
	}
	m.start(&StartModel{Fence: l.Model.Fence, Request: model.Request{
		Model: m.s.Model, Messages: messages, Tools: l.Offers.Definitions(), Stream: l.Settings.Streaming,
		ReasoningEffort: m.s.Effort, ContextTier: m.s.Tier, Headers: m.headers(l.Model.MessageID), SessionID: m.root().SessionID, AgentID: m.agent, Interaction: interaction,
		InteractionID: m.s.Loop.InteractionID, Initiator: initiator,
	}})
}

// settle decides what follows a batch once its last call has ended (T2).
func (m *machine) settle() {
	loop := &m.s.Loop
	if m.s.Live.Model != nil || m.s.Live.Awaiting || m.s.Live.Prep != nil || m.s.Live.Parked || !loop.Open || slices.ContainsFunc(loop.Calls, func(c Call) bool { return !c.Done }) {
		return
	}
	cleared, turn := loop.Cleared != "", loop.Turn+1
	m.emit(event.TurnEnd{TurnID: strconv.Itoa(loop.Turn)})
	if !loop.Open {
		m.next(cleared)
		return
	}
	m.goOn(turn)
}

// goOn makes the loop's next model call, with what users said to steer it.
func (m *machine) goOn(turn int) {
	drafts := make([]draft, len(m.s.Steering))
	for i, msg := range m.s.Steering {
		drafts[i] = draft{Queued: msg}
	}
	m.prepare(preparation{drafts: drafts, delivery: deliveredSteering, turn: turn})
}

// over reports whether a turn that was answered ends its loop: the model asked
// for nothing, or the batch decides so (T2).
func over(loop *Loop) bool {
	if loop.Cleared != "" || len(loop.Calls) == 0 {
		return true
	}
	succeeded, failed, rejected := false, false, false
	for _, c := range loop.Calls {
		switch {
		case c.Terminal && c.Success:
			succeeded = true
		case c.Terminal:
			failed = true
		case c.Type == tool.Rejected:
			rejected = true
		}
	}
	return succeeded || !failed && rejected
}
