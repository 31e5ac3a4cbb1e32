package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/event"
)

// The methods that read a session's events by pages.
func eventLogMethods() map[string]handler {
	return map[string]handler{
		"session.eventLog.read":             posted(readEvents),
		"session.eventLog.tail":             settled(tailCursor),
		"session.eventLog.registerInterest": posted(registerInterest),
		"session.eventLog.releaseInterest":  posted(releaseInterest),
	}
}

// maxWait bounds how long a read waits for an event.
const maxWait = 30 * time.Second

type readEventsParams struct {
	target
	Cursor           string          `json:"cursor"`
	Direction        string          `json:"direction"`
	Max              *int            `json:"max"`
	WaitMs           int64           `json:"waitMs"`
	Types            json.RawMessage `json:"types"`
	AgentScope       string          `json:"agentScope"`
	AgentIDs         []string        `json:"agentIds"`
	IncludeEphemeral *bool           `json:"includeEphemeral"`
}

type eventsResult struct {
	Events       json.RawMessage `json:"events"`
	Cursor       string          `json:"cursor"`
	HasMore      bool            `json:"hasMore"`
	CursorStatus string          `json:"cursorStatus"`
}

// query makes what the core is asked of the params.
func (p *readEventsParams) query() (transom.EventQuery, error) {
	const op = "session.eventLog.read"
	q := transom.EventQuery{Cursor: p.Cursor, Backward: p.Direction == "backward", Persisted: p.IncludeEphemeral != nil && !*p.IncludeEphemeral}
	if p.Max != nil {
		if *p.Max < 1 || *p.Max > 1000 {
			return q, invalid(op, fmt.Sprintf("%s: max is 1 to 1000, not %d", op, *p.Max))
		}
		q.Max = *p.Max
	}
	switch p.Direction {
	case "", "forward", "backward":
	default:
		return q, invalid(op, op+": the direction is forward or backward, not "+p.Direction)
	}
	q.Wait = min(maxWait, time.Duration(max(0, p.WaitMs))*time.Millisecond)
	var types []string
	if all := string(bytes.TrimSpace(p.Types)); present(p.Types) && all != `"*"` {
		if json.Unmarshal(p.Types, &types) != nil || len(types) == 0 {
			return q, invalid(op, op+`: types is "*" or a list of event types`)
		}
	}
	agents, primary := p.AgentIDs, p.AgentScope == "primary"
	if types == nil && agents == nil && !primary {
		return q, nil
	}
	q.Match = func(e *event.Event) bool {
		switch {
		case types != nil && !slices.Contains(types, e.Type):
			return false
		case agents != nil:
			return e.AgentID != "" && slices.Contains(agents, e.AgentID)
		case primary:
			return e.AgentID == "" || strings.HasPrefix(e.Type, "subagent.")
		}
		return true
	}
	return q, nil
}

// readEvents reads once all that came before it is done, and may wait for more.
func readEvents(q *call, p *readEventsParams) {
	query, err := p.query()
	if err != nil {
		q.Reply(nil, err)
		return
	}
	q.sess.Post(transom.Configure{}, func(_ any, err error) {
		if err != nil {
			q.Reply(nil, fail(q.op(), err))
			return
		}
		q.Go(func(ctx context.Context) (any, error) {
			page, err := q.sess.ReadEvents(ctx, query)
			if err != nil {
				return nil, fail(q.op(), err)
			}
			out := eventsResult{lines(page.Events), page.Cursor, page.More, "ok"}
			if page.Expired {
				out.CursorStatus = "expired"
			}
			return out, nil
		})
	})
}

// lines is a JSON array of events as they are.
func lines(events []*event.Event) json.RawMessage {
	size := 2
	for _, e := range events {
		size += len(e.Line) + 1
	}
	b := append(make([]byte, 0, size), '[')
	for i, e := range events {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, e.Line...)
	}
	return append(b, ']')
}

func tailCursor(s *transom.Session, _ *target) (any, error) {
	return map[string]any{"cursor": s.TailCursor()}, nil
}
