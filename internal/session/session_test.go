package session

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/eventlog"
	"github.com/transom-run/transom/eventlog/memlog"
	"github.com/transom-run/transom/internal/policy"
	"github.com/transom-run/transom/internal/turn"
	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/tool"
)

// TestTurn: what is published is in the log first, and in its order.
func TestTurn(t *testing.T) {
	r := newRig(t, rigConfig{stream: true, tools: []tool.Tool{{Name: "a"}}}, calls("c1:a"), text("done"))
	r.send("go")
	q := r.request()
	written := r.records()
	if n := count(written, event.TypeExternalToolRequested); n != 1 {
		t.Errorf("a request was published before it was written (%d)", n)
	}
	if v := r.answer(q.RequestID, "x"); v != true {
		t.Errorf("the answer was taken: %v", v)
	}
	if v := r.answer(q.RequestID, "late"); v != false {
		t.Errorf("a repeated answer was taken: %v", v)
	}
	rest := r.until(event.TypeSessionIdle)
	if count(rest, event.TypeMessageDelta) == 0 {
		t.Errorf("no deltas in %v", types(rest))
	}
	if got, want := prompts(r.model.seen()[1]), "system:SYS user:go assistant: tool:x"; got != want {
		t.Errorf("request %q, want %q", got, want)
	}
}

// TestClearThatCannotBeWritten: an error, nothing changed, no event (S3).
func TestClearThatCannotBeWritten(t *testing.T) {
	r := newRig(t, rigConfig{tools: []tool.Tool{clearTool}}, calls("c1:clear"), text("after"))
	r.send("go")
	q := r.request()
	before := r.s.View()
	r.log.set(failOn(event.TypeContextCleared))
	if _, err := r.try(turn.Clear{Prompt: "SEED"}, nil); !errors.Is(err, errFull) {
		t.Fatalf("clear gave %v", err)
	}
	if r.s.View() != before {
		t.Error("the state changed")
	}
	r.log.set(nil)
	r.answer(q.RequestID, "x")
	rest := r.until(event.TypeSessionIdle)
	if count(rest, event.TypeContextCleared)+count(rest, event.TypeUserMessage) != 0 {
		t.Errorf("events of a clear that was not made: %v", types(rest))
	}
	r.send("next")
	r.until(event.TypeSessionIdle)
	if got, want := prompts(r.model.seen()[1]), "system:SYS user:go assistant: tool:x user:next"; got != want {
		t.Errorf("request %q, want %q", got, want)
	}
}

// TestClear: the seeded turn answers, and the clear was on the disk first.
func TestClear(t *testing.T) {
	r := newRig(t, rigConfig{tools: []tool.Tool{clearTool}}, calls("c1:clear"), text("fresh"))
	var synced []bool
	r.log.set(func(b eventlog.Batch) error {
		if strings.Contains(string(b.Lines[0]), event.TypeContextCleared) {
			synced = append(synced, b.Sync && len(b.Lines) == 1)
		}
		return nil
	})
	r.send("go")
	q := r.request()
	if n := r.do(turn.Clear{Prompt: "SEED"}, nil); n != 2 {
		t.Errorf("cleared %v messages", n)
	}
	r.answer(q.RequestID, "x")
	if rest := r.until(event.TypeSessionIdle); count(rest, event.TypeContextCleared) != 1 || count(rest, event.TypeAssistantMessage) != 1 {
		t.Errorf("events %v", types(rest))
	}
	if got, want := prompts(r.model.seen()[1]), "system:SYS user:SEED"; got != want {
		t.Errorf("request %q, want %q", got, want)
	}
	if !slices.Equal(synced, []bool{true}) {
		t.Errorf("the clear was synced in a batch of its own: %v", synced)
	}
}

