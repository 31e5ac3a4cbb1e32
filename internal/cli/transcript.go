package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/eventlog"
	"github.com/transom-run/transom/internal/lazy"
	"github.com/transom-run/transom/internal/turn"
	"github.com/transom-run/transom/model"
)

// transcript tells a log as a story, record by record: which windows there were,
// what was said in each, what a clear removed.
type transcript struct {
	p     *page
	fold  turn.Durable
	calls map[string]calling

	records int
	damages int
	last    time.Time
	begun   bool // the first window has its heading

	// held tells of a message of the user. A system message that is new stands
	// behind it in the log and before it in the window.
	held func()
}

// calling is a call that the story has told of.
type calling struct {
	name   string
	clears uint64 // made before it: the number of its window
}

func newTranscript(p *page) *transcript { return &transcript{p: p, calls: map[string]calling{}} }

// record tells of one line of the log.
func (t *transcript) record(rec eventlog.Record) {
	e, err := event.Decode(rec.Line)
	if err != nil || e.Type != event.TypeSystemMessage {
		t.tellHeld()
	}
	if err == nil {
		var next turn.Durable
		if next, err = t.fold.Apply(e); err == nil {
			if tell := tellers.Get()[e.Type]; tell != nil {
				err = tell(t, e)
			} else if !slices.Contains(quiet, e.Type) && !e.Private() {
				t.item("event", e.Type)
			}
			t.fold = next
		}
	}
	if err != nil {
		t.damage(eventlog.Damage{Pos: rec.Pos, Bytes: int64(rec.Next - rec.Pos), Reason: err.Error()})
		return
	}
	t.records++
	if !e.Timestamp.IsZero() {
		t.last = e.Timestamp
	}
}

// tellHeld tells what was held back.
func (t *transcript) tellHeld() {
	if tell := t.held; tell != nil {
		t.held = nil
		tell()
	}
}

// damage tells of a stretch that could not be read.
func (t *transcript) damage(d eventlog.Damage) {
	t.tellHeld()
	t.damages++
	text := d.String() + "; passed over"
	if d.Dropped {
		text = d.String() + "; the next record that is written replaces it"
	}
	t.item("DAMAGE", text)
}

// heading opens the first window. What a session says of itself stands before it.
func (t *transcript) heading() {
	if !t.begun {
		t.begun = true
		t.p.head("Window %d", t.fold.Clears+1)
	}
}

func (t *transcript) item(label, text string) { t.heading(); t.p.item(label, text) }

// quiet are the records that say nothing a reader of the story would miss.
var quiet = []string{
	event.TypeTurnStart, event.TypeTurnEnd, event.TypeToolStart,
	event.TypePermissionRequested, event.TypeExternalToolRequested, event.TypeExternalToolCompleted,
	event.TypeTitleChanged, event.TypeToolsUpdated, event.TypePendingModified,
	event.TypeUsageInfo, event.TypeAssistantUsage, event.TypeAssistantIdle, event.TypeSessionIdle,
}

