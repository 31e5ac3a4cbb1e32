package session

import (
	"time"

	"github.com/transom-run/transom/internal/turn"
)

// alarm is the one timer of a session's schedules: it posts a turn.Tick when the
// state says that one may be due. It is the actor's own.
type alarm struct {
	at    time.Time // what it is set for; the zero Time: not set
	timer *time.Timer
}

const (
	// longestAlarm bounds a wait: timers stand still while a machine sleeps, and its
	// clock may be set.
	longestAlarm = 5 * time.Minute
	// alarmRetry is the time until a tick that could not be written is tried again.
	alarmRetry = time.Minute
)

// setAlarm sets the timer as the state wants it.
func (s *Session) setAlarm() {
	at := s.state.Alarm()
	if at.Equal(s.alarm.at) {
		return
	}
	s.stopAlarm()
	if !at.IsZero() {
		s.ringIn(at, min(max(0, time.Until(at)), longestAlarm))
	}
}

func (s *Session) ringIn(at time.Time, d time.Duration) {
	s.alarm.at = at
	s.alarm.timer = time.AfterFunc(d, func() { s.box.post(item{body: turn.Tick{}}) })
}

func (s *Session) stopAlarm() {
	if s.alarm.timer != nil {
		s.alarm.timer.Stop()
	}
	s.alarm = alarm{}
}

// ringLater sets the timer after a tick that could not be written: nothing of it has
// happened, and the turn that runs goes on.
func (s *Session) ringLater(err error) {
	s.cfg.Logger.Warn("schedule not written, tried again", "session", s.cfg.ID, "in", alarmRetry, "error", err)
	s.stopAlarm()
	if at := s.state.Alarm(); !at.IsZero() {
		s.ringIn(at, alarmRetry)
	}
}
