package eventlogtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/transom-run/transom/eventlog"
)

func create(t *testing.T, e *env) {
	l := e.create(t, "s")
	for range 2 {
		_, err := e.again(t, e.store).Create(ctx, "s")
		wantErr(t, err, eventlog.ErrExists)
		mustAppend(t, l, eventlog.Batch{Lines: Lines(0, 1)})
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := e.store.Create(ctx, "s")
	wantErr(t, err, eventlog.ErrExists)
	_, _, err = e.store.Open(ctx, "other")
	wantErr(t, err, eventlog.ErrNotFound)
}

func createAtOnce(t *testing.T, e *env) {
	const n = 1000
	stores := []eventlog.Store{e.store, e.again(t, e.store)}
	logs := make(chan eventlog.Log, n)
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			l, err := stores[i%2].Create(ctx, "s")
			if err == nil {
				logs <- l
			} else if !errors.Is(err, eventlog.ErrExists) {
				t.Errorf("create: %v", err)
			}
		})
	}
	close(start)
	wg.Wait()
	if len(logs) != 1 {
		t.Fatalf("%d of %d creates of one id succeeded", len(logs), n)
	}
	l := <-logs
	mustAppend(t, l, eventlog.Batch{Lines: Lines(0, 1)})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	wantLines(t, e.open(t, "s"), Lines(0, 1))
}

func ids(t *testing.T, e *env) {
	bad := []string{
		"", ".", "..", "../evil", "a/b", "/abs", `a\b`, `..\evil`, ".hidden", "nul\x00byte", "tab\t", "line\n",
		"del\x7f", "c1\u0085", "CON", "nul", "Com1.txt", "lpt9", "dot.", "space ", "bad\xffutf8", strings.Repeat("x", 256),
	}
	for _, id := range bad {
		_, err := e.store.Create(ctx, id)
		wantErr(t, err, eventlog.ErrInvalidID)
		_, _, err = e.store.Open(ctx, id)
		wantErr(t, err, eventlog.ErrInvalidID)
		_, err = e.store.Stat(ctx, id)
		wantErr(t, err, eventlog.ErrInvalidID)
		wantErr(t, e.store.Delete(ctx, id), eventlog.ErrInvalidID)
		_, err = e.store.Hold(id)
		wantErr(t, err, eventlog.ErrInvalidID)
		if dir := e.store.Dir(id); dir != "" {
			t.Errorf("%q has a directory: %s", id, dir)
		}
	}
	good := []string{"a", "0b6b1b5e-6c0e-4a7e-9d1c-5f1f0f6f3a11", "with space", "a..b", "Ünïcode-日本", "console", "com10", strings.Repeat("x", 255)}
	for _, id := range good {
		mustAppend(t, e.create(t, id), eventlog.Batch{Lines: Lines(0, 1)})
		wantLines(t, e.open(t, id), Lines(0, 1))
	}
	infos := must[[]eventlog.Info](t)(e.store.List(ctx))
	if len(infos) != len(good) {
		t.Errorf("%d sessions listed, %d were made", len(infos), len(good))
	}
}

// anyText: whatever a JSON string can hold comes back byte for byte, and one
// record stays one record.
func anyText(t *testing.T, e *env) {
	texts := []string{
		"\u2028", "\u2029", "\u0085", "\x00", "\r\n", "\n", "\r", "\ufeff", "\v\f", "\x1b[0m", "\x7f", "日本語", "👩‍👩‍👧", "\U0010FFFF", "\ufffd",
		`\u0000`, `"}{"`, strings.Repeat("é", 5000), " ", "\t",
	}
	var lines [][]byte
	for _, s := range texts {
		escaped, err := json.Marshal(map[string]string{"t": s})
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, escaped)
		var raw bytes.Buffer // the same without the escapes of U+2028 and U+2029
		enc := json.NewEncoder(&raw)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(map[string]string{"t": s}); err != nil {
			t.Fatal(err)
		}
		b := bytes.TrimSpace(raw.Bytes())
		b = bytes.ReplaceAll(bytes.ReplaceAll(b, []byte(`\u2028`), []byte("\u2028")), []byte(`\u2029`), []byte("\u2029"))
		lines = append(lines, b)
	}
	l := e.create(t, "s")
	mustAppend(t, l, eventlog.Batch{Lines: lines[:3], Provisional: true})
	wantLines(t, l, lines[:3])
	mustAppend(t, l, eventlog.Batch{Lines: lines[3:]})
	wantLines(t, l, lines)
	wantLines(t, e.open(t, "s"), lines)
}

