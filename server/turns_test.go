package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/transom-run/transom/eventlog"
	"github.com/transom-run/transom/eventlog/memlog"
	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/model/modelfile"
	"github.com/transom-run/transom/model/scripted"
	"github.com/transom-run/transom/server"
)

// settle answers a call of a host's tool, and reports whether the answer counted.
func (c *client) settle(q ask, text string) bool {
	c.t.Helper()
	var out struct{ Success bool }
	c.ok("session.tools.handlePendingToolCall", in(obj{"requestId": q.RequestID, "result": text}), &out)
	return out.Success
}

// A handler may abort the turn that waits for it: that is answered while the handler
// runs, the host is told that the call is over, and what it says later changes
// nothing.
func TestAbortFromAHandler(t *testing.T) {
	onBoth(t, func(t *testing.T, on func(*world) func() *client) {
		w := play(t, scripted.Call("outer", `{}`), scripted.Say("second"), scripted.Say("third"))
		c := on(w)()
		c.create(id1, hostTool("outer"))
		c.prompt(id1, "first")
		var q, over ask
		c.awaitEvent("external_tool.requested", &q)
		c.prompt(id1, "queued")
		if types, _ := c.history(id1); !slices.Contains(types, "external_tool.requested") {
			t.Errorf("history: %v", types)
		}
		c.ok("session.abort", in(nil))
		var end struct{ Aborted bool }
		at := c.eventFrom(0, "session.idle", &end)
		if !end.Aborted {
			t.Error("the idle event does not tell of the abort")
		}
		c.awaitEvent("external_tool.completed", &over)
		if over.RequestID != q.RequestID {
			t.Errorf("over is request %q, asked was %q", over.RequestID, q.RequestID)
		}
		if c.settle(q, "LATE") {
			t.Error("an answer after the abort counted")
		}
		c.prompt(id1, "more")
		c.idle(at + 1)
		last := w.model.Requests()[2].Messages
		var texts []string
		for _, m := range last {
			texts = append(texts, m.Text)
		}
		all := strings.Join(texts, "|")
		if strings.Contains(all, "LATE") || !strings.Contains(all, "interrupted") || strings.Index(all, "queued") > strings.Index(all, "more") {
			t.Errorf("the model was shown %q", texts)
		}
	})
}

// A session that is destroyed while its model answers ends at once: whoever waits
// for the turn is told, and the provider's connection is closed.
func TestDestroyInAStream(t *testing.T) {
	for _, method := range []string{"session.destroy", "session.delete"} {
		t.Run(method, func(t *testing.T) {
			begun, left := make(chan bool, 1), make(chan bool, 1)
			endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				w.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprint(w, `data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"without end"}}]}`+"\n\n")
				w.(http.Flusher).Flush()
				begun <- true
				<-r.Context().Done()
				left <- true
			}))
			defer endpoint.Close()
			c := newWorld(t, nil, server.Config{}).connect(t)
			c.ok("session.create", in(obj{"model": "m", "streaming": true, "provider": obj{"type": "openai", "baseUrl": endpoint.URL + "/v1"}}))
			waits := c.send("session.send", in(obj{"prompt": "go", "wait": true}))
			<-begun
			c.eventAt(0, "assistant.message_delta")
			c.ok(method, in(nil))
			if f := c.reply(waits); f.Error == nil {
				t.Errorf("who waited for the turn was answered %s", f.Result)
			}
			select {
			case <-left:
			case <-time.After(watchdog):
				t.Error("the provider still answers")
			}
			c.fails(-32010, "session.getMessages", in(nil))
		})
	}
}

