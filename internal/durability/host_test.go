package durability

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/eventlog"
	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/tool"
)

// call is a tool call that the model makes; arg is its prompt, or all its arguments.
type call struct{ id, tool, arg string }

// plans says which calls the model makes, answer by answer, where the last message
// of a user holds «key». With no answer left, and for other messages, it says "ok".
// It keeps no state, so a model in another process goes on where this one was.
var plans = map[string][][]call{
	"batch":  {{{"b1", "probe", ""}, {"b2", "host", ""}, {"b3", "probe", ""}}, {{"b4", "probe", ""}}},
	"clear":  {{{"c1", "clear", "«seed» the rest"}}},
	"chain":  {{{"c1", "clear", "«chain2» more"}}},
	"chain2": {{{"c2", "probe", ""}}, {{"c3", "clear", "«chain3» the last"}}},
	"sibs":   {{{"s1", "probe", ""}, {"s2", "clear", "«seed» of many"}, {"s3", "host", ""}}},
	"open":   {{{"o1", "clearx", "«seed» by a tool that is not terminal"}}},
	"cut":    {{{"x1", "clearabort", "«seed» of an aborted turn"}}},
	"push":   {{{"p1", "push", ""}}},
	"ask":    {{{"a1", "ask", ""}, {"a2", "probe", ""}}},
	"host":   {{{"h1", "host", ""}}},
	"host2":  {{{"h2", "host", ""}}},
	"halt":   {{{"t1", "probe", ""}, {"t2", "halt", ""}}},
	"wait":   {{{"w1", "wait", ""}}},
	"large":  {{{"l1", "large", ""}}},

	"agent":     {{{"g1", "task", task("sync")}, {"g3", "probe", ""}}},
	"crew":      {{{"g1", "task", task("background")}, {"g3", "probe", ""}}, {{"g4", "probe", ""}}},
	"crewclear": {{{"g1", "task", task("background")}, {"g3", "clear", "«seed» without the crew"}}},
	"buy":       {{{"g2", "probe", ""}}, {{"g5", "probe", ""}}}, // the agent's own
	"make":      {{{"f1", "create", `{"path":"a.txt","file_text":"made"}`}, {"f2", "create", `{"path":"b.txt","file_text":"made"}`}}},
	"change":    {{{"f3", "edit", `{"path":"a.txt","old_str":"made","new_str":"changed"}`}, {"f4", "create", `{"path":"c.txt","file_text":"new"}`}}},
}

// task are the arguments of a call that starts the agent.
func task(mode string) string {
	return `{"name":"k","agent_type":"buyer","description":"d","prompt":"«buy»","mode":"` + mode + `"}`
}

// llm is the model. It answers by the plans, and keeps what it was asked.
type llm struct {
	broken func(string) // told of a request that no provider would take

	mu       sync.Mutex
	requests []*model.Request
}

func (l *llm) Stream(_ context.Context, req *model.Request) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		l.mu.Lock()
		l.requests = append(l.requests, req)
		l.mu.Unlock()
		if why := malformed(req.Messages); why != "" {
			l.broken(why)
		}
		step, key := 0, ""
		for i := len(req.Messages) - 1; i >= 0; i-- {
			switch m := req.Messages[i]; m.Role {
			case model.Assistant:
				step++
				continue
			case model.User:
				_, rest, _ := strings.Cut(m.Text, "«")
				key, _, _ = strings.Cut(rest, "»")
			default:
				continue
			}
			break
		}
		if plan := plans[key]; step < len(plan) && len(req.Tools) > 0 {
			for i, c := range plan[step] {
				args := c.arg
				if !strings.HasPrefix(args, "{") {
					b, _ := json.Marshal(map[string]string{"prompt": c.arg})
					args = string(b)
				}
				if !yield(model.Chunk{Call: &model.CallChunk{Index: i, ID: c.id, Name: c.tool, Arguments: args}}, nil) {
					return
				}
			}
			yield(model.Chunk{Finish: "tool_calls"}, nil)
			return
		}
		yield(model.Chunk{Text: "ok", Finish: "stop"}, nil)
	}
}

// last returns the newest request of the session itself.
func (l *llm) last() *model.Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range slices.Backward(l.requests) {
		if r.AgentID == "" {
			return r
		}
	}
	return nil
}

