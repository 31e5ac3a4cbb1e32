package turn

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/internal/cron"
)

// Schedule is a prompt that is sent at its time. One that is no longer due by itself,
// and does not wait to be armed anew, is no schedule any more.
type Schedule struct {
	event.ScheduleCreated
	// Next is when it is due, in milliseconds since 1970; where Resting, when it last
	// was.
	Next int64
	// Resting: it is self-paced, was due, and was not armed since.
	Resting bool
}

// ScheduleOp is what is done to schedules.
type ScheduleOp string

// What can be done. Results are a [Schedule]; of a stop of what is none, nil.
const (
	ScheduleAdd  ScheduleOp = "add"  // Entry, whose id is made
	ScheduleStop ScheduleOp = "stop" // ID
	ScheduleArm  ScheduleOp = "arm"  // ID, a self-paced one, to be due At
)

// ChangeSchedule changes what is sent by itself.
type ChangeSchedule struct {
	Op    ScheduleOp
	ID    int64
	At    int64 // milliseconds since 1970
	Entry event.ScheduleCreated
}

// Tick says that a schedule may be due: see [State.Alarm].
type Tick struct{}

// The kinds of these inputs.
const (
	KindChangeSchedule Kind = "change_schedule"
	KindTick           Kind = "tick"
)

func (ChangeSchedule) kind() Kind { return KindChangeSchedule }
func (Tick) kind() Kind           { return KindTick }

// Bounds of schedules: a model call a second is nobody's wish, and a list without end
// nobody's list.
const (
	MinInterval  = time.Second
	MaxInterval  = 366 * 24 * time.Hour
	MaxSchedules = 100
)

// schedulePrefix and its id mark a user.message that a schedule sent.
const schedulePrefix = "schedule-"

func (s *Schedule) source() string { return schedulePrefix + strconv.FormatInt(s.ID, 10) }

// after is when a schedule is due behind a time; 0 is never, or not by itself.
func (s *Schedule) after(t time.Time) int64 {
	switch {
	case s.IntervalMs > 0:
		return t.UnixMilli() + s.IntervalMs
	case s.Cron != "":
		if spec, err := cron.Parse(s.Cron, s.TZ); err == nil {
			if next, ok := spec.Next(t); ok {
				return next.UnixMilli()
			}
		}
	}
	return 0
}

// Alarm is when the next schedule is due; the zero Time where none is, or where
// nothing may fire: while nobody is attached, and while an open loop has no driver.
func (s *State) Alarm() (at time.Time) {
	if !s.fires() {
		return at
	}
	for i := range s.Schedules {
		if e := &s.Schedules[i]; !e.Resting && (at.IsZero() || e.Next < at.UnixMilli()) {
			at = time.UnixMilli(e.Next)
		}
	}
	return at
}

func (s *State) fires() bool {
	switch s.Phase() {
	case Idle, Preparing, Thinking, Acting:
		return len(s.Live.Clients) > 0
	}
	return false
}

// tick sends the prompts whose time has come: each once, however often it was due
// while the session was in no process. One whose last prompt still waits is skipped.
func (m *machine) tick() {
	now := m.in.At.UnixMilli()
	if !m.s.fires() || !slices.ContainsFunc(m.s.Schedules, func(e Schedule) bool { return !e.Resting && e.Next <= now }) {
		return
	}
	m.closeLost()
	for _, e := range m.s.Schedules {
		if e.Resting || e.Next > now {
			continue
		}
		fired := event.ScheduleFired{ID: e.ID}
		if e.Recurring {
			fired.Next = e.after(m.in.At)
		}
		if slices.ContainsFunc(m.s.Queue, func(q event.Queued) bool { return q.Source == e.source() }) {
			m.emit(event.ScheduleSkipped(fired))
			continue
		}
		m.emit(event.Queued{MessageID: m.in.NewID(), Prompt: e.Prompt, DisplayPrompt: e.DisplayPrompt, Source: e.source(), Fired: &fired})
		m.emit(event.PendingModified{})
	}
	m.drain()
}

func (m *machine) changeSchedule(in ChangeSchedule) error {
	i := slices.IndexFunc(m.s.Schedules, func(e Schedule) bool { return e.ID == in.ID })
	switch {
	case in.Op == ScheduleAdd:
		return m.schedule(in.Entry)
	case in.Op == ScheduleStop && i < 0:
		return nil
	case in.Op == ScheduleStop:
		m.ready.Result = m.s.Schedules[i]
		m.emit(event.ScheduleCancelled{ID: in.ID})
		return nil
	case i < 0 || !m.s.Schedules[i].SelfPaced:
		return &Refusal{Kind: "not_found", Msg: fmt.Sprintf("no self-paced schedule has the id %d", in.ID)}
	case !m.ahead(in.At):
		return aside(in.At)
	}
	m.emit(event.ScheduleRearmed{ID: in.ID, NextRunAt: in.At})
	m.ready.Result = m.s.Schedules[i]
	return nil
}

