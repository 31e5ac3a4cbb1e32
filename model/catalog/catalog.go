// Package catalog decides which provider and which model a session talks to.
//
//	session's provider ─▶ COPILOT_PROVIDER_* ─▶ session's GitHub token ─▶ the launcher's ─▶
//	COPILOT_GITHUB_TOKEN ─▶ GH_TOKEN ─▶ GITHUB_TOKEN ─▶ an error that says what to set
//
// The first that is there wins; the models of a [Registry] come beside it, and a
// request goes to the one that it names. Deciding makes no connection: what must be asked
// over the network (the default model of an account, say) is asked when the
// first request needs it. docs/models.md is the page for users.
//
// # Ownership
//
// A [Choice] and a [Registry] are immutable. [Accounts] may be shared by any number of sessions,
// so that those of one token ask GitHub once.
//
// # Errors
//
// Errors are *model.Error of kind Setup, worded for people.
package catalog

import (
	"cmp"
	"context"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/model/github"
)

// DefaultContextWindow is the window of a model that nobody has described, in
// tokens.
const DefaultContextWindow = 128_000

// CodeUnsupported is the Code of the error for a provider that exists elsewhere
// and is not served here.
const CodeUnsupported = "unsupported"

// Config is what a session says and where it runs.
type Config struct {
	// Provider is the session's own; nil: none.
	Provider *Provider
	// Registry holds more providers and their models, beside whatever the rest
	// decides; nil: none.
	Registry *Registry
	// Model is the session's model; empty: the default. One of the registry is
	// named provider/id.
	Model string
	// HTTPClient makes the requests of all providers that have none of their own;
	// nil: one for the whole process.
	HTTPClient *http.Client
	// SessionToken is the session's own GitHub token.
	SessionToken string
	// LauncherToken is the GitHub token that the launcher passed on;
	// LauncherSource names it in errors.
	LauncherToken, LauncherSource string
	// Getenv looks up the environment; nil: os.Getenv.
	Getenv func(string) string
	// NoAutoLogin leaves the GitHub tokens of the environment alone.
	NoAutoLogin bool
	// Accounts shares accounts between sessions; nil: a new one is made.
	Accounts *Accounts
}

// Source says where a choice came from.
type Source string

// The sources.
const (
	FromSession     Source = "provider"    // the session's own provider
	FromEnvironment Source = "environment" // COPILOT_PROVIDER_BASE_URL
	FromGitHub      Source = "github"      // a GitHub token
)

// Choice is the provider and model of a session.
type Choice struct {
	// Provider answers the session's requests. A request without a model goes to
	// the default one.
	Provider model.Provider
	// Model describes the model as far as that is known without asking. Its ID is
	// empty where the default is not known yet, its ContextWindow never 0.
	Model  model.Info
	Source Source
	// Account is the account of a GitHub token, where that would answer requests
	// without a registry; nil otherwise.
	Account *github.Account
	// Settings are those of a provider of the host's own that answers requests
	// without a registry; nil for an account.
	Settings *Provider
	// Warnings name settings that are known and have no effect, for people.
	Warnings []string
}

// Resolve decides. It makes no connection.
func Resolve(cfg Config) (*Choice, error) {
	if cfg.Getenv == nil {
		cfg.Getenv = os.Getenv
	}
	base, err := resolveBase(&cfg)
	if cfg.Registry == nil || cfg.Provider != nil {
		return base, err
	}
	return cfg.Registry.over(base, err, cfg.Model)
}

// resolveBase decides without the registry.
func resolveBase(cfg *Config) (*Choice, error) {
	if cfg.Provider != nil {
		return own(cfg, cfg.Provider, FromSession)
	}
	if base := cfg.Getenv("COPILOT_PROVIDER_BASE_URL"); base != "" {
		p, err := fromEnvironment(base, cfg.Getenv)
		if err != nil {
			return nil, err
		}
		return own(cfg, p, FromEnvironment)
	}
	token, source := findToken(cfg)
	if token == "" {
		return nil, nothing(cfg)
	}
	accounts := cfg.Accounts
	if accounts == nil {
		accounts = new(Accounts)
	}
	account, err := accounts.open(accountKey{
		token: token, source: source,
		gitHubURL: cfg.Getenv("COPILOT_DEBUG_GITHUB_API_URL"),
		apiURL:    cfg.Getenv("COPILOT_API_URL"),
		noSockets: enabled(cfg.Getenv("COPILOT_CLI_DISABLE_WEBSOCKET_RESPONSES")),
		client:    cfg.HTTPClient,
	})
	if err != nil {
		return nil, err
	}
	c := &Choice{Provider: account, Account: account, Source: FromGitHub}
	c.Model.ID = cmp.Or(cfg.Model, cfg.Getenv("COPILOT_MODEL"))
	c.Model.Name, c.Model.ContextWindow = c.Model.ID, DefaultContextWindow
	return c, nil
}

