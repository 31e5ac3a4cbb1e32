package transom_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/eventlog/memlog"
	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/sessionfs"
	"github.com/transom-run/transom/sessionfs/sessionfstest"
	"github.com/transom-run/transom/tool"
)

// keeper keeps the files of sessions, as a host does.
type keeper struct {
	mu   sync.Mutex
	all  map[string]*sessionfstest.Memory
	hook func(op, path string) error
}

func (k *keeper) open(id string) (sessionfs.FS, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.all == nil {
		k.all = map[string]*sessionfstest.Memory{}
	}
	if k.all[id] == nil {
		m := sessionfstest.New()
		m.Hook = func(op, path string) error {
			k.mu.Lock()
			hook := k.hook
			k.mu.Unlock()
			if hook == nil {
				return nil
			}
			return hook(op, path)
		}
		k.all[id] = m
	}
	return k.all[id], nil
}

func (k *keeper) of(id string) *sessionfstest.Memory {
	f, _ := k.open(id)
	return f.(*sessionfstest.Memory)
}

func (k *keeper) set(hook func(op, path string) error) {
	k.mu.Lock()
	k.hook = hook
	k.mu.Unlock()
}

func kept(t *testing.T, k *keeper, p model.Provider) *transom.Runtime {
	t.Helper()
	rt, err := transom.Open(transom.Config{Store: memlog.New(), Provider: p})
	if err != nil {
		t.Fatal(err)
	}
	err = rt.KeepFiles(transom.HostFiles{
		Dir: "/nowhere/here", Layout: sessionfs.Layout{Root: "/state"}, Open: k.open, AppendTime: 300 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		k.set(nil)
		if err := rt.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return rt
}

func TestHostKeepsFiles(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	k := &keeper{}
	big := strings.Repeat("x", 100_000)
	sc := &script{replies: []model.Message{{Calls: []model.Call{{ID: "c1", Name: "big", Arguments: `{}`}}}, {Text: "done"}, {Text: "again"}}}
	rt := kept(t, k, sc)
	tools := []tool.Tool{{Name: "big", SkipPermission: true, Handler: func(context.Context, tool.Call) (tool.Result, error) {
		return tool.Result{Text: big}, nil
	}}}
	s, err := rt.CreateSession(ctx, transom.SessionConfig{ID: "s", Tools: tools})
	if err != nil {
		t.Fatal(err)
	}
	if got := k.of("s").Get("/state/events.jsonl"); got != "" {
		t.Errorf("before anything is said the log has %q", got)
	}
	if d := s.Info().Dir; d != "/nowhere/here" {
		t.Errorf("it works in %s", d)
	}
	if m, err := s.SendAndWait(ctx, transom.Message{Prompt: "go"}); err != nil || m.Content != "done" {
		t.Fatal(m, err)
	}
	f := s.Files()
	for _, err := range []error{f.WritePlan(ctx, "# Plan"), f.Write(ctx, "notes/a.txt", "A"), f.Rename("notes/a.txt", "b.txt"), f.MakeDir("empty", false)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, bad := range []string{"../x", "/x", "a/../../x", "", "a\x00"} {
		if err := f.Write(ctx, bad, "evil"); transom.KindOf(err) != transom.KindInvalidParams {
			t.Errorf("%q is written: %v", bad, err)
		}
	}
	if list, err := f.List(); err != nil || !cmp.Equal(list, []string{"b.txt"}) {
		t.Errorf("files %v, %v", list, err)
	}
	if text, err := f.Read("b.txt"); err != nil || text != "A" {
		t.Errorf("read %q, %v", text, err)
	}
	if _, err := f.Read("c.txt"); transom.KindOf(err) != transom.KindNotFound {
		t.Errorf("what is not there: %v", err)
	}
	if i, err := f.Stat("empty"); err != nil || !i.Dir {
		t.Errorf("stat %+v, %v", i, err)
	}
	if err := f.Remove("empty", false, false); err != nil {
		t.Error(err)
	}
	if plan, ok, err := f.Plan(); err != nil || !ok || plan != "# Plan" || f.PlanPath() != "/state/plan.md" {
		t.Errorf("plan %q, %v, %v, %s", plan, ok, err, f.PlanPath())
	}
	before, err := s.Messages()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(ctx); err != nil {
		t.Fatal(err)
	}
	m := k.of("s")
	temp := 0
	for _, call := range m.Calls() {
		op, path, _ := strings.Cut(call, " ")
		if path != "/state" && !strings.HasPrefix(path, "/state/") {
			t.Errorf("%s of %s, which is not the session's", op, path)
		}
		if op == "writeFile" && strings.HasPrefix(path, "/state/temp/") {
			temp++
			if m.Get(path) != big {
				t.Error("the large result is not whole")
			}
		}
	}
	if temp != 1 {
		t.Errorf("%d large results were written", temp)
	}
	if y := m.Get("/state/workspace.yaml"); !strings.HasPrefix(y, "id: s\ncwd: /nowhere/here\ncreated_at: 2") {
		t.Errorf("workspace.yaml:\n%s", y)
	}

	s, err = rt.ResumeSession(ctx, "s", transom.ResumeConfig{Tools: tools})
	if err != nil {
		t.Fatal(err)
	}
	after, err := s.Messages()
	if err != nil || len(after) != len(before)+2 { // its end, and the resume
		t.Errorf("%d events after the resume, %d before, %v", len(after), len(before), err)
	}
	if m, err := s.SendAndWait(ctx, transom.Message{Prompt: "once more"}); err != nil || m.Content != "again" {
		t.Fatal(m, err)
	}
	if err := rt.DeleteSession(ctx, "s"); err != nil {
		t.Fatal(err)
	}
	if got := m.Get("/state/events.jsonl"); got != "" {
		t.Errorf("a deleted session has %q", got)
	}
	if _, err := rt.ResumeSession(ctx, "s", transom.ResumeConfig{}); transom.KindOf(err) != transom.KindNotFound {
		t.Errorf("resume after the deletion: %v", err)
	}
}

// A clear that the host does not answer in time is refused, and changes nothing; the
// turn goes on with the old window, and so does whoever resumes the session, although
// the host wrote the clear after all.
func TestHostClearTooLate(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	k := &keeper{}
	sc := &script{replies: []model.Message{{Calls: []model.Call{{ID: "c1", Name: "clear", Arguments: `{}`}}}, {Text: "done"}, {Text: "more"}}}
	rt := kept(t, k, sc)
	k.of("s").Landed = func(op, _ string) bool { return op == "appendFile" }
	release := make(chan struct{})
	var s *transom.Session
	var refused error
	clear := tool.Tool{Name: "clear", SkipPermission: true, Handler: func(ctx context.Context, _ tool.Call) (tool.Result, error) {
		k.set(func(op, _ string) error {
			if op == "appendFile" {
				<-release
			}
			return nil
		})
		_, refused = s.History().ClearContext(ctx, "SEED")
		k.set(nil)
		close(release)
		return tool.Result{Text: fmt.Sprint("refused: ", refused != nil)}, nil
	}}
	s, err := rt.CreateSession(ctx, transom.SessionConfig{ID: "s", Tools: []tool.Tool{clear}})
	if err != nil {
		t.Fatal(err)
	}
	if m, err := s.SendAndWait(ctx, transom.Message{Prompt: "OLD"}); err != nil || m.Content != "done" {
		t.Fatal(m, err)
	}
	if refused == nil || !strings.Contains(refused.Error(), "counts as not written") {
		t.Errorf("the clear: %v", refused)
	}
	if !strings.Contains(k.of("s").Get("/state/events.jsonl"), "session.context_cleared") {
		t.Fatal("the host did not write the clear: this test shows nothing")
	}
	if n := s.Info().Clears; n != 0 {
		t.Errorf("%d clears", n)
	}
	if err := s.Close(ctx); err != nil {
		t.Fatal(err)
	}
	s, err = rt.ResumeSession(ctx, "s", transom.ResumeConfig{Tools: []tool.Tool{clear}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.SendAndWait(ctx, transom.Message{Prompt: "go on"}); err != nil {
		t.Fatal(err)
	}
	var seen string
	for _, m := range sc.requests[2].Messages {
		seen += m.Text + "\n"
	}
	if !strings.Contains(seen, "OLD") || strings.Contains(seen, "SEED") {
		t.Errorf("after the resume the model sees:\n%s", seen)
	}
}

// Who keeps the files can be said once, before there are sessions.
func TestHostKeepsOnce(t *testing.T) {
	ctx := t.Context()
	k := &keeper{}
	rt, err := transom.Open(transom.Config{Store: memlog.New(), Provider: &script{}})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close(ctx)
	good := transom.HostFiles{Layout: sessionfs.Layout{Root: "/state"}, Open: k.open}
	for _, root := range []string{"", "state", "/a/../b", "/\x00"} {
		h := good
		h.Layout.Root = root
		if err := rt.KeepFiles(h); transom.KindOf(err) != transom.KindInvalidParams {
			t.Errorf("root %q: %v", root, err)
		}
	}
	s, err := rt.CreateSession(ctx, transom.SessionConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if err := rt.KeepFiles(good); transom.KindOf(err) != transom.KindConflict {
		t.Errorf("with a session: %v", err)
	}
	if err := s.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(rt.CloseSession(ctx, s.ID()), rt.KeepFiles(good), rt.KeepFiles(good)); err != nil {
		t.Fatal(err)
	}
	other := good
	other.Layout.Windows, other.Layout.Root = true, `C:\state`
	if err := rt.KeepFiles(other); transom.KindOf(err) != transom.KindConflict {
		t.Errorf("in another way: %v", err)
	}
}

// TestNoForkOfKeptFiles: nobody keeps the files of a copy, and the refusal says so.
func TestNoForkOfKeptFiles(t *testing.T) {
	rt := kept(t, &keeper{}, nil)
	_, err := rt.ForkSession(t.Context(), transom.Fork{SessionID: "s"})
	if transom.KindOf(err) != transom.KindUnsupported || !strings.Contains(err.Error(), "cannot be forked") {
		t.Errorf("a fork was answered with %v", err)
	}
}

// A session whose host keeps its files cannot keep track of changes, and says so
// when it begins and when it is resumed.
func TestNoTrackingOfKeptFiles(t *testing.T) {
	rt := kept(t, &keeper{}, &script{replies: []model.Message{{Text: "one"}}})
	refused := func(err error) {
		t.Helper()
		if transom.KindOf(err) != transom.KindUnsupported || !strings.Contains(err.Error(), "enableFileChangeTracking") {
			t.Errorf("answered with %v", err)
		}
	}
	_, err := rt.CreateSession(t.Context(), transom.SessionConfig{ID: "s", TrackFiles: true})
	refused(err)
	s, err := rt.CreateSession(t.Context(), transom.SessionConfig{ID: "s"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.SendAndWait(t.Context(), transom.Message{Prompt: "go"}); err != nil {
		t.Fatal(err)
	}
	_, err = rt.ResumeSession(t.Context(), "s", transom.ResumeConfig{TrackFiles: true})
	refused(err)
}
