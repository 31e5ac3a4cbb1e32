package server_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/transom-run/transom/model/scripted"
)

// said asks the model and returns the id of the user's message.
func (c *client) said(text string) string {
	c.t.Helper()
	at := c.count()
	c.prompt(id1, text)
	c.idle(at)
	types, ids := c.history(id1)
	for i := len(types) - 1; i >= 0; i-- {
		if types[i] == "user.message" {
			return ids[i]
		}
	}
	c.t.Fatal("there is no user.message")
	return ""
}

// page reads events on from a cursor.
func (c *client) page(cursor string) (ids []string, next, status string) {
	c.t.Helper()
	var out struct {
		Events       []event
		Cursor       string
		CursorStatus string
	}
	c.ok("session.eventLog.read", in(obj{"cursor": cursor, "max": 100, "includeEphemeral": false}), &out)
	for _, e := range out.Events {
		ids = append(ids, e.ID)
	}
	return ids, out.Cursor, out.CursorStatus
}

// A truncation takes effect in the order of requests, is told to all clients, and
// cursors given before it go on behind it.
func TestTruncate(t *testing.T) {
	w := play(t, scripted.Say("one"), scripted.Say("two"), scripted.Say("three"))
	c, other := w.connect(t), w.connect(t)
	c.create(id1)
	first := c.said("first")
	other.ok("session.resume", obj{"sessionId": id1})
	_, cursor, _ := c.page("")
	second := c.said("second")
	before, ids := c.history(id1)
	var back struct{ EventsRemoved int }
	// Posted together: the prompt has its turn behind the boundary.
	at := c.count()
	truncated := c.send("session.history.truncate", in(obj{"eventId": strings.ToUpper(second)}))
	sent := c.send("session.send", in(obj{"prompt": "third"}))
	if f := c.reply(truncated); f.Error != nil {
		t.Fatal(f.Error.Message)
	}
	if f := c.reply(sent); f.Error != nil {
		t.Fatal(f.Error.Message)
	}
	c.idle(at)
	removed := len(ids) - slices.Index(ids, second)
	for _, seat := range []*client{c, other} {
		seat.awaitEvent("session.snapshot_rewind", &back)
		if back.EventsRemoved != removed {
			t.Errorf("%d events removed, want %d of %v", back.EventsRemoved, removed, before)
		}
	}
	after, left := c.history(id1)
	if slices.Contains(left, second) || !slices.Contains(left, first) || !slices.Contains(after, "user.message") {
		t.Errorf("the history is %v", after)
	}
	if texts := w.model.Requests()[2].Messages; len(texts) != 4 || !strings.Contains(texts[3].Text, "third") {
		t.Errorf("the model was sent %v", texts)
	}
	more, _, status := c.page(cursor)
	if status != "ok" || slices.Contains(more, second) || len(more) == 0 || more[len(more)-1] != left[len(left)-1] {
		t.Errorf("the cursor gives %v (%s); the history is %v", more, status, left)
	}
	if got := c.fails(-32010, "session.history.truncate", in(obj{"eventId": second})); !strings.HasPrefix(got, "Event ID not found: "+second) {
		t.Error(got)
	}
	c.fails(-32602, "session.history.truncate", in(nil))
	c.fails(-32602, "session.history.truncate", in(obj{"eventId": left[0]}))
	c.fails(-32602, "session.history.rewind", in(obj{"eventId": first, "mode": "files"}))
}

