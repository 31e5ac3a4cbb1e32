package server_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/model/scripted"
	"github.com/transom-run/transom/server"
)

const id1 = "11111111-1111-4111-8111-111111111111"

// onBoth runs a test over a pipe and over TCP.
func onBoth(t *testing.T, f func(t *testing.T, connect func(w *world) func() *client)) {
	t.Run("pipe", func(t *testing.T) {
		f(t, func(w *world) func() *client { return func() *client { return w.connect(t) } })
	})
	t.Run("tcp", func(t *testing.T) {
		f(t, func(w *world) func() *client { return w.tcp(t) })
	})
}

func TestCreateOrder(t *testing.T) {
	w := play(t, scripted.Say("hello"))
	c := w.connect(t)
	c.ok("connect", obj{})
	// Nothing is awaited: the client pipelines.
	create := c.send("session.create", obj{"sessionId": id1})
	send := c.send("session.send", obj{"sessionId": id1, "prompt": "hi"})
	read := c.send("session.getMessages", obj{"sessionId": id1})
	c.idle(0)
	created, start := c.replyAt(create), c.eventAt(0, "session.start")
	if created > start {
		t.Errorf("session.start came before the answer of session.create\n%s", c.transcript())
	}
	if c.at(created).Error != nil || c.reply(send).Error != nil || c.reply(read).Error != nil {
		t.Errorf("a request failed\n%s", c.transcript())
	}
	if sent := c.replyAt(send); sent < created {
		t.Errorf("session.send was answered before session.create\n%s", c.transcript())
	}
	_, live := c.events(id1, true)
	_, logged := c.history(id1)
	if diff := cmp.Diff(logged, live); diff != "" {
		t.Errorf("events differ from the log (-log +live)\n%s", diff)
	}
}

func TestCreateWithoutID(t *testing.T) {
	w := play(t, scripted.Say("hello"))
	c := w.connect(t)
	var out struct{ SessionID string }
	c.ok("session.create", obj{}, &out)
	if len(out.SessionID) != 36 {
		t.Fatalf("session id %q", out.SessionID)
	}
	c.prompt(out.SessionID, "hi")
	c.idle(0)
}

func TestClearFromItsTool(t *testing.T) {
	onBoth(t, func(t *testing.T, on func(*world) func() *client) {
		w := play(t, scripted.Call("clear_context", `{}`), scripted.Say("FRESH"))
		c := on(w)()
		c.ok("connect", obj{})
		c.create(id1, hostTool("clear_context", "terminal"))
		c.prompt(id1, "go")
		var q ask
		c.awaitEvent("external_tool.requested", &q)
		var cleared struct{ MessagesCleared int }
		c.ok("session.history.clearContext", obj{"sessionId": id1, "prompt": "SEED"}, &cleared)
		if cleared.MessagesCleared != 2 {
			t.Errorf("cleared %d messages, want 2", cleared.MessagesCleared)
		}
		var answered struct{ Success bool }
		c.ok("session.tools.handlePendingToolCall", obj{"sessionId": id1, "requestId": q.RequestID, "result": "Cleared 2 messages."}, &answered)
		if !answered.Success {
			t.Error("the answer did not count")
		}
		end := c.idle(0)
		var m struct{ Content string }
		c.eventFrom(c.eventAt(0, "session.context_cleared"), "assistant.message", &m)
		if m.Content != "FRESH" {
			t.Errorf("the seeded turn answered %q", m.Content)
		}
		if i := c.eventAt(0, "assistant.message"); i > end {
			t.Errorf("idle before the seeded turn\n%s", c.transcript())
		}
		requests := w.model.Requests()
		var texts []string
		for _, m := range requests[1].Messages {
			if m.Role != model.System {
				texts = append(texts, m.Text)
			}
		}
		if len(texts) != 1 || !strings.HasSuffix(texts[0], "SEED") {
			t.Errorf("the fresh window is %q", texts)
		}
	})
}