// tellers has one function a type of record that is worth a line.
var tellers = lazy.Value[map[string]func(*transcript, *event.Event) error]{Make: func() map[string]func(*transcript, *event.Event) error {
	return map[string]func(*transcript, *event.Event) error{
		event.TypeSessionStart:        teller((*transcript).start),
		event.TypeSystemMessage:       teller((*transcript).system),
		event.TypeUserMessage:         teller((*transcript).user),
		event.TypeAssistantMessage:    teller((*transcript).assistant),
		event.TypePermissionCompleted: teller((*transcript).permission),
		event.TypeToolComplete:        teller((*transcript).result),
		event.TypeContextCleared:      teller((*transcript).cleared),
		event.TypeTruncated:           teller((*transcript).truncated),
		event.TypeFileCaptured: teller(func(t *transcript, _ *event.Event, p event.FileCaptured) {
			t.item("writes", p.Path)
		}),
		event.TypeSessionResume: teller(func(t *transcript, e *event.Event, p event.SessionResume) {
			text := stamp(e.Timestamp)
			if p.AlreadyInUse {
				text += ", while another process had the session open"
			}
			t.item("resumed", text)
		}),
		event.TypeSessionShutdown: teller(func(t *transcript, e *event.Event, p event.SessionShutdown) {
			text := stamp(e.Timestamp)
			if p.ShutdownType != "routine" {
				text += ", " + p.ShutdownType + " " + p.ErrorReason
			}
			t.item("ended", text)
		}),
		event.TypeAbort: teller(func(t *transcript, _ *event.Event, p event.Abort) { t.item("aborted", words(p.Reason)) }),
		event.TypeSessionError: teller(func(t *transcript, _ *event.Event, p event.SessionError) {
			t.item("ERROR", p.Message)
		}),
		event.TypeSessionWarning: teller(func(t *transcript, _ *event.Event, p event.SessionWarning) {
			t.item("warning", p.Message)
		}),
		event.TypeSessionInfo: teller(func(t *transcript, _ *event.Event, p event.SessionInfo) {
			t.item("info", p.Message)
		}),
		event.TypeModelCallFailure: teller(func(t *transcript, _ *event.Event, p event.ModelCallFailure) {
			t.item("failed", "a model call: "+p.ErrorMessage)
		}),
		event.TypeTurnRetry: teller(func(t *transcript, _ *event.Event, p event.TurnRetry) {
			t.item("retry", p.Reason)
		}),
		event.TypeModelChange: teller(func(t *transcript, _ *event.Event, p event.ModelChange) {
			t.item("model", p.NewModel)
		}),
		event.TypeModeChanged: teller(func(t *transcript, _ *event.Event, p event.ModeChanged) {
			t.item("mode", p.NewMode)
		}),
	}
}}

func teller[T event.Payload](f func(*transcript, *event.Event, T)) func(*transcript, *event.Event) error {
	return func(t *transcript, e *event.Event) error {
		p, err := event.As[T](e)
		if err == nil {
			f(t, e, p)
		}
		return err
	}
}

func (t *transcript) start(e *event.Event, p event.SessionStart) {
	t.p.line("  %-*s%s", labelWidth-2, "started", stamp(e.Timestamp))
	for _, f := range []struct{ label, text string }{
		{"model", p.SelectedModel}, {"directory", p.Context.Cwd}, {"written by", p.Producer + " " + p.CopilotVersion},
	} {
		if strings.TrimSpace(f.text) != "" {
			t.p.item(f.label, f.text)
		}
	}
}

func (t *transcript) system(_ *event.Event, p event.SystemMessage) {
	t.heading()
	showSystem(t.p, p.Role, p.Content)
	t.tellHeld()
}

// showSystem shows the beginning of a system message, which is long and the same
// each time; all of it on a page that cuts nothing.
func showSystem(p *page, role, text string) {
	if p.cut > 0 {
		p.short(role, strings.Join(strings.Fields(text), " "), systemLines)
		return
	}
	p.item(role, text)
}

const systemLines = 2

func (t *transcript) user(_ *event.Event, p event.UserMessage) {
	seed := t.fold.Window.Seed()
	t.held = func() {
		switch {
		case seed != nil && seed.ID == p.MessageID:
			// the seed, which was told with the clear
		case p.Delivery == "steering":
			t.item("user", "(while the turn ran) "+p.Content)
		default:
			t.item("user", p.Content)
		}
		if n := len(p.Attachments); n > 0 {
			t.item("", fmt.Sprintf("(with %s)", plural(n, "attachment", "attachments")))
		}
	}
}

func (t *transcript) assistant(_ *event.Event, p event.AssistantMessage) {
	if p.ReasoningText != "" {
		t.item("reasoning", p.ReasoningText)
	}
	if p.Content != "" {
		t.item("assistant", p.Content)
	}
	for _, c := range p.ToolRequests {
		t.calls[c.ToolCallID] = calling{c.Name, t.fold.Clears}
		t.item("call", c.Name+" "+string(c.Arguments))
	}
}

func (t *transcript) permission(_ *event.Event, p event.PermissionCompleted) {
	text := strings.TrimSpace(t.calls[p.ToolCallID].name + " " + verdict(p.Result.Kind))
	if p.Result.Feedback != "" {
		text += ": " + p.Result.Feedback
	}
	t.item("permission", text)
}

// verdict is a permission answer of the protocol in words.
func verdict(kind string) string {
	switch kind {
	case "approved-for-session":
		return "approved for the session"
	case "approved-for-location":
		return "approved in this place"
	case "denied-by-rules":
		return "denied by a rule"
	case "denied-interactively-by-user":
		return "denied by the user"
	case "denied-no-approval-rule-and-could-not-request-from-user":
		return "denied: nobody could be asked"
	case "denied-by-content-exclusion-policy":
		return "denied: the content is excluded"
	case "denied-by-permission-request-hook":
		return "denied by a hook"
	}
	return kind
}