// findToken returns the GitHub token that counts, and its name.
func findToken(cfg *Config) (token, source string) {
	if cfg.SessionToken != "" {
		return cfg.SessionToken, "gitHubToken of the session"
	}
	if cfg.LauncherToken != "" {
		return cfg.LauncherToken, cmp.Or(cfg.LauncherSource, "the token that --auth-token-env names")
	}
	if cfg.NoAutoLogin {
		return "", ""
	}
	for _, name := range []string{"COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN"} {
		if v := strings.TrimSpace(cfg.Getenv(name)); v != "" {
			return v, name
		}
	}
	return "", ""
}

func nothing(cfg *Config) *model.Error {
	tokens := "COPILOT_GITHUB_TOKEN, GH_TOKEN or GITHUB_TOKEN"
	if cfg.NoAutoLogin {
		tokens = "the variable that --auth-token-env names (the runtime was started with --no-auto-login, so that COPILOT_GITHUB_TOKEN, GH_TOKEN and GITHUB_TOKEN are not read)"
	}
	return &model.Error{Kind: model.Setup, Msg: "No model is configured. Do one of these: " +
		"(1) set COPILOT_PROVIDER_BASE_URL to an OpenAI-compatible server, such as http://localhost:11434/v1, and COPILOT_MODEL to one of its models (and COPILOT_PROVIDER_API_KEY where it wants a key, and COPILOT_PROVIDER_TYPE where it is azure or anthropic); " +
		"(2) pass provider and model when the session is created; " +
		"(3) set a GitHub token in " + tokens + "."}
}

// Describe returns what is known about the model, asking the provider where it
// lists its models. Without an answer it returns c.Model and the error.
func (c *Choice) Describe(ctx context.Context) (model.Info, error) {
	l, ok := c.Provider.(model.Lister)
	if !ok || c.Source == FromRegistry {
		return c.Model, nil
	}
	list, err := l.Models(ctx)
	if err != nil {
		return c.Model, err
	}
	for i, info := range list {
		if info.ID == c.Model.ID || c.Model.ID == "" && i == 0 && (c.Source == FromGitHub || len(list) == 1) {
			if info.ContextWindow == 0 {
				info.ContextWindow = c.Model.ContextWindow
			}
			if info.MaxOutput == 0 {
				info.MaxOutput = c.Model.MaxOutput
			}
			return info, nil
		}
	}
	return c.Model, nil
}

// maxAccounts bounds what [Accounts] keeps; beyond it, any one is forgotten.
const maxAccounts = 128

// accountKey tells accounts apart.
type accountKey struct {
	token, source, gitHubURL, apiURL string
	noSockets                        bool
	client                           *http.Client
}

// Accounts keeps accounts by their token. The zero value is ready.
type Accounts struct {
	mu sync.Mutex
	m  map[accountKey]*github.Account
}

func (a *Accounts) open(k accountKey) (*github.Account, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if account := a.m[k]; account != nil {
		return account, nil
	}
	account, err := github.New(github.Config{Token: k.token, Source: k.source, GitHubURL: k.gitHubURL, APIURL: k.apiURL, NoSockets: k.noSockets, HTTPClient: k.client})
	if err != nil {
		return nil, err
	}
	if a.m == nil {
		a.m = make(map[accountKey]*github.Account)
	}
	if len(a.m) >= maxAccounts {
		for other := range a.m {
			delete(a.m, other)
			break
		}
	}
	a.m[k] = account
	return account, nil
}

// enabled reports whether a variable says yes.
func enabled(v string) bool {
	on, err := strconv.ParseBool(v)
	return on && err == nil
}
