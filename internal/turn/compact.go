package turn

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/model"
)

// Compaction says when a session's window is summarised by itself.
type Compaction struct {
	Enabled bool
	// Background is the part of the token limit from which a summary is made
	// beside the running turn; Blocking the part from which the next model call
	// waits for one that is being made.
	Background, Blocking float64
}

// compaction is a summary being made. It is never changed in place.
type compaction struct {
	id           uint64
	trigger      string
	instructions string
	before       int     // messages that it replaces
	tokens       int     // of the whole request before, as the provider counts
	scale        float64 // how far the estimates of these fall short of its figures
	asked        int     // estimated tokens of the request for the summary
	short        int     // how often the window was shortened for it
}

// StartCompaction asks the model for a summary and posts CompactionDone.
type StartCompaction struct {
	Agent   string
	ID      uint64
	Request model.Request
}

// Compact summarises the window now. Result: nil; the session.compaction_complete
// event tells what came of it.
type Compact struct{ Instructions string }

// CancelCompaction ends a summary being made. Result: whether there was one.
type CancelCompaction struct{}

// CompactionDone is the summary, or why there is none.
type CompactionDone struct {
	Agent    string
	ID       uint64
	Response model.Response
	Err      *model.Error
	Took     time.Duration
}

// The kinds of these inputs.
const (
	KindCompact          Kind = "compact"
	KindCancelCompaction Kind = "cancel_compaction"
	KindCompactionDone   Kind = "compaction_done"
)

func (Compact) kind() Kind          { return KindCompact }
func (CancelCompaction) kind() Kind { return KindCancelCompaction }
func (CompactionDone) kind() Kind   { return KindCompactionDone }

const (
	// minCompact is how many messages are worth a summary.
	minCompact = 3
	// compactGrowth is how much larger than after the last attempt the window
	// must be before the next: a summary that helps little is not made over and
	// over, and one that fails is not paid for on every turn.
	compactGrowth = 1.5
	// maxShort is how often a summary that was refused as too large is asked for
	// again, of a window half as large each time.
	maxShort = 4
)

// maybeCompact begins a summary where the window has grown over its threshold. It
// reports whether the model call has to wait: for one that was under way before, or
// because it would not fit.
func (m *machine) maybeCompact() (wait bool) {
	l := &m.s.Live
	c := l.Settings.Compaction
	if !c.Enabled || m.s.Limit() <= 0 {
		return false
	}
	words := m.size().words
	part := m.part()
	if l.Compacting != nil {
		return part >= c.Blocking
	}
	grown := float64(words) >= compactGrowth*float64(l.CompactedAt)
	if part >= 1 && (grown || m.helps()) && m.squeeze("threshold", nil) {
		return true
	}
	if part >= c.Background && m.s.Window.Compactable() >= minCompact && grown {
		m.beginCompaction("threshold", "", 0)
	}
	return false
}

// helps reports whether a summary makes the next model call fit: a summary takes
// two fifths of what the window has for the conversation at most, so it does, unless the
// newest one could not be made or there is nothing for the conversation.
func (m *machine) helps() bool {
	now := m.size()
	room := float64(m.s.Limit())/m.scale() - float64(now.system+now.tools)
	return !m.s.Live.Unmade && room > 0 && float64(now.words) > room/2
}

// compact summarises the window because a host wants it.
func (m *machine) compact(in Compact) error {
	switch {
	case m.s.Live.Compacting != nil:
		return &Refusal{Kind: "wrong_state", Msg: "the context is being compacted already: wait for session.compaction_complete, or cancel it"}
	case m.s.Live.Parked:
		return &Refusal{Kind: "wrong_state", Msg: "a turn that was cut off stands in the log: send a message, or resume the session, and compact then"}
	case m.s.Window.Compactable() == 0 || m.s.Phase() == Acting:
		return &Refusal{Kind: "wrong_state", Msg: "there is nothing to compact: the window holds no message, or tool calls are open"}
	}
	m.beginCompaction("manual", in.Instructions, 0)
	return nil
}

