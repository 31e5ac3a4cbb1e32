package turn

import (
	"slices"

	"github.com/transom-run/transom/event"
)

// draft is a message on its way to the model.
type draft struct {
	event.Queued
	text  string // what the model reads, where it was made already
	made  bool
	asked int // how many of its hooks were asked
}

// preparation is a loop, or the next turn of one, that waits for hooks before its
// messages enter the window. The messages stand in the queue of the log
// meanwhile. It is never changed in place.
type preparation struct {
	drafts   []draft
	at       int // the draft whose hooks are being asked
	delivery string
	source   string   // the session-start hook to ask first; "" is none
	contexts []string // what hooks added
	turn     int      // of the running loop; 0 begins one
	stopping bool     // the agent-stop hook is asked
	command  string   // id of the slash command that runs; "" is none
	back     *back    // the history goes back; nil: it does not
	ending   bool     // the session-end hook is asked
	system   uint64   // number of the system message that is being composed; 0 is none
	awaited  uint64   // number of the MCP servers that are waited for
	own      uint64   // the same of those that the agent's kind has of its own
	bytes    int64    // of the log, for the last record
	reason   string   // why the session ends; "" is routine
}

// startSource says which session-start hook a loop asks: the first one of a
// session in this process, or that of a clear.
func (m *machine) startSource(msgs []event.Queued) string {
	switch l := &m.s.Live; {
	case m.agent != "":
		if l.Greeted {
			return ""
		}
		return "agent"
	case len(msgs) > 0 && msgs[0].Source == seedSource:
		return "clear"
	case l.Greeted:
		return ""
	case l.Resumed:
		return "resume"
	}
	return "new"
}

// prepare asks the hooks that a preparation still needs, one at a time, and puts
// its messages into the window once there are none.
func (m *machine) prepare(p preparation) {
	l := &m.s.Live
	if m.unconnected() {
		v := &l.Settings
		p.awaited, p.own = v.Awaited, v.own()
		l.Prep = &p
		m.hook(HookConnect, "", nil, nil)
		return
	}
	if m.uncomposed() {
		p.system = l.Settings.Wanted
		l.Prep = &p
		m.hook(HookCompose, "", nil, nil)
		return
	}
	if !m.hooked() {
		l.Prep = nil
		m.deliver(p)
		return
	}
	l.Prep = &p
	if p.source != "" {
		l.Greeted = true
		if m.agent != "" {
			m.hook(HookAgentStart, "", nil, m.agentInput())
			return
		}
		fields := map[string]any{"source": p.source}
		if p.source == "new" && len(p.drafts) > 0 {
			fields["initialPrompt"] = p.drafts[0].Prompt
		}
		m.hook(HookSessionStart, "", nil, fields)
		return
	}
	for ; p.at < len(p.drafts); p.at++ {
		d := p.drafts[p.at]
		switch { // nobody typed it
		case m.agent != "":
			d.asked = 2
		case d.asked == 0 && (d.Source == seedSource || d.Source == agentSource):
			d.asked = 1
		}
		if d.asked > 1 {
			continue
		}
		kind, fields := HookPrompt, map[string]any{"prompt": d.Prompt}
		if d.asked == 1 {
			d.text, d.made = m.transform(d.Queued), true
			kind, fields = HookTransformed, map[string]any{"prompt": d.Prompt, "transformedPrompt": d.text}
		}
		d.asked++
		p.drafts = slices.Clone(p.drafts)
		p.drafts[p.at] = d
		l.Prep = &p
		m.hook(kind, "", nil, fields)
		return
	}
	l.Prep = nil
	m.deliver(p)
}

// unconnected reports whether MCP servers have to be waited for before the next
// model call.
func (m *machine) unconnected() bool {
	v := &m.s.Live.Settings
	return v.Awaited != v.Arrived || v.own() != v.OwnArrived
}

// own numbers what is to be waited for of the servers of the agent's kind; 0 is
// nothing.
func (v *Settings) own() uint64 { return v.OwnServers[v.Kind].Awaited }

// uncomposed reports whether the system message has to be made before the next
// model call.
func (m *machine) uncomposed() bool {
	return m.s.Live.Settings.Wanted != m.s.Live.Settings.Made
}

// prepared takes the answer of a hook that a preparation waited for.
func (m *machine) prepared(kind HookKind, out hookOutput, err error) {
	if m.s.Live.Prep == nil {
		return
	}
	p := *m.s.Live.Prep
	if kind == HookConnect {
		v := &m.s.Live.Settings
		v.Arrived, v.OwnArrived = p.awaited, p.own // a server that failed holds nobody up
		m.prepare(p)
		return
	}
	if err != nil {
		m.unprepared(p, kind, err)
		return
	}
	if kind == HookCompose {
		s := &m.s.Live.Settings
		s.System, s.Made = valid(out.System), p.system
		m.prepare(p)
		return
	}
	if out.AdditionalContext != "" {
		p.contexts = append(slices.Clone(p.contexts), out.AdditionalContext)
	}
	if kind == HookSessionStart || kind == HookAgentStart {
		p.source = ""
		m.prepare(p)
		return
	}
	p.drafts = slices.Clone(p.drafts)
	d := &p.drafts[p.at]
	if kind == HookPrompt && out.ModifiedPrompt != nil {
		d.Prompt = valid(*out.ModifiedPrompt)
	}
	if kind == HookTransformed && out.ModifiedTransformed != nil {
		d.text = valid(*out.ModifiedTransformed)
	}
	m.prepare(p)
}

