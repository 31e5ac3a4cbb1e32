package server

import (
	"errors"
	"time"

	"github.com/transom-run/transom"
)

// The methods about prompts that are sent by themselves.
func scheduleMethods() map[string]handler {
	return map[string]handler{
		"session.schedule.list":           settled(listSchedules),
		"session.schedule.add":            posted(addSchedule),
		"session.schedule.addAt":          posted(addSchedule),
		"session.schedule.addCron":        posted(addSchedule),
		"session.schedule.addSelfPaced":   posted(addSchedule),
		"session.schedule.rearmSelfPaced": posted(armSchedule),
		"session.schedule.stop":           posted(stopSchedule),
		"session.schedule.hasSelfPaced":   settled(hasSelfPaced),
		"session.schedule.hydrate":        settled(hydrateSchedules),
	}
}

// scheduleEntry is a schedule as the protocol has it.
type scheduleEntry struct {
	ID            int64  `json:"id"`
	IntervalMs    int64  `json:"intervalMs,omitempty"`
	Cron          string `json:"cron,omitempty"`
	TZ            string `json:"tz,omitempty"`
	At            int64  `json:"at,omitempty"`
	Prompt        string `json:"prompt"`
	Recurring     bool   `json:"recurring"`
	SelfPaced     bool   `json:"selfPaced,omitempty"`
	DisplayPrompt string `json:"displayPrompt,omitempty"`
	NextRunAt     string `json:"nextRunAt"`
}

func wireSchedule(e transom.ScheduleEntry) scheduleEntry {
	out := scheduleEntry{
		ID: e.ID, IntervalMs: e.Every.Milliseconds(), Cron: e.Cron, TZ: e.TZ, Prompt: e.Prompt, Recurring: e.Recurring,
		SelfPaced: e.SelfPaced, DisplayPrompt: e.Display, NextRunAt: e.Next.Format("2006-01-02T15:04:05.000Z07:00"),
	}
	if !e.At.IsZero() {
		out.At = e.At.UnixMilli()
	}
	return out
}

func listSchedules(s *transom.Session, _ *target) (any, error) {
	entries := []scheduleEntry{}
	for _, e := range s.Schedules() {
		entries = append(entries, wireSchedule(e))
	}
	return map[string]any{"entries": entries}, nil
}

func hasSelfPaced(s *transom.Session, _ *target) (any, error) {
	for _, e := range s.Schedules() {
		if e.SelfPaced {
			return map[string]any{"hasSelfPaced": true}, nil
		}
	}
	return map[string]any{"hasSelfPaced": false}, nil
}

// hydrateSchedules: a session's schedules are there as soon as it is.
func hydrateSchedules(*transom.Session, *target) (any, error) { return nil, nil }

type scheduleParams struct {
	target
	Interval      *string `json:"interval"`
	Cron          *string `json:"cron"`
	TZ            string  `json:"tz"`
	At            *int64  `json:"at"`
	Prompt        *string `json:"prompt"`
	DisplayPrompt string  `json:"displayPrompt"`
	Recurring     *bool   `json:"recurring"`
}

// addSchedule takes the member that its method is about; those of the others are
// passed over.
func addSchedule(q *call, p *scheduleParams) {
	s, needs := transom.Schedule{Display: p.DisplayPrompt, Once: p.Recurring != nil && !*p.Recurring}, ""
	switch op := q.op(); {
	case p.Prompt == nil:
		needs = "a prompt, a string"
	case op == "session.schedule.addSelfPaced":
		s.SelfPaced, s.Once = true, false
	case op == "session.schedule.addCron" && p.Cron == nil:
		needs = "cron, a string of five fields"
	case op == "session.schedule.addCron":
		s.Cron, s.TZ = *p.Cron, p.TZ
	case op == "session.schedule.addAt" && p.At == nil:
		needs = "at, in milliseconds since 1970"
	case op == "session.schedule.addAt":
		s.At = time.UnixMilli(*p.At)
		if p.Recurring != nil && *p.Recurring {
			q.Reply(map[string]any{"error": "an absolute time comes once: a schedule with it cannot be recurring. Use an interval, or a cron expression"}, nil)
			return
		}
	case p.Interval == nil:
		needs = "interval, a string such as 5m"
	default:
		every, err := transom.ParseInterval(*p.Interval)
		if err != nil {
			scheduleAnswer(q)(nil, err)
			return
		}
		s.Every = every
	}
	if needs != "" {
		q.Reply(nil, invalid(q.op(), q.op()+" needs "+needs))
		return
	}
	s.Prompt = *p.Prompt
	q.sess.Post(s, scheduleAnswer(q))
}

type armParams struct {
	target
	ID int64  `json:"id"`
	At *int64 `json:"at"`
}

func armSchedule(q *call, p *armParams) {
	if p.At == nil {
		q.Reply(nil, invalid(q.op(), q.op()+" needs at, in milliseconds since 1970"))
		return
	}
	q.sess.Post(transom.ArmSchedule{ID: p.ID, At: time.UnixMilli(*p.At)}, scheduleAnswer(q))
}

func stopSchedule(q *call, p *armParams) {
	q.sess.Post(transom.StopSchedule{ID: p.ID}, scheduleAnswer(q))
}

// scheduleAnswer answers with the entry, or with what a user did wrong.
func scheduleAnswer(q *call) func(any, error) {
	return func(v any, err error) {
		var said *transom.Error
		if errors.As(err, &said) && (said.Kind == transom.KindInvalidParams || said.Kind == transom.KindNotFound) {
			q.Reply(map[string]any{"error": said.Msg}, nil)
			return
		}
		q.answer(func(v any) any {
			if e, ok := v.(transom.ScheduleEntry); ok {
				return map[string]any{"entry": wireSchedule(e)}
			}
			return struct{}{}
		})(v, err)
	}
}
