package turn

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/transom-run/transom/event"
)

// schedule changes schedules: add PROMPT [every=D] [in=D] [cron=a_b_c_d_e] [paced]
// [once], stop ID, arm ID in=D.
func (p *player) schedule() {
	in := ChangeSchedule{Op: ScheduleOp(p.word())}
	if in.Op == ScheduleAdd {
		in.Entry.Prompt = p.word()
	} else {
		in.ID, _ = strconv.ParseInt(p.word(), 10, 64)
	}
	o := p.options()
	span := func(key string) time.Duration {
		d, err := time.ParseDuration(o[key])
		if err != nil {
			p.t.Fatalf("%s: %v", key, err)
		}
		return d
	}
	if _, ok := o["in"]; ok {
		in.At = p.now.Add(span("in")).UnixMilli()
		in.Entry.At = in.At
	}
	if _, ok := o["every"]; ok {
		in.Entry.IntervalMs = span("every").Milliseconds()
	}
	in.Entry.Cron, in.Entry.TZ = strings.ReplaceAll(o["cron"], "_", " "), o["tz"]
	_, in.Entry.SelfPaced = o["paced"]
	_, once := o["once"]
	in.Entry.Recurring = !once
	p.do(in)
}

// sleep lets time go by, and ticks where a schedule is due then.
func (p *player) sleep() {
	d, err := time.ParseDuration(p.word())
	if err != nil {
		p.t.Fatalf("sleep: %v", err)
	}
	for end := p.now.Add(d); p.now.Before(end); {
		if at := p.s.Alarm(); !at.IsZero() && !at.After(end) {
			if at = at.Add(-time.Second); at.After(p.now) { // a step takes a second
				p.now = at
			}
			p.do(Tick{})
			continue
		}
		p.now = end
	}
}

// scheduled is one line for an event about schedules; "" for others.
func scheduled(e *event.Event) string {
	switch d := e.Payload.(type) {
	case event.ScheduleCreated:
		return fmt.Sprintf("schedule %d %q", d.ID, d.Prompt)
	case event.ScheduleCancelled:
		return fmt.Sprintf("schedule %d cancelled", d.ID)
	case event.ScheduleRearmed:
		return fmt.Sprintf("schedule %d armed", d.ID)
	case event.ScheduleSkipped:
		return fmt.Sprintf("schedule %d skipped", d.ID)
	}
	return ""
}

// left lists the schedules, each with the time until it is due.
func (p *player) left() string {
	var out []string
	for _, e := range p.s.Schedules {
		s := fmt.Sprintf("%d in %s", e.ID, time.UnixMilli(e.Next).Sub(p.now).Round(time.Second))
		if e.Resting {
			s = fmt.Sprintf("%d rests", e.ID)
		}
		out = append(out, s)
	}
	return strings.Join(out, ", ")
}

// TestScheduleRefused: what cannot be scheduled changes nothing and says why.
func TestScheduleRefused(t *testing.T) {
	p := script(t, born)
	now := p.now.UnixMilli()
	for _, c := range []struct {
		entry event.ScheduleCreated
		says  string
	}{
		{event.ScheduleCreated{Prompt: " ", IntervalMs: 60000}, "not blank"},
		{event.ScheduleCreated{Prompt: "x"}, "at least 1s"},
		{event.ScheduleCreated{Prompt: "x", IntervalMs: 999}, "at least 1s"},
		{event.ScheduleCreated{Prompt: "x", IntervalMs: -1}, "at least 1s"},
		{event.ScheduleCreated{Prompt: "x", IntervalMs: 367 * 24 * 3600 * 1000}, "at most 366d"},
		{event.ScheduleCreated{Prompt: "x", Cron: "* * *"}, "3 fields"},
		{event.ScheduleCreated{Prompt: "x", Cron: "0 0 31 2 *"}, "never comes"},
		{event.ScheduleCreated{Prompt: "x", Cron: "* * * * *", TZ: "No/Where"}, "time zone"},
		{event.ScheduleCreated{Prompt: "x", At: now - 1}, "in the future"},
		{event.ScheduleCreated{Prompt: "x", At: -5}, "in the future"},
		{event.ScheduleCreated{Prompt: "x", At: 1 << 62}, "100 years"},
		{event.ScheduleCreated{Prompt: "x", At: now + 60000, Recurring: true}, "comes once"},
	} {
		_, err := p.step(ChangeSchedule{Op: ScheduleAdd, Entry: c.entry})
		if r, ok := err.(*Refusal); !ok || r.Kind != "invalid_params" || !strings.Contains(r.Msg, c.says) {
			t.Errorf("%+v: %v; want something of %q", c.entry, err, c.says)
		}
	}
	for range MaxSchedules {
		if _, err := p.step(ChangeSchedule{Op: ScheduleAdd, Entry: event.ScheduleCreated{Prompt: "x", IntervalMs: 60000}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := p.step(ChangeSchedule{Op: ScheduleAdd, Entry: event.ScheduleCreated{Prompt: "x", IntervalMs: 60000}}); err == nil || len(p.s.Schedules) != MaxSchedules {
		t.Errorf("%d schedules, %v", len(p.s.Schedules), err)
	}
}

// TestScheduleKilled: wherever a kill cuts the log, each time that came has its prompt
// in the log exactly once.
func TestScheduleKilled(t *testing.T) {
	whole := script(t, born+`; schedule add "E" every=30s; schedule add "O" in=40s once; sleep 35s; model text "x"; sleep 10s; model text "y"; sleep 20s`)
	for n := 1; n <= len(whole.log); n++ {
		p := &player{world: newWorld(t)}
		p.log, p.ids, p.now = slices.Clone(whole.log), whole.ids, whole.now
		p.kill(n)
		fires := 0 // in what is left of the log
		for _, e := range p.log {
			if q, ok := e.Payload.(event.Queued); ok && q.Source == "schedule-2" {
				fires++
			}
		}
		known := slices.ContainsFunc(p.log, func(e *event.Event) bool {
			c, ok := e.Payload.(event.ScheduleCreated)
			return ok && c.ID == 2
		})
		p.fields = split(t, "resume B continue")
		p.command(p.word())
		for range 20 {
			p.do(Tick{})
			if p.s.Phase() == Thinking {
				p.do(ModelDone{Fence: p.model})
			}
		}
		asked := 0
		for _, e := range p.log {
			if u, ok := e.Payload.(event.UserMessage); ok && u.Source == "schedule-2" {
				asked++
			}
		}
		want := 0
		if known {
			want = 1
		}
		if fires > want || asked != want {
			t.Errorf("after %d records: the one-shot was queued %d times and sent %d times, want %d", n, fires, asked, want)
		}
	}
}

// TestScheduleSevered: a copy of a session does not do its work a second time.
func TestScheduleSevered(t *testing.T) {
	p := script(t, born+`; schedule add "E" every=30s; schedule add "P" paced`)
	newID := 0
	events, err := Sever(p.s.Durable, p.now, func() string { newID++; return fmt.Sprint("n", newID) })
	if err != nil {
		t.Fatal(err)
	}
	d := p.s.Durable
	for _, e := range events {
		if d, err = d.Apply(e); err != nil {
			t.Fatal(err)
		}
	}
	if len(d.Schedules) != 0 || d.Scheduled != 2 || len(p.s.Schedules) != 2 {
		t.Errorf("the copy has %v, the source %v", d.Schedules, p.s.Schedules)
	}
}
