package host

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/transom-run/transom/mcp"
	"github.com/transom-run/transom/mcp/mcptest"
	"github.com/transom-run/transom/tool"
)

// A server's words about a call's progress are told with the call; the words of one
// that is faster than it can be told do not pile up.
func TestProgress(t *testing.T) {
	var r *rig
	var told []string
	var calls []tool.Call
	var dones []func()
	r = newRig(t, func(c *mcp.Context) {
		c.Redact = func(s string) string { return strings.ReplaceAll(s, "hush", "***") }
		c.Progress = func(call tool.Call, message string, done func()) {
			r.mu.Lock()
			defer r.mu.Unlock()
			told, calls, dones = append(told, message), append(calls, call), append(dones, done)
			select {
			case r.news <- struct{}{}:
			default:
			}
		}
	})
	r.set(map[string]mcp.Server{"s": mcptest.Server("slow")})
	work := func(id, args string) {
		t.Helper()
		res := r.make(tool.Call{ID: id, AgentID: "agent-" + id, Name: "s-work", Arguments: json.RawMessage(args)})
		if res.Text != "worked" {
			t.Fatalf("%s: %+v", id, res)
		}
	}
	work("a", `{"steps":50}`)
	r.until("the first progress", func() bool { return len(told) > 0 })
	work("b", `{"steps":1,"message":"nearly hush `+strings.Repeat("é", 2*maxProgress)+`"}`)
	r.until("that of the second call", func() bool { return len(told) > 1 })
	for i := range 2 * lingering {
		work(fmt.Sprint("more", i), `{"steps":0}`)
	}
	kept := &r.Host.(*Host).servers["s"].run.link.progress
	kept.mu.Lock()
	if n := len(kept.calls); n > lingering {
		t.Errorf("%d calls are known", n)
	}
	kept.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(told) != 2 || told[0] != "1 of 50" { // nothing was done with the first one yet
		t.Errorf("told %q", told)
	}
	if calls[0].ID != "a" || calls[0].AgentID != "agent-a" || calls[1].ID != "b" {
		t.Errorf("told of the calls %+v", calls)
	}
	if long := told[1]; !strings.HasPrefix(long, "nearly ***") || !strings.HasSuffix(long, "é…") || len(long) > maxProgress+len("…") {
		t.Errorf("told %q", long)
	}
	for _, done := range dones {
		done()
	}
}