// unprepared ends a preparation whose hook gave no verdict: the message is not
// sent, and said to be so; what waits behind it goes on.
func (m *machine) unprepared(p preparation, kind HookKind, err error) {
	m.s.Live.Prep = nil
	if p.at < len(p.drafts) && p.drafts[p.at].Source != seedSource {
		m.emit(event.Unqueued{MessageID: p.drafts[p.at].MessageID})
	}
	m.quiet = true
	e := event.SessionError{ErrorType: "hook", Message: "The message was not sent to the model: the " + string(kind) + " hook gave no verdict: " + err.Error() + ". Mend the hook and send the message again."}
	if kind == HookCompose {
		e = event.SessionError{ErrorType: "system_message", Message: "The model was not asked, because there is no system message: " + err.Error() + ". Send the message again once that is mended."}
	}
	m.trouble(e)
	if m.s.Loop.Open {
		m.stop()
	}
	m.next(false)
}

// deliver puts prepared messages into the window and asks the model.
func (m *machine) deliver(p preparation) {
	interaction := m.s.Loop.InteractionID
	if p.turn == 0 {
		interaction = m.in.NewID()
	}
	seeded := len(p.drafts) > 0 && p.drafts[0].Source == seedSource
	if !seeded {
		m.contexts(p, interaction)
	}
	for i, d := range p.drafts {
		delivery := p.delivery
		if i > 0 {
			delivery = deliveredSteering
		}
		m.say(delivery, d, interaction, p.turn)
		if i == 0 && seeded {
			m.contexts(p, interaction)
		}
	}
	m.notice(p, interaction)
	if p.turn > 0 {
		m.think(p.turn)
		return
	}
	m.firstTurn()
}

// contexts puts what hooks added into the window: a user message each.
func (m *machine) contexts(p preparation, interaction string) {
	for _, text := range p.contexts {
		d := draft{Queued: event.Queued{MessageID: m.in.NewID(), Prompt: text, Source: hookSource}, text: text, made: true}
		m.say(p.delivery, d, interaction, p.turn)
	}
}

// notice tells the model what stands in the settings for it, behind a prompt: a
// user message of its own, once in a window.
func (m *machine) notice(p preparation, interaction string) {
	l := &m.s.Live
	told := notice{m.s.Clears, l.Settings.Notice}
	if told.Text == "" || told == l.Noticed || len(p.drafts) == 0 || p.drafts[0].Source == hookSource {
		return
	}
	l.Noticed = told
	d := draft{Queued: event.Queued{MessageID: m.in.NewID(), Prompt: told.Text, Source: noticeSource}, text: told.Text, made: true}
	m.say(p.delivery, d, interaction, p.turn)
}

// noticeSource marks a user.message that tells of the session's settings.
const noticeSource = "session-notice"

// hookSource marks a user.message whose text a hook gave.
const hookSource = "hook"

// maxBlocks bounds how often the agent-stop hook may send the model on for one
// prompt.
const maxBlocks = 25

// askStop asks the agent-stop hook before the session goes idle.
func (m *machine) askStop() {
	l := &m.s.Live
	l.Prep = &preparation{stopping: true}
	if m.agent != "" {
		fields := m.agentInput()
		fields["stopReason"], fields["stop_hook_active"] = "end_turn", l.StopActive
		m.hook(HookSubagentStop, "", nil, fields)
		return
	}
	m.hook(HookAgentStop, "", nil, map[string]any{
		"stopReason": "end_turn", "stop_hook_active": l.StopActive, "transcriptPath": l.Settings.Transcript,
	})
}

// stopDone goes idle, or on with the reason that the hook gave.
func (m *machine) stopDone(out hookOutput, err error) {
	l := &m.s.Live
	l.Prep = nil
	if err == nil && out.Decision == "block" && out.Reason != "" && l.Blocks < maxBlocks {
		l.Blocks++
		l.StopActive = true
		d := draft{Queued: event.Queued{MessageID: m.in.NewID(), Prompt: out.Reason, Source: hookSource}, text: out.Reason, made: true}
		m.deliver(preparation{drafts: []draft{d}, delivery: deliveredQueued})
		return
	}
	if err == nil && out.Decision == "block" && l.Blocks >= maxBlocks {
		m.emit(event.SessionWarning{WarningType: "hook", Message: "The agentStop hook has sent the model on too often for one prompt: the turn ends here."})
	}
	if m.s.drains() {
		m.next(false)
		return
	}
	m.idle(false)
}

// askEnd asks the session-end hook before the last client leaves.
func (m *machine) askEnd(in Close) {
	m.s.Live.Prep = &preparation{ending: true, bytes: in.EventsBytes, reason: in.Reason}
	m.hook(HookSessionEnd, "", nil, map[string]any{"reason": "complete"})
}

// ended ends the session once its session-end hook has answered.
func (m *machine) ended() {
	p := m.s.Live.Prep
	if p == nil || !p.ending {
		return
	}
	m.s.Live.Prep = nil
	m.close(Close{EventsBytes: p.bytes, Reason: p.reason})
}

// hangUp stops what is under way and asks the session-end hook.
func (m *machine) hangUp(in Close) {
	m.s.Live.Prep, m.s.Live.Waits = nil, nil
	if m.s.Loop.Open {
		m.stop()
	}
	m.cutAll()
	m.askEnd(in)
}
