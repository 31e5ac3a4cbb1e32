package filelog

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/transom-run/transom/eventlog"
)

// TestRepair mends logs that are damaged in every way that reading knows of: the
// records stay byte for byte, the old log is kept, and a log without damage is left
// alone.
func TestRepair(t *testing.T) {
	for name, c := range map[string]struct {
		file    string
		damaged int
		want    []string
		clean   bool
	}{
		"whole":            {one + "\n" + two + "\n", 0, []string{one, two}, true},
		"no last feed":     {one + "\n" + two, 0, []string{one, two}, false},
		"torn":             {one + "\n" + two + "\n" + `{"id"`, 1, []string{one, two}, false},
		"NUL tail":         {one + "\n\x00\x00\x00\x00", 1, []string{one}, false},
		"bad middle":       {one + "\n" + `{"id":` + "\n" + two + "\n", 1, []string{one, two}, false},
		"NUL before":       {one + "\n\x00\x00" + two + "\n", 1, []string{one, two}, false},
		"bad, and a tail":  {"x\n" + one + "\n" + `{"i`, 2, []string{one}, false},
		"two on a line":    {one + two + "\n", 0, []string{one, two}, false},
		"CRLF, empty line": {one + "\r\n\n" + two + "\r\n", 0, []string{one, two}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t, t.TempDir())
			path := put(t, s, "s", c.file)
			r, err := s.Repair(ctx, "s")
			if err != nil || len(r.Damage) != c.damaged || r.Records != len(c.want) {
				t.Fatalf("%+v, %v", r, err)
			}
			l, damage := open(t, s, "s")
			if got, bad := readBoth(t, l, 0); !cmp.Equal(got, c.want) || len(bad) > 0 || len(damage) > 0 {
				t.Fatalf("the mended log holds %q, %v, %v", got, bad, damage)
			}
			raw, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			entries, err := os.ReadDir(s.Dir("s"))
			if err != nil {
				t.Fatal(err)
			}
			if c.clean {
				if string(raw) != c.file || len(entries) != 1 || r.Kept != "" {
					t.Fatalf("a log without damage became %q, %v", raw, entries)
				}
				return
			}
			if want := strings.Join(c.want, "\n") + "\n"; string(raw) != want || r.Bytes != int64(len(want)) {
				t.Fatalf("the file holds %q, %d bytes", raw, r.Bytes)
			}
			if kept, err := os.ReadFile(r.Kept); err != nil || string(kept) != c.file || len(entries) != 2 {
				t.Fatalf("kept %q, %v, %v", kept, err, entries)
			}
		})
	}
}

// TestRepairRefused: a log that somebody uses, one without a record, and none.
func TestRepairRefused(t *testing.T) {
	s := newStore(t, t.TempDir())
	torn := one + "\n" + `{"id`
	path := put(t, s, "s", torn)
	h := hold(t, newStore(t, s.cfg.Home), "s")
	if _, err := s.Repair(ctx, "s"); err == nil || !strings.Contains(err.Error(), "close it there first") {
		t.Errorf("of a session that is loaded: %v", err)
	}
	if err := h.TakePen(); err != nil {
		t.Fatal(err)
	}
	var held *eventlog.HeldError
	if _, err := s.Repair(ctx, "s"); !errors.As(err, &held) {
		t.Errorf("of a session at work: %v", err)
	}
	if raw, _ := os.ReadFile(path); string(raw) != torn {
		t.Errorf("the log is now %q", raw)
	}
	put(t, s, "nothing", "xxx\n\x00")
	if _, err := s.Repair(ctx, "nothing"); err == nil || !strings.Contains(err.Error(), "no record that can be read") {
		t.Errorf("of a log without a record: %v", err)
	}
	if _, err := s.Repair(ctx, "missing"); !errors.Is(err, eventlog.ErrNotFound) {
		t.Errorf("of no log: %v", err)
	}
	if entries, err := os.ReadDir(s.Dir("nothing")); err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
	var b bytes.Buffer
	if r, err := s.Copy(ctx, "s", &b); err != nil || b.String() != one+"\n" || len(r.Damage) != 1 {
		t.Errorf("a copy of a session in use: %q, %+v, %v", b.String(), r, err)
	}
}

// TestKilledRepair ends the process, so to speak, at each operation of a repair: the
// log is the old one or the mended one, and the old one is not lost.
func TestKilledRepair(t *testing.T) {
	file := one + "\nbad\n" + two + "\n" + `{"id`
	for at := range 20 {
		home := t.TempDir()
		s, err := New(Config{Home: home, SyncInterval: -1})
		if err != nil {
			t.Fatal(err)
		}
		path := put(t, s, "s", file)
		f := &faults{failAt: at, err: errors.New("killed"), killed: true}
		s.fs = f.fsys()
		_, err = s.Repair(ctx, "s")
		again := newStore(t, home)
		l, _ := open(t, again, "s")
		if got, _ := readBoth(t, l, 0); !cmp.Equal(got, []string{one, two}) {
			t.Fatalf("killed at %d (%v): the log holds %q", at, f.ops, got)
		}
		raw, _ := os.ReadFile(path)
		if string(raw) != file {
			names, _ := os.ReadDir(again.Dir("s"))
			found := false
			for _, n := range names {
				b, _ := os.ReadFile(again.Dir("s") + "/" + n.Name())
				found = found || string(b) == file
			}
			if !found {
				t.Fatalf("killed at %d: the old log is lost", at)
			}
		}
		if err == nil {
			if at < 8 {
				t.Errorf("a repair takes only %d operations: %v", at, f.ops)
			}
			return
		}
	}
	t.Error("it never succeeded")
}
