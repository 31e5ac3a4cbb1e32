package turn

import (
	"strings"
	"testing"

	"github.com/transom-run/transom/tool"
)

// TestWholeResult: a large result is cut to a preview, unless its tool says that
// the model has asked for all of it.
func TestWholeResult(t *testing.T) {
	text := strings.Repeat("x", tool.MaxResultBytes+1)
	for _, whole := range []bool{false, true} {
		w := newWorld(t)
		p := &player{world: w}
		for _, line := range []string{`new tools=a*`, `send "go"`, `model call c1 a {}`} {
			p.fields = split(t, line)
			p.command(p.word())
		}
		if _, err := p.step(ToolDone{Fence: p.fences["c1"], Outcome: tool.Settle(tool.Call{ID: "c1", Name: "a"}, tool.Result{Text: text, Whole: whole}, nil, nil)}); err != nil {
			t.Fatal(err)
		}
		messages := p.s.Window.Messages("")
		if got := messages[len(messages)-1].Text; (got == text) != whole {
			t.Errorf("whole %v: the model reads %d bytes", whole, len(got))
		}
	}
}
