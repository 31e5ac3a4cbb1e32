package transom

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/transom-run/transom/model/github"
)

// Login is a GitHub account that a host signed in.
type Login struct {
	Host  string // such as https://github.com
	Login string
	Token string
}

// logins are the accounts that hosts signed in, the newest last. They are held in
// memory only: a token is never written.
type logins struct {
	mu  sync.Mutex
	all []Login
}

// current is the newest account.
func (l *logins) current() (Login, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.all) == 0 {
		return Login{}, false
	}
	return l.all[len(l.all)-1], true
}

// find finds an account by its name.
func (l *logins) find(host, login string) (Login, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.IndexFunc(l.all, func(x Login) bool { return x.Host == host && x.Login == login })
	if i < 0 {
		return Login{}, false
	}
	return l.all[i], true
}

// account is what there is to ask GitHub about a token.
func (r *Runtime) account(token string) (*github.Account, error) {
	return github.New(github.Config{
		Token: token, Source: "the token that was given", GitHubURL: r.cfg.Getenv("COPILOT_DEBUG_GITHUB_API_URL"),
		APIURL: r.cfg.Getenv("COPILOT_API_URL"), HTTPClient: r.client,
	})
}

const gitHubHost = "https://github.com"

// SignIn makes a GitHub account the one of sessions that bring none, until it is
// signed out or the process ends. GitHub is asked whose token it is; a name that
// is not that user's is refused.
func (r *Runtime) SignIn(ctx context.Context, l Login) (Login, error) {
	const op = "account.login"
	r.keys.add(l.Token)
	if l.Host == "" {
		l.Host = gitHubHost
	}
	account, err := r.account(l.Token)
	if err != nil {
		return Login{}, wrap(op, "", err)
	}
	user, err := account.User(ctx)
	if err != nil {
		return Login{}, wrap(op, "", err)
	}
	if l.Login != "" && l.Login != user.Login {
		return Login{}, &Error{Op: op, Kind: KindInvalidParams, Msg: fmt.Sprintf("the token is %s's, not %s's", user.Login, l.Login)}
	}
	l.Login = user.Login
	r.logins.mu.Lock()
	defer r.logins.mu.Unlock()
	r.logins.all = slices.DeleteFunc(r.logins.all, func(x Login) bool { return x.Host == l.Host && x.Login == l.Login })
	r.logins.all = append(r.logins.all, l)
	return l, nil
}

// SignedIn lists the accounts that hosts signed in; the last is the one in use.
func (r *Runtime) SignedIn() []Login {
	r.logins.mu.Lock()
	defer r.logins.mu.Unlock()
	return slices.Clone(r.logins.all)
}

// SignOut forgets an account. It reports whether others are left; NotFound where
// it was not signed in.
func (r *Runtime) SignOut(host, login string) (more bool, err error) {
	r.logins.mu.Lock()
	defer r.logins.mu.Unlock()
	n := len(r.logins.all)
	r.logins.all = slices.DeleteFunc(r.logins.all, func(x Login) bool { return x.Host == host && x.Login == login })
	if len(r.logins.all) == n {
		return n > 0, &Error{Op: "account.logout", Kind: KindNotFound, Msg: "the account " + login + " of " + host + " is not signed in"}
	}
	return len(r.logins.all) > 0, nil
}

// launcher is the token of sessions that bring none, and where it came from.
func (r *Runtime) launcher() (token, source string) {
	if l, ok := r.logins.current(); ok {
		return l.Token, "the account " + l.Login + " that was signed in"
	}
	return r.cfg.GitHubToken, r.cfg.GitHubTokenSource
}

// Quota is what is left of one kind of use of an account.
type Quota struct {
	Entitlement      int64 // requests; -1 where unlimited
	Unlimited        bool
	Used             int64
	RemainingPercent float64
	Overage          float64
	OverageAllowed   bool
	Reset            string // when it begins anew, as GitHub says it; "" is unknown
}

