package server

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/internal/jsonrpc2"
	"github.com/transom-run/transom/tool"
)

// fieldRule says about a known setting that is not served which of its values
// need no warning.
type fieldRule struct {
	name string
	// harmless values have no effect to miss: those listed, besides the empty
	// ones (null, false, 0, "", [], {} and {"enabled":false}).
	harmless []string
	// any value is harmless: the setting describes the client, or switches
	// something off, or shapes something that is not there.
	any bool
}

// sessionFields are the settings of session.create and session.resume that are
// known and not served. Unknown ones are passed over without a word.
var sessionFields = []fieldRule{
	{name: "additionalDirectories"},
	{name: "askUserVariant", any: true},
	{name: "cloud"},
	{name: "coauthorEnabled", any: true},
	{name: "configDir"},
	{name: "customAgentsLocalOnly", any: true},
	{name: "embeddingCacheStorage", any: true},
	{name: "enableFileHooks"},
	{name: "enableGitHubTelemetryForwarding"},
	{name: "enableHostGitOperations"},
	{name: "enableManagedSettings"},
	{name: "enableOnDemandInstructionDiscovery"},
	{name: "enableSessionStore"},
	{name: "enableSessionTelemetry", any: true},
	{name: "expAssignments", any: true},
	{name: "featureFlags", any: true},
	{name: "gitHubTokenProviderRegistrationId"},
	{name: "installedPlugins"},
	{name: "isExperimentalMode", any: true},
	{name: "largeOutput"},
	{name: "managedSettings"},
	{name: "manageScheduleEnabled"},
	{name: "memory"},
	{name: "remoteSession", harmless: []string{`"off"`}},
	{name: "requestCanvasRenderer"},
	{name: "requestedEnvironmentVariables"},
	{name: "skipEmbeddingRetrieval", any: true},
	{name: "toolFilterPrecedence", harmless: []string{`"excluded"`}},
}

// optionFields are the settings that only session.options.update has, besides
// those of sessionFields.
var optionFields = []fieldRule{
	{name: "additionalContentExclusionPolicies"},
	{name: "agentContext", any: true},
	{name: "allowAllMcpServerInstructions"},
	{name: "capi"},
	{name: "askUserDisabled", any: true},
	{name: "continueOnAutoMode"},
	{name: "disabledSkills", any: true},
	{name: "enableConfigDiscovery"},
	{name: "enableSkills"},
	{name: "pluginDirectories"},
	{name: "skillDirectories"},
	{name: "clientName", any: true},
	{name: "copilotUrl"},
	{name: "defaultAgent"},
	{name: "disabledInstructionSources", any: true},
	{name: "enableFileChangeTracking"},
	{name: "enableReasoningSummaries"},
	{name: "enableScriptSafety"},
	{name: "eventsLogDirectory"},
	{name: "eventsLogIncludesSubagents", any: true},
	{name: "includedBuiltinAgents"},
	{name: "includedBuiltinSkills"},
	{name: "integrationId", any: true},
	{name: "instructionDirectories"},
	{name: "logInteractiveShells", any: true},
	{name: "lspClientName", any: true},
	{name: "maxInlineBinaryBytes"},
	{name: "modelCapabilities"},
	{name: "models"},
	{name: "organizationCustomInstructions"},
	{name: "provider"},
	{name: "providers"},
	{name: "runningInInteractiveMode", any: true},
	{name: "sandboxConfig"},
	{name: "sandboxConfigSource", any: true},
	{name: "sessionCapabilities", any: true},
	{name: "shell"},
	{name: "shellInitProfile", any: true},
	{name: "shellProcessFlags"},
	{name: "suppressCustomAgentPrompt", any: true},
	{name: "trajectoryFile"},
	{name: "verbosity"},
}

// unservedFields lists the known settings that were given a value with an effect.
func unservedFields(given map[string]json.RawMessage, rules ...[]fieldRule) []string {
	var out []string
	for _, list := range rules {
		for _, r := range list {
			v, ok := given[r.name]
			if !ok || r.any || isEmpty(v) || slices.Contains(r.harmless, string(v)) {
				continue
			}
			out = append(out, r.name)
		}
	}
	return out
}

// isEmpty reports whether a value says "nothing" or "off".
func isEmpty(v json.RawMessage) bool {
	switch string(bytes.TrimSpace(v)) {
	case "", "null", "false", "0", `""`, "[]", "{}":
		return true
	}
	if v[0] != '{' {
		return false
	}
	var o struct {
		Enabled *bool `json:"enabled"`
	}
	return json.Unmarshal(v, &o) == nil && o.Enabled != nil && !*o.Enabled
}

// decode reads the params and notes what of them is not served.
func (p *sessionParams) decode(req jsonrpc2.Request, extensions bool) error {
	given, err := decodeGiven(req, p)
	if err != nil {
		return err
	}
	p.unserved = append(unservedFields(given, sessionFields), p.Capabilities.unserved()...)
	if p.RequestExtensions && !extensions {
		p.unserved = append(p.unserved, "requestExtensions")
	}
	return nil
}

