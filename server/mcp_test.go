package server_test

import (
	"strings"
	"testing"
)

// The user's configuration of servers is written, read, changed and discovered.
func TestMCPConfig(t *testing.T) {
	w := play(t)
	c := w.connect(t)
	remote := obj{"type": "http", "url": "https://example.com/mcp", "oauthPublicClient": false, "tools": []any{"a"}, "timeout": 3}
	c.ok("mcp.config.add", obj{"name": "one", "config": remote})
	c.ok("mcp.config.add", obj{"name": "two", "config": obj{"command": "x"}})
	if msg := c.fails(-32012, "mcp.config.add", obj{"name": "one", "config": remote}); !strings.Contains(msg, "mcp.config.update") {
		t.Error(msg)
	}
	c.fails(-32010, "mcp.config.update", obj{"name": "three", "config": remote})
	c.fails(-32602, "mcp.config.add", obj{"name": "three", "config": obj{"type": "memory"}})
	c.ok("mcp.config.update", obj{"name": "two", "config": obj{"command": "y"}})
	c.ok("mcp.config.disable", obj{"names": []any{"two"}})
	var list struct{ Servers map[string]map[string]any }
	c.ok("mcp.config.list", obj{}, &list)
	if len(list.Servers) != 2 || list.Servers["one"]["oauthPublicClient"] != false || list.Servers["two"]["command"] != "y" {
		t.Errorf("%v", list.Servers)
	}
	var found struct {
		Servers []struct {
			Name, Source, Type string
			Enabled            bool
		}
	}
	c.ok("mcp.discover", obj{"workingDirectory": t.TempDir()}, &found)
	if len(found.Servers) != 2 || found.Servers[0].Type != "http" || !found.Servers[0].Enabled || found.Servers[1].Enabled || found.Servers[1].Source != "user" {
		t.Errorf("%+v", found.Servers)
	}
	c.ok("mcp.config.remove", obj{"name": "one"})
	c.fails(-32010, "mcp.config.remove", obj{"name": "one"})
}

// A session without servers says so, in the words that hosts look for.
func TestNoMCP(t *testing.T) {
	w := play(t)
	c := w.connect(t)
	c.ok("session.create", obj{"sessionId": id1})
	in := func(more obj) obj {
		more["sessionId"] = id1
		return more
	}
	var list struct{ Servers []any }
	c.ok("session.mcp.list", in(obj{}), &list)
	if list.Servers == nil || len(list.Servers) > 0 {
		t.Errorf("%v", list.Servers)
	}
	for method, want := range map[string]string{
		"session.mcp.enable": "No MCP host initialized", "session.mcp.disable": "No MCP host initialized", "session.mcp.reload": "MCP config reload not available",
		"session.mcp.oauth.login": "MCP host is not available", "session.mcp.listTools": "not connected", "session.mcp.resources.list": "not connected",
	} {
		if msg := c.fails(-32011, method, in(obj{"serverName": "s"})); !strings.Contains(msg, want) {
			t.Errorf("%s: %s", method, msg)
		}
	}
	if msg := c.fails(-32014, "session.mcp.apps.listTools", in(obj{"serverName": "s", "originServerName": "s"})); !strings.Contains(msg, "mcp-apps") {
		t.Error(msg)
	}
	var sampled struct{ Action, Error string }
	c.ok("session.mcp.executeSampling", in(obj{"requestId": "r", "serverName": "s", "request": obj{}}), &sampled)
	if sampled.Action != "failure" || !strings.Contains(sampled.Error, "has no messages") {
		t.Errorf("%+v", sampled)
	}
	var answered struct{ Success bool }
	c.ok("session.mcp.oauth.handlePendingRequest", in(obj{"requestId": "nobody", "result": obj{"kind": "cancelled"}}), &answered)
	if answered.Success {
		t.Error("an answer to nothing counted")
	}
}
