package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/eventlog"
	"github.com/transom-run/transom/eventlog/memlog"
	"github.com/transom-run/transom/internal/turn"
	"github.com/transom-run/transom/tool"
)

// reader is a subscription and what is expected of it.
type reader struct {
	sub    *Subscription
	client string
	opened bool
	due    []string // ids of persisted events it has not had yet, in order
	all    []string // ids of all events it may have
}

// TestFeed plays random steps and reads at random moments, with a lag so small
// that every subscriber falls behind all the time: none loses a persisted event,
// has one twice or out of order, or sees what is private or hidden from it.
func TestFeed(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		store := memlog.New()
		log, err := store.Create(context.Background(), "s")
		if err != nil {
			rt.Fatal(err)
		}
		maxLag := rapid.SampledFrom([]int64{1, 300, 3000, 1 << 20}).Draw(rt, "lag")
		s := &Session{cfg: Config{Log: log}, feed: newFeed(log, maxLag)}
		readers := []*reader{}
		for i := range rapid.IntRange(1, 3).Draw(rt, "readers") {
			client := fmt.Sprint("C", i)
			readers = append(readers, &reader{sub: NewSubscription(client), client: client})
		}
		ids, lines := 0, 0
		parent := ""
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			if n := rapid.IntRange(0, 5).Draw(rt, "what"); n > 2 {
				r := rapid.SampledFrom(readers).Draw(rt, "reader")
				if !r.opened {
					r.opened = true
					s.feed.open(r.sub)
				}
				r.read(rt, n == 5)
				continue
			}
			var events []*event.Event
			var batch eventlog.Batch
			size := rapid.SampledFrom([]int{1, 2, 5, 300}).Draw(rt, "size")
			for range rapid.IntRange(1, size).Draw(rt, "events") {
				ids++
				id := fmt.Sprint("e", ids)
				var p event.Payload = event.TurnEnd{TurnID: id}
				switch rapid.IntRange(0, 5).Draw(rt, "kind") {
				case 0:
					p = event.TitleChanged{Title: id}
				case 1:
					p = event.LoopEnd{}
				case 2:
					p = event.ExternalToolRequested{RequestID: id, ToolName: "a", Arguments: []byte("{}")}
				}
				e, err := event.New(p, id, parent, time.Now())
				if err != nil {
					rt.Fatal(err)
				}
				events = append(events, e)
				if e.Persisted() {
					batch.Lines = append(batch.Lines, e.Line)
					lines++
				}
			}
			s.wrote = log.End()
			if len(batch.Lines) > 0 {
				if s.wrote, err = log.Append(batch); err != nil {
					rt.Fatal(err)
				}
			}
			// Between the append and its publication a reader may catch up.
			if rapid.Bool().Draw(rt, "between") {
				for _, r := range readers {
					if r.opened {
						r.read(rt, false)
					}
				}
			}
			s.publish(events)
			hiddenFrom := rapid.SampledFrom([]string{"", "C0", "C1"}).Draw(rt, "hidden")
			for i := range s.out {
				if s.out[i].ev.Type == event.TypeExternalToolRequested && hiddenFrom != "" {
					s.out[i].not = []string{hiddenFrom}
				}
			}
			s.flush()
			for _, r := range readers {
				for _, e := range events {
					if !r.opened || !e.Public() || e.Type == event.TypeExternalToolRequested && r.client == hiddenFrom {
						continue
					}
					r.all = append(r.all, e.ID)
					if e.Persisted() {
						r.due = append(r.due, e.ID)
					}
				}
			}
		}
		closed := false
		s.feed.end(func() { closed = true; log.Close() })
		for _, r := range readers {
			if !r.opened {
				s.feed.open(r.sub)
			}
			r.read(rt, true)
			ctx, cancel := context.WithTimeout(context.Background(), watchdog)
			if _, err := r.sub.Next(ctx, nil); !errors.Is(err, ErrEnded) {
				rt.Fatalf("after the end: %v", err)
			}
			cancel()
			if len(r.due) > 0 {
				rt.Fatalf("%s never had %v", r.client, r.due)
			}
		}
		if !closed {
			rt.Fatal("the log was not closed after its last reader")
		}
	})
}

// read takes what is there: one batch, or all.
func (r *reader) read(rt *rapid.T, all bool) {
	for first := true; first || all; first = false {
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // never wait
		es, err := r.sub.Next(ctx, nil)
		for _, e := range es {
			i := slices.Index(r.all, e.ID)
			if i < 0 {
				rt.Fatalf("%s had %s %s out of order, twice, or not meant for it", r.client, e.Type, e.ID)
			}
			r.all = r.all[i+1:]
			if e.Persisted() {
				if len(r.due) == 0 || r.due[0] != e.ID {
					rt.Fatalf("%s had %s; due were %v", r.client, e.ID, r.due)
				}
				r.due = r.due[1:]
			}
		}
		if err != nil || len(es) == 0 {
			return
		}
	}
}