func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// create is the configuration of a new session.
func (p *sessionParams) create(c *conn) transom.SessionConfig {
	cfg := transom.SessionConfig{
		ID: p.SessionID, Trace: p.at(), Model: value(p.Model), ReasoningEffort: value(p.ReasoningEffort), ContextTier: value(p.ContextTier), Streaming: value(p.Streaming),
		Tools: p.tools(), AvailableTools: value(p.AvailableTools), ExcludedTools: value(p.ExcludedTools),
		Provider: p.provider(), Providers: namedProviders(p.Providers), Models: providerModels(p.Models),
		GitHubToken: value(p.GitHubToken), Dir: value(p.WorkingDirectory),
		RequestPermission: p.RequestPermission, OnHook: c.hooks(p), OnRequest: c.requests(), Answers: p.answers(),
		Elicits: p.RequestElicitation, Commands: p.commands(), Compaction: p.InfiniteSessions.compaction(), TrackFiles: p.TrackFiles, Unserved: p.unserved,
	}
	if s := p.system(); s != nil {
		cfg.SystemMessage = *s
	}
	cfg.MCP, cfg.MCPLogin = p.mcp(), value(p.login())
	p.begin(&cfg)
	cfg.Skills, cfg.ConfigDiscovery, cfg.PluginDirectories = p.skills(), value(p.ConfigDiscovery), p.PluginDirectories
	cfg.Factories = p.Factories
	cfg.Canvases, cfg.CanvasProvider = p.canvases(), p.canvasParams.provider()
	return cfg
}

// resume is the configuration of a session that is taken up: what was left out
// stays as it is.
func (p *sessionParams) resume(c *conn) transom.ResumeConfig {
	cfg := transom.ResumeConfig{
		Trace: p.at(),
		Model: given(p.Model), ReasoningEffort: given(p.ReasoningEffort), ContextTier: p.ContextTier, Streaming: p.Streaming, Tools: p.tools(),
		AvailableTools: p.AvailableTools, ExcludedTools: p.ExcludedTools, SystemMessage: p.system(),
		Provider: p.provider(), Providers: namedProviders(p.Providers), Models: providerModels(p.Models),
		GitHubToken: given(p.GitHubToken), Dir: given(p.WorkingDirectory),
		RequestPermission: p.RequestPermission && c.only == "", ContinuePendingWork: p.ContinuePendingWork, Quiet: p.DisableResume,
		OnHook: c.hooks(p), OnRequest: c.requests(), Answers: p.answers(),
		Elicits: p.RequestElicitation, Commands: p.commands(), Compaction: p.InfiniteSessions.compaction(), TrackFiles: p.TrackFiles, Unserved: p.unserved,
	}
	cfg.MCP, cfg.MCPLogin = p.mcp(), p.login()
	p.goOn(&cfg)
	cfg.Skills, cfg.ConfigDiscovery, cfg.PluginDirectories = p.skills(), p.ConfigDiscovery, p.PluginDirectories
	cfg.Factories = p.Factories
	cfg.Canvases, cfg.CanvasProvider, cfg.OpenCanvases = p.canvases(), p.canvasParams.provider(), p.OpenCanvases
	return cfg
}

// given takes an empty text as one that was left out.
func given(s *string) *string {
	if s == nil || *s == "" {
		return nil
	}
	return s
}

func (p *sessionParams) tools() []tool.Tool {
	if p.Tools == nil {
		return nil
	}
	out := make([]tool.Tool, 0, len(p.Tools))
	for _, t := range p.Tools {
		w := tool.Tool{
			Name: t.Name, Description: t.Description, IsTerminal: t.IsTerminal, SkipPermission: t.SkipPermission,
			OverridesBuiltIn: t.OverridesBuiltInTool, Defer: t.Defer,
		}
		if present(t.Parameters) {
			w.Parameters = t.Parameters
		}
		if present(t.Metadata) {
			w.Metadata = t.Metadata
		}
		out = append(out, w)
	}
	return out
}

// commands are what the client registered; nameless ones are passed over.
func (p *sessionParams) commands() []transom.Slash {
	var out []transom.Slash
	for _, c := range p.Commands {
		if name := strings.TrimLeft(c.Name, "/"); name != "" {
			out = append(out, transom.Slash{Name: name, Description: c.Description})
		}
	}
	return out
}

func (p *sessionParams) system() *transom.SystemMessage {
	if p.SystemMessage == nil {
		return nil
	}
	return &transom.SystemMessage{Mode: p.SystemMessage.Mode, Content: p.SystemMessage.Content, Sections: p.SystemMessage.Sections}
}

func (p *sessionParams) provider() *transom.ProviderConfig {
	if p.Provider == nil {
		return nil
	}
	cfg := p.Provider.config()
	return &cfg
}
