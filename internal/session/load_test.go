package session

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/eventlog"
	"github.com/transom-run/transom/eventlog/memlog"
	"github.com/transom-run/transom/internal/policy"
	"github.com/transom-run/transom/internal/turn"
	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/tool"
)

// TestLoadWithBadRecords: a record that cannot be read is reported and passed
// over, in the fold and in the history.
func TestLoadWithBadRecords(t *testing.T) {
	r := newRig(t, rigConfig{})
	r.send("go")
	r.until(event.TypeSessionIdle)
	r.do(turn.Suspend{}, nil)
	r.gone(r.s)
	good, err := turn.Save(r.s.View().Durable)
	if err != nil {
		t.Fatal(err)
	}
	store := memlog.New()
	log, err := store.Create(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	records := r.records()
	for i, e := range records {
		lines := [][]byte{e.Line}
		switch i {
		case 2:
			lines = append(lines, []byte(`{}`), []byte(`{"type":"user.message","id":"x","data":[1]}`))
		case 4:
			lines = append(lines, []byte(`{"type":"some.future","id":"y","ephemeral":true}`))
		}
		if _, err := log.Append(eventlog.Batch{Lines: lines}); err != nil {
			t.Fatal(err)
		}
	}
	state, damages, err := Load(log)
	if err != nil || len(damages) != 2 {
		t.Fatalf("%v, damages %v", err, damages)
	}
	for i, d := range damages {
		if d.Pos != eventlog.Position(3+i) || d.Reason == "" {
			t.Errorf("damage %+v", d)
		}
	}
	got, err := turn.Save(state.Durable)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(good), string(got)); diff != "" {
		t.Errorf("the fold (-whole +damaged):\n%s", diff)
	}
	public := 0
	for _, e := range records {
		if e.Public() {
			public++
		}
	}
	if h, err := History(log); err != nil || len(h) != public+1 { // the unreadable payload is an event all the same
		t.Errorf("history of %d events, want %d, %v", len(h), public+1, err)
	}
}

