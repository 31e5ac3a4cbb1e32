package filelog

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/transom-run/transom/eventlog"
	"github.com/transom-run/transom/eventlog/eventlogtest"
	"go.uber.org/goleak"
)

var (
	_ eventlog.Verifier     = (*Log)(nil)
	_ eventlog.Checkpointer = (*Log)(nil)
)

var ctx = context.Background()

func TestMain(m *testing.M) {
	if job := os.Getenv(helperJob); job != "" {
		helper(job)
		return
	}
	goleak.VerifyTestMain(m)
}

func TestConformance(t *testing.T) {
	eventlogtest.Run(t,
		func(t *testing.T) eventlog.Store {
			s := newStore(t, t.TempDir())
			return s
		},
		eventlogtest.Options{Again: func(t *testing.T, s eventlog.Store) eventlog.Store {
			return newStore(t, s.(*Store).cfg.Home)
		}})
}

func newStore(t testing.TB, home string) *Store {
	t.Helper()
	s, err := New(Config{Home: home})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// put writes a log as it might be found.
func put(t testing.TB, s *Store, id, content string) string {
	t.Helper()
	dir := s.Dir(id)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, logName)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func open(t testing.TB, s *Store, id string) (*Log, []eventlog.Damage) {
	t.Helper()
	l, damage, err := s.Open(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.(*Log), damage
}

func hold(t *testing.T, s *Store, id string) eventlog.Hold {
	t.Helper()
	h, err := s.Hold(id)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Release() })
	return h
}
