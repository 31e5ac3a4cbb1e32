package scripted

import (
	"encoding/json"

	"github.com/transom-run/transom/model"
)

// stopReason is a finish reason in the words of the messages wire.
func stopReason(finish string) string {
	switch finish {
	case "stop":
		return "end_turn"
	case "tool_calls":
		return "tool_use"
	case "length":
		return "max_tokens"
	case "content_filter":
		return "refusal"
	}
	return finish
}

// messageUsage counts what a cache holds apart, as the wire does.
func messageUsage(u *model.Usage) object {
	if u == nil {
		return object{"input_tokens": 0, "output_tokens": 0}
	}
	return object{"input_tokens": u.InputTokens - u.CacheReadTokens - u.CacheWriteTokens, "output_tokens": u.OutputTokens,
		"cache_read_input_tokens": u.CacheReadTokens, "cache_creation_input_tokens": u.CacheWriteTokens}
}

// wholeMessage answers with a block for each thing that the plan says.
func wholeMessage(p *Provider, pl *plan) any {
	e := &messageEvents{pl: pl}
	for _, c := range p.chunks(pl, false) {
		e.chunk(c)
	}
	e.close()
	return object{"id": pl.id, "type": "message", "role": "assistant", "model": pl.model, "content": append([]object{}, e.blocks...),
		"stop_reason": stopReason(e.finish), "stop_sequence": nil, "usage": messageUsage(e.usage)}
}

// messageEvents is a stream of messages. It builds the blocks of the whole answer
// on its way.
type messageEvents struct {
	pl     *plan
	blocks []object
	kind   string // of the block that is open; "" none
	call   int    // its index among the calls
	text   string // of the block so far
	finish string
	usage  *model.Usage
	begun  bool
}

func streamMessage(pl *plan) events {
	e := &messageEvents{pl: pl}
	for i := range pl.answer {
		if u := pl.answer[i].Usage; u != nil {
			e.usage = u // the wire says at the start what was read
		}
	}
	return e
}

func named(kind string, data object) event {
	data["type"] = kind
	return event{kind, data}
}

func (e *messageEvents) chunk(c model.Chunk) []event {
	var out []event
	if !e.begun {
		e.begun = true
		usage := messageUsage(e.usage)
		usage["output_tokens"] = 1
		out = append(out, named("message_start", object{"message": object{"id": e.pl.id, "type": "message", "role": "assistant",
			"model": e.pl.model, "content": []object{}, "stop_reason": nil, "stop_sequence": nil, "usage": usage}}))
	}
	if c.Reasoning != "" {
		out = append(out, e.open("thinking", 0, object{"thinking": "", "signature": ""})...)
		out = append(out, e.delta(object{"type": "thinking_delta", "thinking": c.Reasoning}, c.Reasoning))
	}
	if c.Text != "" {
		out = append(out, e.open("text", 0, object{"text": ""})...)
		out = append(out, e.delta(object{"type": "text_delta", "text": c.Text}, c.Text))
	}
	if c.Call != nil {
		out = append(out, e.open("tool_use", c.Call.Index, object{"id": c.Call.ID, "name": c.Call.Name, "input": object{}})...)
		if c.Call.Arguments != "" {
			out = append(out, e.delta(object{"type": "input_json_delta", "partial_json": c.Call.Arguments}, c.Call.Arguments))
		}
	}
	if c.Finish != "" {
		e.finish = c.Finish
	}
	if c.Usage != nil {
		e.usage = c.Usage
	}
	return out
}

// open begins a block unless it is open already.
func (e *messageEvents) open(kind string, call int, block object) []event {
	if e.kind == kind && e.call == call {
		return nil
	}
	out := e.close()
	e.kind, e.call, e.text = kind, call, ""
	block["type"] = kind
	e.blocks = append(e.blocks, block)
	return append(out, named("content_block_start", object{"index": len(e.blocks) - 1, "content_block": block}))
}

func (e *messageEvents) delta(d object, text string) event {
	e.text += text
	return named("content_block_delta", object{"index": len(e.blocks) - 1, "delta": d})
}

// close ends the block that is open. The object that was sent when it began is
// left alone.
func (e *messageEvents) close() []event {
	if e.kind == "" {
		return nil
	}
	index := len(e.blocks) - 1
	block := object{}
	for k, v := range e.blocks[index] {
		block[k] = v
	}
	var out []event
	switch e.kind {
	case "text":
		block["text"] = e.text
	case "thinking":
		block["thinking"], block["signature"] = e.text, sealed(e.text)
		out = append(out, named("content_block_delta", object{"index": index, "delta": object{"type": "signature_delta", "signature": sealed(e.text)}}))
	case "tool_use":
		input := json.RawMessage(e.text)
		if !json.Valid(input) {
			input = json.RawMessage("{}")
		}
		block["input"] = input
	}
	e.blocks[index], e.kind = block, ""
	return append(out, named("content_block_stop", object{"index": index}))
}

func (e *messageEvents) end() []event {
	out := e.close()
	usage := messageUsage(e.usage)
	return append(out, named("message_delta", object{"delta": object{"stop_reason": stopReason(e.finish), "stop_sequence": nil}, "usage": usage}),
		named("message_stop", object{}))
}