func TestRequestsFromAHandler(t *testing.T) {
	onBoth(t, func(t *testing.T, on func(*world) func() *client) {
		w := play(t, scripted.Call("outer", `{}`), scripted.Say("done"), scripted.Call("inner", `{}`), scripted.Say("inner done"))
		c := on(w)()
		c.create(id1, hostTool("outer"))
		c.prompt(id1, "go")
		var q ask
		c.awaitEvent("external_tool.requested", &q)
		// The handler asks for everything it likes before it answers.
		c.ok("ping", obj{"message": "in"})
		c.ok("session.list", obj{})
		c.ok("session.mode.get", obj{"sessionId": id1})
		c.ok("session.log", obj{"sessionId": id1, "message": "note"})
		c.ok("session.send", obj{"sessionId": id1, "prompt": "steer", "mode": "immediate"})
		if msg := c.fails(-32011, "session.send", obj{"sessionId": id1, "prompt": "w", "wait": true}); !strings.Contains(msg, "without wait") {
			t.Errorf("the refusal does not say what to do: %s", msg)
		}
		types, _ := c.history(id1)
		if !slices.Contains(types, "external_tool.requested") {
			t.Errorf("history: %v", types)
		}
		// It may even open a session and close it again.
		id2 := strings.Replace(id1, "1111", "2222", 1)
		c.create(id2)
		c.ok("session.destroy", obj{"sessionId": id2})
		c.ok("session.tools.handlePendingToolCall", obj{"sessionId": id1, "requestId": q.RequestID, "result": "ok"})
		c.idle(0)
		if n := len(w.model.Requests()); n != 2 {
			t.Errorf("%d model calls, want 2", n)
		}
	})
}

func TestSendWait(t *testing.T) {
	w := play(t, scripted.Say("one"), scripted.Say("two"))
	c := w.connect(t)
	c.create(id1)
	c.prompt(id1, "first")
	id := c.send("session.send", obj{"sessionId": id1, "prompt": "second", "wait": true})
	var out struct{ MessageID string }
	f := c.reply(id)
	if f.Error != nil {
		t.Fatal(f.Error)
	}
	if err := json.Unmarshal(f.Result, &out); err != nil || out.MessageID == "" {
		t.Errorf("result %s", f.Result)
	}
	if n := len(w.model.Requests()); n != 2 {
		t.Errorf("answered after %d model calls, want 2", n)
	}
}

func TestResumeTenTimes(t *testing.T) {
	w := play(t, scripted.Say("hello"), scripted.Say("more"))
	c := w.connect(t)
	c.create(id1)
	for range 10 {
		before := c.count()
		id := c.send("session.resume", obj{"sessionId": id1, "streaming": true})
		if f := c.reply(id); f.Error != nil {
			t.Fatal(f.Error)
		}
		if ev := c.eventAt(before, "session.resume"); ev < c.replyAt(id) {
			t.Fatalf("the event came before the answer\n%s", c.transcript())
		}
	}
	c.prompt(id1, "hi")
	c.idle(0)
	_, live := c.events(id1, true)
	_, logged := c.history(id1)
	if diff := cmp.Diff(logged, live); diff != "" {
		t.Errorf("each event comes once, in order (-log +live)\n%s", diff)
	}
	types, _ := c.events(id1, false)
	said := map[string]int{}
	for _, typ := range types {
		said[typ]++
	}
	if said["assistant.message_delta"] != 1 || said["session.idle"] != 1 {
		t.Errorf("of what nobody keeps not each came once: %v", said)
	}
	// Once it has left, it hears nothing of the session any more.
	other := w.connect(t)
	other.ok("session.resume", obj{"sessionId": id1})
	c.ok("session.destroy", obj{"sessionId": id1})
	other.prompt(id1, "more")
	other.idle(0)
	c.ok("ping", obj{})
	if after, _ := c.events(id1, false); slices.Contains(after[len(types):], "user.message") || slices.Contains(after[len(types):], "session.idle") {
		t.Errorf("events after the end: %v", after[len(types):])
	}
}

