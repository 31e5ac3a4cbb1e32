package scripted

import (
	"encoding/base64"
	"fmt"
	"time"

	"github.com/transom-run/transom/model"
)

// object is a JSON object. (encoding/json writes its keys in order.)
type object = map[string]any

// sealed stands where a provider would encrypt or sign its reasoning.
func sealed(reasoning string) string {
	return base64.StdEncoding.EncodeToString([]byte("scripted:" + reasoning))
}

// wholeResponse answers with an item for each thing that the plan says.
func wholeResponse(p *Provider, pl *plan) any {
	e := &responseEvents{pl: pl}
	for _, c := range p.chunks(pl, false) {
		e.chunk(c)
	}
	e.close()
	return e.response("completed")
}

// responseEvents is a stream of responses. It builds the items of the whole answer
// on its way.
type responseEvents struct {
	pl     *plan
	items  []object
	kind   string // of the item that is open; "" none
	call   int    // its index among the calls
	text   string // of the item so far
	finish string
	usage  *model.Usage
	begun  bool
	number int
}

func streamResponse(pl *plan) events { return &responseEvents{pl: pl} }

func (e *responseEvents) response(status string) object {
	r := object{"id": e.pl.id, "object": "response", "created_at": time.Now().Unix(), "model": e.pl.model, "status": status,
		"output": append([]object{}, e.items...), "error": nil, "incomplete_details": nil, "store": false}
	switch {
	case status == "in_progress":
	case e.finish == "length":
		r["status"], r["incomplete_details"] = "incomplete", object{"reason": "max_output_tokens"}
	case e.finish == "content_filter":
		r["status"], r["incomplete_details"] = "incomplete", object{"reason": "content_filter"}
	}
	if u := e.usage; u != nil {
		r["usage"] = object{"input_tokens": u.InputTokens, "output_tokens": u.OutputTokens, "total_tokens": u.InputTokens + u.OutputTokens,
			"input_tokens_details":  object{"cached_tokens": u.CacheReadTokens, "cache_write_tokens": u.CacheWriteTokens},
			"output_tokens_details": object{"reasoning_tokens": u.ReasoningTokens}}
	}
	return r
}

func (e *responseEvents) event(kind string, data object) event {
	data["type"], data["sequence_number"] = kind, e.number
	e.number++
	return event{kind, data}
}

func (e *responseEvents) chunk(c model.Chunk) []event {
	var out []event
	if !e.begun {
		e.begun = true
		out = append(out, e.event("response.created", object{"response": e.response("in_progress")}))
	}
	if c.Reasoning != "" {
		out = append(out, e.open("reasoning", 0, nil)...)
		out = append(out, e.delta("response.reasoning_summary_text.delta", "summary_index", c.Reasoning))
	}
	if c.Text != "" {
		out = append(out, e.open("message", 0, nil)...)
		out = append(out, e.delta("response.output_text.delta", "content_index", c.Text))
	}
	if c.Call != nil {
		out = append(out, e.open("function_call", c.Call.Index, c.Call)...)
		if c.Call.Arguments != "" {
			out = append(out, e.delta("response.function_call_arguments.delta", "", c.Call.Arguments))
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

// open begins an item unless it is open already.
func (e *responseEvents) open(kind string, call int, c *model.CallChunk) []event {
	if e.kind == kind && e.call == call {
		return nil
	}
	out := e.close()
	e.kind, e.call, e.text = kind, call, ""
	item := object{"type": kind, "id": fmt.Sprintf("%s-item-%d", e.pl.id, len(e.items))}
	switch kind {
	case "message":
		item["role"], item["status"], item["content"] = "assistant", "in_progress", []object{}
	case "reasoning":
		item["summary"] = []object{}
	case "function_call":
		item["call_id"], item["name"], item["arguments"] = c.ID, c.Name, ""
	}
	e.items = append(e.items, item)
	return append(out, e.event("response.output_item.added", object{"output_index": len(e.items) - 1, "item": item}))
}

func (e *responseEvents) delta(kind, part, text string) event {
	e.text += text
	d := object{"output_index": len(e.items) - 1, "item_id": e.items[len(e.items)-1]["id"], "delta": text}
	if part != "" {
		d[part] = 0
	}
	return e.event(kind, d)
}

// close ends the item that is open. The object that was sent when it began is
// left alone.
func (e *responseEvents) close() []event {
	if e.kind == "" {
		return nil
	}
	item := object{}
	for k, v := range e.items[len(e.items)-1] {
		item[k] = v
	}
	switch e.kind {
	case "message":
		item["status"], item["content"] = "completed", []object{{"type": "output_text", "text": e.text, "annotations": []object{}}}
	case "reasoning":
		item["summary"] = []object{{"type": "summary_text", "text": e.text}}
		item["encrypted_content"] = sealed(e.text)
	case "function_call":
		item["arguments"] = e.text
	}
	e.items[len(e.items)-1], e.kind = item, ""
	return []event{e.event("response.output_item.done", object{"output_index": len(e.items) - 1, "item": item})}
}

func (e *responseEvents) end() []event {
	out := e.close()
	r := e.response("completed")
	return append(out, e.event("response."+r["status"].(string), object{"response": r}))
}
