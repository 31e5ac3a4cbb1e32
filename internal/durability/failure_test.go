package durability

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/eventlog"
	"github.com/transom-run/transom/eventlog/filelog"
)

// faulty fails operations of a store that change files; those on locks pass.
type faulty struct {
	mu    sync.Mutex
	at    int  // the operation that fails; 0 is none
	rest  bool // and all after it
	short bool // a write that fails leaves half of it behind
	now   int
	wait  func(filelog.Op) // asked before each operation; nil: nothing waits
}

func (f *faulty) fails(op filelog.Op) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch op.Action {
	case filelog.OpHold, filelog.OpTakePen, filelog.OpDropPen, filelog.OpRelease:
		return false
	}
	f.now++
	return f.at > 0 && (f.now == f.at || f.rest && f.now > f.at)
}

func (f *faulty) set(at int, rest bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.at, f.rest, f.now = at, rest, 0
}

func (f *faulty) Do(op filelog.Op, do func() error) error {
	if f.wait != nil {
		f.wait(op)
	}
	if f.fails(op) {
		return syscall.ENOSPC
	}
	return do()
}

func (f *faulty) Write(op filelog.Op, b []byte, write func([]byte) (int, error)) (int, error) {
	if f.wait != nil {
		f.wait(op)
	}
	if f.fails(op) {
		n := 0
		if f.short {
			n, _ = write(b[:len(b)/2])
		}
		return n, syscall.ENOSPC
	}
	return write(b)
}

// TestStoreFails lets an operation of the store fail, once or from then on, in every
// history: the turn ends, the session goes on once the store does or says that it
// has to be resumed, and a resume finds all that was promised.
func TestStoreFails(t *testing.T) {
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano())
	}
	t.Logf("-durability.seed=%d", *seed)
	var mu sync.Mutex
	tried := 0
	t.Run("histories", func(t *testing.T) {
		for i, name := range slices.Sorted(maps.Keys(histories)) {
			hist := histories[name]
			if hist.after != "" || name == "deletion" || hist.kept || hist.then != nil {
				continue // hosts' stores fail in their own tests, and so do schedules and files
			}
			hist.aborts = true // a turn that could not be written is ended
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				f := &faulty{}
				if err := endure(t, f, hist, true); err != nil {
					t.Fatalf("without a fault: %v", err)
				}
				points := f.now
				random := rand.New(rand.NewPCG(*seed, uint64(i)))
				at := random.Perm(points)
				if !*full {
					at = at[:min(*samples, points)]
				}
				for _, n := range at {
					f := &faulty{at: n + 1, rest: random.IntN(2) == 0, short: random.IntN(2) == 0}
					if err := endure(t, f, hist, n%2 == 0); err != nil {
						t.Errorf("operation %d of %d failed (%+v): %v", n+1, points, f, err)
					}
					mu.Lock()
					tried++
					mu.Unlock()
				}
			})
		}
	})
	t.Logf("%d faults", tried)
}

// endure plays a history on a store that fails, lets the store recover, and goes on.
func endure(t *testing.T, f *faulty, hist history, goOn bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), watchdog)
	defer cancel()
	home := t.TempDir()
	store, err := filelog.New(filelog.Config{Home: home, SyncInterval: -1, Seam: f})
	if err != nil {
		return err
	}
	h, err := hist.host(ctx, store, home)
	if err != nil {
		return err
	}
	failed := hist.run(h)
	if failed == nil {
		return verify(ctx, home, hist, goOn) // such as a checkpoint that was not kept
	}
	if ctx.Err() != nil {
		return fmt.Errorf("it hangs: %w", failed)
	}
	f.set(0, false)
	if h.s != nil {
		// What was refused is said again. Where a sync failed, only a resume goes on.
		if err := h.say("«healed»"); err != nil && ctx.Err() != nil {
			return fmt.Errorf("it does not go on: %w", err)
		}
	}
	if err := h.end(); err != nil {
		return fmt.Errorf("it does not end: %w", err)
	}
	return verify(ctx, home, hist, goOn)
}

