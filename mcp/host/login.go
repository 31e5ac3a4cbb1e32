package host

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/transom-run/transom/internal/vault"
	"github.com/transom-run/transom/mcp"
	"github.com/transom-run/transom/mcp/oauth"
)

// logins are what a host knows of logging in. The zero value knows nothing.
type logins struct {
	mu   sync.Mutex
	keep *oauth.Keeper        // nil: no remote server was connected to yet
	over bool                 // none is made any more
	said map[string]challenge // by server: how it asked for a token
}

// challenge is how a server asked for a token.
type challenge struct {
	url     string
	headers []string // WWW-Authenticate
	more    bool     // it has one, and wants more than that stands for
}

// ownable reports whether Transom may log in to a server by itself: its token does not
// come with its address, and its configuration does not forbid it.
func ownable(s mcp.Server) bool {
	return s.Remote() && s.Reach == nil && (s.Auth == nil || !s.Auth.Off)
}

// loginOf is a server's configuration as it is logged in with.
func (h *Host) loginOf(s mcp.Server) mcp.Server {
	if get := h.getenv(); get != nil && strings.Contains(s.OAuthClientSecret, "$") {
		s.OAuthClientSecret = resolve(s.OAuthClientSecret, get)
	}
	return s
}

// keeper has the tokens of logins.
func (h *Host) keeper() *oauth.Keeper {
	l := &h.logins
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.keep == nil {
		c := oauth.Config{Vault: h.cfg.Vault, Secret: h.cfg.Secret, Redact: h.cfg.Redact, ClientMetadata: h.cfg.ClientMetadata}
		if c.Vault == nil {
			c.Vault = vault.Memory()
		}
		if own := h.cfg.HTTPClient; own != nil {
			c.Transport = own.Transport
		}
		l.keep = oauth.New(c)
		if l.over {
			l.keep.Close()
		}
	}
	return l.keep
}

// endLogins gives up what is under way. mu is not held.
func (h *Host) endLogins() {
	l := &h.logins
	l.mu.Lock()
	l.over = true
	keep := l.keep
	l.mu.Unlock()
	if keep != nil {
		keep.Close()
	}
}

// giveUp gives up a server's login.
func (h *Host) giveUp(s mcp.Server) {
	l := &h.logins
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.keep != nil {
		l.keep.Cancel(s)
	}
}

// challenged notes how a server asked for a token.
func (h *Host) challenged(name string, c challenge) {
	l := &h.logins
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.said == nil {
		l.said = map[string]challenge{}
	}
	l.said[name] = c
}

// said is how a server asked for a token; its url is "" where it did not.
func (h *Host) said(name string, cfg mcp.Server) challenge {
	l := &h.logins
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.said[name]; c.url == cfg.URL {
		return c
	}
	return challenge{}
}

// challengeOf is how a server asked for a token, asked now where it did not yet.
func (h *Host) challengeOf(ctx context.Context, name string, cfg mcp.Server) (headers []string, wanted bool, err error) {
	if said := h.said(name, cfg); said.url != "" {
		return said.headers, true, nil
	}
	switch p := h.probe(ctx, cfg, ""); {
	case p.Status == mcp.ProbeNeedsAuth:
		return p.Header.Values("WWW-Authenticate"), true, nil
	case p.Status == mcp.ProbeFailed:
		return nil, false, fmt.Errorf("the MCP server %q cannot be asked how to log in: %s", name, p.Error)
	}
	return nil, false, nil
}

// remote finds a server that can be logged in to.
func (h *Host) remote(name string) (cfg mcp.Server, st mcp.State, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s, err := h.find(name)
	if err != nil {
		return cfg, st, err
	}
	if !s.cfg.Remote() {
		return cfg, st, fmt.Errorf("the MCP server %q is not a remote server: it needs no login", name)
	}
	return s.cfg, s.state, nil
}

