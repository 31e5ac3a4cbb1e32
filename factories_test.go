package transom_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/event"
)

// worker executes factories: do is the body.
type worker struct {
	t  *testing.T
	s  *transom.Session
	do func(ctx context.Context, run, token string, args json.RawMessage) (json.RawMessage, error)
	// aborted gets the runs that were to end.
	aborted chan string
}

func (w *worker) handle(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	var p struct {
		RunID, ExecutionToken string
		Args                  json.RawMessage
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, err
	}
	if method == "factory.abort" {
		w.aborted <- p.RunID
		return nil, nil
	}
	out, err := w.do(ctx, p.RunID, p.ExecutionToken, p.Args)
	if err != nil || out == nil {
		return nil, err
	}
	return json.Marshal(map[string]any{"result": out})
}

func settled(t *testing.T, ctx context.Context, events *transom.Events, run string) event.FactorySettled {
	t.Helper()
	for e, err := range events.All(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		if p, ok := e.Payload.(event.FactorySettled); ok && p.RunID == run {
			return p
		}
	}
	t.Fatal("the session ended")
	return event.FactorySettled{}
}

var build = []transom.Factory{{Name: "build", Description: "Builds.", Phases: []transom.FactoryPhase{{Title: "compile"}}}}

// A run that fails is resumed after a restart: the step that it had done is not
// done again.
func TestFactoryResumed(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	home, dir := t.TempDir(), t.TempDir()
	open := func() *transom.Runtime {
		rt, err := transom.Open(transom.Config{Home: home, Provider: &script{replies: texts(9)}, Dir: dir, Getenv: func(string) string { return "" }})
		if err != nil {
			t.Fatal(err)
		}
		return rt
	}
	done := 0
	w := &worker{t: t, aborted: make(chan string, 9)}
	w.do = func(_ context.Context, run, token string, args json.RawMessage) (json.RawMessage, error) {
		if err := w.s.LogFactory(run, token, []transom.FactoryLine{{Kind: "phase", Text: "compile"}, {Kind: "log", Text: string(args)}}); err != nil {
			return nil, err
		}
		v, hit, err := w.s.FactoryStep(run, token, "compiled")
		if err != nil || hit {
			return v, err
		}
		done++
		if err := w.s.PutFactoryStep(run, token, "compiled", json.RawMessage(`"binary"`)); err != nil {
			return nil, err
		}
		return nil, errors.New("the disk is full")
	}
	rt := open()
	s, err := rt.CreateSession(ctx, transom.SessionConfig{ID: "s", Factories: build, OnRequest: w.handle})
	if err != nil {
		t.Fatal(err)
	}
	w.s = s
	sendAndWait(t, ctx, s) // so that the session is kept
	events := s.Subscribe()
	defer events.Close()
	run, err := s.RunFactory("build", json.RawMessage(`{"all":true}`), nil)
	if err != nil || run.Attempt != 1 {
		t.Fatalf("%+v, %v", run, err)
	}
	if p := settled(t, ctx, events, run.ID); p.Status != "error" || p.FailureType != "" {
		t.Errorf("%+v", p)
	}
	if run, err = s.FactoryRun(run.ID); err != nil || run.Error != "the disk is full" || !run.CanResume || run.Phase() != "compile" {
		t.Errorf("%+v, %v", run, err)
	}
	if err := w.s.LogFactory(run.ID, "wrong", nil); !errors.Is(err, &transom.Error{Kind: transom.KindWrongState}) {
		t.Errorf("a token of nobody: %v", err)
	}
	if err := rt.Close(ctx); err != nil {
		t.Fatal(err)
	}

	rt = open()
	defer rt.Close(ctx)
	s, err = rt.ResumeSession(ctx, "s", transom.ResumeConfig{Factories: build, OnRequest: w.handle})
	if err != nil {
		t.Fatal(err)
	}
	w.s = s
	events = s.Subscribe()
	defer events.Close()
	if _, err := s.ResumeFactory(run.ID, nil); err != nil {
		t.Fatal(err)
	}
	if p := settled(t, ctx, events, run.ID); p.Status != "completed" {
		t.Errorf("%+v", p)
	}
	all, err := s.FactoryRuns()
	if err != nil || len(all) != 1 || string(all[0].Result) != `"binary"` || all[0].Attempt != 2 || done != 1 || all[0].CanResume {
		t.Errorf("%+v, %v, done %d times", all, err, done)
	}
	for id, want := range map[string]string{run.ID: "non_resumable", "nobody": "not_found"} {
		var why *transom.FactoryError
		if _, err := s.ResumeFactory(id, nil); !errors.As(err, &why) || why.Code != want {
			t.Errorf("resume %s: %v, want %s", id, err, want)
		}
	}
	if _, err := s.RunFactory("other", nil, nil); !errors.Is(err, &transom.Error{Kind: transom.KindNotFound}) {
		t.Errorf("a factory that there is not: %v", err)
	}
	if _, err := s.RunFactory("build", nil, json.RawMessage(`{"timeoutSeconds":-1}`)); !errors.Is(err, &transom.Error{Kind: transom.KindInvalidParams}) {
		t.Errorf("limits that are none: %v", err)
	}
}

