package session

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/eventlog"
	"github.com/transom-run/transom/eventlog/memlog"
)

// BenchmarkFold folds a log of 100 turns from its start.
func BenchmarkFold(b *testing.B) {
	r := newRig(b, rigConfig{})
	for i := range 100 {
		r.send(fmt.Sprintf("prompt %d", i))
		r.until(event.TypeSessionIdle)
	}
	log := struct{ eventlog.Log }{r.log} // without its checkpoints
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := Load(log); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkFanOut publishes an event to as many subscribers, who read it.
func BenchmarkFanOut(b *testing.B) {
	for _, n := range []int{1, 100} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			log, err := memlog.New().Create(b.Context(), "s")
			if err != nil {
				b.Fatal(err)
			}
			f := newFeed(log, 4<<20)
			subs := make([]*Subscription, n)
			for i := range subs {
				subs[i] = NewSubscription(fmt.Sprint(i))
				f.open(subs[i])
			}
			e, err := event.New(event.MessageDelta{MessageID: "m", DeltaContent: "word "}, "id", "", time.Time{})
			if err != nil {
				b.Fatal(err)
			}
			out := []publication{{ev: e}}
			buf := make([]*event.Event, 0, 8)
			b.ReportAllocs()
			for b.Loop() {
				f.publish(out)
				for _, s := range subs {
					if buf, err = s.Next(context.Background(), buf[:0]); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
