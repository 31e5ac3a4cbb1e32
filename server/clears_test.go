package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/model/anthropic"
	"github.com/transom-run/transom/model/openai"
	"github.com/transom-run/transom/model/responses"
	"github.com/transom-run/transom/model/scripted"
	"github.com/transom-run/transom/server"
	"github.com/transom-run/transom/tool"
)

// clears answers a call of a terminal tool, after a clear, and waits for the end of
// the seeded turn.
func (c *client) clears(session, prompt, seed string, result any) {
	c.t.Helper()
	at := c.count()
	c.prompt(session, prompt)
	var q ask
	at = c.eventFrom(at, "external_tool.requested", &q)
	c.ok("session.history.clearContext", obj{"sessionId": session, "prompt": seed})
	c.ok("session.tools.handlePendingToolCall", obj{"sessionId": session, "requestId": q.RequestID, "result": result})
	c.await(at, "the end of the seeded turn", func(f frame) bool { return f.event.Type == "session.idle" && f.event.session == session })
}

// whole is all that a request says.
func whole(r model.Request) string {
	b, _ := json.Marshal(r.Messages)
	h, _ := json.Marshal(r.Headers)
	return string(b) + string(h)
}

// Nothing of before a clear comes back: not over turns, an abort, a compaction, a
// restart, nor where the session's checkpoint is one of before the clear.
func TestNothingOldComesBack(t *testing.T) {
	home, dir := t.TempDir(), t.TempDir()
	checkpoint := filepath.Join(home, "session-state", id1, "transom.checkpoint")
	tools := []obj{hostTool("host"), hostTool("end", "terminal")}
	w := playFiles(t, home, dir,
		scripted.Call("host", `{"n":"OLD argument"}`), scripted.Say("OLD answer"), scripted.Say("OLD summary"), scripted.Say("OLD more"))
	c := w.connect(t)
	c.create(id1, tools...)
	c.prompt(id1, "OLD prompt")
	var q ask
	c.awaitEvent("external_tool.requested", &q)
	c.settle(q, "OLD result")
	c.idle(0)
	c.ok("session.history.compact", in(nil))
	at := c.count()
	c.prompt(id1, "OLD again")
	c.idle(at)
	if got := whole(w.model.Requests()[3]); !strings.Contains(got, "OLD summary") || !strings.Contains(got, "OLD prompt") {
		t.Fatalf("the words are not there to be lost: %s", got)
	}
	w.end(t)
	stale, err := os.ReadFile(checkpoint)
	if err != nil {
		t.Fatal(err)
	}

	w = playFiles(t, home, dir,
		scripted.Call("end", `{}`), scripted.Say("fresh"), scripted.Say("2"), scripted.Say("3"), scripted.Call("host", `{}`),
		scripted.Say("4"), scripted.Say("new summary"), scripted.Say("5"), scripted.Say("6"))
	c = w.connect(t)
	c.ok("session.resume", in(obj{"tools": tools}))
	c.clears(id1, "clear", "SEED", "Cleared.")
	turn := func(text string) {
		t.Helper()
		at := c.count()
		c.prompt(id1, text)
		c.idle(at)
	}
	turn("two")
	turn("three")
	at = c.count()
	c.prompt(id1, "aborted")
	c.eventAt(at, "external_tool.requested")
	c.ok("session.abort", in(nil))
	c.idle(at)
	turn("four")
	c.ok("session.history.compact", in(nil))
	turn("five")
	turn("six")
	first := w.model.Requests()[1:]
	w.end(t)

	if err := os.WriteFile(checkpoint, stale, 0o600); err != nil {
		t.Fatal(err)
	}
	w = playFiles(t, home, dir, scripted.Say("7"), scripted.Say("8"), scripted.Say("9"))
	c = w.connect(t)
	c.ok("session.resume", in(obj{"tools": tools}))
	turn("seven")
	turn("eight")
	turn("nine")
	for i, r := range slices.Concat(first, w.model.Requests()) {
		if got := whole(r); strings.Contains(got, "OLD") || !strings.Contains(got, "SEED") {
			t.Errorf("request %d after the clear: %s", i, got)
		}
	}
}

