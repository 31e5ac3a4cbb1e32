// Package github reaches models with a GitHub token.
//
//	token ─▶ GET <GitHub API>/copilot_internal/user ─▶ endpoints.api ─▶ GET /models
//	                                                       └──────────▶ POST /chat/completions
//	                                                                    (or /responses, for models that have only that)
//
// Nothing is asked before it is needed, and what was asked is kept: the user for
// the life of an [Account], the models for a while. Callers at once share one
// request.
//
// # Ownership
//
// An [Account] may be used by any number of goroutines. It starts one only while
// it asks who the user is or which models there are, for at most 30 seconds.
//
// # Errors
//
// Errors are *model.Error. A token that GitHub does not accept is of kind
// Authentication with status 401, and names where the token came from, never the
// token.
package github

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/model/endpoint"
	"github.com/transom-run/transom/model/openai"
	"github.com/transom-run/transom/model/responses"
)

// DefaultURL is the base of GitHub's API.
const DefaultURL = "https://api.github.com"

// DefaultModelsTTL is how long a list of models is used before it is asked for
// again.
const DefaultModelsTTL = 30 * time.Minute

// fetchTimeout bounds each question about the account.
const fetchTimeout = 30 * time.Second

// Config says who asks, and where.
type Config struct {
	// Token is the GitHub token. Required.
	Token string
	// Source names where the token came from, for errors: "GH_TOKEN".
	Source string
	// GitHubURL is the base of the GitHub API; empty: [DefaultURL].
	GitHubURL string
	// APIURL is the base of the model API; empty: what the user lookup names.
	APIURL string
	// IntegrationID is sent as Copilot-Integration-Id; empty: "transom".
	IntegrationID string
	// ModelsTTL is how long the list of models is kept; 0: [DefaultModelsTTL].
	ModelsTTL time.Duration
	// HTTPClient is used instead of the shared one.
	HTTPClient *http.Client
	// NoSockets keeps models that have responses over WebSockets on HTTP.
	NoSockets bool
}

// User is who a token belongs to.
type User struct {
	Login string
	Plan  string
	// API is the base of the model API for this user.
	API string
	// Raw is the whole answer.
	Raw json.RawMessage
}

// Account is a model.Provider and model.Lister behind a GitHub token.
type Account struct {
	cfg    Config
	user   cell[*User]
	models cell[[]model.Info]

	mu     sync.Mutex
	client *wires // made when the API's address is known
}

// New checks the settings. It makes no connection.
func New(cfg Config) (*Account, error) {
	if cfg.Source == "" {
		cfg.Source = "the GitHub token"
	}
	if strings.TrimSpace(cfg.Token) == "" {
		return nil, &model.Error{Kind: model.Setup, Msg: "The GitHub token is empty: " + cfg.Source + "."}
	}
	if cfg.GitHubURL == "" {
		cfg.GitHubURL = DefaultURL
	}
	for name, base := range map[string]string{"GitHub API": cfg.GitHubURL, "model API": cfg.APIURL} {
		u, err := url.Parse(base)
		if base != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
			return nil, &model.Error{Kind: model.Setup, Msg: fmt.Sprintf("The URL of the %s is not an http or https URL: %q.", name, base)}
		}
	}
	cfg.GitHubURL = strings.TrimRight(cfg.GitHubURL, "/")
	if cfg.IntegrationID == "" {
		cfg.IntegrationID = "transom"
	}
	if cfg.ModelsTTL == 0 {
		cfg.ModelsTTL = DefaultModelsTTL
	}
	if cfg.HTTPClient == nil {
		cfg.HTTPClient = endpoint.SharedClient()
	}
	return &Account{cfg: cfg}, nil
}

// Verify asks GitHub whether it accepts the token, unless it did already.
func (a *Account) Verify(ctx context.Context) error {
	_, err := a.User(ctx)
	return err
}

// User returns who the token belongs to.
func (a *Account) User(ctx context.Context) (*User, error) {
	return a.user.get(ctx, 0, a.fetchUser)
}

