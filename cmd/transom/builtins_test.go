package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/transom-run/transom/model/modelfile"
	"github.com/transom-run/transom/model/scripted"
)

// frame is a message of the protocol.
type frame struct {
	ID     json.RawMessage
	Method string
	Result json.RawMessage
	Params struct {
		PlanContent string
		Event       struct {
			Type string
			Data json.RawMessage
		}
	}
}

// The model keeps a list of what is to be done and asks to leave plan mode; the
// host is told, reads the list, and the mode follows the user's answer.
func TestListAndPlanOfTheModel(t *testing.T) {
	model := scripted.New(scripted.Config{Replies: []modelfile.Message{
		scripted.Call("sql", `{"description":"Make the list","query":"INSERT INTO todos (id, title, status) VALUES ('a', 'First', 'pending'), ('b', 'Second', 'done'); INSERT INTO todo_deps (todo_id, depends_on) VALUES ('b', 'a')"}`),
		scripted.Call("exit_plan_mode", `{"summary":"- greet","actions":["autopilot","interactive","exit_only"],"recommendedAction":"interactive"}`),
		scripted.Say("done"),
	}})
	endpoint := httptest.NewServer(model.Handler())
	defer endpoint.Close()
	p := launch(t, nil, "--headless", "--stdio")
	p.ask(1, "session.create", fmt.Sprintf(`{"sessionId":"s1","model":"m","provider":{"type":"openai","baseUrl":%q},"requestExitPlanMode":true}`, endpoint.URL+"/v1"))
	p.ask(2, "session.permissions.setApproveAll", `{"sessionId":"s1","enabled":true}`)
	p.ask(3, "session.plan.update", `{"sessionId":"s1","content":"the plan"}`)
	p.ask(4, "session.mode.set", `{"sessionId":"s1","mode":"plan"}`)
	io.WriteString(p.in, request(5, "session.send", `{"sessionId":"s1","prompt":"go"}`))
	var seen []string
	for !slices.Contains(seen, "session.idle") {
		var f frame
		if err := json.Unmarshal([]byte(readBody(t, p.out)), &f); err != nil {
			t.Fatal(err)
		}
		e := f.Params.Event
		switch {
		case f.Method == "exitPlanMode.request":
			if f.Params.PlanContent != "the plan" {
				t.Errorf("the plan shown to the user is %q", f.Params.PlanContent)
			}
			io.WriteString(p.in, framed(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"approved":true,"selectedAction":"autopilot"}}`, f.ID)))
		case e.Type == "exit_plan_mode.completed" && !strings.Contains(string(e.Data), `"selectedAction":"autopilot"`):
			t.Errorf("%s: %s", e.Type, e.Data)
		}
		seen = append(seen, e.Type)
	}
	for _, want := range []string{"session.todos_changed", "exit_plan_mode.requested", "exit_plan_mode.completed", "session.mode_changed"} {
		if !slices.Contains(seen, want) {
			t.Errorf("no %s among %v", want, seen)
		}
	}
	if a := p.ask(6, "session.mode.get", `{"sessionId":"s1"}`); !strings.Contains(a, `"autopilot"`) {
		t.Errorf("mode: %s", a)
	}
	const list = `"rows":[{"id":"a","title":"First","status":"pending"},{"id":"b","title":"Second","status":"done"}],"dependencies":[{"todoId":"b","dependsOn":"a"}]`
	if a := p.ask(7, "session.plan.readSqlTodosWithDependencies", `{"sessionId":"s1"}`); !strings.Contains(a, list) {
		t.Errorf("todos: %s", a)
	}
	p.in.Close()
	p.exits(0)
}

// An approval for the session covers reads where the session works, and none
// outside: there each call is asked about.
func TestApprovalStaysInside(t *testing.T) {
	dir, outside := t.TempDir(), "/etc/hosts"
	inside := filepath.Join(dir, "a.txt")
	if err := os.WriteFile(inside, []byte("a"), 0o600); err != nil {
		t.Fatal(err)
	}
	view := func(path string) modelfile.Message { return scripted.Call("view", fmt.Sprintf(`{"path":%q}`, path)) }
	model := scripted.New(scripted.Config{Replies: []modelfile.Message{
		view(inside), view(inside), view(outside), view(outside), scripted.Say("done"),
	}})
	endpoint := httptest.NewServer(model.Handler())
	defer endpoint.Close()
	p := launch(t, nil, "--headless", "--stdio")
	p.ask(1, "session.create", fmt.Sprintf(`{"sessionId":"s1","model":"m","workingDirectory":%q,"requestPermission":true,"provider":{"type":"openai","baseUrl":%q}}`, dir, endpoint.URL+"/v1"))
	io.WriteString(p.in, request(2, "session.send", `{"sessionId":"s1","prompt":"go"}`))
	var asked []string
	for idle := false; !idle; {
		var f frame
		if err := json.Unmarshal([]byte(readBody(t, p.out)), &f); err != nil {
			t.Fatal(err)
		}
		switch e := f.Params.Event; e.Type {
		case "permission.requested":
			var q struct {
				RequestID         string
				PermissionRequest struct{ Path string }
			}
			if err := json.Unmarshal(e.Data, &q); err != nil {
				t.Fatal(err)
			}
			asked = append(asked, q.PermissionRequest.Path)
			io.WriteString(p.in, request(10+len(asked), "session.permissions.handlePendingPermissionRequest",
				fmt.Sprintf(`{"sessionId":"s1","requestId":%q,"result":{"kind":"approve-for-session"}}`, q.RequestID)))
		case "session.idle":
			idle = true
		}
	}
	if want := []string{inside, outside, outside}; !slices.Equal(asked, want) {
		t.Errorf("asked about %v, want %v", asked, want)
	}
	p.in.Close()
	p.exits(0)
}
