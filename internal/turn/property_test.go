package turn

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/internal/policy"
	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/model/tokens"
	"github.com/transom-run/transom/tool"
)

// journey is a session to which anything happens, and what a simple observer
// expects of it. Each text that goes in is one word, so that its way can be
// followed through requests, window and log.
type journey struct {
	*world
	rt    *rapid.T
	words int

	sent     []string          // by users, acknowledged
	steering map[string]bool   // of all that users sent
	seeds    map[string]string // id of the clear → word
	banned   map[string]bool   // words that no request may hold any more
	terminal map[string]bool   // of the newest answer's calls, by id
	cleared  bool              // in this loop
	ask      bool
	hooks    bool // clients may have hooks
	composes bool // the system message is made when it is needed
	agents   bool // the model may start agents
	clients  int

	removed  map[string]bool // words that a truncation took out of the history, or an arrangement out of the queue
	arranged bool            // the order in which users sent is not that of delivery any more
	compacts Compaction
	counts   bool // sizes near a threshold are counted
	synced   bool // the newest step's records are on the disk
	last     Body // of the newest step that changed something
	records  int  // log, requests and events before that step
	requests int
	events   int
}

var wordPattern = regexp.MustCompile(`W\d+W`)

func (j *journey) word() string {
	j.words++
	return fmt.Sprintf("W%dW", j.words)
}

// step makes a step and holds it against the observer.
func (j *journey) step(body Body) (Ready, error) {
	before := j.s
	records, requests, events := len(j.log), len(j.world.requests), len(j.seen)
	ready, err := j.world.step(body)
	if err != nil {
		return ready, err
	}
	j.last, j.records, j.requests, j.events, j.synced = body, records, requests, events, ready.Sync
	j.noteTerminal()
	j.checkCounters(&before)
	own := slices.DeleteFunc(slices.Clone(ready.Events), func(e *event.Event) bool { return e.AgentID != "" })
	j.checkIdle(body, &before, ready.Events)
	j.checkBatch(&before, own)
	j.checkOrder(&before, own)
	j.checkAgents(&before)
	for _, e := range ready.Start {
		if m, ok := e.(*StartModel); ok && m.Fence.Agent == "" {
			j.checkRequest(m.Request.Messages)
		}
	}
	for _, e := range own {
		if p, ok := e.Payload.(event.UserMessage); ok && p.InteractionID != before.Loop.InteractionID {
			j.cleared = false // another loop
		}
	}
	j.checkPairs()
	j.checkKept()
	return ready, nil
}

// noteTerminal notes what the calls that were announced are.
func (j *journey) noteTerminal() {
	for _, e := range j.log[j.records:] {
		if e.AgentID != "" {
			continue
		}
		switch e.Type {
		case event.TypeAssistantMessage:
			j.terminal = map[string]bool{}
		case event.TypeToolStart:
			p := payload[event.ToolStart](e)
			o, ok := j.s.Live.Offers.Lookup(p.ToolName)
			j.terminal[p.ToolCallID] = ok && o.IsTerminal
		}
	}
}

func (j *journey) checkCounters(before *State) {
	if j.s.Live.Turn < before.Live.Turn || j.s.Clears < before.Clears || j.s.Events < before.Events || j.s.APIMs < before.APIMs {
		j.t.Fatalf("a counter went back: turn %d→%d, clears %d→%d", before.Live.Turn, j.s.Live.Turn, before.Clears, j.s.Clears)
	}
}

