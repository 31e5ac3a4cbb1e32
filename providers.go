package transom

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/internal/session"
	"github.com/transom-run/transom/internal/turn"
	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/model/catalog"
	"github.com/transom-run/transom/model/endpoint"
)

// access checks what a resume brings for reaching a model, if anything.
func (r *Runtime) access(ctx context.Context, cfg ResumeConfig) error {
	r.keys.provider(cfg.Provider)
	r.keys.named(cfg.Providers)
	token := ""
	if cfg.GitHubToken != nil {
		token = *cfg.GitHubToken
		r.keys.add(token)
	}
	if cfg.Provider == nil && token == "" && cfg.Providers == nil && cfg.Models == nil {
		return nil
	}
	return r.models("", access{cfg.Provider, cfg.Custom, token, cfg.Providers, cfg.Models, ""}).usable(ctx)
}

// brings reports whether a resume brings providers of its own.
func (cfg *ResumeConfig) brings() bool {
	return cfg.Provider != nil || cfg.Custom != nil || cfg.Providers != nil || cfg.Models != nil
}

// named remembers what the configurations of providers hold.
func (s *secrets) named(providers []NamedProvider) {
	for i := range providers {
		s.provider(&providers[i].ProviderConfig)
	}
}

// settings are the catalog's for a provider of that name.
func (m *models) settings(name string, p *ProviderConfig) catalog.Provider {
	return catalog.Provider{
		Type: p.Type, WireAPI: p.WireAPI, Transport: p.Transport, BaseURL: p.BaseURL, AzureAPIVersion: p.AzureAPIVersion,
		APIKey: p.APIKey, BearerToken: p.BearerToken, Token: m.tokens(name, p), Headers: p.Headers,
		ModelID: p.ModelID, WireModel: p.WireModel, MaxPromptTokens: p.ContextWindow, MaxOutputTokens: p.MaxOutput,
	}
}

func (m *models) named(providers []NamedProvider) []catalog.Named {
	out := make([]catalog.Named, len(providers))
	for i := range providers {
		p := &providers[i]
		out[i] = catalog.Named{Name: p.Name, Provider: m.settings(p.Name, &p.ProviderConfig)}
	}
	return out
}

func entries(models []ModelConfig) []catalog.Entry {
	out := make([]catalog.Entry, len(models))
	for i, e := range models {
		out[i] = catalog.Entry{
			ID: e.ID, Provider: e.Provider, WireModel: e.WireModel, ModelID: e.ModelID, Name: e.Name,
			MaxPromptTokens: e.PromptTokens, MaxContextTokens: e.ContextTokens, MaxOutputTokens: e.MaxOutput, Vision: e.Vision, Images: e.Images,
		}
	}
	return out
}

// TokenRequest is the request of the protocol by which a host is asked for a
// bearer token.
const TokenRequest = "providerToken.getToken"

// tokens is what is asked for a bearer token before every request to a provider;
// nil where nothing is. Tokens are remembered only to keep them out of texts.
func (m *models) tokens(name string, p *ProviderConfig) func(ctx context.Context) (string, error) {
	ask := p.Token
	if ask == nil && p.AsksToken {
		ask = func(ctx context.Context) (string, error) { return m.askToken(ctx, name) }
	}
	if ask == nil {
		return nil
	}
	return func(ctx context.Context) (string, error) {
		token, err := ask(ctx)
		if err == nil && strings.TrimSpace(token) == "" {
			err = errors.New("the token is empty")
		}
		if err != nil {
			return "", err
		}
		m.rt.keys.lend(token)
		return token, nil
	}
}

// askToken asks the host.
func (m *models) askToken(ctx context.Context, provider string) (string, error) {
	raw, err := m.ask(ctx, TokenRequest, map[string]string{"providerName": provider, "sessionId": m.id})
	if err != nil {
		return "", err
	}
	var answer struct {
		Token string `json:"token"`
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return "", errors.New("the host's answer is not {token}")
	}
	return answer.Token, nil
}

// warnProvider tells once of settings of providers that have no effect.
func (h *Session) warnProvider() {
	if w := h.sess.models.warnings(); len(w) > 0 {
		h.sess.Post(turn.Note{Payload: event.SessionWarning{WarningType: "configuration", Message: strings.Join(w, "; ") + "."}}, nil, nil)
	}
}

