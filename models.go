package transom

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/model/catalog"
	"github.com/transom-run/transom/model/github"
	"github.com/transom-run/transom/model/tokens"
)

// access is what a session brings to reach models with.
type access struct {
	own       *ProviderConfig
	custom    model.Provider
	token     string
	providers []NamedProvider
	entries   []ModelConfig
	model     string
}

// models is a session's access to models. It may be replaced while the session
// lives; the next request uses the new one.
type models struct {
	rt *Runtime
	id string // of the session
	// sized is told the size of the window once it is known better, warn tells people
	// of a setting that has no effect, ask puts a request to a host; set before the first request.
	sized func(tokens int)
	warn  func(message string)
	ask   func(ctx context.Context, method string, params any) (json.RawMessage, error)

	mu       sync.Mutex
	has      access
	registry *catalog.Registry // nil: none
	// answers, where set, answers what is not for a model of the registry.
	answers  model.Provider
	identity *Account        // as a host set it; nil: that of the token
	choice   *catalog.Choice // nil where err says why, or where answers alone does
	err      error
	told     int    // the size of the window that the session goes by
	bounds   int    // as a host says it; 0: it says nothing
	flat     string // the newest model that has not the context tier that was chosen
	unsized  string // the newest model of which was said that nobody states its window
}

// models resolves who answers a session. It makes no connection. That there is
// nobody is no error here: the first request fails with it.
func (r *Runtime) models(id string, has access) *models {
	m := &models{rt: r, id: id, has: has}
	m.resolve()
	return m
}

// resolve decides anew. mu is held, or m is not shared yet.
func (m *models) resolve() {
	m.choice, m.err, m.registry = nil, nil, nil
	m.answers = m.has.custom
	if m.answers == nil && m.has.own == nil && m.has.token == "" {
		m.answers = m.rt.cfg.Provider
	}
	if len(m.has.providers)+len(m.has.entries) > 0 {
		if m.registry, m.err = catalog.NewRegistry(m.rt.client, m.named(m.has.providers), entries(m.has.entries)); m.err != nil {
			return
		}
	}
	_, _, listed := m.registry.Find(m.has.model)
	if m.answers != nil && !listed {
		return
	}
	c := m.rt.catalog(m.has.token, m.has.model)
	c.Registry = m.registry
	if m.has.own != nil {
		p := m.settings("default", m.has.own)
		c.Provider = &p
	}
	m.choice, m.err = catalog.Resolve(c)
}

// catalog is what the catalog decides by, without a session's own providers.
func (r *Runtime) catalog(token, modelID string) catalog.Config {
	launcher, source := r.launcher()
	return catalog.Config{
		Model: cmp.Or(modelID, r.defaultModel()), SessionToken: token, LauncherToken: launcher, LauncherSource: source,
		Getenv: r.cfg.Getenv, NoAutoLogin: r.noAutoLogin(), Accounts: &r.accounts, HTTPClient: r.client,
	}
}

// replace takes what a resume brings; nil keeps what was there. current is the
// model that the session has come to.
func (m *models) replace(cfg ResumeConfig, current string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if cfg.Model != nil {
		current = *cfg.Model
	}
	m.has.model = cmp.Or(current, m.has.model)
	if cfg.Provider != nil || cfg.Custom != nil {
		m.has.own, m.has.custom = cfg.Provider, cfg.Custom
	}
	if cfg.GitHubToken != nil {
		m.has.token = *cfg.GitHubToken
	}
	if cfg.Providers != nil || cfg.Models != nil {
		m.has.providers, m.has.entries = cfg.Providers, cfg.Models
	}
	m.resolve()
}

// usable tells what is wrong with what the session itself brought: a provider
// that is not served, or a GitHub token that GitHub does not accept. That nothing
// was brought is no fault.
func (m *models) usable(ctx context.Context) error {
	m.mu.Lock()
	has, registry, choice, err := m.has, m.registry, m.choice, m.err
	m.mu.Unlock()
	var setup *model.Error
	brought := has.own != nil || registry == nil && len(has.providers)+len(has.entries) > 0
	if brought && errors.As(err, &setup) {
		if setup.Code != catalog.CodeUnsupported {
			return &Error{Kind: KindInvalidParams, Msg: err.Error(), Err: err}
		}
		return err
	}
	if has.token == "" || choice == nil || choice.Account == nil {
		return nil
	}
	return choice.Account.Verify(ctx)
}

// warnings name settings that have no effect.
func (m *models) warnings() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.choice == nil {
		return nil
	}
	return m.choice.Warnings
}

// selected is the model that a session begins with; "" leaves the choice to the
// provider.
func (m *models) selected() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.choice != nil {
		return m.choice.Model.ID
	}
	return cmp.Or(m.has.model, m.rt.defaultModel())
}

