package openai

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"time"

	"github.com/transom-run/transom/model"
)

// Causes with which an attempt ends itself.
var (
	errHeaderTimeout = errors.New("the server did not begin to answer in time")
	errIdleTimeout   = errors.New("the server stopped sending in the middle of its answer")
	errTooLarge      = errors.New("the answer is longer than the limit")
)

// attempt is one request and its answer.
type attempt struct {
	p       *Provider
	req     *model.Request
	yield   func(model.Chunk, error) bool
	stopped bool // yield returned false

	calls     tracker
	id, model string
	usage     *model.Usage
	finish    string
	spoke     bool // text or a call came
	reasoned  bool // reasoning came
}

func (a *attempt) run(parent context.Context) error {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	p := a.p
	body := AppendRequest(make([]byte, 0, requestSize(a.req)), a.req, p.cfg.WireModel, p.cfg.ReasoningField)
	hr, err := http.NewRequestWithContext(ctx, http.MethodPost, p.chat, bytes.NewReader(body))
	if err != nil {
		return p.transportError(parent, ctx, err)
	}
	p.setHeaders(hr.Header, a.req)
	if a.req.Stream {
		hr.Header.Set("Accept", "text/event-stream")
	} else {
		hr.Header.Set("Accept", "application/json")
	}
	timer := time.AfterFunc(p.cfg.HeaderTimeout, func() { cancel(errHeaderTimeout) })
	defer timer.Stop()
	resp, err := p.client.Do(hr)
	if err != nil {
		return p.transportError(parent, ctx, err)
	}
	defer resp.Body.Close()
	timer.Stop()
	idle := time.AfterFunc(p.cfg.IdleTimeout, func() { cancel(errIdleTimeout) })
	defer idle.Stop()
	r := &watched{r: resp.Body, idle: idle, timeout: p.cfg.IdleTimeout, left: p.cfg.MaxResponse}
	if resp.StatusCode/100 != 2 {
		return p.statusError(resp, r)
	}
	a.calls = tracker{req: a.req, newID: p.cfg.NewID, emit: a.emitCall}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case kind == "text/event-stream", a.req.Stream && kind != "application/json" && kind != "text/html":
		err = a.readStream(r)
	case kind == "text/html":
		return p.notTheWire("a web page")
	default:
		err = a.readWhole(r)
	}
	if a.stopped {
		return nil
	}
	if err != nil {
		var me *model.Error
		if errors.As(err, &me) {
			return err
		}
		return p.transportError(parent, ctx, err)
	}
	return a.end()
}

// watched counts what is read and pushes the idle timer back.
type watched struct {
	r       io.Reader
	idle    *time.Timer
	timeout time.Duration
	left    int64
}

func (w *watched) Read(b []byte) (int, error) {
	if w.left <= 0 {
		return 0, errTooLarge
	}
	if int64(len(b)) > w.left {
		b = b[:w.left]
	}
	n, err := w.r.Read(b)
	w.left -= int64(n)
	if n > 0 {
		w.idle.Reset(w.timeout)
	}
	return n, err
}

// readStream reads server-sent events until the end of the answer.
func (a *attempt) readStream(r io.Reader) error {
	ev := newEvents(r, int(min(a.p.cfg.MaxResponse, 1<<31-1)))
	defer ev.release()
	var dec decoder
	var d delta
	complete := false
	for {
		data, err := ev.next()
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
				return a.p.notJSON(data)
			}
			if d.errRaw != nil || ev.name == "error" {
				return a.p.errorInBody(d.errRaw, data)
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
	text, reasoning := dec.rest()
	if text != "" || reasoning != "" {
		a.send(model.Chunk{Text: text, Reasoning: reasoning})
	}
	return nil
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
		return a.p.notJSON(data)
	}
	if d.errRaw != nil {
		return a.p.errorInBody(d.errRaw, data)
	}
	a.calls.whole = true
	a.take(&d)
	return nil
}

// take passes on what an event says. It returns false when nobody listens.
func (a *attempt) take(d *delta) bool {
	if d.usage != nil {
		a.usage = d.usage
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
	a.spoke = a.spoke || c.Text != ""
	a.reasoned = a.reasoned || c.Reasoning != ""
	if c.Text != "" || c.Reasoning != "" || c.ID != "" || c.Model != "" {
		if !a.send(c) {
			return false
		}
	}
	for i := range d.calls {
		if !a.calls.add(&d.calls[i]) {
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
	if !a.calls.flush() {
		return nil
	}
	if !a.spoke {
		return a.p.emptyAnswer(a.finish, a.reasoned)
	}
	a.send(model.Chunk{Finish: a.finish, Usage: a.usage})
	return nil
}
