// Package window folds a session's log into the messages that the model sees.
//
//	log     user  assistant(calls a,b)  result b  result a  user  …
//	window  user  assistant(calls a,b)  result a  result b  user  …
//
// Calls and results are always paired: an assistant message with calls enters
// the window together with all its results, in the order of the calls, once the
// last of them has come. A clear empties the window but for its seed; what comes
// back later from before the clear finds no call to answer and stays outside.
//
// # Ownership
//
// A Window is a value. Folding a record yields a new one and leaves the old one
// as it was, so that a record that could not be written is undone by keeping the
// old value. Messages are shared between values and never changed; so is the
// array they stand in, which only its newest value may add to (see DESIGN.md).
//
// # Errors
//
// A record whose payload cannot be read is an error that names it; the window
// stays as it was.
package window

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/model"
)

// Window is what the model sees of a session, without the system message.
type Window struct {
	settled []model.Message // values share the array
	used    *used           // how much of the array is taken, by whichever value
	tokens  int             // of settled, estimated

	batch   *model.Message   // an assistant message whose calls are not all answered
	results []*model.Message // of batch.Calls, by index; nil: open
	later   []model.Message  // what follows the results of the batch

	seed *Seed // of a clear whose seeded turn has not started

	prompts []string // what users said since the last clear, as they said it; shared as settled is
	left    int      // how many earlier ones the newest summary had no room for
	mark    int      // how many messages a running compaction will replace; 0: none runs
	marked  int      // how many prompts those hold
	share   int      // how many tokens its summary may take; 0 is any number

	gaps int // calls that a later message has overtaken; not kept in snapshots
}

// used is how far the arrays of some values are taken. Invariant: between two values
// of one used, the longer one begins with the shorter one.
type used struct{ messages, prompts int }

// Seed is the first message of the window that a clear made.
type Seed struct {
	ID   string // of the session.context_cleared event; the id of the message
	Text string
}

// Seed returns the seed that no turn has taken up yet; nil where there is none.
func (w Window) Seed() *Seed { return w.seed }

// Apply folds one record of the log.
func (w Window) Apply(e *event.Event) (Window, error) {
	var err error
	next := w
	if e.AgentID != "" {
		return w, nil // a sub-agent has a window of its own
	}
	switch e.Type {
	case event.TypeUserMessage:
		err = next.user(e)
	case event.TypeAssistantMessage:
		err = next.assistant(e)
	case event.TypeToolStart:
		err = next.started(e)
	case event.TypeToolComplete:
		err = next.completed(e)
	case event.TypeContextCleared:
		err = next.clear(e)
	case event.TypeSkillInvoked:
		err = next.skill(e)
	case event.TypeCompactionStart:
		err = next.compacting(e)
	case event.TypeCompactionComplete:
		err = next.compacted(e)
	}
	if err != nil {
		return w, fmt.Errorf("fold %s %s into the window: %w", e.Type, e.ID, err)
	}
	return next, nil
}

func (w *Window) user(e *event.Event) error {
	p, err := event.As[event.UserMessage](e)
	if err != nil {
		return err
	}
	if p.Source == SeedSource && (w.seed == nil || w.seed.ID != p.MessageID) {
		// The record of the clear is damaged; its seed tells of it all the same.
		*w = Window{}
	}
	if w.seed != nil {
		// The seeded turn's message is the seed itself; any other message
		// follows the seed, which then stands as it was given.
		if p.MessageID != w.seed.ID {
			w.say(w.seed.Text)
			w.add(model.Message{Role: model.User, Text: w.seed.Text})
		}
		w.seed = nil
	}
	text := p.TransformedContent
	if text == "" {
		text = p.Content
	}
	if i := strings.Index(text, p.Content); i >= 0 {
		w.say(text[i : i+len(p.Content)]) // so that it is kept once
	} else {
		w.say(p.Content)
	}
	m := model.Message{Role: model.User, Text: text}
	for _, im := range p.Images {
		m.Images = append(m.Images, model.Image{Name: im.Name, MIMEType: im.MIMEType, Data: im.Data})
	}
	for _, raw := range p.Attachments {
		attach(&m, raw)
	}
	w.add(m)
	return nil
}

