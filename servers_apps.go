package transom

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/mcp"
)

// AppsEnabled reports whether this runtime lets pages of MCP servers be shown:
// COPILOT_MCP_APPS or MCP_APPS says so.
func (m MCP) AppsEnabled() bool { return m.s.rt.appsEnabled() }

func (r *Runtime) appsEnabled() bool {
	for _, name := range []string{"COPILOT_MCP_APPS", "MCP_APPS"} {
		if v := strings.ToLower(r.cfg.Getenv(name)); v == "true" || v == "1" {
			return true
		}
	}
	return false
}

// Apps reports whether pages of MCP servers can be shown in this session: the
// runtime lets them, and the host asked for it.
func (m MCP) Apps() bool {
	v := &m.s.sess.servers
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.cfg.Apps && m.s.rt.appsEnabled()
}

// CallApp calls a tool for a page of its server, and tells all clients what came of
// it. It is no part of the conversation: neither hooks nor permissions are asked.
func (m MCP) CallApp(ctx context.Context, server, tool string, args json.RawMessage) (json.RawMessage, error) {
	const op = "session.mcp.apps.callTool"
	if len(args) == 0 || string(args) == "null" {
		args = json.RawMessage("{}")
	}
	params, err := json.Marshal(map[string]any{"name": tool, "arguments": args})
	if err != nil {
		return nil, wrap(op, m.s.id, err)
	}
	e := event.MCPAppToolCallComplete{ServerName: server, ToolName: tool, Arguments: args}
	begun := time.Now()
	raw, err := m.Call(ctx, op, server, "tools/call", params)
	e.DurationMs = time.Since(begun).Milliseconds()
	var result struct {
		IsError bool `json:"isError"`
	}
	switch {
	case err != nil:
		e.Error = &event.MCPAppError{Message: err.Error()}
	case json.Unmarshal(raw, &result) != nil:
		err = &Error{Op: op, Kind: KindUpstream, SessionID: m.s.id, Msg: "the MCP server's result is no object", Err: errors.New(server)}
		e.Error = &event.MCPAppError{Message: err.Error()}
	default:
		e.Result, e.Success = raw, !result.IsError
	}
	m.s.sess.tell(e)
	return raw, err
}

// SetHostContext says what pages are told about the host, an object of the
// protocol; HostContext returns it.
func (m MCP) SetHostContext(raw json.RawMessage) {
	v := &m.s.sess.servers
	v.mu.Lock()
	defer v.mu.Unlock()
	v.context = raw
}

// HostContext returns what pages are told about the host.
func (m MCP) HostContext() json.RawMessage {
	v := &m.s.sess.servers
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.context == nil {
		return json.RawMessage("{}")
	}
	return v.context
}

// SetIndirect says whether values in configurations of servers may stand for those
// of variables, for connections that are made from now on.
func (m MCP) SetIndirect(indirect bool) {
	v := &m.s.sess.servers
	v.mu.Lock()
	defer v.mu.Unlock()
	v.cfg.Indirect = indirect
}

// RemoveGitHub takes GitHub's own server out of the session; false where it has
// none but one of the same name that somebody configured.
func (m MCP) RemoveGitHub() (bool, error) {
	v := &m.s.sess.servers
	v.mu.Lock()
	had := v.cfg.GitHub != nil && v.all[gitHubServer].Source == mcp.BuiltIn
	v.cfg.GitHub = nil
	v.mu.Unlock()
	if !had {
		return false, nil
	}
	_, err := m.s.rt.serve(m.s.sess, nil, m.s.sess.View().Dir)
	return err == nil, wrap("session.mcp.removeGitHub", m.s.id, err)
}
