package remote

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func numbered(n int, ephemeral bool) head {
	at := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC).Add(time.Duration(n) * time.Second)
	return head{Type: "x", ID: fmt.Sprintf("e%d", n), Timestamp: at.Format(time.RFC3339Nano), Ephemeral: ephemeral}
}

// A client that is attached, loses its link at any moment and is attached again
// has every persisted event once and in order, wherever the history and the live
// events of each attachment begin and end.
func TestEveryEventOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &Session{cfg: Config{SessionID: "s", History: true}, feed: newFeed(), fresh: true, prefix: []byte("{")}
		var got []string
		log := rapid.IntRange(0, 60).Draw(t, "events before")
		for link := range rapid.IntRange(1, 5).Draw(t, "links") {
			log += rapid.IntRange(0, 1500).Draw(t, fmt.Sprint("written before link ", link))
			attached := log // live events begin here
			log += rapid.IntRange(0, 5).Draw(t, "written before the history is read")
			var history []record
			for n := range log {
				h := numbered(n, false)
				history = append(history, record{head: h, line: json.RawMessage(h.ID)})
			}
			log += rapid.IntRange(0, 5).Draw(t, "written after the history was read")
			came := rapid.IntRange(attached, log).Draw(t, "live events that came early, up to")
			var live []early
			for n := attached; n < came; n++ {
				h := numbered(n, false)
				live = append(live, early{h, json.RawMessage(h.ID)})
				if rapid.Bool().Draw(t, "an ephemeral one") {
					live = append(live, early{numbered(100_000+n, true), json.RawMessage("ephemeral")})
				}
			}
			s.handOver(history, live)
			got = append(got, drain(s.feed)...)
			// The rest comes later, of which the break loses a part.
			broke := rapid.IntRange(came, log).Draw(t, "live events that came later, up to")
			for n := came; n < broke; n++ {
				if h := numbered(n, false); s.passes(&h) {
					got = append(got, h.ID)
				}
			}
		}
		for n, id := range got {
			if id != fmt.Sprint("e", n) {
				t.Fatalf("event %d that was handed on is %s", n, id)
			}
		}
	})
}

// drain takes the persisted events out of a feed.
func drain(f *feed) (ids []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, i := range f.items {
		id := string(i.pieces[len(i.pieces)/2])
		if id != "ephemeral" {
			ids = append(ids, id)
		}
	}
	f.items = nil
	return ids
}

// Where the history was cut back behind all that is remembered, time tells.
func TestHistoryCutBack(t *testing.T) {
	var p place
	for n := 10; n < 20; n++ {
		h := numbered(n, false)
		p.add(&h)
	}
	var history []record
	for _, n := range []int{0, 1, 2, 25, 26} {
		history = append(history, record{head: numbered(n, false)})
	}
	got := p.missing(history, nil)
	if len(got) != 2 || got[0].ID != "e25" {
		t.Errorf("missing: %v", got)
	}
}

func TestWork(t *testing.T) {
	var w work
	see := func(typ string) bool { return w.note(&head{Type: typ}) }
	see("user.message")
	if !w.busy {
		t.Error("a message begins no work")
	}
	w = work{made: true} // an idle was made up
	if see("session.idle") {
		t.Error("the real idle came after the one that was made up, and is handed on")
	}
	see("user.message")
	if !see("session.idle") || w.busy {
		t.Error("the next one is lost")
	}
}
