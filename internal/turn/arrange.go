package turn

import (
	"slices"

	"github.com/transom-run/transom/event"
)

// ArrangeOp is what is done to the messages that wait.
type ArrangeOp string

// What can be done, and its result.
const (
	ArrangeInsert ArrangeOp = "insert"        // Message at Position: its id (string)
	ArrangeCopy   ArrangeOp = "copy"          // ID, behind itself: the copy's id (string)
	ArrangeMove   ArrangeOp = "move"          // ID to Position: whether it moved (bool)
	ArrangeEdit   ArrangeOp = "edit"          // ID to the texts of Message: whether they are others (bool)
	ArrangeSteer  ArrangeOp = "steer"         // ID into the running turn: whether there is one (bool)
	ArrangeRemove ArrangeOp = "remove"        // ID: whether it waited (bool)
	ArrangeNewest ArrangeOp = "remove_newest" // whether anything waited (bool)
	ArrangeClear  ArrangeOp = "clear"         // everything
	ArrangePause  ArrangeOp = "pause"         // On: nothing that is queued gets its turn
)

// Arrange changes what waits for its turn. A message whose hooks are being asked
// waits no more.
type Arrange struct {
	Op       ArrangeOp
	ID       string
	Position int // beyond an end it is that end
	Message  event.Queued
	Headers  map[string]string
	On       bool
}

func (Arrange) kind() Kind { return KindArrange }

// CommandDone says that a slash command which had its turn is done with.
type CommandDone struct {
	ID   string // of its message
	Stop bool   // what waits behind it goes on waiting
}

func (CommandDone) kind() Kind { return KindCommandDone }

// RunCommand runs a slash command and posts CommandDone.
type RunCommand struct {
	ID   string // of its message
	Text string // such as "/model gpt-5"
}

// Waiting returns the messages and commands that wait for their turn, and those
// that wait to steer the running one.
func (s *State) Waiting() (queue, steering []event.Queued) {
	taken := func(q event.Queued) bool {
		return s.Live.Prep != nil && slices.ContainsFunc(s.Live.Prep.drafts, func(d draft) bool { return d.MessageID == q.MessageID })
	}
	return slices.DeleteFunc(slices.Clone(s.Queue), taken), slices.DeleteFunc(slices.Clone(s.Steering), taken)
}

// drains reports whether something that waits would have its turn now.
func (s *State) drains() bool {
	return len(s.Steering) > 0 || len(s.Queue) > 0 && !s.Live.Paused
}

func (m *machine) arrange(in Arrange) error {
	queue, steering := m.s.Waiting()
	at := slices.IndexFunc(queue, func(q event.Queued) bool { return q.MessageID == in.ID })
	m.ready.Result = false
	missing := &Refusal{Kind: "not_found", Msg: "no queued item has the id " + in.ID + ": it has had its turn, or was removed"}
	switch in.Op {
	case ArrangePause:
		return m.pause(in.On)
	case ArrangeInsert:
		m.insert(queue, steering, in)
		return nil
	case ArrangeClear:
		m.ready.Result = nil
		if len(queue)+len(steering) > 0 {
			m.reorder(nil, nil)
		}
		return nil
	case ArrangeNewest:
		m.removeNewest(queue, steering)
		return nil
	case ArrangeCopy:
		if at < 0 {
			return missing
		}
		twin := queue[at]
		twin.MessageID, twin.Order = m.in.NewID(), m.s.Ordered+1
		m.hold(twin.MessageID, m.s.Live.Waiting[in.ID])
		m.reorder(slices.Insert(queue, at+1, twin), steering)
		m.ready.Result = twin.MessageID
		return nil
	case ArrangeMove:
		if at < 0 {
			return missing
		}
		to := max(0, min(in.Position, len(queue)-1))
		if to == at {
			return nil
		}
		item := queue[at]
		m.reorder(slices.Insert(slices.Delete(queue, at, at+1), to, item), steering)
	case ArrangeEdit:
		if at < 0 || queue[at].Command || queue[at].Prompt == valid(in.Message.Prompt) && queue[at].DisplayPrompt == valid(in.Message.DisplayPrompt) {
			return nil
		}
		queue[at].Prompt, queue[at].DisplayPrompt = valid(in.Message.Prompt), valid(in.Message.DisplayPrompt)
		m.reorder(queue, steering)
	case ArrangeSteer:
		if at < 0 || queue[at].Command || m.s.Phase() != Thinking && m.s.Phase() != Acting {
			return nil
		}
		item := queue[at]
		item.Steering = true
		m.reorder(slices.Delete(queue, at, at+1), append(steering, item))
	case ArrangeRemove:
		if at >= 0 {
			m.reorder(slices.Delete(queue, at, at+1), steering)
		} else if i := slices.IndexFunc(steering, func(q event.Queued) bool { return q.MessageID == in.ID }); i >= 0 {
			m.reorder(queue, slices.Delete(steering, i, i+1))
		} else {
			return nil
		}
	}
	m.ready.Result = true
	return nil
}