// What was staged for the next turn before a clear is not for the seeded one: news of
// tools that went away, and the headers of the prompt that led to the clear.
func TestNothingStagedOverAClear(t *testing.T) {
	w := play(t, scripted.Call("extra", `{}`), scripted.Say("one"), scripted.Call("end", `{}`), scripted.Say("fresh"))
	a, b := w.connect(t), w.connect(t)
	a.create(id1, hostTool("end", "terminal"))
	b.ok("session.resume", in(obj{"tools": []obj{hostTool("extra")}}))
	a.prompt(id1, "go")
	var q ask
	b.awaitEvent("external_tool.requested", &q)
	b.settle(q, "x")
	at := a.idle(0)
	a.ok("session.send", in(obj{"prompt": "clear", "requestHeaders": obj{"x-staged": "STAGED"}}))
	a.eventFrom(at, "external_tool.requested", &q)
	b.ok("session.destroy", in(nil))
	a.ok("session.history.clearContext", in(obj{"prompt": "SEED"}))
	a.settle(q, "Cleared.")
	a.idle(at + 1)
	requests := w.model.Requests()
	if got := whole(requests[2]); !strings.Contains(got, "STAGED") {
		t.Errorf("the prompt's own request: %s", got)
	}
	if got := whole(requests[3]); strings.Contains(got, "extra") || strings.Contains(got, "STAGED") {
		t.Errorf("the seeded request: %s", got)
	}
}

var stamped = regexp.MustCompile(`<current_datetime>[^<]*</current_datetime>`)

// sent is what the model was sent, without ids and times.
func sent(requests []model.Request) (out []string) {
	for _, r := range requests {
		s := fmt.Sprintln(r.Model, r.Stream)
		for _, m := range r.Messages {
			s += fmt.Sprintf("%s %q %s %v\n", m.Role, stamped.ReplaceAllString(m.Text, "NOW"), m.CallID, m.Calls)
		}
		for _, d := range r.Tools {
			s += fmt.Sprintln(d.Name, d.Description, string(d.Parameters))
		}
		out = append(out, s)
	}
	return out
}

// A clear is the same over a pipe, over TCP with no other client, and in Go: the
// requests to the model are equal.
func TestClearAlike(t *testing.T) {
	play := func(t *testing.T) *world {
		return play(t, scripted.Say("one"), scripted.Call("end", `{}`), scripted.Say("fresh"), scripted.Say("later"))
	}
	system := obj{"mode": "replace", "content": "You clear."}
	var got [][]string
	onBoth(t, func(t *testing.T, on func(*world) func() *client) {
		w := play(t)
		c := on(w)()
		c.ok("session.create", in(obj{"tools": []obj{hostTool("end", "terminal")}, "systemMessage": system}))
		c.prompt(id1, "hi")
		at := c.idle(0)
		c.clears(id1, "clear", "SEED", "Cleared.")
		at = c.idle(at + 1)
		c.prompt(id1, "later")
		c.idle(at + 1)
		got = append(got, sent(w.model.Requests()))
	})
	t.Run("go", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(context.Background(), watchdog)
		defer cancel()
		w := play(t)
		var s *transom.Session
		end := tool.Tool{Name: "end", Description: "does end", Parameters: json.RawMessage(`{"type":"object"}`), IsTerminal: true, SkipPermission: true,
			Handler: func(ctx context.Context, _ tool.Call) (tool.Result, error) {
				_, err := s.History().ClearContext(ctx, "SEED")
				return tool.Result{Text: "Cleared."}, err
			}}
		s, err := w.rt.CreateSession(ctx, transom.SessionConfig{ID: id1, Tools: []tool.Tool{end}, SystemMessage: transom.SystemMessage{Mode: "replace", Content: "You clear."}})
		if err != nil {
			t.Fatal(err)
		}
		for _, prompt := range []string{"hi", "clear", "later"} {
			if _, err := s.SendAndWait(ctx, transom.Message{Prompt: prompt}); err != nil {
				t.Fatal(err)
			}
		}
		got = append(got, sent(w.model.Requests()))
	})
	if len(got) != 3 || len(got[0]) != 4 {
		t.Fatalf("%v", got)
	}
	for i, other := range got[1:] {
		if diff := cmp.Diff(got[0], other); diff != "" {
			t.Errorf("(-pipe +%d)\n%s", i+1, diff)
		}
	}
}

