package server

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/mcp"
)

// The methods about pages of MCP servers, and about their resources.
func mcpAppsMethods() map[string]handler {
	return map[string]handler{
		"session.mcp.apps.callTool":           read(callAppTool),
		"session.mcp.apps.listTools":          read(listAppTools),
		"session.mcp.apps.readResource":       read(readServerResource("session.mcp.apps.readResource")),
		"session.mcp.apps.diagnose":           read(diagnoseApps),
		"session.mcp.apps.setHostContext":     posted(setHostContext),
		"session.mcp.apps.getHostContext":     posted(getHostContext),
		"session.mcp.resources.list":          read(serverResources("session.mcp.resources.list", "resources/list", "resources")),
		"session.mcp.resources.listTemplates": read(serverResources("session.mcp.resources.listTemplates", "resources/templates/list", "resourceTemplates")),
		"session.mcp.resources.read":          read(readServerResource("session.mcp.resources.read")),
	}
}

type appParams struct {
	target
	ServerName       string          `json:"serverName"`
	OriginServerName string          `json:"originServerName"`
	ToolName         string          `json:"toolName"`
	Arguments        json.RawMessage `json:"arguments"`
}

// allowed reports, as an error, that a page may not do what it asks for: pages need
// the session's capability, and reach their own server only.
func (p *appParams) allowed(op string, s *transom.Session) error {
	switch {
	case !s.MCP().Apps():
		return failKind(op, transom.KindUnsupported, op+" needs the mcp-apps capability: create the session with requestMcpApps, and start the runtime with COPILOT_MCP_APPS=true")
	case p.OriginServerName == "":
		return invalid(op, op+" needs the originServerName of the page that asks (mcp-apps)")
	case p.OriginServerName != p.ServerName:
		return failKind(op, transom.KindDenied, op+": a page of the MCP server "+p.OriginServerName+" may not reach the server "+p.ServerName+" (mcp-apps)")
	}
	return nil
}

// appTools are the tools that a page of a server may call.
func appTools(s *transom.Session, server string) ([]mcp.Tool, error) {
	tools, err := s.MCP().Tools(server)
	return slices.DeleteFunc(slices.Clone(tools), func(t mcp.Tool) bool {
		ui := uiOf(t)
		return ui != nil && ui.Visibility != nil && !slices.Contains(ui.Visibility, "app")
	}), err
}

func callAppTool(ctx context.Context, s *transom.Session, p *appParams) (any, error) {
	const op = "session.mcp.apps.callTool"
	if err := p.allowed(op, s); err != nil {
		return nil, err
	}
	tools, err := appTools(s, p.ServerName)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(tools, func(t mcp.Tool) bool { return t.Name == p.ToolName }) {
		return nil, failKind(op, transom.KindNotFound, "the MCP server "+p.ServerName+" has no tool "+p.ToolName+" that a page may call (mcp-apps)")
	}
	return s.MCP().CallApp(ctx, p.ServerName, p.ToolName, p.Arguments)
}

func listAppTools(_ context.Context, s *transom.Session, p *appParams) (any, error) {
	if err := p.allowed("session.mcp.apps.listTools", s); err != nil {
		return nil, err
	}
	tools, err := appTools(s, p.ServerName)
	list := []json.RawMessage{}
	for _, t := range tools {
		list = append(list, t.Raw)
	}
	return map[string]any{"tools": list}, err
}

type diagnoseResult struct {
	Capability struct {
		Advertised         bool `json:"advertised"`
		FeatureFlagEnabled bool `json:"featureFlagEnabled"`
		SessionHasMCPApps  bool `json:"sessionHasMcpApps"`
	} `json:"capability"`
	Server struct {
		Connected       bool     `json:"connected"`
		SampleToolNames []string `json:"sampleToolNames"`
		ToolCount       int      `json:"toolCount"`
		ToolsWithUIMeta int      `json:"toolsWithUiMeta"`
	} `json:"server"`
}

// maxSamples is how many names of tools a diagnosis has.
const maxSamples = 5

func diagnoseApps(_ context.Context, s *transom.Session, p *appParams) (any, error) {
	var out diagnoseResult
	out.Capability.FeatureFlagEnabled = s.MCP().AppsEnabled()
	out.Capability.SessionHasMCPApps = s.MCP().Apps()
	out.Capability.Advertised = s.MCP().Apps()
	out.Server.SampleToolNames = []string{}
	if out.Server.Connected = s.MCP().Running(p.ServerName); !out.Server.Connected {
		return out, nil
	}
	tools, err := s.MCP().Tools(p.ServerName)
	out.Server.ToolCount = len(tools)
	for _, t := range tools {
		if ui := uiOf(t); ui == nil || ui.ResourceURI == "" && ui.Visibility == nil {
			continue
		}
		if out.Server.ToolsWithUIMeta++; len(out.Server.SampleToolNames) < maxSamples {
			out.Server.SampleToolNames = append(out.Server.SampleToolNames, t.Name)
		}
	}
	return out, err
}

type hostContextParams struct {
	target
	Context json.RawMessage `json:"context"`
}

func setHostContext(q *call, p *hostContextParams) {
	if !present(p.Context) || p.Context[0] != '{' {
		q.Reply(nil, invalid(q.op(), q.op()+" needs a context, an object"))
		return
	}
	q.sess.MCP().SetHostContext(p.Context)
	q.Reply(nil, nil)
}

func getHostContext(q *call, _ *target) {
	q.Reply(map[string]any{"context": q.sess.MCP().HostContext()}, nil)
}

type resourceParams struct {
	target
	ServerName string `json:"serverName"`
	Cursor     string `json:"cursor"`
	URI        string `json:"uri"`
}

// serverResources lists what a server has of resources, one page.
func serverResources(op, method, field string) func(context.Context, *transom.Session, *resourceParams) (any, error) {
	return func(ctx context.Context, s *transom.Session, p *resourceParams) (any, error) {
		params := map[string]any{}
		if p.Cursor != "" {
			params["cursor"] = p.Cursor
		}
		return serverAnswer(ctx, s, op, p.ServerName, method, field, params)
	}
}

func readServerResource(op string) func(context.Context, *transom.Session, *resourceParams) (any, error) {
	return func(ctx context.Context, s *transom.Session, p *resourceParams) (any, error) {
		return serverAnswer(ctx, s, op, p.ServerName, "resources/read", "contents", map[string]any{"uri": p.URI})
	}
}

// serverAnswer passes a request on, and a server's answer back: its list, and where
// it goes on.
func serverAnswer(ctx context.Context, s *transom.Session, op, server, method, field string, params map[string]any) (any, error) {
	raw, err := json.Marshal(params)
	if err != nil {
		return nil, err
	}
	answer, err := s.MCP().Call(ctx, op, server, method, raw)
	if err != nil {
		return nil, err
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(answer, &all); err != nil {
		return nil, err
	}
	out := map[string]any{field: []any{}}
	if present(all[field]) {
		out[field] = all[field]
	}
	if present(all["nextCursor"]) {
		out["nextCursor"] = all["nextCursor"]
	}
	return out, nil
}
