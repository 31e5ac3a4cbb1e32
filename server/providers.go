package server

import (
	"context"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/model"
)

// providerMethods are those about whom a session's requests go to.
func providerMethods() map[string]handler {
	return map[string]handler{
		"session.provider.add":         posted(addProviders),
		"session.provider.getEndpoint": read(providerEndpoint),
		"session.gitHubAuth.getStatus": read(sessionAuth),
	}
}

// wireNamed is one of several providers as hosts give them.
type wireNamed struct {
	Name string `json:"name"`
	wireProvider
}

// wireModel is a model of a named provider as hosts give it.
type wireModel struct {
	ID                     string            `json:"id"`
	Provider               string            `json:"provider"`
	WireModel              string            `json:"wireModel"`
	ModelID                string            `json:"modelId"`
	Name                   string            `json:"name"`
	MaxPromptTokens        int               `json:"maxPromptTokens"`
	MaxContextWindowTokens int               `json:"maxContextWindowTokens"`
	MaxOutputTokens        int               `json:"maxOutputTokens"`
	Capabilities           modelCapabilities `json:"capabilities"`
}

// config is the provider as the runtime takes it.
func (w *wireProvider) config() transom.ProviderConfig {
	return transom.ProviderConfig{
		Type: w.Type, WireAPI: w.WireAPI, Transport: w.Transport, BaseURL: w.BaseURL, AzureAPIVersion: w.Azure.APIVersion,
		APIKey: w.APIKey, BearerToken: w.BearerToken, AsksToken: w.HasBearerTokenProvider, Headers: w.Headers,
		ModelID: w.ModelID, WireModel: w.WireModel, ContextWindow: w.MaxPromptTokens, MaxOutput: w.MaxOutputTokens,
	}
}

func namedProviders(list []wireNamed) []transom.NamedProvider {
	if list == nil {
		return nil
	}
	out := make([]transom.NamedProvider, len(list))
	for i := range list {
		out[i] = transom.NamedProvider{Name: list[i].Name, ProviderConfig: list[i].config()}
	}
	return out
}

func providerModels(list []wireModel) []transom.ModelConfig {
	if list == nil {
		return nil
	}
	out := make([]transom.ModelConfig, len(list))
	for i, m := range list {
		out[i] = transom.ModelConfig{
			ID: m.ID, Provider: m.Provider, WireModel: m.WireModel, ModelID: m.ModelID, Name: m.Name,
			PromptTokens: m.MaxPromptTokens, ContextTokens: m.MaxContextWindowTokens, MaxOutput: m.MaxOutputTokens,
			Vision: m.Capabilities.Supports.Vision, Images: model.ImageLimits(value(m.Capabilities.Limits.Vision)),
		}
	}
	return out
}

// asksToken reports whether the client is to be asked for bearer tokens.
func (p *sessionParams) asksToken() bool {
	if p.Provider != nil && p.Provider.HasBearerTokenProvider {
		return true
	}
	for i := range p.Providers {
		if p.Providers[i].HasBearerTokenProvider {
			return true
		}
	}
	return false
}

type addProvidersParams struct {
	target
	Providers []wireNamed `json:"providers"`
	Models    []wireModel `json:"models"`
}

func addProviders(q *call, p *addProvidersParams) {
	added, err := q.sess.AddProviders(namedProviders(p.Providers), providerModels(p.Models))
	if err != nil {
		q.Reply(nil, fail(q.op(), err))
		return
	}
	models := make([]any, len(added))
	for i, m := range added {
		models[i] = describeModel(m)
	}
	q.Reply(map[string]any{"models": models}, nil)
}

type endpointParams struct {
	target
	ModelID string `json:"modelId"`
}

type endpointResult struct {
	Type      string            `json:"type"`
	WireAPI   string            `json:"wireApi,omitempty"`
	Transport string            `json:"transport,omitempty"`
	BaseURL   string            `json:"baseUrl"`
	APIKey    string            `json:"apiKey,omitempty"`
	Headers   map[string]string `json:"headers"`
}

func providerEndpoint(ctx context.Context, s *transom.Session, p *endpointParams) (any, error) {
	e, err := s.Endpoint(ctx, p.ModelID)
	if err != nil {
		return nil, err
	}
	if e.Headers == nil {
		e.Headers = map[string]string{}
	}
	return endpointResult(e), nil
}

type sessionAuthResult struct {
	authResult
	Plan string `json:"copilotPlan,omitempty"`
}

func sessionAuth(ctx context.Context, s *transom.Session, _ *target) (any, error) {
	a := s.Account(ctx)
	return sessionAuthResult{authResult{a.Authenticated, a.Type, a.Host, a.Login, a.Message}, a.Plan}, nil
}
