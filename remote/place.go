package remote

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/transom-run/transom/event"
)

// head is what of an event the link looks at.
type head struct {
	Type      string `json:"type"`
	ID        string `json:"id"`
	Timestamp string `json:"timestamp"`
	Ephemeral bool   `json:"ephemeral"`
}

func (h *head) time() time.Time {
	t, _ := time.Parse(time.RFC3339Nano, h.Timestamp)
	return t
}

// remembered is how many persisted events a place knows by their ids.
const remembered = 1024

// place is how far a client has read: the newest persisted events it was handed.
type place struct {
	ids  [remembered]string // a ring
	next int
	seen map[string]struct{}
	last string    // id of the newest
	at   time.Time // its time, by the peer's clock
}

func (p *place) add(h *head) {
	if p.seen == nil {
		p.seen = make(map[string]struct{}, remembered)
	}
	delete(p.seen, p.ids[p.next])
	p.ids[p.next] = h.ID
	p.seen[h.ID] = struct{}{}
	p.next = (p.next + 1) % remembered
	p.last = h.ID
	if t := h.time(); !t.IsZero() {
		p.at = t
	}
}

func (p *place) has(id string) bool {
	_, ok := p.seen[id]
	return ok
}

// from returns the index of the first event of a history that comes after the
// place. Where the history was cut back behind all that is remembered, only the
// time can tell.
func (p *place) from(history []record) int {
	for i := len(history) - 1; i >= 0; i-- {
		if p.has(history[i].ID) {
			return i + 1
		}
	}
	if p.last == "" {
		return 0
	}
	for i, r := range history {
		if r.time().After(p.at) {
			return i
		}
	}
	return len(history)
}

// record is an event of a history.
type record struct {
	head
	line json.RawMessage
}

func parseHistory(raw json.RawMessage) ([]record, error) {
	var body struct {
		Events []json.RawMessage `json:"events"`
	}
	if err := json.Unmarshal(raw, &body); err != nil {
		return nil, err
	}
	out := make([]record, 0, len(body.Events))
	for _, line := range body.Events {
		r := record{line: line}
		if err := json.Unmarshal(line, &r.head); err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

// early is a live event that came before the history it follows.
type early struct {
	head
	params json.RawMessage
}

// missing returns the part of a history that comes after the place and before the
// live events that are there already.
func (p *place) missing(history []record, live []early) []record {
	end := len(history)
	for _, e := range live {
		if e.Ephemeral {
			continue
		}
		for i, r := range history {
			if r.ID == e.ID {
				end = i
			}
		}
		break // later ones follow it without a gap
	}
	start := p.from(history)
	if start > end {
		return nil
	}
	return history[start:end]
}

// work is whether a turn runs, as far as events tell.
type work struct {
	busy bool
	// made: a session.idle was made up, and no work was seen since. One that
	// comes late from the peer is then left out.
	made bool
}

// note takes an event; false where it must not be handed on.
func (w *work) note(h *head) bool {
	switch {
	case h.Type == event.TypeSessionIdle:
		w.busy = false
		if w.made {
			w.made = false
			return false
		}
	case begins(h.Type):
		w.busy, w.made = true, false
	case h.Type == event.TypeSessionShutdown:
		w.busy = false
	}
	return true
}

// begins reports whether events of a type come only while a turn runs.
func begins(typ string) bool {
	return typ == event.TypeUserMessage || typ == event.TypeTurnStart || strings.HasPrefix(typ, "tool.execution_")
}

// over reports whether a history ends with a turn that is over: for peers that
// do not say whether they are at work.
func over(history []record) bool {
	for i := len(history) - 1; i >= 0; i-- {
		switch typ := history[i].Type; {
		case typ == event.TypeTurnEnd, typ == event.TypeAbort, typ == event.TypeSessionError, typ == event.TypeSessionShutdown:
			return true
		case begins(typ):
			return false
		}
	}
	return true
}