// Turns that were finished, aborted, ended by a tool, cleared and failed can be told
// apart by their events alone.
func TestEndingsDiffer(t *testing.T) {
	answered := func(c *client, q ask) { c.settle(q, "x") }
	kinds := map[string]struct {
		replies []modelfile.Message
		act     func(c *client, q ask)
		mark    string
	}{
		"finished": {[]modelfile.Message{scripted.Call("look", `{}`), scripted.Say("done")}, answered, "assistant.message assistant.turn_end assistant.idle session.idle whole"},
		"by a tool": {
			[]modelfile.Message{scripted.Call("end", `{}`)}, answered, "tool.execution_complete assistant.turn_end assistant.idle session.idle whole",
		},
		"aborted": {[]modelfile.Message{scripted.Call("look", `{}`)}, func(c *client, _ ask) { c.ok("session.abort", in(nil)) }, "session.idle aborted"},
		"failed":  {[]modelfile.Message{scripted.Call("look", `{}`), scripted.Fail(400, "no")}, answered, "session.error"},
		"cleared": {
			[]modelfile.Message{scripted.Call("end", `{}`), scripted.Say("done")},
			func(c *client, q ask) {
				c.ok("session.history.clearContext", in(obj{"prompt": "SEED"}))
				answered(c, q)
			},
			"session.context_cleared",
		},
	}
	seen := map[string]string{}
	for name, k := range kinds {
		w := play(t, k.replies...)
		c := w.connect(t)
		c.create(id1, hostTool("look"), hostTool("end", "terminal"))
		c.prompt(id1, "go")
		var q ask
		c.awaitEvent("external_tool.requested", &q)
		k.act(c, q)
		var end struct{ Aborted bool }
		c.eventFrom(0, "session.idle", &end)
		types, _ := c.events(id1, false)
		// What comes at any time, and tells of no ending.
		types = slices.DeleteFunc(types, func(typ string) bool {
			return strings.HasSuffix(typ, "usage") || strings.HasSuffix(typ, "usage_info") || strings.HasSuffix(typ, "title_changed")
		})
		all := strings.Join(types[slices.Index(types, "external_tool.requested"):], " ")
		if end.Aborted {
			all += " aborted"
		} else {
			all += " whole"
		}
		if !strings.Contains(all, k.mark) {
			t.Errorf("%s: no %q in %s", name, k.mark, all)
		}
		if other, ok := seen[all]; ok {
			t.Errorf("%s and %s end alike: %s", name, other, all)
		}
		seen[all] = name
		if name == "cleared" {
			continue // it goes on with a turn that ends in a way of its own
		}
		for other, o := range kinds {
			if other != name && strings.Contains(all, o.mark) {
				t.Errorf("%s looks like %s: %s", name, other, all)
			}
		}
	}
}

// held is a model that answers when it is let.
type held struct {
	model.Provider
	asked, let chan bool
}

func (h held) Stream(ctx context.Context, req *model.Request) iter.Seq2[model.Chunk, error] {
	h.asked <- true
	select {
	case <-h.let:
	case <-ctx.Done():
	}
	return h.Provider.Stream(ctx, req)
}

// A turn goes on without the client that began it: others see its end, and whoever
// comes later finds it.
func TestTurnEndsUnattended(t *testing.T) {
	for _, watched := range []bool{true, false} {
		t.Run(fmt.Sprintf("watched=%v", watched), func(t *testing.T) {
			store := memlog.New()
			h := held{scripted.New(scripted.Config{Replies: []modelfile.Message{scripted.Say("hello")}}), make(chan bool, 1), make(chan bool)}
			w := newWorldIn(t, store, h, server.Config{})
			a, b := w.connect(t), w.connect(t)
			a.create(id1)
			if watched {
				b.ok("session.resume", in(obj{"disableResume": true}))
			}
			a.prompt(id1, "go")
			<-h.asked
			a.conn.Close()
			a.awaitClosed()
			h.let <- true
			if watched {
				b.idle(0)
			} else {
				untilLogged(t, store, "assistant.turn_end")
			}
			late := w.connect(t)
			late.ok("session.resume", in(nil))
			var acts struct{ Processing bool }
			late.ok("session.metadata.isProcessing", in(nil), &acts)
			if types, _ := late.history(id1); acts.Processing || !slices.Contains(types, "assistant.message") {
				t.Errorf("processing %v, history %v", acts.Processing, types)
			}
		})
	}
}

// untilLogged waits until a session's log has a record of a type.
func untilLogged(t *testing.T, store eventlog.Store, typ string) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(watchdog); ; {
		log, _, err := store.Open(t.Context(), id1)
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for rec, err := range log.Read(0) {
			found = found || err == nil && strings.Contains(string(rec.Line), `"`+typ+`"`)
		}
		log.Close()
		if found {
			return
		}
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("no %s in the log", typ)
		}
	}
}

