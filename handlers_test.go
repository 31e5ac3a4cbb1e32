package transom_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/eventlog/memlog"
	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/tool"
)

// echo calls a tool where the newest message is its name, and else says the last
// word of each message of the user.
type echo struct{}

func (echo) Stream(_ context.Context, req *model.Request) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		var words []string
		for _, m := range req.Messages {
			if f := strings.Fields(m.Text); m.Role == model.User && len(f) > 0 {
				words = append(words, f[len(f)-1])
			}
		}
		c := model.Chunk{Text: strings.Join(words, " "), Finish: "stop"}
		if newest := words[len(words)-1]; newest == req.Tools[0].Name && req.Messages[len(req.Messages)-1].Role == model.User {
			c = model.Chunk{Call: &model.CallChunk{ID: "c1", Name: newest, Arguments: "{}"}}
		}
		yield(c, nil)
	}
}

// A handler may use the session that waits for it: it is answered at once, in many
// sessions side by side, and what it does to its own reaches no other.
func TestCallsFromAHandler(t *testing.T) {
	const many = 50
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	rt, err := transom.Open(transom.Config{Store: memlog.New(), Provider: echo{}, Dir: t.TempDir(), Getenv: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range many {
		wg.Go(func() {
			var s *transom.Session
			var inside error
			ran := make(chan bool)
			probe := tool.Tool{Name: "probe", IsTerminal: true, Handler: func(ctx context.Context, _ tool.Call) (tool.Result, error) {
				defer close(ran)
				_, inside = s.Send(ctx, transom.Message{Prompt: fmt.Sprint("QUEUED", i)})
				_, blocked := s.SendAndWait(ctx, transom.Message{Prompt: "x"})
				if inside == nil && !isKind(blocked, transom.KindWrongState) {
					inside = fmt.Errorf("to wait for the turn from inside of it gave %v", blocked)
				}
				if _, err := s.History().RewindPoints(); inside == nil {
					inside = err
				}
				if i%2 == 1 {
					err := s.Abort(context.WithoutCancel(ctx))
					if inside == nil {
						inside = err
					}
					<-ctx.Done() // the abort reaches the handler
					return tool.Result{Text: "LATE"}, nil
				}
				n, err := s.History().ClearContext(ctx, fmt.Sprint("SEED", i))
				if inside == nil {
					inside = err
				}
				return tool.Result{Text: fmt.Sprint(n)}, nil
			}}
			var err error
			s, err = rt.CreateSession(ctx, transom.SessionConfig{Tools: []tool.Tool{probe}, OnPermission: transom.ApproveAll})
			if err != nil {
				t.Error(err)
				return
			}
			m, err := s.SendAndWait(ctx, transom.Message{Prompt: "probe"})
			want := fmt.Sprintf("SEED%d QUEUED%d", i, i)
			if err == nil && i%2 == 1 { // what was queued is before what comes next
				want = fmt.Sprintf("probe QUEUED%d MORE", i)
				m, err = s.SendAndWait(ctx, transom.Message{Prompt: "MORE"})
			}
			<-ran
			if err != nil || m == nil || m.Content != want || inside != nil {
				t.Errorf("session %d: %+v, %v; inside: %v", i, m, err, inside)
			}
		})
	}
	wg.Wait()
	if err := rt.Close(ctx); err != nil {
		t.Error(err)
	}
}

// A handler that fails, panics or takes too long fails its own call: the others keep
// their results, and the model goes on.
func TestFailingHandlers(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	sc := &script{replies: []model.Message{{Calls: []model.Call{
		{ID: "c1", Name: "errs", Arguments: `{}`}, {ID: "c2", Name: "panics", Arguments: `{}`}, {ID: "c3", Name: "dawdles", Arguments: `{}`}, {ID: "c4", Name: "good", Arguments: `{}`},
	}}, {Text: "done"}}}
	rt, err := transom.Open(transom.Config{Store: memlog.New(), Provider: sc, Dir: t.TempDir(), Getenv: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	release := make(chan bool)
	handler := func(f func() (tool.Result, error)) tool.Handler {
		return func(context.Context, tool.Call) (tool.Result, error) { return f() }
	}
	s, err := rt.CreateSession(ctx, transom.SessionConfig{OnPermission: transom.ApproveAll, Tools: []tool.Tool{
		{Name: "errs", Handler: handler(func() (tool.Result, error) { return tool.Result{}, errors.New("it is broken") })},
		{Name: "panics", Handler: handler(func() (tool.Result, error) { panic("it crashed") })},
		{Name: "dawdles", Timeout: 50 * time.Millisecond, Handler: handler(func() (tool.Result, error) { // it does not heed its context
			<-release
			return tool.Result{Text: "LATE"}, nil
		})},
		{Name: "good", Handler: handler(func() (tool.Result, error) { return tool.Result{Text: "fine"}, nil })},
	}})
	if err != nil {
		t.Fatal(err)
	}
	m, err := s.SendAndWait(ctx, transom.Message{Prompt: "go"})
	close(release)
	if err != nil || m == nil || m.Content != "done" {
		t.Fatalf("%+v, %v", m, err)
	}
	msgs := sc.requests[1].Messages
	msgs = msgs[len(msgs)-4:]
	for i, want := range []string{"Tool execution failed", "Tool execution failed", "50ms", "fine"} {
		if id := fmt.Sprintf("c%d", i+1); msgs[i].CallID != id || !strings.Contains(msgs[i].Text, want) {
			t.Errorf("call %s: the model was shown %q of %s, want %q", id, msgs[i].Text, msgs[i].CallID, want)
		}
	}
	if err := rt.Close(ctx); err != nil {
		t.Error(err)
	}
}

// Of many that create one session at once, one succeeds, and the others are told that
// it exists.
func TestConcurrentCreate(t *testing.T) {
	rt := openRuntime(t, memlog.New())
	for round := range 20 {
		var created atomic.Int64
		var wg sync.WaitGroup
		start := make(chan bool)
		for range 64 {
			wg.Go(func() {
				<-start
				_, err := rt.CreateSession(context.Background(), transom.SessionConfig{ID: fmt.Sprintf("s%d", round)})
				switch {
				case err == nil:
					created.Add(1)
				case !isKind(err, transom.KindConflict):
					t.Errorf("refused with %v", err)
				}
			})
		}
		close(start)
		wg.Wait()
		if n := created.Load(); n != 1 {
			t.Fatalf("round %d: %d succeeded", round, n)
		}
	}
}
