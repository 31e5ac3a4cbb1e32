package transom

import (
	"context"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/internal/turn"
)

// SlashCommand queues a slash command: it has its turn like a message, and is no
// part of what the model reads. Result: its id (string).
type SlashCommand struct {
	Text    string // such as "/model gpt-5"
	Display string // for people; "" shows Text
}

func (SlashCommand) op() string { return "session.commands.enqueue" }
func (c SlashCommand) body() (turn.Body, error) {
	return turn.Send{Message: event.Queued{Prompt: c.Text, DisplayPrompt: c.Display, Command: true}}, nil
}

// Arrange changes what waits for its turn.
type Arrange struct {
	Op ArrangeOp
	// ID names an item, as [Info.Queue] gives it.
	ID string
	// Position in the queue, from 0; beyond an end it is that end.
	Position int
	// Message is inserted; of an edit its two texts count.
	Message Message
	On      bool
}

// ArrangeOp is what is done to the queue.
type ArrangeOp = turn.ArrangeOp

// What can be done to the queue, and its result.
const (
	QueueInsert       = turn.ArrangeInsert // Message at Position; its id (string)
	QueueCopy         = turn.ArrangeCopy   // ID, just behind itself; the copy's id (string)
	QueueMove         = turn.ArrangeMove   // ID to Position; whether it moved (bool)
	QueueEdit         = turn.ArrangeEdit   // ID; whether its texts are others (bool)
	QueueSteer        = turn.ArrangeSteer  // ID into the running turn; whether there is one (bool)
	QueueRemove       = turn.ArrangeRemove // ID; whether it waited (bool)
	QueueRemoveNewest = turn.ArrangeNewest // whether anything waited (bool)
	QueueClear        = turn.ArrangeClear  // nil
	QueuePause        = turn.ArrangePause  // On; nil. Pausing twice is a WrongState error
)

func (a Arrange) op() string { return "session.queue." + string(a.Op) }
func (a Arrange) body() (turn.Body, error) {
	return turn.Arrange{
		Op: a.Op, ID: a.ID, Position: a.Position, On: a.On, Headers: a.Message.RequestHeaders,
		Message: event.Queued{
			Prompt: a.Message.Prompt, DisplayPrompt: a.Message.DisplayPrompt, Attachments: a.Message.Attachments,
			Lead: a.Message.read.Lead, Trail: a.Message.read.Trail, Images: a.Message.read.Images, AgentMode: a.Message.AgentMode,
		},
	}, nil
}

// pending lists what waits, steering messages first.
func pending(v *turn.State) []Pending {
	queue, steering := v.Waiting()
	var out []Pending
	for _, q := range append(steering, queue...) {
		out = append(out, Pending{q.MessageID, q.Prompt, q.DisplayPrompt, q.AgentMode, q.Steering, q.Command})
	}
	return out
}

// Do posts a command and waits until it was carried out.
func (h *Session) Do(ctx context.Context, c Command) error {
	_, err := h.do(ctx, c)
	return err
}
