package model

import (
	"iter"
	"strings"
)

// Accumulator folds the chunks of one attempt into a [Response]. The zero value
// is ready. It belongs to one goroutine.
type Accumulator struct {
	text, reasoning strings.Builder
	calls           []accCall
	usage           *Usage
	finish          string
	id, model       string
	field, opaque   string
	encrypted       string
}

type accCall struct {
	index    int
	id, name string
	args     []byte
}

// Add takes the next chunk.
func (a *Accumulator) Add(c Chunk) {
	if c.Text != "" {
		a.text.WriteString(c.Text)
	}
	if c.Reasoning != "" {
		a.reasoning.WriteString(c.Reasoning)
	}
	if c.Call != nil {
		a.addCall(c.Call)
	}
	if c.Usage != nil {
		a.usage = c.Usage
	}
	if c.Finish != "" {
		a.finish = c.Finish
	}
	if c.ID != "" {
		a.id = c.ID
	}
	if c.Model != "" {
		a.model = c.Model
	}
	if c.ReasoningField != "" {
		a.field = c.ReasoningField
	}
	if c.ReasoningOpaque != "" {
		a.opaque = c.ReasoningOpaque
	}
	if c.EncryptedContent != "" {
		a.encrypted = c.EncryptedContent
	}
}

func (a *Accumulator) addCall(c *CallChunk) {
	// Fragments mostly belong to the newest call.
	for i := len(a.calls) - 1; i >= 0; i-- {
		if call := &a.calls[i]; call.index == c.Index {
			if call.id == "" {
				call.id = c.ID
			}
			if call.name == "" {
				call.name = c.Name
			}
			call.args = append(call.args, c.Arguments...)
			return
		}
	}
	a.calls = append(a.calls, accCall{index: c.Index, id: c.ID, name: c.Name, args: []byte(c.Arguments)})
}

// Empty reports whether neither text nor a call has come yet.
func (a *Accumulator) Empty() bool { return a.text.Len() == 0 && len(a.calls) == 0 }

// Response is the answer so far. All its texts are valid UTF-8; what is not is
// replaced by U+FFFD. Calls stand in the order in which they began.
func (a *Accumulator) Response() *Response {
	m := Message{
		Role:      Assistant,
		Text:      valid(a.text.String()),
		Reasoning: valid(a.reasoning.String()),

		ReasoningField:   a.field,
		ReasoningOpaque:  valid(a.opaque),
		EncryptedContent: valid(a.encrypted),
	}
	if len(a.calls) > 0 {
		m.Calls = make([]Call, len(a.calls))
		for i := range a.calls {
			c := &a.calls[i]
			m.Calls[i] = Call{ID: valid(c.id), Name: valid(c.name), Arguments: valid(string(c.args))}
		}
	}
	return &Response{Message: m, Usage: a.usage, Finish: a.finish, ID: a.id, Model: a.model}
}

func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// Collect folds a whole sequence. With an error it returns what came before it.
func Collect(seq iter.Seq2[Chunk, error]) (*Response, error) {
	var a Accumulator
	for c, err := range seq {
		if err != nil {
			return a.Response(), err
		}
		a.Add(c)
	}
	return a.Response(), nil
}