// TestCheckpoint: what is folded from a checkpoint is what is folded from the
// start, also across clears.
func TestCheckpoint(t *testing.T) {
	r := newRig(t, rigConfig{tools: []tool.Tool{clearTool}}, calls("c1:clear"), calls("c2:clear"), text("end"))
	r.send("go <b>&")
	for range 2 {
		q := r.request()
		r.do(turn.Clear{Prompt: "SEED <&>"}, nil)
		r.answer(q.RequestID, "x")
	}
	r.until(event.TypeSessionIdle)
	r.end()
	log, _, err := r.store.Open(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	if _, _, ok := log.(eventlog.Checkpointer).LoadCheckpoint(); !ok {
		t.Fatal("no checkpoint was kept")
	}
	fast, _, err := Load(log)
	if err != nil {
		t.Fatal(err)
	}
	slow, _, err := Load(struct{ eventlog.Log }{log})
	if err != nil {
		t.Fatal(err)
	}
	a, _ := turn.Save(fast.Durable)
	b, _ := turn.Save(slow.Durable)
	if diff := cmp.Diff(string(b), string(a)); diff != "" {
		t.Errorf("(-log +checkpoint):\n%s", diff)
	}
	if fast.Clears != 2 {
		t.Errorf("%d clears", fast.Clears)
	}
}

// TestQuestionAfterRestart: a question that was open is put to who resumes in
// this process, with what it was about.
func TestQuestionAfterRestart(t *testing.T) {
	asked := make(chan Question, 1)
	r := newRig(t, rigConfig{ask: true, tools: []tool.Tool{{Name: "a", Description: "what it does"}}}, calls("c1:a"), text("ok"))
	r.send("go")
	r.until(event.TypePermissionRequested)
	r.do(turn.Suspend{}, nil)
	r.gone(r.s)
	log, _, err := r.store.Open(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	state, _, err := Load(log)
	if err != nil {
		t.Fatal(err)
	}
	ran := make(chan bool, 1)
	local := []tool.Tool{{Name: "a", Description: "what it does", Handler: func(context.Context, tool.Call) (tool.Result, error) {
		ran <- true
		return tool.Result{Text: "x"}, nil
	}}}
	r.s = r.start(log, state, rigConfig{asker: func(_ context.Context, q Question) policy.Decision {
		asked <- q
		return policy.Parse([]byte(`{"kind":"approve-once"}`))
	}})
	r.sub, r.buf = NewSubscription("A"), nil
	r.do(turn.Resume{Client: turn.Client{ID: "A", Tools: registry(t, local), Permission: true}, Settings: &turn.Settings{}, Continue: true, Loaded: true}, r.sub)
	r.until(event.TypeSessionIdle)
	q := <-asked
	<-ran
	if q.Tool != "a" || q.CallID != "c1" || string(q.Arguments) != "{}" || !strings.Contains(string(q.Request.PermissionRequest), "what it does") {
		t.Errorf("asked %+v", q)
	}
}

// TestLargeResult: what is too large for the window is kept beside the log before
// anybody is told of it; where that fails, the outcome is lost like any other.
func TestLargeResult(t *testing.T) {
	for _, broken := range []bool{false, true} {
		dir := t.TempDir()
		if broken {
			dir = filepath.Join(dir, "file")
			if err := os.WriteFile(dir, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		store := memlog.New()
		log, err := store.Create(t.Context(), "s")
		if err != nil {
			t.Fatal(err)
		}
		m := &fakeModel{answer: func(_ context.Context, n int, _ *model.Request) (model.Message, error) {
			if n == 1 {
				return calls("c1:a"), nil
			}
			return text("ok"), nil
		}}
		big := strings.Repeat("0123456789", 5000)
		r := &rig{t: t, store: store, model: m}
		r.s = Start(Config{ID: "s", Log: log, Dir: dir, Model: func(context.Context, *model.Request) (model.Provider, error) { return m, nil }})
		r.sub = NewSubscription("A")
		r.do(turn.Begin{SessionID: "s", Model: "m", Settings: turn.Settings{ApproveAll: true}, Client: turn.Client{ID: "A", Tools: registry(t, []tool.Tool{{Name: "a"}})}}, r.sub)
		r.send("go")
		q := r.request()
		_, err = r.try(turn.ToolAnswer{RequestID: q.RequestID, Result: tool.Result{Text: big}}, nil)
		rest := r.until(event.TypeSessionIdle)
		if broken {
			if err == nil || count(rest, event.TypeSessionError) != 1 {
				t.Errorf("a result that cannot be kept: %v, %v", err, types(rest))
			}
		} else if kept, _ := filepath.Glob(filepath.Join(dir, "temp", "*")); len(kept) != 1 {
			t.Errorf("kept %v", kept)
		} else if raw, err := os.ReadFile(kept[0]); err != nil || string(raw) != big {
			t.Errorf("kept %d bytes, %v", len(raw), err)
		}
		r.end()
	}
}

// TestBeginThatFails leaves nothing behind.
func TestBeginThatFails(t *testing.T) {
	store := memlog.New()
	log, err := store.Create(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	fl := &faultLog{Log: log.(*memlog.Log)}
	fl.set(func(eventlog.Batch) error { return errFull })
	s := Start(Config{ID: "s", Log: fl})
	if _, err := s.Do(t.Context(), turn.Begin{SessionID: "s"}, nil); !errors.Is(err, errFull) {
		t.Errorf("begin gave %v", err)
	}
	if _, err := s.Do(t.Context(), turn.Close{}, nil); err != nil {
		t.Errorf("close gave %v", err)
	}
	<-s.Done()
	if _, err := store.Create(t.Context(), "s"); err != nil {
		t.Errorf("the id is not free: %v", err)
	}
}
