package filelog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/transom-run/transom/eventlog"
)

func TestNewNeedsHome(t *testing.T) {
	if _, err := New(Config{}); err == nil {
		t.Fatal("no error without a home")
	}
}

// TestModes: what is made is for its owner only, and nothing is made too early.
func TestModes(t *testing.T) {
	home := filepath.Join(t.TempDir(), "deep", "home")
	s := newStore(t, home)
	l, err := s.Create(ctx, "s")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := l.Append(eventlog.Batch{Lines: [][]byte{[]byte(one)}, Provisional: true}); err != nil {
		t.Fatal(err)
	}
	if infos, err := s.List(ctx); err != nil || len(infos) != 0 {
		t.Fatalf("list: %v, %v", infos, err)
	}
	if _, err := os.Lstat(home); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("a session in which nothing happened made %s: %v", home, err)
	}
	if _, err := l.Append(eventlog.Batch{Lines: [][]byte{[]byte(two)}, Sync: true}); err != nil {
		t.Fatal(err)
	}
	if err := l.(*Log).SaveCheckpoint(l.End(), []byte("x")); err != nil {
		t.Fatal(err)
	}
	if got, want := s.Dir("s"), filepath.Join(home, "session-state", "s"); got != want {
		t.Fatalf("the directory is %s, want %s", got, want)
	}
	for path, want := range map[string]fs.FileMode{
		home: 0o700 | fs.ModeDir, filepath.Dir(s.Dir("s")): 0o700 | fs.ModeDir, s.Dir("s"): 0o700 | fs.ModeDir,
		filepath.Join(s.Dir("s"), "events.jsonl"): 0o600, filepath.Join(s.Dir("s"), checkpointName): 0o600,
	} {
		if fi, err := os.Lstat(path); err != nil || fi.Mode() != want {
			t.Errorf("%s: %v, %v; want %v", path, fi.Mode(), err, want)
		}
	}
	if b, err := os.ReadFile(filepath.Join(s.Dir("s"), "events.jsonl")); err != nil || string(b) != one+"\n"+two+"\n" {
		t.Errorf("the log is %q, %v", b, err)
	}
	if entries, _ := os.ReadDir(s.Dir("s")); len(entries) != 2 {
		t.Errorf("beside the log stand %v", entries)
	}
}

// TestCreateElsewhere: another process makes the session between Create and the
// first batch.
func TestCreateElsewhere(t *testing.T) {
	s := newStore(t, t.TempDir())
	l, err := s.Create(ctx, "s")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	path := put(t, s, "s", two+"\n")
	if err := l.(*Log).Verify(); !errors.Is(err, eventlog.ErrMoved) {
		t.Errorf("verify: %v", err)
	}
	if _, err := l.Append(eventlog.Batch{Lines: [][]byte{[]byte(one)}}); !errors.Is(err, eventlog.ErrExists) {
		t.Errorf("append: %v", err)
	}
	if b, _ := os.ReadFile(path); string(b) != two+"\n" {
		t.Errorf("the other's log is now %q", b)
	}
}

