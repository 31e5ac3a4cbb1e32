package catalog

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/model/anthropic"
	"github.com/transom-run/transom/model/endpoint"
	"github.com/transom-run/transom/model/openai"
	"github.com/transom-run/transom/model/responses"
)

// Provider is a provider of the host's own, as session.create carries it.
type Provider struct {
	// Type is openai (also for whatever is compatible), azure or anthropic; empty:
	// openai.
	Type string
	// WireAPI is completions or responses; empty: completions. Anthropic has a wire
	// of its own.
	WireAPI string
	// Transport is http or websockets; empty: http. Only responses have WebSockets;
	// Choice.Warnings says where websockets has no effect.
	Transport string
	BaseURL   string
	// AzureAPIVersion chooses Azure's versioned route; empty: the v1 route.
	AzureAPIVersion string
	APIKey          string
	BearerToken     string // goes before APIKey
	// Token, where set, is asked for a bearer token before every request, and goes
	// before both. What it returns is never kept.
	Token     func(ctx context.Context) (string, error)
	Headers   map[string]string
	ModelID   string
	WireModel string // the name to send, where it is not the model's id
	// MaxPromptTokens is the context window, MaxOutputTokens the longest answer;
	// 0 where unknown.
	MaxPromptTokens, MaxOutputTokens int
	// HTTPClient makes the requests; nil: Config.HTTPClient.
	HTTPClient *http.Client
}

// server is a provider that knows its models.
type server interface {
	model.Provider
	model.Lister
	Endpoint() string
}

// settingNames are the names of settings in errors.
type settingNames struct{ kind, wire, transport, credentials, prompt, output string }

var sessionNames = settingNames{"provider.type", "provider.wireApi", "provider.transport", "provider.apiKey or provider.bearerToken of the session",
	"provider.maxPromptTokens", "provider.maxOutputTokens"}

var environmentNames = settingNames{"COPILOT_PROVIDER_TYPE", "COPILOT_PROVIDER_WIRE_API", "COPILOT_PROVIDER_TRANSPORT",
	"COPILOT_PROVIDER_API_KEY or COPILOT_PROVIDER_BEARER_TOKEN", maxPromptVar, maxOutputVar}

// The variables that name limits.
const (
	maxPromptVar = "COPILOT_PROVIDER_MAX_PROMPT_TOKENS"
	maxOutputVar = "COPILOT_PROVIDER_MAX_OUTPUT_TOKENS"
)

// limits refuses limits that are none; 0 is one that is not known.
func limits(of map[string]int) error {
	for _, name := range slices.Sorted(maps.Keys(of)) {
		if of[name] < 0 {
			return setup("%s is %d, which is not a number of tokens. Leave it out where the limit is not known.", name, of[name])
		}
	}
	return nil
}

// open opens a provider. The warnings are for people.
func (p *Provider) open(names settingNames, client *http.Client) (s server, warnings []string, err error) {
	if err := limits(map[string]int{names.prompt: p.MaxPromptTokens, names.output: p.MaxOutputTokens}); err != nil {
		return nil, nil, err
	}
	kind, wireAPI, transport := strings.ToLower(p.Type), strings.ToLower(p.WireAPI), strings.ToLower(p.Transport)
	switch kind {
	case "", "openai", "azure", "anthropic":
	default:
		return nil, nil, unsupported(names.kind, p.Type, "openai (which is right for every compatible server), azure and anthropic are")
	}
	switch wireAPI {
	case "", "completions", "responses":
	default:
		return nil, nil, unsupported(names.wire, p.WireAPI, "completions and responses are")
	}
	var sockets responses.Sockets
	switch transport {
	case "", "http":
	case "websockets", "websocket":
		if wireAPI == "responses" && kind != "anthropic" {
			sockets = responses.OnlySocket
		} else {
			warnings = append(warnings, names.transport+" "+strconv.Quote(p.Transport)+" has no effect: only "+names.wire+" responses has WebSockets")
		}
	default:
		return nil, nil, unsupported(names.transport, p.Transport, "http and websockets are")
	}
	end := endpoint.Server{BaseURL: p.BaseURL, APIKey: p.APIKey, BearerToken: p.BearerToken, Token: p.Token, Headers: p.Headers,
		WireModel: p.WireModel, MaxOutput: p.MaxOutputTokens, Credentials: names.credentials, HTTPClient: p.HTTPClient}
	if end.HTTPClient == nil {
		end.HTTPClient = client
	}
	if kind == "azure" {
		end.Azure = &endpoint.Azure{APIVersion: p.AzureAPIVersion}
	}
	switch {
	case kind == "anthropic":
		s, err = opened(anthropic.New(anthropic.Config{Server: end}))
	case wireAPI == "responses":
		s, err = opened(responses.New(responses.Config{Server: end, Sockets: sockets}))
	default:
		s, err = opened(openai.New(openai.Config{Server: end}))
	}
	return s, warnings, err
}

// opened keeps a nil pointer from becoming a server.
func opened[T server](p T, err error) (server, error) {
	if err != nil {
		return nil, err
	}
	return p, nil
}

func unsupported(name, value, serves string) *model.Error {
	return &model.Error{Kind: model.Setup, Code: CodeUnsupported, Msg: fmt.Sprintf("%s %q is not supported; %s.", name, value, serves)}
}

// fromEnvironment reads the provider that the environment names.
func fromEnvironment(base string, env func(string) string) (*Provider, error) {
	p := &Provider{
		BaseURL: base, Type: env("COPILOT_PROVIDER_TYPE"), WireAPI: env("COPILOT_PROVIDER_WIRE_API"), Transport: env("COPILOT_PROVIDER_TRANSPORT"),
		AzureAPIVersion: env("COPILOT_PROVIDER_AZURE_API_VERSION"),
		APIKey:          env("COPILOT_PROVIDER_API_KEY"), BearerToken: env("COPILOT_PROVIDER_BEARER_TOKEN"),
		ModelID: env("COPILOT_PROVIDER_MODEL_ID"), WireModel: env("COPILOT_PROVIDER_WIRE_MODEL"),
	}
	for name, to := range map[string]*int{maxPromptVar: &p.MaxPromptTokens, maxOutputVar: &p.MaxOutputTokens} {
		v := strings.TrimSpace(env(name))
		if v == "" {
			continue
		}
		n, err := strconv.Atoi(v)
		if err != nil || n <= 0 {
			return nil, &model.Error{Kind: model.Setup, Msg: fmt.Sprintf("%s is %q, which is not a number of tokens.", name, v)}
		}
		*to = n
	}
	return p, nil
}

// own is for a provider of the host's own.
func own(cfg *Config, p *Provider, source Source) (*Choice, error) {
	names := sessionNames
	if source == FromEnvironment {
		names = environmentNames
	}
	s, warnings, err := p.open(names, cfg.HTTPClient)
	if err != nil {
		return nil, err
	}
	c := &Choice{Source: source, Settings: p, Warnings: warnings}
	c.Model = model.Info{ID: cmp.Or(cfg.Model, p.ModelID, cfg.Getenv("COPILOT_MODEL"), p.WireModel),
		ContextWindow: p.MaxPromptTokens, MaxOutput: p.MaxOutputTokens}
	c.Model.Name = c.Model.ID
	if c.Model.ContextWindow == 0 {
		c.Model.ContextWindow = DefaultContextWindow
	}
	c.Provider = s
	if c.Model.ID == "" {
		c.Provider = &nameless{server: s}
	}
	return c, nil
}
