package server_test

import (
	"fmt"
	"testing"

	"github.com/transom-run/transom/model/modelfile"
	"github.com/transom-run/transom/model/scripted"
)

// BenchmarkTurn is one small prompt to idle over a pipe, the client's share
// included.
func BenchmarkTurn(b *testing.B) {
	replies := make([]modelfile.Message, b.N)
	for i := range replies {
		replies[i] = scripted.Say("ok")
	}
	w := play(b, replies...)
	c := w.connect(b)
	const perSession = 20 // so that the window stays small
	id, at := "", 0
	for i := range b.N {
		if i%perSession == 0 {
			b.StopTimer()
			if id != "" {
				c.ok("session.destroy", obj{"sessionId": id})
			}
			id = fmt.Sprintf("bench-%d", i)
			c.create(id)
			at = c.count()
			b.StartTimer()
		}
		c.prompt(id, "hello")
		at = c.idle(at) + 1
	}
}
