package server_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/transom-run/transom/model/scripted"
)

// queueOf is what session.queue.pendingItems says.
func (c *client) queueOf() (texts, ids, steering []string) {
	c.t.Helper()
	var out struct {
		Items            []struct{ ID, Kind, DisplayText string }
		SteeringMessages []string
	}
	c.ok("session.queue.pendingItems", in(nil), &out)
	for _, i := range out.Items {
		text := i.DisplayText
		if i.Kind == "command" {
			text = "command " + text
		}
		texts, ids = append(texts, text), append(ids, i.ID)
	}
	return texts, ids, out.SteeringMessages
}

func TestQueueMethods(t *testing.T) {
	w := play(t, scripted.Call("host", `{}`), scripted.Say("one"), scripted.Say("two"), scripted.Say("three"))
	c := w.connect(t)
	c.create(id1, hostTool("host"))
	var removed struct{ Removed bool }
	c.ok("session.queue.removeMostRecent", in(nil), &removed)
	if removed.Removed {
		t.Error("something was removed from an empty queue")
	}
	c.prompt(id1, "go")
	var a ask
	c.awaitEvent("external_tool.requested", &a)
	for _, p := range []string{"1", "2", "3"} {
		c.prompt(id1, p)
	}
	texts, ids, _ := c.queueOf()
	if diff := cmp.Diff([]string{"1", "2", "3"}, texts); diff != "" {
		t.Fatal(diff)
	}
	c.ok("session.queue.moveItem", in(obj{"id": ids[2], "toPosition": 0}))
	c.ok("session.queue.updateText", in(obj{"id": ids[0], "prompt": "one", "displayPrompt": "shown"}))
	c.ok("session.queue.insertAt", in(obj{"position": 1, "message": obj{"prompt": "new"}}))
	c.ok("session.queue.duplicateAt", in(obj{"id": ids[1]}))
	c.ok("session.queue.sendNow", in(obj{"id": ids[2]}))
	c.ok("session.commands.enqueue", in(obj{"command": "/help"}))
	texts, _, steering := c.queueOf()
	if diff := cmp.Diff([]string{"new", "shown", "2", "2", "command /help"}, texts); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"3"}, steering); diff != "" {
		t.Error(diff)
	}
	c.fails(-32010, "session.queue.moveItem", in(obj{"id": "nobody", "toPosition": 0}))
	c.fails(-32602, "session.queue.insertAt", in(obj{"message": obj{"prompt": "x", "source": "system"}}))
	c.ok("session.queue.removeMostRecent", in(nil), &removed)
	if texts, _, _ := c.queueOf(); !removed.Removed || slices.Contains(texts, "command /help") {
		t.Errorf("removed %v, left %q", removed.Removed, texts)
	}
	c.ok("session.queue.clear", in(nil))
	if texts, _, steering := c.queueOf(); len(texts)+len(steering) > 0 {
		t.Errorf("after a clear: %q %q", texts, steering)
	}
	c.ok("session.queue.setDrainPaused", in(obj{"paused": true}))
	if msg := c.fails(-32011, "session.queue.setDrainPaused", in(obj{"paused": true})); !strings.Contains(msg, "queue_already_paused") {
		t.Error(msg)
	}
	c.prompt(id1, "later")
	c.ok("session.tools.handlePendingToolCall", in(obj{"requestId": a.RequestID, "result": "x"}))
	at := c.idle(0)
	if texts, _, _ := c.queueOf(); !slices.Equal(texts, []string{"later"}) {
		t.Errorf("paused: %q", texts)
	}
	c.ok("session.queue.setDrainPaused", in(obj{"paused": false}))
	c.idle(at + 1)
}