// beginCompaction asks for a summary; short says how often it was refused as too
// large.
func (m *machine) beginCompaction(trigger, instructions string, short int) {
	l := &m.s.Live
	l.CompactSerial++
	messages, asked := m.toSummarise(instructions, short > 0)
	now := m.size()
	c := &compaction{
		id: l.CompactSerial, trigger: trigger, instructions: instructions, before: m.s.Window.Compactable(),
		scale: m.scale(), asked: asked, short: short,
	}
	c.tokens = c.scaled(now.total())
	l.Compacting = c
	m.emit(event.CompactionStart{
		Trigger: trigger, Model: m.s.Model, TokenLimit: m.s.Limit(), CurrentTokens: c.tokens,
		SystemTokens: c.scaled(now.system), ConversationTokens: c.scaled(now.words), ToolDefinitionsTokens: c.scaled(now.tools),
	})
	m.start(&StartCompaction{Agent: m.agent, ID: l.CompactSerial, Request: model.Request{
		Model: m.s.Model, Messages: messages, Tools: l.Offers.Definitions(), ReasoningEffort: m.s.Effort,
		SessionID: m.root().SessionID, AgentID: m.agent, InteractionID: m.in.NewID(), Initiator: "agent", Interaction: model.ForCompaction,
	}})
}

// toSummarise is what a model is sent that is to summarise the window, or a
// shortened one, and the estimated size of the whole request.
func (m *machine) toSummarise(instructions string, short bool) (messages []model.Message, tokens int) {
	prompt := model.Message{Role: model.User, Text: compactionPrompt(instructions)}
	messages = m.s.Window.Messages(m.s.System)
	if short {
		messages = m.shortened(messages, model.EstimateMessage(&prompt))
	}
	messages = append(messages, prompt)
	tokens = m.s.Live.Offers.Tokens()
	for i := range messages {
		tokens += model.EstimateMessage(&messages[i])
	}
	return messages, tokens
}

// scaled is an estimate as the provider would count.
func (c *compaction) scaled(tokens int) int { return int(float64(tokens) * c.scale) }

// compactionDone takes a summary. One that a clear or an abort has overtaken
// changes nothing (S10).
func (m *machine) compactionDone(in CompactionDone) {
	l := &m.s.Live
	c := l.Compacting
	if c == nil || c.id != in.ID {
		return
	}
	l.Compacting = nil
	text := in.Response.Message.Text
	err := in.Err
	if err == nil && (text == "" || len(in.Response.Message.Calls) > 0) {
		err = &model.Error{Kind: model.Query, Msg: "the model did not answer with a summary"}
	}
	p := event.CompactionComplete{
		Success: err == nil, Trigger: c.trigger, CustomInstructions: c.instructions, MessagesBefore: c.before, TokensBefore: c.tokens,
	}
	before := m.s.Window.Tokens()
	if err != nil {
		p.Error, p.StatusCode = err.Error(), err.Status
	} else {
		p.SummaryContent, p.MessagesRemoved = text, c.before
		p.TokensUsed = m.compactionCost(in)
		after := m.s.Window
		if next, e := m.try(p); e == nil {
			after = next.Window
		}
		p.TokensRemoved = c.scaled(max(before-after.Tokens(), 0))
		m.checkpoint(&p)
	}
	m.emit(p)
	if err != nil && m.shorter(err, c) {
		m.beginCompaction(c.trigger, c.instructions, c.short+1)
		return
	}
	l.CompactedAt, l.Unmade = m.s.Window.Tokens(), err != nil
	if !l.Awaiting || l.Counting != nil {
		return // where the next model call is being counted, that goes on with it
	}
	l.Awaiting = false
	if err != nil && l.Overflow != nil {
		m.fail(l.Overflow, err)
		return
	}
	l.Overflow = nil
	m.ask()
}

