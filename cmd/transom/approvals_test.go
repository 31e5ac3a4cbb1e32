package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"testing"

	"github.com/transom-run/transom/mcp/mcptest"
	"github.com/transom-run/transom/model/modelfile"
	"github.com/transom-run/transom/model/scripted"
)

// What was approved for the session stays approved over a clear, and nothing else
// is: for every kind alike. Approvals for once are asked for again.
func TestApprovalsOverAClear(t *testing.T) {
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "a page") }))
	defer page.Close()
	kinds := []string{"shell", "write", "read", "url", "custom-tool", "mcp"}
	for decision, after := range map[string][]string{"approve-for-session": nil, "approve-once": kinds} {
		t.Run(decision, func(t *testing.T) {
			dir := t.TempDir()
			calls := func(file string) []modelfile.Message {
				path := filepath.Join(dir, file)
				return []modelfile.Message{
					scripted.Call("bash", `{"command":"echo hi","description":"says hi"}`),
					scripted.Call("create", fmt.Sprintf(`{"path":%q,"file_text":"a"}`, path)),
					scripted.Call("view", fmt.Sprintf(`{"path":%q}`, path)),
					scripted.Call("web_fetch", fmt.Sprintf(`{"url":%q}`, page.URL)),
					scripted.Call("custom", `{}`),
					scripted.Call("s-get_env", `{"name":"HOME"}`),
				}
			}
			model := scripted.New(scripted.Config{Replies: slices.Concat(calls("a"), []modelfile.Message{scripted.Call("clear", `{}`)}, calls("b"), []modelfile.Message{scripted.Say("done")})})
			endpoint := httptest.NewServer(model.Handler())
			defer endpoint.Close()
			p := launch(t, nil, "--headless", "--stdio")
			mcp := mcptest.Server("plain")
			settings, err := json.Marshal(map[string]any{
				"sessionId": "s1", "model": "m", "workingDirectory": dir, "requestPermission": true,
				"provider": map[string]any{"type": "openai", "baseUrl": endpoint.URL + "/v1"},
				"tools": []map[string]any{
					{"name": "custom", "description": "d", "parameters": map[string]any{"type": "object"}},
					{"name": "clear", "description": "d", "parameters": map[string]any{"type": "object"}, "isTerminal": true, "skipPermission": true},
				},
				"mcpServers": map[string]any{"s": map[string]any{"type": "local", "command": mcp.Command, "args": []string{}, "env": mcp.Env, "tools": []string{"*"}}},
			})
			if err != nil {
				t.Fatal(err)
			}
			p.ask(1, "session.create", string(settings))
			io.WriteString(p.in, request(2, "session.send", `{"sessionId":"s1","prompt":"go"}`))
			var before, later []string
			cleared, n := false, 10
			say := func(method, params string) {
				n++
				io.WriteString(p.in, request(n, method, params))
			}
			for idle := false; !idle; {
				var f frame
				if err := json.Unmarshal([]byte(readBody(t, p.out)), &f); err != nil {
					t.Fatal(err)
				}
				var q struct {
					RequestID, ToolName string
					PermissionRequest   struct{ Kind string }
					Success             bool
					Error               struct{ Message string }
				}
				if len(f.Params.Event.Data) > 0 {
					if err := json.Unmarshal(f.Params.Event.Data, &q); err != nil {
						t.Fatal(err)
					}
				}
				switch f.Params.Event.Type {
				case "permission.requested":
					if cleared {
						later = append(later, q.PermissionRequest.Kind)
					} else {
						before = append(before, q.PermissionRequest.Kind)
					}
					say("session.permissions.handlePendingPermissionRequest", fmt.Sprintf(`{"sessionId":"s1","requestId":%q,"result":{"kind":%q}}`, q.RequestID, decision))
				case "external_tool.requested":
					if q.ToolName == "clear" {
						cleared = true
						say("session.history.clearContext", `{"sessionId":"s1","prompt":"SEED"}`)
					}
					say("session.tools.handlePendingToolCall", fmt.Sprintf(`{"sessionId":"s1","requestId":%q,"result":"ok"}`, q.RequestID))
				case "tool.execution_complete":
					if !q.Success {
						t.Errorf("a call has failed: %s", q.Error.Message)
					}
				case "session.idle":
					idle = true
				}
			}
			if !slices.Equal(before, kinds) {
				t.Errorf("asked before the clear: %v", before)
			}
			if !slices.Equal(later, after) {
				t.Errorf("asked after the clear: %v, want %v", later, after)
			}
			p.in.Close()
			p.exits(0)
		})
	}
}
