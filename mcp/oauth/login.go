package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"github.com/transom-run/transom/mcp"
)

// login is one that is under way. It belongs to the goroutine that runs it.
type login struct {
	k         *Keeper
	s         mcp.Server
	how       mcp.Login
	key       string
	challenge []string
	cancel    context.CancelCauseFunc
	done      chan struct{} // closed at the end
	err       error         // set before done is closed
	ready     chan struct{} // closed when url is set
	url       string        // of the page where the user approves; "" is not yet
	status    int           // of the newest answer
	old       *record       // what there was: it may have a client
}

// defaultName is what users read of a client that nobody named.
const defaultName = "Transom"

// Login gets the first token of a server that answered with these WWW-Authenticate
// headers. page is what the user has to open; finished is called once, in a goroutine
// of the login, when it has come out well or not. A page of "" is nothing to open:
// there is a token, and finished is not called. One login a server is under way: a
// second one gets the page of the first, unless it begins anew.
func (k *Keeper) Login(ctx context.Context, s mcp.Server, how mcp.Login, challenge []string, finished func(error)) (page string, err error) {
	key := keyOf(s) // as later requests look for it, whatever this login chooses
	s, err = chosen(s, how)
	if err != nil {
		return "", err
	}
	if err := safe(s.URL); err != nil {
		return "", err
	}
	if s.OAuthClientSecret != "" {
		k.cfg.Secret(key+" client", s.OAuthClientSecret)
	}
	if how.ClientSecret != "" {
		k.mu.Lock()
		k.lent[key] = client{s.OAuthClientID, how.ClientSecret}
		k.mu.Unlock()
	}
	if grantOf(s) == mcp.ClientCredentials {
		_, err := k.renewed(ctx, s, key, "", challenge)
		return "", err
	}
	l, err := k.begin(s, how, key, challenge, finished)
	if err != nil {
		return "", err
	}
	select {
	case <-l.ready:
		return l.url, nil
	case <-l.done:
		if l.url != "" {
			return l.url, nil // how it came out is told to finished
		}
		return "", l.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// chosen is a configuration with what a login has chosen otherwise.
func chosen(s mcp.Server, how mcp.Login) (mcp.Server, error) {
	if how.ClientID != "" {
		s.OAuthClientID, s.OAuthClientSecret = how.ClientID, ""
	}
	if how.ClientSecret != "" {
		s.OAuthClientSecret = how.ClientSecret
	}
	if how.PublicClient != nil {
		s.OAuthPublicClient = how.PublicClient
	}
	switch how.GrantType {
	case "":
	case mcp.AuthorizationCode, mcp.ClientCredentials:
		s.OAuthGrantType = how.GrantType
	default:
		return s, fmt.Errorf("the grant %q is none of %s and %s", how.GrantType, mcp.AuthorizationCode, mcp.ClientCredentials)
	}
	if p := s.OAuthPublicClient; p != nil && !*p && s.OAuthClientID != "" && s.OAuthClientSecret == "" {
		return s, errors.New("its client is not public, and its secret is not known: give oauthClientSecret in the server's configuration, or clientSecret with session.mcp.oauth.login")
	}
	return s, nil
}

// begin begins a login, or joins the one that is under way.
func (k *Keeper) begin(s mcp.Server, how mcp.Login, key string, challenge []string, finished func(error)) (*login, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return nil, errors.New("the session is ending")
	}
	if before := k.logins[key]; before != nil {
		if !how.Anew {
			return before, nil
		}
		before.cancel(errors.New("another login was begun"))
	}
	ctx, cancel := context.WithCancelCause(k.ctx)
	l := &login{k: k, s: s, how: how, key: key, challenge: challenge, cancel: cancel, done: make(chan struct{}), ready: make(chan struct{})}
	k.logins[key] = l
	k.waiting.Go(func() {
		defer cancel(nil)
		l.err = l.run(ctx)
		k.mu.Lock()
		if k.logins[key] == l {
			delete(k.logins, key)
		}
		k.mu.Unlock()
		close(l.done)
		if l.url != "" {
			finished(l.err)
		}
	})
	return l, nil
}

// Cancel gives up a server's login, where one is under way.
func (k *Keeper) Cancel(s mcp.Server) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, l := range k.logins {
		if l.s.URL == s.URL {
			l.cancel(errors.New("the server was stopped, or its configuration changed"))
		}
	}
}

