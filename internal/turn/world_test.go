package turn

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/tool"
)

// tester is what a world needs of a test: *testing.T and *rapid.T have it.
type tester interface {
	Helper()
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
}

// world drives a session's core the way the actor does, without goroutines, and
// holds every step to the rules that all steps share: see step.
type world struct {
	t tester
	s State

	log      []*event.Event // what was written, as a reader of the log sees it
	seen     []*event.Event // what was published in this process and earlier ones
	folded   Durable        // the fold of log
	requests []model.Request
	ids      int
	steps    int
	kept     string // the checkpoint of the state before the newest step, in pieces
	saved    Saved
	now      time.Time
	asked    map[string]string // call → its newest permission question
	external map[string]string // call → its newest request to a host
	fences   map[string]Fence  // call → the fence it was started with
	model    Fence             // of the newest model call
	models   map[string]Fence  // of the newest model call of each sub-agent
	hooks    []hookAsked       // asked and not answered, oldest first
	find     *FindPast         // the newest one
	restore  *RestoreFiles     // the newest one
	reached  map[string]bool   // "phase kind phase": nil where nobody counts
}

// hookAsked is a hook that was asked.
type hookAsked struct {
	agent string
	id    uint64
}

func newWorld(t tester) *world {
	return &world{
		t: t, now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		asked: map[string]string{}, external: map[string]string{}, fences: map[string]Fence{}, models: map[string]Fence{},
	}
}

// ids makes the ids of one step: the same ones each time the step is made.
func idsFrom(n int) (next func() string, used *int) {
	used = &n
	return func() string { n++; return fmt.Sprintf("id%d", n) }, used
}

// print writes a state down whole, so that two can be compared.
func print(s *State) string {
	d, err := Save(s.Durable)
	if err != nil {
		return err.Error()
	}
	return string(d) + "\n" + printLive(&s.Live)
}

func printLive(live *Live) string {
	l := *live
	var agents strings.Builder
	for _, a := range l.Agents {
		fmt.Fprintf(&agents, "\n[%s] %s", a.ID, printLive(&a.Live))
	}
	l.Agents = nil
	type client struct {
		ID                    string
		Tools                 []string
		Permission, Continues bool
		Hooks                 bool
	}
	var clients []client
	for _, c := range l.Clients {
		var names []string
		for _, t := range c.Tools.All() {
			names = append(names, t.Name)
		}
		clients = append(clients, client{c.ID, names, c.Permission, c.Continues, c.Hooks})
	}
	var owners []string
	for _, o := range l.Offers.List() {
		owners = append(owners, o.Name+"@"+o.Owner)
	}
	l.Clients, l.Offers = nil, nil
	var prep strings.Builder
	for _, w := range l.Waits {
		fmt.Fprint(&prep, w.id, w.kind, w.call)
		if w.outcome != nil {
			fmt.Fprintf(&prep, "%+v", *w.outcome)
		}
	}
	if l.Prep != nil {
		p := *l.Prep
		prep.WriteString(printBack(p.back))
		p.back = nil
		fmt.Fprintf(&prep, "%+v", p)
	}
	l.Prep = nil
	raw, err := json.Marshal(l)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%s\n%v\n%v\n%s%s", raw, clients, owners, prep.String(), agents.String())
}

// outcome writes down what a step gave.
func outcome(s *State, r *Ready, err error) string {
	var b strings.Builder
	b.WriteString(print(s))
	fmt.Fprintf(&b, "\n%v", r.CancelAgents)
	for _, e := range r.Events {
		b.WriteString("\n" + string(e.Line))
	}
	for _, e := range r.Start {
		if t, ok := e.(*PreparePermission); ok {
			fmt.Fprintf(&b, "\nprepare %+v %+v %v", t.Fence, t.Call, t.Forced)
			continue
		}
		if t, ok := e.(*StartTool); ok {
			fmt.Fprintf(&b, "\nstart %+v %+v", t.Fence, t.Call)
			continue
		}
		raw, _ := json.Marshal(e)
		fmt.Fprintf(&b, "\nstart %T %s", e, raw)
	}
	fmt.Fprintf(&b, "\n%v %v %v %v %v", r.Files, r.Sync, r.Cancel, r.Result, err)
	return b.String()
}