// A call goes to a client that is there and has declared the tool: never to one that
// is gone, and to whoever declares it again from the next call on.
func TestToolOfALostClient(t *testing.T) {
	onBoth(t, func(t *testing.T, on func(*world) func() *client) {
		w := play(t, scripted.Call("magic", `{}`), scripted.Say("one"), scripted.Call("magic", `{}`), scripted.Say("two"), scripted.Call("magic", `{}`), scripted.Say("three"))
		dial := on(w)
		a, b := dial(), dial()
		a.create(id1, hostTool("magic"))
		b.ok("session.resume", in(obj{"disableResume": true}))
		a.prompt(id1, "go")
		var q ask
		b.awaitEvent("external_tool.requested", &q)
		a.conn.Close() // with its call open
		at := b.idle(0)
		if got := shown(w, 1); !strings.Contains(got, "disconnected") {
			t.Errorf("the model was shown %q of the call that was open", got)
		}
		b.prompt(id1, "again")
		b.idle(at + 1)
		if got := shown(w, 3); !strings.Contains(got, "does not exist") {
			t.Errorf("the model was shown %q with nobody to ask", got)
		}
		b.ok("session.resume", in(obj{"disableResume": true, "tools": []obj{hostTool("magic")}}))
		at = b.count()
		b.prompt(id1, "once more")
		b.eventFrom(at, "external_tool.requested", &q)
		if !b.settle(q, "from b") {
			t.Error("the answer did not count")
		}
		b.idle(at)
		if got := shown(w, 5); got != "from b" {
			t.Errorf("the model was shown %q", got)
		}
	})
}

// shown is the newest message of the n-th model call.
func shown(w *world, n int) string {
	msgs := w.model.Requests()[n].Messages
	return msgs[len(msgs)-1].Text
}

// A hook that is to judge a call and does not has not agreed: the call does not run,
// the model reads why, and the turn goes on.
func TestHookWithoutAVerdict(t *testing.T) {
	reply := func(body string) func(c *client, id string) {
		return func(c *client, id string) {
			body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s}`, id, body)
			c.write(fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body))
		}
	}
	for name, tc := range map[string]struct {
		judge func(c *client, id string)
		why   string
	}{
		"error":        {reply(`"error":{"code":-32000,"message":"it crashed"}`), "it crashed"},
		"no object":    {reply(`"result":"allow"`), "not an object"},
		"odd output":   {reply(`"result":{"output":"allow"}`), "not a JSON object"},
		"odd decision": {reply(`"result":{"output":{"permissionDecision":"yes"}}`), `decision "yes" is not known`},
		"odd type":     {reply(`"result":{"output":{"permissionDecision":true}}`), "permissionDecision"},
		"gone":         {func(c *client, _ string) { c.conn.Close() }, "the hook gave no verdict"},
		"denied":       {reply(`"result":{"output":{"permissionDecision":"deny","permissionDecisionReason":"house rule"}}`), "house rule"},
	} {
		t.Run(name, func(t *testing.T) {
			w := play(t, scripted.Call("act", `{}`), scripted.Say("done"))
			guard, host := w.connect(t), w.connect(t)
			guard.ok("session.create", in(obj{"hooks": true}))
			host.ok("session.resume", in(obj{"disableResume": true, "tools": []obj{hostTool("act")}}))
			host.prompt(id1, "go")
			last := "agentStop"
			if name == "gone" {
				last = "preToolUse"
			}
			for from, kind := 0, ""; kind != last; {
				from = guard.await(from, "a hook", func(f frame) bool { return f.Method == "hooks.invoke" }) + 1
				f := guard.at(from - 1)
				var p struct{ HookType string }
				if err := json.Unmarshal(f.Params, &p); err != nil {
					t.Fatal(err)
				}
				kind = p.HookType
				if kind == "preToolUse" {
					tc.judge(guard, string(f.ID))
				} else {
					reply(`"result":{}`)(guard, string(f.ID))
				}
			}
			host.idle(0)
			if got := shown(w, 1); !strings.Contains(got, tc.why) {
				t.Errorf("the model was shown %q, want %q", got, tc.why)
			}
			var done struct {
				Success bool
				Error   struct{ Code, Message string }
			}
			host.awaitEvent("tool.execution_complete", &done)
			if done.Success || done.Error.Code != "denied" || !strings.Contains(done.Error.Message, tc.why) {
				t.Errorf("the call ended with %+v, want %q", done, tc.why)
			}
			if types, _ := host.events(id1, true); slices.Contains(types, "external_tool.requested") {
				t.Error("the tool was asked to run")
			}
		})
	}
}