func TestDestroy(t *testing.T) {
	w := play(t, scripted.Say("hello"), scripted.Say("again"))
	c := w.connect(t)
	var out struct{ Success bool }
	c.ok("session.destroy", obj{"sessionId": "nobody"}, &out)
	if out.Success {
		t.Error("destroy of an unknown id says success")
	}
	c.ok("session.detach", obj{"sessionId": "nobody"}, &out)
	if !out.Success {
		t.Error("detach of an unknown id says failure")
	}
	c.create(id1)
	c.prompt(id1, "hi")
	c.idle(0)
	id := c.send("session.destroy", obj{"sessionId": id1})
	late := c.send("session.send", obj{"sessionId": id1, "prompt": "late"})
	if c.reply(id).Error != nil {
		t.Fatal(c.reply(id).Error)
	}
	if shut := c.eventAt(0, "session.shutdown"); shut > c.replyAt(id) {
		t.Errorf("destroy was answered before its events\n%s", c.transcript())
	}
	if f := c.reply(late); f.Error == nil || f.Error.Code != -32010 || !strings.HasPrefix(f.Error.Message, "Session not found") || f.Error.Data.Kind != "not_found" {
		t.Errorf("a send after destroy: %+v", f.Error)
	}
	c.fails(-32010, "session.getMessages", obj{"sessionId": id1})
	// It can be taken up again, and goes on where it was.
	c.ok("session.resume", obj{"sessionId": id1})
	at := c.count()
	c.prompt(id1, "more")
	c.idle(at)
	if n := len(w.model.Requests()[1].Messages); n != 4 {
		t.Errorf("the window has %d messages, want system, user, assistant, user", n)
	}
}

func TestTwoClients(t *testing.T) {
	onBoth(t, func(t *testing.T, on func(*world) func() *client) {
		w := play(t, scripted.Call("magic", `{"seed":"x"}`), scripted.Say("done"), scripted.Say("again"))
		dial := on(w)
		a, b := dial(), dial()
		a.create(id1, hostTool("magic", "ask"))
		b.ok("session.resume", obj{"sessionId": id1, "requestPermission": true})
		a.prompt(id1, "go")
		var q1, q2 ask
		a.awaitEvent("permission.requested", &q1)
		b.awaitEvent("permission.requested", &q2)
		if q1.RequestID != q2.RequestID {
			t.Errorf("two questions for one call: %v %v", q1, q2)
		}
		var pending struct {
			Items []struct {
				RequestID string
				Request   struct{ Kind, ToolName, ToolDescription string }
			}
		}
		b.ok("session.permissions.pendingRequests", obj{"sessionId": id1}, &pending)
		if len(pending.Items) != 1 || pending.Items[0].RequestID != q1.RequestID || pending.Items[0].Request.Kind != "custom-tool" || pending.Items[0].Request.ToolDescription != "does magic" {
			t.Errorf("pending: %+v", pending)
		}
		var first, second struct{ Success bool }
		yes := obj{"sessionId": id1, "requestId": q1.RequestID, "result": obj{"kind": "approve-once"}}
		a.ok("session.permissions.handlePendingPermissionRequest", yes, &first)
		b.ok("session.permissions.handlePendingPermissionRequest", yes, &second)
		if !first.Success || second.Success {
			t.Errorf("first answer %v, second %v", first, second)
		}
		var e ask
		a.awaitEvent("external_tool.requested", &e)
		b.awaitEvent("external_tool.requested", nil)
		a.ok("session.tools.handlePendingToolCall", obj{"sessionId": id1, "requestId": e.RequestID, "result": "42"}, &first)
		b.ok("session.tools.handlePendingToolCall", obj{"sessionId": id1, "requestId": e.RequestID, "result": "43"}, &second)
		if !first.Success || second.Success {
			t.Errorf("first result %v, second %v", first, second)
		}
		a.idle(0)
		b.idle(0)
		b.ok("session.destroy", obj{"sessionId": id1})
		at := a.count()
		a.prompt(id1, "still here")
		a.idle(at)
		if types, _ := a.events(id1, true); slices.Contains(types, "session.shutdown") {
			t.Error("the session ended though a client was attached")
		}
	})
}

// A client's link breaks while its tool runs; it comes back and answers under the
// old request id.
func TestLostClient(t *testing.T) {
	onBoth(t, func(t *testing.T, on func(*world) func() *client) {
		w := play(t, scripted.Call("slow", `{}`), scripted.Say("done"))
		dial := on(w)
		a := dial()
		a.create(id1, hostTool("slow"))
		a.prompt(id1, "go")
		var q ask
		a.awaitEvent("external_tool.requested", &q)
		b := dial()
		b.ok("connect", obj{})
		a.conn.Close()
		a.awaitClosed()
		b.ok("session.resume", obj{"sessionId": id1, "continuePendingWork": true})
		var resumed struct {
			ContinuePendingWork *bool
		}
		b.awaitEvent("session.resume", &resumed)
		if resumed.ContinuePendingWork == nil || !*resumed.ContinuePendingWork {
			t.Errorf("session.resume: %+v", resumed)
		}
		var out struct{ Success bool }
		b.ok("session.tools.handlePendingToolCall", obj{"sessionId": id1, "requestId": q.RequestID, "result": "late but fine"}, &out)
		if !out.Success {
			t.Fatal("the answer did not count")
		}
		b.idle(0)
		last := w.model.Requests()[1].Messages
		if m := last[len(last)-1]; m.Text != "late but fine" {
			t.Errorf("the model was shown %q", m.Text)
		}
	})
}