// While a turn runs nothing goes back, and each method says so in its own way.
func TestHistoryOfBusySession(t *testing.T) {
	w := playFiles(t, t.TempDir(), t.TempDir(), scripted.Say("one"), scripted.Call("host", `{}`), scripted.Say("two"))
	c := w.connect(t)
	c.ok("session.create", obj{"sessionId": id1, "enableFileChangeTracking": true, "tools": []obj{hostTool("host")}})
	first := c.said("first")
	at := c.count()
	c.prompt(id1, "second")
	var a ask
	c.eventFrom(at, "external_tool.requested", &a)
	c.fails(-32011, "session.history.truncate", in(obj{"eventId": first}))
	var out obj
	c.ok("session.history.rewind", in(obj{"eventId": first, "mode": "conversation-and-files"}), &out)
	if diff := cmp.Diff(obj{"outcome": "session-busy", "restoredFiles": []any{}, "skippedFiles": []any{}}, out); diff != "" {
		t.Error(diff)
	}
	out = nil
	c.ok("session.history.listRewindPoints", in(nil), &out)
	if diff := cmp.Diff(obj{"fileChangeTrackingEnabled": true, "points": []any{}, "unavailableReason": "session-busy"}, out); diff != "" {
		t.Error(diff)
	}
	out = nil
	c.ok("session.history.previewRewind", in(obj{"eventId": first}), &out)
	if diff := cmp.Diff(obj{"available": false, "fileCount": 0.0, "files": []any{}, "reason": "session-busy"}, out); diff != "" {
		t.Error(diff)
	}
	// A fork is a reading: it may be made at any time.
	var fork struct{ SessionID string }
	c.ok("sessions.fork", in(nil), &fork)
	c.ok("session.tools.handlePendingToolCall", in(obj{"requestId": a.RequestID, "result": "x"}))
	c.idle(at)
	c.ok("session.resume", obj{"sessionId": fork.SessionID, "continuePendingWork": true})
	types, _ := c.history(fork.SessionID)
	if !slices.Contains(types, "tool.execution_complete") || types[len(types)-1] != "session.resume" {
		t.Errorf("the copy of a running turn is %v", types)
	}
	var answered struct{ Success bool }
	c.ok("session.tools.handlePendingToolCall", obj{"sessionId": fork.SessionID, "requestId": a.RequestID, "result": "x"}, &answered)
	if answered.Success {
		t.Error("the copy waits for a call of its source")
	}
	out = nil
	c.ok("session.history.rewind", in(obj{"eventId": first, "mode": "conversation-and-files"}), &out)
	if out["outcome"] != "success" || out["eventsRemoved"] == nil {
		t.Errorf("got %v", out)
	}
}

// An untracked session lists its points, and says that files stay as they are.
func TestRewindPointsWithoutTracking(t *testing.T) {
	w := play(t, scripted.Say("one"))
	c := w.connect(t)
	c.create(id1)
	first := c.said("first")
	var list struct {
		FileChangeTrackingEnabled bool
		UnavailableReason         *string
		Points                    []obj
	}
	c.ok("session.history.listRewindPoints", in(nil), &list)
	if list.FileChangeTrackingEnabled || list.UnavailableReason != nil || len(list.Points) != 1 || list.Points[0]["eventId"] != first || list.Points[0]["userMessage"] != "first" || list.Points[0]["canRestoreFiles"] != false {
		t.Errorf("got %+v", list)
	}
	var out obj
	c.ok("session.history.rewind", in(obj{"eventId": first, "mode": "conversation-and-files"}), &out)
	if out["outcome"] != "file-change-tracking-disabled" || out["eventsRemoved"] != nil {
		t.Errorf("got %v", out)
	}
	out = nil
	c.ok("session.history.previewRewind", in(obj{"eventId": first}), &out)
	if out["available"] != false || out["reason"] != "file-change-tracking-disabled" {
		t.Errorf("got %v", out)
	}
}

// Pages of a stored session, and what is wrong with a request for them.
func TestReadPersistedEvents(t *testing.T) {
	w := play(t, scripted.Say("one"))
	c := w.connect(t)
	c.create(id1)
	c.said("first")
	_, ids := c.history(id1)
	c.ok("session.destroy", in(nil))
	var got []string
	cursor := ""
	for more := true; more; {
		var out struct {
			Events       []event
			Cursor       string
			HasMore      bool
			CursorStatus string
		}
		c.ok("sessions.readPersistedEvents", obj{"sessionId": id1, "cursor": cursor, "max": 2}, &out)
		for _, e := range out.Events {
			got = append(got, e.ID)
		}
		cursor, more = out.Cursor, out.HasMore
		if out.CursorStatus != "ok" {
			t.Error(out.CursorStatus)
		}
	}
	if !slices.Equal(got[:len(ids)], ids) || len(got) != len(ids)+1 { // and session.shutdown
		t.Errorf("got %v, want %v", got, ids)
	}
	c.fails(-32010, "sessions.readPersistedEvents", obj{"sessionId": "none"})
	c.fails(-32602, "sessions.readPersistedEvents", obj{})
	c.fails(-32602, "sessions.readPersistedEvents", obj{"sessionId": id1, "max": 0})
	c.fails(-32602, "sessions.readPersistedEvents", obj{"sessionId": id1, "direction": "up"})
	c.fails(-32602, "sessions.readPersistedEvents", obj{"sessionId": id1, "cursor": "x"})
	if msg := c.fails(-32010, "sessions.fork", obj{"sessionId": "none"}); !strings.Contains(msg, "not found or has no persisted events") {
		t.Error(msg)
	}
	if msg := c.fails(-32010, "sessions.fork", obj{"sessionId": id1, "toEventId": "nothing"}); !strings.Contains(msg, "event nothing not found") {
		t.Error(msg)
	}
}