func TestCommands(t *testing.T) {
	w := play(t)
	c, d := w.connect(t), w.connect(t)
	command := func(name string) obj { return obj{"name": name, "description": "does " + name} }
	c.ok("session.create", in(obj{"commands": []obj{command("deploy")}}))
	var changed struct{ Commands []struct{ Name string } }
	d.ok("session.resume", in(obj{"commands": []obj{command("undo")}, "disableResume": true}))
	c.awaitEvent("commands.changed", &changed)
	if len(changed.Commands) != 2 || changed.Commands[1].Name != "undo" {
		t.Errorf("%+v", changed)
	}
	var list struct{ Commands []struct{ Name, Kind string } }
	c.ok("session.commands.list", in(obj{"includeBuiltins": false}), &list)
	if len(list.Commands) != 2 || list.Commands[0].Kind != "client" {
		t.Errorf("%+v", list)
	}
	c.ok("session.commands.list", in(obj{"includeClientCommands": false}), &list)
	if !slices.ContainsFunc(list.Commands, func(c struct{ Name, Kind string }) bool { return c.Name == "help" && c.Kind == "builtin" }) {
		t.Errorf("%+v", list)
	}
	// The client that registered a command runs it; the other does not hear of it.
	exec := d.send("session.commands.execute", in(obj{"commandName": "deploy", "args": "production"}))
	var asked struct{ RequestID, Command, CommandName, Args string }
	c.awaitEvent("command.execute", &asked)
	if asked.Command != "/deploy production" || asked.CommandName != "deploy" || asked.Args != "production" {
		t.Errorf("%+v", asked)
	}
	c.ok("session.commands.handlePendingCommand", in(obj{"requestId": asked.RequestID, "error": "no network"}))
	if got := string(d.reply(exec).Result); got != `{"error":"no network"}` {
		t.Errorf("result %s", got)
	}
	if types, _ := d.events(id1, false); slices.Contains(types, "command.execute") {
		t.Error("a command was shown to a client that did not register it")
	}
	c.ok("session.commands.handlePendingCommand", in(obj{"requestId": "nobody's"}))
	var text struct{ Kind, Text string }
	c.ok("session.commands.invoke", in(obj{"name": "/HELP"}), &text)
	if text.Kind != "text" || !strings.Contains(text.Text, "/deploy") {
		t.Errorf("%+v", text)
	}
	c.ok("session.commands.invoke", in(obj{"name": "model", "input": "other"}))
	c.awaitEvent("session.model_change", nil)
	c.fails(-32010, "session.commands.invoke", in(obj{"name": "nothing"}))
	// A client that leaves has failed its command.
	exec = c.send("session.commands.execute", in(obj{"commandName": "undo"}))
	d.awaitEvent("command.execute", nil)
	d.conn.Close()
	if got := string(c.reply(exec).Result); !strings.Contains(got, "left") {
		t.Errorf("result %s", got)
	}
}

func TestQueuedCommands(t *testing.T) {
	c := play(t, scripted.Say("done")).connect(t)
	c.create(id1)
	// Nobody takes it: a warning, and what waits behind it goes on.
	c.ok("session.commands.enqueue", in(obj{"command": "/unknown"}))
	var warning struct{ Message string }
	c.awaitEvent("session.warning", &warning)
	if !strings.Contains(warning.Message, "/unknown") {
		t.Error(warning.Message)
	}
	at := c.idle(0)
	var handle struct{ Handle string }
	c.ok("session.eventLog.registerInterest", in(obj{"eventType": "command.queued"}), &handle)
	c.ok("session.commands.enqueue", in(obj{"command": "/mine"}))
	var asked struct{ RequestID, Command string }
	at = c.eventFrom(at, "command.queued", &asked)
	c.prompt(id1, "behind it")
	var success struct{ Success bool }
	c.ok("session.commands.respondToQueuedCommand", in(obj{"requestId": "other", "result": obj{"handled": true}}), &success)
	if success.Success {
		t.Error("an answer to nothing counted")
	}
	c.ok("session.commands.respondToQueuedCommand", in(obj{"requestId": asked.RequestID, "result": obj{"handled": true, "stopProcessingQueue": true}}), &success)
	if !success.Success {
		t.Error("the answer did not count")
	}
	c.eventFrom(at, "command.completed", nil)
	c.idle(at)
	if texts, _, _ := c.queueOf(); !slices.Equal(texts, []string{"behind it"}) {
		t.Errorf("the queue went on: %q", texts)
	}
	c.ok("session.eventLog.releaseInterest", in(obj{"handle": handle.Handle}))
}