func longRecords(t *testing.T, e *env) {
	l := e.create(t, "s")
	var lines [][]byte
	for _, n := range []int{0, 1, 65500, 65535 - 8, 65536 - 8, 65537 - 8, 131072, 8 << 20, 10} {
		lines = append(lines, fmt.Appendf(nil, `{"x":"%s"}`, strings.Repeat("y", n)))
	}
	for _, line := range lines {
		mustAppend(t, l, eventlog.Batch{Lines: [][]byte{line}})
	}
	for _, l := range []eventlog.Log{l, e.open(t, "s")} {
		got := ReadAll(t, l, 0)
		if len(got) != len(lines) {
			t.Fatalf("%d records, want %d", len(got), len(lines))
		}
		for i := range got {
			if got[i] != string(lines[i]) {
				t.Fatalf("record %d of %d bytes came back with %d", i, len(lines[i]), len(got[i]))
			}
		}
	}
}

func readSnapshot(t *testing.T, e *env) {
	l := e.create(t, "s")
	mustAppend(t, l, eventlog.Batch{Lines: Lines(0, 2), Provisional: true})
	early := l.Read(0)
	mustAppend(t, l, eventlog.Batch{Lines: Lines(2, 3), Provisional: true})
	middle := l.Read(0)
	mustAppend(t, l, eventlog.Batch{Lines: Lines(3, 4)})
	late := l.Read(0)
	mustAppend(t, l, eventlog.Batch{Lines: Lines(4, 5)})
	for i, seq := range []func(func(eventlog.Record, error) bool){early, middle, late} {
		n := 0
		for r, err := range seq {
			if err != nil || !bytes.Equal(r.Line, Line(n)) {
				t.Fatalf("record %d is %q, %v", n, r.Line, err)
			}
			n++
		}
		if want := i + 2; n != want {
			t.Errorf("sequence %d has %d records, want %d", i, n, want)
		}
	}
}

func readWhileAppending(t *testing.T, e *env) {
	const batches = 200
	l := e.create(t, "s")
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for last := false; !last; {
				select {
				case <-done:
					last = true
				default:
				}
				n := 0
				for r, err := range l.Read(0) {
					if err != nil || !bytes.Equal(r.Line, Line(n)) {
						t.Errorf("record %d is %q, %v", n, r.Line, err)
						return
					}
					n++
				}
				if n%3 != 0 {
					t.Errorf("a reader saw %d records: part of a batch", n)
				}
			}
		})
	}
	for n := 0; n < 3*batches; n += 3 {
		mustAppend(t, l, eventlog.Batch{Lines: Lines(n, n+3), Provisional: n < 60})
	}
	close(done)
	wg.Wait()
	wantLines(t, l, Lines(0, 3*batches))
}

