package server_test

import (
	"context"
	"strings"
	"testing"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/eventlog/filelog"
	"github.com/transom-run/transom/model/modelfile"
	"github.com/transom-run/transom/model/scripted"
	"github.com/transom-run/transom/server"
)

// TestTakenBack: a session that another runtime has taken over is refused to whoever
// had it before, and taken back by a resume on the same connection: with all that
// was said meanwhile, and each event once.
func TestTakenBack(t *testing.T) {
	home := t.TempDir()
	var clients []*client
	var models []*scripted.Provider
	for range 2 {
		store, err := filelog.New(filelog.Config{Home: home, SyncInterval: -1})
		if err != nil {
			t.Fatal(err)
		}
		model := scripted.New(scripted.Config{Replies: []modelfile.Message{scripted.Say("1"), scripted.Say("2"), scripted.Say("3")}})
		rt, err := transom.Open(transom.Config{Store: store, Provider: model, Dir: "/work", Getenv: func(string) string { return "" }})
		if err != nil {
			t.Fatal(err)
		}
		w := &world{rt: rt, srv: server.New(server.Config{Runtime: rt}), model: model}
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), watchdog)
			defer cancel()
			if err := rt.Close(ctx); err != nil {
				t.Error(err)
			}
			if err := w.srv.Shutdown(ctx); err != nil {
				t.Error(err)
			}
		})
		c := w.connect(t)
		c.ok("connect", obj{})
		clients, models = append(clients, c), append(models, model)
	}
	a, b := clients[0], clients[1]
	a.create(id1)
	a.prompt(id1, "first")
	a.idle(0)
	b.ok("session.resume", obj{"sessionId": id1})
	at := b.count()
	b.prompt(id1, "second")
	b.idle(at)
	for range 2 { // however often it is tried
		if msg := a.fails(-32012, "session.send", obj{"sessionId": id1, "prompt": "lost"}); !strings.Contains(msg, "resume the session") {
			t.Errorf("refused with %q", msg)
		}
	}
	a.ok("session.resume", obj{"sessionId": id1})
	at = a.count()
	a.prompt(id1, "third")
	a.idle(at)
	last := models[0].Requests()[1].Messages
	if len(last) != 6 || !strings.Contains(last[3].Text, "second") {
		t.Errorf("the model was sent %d messages: %+v", len(last), last)
	}
	types, ids := a.events(id1, true)
	seen := map[string]bool{}
	for i, id := range ids {
		if seen[id] {
			t.Errorf("%s came twice", types[i])
		}
		seen[id] = true
	}
	a.ok("session.destroy", obj{"sessionId": id1})
	b.ok("session.destroy", obj{"sessionId": id1})
}
