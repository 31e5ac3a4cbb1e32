package transom

import (
	"context"
	"encoding/json"

	"github.com/transom-run/transom/mcp"
)

// MCP returns the session's MCP servers.
func (h *Session) MCP() MCP { return MCP{h} }

// MCP is the MCP servers of a session.
type MCP struct{ s *Session }

// The texts that hosts look for where a session has no MCP servers.
const (
	noMCPHost   = "No MCP host initialized"
	noMCPReload = "MCP config reload not available"
)

// host is the session's host of servers. Without one, it is a WrongState error.
func (m MCP) host(op, without string) (mcp.Host, error) {
	if h := m.s.sess.hostOf(); h != nil {
		return h, nil
	}
	return nil, &Error{Op: op, Kind: KindWrongState, SessionID: m.s.id, Msg: without + ": session " + m.s.id + " has no MCP servers; give some with session.create or session.resume"}
}

// refused is the error of something that a server, or its state, does not let be
// done.
func (m MCP) refused(op string, err error) error {
	if err == nil || KindOf(err) != KindInternal {
		return err
	}
	if ctx := wrap(op, m.s.id, err); KindOf(ctx) != KindInternal {
		return ctx
	}
	return &Error{Op: op, Kind: KindWrongState, SessionID: m.s.id, Msg: err.Error(), Err: err}
}

// done has the next model call see what was done to a server, and is its error.
func (m MCP) done(op string, err error) error {
	m.s.sess.changed()
	return m.refused(op, err)
}

// List says how the servers stand, and begins to connect to those that nothing was
// connected to yet.
func (m MCP) List() []mcp.State {
	h := m.s.sess.hostOf()
	if h == nil {
		return nil
	}
	h.Start()
	return h.States()
}

// Settle connects to the servers and waits until each is connected or has failed.
func (m MCP) Settle(ctx context.Context) error {
	h := m.s.sess.hostOf()
	if h == nil {
		return nil
	}
	h.Start()
	return m.done("session.mcp.list", h.Settle(ctx))
}

// Running reports whether a server is connected.
func (m MCP) Running(name string) bool {
	if h := m.s.sess.hostOf(); h != nil {
		for _, st := range h.States() {
			if st.Name == name {
				return st.Status == mcp.Connected
			}
		}
	}
	return false
}

// Tools lists the tools of a connected server, those included that the model is
// not offered.
func (m MCP) Tools(name string) ([]mcp.Tool, error) {
	const op = "session.mcp.listTools"
	h, err := m.host(op, "The MCP server "+name+" is not connected")
	if err != nil {
		return nil, err
	}
	tools, err := h.ListTools(name)
	return tools, m.refused(op, err)
}

// Enable lets a server run that was disabled, for this session.
func (m MCP) Enable(name string) error {
	const op = "session.mcp.enable"
	h, err := m.host(op, noMCPHost)
	if err != nil {
		return err
	}
	return m.refused(op, h.Enable(name))
}

// Disable ends a server and keeps it from running, for this session.
func (m MCP) Disable(ctx context.Context, name string) error {
	const op = "session.mcp.disable"
	h, err := m.host(op, noMCPHost)
	if err != nil {
		return err
	}
	return m.done(op, h.Disable(ctx, name))
}

// Start connects to a server that is not connected; cfg, where given, is its
// configuration from now on, and may be that of a server the session did not have.
func (m MCP) Start(ctx context.Context, name string, cfg *mcp.Server) error {
	if cfg == nil && m.Running(name) {
		return nil
	}
	return m.run(ctx, "session.mcp.startServer", name, cfg)
}

// Restart ends a server's connection and makes a new one.
func (m MCP) Restart(ctx context.Context, name string, cfg *mcp.Server) error {
	return m.run(ctx, "session.mcp.restartServer", name, cfg)
}

func (m MCP) run(ctx context.Context, op, name string, cfg *mcp.Server) error {
	s := m.s.sess
	if cfg != nil {
		m.s.rt.keys.server(*cfg)
		if _, err := m.s.rt.hosted(s); err != nil {
			return wrap(op, m.s.id, err)
		}
	}
	h, err := m.host(op, noMCPHost)
	if err != nil {
		return err
	}
	return m.done(op, h.Run(ctx, name, cfg))
}

// Stop ends a server's connection, and its process.
func (m MCP) Stop(ctx context.Context, name string) error {
	const op = "session.mcp.stopServer"
	h, err := m.host(op, noMCPHost)
	if err != nil {
		return err
	}
	return m.done(op, h.Stop(ctx, name))
}

// Reload reads the configurations anew and connects to every enabled server that
// is not connected.
func (m MCP) Reload(ctx context.Context) error {
	const op = "session.mcp.reload"
	h, err := m.host(op, noMCPReload)
	if err != nil {
		return err
	}
	if _, err := m.s.rt.serve(m.s.sess, nil, m.s.sess.View().Dir); err != nil {
		return wrap(op, m.s.id, err)
	}
	for _, st := range h.States() {
		if st.Status == mcp.Failed || st.Status == mcp.NeedsAuth || st.Status == mcp.Stopped {
			_ = h.Run(ctx, st.Name, nil) // its state says why not
		}
	}
	h.Start()
	return nil
}

// Call sends a request to a connected server and returns its result, as MCP has
// them: "tools/call", "resources/list", "resources/templates/list" or
// "resources/read". It is the host's own call: no hook and no permission is asked.
func (m MCP) Call(ctx context.Context, op, server, method string, params json.RawMessage) (json.RawMessage, error) {
	h, err := m.host(op, "The MCP server "+server+" is not connected")
	if err != nil {
		return nil, err
	}
	raw, err := h.Call(ctx, server, method, params)
	return raw, m.refused(op, err)
}
