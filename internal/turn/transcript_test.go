package turn

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/internal/policy"
	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/model/tokens"
	"github.com/transom-run/transom/tool"
)

var rewrite = flag.Bool("rewrite", false, "write what the core does into the transcripts")

// TestTranscripts plays testdata/*.txt. A transcript is a list of scenes; "=" and
// a title begins one, commands follow, and after "----" stands what they gave:
//
//	> command         as it was given
//	user idle "go"    events, without those that only measure
//	→ model …         the request of a model call, "@" for the time before a prompt
//	(thinking)        the phase after the command
//
// go test ./internal/turn -run Transcripts -rewrite writes the outcomes anew:
// read them against the rule before they are kept.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) {
			raw, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			head, scenes, _ := strings.Cut(string(raw), "\n= ")
			out.WriteString(head)
			for _, scene := range strings.Split(scenes, "\n= ") {
				title, body, _ := strings.Cut(scene, "\n")
				commands, _, _ := strings.Cut(body, "\n----\n")
				out.WriteString("\n= " + title + "\n" + commands + "\n----\n")
				t.Run(title, func(t *testing.T) { out.WriteString(play(t, commands)) })
			}
			if *rewrite {
				if err := os.WriteFile(name, []byte(out.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if diff := cmp.Diff(strings.Split(string(raw), "\n"), strings.Split(out.String(), "\n")); diff != "" {
				t.Errorf("%s (-file +core):\n%s", name, diff)
			}
		})
	}
}

// player is a world that takes commands.
type player struct {
	*world
	b          strings.Builder
	fields     []string // of the command, still to be read
	forced     bool     // of the newest permission prepared
	free       bool     // of the newest permission prepared
	agent      string   // whose model answers
	compaction uint64   // the newest summary asked for
	counting   uint64   // id of the newest count
}

func play(t *testing.T, commands string) string {
	p := &player{world: newWorld(t)}
	for _, line := range strings.Split(commands, "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fmt.Fprintf(&p.b, "> %s\n", line)
		p.fields = split(t, line)
		p.line()
		if len(p.fields) > 0 {
			t.Fatalf("%s: %q is left over", line, p.fields)
		}
	}
	return p.b.String() + "\n"
}

// split reads words, Go strings and JSON objects.
func split(t *testing.T, line string) []string {
	var out []string
	for line = strings.TrimSpace(line); line != ""; line = strings.TrimSpace(line) {
		n := strings.IndexByte(line, ' ')
		switch {
		case line[0] == '"':
			q, err := strconv.QuotedPrefix(line)
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			n = len(q)
			s, _ := strconv.Unquote(q)
			out, line = append(out, s), line[n:]
			continue
		case line[0] == '{':
			d := json.NewDecoder(strings.NewReader(line))
			var raw json.RawMessage
			if err := d.Decode(&raw); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			n = int(d.InputOffset())
		case n < 0:
			n = len(line)
		}
		out, line = append(out, line[:n]), line[n:]
	}
	return out
}

// line makes a command: "@ID" before it says which sub-agent's model it is about.
func (p *player) line() {
	p.agent = ""
	name := p.word()
	if id, ok := strings.CutPrefix(name, "@"); ok {
		p.agent, name = id, p.word()
	}
	p.command(name)
}

func (p *player) word() string {
	if len(p.fields) == 0 {
		return ""
	}
	w := p.fields[0]
	p.fields = p.fields[1:]
	return w
}

// flags takes the words that are left as key=value, or key alone.
func (p *player) options() map[string]string {
	out := map[string]string{}
	for len(p.fields) > 0 {
		k, v, _ := strings.Cut(p.word(), "=")
		out[k] = v
	}
	return out
}

// do makes a step and writes down what it gave.
func (p *player) do(body Body) {
	ready, err := p.step(body)
	var refusal *Refusal
	if errors.As(err, &refusal) {
		fmt.Fprintf(&p.b, "refused %s: %s\n", refusal.Kind, refusal.Msg)
	} else if err != nil {
		fmt.Fprintf(&p.b, "error: %v\n", err)
	}
	p.show(&ready)
}

