package server

import (
	"context"
	"encoding/json"

	"github.com/transom-run/transom"
)

// The methods about the user's configuration of MCP servers.
func mcpConfigMethods() map[string]handler {
	return map[string]handler{
		"mcp.config.list":    aside(listConfigs),
		"mcp.config.add":     aside(addConfig),
		"mcp.config.update":  aside(updateConfig),
		"mcp.config.remove":  aside(removeConfig),
		"mcp.config.enable":  aside(enableConfigs),
		"mcp.config.disable": aside(disableConfigs),
		"mcp.config.reload":  aside(reloadConfigs),
		"mcp.discover":       aside(discoverServers),
	}
}

func listConfigs(_ context.Context, c *conn, _ *noParams) (any, error) {
	servers, err := c.srv.cfg.Runtime.MCPServers()
	return map[string]any{"servers": servers}, err
}

type configParams struct {
	Name   string          `json:"name"`
	Names  []string        `json:"names"`
	Config json.RawMessage `json:"config"`
}

func addConfig(_ context.Context, c *conn, p *configParams) (any, error) {
	return nil, c.srv.cfg.Runtime.SetMCPServer(p.Name, p.Config, false)
}

func updateConfig(_ context.Context, c *conn, p *configParams) (any, error) {
	return nil, c.srv.cfg.Runtime.SetMCPServer(p.Name, p.Config, true)
}

func removeConfig(_ context.Context, c *conn, p *configParams) (any, error) {
	return nil, c.srv.cfg.Runtime.RemoveMCPServer(p.Name)
}

func enableConfigs(_ context.Context, c *conn, p *configParams) (any, error) {
	return nil, c.srv.cfg.Runtime.EnableMCPServers(p.Names, true)
}

func disableConfigs(_ context.Context, c *conn, p *configParams) (any, error) {
	return nil, c.srv.cfg.Runtime.EnableMCPServers(p.Names, false)
}

// reloadConfigs does nothing: the file is read each time it is asked for.
func reloadConfigs(context.Context, *conn, *noParams) (any, error) { return nil, nil }

type discoverServersParams struct {
	WorkingDirectory string `json:"workingDirectory"`
}

type discoveredServer struct {
	Name                string `json:"name"`
	Source              string `json:"source"`
	SourcePlugin        string `json:"sourcePlugin,omitempty"`
	SourcePluginVersion string `json:"sourcePluginVersion,omitempty"`
	Type                string `json:"type"`
	Enabled             bool   `json:"enabled"`
}

func discoverServers(_ context.Context, c *conn, p *discoverServersParams) (any, error) {
	found, err := c.srv.cfg.Runtime.DiscoverMCP(p.WorkingDirectory)
	out := []discoveredServer{}
	for _, d := range found {
		out = append(out, discoveredServer{d.Name, string(d.Config.Source), d.Config.SourcePlugin, d.Config.SourcePluginVersion, d.Config.Transport(), d.Enabled})
	}
	return map[string]any{"servers": out}, err
}

// wireGitHubMCP is what hosts want of GitHub's MCP server.
type wireGitHubMCP struct {
	EnableAllTools     bool     `json:"enableAllTools"`
	AdditionalToolsets []string `json:"additionalToolsets"`
	AdditionalTools    []string `json:"additionalTools"`
	EnableInsidersMode bool     `json:"enableInsidersMode"`
}

func (w *wireGitHubMCP) config() *transom.GitHubMCP {
	if w == nil {
		return nil
	}
	return &transom.GitHubMCP{AllTools: w.EnableAllTools, Toolsets: w.AdditionalToolsets, Tools: w.AdditionalTools, Insiders: w.EnableInsidersMode}
}
