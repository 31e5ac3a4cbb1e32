package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/transom-run/transom/mcp"
)

// The bounds of what is waited for.
const (
	// LoginTime is how long a user has to approve.
	LoginTime = 10 * time.Minute
	stepTime  = 30 * time.Second // for finding out where to log in, and for each request for a token
	endTime   = time.Second      // for a token that is being renewed when the keeper closes
)

// ErrNone says that nothing is kept of a server that a token could be made of.
var ErrNone = errors.New("there is no login")

func noSecret() error {
	return fmt.Errorf("%w: the grant client_credentials needs a client with a secret: give oauthClientId and oauthClientSecret in the server's configuration, or clientId and clientSecret with session.mcp.oauth.login", ErrNone)
}

// Config says what a [Keeper] works with.
type Config struct {
	// Vault keeps the tokens.
	Vault mcp.Vault
	// Transport makes the requests; nil is one of the keeper's own, which looks at the
	// addresses that it connects to.
	Transport http.RoundTripper
	// Secret is told of every secret of a server before it is used; nil: nobody is.
	Secret func(of string, values ...string)
	// Redact takes secrets out of texts that servers sent; nil leaves them.
	Redact func(string) string
	// ClientMetadata is as in [mcp.Context].
	ClientMetadata func() string
}

// Keeper has the tokens of one host of servers. Its methods may be called from any
// goroutine.
type Keeper struct {
	cfg    Config
	ctx    context.Context // of all that it has under way
	cancel context.CancelFunc

	mu       sync.Mutex
	known    map[string]*record // what the vault had, by key; nil: nothing
	lent     map[string]client  // those that hosts gave for a login, by key
	renewals map[string]*renewal
	logins   map[string]*login
	closed   bool
	running  sync.WaitGroup // renewals
	waiting  sync.WaitGroup // logins
}

// client is one that is registered by hand.
type client struct{ id, secret string }

// New makes a keeper. It reads nothing yet.
func New(cfg Config) *Keeper {
	k := &Keeper{cfg: cfg, known: map[string]*record{}, lent: map[string]client{}, renewals: map[string]*renewal{}, logins: map[string]*login{}}
	k.ctx, k.cancel = context.WithCancel(context.Background())
	if k.cfg.Secret == nil {
		k.cfg.Secret = func(string, ...string) {}
	}
	if k.cfg.Redact == nil {
		k.cfg.Redact = func(s string) string { return s }
	}
	return k
}

// Token is the Authorization header for a server's next request, renewed where its
// token is about to end; "" where there is none.
func (k *Keeper) Token(ctx context.Context, s mcp.Server) string {
	r := k.recall(s)
	now := time.Now()
	switch {
	case r == nil || r.fresh(now):
		return r.header()
	case r.renewable():
		if header, err := k.Renew(ctx, s, r.header(), nil); err == nil {
			return header
		}
	}
	if r.ended(now) {
		return ""
	}
	return r.header() // it is good to the end
}

// recall is what is known of a server; nil is nothing.
func (k *Keeper) recall(s mcp.Server) *record {
	key := keyOf(s)
	k.mu.Lock()
	r, known := k.known[key]
	k.mu.Unlock()
	if known {
		return r
	}
	raw, err := k.cfg.Vault.Load(key)
	if err != nil {
		return nil // a login says what is wrong with it
	}
	r = parse(raw, s)
	k.note(key, r)
	return r
}