// TestCloseBeforeOpening: a subscription that was closed before it was opened is
// not kept.
func TestCloseBeforeOpening(t *testing.T) {
	log, err := memlog.New().Create(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	f := newFeed(log, 1)
	sub := NewSubscription("A")
	sub.Close()
	f.open(sub)
	if len(f.subs) != 0 {
		t.Error("the subscription is kept")
	}
	if _, err := sub.Next(t.Context(), nil); !errors.Is(err, ErrEnded) {
		t.Errorf("next: %v", err)
	}
	sub.Close()
}

// TestSlowSubscriber: one that reads nothing until the session is over has every
// persisted event in the end, those of the end included.
func TestSlowSubscriber(t *testing.T) {
	r := newRig(t, rigConfig{maxLag: 1, stream: true})
	slow := NewSubscription("slow")
	r.s.Subscribe(slow)
	for range 20 {
		r.send("go")
		r.until(event.TypeSessionIdle) // it lags as well, and has the newest idle
	}
	r.do(turn.Close{}, nil)
	r.gone(r.s)
	var got []*event.Event
	for {
		var err error
		if got, err = slow.Next(t.Context(), got); err != nil {
			if !errors.Is(err, ErrEnded) {
				t.Fatal(err)
			}
			break
		}
	}
	var want []string
	for i, e := range r.records() {
		if e.Public() && i > 0 { // the subscription came after session.start
			want = append(want, e.ID)
		}
	}
	var ids []string
	for _, e := range got {
		if e.Persisted() {
			ids = append(ids, e.ID)
		}
	}
	if diff := cmp.Diff(want, ids); diff != "" {
		t.Errorf("events (-log +slow):\n%s", diff)
	}
}

// TestOlderDeclarers: a request to run a tool goes to the newest client that
// declared it, to those that declared nothing of the name, and to no older one,
// however far behind it is.
func TestOlderDeclarers(t *testing.T) {
	for _, lag := range []int64{1, 0} {
		t.Run(fmt.Sprint("lag ", lag), func(t *testing.T) {
			tools := []tool.Tool{{Name: "a"}}
			r := newRig(t, rigConfig{tools: tools, maxLag: lag}, calls("c1:a"))
			subs := map[string]*Subscription{}
			for _, c := range []turn.Client{
				{ID: "B", Tools: registry(t, tools)},
				{ID: "C", Tools: registry(t, []tool.Tool{{Name: "other"}})},
				{ID: "D"},
			} {
				subs[c.ID] = NewSubscription(c.ID)
				r.do(turn.Attach{Client: c}, subs[c.ID])
			}
			r.send("go")
			requests := func(sub *Subscription) int {
				return count(r.read(sub, func(e *event.Event) bool { return e.Type == event.TypeExternalToolCompleted }), event.TypeExternalToolRequested)
			}
			var q string
			r.read(subs["B"], func(e *event.Event) bool {
				if p, ok := e.Payload.(event.ExternalToolRequested); ok {
					q = p.RequestID
				} else if e.Type == event.TypeExternalToolRequested {
					p, _ := event.As[event.ExternalToolRequested](e)
					q = p.RequestID
				}
				return q != ""
			})
			r.answer(q, "x")
			if n := requests(r.sub); n != 0 {
				t.Errorf("the older declarer was asked %d times", n)
			}
			for _, id := range []string{"C", "D"} {
				if n := requests(subs[id]); n != 1 {
					t.Errorf("%s saw the request %d times", id, n)
				}
			}
			for _, sub := range subs {
				sub.Close()
			}
		})
	}
}

// TestManyResumes: however often a client resumes, each of its subscriptions
// has each event once, and a closed one none.
func TestManyResumes(t *testing.T) {
	r := newRig(t, rigConfig{})
	var last *Subscription
	for range 10 {
		if last != nil {
			last.Close()
		}
		last = NewSubscription("A")
		r.do(turn.Resume{Client: turn.Client{ID: "A"}}, last)
	}
	if n := len(r.s.View().Live.Clients); n != 1 {
		t.Errorf("%d clients", n)
	}
	r.send("go")
	es := r.read(last, func(e *event.Event) bool { return e.Type == event.TypeSessionIdle })
	if n := count(es, event.TypeAssistantMessage); n != 1 {
		t.Errorf("%d answers", n)
	}
}