// TestClearThatCannotBeKept: where the record of a clear cannot be written, or not
// be brought to the disk, the clear is refused, and nothing has changed.
func TestClearThatCannotBeKept(t *testing.T) {
	for _, op := range []string{"write", "sync"} {
		t.Run(op, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), watchdog)
			defer cancel()
			home, f := t.TempDir(), &faulty{}
			store, err := filelog.New(filelog.Config{Home: home, SyncInterval: -1, Seam: f})
			if err != nil {
				t.Fatal(err)
			}
			h, err := newHost(ctx, store, home)
			if err != nil {
				t.Fatal(err)
			}
			h.s, err = h.rt.CreateSession(ctx, transom.SessionConfig{ID: sessionID, Tools: h.tools()})
			if err != nil {
				t.Fatal(err)
			}
			events := h.s.Events()
			until := func(typ string) event.Event {
				t.Helper()
				for e, err := range events.All(ctx) {
					if err != nil {
						t.Fatal(err)
					}
					if e.Type == event.TypeContextCleared {
						t.Fatal("a clear that was refused is told of")
					}
					if e.Type == typ {
						return *e
					}
				}
				t.Fatalf("no %s", typ)
				return event.Event{}
			}
			if _, err := h.s.Send(ctx, transom.Message{Prompt: "«host»"}); err != nil {
				t.Fatal(err)
			}
			asked := until(event.TypeExternalToolRequested)
			p, err := event.As[event.ExternalToolRequested](&asked)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := h.s.Send(ctx, transom.Message{Prompt: "«queued»"}); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(home, "session-state", sessionID, "events.jsonl")
			before, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			info := h.s.Info()
			f.set(1, true)
			if op == "sync" {
				f.set(2, false)
			}
			_, err = h.s.History().ClearContext(ctx, "«seed»")
			if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "free some space") {
				t.Fatalf("the clear: %v", err)
			}
			f.set(0, false)
			if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
				t.Errorf("the log has changed by %d bytes, %v", len(after)-len(before), err)
			}
			if diff := cmp.Diff(info, h.s.Info()); diff != "" {
				t.Errorf("the session has changed:\n%s", diff)
			}
			h.s.Post(transom.AnswerTool{RequestID: p.RequestID, Result: []byte(`"x"`)}, nil)
			until(event.TypeSessionIdle)
			if last := h.model.last().Messages; !strings.Contains(last[1].Text, "«host»") || !strings.Contains(last[len(last)-1].Text, "«queued»") {
				t.Errorf("the model was asked %+v", last)
			}
			// A disk that has lost one sync may have lost more: the next clear is refused
			// until the session is resumed.
			if err := h.end(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestSlowDisk: a session whose disk does not answer delays no other.
func TestSlowDisk(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	slow, release := make(chan bool, 1), make(chan bool)
	f := &faulty{wait: func(op filelog.Op) {
		if op.Action == filelog.OpWrite && strings.Contains(op.Path, "slow") {
			select {
			case slow <- true:
				<-release
			default:
			}
		}
	}}
	home := t.TempDir()
	store, err := filelog.New(filelog.Config{Home: home, Seam: f})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	h, err := newHost(ctx, store, home)
	if err != nil {
		t.Fatal(err)
	}
	create := func(id string) *transom.Session {
		s, err := h.rt.CreateSession(ctx, transom.SessionConfig{ID: id, Tools: h.tools(), OnPermission: h.approve})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	a, b := create("slow"), create("other")
	answered := make(chan error, 1)
	go func() {
		_, err := a.SendAndWait(ctx, transom.Message{Prompt: "«one»"})
		answered <- err
	}()
	<-slow
	if m, err := b.SendAndWait(ctx, transom.Message{Prompt: "«two»"}); err != nil || m.Content != "ok" {
		t.Errorf("the other session: %v, %v", m, err)
	}
	if a.Info().Clears != 0 { // what is read does not wait for the disk
		t.Error("impossible")
	}
	select {
	case err := <-answered:
		t.Errorf("the message was taken before it was written: %v", err)
	default:
	}
	close(release)
	if err := <-answered; err != nil {
		t.Error(err)
	}
	if err := h.rt.Close(ctx); err != nil {
		t.Error(err)
	}
}

// TestReadOnlyStore: a session that cannot be written to is not resumed, and says
// why; it can be read.
func TestReadOnlyStore(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	home := t.TempDir()
	store, err := filelog.New(filelog.Config{Home: home})
	if err != nil {
		t.Fatal(err)
	}
	h, err := newHost(ctx, store, home)
	if err == nil {
		err = histories["clear"].run(h)
	}
	if err != nil {
		t.Fatal(err)
	}
	store, err = filelog.New(filelog.Config{Home: home, Seam: readOnly{}})
	if err != nil {
		t.Fatal(err)
	}
	rt, err := transom.Open(transom.Config{Store: store, Provider: h.model})
	if err != nil {
		t.Fatal(err)
	}
	_, err = rt.ResumeSession(ctx, sessionID, transom.ResumeConfig{})
	if !errors.Is(err, syscall.EROFS) || !strings.Contains(err.Error(), "mount it writable") {
		t.Errorf("resume: %v", err)
	}
	if s, err := rt.Stored(ctx, sessionID); err != nil || s.Title != "«one»" {
		t.Errorf("stored: %+v, %v", s, err)
	}
	log, _, err := store.Open(ctx, sessionID)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, err := range log.Read(eventlog.Position(0)) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n < 20 {
		t.Errorf("%d records", n)
	}
	if err := errors.Join(log.Close(), rt.Close(ctx), store.Close()); err != nil {
		t.Error(err)
	}
}

type readOnly struct{}

func (readOnly) Do(op filelog.Op, do func() error) error {
	switch op.Action {
	case filelog.OpHold, filelog.OpTakePen, filelog.OpDropPen, filelog.OpRelease, filelog.OpMkdir:
		return do()
	}
	return &os.PathError{Op: string(op.Action), Path: op.Path, Err: syscall.EROFS}
}

func (readOnly) Write(op filelog.Op, _ []byte, _ func([]byte) (int, error)) (int, error) {
	return 0, syscall.EROFS
}