// TestOutcomeThatCannotBeWritten: an outcome comes only once; where it is lost,
// the turn ends with an error, and the next message works.
func TestOutcomeThatCannotBeWritten(t *testing.T) {
	for name, tc := range map[string]struct {
		fail string
		cfg  rigConfig
		act  func(r *rig)
	}{
		"model answer": {fail: event.TypeAssistantMessage, act: func(r *rig) { r.send("go") }},
		"in-process call": {
			fail: event.TypeToolComplete,
			cfg: rigConfig{tools: []tool.Tool{{Name: "a", Handler: func(context.Context, tool.Call) (tool.Result, error) {
				return tool.Result{Text: "x"}, nil
			}}}},
			act: func(r *rig) { r.send("go") },
		},
		"host's answer": {
			fail: event.TypeToolComplete, cfg: rigConfig{tools: []tool.Tool{{Name: "a"}}},
			act: func(r *rig) {
				r.send("go")
				q := r.request()
				if _, err := r.try(turn.ToolAnswer{RequestID: q.RequestID, Result: tool.Result{Text: "x"}}, nil); !errors.Is(err, errFull) {
					r.t.Errorf("the answer gave %v", err)
				}
			},
		},
		"permission answer": {
			fail: event.TypePermissionCompleted, cfg: rigConfig{ask: true, tools: []tool.Tool{{Name: "a"}}},
			act: func(r *rig) {
				r.send("go")
				es := r.until(event.TypePermissionRequested)
				p, _ := event.As[event.PermissionRequested](es[len(es)-1])
				d := policy.Parse([]byte(`{"kind":"approve-once"}`))
				if _, err := r.try(turn.PermissionAnswer{RequestID: p.RequestID, Decision: d}, nil); !errors.Is(err, errFull) {
					r.t.Errorf("the answer gave %v", err)
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			answers := []model.Message{calls("c1:a")}
			if name == "model answer" {
				answers = nil
			}
			r := newRig(t, tc.cfg, answers...)
			r.log.set(failOn(tc.fail))
			tc.act(r)
			rest := r.until(event.TypeSessionIdle)
			if count(rest, event.TypeSessionError) != 1 {
				t.Errorf("no error in %v", types(rest))
			}
			r.log.set(nil)
			r.send("again")
			rest = r.until(event.TypeSessionIdle)
			if count(rest, event.TypeSessionError) != 0 || count(rest, event.TypeAssistantMessage) != 1 {
				t.Errorf("the next turn gave %v", types(rest))
			}
			pairs(t, r.records())
		})
	}
}

// pairs checks that every call has one start and one completion.
func pairs(t *testing.T, es []*event.Event) {
	t.Helper()
	open := map[string]int{}
	for _, e := range es {
		switch e.Type {
		case event.TypeToolStart:
			p, _ := event.As[event.ToolStart](e)
			open[p.ToolCallID]++
		case event.TypeToolComplete:
			p, _ := event.As[event.ToolComplete](e)
			open[p.ToolCallID] += 100
		}
	}
	for id, n := range open {
		if n != 101 {
			t.Errorf("call %s: %d starts, %d completions", id, n%100, n/100)
		}
	}
}

// TestCloseThatCannotBeWritten: the session ends all the same, and the next one
// to load it finds what the log says, not what could not be written.
func TestCloseThatCannotBeWritten(t *testing.T) {
	r := newRig(t, rigConfig{tools: []tool.Tool{clearTool}}, calls("c1:clear"))
	r.send("go")
	q := r.request()
	r.log.set(func(eventlog.Batch) error { return errFull })
	if v := r.do(turn.Detach{ClientID: "A"}, nil); v != true {
		t.Errorf("detach gave %v", v)
	}
	r.gone(r.s)
	log, _, err := r.store.Open(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	state, damages, err := Load(log)
	if err != nil || len(damages) > 0 {
		t.Fatal(err, damages)
	}
	if state.Phase() != turn.Stranded || state.Loop.Calls[0].External != q.RequestID {
		t.Errorf("loaded %s with %+v", state.Phase(), state.Loop)
	}
	r.log = &faultLog{Log: log.(*memlog.Log)}
	r.s = r.start(r.log, state, rigConfig{})
	r.sub = NewSubscription("B")
	r.buf = nil
	r.do(turn.Resume{Client: turn.Client{ID: "B"}, Continue: true, Loaded: true}, r.sub)
	if v := r.answer(q.RequestID, "x"); v != true {
		t.Errorf("the answer was taken: %v", v)
	}
	r.until(event.TypeSessionIdle)
	pairs(t, r.records())
}

// TestAbort: effects end, also those that ignore it, and what they give is too
// late.
func TestAbort(t *testing.T) {
	entered, release := make(chan bool, 1), make(chan bool)
	defer close(release)
	ended := make(chan error, 1)
	tools := []tool.Tool{
		{Name: "good", Handler: func(ctx context.Context, _ tool.Call) (tool.Result, error) {
			entered <- true
			<-ctx.Done()
			ended <- ctx.Err()
			return tool.Result{Text: "LATE"}, nil
		}},
		{Name: "deaf", Handler: func(context.Context, tool.Call) (tool.Result, error) {
			entered <- true
			<-release
			return tool.Result{Text: "LATE"}, nil
		}},
	}
	for _, name := range []string{"good", "deaf"} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, rigConfig{tools: tools}, calls("c1:"+name))
			r.send("go")
			<-entered
			r.do(turn.Abort{}, nil)
			if name == "good" {
				<-ended
			}
			r.until(event.TypeSessionIdle)
			r.send("next")
			r.until(event.TypeSessionIdle)
			if got := prompts(r.model.seen()[1]); strings.Contains(got, "LATE") || !strings.Contains(got, "interrupted") {
				t.Errorf("request %q", got)
			}
			pairs(t, r.records())
		})
	}
	t.Run("model", func(t *testing.T) {
		r := newRig(t, rigConfig{})
		r.model.answer = func(ctx context.Context, n int, _ *model.Request) (model.Message, error) {
			if n == 1 {
				entered <- true
				<-ctx.Done()
				return model.Message{}, ctx.Err()
			}
			return text("ok"), nil
		}
		r.send("go")
		<-entered
		r.do(turn.Abort{}, nil)
		if rest := r.until(event.TypeSessionIdle); count(rest, event.TypeSessionError) != 0 {
			t.Errorf("an abort is no error: %v", types(rest))
		}
	})
}