// Models lists the models of the account; the first is the default.
func (a *Account) Models(ctx context.Context) ([]model.Info, error) {
	return a.models.get(ctx, a.cfg.ModelsTTL, func(ctx context.Context) ([]model.Info, error) {
		w, err := a.wires(ctx)
		if err != nil {
			return nil, err
		}
		return w.chat.Models(ctx)
	})
}

// Refresh lists the models of the account anew.
func (a *Account) Refresh(ctx context.Context) ([]model.Info, error) {
	a.models.expire()
	return a.Models(ctx)
}

// DefaultModel is the first model of the list.
func (a *Account) DefaultModel(ctx context.Context) (model.Info, error) {
	list, err := a.Models(ctx)
	if err != nil {
		return model.Info{}, err
	}
	if len(list) == 0 {
		return model.Info{}, &model.Error{Kind: model.Setup, Msg: "The GitHub account offers no models. Check its Copilot plan, or name a provider of your own."}
	}
	return list[0], nil
}

// Stream makes one attempt; see [model.Provider]. A request without a model goes
// to the default one.
func (a *Account) Stream(ctx context.Context, req *model.Request) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		w, err := a.wires(ctx)
		if err == nil && req.Model == "" {
			var info model.Info
			if info, err = a.DefaultModel(ctx); err == nil {
				named := *req
				named.Model = info.ID
				req = &named
			}
		}
		if err != nil {
			yield(model.Chunk{}, err)
			return
		}
		var p model.Provider = w.chat
		if resp, socket := a.reached(req.Model); socket && !a.cfg.NoSockets {
			p = w.sockets
		} else if resp {
			p = w.responses
		}
		a.priced(req.Model, p.Stream(ctx, req))(yield)
	}
}

// wires are the ways to the model API.
type wires struct {
	chat      *openai.Provider
	responses *responses.Provider
	sockets   *responses.Provider // the same over WebSockets, where the API opens some
}

// reached reports whether the list of models, where it has been asked for, says
// that one is not reached by chat completions, and whether WebSockets reach it.
func (a *Account) reached(id string) (responses, socket bool) {
	for _, info := range a.models.last() {
		if info.ID != id {
			continue
		}
		var m struct {
			Endpoints []string `json:"supported_endpoints"`
		}
		if json.Unmarshal(info.Raw, &m) != nil || slices.Contains(m.Endpoints, "/chat/completions") {
			return false, false
		}
		socket = slices.Contains(m.Endpoints, "ws:/responses")
		return socket || slices.Contains(m.Endpoints, "/responses"), socket
	}
	return false, false
}