// schedule adds a schedule.
func (m *machine) schedule(p event.ScheduleCreated) error {
	refused := func(format string, args ...any) error {
		return &Refusal{Kind: "invalid_params", Msg: fmt.Sprintf(format, args...)}
	}
	p.ID, p.Origin = m.s.Scheduled+1, "user"
	p.Prompt, p.DisplayPrompt = valid(p.Prompt), valid(p.DisplayPrompt)
	switch {
	case strings.TrimSpace(p.Prompt) == "":
		return refused("a schedule needs a prompt that is not blank")
	case len(m.s.Schedules) >= MaxSchedules:
		return refused("the session has %d schedules, as many as it may have: stop one first", MaxSchedules)
	case p.Cron != "":
		if _, err := cron.Parse(p.Cron, p.TZ); err != nil {
			return refused("%v", err)
		}
		if e := (Schedule{ScheduleCreated: p}); e.after(m.in.At) == 0 {
			return refused("the time of the cron expression %q never comes", p.Cron)
		}
	case p.At != 0 && p.Recurring:
		return refused("an absolute time comes once: a schedule with it cannot be recurring. Use an interval, or a cron expression")
	case p.At != 0 && !m.ahead(p.At):
		return aside(p.At)
	case p.At == 0 && !p.SelfPaced && (p.IntervalMs < MinInterval.Milliseconds() || p.IntervalMs > MaxInterval.Milliseconds()):
		return refused("the interval of a schedule is at least 1s and at most 366d, not %v", time.Duration(p.IntervalMs)*time.Millisecond)
	}
	m.emit(p)
	if m.err == nil {
		m.ready.Result = m.s.Schedules[len(m.s.Schedules)-1]
	}
	return nil
}

// ahead reports whether a time, in milliseconds since 1970, can be waited for.
func (m *machine) ahead(at int64) bool {
	return at > m.in.At.UnixMilli() && at < m.in.At.AddDate(100, 0, 0).UnixMilli()
}

func aside(at int64) error {
	return &Refusal{Kind: "invalid_params", Msg: fmt.Sprintf("at has to lie in the future, and in the next 100 years, in milliseconds since 1970: it is %d", at)}
}

// foldScheduled takes a new schedule. One that is self-paced is due at once.
func foldScheduled(d *Durable, e *event.Event) error {
	p, err := event.As[event.ScheduleCreated](e)
	if err != nil {
		return err
	}
	s := Schedule{ScheduleCreated: p, Next: p.At}
	switch {
	case p.SelfPaced:
		s.Next = e.Timestamp.UnixMilli()
	case p.At == 0:
		s.Next = s.after(e.Timestamp)
	}
	d.Scheduled = max(d.Scheduled, p.ID)
	d.unschedule(p.ID)
	if s.Next > 0 {
		d.Schedules = append(slices.Clip(d.Schedules), s)
	}
	return nil
}

func (d *Durable) foldUnscheduled(p event.ScheduleCancelled) { d.unschedule(p.ID) }
func (d *Durable) foldSkipped(p event.ScheduleSkipped)       { d.fired(event.ScheduleFired(p)) }
func (d *Durable) foldRearmed(p event.ScheduleRearmed) {
	d.reschedule(p.ID, func(s *Schedule) { s.Next, s.Resting = p.NextRunAt, false })
}

// fired notes that a schedule's time came.
func (d *Durable) fired(p event.ScheduleFired) {
	i := slices.IndexFunc(d.Schedules, func(s Schedule) bool { return s.ID == p.ID })
	switch {
	case i < 0:
	case p.Next > 0:
		d.reschedule(p.ID, func(s *Schedule) { s.Next = p.Next })
	case d.Schedules[i].SelfPaced:
		d.reschedule(p.ID, func(s *Schedule) { s.Resting = true })
	default:
		d.unschedule(p.ID)
	}
}

func (d *Durable) unschedule(id int64) {
	is := func(s Schedule) bool { return s.ID == id }
	if slices.ContainsFunc(d.Schedules, is) {
		d.Schedules = slices.DeleteFunc(slices.Clone(d.Schedules), is)
	}
}

// reschedule changes a schedule, in a copy.
func (d *Durable) reschedule(id int64, change func(*Schedule)) {
	d.Schedules = slices.Clone(d.Schedules)
	for i := range d.Schedules {
		if d.Schedules[i].ID == id {
			change(&d.Schedules[i])
		}
	}
}
