package transom_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/eventlog"
	"github.com/transom-run/transom/eventlog/filelog"
	"github.com/transom-run/transom/eventlog/memlog"
	"github.com/transom-run/transom/internal/builtin"
	"github.com/transom-run/transom/model"
)

// filing is a runtime whose sessions have the built-in tools for files.
type filing struct {
	t     *testing.T
	rt    *transom.Runtime
	store *filelog.Store
	home  string
	dir   string // the working directory
	model *script
}

type tools struct{ *builtin.Set }

func (tools) Todos(context.Context) ([]transom.Todo, []transom.TodoDependency, error) {
	return nil, nil, nil
}

func newFiling(t *testing.T) *filing {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	f := &filing{t: t, home: filepath.Join(root, "home"), dir: filepath.Join(root, "work"), model: &script{}}
	if err := os.Mkdir(f.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	f.open()
	return f
}

// open starts a runtime on the store, as a new process does.
func (f *filing) open() {
	f.t.Helper()
	var err error
	if f.store, err = filelog.New(filelog.Config{Home: f.home}); err != nil {
		f.t.Fatal(err)
	}
	f.rt, err = transom.Open(transom.Config{Store: f.store, Provider: f.model, Dir: f.dir, BuiltIns: func(c transom.BuiltInContext) (transom.BuiltIns, error) {
		set, err := builtin.New(builtin.Config{Dir: c.Dir, SessionDir: c.Files, NoDatabase: true, BeforeWrite: func(ctx context.Context, ch builtin.Change) error {
			return c.BeforeWrite(ctx, transom.FileChange(ch))
		}})
		return tools{set}, err
	}})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		_ = f.rt.Close(ctx)
		_ = f.store.Close()
	})
}

func (f *filing) create(track bool) *transom.Session {
	f.t.Helper()
	s, err := f.rt.CreateSession(f.t.Context(), transom.SessionConfig{ID: "s", TrackFiles: track, OnPermission: transom.ApproveAll})
	if err != nil {
		f.t.Fatal(err)
	}
	return s
}

// turn plays a turn in which the model makes calls: name and arguments in turns.
func (f *filing) turn(s *transom.Session, prompt string, calls ...string) {
	f.t.Helper()
	f.model.mu.Lock()
	if len(calls) > 0 {
		m := model.Message{}
		for i := 0; i < len(calls); i += 2 {
			m.Calls = append(m.Calls, model.Call{ID: fmt.Sprint(prompt, i), Name: calls[i], Arguments: calls[i+1]})
		}
		f.model.replies = append(f.model.replies, m)
	}
	f.model.replies = append(f.model.replies, model.Message{Text: "done"})
	f.model.mu.Unlock()
	if _, err := s.SendAndWait(f.t.Context(), transom.Message{Prompt: prompt}); err != nil {
		f.t.Fatal(err)
	}
}

func (f *filing) path(name string) string { return filepath.Join(f.dir, name) }

func (f *filing) write(name, text string) {
	f.t.Helper()
	if err := os.WriteFile(f.path(name), []byte(text), 0o644); err != nil {
		f.t.Fatal(err)
	}
}

// holds checks what a file holds; "-" is that there is none.
func (f *filing) holds(name, want string) {
	f.t.Helper()
	got, err := os.ReadFile(f.path(name))
	if os.IsNotExist(err) {
		got = []byte("-")
	}
	if string(got) != want {
		f.t.Errorf("%s holds %q, want %q", name, got, want)
	}
}

func create(name, text string) string {
	b, _ := json.Marshal(map[string]string{"path": name, "file_text": text})
	return string(b)
}

func edit(name, old, text string) string {
	b, _ := json.Marshal(map[string]string{"path": name, "old_str": old, "new_str": text})
	return string(b)
}

func (f *filing) points(s *transom.Session) []transom.RewindPoint {
	f.t.Helper()
	points, err := s.History().RewindPoints()
	if err != nil {
		f.t.Fatal(err)
	}
	for i := range points {
		points[i].Time = time.Time{}
	}
	return points
}