// shorter reports whether a summary that failed is asked for again, of less.
func (m *machine) shorter(err *model.Error, c *compaction) bool {
	if err.Kind != model.ContextLimit || c.short >= maxShort || m.s.Window.Compactable() == 0 {
		return false
	}
	m.tooMuch(err, c.asked)
	_, tokens := m.toSummarise(c.instructions, true)
	return tokens < c.asked
}

// checkpoint numbers a summary, and keeps it as a file beside the log, for people:
// the log has it in any case.
func (m *machine) checkpoint(p *event.CompactionComplete) {
	p.CheckpointNumber = m.s.Compactions + 1
	dir := m.s.Live.Settings.FilesDir
	if dir == "" {
		return
	}
	_, file := Checkpoint(p.CheckpointNumber, p.SummaryContent)
	name := filepath.Join(CheckpointDir, file)
	p.CheckpointPath = filepath.Join(dir, name)
	m.ready.Files = append(m.ready.Files, File{Name: name, Text: p.SummaryContent, Optional: true})
}

// CheckpointDir is where summaries are kept, in a session's directory.
const CheckpointDir = "checkpoints"

// Checkpoint is the title of a summary, which it gives itself or begins with, and
// the name of its file.
func Checkpoint(number int, summary string) (title, file string) {
	if _, rest, ok := strings.Cut(summary, "<checkpoint_title>"); ok {
		summary, _, _ = strings.Cut(rest, "</checkpoint_title>")
	}
	for line := range strings.Lines(summary) {
		if title = Title(strings.Trim(strings.TrimSpace(line), "#*_-> ")); title != "" {
			break
		}
	}
	slug := strings.FieldsFunc(strings.ToLower(title), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	name := fmt.Sprintf("%03d", number)
	for _, word := range slug {
		if len(name)+len(word) > 44 {
			break
		}
		name += "-" + word
	}
	if title == "" {
		title = fmt.Sprintf("Summary %d", number)
	}
	return title, name + ".md"
}

// try folds a payload without writing it.
func (m *machine) try(p event.Payload) (Durable, error) {
	e, err := event.New(p, "", "", m.in.At)
	if err != nil {
		return Durable{}, err
	}
	return m.s.Durable.Apply(e)
}

func (m *machine) compactionCost(in CompactionDone) *event.CompactionCost {
	u := in.Response.Usage
	if u == nil || u.InputTokens == 0 && u.OutputTokens == 0 {
		u = &model.Usage{InputTokens: m.size().total(), OutputTokens: model.EstimateMessage(&in.Response.Message)}
	}
	name := in.Response.Model
	if name == "" {
		name = m.s.Model
	}
	m.count(name, u, in.Took)
	return &event.CompactionCost{
		Model: name, InputTokens: u.InputTokens, OutputTokens: u.OutputTokens, CacheReadTokens: u.CacheReadTokens,
		CacheWriteTokens: u.CacheWriteTokens, Duration: in.Took.Milliseconds(),
	}
}

// dropCompaction ends a summary being made, saying why.
func (m *machine) dropCompaction(why string) bool {
	l := &m.s.Live
	if l.Compacting == nil {
		return false
	}
	c := l.Compacting
	l.Compacting, l.Overflow = nil, nil
	m.ready.CancelCompaction = m.ready.CancelCompaction || m.agent == "" // a sub-agent's ends with it
	m.emit(event.CompactionComplete{
		Error: why, Trigger: c.trigger, CustomInstructions: c.instructions, MessagesBefore: c.before, TokensBefore: c.tokens,
	})
	return true
}

// cancelCompaction ends a summary because a host wants it. A model call that
// waited for it goes on; one that was refused without it has failed.
func (m *machine) cancelCompaction() {
	refusal := m.s.Live.Overflow
	m.ready.Result = m.dropCompaction(errCancelled.Error())
	if !m.s.Live.Awaiting || m.s.Live.Counting != nil {
		return
	}
	m.s.Live.Awaiting = false
	if refusal != nil {
		m.fail(refusal, errCancelled)
		return
	}
	m.ask()
}

var errCancelled = errors.New("the compaction was cancelled")