// checkIdle: work that ends is followed by exactly one session.idle, as the last
// event; nothing else is.
func (j *journey) checkIdle(body Body, before *State, events []*event.Event) {
	n, from, back := 0, before.Phase(), before.goingBack() != nil
	for i, e := range events {
		if e.Type == event.TypeSessionIdle {
			n++
			if i != len(events)-1 {
				j.t.Fatalf("%s: session.idle is followed by %s", body.kind(), events[i+1].Type)
			}
		}
	}
	want := 0
	switch body.(type) {
	case Abort:
		want = 1
		if from == Idle && !before.Live.Resting || j.s.goingBack() != nil {
			want = 0
		}
	case StoreFailed:
		if from == Thinking || from == Acting || from == Preparing && !back || before.Live.Resting {
			want = 1
		}
	case PastFound, FilesRestored: // no turn has ended, but one may have waited for agents
		if before.Live.Resting && j.s.Phase() == Idle && !j.s.awaited() {
			want = 1
		}
	case Resume: // closes what nobody waited for
		if from == Acting && j.s.Phase() == Idle || from == Stranded || before.Live.Resting {
			want = n
		}
	default:
		active := from == Thinking || from == Acting || from == Preparing || before.Live.Resting
		if active && j.s.Phase() == Idle && !j.s.awaited() && len(j.s.Live.Clients) > 0 {
			want = 1
		} else if len(j.s.Live.Clients) == 0 {
			want = n // nobody hears of it
		}
	}
	if n != want {
		j.t.Fatalf("%s in %s led to %s with %d session.idle, not %d", body.kind(), from, j.s.Phase(), n, want)
	}
}

// checkBatch: how a batch that has settled ends its loop (T1, T2, T5, S6), by the
// terminality that the observer knows.
func (j *journey) checkBatch(before *State, events []*event.Event) {
	if len(before.Loop.Calls) == 0 || !before.Loop.Open || !before.Loop.InTurn {
		return
	}
	switch j.last.(type) {
	case Abort, Close, Send, Suspend, StoreFailed:
		return
	case Detach:
		if p := j.s.Phase(); p == Closed || p == Ending {
			return
		}
	case Resume:
		if !j.last.(Resume).Continue {
			return
		}
	}
	end := slices.IndexFunc(events, func(e *event.Event) bool { return e.Type == event.TypeTurnEnd })
	if end < 0 {
		return
	}
	how := map[string]string{}
	for _, c := range before.Loop.Calls {
		if c.Done {
			how[c.ID] = string(c.Type)
		}
	}
	for _, e := range events[:end] {
		if p, ok := e.Payload.(event.ToolComplete); ok {
			how[p.ToolCallID] = "success"
			if !p.Success {
				how[p.ToolCallID] = p.Error.Code
			}
		}
	}
	success, failure, rejected := false, false, false
	for _, c := range before.Loop.Calls {
		if how[c.ID] == "" {
			j.t.Fatalf("the turn ended before call %s", c.ID)
		}
		success = success || j.terminal[c.ID] && how[c.ID] == "success"
		failure = failure || j.terminal[c.ID] && how[c.ID] != "success"
		rejected = rejected || !j.terminal[c.ID] && how[c.ID] == "rejected"
	}
	goesOn := !j.cleared && !success && (failure || !rejected)
	next, seeded := "", false
	for _, e := range events[end:] {
		if p, ok := e.Payload.(event.UserMessage); ok && next == "" {
			next, seeded = p.InteractionID, p.Source == seedSource
		}
		if p, ok := e.Payload.(event.TurnStart); ok && next == "" {
			next = p.InteractionID
		}
	}
	went := next == before.Loop.InteractionID
	if prep := j.s.Live.Prep; prep != nil { // hooks are asked first
		went = j.s.Loop.Open
		seeded = len(prep.drafts) > 0 && prep.drafts[0].Source == seedSource
	}
	if went != goesOn {
		j.t.Fatalf("batch %v, terminal %v, cleared %v: the loop goes on: %v, want %v", how, j.terminal, j.cleared, went, goesOn)
	}
	if seeded != j.cleared {
		j.t.Fatalf("cleared %v, seeded turn %v", j.cleared, seeded)
	}
}

// checkOrder: each kind of message keeps its order, and no queued message goes
// before a steering one that waits.
func (j *journey) checkOrder(before *State, events []*event.Event) {
	waiting := map[string]bool{}
	for _, q := range before.Steering {
		waiting[q.Prompt] = true
	}
	for _, e := range events {
		p, ok := e.Payload.(event.UserMessage)
		if !ok || p.Source != "" {
			continue
		}
		delete(waiting, p.Content)
		begun := before.Live.Prep != nil && slices.ContainsFunc(before.Live.Prep.drafts, func(d draft) bool { return d.MessageID == p.MessageID })
		if !j.steering[p.Content] && !begun && len(waiting) > 0 {
			j.t.Fatalf("queued %s went before steering %v", p.Content, waiting)
		}
	}
}