// decoys are inputs made from the same state, before and after the real one, in
// turns: nothing of them may show in it.
var decoys = []Body{
	Send{Message: event.Queued{MessageID: "decoy", Prompt: "DECOY"}},
	Send{Message: event.Queued{MessageID: "decoy", Prompt: "DECOY", Steering: true}},
	Clear{Prompt: "DECOY"},
	Abort{},
	Close{},
}

// step makes one step and checks what holds for all of them:
//
//   - the phase that follows stands in the table's row; an ignored or refused
//     input changes nothing;
//   - Step is a function: the given state is left as it was, other steps made
//     from it leave no trace, and the same input gives the same outcome;
//   - a state that went through Save and Restore behaves the same;
//   - the fold of what was written is the new Durable.
func (w *world) step(body Body) (Ready, error) {
	w.t.Helper()
	w.now = w.now.Add(time.Second)
	input := func(b Body, first int) (Input, *int) {
		next, used := idsFrom(first)
		return Input{At: w.now, NewID: next, Body: b}, used
	}
	phase, before := w.s.Phase(), print(&w.s)
	w.steps++
	decoy := func(i int) {
		in, _ := input(decoys[(w.steps+i)%len(decoys)], 900000)
		Step(w.s, in)
	}
	decoy(0)
	in, used := input(body, w.ids)
	next, ready, err := Step(w.s, in)
	if got := print(&w.s); got != before {
		w.t.Fatalf("%s changed the state it was given:\n%s\nwas\n%s", body.kind(), got, before)
	}
	after := outcome(&next, &ready, err)
	decoy(1)
	decoy(2)
	if got := outcome(&next, &ready, err); got != after {
		w.t.Fatalf("another step from the same state changed the outcome of %s:\n%s\nwas\n%s", body.kind(), got, after)
	}
	w.again(body, input, after)
	w.transition(phase, body, &next, &ready, err, before)
	if err != nil {
		return ready, err
	}
	w.ids = *used
	w.s = next
	w.take(&ready)
	return ready, nil
}

// again makes the step once more, from a state that was saved and restored.
func (w *world) again(body Body, input func(Body, int) (Input, *int), want string) {
	w.t.Helper()
	saved, err := Save(w.s.Durable)
	if err != nil {
		w.t.Fatalf("save: %v", err)
	}
	w.keep(saved)
	for how, data := range map[string]string{"restored": string(saved), "restored from pieces": w.kept} {
		restored, err := Restore(data)
		if err != nil {
			w.t.Fatalf("restore: %v", err)
		}
		in, _ := input(body, w.ids)
		next, ready, err := Step(State{restored, w.s.Live}, in)
		if got := outcome(&next, &ready, err); got != want {
			w.t.Fatalf("%s on a state %s gave\n%s\nnot\n%s", body.kind(), how, got, want)
		}
	}
}

// keep keeps the state as a session does: it adds to what it kept, where it can.
func (w *world) keep(whole []byte) {
	if more, _, next, ok := Extend(w.s.Durable, w.saved); ok && w.steps%13 > 0 {
		w.kept, w.saved = w.kept+string(more), next
	} else {
		w.kept, w.saved = string(whole), Mark(&w.s.Durable)
	}
}

// transition holds a step against the table.
func (w *world) transition(from Phase, body Body, next *State, ready *Ready, err error, before string) {
	w.t.Helper()
	if agent := w.s.recipient(body); agent != "" {
		w.transitionOf(agent, body, next, ready, err, before)
		return
	}
	rule, listed := table.Get()[from][body.kind()]
	var refusal *Refusal
	switch {
	case !listed && !errors.As(err, &refusal):
		w.t.Fatalf("%s in %s stands nowhere in the table, and gave %v", body.kind(), from, err)
	case err != nil || rule.ignore:
		if got := print(next); got != before {
			w.t.Fatalf("%s in %s was refused or ignored (%v), and changed\n%s\nto\n%s", body.kind(), from, err, before, got)
		}
		if len(ready.Events)+len(ready.Start)+len(ready.Files) > 0 || ready.Cancel || ready.Sync {
			w.t.Fatalf("%s in %s was refused or ignored (%v), and asks for %+v", body.kind(), from, err, *ready)
		}
		if err != nil && !errors.As(err, &refusal) {
			w.t.Fatalf("%s in %s: %v is no refusal", body.kind(), from, err)
		}
	case !slices.Contains(rule.to, next.Phase()):
		w.t.Fatalf("%s led from %s to %s: the table lists %v", body.kind(), from, next.Phase(), rule.to)
	}
	if w.reached != nil && err == nil {
		w.reached[fmt.Sprintf("%s %s %s", from, body.kind(), next.Phase())] = true
	}
}