// AddProviders adds providers and models to those of the session, and describes
// the models added. Names are as in [SessionConfig.Providers]; one that is there
// already is an InvalidParams error, and then nothing is added.
func (h *Session) AddProviders(providers []NamedProvider, models []ModelConfig) ([]model.Info, error) {
	const op = "session.provider.add"
	h.rt.keys.named(providers)
	m := h.sess.models
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, err := m.registry.Add(m.named(providers), entries(models)); err != nil {
		return nil, &Error{Op: op, Kind: KindInvalidParams, SessionID: h.id, Msg: err.Error(), Err: err}
	}
	m.has.providers = slices.Concat(m.has.providers, providers)
	m.has.entries = slices.Concat(m.has.entries, models)
	m.resolve()
	if slices.ContainsFunc(providers, func(p NamedProvider) bool { return p.AsksToken }) {
		h.answersToo(TokenRequest)
	}
	all := m.registry.Models()
	return all[len(all)-len(models):], nil
}

// answersToo notes that this host answers one more request.
func (h *Session) answersToo(method string) {
	v, ok := h.sess.requesters.Load(h.client.ID)
	if r, _ := v.(requester); ok && !slices.Contains(r.answers, method) {
		r.answers = append(slices.Clone(r.answers), method)
		h.sess.requesters.Store(h.client.ID, r)
	}
}

// Models lists what the session can switch to: the models of its account or
// provider, and then those of its own providers under the names provider/id.
func (h *Session) Models(ctx context.Context) ([]model.Info, error) {
	const op = "session.model.list"
	m := h.sess.models
	m.mu.Lock()
	choice, answers, registry, err := m.choice, m.answers, m.registry, m.err
	m.mu.Unlock()
	if l, ok := answers.(model.Lister); ok {
		list, err := l.Models(ctx)
		return h.rt.sized(append(slices.Clone(list), registry.Models()...)), wrap(op, h.id, err)
	}
	if choice == nil {
		if answers != nil || registry != nil {
			return registry.Models(), nil
		}
		return nil, &Error{Op: op, Kind: KindUnauthenticated, SessionID: h.id, Msg: err.Error(), Err: err}
	}
	var list []model.Info
	if l, ok := choice.Provider.(model.Lister); ok && (choice.Source != catalog.FromSession || choice.Model.ID == "") {
		if list, err = l.Models(ctx); err != nil && len(list) == 0 {
			return nil, wrap(op, h.id, err)
		}
		return h.rt.sized(list), nil
	}
	return h.rt.sized([]model.Info{choice.Model}), nil
}

// Account describes the account of the session: that of its own GitHub token
// where it brought one, else the runtime's.
func (h *Session) Account(ctx context.Context) Account {
	m := h.sess.models
	m.mu.Lock()
	token, choice, identity := m.has.token, m.choice, m.identity
	m.mu.Unlock()
	if identity != nil {
		return *identity
	}
	if token == "" || choice == nil || choice.Account == nil {
		return h.rt.Account(ctx)
	}
	user, err := choice.Account.User(ctx)
	if err != nil {
		return Account{Message: "Not authenticated: " + err.Error()}
	}
	return Account{Authenticated: true, Type: "token", Host: "https://github.com", Login: user.Login, Plan: user.Plan, Message: "Authenticated as " + user.Login}
}

// Endpoint is where a session's requests go, for hosts that make some of their
// own there.
type Endpoint struct {
	Type      string            // openai, azure or anthropic
	WireAPI   string            // completions or responses; "" for anthropic
	Transport string            // http
	BaseURL   string            // for the vendors' client libraries
	APIKey    string            // or bearer token; "" where none is needed
	Headers   map[string]string // to be sent with every request
}

// endpointSetting must be true for the credentials of a session to be told.
const endpointSetting = "COPILOT_ALLOW_GET_PROVIDER_ENDPOINT"