// TestPanics: whatever crashes outside the core is a failure of that one thing.
func TestPanics(t *testing.T) {
	boom := func() { panic("boom") }
	t.Run("handler", func(t *testing.T) {
		r := newRig(t, rigConfig{tools: []tool.Tool{{Name: "a", Handler: func(context.Context, tool.Call) (tool.Result, error) {
			boom()
			return tool.Result{}, nil
		}}}}, calls("c1:a"))
		r.send("go")
		r.until(event.TypeSessionIdle)
		if got := prompts(r.model.seen()[1]); !strings.Contains(got, "Tool execution failed") || strings.Contains(got, "boom") {
			t.Errorf("request %q", got)
		}
	})
	t.Run("asker", func(t *testing.T) {
		r := newRig(t, rigConfig{ask: true, tools: []tool.Tool{{Name: "a"}}, asker: func(context.Context, Question) policy.Decision {
			boom()
			return policy.Decision{Verdict: policy.Allow}
		}}, calls("c1:a"))
		r.send("go")
		r.until(event.TypeSessionIdle)
		if got := prompts(r.model.seen()[1]); !strings.Contains(got, policy.TextNotAvailable) {
			t.Errorf("request %q", got)
		}
	})
	t.Run("provider", func(t *testing.T) {
		r := newRig(t, rigConfig{})
		r.model.answer = func(context.Context, int, *model.Request) (model.Message, error) {
			boom()
			return model.Message{}, nil
		}
		r.send("go")
		if rest := r.until(event.TypeSessionIdle); count(rest, event.TypeSessionError) != 1 {
			t.Errorf("events %v", types(rest))
		}
	})
	t.Run("resolver", func(t *testing.T) {
		r := newRig(t, rigConfig{resolver: func(context.Context, *model.Request) (model.Provider, error) {
			boom()
			return nil, nil
		}})
		r.send("go")
		if rest := r.until(event.TypeSessionIdle); count(rest, event.TypeSessionError) != 1 {
			t.Errorf("events %v", types(rest))
		}
	})
	t.Run("no provider", func(t *testing.T) {
		r := newRig(t, rigConfig{resolver: func(context.Context, *model.Request) (model.Provider, error) { return nil, nil }})
		r.send("go")
		if rest := r.until(event.TypeSessionIdle); count(rest, event.TypeSessionError) != 1 {
			t.Errorf("events %v", types(rest))
		}
	})
}