// transitionOf holds a step of a sub-agent against the table: one that works no
// more takes nothing.
func (w *world) transitionOf(agent string, body Body, next *State, ready *Ready, err error, before string) {
	w.t.Helper()
	if w.s.liveAgent(agent) < 0 {
		if got := print(next); got != before || err != nil || len(ready.Events)+len(ready.Start) > 0 {
			w.t.Fatalf("%s is for the agent %s, which works no more, and gave %+v, %v", body.kind(), agent, *ready, err)
		}
		return
	}
	from := w.s.At(agent).Phase()
	rule, listed := table.Get()[from][body.kind()]
	switch {
	case !listed:
		w.t.Fatalf("%s of %s in %s stands nowhere in the table", body.kind(), agent, from)
	case err != nil:
		w.t.Fatalf("%s of %s in %s: %v", body.kind(), agent, from, err)
	case rule.ignore && print(next) != before:
		w.t.Fatalf("%s of %s in %s was ignored, and changed something", body.kind(), agent, from)
	case !rule.ignore && next.liveAgent(agent) >= 0 && !slices.Contains(rule.to, next.At(agent).Phase()):
		w.t.Fatalf("%s led %s from %s to %s: the table lists %v", body.kind(), agent, from, next.At(agent).Phase(), rule.to)
	}
	if w.reached != nil {
		w.reached[fmt.Sprintf("%s %s %s", w.s.Phase(), body.kind(), next.Phase())] = true
	}
}

// take does what the actor does with what a step asks for.
func (w *world) take(r *Ready) {
	w.t.Helper()
	for _, e := range r.Events {
		w.seen = append(w.seen, e)
		switch p := e.Payload.(type) {
		case event.PermissionRequested:
			var q struct{ ToolCallID string }
			if err := json.Unmarshal(p.PermissionRequest, &q); err != nil {
				w.t.Fatalf("permission request: %v", err)
			}
			w.asked[q.ToolCallID] = p.RequestID
		case event.ExternalToolRequested:
			w.external[p.ToolCallID] = p.RequestID
		}
		if !e.Persisted() {
			continue
		}
		if bytes.ContainsAny(e.Line, "\n\r") {
			w.t.Fatalf("a record of two lines: %q", e.Line)
		}
		read, err := event.Decode(e.Line)
		if err != nil {
			w.t.Fatalf("decode %s: %v", e.Line, err)
		}
		w.log = append(w.log, read)
		if w.folded, err = w.folded.Apply(read); err == nil && read.Type == event.TypeTruncated {
			w.folded, err = replay(w.log)
		}
		if err != nil {
			w.t.Fatalf("fold %s: %v", e.Line, err)
		}
	}
	got, want := State{Durable: w.folded}, State{Durable: w.s.Durable}
	if g, s := print(&got), print(&want); g != s {
		w.t.Fatalf("the fold of the log is\n%s\nthe state is\n%s", g, s)
	}
	for _, e := range r.Start {
		w.backEffects(e)
		switch e := e.(type) {
		case *StartModel:
			if w.models[e.Fence.Agent] = e.Fence; e.Fence.Agent == "" {
				w.model = e.Fence
			}
			w.requests = append(w.requests, e.Request)
			if err := wellFormed(e.Request.Messages, w.s.At(e.Fence.Agent).System); err != nil {
				w.t.Fatalf("model request: %v\n%s", err, showMessages(e.Request.Messages))
			}
		case *StartTool:
			w.fences[e.Call.ID] = e.Fence
		case *PreparePermission:
			w.fences[e.Call.ID] = e.Fence
		case *StartTimer:
			w.fences[e.Fence.Call] = e.Fence
		case *CallHook:
			w.hooks = append(w.hooks, hookAsked{e.Agent, e.ID})
		}
	}
}