// run is the whole of a login: it returns when the tokens are in the vault.
func (l *login) run(ctx context.Context) (err error) {
	if raw, err := l.k.cfg.Vault.Load(l.key); err == nil {
		l.old = parse(raw, l.s)
	}
	back, err := l.listen(ctx)
	if err != nil {
		return err
	}
	defer func() { back.close(err) }()
	client, release := l.k.requests(ctx, l.s.URL)
	defer release()
	client.Transport = &watched{client.Transport, &l.status}
	var got *record
	h, err := auth.NewAuthorizationCodeHandler(l.config(client, back, &got))
	if err != nil {
		return fmt.Errorf("its OAuth configuration is of no use: %w", l.k.plain(err))
	}
	if err := l.authorize(ctx, h); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("the login was given up: %w", context.Cause(ctx))
		}
		l.forgetClient()
		return err
	}
	if got == nil {
		return errors.New("the login came to no token: log in anew")
	}
	return l.keep(ctx, got)
}

// authorize runs the SDK's flow. Until the page is known it is bounded by the time of
// a step, then by that of the user.
func (l *login) authorize(ctx context.Context, h *auth.AuthorizationCodeHandler) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	late := errors.New("the metadata and the registration took too long")
	step := time.AfterFunc(2*stepTime, func() { cancel(late) })
	defer step.Stop()
	go func() {
		select {
		case <-l.ready:
			step.Stop()
		case <-ctx.Done():
		}
	}()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.s.URL, nil)
	if err != nil {
		return errors.New("its address cannot be read")
	}
	res := &http.Response{StatusCode: http.StatusUnauthorized, Header: http.Header{"Www-Authenticate": l.challenge}, Body: http.NoBody}
	err = h.Authorize(ctx, req, res)
	var refused *refusal
	switch {
	case err == nil:
		return nil
	case errors.Is(context.Cause(ctx), late):
		return fmt.Errorf("%w: see whether the server and its authorization server can be reached", late)
	case errors.As(err, &refused):
		return refused
	}
	return l.k.step(err, l.status)
}

// config is what the SDK's flow works with.
func (l *login) config(client *http.Client, back *callback, got **record) *auth.AuthorizationCodeHandlerConfig {
	c := &auth.AuthorizationCodeHandlerConfig{
		RedirectURL: back.url, Client: client, RequestRefreshToken: true, AcceptUnadvertisedIss: true,
		AuthorizationCodeFetcher: func(ctx context.Context, a *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
			return l.fetch(ctx, a.URL, back)
		},
	}
	if old := l.old; old != nil && old.Access != "" && !l.how.Anew { // a server that wants more wants what it had, too
		c.ScopeFilter = func(wanted []string) []string { return union(old.Scopes, wanted) }
	}
	if m := l.k.cfg.ClientMetadata; m != nil && m() != "" && l.s.OAuthClientID == "" {
		c.ClientIDMetadataDocumentConfig = &auth.ClientIDMetadataDocumentConfig{URL: m()}
	}
	switch old := l.old; {
	case l.s.OAuthClientID != "":
		c.PreregisteredClient = &oauthex.ClientCredentials{ClientID: l.s.OAuthClientID}
		if l.s.OAuthClientSecret != "" {
			c.PreregisteredClient.ClientSecretAuth = &oauthex.ClientSecretAuth{ClientSecret: l.s.OAuthClientSecret}
		}
	case old != nil && old.Redirect == back.url && !l.how.Anew:
		c.PreregisteredClient = &oauthex.ClientCredentials{ClientID: old.ClientID}
		if old.ClientSecret != "" {
			c.PreregisteredClient.ClientSecretAuth = &oauthex.ClientSecretAuth{ClientSecret: old.ClientSecret}
		}
	default:
		name := l.how.ClientName
		if name == "" {
			name = defaultName
		}
		c.DynamicClientRegistrationConfig = &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			ClientName: name, RedirectURIs: []string{back.url}, TokenEndpointAuthMethod: "none", SoftwareID: "transom",
			GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"},
		}}
	}
	c.NewTokenSource = func(_ context.Context, o *oauth2.Config, t *oauth2.Token) (oauth2.TokenSource, error) {
		r := &record{
			Server: canonical(l.s.URL), ClientID: o.ClientID, Grant: mcp.AuthorizationCode, TokenURL: o.Endpoint.TokenURL, AuthStyle: int(o.Endpoint.AuthStyle),
			Scopes: o.Scopes,
		}
		if l.s.OAuthClientID == "" {
			r.ClientSecret, r.Redirect = o.ClientSecret, o.RedirectURL
		}
		if u, err := url.Parse(l.url); err == nil {
			r.Resource = u.Query().Get("resource")
		}
		r.take(t, time.Now())
		*got = r
		return oauth2.StaticTokenSource(t), nil
	}
	return c
}

