package server_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/model/scripted"
)

// awkward is text that breaks readers of lines: separators of Unicode, line ends of
// all kinds, escapes that look like NUL, and the NUL itself.
const awkward = "a\u2028b\u2029c\u0085d\r\ne\\u0000f\x00g\u007fh\ufeffi😀<&>\"\\"

// raw is the history as it came.
func (c *client) raw() []string {
	c.t.Helper()
	var out struct{ Events []json.RawMessage }
	c.ok("session.getMessages", obj{"sessionId": id1}, &out)
	var lines []string
	for _, e := range out.Events {
		lines = append(lines, string(e))
	}
	return lines
}

// TestSameHistoryAfterRestart: what a live session shows of its past is what is read
// from the disk by another process, field by field and whatever the texts are; what
// was only for those who listened is in neither.
func TestSameHistoryAfterRestart(t *testing.T) {
	home, dir := t.TempDir(), t.TempDir()
	w := playFiles(t, home, dir, scripted.Call("magic", `{}`), scripted.Say("said "+strings.ReplaceAll(awkward, "\x00", "")))
	c := w.connect(t)
	c.ok("session.create", obj{"sessionId": id1, "streaming": true, "hooks": true, "requestPermission": true, "tools": []obj{hostTool("magic", "ask")}})
	c.send("session.send", obj{"sessionId": id1, "prompt": awkward})
	for at, over := 0, false; !over; at++ {
		at = c.await(at, "something to answer", func(f frame) bool { return f.Method == "hooks.invoke" || f.event.Type != "" })
		f := c.at(at)
		var q ask
		switch f.event.Type {
		case "":
			result := obj{}
			if strings.Contains(string(f.Params), `"postToolUse"`) {
				result = obj{"output": obj{"additionalContext": "hook " + awkward}}
			}
			c.answer(asked{id: f.ID}, result)
		case "permission.requested":
			_ = json.Unmarshal(f.event.Data, &q)
			c.send("session.permissions.handlePendingPermissionRequest", obj{"sessionId": id1, "requestId": q.RequestID, "result": obj{"kind": "approve-once"}})
		case "external_tool.requested":
			_ = json.Unmarshal(f.event.Data, &q)
			c.send("session.tools.handlePendingToolCall", obj{"sessionId": id1, "requestId": q.RequestID, "result": "tool " + awkward})
		case "session.idle":
			over = true
		}
	}
	live := c.raw()
	types, _ := c.history(id1)
	for _, want := range []string{"permission.requested", "permission.completed", "external_tool.requested", "external_tool.completed", "tool.execution_complete"} {
		if !slices.Contains(types, want) {
			t.Errorf("%s is not in the history: %v", want, types)
		}
	}
	heard, _ := c.events(id1, false)
	for _, not := range []string{"session.idle", "assistant.message_delta"} {
		if !slices.Contains(heard, not) || slices.Contains(types, not) {
			t.Errorf("%s was heard: %v, is in the history: %v", not, slices.Contains(heard, not), slices.Contains(types, not))
		}
	}
	requests := w.model.Requests()
	shown := requests[len(requests)-1].Messages
	w.end(t)

	file, err := os.ReadFile(filepath.Join(home, "session-state", id1, "events.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(strings.TrimSuffix(string(file), "\n"), "\n") {
		if !json.Valid([]byte(line)) {
			t.Errorf("a line that is no record: %q", line)
		}
	}
	w = playFiles(t, home, dir, scripted.Say("more"))
	c = w.connect(t)
	c.ok("session.resume", obj{"sessionId": id1})
	again := c.raw()
	if len(again) <= len(live) {
		t.Fatalf("%d events, and %d after a restart", len(live), len(again))
	}
	if diff := cmp.Diff(live, again[:len(live)]); diff != "" {
		t.Errorf("(-live +resumed)\n%s", diff)
	}
	c.prompt(id1, "go on")
	c.idle(0)
	next := w.model.Requests()[0].Messages
	if diff := cmp.Diff(texts(shown), texts(next)[:len(shown)]); diff != "" {
		t.Errorf("what the model is shown (-before +after)\n%s", diff)
	}
	for _, want := range []string{awkward, "tool " + awkward, "hook " + awkward} {
		if !strings.Contains(strings.Join(texts(next), "\n"), want) {
			t.Errorf("the model is not shown %q: %q", want, texts(next))
		}
	}
}

func texts(ms []model.Message) (out []string) {
	for _, m := range ms {
		if m.Role != model.System {
			out = append(out, m.Text)
		} else {
			out = append(out, "")
		}
	}
	return out
}

// TestResumeUnreadable: a session whose log cannot be opened is refused with the
// cause, and no other session is made in its place.
func TestResumeUnreadable(t *testing.T) {
	home := t.TempDir()
	w := playFiles(t, home, t.TempDir())
	log := filepath.Join(home, "session-state", id1, "events.jsonl")
	if err := os.MkdirAll(log, 0o700); err != nil { // a directory: also root cannot read it as a file
		t.Fatal(err)
	}
	c := w.connect(t)
	f := c.reply(c.send("session.resume", obj{"sessionId": id1}))
	if f.Error == nil || f.Error.Code == -32010 || !strings.Contains(f.Error.Message, log) {
		t.Errorf("refused with %+v", f.Error)
	}
	c.fails(-32010, "session.mode.get", obj{"sessionId": id1})
	found, err := filepath.Glob(filepath.Join(home, "session-state", "[^.]*"))
	if err != nil || !slices.Equal(found, []string{filepath.Dir(log)}) {
		t.Errorf("sessions after it: %v, %v", found, err)
	}
	if i, err := os.Stat(log); err != nil || !i.IsDir() {
		t.Errorf("the log was replaced: %v", err)
	}
}

// TestLinkCutInMidTurn: a turn goes on when its client's link is cut. Who comes back
// in the middle hears its end; who comes back later reads it; there is one session,
// and one turn.
func TestLinkCutInMidTurn(t *testing.T) {
	for _, when := range []string{"while it runs", "after it"} {
		t.Run(when, func(t *testing.T) {
			home := t.TempDir()
			first := make(chan bool, 1)
			release := make(chan bool)
			d := &decider{t: t, asked: make(chan model.Request, 9), decide: func([]model.Message) []model.Chunk {
				first <- true
				<-release
				return []model.Chunk{{Text: "the answer", Finish: "stop"}}
			}}
			w := newFiles(t, home, t.TempDir(), d)
			dial := w.tcp(t)
			a := dial()
			a.create(id1)
			a.prompt(id1, "go")
			<-first
			a.conn.Close()
			a.awaitClosed()
			b := dial()
			if when == "after it" {
				close(release)
				var busy struct{ Processing bool }
				for deadline := time.Now().Add(watchdog); ; {
					if file, _ := os.ReadFile(filepath.Join(home, "session-state", id1, "events.jsonl")); strings.Contains(string(file), "the answer") && strings.Contains(string(file), `"assistant.turn_end"`) {
						break
					}
					if time.Now().After(deadline) {
						t.Fatal("the turn did not end")
					}
					b.ok("ping", obj{}, &busy)
				}
			}
			b.ok("session.resume", obj{"sessionId": id1, "continuePendingWork": true})
			if when == "while it runs" {
				close(release)
				b.idle(0)
			}
			types, _ := b.history(id1)
			if !slices.Contains(types, "assistant.message") || !slices.Contains(types, "assistant.turn_end") {
				t.Errorf("the history lacks the answer: %v", types)
			}
			if n := len(d.asked); n != 1 {
				t.Errorf("%d model calls for one prompt", n)
			}
			var list struct{ Sessions []struct{ SessionID string } }
			b.ok("session.list", obj{}, &list)
			if len(list.Sessions) != 1 || list.Sessions[0].SessionID != id1 {
				t.Errorf("sessions: %+v", list.Sessions)
			}
		})
	}
}

// TestResumeAppliesSettings: what a resume is given holds from the next request on,
// in the same process and in another; what is known and not served is named.
func TestResumeAppliesSettings(t *testing.T) {
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprintf("restart %t", restart), func(t *testing.T) {
			home, dir, other := t.TempDir(), t.TempDir(), t.TempDir()
			w := playFiles(t, home, dir, scripted.Say("one"), scripted.Say("two"))
			c := w.connect(t)
			c.ok("session.create", obj{
				"sessionId": id1, "model": "m1", "tools": []obj{hostTool("old")}, "availableTools": []string{"custom:*"},
				"systemMessage": obj{"mode": "replace", "content": "OLD SYSTEM"},
			})
			c.prompt(id1, "first")
			c.idle(0)
			n := len(w.model.Requests())
			if restart {
				w.end(t)
				w, n = playFiles(t, home, dir, scripted.Say("two")), 0
				c = w.connect(t)
			}
			// This runtime has no MCP: that is said, and not passed over.
			refused := c.reply(c.send("session.resume", obj{"sessionId": id1, "mcpServers": obj{"s": obj{"command": "x", "tools": []string{"*"}}}}))
			if refused.Error == nil || !strings.Contains(refused.Error.Message, "MCP") {
				t.Errorf("a resume with MCP servers: %+v", refused.Error)
			}
			at := c.count()
			c.ok("session.resume", obj{
				"sessionId": id1, "model": "m2", "reasoningEffort": "high", "workingDirectory": other, "hooks": true,
				"tools": []obj{hostTool("new"), hostTool("hidden")}, "excludedTools": []string{"hidden"}, "availableTools": []string{"custom:*"},
				"systemMessage": obj{"mode": "replace", "content": "NEW SYSTEM"},
				"memory":        obj{"enabled": true},
			})
			var warning struct{ Message string }
			c.eventFrom(at, "session.warning", &warning)
			if !strings.Contains(warning.Message, "memory") {
				t.Errorf("the warning does not name what is not served: %q", warning.Message)
			}
			c.send("session.send", obj{"sessionId": id1, "prompt": "second"})
			hooks := 0
			for i, over := at, false; !over; i++ {
				i = c.await(i, "a hook, or the end", func(f frame) bool { return f.Method == "hooks.invoke" || f.event.Type == "session.idle" })
				if over = c.at(i).event.Type == "session.idle"; !over {
					hooks++
					c.answer(asked{id: c.at(i).ID}, obj{})
				}
			}
			if hooks == 0 {
				t.Error("no hook was asked")
			}
			r := w.model.Requests()[n]
			var names []string
			for _, d := range r.Tools {
				names = append(names, d.Name)
			}
			if r.Model != "m2" || r.ReasoningEffort != "high" || !slices.Equal(names, []string{"new"}) {
				t.Errorf("model %q, effort %q, tools %q", r.Model, r.ReasoningEffort, names)
			}
			if s := r.Messages[0].Text; !strings.Contains(s, "NEW SYSTEM") || strings.Contains(s, "OLD SYSTEM") {
				t.Errorf("the system message is %q", s)
			}
			var snap struct{ WorkingDirectory, SelectedModel string }
			c.ok("session.metadata.snapshot", obj{"sessionId": id1}, &snap)
			if snap.WorkingDirectory != other || snap.SelectedModel != "m2" {
				t.Errorf("%+v", snap)
			}
		})
	}
}
