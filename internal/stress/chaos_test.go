//go:build unix

package stress

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/transom-run/transom/model"
	protocol "github.com/transom-run/transom/server"
)

// slow are methods that wait for something by their nature. They need an answer
// once all is torn down, and not before.
var slow = map[string]bool{
	"session.send": true, "session.tasks.waitForPending": true, "session.history.compact": true, "session.history.summarizeForHandoff": true,
	"session.ui.ephemeralQuery": true, "session.ui.elicitation": true, "session.eventLog.read": true, "session.shell.executeUserRequested": true,
	"session.commands.invoke": true, "session.commands.execute": true, "session.commands.enqueue": true,
}

// avoided are methods that end what a run lives on.
var avoided = map[string]bool{"runtime.shutdown": true, "connect": true, "llmInference.setProvider": true}

// ending are methods that end sessions. They are called less often than others, so
// that there is something to end.
var ending = map[string]bool{"session.destroy": true, "session.detach": true, "session.delete": true, "session.shutdown": true, "session.suspend": true,
	"sessions.close": true, "sessions.releaseLock": true, "sessions.bulkDelete": true, "sessions.pruneOld": true, "session.queue.setDrainPaused": true}

// world is what a run is about.
type world struct {
	t     testing.TB
	s     *server
	brain *brain
	dir   string
	seed  uint64

	answers atomic.Int64 // of the model, by which its texts and calls are numbered
	clears  sync.Map     // seed → the number of answers when the clear was sent
	texts   atomic.Int64
	calls   atomic.Int64 // requests that were sent
	inside  atomic.Int64 // of these, from inside of a handler

	mu   sync.Mutex
	open []string

	stop atomic.Bool
}

// newID remembers an id that came up.
func (w *world) newID(id string) {
	if id == "" {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.open = append(w.open, id); len(w.open) > 40 {
		w.open = w.open[1:]
	}
}

func (w *world) ids() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.open)
}

func (w *world) dice(stream uint64) dice {
	return dice{rand.New(rand.NewPCG(w.seed, stream)), w.dir, w.ids}
}

var (
	seedSign   = regexp.MustCompile(`SEED-(\d+)-`)
	answerSign = regexp.MustCompile(`ANS-(\d+)-`)
)

// decide is the model: it checks that nothing of before a clear is in a request, and
// answers anything.
func (w *world) decide(d *dice, lock *sync.Mutex) func(http.Header, *model.Request, string) reply {
	return func(_ http.Header, req *model.Request, body string) reply {
		if seeds := seedSign.FindAllStringSubmatch(body, -1); len(seeds) > 0 {
			for _, m := range answerSign.FindAllStringSubmatch(body, -1) {
				n, _ := strconv.ParseInt(m[1], 10, 64)
				// A window has one seed, but queued texts and tools may quote others.
				if at, ok := w.clears.Load(seeds[0][0]); ok && n <= at.(int64) && isSeed(req, seeds[0][0]) {
					w.t.Errorf("a request behind the clear %s has %s, of before it (%d):\n%s", seeds[0][0], m[0], at, body)
				}
			}
		}
		lock.Lock()
		defer lock.Unlock()
		n := w.answers.Add(1)
		sign := fmt.Sprintf("ANS-%d-", n)
		switch d.IntN(24) {
		case 0:
			return reply{status: 500, body: "broken"}
		case 1:
			return reply{status: 400, body: `{"error":{"message":"no"}}`}
		case 2:
			return reply{text: sign, cut: true}
		case 3:
			return reply{body: d.of("{", "[]", `{"choices":[]}`, `{"choices":[{"message":{"role":"assistant"}}]}`, "<html>", `{"choices":[{"delta":{"tool_calls":[{"index":-1}]}}]}`)}
		case 4, 5, 6, 7, 8:
			return reply{text: sign + d.text()}
		}
		var calls []model.Call
		for i := range 1 + d.IntN(4) {
			id := fmt.Sprintf("%s%d", sign, i)
			if d.chance(2) && i > 0 {
				id = calls[0].ID
			}
			switch d.IntN(10) {
			case 0, 1, 2:
				calls = append(calls, model.Call{ID: id, Name: "host", Arguments: string(encode(obj{"a": sign}))})
			case 3, 4:
				calls = append(calls, model.Call{ID: id, Name: "clear", Arguments: `{}`})
			case 5:
				calls = append(calls, model.Call{ID: id, Name: "bash", Arguments: string(encode(obj{"command": d.member("command"), "description": sign}))})
			case 6:
				calls = append(calls, model.Call{ID: id, Name: d.of("view", "glob", "grep", "create", "edit"), Arguments: string(encode(obj{"path": d.member("path"), "pattern": "*", "file_text": d.text(), "old_str": "a", "new_str": "b"}))})
			case 7:
				calls = append(calls, model.Call{ID: id, Name: d.of("nobody", "", "HOST", "host ", "sql", "ask_user"), Arguments: d.of("{}", "", "null", "[", `{"a":`, "7")})
			case 8:
				calls = append(calls, model.Call{ID: id, Name: "host", Arguments: d.of("", "null", "[]", "{", `{"a":1}`)})
			case 9:
				calls = append(calls, model.Call{ID: id, Name: "halt", Arguments: `{}`})
			}
		}
		return reply{text: sign, calls: calls}
	}
}

