package turn

import (
	"slices"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/tool"
)

// resume takes a session up: live, from the log of another process, or from a
// log that a dead process left behind.
func (m *machine) resume(in Resume) {
	l := &m.s.Live
	before := l.Settings.Credits
	if in.Settings != nil {
		l.Settings = *in.Settings
	}
	alone := len(l.Clients) == 0
	in.Client.Continues = in.Continue
	l.Resumed = l.Resumed || in.Loaded
	m.attach(in.Client)
	m.adopt(in)
	if !in.Loaded {
		m.limited(before)
	}
	m.closeLost()
	if in.Track && !m.s.Tracked && m.s.Prompts == 0 {
		m.emit(event.Tracking{})
	}
	switch phase := m.s.Phase(); {
	case phase == Idle && m.s.Rewind != nil:
		m.backAgain(in.Continue)
	case m.s.goingBack() != nil:
		b := *m.s.goingBack()
		b.onward = b.onward || in.Continue
		l.Prep = &preparation{back: &b}
	case phase == Idle && in.Continue && m.waiting():
		m.next(true)
	case phase == Stranded && in.Continue:
		m.revive()
	case phase == Stranded:
		m.closeStranded()
	case phase == Acting && in.Continue:
		m.rerun(alone)
	case phase == Acting && !in.WasActive:
		m.closeStranded()
	}
	if alone {
		m.resumeAgents(in.Continue)
	}
}

// adopt writes the session.resume event, and what the host set anew.
func (m *machine) adopt(in Resume) {
	p := event.SessionResume{
		ResumeTime: m.now(), SelectedModel: m.s.Model, ReasoningEffort: m.s.Effort, ContextTier: tier(m.s.Tier), Context: event.Context{Cwd: m.s.Dir},
		ContinuePendingWork: in.Continue, EventsFileSizeBytes: in.EventsBytes, EventCount: m.s.Events,
		AlreadyInUse: in.AlreadyInUse, SessionWasActive: in.WasActive, Limits: m.s.limits(),
	}
	if in.Model != nil {
		p.SelectedModel = *in.Model
	}
	if in.Effort != nil {
		p.ReasoningEffort = *in.Effort
	}
	if in.Tier != nil {
		p.ContextTier = tier(*in.Tier)
	} else if p.SelectedModel != m.s.Model {
		p.ContextTier = nil
	}
	if in.Dir != nil {
		p.Context.Cwd = *in.Dir
	}
	if in.Loaded {
		m.emit(event.Epoch{PID: in.PID})
		defer m.forgotten()
	}
	defer m.choose(in.Select)
	if !in.Quiet {
		m.emit(p)
		return
	}
	if p.SelectedModel != m.s.Model || p.ReasoningEffort != m.s.Effort || tierOf(p.ContextTier) != m.s.Tier {
		m.emit(event.ModelChange{PreviousModel: m.s.Model, NewModel: p.SelectedModel, PreviousReasoningEffort: m.s.Effort, ReasoningEffort: p.ReasoningEffort, ContextTier: p.ContextTier})
	}
	if p.Context.Cwd != m.s.Dir {
		m.emit(event.ContextChanged{Cwd: p.Context.Cwd})
	}
}

// waiting reports whether something is left to do: a seed, or messages.
func (m *machine) waiting() bool {
	return m.s.Window.Seed() != nil || m.s.drains()
}

// revive takes up a loop that the log holds and nothing drives (S13).
func (m *machine) revive() {
	l := &m.s.Live
	loop := &m.s.Loop
	l.Parked = false
	if loop.InTurn && !loop.Answered {
		m.ask() // the answer had not come
		return
	}
	if !loop.InTurn {
		turn := loop.Turn
		if loop.Answered {
			turn++ // between two turns
		}
		m.goOn(turn)
		return
	}
	m.rerun(true)
}

// rerun puts the open calls of a batch back to work: requests and questions to
// hosts stand as they are, under their old ids; a call that ran inside a process
// that is gone has an unknown outcome and is never repeated by itself. A call that
// the log does not tell the start of did not run: it begins now. Orphans of
// a clear are not waited for: nothing of theirs is wanted, and the seeded turn is
// (S13). alone: no client that was attached before may still answer.
func (m *machine) rerun(alone bool) {
	var begin []examined
	for _, c := range slices.Clone(m.s.Loop.Calls) {
		switch {
		case alone && c.Orphan && !c.Done:
			m.complete(c.ID, cutOff)
		case c.Done || c.External != "" || slices.Contains(m.s.Live.Running, c.ID) || m.awaited(c.ID) || m.s.liveAgent(c.Agent) >= 0:
		case c.Permission != "":
			if alone {
				m.reask(c)
			}
		case !c.Started && !c.Orphan && string(c.Args) != noArguments:
			begin = append(begin, m.reexamine(c))
		default:
			m.complete(c.ID, m.lost(c))
		}
	}
	m.beginCalls(begin)
	m.settle()
}

// noArguments may stand in the log for arguments that could not be read: such a
// call is not begun from there.
const noArguments = "{}"

// reexamine checks a call of the log again, against the tools that there are now.
func (m *machine) reexamine(c Call) examined {
	e := examined{id: c.ID, name: c.Name, args: c.Args}
	if _, problem := m.recheck(&c, c.Args); problem != nil {
		o := problem.Outcome()
		e.wrong, e.hooked = &o, problem.Kind == tool.UnknownName
	}
	return e
}

// closeStranded closes a loop that is not to be continued: each open call reads
// as interrupted, and a seed waits as the first message of the window.
func (m *machine) closeStranded() {
	if m.s.Live.Parked {
		for _, c := range slices.Clone(m.s.Loop.Calls) {
			if c.open() {
				m.complete(c.ID, m.lost(c))
			}
		}
	}
	m.stop()
}
