package server_test

import (
	"testing"

	"github.com/transom-run/transom/model/modelfile"
	"github.com/transom-run/transom/model/scripted"
)

// A host's place in a trace comes back with the calls of its tools, whether or not
// anybody makes traces here.
func TestTracePassesThrough(t *testing.T) {
	w := play(t, scripted.Call("probe", "{}"), modelfile.Message{Content: "done"}, scripted.Call("probe", "{}"))
	c := w.connect(t)
	const created, sent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"
	c.ok("session.create", obj{"sessionId": "s", "tools": []obj{hostTool("probe")}, "traceparent": created, "tracestate": "a=b"})
	for i, want := range []string{sent, created} {
		send := obj{"sessionId": "s", "prompt": "go"}
		if i == 0 {
			send["traceparent"], send["tracestate"] = sent, "c=d"
		} else {
			send["traceparent"] = "rubbish"
		}
		from := c.count()
		c.ok("session.send", send)
		var a struct{ RequestID, Traceparent, Tracestate string }
		c.eventFrom(from, "external_tool.requested", &a)
		if a.Traceparent != want || a.Tracestate != []string{"c=d", "a=b"}[i] {
			t.Errorf("the call is at %q, %q", a.Traceparent, a.Tracestate)
		}
		c.ok("session.tools.handlePendingToolCall", obj{"sessionId": "s", "requestId": a.RequestID, "result": "ok"})
		if i == 0 {
			c.idle(from)
		}
	}
}