// A run ends when it is cancelled, when its time is over, when it is to pause, when
// its client goes, and when the session ends: each says so.
func TestFactoryStopped(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	w := &worker{t: t, aborted: make(chan string, 9)}
	entered := make(chan [2]string, 9)
	w.do = func(ctx context.Context, run, token string, _ json.RawMessage) (json.RawMessage, error) {
		entered <- [2]string{run, token}
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	rt, host := skillSession(t, ctx, &script{}, transom.SessionConfig{ID: "s"})
	s, err := rt.ResumeSession(ctx, "s", transom.ResumeConfig{Factories: build, OnRequest: w.handle})
	if err != nil {
		t.Fatal(err)
	}
	w.s = s
	events := host.Subscribe()
	defer events.Close()
	begin := func(limits string) (id, token string) {
		t.Helper()
		if _, err := host.RunFactory("build", nil, json.RawMessage(limits)); err != nil {
			t.Fatal(err)
		}
		in := <-entered
		return in[0], in[1]
	}
	var got []string
	ended := func(id string) {
		t.Helper()
		p := settled(t, ctx, events, id)
		run, err := host.FactoryRun(id)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, strings.Join([]string{p.Status, p.FailureType, run.Reason, run.Error, run.PausedAt}, "|"))
	}
	id, _ := begin("")
	if run, err := host.CancelFactory(ctx, id); err != nil || run.Status != "cancelled" || <-w.aborted != id {
		t.Errorf("%+v, %v", run, err)
	}
	ended(id)
	id, _ = begin(`{"timeoutSeconds":0.001}`)
	ended(id)
	id, token := begin("")
	if pause, err := s.FactoryCheckpoint(id, token, "a"); pause || err != nil {
		t.Errorf("not asked to pause: %v, %v", pause, err)
	}
	if _, err := host.PauseFactory(id); err != nil {
		t.Fatal(err)
	}
	if pause, err := s.FactoryCheckpoint(id, token, "b"); !pause || err != nil {
		t.Errorf("asked to pause: %v, %v", pause, err)
	}
	ended(id)
	var why *transom.FactoryError
	id, _ = begin("")
	if _, err := host.ResumeFactory(id, nil); !errors.As(err, &why) || why.Code != "already_active" {
		t.Errorf("resumed while it runs: %v", err)
	}
	if err := s.Close(ctx); err != nil {
		t.Fatal(err)
	}
	ended(id)
	want := []string{
		"cancelled||it was cancelled||", "halted|factory_limit_reached|its time is over||", "paused||it was asked to pause||b",
		"error|factory_provider_disconnected||the client that ran it has gone|",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, err := host.ResumeFactory(id, nil); !errors.As(err, &why) || why.Code != "non_resumable" {
		t.Errorf("nobody declares it: %v", err)
	}
	again, err := rt.ResumeSession(ctx, "s", transom.ResumeConfig{Factories: build, OnRequest: w.handle})
	if err != nil {
		t.Fatal(err)
	}
	w.s = again
	begin("")
	if err := host.Shutdown(ctx, ""); err != nil { // ends what runs, and returns
		t.Fatal(err)
	}
}