// note remembers what the vault has. A record that was noted is not changed.
func (k *Keeper) note(key string, r *record) {
	if r != nil {
		k.cfg.Secret(key, r.secrets()...)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.known[key] = r
}

// renewal is one that is under way. Whoever needs the token meanwhile waits for it.
type renewal struct {
	done   chan struct{}
	header string
	err    error
}

// Renew gets a token in place of one that is about to end, or that the server
// refused by a response with these WWW-Authenticate headers; "" is none. It is
// [ErrNone] where a user has to log in. A renewal that was begun goes on when ctx
// ends: a refresh token that is good for one use may be spent already.
func (k *Keeper) Renew(ctx context.Context, s mcp.Server, refused string, challenge []string) (header string, err error) {
	return k.renewed(ctx, s, keyOf(s), refused, challenge)
}

func (k *Keeper) renewed(ctx context.Context, s mcp.Server, key, refused string, challenge []string) (header string, err error) {
	k.mu.Lock()
	w := k.renewals[key]
	if w == nil && !k.closed {
		w = &renewal{done: make(chan struct{})}
		k.renewals[key] = w
		k.running.Go(func() {
			w.header, w.err = k.renew(s, key, refused, challenge)
			k.mu.Lock()
			delete(k.renewals, key)
			k.mu.Unlock()
			close(w.done)
		})
	}
	k.mu.Unlock()
	if w == nil {
		return "", errors.New("the session is ending")
	}
	select {
	case <-w.done:
		return w.header, w.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

func (k *Keeper) renew(s mcp.Server, key, refused string, challenge []string) (header string, err error) {
	ctx, cancel := context.WithTimeout(k.ctx, 2*stepTime)
	defer cancel()
	if raw, err := k.cfg.Vault.Load(key); err == nil && len(raw) == 0 && !k.headless(s, key) {
		if grantOf(s) == mcp.ClientCredentials {
			return "", noSecret()
		}
		return "", ErrNone
	}
	var kept *record
	var failed error // after which the record is written all the same
	err = k.cfg.Vault.Change(ctx, key, func(old []byte) ([]byte, error) {
		r := parse(old, s)
		if r == nil {
			r = &record{}
		}
		kept = r
		switch {
		case r.header() != "" && r.header() != refused && !r.ended(time.Now()):
			return old, nil // somebody else has got one meanwhile
		case grantOf(s) == mcp.ClientCredentials || r.Grant == mcp.ClientCredentials:
			if failed = k.headlessly(ctx, s, key, r, challenge); failed != nil {
				return nil, failed
			}
		case r.Refresh == "":
			failed = ErrNone
			r.drop()
		default:
			if failed = k.refresh(ctx, s, key, r); failed != nil && !errors.Is(failed, ErrNone) {
				return nil, failed // it may go well the next time
			}
		}
		k.cfg.Secret(key, r.secrets()...)
		if r.Server == "" {
			return nil, nil
		}
		return json.Marshal(r)
	})
	if err == nil {
		k.note(key, kept)
		err = failed
	}
	if err != nil {
		return "", err
	}
	return kept.header(), nil
}

// refresh gets a token for a refresh token. A refused one is forgotten: ErrNone.
func (k *Keeper) refresh(ctx context.Context, s mcp.Server, key string, r *record) error {
	t, err := k.request(ctx, s, key, r, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {r.Refresh}})
	var said *oauth2.RetrieveError
	switch {
	case err == nil:
		r.take(t, time.Now())
		return nil
	case errors.As(err, &said) && said.ErrorCode != "" && said.ErrorCode != "temporarily_unavailable" && said.ErrorCode != "server_error":
		r.drop()
		return fmt.Errorf("%w any more: the authorization server refused to refresh the token (%s)", ErrNone, word(said.ErrorCode))
	}
	return fmt.Errorf("the token could not be refreshed at %s: %w", place(r.TokenURL), k.plain(err))
}

// request asks the token endpoint of a record.
func (k *Keeper) request(ctx context.Context, s mcp.Server, key string, r *record, params url.Values) (*oauth2.Token, error) {
	ctx, cancel := context.WithTimeout(ctx, stepTime)
	defer cancel()
	requests, release := k.requests(ctx, s.URL)
	defer release()
	params.Set("resource", r.Resource)
	secret := r.ClientSecret
	if own := k.client(s, key); secret == "" && own.id == r.ClientID {
		secret = own.secret
	}
	c := clientcredentials.Config{
		ClientID: r.ClientID, ClientSecret: secret, TokenURL: r.TokenURL, EndpointParams: params, AuthStyle: oauth2.AuthStyle(r.AuthStyle),
	}
	return c.Token(context.WithValue(ctx, oauth2.HTTPClient, requests))
}

// client is the one of a server's that is registered by hand; its fields are "" where
// they are not known.
func (k *Keeper) client(s mcp.Server, key string) client {
	k.mu.Lock()
	defer k.mu.Unlock()
	if lent := k.lent[key]; lent.id != "" {
		return lent
	}
	return client{s.OAuthClientID, s.OAuthClientSecret}
}

// headless reports whether a server's token can be got by its client's own secret.
func (k *Keeper) headless(s mcp.Server, key string) bool {
	c := k.client(s, key)
	return grantOf(s) == mcp.ClientCredentials && c.id != "" && c.secret != ""
}

// headlessly gets a token by the client's secret alone.
func (k *Keeper) headlessly(ctx context.Context, s mcp.Server, key string, r *record, challenge []string) error {
	own := k.client(s, key)
	if own.id == "" || own.secret == "" {
		return noSecret()
	}
	k.cfg.Secret(key+" client", own.secret)
	if err := k.discover(ctx, s, r, challenge); err != nil {
		return err
	}
	r.Server, r.Grant, r.ClientID, r.ClientSecret, r.Refresh = canonical(s.URL), mcp.ClientCredentials, own.id, "", ""
	params := url.Values{"grant_type": {"client_credentials"}}
	if len(r.Scopes) > 0 {
		params.Set("scope", joined(r.Scopes))
	}
	t, err := k.request(ctx, s, key, r, params)
	if err != nil {
		return fmt.Errorf("%w: the authorization server gave the client %q no token at %s: %w. See whether its id and secret are right, and whether it may use client_credentials", ErrNone, r.ClientID, place(r.TokenURL), k.plain(err))
	}
	t.RefreshToken = "" // there is no use for one
	r.take(t, time.Now())
	return nil
}

// Changed forgets what is known of a server, and reads it anew when it is needed.
func (k *Keeper) Changed(s mcp.Server) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.known, keyOf(s))
}

// Forget removes what is kept of a server.
func (k *Keeper) Forget(ctx context.Context, s mcp.Server) error {
	key := keyOf(s)
	err := k.cfg.Vault.Change(ctx, key, func([]byte) ([]byte, error) { return nil, nil })
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.known, key)
	delete(k.lent, key)
	return err
}

// Close gives up the logins that are under way, and waits a little for tokens that
// are being renewed.
func (k *Keeper) Close() {
	k.mu.Lock()
	k.closed = true
	for _, l := range k.logins {
		l.cancel(errors.New("the session has ended"))
	}
	k.mu.Unlock()
	over := time.AfterFunc(endTime, k.cancel)
	defer over.Stop()
	k.waiting.Wait()
	k.running.Wait()
	k.cancel()
}
