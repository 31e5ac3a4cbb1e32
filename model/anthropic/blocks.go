package anthropic

import (
	"cmp"
	"encoding/json"
	"strconv"

	"github.com/transom-run/transom/internal/jsonstring"
	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/model/internal/wire"
)

// block is a block of the answer's content.
type block struct {
	index int    // on the wire; some servers give it twice
	seq   int    // among the blocks
	kind  string // "", until it is known
	half  rune   // of a character that was cut in two
	// Of a call:
	call  int    // which one it is, from 1; 0: none yet
	begun bool   // arguments came
	input string // the arguments that its start had
	// Of thinking:
	thinking, signature, data []byte
	signed                    bool
}

// maxBlocks bounds the blocks of an answer.
const maxBlocks = 10_000

// at returns the newest block of an index, and makes it where there is none.
func (a *attempt) at(index int) *block {
	for i := len(a.blocks) - 1; i >= 0; i-- {
		if a.blocks[i].index == index {
			return a.blocks[i]
		}
	}
	return a.fresh(index)
}

// fresh makes a block: whatever has that index so far is over.
func (a *attempt) fresh(index int) *block {
	b := &block{index: index, seq: len(a.blocks)}
	if len(a.blocks) < maxBlocks {
		a.blocks = append(a.blocks, b)
	}
	return b
}

// wireBlock is a block as the wire has it.
type wireBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	Thinking  string          `json:"thinking"`
	Signature *string         `json:"signature"`
	Data      string          `json:"data"`
}

// begin takes the start of a block, or a whole one.
func (a *attempt) begin(b *block, w *wireBlock) {
	b.kind = w.Type
	switch w.Type {
	case "text":
		a.send(model.Chunk{Text: w.Text})
	case "tool_use":
		a.fragment(b, wire.Fragment{ID: w.ID, Name: w.Name})
		b.input = inputText(w.Input)
	case "thinking":
		b.thinking = append(b.thinking, w.Thinking...)
		if w.Signature != nil {
			b.signed, b.signature = true, append(b.signature, *w.Signature...)
		}
		a.send(model.Chunk{Reasoning: w.Thinking})
	case "redacted_thinking":
		b.data = []byte(w.Data)
	}
}

// inputText is the arguments that stand whole in a block; a start that only
// announces them has an empty object.
func inputText(raw json.RawMessage) string {
	var text string
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return ""
	case raw[0] == '"' && json.Unmarshal(raw, &text) == nil:
		return text
	}
	return string(raw)
}

// delta passes on a piece of a block.
func (a *attempt) delta(b *block, d blockDelta) {
	switch d.kind {
	case "text_delta":
		b.kind = cmp.Or(b.kind, "text")
		a.send(model.Chunk{Text: a.dec.plain(d.text, &b.half)})
	case "thinking_delta":
		b.kind = cmp.Or(b.kind, "thinking")
		text := a.dec.plain(d.thinking, &b.half)
		b.thinking = append(b.thinking, text...)
		a.send(model.Chunk{Reasoning: text})
	case "signature_delta":
		b.signed = true
		b.signature = append(b.signature, a.dec.plain(d.signature, nil)...)
	case "input_json_delta":
		if b.kind = cmp.Or(b.kind, "tool_use"); b.kind != "tool_use" {
			break // the server's own tool
		}
		if args := a.dec.plain(d.arg, &b.half); args != "" {
			b.begun = true
			a.fragment(b, wire.Fragment{Args: args})
		}
	}
}

// complete ends a block: arguments that came with its start count where no
// others did.
func (a *attempt) complete(b *block) {
	if b.kind == "tool_use" && !b.begun && b.input != "" {
		b.begun = true
		a.fragment(b, wire.Fragment{Args: b.input})
	}
}

func (a *attempt) fragment(b *block, f wire.Fragment) {
	if a.stopped {
		return
	}
	f.Index, f.HasIndex = b.seq, true
	before := a.calls.Len()
	a.calls.Add(&f)
	if b.call == 0 && a.calls.Len() > before {
		b.call = a.calls.Len()
	}
}

// opaque is Message.ReasoningOpaque: the thinking blocks in order, with "text"
// where the text stood between them and a number where a call did. It is empty
// where nothing must go back.
func (a *attempt) opaque() string {
	out, any, text := []byte{'['}, false, false
	for _, b := range a.blocks {
		var e []byte
		switch {
		case b.kind == "thinking" && (b.signed || len(b.thinking) > 0):
			e = append(e, `{"type":"thinking","thinking":`...)
			e = jsonstring.Append(e, string(b.thinking))
			if b.signed {
				e = append(e, `,"signature":`...)
				e = jsonstring.Append(e, string(b.signature))
			}
			e, any = append(e, '}'), true
		case b.kind == "redacted_thinking":
			e = append(e, `{"type":"redacted_thinking","data":`...)
			e = jsonstring.Append(e, string(b.data))
			e, any = append(e, '}'), true
		case b.kind == "text" && !text:
			e, text = []byte(`"text"`), true
		case b.call > 0:
			e = strconv.AppendInt(nil, int64(b.call-1), 10)
		}
		if e == nil {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, e...)
	}
	if !any {
		return ""
	}
	return string(append(out, ']'))
}
