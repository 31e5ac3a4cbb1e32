package turn

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/tool"
)

// narrow is a session whose model takes requests of so many tokens and refuses all
// that are larger. It counts otherwise than the core estimates.
type narrow struct {
	rt *rapid.T
	s  State

	limit  int     // of the model, as it counts
	factor float64 // of its figures to the estimates
	usage  bool    // it tells its figures

	ids      int
	call     *StartModel      // that waits for its answer
	summary  *StartCompaction // that waits for its answer
	attempts int              // to summarise, since the model last answered
	room     int              // for the conversation, when the newest summary began
	now      time.Time
}

func (n *narrow) step(body Body) {
	n.rt.Helper()
	n.now = n.now.Add(time.Second)
	next, ready, err := Step(n.s, Input{At: n.now, NewID: func() string { n.ids++; return fmt.Sprint("id", n.ids) }, Body: body})
	if err != nil {
		n.rt.Fatalf("%s: %v", body.kind(), err)
	}
	n.s = next
	if ready.CancelCompaction {
		n.summary = nil
	}
	for _, e := range ready.Events {
		switch p := e.Payload.(type) {
		case event.SessionError:
			n.rt.Fatalf("the session fails in a window of %d: %s\nwindow %d, scale %v, ceiling %d", n.limit, p.Message, n.s.Window.Tokens(), n.s.Live.Scale, n.s.Live.Ceiling)
		case event.CompactionStart:
			n.room = p.TokenLimit - p.SystemTokens - p.ToolDefinitionsTokens
		case event.CompactionComplete:
			if p.Success {
				n.checkShare()
			}
		}
	}
	for _, e := range ready.Start {
		switch e := e.(type) {
		case *StartModel:
			n.call = e
			if err := wellFormed(e.Request.Messages, n.s.System); err != nil {
				n.rt.Fatalf("%v:\n%s", err, showMessages(e.Request.Messages))
			}
		case *StartCompaction:
			n.summary = e
			if n.attempts++; n.attempts > 2*(maxShort+1) {
				n.rt.Fatalf("%d attempts to summarise one window", n.attempts)
			}
			if err := wellFormed(e.Request.Messages, n.s.System); err != nil {
				n.rt.Fatalf("summary: %v:\n%s", err, showMessages(e.Request.Messages))
			}
		}
	}
}

// checkShare: a summary takes two fifths of what the window had for the
// conversation when it began.
func (n *narrow) checkShare() {
	ms := n.s.Window.Messages("")
	if have := model.EstimateMessage(&ms[0]); n.room > 0 && have > n.room*2/5+20 {
		n.rt.Fatalf("a summary of %d tokens where there is room for %d", have, n.room)
	}
}

func (n *narrow) count(r *model.Request) int {
	tokens := n.s.Live.Offers.Tokens()
	for i := range r.Messages {
		tokens += model.EstimateMessage(&r.Messages[i])
	}
	return int(float64(tokens) * n.factor)
}

// text is one of up to so many tokens, as the model counts.
func (n *narrow) text(label string, most int) string {
	words := rapid.IntRange(1, max(1, int(float64(most)/n.factor))).Draw(n.rt, label)
	return strings.Repeat("word ", words)
}

var tooLong = &model.Error{Kind: model.ContextLimit, Msg: "too long", Status: 400}

func (n *narrow) summarise() {
	in := CompactionDone{ID: n.summary.ID}
	tokens := n.count(&n.summary.Request)
	if n.summary = nil; tokens > n.limit {
		in.Err = tooLong
	} else {
		in.Response = model.Response{Model: "m", Message: model.Message{Role: model.Assistant, Text: n.text("summary", n.limit)}}
	}
	n.step(in)
}

func (n *narrow) answer() {
	call, tokens := n.call, n.count(&n.call.Request)
	n.call = nil
	if tokens > n.limit {
		n.step(ModelFailed{Fence: call.Fence, Err: tooLong})
		return
	}
	n.attempts = 0
	r := model.Response{Model: "m", Message: model.Message{Role: model.Assistant}}
	if n.usage {
		r.Usage = &model.Usage{InputTokens: tokens, OutputTokens: 1}
	}
	if rapid.IntRange(0, 2).Draw(n.rt, "calls") > 0 {
		for range rapid.IntRange(1, 4).Draw(n.rt, "number") {
			n.ids++
			r.Message.Calls = append(r.Message.Calls, model.Call{ID: fmt.Sprint("c", n.ids), Name: "local", Arguments: `{"n":1}`})
		}
	} else {
		r.Message.Text = n.text("answer", n.limit/4)
	}
	n.step(ModelDone{Fence: call.Fence, Response: r})
}

// result answers the oldest open call, perhaps with more than the window has.
func (n *narrow) result() {
	for _, c := range n.s.Loop.Calls {
		if !c.Done {
			most := rapid.SampledFrom([]int{1, n.limit / 8, 3 * n.limit}).Draw(n.rt, "most")
			n.step(ToolDone{
				Fence:   Fence{Turn: n.s.Live.Turn, Window: n.s.Clears, Call: c.ID},
				Outcome: tool.Settle(tool.Call{ID: c.ID, Name: c.Name}, tool.Result{Text: n.text("result", most)}, nil, nil),
			})
			return
		}
	}
}

