package server

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/mcp"
)

// The methods about a session's MCP servers.
func mcpMethods() map[string]handler {
	return map[string]handler{
		"session.mcp.list":            read(listServers),
		"session.mcp.listTools":       read(listServerTools),
		"session.mcp.isServerRunning": read(serverRunning),
		"session.mcp.enable":          read(enableServer),
		"session.mcp.disable":         read(disableServer),
		"session.mcp.startServer":     read(startServer),
		"session.mcp.restartServer":   read(restartServer),
		"session.mcp.stopServer":      read(stopServer),
		"session.mcp.reload":          read(reloadServers),
	}
}

// mcpParams is what session.create and session.resume say about MCP servers.
type mcpParams struct {
	Servers      map[string]json.RawMessage `json:"mcpServers"`
	Disabled     []string                   `json:"disabledMcpServers"`
	EnvValueMode string                     `json:"envValueMode"`
	Apps         bool                       `json:"requestMcpApps"`
	GitHub       *wireGitHubMCP             `json:"githubMcpToolConfig"`

	TokenStorage   *string `json:"mcpOAuthTokenStorage"`
	ClientMetadata *string `json:"authClientIdMetadataUrl"`
}

// login is how the session logs in to servers; nil where nothing was said of it.
func (p *mcpParams) login() *transom.MCPLogin {
	if p.TokenStorage == nil && p.ClientMetadata == nil {
		return nil
	}
	return &transom.MCPLogin{Persist: value(p.TokenStorage) == "persistent", ClientMetadata: value(p.ClientMetadata)}
}

// mcp is the configuration; nil where nothing was said of servers.
func (p *mcpParams) mcp() *transom.MCPConfig {
	if p.Servers == nil && p.Disabled == nil && p.GitHub == nil {
		return nil
	}
	cfg := &transom.MCPConfig{Disabled: p.Disabled, Indirect: p.EnvValueMode == "indirect", Apps: p.Apps, GitHub: p.GitHub.config()}
	for name, raw := range p.Servers {
		if cfg.Servers == nil {
			cfg.Servers = map[string]mcp.Server{}
		}
		server, err := mcp.Parse(raw)
		if err != nil {
			server = mcp.Server{Type: "unreadable (" + err.Error() + ")"} // one that fails, and says why
		}
		cfg.Servers[name] = server
	}
	return cfg
}

type serverResult struct {
	Name                string `json:"name"`
	Status              string `json:"status"`
	Source              string `json:"source,omitempty"`
	SourcePlugin        string `json:"sourcePlugin,omitempty"`
	SourcePluginVersion string `json:"sourcePluginVersion,omitempty"`
	Error               string `json:"error,omitempty"`
	// ProtocolVersion is what the server speaks; the published types do not have it.
	ProtocolVersion string `json:"protocolVersion,omitempty"`
}

type failureResult struct {
	Message   string `json:"message"`
	Timestamp int64  `json:"timestamp"`
}

type sinceResult struct {
	Timestamp int64 `json:"timestamp"`
}

// hostResult is the state of all servers together.
type hostResult struct {
	Clients            []string                 `json:"clients"`
	DisabledServers    []string                 `json:"disabledServers"`
	FailedServers      map[string]failureResult `json:"failedServers"`
	FilteredServers    []string                 `json:"filteredServers"`
	MCP3pEnabled       bool                     `json:"mcp3pEnabled"`
	NeedsAuthServers   map[string]sinceResult   `json:"needsAuthServers"`
	PendingConnections []string                 `json:"pendingConnections"`
}

type serversResult struct {
	Servers []serverResult `json:"servers"`
	Host    *hostResult    `json:"host,omitempty"`
}

