package hostlog

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/transom-run/transom/eventlog"
	"github.com/transom-run/transom/eventlog/eventlogtest"
	"github.com/transom-run/transom/sessionfs"
	"github.com/transom-run/transom/sessionfs/sessionfstest"
)

// hosts keeps many sessions, as the process of a host does.
type hosts struct {
	mu  sync.Mutex
	all map[string]*sessionfstest.Memory
}

func (h *hosts) open(id string) (sessionfs.FS, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all == nil {
		h.all = map[string]*sessionfstest.Memory{}
	}
	m := h.all[id]
	if m == nil {
		m = sessionfstest.New()
		h.all[id] = m
	}
	return m, nil
}

var layout = sessionfs.Layout{Root: "/state"}

func TestConformance(t *testing.T) {
	eventlogtest.Run(t, func(t *testing.T) eventlog.Store {
		return New(Config{Open: new(hosts).open, Layout: layout})
	}, eventlogtest.Options{})
}

func one(t *testing.T) (*Store, *sessionfstest.Memory) {
	t.Helper()
	m := sessionfstest.New()
	return New(Config{Open: func(string) (sessionfs.FS, error) { return m, nil }, Layout: layout}), m
}

func read(t *testing.T, l eventlog.Log) (lines []string, damage []string) {
	t.Helper()
	for r, err := range l.Read(0) {
		var d *eventlog.DamageError
		switch {
		case errors.As(err, &d):
			damage = append(damage, d.Damage.Reason)
		case err != nil:
			t.Fatal(err)
		default:
			lines = append(lines, string(r.Line))
		}
	}
	return lines, damage
}

func text(lines ...[]byte) (out []string) {
	for _, l := range lines {
		out = append(out, string(l))
	}
	return out
}

// An append whose answer does not come has not happened, and never will have: not
// where the host carries it out too late, and not where it does so even later,
// behind what was appended since.
func TestTooLate(t *testing.T) {
	for _, late := range []bool{false, true} {
		t.Run(fmt.Sprintf("later still %v", late), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, m := one(t)
				l, err := s.Create(t.Context(), "s")
				if err != nil {
					t.Fatal(err)
				}
				if _, err := l.Append(eventlog.Batch{Lines: eventlogtest.Lines(0, 2)}); err != nil {
					t.Fatal(err)
				}
				var hang atomic.Bool
				hang.Store(true)
				m.Hook = func(op, _ string) error {
					if hang.Load() && op == "appendFile" {
						<-time.After(time.Hour)
					}
					return nil
				}
				m.Landed = func(string, string) bool { return !late }
				begun := time.Now()
				if _, err := l.Append(eventlog.Batch{Lines: eventlogtest.Lines(2, 4), Sync: true}); err == nil {
					t.Fatal("an append that nobody answered succeeded")
				}
				if took := time.Since(begun); took != DefaultAppendTime {
					t.Errorf("it took %v", took)
				}
				hang.Store(false)
				want := text(eventlogtest.Line(0), eventlogtest.Line(1))
				if got, _ := read(t, l); !cmp.Equal(got, want) {
					t.Fatalf("after the failure: %v", got)
				}
				if _, err := l.Append(eventlog.Batch{Lines: eventlogtest.Lines(4, 5)}); err != nil {
					t.Fatal(err)
				}
				if late { // it arrives in the end
					m.Put("/state/"+File, m.Get("/state/"+File)+string(eventlogtest.Line(2))+"\n"+string(eventlogtest.Line(3))+"\n")
				}
				want = append(want, string(eventlogtest.Line(4)))
				again, damages, err := s.Open(t.Context(), "s")
				if err != nil || len(damages) > 0 {
					t.Fatal(err, damages)
				}
				for _, l := range []eventlog.Log{l, again} {
					if got, damage := read(t, l); !cmp.Equal(got, want) || damage != nil {
						t.Errorf("records %v, damage %v; the file:\n%s", got, damage, m.Get("/state/"+File))
					}
				}
				<-time.After(2 * time.Hour) // let the host's own goroutine end
			})
		})
	}
}

