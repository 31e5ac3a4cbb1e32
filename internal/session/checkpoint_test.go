package session

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/eventlog"
	"github.com/transom-run/transom/eventlog/filelog"
	"github.com/transom-run/transom/internal/turn"
	"github.com/transom-run/transom/model"
)

// counted is a log that counts how its checkpoints are kept.
type counted struct {
	*filelog.Log
	saved, added, written int
	full                  atomic.Bool // nothing can be added
}

func (l *counted) SaveCheckpoint(pos eventlog.Position, data []byte) error {
	l.saved++
	l.written += len(data)
	return l.Log.SaveCheckpoint(pos, data)
}

func (l *counted) ExtendCheckpoint(pos eventlog.Position, data []byte) error {
	if l.full.Load() {
		return errFull
	}
	l.added++
	l.written += len(data)
	return l.Log.ExtendCheckpoint(pos, data)
}

// TestCheckpointGrows: the checkpoint of a long conversation is added to, at a cost
// that follows what was said; it is never far behind, and leads to what the log says,
// also where a history went back and where additions failed for a while.
func TestCheckpointGrows(t *testing.T) {
	ctx := context.Background()
	store, err := filelog.New(filelog.Config{Home: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	made, err := store.Create(ctx, "s")
	if err != nil {
		t.Fatal(err)
	}
	log := &counted{Log: made.(*filelog.Log)}
	fake := &fakeModel{answer: func(_ context.Context, n int, _ *model.Request) (model.Message, error) {
		return text(fmt.Sprint("answer ", n)), nil
	}}
	s := Start(Config{ID: "s", Log: log, Model: func(context.Context, *model.Request) (model.Provider, error) { return fake, nil }})
	sub := NewSubscription("A")
	if _, err := s.Do(ctx, turn.Begin{SessionID: "s", Model: "m", Client: turn.Client{ID: "A"}, Settings: turn.Settings{System: strings.Repeat("SYSTEM ", 500)}}, sub); err != nil {
		t.Fatal(err)
	}
	before, last := eventlog.Position(0), ""
	for i := range 300 {
		log.full.Store(i >= 200 && i < 220)
		do(t, s, turn.Send{Message: event.Queued{Prompt: fmt.Sprint(i, strings.Repeat(" words", 200))}})
		last = idle(t, sub)
		if i == 100 {
			goBack(t, s, last)
		}
		rested(s)
		other, _, err := store.Open(ctx, "s")
		if err != nil {
			t.Fatal(err)
		}
		// The checkpoint of the turn before was made while the session rested.
		if pos, _, ok := other.(eventlog.Checkpointer).LoadCheckpoint(); before > checkpointEvery && (i < 200 || i > 225) && (!ok || pos < before-extendEvery) {
			t.Fatalf("turn %d: the checkpoint is at %d (%v), the log ended at %d", i, pos, ok, before)
		}
		if i%50 == 0 {
			sameFold(t, other)
		}
		before = other.End()
		if err := other.Close(); err != nil {
			t.Fatal(err)
		}
	}
	s.Post(turn.Close{}, nil, nil)
	<-s.Done()
	if size := int(before); log.added < size/extendEvery/2 || log.written > 2*size {
		t.Errorf("a log of %d bytes: %d checkpoints and %d additions, %d bytes", size, log.saved, log.added, log.written)
	}
	end, _, err := store.Open(ctx, "s")
	if err != nil {
		t.Fatal(err)
	}
	defer end.Close()
	if pos, _, ok := end.(eventlog.Checkpointer).LoadCheckpoint(); !ok || pos != end.End() {
		t.Errorf("the checkpoint is at %d (%v), the log ends at %d", pos, ok, end.End())
	}
	sameFold(t, end)
}

// rested waits until a session has nothing to do: not even a checkpoint.
func rested(s *Session) {
	for rests := false; !rests; runtime.Gosched() {
		s.box.mu.Lock()
		rests = s.box.resting
		s.box.mu.Unlock()
	}
}

// sameFold holds what a checkpoint leads to against what the log does.
func sameFold(t *testing.T, log eventlog.Log) {
	t.Helper()
	var kept [2]string
	for i, l := range []eventlog.Log{struct{ eventlog.Log }{log}, log} {
		state, damages, err := Load(l)
		if err != nil || len(damages) > 0 {
			t.Fatal(err, damages)
		}
		d, err := turn.Save(state.Durable)
		if err != nil {
			t.Fatal(err)
		}
		kept[i] = string(d)
	}
	if diff := cmp.Diff(kept[0], kept[1]); diff != "" {
		t.Fatalf("(-log +checkpoint):\n%s", diff)
	}
}

// idle reads events until the session is idle, and returns the id of the newest
// message of a user.
func idle(t *testing.T, sub *Subscription) (message string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), watchdog)
	defer cancel()
	for {
		events, err := sub.Next(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			switch e.Type {
			case event.TypeUserMessage:
				message = e.ID
			case event.TypeSessionIdle:
				return message
			}
		}
	}
}