func TestElicitation(t *testing.T) {
	w := play(t)
	c, d := w.connect(t), w.connect(t)
	var made struct {
		Capabilities struct{ UI struct{ Elicitation bool } }
	}
	c.ok("session.create", in(nil), &made)
	schema := obj{"type": "object", "properties": obj{"a": obj{"type": "string"}}}
	question := in(obj{"message": "Who?", "requestedSchema": schema})
	if msg := c.fails(-32011, "session.ui.elicitation", question); made.Capabilities.UI.Elicitation || !strings.Contains(msg, "not supported") {
		t.Error(msg)
	}
	d.ok("session.resume", in(obj{"requestElicitation": true, "disableResume": true}), &made)
	if !made.Capabilities.UI.Elicitation {
		t.Error("the client that can is told that nobody can")
	}
	var can struct{ UI struct{ Elicitation bool } }
	at := c.eventFrom(0, "capabilities.changed", &can)
	if !can.UI.Elicitation {
		t.Error("not told that users can be asked")
	}
	ask := c.send("session.ui.elicitation", question)
	var asked struct {
		RequestID, Message string
		RequestedSchema    obj
	}
	d.awaitEvent("elicitation.requested", &asked)
	if asked.Message != "Who?" || asked.RequestedSchema["type"] != "object" {
		t.Errorf("%+v", asked)
	}
	answer := in(obj{"requestId": asked.RequestID, "result": obj{"action": "accept", "content": obj{"a": "me"}}})
	var success struct{ Success bool }
	d.ok("session.ui.handlePendingElicitation", answer, &success)
	if got := string(c.reply(ask).Result); got != `{"action":"accept","content":{"a":"me"}}` || !success.Success {
		t.Errorf("%s, %v", got, success)
	}
	d.ok("session.ui.handlePendingElicitation", answer, &success)
	if success.Success {
		t.Error("a second answer counted")
	}
	// The last client that could ask is lost while it is asked.
	ask = c.send("session.ui.elicitation", question)
	d.eventFrom(d.eventAt(0, "elicitation.completed"), "elicitation.requested", nil)
	d.conn.Close()
	if got := string(c.reply(ask).Result); got != `{"action":"cancel"}` {
		t.Errorf("%s", got)
	}
	c.eventFrom(at+1, "capabilities.changed", &can)
	if can.UI.Elicitation {
		t.Error("not told that users cannot be asked any more")
	}
}

func TestEphemeralQuery(t *testing.T) {
	c := play(t, scripted.Say("hello"), scripted.Say("Blue.")).connect(t)
	c.create(id1)
	c.prompt(id1, "hi")
	c.idle(0)
	before, _ := c.history(id1)
	var answer struct{ Answer string }
	c.ok("session.ui.ephemeralQuery", in(obj{"question": "Which colour?"}), &answer)
	if answer.Answer != "Blue." {
		t.Errorf("%+v", answer)
	}
	var e struct{ Phase, Answer string }
	for at := 0; e.Phase != "completed"; at++ {
		at = c.eventFrom(at, "ui.ephemeral_query", &e)
	}
	if after, _ := c.history(id1); !slices.Equal(before, after) {
		t.Errorf("the log has changed: %v, %v", before, after)
	}
	var info struct {
		ContextInfo struct{ ConversationTokens int }
	}
	c.ok("session.metadata.contextInfo", in(nil), &info)
	if n := info.ContextInfo.ConversationTokens; n == 0 || n > 60 {
		t.Errorf("the conversation has %d tokens", n)
	}
	c.fails(-32602, "session.ui.ephemeralQuery", in(obj{"question": " "}))
	c.fails(-32017, "session.ui.ephemeralQuery", in(obj{"question": "more than the script has"}))
}

