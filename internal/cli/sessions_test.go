package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/eventlog/filelog"
	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/tool"
)

func TestList(t *testing.T) {
	home := t.TempDir()
	run(t, "", "sessions", "list", "--home", home).want(t, CodeOK, "No sessions are stored in "+home)
	if r := run(t, "", "sessions", "list", "--json", "--home", home); r.out != "[]\n" {
		t.Errorf("an empty home lists %q", r.out)
	}
	clearedSession(t, home, "one")
	clearedSession(t, home, "two")
	r := run(t, "", "sessions", "list", "--home", home)
	r.want(t, CodeOK, "ID ", "one ", "two ", "first prompt", " kB")
	var rows []struct {
		ID, Title, Directory string
		Bytes                int
	}
	r = run(t, "", "sessions", "list", "--json", "--home", home)
	if err := json.Unmarshal([]byte(r.out), &rows); err != nil || len(rows) != 2 || rows[0].Title != "first prompt" || rows[0].Bytes == 0 || rows[0].Directory == "" {
		t.Errorf("got %+v, %v", rows, err)
	}
}

// times and sizes change from run to run.
var changing = regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d|\d+\.\d kB|/\S*/session-state|(?m)^  (directory|written by) .*\n`)

func TestShow(t *testing.T) {
	home := t.TempDir()
	clearedSession(t, home, "one")
	r := run(t, "", "sessions", "show", "o", "--home", home)
	r.want(t, CodeOK)
	want := `Session one
  title      first prompt
  log        ~/one/events.jsonl (~)
  started    ~
  model      m

── Window 1 ────────────────────────────────────────────────────────────────────
  system     You are an assistant that runs inside Transom, a runtime for agent
             sessions. The application you work for is a host of the GitHub
             (… and 43 more lines: --full shows all)
  user       first prompt
  assistant  hello
  user       second
             prompt
  assistant  I start afresh.
  call       clear_context {"prompt":"the seed"}
  permission clear_context approved
  CLEARED    4 messages removed: the model sees nothing of window 1 any more.
             The next one begins with the prompt of the clear, its seed.

── Window 2 ────────────────────────────────────────────────────────────────────
  seed       the seed
  result     Cleared 4 messages.
             (of clear_context, a call of window 1: kept here, never shown to
             the model)
  assistant  fresh
  ended      ~