// A client that stops reading costs others nothing, and gets every persisted event
// once it reads again.
func TestSlowClient(t *testing.T) {
	const turns = 48
	big := strings.Repeat("x", 64<<10)
	script := scripted.Config{}
	for i := range turns {
		script.Replies = append(script.Replies, scripted.Say(fmt.Sprint(i)))
	}
	p := scripted.New(script)
	w := newWorld(t, p, server.Config{})
	fast, slow := w.connect(t), w.connect(t) // pipes: nothing between server and client holds bytes back
	fast.create(id1)
	slow.ok("session.resume", obj{"sessionId": id1})
	slow.pause()
	slow.send("ping", obj{}) // wakes the reader into its pause
	at := 0
	for range turns {
		fast.prompt(id1, big)
		at = fast.idle(at) + 1
	}
	_, logged := fast.history(id1)
	slow.proceed()
	slow.await(0, "the last event", func(f frame) bool { return f.event.ID == logged[len(logged)-1] })
	_, live := slow.events(id1, true)
	from := slices.Index(logged, live[0])
	if diff := cmp.Diff(logged[from:], live); diff != "" {
		t.Errorf("the slow client missed something (-log +live)\n%s", diff)
	}
}

func TestDelete(t *testing.T) {
	w := play(t, scripted.Say("hello"))
	c, other := w.connect(t), w.connect(t)
	c.create(id1)
	c.prompt(id1, "hi")
	c.idle(0)
	var list struct {
		Sessions []struct{ SessionID, StartTime, ModifiedTime, Summary string }
	}
	c.ok("session.list", obj{}, &list)
	if len(list.Sessions) != 1 || list.Sessions[0].SessionID != id1 || list.Sessions[0].Summary != "hi" {
		t.Errorf("list: %+v", list)
	}
	var last struct{ SessionID string }
	c.ok("session.getLastId", obj{}, &last)
	if last.SessionID != id1 {
		t.Errorf("last id: %+v", last)
	}
	var out struct {
		Success bool
		Error   string
	}
	other.ok("session.delete", obj{"sessionId": "nobody"}, &out)
	if out.Success || out.Error == "" {
		t.Errorf("delete of an unknown id: %+v", out)
	}
	c.ok("session.delete", obj{"sessionId": id1}, &out)
	if !out.Success {
		t.Errorf("delete: %+v", out)
	}
	for _, x := range []*client{c, other} {
		x.await(0, "session.deleted", func(f frame) bool {
			return f.Method == "session.lifecycle" && strings.Contains(string(f.Params), `"session.deleted"`)
		})
	}
	c.eventAt(0, "session.shutdown")
	var meta struct{ Session *struct{ SessionID string } }
	c.ok("session.getMetadata", obj{"sessionId": id1}, &meta)
	if meta.Session != nil {
		t.Errorf("metadata after delete: %+v", meta.Session)
	}
	c.fails(-32010, "session.send", obj{"sessionId": id1, "prompt": "x"})
}