func (j *journey) checkRequest(ms []model.Message) {
	for _, m := range ms {
		text := m.Text
		for _, c := range m.Calls {
			text += " " + c.Arguments
		}
		for _, w := range wordPattern.FindAllString(text, -1) {
			if j.banned[w] {
				j.t.Fatalf("%s from before a clear is in a request:\n%s", w, showMessages(ms))
			}
		}
	}
}

// payload decodes a record once.
func payload[T event.Payload](e *event.Event) T {
	p, _ := event.As[T](e)
	e.Payload = p
	return p
}

// checkPairs: every call has one start, then one completion; where no loop is
// open none is missing.
func (j *journey) checkPairs() {
	type call struct{ agent, id string }
	open := map[call]int{}
	for _, e := range j.log {
		switch e.Type {
		case event.TypeToolStart:
			c := call{e.AgentID, payload[event.ToolStart](e).ToolCallID}
			if open[c]++; open[c] != 1 {
				j.t.Fatalf("call %v was started twice", c)
			}
		case event.TypeToolComplete:
			c := call{e.AgentID, payload[event.ToolComplete](e).ToolCallID}
			if open[c]--; open[c] != 0 {
				j.t.Fatalf("call %v was completed without a start, or twice", c)
			}
		}
	}
	for c, n := range open {
		over := !j.s.Loop.Open
		if c.agent != "" {
			over = j.s.Agent(c.agent).Status != AgentRunning
		}
		if n != 0 && over {
			j.t.Fatalf("the loop is over, and call %v has no completion", c)
		}
	}
}

// checkKept: nothing that a user said is lost or doubled, and no seed is.
func (j *journey) checkKept() {
	where := map[string]bool{}
	note := func(ms []model.Message) {
		for _, m := range ms {
			if m.Role == model.User {
				for _, w := range wordPattern.FindAllString(m.Text, -1) {
					where[w] = true
				}
			}
		}
	}
	for _, r := range j.world.requests {
		if r.AgentID == "" {
			note(r.Messages)
		}
	}
	note(j.s.Window.Messages(""))
	for _, q := range slices.Concat(j.s.Queue, j.s.Steering) {
		where[q.Prompt] = true
	}
	for _, w := range j.sent {
		if !where[w] && !j.removed[w] {
			j.t.Fatalf("%s is lost", w)
		}
	}
	for id, w := range j.seeds {
		if !where[w] && !j.removed[w] {
			j.t.Fatalf("the seed %s of clear %s is lost", w, id)
		}
	}
	// A seed whose message a boundary has taken away waits again.
	said := map[string]int{}
	for _, e := range shown(j.log) {
		if e.Type == event.TypeUserMessage {
			p := payload[event.UserMessage](e)
			if said[p.MessageID]++; said[p.MessageID] > 1 {
				j.t.Fatalf("message %q was delivered twice", p.Content)
			}
		}
	}
	var queued, steering []int
	for _, e := range j.log {
		if e.Type != event.TypeUserMessage {
			continue
		}
		p := payload[event.UserMessage](e)
		if p.Source != "" {
			continue
		}
		n, _ := strconv.Atoi(strings.Trim(p.Content, "W"))
		if j.steering[p.Content] {
			steering = append(steering, n)
		} else {
			queued = append(queued, n)
		}
	}
	for _, list := range [][]int{queued, steering} {
		if !slices.IsSorted(list) && !j.arranged {
			j.t.Fatalf("messages were delivered out of order: %v", list)
		}
	}
}

// The things that can happen.

func (j *journey) say() {
	w := j.word()
	j.sent, j.steering[w] = append(j.sent, w), rapid.Bool().Draw(j.rt, "steering")
	if _, err := j.step(Send{Message: event.Queued{Prompt: w, Steering: j.steering[w]}}); err != nil {
		j.t.Fatalf("send: %v", err)
	}
}

var callNames = []string{"a", "b", "local", "end", "clear", "safe", "nope"}

// agentWord is a word that an agent says. It is not for a window that it does not
// report to; private ones are for no window but the agent's own.
func (j *journey) agentWord(agent string, private bool) string {
	w := j.word()
	if agent != "" && (private || !j.s.reports(j.s.Agent(agent))) {
		j.banned[w] = true
	}
	return w
}

