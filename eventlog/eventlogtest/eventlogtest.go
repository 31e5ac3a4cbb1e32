// Package eventlogtest holds the tests that every implementation of
// eventlog.Store passes.
//
//	func TestConformance(t *testing.T) {
//		eventlogtest.Run(t, func(t *testing.T) eventlog.Store { return memlog.New() }, eventlogtest.Options{})
//	}
//
// The tests know nothing of how positions are counted, nor where records are
// kept. What is special about an implementation (damage, other processes) is
// tested beside it.
package eventlogtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/transom-run/transom/eventlog"
)

// Options says what is special about an implementation.
type Options struct {
	// Again makes another Store on what s keeps, as another runtime in the same
	// process would have it. nil: s itself is used.
	Again func(t *testing.T, s eventlog.Store) eventlog.Store
}

// Run runs all tests, each on a store of its own.
func Run(t *testing.T, open func(t *testing.T) eventlog.Store, o Options) {
	if o.Again == nil {
		o.Again = func(_ *testing.T, s eventlog.Store) eventlog.Store { return s }
	}
	tests := []struct {
		name string
		run  func(*testing.T, *env)
	}{
		{"append and read", appendAndRead},
		{"refused lines", refusedLines},
		{"provisional", provisional},
		{"provisional behind stored records", provisionalBehind},
		{"provisional that came to nothing", provisionalDropped},
		{"an empty batch makes the session", emptyBatch},
		{"create", create},
		{"create at once", createAtOnce},
		{"ids", ids},
		{"any text", anyText},
		{"long records", longRecords},
		{"read ends where the log ended", readSnapshot},
		{"read while appending", readWhileAppending},
		{"closed", closed},
		{"stat and list", statAndList},
		{"delete", deleteSession},
		{"cancelled", cancelled},
		{"holds", holding},
		{"verify", verify},
		{"checkpoint", checkpoint},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { tt.run(t, &env{store: open(t), again: o.Again}) })
	}
}

// env is what a test gets.
type env struct {
	store eventlog.Store
	again func(*testing.T, eventlog.Store) eventlog.Store
}

var ctx = context.Background()

// Line makes a record that says n.
func Line(n int) []byte { return fmt.Appendf(nil, `{"type":"test","id":"%d"}`, n) }

// Lines makes the records from one number up to another, which is left out.
func Lines(from, to int) [][]byte {
	var lines [][]byte
	for n := from; n < to; n++ {
		lines = append(lines, Line(n))
	}
	return lines
}

// ReadAll reads a log that is expected to be sound, and checks that its records
// join up.
func ReadAll(t testing.TB, l eventlog.Log, from eventlog.Position) []string {
	t.Helper()
	var lines []string
	next := from
	for r, err := range l.Read(from) {
		if err != nil {
			t.Fatalf("read from %d: %v", from, err)
		}
		if r.Pos != next {
			t.Fatalf("record %d is at %d, the one before said %d", len(lines), r.Pos, next)
		}
		next = r.Next
		lines = append(lines, string(r.Line))
	}
	if next != l.End() {
		t.Fatalf("the last record ends at %d, the log at %d", next, l.End())
	}
	return lines
}

func text(lines [][]byte) []string {
	var s []string
	for _, l := range lines {
		s = append(s, string(l))
	}
	return s
}