// isSeed reports whether the text that opens a window is a clear's.
func isSeed(req *model.Request, seed string) bool {
	for _, m := range req.Messages {
		if m.Role == model.User {
			return strings.Contains(m.Text, seed)
		}
	}
	return false
}

// guest is a client of a run, with the events it saw.
type guest struct {
	w *world
	*client
	d    dice
	lock sync.Mutex // of d, which handlers use, too

	mu      sync.Mutex
	last    map[string]string // the newest event's type, by session
	waiting map[string][]<-chan message
	running sync.WaitGroup
}

func (w *world) guest(stream uint64) *guest {
	g := &guest{w: w, d: w.dice(stream), last: map[string]string{}, waiting: map[string][]<-chan message{}}
	g.client = w.s.client(g.event, g.request, nil)
	return g
}

func (g *guest) roll(f func(d dice)) {
	g.lock.Lock()
	defer g.lock.Unlock()
	f(g.d)
}

func (g *guest) event(e event) {
	var d struct {
		RequestID  string `json:"requestId"`
		ToolCallID string `json:"toolCallId"`
		ToolName   string `json:"toolName"`
	}
	_ = json.Unmarshal(e.Data, &d)
	g.w.newID(d.RequestID)
	if !e.Ephemeral {
		g.w.newID(e.ID)
	}
	g.mu.Lock()
	if e.Type == "session.idle" && g.last[e.session] == "session.idle" {
		g.w.t.Errorf("%s was told that it is idle twice", e.session)
	}
	g.last[e.session] = e.Type
	g.mu.Unlock()
	switch e.Type {
	case "external_tool.requested":
		g.spawn(func() { g.tool(e.session, d.RequestID, d.ToolName) })
	case "permission.requested":
		g.spawn(func() { g.permission(e.session, d.RequestID) })
	}
}

func (g *guest) spawn(f func()) {
	if !g.w.stop.Load() {
		g.running.Go(f)
	}
}

// request answers hooks and questions, from inside of which it calls anything.
func (g *guest) request(m message) (any, bool) {
	g.spawn(func() {
		g.some()
		var result any
		answer := true
		g.roll(func(d dice) {
			if answer = !d.chance(3); d.chance(70) {
				result = obj{}
			} else {
				result = []any{nil, obj{"output": obj{"permissionDecision": d.of("allow", "deny", "ask", "x")}}, obj{"output": 7}, "x", errEnded, obj{"answer": d.text(), "wasFreeform": true}}[d.IntN(6)]
			}
		})
		g.answer(m, result, answer)
	})
	return nil, false
}

