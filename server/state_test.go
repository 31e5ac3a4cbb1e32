package server_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/model/modelfile"
	"github.com/transom-run/transom/model/scripted"
	"github.com/transom-run/transom/server"
)

// playFiles makes a world whose sessions are kept below a home.
func playFiles(t testing.TB, home, dir string, replies ...modelfile.Message) *world {
	t.Helper()
	p := scripted.New(scripted.Config{Replies: replies})
	w := newFiles(t, home, dir, p)
	w.model = p
	return w
}

// newFiles makes such a world of any model.
func newFiles(t testing.TB, home, dir string, p model.Provider) *world {
	t.Helper()
	rt, err := transom.Open(transom.Config{Home: home, Provider: p, Dir: dir, Getenv: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{rt: rt, srv: server.New(server.Config{Runtime: rt})}
	t.Cleanup(func() { w.end(t) })
	return w
}

// end takes the sessions out of the process and closes the server.
func (w *world) end(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), watchdog)
	defer cancel()
	if err := w.rt.Close(ctx); err != nil {
		t.Errorf("close runtime: %v", err)
	}
	if err := w.srv.Shutdown(ctx); err != nil {
		t.Errorf("shut down: %v", err)
	}
}

// in adds the session to params.
func in(more obj) obj {
	out := obj{"sessionId": id1}
	for k, v := range more {
		out[k] = v
	}
	return out
}

func TestPlan(t *testing.T) {
	w := playFiles(t, t.TempDir(), t.TempDir())
	c := w.connect(t)
	c.create(id1)
	// Nothing is awaited: files are worked on in the order of the requests.
	first := c.send("session.plan.read", in(nil))
	c.send("session.plan.update", in(obj{"content": "# one"}))
	second := c.send("session.plan.read", in(nil))
	c.send("session.plan.update", in(obj{"content": "# two"}))
	c.send("session.plan.delete", in(nil))
	c.send("session.plan.delete", in(nil))
	third := c.send("session.plan.read", in(nil))
	var plan struct {
		Exists  bool
		Content *string
		Path    string
	}
	read := func(id int) {
		t.Helper()
		plan.Content = nil
		if err := json.Unmarshal(c.reply(id).Result, &plan); err != nil {
			t.Fatal(err)
		}
	}
	read(first)
	if plan.Exists || plan.Content != nil || filepath.Base(plan.Path) != "plan.md" {
		t.Errorf("before: %+v", plan)
	}
	read(second)
	if !plan.Exists || plan.Content == nil || *plan.Content != "# one" {
		t.Errorf("after an update: %+v", plan)
	}
	read(third)
	if plan.Exists || plan.Content != nil {
		t.Errorf("after it was deleted: %+v", plan)
	}
	var ops []string
	for i := 0; len(ops) < 3; i++ {
		var e struct{ Operation string }
		i = c.eventFrom(i, "session.plan_changed", &e)
		ops = append(ops, e.Operation)
	}
	if want := []string{"create", "update", "delete"}; !slices.Equal(ops, want) {
		t.Errorf("operations %v, want %v", ops, want)
	}
	c.fails(-32602, "session.plan.update", in(nil))
	c.fails(-32010, "session.plan.read", obj{"sessionId": "nobody"})
}

