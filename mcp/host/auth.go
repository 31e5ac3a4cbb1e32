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
	"github.com/transom-run/transom/mcp/oauth"
)

// maxTokens bounds how many new tokens one request is tried with.
const maxTokens = 3

// maxMetadata bounds a metadata document.
const maxMetadata = 64 << 10

// authorization holds the token of a connection: one that a host gave, or one of a
// login.
type authorization struct {
	l *link

	asking sync.Mutex // held while a token is asked for

	mu       sync.Mutex
	current  string // value of the header that a host gave; "" is none
	declined bool   // nobody had a token to begin with
	failure  error  // why the newest request went without
	lacking  error  // why the newest request that wanted more than the token stands for was refused
}

// token is the Authorization header of the next request; "" is none. own says that it
// is of a login.
func (a *authorization) token(ctx context.Context) (header string, own bool) {
	a.mu.Lock()
	header = a.current
	a.mu.Unlock()
	if header != "" || !ownable(a.l.cfg) {
		return header, false
	}
	header = a.l.host.keeper().Token(ctx, a.l.host.loginOf(a.l.cfg))
	return header, header != ""
}

// denied says why access was refused; nil where it was not.
func (a *authorization) denied() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.failure
}

// forbidden is what to say of a request that was answered 403: other requests may have
// been taken since.
func (a *authorization) forbidden(err error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.lacking != nil && strings.Contains(err.Error(), http.StatusText(http.StatusForbidden)) {
		return a.lacking
	}
	return err
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
	own   bool // it is of a login
	asked int
}

// refused asks for another token where one may help, and says whether the request is
// to be made again.
func (a *authorization) refused(ctx context.Context, res *http.Response, body []byte, at *attempt) bool {
	challenge := parseChallenge(a.l.host.redacted(res.Header).Values("WWW-Authenticate"))
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
	if now, _ := a.token(ctx); now != at.token && now != "" { // another request has got one meanwhile
		return at.again()
	}
	renewed, failed := a.renew(ctx, res, at)
	if renewed {
		return at.again()
	}
	a.mu.Lock()
	declined := a.declined
	a.mu.Unlock()
	if declined {
		return false // and why has been noted
	}
	if !at.again() {
		a.fail(res, failed, errors.New("it refused all that it was shown"))
		return false
	}
	clean := a.l.host.cfg.Redact // a server may repeat the token that it refuses
	r := mcp.AuthRequest{
		Server: a.l.name, URL: a.l.cfg.URL, Reason: reason, Challenge: challenge, Metadata: clean(a.metadata(ctx, challenge["resource_metadata"])),
		StatusCode: res.StatusCode, Header: a.l.host.redacted(res.Header), Body: clean(strings.ToValidUTF8(string(body), "\ufffd")), Config: a.l.cfg,
	}
	t, err := a.ask(ctx, r)
	var none *mcp.ErrNoToken
	if reason == "refresh" && errors.As(err, &none) {
		r.Reason = "reauth"
		t, err = a.ask(ctx, r)
	}
	if err != nil {
		a.fail(res, failed, err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil {
		a.declined = reason == "initial"
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

// again counts one more attempt, and reports whether it may be made.
func (at *attempt) again() bool {
	at.asked++
	return at.asked <= maxTokens
}

// fail notes why requests go without a token: what a login came to, and what hosts
// said.
func (a *authorization) fail(res *http.Response, own, asked error) {
	why := asked.Error()
	if own != nil && own.Error() != oauth.ErrNone.Error() {
		why = own.Error() + ", and " + why
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.failure = &mcp.ErrNoToken{Msg: fmt.Sprintf("the server answered %s and no token was given: %s. To log in, call session.mcp.oauth.login and open the page that it names", res.Status, why)}
	if res.StatusCode == http.StatusForbidden {
		a.lacking = a.failure
	}
}

// renew gets another token of a login, where one is kept or the client has a secret.
// A token of a host's is the host's to renew.
func (a *authorization) renew(ctx context.Context, res *http.Response, at *attempt) (renewed bool, err error) {
	if !ownable(a.l.cfg) || at.token != "" && !at.own {
		return false, nil
	}
	headers := res.Header.Values("WWW-Authenticate")
	more := res.StatusCode == http.StatusForbidden
	a.l.host.challenged(a.l.name, challenge{a.l.cfg.URL, headers, more && at.own})
	if more && a.l.cfg.OAuthGrantType != mcp.ClientCredentials {
		return false, errors.New("it wants more than its user approved")
	}
	resume := a.l.clock.pause()
	defer resume()
	header, err := a.l.host.keeper().Renew(ctx, a.l.host.loginOf(a.l.cfg), at.token, headers)
	if err == nil && header == at.token {
		err = errors.New("the token that it was given in its place is the same")
	}
	return err == nil, err
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

// parseChallenge reads the parameters of the Bearer scheme in WWW-Authenticate headers,
// as far as they can be read; others say nothing.
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