// fetch shows the page and waits for what the browser brings.
func (l *login) fetch(ctx context.Context, page string, back *callback) (*auth.AuthorizationResult, error) {
	u, err := url.Parse(page)
	if err != nil || u.Host == "" {
		return nil, errors.New("the authorization server names no page to open")
	}
	for name, values := range u.Query() {
		if len(values) > 1 { // the SDK adds its own to those that there are
			return nil, &refusal{fmt.Sprintf("the authorization server's page %s brings a %s of its own, and a login's would count for nothing. Tell who runs the server, or have the host give a token", place(page), short(name))}
		}
	}
	back.expect(u.Query().Get("state"))
	l.url = page
	close(l.ready)
	t := time.NewTimer(LoginTime)
	defer t.Stop()
	select {
	case a := <-back.answer:
		if a.refused != nil {
			return nil, a.refused
		}
		return a.result, nil
	case <-t.C:
		return nil, &refusal{fmt.Sprintf("nobody approved within %s. Log in anew", LoginTime)}
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// keep puts what the login came to into the vault.
func (l *login) keep(ctx context.Context, got *record) error {
	l.k.cfg.Secret(l.key, got.secrets()...)
	raw, err := json.Marshal(got)
	if err == nil {
		err = l.k.cfg.Vault.Change(ctx, l.key, func([]byte) ([]byte, error) { return raw, nil })
	}
	if err != nil {
		return fmt.Errorf("the tokens could not be kept: %w", err)
	}
	l.k.note(l.key, got)
	return nil
}

// forgetClient drops a client that registered itself earlier: the authorization
// server may know it no more.
func (l *login) forgetClient() {
	if l.old == nil || l.old.Redirect == "" {
		return
	}
	_ = l.k.cfg.Vault.Change(l.k.ctx, l.key, func(raw []byte) ([]byte, error) {
		r := parse(raw, l.s)
		if r == nil || r.Access == "" && r.Refresh == "" {
			return nil, nil
		}
		r.Redirect = ""
		return json.Marshal(r)
	})
}

// listen opens the address to which the browser will come back: the configured port,
// else the one that the client is registered with, else any.
func (l *login) listen(ctx context.Context) (*callback, error) {
	port := 0
	if l.s.Auth != nil {
		port = l.s.Auth.RedirectPort
	}
	var config net.ListenConfig
	if port == 0 && l.old != nil && !l.how.Anew {
		if u, err := url.Parse(l.old.Redirect); err == nil && u.Port() != "" {
			if at, err := config.Listen(ctx, "tcp", "127.0.0.1:"+u.Port()); err == nil {
				return l.serve(at), nil
			}
		}
	}
	at, err := config.Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return nil, fmt.Errorf("the port %d of 127.0.0.1, where the browser is to come back, cannot be listened at: %w. Free it, or choose another auth.redirectPort", port, err)
	}
	return l.serve(at), nil
}

func (l *login) serve(at net.Listener) *callback {
	return newCallback(at, strings.TrimSpace(l.how.Message))
}

// watched notes the status of the newest answer.
type watched struct {
	http.RoundTripper
	status *int
}

func (w *watched) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := w.RoundTripper.RoundTrip(r)
	*w.status = 0
	if res != nil {
		*w.status = res.StatusCode
	}
	return res, err
}