// window is the size of the window in tokens, as far as it is known.
func (m *models) window() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.told = m.size()
	return m.told
}

// size is the size of the window, where no model has said another. mu is held.
func (m *models) size() int {
	switch {
	case m.bounds > 0:
		return m.bounds
	case m.choice != nil:
		return m.choice.Model.ContextWindow
	}
	return cmp.Or(m.rt.cfg.ContextWindow, catalog.DefaultContextWindow)
}

// bound takes the size of the window as a host says it. 0 takes what it said away:
// the size is what is known without, until the next request may tell more.
func (m *models) bound(tokens int) {
	m.mu.Lock()
	had := m.bounds
	m.bounds = tokens
	size := m.size()
	m.mu.Unlock()
	if tokens != had {
		m.learn(size)
	}
}

// learn tells the session the size of the window of the model that it asks now,
// where that is another than it goes by.
func (m *models) learn(tokens int) {
	m.mu.Lock()
	if m.bounds > 0 {
		tokens = m.bounds
	}
	news := tokens > 0 && tokens != m.told && m.sized != nil
	if news {
		m.told = tokens
	}
	m.mu.Unlock()
	if news {
		m.sized(tokens)
	}
}

// untiered says once for each model that it has not the context tier that was chosen.
func (m *models) untiered(req *model.Request, info *model.Info) {
	if req.ContextTier != model.LongContext || info.Tiers[model.LongContext] > 0 {
		return
	}
	m.mu.Lock()
	said := m.flat == info.ID
	m.flat = info.ID
	m.mu.Unlock()
	if !said && m.warn != nil {
		m.warn(fmt.Sprintf("contextTier %s has no effect: the list of models gives %s no such tier, and its window has %d tokens", req.ContextTier, cmp.Or(info.ID, "the model"), info.ContextWindow))
	}
}

// smallWindow is the size of the smallest windows that models are served with, in
// tokens: below it nobody has to know how large a window is.
const smallWindow = 4096

// unstated says once for each model that nobody states the size of its window, when a
// conversation begins to depend on it: a server with a smaller one may cut what it is
// sent and say nothing.
func (m *models) unstated(req *model.Request, id string) {
	m.mu.Lock()
	said := m.bounds > 0 || m.unsized == id
	m.mu.Unlock()
	if said || m.warn == nil || req.AgentID != "" || model.EstimateRequest(req) <= smallWindow {
		return
	}
	m.mu.Lock()
	m.unsized = id
	m.mu.Unlock()
	m.warn(fmt.Sprintf("nobody states the size of the context window of %s: it is taken to have %d tokens, of which this session sends more than %d. State it as maxPromptTokens of the provider or the model", id, catalog.DefaultContextWindow, smallWindow))
}

// encoding is how a model cuts text into tokens, "" where that is not known: as the
// account's list says, and else by its name.
func (m *models) encoding(ctx context.Context, id string) tokens.Encoding {
	m.mu.Lock()
	answers, choice := m.answers, m.choice
	entry, _, listed := m.registry.Find(id)
	m.mu.Unlock()
	names := []string{id}
	switch {
	case listed:
		names = []string{entry.ModelID, entry.WireModel, entry.ID}
	case answers != nil || choice == nil:
	case choice.Account != nil:
		list, _ := choice.Account.Models(ctx) // the model call that follows says what is wrong
		for i := range list {
			if list[i].ID == id || id == "" {
				return cmp.Or(tokens.Named(list[i].Tokenizer), tokens.Of(list[i].ID))
			}
		}
	default:
		names = []string{id, choice.Model.ID}
		if choice.Settings != nil {
			names = append(names, choice.Settings.ModelID, choice.Settings.WireModel)
		}
	}
	for _, name := range names {
		if e := tokens.Of(name); e != "" {
			return e
		}
	}
	return ""
}

// listed describes a model of the registry.
func (m *models) listed(id string) (model.Info, bool) {
	for _, info := range m.registry.Models() {
		if info.ID == id {
			return info, true
		}
	}
	return model.Info{}, false
}

