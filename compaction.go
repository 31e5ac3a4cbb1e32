package transom

import (
	"context"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/internal/session"
	"github.com/transom-run/transom/internal/turn"
	"github.com/transom-run/transom/model"
)

// Compaction says when a session's window is summarised by itself: a summary is
// made beside the running turn and takes the place of the messages that stood in
// the window when it began.
type Compaction struct {
	// Disabled: never by itself.
	Disabled bool
	// Background is the part of the window's size from which a summary is made,
	// Blocking the part from which a model call waits for one that is being made;
	// 0 is 0.8 and 0.95.
	Background, Blocking float64
}

// settings fills in the defaults.
func (c Compaction) settings() (turn.Compaction, error) {
	if c.Background == 0 {
		c.Background = 0.8
	}
	if c.Blocking == 0 {
		c.Blocking = max(0.95, c.Background)
	}
	if c.Background < 0 || c.Background > 1 || c.Blocking < 0 || c.Blocking > 1 {
		return turn.Compaction{}, &Error{Kind: KindInvalidParams, Msg: "the thresholds of compaction are parts of the window: between 0 and 1"}
	}
	return turn.Compaction{Enabled: !c.Disabled, Background: c.Background, Blocking: c.Blocking}, nil
}

// Compact begins to summarise the window now. Result: nil; the
// session.compaction_complete event tells what came of it.
type Compact struct {
	// Instructions says what the summary should keep in particular.
	Instructions string
}

func (Compact) op() string                 { return "session.history.compact" }
func (c Compact) body() (turn.Body, error) { return turn.Compact{Instructions: c.Instructions}, nil }

// CancelCompaction ends a summary that is being made. Result: whether there was
// one (bool).
type CancelCompaction struct{}

func (CancelCompaction) op() string               { return "session.history.cancelBackgroundCompaction" }
func (CancelCompaction) body() (turn.Body, error) { return turn.CancelCompaction{}, nil }

// Compact summarises the window and waits for the summary. The error of ctx ends
// the wait, not the compaction.
func (h History) Compact(ctx context.Context, instructions string) (event.CompactionComplete, error) {
	const op = "session.history.compact"
	events := h.s.Subscribe()
	defer events.Close()
	if _, err := h.s.do(ctx, Compact{Instructions: instructions}); err != nil {
		return event.CompactionComplete{}, err
	}
	for e, err := range events.All(ctx) {
		if err != nil {
			return event.CompactionComplete{}, wrap(op, h.s.id, err)
		}
		if e.Type == event.TypeCompactionComplete {
			p, err := event.As[event.CompactionComplete](e)
			return p, wrap(op, h.s.id, err)
		}
	}
	return event.CompactionComplete{}, &Error{Op: op, Kind: KindClosing, SessionID: h.s.id, Msg: "the session ended before the summary was made"}
}

// Checkpoint is a summary that has taken the place of messages.
type Checkpoint struct {
	Number int // from 1, as they were made; a truncation takes numbers back
	Title  string
	File   string // its name in the directory checkpoints of the session's own
	Text   string
}

// Checkpoints lists the summaries of the session's history, oldest first.
func (h History) Checkpoints() ([]Checkpoint, error) {
	list, err := session.Summaries(h.s.sess.Log())
	if err != nil {
		return nil, wrap("session.workspaces.listCheckpoints", h.s.id, err)
	}
	out := make([]Checkpoint, len(list))
	for i, s := range list {
		out[i] = Checkpoint{Number: s.Number, Text: s.Text}
		out[i].Title, out[i].File = turn.Checkpoint(s.Number, s.Text)
	}
	return out, nil
}

// Summary asks the model for a summary of the conversation, in markdown, for
// somebody who goes on elsewhere; "" where there are no messages. Neither the
// request nor the answer becomes part of the conversation or of the log.
func (h History) Summary(ctx context.Context) (string, error) {
	if h.s.Info().Messages == 0 {
		return "", nil
	}
	text, err := h.s.query(ctx, model.ForBackground, handOff, func(string) {})
	return text, wrap("session.history.summarizeForHandoff", h.s.id, err)
}

// handOff asks for a summary that leaves the conversation.
const handOff = "Somebody else goes on with this work, who has not seen the conversation. Write a summary for them, in markdown: " +
	"what the user wants, what was done and decided, what was found out that would be costly to find again, and what is to be done next. " +
	"Write nothing but the summary, and call no tool."