// turn plays a turn from its prompt to its end.
func (n *narrow) turn(prompt string) {
	n.step(Send{Message: event.Queued{MessageID: fmt.Sprint("m", n.ids), Prompt: prompt}})
	for n.s.Phase() != Idle {
		switch {
		case n.summary != nil && (n.s.Live.Awaiting || rapid.Bool().Draw(n.rt, "summarised")):
			n.summarise()
		case n.s.Phase() == Acting:
			n.result()
		case n.call != nil:
			n.answer()
		default:
			n.rt.Fatalf("the session is %s, and nobody is asked", n.s.Phase())
		}
	}
}

// again is the session after a restart, which knows nothing but the log's fold.
func (n *narrow) again(settings Settings) {
	saved, err := Save(n.s.Durable)
	if err != nil {
		n.rt.Fatalf("save: %v", err)
	}
	d, err := Restore(string(saved))
	if err != nil {
		n.rt.Fatalf("restore: %v", err)
	}
	n.s, n.summary, n.call = State{Durable: d}, nil, nil
	n.step(Resume{Client: Client{ID: "B", Tools: registry(n.rt, "local*~")}, Settings: &settings, Loaded: true})
}

// TestAnyWindow: no session fails for size alone. Whatever prompts, answers,
// results and summaries are like, one model call after another fits, in any window
// of at least 2,000 tokens, with a model that counts up to twice as many tokens as
// the estimate, told or not. Only a single prompt must fit by itself.
func TestAnyWindow(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := &narrow{rt: rt, now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
		n.limit = rapid.IntRange(2000, 6000).Draw(rt, "limit")
		n.factor = rapid.SampledFrom([]float64{0.6, 1, 1.3, 2}).Draw(rt, "factor")
		n.usage = rapid.Bool().Draw(rt, "usage")
		settings := Settings{System: "SYS", ApproveAll: true, TokenLimit: n.limit, Version: "v", Compaction: Compaction{Enabled: true, Background: 0.8, Blocking: 0.95}}
		if rapid.IntRange(0, 3).Draw(rt, "unknown") == 0 {
			settings.TokenLimit = 0
		}
		n.step(Begin{SessionID: "s", Model: "m", Dir: "/d", Settings: settings, Client: Client{ID: "A", Tools: registry(rt, "local*~")}})
		for range rapid.IntRange(1, 25).Draw(rt, "turns") {
			n.turn(n.text("prompt", rapid.SampledFrom([]int{20, n.limit / 3, n.limit * 4 / 5}).Draw(rt, "most")))
			if rapid.IntRange(0, 9).Draw(rt, "again") == 0 {
				n.again(settings)
			}
		}
	})
}

// TestManyPrompts: a session of thousands of prompts goes on in a small window. The
// newest prompts stand in it as they were given, the older ones are counted.
func TestManyPrompts(t *testing.T) {
	const turns = 3000
	p := Settings{System: "SYS", ApproveAll: true, TokenLimit: 3000, Version: "v", Compaction: Compaction{Enabled: true, Background: 0.8, Blocking: 0.95}}
	var s State
	ids, left := 0, 0
	var todo []Body
	do := func(body Body) {
		next, ready, err := Step(s, Input{At: time.Unix(int64(ids), 0), NewID: func() string { ids++; return fmt.Sprint("id", ids) }, Body: body})
		if err != nil {
			t.Fatal(err)
		}
		s = next
		for _, e := range ready.Events {
			if p, ok := e.Payload.(event.SessionError); ok {
				t.Fatal(p.Message)
			}
		}
		for _, e := range ready.Start {
			switch e := e.(type) {
			case *StartModel:
				todo = append(todo, ModelDone{Fence: e.Fence, Response: model.Response{Message: model.Message{Text: "Done."}}})
			case *StartCompaction:
				todo = append(todo, CompactionDone{ID: e.ID, Response: model.Response{Message: model.Message{Text: "SUMMARY"}}})
			}
		}
	}
	do(Begin{SessionID: "s", Model: "m", Dir: "/d", Settings: p, Client: Client{ID: "A"}})
	for n := range turns {
		do(Send{Message: event.Queued{MessageID: fmt.Sprint("m", n), Prompt: fmt.Sprintf("This is prompt number %d of a long day.", n)}})
		for len(todo) > 0 {
			body := todo[0]
			todo = todo[1:]
			do(body)
		}
	}
	text := ""
	for _, m := range s.Window.Messages("") {
		text += m.Text + "\n"
	}
	if size := s.Window.Tokens(); size > p.TokenLimit {
		t.Errorf("the window has grown to %d tokens", size)
	}
	if _, err := fmt.Sscanf(text[strings.Index(text, "(")+1:], "%d earlier user messages are left out here", &left); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	for n := range turns {
		if has := strings.Contains(text, fmt.Sprintf("prompt number %d of", n)); has != (n >= left) {
			t.Fatalf("prompt %d stands there: %t; %d are said to be left out", n, has, left)
		}
	}
}