// malformed says why a strict provider would refuse a conversation: a call without
// exactly one result directly behind it, a result without a call, no message of a
// user.
func malformed(ms []model.Message) string {
	var open []string
	users := 0
	for _, m := range ms {
		if m.Role == model.ToolRole {
			if len(open) == 0 || open[0] != m.CallID {
				return "a result for " + m.CallID + " where one for " + fmt.Sprint(open) + " was due"
			}
			open = open[1:]
			continue
		}
		if len(open) > 0 {
			return "no result for " + fmt.Sprint(open)
		}
		if m.Role == model.User {
			users++
		}
		for _, c := range m.Calls {
			open = append(open, c.ID)
		}
	}
	switch {
	case len(open) > 0:
		return "no result for " + fmt.Sprint(open)
	case users == 0:
		return "no message of a user"
	}
	return ""
}

// host is a program that uses a session, and writes down what it was promised.
type host struct {
	ctx     context.Context
	store   eventlog.Store
	journal *os.File
	until   string // the note at which the process ends itself; "" is none
	hist    history
	rt      *transom.Runtime
	model   *llm
	s       *transom.Session
	working sync.WaitGroup
	sending sync.Mutex // the journal has messages in the order in which they were taken
}

const sessionID = "s"

// newHost opens a runtime over a store. The journal lies in dir.
func newHost(ctx context.Context, store eventlog.Store, dir string) (*host, error) {
	return history{}.host(ctx, store, dir)
}

func (hist history) host(ctx context.Context, store eventlog.Store, dir string) (*host, error) {
	h := &host{ctx: ctx, store: store, hist: hist}
	h.model = &llm{broken: func(why string) { h.note("broken %s", why) }}
	var err error
	if h.journal, err = os.OpenFile(filepath.Join(dir, "journal"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600); err != nil {
		return nil, err
	}
	cfg := transom.Config{Store: store, Provider: h.model, Dir: dir}
	if hist.tracked {
		cfg.Dir, cfg.BuiltIns = filepath.Join(dir, "work"), builtIns
		if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
			return nil, err
		}
	}
	h.rt, err = transom.Open(cfg)
	return h, err
}

// note writes a line into the journal. One write, so that a kill leaves it whole.
func (h *host) note(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	_, _ = h.journal.WriteString(line + "\n")
	if h.until != "" && strings.HasPrefix(line, h.until) {
		die()
	}
}

func (h *host) tools() []tool.Tool {
	effect := func(text string) tool.Handler {
		return func(_ context.Context, c tool.Call) (tool.Result, error) {
			h.note("effect %s", c.ID)
			return tool.Result{Text: text}, nil
		}
	}
	own := func(name, text string) tool.Tool {
		return tool.Tool{Name: name, SkipPermission: true, Handler: effect(text)}
	}
	remote := func(name string, terminal bool) tool.Tool {
		return tool.Tool{Name: name, SkipPermission: true, IsTerminal: terminal}
	}
	return []tool.Tool{
		own("probe", "probed"), own("large", strings.Repeat("0123456789", 5000)),
		{Name: "ask", Handler: effect("asked")},
		remote("host", false), remote("push", false), remote("halt", false), remote("wait", false),
		remote("clear", true), remote("clearx", false), remote("clearabort", true),
	}
}

func (h *host) approve(context.Context, transom.PermissionRequest) transom.Decision {
	h.note("question")
	return transom.Decision{Kind: "approve-once"}
}

func (h *host) create() (err error) {
	h.s, err = h.rt.CreateSession(h.ctx, transom.SessionConfig{
		ID: sessionID, Tools: h.tools(), OnPermission: h.approve,
		SystemMessage: transom.SystemMessage{Mode: "replace", Content: "SYS"}, Agents: h.agents(), TrackFiles: h.hist.tracked,
	})
	if err == nil {
		h.serve()
	}
	return err
}

func (h *host) resume(goOn bool) (err error) {
	h.s, err = h.rt.ResumeSession(h.ctx, sessionID, transom.ResumeConfig{
		Tools: h.tools(), OnPermission: h.approve, ContinuePendingWork: goOn,
		SystemMessage: &transom.SystemMessage{Mode: "replace", Content: "SYS"}, Agents: h.agents(),
	})
	if err != nil {
		return err
	}
	h.serve()
	if goOn {
		err = h.takeUp()
	}
	return err
}