// words is a name of the protocol, such as user_initiated, in words.
func words(name string) string { return strings.ReplaceAll(name, "_", " ") }

func (t *transcript) result(_ *event.Event, p event.ToolComplete) {
	label, text := "result", ""
	if !p.Success {
		label = "failed"
	}
	if p.Result != nil {
		text = p.Result.Content
		if n := len(p.Result.Binary); n > 0 {
			text += fmt.Sprintf(" (with %s)", plural(n, "file", "files"))
		}
	}
	switch {
	case p.Error == nil:
	case text == "":
		text = p.Error.Message
	case !strings.Contains(text, p.Error.Message):
		text += "\n(not told to the model: " + p.Error.Message + ")"
	}
	c, known := t.calls[p.ToolCallID]
	switch {
	case !known:
		text = p.ToolCallID + ": " + text
	case c.clears != t.fold.Clears:
		text = fmt.Sprintf("%s\n(of %s, a call of window %d: kept here, never shown to the model)", text, c.name, c.clears+1)
	}
	t.item(label, text)
}

func (t *transcript) cleared(_ *event.Event, p event.ContextCleared) {
	t.item("CLEARED", fmt.Sprintf("%s removed: the model sees nothing of window %d any more. The next one begins with the prompt of the clear, its seed.", plural(p.MessagesCleared, "message", "messages"), t.fold.Clears+1))
	t.p.head("Window %d", t.fold.Clears+2)
	t.item("seed", p.InitialMessage)
}

// truncated tells of a boundary: nothing of what stands before it is taken out of
// the story.
func (t *transcript) truncated(_ *event.Event, p event.Truncated) {
	text := fmt.Sprintf("the history goes on behind its first %s: what followed them is kept here, and neither clients nor the model see it any more.", plural(int(p.Kept), "event", "events"))
	if n := len(p.Restored); n > 0 {
		text += fmt.Sprintf(" %s brought back.", plural(n, "file", "files"))
	}
	t.item("TRUNCATED", text)
}

// end tells how the session was left.
func (t *transcript) end() {
	t.tellHeld()
	t.heading()
	var left []string
	if s := t.fold.Window.Seed(); s != nil {
		left = append(left, "the turn that begins with the seed has not started")
	} else if t.fold.Loop.Open {
		left = append(left, "a turn was under way")
	}
	for _, c := range t.fold.Loop.Calls {
		if !c.Done && c.Permission != "" {
			left = append(left, "the question whether "+c.Name+" may run is open")
		} else if !c.Done {
			left = append(left, "the call of "+c.Name+" has no result")
		}
	}
	for _, q := range append(t.fold.Steering, t.fold.Queue...) {
		left = append(left, "a message waits: "+oneLine(q.Prompt, 60))
	}
	for _, text := range left {
		t.p.item("unfinished", text)
	}
	t.p.line("")
	text := fmt.Sprintf("%s, %s", plural(t.records, "record", "records"), plural(int(t.fold.Clears)+1, "window", "windows"))
	if t.damages > 0 {
		text += ", " + plural(t.damages, "damaged place", "damaged places")
	}
	t.p.line("%s. The last record is of %s.", text, stamp(t.last))
}

// showMessages prints messages as a model is sent them.
func showMessages(p *page, msgs []model.Message) {
	names := map[string]string{}
	for _, m := range msgs {
		switch {
		case m.Role == model.System || m.Role == model.Developer:
			showSystem(p, string(m.Role), m.Text)
		case m.Role == model.ToolRole:
			p.item("result", strings.TrimPrefix(names[m.CallID]+": "+m.Text, ": "))
		case m.Text != "" || len(m.Calls) == 0:
			p.item(string(m.Role), m.Text)
		}
		if n := len(m.Images); n > 0 {
			p.item("", fmt.Sprintf("(with %s)", plural(n, "picture", "pictures")))
		}
		for _, c := range m.Calls {
			names[c.ID] = c.Name
			p.item("call", c.Name+" "+c.Arguments)
		}
	}
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return "an unknown time"
	}
	return t.Local().Format("2006-01-02 15:04:05")
}
