package event

// The types of the payloads below.
const (
	TypeScheduleCreated   = "session.schedule_created"
	TypeScheduleCancelled = "session.schedule_cancelled"
	TypeScheduleRearmed   = "session.schedule_rearmed"
	TypeScheduleSkipped   = "transom.schedule_skipped"
)

// ScheduleCreated says that a prompt is to be sent at a time, or again and again. One
// of IntervalMs, Cron, At and SelfPaced says when.
type ScheduleCreated struct {
	ID            int64  `json:"id"` // from 1 on, in the session
	IntervalMs    int64  `json:"intervalMs,omitempty"`
	Cron          string `json:"cron,omitempty"` // five fields
	TZ            string `json:"tz,omitempty"`   // an IANA time zone, of Cron
	At            int64  `json:"at,omitempty"`   // milliseconds since 1970
	SelfPaced     bool   `json:"selfPaced,omitempty"`
	Prompt        string `json:"prompt"`
	DisplayPrompt string `json:"displayPrompt,omitempty"`
	Recurring     bool   `json:"recurring"`
	Origin        string `json:"origin,omitempty"` // "user" or "model"
}

// ScheduleCancelled says that a schedule is no more, before its time came for good.
type ScheduleCancelled struct {
	ID int64 `json:"id"`
}

// ScheduleRearmed says when a self-paced schedule is due next.
type ScheduleRearmed struct {
	ID        int64 `json:"id"`
	NextRunAt int64 `json:"nextRunAt"` // milliseconds since 1970
}

// ScheduleSkipped says that a schedule was due while its last prompt still waited for
// its turn, and when it is due next.
type ScheduleSkipped ScheduleFired

// ScheduleFired says that a message is a schedule's, and when that is due next. It
// stands in the record of the message, so that neither is in the log without the
// other.
type ScheduleFired struct {
	ID   int64 `json:"id"`
	Next int64 `json:"next,omitempty"` // milliseconds since 1970; 0: not by itself
}

// EventType returns "session.schedule_created".
func (ScheduleCreated) EventType() string { return TypeScheduleCreated }

// EventType returns "session.schedule_cancelled".
func (ScheduleCancelled) EventType() string { return TypeScheduleCancelled }

// EventType returns "session.schedule_rearmed".
func (ScheduleRearmed) EventType() string { return TypeScheduleRearmed }

// EventType returns "transom.schedule_skipped".
func (ScheduleSkipped) EventType() string { return TypeScheduleSkipped }
