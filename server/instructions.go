package server

import (
	"context"
	"strings"

	"github.com/transom-run/transom"
)

// The methods about what is found in projects besides skills: custom instructions
// and hooks.
func instructionMethods() map[string]handler {
	return map[string]handler{
		"session.instructions.getSources": read(instructionSources),
		"instructions.discover":           aside(discoverInstructions),
		"instructions.getDiscoveryPaths":  plain(instructionPaths),
		"hooks.discover":                  aside(discoverHooks),
	}
}

// instructionSource is a file of custom instructions.
type instructionSource struct {
	ID          string   `json:"id"`
	Label       string   `json:"label"`
	Content     string   `json:"content"`
	SourcePath  string   `json:"sourcePath"`
	Type        string   `json:"type"`     // "repo", or "vscode" for one that may be for some files only
	Location    string   `json:"location"` // "repository" or "working-directory"
	ApplyTo     []string `json:"applyTo,omitempty"`
	Description string   `json:"description,omitempty"`
	ProjectPath string   `json:"projectPath,omitempty"`
}

func wireInstruction(i transom.Instruction, project string) instructionSource {
	w := instructionSource{
		ID: i.Path, Label: i.Name, Content: i.Text, SourcePath: i.Path, Type: "repo", Location: "working-directory",
		ApplyTo: i.ApplyTo, Description: i.Description, ProjectPath: project,
	}
	if strings.HasSuffix(i.Name, ".instructions.md") {
		w.Type = "vscode"
	}
	if i.Repository {
		w.Location, w.SourcePath = "repository", i.Name
	}
	return w
}

func instructionSources(_ context.Context, s *transom.Session, _ *target) (any, error) {
	out := []instructionSource{}
	for _, i := range s.Instructions() {
		out = append(out, wireInstruction(i, ""))
	}
	return map[string]any{"sources": out}, nil
}

type projectsParams struct {
	ProjectPaths     []string `json:"projectPaths"`
	ExcludeHostHooks bool     `json:"excludeHostHooks"`
}

// discoverInstructions reads those of projects; there are none of the host's user.
func discoverInstructions(_ context.Context, c *conn, p *projectsParams) (any, error) {
	out := []instructionSource{}
	for _, project := range p.ProjectPaths {
		for _, i := range c.srv.cfg.Runtime.DiscoverInstructions(project) {
			out = append(out, wireInstruction(i, project))
		}
	}
	return map[string]any{"sources": out}, nil
}

type instructionPath struct {
	Path        string `json:"path"`
	Location    string `json:"location"`
	Kind        string `json:"kind"` // "file" or "directory"
	Preferred   bool   `json:"preferredForCreation"`
	ProjectPath string `json:"projectPath"`
}

func instructionPaths(c *conn, p *projectsParams) (any, error) {
	list := []instructionPath{}
	for _, project := range p.ProjectPaths {
		paths := c.srv.cfg.Runtime.InstructionPaths(project)
		for i, path := range paths {
			kind := "file"
			if i == len(paths)-1 {
				kind = "directory"
			}
			list = append(list, instructionPath{path, "repository", kind, i == 0, project})
		}
	}
	return map[string]any{"paths": list}, nil
}

// discoverHooks finds none that would be run: hooks are the hosts' own. Those of
// plugins are told of.
func discoverHooks(_ context.Context, c *conn, p *projectsParams) (any, error) {
	hooks, warnings := []any{}, []string{}
	if !p.ExcludeHostHooks {
		found, problems := c.srv.cfg.Runtime.PluginHooks()
		for _, h := range found {
			hooks = append(hooks, map[string]any{"id": h.ID, "hookType": h.Event, "origin": "plugin", "source": h.Plugin, "enabled": true})
		}
		warnings = append(warnings, problems...)
	}
	return map[string]any{"hooks": hooks, "errors": []string{}, "warnings": warnings}, nil
}