// some makes a few calls from inside of a handler.
func (g *guest) some() {
	n := 0
	g.roll(func(d dice) { n = max(0, d.IntN(5)-1) })
	for range n {
		g.w.inside.Add(1)
		g.anything()
	}
}

// tool runs a call of a host's tool: it clears, calls, and answers, or not.
func (g *guest) tool(session, request, name string) {
	if name == "clear" {
		n := g.w.texts.Add(1)
		sign := fmt.Sprintf("SEED-%d-", n)
		g.w.clears.Store(sign, g.w.answers.Load())
		g.w.inside.Add(1)
		g.ask("session.history.clearContext", encode(obj{"sessionId": session, "prompt": sign + " go on"}))
	}
	g.some()
	var answers [][]byte
	g.roll(func(d dice) {
		if d.chance(4) {
			return
		}
		for range 1 + d.IntN(20)/18 {
			p := obj{"sessionId": session, "requestId": request, "result": d.text()}
			switch d.IntN(6) {
			case 0:
				delete(p, "result")
				p["error"] = d.text()
			case 1, 2:
				p["result"] = d.member("result")
			}
			answers = append(answers, encode(p))
		}
	})
	for _, p := range answers {
		g.ask("session.tools.handlePendingToolCall", p)
	}
}

func (g *guest) permission(session, request string) {
	g.some()
	var p []byte
	g.roll(func(d dice) {
		if !d.chance(4) {
			p = encode(obj{"sessionId": session, "requestId": request, "result": obj{"kind": d.of("approve-once", "approve-once", "approve-for-session", "reject", "nonsense")}})
		}
	})
	if p != nil {
		g.ask("session.permissions.handlePendingPermissionRequest", p)
	}
}