// A clear takes messages, and nothing else: what the session is stays, totals grow,
// and the figures of the window are those of the fresh one.
func TestClearKeepsTheSession(t *testing.T) {
	long := strings.Repeat("word ", 20000)
	w := playFiles(t, t.TempDir(), t.TempDir(), scripted.Say("one"), scripted.Call("end", `{}`), scripted.Say("fresh"))
	c := w.connect(t)
	c.ok("session.create", in(obj{
		"tools": []obj{hostTool("end", "terminal"), hostTool("host")}, "model": "m", "sessionLimits": obj{"maxAiCredits": 100},
		"systemMessage": obj{"mode": "replace", "content": "You clear."},
	}))
	c.ok("session.name.set", in(obj{"name": "The name"}))
	c.ok("session.mode.set", in(obj{"mode": "plan"}))
	c.prompt(id1, long)
	at := c.idle(0)
	state := func() obj {
		out := obj{}
		for _, method := range []string{"session.metadata.snapshot", "session.name.get", "session.mode.get", "session.model.getCurrent", "session.tools.getCurrentMetadata"} {
			var v any
			c.ok(method, in(nil), &v)
			out[method] = v
		}
		snapshot := out["session.metadata.snapshot"].(obj)
		delete(snapshot, "modifiedTime")
		delete(snapshot["workspace"].(obj), "updated_at")
		return out
	}
	totals := func() (out struct {
		TotalUserRequests int
		ModelMetrics      map[string]struct {
			Usage    struct{ InputTokens, OutputTokens int }
			Requests struct{ Count int }
		}
	}) {
		c.ok("session.usage.getMetrics", in(nil), &out)
		return out
	}
	before, spent := state(), totals()
	c.clears(id1, "clear", "SEED", "Cleared.")
	if diff := cmp.Diff(before, state()); diff != "" {
		t.Errorf("(-before +after the clear)\n%s", diff)
	}
	for name, was := range spent.ModelMetrics {
		if is := totals().ModelMetrics[name]; is.Requests.Count != was.Requests.Count+2 || is.Usage.InputTokens <= was.Usage.InputTokens {
			t.Errorf("totals of %s went from %+v to %+v", name, was, is)
		}
	}
	var full, fresh struct{ CurrentTokens, MessagesLength int }
	at = c.eventFrom(at, "session.usage_info", &full)
	c.eventFrom(c.eventAt(at, "session.context_cleared"), "session.usage_info", &fresh)
	if fresh.CurrentTokens > full.CurrentTokens/10 || fresh.MessagesLength != full.MessagesLength-2 {
		t.Errorf("the window went from %+v to %+v", full, fresh)
	}
}

// A clear is of the session that it names: nine others on the same server keep
// their conversations.
func TestClearOfOneOfTen(t *testing.T) {
	p := &decider{t: t, asked: make(chan model.Request, 100), decide: func(ms []model.Message) []model.Chunk {
		if last := ms[len(ms)-1]; last.Role == model.User && strings.Contains(last.Text, "clear") {
			return []model.Chunk{{Call: &model.CallChunk{ID: "c1", Name: "end", Arguments: "{}"}}, {Finish: "tool_calls"}}
		}
		return []model.Chunk{{Text: "done", Finish: "stop"}}
	}}
	w := newWorld(t, p, server.Config{})
	c := w.connect(t)
	id := func(n int) string { return fmt.Sprintf("%08d-1111-4111-8111-111111111111", n) }
	turn := func(n int, text string) string {
		t.Helper()
		at := c.count()
		c.prompt(id(n), text)
		c.idle(at)
		for {
			if r := <-p.asked; r.SessionID == id(n) {
				return whole(r)
			}
		}
	}
	for n := range 10 {
		c.create(id(n), hostTool("end", "terminal"))
		turn(n, fmt.Sprintf("WORD%dWORD", n))
	}
	c.clears(id(4), "clear", "SEED", "Cleared.")
	for range 2 {
		<-p.asked
	}
	for n := range 10 {
		got := turn(n, "next")
		for k := range 10 {
			if has := strings.Contains(got, fmt.Sprintf("WORD%dWORD", k)); has != (k == n && n != 4) {
				t.Errorf("session %d has the word of %d: %t\n%s", n, k, has, got)
			}
		}
		if has := strings.Contains(got, "SEED"); has != (n == 4) {
			t.Errorf("session %d has the seed: %t", n, has)
		}
	}
}

