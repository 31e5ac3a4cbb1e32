package server

import (
	"context"
	"encoding/json"

	"github.com/transom-run/transom/model"
)

type authResult struct {
	IsAuthenticated bool   `json:"isAuthenticated"`
	AuthType        string `json:"authType,omitempty"`
	Host            string `json:"host,omitempty"`
	Login           string `json:"login,omitempty"`
	StatusMessage   string `json:"statusMessage"`
}

// authStatus says which account sessions without one of their own use. It never
// waits for a network that does not answer longer than the runtime's own limit.
func authStatus(ctx context.Context, c *conn, _ *noParams) (any, error) {
	a := c.srv.cfg.Runtime.Account(ctx)
	return authResult{a.Authenticated, a.Type, a.Host, a.Login, a.Message}, nil
}

type modelEntry struct {
	ID           string            `json:"id"`
	Name         string            `json:"name"`
	Capabilities modelCapabilities `json:"capabilities"`
}

type modelCapabilities struct {
	Supports modelSupports `json:"supports"`
	Limits   modelLimits   `json:"limits"`
}

type modelSupports struct {
	Vision          bool `json:"vision"`
	ReasoningEffort bool `json:"reasoningEffort"`
}

type modelLimits struct {
	MaxContextWindowTokens int `json:"max_context_window_tokens"`
	MaxOutputTokens        int `json:"max_output_tokens,omitempty"`

	Vision *wireImageLimits `json:"vision,omitempty"`
}

// describeModel passes on the provider's own description where it has what
// clients need, and else says what is known.
func describeModel(m model.Info) any {
	var own struct {
		ID           string          `json:"id"`
		Name         string          `json:"name"`
		Capabilities json.RawMessage `json:"capabilities"`
	}
	if json.Unmarshal(m.Raw, &own) == nil && own.ID != "" && own.Name != "" && present(own.Capabilities) {
		return m.Raw
	}
	name := m.Name
	if name == "" {
		name = m.ID
	}
	e := modelEntry{ID: m.ID, Name: name, Capabilities: modelCapabilities{
		Supports: modelSupports{Vision: m.Vision},
		Limits:   modelLimits{MaxContextWindowTokens: m.ContextWindow, MaxOutputTokens: m.MaxOutput},
	}}
	if in := m.Images; in.Types != nil || in.Count > 0 || in.Bytes > 0 {
		e.Capabilities.Limits.Vision = &wireImageLimits{in.Types, in.Count, in.Bytes}
	}
	return e
}

// listModels lists what sessions without a provider of their own can use.
func listModels(ctx context.Context, c *conn, _ *noParams) (any, error) {
	models, err := c.srv.cfg.Runtime.Models(ctx)
	if err != nil {
		return nil, err
	}
	entries := make([]any, 0, len(models))
	for _, m := range models {
		entries = append(entries, describeModel(m))
	}
	return map[string]any{"models": entries}, nil
}
