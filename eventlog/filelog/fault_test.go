package filelog

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/transom-run/transom/eventlog"
	"github.com/transom-run/transom/eventlog/eventlogtest"
)

// faults is a file system in which one operation fails, and with killed all
// that follow it: as for a process that has ended.
type faults struct {
	mu     sync.Mutex
	ops    []string // what was done, in order
	failAt int      // the index of the operation that fails; below 0: none
	short  int      // how much of a failing write is written
	err    error
	killed bool
}

// step counts an operation and returns its error, if any.
func (f *faults) step(op string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := len(f.ops)
	f.ops = append(f.ops, op)
	if f.failAt >= 0 && (n == f.failAt || f.killed && n > f.failAt) {
		return f.err
	}
	return nil
}

func (f *faults) arm(at int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ops, f.failAt, f.err = nil, at, err
}

func (f *faults) count(op string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, o := range f.ops {
		if o == op {
			n++
		}
	}
	return n
}

func (f *faults) fsys() *fsys {
	real := realFS
	return &fsys{
		open: func(name string, flag int) (file, error) {
			if err := f.step("open " + filepath.Base(name)); err != nil {
				return nil, err
			}
			h, err := real.open(name, flag)
			if err != nil {
				return nil, err
			}
			return faultyFile{h, f}, nil
		},
		mkdirAll: func(name string) error {
			if err := f.step("mkdir"); err != nil {
				return err
			}
			return real.mkdirAll(name)
		},
		lstat:   real.lstat,
		stat:    real.stat,
		readDir: real.readDir,
		rename: func(from, to string) error {
			if err := f.step("rename"); err != nil {
				return err
			}
			return real.rename(from, to)
		},
		link: func(from, to string) error {
			if err := f.step("link"); err != nil {
				return err
			}
			return real.link(from, to)
		},
		remove: func(name string) error {
			if err := f.step("remove"); err != nil {
				return err
			}
			return real.remove(name)
		},
		removeAll: real.removeAll,
		syncDir:   func(string) error { return f.step("sync dir") },
	}
}

type faultyFile struct {
	file
	f *faults
}

func (h faultyFile) Write(b []byte) (int, error) {
	if err := h.f.step("write"); err != nil {
		n := 0
		if !h.f.killed || len(h.f.ops) == h.f.failAt+1 {
			n, _ = h.file.Write(b[:min(h.f.short, len(b))])
		}
		return n, err
	}
	return h.file.Write(b)
}

func (h faultyFile) Truncate(n int64) error {
	if err := h.f.step("truncate"); err != nil {
		return err
	}
	return h.file.Truncate(n)
}

func (h faultyFile) syncData() error { return h.f.step("sync") }

// faulty is a store on a file system in which nothing fails yet.
func faulty(t *testing.T, home string) (*Store, *faults) {
	s, err := New(Config{Home: home, SyncInterval: -1})
	if err != nil {
		t.Fatal(err)
	}
	f := &faults{failAt: -1}
	s.fs = f.fsys()
	return s, f
}

// TestFailedAppend lets each operation of an append fail in turn: nothing of
// the batch is in the log, then or after it is opened anew, and the next append
// succeeds.
func TestFailedAppend(t *testing.T) {
	starts := []struct {
		name string
		file string // "": a new session with one provisional record
		want []string
	}{
		{"new", "", []string{one}},
		{"stored", one + "\n" + two + "\n", []string{one, two}},
		{"torn", one + "\n" + two + "\n" + `{"id`, []string{one, two}},
		{"no line feed", one + "\n" + two, []string{one, two}},
	}
	batch := eventlog.Batch{Lines: eventlogtest.Lines(10, 13), Sync: true}
	after := []string{string(eventlogtest.Line(10)), string(eventlogtest.Line(11)), string(eventlogtest.Line(12))}
	for _, start := range starts {
		t.Run(start.name, func(t *testing.T) {
			for at, more := 0, true; more; at++ {
				for _, short := range []int{0, 1, 20, 60} {
					home := t.TempDir()
					s, f := faulty(t, home)
					f.short = short
					var l eventlog.Log
					var err error
					if start.file == "" {
						if l, err = s.Create(ctx, "s"); err == nil {
							_, err = l.Append(eventlog.Batch{Lines: [][]byte{[]byte(one)}, Provisional: true})
						}
					} else {
						put(t, s, "s", start.file)
						l, _, err = s.Open(ctx, "s")
					}
					if err != nil {
						t.Fatal(err)
					}
					f.arm(at, syscall.ENOSPC)
					_, err = l.Append(batch)
					if more = err != nil; !more {
						break
					}
					op := f.ops[at]
					if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "free some space") {
						t.Fatalf("%s failed: %v", op, err)
					}
					if got := eventlogtest.ReadAll(t, l, 0); !cmp.Equal(got, start.want) {
						t.Fatalf("%s failed after %d bytes: the log holds %q", op, short, got)
					}
					if start.file == "" {
						if _, err := os.Lstat(s.Dir("s")); !errors.Is(err, fs.ErrNotExist) {
							t.Fatalf("%s failed: the session left something behind: %v", op, err)
						}
					} else {
						again, _ := open(t, newStore(t, home), "s")
						if got := eventlogtest.ReadAll(t, again, 0); !cmp.Equal(got, start.want) {
							t.Fatalf("%s failed after %d bytes: the file holds %q", op, short, got)
						}
					}
					f.arm(-1, nil)
					next := batch
					next.Sync = false
					if _, err := l.Append(next); err != nil {
						t.Fatalf("after %s had failed: %v", op, err)
					}
					want := append(append([]string{}, start.want...), after...)
					if got := eventlogtest.ReadAll(t, l, 0); !cmp.Equal(got, want) {
						t.Fatalf("after %s had failed the log holds %q", op, got)
					}
					l.Close()
				}
			}
		})
	}
}

