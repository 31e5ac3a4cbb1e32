package openai

import (
	"bytes"
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
	id, model string
	field     string // of the reasoning
	usage     *model.Usage
	charge    int64
	finish    string
	spoke     bool // text or a call came
	reasoned  bool // reasoning came
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

// readStream reads server-sent events until the end of the answer.
func (a *attempt) readStream(r io.Reader) error {
	ev := wire.NewEvents(r, a.ans.MaxBytes())
	defer ev.Release()
	var dec decoder
	var d delta
	complete := false
	for {
		data, err := ev.Next()
		if err != nil {
			// What breaks after the finish reason, or a missing [DONE], harms nobody.
			if a.finish != "" || complete {
				break
			}
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
		data, done := cutDone(data)
		if len(data) > 0 {
			if !dec.decode(data, &d) {
				return a.ans.NotJSON(data)
			}
			if d.errRaw != nil || ev.Name == "error" {
				return a.ans.Failed(d.errRaw, data)
			}
			if !a.take(&d) {
				return nil
			}
		}
		if done {
			complete = true
			break
		}
	}
	a.sendRest(&dec)
	return nil
}

// sendRest passes on halves of characters that never got their other half.
func (a *attempt) sendRest(dec *decoder) {
	text, reasoning := dec.rest()
	if text != "" || reasoning != "" {
		a.send(model.Chunk{Text: text, Reasoning: reasoning})
	}
}

// cutDone takes the end mark [DONE] off.
func cutDone(data []byte) ([]byte, bool) {
	data = bytes.TrimSpace(data)
	rest, done := bytes.CutSuffix(data, []byte("[DONE]"))
	if !done || len(rest) > 0 && rest[len(rest)-1] != '\n' {
		return data, false
	}
	return rest, true
}

// readWhole reads an answer that is not streamed.
func (a *attempt) readWhole(r io.Reader) error {
	data, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	dec := decoder{whole: true}
	var d delta
	if len(bytes.TrimSpace(data)) == 0 || !dec.decode(data, &d) {
		return a.ans.NotJSON(data)
	}
	if d.errRaw != nil {
		return a.ans.Failed(d.errRaw, data)
	}
	a.calls.Whole = true
	a.take(&d)
	a.sendRest(&dec)
	return nil
}

// take passes on what an event says. It returns false when nobody listens.
func (a *attempt) take(d *delta) bool {
	if d.usage != nil {
		a.usage = d.usage
	}
	if d.charge != 0 {
		a.charge = d.charge
	}
	if d.finish != "" {
		a.finish = d.finish
	}
	c := model.Chunk{Text: d.text, Reasoning: d.reasoning}
	if d.id != "" && d.id != a.id {
		a.id, c.ID = d.id, d.id
	}
	if d.model != "" && d.model != a.model {
		a.model, c.Model = d.model, d.model
	}
	if d.field != "" && a.field == "" {
		a.field, c.ReasoningField = d.field, d.field
	}
	c.ReasoningOpaque = d.opaque
	a.spoke = a.spoke || c.Text != ""
	a.reasoned = a.reasoned || c.Reasoning != ""
	if c.Text != "" || c.Reasoning != "" || c.ID != "" || c.Model != "" || c.ReasoningOpaque != "" {
		if !a.send(c) {
			return false
		}
	}
	for i := range d.calls {
		if !a.calls.Add(&d.calls[i]) {
			return false
		}
	}
	return true
}

func (a *attempt) send(c model.Chunk) bool {
	if a.stopped {
		return false
	}
	if !a.yield(c, nil) {
		a.stopped = true
		return false
	}
	return true
}

func (a *attempt) emitCall(c model.CallChunk) bool {
	a.spoke = true
	out := c // a chunk outlives the next one
	return a.send(model.Chunk{Call: &out})
}

// end passes on what comes last, and refuses an answer without content.
func (a *attempt) end() error {
	if !a.calls.Flush() {
		return nil
	}
	if !a.spoke {
		return a.ans.Empty(a.finish, a.reasoned)
	}
	if a.charge != 0 {
		if a.usage == nil {
			a.usage = new(model.Usage)
		}
		a.usage.NanoAIU = a.charge
	}
	a.send(model.Chunk{Finish: a.finish, Usage: a.usage})
	return nil
}