// agentCall is a call of one of the core's own tools.
func (j *journey) agentCall(c *model.Call) {
	ids := []string{"nobody"}
	for _, a := range j.s.Agents {
		if j.s.reports(a) {
			ids = append(ids, a.ID)
		}
	}
	id := rapid.SampledFrom(ids).Draw(j.rt, "agent")
	switch c.Name = rapid.SampledFrom([]string{TaskTool, TaskTool, ReadAgentTool, ListAgentsTool, WriteAgentTool}).Draw(j.rt, "tool"); c.Name {
	case TaskTool:
		c.Arguments = fmt.Sprintf(`{"name":"k","agent_type":%q,"prompt":%q,"mode":%q}`, rapid.SampledFrom([]string{"x", "y", "z"}).Draw(j.rt, "kind"),
			rapid.SampledFrom([]string{"P", "P", " "}).Draw(j.rt, "prompt"), rapid.SampledFrom([]string{"sync", "background"}).Draw(j.rt, "mode"))
	case ReadAgentTool:
		c.Arguments = fmt.Sprintf(`{"agent_id":%q,"wait":%v}`, id, rapid.Bool().Draw(j.rt, "wait"))
	case WriteAgentTool:
		c.Arguments = fmt.Sprintf(`{"agent_id":%q,"message":"M"}`, id)
	default:
		c.Arguments = "{}"
	}
}

// checkAgents: an agent's status goes one way, none but those at work are live, and
// a call that waits for an agent waits for one that works.
func (j *journey) checkAgents(before *State) {
	for _, l := range j.s.Live.Agents {
		if a := j.s.Agent(l.ID); a == nil || a.Status != AgentRunning {
			j.t.Fatalf("the agent %s is live, and stands as %+v", l.ID, a)
		}
		if l.Live.Agents != nil {
			j.t.Fatalf("the agent %s has agents", l.ID)
		}
	}
	for _, a := range before.Agents {
		if now := j.s.Agent(a.ID); now == nil || a.Status == AgentRemoved && now.Status != AgentRemoved {
			j.t.Fatalf("the agent %s is gone, or came back", a.ID)
		}
	}
	if j.s.Live.Parked || j.s.Phase() == Closed || len(j.s.Live.Clients) == 0 {
		return
	}
	for _, c := range j.s.Loop.Calls {
		if c.Agent != "" && !c.Done && j.s.liveAgent(c.Agent) < 0 && !slices.ContainsFunc(j.s.Live.Waits, func(w wait) bool { return w.call == c.ID }) && j.s.Live.Prep == nil {
			j.t.Fatalf("call %s waits for the agent %s, which works no more", c.ID, c.Agent)
		}
	}
	if j.s.Live.Resting && (j.s.Phase() != Idle && j.s.goingBack() == nil || !j.s.awaited() && j.s.goingBack() == nil) {
		j.t.Fatalf("the session rests in %s, and waits for %v", j.s.Phase(), j.s.awaited())
	}
}

// actAgent does something with an agent that works.
func (j *journey) actAgent() {
	var ids []string
	for _, a := range j.s.Live.Agents {
		ids = append(ids, a.ID)
	}
	id := rapid.SampledFrom(ids).Draw(j.rt, "agent")
	switch at := j.s.At(id); at.Phase() {
	case Thinking:
		j.answerModel(id)
	case Acting:
		j.act(id)
	case Preparing:
		j.answerHook(id)
	default:
		j.t.Fatalf("the agent %s is at work, and %s", id, at.Phase())
	}
}

// command does something to agents that a host can.
func (j *journey) command() {
	if rapid.Bool().Draw(j.rt, "start") {
		j.step(StartAgent{Type: rapid.SampledFrom([]string{"x", "y", "z"}).Draw(j.rt, "kind"), Name: "h", Prompt: "P"})
		return
	}
	ids := []string{"nobody"}
	for _, a := range j.s.Agents {
		ids = append(ids, a.ID)
	}
	ops := []AgentOp{AgentCancel, AgentCancelAll, AgentRemove, AgentTell, AgentPromote}
	j.step(ChangeAgent{Op: rapid.SampledFrom(ops).Draw(j.rt, "op"), ID: rapid.SampledFrom(ids).Draw(j.rt, "id"), Message: "M"})
}

