package server

import (
	"context"
	"slices"

	"github.com/transom-run/transom"
)

// The methods about agents: which there are, and which one the session's own is.
func agentMethods() map[string]handler {
	return map[string]handler{
		"session.agent.list":                   settled(listAgents),
		"session.agent.getCurrent":             settled(currentAgent),
		"session.agent.select":                 filed(selectAgent),
		"session.agent.deselect":               filed(deselectAgent),
		"session.agent.reload":                 filed(reloadAgents),
		"session.agent.setPrompt":              filed(setAgentPrompt),
		"session.tools.updateSubagentSettings": filed(subagentSettings),
		"session.fleet.start":                  posted(startFleet),
		"agents.discover":                      aside(discoverAgents),
		"agents.getDiscoveryPaths":             aside(agentPaths),
	}
}

// wireAgent is a custom agent as hosts define it.
type wireAgent struct {
	Name            string         `json:"name"`
	DisplayName     string         `json:"displayName"`
	Description     string         `json:"description"`
	Prompt          string         `json:"prompt"`
	Tools           []string       `json:"tools"`
	MCPServers      map[string]any `json:"mcpServers"`
	Infer           *bool          `json:"infer"`
	Skills          []string       `json:"skills"`
	Model           string         `json:"model"`
	ReasoningEffort string         `json:"reasoningEffort"`
}

// agents are the custom agents of a host; nil where it names none.
func customAgents(list []wireAgent) []transom.Agent {
	if list == nil {
		return nil
	}
	out := make([]transom.Agent, 0, len(list))
	for _, a := range list {
		if slices.Contains(a.Tools, "*") {
			a.Tools = nil
		}
		out = append(out, transom.Agent{
			Name: a.Name, DisplayName: a.DisplayName, Description: a.Description, Prompt: a.Prompt, Tools: a.Tools,
			NoInfer: a.Infer != nil && !*a.Infer, Skills: a.Skills, Model: a.Model, ReasoningEffort: a.ReasoningEffort, MCPServers: a.MCPServers,
		})
	}
	return out
}

// agentInfo describes an agent.
type agentInfo struct {
	ID              string         `json:"id"`
	Name            string         `json:"name"`
	DisplayName     string         `json:"displayName"`
	Description     string         `json:"description"`
	Tools           []string       `json:"tools,omitzero"` // an empty list is none, no list is all
	Skills          []string       `json:"skills,omitempty"`
	MCPServers      map[string]any `json:"mcpServers,omitempty"`
	Model           string         `json:"model,omitempty"`
	ReasoningEffort string         `json:"reasoningEffort,omitempty"`
	NoInfer         bool           `json:"disableModelInvocation,omitempty"`
	UserInvocable   bool           `json:"userInvocable"`
	Path            string         `json:"path,omitempty"`
	Source          string         `json:"source,omitempty"`
	Prompt          *string        `json:"prompt,omitempty"`
}

func infoOf(a transom.Agent, prompt bool) agentInfo {
	i := agentInfo{
		ID: a.Name, Name: a.Name, DisplayName: a.DisplayName, Description: a.Description, Tools: a.Tools, Skills: a.Skills,
		MCPServers: a.MCPServers, Model: a.Model, ReasoningEffort: a.ReasoningEffort, NoInfer: a.NoInfer, UserInvocable: true, Path: a.Path, Source: a.Source,
	}
	if prompt {
		i.Prompt = &a.Prompt
	}
	return i
}

type agentList struct {
	Agents []agentInfo `json:"agents"`
}

func infosOf(list []transom.Agent, prompt bool) agentList {
	out := agentList{[]agentInfo{}}
	for _, a := range list {
		out.Agents = append(out.Agents, infoOf(a, prompt))
	}
	return out
}

type listAgentsParams struct {
	target
	BuiltIn bool `json:"includeBuiltInAgents"`
	Prompt  bool `json:"includePrompt"`
}