// Login gets a token for a server.
func (h *Host) Login(ctx context.Context, name string, how mcp.Login) (page string, err error) {
	cfg, st, err := h.remote(name)
	switch {
	case err != nil:
		return "", err
	case st.Status == mcp.Disabled:
		return "", fmt.Errorf("the MCP server %q is disabled: enable it first", name)
	case !ownable(cfg):
		return "", fmt.Errorf("the MCP server %q is not logged in to from here: its token comes with the session's account, or its configuration has auth: false", name)
	case how.Anew:
		if err := h.forget(ctx, name, cfg); err != nil {
			return "", fmt.Errorf("what is kept of the MCP server %q cannot be removed: %w", name, err)
		}
	case h.said(name, cfg).more: // what there is will not do
	case st.Status == mcp.Connected:
		return "", nil
	case h.keptIsGood(ctx, h.loginOf(cfg)):
		return "", h.Run(ctx, name, nil)
	}
	headers, wanted, err := h.challengeOf(ctx, name, cfg)
	if err != nil {
		return "", err
	}
	if wanted {
		page, err = h.keeper().Login(ctx, h.loginOf(cfg), how, headers, func(err error) { h.loggedIn(name, cfg, err) })
		if err != nil {
			return "", fmt.Errorf("the login to the MCP server %q: %w", name, err)
		}
	}
	if page == "" {
		return "", h.Run(ctx, name, nil)
	}
	return page, nil
}

// keptIsGood reports whether a server takes the token that is kept, or that a refresh
// token gives.
func (h *Host) keptIsGood(ctx context.Context, cfg mcp.Server) bool {
	k := h.keeper()
	k.Changed(cfg) // another session may have logged in
	token := k.Token(ctx, cfg)
	if token == "" {
		return false
	}
	switch p := h.probe(ctx, cfg, token); p.Status {
	case mcp.ProbeAuthenticated:
		return true
	case mcp.ProbeNeedsAuth:
		if p.Reason != "refresh" {
			return false
		}
		renewed, err := k.Renew(ctx, cfg, token, p.Header.Values("WWW-Authenticate"))
		return err == nil && renewed != token && h.probe(ctx, cfg, renewed).Status == mcp.ProbeAuthenticated
	}
	return false
}

// forget forgets what a server was authorised with.
func (h *Host) forget(ctx context.Context, name string, cfg mcp.Server) error {
	h.mu.Lock()
	delete(h.tokens, name)
	h.mu.Unlock()
	return h.keeper().Forget(ctx, h.loginOf(cfg))
}

// loggedIn connects to a server whose login has come out well, and says why one has
// not.
func (h *Host) loggedIn(name string, cfg mcp.Server, err error) {
	if err == nil {
		h.challenged(name, challenge{})
	}
	h.mu.Lock()
	switch s := h.servers[name]; {
	case s == nil || h.closed || s.disabled || !s.cfg.Same(cfg) || s.state.Status == mcp.Stopped:
	case err == nil:
		delete(h.tokens, name) // the newer one counts
		s.stop()
		h.connect(s)
	case s.state.Status != mcp.Connected && s.state.Status != mcp.Pending:
		h.came(s, mcp.NeedsAuth, "The login failed: "+err.Error())
	}
	h.mu.Unlock()
	h.tell()
}

// Renewed connects anew to servers whose login was changed elsewhere.
func (h *Host) Renewed(ctx context.Context, name string, fresh bool) error {
	names := []string{name}
	if name == "" {
		names = h.waiting()
	}
	var all error
	for _, name := range names {
		cfg, st, err := h.remote(name)
		if err != nil || st.Status == mcp.Disabled || !ownable(cfg) {
			all = errors.Join(all, err)
			continue
		}
		k, own := h.keeper(), h.loginOf(cfg)
		k.Changed(own)
		if fresh {
			_, err := k.Renew(ctx, own, k.Token(ctx, own), nil)
			all = errors.Join(all, err)
		}
		all = errors.Join(all, h.Run(ctx, name, nil))
	}
	return all
}

// waiting names the servers that need a token.
func (h *Host) waiting() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []string
	for _, name := range slices.Sorted(maps.Keys(h.servers)) {
		if h.servers[name].state.Status == mcp.NeedsAuth {
			out = append(out, name)
		}
	}
	return out
}

// Probe asks a server whether it takes what there is.
func (h *Host) Probe(ctx context.Context, name string) mcp.Probe {
	cfg, _, err := h.remote(name)
	if err != nil {
		return mcp.Probe{Status: mcp.ProbeFailed, Error: err.Error()}
	}
	token := ""
	if cfg.Reach != nil {
		if cfg.URL, token, err = cfg.Reach(ctx); err != nil {
			return mcp.Probe{Status: mcp.ProbeFailed, Error: h.cfg.Redact(err.Error())}
		}
		if token != "" {
			token = "Bearer " + token
		}
	}
	if token == "" {
		token = h.token(name, cfg.URL)
	}
	if token == "" && ownable(cfg) {
		token = h.keeper().Token(ctx, h.loginOf(cfg))
	}
	return h.probe(ctx, cfg, token)
}
