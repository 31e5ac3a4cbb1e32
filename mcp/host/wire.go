package host

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// wire carries the requests to a remote server: with the configured headers, with a
// token where one was given, and with another one where the server asks for it.
type wire struct {
	l    *link
	base http.RoundTripper
	ctx  context.Context // ends with the connection
	cut  context.CancelFunc
	auth authorization
}

func newWire(l *link) *wire {
	w := &wire{l: l}
	ctx, cancel := context.WithCancel(context.Background())
	w.ctx = ctx
	if c := l.host.cfg.HTTPClient; c != nil && c.Transport != nil {
		w.base, w.cut = c.Transport, cancel
	} else {
		own := http.DefaultTransport.(*http.Transport).Clone() // its connections end with this one
		w.base, w.cut = own, func() { cancel(); own.CloseIdleConnections() }
	}
	w.auth.l = l
	return w
}

// RoundTrip makes a request, and makes it again each time a new token may help.
func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := whole(req)
	if err != nil {
		return nil, err
	}
	// A stream of events outlives the request's context, which may be that of
	// connecting: it ends with the connection.
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(req.Context()))
	stop := context.AfterFunc(w.ctx, func() { cancel(errors.New("the connection was closed")) })
	let := context.AfterFunc(req.Context(), func() { cancel(context.Cause(req.Context())) })
	release := func() { stop(); let(); cancel(nil) }
	var at attempt
	for {
		at.token, at.own = "", false
		if w.home(req) {
			at.token, at.own = w.auth.token(ctx)
		}
		res, err := w.base.RoundTrip(w.dressed(ctx, req, body, at.token))
		if err != nil {
			release()
			return nil, err
		}
		if res.StatusCode != http.StatusUnauthorized && res.StatusCode != http.StatusForbidden || !w.home(req) {
			w.auth.accepted()
			if req.Method == http.MethodGet {
				let()
			}
			res.Body = &ending{res.Body, release}
			return res, nil
		}
		said, _ := io.ReadAll(io.LimitReader(res.Body, 64<<10))
		res.Body.Close()
		if req.Method == http.MethodDelete || !w.auth.refused(ctx, res, said, &at) { // nobody is asked for a goodbye
			res.Body = &ending{io.NopCloser(bytes.NewReader(said)), release}
			return res, nil
		}
	}
}

// dressed is one attempt at a request.
func (w *wire) dressed(ctx context.Context, req *http.Request, body []byte, token string) *http.Request {
	r := req.Clone(ctx)
	if body != nil {
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	if !w.home(r) {
		return r // what the server sent elsewhere is not to know its tokens
	}
	for name, value := range w.l.cfg.Headers {
		if get := w.l.host.getenv(); get != nil && strings.Contains(value, "$") {
			value = resolve(value, get)
		}
		r.Header.Set(name, value)
	}
	if token != "" {
		r.Header.Set("Authorization", token)
	}
	return r
}

// home reports whether a request goes where the configuration says.
func (w *wire) home(r *http.Request) bool {
	u, err := url.Parse(w.l.cfg.URL)
	return err == nil && u.Scheme == r.URL.Scheme && u.Host == r.URL.Host
}

// whole reads a request's body, so that it can be sent again.
func whole(req *http.Request) ([]byte, error) {
	if req.Body == nil {
		return nil, nil
	}
	defer req.Body.Close()
	return io.ReadAll(req.Body)
}

// ending gives back what a response holds, once its body is closed.
type ending struct {
	io.ReadCloser
	release func()
}

func (e *ending) Close() error {
	defer e.release()
	return e.ReadCloser.Close()
}