// TestAskerThatNeverAnswers does not keep a session from ending.
func TestAskerThatNeverAnswers(t *testing.T) {
	asked, release := make(chan bool), make(chan bool)
	r := newRig(t, rigConfig{ask: true, tools: []tool.Tool{{Name: "a"}}, asker: func(context.Context, Question) policy.Decision {
		asked <- true
		<-release
		return policy.Decision{}
	}}, calls("c1:a"))
	defer close(release)
	r.send("go")
	<-asked
	r.do(turn.Close{}, nil)
	r.gone(r.s)
}

// TestUnload: a session that nobody attends and in which nothing runs leaves the
// process, with its work open in the log; what is posted later is told so.
func TestUnload(t *testing.T) {
	answered := make(chan bool)
	r := newRig(t, rigConfig{tools: []tool.Tool{clearTool}})
	r.model.answer = func(_ context.Context, n int, _ *model.Request) (model.Message, error) {
		<-answered
		return calls("c1:clear"), nil
	}
	r.send("go")
	r.do(turn.Detach{ClientID: "A", Lost: true}, nil)
	select {
	case <-r.s.Done():
		t.Fatal("the session left while its model call ran")
	default:
	}
	close(answered)
	r.gone(r.s)
	if _, err := r.try(turn.Send{Message: event.Queued{Prompt: "x"}}, nil); !errors.Is(err, ErrUnloaded) {
		t.Errorf("a post after the end gave %v", err)
	}
	if others, err := r.others(); others || err != nil {
		t.Errorf("the session is still held: %v %v", others, err)
	}
	log, _, err := r.store.Open(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	state, _, err := Load(log)
	if err != nil || state.Phase() != turn.Stranded || state.Loop.Calls[0].External == "" {
		t.Errorf("loaded %s, %v", state.Phase(), err)
	}
}

func (r *rig) others() (bool, error) {
	h, err := r.store.Hold("s")
	if err != nil {
		return false, err
	}
	defer h.Release()
	return h.Others()
}

// TestRetries: the waits are those of the policy, there is none after the last
// attempt, and an abort ends a wait at once.
func TestRetries(t *testing.T) {
	policy := model.RetryPolicy{MaxAttempts: 3, Base: time.Minute, Cap: time.Hour}
	failing := func(context.Context, int, *model.Request) (model.Message, error) {
		return model.Message{}, &model.Error{Kind: model.Query, Status: 500, Msg: "down", Retryable: true}
	}
	t.Run("all fail", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, rigConfig{retry: policy})
			r.model.answer = failing
			begun := time.Now()
			r.do(turn.Send{Message: event.Queued{Prompt: "go"}}, nil)
			synctest.Wait()
			<-time.After(5 * time.Minute)
			var es []*event.Event
			for len(es) == 0 || es[len(es)-1].Type != event.TypeSessionIdle {
				var err error
				if es, err = r.sub.Next(t.Context(), es); err != nil {
					t.Fatal(err)
				}
			}
			if n := count(es, event.TypeTurnRetry); n != 2 {
				t.Errorf("%d retries", n)
			}
			last := es[len(es)-1].Timestamp.Sub(begun)
			if last < 2*time.Minute || last > 4*time.Minute {
				t.Errorf("the failure came after %v", last)
			}
			r.end()
		})
	})
	t.Run("abort", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, rigConfig{retry: policy})
			r.model.answer = failing
			begun := time.Now()
			r.do(turn.Send{Message: event.Queued{Prompt: "go"}}, nil)
			synctest.Wait()
			r.do(turn.Abort{}, nil)
			r.end()
			if d := time.Since(begun); d != 0 {
				t.Errorf("the abort waited %v", d)
			}
			if n := len(r.model.seen()); n != 1 {
				t.Errorf("%d attempts", n)
			}
		})
	})
}

// end closes the session, inside a bubble of synctest.
func (r *rig) end() {
	r.s.Post(turn.Close{}, nil, nil)
	<-r.s.Done()
}

