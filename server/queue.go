package server

import (
	"cmp"
	"encoding/json"

	"github.com/transom-run/transom"
)

// The methods about what waits for its turn.
func queueMethods() map[string]handler {
	return map[string]handler{
		"session.queue.pendingItems":     settled(pendingItems),
		"session.queue.insertAt":         posted(insertAt),
		"session.queue.duplicateAt":      arranged(transom.QueueCopy, "id"),
		"session.queue.moveItem":         arranged(transom.QueueMove, "changed"),
		"session.queue.updateText":       arranged(transom.QueueEdit, "updated"),
		"session.queue.sendNow":          arranged(transom.QueueSteer, "steered"),
		"session.queue.removeAt":         arranged(transom.QueueRemove, "removed"),
		"session.queue.removeMostRecent": arranged(transom.QueueRemoveNewest, "removed"),
		"session.queue.clear":            arranged(transom.QueueClear, ""),
		"session.queue.setDrainPaused":   posted(pauseQueue),
	}
}

type queueItem struct {
	ID          string `json:"id"`
	Kind        string `json:"kind"`
	DisplayText string `json:"displayText"`
	AgentMode   string `json:"agentMode"`
	MessageID   string `json:"messageId,omitempty"`
}

func pendingItems(s *transom.Session, _ *target) (any, error) {
	items, steering := []queueItem{}, []string{}
	for _, p := range s.Info().Queue {
		text := cmp.Or(p.Display, p.Prompt)
		if p.Immediate {
			steering = append(steering, text)
			continue
		}
		item := queueItem{p.MessageID, "message", text, cmp.Or(p.AgentMode, "interactive"), p.MessageID}
		if p.Command {
			item.Kind, item.MessageID = "command", ""
		}
		items = append(items, item)
	}
	return map[string]any{"items": items, "steeringMessages": steering}, nil
}

type insertParams struct {
	target
	Position int `json:"position"`
	Message  *struct {
		Prompt         *string           `json:"prompt"`
		DisplayPrompt  string            `json:"displayPrompt"`
		Attachments    []json.RawMessage `json:"attachments"`
		AgentMode      string            `json:"agentMode"`
		RequestHeaders map[string]string `json:"requestHeaders"`
		Source         string            `json:"source"`
	} `json:"message"`
}

func insertAt(q *call, p *insertParams) {
	m := p.Message
	switch {
	case m == nil || m.Prompt == nil:
		q.Reply(nil, invalid(q.op(), q.op()+" needs a message with a prompt, a string"))
		return
	case m.Source == "system":
		q.Reply(nil, invalid(q.op(), q.op()+" takes messages of users only: source must not be system"))
		return
	}
	a := transom.Arrange{Op: transom.QueueInsert, Position: p.Position, Message: transom.Message{
		Prompt: *m.Prompt, DisplayPrompt: m.DisplayPrompt, Attachments: m.Attachments, AgentMode: m.AgentMode, RequestHeaders: m.RequestHeaders,
	}}
	q.sess.Post(a, q.answer(func(v any) any { return map[string]any{"id": v} }))
}

type arrangeParams struct {
	target
	ID            string  `json:"id"`
	ToPosition    int     `json:"toPosition"`
	Prompt        *string `json:"prompt"`
	DisplayPrompt string  `json:"displayPrompt"`
}

// arranged makes the method of an operation; its result is the member of that
// name, null where there is none.
func arranged(op transom.ArrangeOp, member string) handler {
	return posted(func(q *call, p *arrangeParams) {
		a := transom.Arrange{Op: op, ID: p.ID, Position: p.ToPosition}
		switch {
		case p.ID == "" && op != transom.QueueClear && op != transom.QueueRemoveNewest:
			q.Reply(nil, invalid(q.op(), q.op()+" needs the id of a queued item"))
			return
		case op == transom.QueueEdit && p.Prompt == nil:
			q.Reply(nil, invalid(q.op(), q.op()+" needs a prompt, a string"))
			return
		case op == transom.QueueEdit:
			a.Message = transom.Message{Prompt: *p.Prompt, DisplayPrompt: p.DisplayPrompt}
		}
		q.sess.Post(a, q.answer(func(v any) any {
			if member == "" {
				return nil
			}
			return map[string]any{member: v}
		}))
	})
}

type pauseParams struct {
	target
	Paused *bool `json:"paused"`
}

func pauseQueue(q *call, p *pauseParams) {
	if p.Paused == nil {
		q.Reply(nil, invalid(q.op(), q.op()+" needs paused, true or false"))
		return
	}
	q.sess.Post(transom.Arrange{Op: transom.QueuePause, On: *p.Paused}, q.answer(func(any) any { return nil }))
}