func (f *filing) rewind(s *transom.Session, id string, files bool) transom.RewindResult {
	f.t.Helper()
	r, err := s.History().Rewind(f.t.Context(), id, files)
	if err != nil {
		f.t.Fatal(err)
	}
	return r
}

func TestRewindFiles(t *testing.T) {
	f := newFiling(t)
	f.write("old", "one\n")
	f.write("mine", "one\n")
	s := f.create(true)
	f.turn(s, "first", "create", create("a", "x\ny\n"))
	f.turn(s, "second", "edit", edit("old", "one", "two"), "edit", edit("mine", "one", "two"), "create", create("sub/b", "z"))
	f.turn(s, "third", "edit", edit("old", "two", "three"))
	f.turn(s, "fourth")
	ids := userMessages(s)
	want := []transom.RewindPoint{
		{EventID: ids[0], Text: "first", Files: 4, Restorable: 4, Changed: true, Added: 2},
		{EventID: ids[1], Text: "second", Files: 3, Restorable: 3, Changed: true, Added: 3, Removed: 2},
		{EventID: ids[2], Text: "third", Files: 1, Restorable: 1, Changed: true, Added: 1, Removed: 1},
		{EventID: ids[3], Text: "fourth"},
	}
	if diff := cmp.Diff(want, f.points(s)); diff != "" {
		t.Fatal(diff)
	}
	preview, err := s.History().PreviewRewind(ids[1])
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]transom.FilePreview{
		{Path: f.path("mine"), Change: "modified", Added: 1, Removed: 1}, {Path: f.path("old"), Change: "modified", Added: 2, Removed: 2}, {Path: f.path("sub/b"), Change: "created", Added: 1},
	}, preview); diff != "" {
		t.Error(diff)
	}
	f.write("mine", "changed by hand\n")
	got := f.rewind(s, ids[1], true)
	if diff := cmp.Diff(transom.RewindResult{
		Outcome: transom.Rewound, EventsRemoved: got.EventsRemoved, Restored: []string{f.path("old"), f.path("sub/b")},
		Skipped: []transom.SkippedFile{{Path: f.path("mine"), Reason: "user-modified"}},
	}, got); diff != "" || got.EventsRemoved == 0 {
		t.Error(diff)
	}
	f.holds("old", "one\n")
	f.holds("mine", "changed by hand\n")
	f.holds("sub/b", "-")
	f.holds("a", "x\ny\n")
	if left := userMessages(s); !slices.Equal(left, ids[:1]) {
		t.Errorf("the history has %v", left)
	}
	// What was brought back is done with; what was left alone is not.
	if diff := cmp.Diff([]transom.RewindPoint{{EventID: ids[0], Text: "first", Files: 2, Restorable: 2, Changed: true, Added: 3, Removed: 1}}, f.points(s)); diff != "" {
		t.Error(diff)
	}
	// A conversation that goes back alone leaves files; a later rewind brings them back all the same.
	f.turn(s, "again", "create", create("c", "c"))
	if got := f.rewind(s, userMessages(s)[1], false); got.Outcome != transom.Rewound || len(got.Restored) > 0 {
		t.Errorf("got %+v", got)
	}
	f.holds("c", "c")
	if got := f.rewind(s, ids[0], true); !slices.Equal(got.Restored, []string{f.path("a"), f.path("c")}) {
		t.Errorf("got %+v", got)
	}
	f.holds("a", "-")
	f.holds("c", "-")
	if err := s.History().Prune(); err != nil {
		t.Fatal(err)
	}
	kept, err := os.ReadDir(filepath.Join(f.store.Dir("s"), "rewind"))
	if err != nil || len(kept) != 1 { // of the file that was left alone
		t.Errorf("kept: %v, %v", kept, err)
	}
}

