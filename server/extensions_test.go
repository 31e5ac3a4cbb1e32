package server_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/transom-run/transom/model/modelfile"
	"github.com/transom-run/transom/model/scripted"
	"github.com/transom-run/transom/server"
)

type extensionRow struct {
	ID, Name, Source, Status string
	PID                      int
	Error                    string
}

// extended is a project with an extension of the test's own.
func extended(t *testing.T) (dir string) {
	t.Helper()
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("extensions are run by node, which is not installed here")
	}
	raw, err := os.ReadFile("testdata/extension/extension.mjs")
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	writeFile(t, filepath.Join(dir, ".github", "extensions", "double", "extension.mjs"), string(raw))
	return dir
}

func (c *client) extensions(t *testing.T) []extensionRow {
	t.Helper()
	var list struct{ Extensions []extensionRow }
	c.ok("session.extensions.list", in(nil), &list)
	return list.Extensions
}

// An extension joins its session as a client that may do less than others, runs a
// factory, is switched off and on, and keeps no session alive.
func TestExtensions(t *testing.T) {
	t.Setenv("GITHUB_TOKEN", "ghp_not_for_extensions")
	dir := extended(t)
	w := newWorld(t, scripted.New(scripted.Config{Replies: []modelfile.Message{scripted.Say("ok")}}), server.Config{Extensions: true})
	c := w.connect(t)
	var created struct{ Capabilities struct{ Extensions bool } }
	c.ok("session.create", in(obj{"workingDirectory": dir, "requestExtensions": true, "requestPermission": true}), &created)
	if !created.Capabilities.Extensions {
		t.Error("the answer does not tell of extensions")
	}
	var note struct{ Message string }
	at := c.eventFrom(0, "session.info", &note)
	if note.Message != "joined: -32013 -32013 -32010 no token" {
		t.Errorf("the extension says %q", note.Message)
	}
	list := c.extensions(t)
	if len(list) != 1 || list[0].ID != "project:double" || list[0].Status != "running" || list[0].PID == 0 {
		t.Fatalf("%+v", list)
	}

	var run struct {
		RunID, Status string
		Result        struct{ Doubled int }
	}
	c.ok("session.factory.run", in(obj{"name": "double", "args": obj{"n": 21}}), &run)
	var settled struct{ RunID, Status string }
	c.eventFrom(at, "factory.run_settled", &settled)
	c.ok("session.factory.getRun", in(obj{"runId": run.RunID}), &run)
	if settled.Status != "completed" || run.Status != "completed" || run.Result.Doubled != 42 {
		t.Errorf("%+v, %+v", settled, run)
	}
	var detail struct {
		Status   string
		Progress struct{ Records []struct{ Text string } }
	}
	c.ok("session.factory.getRunDetail", in(obj{"runId": run.RunID}), &detail)
	if detail.Status != "completed" || len(detail.Progress.Records) != 1 || detail.Progress.Records[0].Text != "working" {
		t.Errorf("%+v", detail)
	}
	if msg := c.fails(-32602, "session.factory.resume", in(obj{"runId": run.RunID})); !strings.Contains(msg, "complete") {
		t.Error(msg)
	}

	c.ok("session.extensions.disable", in(obj{"id": "project:double"}))
	if list = c.extensions(t); len(list) != 1 || list[0].Status != "disabled" {
		t.Errorf("%+v", list)
	}
	c.fails(-32010, "session.factory.run", in(obj{"name": "double"}))
	at = c.count()
	c.ok("session.extensions.enable", in(obj{"id": "project:double"}))
	at = c.eventFrom(at, "session.info", &note) + 1
	c.ok("session.extensions.reload", in(nil))
	c.eventFrom(at, "session.info", &note)
	if list = c.extensions(t); len(list) != 1 || list[0].Status != "running" {
		t.Errorf("%+v", list)
	}
	c.fails(-32010, "session.extensions.enable", in(obj{"id": "project:other"}))

	c.ok("session.destroy", in(nil))
	c.awaitEvent("session.shutdown", nil)
	c.fails(-32010, "session.extensions.list", in(nil))
}

// Where nobody allowed extensions none runs, whoever asks for them.
func TestNoExtensions(t *testing.T) {
	dir := extended(t)
	c := play(t).connect(t)
	c.ok("session.create", in(obj{"workingDirectory": dir, "requestExtensions": true}))
	if list := c.extensions(t); len(list) != 0 {
		t.Errorf("%+v", list)
	}
	if msg := c.fails(-32011, "session.extensions.enable", in(obj{"id": "project:double"})); !strings.HasPrefix(msg, "Extensions not available") {
		t.Error(msg)
	}
}

// An extension that fails says so, and why; what runs beside it goes on.
func TestFailedExtension(t *testing.T) {
	dir := extended(t)
	writeFile(t, filepath.Join(dir, ".github", "extensions", "broken", "extension.mjs"), "throw new Error(`no ghp_secret_of_mine today`);\n")
	w := newWorld(t, scripted.New(scripted.Config{}), server.Config{Extensions: true})
	c := w.connect(t)
	c.ok("secrets.addFilterValues", obj{"values": []any{"ghp_secret_of_mine"}})
	c.ok("session.create", in(obj{"workingDirectory": dir, "requestExtensions": true}))
	status := func(e extensionRow) string { return e.ID + " " + e.Status }
	for at, broken := 0, ""; broken != "project:broken failed"; {
		var told struct{ Extensions []extensionRow }
		at = c.eventFrom(at, "session.extensions_loaded", &told) + 1
		if len(told.Extensions) != 2 || told.Extensions[0].ID != "project:broken" || status(told.Extensions[1]) != "project:double running" {
			t.Fatalf("told %+v", told)
		}
		broken = status(told.Extensions[0])
	}
	list := c.extensions(t)
	if why := list[0].Error; list[0].Status != "failed" || !strings.Contains(why, "exit status 1") || !strings.Contains(why, "Error: no ") || strings.Contains(why, "ghp_secret") {
		t.Errorf("%+v", list[0])
	}
	if list[1].Status != "running" || list[1].Error != "" {
		t.Errorf("%+v", list[1])
	}
	at := c.count()
	c.ok("session.extensions.disable", in(obj{"id": "project:broken"}))
	var told struct{ Extensions []extensionRow }
	if c.eventFrom(at, "session.extensions_loaded", &told); told.Extensions[0].Status != "disabled" {
		t.Errorf("told %+v", told)
	}
}