// Whatever the clearing tool answers in the end, and be it nothing, the seeded
// request holds the seed alone.
func TestResultsOfAClearingTool(t *testing.T) {
	for name, result := range map[string]any{
		"a text": "Cleared.", "an empty text": "", "null": nil, "an object": obj{"a": []int{1}},
		"a result": obj{"textResultForLlm": "Cleared.", "resultType": "success"}, "an empty result": obj{"textResultForLlm": "", "resultType": "success"},
	} {
		t.Run(name, func(t *testing.T) {
			w := play(t, scripted.Call("end", `{}`), scripted.Say("fresh"))
			c := w.connect(t)
			c.create(id1, hostTool("end", "terminal"))
			c.clears(id1, "go", "SEED", result)
			ms := w.model.Requests()[1].Messages
			if len(ms) != 2 || ms[0].Role != model.System || ms[1].Role != model.User || !strings.HasSuffix(ms[1].Text, "SEED") {
				t.Errorf("the seeded request is %v", ms)
			}
			var done struct{ ToolCallID string }
			c.awaitEvent("tool.execution_complete", &done)
			types, _ := c.events(id1, false)
			if slices.Contains(types, "session.error") || len(w.model.Requests()) != 2 {
				t.Errorf("%v, %d requests", types, len(w.model.Requests()))
			}
		})
	}
}

// The session-start hook is asked once for a clear, with that source, and what it
// gives stands once in the fresh window.
func TestSessionStartHookOfAClear(t *testing.T) {
	w := play(t, scripted.Call("end", `{}`), scripted.Say("fresh"), scripted.Say("later"))
	c := w.connect(t)
	c.ok("session.create", in(obj{"tools": []obj{hostTool("end", "terminal")}, "hooks": true}))
	c.send("session.send", in(obj{"prompt": "go"}))
	var sources []string
	for at, idle := 0, 0; idle < 2; at++ {
		at = c.await(at, "something to answer", func(f frame) bool { return f.Method == "hooks.invoke" || f.event.Type != "" })
		f := c.at(at)
		var q ask
		switch {
		case f.Method == "hooks.invoke":
			var p struct {
				HookType string
				Input    struct{ Source string }
			}
			if err := json.Unmarshal(f.Params, &p); err != nil {
				t.Fatal(err)
			}
			result := obj{}
			if p.HookType == "sessionStart" {
				sources = append(sources, p.Input.Source)
				result = obj{"output": obj{"additionalContext": "HOOKCTX " + p.Input.Source}}
			}
			c.answer(asked{id: f.ID}, result)
		case f.event.Type == "external_tool.requested":
			if err := json.Unmarshal(f.event.Data, &q); err != nil {
				t.Fatal(err)
			}
			c.ok("session.history.clearContext", in(obj{"prompt": "SEED"}))
			c.settle(q, "Cleared.")
		case f.event.Type == "session.idle":
			if idle++; idle == 1 {
				c.send("session.send", in(obj{"prompt": "later"}))
			}
		}
	}
	if len(sources) != 2 || sources[1] != "clear" || sources[0] == "clear" {
		t.Errorf("asked for %q", sources)
	}
	for i, r := range w.model.Requests()[1:] {
		ms := texts(r.Messages)
		if n := strings.Count(strings.Join(ms, "\n"), "HOOKCTX"); n != 1 || !strings.Contains(ms[2], "HOOKCTX clear") {
			t.Errorf("request %d after the clear: %q", i, ms)
		}
	}
}