// Summaries are checkpoints: numbered, titled, kept in a file, and gone with what a
// truncation removes.
func TestCheckpoints(t *testing.T) {
	w := playFiles(t, t.TempDir(), t.TempDir(), scripted.Say("one"), scripted.Say("<checkpoint_title>Two Rivers & more</checkpoint_title>\nText."), scripted.Say("two"), scripted.Say("# Second\nmore"))
	c := w.connect(t)
	c.ok("session.create", obj{"sessionId": id1, "infiniteSessions": obj{"backgroundCompactionThreshold": 0.25, "bufferExhaustionThreshold": 0.5}})
	c.said("first")
	c.ok("session.history.compact", in(nil))
	second := c.said("second")
	c.ok("session.history.compact", in(nil))
	var list struct {
		Checkpoints []struct {
			Number          int
			Title, Filename string
		}
	}
	c.ok("session.workspaces.listCheckpoints", in(nil), &list)
	if len(list.Checkpoints) != 2 || list.Checkpoints[0].Filename != "001-two-rivers-more.md" || list.Checkpoints[0].Title != "Two Rivers & more" || list.Checkpoints[1].Title != "Second" || list.Checkpoints[1].Number != 2 {
		t.Fatalf("got %+v", list)
	}
	var done struct {
		CheckpointNumber int
		CheckpointPath   string
	}
	c.awaitEvent("session.compaction_complete", &done)
	if done.CheckpointNumber != 1 || filepath.Base(done.CheckpointPath) != list.Checkpoints[0].Filename {
		t.Errorf("the event says %+v", done)
	}
	if text, err := os.ReadFile(done.CheckpointPath); err != nil || !strings.HasSuffix(string(text), "Text.") {
		t.Errorf("the file holds %q: %v", text, err)
	}
	var read struct{ Content *string }
	c.ok("session.workspaces.readCheckpoint", in(obj{"number": 2}), &read)
	if read.Content == nil || *read.Content != "# Second\nmore" {
		t.Errorf("got %v", read.Content)
	}
	var info struct{ ContextInfo obj }
	c.ok("session.metadata.contextInfo", in(obj{"promptTokenLimit": 1000, "outputTokenLimit": 100}), &info)
	if info.ContextInfo["compactionThreshold"] != 250.0 || info.ContextInfo["bufferTokens"] != 600.0 {
		t.Errorf("the thresholds are %v", info.ContextInfo)
	}
	var attribution struct {
		ContextAttribution struct{ Compactions struct{ Count int } }
	}
	c.ok("session.metadata.getContextAttribution", in(nil), &attribution)
	if attribution.ContextAttribution.Compactions.Count != 2 {
		t.Errorf("got %+v", attribution)
	}
	c.ok("session.history.truncate", in(obj{"eventId": second}))
	c.ok("session.workspaces.listCheckpoints", in(nil), &list)
	if len(list.Checkpoints) != 1 {
		t.Errorf("got %+v", list)
	}
	read.Content = nil
	c.ok("session.workspaces.readCheckpoint", in(obj{"number": 2}), &read)
	if read.Content != nil {
		t.Errorf("got %q", *read.Content)
	}
	c.ok("session.destroy", in(nil)) // effects have ended
	files, err := os.ReadDir(filepath.Dir(done.CheckpointPath))
	if err != nil || len(files) != 1 {
		t.Errorf("files: %v, %v", files, err)
	}
}

// What a host says of steering is read back, of a session that is loaded and of one
// that is stored; a truncation takes it back.
func TestPersistedRemoteSteerable(t *testing.T) {
	w := play(t, scripted.Say("one"), scripted.Say("two"))
	c := w.connect(t)
	c.create(id1)
	c.fails(-32010, "sessions.getPersistedRemoteSteerable", in(nil)) // not stored yet
	c.said("first")
	says := func(want string) {
		t.Helper()
		f := c.reply(c.send("sessions.getPersistedRemoteSteerable", in(nil)))
		if f.Error != nil || string(f.Result) != want {
			t.Errorf("%s, %v; want %s", f.Result, f.Error, want)
		}
	}
	says(`{}`)
	c.ok("session.remote.notifySteerableChanged", in(obj{"remoteSteerable": true}))
	says(`{"remoteSteerable":true}`)
	second := c.said("second")
	c.ok("session.remote.notifySteerableChanged", in(obj{"remoteSteerable": false}))
	says(`{"remoteSteerable":false}`)
	c.ok("session.history.truncate", in(obj{"eventId": second}))
	says(`{"remoteSteerable":true}`)
	c.ok("session.destroy", in(nil))
	says(`{"remoteSteerable":true}`)
	c.fails(-32010, "sessions.getPersistedRemoteSteerable", obj{"sessionId": "none"})
	c.fails(-32602, "sessions.getPersistedRemoteSteerable", obj{})
}
