package transom

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/model/catalog"
)

// models is a session's access to a model. It may be replaced while the session
// lives; the next request uses the new one.
type models struct {
	rt *Runtime
	// sized is told the size of the window once it is known better; set before
	// the first request.
	sized func(tokens int)

	mu     sync.Mutex
	own    *ProviderConfig
	custom model.Provider
	token  string
	model  string
	choice *catalog.Choice // nil where err says why, or where custom answers
	err    error
}

// models resolves who answers a session. It makes no connection. That there is
// nobody is no error here: the first request fails with it.
func (r *Runtime) models(own *ProviderConfig, custom model.Provider, token, modelID string) *models {
	m := &models{rt: r, own: own, custom: custom, token: token, model: modelID}
	m.resolve()
	return m
}

func (m *models) resolve() {
	m.choice, m.err = nil, nil
	if m.custom == nil && m.own == nil && m.token == "" {
		m.custom = m.rt.cfg.Provider
	}
	if m.custom != nil {
		return
	}
	m.choice, m.err = catalog.Resolve(m.rt.catalog(m.own, m.token, m.model))
}

// catalog is what the catalog decides by.
func (r *Runtime) catalog(own *ProviderConfig, token, modelID string) catalog.Config {
	c := catalog.Config{
		Model: modelID, SessionToken: token, LauncherToken: r.cfg.GitHubToken, LauncherSource: r.cfg.GitHubTokenSource,
		Getenv: r.cfg.Getenv, NoAutoLogin: r.cfg.NoAutoLogin, Accounts: &r.accounts,
	}
	if c.Model == "" {
		c.Model = r.cfg.Model
	}
	if own != nil {
		c.Provider = &catalog.Provider{
			Type: own.Type, WireAPI: own.WireAPI, BaseURL: own.BaseURL, APIKey: own.APIKey, BearerToken: own.BearerToken,
			Headers: own.Headers, ModelID: own.ModelID, WireModel: own.WireModel,
			MaxPromptTokens: own.ContextWindow, MaxOutputTokens: own.MaxOutput,
		}
	}
	return c
}

// replace takes what a resume brings; nil keeps what was there.
func (m *models) replace(own *ProviderConfig, custom model.Provider, token *string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if own != nil || custom != nil {
		m.own, m.custom = own, custom
	}
	if token != nil {
		m.token = *token
	}
	m.resolve()
}

// usable tells what is wrong with what the session itself brought: a provider
// that is not served, or a GitHub token that GitHub does not accept. That nothing
// was brought is no fault.
func (m *models) usable(ctx context.Context) error {
	m.mu.Lock()
	token, choice, err := m.token, m.choice, m.err
	m.mu.Unlock()
	var setup *model.Error
	if m.own != nil && errors.As(err, &setup) {
		if setup.Code != catalog.CodeUnsupported {
			return &Error{Kind: KindInvalidParams, Msg: err.Error(), Err: err}
		}
		return err
	}
	if token == "" || choice == nil || choice.Account == nil {
		return nil
	}
	return choice.Account.Verify(ctx)
}

// selected is the model that a session begins with; "" leaves the choice to the
// provider.
func (m *models) selected() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.choice != nil:
		return m.choice.Model.ID
	case m.model != "":
		return m.model
	}
	return m.rt.cfg.Model
}

// window is the size of the window in tokens, as far as it is known.
func (m *models) window() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.choice != nil:
		return m.choice.Model.ContextWindow
	case m.rt.cfg.ContextWindow > 0:
		return m.rt.cfg.ContextWindow
	}
	return catalog.DefaultContextWindow
}

// provider says who answers a request. It runs outside the session's goroutine
// and may ask the provider which models there are.
func (m *models) provider(ctx context.Context, req *model.Request) (model.Provider, error) {
	m.mu.Lock()
	custom, choice, err, sized := m.custom, m.choice, m.err, m.sized
	m.mu.Unlock()
	switch {
	case custom != nil:
		return custom, nil
	case err != nil:
		return nil, err
	}
	if choice.Account != nil {
		if info, err := choice.Describe(ctx); err == nil && info.ContextWindow != choice.Model.ContextWindow && sized != nil {
			sized(info.ContextWindow)
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
	Message       string // for people
}

// Account describes the runtime's account. Authenticated is true only where
// [Runtime.Models] can answer too: a token is tried with GitHub once.
func (r *Runtime) Account(ctx context.Context) Account {
	if _, ok := r.cfg.Provider.(model.Lister); ok {
		return Account{Authenticated: true, Type: "api-key", Message: "Using the runtime's own model provider"}
	}
	none := Account{Message: "Not authenticated"}
	choice, err := catalog.Resolve(r.catalog(nil, "", ""))
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
	a := Account{Authenticated: true, Type: "env", Host: "https://github.com", Login: user.Login, Message: "Authenticated as " + user.Login}
	if r.cfg.GitHubToken != "" {
		a.Type = "token"
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
		choice, err := catalog.Resolve(r.catalog(nil, "", ""))
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
	models = slices.Clone(models) // it may be the provider's own
	for i := range models {
		if models[i].ContextWindow == 0 {
			models[i].ContextWindow = cmp.Or(r.cfg.ContextWindow, catalog.DefaultContextWindow)
		}
	}
	return models, wrap(op, "", err)
}
