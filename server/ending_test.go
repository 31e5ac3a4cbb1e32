package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/transom-run/transom/model/scripted"
)

// The handler of a session-end hook may ask anything of its session while that
// ends, and is answered at once: the session waits for the handler, and the handler
// for nothing.
func TestCallsInsideOfSessionEnd(t *testing.T) {
	for _, method := range []string{"session.destroy", "session.detach", "session.shutdown"} {
		t.Run(method, func(t *testing.T) {
			w := play(t, scripted.Say("hello"))
			c := w.connect(t)
			c.ok("session.create", obj{"sessionId": id1, "model": "m", "hooks": true})
			from := 0
			hook := func() {
				from = c.await(from, "a hook", func(f frame) bool { return f.Method == "hooks.invoke" }) + 1
			}
			agree := func() {
				body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{}}`, c.at(from-1).ID)
				c.write(fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body))
			}
			end := c.send(method, obj{"sessionId": id1})
			for done := false; !done; { // hooks before the last one
				hook()
				done = strings.Contains(string(c.at(from-1).Params), `"sessionEnd"`)
				if !done {
					agree()
				}
			}
			for _, inside := range []string{"session.getMessages", "session.metadata.isProcessing", "session.name.get", "session.history.clearContext"} {
				f := c.reply(c.send(inside, obj{"sessionId": id1, "prompt": "x"}))
				if f.Error != nil && inside == "session.getMessages" && method == "session.shutdown" {
					t.Errorf("%s: %+v", inside, f.Error) // who only leaves has left already
				}
			}
			if c.answered(end) {
				t.Error("the session's end did not wait for the hook")
			}
			agree()
			if f := c.reply(end); f.Error != nil {
				t.Errorf("%s: %+v", method, f.Error)
			}
			c.fails(-32010, "session.getMessages", obj{"sessionId": id1})
		})
	}
}

// A client that takes its session up again may read it meanwhile. (The race detector
// sees what would go wrong.)
func TestReadsBesideResume(t *testing.T) {
	w := play(t, scripted.Say("hello"))
	c := w.connect(t)
	c.create(id1)
	c.prompt(id1, "hi")
	c.idle(0)
	var ids []int
	for range 30 {
		for _, method := range []string{"session.getMessages", "session.eventLog.read", "session.metadata.snapshot", "session.skills.getInvoked", "session.resume"} {
			ids = append(ids, c.send(method, obj{"sessionId": id1}))
		}
	}
	for _, id := range ids {
		if f := c.reply(id); f.Error != nil {
			t.Errorf("request %d: %+v", id, f.Error)
		}
	}
}