func TestSettings(t *testing.T) {
	w := play(t, scripted.Say("hello"))
	c := w.connect(t)
	c.ok("session.create", obj{"sessionId": id1, "model": "m1", "hooks": false, "includeSubAgentStreamingEvents": true, "envValueMode": "direct"})
	var mode string
	var set struct {
		Status      string
		ModeApplied bool
	}
	c.ok("session.mode.set", obj{"sessionId": id1, "mode": "plan"}, &set)
	c.ok("session.mode.get", obj{"sessionId": id1}, &mode)
	if mode != "plan" || !set.ModeApplied {
		t.Errorf("mode %q, %+v", mode, set)
	}
	c.ok("session.mode.set", obj{"sessionId": id1, "mode": "autopilot", "expectedMode": "interactive"}, &set)
	if set.ModeApplied {
		t.Error("the mode was set though another one was expected")
	}
	c.fails(-32602, "session.mode.set", obj{"sessionId": id1, "mode": "party"})
	var m struct{ ModelID, ReasoningEffort string }
	c.ok("session.model.getCurrent", obj{"sessionId": id1}, &m)
	if m.ModelID != "m1" {
		t.Errorf("model %+v", m)
	}
	c.ok("session.model.switchTo", obj{"sessionId": id1, "modelId": "m2", "reasoningEffort": "high"}, &m)
	c.ok("session.model.getCurrent", obj{"sessionId": id1}, &m)
	if m.ModelID != "m2" || m.ReasoningEffort != "high" {
		t.Errorf("model %+v", m)
	}
	var applied struct{ Applied bool }
	var name struct{ Name *string }
	c.ok("session.name.get", obj{"sessionId": id1}, &name)
	if name.Name != nil {
		t.Errorf("name %q before one was set", *name.Name)
	}
	c.ok("session.name.setAuto", obj{"sessionId": id1, "summary": "auto"}, &applied)
	if !applied.Applied {
		t.Error("the first automatic name was not applied")
	}
	c.ok("session.name.set", obj{"sessionId": id1, "name": " mine "})
	c.ok("session.name.setAuto", obj{"sessionId": id1, "summary": "auto2"}, &applied)
	c.ok("session.name.get", obj{"sessionId": id1}, &name)
	if applied.Applied || name.Name == nil || *name.Name != "mine" {
		t.Errorf("name %v, applied %v", name.Name, applied)
	}
	c.fails(-32602, "session.name.set", obj{"sessionId": id1, "name": strings.Repeat("n", 101)})
	var interest struct{ Handle string }
	var released struct{ Success bool }
	c.ok("session.eventLog.registerInterest", obj{"sessionId": id1, "eventType": "mcp.oauth_required"}, &interest)
	c.ok("session.eventLog.releaseInterest", obj{"sessionId": id1, "handle": interest.Handle}, &released)
	if interest.Handle == "" || !released.Success {
		t.Errorf("interest %+v, released %+v", interest, released)
	}
	types, _ := c.events(id1, true)
	if slices.Contains(types, "session.warning") {
		t.Error("a warning though every setting had its default")
	}
	c.ok("session.options.update", obj{"sessionId": id1, "skipCustomInstructions": true, "installedPlugins": []any{}, "coauthorEnabled": false, "manageScheduleEnabled": false, "customAgentsLocalOnly": true})
	c.ok("session.options.update", obj{"sessionId": id1, "sandboxConfig": obj{"enabled": true}})
	var warning struct{ Message string }
	c.awaitEvent("session.warning", &warning)
	if !strings.Contains(warning.Message, "sandboxConfig") || strings.Contains(warning.Message, "coauthor") {
		t.Errorf("warning: %s", warning.Message)
	}
}

func TestUnservedSettings(t *testing.T) {
	w := play(t)
	c := w.connect(t)
	c.ok("session.create", obj{
		"sessionId": id1, "memory": obj{"enabled": true}, "cloud": obj{"x": 1}, "largeOutput": obj{"enabled": false},
		"infiniteSessions": obj{"enabled": true}, "somethingNew": true, "clientName": "me", "customAgents": []any{},
		"systemMessage": obj{"mode": "customize", "content": "more", "sections": obj{"tone": obj{"action": "remove"}}},
	})
	var warning struct{ Message string }
	i := c.eventFrom(c.eventAt(0, "session.start"), "session.warning", &warning)
	for _, name := range []string{"memory", "cloud"} {
		if !strings.Contains(warning.Message, name) {
			t.Errorf("%s is not named: %s", name, warning.Message)
		}
	}
	for _, name := range []string{"largeOutput", "somethingNew", "clientName", "customAgents"} {
		if strings.Contains(warning.Message, name) {
			t.Errorf("%s is named: %s", name, warning.Message)
		}
	}
	types, _ := c.events(id1, true)
	if n := len(types); n != 2 {
		t.Errorf("events %v after %d", types, i)
	}
}

func TestBrokenToolSchema(t *testing.T) {
	w := play(t)
	c := w.connect(t)
	bad := obj{"name": "bad_tool", "parameters": obj{"type": "object", "properties": obj{"x": obj{"type": "sting"}}}}
	msg := c.fails(-32602, "session.create", obj{"sessionId": id1, "tools": []any{bad}})
	if !strings.Contains(msg, "bad_tool") || !strings.Contains(msg, "type") {
		t.Errorf("the message names neither tool nor keyword: %s", msg)
	}
	c.create(id1) // the id is free
	c.fails(-32012, "session.create", obj{"sessionId": id1})
	msg = c.fails(-32602, "session.create", obj{"sessionId": "x2", "tools": "x"})
	if !strings.Contains(msg, "tools must be an array") {
		t.Errorf("message: %s", msg)
	}
	c.fails(-32602, "session.create", obj{"sessionId": "../evil"})
	c.fails(-32010, "session.resume", obj{"sessionId": "non-existent-session-id-12345"})
}

