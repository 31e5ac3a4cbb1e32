package host

import (
	"slices"
	"strings"
	"testing"

	"github.com/transom-run/transom/mcp"
	"github.com/transom-run/transom/mcp/mcptest"
	"github.com/transom-run/transom/tool"
)

// A server whose answer cannot be read is ended, which is what is said of it: it did not
// end by itself.
func TestWrongAnswers(t *testing.T) {
	r := newRig(t, nil)
	r.set(map[string]mcp.Server{"s": mcptest.Server("wrong"), "t": mcptest.Server("wrongs")})
	if st := r.state("s"); st.Status != mcp.Failed || !strings.Contains(st.Error, "cannot unmarshal") || strings.Contains(st.Error, "process ended") {
		t.Errorf("%+v", st)
	}
	got := r.call("t-old", `{}`)
	if want := "MCP server 't' is gone: it was ended, because what it sent cannot be read: "; got.Type != tool.Failure || !strings.Contains(got.Text, want) || !strings.Contains(got.Text, "cannot unmarshal") {
		t.Errorf("%+v", got)
	}
	r.until("the failure", func() bool {
		return slices.ContainsFunc(r.states, func(st mcp.State) bool {
			return st.Name == "t" && st.Status == mcp.Failed && strings.Contains(st.Error, "it was ended, because")
		})
	})
}
