package transom

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/internal/turn"
)

// Schedule has a prompt sent to the session at a time, or again and again, while the
// session is loaded and somebody is attached. Exactly one of Every, Cron, At and
// SelfPaced says when. What was missed meanwhile is sent once. Result: a
// [ScheduleEntry]; an invalid_params error says what is wrong with it.
type Schedule struct {
	// Every is an interval, from a second to 366 days.
	Every time.Duration
	// Cron is a cron expression of five fields, in the IANA time zone TZ; "" is that of
	// the computer, where its name is known, or else UTC.
	Cron, TZ string
	// At is an absolute time, to the millisecond; it has to lie in the future.
	At time.Time
	// SelfPaced: the prompt is sent at once, and then whenever [ArmSchedule] says.
	SelfPaced bool

	Prompt string
	// Display is shown to people instead; "" shows Prompt.
	Display string
	// Once: it is over when its time has come. An absolute time comes once anyway.
	Once bool
}

func (Schedule) op() string { return "session.schedule.add" }
func (s Schedule) body() (turn.Body, error) {
	ways := 0
	for _, given := range []bool{s.Every != 0, s.Cron != "", !s.At.IsZero(), s.SelfPaced} {
		if given {
			ways++
		}
	}
	if ways != 1 {
		return nil, &Error{Op: s.op(), Kind: KindInvalidParams, Msg: "a schedule needs one of an interval, a cron expression, a time, and to be self-paced"}
	}
	if n := len(s.Prompt) + len(s.Display); n > MaxPromptBytes/2 { // it is in several events
		return nil, &Error{Op: s.op(), Kind: KindInvalidParams, Msg: fmt.Sprintf("the prompt has %d bytes, more than the %d that a schedule's may have", n, MaxPromptBytes/2)}
	}
	p := event.ScheduleCreated{
		IntervalMs: s.Every.Milliseconds(), Cron: strings.Join(strings.Fields(s.Cron), " "), TZ: s.TZ, SelfPaced: s.SelfPaced,
		Prompt: s.Prompt, DisplayPrompt: s.Display, Recurring: !s.Once && s.At.IsZero(),
	}
	if !s.At.IsZero() {
		p.At = s.At.UnixMilli()
	}
	if s.Cron == "" {
		p.TZ = ""
	} else if p.TZ == "" {
		p.TZ = zone()
	}
	return turn.ChangeSchedule{Op: turn.ScheduleAdd, Entry: p}, nil
}

// zone names the computer's time zone; it is UTC where the name is not known.
func zone() string {
	name := time.Local.String()
	if name == "Local" {
		link, _ := filepath.EvalSymlinks("/etc/localtime")
		_, name, _ = strings.Cut(filepath.ToSlash(link), "/zoneinfo/")
	}
	if _, err := time.LoadLocation(name); err != nil || name == "" || filepath.IsAbs(name) {
		return "UTC"
	}
	return name
}

// ArmSchedule says when a self-paced schedule is due next. Result: its
// [ScheduleEntry].
type ArmSchedule struct {
	ID int64
	At time.Time
}

func (ArmSchedule) op() string { return "session.schedule.rearmSelfPaced" }
func (a ArmSchedule) body() (turn.Body, error) {
	return turn.ChangeSchedule{Op: turn.ScheduleArm, ID: a.ID, At: a.At.UnixMilli()}, nil
}

// StopSchedule takes a schedule away; a prompt of it that waits already has its turn.
// Result: what it was, a [ScheduleEntry], or nil where none has the id.
type StopSchedule struct{ ID int64 }

func (StopSchedule) op() string { return "session.schedule.stop" }
func (s StopSchedule) body() (turn.Body, error) {
	return turn.ChangeSchedule{Op: turn.ScheduleStop, ID: s.ID}, nil
}

// ScheduleEntry is a prompt that is sent by itself.
type ScheduleEntry struct {
	ID        int64         // from 1 on; the same after a resume
	Every     time.Duration // 0: it has none
	Cron, TZ  string
	At        time.Time // the zero Time: it has none
	SelfPaced bool
	Prompt    string
	Display   string // "" shows Prompt
	Recurring bool
	// Next is when it is due; of a self-paced one that was not armed since, when it
	// last was.
	Next time.Time
	// Resting: it is self-paced and waits to be armed.
	Resting bool
}

func entry(s turn.Schedule) ScheduleEntry {
	e := ScheduleEntry{
		ID: s.ID, Every: time.Duration(s.IntervalMs) * time.Millisecond, Cron: s.Cron, TZ: s.TZ, SelfPaced: s.SelfPaced,
		Prompt: s.Prompt, Display: s.DisplayPrompt, Recurring: s.Recurring, Next: time.UnixMilli(s.Next).UTC(), Resting: s.Resting,
	}
	if s.At != 0 {
		e.At = time.UnixMilli(s.At).UTC()
	}
	return e
}

// Schedules lists what is sent by itself, by id.
func (h *Session) Schedules() []ScheduleEntry {
	var out []ScheduleEntry
	for _, s := range h.sess.View().Schedules {
		out = append(out, entry(s))
	}
	return out
}

// ParseInterval reads an interval as people write it: "30s", "5m", "2h", "1h30m",
// "1d".
func ParseInterval(text string) (time.Duration, error) {
	text = strings.TrimSpace(text)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil {
			return time.Duration(n) * 24 * time.Hour, nil
		}
	} else if d, err := time.ParseDuration(text); err == nil {
		return d, nil
	}
	return 0, &Error{Kind: KindInvalidParams, Msg: fmt.Sprintf("%q is no interval: write it as 30s, 5m, 2h, 1h30m or 1d", text)}
}

func (Schedule) settle(v any, err error) (any, error)     { return scheduled(v, err) }
func (ArmSchedule) settle(v any, err error) (any, error)  { return scheduled(v, err) }
func (StopSchedule) settle(v any, err error) (any, error) { return scheduled(v, err) }

// scheduled makes a result of the core's.
func scheduled(v any, err error) (any, error) {
	if s, ok := v.(turn.Schedule); ok && err == nil {
		return entry(s), nil
	}
	return nil, err
}