24 records, 2 windows. The last record is of ~.
`
	got := changing.ReplaceAllStringFunc(r.out, func(s string) string {
		if strings.HasSuffix(s, "\n") {
			return ""
		}
		return "~"
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// What a handler said of its failure is for people, and shown to them.
func TestShowFailures(t *testing.T) {
	home := t.TempDir()
	ctx := t.Context()
	rt, err := transom.Open(transom.Config{Home: home, Model: "m", Provider: &answers{all: []model.Message{
		{Calls: []model.Call{{ID: "c1", Name: "save", Arguments: `{}`}}}, {Calls: []model.Call{{ID: "c2", Name: "lock", Arguments: `{}`}}}, {Text: "well"},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := rt.CreateSession(ctx, transom.SessionConfig{
		Tools: []tool.Tool{
			{Name: "save", SkipPermission: true, Handler: func(context.Context, tool.Call) (tool.Result, error) { return tool.Result{}, errors.New("disk full") }},
			{Name: "lock"},
		},
		OnPermission: func(context.Context, transom.PermissionRequest) transom.Decision {
			return transom.Decision{Kind: "reject", Feedback: "not now"}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.SendAndWait(ctx, transom.Message{Prompt: "go"}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Close(ctx), rt.Close(ctx)); err != nil {
		t.Fatal(err)
	}
	run(t, "", "sessions", "show", "--home", home).want(t, CodeOK,
		"Tool execution failed\n             (not told to the model: disk full)", "lock denied by the user: not now")
}

func TestShowWindow(t *testing.T) {
	home := t.TempDir()
	clearedSession(t, home, "one")
	r := run(t, "", "sessions", "show", "--window", "--full", "--home", home)
	r.want(t, CodeOK, "the seed", "fresh", "Answer in the user's language")
	for _, gone := range []string{"first prompt", "hello", "Cleared"} {
		if strings.Contains(r.out, gone) {
			t.Errorf("the window shows %q, which was cleared:\n%s", gone, r.out)
		}
	}
}

func TestShowRaw(t *testing.T) {
	home := t.TempDir()
	clearedSession(t, home, "one")
	raw, err := os.ReadFile(logFile(home, "one"))
	if err != nil {
		t.Fatal(err)
	}
	if r := run(t, "", "sessions", "show", "one", "--json", "--home", home); r.out != string(raw) || r.code != CodeOK {
		t.Errorf("code %d, the output is not the log: %s", r.code, cmp.Diff(string(raw), r.out))
	}
}

func logFile(home, id string) string {
	return filepath.Join(home, "session-state", id, "events.jsonl")
}

// A damaged log is shown as far as it goes, and is not changed by that.
func TestShowDamage(t *testing.T) {
	home := t.TempDir()
	clearedSession(t, home, "one")
	lines := bytes.SplitAfter(read(t, logFile(home, "one")), []byte("\n"))
	lines[5] = []byte("not json\n")                                                   // the first answer
	lines[7] = []byte(`{"type":"user.message","id":"x","data":{"content":7}}` + "\n") // the second prompt
	lines = append(lines, []byte(`{"type":"future\u001b[2J.event","id":"y","data":{}}`+"\n"), []byte(`{"type":"assistant.mes`))
	damaged := bytes.Join(lines, nil)
	if err := os.WriteFile(logFile(home, "one"), damaged, 0o600); err != nil {
		t.Fatal(err)
	}
	r := run(t, "", "sessions", "show", "--home", home)
	r.want(t, CodeOK, "DAMAGE", "line 6", "fresh", "cannot unmarshal number", "future\ufffd[2J.event", "torn last record", "3 damaged places", "23 records, 2 windows")
	if strings.Contains(r.out, "\x1b") {
		t.Errorf("a terminal command got through: %q", r.out)
	}
	run(t, "", "sessions", "show", "--window", "--home", home).want(t, CodeOK, "fresh")
	run(t, "", "sessions", "show", "--json", "--home", home).want(t, CodeOK, "damaged, line 6")
	if !bytes.Equal(read(t, logFile(home, "one")), damaged) {
		t.Error("showing a log has changed it")
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestShowFindsNothing(t *testing.T) {
	home := t.TempDir()
	run(t, "", "sessions", "show", "--home", home).want(t, CodeNotFound, "no sessions are stored in "+home)
	clearedSession(t, home, "one")
	clearedSession(t, home, "once")
	run(t, "", "sessions", "show", "x", "--home", home).want(t, CodeNotFound, `begins with, "x"`)
	run(t, "", "sessions", "show", "on", "--home", home).want(t, CodeUsage, "2 sessions")
	run(t, "", "sessions", "show", "../one", "--home", home).want(t, CodeNotFound)
}

func TestRemove(t *testing.T) {
	home := t.TempDir()
	for _, id := range []string{"one", "two", "three"} {
		clearedSession(t, home, id)
	}
	exists := func(id string) bool { _, err := os.Stat(logFile(home, id)); return err == nil }

	run(t, "", "sessions", "rm", "one", "nine", "-y", "--home", home).want(t, CodeNotFound, `"nine"`, "Nothing was removed")
	run(t, "", "sessions", "rm", "on", "-y", "--home", home).want(t, CodeNotFound, "needs whole ids, and one begins so")
	run(t, "n\n", "sessions", "rm", "one", "--home", home).want(t, CodeAborted, "Remove 1 session for good? [y/N]", "first prompt")
	run(t, "", "sessions", "rm", "one", "--home", home).want(t, CodeAborted, "nothing was removed")
	if !exists("one") {
		t.Fatal("removed without a yes")
	}
	run(t, "yes\n", "sessions", "rm", "one", "--home", home).want(t, CodeOK, "removed one")
	run(t, "", "sessions", "rm", "two", "three", "-y", "--home", home).want(t, CodeOK, "removed two", "removed three")
	if exists("one") || exists("two") || exists("three") {
		t.Error("a removed session is still there")
	}
}

func TestRemoveLeavesWhatOthersUse(t *testing.T) {
	home := t.TempDir()
	clearedSession(t, home, "one")
	store, err := filelog.New(filelog.Config{Home: home})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	hold, err := store.Hold("one")
	if err != nil {
		t.Fatal(err)
	}
	defer hold.Release()
	if err := hold.TakePen(); err != nil {
		t.Fatal(err)
	}
	run(t, "", "sessions", "rm", "one", "-y", "--force", "--home", home).want(t, CodeInUse, "being worked on by process")
	if err := hold.DropPen(); err != nil {
		t.Fatal(err)
	}
	run(t, "", "sessions", "rm", "one", "-y", "--home", home).want(t, CodeInUse, "another process has session one open", "--force")
	run(t, "", "sessions", "rm", "one", "-y", "--force", "--home", home).want(t, CodeOK, "removed one")
}