// Of several clears in a log the newest whole one counts, the torn one behind it does
// not, and the file keeps every record.
func TestThreeClearsAndATornOne(t *testing.T) {
	home, dir := t.TempDir(), t.TempDir()
	log := filepath.Join(home, "session-state", id1, "events.jsonl")
	var replies = []string{"one", "two", "three"}
	w := playFiles(t, home, dir, scripted.Call("end", `{}`), scripted.Say(replies[0]), scripted.Call("end", `{}`), scripted.Say(replies[1]), scripted.Call("end", `{}`), scripted.Say(replies[2]))
	c := w.connect(t)
	c.create(id1, hostTool("end", "terminal"))
	for n := range 3 {
		c.clears(id1, fmt.Sprintf("PROMPT%d", n), fmt.Sprintf("SEED%d", n), "Cleared.")
	}
	w.end(t)
	before, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	torn := `{"type":"session.context_cleared","id":"44444444-4444-4444-8444-444444444444","timestamp":"2026-01-01T00:00:00.000Z","data":{"messagesCleared":2,"initialMessage":"SEED3`
	if err := os.WriteFile(log, append(slices.Clone(before), torn...), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, checkpoint := range []bool{true, false} {
		if !checkpoint {
			if err := os.Remove(filepath.Join(filepath.Dir(log), "transom.checkpoint")); err != nil {
				t.Fatal(err)
			}
		}
		w = playFiles(t, home, dir, scripted.Say("later"))
		c = w.connect(t)
		c.ok("session.resume", in(nil))
		at := c.count()
		c.prompt(id1, "later")
		c.idle(at)
		got := texts(w.model.Requests()[0].Messages)[1:]
		if len(got) < 3 || !strings.HasSuffix(got[0], "SEED2") || got[1] != "three" || strings.Contains(strings.Join(got, " "), "SEED3") {
			t.Errorf("with a checkpoint: %t: the window is %q", checkpoint, got)
		}
		w.end(t)
	}
	after, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(after), string(before)) {
		t.Error("the records of before have changed")
	}
	for n := range 3 {
		if !strings.Contains(string(after), fmt.Sprintf(`"content":"PROMPT%d"`, n)) || strings.Count(string(after), fmt.Sprintf(`"initialMessage":"SEED%d"`, n)) != 1 {
			t.Errorf("clear %d is not in the log as it was", n)
		}
	}
}

// Five turns that a terminal tool ends, one after the other and on every wire: each
// request is one that strict providers take, the tool is called each time, and the
// client gets its result before idle.
func TestFiveTerminalTurns(t *testing.T) {
	for wire, decode := range map[string]func([]byte) (*model.Request, error){
		"completions": openai.DecodeRequest, "responses": responses.DecodeRequest, "anthropic": anthropic.DecodeRequest,
	} {
		t.Run(wire, func(t *testing.T) {
			m := &smallWindow{t: t, limit: 100000, decode: decode}
			endpoint := httptest.NewServer(http.HandlerFunc(m.ServeHTTP))
			defer endpoint.Close()
			provider := obj{"type": "openai", "baseUrl": endpoint.URL + "/v1"}
			switch wire {
			case "responses":
				provider["wireApi"] = wire
			case "anthropic":
				provider["type"] = wire
			}
			c := newWorld(t, nil, server.Config{}).connect(t)
			c.ok("session.create", in(obj{"model": "m", "provider": provider, "tools": []obj{hostTool("look", "terminal")}}))
			for n := range 5 {
				at := c.count()
				wait := c.send("session.send", in(obj{"prompt": fmt.Sprint("prompt ", n), "wait": true}))
				var q ask
				at = c.eventFrom(at, "external_tool.requested", &q)
				payload := fmt.Sprintf(`{"answer":%d,"more":["a","b"]}`, n)
				c.settle(q, payload)
				var done struct {
					ToolCallID string
					Success    bool
					Result     struct{ Content string }
				}
				at = c.eventFrom(at, "tool.execution_complete", &done)
				if !done.Success || done.Result.Content != payload || done.ToolCallID != fmt.Sprintf("call%d", n+1) {
					t.Errorf("turn %d: %+v", n, done)
				}
				c.idle(c.eventAt(at, "assistant.turn_end"))
				if f := c.reply(wait); f.Error != nil {
					t.Errorf("turn %d: who waited was told %v", n, f.Error)
				}
			}
			if got := len(m.newest.Messages); m.calls != 5 || got != 1+4*3+1 {
				t.Errorf("%d calls, the newest request has %d messages", m.calls, got)
			}
		})
	}
}
