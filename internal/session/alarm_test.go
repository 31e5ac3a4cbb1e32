package session

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/internal/turn"
	"github.com/transom-run/transom/model"
)

// every adds a schedule and returns it.
func (r *rig) every(d time.Duration, prompt string) turn.Schedule {
	r.t.Helper()
	s, ok := r.do(turn.ChangeSchedule{Op: turn.ScheduleAdd, Entry: event.ScheduleCreated{Prompt: prompt, IntervalMs: d.Milliseconds(), Recurring: true}}, nil).(turn.Schedule)
	if !ok {
		r.t.Fatal("no schedule was answered")
	}
	return s
}

// fired lists how long after a time each prompt of a schedule came to the log.
func (r *rig) fired(begun time.Time) (out []time.Duration) {
	r.t.Helper()
	for _, e := range r.records() {
		if u, err := event.As[event.UserMessage](e); err == nil && e.Type == event.TypeUserMessage && u.Source == "schedule-1" {
			out = append(out, e.Timestamp.Sub(begun).Round(time.Second))
		}
	}
	return out
}

// after lets time go by inside a bubble.
func after(d time.Duration) { <-time.After(d); synctest.Wait() }

// TestSchedule: a schedule sends its prompt at its times, over waits longer than the
// timer's, until it is stopped; a session that is not loaded sends none, and one that
// is resumed sends what it missed once.
func TestSchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, rigConfig{})
		begun := time.Now()
		if s := r.every(7*time.Minute, "again"); s.ID != 1 || s.Next != begun.Add(7*time.Minute).UnixMilli() {
			t.Errorf("%+v", s)
		}
		after(20 * time.Minute)
		if got := r.fired(begun); !slices.Equal(got, []time.Duration{7 * time.Minute, 14 * time.Minute}) {
			t.Errorf("fired after %v", got)
		}
		r.do(turn.Suspend{}, nil)
		<-r.s.Done()
		after(time.Hour) // nobody has it

		log, _, err := r.store.Open(context.Background(), "s")
		if err != nil {
			t.Fatal(err)
		}
		state, _, err := Load(log)
		if err != nil {
			t.Fatal(err)
		}
		r.s = r.start(log, state, rigConfig{})
		r.do(turn.Resume{Client: turn.Client{ID: "B"}, Loaded: true}, nil)
		after(8 * time.Minute)
		if got := r.fired(begun); !slices.Equal(got, []time.Duration{7 * time.Minute, 14 * time.Minute, 80 * time.Minute, 87 * time.Minute}) {
			t.Errorf("fired after %v", got)
		}
		if got, ok := r.do(turn.ChangeSchedule{Op: turn.ScheduleStop, ID: 1}, nil).(turn.Schedule); !ok || got.Prompt != "again" {
			t.Errorf("stopped %+v", got)
		}
		after(time.Hour)
		if got := r.fired(begun); len(got) != 4 {
			t.Errorf("fired after it was stopped: %v", got)
		}
		r.end()
	})
}

// TestScheduleUnwritten: a tick that cannot be written has not happened; it is tried
// again, and no turn ends over it.
func TestScheduleUnwritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan bool)
		r := newRig(t, rigConfig{})
		r.model.answer = func(ctx context.Context, n int, _ *model.Request) (model.Message, error) {
			if n == 1 {
				select {
				case <-release:
				case <-ctx.Done():
					return model.Message{}, ctx.Err()
				}
			}
			return text("ok"), nil
		}
		r.send("go")
		begun := time.Now()
		r.every(10*time.Second, "again")
		r.log.set(failOn(event.TypeQueued))
		after(15 * time.Second)
		if v := r.s.View(); v.Phase() != turn.Thinking || len(v.Queue) != 0 {
			t.Errorf("after a failure the session is %s, and %v waits", v.Phase(), v.Queue)
		}
		r.log.set(nil)
		close(release)
		synctest.Wait()
		if n := count(r.records(), event.TypeSessionError); n != 0 {
			t.Errorf("%d errors", n)
		}
		after(60 * time.Second)
		if got := r.fired(begun); !slices.Equal(got, []time.Duration{70 * time.Second}) {
			t.Errorf("fired after %v", got)
		}
		r.end()
	})
}