func TestWorkspaceFiles(t *testing.T) {
	home := t.TempDir()
	w := playFiles(t, home, t.TempDir())
	c := w.connect(t)
	c.create(id1)
	c.ok("session.workspaces.createFile", in(obj{"path": "a/b/c.txt", "content": "one"}))
	c.ok("session.workspaces.createFile", in(obj{"path": "a/b/c.txt", "content": "two é"}))
	var e struct{ Path, Operation string }
	at := c.eventFrom(0, "session.workspace_file_changed", &e)
	if e.Path != "a/b/c.txt" || e.Operation != "create" {
		t.Errorf("%+v", e)
	}
	c.eventFrom(at+1, "session.workspace_file_changed", &e)
	if e.Operation != "update" {
		t.Errorf("%+v", e)
	}
	var file struct{ Content string }
	c.ok("session.workspaces.readFile", in(obj{"path": "a/b/../b/c.txt"}), &file)
	if file.Content != "two é" {
		t.Errorf("read %q", file.Content)
	}
	var stat struct {
		IsFile, IsDirectory bool
		Size                int
	}
	c.ok("session.workspaces.statFile", in(obj{"path": "a/b"}), &stat)
	if !stat.IsDirectory || stat.IsFile {
		t.Errorf("%+v", stat)
	}
	c.ok("session.workspaces.createDirectory", in(obj{"path": "d/e", "recursive": true}))
	c.fails(-32010, "session.workspaces.createDirectory", in(obj{"path": "x/y"}))
	c.fails(-32012, "session.workspaces.createDirectory", in(obj{"path": "d"}))
	c.ok("session.workspaces.renamePath", in(obj{"source": "a/b/c.txt", "destination": "d/e/f.txt"}))
	c.fails(-32010, "session.workspaces.readFile", in(obj{"path": "a/b/c.txt"}))
	c.fails(-32602, "session.workspaces.removePath", in(obj{"path": "d"}))
	c.ok("session.workspaces.removePath", in(obj{"path": "a", "recursive": true}))
	c.ok("session.workspaces.removePath", in(obj{"path": "a", "force": true}))
	c.fails(-32010, "session.workspaces.removePath", in(obj{"path": "a"}))
	var list struct{ Files []string }
	c.ok("session.workspaces.listFiles", in(nil), &list)
	if want := []string{"d/e/f.txt"}; !slices.Equal(list.Files, want) {
		t.Errorf("files %q, want %q", list.Files, want)
	}
	var paste struct {
		Saved struct {
			Filename, FilePath string
			SizeBytes          int
		}
	}
	c.ok("session.workspaces.saveLargePaste", in(obj{"content": "päste"}), &paste)
	if raw, err := os.ReadFile(paste.Saved.FilePath); err != nil || string(raw) != "päste" || paste.Saved.SizeBytes != 6 {
		t.Errorf("%+v holds %q (%v)", paste, raw, err)
	}
	// Nothing leads out: not by a name, not by a link.
	files := filepath.Join(home, "session-state", id1, "files")
	outside := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(files, "link")); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"../x", "d/../../x", "/etc/passwd", "", ".", "..", "a\x00b", "link/x"} {
		for _, m := range []string{"createFile", "readFile", "statFile", "removePath", "createDirectory"} {
			msg := c.fails(-32602, "session.workspaces."+m, in(obj{"path": path, "content": "x", "recursive": true}))
			if !strings.Contains(msg, "workspace files directory") {
				t.Errorf("%s %q: %s", m, path, msg)
			}
		}
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) > 0 {
		t.Errorf("something got out: %v %v", entries, err)
	}
}

// A store without files says so.
func TestNoWorkspace(t *testing.T) {
	c := play(t).connect(t)
	c.create(id1)
	c.fails(-32014, "session.plan.update", in(obj{"content": "x"}))
	c.fails(-32014, "session.workspaces.listFiles", in(nil))
	var saved struct{ Saved *obj }
	c.ok("session.workspaces.saveLargePaste", in(obj{"content": "x"}), &saved)
	if saved.Saved != nil {
		t.Errorf("%+v", saved)
	}
}

func TestDiff(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	dir := t.TempDir()
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.com"}, args...)...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	type change struct{ Path, OldPath, ChangeType, Diff string }
	var got struct {
		RequestedMode, Mode, BaseBranch string
		IsFallback                      bool
		Changes                         []change
	}
	c := playFiles(t, t.TempDir(), dir).connect(t)
	c.create(id1)
	c.ok("session.workspaces.diff", in(obj{"mode": "unstaged"}), &got)
	if len(got.Changes) != 0 || got.Mode != "unstaged" {
		t.Errorf("outside of a repository: %+v", got)
	}
	git("init", "-q", "-b", "main")
	write("kept.txt", "one\n")
	write("gone file.txt", "one\ntwo\nthree\n")
	git("add", ".")
	git("commit", "-qm", "first")
	git("checkout", "-qb", "work")
	write("kept.txt", "two\n")
	write("new é.txt", "new\n")
	if err := os.Remove(filepath.Join(dir, "gone file.txt")); err != nil {
		t.Fatal(err)
	}
	summary := func(mode string) (out []string) {
		got.Changes = nil
		c.ok("session.workspaces.diff", in(obj{"mode": mode}), &got)
		for _, ch := range got.Changes {
			out = append(out, ch.ChangeType+" "+ch.Path)
			if !strings.HasPrefix(ch.Diff, "diff --git ") {
				t.Errorf("%s: %q", ch.Path, ch.Diff)
			}
		}
		slices.Sort(out)
		return out
	}
	want := []string{"added new é.txt", "deleted gone file.txt", "modified kept.txt"}
	if diff := cmp.Diff(want, summary("unstaged")); diff != "" {
		t.Error(diff)
	}
	git("add", ".")
	git("commit", "-qm", "second")
	if s := summary("unstaged"); len(s) != 0 {
		t.Errorf("after a commit: %v", s)
	}
	if diff := cmp.Diff(want, summary("branch")); diff != "" || got.BaseBranch != "main" {
		t.Error(diff, got.BaseBranch)
	}
	if summary("session"); !got.IsFallback || got.Mode != "unstaged" {
		t.Errorf("session mode: %+v", got)
	}
	c.fails(-32602, "session.workspaces.diff", in(obj{"mode": "other"}))
}

