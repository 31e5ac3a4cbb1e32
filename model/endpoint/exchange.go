package endpoint

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

// Causes with which an exchange ends itself.
var (
	errHeaderTimeout = errors.New("the server did not begin to answer in time")
	errIdleTimeout   = errors.New("the server stopped sending in the middle of its answer")
	errTooLarge      = errors.New("the answer is longer than the limit")
)

// Answer is an answer with a status of success.
type Answer struct {
	// Body is counted and watched: a silence beyond IdleTimeout ends it.
	Body io.Reader
	// Events says that the body is a stream of server-sent events.
	Events bool
	// Next returns the next event of an answer over a WebSocket, which has no Body;
	// nil for all others.
	Next func() ([]byte, error)

	e     *Endpoint
	shown string
	token string // of this request; it must not be shown
}

// MaxBytes is the longest answer.
func (a *Answer) MaxBytes() int { return int(min(a.e.cfg.MaxResponse, 1<<31-1)) }

// Post makes one attempt: it posts the body and has read take the answer apart.
// What read returns is the result; an error that is no *model.Error is taken for
// one of the connection.
func (e *Endpoint) Post(parent context.Context, req *model.Request, body []byte, read func(a *Answer) error) error {
	at := e.address(req.Model)
	a := &Answer{e: e, shown: at.shown}
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	hr, err := http.NewRequestWithContext(context.WithValue(ctx, askedKey{}, req), http.MethodPost, at.url, bytes.NewReader(body))
	if err != nil {
		return a.transportError(parent, ctx, err)
	}
	if err := a.setHeaders(ctx, hr.Header, req); err != nil {
		if parent.Err() != nil {
			return a.transportError(parent, ctx, err)
		}
		return err
	}
	hr.Header.Set("Accept", "application/json")
	if req.Stream {
		hr.Header.Set("Accept", "text/event-stream")
	}
	timer := time.AfterFunc(e.cfg.HeaderTimeout, func() { cancel(errHeaderTimeout) })
	defer timer.Stop()
	resp, err := e.client.Do(hr)
	if err != nil {
		return a.transportError(parent, ctx, err)
	}
	defer resp.Body.Close()
	timer.Stop()
	idle := time.AfterFunc(e.cfg.IdleTimeout, func() { cancel(errIdleTimeout) })
	defer idle.Stop()
	a.Body = &watched{r: resp.Body, idle: idle, timeout: e.cfg.IdleTimeout, left: e.cfg.MaxResponse}
	if resp.StatusCode/100 != 2 {
		return a.statusError(resp)
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case kind == "text/html":
		return a.notTheWire("a web page")
	case kind == "text/event-stream", req.Stream && kind != "application/json":
		a.Events = true
	}
	if err = read(a); err == nil {
		return nil
	}
	var me *model.Error
	if errors.As(err, &me) {
		return err
	}
	return a.transportError(parent, ctx, err)
}

// setHeaders sets the headers of a request; req is nil when models are listed.
func (a *Answer) setHeaders(ctx context.Context, h http.Header, req *model.Request) error {
	cfg := &a.e.cfg
	h.Set("Content-Type", "application/json")
	h.Set("User-Agent", "transom")
	bearer := cfg.BearerToken
	if cfg.Token != nil {
		token, err := cfg.Token(ctx)
		if err != nil {
			return a.noToken(err)
		}
		bearer, a.token = token, token
	}
	switch {
	case bearer != "":
		h.Set("Authorization", "Bearer "+bearer)
	case cfg.Token != nil || cfg.APIKey == "":
	case a.e.wire.KeyHeader != "":
		h.Set(a.e.wire.KeyHeader, cfg.APIKey)
	default:
		h.Set("Authorization", "Bearer "+cfg.APIKey)
	}
	for name, value := range a.e.wire.Header {
		h.Set(name, value)
	}
	if cfg.Decorate != nil {
		cfg.Decorate(h, req)
	}
	for name, value := range cfg.Headers {
		h.Set(name, value)
	}
	if req != nil {
		for name, value := range req.Headers {
			h.Set(name, value)
		}
	}
	return nil
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

// listTimeout bounds the request for the list of models.
const listTimeout = 30 * time.Second

// List asks for the list of models and has parse read it.
func (e *Endpoint) List(parent context.Context, parse func(data []byte) ([]model.Info, error)) ([]model.Info, error) {
	a := &Answer{e: e, shown: e.address("").shown}
	ctx, cancel := context.WithTimeoutCause(parent, listTimeout, errHeaderTimeout)
	defer cancel()
	hr, err := http.NewRequestWithContext(ctx, http.MethodGet, e.models, nil)
	if err != nil {
		return nil, a.transportError(parent, ctx, err)
	}
	if err := a.setHeaders(ctx, hr.Header, nil); err != nil {
		return nil, err
	}
	hr.Header.Set("Accept", "application/json")
	resp, err := e.client.Do(hr)
	if err != nil {
		return nil, a.transportError(parent, ctx, err)
	}
	defer resp.Body.Close()
	a.Body = resp.Body
	if resp.StatusCode/100 != 2 {
		return nil, a.statusError(resp)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, e.cfg.MaxResponse))
	if err != nil {
		return nil, a.transportError(parent, ctx, err)
	}
	infos, err := parse(data)
	if err != nil {
		return nil, a.NotJSON(data)
	}
	return infos, nil
}