// answerModel ends a model call, of an agent or the session's own, in one of all
// ways.
func (j *journey) answerModel(agent string) {
	if j.s.At(agent).Live.Counting != nil {
		j.counted(agent)
		return
	}
	fence := j.models[agent]
	switch kind := rapid.IntRange(0, 9).Draw(j.rt, "answer"); {
	case kind == 0:
		j.step(ModelFailed{Fence: fence, Err: &model.Error{Kind: model.Query, Msg: "no"}})
		return
	case kind == 1:
		j.step(ModelChunk{Fence: fence, Chunk: model.Chunk{Text: "chunk"}})
		return
	case kind == 2:
		j.step(ModelRetry{Fence: fence, Err: &model.Error{Kind: model.Query, Msg: "no"}})
		return
	case kind == 3:
		j.step(ModelDone{Fence: fence, Response: model.Response{Message: model.Message{Text: rapid.SampledFrom([]string{"", j.agentWord(agent, false)}).Draw(j.rt, "text")}}})
		return
	}
	r := model.Response{Model: "m", Message: model.Message{Role: model.Assistant}}
	for range rapid.IntRange(1, 3).Draw(j.rt, "calls") {
		c := model.Call{
			ID:   rapid.SampledFrom([]string{"", "c1", "c2", "c3", "d" + fmt.Sprint(j.words)}).Draw(j.rt, "id"),
			Name: rapid.SampledFrom(callNames).Draw(j.rt, "name"),
		}
		switch n := rapid.IntRange(0, 5).Draw(j.rt, "arguments"); {
		case n < 3 && j.agents && agent == "":
			j.agentCall(&c)
		case n == 0:
			c.Arguments = rapid.SampledFrom([]string{"", "null", "[]", "{", `{"n":"x"}`, `{"x":1}`}).Draw(j.rt, "bad")
		default:
			c.Arguments = fmt.Sprintf(`{"prompt":"%s"}`, j.agentWord(agent, true))
		}
		r.Message.Calls = append(r.Message.Calls, c)
	}
	r.Message.Text = j.agentWord(agent, false)
	j.step(ModelDone{Fence: fence, Response: r})
}

// counted ends the counting of a model call, which then goes on: it is made, waits for a
// summary, or is counted anew where the window is another by now.
func (j *journey) counted(agent string) {
	in := Counted{Agent: agent, ID: j.s.At(agent).Live.Counting.id, Encoding: rapid.SampledFrom([]tokens.Encoding{"", tokens.O200k, tokens.CL100k}).Draw(j.rt, "encoding")}
	if in.Encoding != "" {
		in.Size = tokens.Size{System: 1, Messages: rapid.IntRange(0, 1500).Draw(j.rt, "tokens"), Tools: rapid.IntRange(0, 50).Draw(j.rt, "tools")}
	}
	late := in
	late.ID += 7
	for _, in := range []Counted{late, in} {
		if _, err := j.step(in); err != nil {
			j.t.Fatalf("a count was not taken: %v", err)
		}
	}
	l := j.s.At(agent).Live
	made, waits, again := l.Model != nil, l.Awaiting && l.Compacting != nil, l.Counting != nil
	if again && (made || !l.Awaiting || l.Counting.id == in.ID) || !again && made == waits {
		j.t.Fatalf("a model call that was counted is not made, and waits for nothing: %+v", l)
	}
}

// answerHook answers a hook that was asked, in one of all ways. What a user said
// is never taken out by these hooks: the observer would miss it.
func (j *journey) answerHook(agent string) {
	w := rapid.SampledFrom(j.s.At(agent).Live.Waits).Draw(j.rt, "hook")
	in := HookDone{Agent: agent, ID: w.id, Output: json.RawMessage(rapid.SampledFrom([]string{
		"", "null", "{}", `{"additionalContext":"CONTEXT"}`, `{"permissionDecision":"deny"}`, `{"permissionDecision":"allow"}`,
		`{"permissionDecision":"ask"}`, `{"permissionDecision":"maybe"}`, `{"modifiedArgs":{"n":1}}`, `{"modifiedArgs":{"n":"x"}}`,
		`{"modifiedResult":{"textResultForLlm":"changed","resultType":"success"}}`, `{"decision":"block","reason":"go on"}`, `{"system":"MADE"}`,
	}).Draw(j.rt, "output"))}
	switch w.kind {
	case HookPreTool, HookPostTool, HookPostFailure, HookAgentStop, HookSessionEnd, HookError, HookAgentStart, HookSubagentStop:
		if rapid.IntRange(0, 5).Draw(j.rt, "broken") == 0 {
			in.Err = errors.New("broken")
		}
	}
	j.step(in)
}

