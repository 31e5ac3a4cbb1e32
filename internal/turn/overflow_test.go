package turn

import (
	"strings"
	"testing"

	"github.com/transom-run/transom/model"
)

// TestMeasure: where a provider counts more tokens than the estimate says, the
// window is taken for that much fuller, never for emptier; small requests say
// nothing, and another model begins anew.
func TestMeasure(t *testing.T) {
	w := newWorld(t)
	p := &player{world: w}
	do := func(lines ...string) {
		for _, line := range lines {
			p.fields = split(t, line)
			p.command(p.word())
		}
	}
	answer := func(tokens int) {
		p.step(ModelDone{Fence: p.model, Response: model.Response{Message: model.Message{Role: model.Assistant, Text: "x"}, Usage: &model.Usage{InputTokens: tokens, OutputTokens: 1}}})
	}
	do(`new compacts limit=1000000`, `send "short"`)
	answer(900)
	if got := p.s.Live.Scale; got != 0 {
		t.Errorf("a small request: %v", got)
	}
	do(`send "` + strings.Repeat("word ", 4000) + `"`)
	size := func() int { return model.EstimateText(p.s.System) + p.s.Window.Tokens() }
	n := size()
	answer(2 * n)
	if got := p.s.Live.Scale; got < 1.99 || got > 2.01 {
		t.Errorf("twice as many tokens: %v", got)
	}
	m := &machine{s: p.s}
	if got, want := m.part(), 2*float64(size())/1000000; got < want*0.99 || got > want*1.01 {
		t.Errorf("the window is full by %v, want %v", got, want)
	}
	for tokens, want := range map[int]float64{size() / 3: 1, 50 * size(): maxScale} {
		do(`send "more"`)
		answer(tokens)
		if got := p.s.Live.Scale; got != want {
			t.Errorf("%d tokens: %v, want %v", tokens, got, want)
		}
	}
	do(`configure model=other`)
	if got := p.s.Live.Scale; got != 0 {
		t.Errorf("another model: %v", got)
	}
}

// TestCountBesideMeasure: a count takes the place of the estimate, up and down, what
// comes after it is estimated, and what the provider said of the same window stays said.
func TestCountBesideMeasure(t *testing.T) {
	w := newWorld(t)
	p := &player{world: w}
	p.play(t, `new compacts counts limit=20000`, `send "`+strings.Repeat("word ", 9000)+`"`)
	m := func() *machine { return &machine{s: p.s} }
	estimate := m().size().total()
	if p.s.Live.Counting == nil || estimate < 8000 {
		t.Fatalf("nothing is counted at %d tokens of 20000", estimate)
	}
	p.play(t, `counted 3 5000 0`)
	if got := m().size(); got != (size{3, 5000, 0}) {
		t.Errorf("a count below the estimate: %+v", got)
	}
	p.step(ModelDone{Fence: p.model, Response: model.Response{Message: model.Message{Role: model.Assistant, Text: "x"}, Usage: &model.Usage{InputTokens: 7504}}})
	if got := p.s.Live.Scale; got < 1.49 || got > 1.51 {
		t.Errorf("half more than was counted: %v", got)
	}
	before := m().size().words
	p.play(t, `send "`+strings.Repeat("word ", 4800)+`"`)
	if got := m().size().words - before; p.s.Live.Counting == nil || got < 4000 || got > 4900 {
		t.Fatalf("what has come since is estimated as %d tokens", got)
	}
	p.play(t, `counted 3 9000 0`)
	if got, want := m().part(), 1.5*9003/20000; got < want*0.99 || got > want*1.01 {
		t.Errorf("a count of %+v: the window is full by %v, want %v", m().size(), got, want)
	}

	// A window that takes the place of one that was counted is taken for as much fuller
	// than its estimate, until the provider says more.
	p.play(t, `model text "done"`, `compact`, `summary "`+strings.Repeat("word ", 3000)+`"`)
	if l := m().lapsed(); l == nil || l.exact.total() != 9003 {
		t.Fatalf("the count of the window that was is %+v", l)
	}
	p.s.Live.Counted = &count{model: p.s.Model, encoding: "x", estimated: size{words: 100}, exact: size{words: 200}}
	if got := m().scale(); got != 2 {
		t.Errorf("with a count of twice the estimate the scale is %v", got)
	}
	p.s.Live.Settings.Count = false
	p.play(t, `send "more"`)
	p.step(ModelDone{Fence: p.model, Response: model.Response{Message: model.Message{Role: model.Assistant, Text: "x"}, Usage: &model.Usage{InputTokens: 3 * m().estimated().total()}}})
	if got := m().scale(); p.s.Live.Counted != nil || got < 2.95 || got > 3.05 {
		t.Errorf("with the provider's figure the scale is %v, beside %+v", got, p.s.Live.Counted)
	}
}