func listAgents(s *transom.Session, p *listAgentsParams) (any, error) {
	return infosOf(s.Agents(p.BuiltIn), p.Prompt), nil
}

type agentResult struct {
	Agent *agentInfo `json:"agent"`
}

func currentAgent(s *transom.Session, _ *target) (any, error) {
	a := s.CurrentAgent()
	if a == nil {
		return agentResult{}, nil
	}
	i := infoOf(*a, false)
	return agentResult{&i}, nil
}

type selectAgentParams struct {
	target
	Name string `json:"name"`
}

func selectAgent(ctx context.Context, s *transom.Session, p *selectAgentParams) (any, error) {
	if p.Name == "" {
		return nil, invalid("session.agent.select", "session.agent.select needs the name of an agent; session.agent.deselect goes back to the default one")
	}
	if err := s.SelectAgent(ctx, p.Name); err != nil {
		return nil, err
	}
	return currentAgent(s, nil)
}

func deselectAgent(ctx context.Context, s *transom.Session, _ *target) (any, error) {
	return nil, s.SelectAgent(ctx, "")
}

// reloadAgents lists the agents as they are now.
func reloadAgents(ctx context.Context, s *transom.Session, _ *target) (any, error) {
	if err := s.ReloadAgents(ctx); err != nil {
		return nil, err
	}
	return infosOf(s.Agents(false), false), nil
}

type agentPromptParams struct {
	target
	ID     string `json:"id"`
	Prompt string `json:"prompt"`
}

func setAgentPrompt(ctx context.Context, s *transom.Session, p *agentPromptParams) (any, error) {
	return struct{}{}, s.SetAgentPrompt(ctx, p.ID, p.Prompt)
}

type subagentParams struct {
	target
	Subagents *struct {
		Disabled []string                  `json:"disabledSubagents"`
		Agents   map[string]map[string]any `json:"agents"`
	} `json:"subagents"`
}

// subagentSettings switches agents off. Nothing else of the settings has an effect.
func subagentSettings(ctx context.Context, s *transom.Session, p *subagentParams) (any, error) {
	var disabled []string
	if p.Subagents != nil {
		disabled = p.Subagents.Disabled
	}
	return struct{}{}, s.DisableAgents(ctx, disabled)
}

// startFleet sends a request to be worked on with several sub-agents.
func startFleet(q *call, p *sendParams) {
	if p.Prompt == nil || *p.Prompt == "" {
		q.Reply(nil, invalid(q.op(), "session.fleet.start needs a prompt: what the agents are to do"))
		return
	}
	m, err := transom.Fleet(transom.Message{Prompt: *p.Prompt, Attachments: p.Attachments})
	if err != nil {
		q.Reply(nil, fail(q.op(), err))
		return
	}
	sendMessage(q, p, m, func(string) any { return map[string]bool{"started": true} })
}

type discoverParams struct {
	Projects []string `json:"projectPaths"`
	NoHost   bool     `json:"excludeHostAgents"`
}

func discoverAgents(_ context.Context, c *conn, p *discoverParams) (any, error) {
	found, warnings := c.srv.cfg.Runtime.DiscoverAgents(p.Projects, !p.NoHost)
	out := map[string]any{"agents": infosOf(found, true).Agents}
	if len(warnings) > 0 {
		out["warnings"] = warnings
	}
	return out, nil
}

type agentPath struct {
	Path      string `json:"path"`
	Scope     string `json:"scope"`
	Project   string `json:"projectPath,omitempty"`
	Preferred bool   `json:"preferredForCreation"`
}

func agentPaths(_ context.Context, c *conn, p *discoverParams) (any, error) {
	out := []agentPath{}
	for _, at := range c.srv.cfg.Runtime.AgentPlaces(p.Projects, !p.NoHost) {
		out = append(out, agentPath{at.Dir, at.Source, at.Project, at.First})
	}
	return map[string]any{"paths": out}, nil
}
