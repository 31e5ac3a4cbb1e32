package session

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/eventlog/memlog"
	"github.com/transom-run/transom/internal/turn"
)

// paged is a session to which notes are written.
func paged(t *testing.T) *Session {
	t.Helper()
	log, err := memlog.New().Create(context.Background(), "s")
	if err != nil {
		t.Fatal(err)
	}
	s := Start(Config{ID: "s", Log: log})
	t.Cleanup(func() {
		s.Post(turn.Close{}, nil, nil)
		<-s.Done()
	})
	do(t, s, turn.Begin{SessionID: "s", Client: turn.Client{ID: "A"}})
	return s
}

func do(t *testing.T, s *Session, b turn.Body) {
	t.Helper()
	if _, err := s.Do(context.Background(), b, nil); err != nil {
		t.Fatal(err)
	}
}

func note(t *testing.T, s *Session, text string, ephemeral bool) {
	t.Helper()
	var p event.Payload = event.SessionInfo{InfoType: "x", Message: text}
	if ephemeral {
		p = event.EphemeralNote{Payload: p}
	}
	do(t, s, turn.Note{Payload: p})
}

// texts are the notes of a page.
func texts(t *testing.T, events []*event.Event) (out []string) {
	t.Helper()
	for _, e := range events {
		var p struct{ Message string }
		if e.Type == event.TypeSessionInfo {
			if err := e.Into(&p); err != nil {
				t.Fatal(err)
			}
			out = append(out, p.Message)
		}
	}
	return out
}

func page(t *testing.T, s *Session, q PageQuery) Page {
	t.Helper()
	if q.Max == 0 {
		q.Max = 1000
	}
	p, err := s.ReadPage(context.Background(), q)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Pages of any size, read at any time, hold every persisted event once, and those
// that are not since the first read.
func TestPages(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for round := range 50 {
		s := paged(t)
		var want, kept, got, gotKept []string
		cursor, keptCursor := "", ""
		reading := false
		for i := range 200 {
			switch rnd.IntN(4) {
			case 0, 1:
				text := fmt.Sprint("p", i)
				note(t, s, text, false)
				want, kept = append(want, text), append(kept, text)
			case 2:
				text := fmt.Sprint("e", i)
				note(t, s, text, true)
				if reading {
					want = append(want, text)
				}
			case 3:
				p := page(t, s, PageQuery{Cursor: cursor, Max: 1 + rnd.IntN(5)})
				reading = true
				got, cursor = append(got, texts(t, p.Events)...), p.Cursor
				p = page(t, s, PageQuery{Cursor: keptCursor, Max: 1 + rnd.IntN(5), Persisted: true})
				gotKept, keptCursor = append(gotKept, texts(t, p.Events)...), p.Cursor
			}
		}
		for more := true; more; {
			p := page(t, s, PageQuery{Cursor: cursor, Max: 7})
			got, cursor, more = append(got, texts(t, p.Events)...), p.Cursor, p.More
		}
		for more := true; more; {
			p := page(t, s, PageQuery{Cursor: keptCursor, Max: 7, Persisted: true})
			gotKept, keptCursor, more = append(gotKept, texts(t, p.Events)...), p.Cursor, p.More
		}
		if !slices.Equal(got, want) {
			t.Fatalf("round %d: read %q\nwant %q", round, got, want)
		}
		if !slices.Equal(gotKept, kept) {
			t.Fatalf("round %d: persisted: read %q\nwant %q", round, gotKept, kept)
		}
		var back []string
		for cursor, more := "", true; more; {
			p := page(t, s, PageQuery{Cursor: cursor, Max: 1 + rnd.IntN(9), Backward: true})
			back, cursor, more = append(texts(t, p.Events), back...), p.Cursor, p.More
		}
		if !slices.Equal(back, kept) {
			t.Fatalf("round %d: backwards %q\nwant %q", round, back, kept)
		}
	}
}

// A page waits for an event that matches.
func TestPageWaits(t *testing.T) {
	s := paged(t)
	tail := s.TailCursor()
	if p := page(t, s, PageQuery{Cursor: tail}); len(p.Events) != 0 || p.More {
		t.Errorf("%+v", p)
	}
	got := make(chan Page, 1)
	go func() {
		p, _ := s.ReadPage(context.Background(), PageQuery{Cursor: tail, Max: 10, Wait: time.Minute, Match: func(e *event.Event) bool {
			return e.Type == event.TypeSessionInfo && strings.Contains(string(e.Line), "wanted")
		}})
		got <- p
	}()
	note(t, s, "other", true)
	note(t, s, "wanted", true)
	if p := <-got; !slices.Equal(texts(t, p.Events), []string{"wanted"}) {
		t.Errorf("%q", texts(t, p.Events))
	}
	if p := page(t, s, PageQuery{Cursor: s.TailCursor(), Wait: time.Millisecond}); len(p.Events) != 0 {
		t.Errorf("%+v", p)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := s.ReadPage(ctx, PageQuery{Cursor: s.TailCursor(), Max: 1, Wait: time.Minute}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// What overran the events that are kept says so, and loses nothing of the log.
func TestPageOverrun(t *testing.T) {
	s := paged(t)
	tail := s.TailCursor()
	big := strings.Repeat("x", maxKept/4)
	note(t, s, "first", false)
	for range 6 {
		note(t, s, big, true)
	}
	note(t, s, "last", false)
	p := page(t, s, PageQuery{Cursor: tail})
	got := slices.DeleteFunc(texts(t, p.Events), func(s string) bool { return s == big })
	for p.More {
		p2 := page(t, s, PageQuery{Cursor: p.Cursor})
		got = append(got, slices.DeleteFunc(texts(t, p2.Events), func(s string) bool { return s == big })...)
		p.More, p.Cursor = p2.More, p2.Cursor
	}
	if !p.Expired || !slices.Equal(got, []string{"first", "last"}) {
		t.Errorf("expired %v, read %q", p.Expired, got)
	}
	if p := page(t, s, PageQuery{Cursor: tail, Persisted: true}); p.Expired || !slices.Equal(texts(t, p.Events), []string{"first", "last"}) {
		t.Errorf("persisted: expired %v, read %q", p.Expired, texts(t, p.Events))
	}
}

// Cursors of nowhere are refused, or begin anew.
func TestBadCursors(t *testing.T) {
	s := paged(t)
	note(t, s, "one", false)
	for _, bad := range []string{"x", "f", "f.1.2", cursor{}.encode("other"), "f.zz.0.0.0.", "\x00", strings.Repeat("f.", 999)} {
		if _, err := s.ReadPage(context.Background(), PageQuery{Cursor: bad, Max: 1}); !errors.Is(err, ErrBadCursor) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	beyond := cursor{place: place{pos: 1 << 40}}
	for _, back := range []bool{false, true} {
		beyond.backward = back
		p := page(t, s, PageQuery{Cursor: beyond.encode("s"), Backward: back})
		if !p.Expired || !slices.Equal(texts(t, p.Events), []string{"one"}) {
			t.Errorf("back %v: expired %v, read %q", back, p.Expired, texts(t, p.Events))
		}
	}
}

func FuzzCursor(f *testing.F) {
	f.Add(cursor{place: place{pos: 12, skip: 3}, epoch: "ab", serial: 7}.encode("s"))
	f.Add(cursor{backward: true}.encode("s"))
	f.Add("f.1.2.3.4.5")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := decodeCursor("s", text)
		if err != nil {
			return
		}
		again, err := decodeCursor("s", c.encode("s"))
		if err != nil || again != c {
			t.Errorf("%q is %+v, and again %+v (%v)", text, c, again, err)
		}
	})
}