// Endpoint tells where requests for a model go, credentials included; "" is the
// session's model. It is refused unless COPILOT_ALLOW_GET_PROVIDER_ENDPOINT is
// true in the runtime's environment.
func (h *Session) Endpoint(ctx context.Context, modelID string) (Endpoint, error) {
	const op = "session.provider.getEndpoint"
	if v := strings.ToLower(h.rt.cfg.Getenv(endpointSetting)); v != "true" && v != "1" {
		return Endpoint{}, &Error{Op: op, Kind: KindUnsupported, SessionID: h.id, Msg: "the endpoint and its credentials are told only where " + endpointSetting + "=true is set in the runtime's environment"}
	}
	if modelID == "" {
		modelID = h.Info().Model
	}
	m := h.sess.models
	m.mu.Lock()
	choice, answers, err := m.choice, m.answers, m.err
	_, named, listed := m.registry.Find(modelID)
	m.mu.Unlock()
	switch {
	case listed:
		return h.told(ctx, &named.Provider)
	case answers != nil:
		return Endpoint{}, &Error{Op: op, Kind: KindUnsupported, SessionID: h.id, Msg: "the session's model is part of the runtime: it has no endpoint"}
	case err != nil:
		return Endpoint{}, &Error{Op: op, Kind: KindUnauthenticated, SessionID: h.id, Msg: err.Error(), Err: err}
	case choice.Account == nil:
		if choice.Settings == nil {
			return Endpoint{}, &Error{Op: op, Kind: KindInvalidParams, SessionID: h.id, Msg: fmt.Sprintf("there is no model %q", modelID)}
		}
		return h.told(ctx, choice.Settings)
	}
	at, err := choice.Account.Endpoint(ctx, modelID)
	if err != nil {
		return Endpoint{}, wrap(op, h.id, err)
	}
	at.Headers["X-Interaction-Id"] = session.NewID()
	return Endpoint{Type: "openai", WireAPI: at.WireAPI, Transport: "http", BaseURL: at.BaseURL, APIKey: at.Token, Headers: at.Headers}, nil
}

// told is a provider of the host's own as it is told.
func (h *Session) told(ctx context.Context, p *catalog.Provider) (Endpoint, error) {
	e := Endpoint{Type: strings.ToLower(p.Type), WireAPI: strings.ToLower(p.WireAPI), Transport: "http", BaseURL: p.BaseURL, APIKey: p.APIKey, Headers: p.Headers}
	if e.Type == "" {
		e.Type = "openai"
	}
	switch {
	case e.Type == "anthropic":
		e.WireAPI = ""
	case e.WireAPI == "":
		e.WireAPI = "completions"
	}
	if p.BearerToken != "" {
		e.APIKey = p.BearerToken
	}
	if p.Token != nil {
		token, err := p.Token(ctx)
		if err != nil {
			return Endpoint{}, &Error{Op: "session.provider.getEndpoint", Kind: KindUpstream, SessionID: h.id, Msg: "the host gave no bearer token: " + err.Error(), Err: err}
		}
		e.APIKey = token
	}
	return e, nil
}

// outbound makes the HTTP requests of all providers: itself, or through a host.
type outbound struct {
	host atomic.Pointer[http.RoundTripper]
}

// RoundTrip makes a request; see [http.RoundTripper].
func (o *outbound) RoundTrip(req *http.Request) (*http.Response, error) {
	if t := o.host.Load(); t != nil {
		return (*t).RoundTrip(req)
	}
	return endpoint.SharedClient().Transport.RoundTrip(req)
}

// DialSocket opens a WebSocket; see [endpoint.SocketDialer]. A host that makes the
// requests opens it, where it can.
func (o *outbound) DialSocket(req *http.Request) (endpoint.Socket, *http.Response, error) {
	t := o.host.Load()
	if t == nil {
		return endpoint.DialSocket(endpoint.SharedClient(), req)
	}
	if d, ok := (*t).(endpoint.SocketDialer); ok {
		return d.DialSocket(req)
	}
	return nil, nil, errors.New("the host that makes the requests opens no WebSockets")
}

// Intercept has t make the HTTP requests of all the runtime's providers and
// accounts, until release is called. There can be one at a time: a Conflict error
// otherwise. [endpoint.Asked] tells t for which session a request is. WebSockets are
// opened by t, too, where it is an [endpoint.SocketDialer].
func (r *Runtime) Intercept(t http.RoundTripper) (release func(), err error) {
	p := &t
	if !r.outbound.host.CompareAndSwap(nil, p) {
		return nil, &Error{Op: "llmInference.setProvider", Kind: KindConflict, Msg: "Another client is already the LLM inference provider."}
	}
	return func() { r.outbound.host.CompareAndSwap(p, nil) }, nil
}
