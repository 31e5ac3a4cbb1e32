package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/transom-run/transom/model/scripted"
)

// Prompts that are sent by themselves: what there is, what is wrong with others, and
// one that comes.
func TestSchedules(t *testing.T) {
	c := play(t, scripted.Say("done")).connect(t)
	c.create("s")
	type entry struct {
		ID                        int64
		IntervalMs, At            int64
		Cron, TZ, Prompt, Display string
		Recurring, SelfPaced      bool
		NextRunAt                 time.Time
	}
	type result struct {
		Entry *entry
		Error string
	}
	add := func(method string, o obj) (r result) {
		t.Helper()
		o["sessionId"] = "s"
		c.ok("session.schedule."+method, o, &r)
		return r
	}
	list := func() string {
		t.Helper()
		var r struct{ Entries []json.RawMessage }
		c.ok("session.schedule.list", obj{"sessionId": "s"}, &r)
		var out []string
		for _, raw := range r.Entries {
			var e entry
			if err := json.Unmarshal(raw, &e); err != nil {
				t.Fatal(err)
			}
			out = append(out, strings.TrimSpace(fmt.Sprintln(e.ID, e.Prompt, e.IntervalMs, e.Cron, e.TZ, e.Recurring, e.SelfPaced)))
		}
		return strings.Join(out, "; ")
	}
	begun, at := time.Now(), time.Now().Add(time.Hour).UnixMilli()
	if e := add("add", obj{"interval": "2h", "prompt": "A", "displayPrompt": "/a"}).Entry; e == nil || e.NextRunAt.Sub(begun) < 119*time.Minute || e.NextRunAt.Sub(begun) > 121*time.Minute {
		t.Errorf("%+v", e)
	}
	if e := add("addAt", obj{"at": at, "prompt": "B"}).Entry; e == nil || e.NextRunAt.UnixMilli() != at || e.At != at {
		t.Errorf("%+v", e)
	}
	if e := add("addCron", obj{"cron": "0 9 * * MON-FRI", "tz": "Europe/Berlin", "prompt": "C", "recurring": false}).Entry; e == nil || e.NextRunAt.Minute() != 0 {
		t.Errorf("%+v", e)
	}
	for _, bad := range []struct {
		method string
		params obj
		says   string
	}{
		{"add", obj{"interval": "soon", "prompt": "x"}, "no interval"}, {"add", obj{"interval": "10ms", "prompt": "x"}, "at least 1s"}, {"add", obj{"interval": "0s", "prompt": "x"}, "interval"},
		{"add", obj{"interval": "1m", "prompt": ""}, "not blank"}, {"addAt", obj{"at": 1, "prompt": "x"}, "in the future"}, {"addAt", obj{"at": at, "prompt": "x", "recurring": true}, "comes once"},
		{"addCron", obj{"cron": "* *", "prompt": "x"}, "2 fields"}, {"addCron", obj{"cron": "", "prompt": "x"}, "cron"}, {"rearmSelfPaced", obj{"id": 1, "at": at}, "no self-paced"},
	} {
		if r := add(bad.method, bad.params); r.Entry != nil || !strings.Contains(r.Error, bad.says) {
			t.Errorf("%s %v: %+v; want something of %q", bad.method, bad.params, r, bad.says)
		}
	}
	for method, o := range map[string]obj{"add": {"prompt": "x"}, "addAt": {"prompt": "x"}, "addCron": {"prompt": "x"}, "addSelfPaced": {}, "rearmSelfPaced": {"id": 1}} {
		o["sessionId"] = "s"
		c.fails(-32602, "session.schedule."+method, o)
	}
	paced := func() bool {
		var r struct{ HasSelfPaced bool }
		c.ok("session.schedule.hasSelfPaced", obj{"sessionId": "s"}, &r)
		return r.HasSelfPaced
	}
	const three = "1 A 7200000   true false; 2 B 0   false false; 3 C 0 0 9 * * MON-FRI Europe/Berlin false false"
	if got := list(); got != three || paced() {
		t.Errorf("%s", got)
	}
	c.ok("session.destroy", obj{"sessionId": "s"})
	c.ok("session.resume", obj{"sessionId": "s"})
	c.ok("session.schedule.hydrate", obj{"sessionId": "s"})
	if got := list(); got != three {
		t.Errorf("after a resume: %s", got)
	}
	for id, want := range map[int64]string{1: "A", 2: "B", 3: "C", 9: ""} {
		var r result
		c.ok("session.schedule.stop", obj{"sessionId": "s", "id": id}, &r)
		if r.Error != "" || (r.Entry == nil) != (want == "") || r.Entry != nil && r.Entry.Prompt != want {
			t.Errorf("stopping %d: %+v", id, r)
		}
	}
	if got := list(); got != "" {
		t.Errorf("%s", got)
	}
	from := c.count()
	if e := add("addSelfPaced", obj{"prompt": "D"}).Entry; e == nil || e.ID != 4 || !e.SelfPaced || !paced() {
		t.Errorf("%+v", e)
	}
	c.idle(from)
	if e := add("rearmSelfPaced", obj{"id": 4, "at": at}).Entry; e == nil || e.NextRunAt.UnixMilli() != at {
		t.Errorf("%+v", e)
	}
	var r struct {
		Events []struct {
			Type string
			Data struct{ Content, Source string }
		}
	}
	c.ok("session.getMessages", obj{"sessionId": "s"}, &r)
	var said []string
	for _, e := range r.Events {
		if e.Type == "user.message" {
			said = append(said, e.Data.Content+" "+e.Data.Source)
		}
	}
	if strings.Join(said, ";") != "D schedule-4" {
		t.Errorf("sent: %q", said)
	}
}