// wires returns the model API; it asks for its address where it must.
func (a *Account) wires(ctx context.Context) (*wires, error) {
	base := a.cfg.APIURL
	if base == "" {
		user, err := a.User(ctx)
		if err != nil {
			return nil, err
		}
		if base = user.API; base == "" {
			return nil, a.noAPI(user)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.client != nil {
		return a.client, nil
	}
	server := endpoint.Server{
		BaseURL:     base,
		BearerToken: a.cfg.Token,
		Credentials: a.cfg.Source,
		Headers:     a.headers(),
		Decorate:    decorate,
		HTTPClient:  a.cfg.HTTPClient,
	}
	chat, err := openai.New(openai.Config{Server: server})
	if err != nil {
		return nil, err
	}
	resp, err := responses.New(responses.Config{Server: server})
	if err != nil {
		return nil, err
	}
	sockets, err := responses.New(responses.Config{Server: server, Sockets: responses.TrySocket})
	if err != nil {
		return nil, err
	}
	a.client = &wires{chat, resp, sockets}
	return a.client, nil
}

// decorate says to the API's accounting what a request is for.
func decorate(h http.Header, req *model.Request) {
	if req == nil {
		return
	}
	if req.Initiator != "" {
		h.Set("X-Initiator", req.Initiator)
	}
	if req.InteractionID != "" {
		h.Set("X-Interaction-Id", req.InteractionID)
	}
	kind := cmp.Or(req.Interaction, model.ForAgent)
	if kind == model.ForAgent && req.Initiator == "user" {
		kind = model.ForUser // the first request of a prompt counts as the user's own
	}
	h.Set("X-Interaction-Type", string(kind))
}

// apiVersion is the version of the model API that is spoken: the one that Microsoft's
// public client of it (VS Code's Copilot extension) sends.
const apiVersion = "2025-05-01"

// headers are those of every request to the model API.
func (a *Account) headers() map[string]string {
	return map[string]string{
		"Copilot-Integration-Id": a.cfg.IntegrationID, "X-Github-Api-Version": apiVersion, "User-Agent": "transom (Copilot SDK runtime)",
	}
}

// Endpoint is how the model API is asked.
type Endpoint struct {
	BaseURL string
	Token   string
	WireAPI string // completions or responses
	Headers map[string]string
}

// Endpoint tells how a model of the account is asked, for others who want to;
// "" is the default model.
func (a *Account) Endpoint(ctx context.Context, modelID string) (Endpoint, error) {
	base := a.cfg.APIURL
	if base == "" {
		user, err := a.User(ctx)
		if err != nil {
			return Endpoint{}, err
		}
		if base = user.API; base == "" {
			return Endpoint{}, a.noAPI(user)
		}
	}
	e := Endpoint{BaseURL: base, Token: a.cfg.Token, WireAPI: "completions", Headers: map[string]string{
		"Authorization": "Bearer " + a.cfg.Token, "Copilot-Integration-Id": a.cfg.IntegrationID,
		"X-GitHub-Api-Version": apiVersion, "User-Agent": a.headers()["User-Agent"],
	}}
	if responses, _ := a.reached(modelID); responses {
		e.WireAPI = "responses"
	}
	return e, nil
}

func (a *Account) noAPI(user *User) *model.Error {
	return &model.Error{Kind: model.Setup, Endpoint: a.userURL(), Msg: fmt.Sprintf(
		"GitHub names no model API for the user %s. Check the account's Copilot plan, or set COPILOT_API_URL.", user.Login)}
}

func (a *Account) userURL() string { return a.cfg.GitHubURL + "/copilot_internal/user" }

func (a *Account) fetchUser(ctx context.Context) (*User, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.userURL(), nil)
	if err != nil {
		return nil, a.fail(0, "", err)
	}
	req.Header.Set("Authorization", "Bearer "+a.cfg.Token)
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "transom")
	resp, err := a.cfg.HTTPClient.Do(req)
	if err != nil {
		if ue, ok := err.(*url.Error); ok {
			err = ue.Err
		}
		return nil, a.fail(0, "", err)
	}
	defer resp.Body.Close()
	data, err := readAll(resp.Body)
	if err != nil {
		return nil, a.fail(0, "", err)
	}
	if resp.StatusCode/100 != 2 {
		return nil, a.fail(resp.StatusCode, http.StatusText(resp.StatusCode), nil)
	}
	var body struct {
		Login     string `json:"login"`
		Plan      string `json:"copilot_plan"`
		Endpoints struct {
			API string `json:"api"`
		} `json:"endpoints"`
	}
	if err := json.Unmarshal(data, &body); err != nil {
		return nil, a.fail(resp.StatusCode, "", fmt.Errorf("its answer is not JSON"))
	}
	return &User{Login: body.Login, Plan: body.Plan, API: body.Endpoints.API, Raw: data}, nil
}

// fail words a failed user lookup.
func (a *Account) fail(status int, text string, cause error) *model.Error {
	e := &model.Error{Kind: model.Query, Status: status, Endpoint: a.userURL(), Err: cause, Retryable: true}
	if status != 0 && cause == nil {
		e.Kind, e.Retryable = model.Classify(status, "", "")
	}
	switch {
	case e.Kind == model.Authentication:
		e.Msg = fmt.Sprintf("GitHub at %s does not accept the token: %d %s. Check %s.", e.Endpoint, status, text, a.cfg.Source)
	case cause != nil:
		e.Msg = fmt.Sprintf("GitHub at %s cannot be asked about the account: %v. Check the network and the proxy settings.", e.Endpoint, cause)
	default:
		e.Msg = fmt.Sprintf("GitHub at %s did not answer the question about the account: %d %s.", e.Endpoint, status, text)
	}
	return e
}