func TestMetadata(t *testing.T) {
	home, dir, other := t.TempDir(), t.TempDir(), t.TempDir()
	w := playFiles(t, home, dir, scripted.Call("host", `{}`), scripted.Say("done"))
	c := w.connect(t)
	c.create(id1, hostTool("host"))
	var snap struct {
		SessionID, CurrentMode, WorkingDirectory, StartTime, ModifiedTime string
		WorkspacePath                                                     *string
		Workspace                                                         struct {
			ID, Branch string
			Name       string
		}
		IsRemote, AlreadyInUse bool
		SessionLimits          any
	}
	c.ok("session.metadata.snapshot", in(nil), &snap)
	if snap.SessionID != id1 || snap.Workspace.ID != id1 || snap.CurrentMode != "interactive" || snap.WorkingDirectory != dir || snap.WorkspacePath == nil {
		t.Errorf("%+v", snap)
	}
	// A change takes effect before what is asked after it, without waiting.
	c.send("session.metadata.setWorkingDirectory", in(obj{"workingDirectory": other}))
	c.ok("session.metadata.snapshot", in(nil), &snap)
	if snap.WorkingDirectory != other {
		t.Errorf("works in %s, not in %s", snap.WorkingDirectory, other)
	}
	for _, bad := range []string{"relative", filepath.Join(other, "nothing"), ""} {
		c.fails(-32602, "session.metadata.setWorkingDirectory", in(obj{"workingDirectory": bad}))
	}
	c.ok("session.metadata.recordContextChange", in(obj{"context": obj{"cwd": dir, "branch": "stale"}}))
	c.ok("session.metadata.recordContextChange", in(obj{"context": obj{"cwd": other, "branch": "main", "hostType": "github"}}))
	c.ok("session.metadata.snapshot", in(nil), &snap)
	if snap.Workspace.Branch != "main" {
		t.Errorf("branch %q", snap.Workspace.Branch)
	}
	var acts struct{ HasActiveWork, Abortable, Processing bool }
	c.prompt(id1, "go")
	var a ask
	c.awaitEvent("external_tool.requested", &a)
	c.ok("session.metadata.activity", in(nil), &acts)
	if !acts.HasActiveWork || !acts.Abortable {
		t.Errorf("while a tool is called: %+v", acts)
	}
	c.ok("session.tools.handlePendingToolCall", in(obj{"requestId": a.RequestID, "result": strings.Repeat("long ", 100)}))
	c.idle(0)
	c.ok("session.metadata.isProcessing", in(nil), &acts)
	if acts.Processing {
		t.Error("processing after idle")
	}
	checkWindow(t, c)
}

// checkWindow: all figures about the window agree.
func checkWindow(t *testing.T, c *client) {
	t.Helper()
	var info struct{ ContextInfo map[string]any }
	c.ok("session.metadata.contextInfo", in(obj{"promptTokenLimit": 1000, "outputTokenLimit": 100}), &info)
	n := func(name string) int { return int(info.ContextInfo[name].(float64)) }
	if n("totalTokens") != n("systemTokens")+n("conversationTokens")+n("toolDefinitionsTokens") || n("conversationTokens") < 100 || n("limit") != 1100 {
		t.Errorf("%v", info)
	}
	var again struct{ SystemTokenCount, MessagesTokenCount, TotalTokens int }
	c.ok("session.metadata.recomputeContextTokens", in(obj{"modelId": "any"}), &again)
	if again.SystemTokenCount != n("systemTokens") || again.MessagesTokenCount != n("conversationTokens") || again.TotalTokens != again.SystemTokenCount+again.MessagesTokenCount {
		t.Errorf("%+v and %v", again, info)
	}
	var heavy struct {
		TotalTokens int
		Messages    []struct{ Role, Label string }
	}
	c.ok("session.metadata.getContextHeaviestMessages", in(obj{"limit": 1}), &heavy)
	if len(heavy.Messages) != 1 || heavy.Messages[0].Label != "tool: host" || heavy.TotalTokens != n("totalTokens") {
		t.Errorf("%+v", heavy)
	}
	var attr struct {
		ContextAttribution struct {
			TotalTokens int
			Entries     []struct {
				ID     string
				Tokens int
			}
		}
	}
	c.ok("session.metadata.getContextAttribution", in(nil), &attr)
	var ids []string
	for _, e := range attr.ContextAttribution.Entries {
		ids = append(ids, e.ID)
	}
	if want := []string{"system", "toolDefinition:host", "tool:host"}; !slices.Equal(ids, want) || attr.ContextAttribution.TotalTokens != n("totalTokens") {
		t.Errorf("%+v", attr)
	}
	var metrics struct {
		TotalUserRequests int
		ModelMetrics      map[string]struct{ Requests struct{ Count int } }
	}
	c.ok("session.usage.getMetrics", in(nil), &metrics)
	if metrics.TotalUserRequests != 1 || len(metrics.ModelMetrics) != 1 {
		t.Errorf("%+v", metrics)
	}
	var tools struct {
		Tools []struct{ Name, Description string }
	}
	c.ok("session.tools.getCurrentMetadata", in(nil), &tools)
	if len(tools.Tools) != 1 || tools.Tools[0].Name != "host" || tools.Tools[0].Description != "does host" {
		t.Errorf("%+v", tools)
	}
}