const svg = "image/svg+xml"

// attach puts an attachment that a model reads as it is beside the text: an image
// or a PDF document. What the text says of others stands in it already.
func attach(m *model.Message, raw json.RawMessage) {
	var a struct {
		Type     string `json:"type"`
		Data     string `json:"data"`
		MIMEType string `json:"mimeType"`
		Name     string `json:"displayName"`
	}
	if json.Unmarshal(raw, &a) != nil || a.Type != "blob" || a.Data == "" {
		return
	}
	switch {
	case a.MIMEType == svg: // text, which stands in the prompt
	case strings.HasPrefix(a.MIMEType, "image/"):
		m.Images = append(m.Images, model.Image{Name: a.Name, MIMEType: a.MIMEType, Data: a.Data})
	case a.MIMEType == "application/pdf":
		m.Documents = append(m.Documents, model.Document{Title: cmp.Or(a.Name, "document.pdf"), MIMEType: a.MIMEType, Data: a.Data})
	}
}

func (w *Window) assistant(e *event.Event) error {
	p, err := event.As[event.AssistantMessage](e)
	if err != nil {
		return err
	}
	if w.seed != nil {
		w.say(w.seed.Text)
		w.add(model.Message{Role: model.User, Text: w.seed.Text}) // its own message is damaged
		w.seed = nil
	}
	m := model.Message{Role: model.Assistant, Text: p.Content, Reasoning: p.ReasoningText,
		ReasoningField: p.ReasoningWireField, ReasoningOpaque: p.ReasoningOpaque, EncryptedContent: p.EncryptedContent}
	for _, r := range p.ToolRequests {
		m.Calls = append(m.Calls, model.Call{ID: r.ToolCallID, Name: r.Name, Arguments: string(r.Arguments)})
	}
	if len(m.Calls) == 0 {
		if m.Text != "" || m.Reasoning != "" || m.ReasoningOpaque != "" || m.EncryptedContent != "" {
			w.add(m)
		}
		return nil
	}
	w.settle() // a batch left open by a damaged log
	w.batch, w.results = &m, make([]*model.Message, len(m.Calls))
	return nil
}

// started gives a call the arguments it really ran with.
func (w *Window) started(e *event.Event) error {
	p, err := event.As[event.ToolStart](e)
	if err != nil {
		return err
	}
	i := w.open(p.ToolCallID)
	if i < 0 || len(p.Arguments) == 0 || w.batch.Calls[i].Arguments == string(p.Arguments) {
		return nil
	}
	m := *w.batch
	m.Calls = slices.Clone(m.Calls)
	m.Calls[i].Arguments = string(p.Arguments)
	w.batch = &m
	return nil
}

func (w *Window) completed(e *event.Event) error {
	p, err := event.As[event.ToolComplete](e)
	if err != nil {
		return err
	}
	i := w.open(p.ToolCallID)
	if i < 0 {
		return nil // an orphan of an older window, or answered before
	}
	m := &model.Message{Role: model.ToolRole, CallID: p.ToolCallID}
	switch {
	case p.Result != nil:
		m.Text = p.Result.Content
		for _, b := range p.Result.Binary {
			if b.Type == "image" {
				m.Images = append(m.Images, model.Image{Name: b.Description, MIMEType: b.MIMEType, Data: b.Data})
			}
		}
	case p.Error != nil:
		m.Text = p.Error.Message
	}
	w.results = slices.Clone(w.results)
	w.results[i] = m
	if !slices.Contains(w.results, nil) {
		w.settle()
	}
	return nil
}

func (w *Window) clear(e *event.Event) error {
	p, err := event.As[event.ContextCleared](e)
	if err != nil {
		return err
	}
	*w = Window{seed: &Seed{ID: e.ID, Text: p.InitialMessage}}
	return nil
}

// say keeps a prompt for the summary of a later compaction.
func (w *Window) say(prompt string) {
	if prompt == "" {
		return
	}
	w.own()
	w.prompts = append(w.prompts, prompt)
	w.used.prompts = len(w.prompts)
}

