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
	full := m().part()
	p.play(t, `counted 3 9000 0`)
	if got := m().part(); got < full*0.99 || got > full*1.01 {
		t.Errorf("a count of %+v: the window is full by %v, and was by %v", m().size(), got, full)
	}
	if got := p.s.Live.Scale; got < 1 || got > maxScale {
		t.Errorf("the scale is %v", got)
	}
}
