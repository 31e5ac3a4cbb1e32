package server

import (
	"context"
	"strings"

	"github.com/transom-run/transom"
)

// The methods about skills.
func skillMethods() map[string]handler {
	return map[string]handler{
		"session.skills.list":         settled(listSkills),
		"session.skills.enable":       waiting(enableSkill),
		"session.skills.disable":      waiting(disableSkill),
		"session.skills.reload":       waiting(reloadSkills),
		"session.skills.ensureLoaded": settled(ensureSkills),
		"session.skills.getInvoked":   read(invokedSkills),

		"skills.discover":                 aside(discoverSkills),
		"skills.getDiscoveryPaths":        plain(skillPaths),
		"skills.config.setDisabledSkills": aside(setDisabledSkills),
		"skills.config.setSkillDisabled":  aside(setSkillDisabled),
	}
}

// skillParams is what session.create and session.resume say about skills.
type skillParams struct {
	SkillDirectories []string `json:"skillDirectories"`
	DisabledSkills   []string `json:"disabledSkills"`
	EnableSkills     *bool    `json:"enableSkills"`
	ConfigDiscovery  *bool    `json:"enableConfigDiscovery"`

	PluginDirectories []string `json:"pluginDirectories"`
}

func (p *skillParams) skills() transom.SkillConfig {
	return transom.SkillConfig{Directories: p.SkillDirectories, Disabled: p.DisabledSkills, Enabled: p.EnableSkills}
}

type wireSkill struct {
	Name          string `json:"name"`
	CommandName   string `json:"commandName,omitempty"`
	Description   string `json:"description"`
	ArgumentHint  string `json:"argumentHint,omitempty"`
	Source        string `json:"source"`
	UserInvocable bool   `json:"userInvocable"`
	Enabled       bool   `json:"enabled"`
	Path          string `json:"path,omitempty"`
	ProjectPath   string `json:"projectPath,omitempty"`
	PluginName    string `json:"pluginName,omitempty"`
}

func wireSkills(all []transom.Skill) []wireSkill {
	out := make([]wireSkill, 0, len(all))
	for _, k := range all {
		out = append(out, wireSkill{
			k.Name, k.CommandName, k.Description, k.ArgumentHint, k.Source, k.UserInvocable, k.Enabled, k.Path, k.ProjectPath, k.PluginName,
		})
	}
	return out
}

func listSkills(s *transom.Session, _ *target) (any, error) {
	return map[string]any{"skills": wireSkills(s.Skills())}, nil
}

type skillNameParams struct {
	target
	Name string `json:"name"`
}

func enableSkill(ctx context.Context, s *transom.Session, p *skillNameParams) (any, error) {
	return nil, s.EnableSkill(ctx, p.Name)
}

func disableSkill(ctx context.Context, s *transom.Session, p *skillNameParams) (any, error) {
	return nil, s.DisableSkill(ctx, p.Name)
}

func reloadSkills(ctx context.Context, s *transom.Session, _ *target) (any, error) {
	problems, err := s.ReloadSkills(ctx)
	return map[string]any{"warnings": texts(problems.Warnings), "errors": texts(problems.Errors)}, err
}

// texts is a list that is never null.
func texts(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// ensureSkills has nothing to do: a session's skills are read when it begins.
func ensureSkills(*transom.Session, *target) (any, error) { return struct{}{}, nil }

type wireInvoked struct {
	Name          string   `json:"name"`
	Path          string   `json:"path"`
	Content       string   `json:"content"`
	AllowedTools  []string `json:"allowedTools,omitempty"`
	InvokedAtTurn int      `json:"invokedAtTurn"`
}

func invokedSkills(_ context.Context, s *transom.Session, _ *target) (any, error) {
	all, err := s.InvokedSkills()
	list := make([]wireInvoked, 0, len(all))
	for _, k := range all {
		list = append(list, wireInvoked{k.Name, k.Path, k.Content, k.AllowedTools, k.Turn})
	}
	return map[string]any{"skills": list}, err
}

type discoverSkillsParams struct {
	ProjectPaths      []string `json:"projectPaths"`
	SkillDirectories  []string `json:"skillDirectories"`
	ExcludeHostSkills bool     `json:"excludeHostSkills"`
}

func discoverSkills(_ context.Context, c *conn, p *discoverSkillsParams) (any, error) {
	found, problems := c.srv.cfg.Runtime.DiscoverSkills(transom.SkillQuery{
		Projects: p.ProjectPaths, Directories: p.SkillDirectories, ProjectsOnly: p.ExcludeHostSkills,
	})
	errs := texts(problems.Errors)
	if p.ExcludeHostSkills {
		errs = []string{} // they hold paths of the host
	}
	return map[string]any{"skills": wireSkills(found), "errors": errs}, nil
}

type wirePath struct {
	Path        string `json:"path"`
	Scope       string `json:"scope"`
	Preferred   bool   `json:"preferredForCreation"`
	ProjectPath string `json:"projectPath,omitempty"`
}

func skillPaths(c *conn, p *discoverSkillsParams) (any, error) {
	list := []wirePath{}
	for _, d := range c.srv.cfg.Runtime.SkillPaths(p.ProjectPaths, p.ExcludeHostSkills) {
		list = append(list, wirePath{d.Path, d.Scope, d.Preferred, d.Project})
	}
	return map[string]any{"paths": list}, nil
}

type disabledSkillsParams struct {
	DisabledSkills []string `json:"disabledSkills"`
	Name           string   `json:"name"`
	Disabled       bool     `json:"disabled"`
}

func setDisabledSkills(_ context.Context, c *conn, p *disabledSkillsParams) (any, error) {
	return nil, c.srv.cfg.Runtime.DisableSkills(p.DisabledSkills)
}

func setSkillDisabled(_ context.Context, c *conn, p *disabledSkillsParams) (any, error) {
	if strings.TrimSpace(p.Name) == "" {
		return nil, invalid("skills.config.setSkillDisabled", "skills.config.setSkillDisabled needs the name of a skill")
	}
	return nil, c.srv.cfg.Runtime.SetSkillDisabled(p.Name, p.Disabled)
}

type agentPrompt struct {
	Kind          string `json:"kind"` // "agent-prompt"
	Prompt        string `json:"prompt"`
	DisplayPrompt string `json:"displayPrompt"`
}

// invokeSkill is what a client sends to begin a skill.
func invokeSkill(s *transom.Session, name, input string) (any, error) {
	m, err := s.SkillPrompt(name, input)
	return agentPrompt{"agent-prompt", m.Prompt, m.DisplayPrompt}, err
}