func (p *player) show(r *Ready) {
	for _, f := range r.Files {
		fmt.Fprintf(&p.b, "file of %d bytes\n", len(f.Text))
	}
	for _, e := range r.Events {
		if line := p.event(e); line != "" {
			if e.AgentID != "" {
				line = "[" + e.AgentID + "] " + line
			}
			p.b.WriteString(line + "\n")
		}
	}
	if r.Sync {
		p.b.WriteString("synced\n")
	}
	if r.Cancel {
		p.b.WriteString("→ cancel effects\n")
	}
	for _, id := range r.CancelAgents {
		fmt.Fprintf(&p.b, "→ cancel effects of %s\n", id)
	}
	for _, e := range r.Start {
		switch e := e.(type) {
		case *StartModel:
			fmt.Fprintf(&p.b, "→ %smodel %s\n", of(e.Fence.Agent), showMessages(e.Request.Messages))
		case *StartTool:
			fmt.Fprintf(&p.b, "→ run %s %s %s\n", e.Call.ID, e.Tool.Name, e.Call.Arguments)
		case *StartCompaction:
			n := len(e.Request.Messages) - 1
			p.compaction = e.ID
			fmt.Fprintf(&p.b, "→ summarise %s\n", showMessages(e.Request.Messages[:n]))
		case *StartCount:
			p.counting = e.ID
			fmt.Fprintf(&p.b, "→ %scount %d messages for %s\n", of(e.Agent), len(e.Messages), e.Model)
		case *CallHook:
			fmt.Fprintf(&p.b, "→ %shook %s%s\n", of(e.Agent), e.Kind, hookInput(e.Input))
		case *StartTimer:
			fmt.Fprintf(&p.b, "→ wait %s for %s\n", e.After, e.Fence.Call)
		case *PreparePermission:
			fmt.Fprintf(&p.b, "→ prepare %s %s\n", e.Call.ID, e.Tool.Name)
			p.forced, p.free = e.Forced, e.Free
		case *RunCommand:
			fmt.Fprintf(&p.b, "→ command %s\n", e.Text)
		case *AskPermission:
			fmt.Fprintf(&p.b, "→ ask %s %s\n", e.Call, e.Tool)
		}
	}
	p.showBack(r)
	switch v := r.Result.(type) {
	case bool, int, string, []string:
		if s, ok := v.(string); ok && strings.HasPrefix(s, "id") {
			break // of a message
		}
		fmt.Fprintf(&p.b, "result %v\n", v)
	}
	fmt.Fprintf(&p.b, "(%s)\n", p.s.Phase())
}

// of names a sub-agent before what is its.
func of(agent string) string {
	if agent == "" {
		return ""
	}
	return "[" + agent + "] "
}

