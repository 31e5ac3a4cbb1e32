package server

import (
	"encoding/json"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/model"
)

// shapeParams is what session.create and session.resume say about model requests:
// what they carry beside the conversation, and what of it they leave out.
type shapeParams struct {
	ClientName       *string           `json:"clientName"`
	ReasoningSummary *string           `json:"reasoningSummary"`
	Citations        *bool             `json:"enableCitations"`
	Capabilities     *wireCapabilities `json:"modelCapabilities"`
	Limits           *wireLimits       `json:"sessionLimits"`
	CAPI             *wireCAPI         `json:"capi"`
	DefaultAgent     *wireDefaultAgent `json:"defaultAgent"`
	ToolSearch       *wireToolSearch   `json:"toolSearch"`

	CustomAgents   []wireAgent `json:"customAgents"`
	Agent          *string     `json:"agent"`
	ExcludedAgents *[]string   `json:"excludedBuiltinAgents"`
	AgentPieces    *bool       `json:"includeSubAgentStreamingEvents"`

	Directories  []string `json:"instructionDirectories"`
	Organization *string  `json:"organizationCustomInstructions"`
	Skip         *bool    `json:"skipCustomInstructions"`
}

// wireCapabilities is what a host knows better of a model than its provider.
type wireCapabilities struct {
	Supports struct {
		Vision           *bool           `json:"vision"`
		ReasoningEffort  *bool           `json:"reasoningEffort"`
		AdaptiveThinking json.RawMessage `json:"adaptive_thinking"`
	} `json:"supports"`
	Limits struct {
		Prompt  int             `json:"max_prompt_tokens"`
		Context int             `json:"max_context_window_tokens"`
		Output  int             `json:"max_output_tokens"`
		Vision  wireImageLimits `json:"vision"`
	} `json:"limits"`
}

// wireImageLimits is what a model takes of images.
type wireImageLimits struct {
	Types []string `json:"supported_media_types,omitempty"`
	Count int      `json:"max_prompt_images,omitempty"`
	Bytes int      `json:"max_prompt_image_size,omitempty"`
}

// vision is what the host says of pictures; nil is nothing.
func (w *wireCapabilities) vision() *bool {
	if w == nil {
		return nil
	}
	return w.Supports.Vision
}

// abilities is what it says of the rest; nil is nothing.
func (w *wireCapabilities) abilities() *transom.Abilities {
	if w == nil {
		return nil
	}
	return &transom.Abilities{
		Reasons: w.Supports.ReasoningEffort, PromptTokens: w.Limits.Prompt, ContextTokens: w.Limits.Context,
		OutputTokens: w.Limits.Output, Images: model.ImageLimits(w.Limits.Vision),
	}
}

// unserved names what has no effect.
func (w *wireCapabilities) unserved() []string {
	if w == nil || !present(w.Supports.AdaptiveThinking) {
		return nil
	}
	return []string{"modelCapabilities.supports.adaptive_thinking"}
}

// wireCAPI is about the models of accounts.
type wireCAPI struct {
	WebSockets *bool `json:"enableWebSocketResponses"`
}

// noSockets is what the host says of WebSockets; nil is nothing.
func (w *wireCAPI) noSockets() *bool {
	if w == nil || w.WebSockets == nil {
		return nil
	}
	off := !*w.WebSockets
	return &off
}

type wireLimits struct {
	MaxAICredits *float64 `json:"maxAiCredits"`
}

type wireToolSearch struct {
	Enabled   *bool `json:"enabled"`
	Threshold *int  `json:"deferThreshold"`
}

// search is what the host says of it; nil is nothing.
func (w *wireToolSearch) search() *transom.ToolSearch {
	if w == nil {
		return nil
	}
	return &transom.ToolSearch{Disabled: w.Enabled != nil && !*w.Enabled, DeferThreshold: w.Threshold}
}

type wireDefaultAgent struct {
	ExcludedTools []string `json:"excludedTools"`
}

// begin puts the settings into the configuration of a new session.
func (p *shapeParams) begin(cfg *transom.SessionConfig) {
	cfg.ClientName, cfg.ReasoningSummary, cfg.Citations = value(p.ClientName), value(p.ReasoningSummary), value(p.Citations)
	cfg.Vision, cfg.Abilities = p.Capabilities.vision(), p.Capabilities.abilities()
	cfg.ToolSearch = p.ToolSearch.search()
	cfg.NoSockets = value(p.CAPI.noSockets())
	if p.Limits != nil {
		cfg.MaxAICredits = value(p.Limits.MaxAICredits)
	}
	if p.DefaultAgent != nil {
		cfg.HiddenTools = p.DefaultAgent.ExcludedTools
	}
	cfg.Agents, cfg.Agent, cfg.ExcludedAgents = customAgents(p.CustomAgents), value(p.Agent), value(p.ExcludedAgents)
	cfg.QuietAgents = p.AgentPieces != nil && !*p.AgentPieces
	cfg.InstructionDirectories, cfg.OrganizationInstructions, cfg.SkipCustomInstructions = p.Directories, value(p.Organization), value(p.Skip)
}

// goOn puts the settings into the configuration of a session that is taken up.
func (p *shapeParams) goOn(cfg *transom.ResumeConfig) {
	cfg.ClientName, cfg.ReasoningSummary, cfg.Citations = p.ClientName, p.ReasoningSummary, p.Citations
	cfg.Vision, cfg.Abilities = p.Capabilities.vision(), p.Capabilities.abilities()
	cfg.ToolSearch = p.ToolSearch.search()
	cfg.NoSockets = p.CAPI.noSockets()
	if p.Limits != nil {
		cfg.MaxAICredits = p.Limits.MaxAICredits
	}
	if p.DefaultAgent != nil {
		cfg.HiddenTools = &p.DefaultAgent.ExcludedTools
	}
	cfg.Agents, cfg.Agent, cfg.ExcludedAgents = customAgents(p.CustomAgents), given(p.Agent), p.ExcludedAgents
	cfg.QuietAgents = p.AgentPieces != nil && !*p.AgentPieces
	cfg.InstructionDirectories, cfg.OrganizationInstructions, cfg.SkipCustomInstructions = p.Directories, p.Organization, p.Skip
}
