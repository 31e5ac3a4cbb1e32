package transom_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/eventlog"
	"github.com/transom-run/transom/eventlog/filelog"
	"github.com/transom-run/transom/eventlog/memlog"
	"github.com/transom-run/transom/model"
)

func openRuntime(t *testing.T, store eventlog.Store, replies ...string) *transom.Runtime {
	t.Helper()
	sc := &script{}
	for _, r := range replies {
		sc.replies = append(sc.replies, model.Message{Text: r})
	}
	rt, err := transom.Open(transom.Config{Store: store, Provider: sc})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		if err := rt.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return rt
}

func isKind(err error, k transom.Kind) bool { return errors.Is(err, &transom.Error{Kind: k}) }

// Two runtimes share a store the way two processes do.
func TestTwoRuntimesOneStore(t *testing.T) {
	ctx := context.Background()
	store := memlog.New()
	a, b := openRuntime(t, store, "one", "two"), openRuntime(t, store, "from b", "again")
	s, err := a.CreateSession(ctx, transom.SessionConfig{ID: "shared"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.CreateSession(ctx, transom.SessionConfig{ID: "shared"}); !isKind(err, transom.KindConflict) {
		t.Errorf("the same id was created twice: %v", err)
	}
	if _, err := s.SendAndWait(ctx, transom.Message{Prompt: "hi"}); err != nil {
		t.Fatal(err)
	}
	if err := b.DeleteSession(ctx, "shared"); !isKind(err, transom.KindConflict) {
		t.Errorf("a session in use elsewhere was deleted: %v", err)
	}
	// An idle session may be taken over; the former holder is told at its next write.
	taken, err := b.ResumeSession(ctx, "shared", transom.ResumeConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := taken.SendAndWait(ctx, transom.Message{Prompt: "mine"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Send(ctx, transom.Message{Prompt: "lost"}); !isKind(err, transom.KindConflict) || !strings.Contains(err.Error(), "resume") {
		t.Errorf("the former holder wrote on: %v", err)
	}
	if err := s.Close(ctx); err != nil {
		t.Errorf("the former holder cannot leave: %v", err)
	}
	if err := taken.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if err := b.DeleteSession(ctx, "shared"); err != nil {
		t.Errorf("nobody has it any more: %v", err)
	}
}

// A damaged first record costs what it said, not the session.
func TestResumeWithoutFirstRecord(t *testing.T) {
	ctx := context.Background()
	home := t.TempDir()
	store, err := filelog.New(filelog.Config{Home: home})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	rt := openRuntime(t, store, "one", "two")
	s, err := rt.CreateSession(ctx, transom.SessionConfig{ID: "damaged"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.SendAndWait(ctx, transom.Message{Prompt: "hi"}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(ctx); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(home, "session-state", "damaged", "events.jsonl")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	raw[0] = '#'
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	os.Remove(filepath.Join(home, "session-state", "damaged", "transom.checkpoint"))
	s, err = rt.ResumeSession(ctx, "damaged", transom.ResumeConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if m, err := s.SendAndWait(ctx, transom.Message{Prompt: "again"}); err != nil || m.Content != "two" {
		t.Errorf("%v, %v", m, err)
	}
	if i := s.Info(); i.ID != "damaged" || i.Messages != 4 {
		t.Errorf("%+v", i)
	}
}