// TestKilled ends the process, so to speak, at each operation of an append and
// at each byte of its write: what is found is what was there before and a prefix
// of the batch.
func TestKilled(t *testing.T) {
	lines := [][]byte{eventlogtest.Line(10), eventlogtest.Line(11)}
	for _, before := range []string{"", one + "\n", one + "\n{\"id"} {
		for at, more := 0, true; more; at++ {
			for short := 0; short <= len(lines[0])+len(lines[1])+2 && more; short++ {
				home := t.TempDir()
				s, f := faulty(t, home)
				f.short, f.killed = short, true
				var l eventlog.Log
				var err error
				if before == "" {
					l, err = s.Create(ctx, "s")
				} else {
					put(t, s, "s", before)
					l, _, err = s.Open(ctx, "s")
				}
				if err != nil {
					t.Fatal(err)
				}
				f.arm(at, syscall.EIO)
				_, err = l.Append(eventlog.Batch{Lines: lines, Sync: true})
				more = err != nil
				l.Close()
				again, _, err := newStore(t, home).Open(ctx, "s")
				if errors.Is(err, eventlog.ErrNotFound) && before == "" {
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				got := eventlogtest.ReadAll(t, again, 0)
				if before != "" {
					if len(got) == 0 || got[0] != one {
						t.Fatalf("killed at %d, byte %d: %q", at, short, got)
					}
					got = got[1:]
				}
				for i, line := range got {
					if i > 1 || line != string(lines[i]) {
						t.Fatalf("killed at %d, byte %d: %q", at, short, got)
					}
				}
				if !more && len(got) != 2 {
					t.Fatalf("the append succeeded and left %q", got)
				}
				again.Close()
			}
		}
	}
}

// TestCostOfAppend: one write a batch, and nothing else.
func TestCostOfAppend(t *testing.T) {
	s, f := faulty(t, t.TempDir())
	put(t, s, "s", one+"\n")
	l, _ := open(t, s, "s")
	f.arm(-1, nil)
	for n := range 10 {
		if _, err := l.Append(eventlog.Batch{Lines: eventlogtest.Lines(n, n+5)}); err != nil {
			t.Fatal(err)
		}
	}
	if len(f.ops) != 10 || f.count("write") != 10 {
		t.Errorf("10 appends did %q", f.ops)
	}
	f.arm(-1, nil)
	for range 2 {
		if _, err := l.Append(eventlog.Batch{Lines: eventlogtest.Lines(0, 1), Sync: true}); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"write", "sync", "sync dir", "sync dir", "sync dir", "write", "sync"}
	if diff := cmp.Diff(want, f.ops); diff != "" {
		t.Errorf("two synced appends (-want +got):\n%s", diff)
	}
}

// TestFailedSync: where a sync has failed, the log goes on but gives no more
// promises.
func TestFailedSync(t *testing.T) {
	s, f := faulty(t, t.TempDir())
	put(t, s, "s", one+"\n")
	l, _ := open(t, s, "s")
	f.arm(1, syscall.EIO)
	if _, err := l.Append(eventlog.Batch{Lines: [][]byte{[]byte(two)}, Sync: true}); !errors.Is(err, syscall.EIO) {
		t.Fatalf("append: %v", err)
	}
	f.arm(-1, nil)
	if _, err := l.Append(eventlog.Batch{Lines: [][]byte{[]byte(two)}, Sync: true}); !errors.Is(err, syscall.EIO) || !strings.Contains(err.Error(), "resume the session") {
		t.Fatalf("append after a failed sync: %v", err)
	}
	if _, err := l.Append(eventlog.Batch{Lines: [][]byte{[]byte(three)}}); err != nil {
		t.Fatal(err)
	}
	if got := eventlogtest.ReadAll(t, l, 0); !cmp.Equal(got, []string{one, three}) {
		t.Fatalf("the log holds %q", got)
	}
	l, _ = open(t, s, "s")
	if _, err := l.Append(eventlog.Batch{Lines: [][]byte{[]byte(two)}, Sync: true}); err != nil {
		t.Fatal(err)
	}
}

// TestBackgroundSync: once an interval for what was not synced, never else, and
// a last time at the end.
func TestBackgroundSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		home := t.TempDir()
		var failed []string
		s, err := New(Config{Home: home, OnSyncError: func(id string, err error) { failed = append(failed, id) }})
		if err != nil {
			t.Fatal(err)
		}
		f := &faults{failAt: -1}
		s.fs = f.fsys()
		pass := func(want int) {
			t.Helper()
			<-time.After(time.Hour) // of the bubble's time
			synctest.Wait()
			if got := f.count("sync"); got != want {
				t.Fatalf("%d syncs, want %d", got, want)
			}
		}
		app := func(l eventlog.Log) {
			t.Helper()
			if _, err := l.Append(eventlog.Batch{Lines: [][]byte{[]byte(two)}}); err != nil {
				t.Fatal(err)
			}
		}
		put(t, s, "a", one+"\n")
		put(t, s, "b", one+"\n")
		a, _ := open(t, s, "a")
		b, _ := open(t, s, "b")
		pass(0)
		for range 10 {
			app(a)
		}
		app(b)
		pass(2)
		pass(2)
		app(a)
		if err := a.Close(); err != nil { // does not take the sync away
			t.Fatal(err)
		}
		pass(3)
		if _, err := a.file.Stat(); !errors.Is(err, fs.ErrClosed) {
			t.Fatalf("the file is still open: %v", err)
		}

		app(b)
		f.arm(0, syscall.EIO)
		pass(1)
		if !cmp.Equal(failed, []string{"b"}) {
			t.Fatalf("failed: %q", failed)
		}
		if _, err := b.Append(eventlog.Batch{Lines: [][]byte{[]byte(two)}, Sync: true}); !errors.Is(err, syscall.EIO) {
			t.Fatalf("append after a failed sync: %v", err)
		}

		f.arm(-1, nil)
		app(b)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if got := f.count("sync"); got != 1 {
			t.Fatalf("%d syncs at the end, want 1", got)
		}
		app(b)
		if got := f.count("sync"); got != 2 {
			t.Fatalf("%d syncs after the end, want 2", got)
		}
	})
}

