//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http/httptest"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/transom-run/transom/model/modelfile"
	"github.com/transom-run/transom/model/scripted"
)

// told is what a process says of a session until something matches; answers to
// requests are told of as "reply".
func (p *process) told(until string) (types []string, last frame) {
	p.t.Helper()
	for {
		var f frame
		if err := json.Unmarshal([]byte(readBody(p.t, p.out)), &f); err != nil {
			p.t.Fatal(err)
		}
		typ := f.Params.Event.Type
		if f.Method == "" {
			typ = "reply"
		}
		if types = append(types, typ); typ == until {
			return types, f
		}
	}
}

// TestRestarts ends the process in two ways, with and without a call that waits for
// its host, and takes the session up in another one, going on with what was open and
// not. The history is kept, each call ends once, and the next turn succeeds.
func TestRestarts(t *testing.T) {
	for _, how := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		for _, pending := range []bool{false, true} {
			for _, goOn := range []bool{false, true} {
				t.Run(fmt.Sprintf("%v pending %t continue %t", how, pending, goOn), func(t *testing.T) {
					restart(t, how, pending, goOn)
				})
			}
		}
	}
}

func restart(t *testing.T, how syscall.Signal, pending, goOn bool) {
	replies := []modelfile.Message{scripted.Say("one")}
	if pending {
		replies = []modelfile.Message{scripted.Call("host", `{}`)}
		if goOn {
			replies = append(replies, scripted.Say("taken up"))
		}
	}
	model := scripted.New(scripted.Config{Replies: append(replies, scripted.Say("next"))})
	endpoint := httptest.NewServer(model.Handler())
	defer endpoint.Close()
	home := "COPILOT_HOME=" + t.TempDir()
	config := fmt.Sprintf(`{"sessionId":"s1","model":"m","provider":{"type":"openai","baseUrl":%q},"continuePendingWork":%t,`+
		`"tools":[{"name":"host","description":"waits","parameters":{"type":"object"},"skipPermission":true}]}`, endpoint.URL+"/v1", goOn)

	p := launch(t, []string{home}, "--headless", "--stdio")
	p.ask(1, "session.create", config)
	io.WriteString(p.in, request(2, "session.send", `{"sessionId":"s1","prompt":"go"}`))
	var q struct{ RequestID string }
	if pending {
		_, f := p.told("external_tool.requested")
		if err := json.Unmarshal(f.Params.Event.Data, &q); err != nil {
			t.Fatal(err)
		}
	} else {
		p.told("session.idle")
	}
	before := p.ask(3, "session.getMessages", `{"sessionId":"s1"}`)
	p.Process.Signal(how)
	io.Copy(io.Discard, p.out)
	p.Wait()

	p = launch(t, []string{home}, "--headless", "--stdio")
	if a := p.ask(1, "session.resume", config); strings.Contains(a, `"error"`) {
		t.Fatalf("resume: %s", a)
	}
	if pending && goOn {
		if a := p.ask(2, "session.tools.handlePendingToolCall", fmt.Sprintf(`{"sessionId":"s1","requestId":%q,"result":"late"}`, q.RequestID)); !strings.Contains(a, `"success":true`) {
			t.Fatalf("the answer to the call that waited: %s", a)
		}
		p.told("session.idle")
	}
	io.WriteString(p.in, request(3, "session.send", `{"sessionId":"s1","prompt":"and now"}`))
	p.told("session.idle")
	after := p.ask(4, "session.getMessages", `{"sessionId":"s1"}`)
	p.in.Close()
	p.exits(0)

	old, now := history(t, before), history(t, after)
	if len(now) < len(old) || !slices.Equal(now[:len(old)], old) {
		t.Errorf("the history was\n%v\nand is\n%v", old, now)
	}
	all := strings.Join(now, " ")
	if n := strings.Count(all, "tool.execution_start"); n != strings.Count(all, "tool.execution_complete") || (n == 1) != pending {
		t.Errorf("calls begin and end in %v", now)
	}
	if strings.Contains(all, "session.error") || len(model.Rest()) > 0 {
		t.Errorf("errors, or answers that nobody asked for: %v, %v", now, model.Rest())
	}
	requests := model.Requests()
	last := ""
	for _, m := range requests[len(requests)-1].Messages[1:] { // without the system message
		last += string(m.Role) + " " + m.Text + "\n"
	}
	for want, due := range map[string]bool{"go": true, "and now": true, "one": !pending, "tool late": pending && goOn, "interrupted": pending && !goOn} {
		if strings.Contains(last, want) != due {
			t.Errorf("the model is shown %q: %t, want %t in\n%s", want, !due, due, last)
		}
	}
}

// history is the types and ids of an answer to session.getMessages.
func history(t *testing.T, answer string) (out []string) {
	t.Helper()
	var f struct {
		Result struct{ Events []struct{ Type, ID string } }
	}
	if err := json.Unmarshal([]byte(answer), &f); err != nil {
		t.Fatal(err)
	}
	for _, e := range f.Result.Events {
		out = append(out, e.Type+" "+e.ID)
	}
	return out
}
