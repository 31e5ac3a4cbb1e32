package session

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/internal/turn"
	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/tool"
)

// TestSendsAroundATurnsEnd: a message that steers, and one that does not, have their
// turns wherever in a turn's end they come.
func TestSendsAroundATurnsEnd(t *testing.T) {
	rounds := 500
	if testing.Short() {
		rounds = 50
	}
	for round := range rounds {
		r := newRig(t, rigConfig{})
		r.send("GO")
		var wg sync.WaitGroup
		for i, name := range []string{"STEER", "QUEUE"} {
			wg.Go(func() {
				for range (round * (7 + i)) % 60 { // at other moments each time
					r.s.View()
				}
				if _, err := r.try(turn.Send{Message: event.Queued{Prompt: name, Steering: name == "STEER"}}, nil); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		left := 3
		r.read(r.sub, func(e *event.Event) bool {
			if e.Type == event.TypeUserMessage {
				left--
			}
			return left == 0 && e.Type == event.TypeSessionIdle
		})
		reqs := r.model.seen()
		final := prompts(reqs[len(reqs)-1])
		for _, want := range []string{"user:GO", "user:STEER", "user:QUEUE"} {
			if strings.Count(final, want) != 1 {
				t.Fatalf("round %d: %s is not once in %s", round, want, final)
			}
		}
		r.end()
	}
}

// TestHookThatFails: who does not answer in time, panics or is gone has not agreed,
// and each is told apart.
func TestHookThatFails(t *testing.T) {
	for name, why := range map[string]string{"deaf": "did not answer within 1m0s", "panics": "it panicked: x", "gone": "is gone"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ran, release := false, make(chan bool)
				r := newRig(t, rigConfig{tools: []tool.Tool{{Name: "a", Handler: func(context.Context, tool.Call) (tool.Result, error) {
					ran = true
					return tool.Result{Text: "RAN"}, nil
				}}}})
				r.s.SetHooker("H", func(_ context.Context, kind string, _ json.RawMessage) (json.RawMessage, error) {
					switch {
					case kind != string(turn.HookPreTool):
					case name == "deaf":
						<-release // its context may end meanwhile
					case name == "panics":
						panic("x")
					}
					return nil, nil
				})
				r.model.answer = func(_ context.Context, n int, _ *model.Request) (model.Message, error) {
					if n > 1 {
						return text("ok"), nil
					}
					if name == "gone" {
						r.s.hookers.Delete("H")
					}
					return calls("c1:a"), nil
				}
				r.do(turn.Attach{Client: turn.Client{ID: "H", Hooks: true}}, nil)
				r.send("go")
				<-time.After(2 * time.Minute)
				synctest.Wait()
				if got := prompts(r.model.seen()[1]); ran || !strings.Contains(got, "gave no verdict") || !strings.Contains(got, why) {
					t.Errorf("ran %v, request %q", ran, got)
				}
				close(release)
				r.end()
			})
		})
	}
}