// provider says who answers a request. It runs outside the session's goroutine
// and may ask the provider which models there are.
func (m *models) provider(ctx context.Context, req *model.Request) (model.Provider, error) {
	m.mu.Lock()
	answers, choice, err := m.answers, m.choice, m.err
	listed, isListed := m.listed(req.Model)
	entry, from, _ := m.registry.Find(req.Model)
	m.mu.Unlock()
	switch {
	case answers != nil && !isListed:
		return answers, nil
	case err != nil:
		return nil, err
	case choice == nil: // the registry beside a provider that answers the rest
		c := m.rt.catalog("", req.Model)
		m.mu.Lock()
		c.Registry = m.registry
		m.mu.Unlock()
		if choice, err = catalog.Resolve(c); err != nil {
			return nil, err
		}
	}
	learn := func(info *model.Info) {
		m.learn(info.Window(req.ContextTier))
		m.untiered(req, info)
	}
	if req.AgentID != "" {
		learn = func(*model.Info) {} // the window of another agent's model is not the session's
	}
	switch {
	case isListed:
		learn(&listed)
		if max(entry.MaxPromptTokens, entry.MaxContextTokens, from.MaxPromptTokens) == 0 {
			m.unstated(req, listed.ID)
		}
	case choice.Account != nil:
		asked := *choice
		asked.Source = catalog.FromGitHub
		if req.Model != "" && req.Model != choice.Model.ID {
			asked.Model = model.Info{ID: req.Model, ContextWindow: catalog.DefaultContextWindow}
		}
		if info, err := asked.Describe(ctx); err == nil {
			learn(&info)
		}
	default:
		learn(&choice.Model)
		if choice.Settings != nil && choice.Settings.MaxPromptTokens == 0 {
			m.unstated(req, cmp.Or(req.Model, choice.Model.ID, "the model"))
		}
	}
	if req.Model == "" {
		req.Model = choice.Model.ID
	}
	return choice.Provider, nil
}

// Account is the one whose models sessions use that bring no account and no
// provider of their own.
type Account struct {
	Authenticated bool
	Type          string // "token", "env" or "api-key"; "" where there is none
	Host          string // such as https://github.com
	Login         string
	Plan          string // the Copilot plan, such as "individual_pro"
	Message       string // for people
}

// Account describes the runtime's account. Authenticated is true only where
// [Runtime.Models] can answer too: a token is tried with GitHub once.
func (r *Runtime) Account(ctx context.Context) Account {
	if _, ok := r.cfg.Provider.(model.Lister); ok {
		return Account{Authenticated: true, Type: "api-key", Message: "Using the runtime's own model provider"}
	}
	none := Account{Message: "Not authenticated"}
	choice, err := catalog.Resolve(r.catalog("", ""))
	if err != nil {
		return none
	}
	if choice.Account == nil {
		return Account{Authenticated: true, Type: "api-key", Message: "Using the model provider that the environment names"}
	}
	user, err := choice.Account.User(ctx)
	if err != nil {
		none.Message = "Not authenticated: " + err.Error()
		return none
	}
	a := Account{Authenticated: true, Type: "env", Host: "https://github.com", Login: user.Login, Plan: user.Plan, Message: "Authenticated as " + user.Login}
	if r.cfg.GitHubToken != "" {
		a.Type = "token"
	}
	if _, signedIn := r.logins.current(); signedIn {
		a.Type = "user"
	}
	return a
}

// Models lists what sessions without a provider of their own can use, the default
// first; where the provider does not say how large a window is, it is the
// documented default. Unauthenticated where there is neither an account nor a provider.
func (r *Runtime) Models(ctx context.Context) ([]model.Info, error) {
	const op = "models.list"
	l, ok := r.cfg.Provider.(model.Lister)
	if !ok {
		choice, err := catalog.Resolve(r.catalog("", ""))
		var setup *model.Error
		if errors.As(err, &setup) && setup.Kind == model.Setup && setup.Code != catalog.CodeUnsupported {
			return nil, &Error{Op: op, Kind: KindUnauthenticated, Err: err, Msg: "Not authenticated. Please authenticate first: set GITHUB_TOKEN or COPILOT_PROVIDER_BASE_URL, or give each session a provider"}
		}
		if err != nil {
			return nil, wrap(op, "", err)
		}
		if l, ok = choice.Provider.(model.Lister); !ok {
			return nil, nil
		}
	}
	models, err := l.Models(ctx)
	return r.sized(models), wrap(op, "", err)
}

// sized gives every model a window.
func (r *Runtime) sized(models []model.Info) []model.Info {
	models = slices.Clone(models) // it may be the provider's own
	for i := range models {
		if models[i].ContextWindow == 0 {
			models[i].ContextWindow = cmp.Or(r.cfg.ContextWindow, catalog.DefaultContextWindow)
		}
	}
	return models
}

// gitHub tells how the account of the session is asked; Unauthenticated where there
// is none.
func (m *models) gitHub(ctx context.Context) (github.Endpoint, error) {
	m.mu.Lock()
	token := m.has.token
	m.mu.Unlock()
	c := m.rt.catalog(token, "")
	c.Getenv = func(name string) string {
		if strings.HasPrefix(name, "COPILOT_PROVIDER_") {
			return "" // the account is asked for, whoever answers for the model
		}
		return m.rt.cfg.Getenv(name)
	}
	choice, err := catalog.Resolve(c)
	if err != nil {
		return github.Endpoint{}, err
	}
	if choice.Account == nil {
		return github.Endpoint{}, &Error{Kind: KindUnauthenticated, Msg: "there is no GitHub account: give a gitHubToken"}
	}
	return choice.Account.Endpoint(ctx, "")
}