// event is one line for an event; "" for those that only measure.
func (p *player) event(e *event.Event) string {
	switch d := e.Payload.(type) {
	case event.UserMessage:
		s := fmt.Sprintf("user %s %q", d.Delivery, d.Content)
		if d.Source != "" {
			s += " source=" + d.Source
			for _, x := range p.log {
				if x.ID == d.MessageID {
					s += " id=that of " + x.Type
				}
			}
		}
		if want := "@" + d.Content; unstamp(d.TransformedContent) != want {
			s += fmt.Sprintf(" transformed=%q", unstamp(d.TransformedContent))
		}
		return s
	case event.TurnStart:
		return "turn " + d.TurnID
	case event.TurnEnd:
		return "turn_end " + d.TurnID
	case event.AssistantMessage:
		s := fmt.Sprintf("assistant %q", d.Content)
		for _, r := range d.ToolRequests {
			s += fmt.Sprintf(" %s:%s%s", r.ToolCallID, r.Name, r.Arguments)
		}
		return s
	case event.ToolStart:
		return fmt.Sprintf("start %s %s %s", d.ToolCallID, d.ToolName, d.Arguments)
	case event.Intent:
		return "intent " + d.ToolCallID
	case event.ToolComplete:
		s := "complete " + d.ToolCallID
		if d.Success {
			s += " success"
		} else {
			s += fmt.Sprintf(" %s %q", d.Error.Code, d.Error.Message)
		}
		if d.Result != nil {
			text := d.Result.Content
			if len(text) > 300 {
				text = text[:300] + "…"
			}
			s += fmt.Sprintf(" result=%q", text)
		}
		return s
	case event.PermissionRequested:
		return "permission? " + p.named(p.asked, d.RequestID)
	case event.PermissionCompleted:
		return "permission " + d.ToolCallID + " " + d.Result.Kind
	case event.ExternalToolRequested:
		return fmt.Sprintf("request %s %s %s", d.ToolCallID, d.ToolName, d.Arguments)
	case event.ExternalToolCompleted:
		return "request_done " + p.named(p.external, d.RequestID)
	case event.ContextCleared:
		return fmt.Sprintf("CLEARED %d %q", d.MessagesCleared, d.InitialMessage)
	case event.SystemMessage:
		return fmt.Sprintf("system %q", d.Content)
	case event.SessionIdle:
		s := "idle"
		if d.Aborted {
			s = "idle aborted"
		}
		if d.BackgroundTasks != nil {
			for _, a := range d.BackgroundTasks.Agents {
				s += " " + a.AgentID + " works"
			}
		}
		return s
	case event.SessionError:
		return fmt.Sprintf("error %s %q", d.ErrorType, d.Message)
	case event.EphemeralNote:
		if n, ok := d.Payload.(event.SessionError); ok {
			return fmt.Sprintf("ephemeral error %s %q", n.ErrorType, n.Message)
		}
		if q, ok := d.Payload.(event.PermissionRequested); ok {
			return "again permission? " + p.named(p.asked, q.RequestID)
		}
	case event.SessionWarning:
		return fmt.Sprintf("warning %s %q", d.WarningType, d.Message)
	case event.SessionResume:
		return fmt.Sprintf("resume continue=%v", d.ContinuePendingWork)
	case event.SessionShutdown:
		return "shutdown " + d.ShutdownType
	case event.Queued:
		if d.Steering {
			return fmt.Sprintf("steering %q", d.Prompt)
		}
		return fmt.Sprintf("queued %q", d.Prompt)
	case event.MessageDelta:
		return fmt.Sprintf("delta %q", d.DeltaContent)
	case event.ModelChange:
		return fmt.Sprintf("model %q effort %q", d.NewModel, d.ReasoningEffort)
	case event.ModeChanged:
		return "mode " + d.NewMode
	case event.Abort:
		return "abort " + d.Reason
	case event.CompactionStart:
		return "compaction " + d.Trigger
	case event.CompactionComplete:
		if d.Success {
			return fmt.Sprintf("compacted %d messages", d.MessagesRemoved)
		}
		return fmt.Sprintf("not compacted: %s", d.Error)
	case event.SubagentStarted:
		return fmt.Sprintf("AGENT started %s call=%q", d.AgentName, d.ToolCallID)
	case event.SubagentCompleted:
		return fmt.Sprintf("AGENT completed cancelled=%v calls=%d", d.Cancelled, d.TotalToolCalls)
	case event.SubagentFailed:
		return fmt.Sprintf("AGENT failed %q", d.Error)
	case event.Notification:
		return fmt.Sprintf("notification %s %s", d.Kind.AgentID, d.Kind.Status)
	case event.AgentStarted, event.AgentEnded, event.AgentMoved, event.AgentRemoved:
		return e.Type
	case event.LoopEnd, event.SessionStart, event.TurnRetry:
		return e.Type
	}
	if s := scheduled(e); s != "" {
		return s
	}
	return fact(e)
}

func (p *player) named(ids map[string]string, id string) string {
	for call, have := range ids {
		if have == id {
			return call
		}
	}
	return "?"
}

// client reads the options of who attaches: tools=a,b!,c* ask deny.
func (p *player) client(id string, o map[string]string) Client {
	_, mute := o["deaf"]
	_, hooks := o["hooks"]
	_, elicits := o["elicits"]
	c := Client{ID: id, Tools: registry(p.t, o["tools"]), Permission: !mute, Hooks: hooks, Elicits: elicits}
	if name, ok := o["command"]; ok {
		c.Commands = []event.CommandInfo{{Name: name}}
	}
	return c
}

