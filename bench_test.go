package transom_test

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/eventlog"
	"github.com/transom-run/transom/eventlog/filelog"
	"github.com/transom-run/transom/eventlog/memlog"
	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/tool"
)

// loop answers as the last user message says: "tools N" calls the tool n times,
// "stream N" sends N pieces, anything else is answered with one word.
type loop struct {
	n    int
	tool string // "" is probe
}

func (l *loop) Stream(_ context.Context, req *model.Request) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		if req.Stream {
			for range l.n {
				if !yield(model.Chunk{Text: "tok "}, nil) {
					return
				}
			}
			return
		}
		last := req.Messages[len(req.Messages)-1]
		results := 0
		for i := len(req.Messages) - 1; i >= 0 && req.Messages[i].Role != model.User; i-- {
			if req.Messages[i].Role == model.ToolRole {
				results++
			}
		}
		if l.n > 0 && results < l.n && (last.Role == model.User || last.Role == model.ToolRole) {
			yield(model.Chunk{Call: &model.CallChunk{Name: cmp.Or(l.tool, "probe"), Arguments: "{}"}}, nil)
			return
		}
		yield(model.Chunk{Text: "ok"}, nil)
	}
}

func runtime(b *testing.B, l *loop, store eventlog.Store) *transom.Runtime {
	b.Helper()
	rt, err := transom.Open(transom.Config{Store: store, Provider: l})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { rt.Close(context.Background()) })
	return rt
}

func session(b *testing.B, rt *transom.Runtime, streaming bool, more ...tool.Tool) *transom.Session {
	b.Helper()
	s, err := rt.CreateSession(context.Background(), transom.SessionConfig{
		Streaming: streaming,
		Tools: append([]tool.Tool{{Name: "probe", SkipPermission: true, Handler: func(context.Context, tool.Call) (tool.Result, error) {
			return tool.Result{Text: "ok"}, nil
		}}}, more...),
	})
	if err != nil {
		b.Fatal(err)
	}
	go func() {
		for range s.Events().All(context.Background()) {
		}
	}()
	return s
}

func files(b *testing.B) eventlog.Store {
	b.Helper()
	store, err := filelog.New(filelog.Config{Home: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	return store
}

func BenchmarkTurn(b *testing.B) {
	for _, store := range []struct {
		name string
		make func(*testing.B) eventlog.Store
	}{{"memory", func(*testing.B) eventlog.Store { return memlog.New() }}, {"files", files}} {
		b.Run(store.name, func(b *testing.B) {
			rt := runtime(b, &loop{}, store.make(b))
			b.ReportAllocs()
			for b.Loop() {
				s := session(b, rt, false)
				for range 20 {
					ask(b, s)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/20, "µs/turn")
		})
	}
}

func ask(b *testing.B, s *transom.Session) {
	b.Helper()
	if _, err := s.SendAndWait(context.Background(), transom.Message{Prompt: "go"}); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkToolRound(b *testing.B) {
	rt := runtime(b, &loop{n: 100}, files(b))
	b.ReportAllocs()
	for b.Loop() {
		ask(b, session(b, rt, false))
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/100, "µs/round")
}

func BenchmarkDelta(b *testing.B) {
	rt := runtime(b, &loop{n: 5000}, files(b))
	b.ReportAllocs()
	for b.Loop() {
		ask(b, session(b, rt, true))
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/5000, "ns/delta")
}

// BenchmarkResume loads a stored session of 200 turns, and lets it go again.
func BenchmarkResume(b *testing.B) {
	rt := runtime(b, &loop{}, files(b))
	s := session(b, rt, false)
	for range 200 {
		if _, err := s.SendAndWait(context.Background(), transom.Message{Prompt: "say " + strings.Repeat("history ", 100)}); err != nil {
			b.Fatal(err)
		}
	}
	id := s.ID()
	if err := s.Close(context.Background()); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		s, err := rt.ResumeSession(context.Background(), id, transom.ResumeConfig{})
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Close(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkTurnAfter is one turn after as many earlier ones: "live" with all of
// them in the window, "cleared" with none of them.
func BenchmarkTurnAfter(b *testing.B) {
	for _, n := range []int{10, 1000} {
		for _, window := range []string{"live", "cleared"} {
			b.Run(fmt.Sprintf("%s/%d", window, n), func(b *testing.B) {
				l := &loop{}
				rt := runtime(b, l, files(b))
				var s *transom.Session
				s = session(b, rt, false, tool.Tool{Name: "clear", SkipPermission: true, IsTerminal: true, Handler: func(ctx context.Context, _ tool.Call) (tool.Result, error) {
					l.n = 0
					_, err := s.History().ClearContext(ctx, "go on")
					return tool.Result{Text: "ok"}, err
				}})
				for range n {
					ask(b, s)
				}
				if window == "cleared" {
					l.n, l.tool = 1, "clear"
					ask(b, s)
				}
				b.ReportAllocs()
				for b.Loop() {
					ask(b, s)
				}
			})
		}
	}
}