func TestListStrangers(t *testing.T) {
	s := newStore(t, t.TempDir())
	put(t, s, "timed", `{"type":"session.start","data":{"timestamp":"1999-01-01T00:00:00Z"},"id":"1","timestamp":"2026-02-03T04:05:06.789Z","parentId":null}`+"\n"+two+"\n")
	put(t, s, "untimed", one+"\n")
	put(t, s, "long", `{"x":"`+strings.Repeat("x", 2*firstRecord)+`","timestamp":"2026-02-03T04:05:06.789Z"}`+"\n")
	old := time.Date(2025, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, id := range []string{"untimed", "long"} {
		for _, path := range []string{filepath.Join(s.Dir(id), logName), s.Dir(id)} {
			if err := os.Chtimes(path, old, old); err != nil {
				t.Fatal(err)
			}
		}
	}
	hold(t, s, "held")
	// What is no session: a file, an empty directory, hidden things, a log that
	// is a directory or leads nowhere.
	root := filepath.Dir(s.Dir("x"))
	for _, dir := range []string{"empty", ".hidden", "odd/events.jsonl", "nowhere"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("gone", filepath.Join(root, "nowhere", logName)); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("timed", filepath.Join(root, "linked")); err != nil {
		t.Fatal(err)
	}
	infos, err := s.List(ctx)
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Date(2026, 2, 3, 4, 5, 6, 789e6, time.UTC)
	want := []eventlog.Info{
		{SessionID: "linked", Started: begun}, {SessionID: "timed", Started: begun},
		{SessionID: "long", Started: old}, {SessionID: "untimed", Started: old},
	}
	if diff := cmp.Diff(want, infos, cmpopts.IgnoreFields(eventlog.Info{}, "Modified", "Bytes")); diff != "" {
		t.Errorf("list (-want +got):\n%s", diff)
	}
}

// TestDeleteFollowsNoLink: neither a linked session nor a link in a session
// leads a Delete out of the store.
func TestDeleteFollowsNoLink(t *testing.T) {
	s := newStore(t, t.TempDir())
	outside := t.TempDir()
	keep := filepath.Join(outside, logName)
	if err := os.WriteFile(keep, []byte(one+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	put(t, s, "s", one+"\n")
	if err := os.Symlink(outside, filepath.Join(s.Dir("s"), "files")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, s.Dir("linked")); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"s", "linked"} {
		if err := s.Delete(ctx, id); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Lstat(s.Dir(id)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is still there: %v", id, err)
		}
	}
	if _, err := os.Lstat(keep); err != nil {
		t.Errorf("a file outside is gone: %v", err)
	}
	if err := os.WriteFile(s.Dir("file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(ctx, "file"); !errors.Is(err, eventlog.ErrNotFound) {
		t.Errorf("delete of a file: %v", err)
	}
	// A directory without a log is what a session that never was may leave.
	if err := os.Mkdir(s.Dir("bare"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(ctx, "bare"); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(s.Dir("bare")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the bare directory is still there: %v", err)
	}
}

// TestStaleCheckpoint: a checkpoint that is damaged, or belongs to another log
// or to another past of this one, reads as none.
func TestStaleCheckpoint(t *testing.T) {
	const content = one + "\n" + two + "\n" + three + "\n"
	at := eventlog.Position(len(one + "\n" + two + "\n"))
	setup := func(t *testing.T) (*Store, string, string) {
		s := newStore(t, t.TempDir())
		path := put(t, s, "s", content)
		l, _ := open(t, s, "s")
		if err := l.SaveCheckpoint(at, []byte("window of two")); err != nil {
			t.Fatal(err)
		}
		return s, path, filepath.Join(s.Dir("s"), checkpointName)
	}
	load := func(t *testing.T, s *Store, id string) bool {
		l, _ := open(t, s, id)
		pos, data, ok := l.LoadCheckpoint()
		if ok && (pos != at || string(data) != "window of two") {
			t.Fatalf("checkpoint at %d: %q", pos, data)
		}
		return ok
	}
	t.Run("sound", func(t *testing.T) {
		s, _, _ := setup(t)
		if !load(t, s, "s") {
			t.Error("a sound checkpoint was refused")
		}
	})
	t.Run("changed log", func(t *testing.T) {
		for file, want := range map[string]bool{
			"":                                   false,
			one + "\n":                           false,
			one + "\n" + two + "\n":              true, // cut behind it
			one + "\n" + two:                     true, // and without the line feed
			one + "\n" + `{"id":"9"}` + "\n":     false,
			one + "\n" + two + "\n" + one + "\n": true,
			two + "\n" + one + "\n" + three:      false,
		} {
			s, path, _ := setup(t)
			if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
				t.Fatal(err)
			}
			if got := load(t, s, "s"); got != want {
				t.Errorf("with the log %q: %v, want %v", file, got, want)
			}
		}
	})
	t.Run("every byte changed or cut", func(t *testing.T) {
		s, _, name := setup(t)
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for i := range b {
			bad := append([]byte{}, b...)
			bad[i] ^= 1
			for _, content := range [][]byte{bad, b[:i], append(append([]byte{}, b[:i]...), make([]byte, len(b)-i)...)} {
				if err := os.WriteFile(name, content, 0o600); err != nil {
					t.Fatal(err)
				}
				if load(t, s, "s") {
					t.Fatalf("taken: %q", content)
				}
			}
		}
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if !load(t, s, "s") {
			t.Error("the sound checkpoint is refused now")
		}
	})
	t.Run("of another session", func(t *testing.T) {
		s, _, name := setup(t)
		put(t, s, "other", one+"\n"+three+"\n"+two+"\n")
		if err := os.Rename(name, filepath.Join(s.Dir("other"), checkpointName)); err != nil {
			t.Fatal(err)
		}
		if load(t, s, "other") || load(t, s, "s") {
			t.Error("taken")
		}
	})
	t.Run("not a file", func(t *testing.T) {
		s, _, name := setup(t)
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(name, 0o700); err != nil {
			t.Fatal(err)
		}
		if load(t, s, "s") {
			t.Error("taken")
		}
	})
	t.Run("failed save", func(t *testing.T) {
		s, _, name := setup(t)
		for at, more := 0, true; more; at++ {
			f := &faults{failAt: -1}
			broken := &Store{cfg: s.cfg, root: s.root, fs: f.fsys(), syncer: s.syncer}
			l, _ := open(t, broken, "s")
			f.arm(at, fs.ErrPermission)
			more = l.SaveCheckpoint(0, []byte("newer")) != nil
			if more && !load(t, s, "s") {
				t.Fatalf("%q left no checkpoint", f.ops)
			}
			if _, err := os.Lstat(name + ".tmp"); err == nil {
				t.Fatalf("%q left a temporary file", f.ops)
			}
		}
	})
}

// TestExtendedCheckpoint: of a checkpoint that was added to, what is whole and has its
// records is taken.
func TestExtendedCheckpoint(t *testing.T) {
	const content = one + "\n" + two + "\n" + three + "\n"
	first, second := eventlog.Position(len(one+"\n")), eventlog.Position(len(one+"\n"+two+"\n"))
	s := newStore(t, t.TempDir())
	path := put(t, s, "s", content)
	name := filepath.Join(s.Dir("s"), checkpointName)
	l, _ := open(t, s, "s")
	if err := l.SaveCheckpoint(first, []byte("base")); err != nil {
		t.Fatal(err)
	}
	base, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.ExtendCheckpoint(second, []byte("+more")); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	load := func(file []byte) string {
		t.Helper()
		if err := os.WriteFile(name, file, 0o600); err != nil {
			t.Fatal(err)
		}
		l, _ := open(t, s, "s")
		defer l.Close()
		pos, data, ok := l.LoadCheckpoint()
		switch {
		case ok && !(pos == first && data == "base") && !(pos == second && data == "base+more"):
			t.Fatalf("checkpoint at %d: %q", pos, data)
		case !ok:
			return "none"
		}
		return data
	}
	for i := range whole {
		want := "base"
		if i < len(base) {
			want = "none"
		}
		bad := slices.Clone(whole)
		bad[i] ^= 1
		for _, file := range [][]byte{bad, whole[:i], append(slices.Clone(whole[:i]), make([]byte, len(whole)-i)...)} {
			if got := load(file); got != want {
				t.Fatalf("from %q: %s, want %s", file, got, want)
			}
		}
	}
	if got := load(append(slices.Clone(whole), whole[len(base):]...)); got != "base+more" { // the same piece again is none
		t.Error(got)
	}
	for log, want := range map[string]string{content: "base+more", one + "\n" + two: "base+more", one + "\n" + three + "\n": "base", one: "base", two + "\n": "none"} {
		if err := os.WriteFile(path, []byte(log), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := load(whole); got != want {
			t.Errorf("with the log %q: %s, want %s", log, got, want)
		}
	}
}

// TestExtendFails: an addition that fails leaves what there was, and the next one is
// refused: nobody knows what the file holds now.
func TestExtendFails(t *testing.T) {
	for at, more := 0, true; more; at++ {
		s := newStore(t, t.TempDir())
		put(t, s, "s", one+"\n"+two+"\n")
		f := &faults{failAt: -1}
		l, _ := open(t, &Store{cfg: s.cfg, root: s.root, fs: f.fsys(), syncer: s.syncer}, "s")
		if err := l.SaveCheckpoint(l.End(), []byte("base")); err != nil {
			t.Fatal(err)
		}
		f.arm(at, fs.ErrPermission)
		more = l.ExtendCheckpoint(l.End(), []byte("+more")) != nil
		f.arm(1<<20, nil)
		if err := l.ExtendCheckpoint(l.End(), []byte("+x")); (err == nil) == more {
			t.Errorf("fault %d: the next one: %v", at, err)
		}
		again, _ := open(t, s, "s")
		if _, data, ok := again.LoadCheckpoint(); !ok || !strings.HasPrefix(data, "base") {
			t.Errorf("fault %d: %q, %v", at, data, ok)
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	line := []byte(`{"type":"assistant.message_delta","data":{"messageId":"0b6b1b5e-6c0e-4a7e-9d1c-5f1f0f6f3a11","deltaContent":"some words of an answer, as they come"},"id":"0b6b1b5e-6c0e-4a7e-9d1c-5f1f0f6f3a12","timestamp":"2026-02-03T04:05:06.789Z","parentId":"0b6b1b5e-6c0e-4a7e-9d1c-5f1f0f6f3a10"}`)
	batch := eventlog.Batch{Lines: [][]byte{line, line, line, line, line}}
	for _, sync := range []bool{false, true} {
		b.Run(fmt.Sprintf("5 records/sync=%v", sync), func(b *testing.B) {
			s := newStore(b, b.TempDir())
			l, err := s.Create(ctx, "s")
			if err != nil {
				b.Fatal(err)
			}
			defer l.Close()
			batch := batch
			batch.Sync = sync
			b.ReportAllocs()
			for b.Loop() {
				if _, err := l.Append(batch); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkOpen(b *testing.B) {
	line := `{"type":"tool.execution_complete","data":{"result":{"content":"` + strings.Repeat("a line of output\\n", 110) + `"}},"id":"0b6b1b5e-6c0e-4a7e-9d1c-5f1f0f6f3a12","timestamp":"2026-02-03T04:05:06.789Z","parentId":null}` + "\n"
	n := (20 << 20) / len(line)
	s := newStore(b, b.TempDir())
	put(b, s, "s", strings.Repeat(line, n))
	tail := eventlog.Position((n - 100) * len(line))
	for _, from := range []eventlog.Position{0, tail} {
		b.Run(fmt.Sprintf("20 MB/read from %d", from), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				l, _, err := s.Open(ctx, "s")
				if err != nil {
					b.Fatal(err)
				}
				for _, err := range l.Read(from) {
					if err != nil {
						b.Fatal(err)
					}
				}
				l.Close()
			}
		})
	}
}

// BenchmarkPen takes and drops the pen, in a process with many sessions loaded.
func BenchmarkPen(b *testing.B) {
	for _, loaded := range []int{1, 1000, 10_000} {
		b.Run(fmt.Sprintf("%d sessions", loaded), func(b *testing.B) {
			s := newStore(b, b.TempDir())
			var h eventlog.Hold
			for i := range loaded {
				var err error
				if h, err = s.Hold(fmt.Sprint("s", i)); err != nil {
					b.Fatal(err)
				}
				defer h.Release()
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := errors.Join(h.TakePen(), h.DropPen()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkVerify(b *testing.B) {
	s := newStore(b, b.TempDir())
	put(b, s, "s", one+"\n")
	l, _ := open(b, s, "s")
	b.ReportAllocs()
	for b.Loop() {
		if err := l.Verify(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkList(b *testing.B) {
	const n = 5000
	s := newStore(b, b.TempDir())
	for i := range n {
		put(b, s, fmt.Sprint("s", i), `{"type":"session.start","data":{},"id":"1","timestamp":"2026-02-03T04:05:06.789Z","parentId":null}`+"\n")
	}
	for b.Loop() {
		if infos, err := s.List(ctx); err != nil || len(infos) != n {
			b.Fatal(len(infos), err)
		}
	}
}
