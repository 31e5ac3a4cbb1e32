package host

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/transom-run/transom/mcp"
)

const (
	probeTime = 15 * time.Second
	maxProbe  = 64 << 10 // bounds the body of an answer that is passed on
)

// first is what a client says first.
const first = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"transom","version":"` + version + `"}}}`

// probe makes a first request to a server, with a token or without one, and takes
// back what the server made for it.
func (h *Host) probe(ctx context.Context, cfg mcp.Server, token string) mcp.Probe {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	w := newWire(&link{host: h, cfg: cfg})
	defer w.cut()
	client := &http.Client{Transport: w.base, CheckRedirect: noRedirect}
	send := func(method, body, session string) (*http.Response, error) {
		req, err := http.NewRequestWithContext(ctx, method, cfg.URL, strings.NewReader(body))
		if err != nil {
			return nil, err
		}
		req.Header.Set("Accept", "application/json, text/event-stream")
		if body != "" {
			req.Header.Set("Content-Type", "application/json")
		}
		if session != "" {
			req.Header.Set("Mcp-Session-Id", session)
		}
		return client.Do(w.dressed(ctx, req, []byte(body), token))
	}
	method, body := http.MethodPost, first
	if cfg.Transport() == "sse" {
		method, body = http.MethodGet, ""
	}
	res, err := send(method, body, "")
	if err != nil {
		return mcp.Probe{Status: mcp.ProbeFailed, Error: h.cfg.Redact(err.Error())}
	}
	res.Header = h.redacted(res.Header)
	p := judged(res, token)
	res.Body.Close()
	if session := res.Header.Get("Mcp-Session-Id"); session != "" && res.StatusCode < 300 {
		if bye, err := send(http.MethodDelete, "", session); err == nil {
			bye.Body.Close()
		}
	}
	if p.Body != nil {
		clean := h.cfg.Redact(*p.Body)
		p.Body = &clean
	}
	return p
}

// redacted are the headers of a response without secrets, which servers repeat.
func (h *Host) redacted(headers http.Header) http.Header {
	out := http.Header{}
	for name, values := range headers {
		for _, v := range values {
			out.Add(name, h.cfg.Redact(v))
		}
	}
	return out
}

// judged says what an answer means.
func judged(res *http.Response, token string) mcp.Probe {
	p := mcp.Probe{StatusCode: res.StatusCode, Header: res.Header, Challenge: parseChallenge(res.Header.Values("WWW-Authenticate"))}
	if kind := res.Header.Get("Content-Type"); !strings.HasPrefix(kind, "text/event-stream") {
		raw, err := io.ReadAll(io.LimitReader(res.Body, maxProbe+1))
		if err != nil {
			p.Status, p.Error = mcp.ProbeFailed, "its answer broke off: "+err.Error()
			return p
		}
		if utf8.Valid(raw) && len(raw) <= maxProbe {
			text := string(raw)
			p.Body = &text
		}
	}
	switch scope := p.Challenge["error"] == "insufficient_scope"; {
	case res.StatusCode == http.StatusUnauthorized && token == "":
		p.Status, p.Reason = mcp.ProbeNeedsAuth, "initial"
	case res.StatusCode == http.StatusUnauthorized:
		p.Status, p.Reason = mcp.ProbeNeedsAuth, "refresh"
	case res.StatusCode == http.StatusForbidden && scope:
		p.Status, p.Reason = mcp.ProbeNeedsAuth, "upscope"
	case res.StatusCode >= 300:
		p.Status, p.Error = mcp.ProbeFailed, fmt.Sprintf("it answered %s", res.Status)
	case token != "":
		p.Status = mcp.ProbeAuthenticated
	default:
		p.Status = mcp.ProbeNoAuth
	}
	return p
}

// noRedirect takes a redirect as the answer.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
