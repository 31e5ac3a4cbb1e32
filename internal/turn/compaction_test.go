package turn

import (
	"fmt"
	"strings"
	"testing"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/model"
)

// play makes steps of commands of the transcripts.
func (p *player) play(t *testing.T, lines ...string) {
	t.Helper()
	for _, line := range lines {
		p.fields = split(t, line)
		p.line()
	}
}

// count is how many records of a type the log holds.
func (w *world) count(typ string) (n int) {
	for _, e := range w.log {
		if e.Type == typ {
			n++
		}
	}
	return n
}

// TestManySummaries: through hundreds of turns with tool calls and dozens of
// summaries, made beside the turn and before it, every request is well-formed (the
// world checks each) and no larger than the window.
func TestManySummaries(t *testing.T) {
	const limit = 6000
	p := script(t, fmt.Sprintf(`new compacts limit=%d tools=a,b`, limit))
	for n := range 300 {
		p.play(t, fmt.Sprintf(`send "prompt %d"`, n))
		settle := func() {
			if p.s.Live.Compacting != nil && (p.s.Live.Awaiting || n%3 == 0) {
				p.play(t, fmt.Sprintf(`summary "SUMMARY %d"`, n))
			}
		}
		settle()
		p.play(t, fmt.Sprintf(`model call c%d a {"n":1} call d%d b {}`, n, n), fmt.Sprintf(`answer d%d "second of %d"`, n, n))
		settle()
		p.play(t, fmt.Sprintf(`answer c%d %q`, n, strings.Repeat("word ", 600)))
		settle()
		p.play(t, `model text "done"`)
		if p.s.Phase() != Idle {
			t.Fatalf("turn %d: the session is %s", n, p.s.Phase())
		}
		if size := p.s.Window.Tokens(); size > 2*limit {
			t.Fatalf("turn %d: the window has grown to %d tokens", n, size)
		}
	}
	if n := p.count(event.TypeCompactionComplete); n < 30 {
		t.Errorf("only %d summaries", n)
	}
}

// TestFailingSummaries: where no summary can be made, it is not asked for again until
// the window has grown by half, each failure is an event, turns go on to the end of
// the window, and there the error says what to do about it.
func TestFailingSummaries(t *testing.T) {
	p := script(t, `new compacts`)
	sizes := []int{} // of the window, at each attempt
	for n := range 20 {
		p.play(t, fmt.Sprintf(`send "%d %s"`, n, strings.Repeat("word ", 20)))
		for p.s.Live.Compacting != nil {
			sizes = append(sizes, p.s.Window.Tokens())
			p.play(t, `summary fail "500"`)
		}
		p.play(t, `model text "answer"`)
		if p.s.Phase() != Idle {
			t.Fatalf("turn %d: the session is %s", n, p.s.Phase())
		}
	}
	if len(sizes) == 0 || p.count(event.TypeCompactionComplete) != len(sizes) || p.count(event.TypeCompactionStart) != len(sizes) {
		t.Fatalf("%d attempts, %d begun, %d told of", len(sizes), p.count(event.TypeCompactionStart), p.count(event.TypeCompactionComplete))
	}
	for i := 1; i < len(sizes); i++ {
		if float64(sizes[i]) < compactGrowth*float64(sizes[i-1]) {
			t.Errorf("the window was summarised at %v tokens: too soon again", sizes)
		}
	}
	if n := p.count(event.TypeSessionError); n != 0 {
		t.Errorf("%d errors before the window was full", n)
	}
	p.play(t, `send "last"`)
	for p.s.Live.Compacting != nil {
		p.play(t, `summary fail "500"`)
	}
	p.play(t, `model toolarge`)
	for p.s.Live.Compacting != nil {
		p.play(t, `summary fail "500"`)
	}
	last := ""
	for _, e := range p.log {
		if e.Type == event.TypeSessionError {
			last = payload[event.SessionError](e).Message
		}
	}
	if p.s.Phase() != Idle || !strings.Contains(last, "could not be compacted") {
		t.Errorf("at the hard limit the session is %s, and says %q", p.s.Phase(), last)
	}
}

// TestSummaryBehindAnOrphan: a call that the log never answers, wherever it stands,
// does not keep the window from being summarised.
func TestSummaryBehindAnOrphan(t *testing.T) {
	whole := script(t, `new tools=a; send "one"; model call c1 a {}; answer c1 "RESULT"; model text "first"; send "two"; model text "second"`)
	for _, cut := range []bool{false, true} { // in the middle; as the last record
		p := &player{world: newWorld(t)}
		p.ids, p.now = whole.ids, whole.now
		for _, e := range whole.log {
			if e.Type == event.TypeToolComplete {
				if cut {
					break
				}
				continue
			}
			p.log = append(p.log, e)
		}
		p.kill(len(p.log))
		p.play(t, `resume B compacts limit=100 tools=a`)
		for n := range 6 {
			p.play(t, fmt.Sprintf(`send "%d %s"`, n, strings.Repeat("word ", 12)))
			for p.s.Live.Compacting != nil {
				p.play(t, `summary "SUMMARY"`)
			}
			p.play(t, `model text "answer"`)
		}
		done := 0
		for _, e := range p.log {
			if e.Type == event.TypeCompactionComplete && payload[event.CompactionComplete](e).Success {
				done++
			}
		}
		if done == 0 {
			t.Errorf("cut %t: nothing was summarised", cut)
		}
		for _, m := range p.s.Window.Messages("") {
			if len(m.Calls) > 0 {
				t.Errorf("cut %t: the orphan outlived the summary", cut)
			}
		}
	}
}

// TestRetriedStream: of a stream that broke off within a call, or within text, and
// was made again, nothing is in later requests, and none of them ends with the
// model's own words (the world checks that of each).
func TestRetriedStream(t *testing.T) {
	for _, c := range []model.Chunk{{Text: "FRAGMENT"}, {Reasoning: "FRAGMENT"}, {Call: &model.CallChunk{ID: "FRAGMENT", Name: "a", Arguments: `{"prompt":"FRAG`}}} {
		p := script(t, `new stream tools=a; send "go"`)
		p.do(ModelChunk{Fence: p.model, Chunk: c})
		p.play(t, `model retry "cut"`, `model text "whole"`, `send "next"`, `model call c1 a {}`, `answer c1 "x"`)
		if len(p.requests) != 3 {
			t.Fatalf("%+v: %d requests", c, len(p.requests))
		}
		for _, r := range p.requests {
			if got := showMessages(r.Messages); strings.Contains(got, "FRAG") {
				t.Errorf("%+v: a request holds %s", c, got)
			}
		}
		if got, want := showMessages(p.requests[1].Messages[1:]), `user "@go" | assistant "whole" | user "@next"`; got != want {
			t.Errorf("%+v: %s, want %s", c, got, want)
		}
		if p.count(event.TypeToolStart) != 1 {
			t.Errorf("%+v: %d calls were started", c, p.count(event.TypeToolStart))
		}
	}
}
