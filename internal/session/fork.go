package session

import (
	"errors"
	"fmt"
	"time"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/eventlog"
	"github.com/transom-run/transom/internal/turn"
)

// Fork says what a copy of a session's history is to be.
type Fork struct {
	Source string // the session that is copied
	ID     string // of the copy
	To     string // the event before which it ends; "" copies all
	Name   string // "" is none
	At     time.Time
}

// Records makes the records of the copy from the log of its source: the public
// events of the history, under their ids, and then what closes what was open. What
// waits for its turn, totals, names and files are the source's own.
func (f Fork) Records(log eventlog.Log) ([][]byte, error) {
	x, err := index(log)
	if err != nil {
		return nil, err
	}
	end := int64(log.End())
	if f.To != "" {
		place, _, ok := x.Find(f.To)
		if !ok {
			return nil, &turn.Refusal{Kind: "not_found", Msg: fmt.Sprintf("event %s not found in the history of session %s: session.getMessages lists what there is", f.To, f.Source)}
		}
		end = place
	}
	var lines [][]byte
	var d turn.Durable
	add := func(e *event.Event) error {
		next, err := d.Apply(e)
		if err == nil {
			d, lines = next, append(lines, e.Line)
		}
		return err
	}
	err = records(log, 0, nil, func(rec eventlog.Record, e *event.Event) error {
		switch {
		case len(lines) == 0: // also where the copy ends before it
			start, err := f.start(e)
			if err != nil {
				return err
			}
			if err := errors.Join(add(start), f.named(add)); err != nil || e.Type == event.TypeSessionStart {
				return err
			}
		}
		switch {
		case int64(rec.Pos) >= end:
			return errEnough
		case x.Hidden(int64(rec.Pos)) || !e.Public() || !e.Persisted():
			return nil
		}
		return add(e)
	})
	if err != nil {
		return nil, err
	}
	closing, err := turn.Sever(d, f.At, newID)
	if err != nil {
		return nil, err
	}
	for _, e := range closing {
		lines = append(lines, e.Line)
	}
	return lines, nil
}

// named adds the copy's name, near the beginning of its log, where lists look.
func (f Fork) named(add func(*event.Event) error) error {
	if f.Name == "" {
		return nil
	}
	e, err := event.New(event.Named{Name: f.Name}, newID(), "", f.At)
	if err != nil {
		return err
	}
	return add(e)
}

// start makes the copy's first record of the source's first one.
func (f Fork) start(first *event.Event) (*event.Event, error) {
	p, id := event.SessionStart{Version: 1, Producer: "transom"}, newID()
	if first.Type == event.TypeSessionStart {
		var err error
		if p, err = event.As[event.SessionStart](first); err != nil {
			return nil, err
		}
		id = first.ID // which the second one names as its parent
	}
	p.SessionID, p.StartTime, p.AlreadyInUse = f.ID, f.At.UTC().Format(event.TimeFormat), false
	return event.New(p, id, "", f.At)
}