// reorder writes what waits from here on. What is being prepared stands before it.
func (m *machine) reorder(queue, steering []event.Queued) {
	waiting, steers := m.s.Waiting()
	items := append(minus(m.s.Steering, steers), steering...)
	items = append(append(items, minus(m.s.Queue, waiting)...), queue...)
	m.emit(event.QueueOrder{Items: items})
	m.emit(event.PendingModified{})
}

// minus leaves out some of the items.
func minus(all, some []event.Queued) []event.Queued {
	return slices.DeleteFunc(slices.Clone(all), func(q event.Queued) bool {
		return slices.ContainsFunc(some, func(o event.Queued) bool { return o.MessageID == q.MessageID })
	})
}

func (m *machine) insert(queue, steering []event.Queued, in Arrange) {
	msg := in.Message
	msg.Prompt, msg.DisplayPrompt, msg.Steering = valid(msg.Prompt), valid(msg.DisplayPrompt), false
	if msg.MessageID == "" {
		msg.MessageID = m.in.NewID()
	}
	m.hold(msg.MessageID, in.Headers)
	msg.Order = m.s.Ordered + 1
	m.reorder(slices.Insert(queue, max(0, min(in.Position, len(queue))), msg), steering)
	m.drain()
	m.ready.Result = msg.MessageID
}

func (m *machine) removeNewest(queue, steering []event.Queued) {
	switch nq, ns := len(queue), len(steering); {
	case nq+ns == 0:
		return
	case ns == 0 || nq > 0 && newest(queue) > newest(steering):
		m.reorder(without(queue), steering)
	default:
		m.reorder(queue, without(steering))
	}
	m.ready.Result = true
}

func newest(items []event.Queued) int64 {
	n := int64(-1)
	for _, q := range items {
		n = max(n, q.Order)
	}
	return n
}

// without leaves the newest out.
func without(items []event.Queued) []event.Queued {
	n := newest(items)
	i := slices.IndexFunc(items, func(q event.Queued) bool { return q.Order == n })
	return slices.Delete(items, i, i+1)
}

// pause keeps what is queued from having its turn, until it is taken back by
// whoever.
func (m *machine) pause(on bool) error {
	m.ready.Result = nil
	if on && m.s.Live.Paused {
		return &Refusal{Kind: "wrong_state", Msg: "queue_already_paused: the queue is paused already; paused:false lets it go on"}
	}
	m.s.Live.Paused = on
	m.drain()
	return nil
}

// drain gives what waits its turn, where nothing else is under way.
func (m *machine) drain() {
	if m.s.Phase() == Idle && m.s.drains() {
		result := m.ready.Result
		m.next(false)
		m.ready.Result = result
	}
}

// startCommand gives a slash command its turn: no message of it enters the
// window.
func (m *machine) startCommand(q event.Queued) {
	m.emit(event.Unqueued{MessageID: q.MessageID})
	m.emit(event.PendingModified{})
	m.s.Live.Prep = &preparation{command: q.MessageID}
	m.start(&RunCommand{ID: q.MessageID, Text: q.Prompt})
}

// commandDone goes on with what waits behind a command.
func (m *machine) commandDone(in CommandDone) {
	p := m.s.Live.Prep
	if p == nil || p.command == "" || p.command != in.ID {
		return
	}
	m.s.Live.Prep = nil
	m.quiet = true // no turn has ended
	if in.Stop {
		m.idle(false)
		return
	}
	m.next(false)
}

func (d *Durable) foldOrder(p event.QueueOrder) {
	d.Queue, d.Steering = nil, nil
	for _, q := range p.Items {
		d.Ordered = max(d.Ordered, q.Order)
		if q.Steering {
			d.Steering = append(d.Steering, q)
		} else {
			d.Queue = append(d.Queue, q)
		}
	}
}