// Quotas asks GitHub what is left of an account, by kind of use; "" is the account
// of sessions that bring none.
func (r *Runtime) Quotas(ctx context.Context, token string) (map[string]Quota, error) {
	const op = "account.getQuota"
	if token == "" {
		token, _ = r.launcher()
	}
	for _, name := range []string{"COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN"} {
		if token == "" && !r.noAutoLogin() {
			token = r.cfg.Getenv(name)
		}
	}
	if token == "" {
		return nil, &Error{Op: op, Kind: KindUnauthenticated, Msg: "Not authenticated: there is no GitHub account to ask about; give a gitHubToken"}
	}
	r.keys.add(token)
	account, err := r.account(token)
	if err != nil {
		return nil, wrap(op, "", err)
	}
	user, err := account.User(ctx)
	if err != nil {
		return nil, wrap(op, "", err)
	}
	var raw struct {
		Snapshots map[string]struct {
			Entitlement int64   `json:"entitlement"`
			Overage     float64 `json:"overage_count"`
			Allowed     bool    `json:"overage_permitted"`
			Remaining   float64 `json:"percent_remaining"`
			Reset       string  `json:"timestamp_utc"`
			Unlimited   bool    `json:"unlimited"`
		} `json:"quota_snapshots"`
	}
	if err := json.Unmarshal(user.Raw, &raw); err != nil {
		return nil, &Error{Op: op, Kind: KindUpstream, Err: err, Msg: "GitHub's answer about the account is not understood: " + err.Error()}
	}
	out := map[string]Quota{}
	for kind, s := range raw.Snapshots {
		q := Quota{Entitlement: s.Entitlement, Unlimited: s.Unlimited, RemainingPercent: s.Remaining, Overage: s.Overage, OverageAllowed: s.Allowed, Reset: s.Reset}
		if q.Unlimited {
			q.Entitlement = -1
		} else {
			q.Used = int64(float64(s.Entitlement)*(1-s.Remaining/100) + 0.5)
		}
		out[kind] = q
	}
	return out, nil
}

// Credentials are a GitHub identity for one session.
type Credentials struct {
	Type  string // "user", "token", "env" or "gh-cli"
	Host  string
	Login string
	Plan  string
	Token string // "" for a user: the account of that name that was signed in, if any
}

// SetCredentials gives the session another GitHub identity, for what it asks from
// now on. It reports whether it is known whose it is. A user that was not signed
// in here is taken at the host's word: requests go on with the session's token.
func (h *Session) SetCredentials(ctx context.Context, c Credentials) (resolved bool, err error) {
	const op = "session.gitHubAuth.setCredentials"
	if c.Host == "" {
		c.Host = gitHubHost
	}
	switch c.Type {
	case "user":
		if l, ok := h.rt.logins.find(c.Host, c.Login); ok {
			c.Token = l.Token
		}
		if c.Login == "" {
			return false, &Error{Op: op, Kind: KindInvalidParams, SessionID: h.id, Msg: "credentials of the type user need a login"}
		}
	case "token", "env", "gh-cli":
		if c.Token == "" {
			return false, &Error{Op: op, Kind: KindInvalidParams, SessionID: h.id, Msg: "credentials of the type " + c.Type + " need a token"}
		}
	default:
		return false, &Error{Op: op, Kind: KindUnsupported, SessionID: h.id, Msg: "credentials of the type " + c.Type + " are not served: use user, token, env or gh-cli"}
	}
	h.rt.keys.add(c.Token)
	id := &Account{Authenticated: true, Type: c.Type, Host: c.Host, Login: c.Login, Plan: c.Plan, Message: "Authenticated as " + c.Login}
	if c.Token != "" && c.Login == "" {
		account, err := h.rt.account(c.Token)
		if err != nil {
			return false, wrap(op, h.id, err)
		}
		if user, err := account.User(ctx); err == nil {
			id.Login, id.Plan, id.Message = user.Login, user.Plan, "Authenticated as "+user.Login
		} else {
			id.Authenticated, id.Message = false, "Not authenticated: "+err.Error()
		}
	}
	m := h.sess.models
	m.mu.Lock()
	defer m.mu.Unlock()
	m.identity = id
	if c.Token != "" {
		m.has.token = c.Token
		m.resolve()
	}
	return id.Authenticated, nil
}

// AddSecrets names values that are taken out of everything that is written or
// answered from here on, and kept from child processes. Very short ones are too
// common to be looked for.
func (r *Runtime) AddSecrets(values ...string) { r.keys.add(values...) }

// Redact takes what the runtime was given to keep out of a text: "******" stands in
// its place.
func (r *Runtime) Redact(text string) string { return r.keys.redact(text) }