func closed(t *testing.T, e *env) {
	l := e.create(t, "s")
	mustAppend(t, l, eventlog.Batch{Lines: Lines(0, 1)})
	for range 2 {
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, b := range []eventlog.Batch{{Lines: Lines(1, 2)}, {Lines: Lines(1, 2), Provisional: true}, {Sync: true}} {
		_, err := l.Append(b)
		wantErr(t, err, eventlog.ErrClosed)
	}
	var err error
	for _, err = range l.Read(0) {
	}
	wantErr(t, err, eventlog.ErrClosed)
	wantLines(t, e.open(t, "s"), Lines(0, 1))
}

func statAndList(t *testing.T, e *env) {
	if infos := must[[]eventlog.Info](t)(e.store.List(ctx)); len(infos) != 0 {
		t.Fatalf("an empty store lists %v", infos)
	}
	const n = 20
	for i := range n {
		l := e.create(t, fmt.Sprintf("s%02d", i))
		mustAppend(t, l, eventlog.Batch{Lines: Lines(0, 1+i)})
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	hold := must[eventlog.Hold](t)(e.store.Hold("held-but-not-stored"))
	defer hold.Release()
	infos := must[[]eventlog.Info](t)(e.again(t, e.store).List(ctx))
	if len(infos) != n {
		t.Fatalf("%d sessions listed, want %d", len(infos), n)
	}
	for i, info := range infos {
		if i > 0 && info.Modified.After(infos[i-1].Modified) {
			t.Errorf("%s is listed after %s, which is older", info.SessionID, infos[i-1].SessionID)
		}
		if info.Started.IsZero() || info.Modified.IsZero() || info.Bytes == 0 {
			t.Errorf("listed: %+v", info)
		}
		if stat := must[eventlog.Info](t)(e.store.Stat(ctx, info.SessionID)); stat != info {
			t.Errorf("stat says %+v, list %+v", stat, info)
		}
	}
}

func deleteSession(t *testing.T, e *env) {
	l := e.create(t, "s")
	mustAppend(t, l, eventlog.Batch{Lines: Lines(0, 3), Sync: true})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, e.create(t, "other"), eventlog.Batch{Lines: Lines(7, 8)})
	if dir := e.store.Dir("s"); dir != "" {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(dir+"/result", []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.store.Delete(ctx, "s"); err != nil {
		t.Fatal(err)
	}
	if dir := e.store.Dir("s"); dir != "" {
		if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the session's directory is still there: %v", err)
		}
	}
	wantErr(t, e.store.Delete(ctx, "s"), eventlog.ErrNotFound)
	_, _, err := e.store.Open(ctx, "s")
	wantErr(t, err, eventlog.ErrNotFound)
	wantLines(t, e.open(t, "other"), Lines(7, 8))
	mustAppend(t, e.create(t, "s"), eventlog.Batch{Lines: Lines(1, 2)})
	wantLines(t, e.open(t, "s"), Lines(1, 2))
}

func cancelled(t *testing.T, e *env) {
	gone, cancel := context.WithCancel(ctx)
	cancel()
	_, err := e.store.Create(gone, "s")
	wantErr(t, err, context.Canceled)
	_, _, err = e.store.Open(gone, "s")
	wantErr(t, err, context.Canceled)
	_, err = e.store.Stat(gone, "s")
	wantErr(t, err, context.Canceled)
	_, err = e.store.List(gone)
	wantErr(t, err, context.Canceled)
	wantErr(t, e.store.Delete(gone, "s"), context.Canceled)
}

func holding(t *testing.T, e *env) {
	hold := func(s eventlog.Store, id string) eventlog.Hold {
		t.Helper()
		h := must[eventlog.Hold](t)(s.Hold(id))
		t.Cleanup(func() { _ = h.Release() })
		return h
	}
	others := func(h eventlog.Hold, want bool) {
		t.Helper()
		if got := must[bool](t)(h.Others()); got != want {
			t.Fatalf("others: %v, want %v", got, want)
		}
	}
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	a := hold(e.store, "s")
	others(a, false)
	ok(a.TakePen())
	ok(a.TakePen())
	b := hold(e.again(t, e.store), "s")
	others(a, true)
	others(b, true)
	others(hold(e.store, "t"), false)
	var held *eventlog.HeldError
	if err := b.TakePen(); !errors.As(err, &held) || held.PID != os.Getpid() || held.SessionID != "s" {
		t.Fatalf("second pen: %v", err)
	}
	ok(b.DropPen()) // it has none, and takes none away
	if err := b.TakePen(); !errors.As(err, &held) {
		t.Fatalf("second pen: %v", err)
	}
	ok(a.DropPen())
	ok(a.DropPen())
	ok(b.TakePen())
	if err := a.TakePen(); !errors.As(err, &held) {
		t.Fatalf("second pen: %v", err)
	}
	ok(b.Release()) // drops the pen too
	ok(b.Release())
	others(a, false)
	ok(a.TakePen())
	if b.TakePen() == nil {
		t.Fatal("a released hold took the pen")
	}
	ok(b.DropPen())
	ok(a.Release())

	// Of many that want the pen at once, one has it.
	const n = 50
	var wg sync.WaitGroup
	got := make(chan eventlog.Hold, n)
	for range n {
		h := hold(e.again(t, e.store), "s")
		wg.Go(func() {
			if err := h.TakePen(); err == nil {
				got <- h
			} else if !errors.As(err, new(*eventlog.HeldError)) {
				t.Errorf("pen: %v", err)
			}
		})
	}
	wg.Wait()
	if len(got) != 1 {
		t.Fatalf("%d holders have the pen", len(got))
	}
}

func verify(t *testing.T, e *env) {
	l := e.create(t, "s")
	v, ok := l.(eventlog.Verifier)
	if !ok {
		return // optional
	}
	if err := v.Verify(); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, l, eventlog.Batch{Lines: Lines(0, 1), Provisional: true})
	mustAppend(t, l, eventlog.Batch{Lines: Lines(1, 2)})
	if err := v.Verify(); err != nil {
		t.Fatal(err)
	}
	other := e.open(t, "s")
	mustAppend(t, other, eventlog.Batch{Lines: Lines(2, 3)})
	wantErr(t, v.Verify(), eventlog.ErrMoved)
	if err := other.(eventlog.Verifier).Verify(); err != nil {
		t.Fatal(err)
	}
	wantLines(t, l, Lines(0, 2)) // it still reads what it knows
	third := e.open(t, "s")
	if err := e.store.Delete(ctx, "s"); err != nil {
		t.Fatal(err)
	}
	wantErr(t, third.(eventlog.Verifier).Verify(), eventlog.ErrNotFound)
}

// extended adds to the checkpoint of a log.
func extended(t *testing.T, e *env, l eventlog.Log) {
	x, ok := l.(eventlog.Extender)
	if !ok {
		return // optional
	}
	want := func(l eventlog.Log, pos eventlog.Position, data string) {
		t.Helper()
		if at, got, ok := l.(eventlog.Checkpointer).LoadCheckpoint(); !ok || at != pos || got != data {
			t.Fatalf("checkpoint at %d: %q, %v; want %d: %q", at, got, ok, pos, data)
		}
	}
	refused := func(why string, x eventlog.Extender) {
		t.Helper()
		if x.ExtendCheckpoint(l.End(), []byte("x")) == nil {
			t.Fatal("added " + why)
		}
	}
	save := func(l eventlog.Log, data string) {
		t.Helper()
		if err := l.(eventlog.Checkpointer).SaveCheckpoint(l.End(), []byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	refused("after a save that failed", x)
	save(l, "one\n")
	for _, more := range []string{"two", "", "three\x00{}\n"} {
		mustAppend(t, l, eventlog.Batch{Lines: Lines(6, 8)})
		if err := x.ExtendCheckpoint(l.End(), []byte(more)); err != nil {
			t.Fatal(err)
		}
	}
	want(l, l.End(), "one\ntwothree\x00{}\n")
	other := e.open(t, "s")
	want(other, l.End(), "one\ntwothree\x00{}\n")
	refused("by another log than saved it", other.(eventlog.Extender))
	save(other, "of another")
	refused("to one of another", x)
	want(l, l.End(), "of another")
	save(l, "again")
	if x.ExtendCheckpoint(l.End()+1, nil) == nil {
		t.Fatal("a checkpoint beyond the end was taken")
	}
	refused("after an attempt that failed", x)
	want(l, l.End(), "again")
}

func checkpoint(t *testing.T, e *env) {
	l := e.create(t, "s")
	if _, ok := l.(eventlog.Checkpointer); !ok {
		return // optional
	}
	none := func(l eventlog.Log) {
		t.Helper()
		if pos, data, ok := l.(eventlog.Checkpointer).LoadCheckpoint(); ok {
			t.Fatalf("there is a checkpoint at %d: %q", pos, data)
		}
	}
	want := func(l eventlog.Log, pos eventlog.Position, data []byte) {
		t.Helper()
		gotPos, got, ok := l.(eventlog.Checkpointer).LoadCheckpoint()
		if !ok || gotPos != pos || got != string(data) {
			t.Fatalf("checkpoint at %d: %q, %v; want %d: %q", gotPos, got, ok, pos, data)
		}
	}
	save := func(l eventlog.Log, pos eventlog.Position, data []byte) {
		t.Helper()
		if err := l.(eventlog.Checkpointer).SaveCheckpoint(pos, data); err != nil {
			t.Fatal(err)
		}
	}
	none(l)
	mustAppend(t, l, eventlog.Batch{Lines: Lines(0, 2), Provisional: true})
	save(l, l.End(), []byte("provisional"))
	none(l)
	e.wantNothing(t, "s")
	pos := mustAppend(t, l, eventlog.Batch{Lines: Lines(2, 4)})
	none(l)
	save(l, 0, nil)
	want(l, 0, nil)
	save(l, pos, []byte("in the middle\n\x00\xff"))
	want(l, pos, []byte("in the middle\n\x00\xff"))
	big := bytes.Repeat([]byte("0123456789"), 1<<17)
	save(l, l.End(), big)
	end := l.End()
	mustAppend(t, l, eventlog.Batch{Lines: Lines(4, 6)})
	want(l, end, big)
	want(e.open(t, "s"), end, big)
	if err := l.(eventlog.Checkpointer).SaveCheckpoint(l.End()+1, nil); err == nil {
		t.Fatal("a checkpoint beyond the end was taken")
	}
	want(l, end, big)
	extended(t, e, l)
	if err := e.store.Delete(ctx, "s"); err != nil {
		t.Fatal(err)
	}
	again := e.create(t, "s")
	mustAppend(t, again, eventlog.Batch{Lines: Lines(0, 6)})
	none(again)
}