func settings(o map[string]string) Settings {
	_, ask := o["ask"]
	_, remote := o["remote"]
	_, stream := o["stream"]
	_, reads := o["reads"]
	_, compacts := o["compacts"]
	_, completes := o["completes"]
	_, counts := o["counts"]
	var wanted uint64
	if _, ok := o["composes"]; ok {
		wanted = 1
	}
	limit, background, blocking := 1000, 0.05, 0.06
	if n, err := strconv.Atoi(o["limit"]); err == nil {
		limit, background, blocking = n, 0.8, 0.95
	}
	hidden, hides := o["hidden"]
	var agents []AgentDef
	for _, name := range strings.Split(o["agents"], ",") {
		switch kind, only, _ := strings.Cut(name, ":"); {
		case name == "":
		case only != "":
			agents = append(agents, AgentDef{Name: kind, Tools: Filter{true, strings.Split(only, "+")}})
		default:
			agents = append(agents, AgentDef{Name: kind})
		}
	}
	return Settings{Agents: agents, Notice: o["notice"], Hidden: Filter{hides, strings.Split(hidden, ",")}, System: "SYS", Wanted: wanted, TokenLimit: limit, Count: counts, ApproveAll: !ask, Remote: remote, Streaming: stream, BuiltIns: builtIns(reads, completes, len(agents) > 0), Compaction: Compaction{Enabled: compacts, Background: background, Blocking: blocking}, FilesDir: "/files", Rules: rules(o)}
}

// builtIns are tools of this process that the model has where it can read files.
func builtIns(reads, completes, agents bool) *tool.Registry {
	var list []tool.Tool
	if reads {
		list = append(list, tool.Tool{Name: "view", Source: tool.BuiltIn, Handler: func(context.Context, tool.Call) (tool.Result, error) { return tool.Result{}, nil }})
	}
	if completes {
		list = append(list, tool.Tool{Name: CompleteTool, Source: tool.BuiltIn, IsTerminal: true, SkipPermission: true, Handler: func(context.Context, tool.Call) (tool.Result, error) { return tool.Result{}, nil }})
	}
	if agents {
		for _, name := range []string{TaskTool, ReadAgentTool, ListAgentsTool, WriteAgentTool} {
			list = append(list, tool.Tool{Name: name, Source: tool.BuiltIn, SkipPermission: true})
		}
	}
	if list == nil {
		return nil
	}
	r, err := tool.NewRegistry(list)
	if err != nil {
		panic(err)
	}
	return r
}