// listServers begins to connect to the servers, where nothing was connected yet.
func listServers(_ context.Context, s *transom.Session, _ *target) (any, error) {
	states := s.MCP().List()
	out := serversResult{Servers: []serverResult{}}
	if states == nil {
		return out, nil
	}
	out.Host = &hostResult{
		Clients: []string{}, DisabledServers: []string{}, FailedServers: map[string]failureResult{}, FilteredServers: []string{},
		MCP3pEnabled: true, NeedsAuthServers: map[string]sinceResult{}, PendingConnections: []string{},
	}
	for _, st := range states {
		out.Servers = append(out.Servers, serverResult{
			st.Name, string(st.Status), string(st.Config.Source), st.Config.SourcePlugin, st.Config.SourcePluginVersion, st.Error, st.Protocol,
		})
		switch h := out.Host; st.Status {
		case mcp.Connected:
			h.Clients = append(h.Clients, st.Name)
		case mcp.Disabled:
			h.DisabledServers = append(h.DisabledServers, st.Name)
		case mcp.Failed:
			h.FailedServers[st.Name] = failureResult{st.Error, st.Since.UnixMilli()}
		case mcp.NeedsAuth:
			h.NeedsAuthServers[st.Name] = sinceResult{st.Since.UnixMilli()}
		case mcp.Pending:
			h.PendingConnections = append(h.PendingConnections, st.Name)
		}
	}
	return out, nil
}

type serverParams struct {
	target
	ServerName string          `json:"serverName"`
	Config     json.RawMessage `json:"config"`
}

// named reports, as an error, that no server was named.
func (p *serverParams) named(op string) error {
	if p.ServerName == "" {
		return invalid(op, op+" needs a serverName")
	}
	return nil
}

// config is the configuration that was given; nil is none.
func (p *serverParams) config(op string) (*mcp.Server, error) {
	if !present(p.Config) {
		return nil, p.named(op)
	}
	server, err := mcp.Parse(p.Config)
	if err != nil {
		return nil, invalid(op, fmt.Sprintf("%s: the config of the MCP server %q cannot be read: %v", op, p.ServerName, err))
	}
	return &server, p.named(op)
}

type serverToolResult struct {
	Name        string    `json:"name"`
	Description string    `json:"description,omitempty"`
	UI          *uiResult `json:"ui,omitempty"`
}

// uiResult is what a tool says of the page that shows its results.
type uiResult struct {
	ResourceURI string   `json:"resourceUri,omitempty"`
	Visibility  []string `json:"visibility,omitempty"`
}

func listServerTools(_ context.Context, s *transom.Session, p *serverParams) (any, error) {
	tools, err := s.MCP().Tools(p.ServerName)
	out := []serverToolResult{}
	for _, t := range tools {
		out = append(out, serverToolResult{t.Name, t.Description, uiOf(t)})
	}
	return map[string]any{"tools": out}, err
}

// uiOf reads "_meta.ui" of a tool; nil where it has none.
func uiOf(t mcp.Tool) *uiResult {
	var meta struct {
		UI *uiResult `json:"ui"`
	}
	if len(t.Meta) == 0 || json.Unmarshal(t.Meta, &meta) != nil {
		return nil
	}
	return meta.UI
}

func serverRunning(_ context.Context, s *transom.Session, p *serverParams) (any, error) {
	return map[string]any{"running": s.MCP().Running(p.ServerName)}, nil
}

func enableServer(_ context.Context, s *transom.Session, p *serverParams) (any, error) {
	return nil, s.MCP().Enable(p.ServerName)
}

func disableServer(ctx context.Context, s *transom.Session, p *serverParams) (any, error) {
	return nil, s.MCP().Disable(ctx, p.ServerName)
}

func startServer(ctx context.Context, s *transom.Session, p *serverParams) (any, error) {
	cfg, err := p.config("session.mcp.startServer")
	if err != nil {
		return nil, err
	}
	return nil, s.MCP().Start(ctx, p.ServerName, cfg)
}

func restartServer(ctx context.Context, s *transom.Session, p *serverParams) (any, error) {
	cfg, err := p.config("session.mcp.restartServer")
	if err != nil {
		return nil, err
	}
	return nil, s.MCP().Restart(ctx, p.ServerName, cfg)
}

func stopServer(ctx context.Context, s *transom.Session, p *serverParams) (any, error) {
	return nil, s.MCP().Stop(ctx, p.ServerName)
}

func reloadServers(ctx context.Context, s *transom.Session, _ *target) (any, error) {
	return nil, s.MCP().Reload(ctx)
}
