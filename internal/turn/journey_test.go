package turn

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/model"
)

// What journeys do to the history and the queue. The observer here knows the rules
// of boundaries by itself: it cuts a list of events.

// observe notes what the session's history has lost, and what of it may be in a
// request again: after a kill nothing else says which boundaries were written.
func (j *journey) observe() {
	there := map[string]bool{}
	clear := -1
	events := shown(j.log)
	for i, e := range events {
		for _, w := range wordPattern.FindAllString(string(e.Line), -1) {
			there[w] = true
		}
		if e.Type == event.TypeContextCleared {
			clear = i
		}
	}
	for _, q := range slices.Concat(j.s.Queue, j.s.Steering) {
		there[q.Prompt] = true
	}
	for n := 1; n <= j.words; n++ {
		w := fmt.Sprintf("W%dW", n)
		j.removed[w] = !there[w]
	}
	// What stands in the history before its newest clear, and nothing else of it, is
	// what no request may hold.
	j.banned = map[string]bool{}
	for _, e := range events[:max(clear, 0)] {
		for _, w := range wordPattern.FindAllString(string(e.Line), -1) {
			j.banned[w] = true
		}
	}
	if clear >= 0 {
		calls := map[string]bool{} // whose results are orphans
		for _, e := range events[:clear] {
			if e.Type == event.TypeToolStart {
				calls[payload[event.ToolStart](e).ToolCallID] = true
			}
		}
		for _, e := range events[clear:] {
			switch e.Type {
			case event.TypeToolStart:
				delete(calls, payload[event.ToolStart](e).ToolCallID)
			case event.TypeToolComplete:
				if calls[payload[event.ToolComplete](e).ToolCallID] {
					for _, w := range wordPattern.FindAllString(string(e.Line), -1) {
						j.banned[w] = true
					}
				}
			}
		}
		for _, w := range wordPattern.FindAllString(string(events[clear].Line), -1) {
			delete(j.banned, w)
		}
	}
	for _, q := range slices.Concat(j.s.Queue, j.s.Steering) {
		delete(j.banned, q.Prompt)
	}
	for w, gone := range j.removed {
		if gone {
			j.banned[w] = true
		}
	}
}

// goBack asks for a truncation, or a rewind, to any event.
func (j *journey) goBack() {
	events := shown(j.log)
	id := "none"
	if len(events) > 1 && rapid.IntRange(0, 9).Draw(j.rt, "known") > 0 {
		id = events[rapid.IntRange(1, len(events)-1).Draw(j.rt, "event")].ID
	}
	may := j.s.Phase() == Idle
	files := rapid.Bool().Draw(j.rt, "files")
	if files && may && !j.s.Tracked {
		j.step(Note{Payload: event.Tracking{}})
	}
	may = may && !(files && len(j.s.Live.Agents) > 0) // which may be changing files
	r, err := j.step(GoBack{EventID: id, Files: files})
	if (err == nil) != may {
		j.t.Fatalf("going back in %s: %v", j.s.Phase(), err)
	}
	if _, parked := r.Result.(Parked); err == nil && !parked {
		j.t.Fatalf("going back gave %v", r.Result)
	}
}

// goOn gives a history on its way back what it waits for.
func (j *journey) goOn() {
	b := j.s.goingBack()
	if b.past != nil {
		in := FilesRestored{ID: b.id, Restored: []string{"/f"}}
		if rapid.IntRange(0, 3).Draw(j.rt, "failed") == 0 {
			in.Err = errors.New("full")
		}
		j.back(in, in.Err == nil, b)
		return
	}
	in := PastFound{ID: b.id, Files: []event.FileRestore{{Path: "/f"}}}
	if in.Past, in.Err = j.past(b.eventID); in.Err == nil && rapid.IntRange(0, 5).Draw(j.rt, "failed") == 0 {
		in.Err = errors.New("full")
	}
	j.back(in, in.Err == nil && !b.files, b)
}

// back makes a step that may write a boundary, and holds it against the list of
// events that the observer cuts.
func (j *journey) back(in Body, cuts bool, b *back) {
	events := shown(j.log)
	at := slices.IndexFunc(events, func(e *event.Event) bool { return e.ID == b.eventID })
	n := len(j.log)
	waits := slices.Concat(j.s.Steering, j.s.Queue)
	if cuts {
		j.forget(events[:max(at, 0)], waits)
	}
	r, err := j.step(in)
	if err != nil {
		j.t.Fatalf("%s: %v", in.kind(), err)
	}
	wrote := slices.ContainsFunc(j.log[n:], func(e *event.Event) bool { return e.Type == event.TypeTruncated })
	if wrote != cuts {
		j.t.Fatalf("a boundary was written: %v, want %v", wrote, cuts)
	}
	if cuts {
		if !r.Sync {
			j.t.Fatalf("a boundary was not synced")
		}
		now := shown(j.log)
		for i, e := range events[:at] {
			if now[i].ID != e.ID {
				j.t.Fatalf("event %d of the history changed", i)
			}
		}
		for _, e := range events[at:] {
			if slices.ContainsFunc(now, func(o *event.Event) bool { return o.ID == e.ID }) {
				j.t.Fatalf("%s is still in the history", e.Type)
			}
		}
	}
	if b.asked && j.s.goingBack() == nil && len(r.Answers) != 1 {
		j.t.Fatalf("%d answers to whoever waits", len(r.Answers))
	}
}