// commands are the inputs by their names in transcripts.
func (p *player) command(name string) {
	switch name {
	case "new":
		o := p.options()
		p.do(Begin{SessionID: "s", Model: "m", Dir: "/dir", Settings: settings(o), Client: p.client("A", o)})
	case "send":
		m := event.Queued{Prompt: p.word()}
		o := p.options()
		_, m.Steering = o["immediate"]
		_, m.Command = o["command"]
		m.Lead, m.Trail = o["lead"], o["trail"]
		if data, ok := o["image"]; ok {
			m.Attachments = []json.RawMessage{json.RawMessage(fmt.Sprintf(`{"type":"blob","mimeType":"image/png","data":%q}`, data))}
		}
		p.do(Send{Message: m})
	case "model":
		p.answer(p.word())
	case "clear":
		p.do(Clear{Prompt: p.word()})
	case "abort":
		p.do(Abort{})
	case "answer", "throw", "done", "late":
		p.result(name)
	case "allow", "reject", "unavailable", "nonsense", "allow-session", "no-result":
		p.decide(name)
	case "attach":
		id := p.word()
		p.do(Attach{Client: p.client(id, p.options())})
	case "detach":
		id := p.word()
		_, lost := p.options()["lost"]
		p.do(Detach{ClientID: id, Lost: lost})
	case "resume":
		id := p.word()
		o := p.options()
		in := Resume{Client: p.client(id, o), Loaded: p.s.Live.Settings.TokenLimit == 0}
		_, in.Continue = o["continue"]
		_, in.Quiet = o["quiet"]
		in.WasActive = len(p.s.Live.Clients) > 0 && p.s.Phase() != Idle
		if in.Loaded {
			s := settings(o)
			in.Settings = &s
		}
		p.do(in)
	case "kill":
		n := len(p.log)
		if back := p.word(); back != "" {
			k, err := strconv.Atoi(back)
			if err != nil {
				p.t.Fatalf("kill %s: %v", back, err)
			}
			n += k
		}
		p.kill(n)
		fmt.Fprintf(&p.b, "(%s)\n", p.s.Phase())
	case "arrange":
		p.arrange()
	case "ran":
		p.ran()
	case "schedule":
		p.schedule()
	case "schedules":
		fmt.Fprintf(&p.b, "schedules %s\n", p.left())
	case "sleep":
		p.sleep()
	case "pass": // without anybody to tick
		d, err := time.ParseDuration(p.word())
		if err != nil {
			p.t.Fatalf("pass: %v", err)
		}
		p.now = p.now.Add(d)
	case "tick":
		p.do(Tick{})
	case "compact":
		p.do(Compact{Instructions: p.word()})
	case "cancel-compaction":
		p.do(CancelCompaction{})
	case "counted":
		in := Counted{Agent: p.agent, ID: p.counting}
		if word := p.word(); word != "unknown" {
			in.Encoding = tokens.O200k
			for i, into := range []*int{&in.Size.System, &in.Size.Messages, &in.Size.Tools} {
				if i > 0 {
					word = p.word()
				}
				*into, _ = strconv.Atoi(word)
			}
		}
		p.do(in)
	case "summary":
		in := CompactionDone{ID: p.compaction, Took: time.Second}
		if text := p.word(); text == "fail" {
			in.Err = &model.Error{Kind: model.Query, Msg: p.word(), Status: 500}
		} else if text == "toolarge" {
			in.Err = &model.Error{Kind: model.ContextLimit, Msg: "Too long.", Status: 400}
		} else {
			in.Response = model.Response{Model: "m", Message: model.Message{Role: model.Assistant, Text: text}}
		}
		p.do(in)
	case "start":
		p.do(StartAgent{Type: p.word(), Name: p.word(), Prompt: p.word()})
	case "cancel", "remove", "tell", "promote":
		in := ChangeAgent{Op: AgentOp(name), ID: p.word()}
		if name == "tell" {
			in.Message = p.word()
		}
		p.do(in)
	case "cancel-all":
		p.do(ChangeAgent{Op: AgentCancelAll})
	case "time-up":
		p.do(TimeUp{Fence: p.fences[p.word()]})
	case "agents":
		for _, a := range p.s.Agents {
			fmt.Fprintf(&p.b, "%s %s %s turns=%d calls=%d answer=%q error=%q\n", a.ID, a.Type, p.s.Standing(a), a.Turns, a.ToolCalls, a.Answer, a.Error)
		}
	case "prepared":
		p.prepared()
	case "hook":
		p.hook(p.word())
	case "note":
		p.do(Note{Payload: event.SessionInfo{InfoType: "host", Message: p.word()}})
	case "storefail":
		p.do(StoreFailed{Err: errors.New("disk full")})
	case "suspend":
		p.do(Suspend{})
	case "close":
		_, ask := p.options()["ask"]
		p.do(Close{Ask: ask})
	case "configure":
		p.configure(p.options())
	case "state":
		fmt.Fprintf(&p.b, "window %s\nqueue %s steering %s\n", showMessages(p.s.Window.Messages(p.s.System)), prompts(p.s.Queue), prompts(p.s.Steering))
		fmt.Fprintf(&p.b, "count %d clears %d requests %d\n", p.s.Window.Len(), p.s.Clears, p.s.Usage["m"].Requests.Count)
	default:
		p.more(name)
	}
}

// prepared says what there is to ask about a call: a JSON object, none, or fail.
func (p *player) prepared() {
	in := PermissionPrepared{Fence: p.fences[p.word()], Forced: p.forced, Free: p.free}
	switch answer := p.word(); answer {
	case "none":
		in.Permission.None = true
	case "fail":
		in.Err = errors.New(p.word())
	default:
		in.Permission.Request = json.RawMessage(answer)
	}
	p.do(in)
}

// hook answers the oldest hook that was asked, or the newest: a JSON object,
// nothing, or fail.
func (p *player) hook(answer string) {
	in := HookDone{}
	if n := len(p.hooks) - 1; answer == "newest" && n >= 0 {
		in.Agent, in.ID, p.hooks = p.hooks[n].agent, p.hooks[n].id, p.hooks[:n]
		answer = p.word()
	} else if n >= 0 {
		in.Agent, in.ID, p.hooks = p.hooks[0].agent, p.hooks[0].id, p.hooks[1:]
	}
	switch answer {
	case "":
	case "fail":
		in.Err = errors.New(p.word())
	default:
		in.Output = json.RawMessage(answer)
	}
	p.do(in)
}

