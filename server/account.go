package server

import (
	"context"

	"github.com/transom-run/transom"
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

	SupportedReasoningEfforts []string `json:"supportedReasoningEfforts,omitempty"`
	DefaultReasoningEffort    string   `json:"defaultReasoningEffort,omitempty"`
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
	MaxPromptTokens        int `json:"max_prompt_tokens,omitempty"`
	MaxContextWindowTokens int `json:"max_context_window_tokens"`
}

func entryOf(m transom.ModelInfo) modelEntry {
	return modelEntry{
		ID: m.ID, Name: m.Name,
		Capabilities: modelCapabilities{
			Supports: modelSupports{Vision: m.Vision, ReasoningEffort: len(m.ReasoningEfforts) > 0},
			Limits:   modelLimits{MaxPromptTokens: m.PromptTokens, MaxContextWindowTokens: m.ContextWindow},
		},
		SupportedReasoningEfforts: m.ReasoningEfforts, DefaultReasoningEffort: m.DefaultEffort,
	}
}

// listModels lists what sessions without a provider of their own can use.
func listModels(ctx context.Context, c *conn, _ *noParams) (any, error) {
	models, err := c.srv.cfg.Runtime.Models(ctx)
	if err != nil {
		return nil, err
	}
	entries := make([]modelEntry, 0, len(models))
	for _, m := range models {
		entries = append(entries, entryOf(m))
	}
	return map[string]any{"models": entries}, nil
}