// own makes sure that the room behind this value's messages and prompts is its own:
// another value may have grown into it.
func (w *Window) own() {
	if w.used == nil || w.used.messages != len(w.settled) || w.used.prompts != len(w.prompts) {
		w.settled, w.prompts = slices.Clip(w.settled), slices.Clip(w.prompts)
		w.used = &used{len(w.settled), len(w.prompts)}
	}
}

// open returns the index of an unanswered call of the open batch, or -1.
func (w *Window) open(callID string) int {
	if w.batch == nil {
		return -1
	}
	for i, c := range w.batch.Calls {
		if c.ID == callID && w.results[i] == nil {
			return i
		}
	}
	return -1
}

// settle moves the open batch into the settled messages. Calls without a result
// get the interruption text: no model is ever shown a call without an answer.
func (w *Window) settle() {
	if w.batch == nil {
		return
	}
	for _, r := range w.results {
		if r == nil {
			w.gaps++
		}
	}
	ms := w.answered()
	w.batch, w.results, w.later = nil, nil, nil
	for _, m := range ms {
		w.add(m)
	}
}

// answered returns the open batch as a model reads it: the message and a result
// for each of its calls.
func (w *Window) answered() []model.Message {
	if w.batch == nil {
		return nil
	}
	ms := append(make([]model.Message, 0, 1+len(w.results)), *w.batch)
	for i, r := range w.results {
		if r == nil {
			r = &model.Message{Role: model.ToolRole, CallID: w.batch.Calls[i].ID, Text: Interrupted}
		}
		ms = append(ms, *r)
	}
	return append(ms, w.later...)
}

func (w *Window) add(m model.Message) {
	w.settle()
	w.own()
	w.settled = append(w.settled, m)
	w.used.messages = len(w.settled)
	w.tokens += model.EstimateMessage(&m)
}

// Gaps counts the calls that the folded records ask for and never answer, though
// the conversation goes on behind them: those of a damaged log. A clear forgets them
// with the rest, and what was folded before a checkpoint was counted then.
func (w Window) Gaps() int { return w.gaps }

// Messages returns what a model call made now is sent: the system message, where
// there is one, and the window. The slice must not be changed.
func (w Window) Messages(system string) []model.Message {
	open := w.answered()
	out := make([]model.Message, 0, len(w.settled)+len(open)+2)
	if system != "" {
		out = append(out, model.Message{Role: model.System, Text: system})
	}
	if w.seed != nil {
		out = append(out, model.Message{Role: model.User, Text: w.seed.Text})
	}
	return append(append(out, w.settled...), open...)
}

// Len counts the messages in the window: settled ones, those of the open batch
// that exist so far, and a seed that waits.
func (w Window) Len() int {
	n := len(w.settled)
	if w.seed != nil {
		n++
	}
	if w.batch != nil {
		n++
		for _, r := range w.results {
			if r != nil {
				n++
			}
		}
		n += len(w.later)
	}
	return n
}

// Tokens estimates the size of the window's messages.
func (w Window) Tokens() int {
	n := w.tokens
	if w.seed != nil {
		n += model.EstimateText(w.seed.Text)
	}
	if w.batch != nil {
		n += model.EstimateMessage(w.batch)
		for _, r := range w.results {
			if r != nil {
				n += model.EstimateMessage(r)
			}
		}
		for i := range w.later {
			n += model.EstimateMessage(&w.later[i])
		}
	}
	return n
}

// HasUser reports whether the window holds a message of a user: without one no
// model call is made.
func (w Window) HasUser() bool {
	return w.seed != nil || slices.ContainsFunc(w.settled, func(m model.Message) bool { return m.Role == model.User })
}

// HasCall reports whether a call id stands in the window already.
func (w Window) HasCall(id string) bool {
	has := func(m *model.Message) bool {
		return slices.ContainsFunc(m.Calls, func(c model.Call) bool { return c.ID == id })
	}
	for i := len(w.settled) - 1; i >= 0; i-- {
		if w.settled[i].Role == model.Assistant && has(&w.settled[i]) {
			return true
		}
	}
	return w.batch != nil && has(w.batch)
}