// hookInput is what a hook is told beyond what all are.
func hookInput(raw json.RawMessage) string {
	var in map[string]any
	if json.Unmarshal(raw, &in) != nil {
		return " " + string(raw)
	}
	delete(in, "sessionId")
	delete(in, "timestamp")
	delete(in, "cwd")
	delete(in, "parentSessionId")
	if t, ok := in["transformedPrompt"].(string); ok {
		in["transformedPrompt"] = unstamp(t)
	}
	if len(in) == 0 {
		return ""
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.Encode(in)
	return " " + strings.TrimSpace(b.String())
}

func prompts(qs []event.Queued) string {
	var out []string
	for _, q := range qs {
		out = append(out, q.Prompt)
	}
	return fmt.Sprintf("%q", out)
}

func (p *player) configure(o map[string]string) {
	in := Configure{}
	for k, v := range o {
		switch k {
		case "model":
			in.Model = &v
		case "mode":
			in.Mode = &v
		case "name":
			in.Name = &v
		case "dir":
			in.Dir = &v
		case "branch":
			in.Place = &event.Context{Cwd: o["at"], Branch: v}
		case "at": // of branch
		case "forget":
			in.Forget = true
		case "allow-all":
			on := v == "on"
			in.ApproveAll = &on
		default:
			p.t.Fatalf("configure %s", k)
		}
	}
	p.do(in)
}

// answer is the model's: text "…", call ID NAME ARGS, chunk "…", fail "…".
func (p *player) answer(kind string) {
	r := model.Response{Model: "m", Message: model.Message{Role: model.Assistant}, Usage: &model.Usage{InputTokens: 10, OutputTokens: 5}}
	switch kind {
	case "chunk":
		p.do(ModelChunk{Fence: p.models[p.agent], Chunk: model.Chunk{Text: p.word()}})
		return
	case "toolarge":
		p.do(ModelFailed{Fence: p.model, Err: &model.Error{Kind: model.ContextLimit, Msg: "Too long.", Status: 400}})
		return
	case "fail", "retry":
		e := &model.Error{Kind: model.Query, Msg: p.word(), Status: 500}
		if kind == "fail" {
			p.do(ModelFailed{Fence: p.models[p.agent], Err: e})
		} else {
			p.do(ModelRetry{Fence: p.models[p.agent], Err: e, Wait: time.Second})
		}
		return
	case "text":
		r.Message.Text = p.word()
		kind = p.word()
	}
	for kind == "call" {
		r.Message.Calls = append(r.Message.Calls, model.Call{ID: p.word(), Name: p.word(), Arguments: p.word()})
		kind = p.word()
	}
	p.do(ModelDone{Fence: p.models[p.agent], Response: r})
}

// result ends a call: by a host's answer, what it threw, or a run in this process.
func (p *player) result(how string) {
	id, text := p.word(), p.word()
	o := p.options()
	r := tool.Result{Text: text, Type: tool.ResultType(o["type"]), Error: o["error"]}
	if n, err := strconv.Atoi(o["times"]); err == nil {
		r.Text = strings.Repeat(text, n)
	}
	switch how {
	case "done":
		c := tool.Call{ID: id, Name: "tool", Arguments: json.RawMessage(`{}`)}
		p.do(ToolDone{Fence: p.fences[id], Outcome: tool.Settle(c, r, nil, nil)})
	case "throw":
		p.do(ToolAnswer{RequestID: p.external[id], Thrown: errors.New(text), Redact: func(s string) string { return strings.ReplaceAll(s, "SECRET", "***") }})
	default:
		p.do(ToolAnswer{RequestID: p.external[id], Result: r})
	}
}

func (p *player) decide(how string) {
	id := p.word()
	raw := map[string]string{"kind": map[string]string{
		"allow": "approve-once", "reject": "reject", "unavailable": "user-not-available", "nonsense": "maybe",
		"allow-session": "approve-for-session", "no-result": "no-result",
	}[how]}
	if how == "reject" {
		raw["feedback"] = p.word()
	}
	b, err := json.Marshal(raw)
	if err != nil {
		p.t.Fatalf("%v", err)
	}
	p.do(PermissionAnswer{RequestID: p.asked[id], Decision: policy.Parse(b)})
}