// Provisional records that went with an append which failed are written again, and
// count once.
func TestAgain(t *testing.T) {
	s, m := one(t)
	l, err := s.Create(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	l.Append(eventlog.Batch{Lines: eventlogtest.Lines(0, 1), Provisional: true})
	fail := true
	m.Hook = func(op, _ string) error {
		if fail && op == "appendFile" {
			return errors.New("the disk is full")
		}
		return nil
	}
	m.Landed = func(string, string) bool { return true }
	_, err = l.Append(eventlog.Batch{Lines: eventlogtest.Lines(1, 2)})
	if err == nil || !strings.Contains(err.Error(), "the disk is full") {
		t.Fatalf("error %v", err)
	}
	fail = false
	if _, err := l.Append(eventlog.Batch{Lines: eventlogtest.Lines(2, 3)}); err != nil {
		t.Fatal(err)
	}
	want := text(eventlogtest.Line(0), eventlogtest.Line(2))
	again, _, err := s.Open(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range []eventlog.Log{l, again} {
		if got, _ := read(t, l); !cmp.Equal(got, want) {
			t.Errorf("records %v; the file:\n%s", got, m.Get("/state/"+File))
		}
	}
}

// What is damaged is passed over; a torn end stays where it is, and the next record
// begins on a line of its own.
func TestDamage(t *testing.T) {
	s, m := one(t)
	m.Put("/state/"+File, `{"id":"a"}`+"\nrubbish\n"+`{"id":"b"}`+"\n"+`{"id":"c","torn`)
	l, damages, err := s.Open(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	if len(damages) != 1 || damages[0].Reason != "torn last record" || damages[0].Dropped {
		t.Errorf("damage at the end: %v", damages)
	}
	if _, err := l.Append(eventlog.Batch{Lines: [][]byte{[]byte(`{"id":"d"}`)}}); err != nil {
		t.Fatal(err)
	}
	again, damages, err := s.Open(t.Context(), "s")
	if err != nil || len(damages) > 0 {
		t.Fatal(err, damages)
	}
	want := []string{`{"id":"a"}`, `{"id":"b"}`, `{"id":"d"}`}
	for l, bad := range map[eventlog.Log]int{l: 1, again: 2} {
		if got, damage := read(t, l); !cmp.Equal(got, want) || len(damage) != bad {
			t.Errorf("records %v, damage %v", got, damage)
		}
	}
}

// A host that is gone is an error of its own, not a missing session.
func TestHostGone(t *testing.T) {
	gone := errors.New("the host is gone")
	s := New(Config{Open: func(string) (sessionfs.FS, error) { return nil, gone }, Layout: layout})
	ctx := context.Background()
	_, err := s.Create(ctx, "s")
	_, _, opened := s.Open(ctx, "s")
	_, stat := s.Stat(ctx, "s")
	for i, err := range []error{err, opened, stat, s.Delete(ctx, "s")} {
		if !errors.Is(err, gone) || errors.Is(err, eventlog.ErrNotFound) {
			t.Errorf("%d: %v", i, err)
		}
	}
}

// FuzzLoad: whatever the file holds, it can be read, and what is appended to it is
// found again.
func FuzzLoad(f *testing.F) {
	for _, s := range []string{
		"", "\n", `{"id":"a"}`, "{\"id\":\"a\"}\n{\"id\":\"a\"}\n", "{\"id\":\"a\"", "\x00\x00\n{}",
		`{"type":"transom.void","id":"v","data":{"ids":["a"]}}` + "\n" + `{"id":"a"}` + "\n",
		"{\"id\":\"a\"}{\"id\":\"b\"}\n", "\xff\n", `{"type":"transom.void","data":{"ids":3}}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, file string) {
		s, m := one(t)
		m.Put("/state/"+File, file)
		l, _, err := s.Open(t.Context(), "s")
		if err != nil {
			t.Fatal(err)
		}
		before, _ := read(t, l)
		line := `{"id":"the new one, which no seed has"}`
		if _, err := l.Append(eventlog.Batch{Lines: [][]byte{[]byte(line)}}); err != nil {
			t.Fatal(err)
		}
		again, _, err := s.Open(t.Context(), "s")
		if err != nil {
			t.Fatal(err)
		}
		got, _ := read(t, again)
		if strings.Contains(file, "the new one") {
			return
		}
		if want := append(before, line); !cmp.Equal(got, want) {
			t.Errorf("records %q, want %q", got, want)
		}
	})
}