func TestPermissionMethods(t *testing.T) {
	home, dir := t.TempDir(), t.TempDir()
	call := scripted.Call("host", `{}`)
	w := playFiles(t, home, dir, call, scripted.Say("1"), call, scripted.Say("2"), call, scripted.Say("3"), call, scripted.Say("4"))
	c := w.connect(t)
	c.create(id1, hostTool("host", "ask"))
	mode := func() string {
		var m struct{ Mode string }
		c.ok("session.permissions.getMode", in(nil), &m)
		return m.Mode
	}
	if m := mode(); m != "manual" {
		t.Error(m)
	}
	c.ok("session.permissions.setMode", in(obj{"mode": "allow-all"}))
	if m := mode(); m != "allow-all" {
		t.Error(m)
	}
	c.fails(-32014, "session.permissions.setMode", in(obj{"mode": "assisted"}))
	c.ok("session.permissions.setApproveAll", in(obj{"enabled": false}))
	var change struct{ Mode, PreviousMode string }
	c.eventFrom(c.eventAt(0, "session.permissions_changed")+1, "session.permissions_changed", &change)
	if change.Mode != "manual" || change.PreviousMode != "allow-all" {
		t.Errorf("%+v", change)
	}
	// A rule denies though everything is allowed; a rule allows; and then it asks.
	rule := obj{"kind": "custom-tool", "argument": "host"}
	c.ok("session.permissions.configure", in(obj{"approveAllToolPermissionRequests": true, "rules": obj{"approved": []obj{}, "denied": []obj{rule}}}))
	c.prompt(id1, "go")
	var done struct {
		Success bool
		Error   struct{ Message string }
	}
	c.eventFrom(0, "tool.execution_complete", &done)
	if done.Success || !strings.Contains(done.Error.Message, "denied by a rule") {
		t.Errorf("%+v", done)
	}
	at := c.idle(0)
	c.ok("session.permissions.configure", in(obj{"approveAllToolPermissionRequests": false, "rules": obj{"approved": []obj{}, "denied": []obj{}}}))
	c.ok("session.permissions.modifyRules", in(obj{"scope": "session", "add": []obj{rule}}))
	var a ask
	c.prompt(id1, "again")
	c.eventFrom(at, "external_tool.requested", &a)
	if types, _ := c.events(id1, false); slices.Contains(types, "permission.requested") {
		t.Error("it was asked about an allowed call")
	}
	c.ok("session.tools.handlePendingToolCall", in(obj{"requestId": a.RequestID, "result": "x"}))
	at = c.idle(at + 1)
	c.ok("session.permissions.modifyRules", in(obj{"scope": "session", "remove": []obj{rule}}))
	c.prompt(id1, "once more")
	c.eventFrom(at, "permission.requested", &a)
	c.ok("session.permissions.handlePendingPermissionRequest", in(obj{"requestId": a.RequestID, "result": obj{"kind": "user-not-available"}}))
	at = c.idle(at + 1)
	// What is approved for a location is kept for it.
	c.prompt(id1, "for good")
	c.eventFrom(at+1, "permission.requested", &a)
	c.ok("session.permissions.handlePendingPermissionRequest", in(obj{"requestId": a.RequestID, "result": obj{
		"kind": "approve-for-location", "locationKey": dir, "approval": obj{"kind": "custom-tool", "toolName": "host"}}}))
	raw, err := os.ReadFile(filepath.Join(home, "permissions.json"))
	if err != nil || !strings.Contains(string(raw), `"argument": "host"`) {
		t.Errorf("%s %v", raw, err)
	}
	c.fails(-32602, "session.permissions.modifyRules", in(obj{"scope": "world"}))
	c.ok("session.permissions.resetSessionApprovals", in(nil))
	c.ok("session.permissions.setRequired", in(obj{"required": true}))
	c.ok("session.permissions.notifyPromptShown", in(obj{"message": "x"}))
	c.ok("session.permissions.urls.setUnrestrictedMode", in(obj{"enabled": true}))
}

