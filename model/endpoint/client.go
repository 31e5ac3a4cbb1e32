package endpoint

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/transom-run/transom/internal/lazy"
	"github.com/transom-run/transom/model"
)

// sharedClient is one pool of connections for all providers of the process.
var sharedClient = lazy.Value[*http.Client]{Make: func() *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConnsPerHost = 256
	t.MaxIdleConns = 512
	t.IdleConnTimeout = 90 * time.Second
	return &http.Client{Transport: t, CheckRedirect: SameHost}
}}

// CloseIdleConnections closes the shared pool's connections that nobody uses.
func CloseIdleConnections() { sharedClient.Get().CloseIdleConnections() }

// SharedClient is the HTTP client that all providers without one of their own
// use. It follows redirects on the same host only.
func SharedClient() *http.Client { return sharedClient.Get() }

// guarded is the client to use: the shared one for nil, and never one that
// follows redirects to other hosts unless it says so itself.
func guarded(c *http.Client) *http.Client {
	switch {
	case c == nil:
		return sharedClient.Get()
	case c.CheckRedirect == nil:
		own := *c
		own.CheckRedirect = SameHost
		return &own
	}
	return c
}

// errRedirect says that a redirect was not followed.
var errRedirect = errors.New("a redirect that is not followed")

// SameHost is an http.Client's CheckRedirect that refuses redirects to other hosts: they would be sent the headers of
// the provider, keys among them.
func SameHost(req *http.Request, via []*http.Request) error {
	if len(via) >= 5 {
		return fmt.Errorf("%w: more than 5 in a row", errRedirect)
	}
	if req.URL.Host != via[0].URL.Host || (via[0].URL.Scheme == "https" && req.URL.Scheme != "https") {
		return fmt.Errorf("%w: it leads to another host (%s); set the base URL to it, if it is right", errRedirect, req.URL.Host)
	}
	return nil
}

// askedKey finds the model's request in the context of the HTTP request.
type askedKey struct{}

// Asked returns the request to a model that an HTTP request is made for; nil
// where it is for none, such as a list of models. An http.RoundTripper that is
// put into [Server].HTTPClient reads session and interaction from it.
func Asked(ctx context.Context) *model.Request {
	req, _ := ctx.Value(askedKey{}).(*model.Request)
	return req
}