// ask sends a request, and waits for the answer where that cannot take long.
func (g *guest) ask(method string, params []byte) {
	g.w.calls.Add(1)
	ch, err := g.begin(method, params)
	if err != nil {
		return
	}
	if !slow[method] {
		begun := time.Now()
		m, _ := g.wait(method+" "+string(params[:min(len(params), 300)]), ch)
		if d := time.Since(begun); d > 2*time.Second {
			g.w.t.Logf("%s took %v: %.300s → %.200s", method, d, params, m.raw)
		}
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if method == "session.send" || method == "session.commands.enqueue" {
		method += " " + string(params[:min(len(params), 300)])
	}
	g.waiting[method] = append(g.waiting[method], ch)
}

// create is a request that opens a session, or takes one up.
func (g *guest) create(d dice, id string) (string, []byte) {
	p := obj{"sessionId": id, "model": "m", "provider": g.w.brain.provider(), "workingDirectory": g.w.dir, "streaming": d.chance(50),
		"requestPermission": d.chance(80), "hooks": d.chance(25), "requestUserInput": d.chance(40), "requestExitPlanMode": d.chance(30),
		"continuePendingWork": d.chance(50),
		"tools": []obj{
			{"name": "host", "description": "d", "parameters": obj{"type": "object", "properties": obj{"a": obj{"type": "string"}}}, "skipPermission": d.chance(50)},
			{"name": "clear", "description": "d", "isTerminal": d.chance(80), "skipPermission": true},
			{"name": "halt", "description": "d", "isTerminal": true, "skipPermission": true},
		}}
	if d.chance(5) {
		p[members[d.IntN(len(members))]] = d.member("x")
	}
	return d.of("session.create", "session.create", "session.resume"), encode(p)
}

// anything does one thing, which may be sensible.
func (g *guest) anything() {
	var method string
	var params []byte
	var raw []byte
	g.roll(func(d dice) {
		id := d.session()
		switch n := d.IntN(100); {
		case n < 12:
			method, params = g.create(d, id)
		case n < 40:
			method, params = "session.send", encode(obj{"sessionId": id, "prompt": fmt.Sprintf("TEXT-%d- %s", g.w.texts.Add(1), d.text()), "mode": d.of("enqueue", "immediate", ""), "wait": d.chance(20)})
		case n < 46:
			method, params = "session.abort", encode(obj{"sessionId": id})
		case n < 47:
			method, params = d.of("session.destroy", "session.detach", "session.suspend", "session.shutdown", "session.delete"), encode(obj{"sessionId": id})
		case n < 50:
			raw = d.garbage()
		case n < 53:
			method, params = "session.history.clearContext", encode(obj{"sessionId": id, "prompt": "from outside"})
		case n < 56:
			method, params = d.of("session.getMessages", "session.queue.pendingItems", "session.permissions.pendingRequests", "session.metadata.snapshot"), encode(obj{"sessionId": id})
		default:
			all := protocol.Methods()
			if method = all[d.IntN(len(all))]; avoided[method] || ending[method] && d.chance(90) {
				method = "ping"
			}
			params = d.params(id)
		}
	})
	if raw != nil {
		_ = g.sendRaw(raw)
		return
	}
	g.ask(method, params)
}

// play does anything for as long as the run goes on.
func (g *guest) play(until time.Time) {
	for time.Now().Before(until) && g.w.s.running() && !g.w.t.Failed() {
		select {
		case <-g.ended:
			return
		default:
		}
		g.anything()
	}
}

// TestChaos lets clients call any method at any time, with params that fit and that
// do not, also from inside of handlers, against the real program.
func TestChaos(t *testing.T) {
	d := *runFor
	if d == 0 {
		d = 4 * time.Second
	}
	for name, stdio := range map[string]bool{"stdio": true, "tcp": false} {
		t.Run(name, func(t *testing.T) { chaos(t, stdio, d) })
	}
}

func chaos(t *testing.T, stdio bool, d time.Duration) {
	w := &world{t: t, seed: *seed, dir: t.TempDir()}
	if w.seed == 0 {
		w.seed = rand.Uint64()
	}
	t.Logf("play it again with -stress.seed=%d", w.seed)
	_ = os.WriteFile(filepath.Join(w.dir, "a.txt"), []byte("a\n"), 0o600)
	_ = os.Symlink(t.TempDir(), filepath.Join(w.dir, "link"))
	var lock sync.Mutex
	mind := w.dice(0)
	w.brain = newBrain(t, w.decide(&mind, &lock))
	w.s = start(t, t.TempDir(), stdio, []string{"COPILOT_DEBUG_GITHUB_API_URL=" + w.brain.URL}, "--no-auto-login")

	until := time.Now().Add(d)
	var all sync.WaitGroup
	var mu sync.Mutex
	var guests []*guest
	n := 3
	if stdio {
		n = 1
	}
	for i := range n {
		all.Go(func() {
			for round := uint64(1); time.Now().Before(until) && w.s.running() && !t.Failed(); round++ {
				g := w.guest(uint64(i)<<32 | round)
				mu.Lock()
				guests = append(guests, g)
				mu.Unlock()
				end := until
				if !stdio && i > 0 { // the others come and go
					end = time.Now().Add(time.Duration(g.d.IntN(1500)) * time.Millisecond)
				}
				var workers sync.WaitGroup
				for range 3 {
					workers.Go(func() { g.play(end) })
				}
				workers.Wait()
				if end.Before(until) {
					g.conn.Close()
					<-g.ended
				}
			}
		})
	}
	all.Wait()
	w.stop.Store(true)
	w.finish(guests)
	t.Logf("%d requests, %d of them from inside of handlers; %d requests to the model", w.calls.Load(), w.inside.Load(), w.brain.n.Load())
	if w.calls.Load() < 100 || w.inside.Load() == 0 || w.brain.n.Load() == 0 {
		t.Error("hardly anything happened")
	}
}

// finish tears all down and looks at what is left.
func (w *world) finish(guests []*guest) {
	t := w.t
	if !w.s.running() {
		t.Fatalf("the server has ended\n%s", tail(w.s.stderr.String()))
	}
	var left []*guest
	for _, g := range guests {
		select {
		case <-g.ended:
		default:
			left = append(left, g)
		}
	}
	if len(left) == 0 {
		if w.s.std != nil {
			t.Fatalf("the connection has ended\n%s", tail(w.s.stderr.String()))
		}
		left = append(left, w.guest(1<<40))
	}
	g := left[0]
	all := slices.Concat(sessionIDs, oddIDs)
	for _, id := range all {
		for _, other := range left {
			other.ask("session.abort", encode(obj{"sessionId": id}))
		}
	}
	for _, g := range guests {
		g.running.Wait()
	}
	for _, id := range all {
		// Once more, alone, so that what was open is closed.
		if m, err := g.call("session.resume", obj{"sessionId": id, "provider": w.brain.provider(), "model": "m"}); err != nil || m.Error != nil {
			if m.Error != nil && !strings.Contains(m.Error.Message, "Session not found") && slices.Contains(sessionIDs, id) {
				t.Errorf("resume of %s: %s", id, m.raw)
			}
			continue
		}
		w.audit(g, id)
		g.ask("session.destroy", encode(obj{"sessionId": id}))
	}
	for _, other := range left {
		for _, id := range all {
			other.ask("session.destroy", encode(obj{"sessionId": id}))
		}
		other.mu.Lock()
		for method, chs := range other.waiting {
			for _, ch := range chs {
				_, _ = other.wait(method, ch)
			}
		}
		other.mu.Unlock()
	}
	for _, g := range guests {
		g.client.mu.Lock()
		if len(g.oddly) > 0 {
			t.Errorf("answers to nothing, or twice: %.2000s", g.oddly)
		}
		g.client.mu.Unlock()
	}
	if why := w.brain.broken(); why != "" {
		t.Errorf("a request that no provider takes: %.6000s", why)
	}
	w.s.stop()
}

// audit holds a session's log against what is promised of it.
func (w *world) audit(g *guest, id string) {
	t := w.t
	deadline := time.Now().Add(watchdog)
	for {
		g.ask("session.abort", encode(obj{"sessionId": id}))
		m, err := g.call("session.metadata.isProcessing", obj{"sessionId": id})
		if err != nil || m.Error != nil {
			return
		}
		if !strings.Contains(string(m.Result), "true") {
			break
		}
		if time.Now().After(deadline) {
			w.s.dump(id + " does not come to rest: " + string(m.Result))
		}
	}
	m, err := g.call("session.getMessages", obj{"sessionId": id})
	if err != nil || m.Error != nil {
		t.Errorf("the messages of %s: %s", id, m.raw)
		return
	}
	var got struct{ Events []event }
	if err := json.Unmarshal(m.Result, &got); err != nil {
		t.Error(err)
		return
	}
	started, ended, cleared, seeds, ids := map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}
	for _, e := range got.Events {
		var d struct {
			ToolCallID     string `json:"toolCallId"`
			Content        string `json:"content"`
			InitialMessage string `json:"initialMessage"`
			Source         string `json:"source"`
		}
		_ = json.Unmarshal(e.Data, &d)
		ids[e.ID]++
		switch e.Type {
		case "tool.execution_start":
			if !strings.HasPrefix(d.ToolCallID, "user-") {
				started[d.ToolCallID]++
			}
		case "tool.execution_complete":
			if !strings.HasPrefix(d.ToolCallID, "user-") {
				ended[d.ToolCallID]++
			}
		case "session.context_cleared":
			cleared[d.InitialMessage]++
		case "user.message":
			if d.Source == "session-memory-rollover" {
				seeds[d.Content]++
			}
		}
	}
	for call, n := range started {
		if ended[call] != n {
			t.Errorf("%s: the call %s was begun %d times and ended %d times", id, call, n, ended[call])
		}
	}
	for call, n := range ended {
		if started[call] == 0 {
			t.Errorf("%s: the call %s ended %d times and never began", id, call, n)
		}
	}
	for text, n := range seeds {
		if n > cleared[text] {
			t.Errorf("%s: the prompt of a clear was delivered %d times: %q", id, n, text)
		}
	}
	for e, n := range ids {
		if n > 1 {
			t.Errorf("%s: the event %s is there %d times", id, e, n)
		}
	}
}