// kill ends the process: what is left is the log, or a part of it that a batch
// of its last step wrote.
func (w *world) kill(records int) {
	w.t.Helper()
	w.log = w.log[:records]
	d, err := replay(w.log)
	if err != nil {
		w.t.Fatalf("fold: %v", err)
	}
	w.folded = d
	w.s = State{Durable: d, Live: Live{Parked: d.Loop.Open}}
}

// wellFormed is the strict reader of a request: the rules that the strictest
// provider has for a conversation.
func wellFormed(ms []model.Message, system string) error {
	if len(ms) == 0 {
		return errors.New("no messages")
	}
	if system != "" {
		if ms[0].Role != model.System || ms[0].Text != system {
			return errors.New("the first message is not the system message")
		}
		ms = ms[1:]
	}
	users, ids := 0, map[string]bool{}
	for i := 0; i < len(ms); i++ {
		switch m := ms[i]; m.Role {
		case model.User:
			users++
		case model.Assistant:
			for n, c := range m.Calls {
				switch {
				case c.ID == "" || ids[c.ID]:
					return fmt.Errorf("message %d: call id %q is empty or stood before", i, c.ID)
				case !json.Valid([]byte(c.Arguments)) || !strings.HasPrefix(c.Arguments, "{"):
					return fmt.Errorf("message %d: arguments %q are no object", i, c.Arguments)
				case i+1+n >= len(ms) || ms[i+1+n].Role != model.ToolRole || ms[i+1+n].CallID != c.ID:
					return fmt.Errorf("message %d: call %s has no result in its place", i, c.ID)
				}
				ids[c.ID] = true
			}
			i += len(m.Calls)
		default:
			return fmt.Errorf("message %d has role %s where none is due", i, m.Role)
		}
	}
	if users == 0 {
		return errors.New("no message of a user")
	}
	if last := ms[len(ms)-1].Role; last != model.User && last != model.ToolRole {
		return fmt.Errorf("the last message is of role %s", last)
	}
	return nil
}

// stamp is what stands before every prompt that the model reads.
func unstamp(text string) string {
	if rest, ok := strings.CutPrefix(text, "<current_datetime>"); ok {
		if _, rest, ok := strings.Cut(rest, "</current_datetime>\n\n"); ok {
			return "@" + rest
		}
	}
	return text
}

func showMessages(ms []model.Message) string {
	var parts []string
	for _, m := range ms {
		s := string(m.Role)
		if m.CallID != "" {
			s += " " + m.CallID
		}
		if m.Text != "" || len(m.Calls) == 0 {
			s += fmt.Sprintf(" %q", unstamp(m.Text))
		}
		for _, c := range m.Calls {
			s += " " + c.ID + ":" + c.Name + c.Arguments
		}
		for _, i := range m.Images {
			s += " image:" + i.MIMEType
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, " | ")
}

// schemaOf is what all tools of these tests take.
const testSchema = `{"type":"object","properties":{"prompt":{"type":"string"},"n":{"type":"integer"}},"additionalProperties":false}`

// registry makes tools of a list of names: "clear!" is terminal, "side*" runs in
// this process, "safe~" needs no permission.
func registry(t tester, list string) *tool.Registry {
	t.Helper()
	if list == "" {
		return nil
	}
	var tools []tool.Tool
	for _, name := range strings.Split(list, ",") {
		def := tool.Tool{Name: strings.TrimRight(name, "!*~?%"), Parameters: json.RawMessage(testSchema)}
		def.IsTerminal = strings.Contains(name, "!")
		def.SkipPermission = strings.Contains(name, "~")
		def.Effects = strings.Contains(name, "%")
		if strings.Contains(name, "*") {
			def.Handler = func(context.Context, tool.Call) (tool.Result, error) { return tool.Result{}, nil }
		}
		if strings.Contains(name, "?") {
			def.Permission = func(context.Context, tool.Call) (tool.Permission, error) { return tool.Permission{}, nil }
		}
		tools = append(tools, def)
	}
	r, err := tool.NewRegistry(tools)
	if err != nil {
		t.Fatalf("tools: %v", err)
	}
	return r
}
