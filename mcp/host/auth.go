package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/transom-run/transom/mcp"
)

// maxTokens bounds how many new tokens one request is tried with.
const maxTokens = 3

// maxMetadata bounds a metadata document.
const maxMetadata = 64 << 10

// authorization holds the token of a connection.
type authorization struct {
	l *link

	asking sync.Mutex // held while a token is asked for

	mu       sync.Mutex
	current  string // value of the header; "" is none
	declined bool   // nobody had a token to begin with
	failure  error  // why the newest request went without
}

// token is the Authorization header of the next request; "" is none.
func (a *authorization) token() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.current
}

// denied says why access was refused; nil where it was not.
func (a *authorization) denied() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.failure
}

// accepted notes that the server took a request.
func (a *authorization) accepted() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.failure = nil
}

// attempt is what a request was tried with.
type attempt struct {
	token string
	asked int
}

// refused asks for another token where one may help, and says whether the request is
// to be made again.
func (a *authorization) refused(ctx context.Context, res *http.Response, body []byte, at *attempt) bool {
	challenge := parseChallenge(res.Header.Values("WWW-Authenticate"))
	reason := "initial"
	switch {
	case res.StatusCode == http.StatusForbidden && challenge["error"] != "insufficient_scope":
		return false
	case res.StatusCode == http.StatusForbidden:
		reason = "upscope"
	case at.token != "":
		reason = "refresh"
	}
	a.asking.Lock()
	defer a.asking.Unlock()
	if now := a.token(); now != at.token { // another request has got one meanwhile
		return true
	}
	a.mu.Lock()
	declined := a.declined
	a.mu.Unlock()
	if at.asked++; at.asked > maxTokens || declined {
		return false
	}
	r := mcp.AuthRequest{
		Server: a.l.name, URL: a.l.cfg.URL, Reason: reason, Challenge: challenge, Metadata: a.metadata(ctx, challenge["resource_metadata"]),
		StatusCode: res.StatusCode, Header: res.Header, Body: strings.ToValidUTF8(string(body), "\ufffd"), Config: a.l.cfg,
	}
	t, err := a.ask(ctx, r)
	var none *mcp.ErrNoToken
	if reason == "refresh" && errors.As(err, &none) {
		r.Reason = "reauth"
		t, err = a.ask(ctx, r)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil {
		a.declined = reason == "initial"
		a.failure = &mcp.ErrNoToken{Msg: fmt.Sprintf("the server answered %s and no token was given: %v", res.Status, err)}
		return false
	}
	kind := t.Type
	if kind == "" || strings.EqualFold(kind, "bearer") {
		kind = "Bearer"
	}
	a.current, a.failure = kind+" "+t.Value, nil
	a.l.host.keepToken(a.l.name, a.l.cfg.URL, a.current)
	return true
}

// ask asks whoever has tokens. The time that they take does not count as the
// server's.
func (a *authorization) ask(ctx context.Context, r mcp.AuthRequest) (mcp.Token, error) {
	if a.l.host.cfg.Authorize == nil {
		return mcp.Token{}, &mcp.ErrNoToken{Msg: "nobody is there to give one"}
	}
	resume := a.l.clock.pause()
	defer resume()
	t, err := a.l.host.cfg.Authorize(ctx, r)
	if err == nil && t.Value == "" {
		err = &mcp.ErrNoToken{Msg: "the token that was given is empty"}
	}
	return t, err
}

// metadata fetches what the server says of its resource, as it is; "" where that
// cannot be had.
func (a *authorization) metadata(ctx context.Context, from string) string {
	u, err := url.Parse(from)
	if from == "" || err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return ""
	}
	res, err := a.l.wire.base.RoundTrip(req)
	if err != nil {
		return ""
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(res.Body, maxMetadata))
	if err != nil || res.StatusCode != http.StatusOK {
		return ""
	}
	return strings.ToValidUTF8(string(raw), "\ufffd")
}

// parseChallenge reads the parameters of a WWW-Authenticate header: of the Bearer
// scheme, else of what there is.
func parseChallenge(headers []string) map[string]string {
	out := map[string]string{}
	for _, h := range headers {
		scheme, rest, _ := strings.Cut(strings.TrimSpace(h), " ")
		if !strings.EqualFold(scheme, "Bearer") {
			continue
		}
		for rest = strings.TrimLeft(rest, " ,"); rest != ""; rest = strings.TrimLeft(rest, " ,") {
			name, value, ok := strings.Cut(rest, "=")
			if !ok {
				break
			}
			name = strings.ToLower(strings.TrimSpace(name))
			if strings.ContainsAny(name, " ,") {
				break // another scheme begins
			}
			if value, rest = quoted(value); out[name] == "" {
				out[name] = value
			}
		}
	}
	return out
}

// quoted takes a value from the beginning of s: a quoted string, or a token.
func quoted(s string) (value, rest string) {
	s = strings.TrimLeft(s, " ")
	if !strings.HasPrefix(s, `"`) {
		i := strings.IndexAny(s, " ,")
		if i < 0 {
			return s, ""
		}
		return s[:i], s[i:]
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '"':
			return b.String(), s[i+1:]
		case '\\':
			if i+1 < len(s) {
				i++
			}
		}
		b.WriteByte(s[i])
	}
	return b.String(), ""
}