// Of many clients that create one id at once, one succeeds.
func TestConcurrentCreate(t *testing.T) {
	w := play(t)
	const n = 32
	clients := make([]*client, n)
	ids := make([]int, n)
	for i := range clients {
		clients[i] = w.connect(t)
	}
	for i, c := range clients {
		ids[i] = c.send("session.create", obj{"sessionId": id1})
	}
	created := 0
	for i, c := range clients {
		switch f := c.reply(ids[i]); {
		case f.Error == nil:
			created++
		case f.Error.Code != -32012:
			t.Errorf("code %d: %s", f.Error.Code, f.Error.Message)
		}
	}
	if created != 1 {
		t.Errorf("%d of %d clients created the session", created, n)
	}
}

// Several questions are open at once; each is answered by its id, in any order.
func TestParallelPermissions(t *testing.T) {
	w := play(t, scripted.Calls(model.Call{ID: "a", Name: "one", Arguments: "{}"}, model.Call{ID: "b", Name: "two", Arguments: "{}"}), scripted.Say("done"))
	c := w.connect(t)
	c.create(id1, hostTool("one", "ask"), hostTool("two", "ask"))
	c.prompt(id1, "go")
	var q1, q2, e ask
	first := c.eventFrom(0, "permission.requested", &q1)
	c.eventFrom(first+1, "permission.requested", &q2)
	answer := func(id string, decision obj) (out struct{ Success bool }) {
		c.ok("session.permissions.handlePendingPermissionRequest", obj{"sessionId": id1, "requestId": id, "result": decision}, &out)
		return out
	}
	if answer("nobody's", obj{"kind": "approve-once"}).Success {
		t.Error("an unknown id counted")
	}
	if !answer(q2.RequestID, obj{"kind": "approve-once"}).Success || !answer(q1.RequestID, obj{"kind": "reject", "feedback": "no"}).Success {
		t.Error("an answer did not count")
	}
	c.awaitEvent("external_tool.requested", &e)
	if e.ToolCallID != "b" {
		t.Errorf("the host is asked to run call %s, approved was b", e.ToolCallID)
	}
	c.ok("session.tools.handlePendingToolCall", obj{"sessionId": id1, "requestId": e.RequestID, "result": "2"})
	c.idle(0)
	msgs := w.model.Requests()[1].Messages
	if n := len(msgs); n != 5 || msgs[3].CallID != "a" || !strings.Contains(msgs[3].Text, "no") || msgs[4].Text != "2" {
		t.Errorf("the model was shown %+v", msgs[2:])
	}
}

// Messages of tens of megabytes pass.
func TestLargeResult(t *testing.T) {
	w := play(t, scripted.Call("big", "{}"), scripted.Say("done"))
	c := w.tcp(t)()
	c.create(id1, hostTool("big"))
	c.prompt(id1, "go")
	var q ask
	c.awaitEvent("external_tool.requested", &q)
	var out struct{ Success bool }
	c.ok("session.tools.handlePendingToolCall", obj{"sessionId": id1, "requestId": q.RequestID, "result": strings.Repeat("x", 33<<20)}, &out)
	if !out.Success {
		t.Error("the answer did not count")
	}
	c.idle(0)
}

// A message beyond the limit fails alone.
func TestTooLarge(t *testing.T) {
	w := newWorld(t, nil, server.Config{MaxFrameBytes: 1 << 20})
	c := w.connect(t)
	c.create(id1)
	at := c.count()
	body := `{"jsonrpc":"2.0","id":"big","method":"ping","params":{"message":"` + strings.Repeat("x", 1<<20) + `"}}`
	c.write(fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body))
	i := c.await(at, "the error", func(f frame) bool { return f.Error != nil })
	if f := c.at(i); !strings.Contains(f.Error.Message, fmt.Sprint(1<<20)) {
		t.Errorf("error: %+v", f.Error)
	}
	c.ok("session.mode.get", obj{"sessionId": id1})
}