// openCalls returns the calls that wait.
func (j *journey) openCalls(agent string) []Call {
	var out []Call
	for _, c := range j.s.At(agent).Loop.Calls {
		if !c.Done {
			out = append(out, c)
		}
	}
	return out
}

func (j *journey) result(agent string) tool.Result {
	types := []tool.ResultType{"", tool.Success, tool.Failure, tool.Timeout, tool.Denied, tool.Rejected, "bogus"}
	w := j.agentWord(agent, false)
	if j.cleared && agent == "" {
		j.banned[w] = true
	}
	return tool.Result{Text: w, Type: rapid.SampledFrom(types).Draw(j.rt, "type")}
}

// act does something with an open call.
func (j *journey) act(agent string) {
	c := rapid.SampledFrom(j.openCalls(agent)).Draw(j.rt, "call")
	at := j.s.At(agent)
	switch {
	case c.Agent != "" && j.s.liveAgent(c.Agent) >= 0:
		j.actAgent()
	case slices.ContainsFunc(j.s.Live.Readers, func(r reader) bool { return agent == "" && r.Call == c.ID }):
		j.step(TimeUp{Fence: j.fences[c.ID]})
	case slices.ContainsFunc(at.Live.Waits, func(w wait) bool { return w.call == c.ID }):
		j.answerHook(agent)
	case c.Permission != "":
		kinds := []string{"approve-once", "approve-for-session", "reject", "user-not-available", "no-result", "nonsense"}
		raw, _ := json.Marshal(map[string]string{
			"kind": rapid.SampledFrom(kinds).Draw(j.rt, "decision"), "feedback": rapid.SampledFrom([]string{"", "why"}).Draw(j.rt, "feedback"),
		})
		j.step(PermissionAnswer{RequestID: c.Permission, Decision: policy.Parse(raw)})
	case c.External != "":
		in := ToolAnswer{RequestID: c.External, Result: j.result(agent)}
		if rapid.IntRange(0, 4).Draw(j.rt, "throw") == 0 {
			in.Thrown = errors.New("boom")
		}
		if r, err := j.step(in); err != nil || r.Result != true {
			j.t.Fatalf("an answer was not taken: %v %v", r.Result, err)
		}
		if r, err := j.step(in); err != nil || r.Result != false {
			j.t.Fatalf("an answer was taken twice: %v %v", r.Result, err)
		}
	default:
		fence := Fence{Agent: agent, Turn: at.Live.Turn, Window: at.Clears, Call: c.ID}
		j.step(ToolDone{Fence: fence, Outcome: tool.Settle(tool.Call{ID: c.ID, Name: c.Name}, j.result(agent), nil, nil)})
	}
}

func (j *journey) clear() {
	if rapid.IntRange(0, 4).Draw(j.rt, "blank") == 0 {
		if _, err := j.step(Clear{Prompt: " \n"}); err == nil {
			j.t.Fatalf("a blank clear was made")
		}
		return
	}
	may := j.s.Phase() == Acting && !j.cleared && slices.ContainsFunc(j.openCalls(""), func(c Call) bool { return c.Agent == "" })
	seed, count := j.word(), j.s.Window.Len()
	banned := map[string]bool{}
	for n := 1; n < j.words; n++ {
		banned[fmt.Sprintf("W%dW", n)] = true
	}
	for _, q := range slices.Concat(j.s.Queue, j.s.Steering) {
		delete(banned, q.Prompt)
	}
	at := len(j.log)
	if may && j.s.Live.Compacting != nil {
		at++ // the summary that it overtakes ends first
	}
	j.seeds["?"] = seed
	if !may {
		delete(j.seeds, "?")
	}
	r, err := j.step(Clear{Prompt: seed})
	delete(j.seeds, "?")
	if (err == nil) != may {
		j.t.Fatalf("clear in %s (cleared before: %v): %v", j.s.Phase(), j.cleared, err)
	}
	if err != nil {
		return
	}
	if r.Result != count || !r.Sync || len(j.log) != at+1 {
		j.t.Fatalf("clear gave %v (of %d), synced %v, in %d records", r.Result, count, r.Sync, len(j.log)-at)
	}
	j.cleared, j.banned = true, banned
	j.seeds[j.log[at].ID] = seed
}