// forget tells the observer what a boundary removes, before it is written.
func (j *journey) forget(left []*event.Event, waits []event.Queued) {
	log, s := j.log, j.s
	j.log, j.s.Queue, j.s.Steering = left, waits, nil
	j.observe()
	j.log, j.s = log, s
}

// fork copies the history up to any event, and goes on in the copy: with another
// prompt, the copy's own state holding what all states hold.
func (j *journey) fork() {
	events := shown(j.log)
	left := events[:rapid.IntRange(1, len(events)).Draw(j.rt, "to")]
	var d Durable
	for _, e := range left {
		var err error
		if d, err = d.Apply(e); err != nil {
			j.t.Fatalf("fold the copy: %v", err)
		}
	}
	if d.SessionID == "" {
		return // the history does not begin with session.start
	}
	next, _ := idsFrom(800000)
	closing, err := Sever(d, j.now, next)
	if err != nil {
		j.t.Fatalf("sever: %v", err)
	}
	w := newWorld(j.rt)
	w.log, w.now, w.ids = append(slices.Clone(left), closing...), j.now, 700000
	w.kill(len(w.log))
	if w.s.Loop.Open || len(w.s.Queue)+len(w.s.Steering)+len(w.s.Approved) > 0 {
		j.t.Fatalf("the copy has something open: %s", print(&w.s))
	}
	if got, want := showMessages(w.s.Window.Messages("")), showMessages(d.Window.Messages("")); len(closing) == 0 && got != want {
		j.t.Fatalf("the copy's window is %s, not %s", got, want)
	}
	settings := Settings{System: "SYS", ApproveAll: true, Version: "v"}
	for _, b := range []Body{Resume{Client: Client{ID: "F"}, Loaded: true, Continue: true, Settings: &settings}, Send{Message: event.Queued{Prompt: "fork"}}} {
		if _, err := w.step(b); err != nil {
			j.t.Fatalf("%s in the copy: %v", b.kind(), err)
		}
	}
	if w.s.Phase() != Thinking { // the world checks the request
		j.t.Fatalf("the copy is %s", w.s.Phase())
	}
}

// arrange changes what waits.
func (j *journey) arrange() {
	queue, steering := j.s.Waiting()
	id := "none"
	if all := slices.Concat(queue, steering); len(all) > 0 && rapid.IntRange(0, 5).Draw(j.rt, "known") > 0 {
		id = rapid.SampledFrom(all).Draw(j.rt, "item").MessageID
	}
	in := Arrange{ID: id, Position: rapid.IntRange(-1, 4).Draw(j.rt, "position"), On: rapid.Bool().Draw(j.rt, "on")}
	in.Op = rapid.SampledFrom([]ArrangeOp{ArrangeInsert, ArrangeCopy, ArrangeMove, ArrangeEdit, ArrangeSteer, ArrangeRemove, ArrangeNewest, ArrangeClear, ArrangePause}).Draw(j.rt, "op")
	switch in.Op {
	case ArrangePause:
		if j.s.Live.Paused { // or nothing would go on any more
			in.On = false
		}
	case ArrangeInsert, ArrangeEdit:
		in.Message.Prompt = j.word()
	}
	j.arranged = true
	waiting := func() map[string]string {
		out := map[string]string{}
		queue, steering := j.s.Waiting()
		for _, q := range slices.Concat(queue, steering) {
			out[q.MessageID] = q.Prompt
		}
		return out
	}
	before := waiting()
	taken := map[string]bool{} // what a user takes away is lost on purpose
	switch in.Op {
	case ArrangeRemove, ArrangeEdit:
		taken[before[id]] = true
	case ArrangeNewest, ArrangeClear:
		for _, w := range before {
			taken[w] = true
		}
	}
	for w := range taken {
		if !j.removed[w] {
			j.removed[w] = true
			defer func() {
				kept := slices.ContainsFunc(slices.Concat(j.s.Queue, j.s.Steering), func(q event.Queued) bool { return q.Prompt == w })
				j.removed[w] = !kept
			}()
		}
	}
	if in.Op == ArrangeSteer { // it goes before what waits
		j.steering[before[id]] = j.steering[before[id]] || j.s.Phase() == Thinking || j.s.Phase() == Acting
	}
	_, err := j.step(in)
	var refusal *Refusal
	if err != nil && !errors.As(err, &refusal) {
		j.t.Fatalf("arrange: %v", err)
	}
	if in.Op == ArrangeMove && err == nil {
		if after := waiting(); len(after) != len(before) {
			j.t.Fatalf("moving changed %v to %v", before, after)
		}
	}
}

// compaction begins, ends or drops a summary.
func (j *journey) compaction() {
	c := j.s.Live.Compacting
	if c == nil {
		if _, err := j.step(Compact{}); err == nil && j.s.Live.Compacting == nil {
			j.t.Fatalf("a compaction that began is not there")
		}
		return
	}
	in := CompactionDone{ID: c.id}
	switch rapid.IntRange(0, 4).Draw(j.rt, "summary") {
	case 0:
		j.step(CancelCompaction{})
		return
	case 1:
		in.Err = &model.Error{Kind: model.Query, Msg: "no"}
	default:
		in.Response = model.Response{Model: "m", Message: model.Message{Role: model.Assistant, Text: "SUMMARY" + strings.Repeat("!", rapid.IntRange(0, 3).Draw(j.rt, "length"))}}
	}
	if _, err := j.step(in); err != nil {
		j.t.Fatalf("summary: %v", err)
	}
}