// TestPen: who is at work has the pen; who takes over is let in when it is free,
// and the one before is told at its next write.
func TestPen(t *testing.T) {
	entered, release := make(chan bool), make(chan bool)
	a := newRig(t, rigConfig{})
	a.model.answer = func(context.Context, int, *model.Request) (model.Message, error) {
		entered <- true
		<-release
		return text("ok"), nil
	}
	a.send("go")
	<-entered
	b := &rig{t: t, store: a.store, model: &fakeModel{answer: func(context.Context, int, *model.Request) (model.Message, error) { return text("b"), nil }}}
	open := func() {
		log, _, err := a.store.Open(t.Context(), "s")
		if err != nil {
			t.Fatal(err)
		}
		state, _, err := Load(log)
		if err != nil {
			t.Fatal(err)
		}
		b.s = b.start(log, state, rigConfig{})
		b.sub = NewSubscription("B")
	}
	resume := turn.Resume{Client: turn.Client{ID: "B"}, Loaded: true}
	open()
	var conflict *ConflictError
	var held *eventlog.HeldError
	if _, err := b.try(resume, b.sub); !errors.As(err, &conflict) || !errors.As(err, &held) {
		t.Fatalf("a resume beside running work gave %v", err)
	}
	b.gone(b.s)
	release <- true
	a.until(event.TypeSessionIdle) // whoever hears this may write
	open()
	b.do(resume, b.sub)
	b.send("mine")
	b.until(event.TypeSessionIdle)
	if _, err := a.try(turn.Send{Message: event.Queued{Prompt: "late"}}, nil); !errors.As(err, &conflict) || !errors.Is(err, eventlog.ErrMoved) {
		t.Errorf("a write after the takeover gave %v", err)
	}
	n := len(a.records())
	if v := a.do(turn.Detach{ClientID: "A"}, nil); v != true {
		t.Errorf("detach gave %v", v)
	}
	a.gone(a.s)
	if got := len(a.records()); got != n {
		t.Errorf("the one before wrote %d records more", got-n)
	}
	b.send("still mine")
	b.until(event.TypeSessionIdle)
	log, _, err := a.store.Open(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	loaded, damages, err := Load(log)
	if err != nil || len(damages) > 0 {
		t.Fatal(err, damages)
	}
	d, err := turn.Save(loaded.Durable)
	if err != nil {
		t.Fatal(err)
	}
	want, _ := turn.Save(b.s.View().Durable)
	if diff := cmp.Diff(string(want), string(d)); diff != "" {
		t.Errorf("the checkpoint misleads (-log +checkpoint):\n%s", diff)
	}
}

// TestPenAfterFailure: a write that fails gives the pen back.
func TestPenAfterFailure(t *testing.T) {
	r := newRig(t, rigConfig{})
	r.log.set(func(eventlog.Batch) error { return errFull })
	if _, err := r.try(turn.Send{Message: event.Queued{Prompt: "x"}}, nil); !errors.Is(err, errFull) {
		t.Fatalf("send gave %v", err)
	}
	h, err := r.store.Hold("s")
	if err != nil {
		t.Fatal(err)
	}
	defer h.Release()
	if err := h.TakePen(); err != nil {
		t.Errorf("the pen is not free: %v", err)
	}
}

// TestLostClientWithFullDisk: a client is let go even where what its leaving does
// to the turn cannot be written.
func TestLostClientWithFullDisk(t *testing.T) {
	for _, lost := range []bool{true, false} {
		r := newRig(t, rigConfig{tools: []tool.Tool{{Name: "a"}}}, calls("c1:a"))
		r.do(turn.Attach{Client: turn.Client{ID: "B"}}, nil)
		r.send("go")
		r.request()
		r.log.set(func(eventlog.Batch) error { return errFull })
		if v := r.do(turn.Detach{ClientID: "A", Lost: lost}, nil); v != false {
			t.Errorf("detach gave %v", v)
		}
		r.until(event.TypeSessionIdle)
		r.log.set(nil)
		r.send("next")
		r.until(event.TypeSessionIdle)
		pairs(t, r.records())
	}
}

// TestSendsAroundAClear: a message sent while the window is cleared lands wholly
// before the clear, and is cleared with it, or wholly behind the seed.
func TestSendsAroundAClear(t *testing.T) {
	rounds := 500
	if testing.Short() {
		rounds = 50
	}
	for round := range rounds {
		r := newRig(t, rigConfig{tools: []tool.Tool{{Name: "clear", IsTerminal: round%3 > 0}}}, calls("c1:clear"))
		r.send("OLD")
		q := r.request()
		var wg sync.WaitGroup
		const senders = 4
		for i := range senders {
			wg.Go(func() {
				m := event.Queued{Prompt: "NEW" + string(rune('a'+i)), Steering: (round>>i)&1 == 1}
				if _, err := r.try(turn.Send{Message: m}, nil); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Go(func() {
			if n, err := r.try(turn.Clear{Prompt: "SEED"}, nil); err != nil || n != 2 {
				t.Error(n, err)
			}
			if v, err := r.try(turn.ToolAnswer{RequestID: q.RequestID, Result: tool.Result{Text: "OLD"}}, nil); err != nil || v != true {
				t.Error(v, err)
			}
		})
		wg.Wait()
		// Idle may come before the last message: wait for all answers instead.
		left := senders
		r.read(r.sub, func(e *event.Event) bool {
			if e.Type == event.TypeUserMessage && strings.Contains(string(e.Data), `"content":"NEW`) {
				left--
			}
			return left == 0 && e.Type == event.TypeSessionIdle
		})
		reqs := r.model.seen()
		for i, req := range reqs[1:] {
			got := prompts(req)
			if strings.Contains(got, "OLD") || !strings.HasPrefix(got, "system:SYS user:SEED") {
				t.Fatalf("round %d, request %d: %s", round, i+1, got)
			}
		}
		final := prompts(reqs[len(reqs)-1])
		for i := range senders {
			if w := "user:NEW" + string(rune('a'+i)); strings.Count(final, w) != 1 {
				t.Fatalf("round %d: %s is not once in %s", round, w, final)
			}
		}
		pairs(t, r.records())
		r.end()
	}
}

// TestReentrancy: while a host's call is open, every input is served.
func TestReentrancy(t *testing.T) {
	r := newRig(t, rigConfig{tools: []tool.Tool{clearTool}}, calls("c1:clear"))
	r.send("go")
	q := r.request()
	r.do(turn.Configure{Mode: new("plan")}, nil)
	r.do(turn.Note{Payload: event.SessionInfo{InfoType: "host", Message: "x"}}, nil)
	r.do(turn.Send{Message: event.Queued{Prompt: "queued"}}, nil)
	r.do(turn.Clear{Prompt: "SEED"}, nil)
	r.do(turn.Attach{Client: turn.Client{ID: "B"}}, nil)
	if h, err := History(r.s.Log()); err != nil || len(h) == 0 {
		t.Errorf("history: %d, %v", len(h), err)
	}
	r.answer(q.RequestID, "x")
	r.until(event.TypeSessionIdle)
	if got, want := prompts(r.model.seen()[2]), "system:SYS user:SEED assistant:ok user:queued"; got != want {
		t.Errorf("request %q, want %q", got, want)
	}
}

// TestResume: in another process the session goes on where the log ends.
func TestResume(t *testing.T) {
	r := newRig(t, rigConfig{tools: []tool.Tool{clearTool}}, calls("c1:clear"), text("fresh"))
	r.send("go")
	q := r.request()
	r.do(turn.Clear{Prompt: "SEED"}, nil)
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
	r.s = r.start(log, state, rigConfig{})
	r.sub, r.buf = NewSubscription("B"), nil
	r.do(turn.Resume{Client: turn.Client{ID: "B"}, Settings: &turn.Settings{System: "SYS"}, Continue: true, Loaded: true}, r.sub)
	if v := r.answer(q.RequestID, "Cleared."); v != false {
		t.Errorf("the answer of an orphan was taken: %v", v)
	}
	rest := r.until(event.TypeSessionIdle)
	if n := count(rest, event.TypeUserMessage); n != 1 {
		t.Errorf("%d seeded messages in %v", n, types(rest))
	}
	if got, want := prompts(r.model.seen()[1]), "system:SYS user:SEED"; got != want {
		t.Errorf("request %q, want %q", got, want)
	}
}

// A denial stands whatever is answered after it, with its reason; so does a decision
// that is not known.
func TestMergeOfAnswers(t *testing.T) {
	for _, first := range []string{"deny", "block"} {
		have, err := merge(nil, json.RawMessage(`{"permissionDecision":"`+first+`","permissionDecisionReason":"no"}`))
		if err == nil {
			have, err = merge(have, json.RawMessage(`{"permissionDecision":"allow","permissionDecisionReason":"yes","additionalContext":"c"}`))
		}
		if got, _ := json.Marshal(have); err != nil || string(got) != `{"additionalContext":"c","permissionDecision":"`+first+`","permissionDecisionReason":"no"}` {
			t.Errorf("%s %v", got, err)
		}
	}
}