// TestRewindOutcomes: what cannot be done is said, and nothing is done.
func TestRewindOutcomes(t *testing.T) {
	f := newFiling(t)
	s := f.create(false)
	f.turn(s, "first", "create", create("a", "x"))
	id := userMessages(s)[0]
	if got := f.rewind(s, id, true); got.Outcome != transom.RewindUntracked {
		t.Errorf("got %+v", got)
	}
	if s.FileTracking() || f.points(s)[0].Files != 0 {
		t.Error("a session without the setting keeps track")
	}
	if err := s.Resume(t.Context(), transom.ResumeConfig{TrackFiles: true}); err != nil || s.FileTracking() {
		t.Errorf("a session that has had a turn begins to keep track: %v", err)
	}
	for _, bad := range []string{"none", ""} {
		if _, err := s.History().Rewind(t.Context(), bad, false); err == nil {
			t.Errorf("%q was rewound to", bad)
		}
	}
	if _, err := s.History().PreviewRewind("none"); !isKind(err, transom.KindNotFound) {
		t.Errorf("got %v", err)
	}
	if _, err := s.History().Truncate(t.Context(), "none"); !isKind(err, transom.KindNotFound) || !strings.HasPrefix(err.Error(), "Event ID not found") {
		t.Errorf("got %v", err)
	}
	f.holds("a", "x")
	rt, err := transom.Open(transom.Config{Store: memlog.New(), Provider: f.model})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close(t.Context())
	if _, err := rt.CreateSession(t.Context(), transom.SessionConfig{TrackFiles: true}); !isKind(err, transom.KindUnsupported) {
		t.Errorf("a store without directories: %v", err)
	}
}

// TestRewindCutOff: a process that dies between the first record of a rewind and its
// boundary leaves a rewind that the next resume completes, wherever it had come to.
func TestRewindCutOff(t *testing.T) {
	for restored := range 3 { // files that were back when it died
		t.Run(fmt.Sprint(restored), func(t *testing.T) {
			f := newFiling(t)
			f.write("old", "one\n")
			s := f.create(true)
			f.turn(s, "first")
			f.turn(s, "second", "edit", edit("old", "one", "two"), "create", create("new", "x"))
			ids := userMessages(s)
			if err := s.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			f.cutOff(t, ids[1], restored)
			s, err := f.rt.ResumeSession(t.Context(), "s", transom.ResumeConfig{OnPermission: transom.ApproveAll})
			if err != nil {
				t.Fatal(err)
			}
			f.turn(s, "third") // whether the rewind is through or not
			f.holds("old", "one\n")
			f.holds("new", "-")
			f.model.mu.Lock()
			last := f.model.requests[len(f.model.requests)-1]
			f.model.mu.Unlock()
			said := ""
			for _, m := range last.Messages[1:] {
				said += string(m.Role[0]) + ":" + m.Text[strings.LastIndexByte(m.Text, '\n')+1:] + " "
			}
			if said != "u:first a:done u:third " {
				t.Errorf("the model was sent %s", said)
			}
			if left := userMessages(s); len(left) != 2 || left[0] != ids[0] || left[1] == ids[1] {
				t.Errorf("the history has %v", left)
			}
		})
	}
}

