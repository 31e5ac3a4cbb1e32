package turn

import (
	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/internal/window"
)

// How a message was delivered, as clients see it.
const (
	deliveredIdle     = "idle"
	deliveredQueued   = "queued"
	deliveredSteering = "steering"
)

// send takes a message: it starts a loop where the session is idle, and waits
// for its turn otherwise (S7: nothing a user typed is lost).
func (m *machine) send(in Send) {
	msg := in.Message
	msg.Prompt, msg.DisplayPrompt = valid(msg.Prompt), valid(msg.DisplayPrompt)
	if msg.MessageID == "" {
		msg.MessageID = m.in.NewID()
	}
	m.ready.Result = msg.MessageID
	m.closeLost()
	if m.s.Live.Parked {
		m.closeStranded()
	}
	m.hold(msg.MessageID, in.Headers)
	if m.s.Phase() != Idle {
		m.emit(msg)
		m.emit(event.PendingModified{})
		return
	}
	m.emit(event.PendingModified{})
	if m.s.Live.Paused && !msg.Steering {
		m.emit(msg) // until the queue goes on
		return
	}
	if msg.Command {
		m.emit(msg)
		m.next(false)
		return
	}
	if len(m.s.Queue) == 0 && len(m.s.Steering) == 0 && m.s.Rewind == nil {
		if m.hooked() || m.uncomposed() || m.unconnected() {
			m.emit(msg) // it waits for them
		}
		m.startLoop(deliveredIdle, msg)
		return
	}
	m.emit(msg) // behind the messages that an abort or a restart left waiting
	m.next(false)
}

// hold keeps what must not be written down until the message has its turn.
func (m *machine) hold(id string, headers map[string]string) {
	if len(headers) == 0 {
		return
	}
	waiting := map[string]map[string]string{id: headers}
	for k, v := range m.s.Live.Waiting {
		waiting[k] = v
	}
	m.s.Live.Waiting = waiting
}

// next says what follows a loop that has ended: the seed of a clear made in it,
// messages meant to steer it, the queue, or idleness. A seed that an abort left
// waiting is no turn's of its own: the next message follows it (S8).
func (m *machine) next(seeded bool) {
	m.s.Live.Headers = nil
	if m.s.Rewind == nil {
		m.s.Live.Resting = false // unless it turns out below that there is nothing else
	}
	switch {
	case m.s.Rewind != nil:
		m.backAgain(seeded) // before anything is added behind it
	case seeded && m.s.Window.Seed() != nil:
		m.startSeeded()
	case len(m.s.Steering) > 0:
		m.startLoop(deliveredSteering, m.s.Steering...)
	case len(m.s.Queue) > 0 && !m.s.Live.Paused && m.s.Queue[0].Command:
		m.startCommand(m.s.Queue[0])
	case len(m.s.Queue) > 0 && !m.s.Live.Paused:
		m.startLoop(deliveredQueued, m.s.Queue[0])
	case m.agent == "" && m.s.awaited():
		m.rest()
	case m.hooked() && !m.quiet:
		m.askStop()
	default:
		m.idle(false)
	}
}

// startSeeded begins the turn of a clear's seed (M13, S5), followed by steering
// messages that the model has not seen (S7).
func (m *machine) startSeeded() {
	seed := m.s.Window.Seed()
	msgs := []event.Queued{{MessageID: seed.ID, Prompt: seed.Text, Source: seedSource}}
	m.startLoop(deliveredQueued, append(msgs, m.s.Steering...)...)
}

const seedSource = window.SeedSource

// idle says that there is nothing more to do.
func (m *machine) idle(aborted bool) {
	switch {
	case m.agent != "":
		m.over = append(m.over, m.agent)
		return
	case !aborted && m.s.awaited():
		m.rest()
		return
	}
	m.s.Live.Resting = false
	m.emit(event.AssistantIdle{Aborted: aborted})
	m.emit(event.SessionIdle{Aborted: aborted, Mode: m.s.Mode, BackgroundTasks: m.backgroundTasks()})
}