func (j *journey) tools() string {
	return rapid.SampledFrom([]string{"a,b,local*,end!,clear!,safe~", "a,end!,clear", "", "b,local*,end!*"}).Draw(j.rt, "tools")
}

func (j *journey) client() Client {
	j.clients++
	return Client{ID: fmt.Sprint("C", j.clients), Tools: registry(j.t, j.tools()), Permission: rapid.IntRange(0, 3).Draw(j.rt, "deaf") > 0, Hooks: j.hooks && rapid.Bool().Draw(j.rt, "hooked")}
}

func (j *journey) settings() Settings {
	wanted := uint64(0)
	if j.composes {
		wanted = 1
	}
	var kinds []AgentDef
	if j.agents {
		kinds = []AgentDef{{Name: "x"}, {Name: "y", Tools: Filter{true, []string{"a", "end"}}}}
	}
	return Settings{Agents: kinds, BuiltIns: builtIns(false, false, j.agents), System: "SYS", Wanted: wanted, ApproveAll: !j.ask, Streaming: true, TokenLimit: 1000, Count: j.counts, Version: "v", Compaction: j.compacts}
}

// killAndResume ends the process, perhaps in the middle of its last write, and
// takes the session up in another one.
func (j *journey) killAndResume() {
	cut := 0
	if j.last != nil && !j.synced {
		cut = rapid.IntRange(0, len(j.log)-j.records).Draw(j.rt, "cut")
	}
	if cut > 0 { // the write did not end: nothing that follows it was done
		j.world.requests = j.world.requests[:j.requests]
		j.seen = j.seen[:j.events]
		if _, ok := j.last.(Send); ok {
			j.sent = j.sent[:len(j.sent)-1] // it was not answered
		}
	}
	if len(j.log)-cut == 0 {
		cut = 0
	}
	j.kill(len(j.log) - cut)
	j.last = nil
	j.observe()
	j.cleared = j.s.Loop.Cleared != ""
	j.resume(true)
}

func (j *journey) resume(loaded bool) {
	in := Resume{Client: j.client(), Continue: rapid.Bool().Draw(j.rt, "continue"), Quiet: rapid.Bool().Draw(j.rt, "quiet"), Loaded: loaded}
	in.WasActive = len(j.s.Live.Clients) > 0 && j.s.Phase() != Idle
	if loaded {
		s := j.settings()
		in.Settings = &s
	}
	if _, err := j.step(in); err != nil {
		j.t.Fatalf("resume: %v", err)
	}
	if loaded && in.Continue && j.s.Phase() == Idle && j.s.Window.Seed() != nil && j.s.Rewind == nil {
		j.t.Fatalf("a resume that continues left the seed waiting")
	}
}