func TestReadOnly(t *testing.T) {
	home := t.TempDir()
	s, f := faulty(t, home)
	put(t, s, "s", one+"\n"+`{"id`)
	f.arm(0, syscall.EROFS)
	l, damage := open(t, s, "s")
	if len(damage) != 1 {
		t.Fatalf("damage %v", damage)
	}
	if got := eventlogtest.ReadAll(t, l, 0); !cmp.Equal(got, []string{one}) {
		t.Fatalf("the log holds %q", got)
	}
	_, err := l.Append(eventlog.Batch{Lines: [][]byte{[]byte(two)}})
	if !errors.Is(err, syscall.EROFS) || !strings.Contains(err.Error(), "mount it writable") {
		t.Fatalf("append: %v", err)
	}
}

// TestUnreadable: a log that cannot be opened is an error that names it, not a
// session that is not there.
func TestUnreadable(t *testing.T) {
	s := newStore(t, t.TempDir())
	path := put(t, s, "s", one+"\n")
	if err := os.Chmod(path, 0); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() != 0 { // for root it is readable
		if _, _, err := s.Open(ctx, "s"); !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), path) {
			t.Fatalf("open: %v", err)
		}
	}
	if err := os.MkdirAll(filepath.Join(s.Dir("d"), logName), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Open(ctx, "d"); err == nil || errors.Is(err, eventlog.ErrNotFound) {
		t.Fatalf("open: %v", err)
	}
	if _, err := s.Create(ctx, "d"); !errors.Is(err, eventlog.ErrExists) {
		t.Fatalf("create: %v", err)
	}
}
