package session

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/eventlog"
	"github.com/transom-run/transom/eventlog/memlog"
	"github.com/transom-run/transom/internal/turn"
)

// gate is a log whose appends wait until they are let through.
type gate struct {
	*memlog.Log
	mu      sync.Mutex
	shut    bool
	arrived chan eventlog.Batch
	open    chan error
}

func (*gate) Waits() {}

func (g *gate) Append(b eventlog.Batch) (eventlog.Position, error) {
	g.mu.Lock()
	shut := g.shut
	g.mu.Unlock()
	if shut {
		g.arrived <- b
		if err := <-g.open; err != nil {
			return 0, err
		}
	}
	return g.Log.Append(b)
}

func (g *gate) close(shut bool) {
	g.mu.Lock()
	g.shut = shut
	g.mu.Unlock()
}

func gated(t *testing.T) (*rig, *gate, *Session) {
	r := &rig{t: t, store: memlog.New(), model: &fakeModel{}}
	log, err := r.store.Create(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{Log: log.(*memlog.Log), arrived: make(chan eventlog.Batch), open: make(chan error)}
	r.s = r.start(g, turn.State{}, rigConfig{})
	r.sub = NewSubscription("A")
	r.do(turn.Begin{SessionID: "s", Model: "m", Settings: turn.Settings{System: "SYS"}, Client: turn.Client{ID: "A"}}, r.sub)
	return r, g, r.s
}

// While a record is being written nothing of it is published or answered, nobody
// who posts has to wait, what was published can be read, and what comes meanwhile
// has its turn behind it.
func TestNothingBeforeItIsWritten(t *testing.T) {
	_, g, s := gated(t)
	g.close(true)
	var mu sync.Mutex
	var order []string
	done := make(chan struct{})
	note := func(name string) func(any, error) {
		return func(_ any, err error) {
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				name += " failed"
			}
			if order = append(order, name); len(order) == 3 {
				close(done)
			}
		}
	}
	end := g.End()
	s.Post(turn.Note{Payload: event.PlanChanged{Operation: "create"}}, nil, note("first"))
	b := <-g.arrived
	if len(b.Lines) != 1 {
		t.Fatalf("%d lines are written", len(b.Lines))
	}
	s.Post(turn.Note{Payload: event.PlanChanged{Operation: "update"}}, nil, note("second"))
	s.Post(turn.Note{Payload: event.PlanChanged{Operation: "delete"}}, nil, note("third"))
	if _, err := History(s.Log()); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	if len(order) > 0 || g.End() != end {
		t.Errorf("before it is written: answered %v, the log ends at %d", order, g.End())
	}
	mu.Unlock()
	g.open <- nil
	<-g.arrived
	g.open <- errors.New("the disk is full")
	<-g.arrived
	g.close(false)
	g.open <- nil
	<-done
	if want := []string{"first", "second failed", "third"}; !cmp.Equal(order, want) {
		t.Errorf("answered %v, want %v", order, want)
	}
	var got []string
	for rec, err := range g.Read(end) {
		if err != nil {
			t.Fatal(err)
		}
		e, err := event.Decode(rec.Line)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(e.Data))
	}
	if want := []string{`{"operation":"create"}`, `{"operation":"delete"}`}; !cmp.Equal(got, want) {
		t.Errorf("the log has %v, want %v", got, want)
	}
}

// A session that is to end while it writes ends behind what it writes.
func TestEndBehindWriting(t *testing.T) {
	_, g, s := gated(t)
	g.close(true)
	s.Post(turn.Note{Payload: event.PlanChanged{Operation: "create"}}, nil, nil)
	<-g.arrived
	s.Post(turn.Close{}, nil, nil)
	g.open <- nil
	b := <-g.arrived
	select {
	case <-s.Done():
		t.Fatal("the session has ended before its last record was written")
	default:
	}
	e, err := event.Decode(b.Lines[len(b.Lines)-1])
	if err != nil || e.Type != event.TypeSessionShutdown {
		t.Fatalf("the last record is %v, %v", e, err)
	}
	g.open <- nil
	select {
	case <-s.Done():
	case <-time.After(watchdog):
		t.Fatal("the session does not end")
	}
}
