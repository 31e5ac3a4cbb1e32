package anthropic

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
	blocks    []*block
	dec       decoder
	id, model string
	usage     *usage
	finish    string
	spoke     bool // text or a call came
	reasoned  bool // thinking came
}

// read takes an answer apart.
func (a *attempt) read(ans *endpoint.Answer) error {
	a.ans = ans
	a.calls = wire.Calls{Req: a.req, NewID: a.p.end.Settings().NewID, Emit: a.emitCall}
	var err error
	if ans.Events {
		err = a.readStream(ans.Body)
	} else {
		err = a.readWhole(ans.Body)
	}
	if err != nil || a.stopped {
		return err
	}
	return a.end()
}

// readStream reads server-sent events until the one that ends the message.
func (a *attempt) readStream(r io.Reader) error {
	events := wire.NewEvents(r, a.ans.MaxBytes())
	defer events.Release()
	var ev event
	for !a.stopped {
		data, err := events.Next()
		if err != nil {
			// What breaks after the stop reason harms nobody.
			if a.finish != "" {
				return nil
			}
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
		if ev.kind == "error" || ev.kind == "" && (ev.errRaw != nil || events.Name == "error") {
			return a.ans.Failed(ev.errRaw, data)
		}
		if ev.kind == "message_stop" {
			return nil
		}
		if err := a.take(&ev); err != nil {
			return err
		}
	}
	return nil
}

// take passes on what an event says. Events that are not known, pings among them,
// say nothing.
func (a *attempt) take(ev *event) error {
	switch ev.kind {
	case "content_block_delta":
		a.delta(a.at(ev.index), a.dec.takeDelta(ev.delta))
	case "content_block_start":
		var w wireBlock
		if json.Unmarshal(ev.block, &w) == nil {
			a.begin(a.fresh(ev.index), &w)
		}
	case "content_block_stop":
		a.complete(a.at(ev.index))
	case "message_start":
		return a.takeMessage(ev.message, false)
	case "message_delta":
		if stop := a.dec.takeDelta(ev.delta).stop; stop != "" {
			a.finish = finish(stop)
		}
		a.addUsage(ev.usage)
	}
	return nil
}

// readWhole reads an answer that is not streamed.
func (a *attempt) readWhole(r io.Reader) error {
	data, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	return a.takeMessage(data, true)
}

// takeMessage takes what a message says as a whole: of one that is not streamed,
// or of the start of one that is, which says who answers and what was read.
func (a *attempt) takeMessage(data []byte, whole bool) error {
	var m struct {
		Type    string            `json:"type"`
		ID      string            `json:"id"`
		Model   string            `json:"model"`
		Content []json.RawMessage `json:"content"`
		Stop    string            `json:"stop_reason"`
		Usage   json.RawMessage   `json:"usage"`
		Error   json.RawMessage   `json:"error"`
	}
	if len(bytes.TrimSpace(data)) == 0 || json.Unmarshal(data, &m) != nil {
		if !whole {
			return nil
		}
		return a.ans.NotJSON(data)
	}
	if m.Type == "error" || len(m.Error) > 0 && string(m.Error) != "null" {
		return a.ans.Failed(m.Error, data)
	}
	c := model.Chunk{ID: m.ID, Model: m.Model}
	if c.ID == a.id {
		c.ID = ""
	}
	if c.Model == a.model {
		c.Model = ""
	}
	if m.ID != "" {
		a.id = m.ID
	}
	if m.Model != "" {
		a.model = m.Model
	}
	a.send(c)
	a.addUsage(m.Usage)
	if m.Stop != "" {
		a.finish = finish(m.Stop)
	}
	for i, raw := range m.Content {
		var w wireBlock
		if json.Unmarshal(raw, &w) != nil {
			continue
		}
		b := a.fresh(i)
		a.begin(b, &w)
		a.complete(b)
	}
	return nil
}

// finish says a stop reason in the words of chat completions.
func finish(stop string) string {
	switch stop {
	case "end_turn", "stop_sequence":
		return "stop"
	case "tool_use":
		return "tool_calls"
	case "max_tokens", "model_context_window_exceeded":
		return "length"
	case "refusal":
		return "content_filter"
	}
	return stop
}

// usage is what the wire says of the cost. Its figures grow: those of a later
// event hold for the whole message, and one that is 0 or absent says nothing.
type usage struct {
	Input      int `json:"input_tokens"`
	Output     int `json:"output_tokens"`
	CacheRead  int `json:"cache_read_input_tokens"`
	CacheWrite int `json:"cache_creation_input_tokens"`
}

func (a *attempt) addUsage(raw []byte) {
	var u usage
	if len(raw) == 0 || raw[0] != '{' || json.Unmarshal(raw, &u) != nil {
		return
	}
	if a.usage == nil {
		a.usage = &usage{}
	}
	for _, f := range [...]struct {
		to   *int
		from int
	}{{&a.usage.Input, u.Input}, {&a.usage.Output, u.Output}, {&a.usage.CacheRead, u.CacheRead}, {&a.usage.CacheWrite, u.CacheWrite}} {
		if f.from > 0 {
			*f.to = f.from
		}
	}
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
	for _, b := range a.blocks {
		if b.kind == "text" && b.half != 0 {
			a.send(model.Chunk{Text: "\uFFFD"})
		}
	}
	if !a.spoke {
		return a.ans.Empty(a.finish, a.reasoned)
	}
	c := model.Chunk{Finish: a.finish, ReasoningOpaque: a.opaque()}
	if u := a.usage; u != nil {
		// The wire counts what a cache holds apart; here the prompt is one figure.
		c.Usage = &model.Usage{InputTokens: u.Input + u.CacheRead + u.CacheWrite, OutputTokens: u.Output,
			CacheReadTokens: u.CacheRead, CacheWriteTokens: u.CacheWrite}
	}
	a.send(c)
	return nil
}
