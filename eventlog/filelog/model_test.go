package filelog

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/transom-run/transom/eventlog"
	"github.com/transom-run/transom/eventlog/memlog"
	"pgregory.net/rapid"
)

// TestAgainstMemory plays random operations on a store in files and one in
// memory: they answer alike. Positions are compared by the records that stand
// there. Between the operations the file may lose its last line feed or gain a
// damaged tail, which changes nothing.
func TestAgainstMemory(t *testing.T) {
	home := t.TempDir()
	run := 0
	rapid.Check(t, func(t *rapid.T) {
		run++
		s, err := New(Config{Home: filepath.Join(home, fmt.Sprint(run)), SyncInterval: -1})
		if err != nil {
			t.Fatal(err)
		}
		m := &machine{files: s, memory: memlog.New(), id: "s"}
		defer m.close(t)
		t.Repeat(map[string]func(*rapid.T){
			"create": m.create, "open": m.open, "append": m.append, "close": m.close,
			"delete": m.delete, "damage": m.damage, "checkpoint": m.checkpoint, "": m.compare,
		})
	})
}

type machine struct {
	files  *Store
	memory *memlog.Store
	id     string
	n      int // records made
	// the log that is open, on both sides; nil: none
	file, mem eventlog.Log
	// positions that both sides returned, in order
	filePos, memPos []eventlog.Position
}

func (m *machine) same(t *rapid.T, what string, file, mem error) bool {
	for _, kind := range []error{eventlog.ErrNotFound, eventlog.ErrExists, eventlog.ErrClosed} {
		if errors.Is(file, kind) != errors.Is(mem, kind) {
			t.Fatalf("%s: in files %v, in memory %v", what, file, mem)
		}
	}
	if (file == nil) != (mem == nil) {
		t.Fatalf("%s: in files %v, in memory %v", what, file, mem)
	}
	return file == nil
}

func (m *machine) create(t *rapid.T) {
	f, ferr := m.files.Create(ctx, m.id)
	g, gerr := m.memory.Create(ctx, m.id)
	if m.same(t, "create", ferr, gerr) {
		m.file, m.mem = f, g
		m.filePos, m.memPos = nil, nil
	}
}

func (m *machine) open(t *rapid.T) {
	if m.file != nil {
		return // one writer at a time
	}
	f, _, ferr := m.files.Open(ctx, m.id)
	g, _, gerr := m.memory.Open(ctx, m.id)
	if m.same(t, "open", ferr, gerr) {
		m.file, m.mem = f, g
	}
}

func (m *machine) append(t *rapid.T) {
	if m.file == nil {
		return // no log
	}
	b := eventlog.Batch{Provisional: rapid.Bool().Draw(t, "provisional"), Sync: rapid.IntRange(0, 9).Draw(t, "sync") == 0}
	for range rapid.IntRange(0, 3).Draw(t, "records") {
		m.n++
		b.Lines = append(b.Lines, fmt.Appendf(nil, `{"n":%d,"x":%q}`, m.n, rapid.StringMatching(`[a-z é]{0,20}`).Draw(t, "text")))
	}
	fp, ferr := m.file.Append(b)
	gp, gerr := m.mem.Append(b)
	if m.same(t, "append", ferr, gerr) {
		m.filePos, m.memPos = append(m.filePos, fp), append(m.memPos, gp)
	}
}

func (m *machine) close(t *rapid.T) {
	if m.file == nil {
		return
	}
	m.same(t, "close", m.file.Close(), m.mem.Close())
	_, ferr := m.file.Append(eventlog.Batch{})
	_, gerr := m.mem.Append(eventlog.Batch{})
	m.same(t, "append after close", ferr, gerr)
	m.file, m.mem = nil, nil
	m.filePos, m.memPos = nil, nil // those of provisional records are gone
}

func (m *machine) delete(t *rapid.T) {
	if m.file != nil {
		return // in use
	}
	m.same(t, "delete", m.files.Delete(ctx, m.id), m.memory.Delete(ctx, m.id))
}

func (m *machine) damage(t *rapid.T) {
	path := filepath.Join(m.files.Dir(m.id), logName)
	b, err := os.ReadFile(path)
	if m.file != nil || err != nil {
		return // nothing to damage
	}
	if n := len(b); n > 0 && b[n-1] == '\n' && rapid.Bool().Draw(t, "no line feed") {
		b = b[:n-1]
	} else if n == 0 || b[n-1] == '\n' {
		b = append(b, rapid.SampledFrom([]string{"{", `{"n":`, "\x00", "\x00\x00{", "\n\n", "x\n", " "}).Draw(t, "tail")...)
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func (m *machine) checkpoint(t *rapid.T) {
	if m.file == nil {
		return // no log
	}
	if len(m.filePos) > 0 {
		i := rapid.IntRange(0, len(m.filePos)-1).Draw(t, "position")
		data := fmt.Append(nil, m.n)
		if rapid.Bool().Draw(t, "add") {
			m.same(t, "extend checkpoint", m.file.(*Log).ExtendCheckpoint(m.filePos[i], data), m.mem.(*memlog.Log).ExtendCheckpoint(m.memPos[i], data))
		} else {
			m.same(t, "save checkpoint", m.file.(*Log).SaveCheckpoint(m.filePos[i], data), m.mem.(*memlog.Log).SaveCheckpoint(m.memPos[i], data))
		}
	}
	fp, fdata, fok := m.file.(*Log).LoadCheckpoint()
	gp, gdata, gok := m.mem.(*memlog.Log).LoadCheckpoint()
	if fok != gok || string(fdata) != string(gdata) {
		t.Fatalf("checkpoint: in files %q, %v; in memory %q, %v", fdata, fok, gdata, gok)
	}
	if fok {
		m.compareFrom(t, fp, gp)
	}
}

func (m *machine) compare(t *rapid.T) {
	_, ferr := m.files.Stat(ctx, m.id)
	_, gerr := m.memory.Stat(ctx, m.id)
	m.same(t, "stat", ferr, gerr)
	if m.file == nil {
		return
	}
	m.same(t, "verify", m.file.(*Log).Verify(), m.mem.(*memlog.Log).Verify())
	m.compareFrom(t, 0, 0)
	for i := range m.filePos {
		m.compareFrom(t, m.filePos[i], m.memPos[i])
	}
}

func (m *machine) compareFrom(t *rapid.T, fp, gp eventlog.Position) {
	read := func(l eventlog.Log, from eventlog.Position) (lines []string) {
		for r, err := range l.Read(from) {
			var d *eventlog.DamageError
			if err != nil && !errors.As(err, &d) {
				t.Fatal(err)
			}
			if err == nil {
				lines = append(lines, string(r.Line))
			}
		}
		return lines
	}
	if diff := cmp.Diff(read(m.mem, gp), read(m.file, fp)); diff != "" {
		t.Fatalf("from %d and %d (-memory +files):\n%s", gp, fp, diff)
	}
}
