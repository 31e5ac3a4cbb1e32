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

	"github.com/google/go-cmp/cmp"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/eventlog"
	"github.com/transom-run/transom/eventlog/filelog"
	"github.com/transom-run/transom/eventlog/memlog"
	"github.com/transom-run/transom/internal/turn"
	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/tool"
)

// shownNotes are the notes of a session's history, with the ids of their events.
func shownNotes(t *testing.T, log eventlog.Log) (texts, ids []string) {
	t.Helper()
	lines, err := History(log)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		e, err := event.Decode(line)
		if err != nil {
			t.Fatal(err)
		}
		if e.Type == event.TypeSessionInfo {
			p, err := event.As[event.SessionInfo](e)
			if err != nil {
				t.Fatal(err)
			}
			texts, ids = append(texts, p.Message), append(ids, e.ID)
		}
	}
	return texts, ids
}

func goBack(t *testing.T, s *Session, id string) turn.Back {
	t.Helper()
	v, err := s.Do(context.Background(), turn.GoBack{EventID: id}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return v.(turn.Back)
}

// TestPagesAcrossTruncations: whatever is written and removed in which order, a
// reader that goes on from its cursor never gets what was removed before it read,
// gets all that is left, and pages of both directions are the history.
func TestPagesAcrossTruncations(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for round := range 30 {
		s := paged(t)
		var want []string
		seen := map[string]bool{}
		cursor, keptCursor := "", ""
		for i := range 60 {
			switch rnd.IntN(5) {
			case 0, 1:
				text := fmt.Sprint("p", i)
				note(t, s, text, false)
				want = append(want, text)
			case 2:
				note(t, s, "e", true)
			case 3:
				_, ids := shownNotes(t, s.Log())
				if len(ids) == 0 {
					continue
				}
				at := rnd.IntN(len(ids))
				if back := goBack(t, s, ids[at]); back.EventsRemoved != int64(len(ids)-at) {
					t.Fatalf("round %d: %d events removed, want %d", round, back.EventsRemoved, len(ids)-at)
				}
				want = want[:at]
			case 4:
				for _, c := range []*string{&cursor, &keptCursor} {
					p := page(t, s, PageQuery{Cursor: *c, Max: 1 + rnd.IntN(5), Persisted: c == &keptCursor})
					*c = p.Cursor
					for _, text := range texts(t, p.Events) {
						if text != "e" && !slices.Contains(want, text) {
							t.Fatalf("round %d: %s was read, and is not in the history %v", round, text, want)
						}
						seen[text] = true
					}
				}
			}
		}
		if got, _ := shownNotes(t, s.Log()); !slices.Equal(got, want) {
			t.Fatalf("round %d: the history is %v, want %v", round, got, want)
		}
		for more := true; more; {
			p := page(t, s, PageQuery{Cursor: cursor, Max: 3})
			cursor, more = p.Cursor, p.More
			for _, text := range texts(t, p.Events) {
				seen[text] = true
			}
		}
		for _, text := range want {
			if !seen[text] {
				t.Fatalf("round %d: %s was never read", round, text)
			}
		}
		var back []string
		for c, more := "", true; more; {
			p := page(t, s, PageQuery{Cursor: c, Backward: true, Max: 3})
			back, c, more = append(texts(t, p.Events), back...), p.Cursor, p.More
		}
		if !slices.Equal(back, want) {
			t.Fatalf("round %d: backwards the history is %v, want %v", round, back, want)
		}
		if got := persisted(t, s.Log(), rnd.IntN(2) == 0); !slices.Equal(got, want) {
			t.Fatalf("round %d: stored pages hold %v, want %v", round, got, want)
		}
		loaded, damages, err := Load(s.Log())
		if err != nil || len(damages) > 0 {
			t.Fatal(err, damages)
		}
		v := s.View()
		if loaded.Shown != v.Shown || loaded.LastID != v.LastID || loaded.Boundaries != v.Boundaries || loaded.Events != v.Events {
			t.Fatalf("round %d: loaded %+v, live %+v", round, loaded.Thread, v.Thread)
		}
	}
}

// persisted reads all pages of a stored log.
func persisted(t *testing.T, log eventlog.Log, backward bool) (out []string) {
	t.Helper()
	for c, more := "", true; more; {
		p, err := ReadPersisted(log, PersistedQuery{SessionID: "s", Cursor: c, Backward: backward, Max: 3})
		if err != nil || p.Expired {
			t.Fatal(err, p.Expired)
		}
		c, more = p.Cursor, p.More
		if backward {
			out = append(texts(t, p.Events), out...)
		} else {
			out = append(out, texts(t, p.Events)...)
		}
	}
	return out
}

// TestPersistedPagesAreOneSnapshot: what comes after the first page is on none, and
// a truncation ends the reading.
func TestPersistedPagesAreOneSnapshot(t *testing.T) {
	s := paged(t)
	for i := range 6 {
		note(t, s, fmt.Sprint(i), false)
	}
	first, err := ReadPersisted(s.Log(), PersistedQuery{SessionID: "s", Max: 3})
	if err != nil {
		t.Fatal(err)
	}
	note(t, s, "late", false)
	rest, err := ReadPersisted(s.Log(), PersistedQuery{SessionID: "s", Cursor: first.Cursor, Max: 100})
	if got := append(texts(t, first.Events), texts(t, rest.Events)...); err != nil || rest.More || strings.Join(got, "") != "012345" {
		t.Errorf("got %v, more %v: %v", got, rest.More, err)
	}
	_, ids := shownNotes(t, s.Log())
	goBack(t, s, ids[4])
	gone, err := ReadPersisted(s.Log(), PersistedQuery{SessionID: "s", Cursor: first.Cursor, Max: 100})
	if err != nil || !gone.Expired || len(gone.Events) > 0 || gone.More {
		t.Errorf("after a truncation: %+v, %v", gone, err)
	}
	for _, bad := range []string{"x", first.Cursor + "0 ", strings.Replace(first.Cursor, "pf", "pz", 1), "pf.0.0.0.0.0"} {
		if _, err := ReadPersisted(s.Log(), PersistedQuery{SessionID: "s", Cursor: bad, Max: 1}); bad != first.Cursor+"0 " && !errors.Is(err, ErrBadCursor) {
			t.Errorf("cursor %q: %v", bad, err)
		}
	}
}

// TestTruncatedLogOnDisk: the checkpoint made after a boundary, the log without it,
// and a checkpoint from before the boundary all lead to the same window.
func TestTruncatedLogOnDisk(t *testing.T) {
	ctx := context.Background()
	store, err := filelog.New(filelog.Config{Home: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	log, err := store.Create(ctx, "s")
	if err != nil {
		t.Fatal(err)
	}
	fake := &fakeModel{answer: func(_ context.Context, n int, _ *model.Request) (model.Message, error) {
		return text(fmt.Sprint("answer ", n)), nil
	}}
	s := Start(Config{ID: "s", Log: log, Model: func(context.Context, *model.Request) (model.Provider, error) { return fake, nil }})
	do(t, s, turn.Begin{SessionID: "s", Model: "m", Client: turn.Client{ID: "A"}})
	var ids []string
	for i := range 3 {
		sub := NewSubscription("A")
		if _, err := s.Do(ctx, turn.Send{Message: event.Queued{Prompt: fmt.Sprint("prompt ", i)}}, sub); err != nil {
			t.Fatal(err)
		}
		for idle := false; !idle; {
			es, err := sub.Next(ctx, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range es {
				if e.Type == event.TypeUserMessage {
					ids = append(ids, e.ID)
				}
				idle = idle || e.Type == event.TypeSessionIdle
			}
		}
		sub.Close()
	}
	before, err := turn.Save(s.View().Durable)
	if err != nil {
		t.Fatal(err)
	}
	end := log.End()
	goBack(t, s, ids[1])
	want := s.View().Window.Messages("")
	if len(want) != 2 {
		t.Fatalf("the window holds %d messages", len(want))
	}
	s.Post(turn.Close{}, nil, nil)
	<-s.Done()
	for name, prepare := range map[string]func(eventlog.Checkpointer) error{
		"its own checkpoint": func(eventlog.Checkpointer) error { return nil },
		"an older one":       func(c eventlog.Checkpointer) error { return c.SaveCheckpoint(end, before) },
		"none":               func(c eventlog.Checkpointer) error { return c.SaveCheckpoint(end, []byte("damaged")) },
	} {
		log, _, err := store.Open(ctx, "s")
		if err != nil {
			t.Fatal(err)
		}
		if err := prepare(log.(eventlog.Checkpointer)); err != nil {
			t.Fatal(err)
		}
		loaded, damages, err := Load(log)
		if err != nil || len(damages) > 0 {
			t.Fatal(name, err, damages)
		}
		if diff := cmp.Diff(want, loaded.Window.Messages("")); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestBoundaryThatFails: a boundary that cannot be written is an error; nothing has
// changed, and the session goes on.
func TestBoundaryThatFails(t *testing.T) {
	r := newRig(t, rigConfig{}, text("one"), text("two"))
	r.send("first")
	es := r.until(event.TypeSessionIdle)
	id := es[slices.IndexFunc(es, func(e *event.Event) bool { return e.Type == event.TypeUserMessage })].ID
	r.log.set(failOn(event.TypeTruncated))
	if _, err := r.try(turn.GoBack{EventID: id}, nil); err == nil || !errors.Is(err, errFull) {
		t.Errorf("got %v", err)
	}
	r.log.set(nil)
	if n := r.s.View().Window.Len(); n != 2 || r.s.View().Boundaries != 0 {
		t.Errorf("the window holds %d messages", n)
	}
	r.send("second")
	r.until(event.TypeSessionIdle)
	if got := r.model.seen(); len(got) != 2 || !strings.Contains(prompts(got[1]), "first") {
		t.Errorf("the model was asked %v", got)
	}
	if _, err := r.try(turn.GoBack{EventID: "none"}, nil); err == nil || !strings.HasPrefix(err.Error(), "Event ID not found: none") {
		t.Errorf("got %v", err)
	}
	first := r.records()[0].ID
	if _, err := r.try(turn.GoBack{EventID: first}, nil); err == nil || !strings.Contains(err.Error(), "first of the session") {
		t.Errorf("the first event: %v", err)
	}
	if back := r.do(turn.GoBack{EventID: strings.ToUpper(id)}, nil); back.(turn.Back).EventsRemoved == 0 {
		t.Error("an id in capitals was not found")
	}
}

// TestEndWhileGoingBack: whoever waits for a boundary is answered when the session
// ends.
func TestEndWhileGoingBack(t *testing.T) {
	log, err := memlog.New().Create(context.Background(), "s")
	if err != nil {
		t.Fatal(err)
	}
	hold := make(chan struct{})
	s := Start(Config{ID: "s", Log: log, Restore: func([]event.FileRestore) turn.FilesRestored {
		<-hold
		return turn.FilesRestored{}
	}})
	do(t, s, turn.Begin{SessionID: "s", Track: true, Client: turn.Client{ID: "A"}})
	do(t, s, turn.Note{Payload: event.UserMessage{Content: "x", MessageID: "m"}})
	do(t, s, turn.Note{Payload: event.FileCaptured{Path: "/f", After: "h"}})
	do(t, s, turn.Abort{})
	lines, err := History(log)
	if err != nil {
		t.Fatal(err)
	}
	e, err := event.Decode(lines[1])
	if err != nil {
		t.Fatal(err)
	}
	answered := make(chan error, 1)
	s.Post(turn.GoBack{EventID: e.ID, Files: true}, nil, func(_ any, err error) { answered <- err })
	s.Post(turn.Close{}, nil, nil)
	if err := <-answered; err == nil {
		t.Error("the rewind was answered with success")
	}
	close(hold)
	<-s.Done()
}

// TestFork: a copy holds the history under its ids, and what was open is closed.
func TestFork(t *testing.T) {
	r := newRig(t, rigConfig{tools: []tool.Tool{{Name: "a"}}}, text("one"), calls("c1:a"))
	r.send("first")
	r.until(event.TypeSessionIdle)
	r.send("second")
	r.request()
	r.send("waits")
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	lines, err := Fork{Source: "s", ID: "copy", Name: "n", At: at}.Records(r.log)
	if err != nil {
		t.Fatal(err)
	}
	copied, err := memlog.New().Create(context.Background(), "copy")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := copied.Append(eventlog.Batch{Lines: lines}); err != nil {
		t.Fatal(err)
	}
	s, damages, err := Load(copied)
	if err != nil || len(damages) > 0 {
		t.Fatal(err, damages)
	}
	if s.SessionID != "copy" || s.Name != "n" || !s.Started.Equal(at) || s.Loop.Open || len(s.Queue)+len(s.Steering) != 0 || len(s.Usage) != 0 {
		t.Errorf("the copy is %+v", s.Durable)
	}
	want, got := r.s.View().Window.Messages(""), s.Window.Messages("")
	if diff := cmp.Diff(want, got); diff != "" { // an open call reads as interrupted in both
		t.Error(diff)
	}
	ids := map[string]bool{}
	for _, e := range r.records() {
		ids[e.ID] = e.Public()
	}
	parent := ""
	for i, line := range lines {
		e, err := event.Decode(line)
		if err != nil {
			t.Fatal(err)
		}
		if e.Private() && e.Type != event.TypeLoopEnd && e.Type != event.TypeNamed {
			t.Errorf("the copy has a %s", e.Type)
		}
		if e.Public() && e.ParentID != parent {
			t.Errorf("record %d, %s: its parent is %q, not %q", i, e.Type, e.ParentID, parent)
		}
		if e.Public() {
			parent = e.ID
		}
	}
	if _, err := (Fork{Source: "s", ID: "copy", To: "none", At: at}).Records(r.log); err == nil || !strings.Contains(err.Error(), "event none not found") {
		t.Errorf("got %v", err)
	}
	r.do(turn.Abort{}, nil)
}
