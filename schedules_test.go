package transom_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/eventlog/memlog"
	"github.com/transom-run/transom/model/modelfile"
	"github.com/transom-run/transom/model/scripted"
)

func TestParseInterval(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"30s": 30 * time.Second, "5m": 5 * time.Minute, " 2h ": 2 * time.Hour, "1h30m": 90 * time.Minute, "1d": 24 * time.Hour, "366d": 366 * 24 * time.Hour,
		"": -1, "5": -1, "soon": -1, "-1d": -1, "1.5d": -1, "99999999d": -1, "d": -1, "1 m": -1,
	} {
		got, err := transom.ParseInterval(text)
		if want < 0 && transom.KindOf(err) != transom.KindInvalidParams || want >= 0 && (err != nil || got != want) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

// TestSchedules: a prompt is sent at its times, and another one once, until it is
// stopped.
func TestSchedules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var replies []modelfile.Message
		for range 10 {
			replies = append(replies, scripted.Say("ok"))
		}
		rt, err := transom.Open(transom.Config{Store: memlog.New(), Provider: scripted.New(scripted.Config{Replies: replies}), Dir: "/work", Getenv: func(string) string { return "" }})
		if err != nil {
			t.Fatal(err)
		}
		defer rt.Close(t.Context())
		s, err := rt.CreateSession(t.Context(), transom.SessionConfig{ID: "s"})
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		for _, bad := range []transom.Schedule{
			{Prompt: "x"}, {Every: time.Minute, Cron: "* * * * *", Prompt: "x"}, {Every: time.Minute}, {At: begun.Add(-time.Second), Prompt: "x"},
			{Every: time.Minute, Prompt: strings.Repeat("x", transom.MaxPromptBytes)}, {Cron: "* * * * *", TZ: "No/Where", Prompt: "x"},
		} {
			if err := s.Do(t.Context(), bad); !errors.Is(err, &transom.Error{Kind: transom.KindInvalidParams}) {
				t.Errorf("%.80v: %v", bad, err)
			}
		}
		for _, good := range []transom.Schedule{
			{Every: 10 * time.Minute, Prompt: "often"}, {At: begun.Add(15 * time.Minute), Prompt: "once"}, {Cron: "*/30  * * * *", TZ: "UTC", Prompt: "on the half hour"},
			{Cron: "0 12 2 JUL *", Prompt: "each year"},
		} {
			if err := s.Do(t.Context(), good); err != nil {
				t.Fatal(err)
			}
		}
		if got := s.Schedules(); len(got) != 4 || got[0].Next.Sub(begun) != 10*time.Minute || got[1].Recurring || got[2].Cron != "*/30 * * * *" || got[3].TZ == "" {
			t.Errorf("%+v", got)
		}
		<-time.After(25 * time.Minute)
		synctest.Wait()
		if err := s.Do(t.Context(), transom.StopSchedule{ID: 1}); err != nil {
			t.Fatal(err)
		}
		<-time.After(10 * time.Minute)
		synctest.Wait()
		if got := s.Schedules(); len(got) != 2 || got[0].ID != 3 {
			t.Errorf("%+v", got)
		}
		events, err := s.Messages()
		if err != nil {
			t.Fatal(err)
		}
		var said []string
		for _, line := range events {
			e, err := event.Decode(line)
			if err != nil {
				t.Fatal(err)
			}
			if u, err := event.As[event.UserMessage](e); err == nil && e.Type == event.TypeUserMessage {
				said = append(said, u.Content)
			}
		}
		if got := strings.Join(said, ", "); got != "often, once, often, on the half hour" {
			t.Errorf("sent: %s", got)
		}
	})
}