// takeUp answers what a host was asked for before the resume, as docs/protocol.md
// has it.
func (h *host) takeUp() error {
	lines, err := h.s.Messages()
	if err != nil {
		return err
	}
	open := map[string]event.ExternalToolRequested{}
	var asked []string
	for _, line := range lines {
		e, err := event.Decode(line)
		if err != nil {
			return err
		}
		switch e.Type {
		case event.TypeSessionResume:
			asked = slices.Collect(maps.Keys(open)) // what comes later is in the events
		case event.TypeExternalToolRequested:
			if p, err := event.As[event.ExternalToolRequested](e); err == nil {
				open[p.ToolCallID] = p
			}
		case event.TypeToolComplete:
			if p, err := event.As[event.ToolComplete](e); err == nil {
				delete(open, p.ToolCallID)
			}
		}
	}
	for _, id := range asked {
		if p, ok := open[id]; ok {
			h.working.Go(func() { h.react(h.s, p) })
		}
	}
	return nil
}

// serve reads the session's events and answers its requests.
func (h *host) serve() {
	s := h.s
	h.working.Go(func() {
		for e, err := range s.Events().All(h.ctx) {
			if err != nil {
				return
			}
			if e.Persisted() {
				h.note("event %s %s", e.ID, e.Type)
			}
			if p, ok := e.Payload.(event.ExternalToolRequested); ok {
				h.working.Go(func() { h.react(s, p) })
			}
		}
	})
}

// react is the handler of the host's tools.
func (h *host) react(s *transom.Session, p event.ExternalToolRequested) {
	var args struct{ Prompt string }
	_ = json.Unmarshal(p.Arguments, &args)
	h.note("asked %s", p.ToolName)
	fail := func(err error) {
		if err != nil {
			h.note("refused %s: %v", p.ToolName, err)
		}
	}
	switch p.ToolName {
	case "clear", "clearx", "clearabort":
		_, err := s.History().ClearContext(h.ctx, args.Prompt)
		if err == nil {
			h.note("cleared %s", args.Prompt)
		}
		fail(err)
		if p.ToolName == "clearabort" {
			fail(s.Abort(h.ctx))
			return
		}
	case "wait":
		return // for ever
	case "halt":
		fail(s.Abort(h.ctx))
		return
	case "push":
		for _, m := range []transom.Message{{Prompt: "«q1»"}, {Prompt: "«steer»", Immediate: true}, {Prompt: "«q2»"}, {Prompt: "«q3»"}} {
			h.send(s, m)
		}
		h.note("pushed")
	}
	s.Post(transom.AnswerTool{RequestID: p.RequestID, Result: json.RawMessage(`"the host's result"`)}, func(_ any, err error) { fail(err) })
}

func (h *host) send(s *transom.Session, m transom.Message) string {
	h.sending.Lock()
	defer h.sending.Unlock()
	id, err := s.Send(h.ctx, m)
	if err != nil {
		h.note("refused send: %v", err)
		return ""
	}
	h.note("sent %s %t %s", id, m.Immediate, m.Prompt)
	return id
}

// say sends a prompt and waits until the session is idle after its turn. Where an
// abort left the prompt waiting behind others, another message sets them going.
func (h *host) say(prompt string) error {
	events := h.s.Subscribe()
	defer events.Close()
	id, taken := h.send(h.s, transom.Message{Prompt: prompt}), false
	if id == "" {
		return fmt.Errorf("%s was refused", prompt)
	}
	for e, err := range events.All(h.ctx) {
		if err != nil {
			return fmt.Errorf("waiting for the end of %s: %w", prompt, err)
		}
		switch p := e.Payload.(type) {
		case event.UserMessage:
			taken = taken || p.MessageID == id
		case event.SessionIdle:
			if taken {
				h.note("idle %s", prompt)
				return nil
			}
			// An idle of before the prompt may come behind it: only where it stands in
			// the queue, and nothing is done, has it been left there.
			now := h.s.Info()
			left := slices.ContainsFunc(now.Queue, func(q transom.Pending) bool { return q.MessageID == id })
			if left && !now.Processing {
				h.send(h.s, transom.Message{Prompt: "«nudge»"})
			}
		}
	}
	return errors.New("the session ended while " + prompt + " was at work")
}

// end closes all in order.
func (h *host) end() error {
	var err error
	if h.s != nil {
		err = h.s.Close(h.ctx)
	}
	err = errors.Join(err, h.rt.Close(h.ctx))
	h.working.Wait()
	if c, ok := h.store.(interface{ Close() error }); ok {
		err = errors.Join(err, c.Close())
	}
	return errors.Join(err, h.journal.Close())
}
