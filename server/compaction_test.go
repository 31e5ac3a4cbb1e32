package server_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/transom-run/transom/model/scripted"
)

// A summary takes the place of the messages; a summary for others does not.
func TestCompactionMethods(t *testing.T) {
	w := play(t, scripted.Say("one"), scripted.Say("For others."), scripted.Say("<overview>short</overview>"), scripted.Say("two"))
	c := w.connect(t)
	c.create(id1)
	var summary struct{ Summary *string }
	c.ok("session.history.summarizeForHandoff", in(nil), &summary)
	if summary.Summary == nil || *summary.Summary != "" {
		t.Errorf("the summary of nothing is %v", summary)
	}
	var done struct {
		Success         bool
		MessagesRemoved int
		SummaryContent  string
	}
	c.ok("session.history.compact", in(nil), &done)
	if !done.Success || done.MessagesRemoved != 0 {
		t.Errorf("nothing compacted: %+v", done)
	}
	c.prompt(id1, "first")
	at := c.idle(0)
	before, _ := c.history(id1)
	c.ok("session.history.summarizeForHandoff", in(nil), &summary)
	if *summary.Summary != "For others." {
		t.Errorf("%q", *summary.Summary)
	}
	if after, _ := c.history(id1); !slices.Equal(before, after) {
		t.Errorf("the log has changed: %v, %v", before, after)
	}
	c.ok("session.history.compact", in(obj{"customInstructions": "Keep the numbers."}), &done)
	if !done.Success || done.MessagesRemoved != 2 || !strings.Contains(done.SummaryContent, "short") {
		t.Errorf("%+v", done)
	}
	c.eventAt(at, "session.compaction_complete")
	c.prompt(id1, "second")
	c.idle(at + 1)
	var cancelled struct{ Cancelled, Aborted bool }
	c.ok("session.history.cancelBackgroundCompaction", in(nil), &cancelled)
	c.ok("session.history.abortManualCompaction", in(nil), &cancelled)
	if cancelled.Cancelled || cancelled.Aborted {
		t.Errorf("there was nothing to cancel: %+v", cancelled)
	}
	requests := w.model.Requests()
	last := requests[len(requests)-1].Messages
	for _, m := range last {
		if m.Text == "one" {
			t.Errorf("the answer that was summarised is sent again: %+v", last)
		}
	}
	if n := len(last); n == 0 || !strings.Contains(last[n-1].Text, "second") {
		t.Errorf("the last request ends with %+v", last)
	}
}
