package turn

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/internal/history"
)

// replay folds a log the way a resume does: what lies behind a boundary is no part
// of the history.
func replay(log []*event.Event) (Durable, error) {
	var x history.Index
	for i, e := range log {
		x.Add(int64(i), e)
	}
	var d Durable
	var err error
	for i, e := range log {
		if x.Hidden(int64(i)) {
			d, err = d.Behind(e)
		} else {
			d, err = d.Apply(e)
		}
		if err != nil {
			return d, err
		}
	}
	return d, nil
}

// printBack writes a history on its way back down whole.
func printBack(b *back) string {
	if b == nil {
		return ""
	}
	c := *b
	raw, err := json.Marshal(c.past)
	c.past = nil
	return fmt.Sprintf("%+v %s %v", c, raw, err)
}

// shown is the history of a log.
func shown(log []*event.Event) []*event.Event {
	var x history.Index
	for i, e := range log {
		x.Add(int64(i), e)
	}
	var out []*event.Event
	for i, e := range log {
		if !x.Hidden(int64(i)) && e.Public() {
			out = append(out, e)
		}
	}
	return out
}

// past is what the effect FindPast finds.
func (w *world) past(id string) (Thread, error) {
	events := shown(w.log)
	at := slices.IndexFunc(events, func(e *event.Event) bool { return e.ID == id })
	if at <= 0 {
		return Thread{}, fmt.Errorf("Event ID not found: %s", id)
	}
	var t Thread
	var err error
	for _, e := range events[:at] {
		if t, err = t.Apply(e); err != nil {
			return t, err
		}
	}
	return t, nil
}

// effects notes what was asked for about the history.
func (w *world) backEffects(e Effect) {
	switch e := e.(type) {
	case *FindPast:
		w.find = e
	case *RestoreFiles:
		w.restore = e
	}
}

// event finds an event of the history by its type and its number among those, such
// as "user.message:2".
func (w *world) eventID(ref string) string {
	typ, n, _ := strings.Cut(ref, ":")
	k, _ := strconv.Atoi(n)
	for _, e := range shown(w.log) {
		if e.Type == typ {
			if k--; k <= 0 {
				return e.ID
			}
		}
	}
	return ref
}

// more are the commands about the history.
func (p *player) more(name string) {
	switch name {
	case "goback":
		ref := p.word()
		_, files := p.options()["files"]
		p.do(GoBack{EventID: p.eventID(ref), Files: files})
	case "past":
		in := PastFound{ID: p.find.ID}
		if why := p.word(); why == "fail" {
			in.Err = errors.New(p.word())
		} else {
			in.Past, in.Err = p.past(p.find.EventID)
			if p.find.Files {
				in.Files = []event.FileRestore{{Path: "/dir/f", From: []string{"h"}}}
			}
		}
		p.do(in)
	case "restored":
		in := FilesRestored{ID: p.restore.ID, Restored: []string{"/dir/f"}}
		if p.word() == "fail" {
			in.Err = errors.New(p.word())
		}
		p.do(in)
	case "track":
		p.do(Note{Payload: event.Tracking{}})
	default:
		p.t.Fatalf("unknown command %q", name)
	}
}

// showBack writes down what is about the history.
func (p *player) showBack(r *Ready) {
	for _, e := range r.Events {
		switch d := e.Payload.(type) {
		case event.Truncated:
			fmt.Fprintf(&p.b, "BOUNDARY before %s, %d events kept\n", p.nameOf(d.UpToEventID), d.Kept)
		case event.RewindBegun:
			fmt.Fprintf(&p.b, "REWIND BEGUN, %d files\n", len(d.Files))
		case event.RewindDropped:
			p.b.WriteString("REWIND DROPPED\n")
		case event.SessionInfo:
			if d.InfoType == "rewind" {
				p.b.WriteString(d.Message + "\n")
			}
		case event.SessionWarning:
			if d.WarningType == "rewind" {
				p.b.WriteString(d.Message + "\n")
			}
		}
	}
	for _, e := range r.Start {
		switch e := e.(type) {
		case *FindPast:
			fmt.Fprintf(&p.b, "→ find the past of %s%s\n", p.nameOf(e.EventID), map[bool]string{true: " with files"}[e.Files])
		case *RestoreFiles:
			fmt.Fprintf(&p.b, "→ restore %d files\n", len(e.Files))
		}
	}
	for _, a := range r.Answers {
		if a.Err != nil {
			fmt.Fprintf(&p.b, "answered: %v\n", a.Err)
			continue
		}
		b := a.Result.(Back)
		fmt.Fprintf(&p.b, "answered: %d events removed, restored %v, failed %v\n", b.EventsRemoved, b.Restored, b.Failed)
	}
}

// nameOf is the type of an event and what it says.
func (p *player) nameOf(id string) string {
	for _, e := range p.log {
		if e.ID == id {
			if m, err := event.As[event.UserMessage](e); err == nil && e.Type == event.TypeUserMessage {
				return fmt.Sprintf("%s %q", e.Type, m.Content)
			}
			return e.Type
		}
	}
	return id
}
