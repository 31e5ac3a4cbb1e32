package responses

import (
	"bytes"
	"encoding/json"
	"io"

	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/model/endpoint"
	"github.com/transom-run/transom/model/internal/wire"
)

// attempt is one request and its answer.
type attempt struct {
	p       *Provider
	req     *model.Request
	yield   func(model.Chunk, error) bool
	stopped bool // yield returned false

	ans       *endpoint.Answer
	calls     wire.Calls
	items     []*item // in the order of their output indexes
	dec       decoder
	id, model string
	usage     *model.Usage
	finish    string
	over      bool // the event that ends an answer has come
	spoke     bool // text or a call came
	reasoned  bool // reasoning came

	textHalf, thinkHalf rune // first halves of characters that were cut in two
}

// read takes an answer apart.
func (a *attempt) read(ans *endpoint.Answer) error {
	a.ans = ans
	a.calls = wire.Calls{Req: a.req, NewID: a.p.end.Settings().NewID, Emit: a.emitCall}
	var err error
	switch {
	case ans.Next != nil:
		err = a.readEvents(ans.Next, func() string { return "" })
	case ans.Events:
		events := wire.NewEvents(ans.Body, ans.MaxBytes())
		defer events.Release()
		err = a.readEvents(events.Next, func() string { return events.Name })
	default:
		err = a.readWhole(ans.Body)
	}
	if err != nil || a.stopped {
		return err
	}
	return a.end()
}

// readEvents reads events until the one that ends the answer. name is that of the
// newest event, where the transport tells it.
func (a *attempt) readEvents(next func() ([]byte, error), name func() string) error {
	var ev event
	for !a.over && !a.stopped {
		data, err := next()
		if err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
		data = bytes.TrimSpace(data)
		if len(data) == 0 || string(data) == "[DONE]" {
			continue
		}
		if !a.dec.decode(data, &ev) {
			return a.ans.NotJSON(data)
		}
		if ev.kind == "error" || ev.kind == "" && (ev.errRaw != nil || name() == "error") {
			return a.ans.Failed(ev.errRaw, data)
		}
		if err := a.take(&ev); err != nil {
			return err
		}
	}
	return nil
}

// readWhole reads an answer that is not streamed.
func (a *attempt) readWhole(r io.Reader) error {
	data, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	return a.takeResponse(data, true)
}

// take passes on what an event says. Events that are not known say nothing.
func (a *attempt) take(ev *event) error {
	switch ev.kind {
	case "response.output_text.delta", "response.refusal.delta":
		it := a.itemOf(ev, "message")
		it.told, it.parts = true, true
		a.send(model.Chunk{Text: a.dec.plain(ev.delta, &a.textHalf)})
	case "response.function_call_arguments.delta":
		a.addArguments(a.itemOf(ev, "function_call"), ev.delta)
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		it := a.itemOf(ev, "reasoning")
		text := a.dec.plain(ev.delta, &a.thinkHalf)
		if it.told && it.part != ev.part && text != "" {
			text = "\n\n" + text
		}
		it.told, it.part = true, ev.part
		a.send(model.Chunk{Reasoning: text})
	case "response.output_text.done", "response.refusal.done":
		// Some servers send a text whole, without deltas.
		if it := a.itemOf(ev, "message"); !it.parts && len(ev.done) > 0 {
			it.told = true
			a.send(model.Chunk{Text: a.dec.plain(ev.done, nil)})
		}
	case "response.function_call_arguments.done":
		if it := a.itemOf(ev, "function_call"); !it.told {
			a.addArguments(it, ev.done)
		}
	case "response.output_item.added":
		a.begin(a.item(ev), ev.item)
	case "response.output_item.done":
		a.complete(a.item(ev), ev.item)
	case "response.created", "response.in_progress":
		return a.takeResponse(ev.response, false)
	case "response.completed", "response.incomplete", "response.failed":
		a.over = true
		return a.takeResponse(ev.response, true)
	}
	return nil
}

// itemOf is item, of a kind that the event tells.
func (a *attempt) itemOf(ev *event, kind string) *item {
	it := a.item(ev)
	if it.kind == "" {
		it.kind = kind
	}
	return it
}

// wireResponse is a response as the wire has it, as far as it matters.
type wireResponse struct {
	ID      string            `json:"id"`
	Model   string            `json:"model"`
	Status  string            `json:"status"`
	Output  []json.RawMessage `json:"output"`
	Error   json.RawMessage   `json:"error"`
	Details struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
	Charged json.RawMessage `json:"copilot_usage"`
	Usage   *struct {
		Input  int `json:"input_tokens"`
		Output int `json:"output_tokens"`
		In     struct {
			Cached  int `json:"cached_tokens"`
			Written int `json:"cache_write_tokens"`
		} `json:"input_tokens_details"`
		Out struct {
			Reasoning int `json:"reasoning_tokens"`
		} `json:"output_tokens_details"`
	} `json:"usage"`
}

// takeResponse takes what a response says as a whole; at its end also those of
// its items that the stream did not bring.
func (a *attempt) takeResponse(data []byte, end bool) error {
	var r wireResponse
	if len(bytes.TrimSpace(data)) == 0 || json.Unmarshal(data, &r) != nil {
		if !end {
			return nil
		}
		return a.ans.NotJSON(data)
	}
	if len(r.Error) > 0 && string(r.Error) != "null" || r.Status == "failed" {
		return a.ans.Failed(nullable(r.Error), data)
	}
	var c model.Chunk
	if r.ID != "" && r.ID != a.id {
		a.id, c.ID = r.ID, r.ID
	}
	if r.Model != "" && r.Model != a.model {
		a.model, c.Model = r.Model, r.Model
	}
	if c != (model.Chunk{}) {
		a.send(c)
	}
	if !end {
		return nil
	}
	if u := r.Usage; u != nil {
		a.usage = &model.Usage{InputTokens: u.Input, OutputTokens: u.Output, CacheReadTokens: u.In.Cached,
			CacheWriteTokens: u.In.Written, ReasoningTokens: u.Out.Reasoning, NanoAIU: wire.Charge(r.Charged)}
	}
	a.finishItems(r.Output)
	switch {
	case r.Details.Reason == "max_output_tokens":
		a.finish = "length"
	case r.Details.Reason != "":
		a.finish = r.Details.Reason
	case r.Status == "cancelled" || r.Status == "incomplete":
		a.finish = r.Status
	default:
		a.finish = "stop"
	}
	return nil
}

func nullable(raw json.RawMessage) []byte {
	if string(raw) == "null" {
		return nil
	}
	return raw
}

func (a *attempt) send(c model.Chunk) {
	if a.stopped || c == (model.Chunk{}) {
		return
	}
	a.spoke = a.spoke || c.Text != ""
	a.reasoned = a.reasoned || c.Reasoning != ""
	a.stopped = !a.yield(c, nil)
}

func (a *attempt) emitCall(c model.CallChunk) bool {
	a.spoke = true
	out := c // a chunk outlives the next one
	a.send(model.Chunk{Call: &out})
	return !a.stopped
}

// end passes on what comes last, and refuses an answer without content.
func (a *attempt) end() error {
	if !a.calls.Flush() {
		return nil
	}
	if a.textHalf != 0 {
		a.send(model.Chunk{Text: "\uFFFD"})
	}
	if !a.spoke {
		return a.ans.Empty(a.finish, a.reasoned)
	}
	if a.finish == "stop" && a.calls.Len() > 0 {
		a.finish = "tool_calls"
	}
	a.send(model.Chunk{Finish: a.finish, Usage: a.usage, EncryptedContent: a.encrypted()})
	return nil
}
