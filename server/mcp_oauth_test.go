package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/eventlog/memlog"
	"github.com/transom-run/transom/mcp/host"
	"github.com/transom-run/transom/mcp/mcptest"
	"github.com/transom-run/transom/model/scripted"
	"github.com/transom-run/transom/server"
)

// becomes waits until a server has come to a state, from a place on.
func (c *client) becomes(from int, name, want string) int {
	c.t.Helper()
	return c.await(from, name+" "+want, func(f frame) bool {
		var d struct{ ServerName, Status string }
		return f.event.Type == "session.mcp_server_status_changed" && json.Unmarshal(f.event.Data, &d) == nil && d.ServerName == name && d.Status == want
	}) + 1
}

// heard is all that the server has said.
func (c *client) heard() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var b strings.Builder
	for _, f := range c.frames {
		fmt.Fprintf(&b, "%s %s %s %v\n", f.Method, f.Params, f.Result, f.Error)
	}
	return b.String()
}

// The methods about tokens of MCP servers, as they stand on the wire.
func TestMCPOAuth(t *testing.T) {
	g := mcptest.NewGuarded()
	defer g.Close()
	w := worldOf(t, transom.Config{
		Store: memlog.New(), Provider: scripted.New(scripted.Config{}), MCP: host.New, Dir: t.TempDir(), Getenv: func(string) string { return "" },
	}, server.Config{})
	c := w.connect(t)
	in := func(more obj) obj {
		more["sessionId"] = id1
		return more
	}
	c.ok("session.create", in(obj{"mcpOAuthTokenStorage": "in-memory", "mcpServers": obj{
		"s": obj{"type": "http", "url": g.URL(), "auth": true}, "local": obj{"command": "/nowhere"},
	}}))
	c.ok("session.eventLog.registerInterest", in(obj{"eventType": "mcp.oauth_required"}))
	c.ok("session.mcp.list", in(obj{}))
	var asked struct{ RequestID, Reason string }
	c.awaitEvent("mcp.oauth_required", &asked)
	var probed struct {
		Status, Reason, Error string
		HTTPResponse          *struct {
			StatusCode int
			Headers    []struct{ Name, Value string }
			Body       *string
		}
		WWWAuthenticateParams *struct{ ResourceMetadataURL, Scope string }
	}
	c.ok("session.mcp.oauth.probe", in(obj{"serverName": "s"}), &probed)
	if probed.Status != "needs-auth" || probed.Reason != "initial" || probed.HTTPResponse == nil || probed.HTTPResponse.StatusCode != 401 ||
		probed.HTTPResponse.Body == nil || probed.WWWAuthenticateParams == nil || probed.WWWAuthenticateParams.Scope != "mcp.read" {
		t.Errorf("%+v", probed)
	}
	c.ok("session.mcp.oauth.probe", in(obj{"serverName": "nobody"}), &probed)
	if probed.Status != "failed" || probed.Error == "" {
		t.Errorf("%+v", probed)
	}
	c.fails(-32602, "session.mcp.oauth.probe", in(obj{}))
	var done struct{ Success bool }
	c.ok("session.mcp.oauth.respond", in(obj{"requestId": asked.RequestID}), &done)
	at := c.becomes(0, "s", "needs-auth")
	c.ok("session.mcp.oauth.respond", in(obj{"requestId": asked.RequestID}))
	var completed struct{ RequestID, Outcome string }
	if c.awaitEvent("mcp.oauth_completed", &completed); !done.Success || completed.RequestID != asked.RequestID || completed.Outcome != "cancelled" {
		t.Errorf("%+v, %+v", done, completed)
	}
	for name, want := range map[string]string{"nobody": "is not configured", "local": "not a remote server"} {
		code := map[string]int{"nobody": -32010, "local": -32602}[name]
		if msg := c.fails(code, "session.mcp.oauth.login", in(obj{"serverName": name})); !strings.Contains(msg, want) {
			t.Error(msg)
		}
	}
	if msg := c.fails(-32011, "session.mcp.oauth.login", in(obj{"serverName": "s", "grantType": "client_credentials"})); !strings.Contains(msg, "clientSecret") {
		t.Error(msg)
	}
	var login struct{ AuthorizationURL string }
	c.ok("session.mcp.oauth.login", in(obj{"serverName": "s", "clientName": "App", "callbackSuccessMessage": "Back."}), &login)
	if text, err := g.Approve(login.AuthorizationURL); err != nil || !strings.Contains(text, "Back.") {
		t.Fatalf("%q, %v", text, err)
	}
	at = c.becomes(at, "s", "connected")
	c.ok("session.mcp.oauth.login", in(obj{"serverName": "s"}), &login)
	login.AuthorizationURL = ""
	c.ok("session.mcp.oauth.login", in(obj{"serverName": "s"}), &login)
	if login.AuthorizationURL != "" {
		t.Errorf("a page to open, though it is connected: %s", login.AuthorizationURL)
	}
	c.ok("session.mcp.oauth.authenticationStateChanged", in(obj{"serverName": "s", "refreshSessionToken": true}))
	at = c.becomes(at, "s", "connected")
	var moved struct{ MovedToBackground *bool }
	c.ok("session.mcp.moveLoadingToBackground", in(obj{}), &moved)
	if moved.MovedToBackground == nil || *moved.MovedToBackground || g.Count("refresh_token") != 1 {
		t.Errorf("%+v, %d refreshes", moved, g.Count("refresh_token"))
	}
	// The server repeats the token that it refuses; the hosts are asked for another.
	g.Expire(true)
	c.send("session.mcp.restartServer", in(obj{"serverName": "s"}))
	c.eventFrom(at, "mcp.oauth_required", &asked)
	if asked.Reason != "refresh" || !strings.Contains(c.heard(), "who are you Bearer ******") {
		t.Errorf("asked %+v\n%s", asked, c.heard())
	}
	c.ok("session.mcp.oauth.probe", in(obj{"serverName": "s"}), &probed)
	if probed.Status != "needs-auth" {
		t.Errorf("%+v", probed)
	}
	if strings.Contains(c.heard(), g.Prefix) {
		t.Errorf("the client was shown a token:\n%s", c.heard())
	}
}