func wantLines(t *testing.T, l eventlog.Log, want [][]byte) {
	t.Helper()
	if diff := cmp.Diff(text(want), ReadAll(t, l, 0)); diff != "" {
		t.Fatalf("records (-want +got):\n%s", diff)
	}
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func mustAppend(t *testing.T, l eventlog.Log, b eventlog.Batch) eventlog.Position {
	t.Helper()
	return must[eventlog.Position](t)(l.Append(b))
}

func (e *env) create(t *testing.T, id string) eventlog.Log {
	t.Helper()
	l := must[eventlog.Log](t)(e.store.Create(ctx, id))
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func (e *env) open(t *testing.T, id string) eventlog.Log {
	t.Helper()
	l, damage, err := e.again(t, e.store).Open(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	if len(damage) > 0 {
		t.Fatalf("damage in a sound log: %v", damage)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func wantErr(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("error is %v, want %v", err, want)
	}
}

func appendAndRead(t *testing.T, e *env) {
	l := e.create(t, "s")
	if l.End() != 0 {
		t.Fatalf("an empty log ends at %d", l.End())
	}
	wantLines(t, l, nil)
	var starts []eventlog.Position
	for n := 0; n < 30; n += 3 {
		end := l.End()
		pos := mustAppend(t, l, eventlog.Batch{Lines: Lines(n, n+3), Sync: n%2 == 0})
		if pos != end {
			t.Fatalf("batch is at %d, the log ended at %d", pos, end)
		}
		starts = append(starts, pos)
	}
	wantLines(t, l, Lines(0, 30))
	for i, pos := range starts {
		if diff := cmp.Diff(text(Lines(3*i, 30)), ReadAll(t, l, pos)); diff != "" {
			t.Fatalf("from batch %d (-want +got):\n%s", i, diff)
		}
	}
	if got := ReadAll(t, l, l.End()); got != nil {
		t.Fatalf("at the end stands %q", got)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = e.open(t, "s")
	wantLines(t, l, Lines(0, 30))
	mustAppend(t, l, eventlog.Batch{Lines: Lines(30, 31)})
	wantLines(t, l, Lines(0, 31))
	// Stopping early is fine, and a sequence can be read again.
	for seq, i := l.Read(starts[2]), 0; i < 2; i++ {
		for r, err := range seq {
			if err != nil || !bytes.Equal(r.Line, Line(6)) {
				t.Fatalf("first record is %q, %v", r.Line, err)
			}
			r.Line[0] = 'x' // the reader owns it
			break
		}
	}
	for _, at := range []eventlog.Position{-1, l.End() + 1} {
		var err error
		for _, err = range l.Read(at) {
		}
		if err == nil {
			t.Fatalf("read from %d of %d is no error", at, l.End())
		}
	}
}

func refusedLines(t *testing.T, e *env) {
	l := e.create(t, "s")
	mustAppend(t, l, eventlog.Batch{Lines: Lines(0, 1)})
	for _, bad := range []string{"", "\n", "{}\n", "{\n}", "null", "[{}]", " {}", "{}\r", "\x00{}"} {
		if _, err := l.Append(eventlog.Batch{Lines: [][]byte{Line(8), []byte(bad), Line(9)}}); err == nil {
			t.Errorf("%q was taken", bad)
		}
		if _, err := l.Append(eventlog.Batch{Lines: [][]byte{[]byte(bad)}, Provisional: true}); err == nil {
			t.Errorf("%q was taken provisionally", bad)
		}
	}
	wantLines(t, l, Lines(0, 1))
	wantLines(t, e.open(t, "s"), Lines(0, 1))
}

func provisional(t *testing.T, e *env) {
	l := e.create(t, "s")
	p0 := mustAppend(t, l, eventlog.Batch{Lines: Lines(0, 2), Provisional: true})
	p1 := mustAppend(t, l, eventlog.Batch{Lines: Lines(2, 3), Provisional: true})
	wantLines(t, l, Lines(0, 3))
	e.wantNothing(t, "s")
	p2 := mustAppend(t, l, eventlog.Batch{Lines: Lines(3, 5)})
	for i, pos := range []eventlog.Position{p0, p1, p2} {
		from := []int{0, 2, 3}[i]
		if diff := cmp.Diff(text(Lines(from, 5)), ReadAll(t, l, pos)); diff != "" {
			t.Fatalf("from %d (-want +got):\n%s", pos, diff)
		}
	}
	wantLines(t, e.open(t, "s"), Lines(0, 5))

	synced := e.create(t, "synced")
	mustAppend(t, synced, eventlog.Batch{Lines: Lines(0, 2), Provisional: true, Sync: true})
	wantLines(t, e.open(t, "synced"), Lines(0, 2))
}

// wantNothing checks that a session left nothing behind.
func (e *env) wantNothing(t *testing.T, id string) {
	t.Helper()
	s := e.again(t, e.store)
	_, _, err := s.Open(ctx, id)
	wantErr(t, err, eventlog.ErrNotFound)
	_, err = s.Stat(ctx, id)
	wantErr(t, err, eventlog.ErrNotFound)
	if infos := must[[]eventlog.Info](t)(s.List(ctx)); len(infos) > 0 {
		t.Fatalf("listed: %v", infos)
	}
	wantErr(t, s.Delete(ctx, id), eventlog.ErrNotFound)
}

func provisionalBehind(t *testing.T, e *env) {
	l := e.create(t, "s")
	mustAppend(t, l, eventlog.Batch{Lines: Lines(0, 2)})
	mustAppend(t, l, eventlog.Batch{Lines: Lines(2, 3), Provisional: true})
	wantLines(t, l, Lines(0, 3))
	wantLines(t, e.open(t, "s"), Lines(0, 2))
	mustAppend(t, l, eventlog.Batch{Lines: Lines(3, 4)})
	wantLines(t, l, Lines(0, 4))
	wantLines(t, e.open(t, "s"), Lines(0, 4))
}

func provisionalDropped(t *testing.T, e *env) {
	l := e.create(t, "s")
	mustAppend(t, l, eventlog.Batch{Lines: Lines(0, 2), Provisional: true})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	e.wantNothing(t, "s")
	mustAppend(t, e.create(t, "s"), eventlog.Batch{Lines: Lines(5, 6)})
	wantLines(t, e.open(t, "s"), Lines(5, 6))
}

func emptyBatch(t *testing.T, e *env) {
	l := e.create(t, "s")
	mustAppend(t, l, eventlog.Batch{Lines: Lines(0, 2), Provisional: true})
	mustAppend(t, l, eventlog.Batch{})
	wantLines(t, e.open(t, "s"), Lines(0, 2))
	mustAppend(t, l, eventlog.Batch{Sync: true})
	mustAppend(t, l, eventlog.Batch{Provisional: true})
	wantLines(t, l, Lines(0, 2))
	mustAppend(t, e.create(t, "empty"), eventlog.Batch{})
	wantLines(t, e.open(t, "empty"), nil)
}