func (j *journey) happen() {
	if j.s.Phase() == Closed {
		j.killAndResume()
		return
	}
	if j.s.goingBack() != nil && rapid.IntRange(0, 2).Draw(j.rt, "on its way") > 0 {
		j.goOn()
		return
	}
	if j.s.Phase() == Ending {
		if rapid.Bool().Draw(j.rt, "answered") {
			j.answerHook("")
		} else {
			j.killAndResume()
		}
		return
	}
	if j.agents {
		switch n := rapid.IntRange(0, 9).Draw(j.rt, "agents"); {
		case n < 4 && len(j.s.Live.Agents) > 0:
			j.actAgent()
			return
		case n == 9:
			j.command()
			return
		}
	}
	switch n := rapid.IntRange(0, 35).Draw(j.rt, "what"); {
	case n < 14:
		switch j.s.Phase() {
		case Thinking:
			j.answerModel("")
		case Acting:
			j.act("")
		case Preparing:
			if j.s.goingBack() != nil {
				j.goOn()
				return
			}
			j.answerHook("")
		default:
			j.say()
		}
	case n < 18:
		j.say()
	case n < 21:
		j.clear()
	case n == 21:
		j.step(Abort{})
	case n == 22:
		if !slices.ContainsFunc(j.s.Live.Clients, func(c Client) bool { return true }) {
			j.resume(false)
			return
		}
		c := rapid.SampledFrom(j.s.Live.Clients).Draw(j.rt, "client")
		j.step(Detach{ClientID: c.ID, Lost: rapid.IntRange(0, 5).Draw(j.rt, "lost") > 0})
	case n == 23:
		j.step(Attach{Client: j.client()})
	case n == 24:
		j.resume(false)
	case n == 25 || n == 26:
		j.killAndResume()
	case n == 27:
		j.step(StoreFailed{Err: errors.New("full")})
	case n == 28:
		j.stale()
	case n < 31:
		j.goBack()
	case n == 31:
		j.fork()
	case n < 34:
		j.arrange()
	case n < 36:
		j.compaction()
	default:
		switch rapid.IntRange(0, 5).Draw(j.rt, "rare") {
		case 3:
			j.step(ChangeSchedule{Op: ScheduleAdd, Entry: event.ScheduleCreated{Prompt: j.word(), IntervalMs: 60000, Recurring: rapid.Bool().Draw(j.rt, "recurring")}})
		case 4:
			j.now = j.now.Add(time.Minute)
			j.step(Tick{})
		case 0:
			j.step(Suspend{})
		case 1:
			j.step(Close{})
		case 2:
			j.step(Note{Payload: event.SessionInfo{Message: "note"}})
		default:
			dir := j.word()
			j.step(Configure{Dir: &dir})
		}
	}
}

// stale posts what comes too late: of another fence, of a request that is closed.
func (j *journey) stale() {
	old := Fence{Turn: j.s.Live.Turn + 7, Window: j.s.Clears}
	for _, b := range []Body{
		ModelDone{Fence: old, Response: model.Response{Message: model.Message{Text: "LATE"}}},
		ModelFailed{Fence: old, Err: &model.Error{Msg: "late"}},
		ModelChunk{Fence: old, Chunk: model.Chunk{Text: "late"}},
		ToolDone{Fence: Fence{Turn: old.Turn, Call: "c1"}}, HookDone{ID: j.s.Live.HookSerial + 7},
		ModelDone{Fence: Fence{Agent: "k", Turn: 1 << 40}}, ModelDone{Fence: Fence{Agent: "nobody"}}, HookDone{Agent: "nobody"}, TimeUp{Fence: old},
		Counted{ID: 1 << 40}, Counted{}, Counted{Agent: "nobody", ID: 1}, ToolAnswer{RequestID: "gone"}, ToolAnswer{}, PermissionAnswer{RequestID: "gone"}, PermissionAnswer{},
	} {
		before := print(&j.s)
		r, err := j.step(b)
		if err != nil || len(r.Events)+len(r.Start) > 0 || print(&j.s) != before {
			j.t.Fatalf("%s of another time changed something: %v %v", b.kind(), r, err)
		}
	}
}

// TestJourneys: whatever happens to a session, in any order, the rules hold.
func TestJourneys(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		j := &journey{world: newWorld(rt), rt: rt, seeds: map[string]string{}, steering: map[string]bool{}, banned: map[string]bool{}, terminal: map[string]bool{}, removed: map[string]bool{}}
		if rapid.Bool().Draw(rt, "compacts") {
			j.compacts = Compaction{Enabled: true, Background: rapid.SampledFrom([]float64{0.01, 0.05, 0.3}).Draw(rt, "background"), Blocking: rapid.SampledFrom([]float64{0.05, 0.4, 0.95}).Draw(rt, "blocking")}
		}
		j.counts = rapid.Bool().Draw(rt, "counts")
		j.ask, j.hooks, j.composes = rapid.Bool().Draw(rt, "ask"), rapid.Bool().Draw(rt, "hooks"), rapid.Bool().Draw(rt, "composes")
		j.agents = rapid.Bool().Draw(rt, "agents")
		if _, err := j.step(Begin{SessionID: "s", Model: "m", Dir: "/d", Settings: j.settings(), Client: j.client()}); err != nil {
			rt.Fatalf("begin: %v", err)
		}
		for range rapid.IntRange(5, 60).Draw(rt, "steps") {
			j.happen()
		}
	})
}