// cutOff makes the log of a process that died while it brought files back.
func (f *filing) cutOff(t *testing.T, id string, restored int) {
	t.Helper()
	log, _, err := f.store.Open(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	var files []event.FileRestore
	for rec, err := range log.Read(0) {
		if err != nil {
			t.Fatal(err)
		}
		if e, err := event.Decode(rec.Line); err == nil && e.Type == event.TypeFileCaptured {
			p, err := event.As[event.FileCaptured](e)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, event.FileRestore{Path: p.Path, To: p.Before, From: []string{p.After, p.Before.Hash}})
		}
	}
	e, err := event.New(event.RewindBegun{EventID: id, Files: files}, "begun", "", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := log.Append(eventlog.Batch{Lines: [][]byte{e.Line}}); err != nil {
		t.Fatal(err)
	}
	if restored > 0 {
		f.write("old", "one\n")
	}
	if restored > 1 {
		if err := os.Remove(f.path("new")); err != nil {
			t.Fatal(err)
		}
	}
}

// TestForkAndSource: neither sees anything of the other afterwards.
func TestForkAndSource(t *testing.T) {
	f := newFiling(t)
	s := f.create(true)
	f.turn(s, "first", "create", create("a", "x"))
	f.turn(s, "second")
	ids := userMessages(s)
	if _, err := f.rt.ForkSession(t.Context(), transom.Fork{SessionID: "s", ToEventID: "none"}); !isKind(err, transom.KindNotFound) || !strings.Contains(err.Error(), "event none not found") {
		t.Errorf("got %v", err)
	}
	if _, err := f.rt.ForkSession(t.Context(), transom.Fork{SessionID: "none"}); !isKind(err, transom.KindNotFound) || !strings.Contains(err.Error(), "not found or has no persisted events") {
		t.Errorf("got %v", err)
	}
	id, err := f.rt.ForkSession(t.Context(), transom.Fork{SessionID: "s", ToEventID: ids[1], Name: "n"})
	if err != nil {
		t.Fatal(err)
	}
	stored, err := f.rt.Stored(t.Context(), id)
	if err != nil || stored.Name != "n" {
		t.Errorf("stored %+v: %v", stored, err)
	}
	other, err := f.rt.ResumeSession(t.Context(), id, transom.ResumeConfig{OnPermission: transom.ApproveAll})
	if err != nil {
		t.Fatal(err)
	}
	if other.FileTracking() {
		t.Error("the copy keeps track of files of which it has none")
	}
	f.turn(other, "other", "create", create("b", "x"))
	if got := userMessages(other); len(got) != 2 || got[0] != ids[0] {
		t.Errorf("the copy's history has %v", got)
	}
	if got := userMessages(s); !slices.Equal(got, ids) {
		t.Errorf("the source's history has %v", got)
	}
	if err := f.rt.DeleteSession(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	f.turn(other, "after")
	empty, err := f.rt.CreateSession(t.Context(), transom.SessionConfig{ID: "empty"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.rt.ForkSession(t.Context(), transom.Fork{SessionID: "empty"}); !isKind(err, transom.KindNotFound) {
		t.Errorf("a session that is not stored: %v", err)
	}
	if err := empty.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestChangedLines: what create and edit wrote is counted, whether or not files are
// tracked, and what they did not write is not.
func TestChangedLines(t *testing.T) {
	f := newFiling(t)
	f.write("old", "one\ntwo\n")
	s := f.create(false)
	f.turn(s, "first", "create", create("a", "x\ny\n"))
	f.turn(s, "then", "edit", edit("old", "one", "1\n1"))
	f.turn(s, "second", "create", create("a", "again"), "edit", edit("old", "two", "2"))
	f.turn(s, "third", "edit", edit("old", "none", "2"))
	f.holds("old", "1\n1\n2\n")
	want := event.CodeChanges{LinesAdded: 5, LinesRemoved: 2, FilesModified: []string{f.path("a"), f.path("old")}}
	if diff := cmp.Diff(want, s.Usage().Changes); diff != "" {
		t.Error(diff)
	}
	id := s.ID()
	if err := f.rt.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	rt, err := transom.Open(transom.Config{Store: f.store, Provider: f.model})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close(t.Context())
	if s, err = rt.ResumeSession(t.Context(), id, transom.ResumeConfig{}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, s.Usage().Changes); diff != "" {
		t.Error(diff)
	}
	raw, err := s.Messages()
	if err != nil {
		t.Fatal(err)
	}
	ended := 0
	for _, e := range raw {
		var m struct {
			Type string
			Data struct{ CodeChanges event.CodeChanges }
		}
		if err := json.Unmarshal(e, &m); err != nil {
			t.Fatal(err)
		}
		if m.Type == "session.shutdown" {
			ended++
			if diff := cmp.Diff(want, m.Data.CodeChanges); diff != "" {
				t.Error(diff)
			}
		}
	}
	if ended != 1 {
		t.Errorf("%d shutdown events", ended)
	}
}