func TestPermissionPlaces(t *testing.T) {
	home, dir, extra := t.TempDir(), t.TempDir(), t.TempDir()
	w := playFiles(t, home, dir)
	c := w.connect(t)
	c.create(id1)
	allowed := func(method, path string) bool {
		var out struct{ Allowed bool }
		c.ok("session.permissions.paths."+method, in(obj{"path": path}), &out)
		return out.Allowed
	}
	c.ok("session.permissions.configure", in(obj{"paths": obj{"includeTempDirectory": false}}))
	if err := os.Symlink(extra, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	const within = "isPathWithinAllowedDirectories"
	for path, want := range map[string]bool{
		filepath.Join(dir, "a", "b"): true, "relative": true, "../up": false, filepath.Join(dir, "link", "x"): false, extra: false, "": false, dir + "x": false,
	} {
		if got := allowed(within, path); got != want {
			t.Errorf("%q: %v", path, got)
		}
	}
	c.ok("session.permissions.paths.add", in(obj{"path": extra}))
	if !allowed(within, filepath.Join(dir, "link", "x")) || allowed("isPathWithinWorkspace", extra) {
		t.Error("an added directory")
	}
	c.fails(-32602, "session.permissions.paths.add", in(obj{"path": filepath.Join(extra, "nothing")}))
	c.ok("session.permissions.paths.updatePrimary", in(obj{"path": extra}))
	if !allowed("isPathWithinWorkspace", filepath.Join(extra, "x")) {
		t.Error("the primary directory")
	}
	// What is kept for a place holds in another process.
	var place struct{ LocationKey, LocationType string }
	if err := os.MkdirAll(filepath.Join(dir, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	sub := filepath.Join(dir, "sub")
	c.ok("session.permissions.locations.resolve", in(obj{"workingDirectory": sub}), &place)
	real, err := filepath.EvalSymlinks(dir)
	if err != nil || place.LocationKey != real || place.LocationType != "repo" {
		t.Errorf("%+v of %s", place, real)
	}
	c.ok("session.permissions.locations.addToolApproval", in(obj{"locationKey": place.LocationKey, "approval": obj{"kind": "commands", "commandIdentifiers": []string{"git"}}}))
	c.ok("session.permissions.folderTrust.addTrusted", in(obj{"path": dir}))
	w.end(t)

	c = playFiles(t, home, dir).connect(t)
	c.create(id1)
	var applied struct {
		AppliedRuleCount int
		AppliedRules     []struct{ Kind, Argument string }
		Changed          bool
	}
	c.ok("session.permissions.locations.apply", in(obj{"workingDirectory": dir}), &applied)
	if !applied.Changed || applied.AppliedRuleCount != 1 || applied.AppliedRules[0].Kind != "shell" || applied.AppliedRules[0].Argument != "git" {
		t.Errorf("%+v", applied)
	}
	var trusted struct{ Trusted bool }
	c.ok("session.permissions.folderTrust.isTrusted", in(obj{"path": filepath.Join(dir, "sub")}), &trusted)
	if !trusted.Trusted {
		t.Error("trust was forgotten")
	}
	c.ok("session.permissions.modifyRules", in(obj{"scope": "location", "removeAll": true}))
	c.ok("session.permissions.locations.apply", in(obj{"workingDirectory": dir}), &applied)
	if applied.AppliedRuleCount != 0 {
		t.Errorf("%+v", applied)
	}
}

// pageOf is what session.eventLog.read says.
type pageOf struct {
	Events       []event
	Cursor       string
	HasMore      bool
	CursorStatus string
}

// A cursor from before a clear reads on as if there were none.
func TestEventLog(t *testing.T) {
	w := play(t, scripted.Call("host", `{"prompt":"SEED"}`), scripted.Say("fresh"))
	c := w.connect(t)
	c.create(id1, hostTool("host", "terminal"))
	var tail struct{ Cursor string }
	c.ok("session.eventLog.tail", in(nil), &tail)
	var page pageOf
	c.ok("session.eventLog.read", in(obj{"cursor": tail.Cursor}), &page)
	if len(page.Events) != 0 || page.HasMore || page.CursorStatus != "ok" {
		t.Errorf("%+v", page)
	}
	// Waiting for a type, while the client goes on asking.
	wait := c.send("session.eventLog.read", in(obj{"cursor": tail.Cursor, "waitMs": 20000, "types": []string{"session.title_changed"}}))
	c.ok("session.name.set", in(obj{"name": "N"}))
	if err := json.Unmarshal(c.reply(wait).Result, &page); err != nil || len(page.Events) != 1 || page.Events[0].Type != "session.title_changed" {
		t.Errorf("%+v %v", page, err)
	}
	c.prompt(id1, "go")
	var a ask
	c.awaitEvent("external_tool.requested", &a)
	var got []string
	read := func(cursor string) string {
		t.Helper()
		c.ok("session.eventLog.read", in(obj{"cursor": cursor, "max": 3, "includeEphemeral": false}), &page)
		for _, e := range page.Events {
			got = append(got, e.ID)
		}
		return page.Cursor
	}
	cursor := read("")
	c.ok("session.history.clearContext", in(obj{"prompt": "SEED"}))
	c.ok("session.tools.handlePendingToolCall", in(obj{"requestId": a.RequestID, "result": "x"}))
	c.idle(0)
	for page.HasMore = true; page.HasMore; {
		cursor = read(cursor)
	}
	_, want := c.history(id1)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-log +pages)\n%s", diff)
	}
	c.ok("session.eventLog.read", in(obj{"direction": "backward", "max": 1000}), &page)
	got = nil
	for _, e := range page.Events {
		got = append(got, e.ID)
	}
	if diff := cmp.Diff(want, got); diff != "" || page.HasMore {
		t.Errorf("backward (-log +page)\n%s", diff)
	}
	// Everything since the tail, the ephemeral too, in the order it was sent.
	c.ok("session.eventLog.read", in(obj{"cursor": tail.Cursor, "max": 1000}), &page)
	live, _ := c.events(id1, false)
	var types []string
	for _, e := range page.Events {
		types = append(types, e.Type)
	}
	if diff := cmp.Diff(live[1:], types); diff != "" {
		t.Errorf("(-live +page)\n%s", diff)
	}
	for _, bad := range []obj{{"cursor": "x"}, {"max": 0}, {"max": 1001}, {"types": []string{}}, {"direction": "up"}} {
		c.fails(-32602, "session.eventLog.read", in(bad))
	}
}

func TestShell(t *testing.T) {
	home, dir := t.TempDir(), t.TempDir()
	t.Setenv("GH_TOKEN", "a-secret-token")
	w := playFiles(t, home, dir)
	c := w.connect(t)
	c.create(id1)
	var started struct{ ProcessID string }
	c.ok("session.shell.exec", in(obj{"command": "pwd; echo $GH_TOKEN; echo err >&2; exit 3"}), &started)
	note := func(from int, method string, into any) int {
		at := c.await(from, method, func(f frame) bool { return f.Method == method })
		if err := json.Unmarshal(c.at(at).Params, into); err != nil {
			t.Fatal(err)
		}
		return at
	}
	var exit struct {
		ProcessID string
		ExitCode  int
	}
	end := note(0, "shell.exit", &exit)
	if exit.ProcessID != started.ProcessID || exit.ExitCode != 3 {
		t.Errorf("%+v", exit)
	}
	text := map[string]string{}
	for at := 0; at < end; at++ {
		if f := c.at(at); f.Method == "shell.output" {
			var out struct{ ProcessID, Stream, Data string }
			if err := json.Unmarshal(f.Params, &out); err != nil || out.ProcessID != started.ProcessID {
				t.Errorf("%s", f.Params)
			}
			text[out.Stream] += out.Data
		}
	}
	if !strings.HasSuffix(text["stdout"], filepath.Base(dir)+"\n\n") || text["stderr"] != "err\n" {
		t.Errorf("%q", text)
	}
	kill := func(id string) bool {
		var out struct{ Killed bool }
		c.ok("session.shell.kill", in(obj{"processId": id}), &out)
		return out.Killed
	}
	if kill(started.ProcessID) || kill("unknown") {
		t.Error("what has ended was killed")
	}
	c.ok("session.shell.exec", in(obj{"command": "sleep 100"}), &started)
	if !kill(started.ProcessID) {
		t.Error("not killed")
	}
	note(end+1, "shell.exit", &exit)
	c.fails(-32602, "session.shell.exec", in(obj{"command": " "}))
	c.fails(-32602, "session.shell.exec", in(obj{"command": "true", "cwd": "nowhere"}))

	var ran struct {
		Success            bool
		ExitCode           int
		Output, ToolCallID string
	}
	c.ok("session.shell.executeUserRequested", in(obj{"requestId": "r", "command": "echo hello"}), &ran)
	if !ran.Success || ran.Output != "hello\n" || ran.ToolCallID == "" {
		t.Errorf("%+v", ran)
	}
	var call struct{ ToolCallID string }
	c.awaitEvent("tool.execution_complete", &call)
	if call.ToolCallID != ran.ToolCallID {
		t.Errorf("%+v", call)
	}
	from := c.count()
	long := c.send("session.shell.executeUserRequested", in(obj{"requestId": "long", "command": "sleep 100"}))
	c.eventFrom(from, "tool.execution_start", nil)
	var cancelled struct{ Cancelled bool }
	c.ok("session.shell.cancelUserRequested", in(obj{"requestId": "long"}), &cancelled)
	if err := json.Unmarshal(c.reply(long).Result, &ran); err != nil || ran.Success || !cancelled.Cancelled {
		t.Errorf("%+v %+v %v", ran, cancelled, err)
	}
	c.ok("session.shell.cancelUserRequested", in(obj{"requestId": "long"}), &cancelled)
	if cancelled.Cancelled {
		t.Error("cancelled twice")
	}
	// The session ends what still runs.
	c.ok("session.shell.exec", in(obj{"command": "sleep 100"}))
	c.ok("session.destroy", in(nil))
}
