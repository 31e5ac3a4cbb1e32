package filelog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/transom-run/transom/eventlog"
	"github.com/transom-run/transom/eventlog/eventlogtest"
)

const one, two, three = `{"id":"1"}`, `{"id":"2"}`, `{"id":"3"}`

// readBoth returns the records and the damage of a log.
func readBoth(t testing.TB, l *Log, from eventlog.Position) (lines []string, damage []eventlog.Damage) {
	t.Helper()
	for r, err := range l.Read(from) {
		var d *eventlog.DamageError
		switch {
		case errors.As(err, &d):
			damage = append(damage, d.Damage)
		case err != nil:
			t.Fatal(err)
		default:
			lines = append(lines, string(r.Line))
		}
	}
	return lines, damage
}

func TestDamage(t *testing.T) {
	nul := func(n int) string { return strings.Repeat("\x00", n) }
	tests := []struct {
		name, file string
		lines      []string
		dropped    string            // reason
		middle     []eventlog.Damage // seen by a Read from the start
		after      string            // the file after one append of three
	}{
		{name: "empty", file: "", after: three + "\n"},
		{name: "sound", file: one + "\n" + two + "\n", lines: []string{one, two}, after: one + "\n" + two + "\n" + three + "\n"},
		{name: "no line feed", file: one + "\n" + two, lines: []string{one, two}, after: one + "\n" + two + "\n" + three + "\n"},
		{name: "only record, no line feed", file: one, lines: []string{one}, after: one + "\n" + three + "\n"},
		{name: "no line feed, then NULs", file: one + "\n" + two + nul(9), lines: []string{one, two}, dropped: "tail of NUL bytes", after: one + "\n" + two + "\n" + three + "\n"},
		{name: "no line feed, then spaces", file: one + "  \r", lines: []string{one}, dropped: "empty lines", after: one + "\n" + three + "\n"},
		{name: "torn", file: one + "\n" + `{"id":`, lines: []string{one}, dropped: "torn last record", after: one + "\n" + three + "\n"},
		{name: "torn only record", file: `{"id":`, dropped: "torn last record", after: three + "\n"},
		{name: "torn, then NULs", file: one + "\n" + `{"id":` + nul(1700), lines: []string{one}, dropped: "torn last record, and NUL bytes", after: one + "\n" + three + "\n"},
		{name: "torn, NULs, line feed", file: one + "\n" + `{"id":` + nul(17) + "\n", lines: []string{one}, dropped: "torn last record, and NUL bytes", after: one + "\n" + three + "\n"},
		{name: "NUL tail", file: one + "\n" + nul(1700), lines: []string{one}, dropped: "tail of NUL bytes", after: one + "\n" + three + "\n"},
		{name: "long NUL tail", file: one + "\n" + nul(3*block+5), lines: []string{one}, dropped: "tail of NUL bytes", after: one + "\n" + three + "\n"},
		{name: "only NULs", file: nul(4096), dropped: "tail of NUL bytes", after: three + "\n"},
		{name: "NULs and line feeds", file: one + "\n" + nul(3) + "\n\n" + nul(2), lines: []string{one}, dropped: "tail of NUL bytes", after: one + "\n" + three + "\n"},
		{name: "empty lines at the end", file: one + "\n\n\r\n \n", lines: []string{one}, dropped: "empty lines", after: one + "\n" + three + "\n"},
		{name: "only empty lines", file: "\n\n", dropped: "empty lines", after: three + "\n"},
		{name: "bad last line", file: one + "\n" + `{"id":` + "\n", lines: []string{one}, dropped: "last record is not a JSON object", after: one + "\n" + three + "\n"},
		{name: "last line of another kind", file: one + "\n[1]\n", lines: []string{one}, dropped: "last record is not a JSON object", after: one + "\n" + three + "\n"},
		{name: "last line not UTF-8", file: one + "\n{\"a\":\"\xff\"}\n", lines: []string{one}, dropped: "last record is not a JSON object", after: one + "\n" + three + "\n"},
		{name: "CRLF", file: one + "\r\n" + two + "\r\n", lines: []string{one, two}, after: one + "\r\n" + two + "\r\n" + three + "\n"},
		{name: "CR at the end", file: one + "\n" + two + "\r", lines: []string{one, two}, dropped: "empty lines", after: one + "\n" + two + "\n" + three + "\n"},
		{name: "empty lines between", file: one + "\n\n \r\n" + two + "\n", lines: []string{one, two}, after: one + "\n\n \r\n" + two + "\n" + three + "\n"},
		{
			name: "bad line between", file: one + "\nbad\n" + two + "\n", lines: []string{one, two},
			middle: []eventlog.Damage{{Line: 2, Pos: 11, Bytes: 3, Reason: "not a JSON object"}}, after: one + "\nbad\n" + two + "\n" + three + "\n",
		},
		{
			name: "only the last line is dropped", file: one + "\nbad\nworse", lines: []string{one}, dropped: "torn last record",
			middle: []eventlog.Damage{{Line: 2, Pos: 11, Bytes: 3, Reason: "not a JSON object"}}, after: one + "\nbad\n" + three + "\n",
		},
		{name: "two on a line", file: one + two + "\n" + three + "\n", lines: []string{one, two, three}, after: one + two + "\n" + three + "\n" + three + "\n"},
		{name: "two on the last line", file: one + " " + two + "\n", lines: []string{one, two}, after: one + " " + two + "\n" + three + "\n"},
		{name: "two, no line feed", file: one + two, lines: []string{one, two}, after: one + two + "\n" + three + "\n"},
		{
			name: "torn, then one on its line", file: `{"id":"` + one + "\n" + two + "\n", lines: []string{two},
			middle: []eventlog.Damage{{Line: 1, Pos: 0, Bytes: 17, Reason: "not a JSON object"}}, after: `{"id":"` + one + "\n" + two + "\n" + three + "\n",
		},
		{
			name: "a record and rubbish", file: one + ",\"x\":1}\n" + two + "\n", lines: []string{two},
			middle: []eventlog.Damage{{Line: 1, Pos: 0, Bytes: 17, Reason: "not a JSON object"}}, after: one + ",\"x\":1}\n" + two + "\n" + three + "\n",
		},
		{
			name: "NULs, then a record", file: one + "\n" + nul(20) + two + "\n", lines: []string{one, two},
			middle: []eventlog.Damage{{Line: 2, Pos: 11, Bytes: 20, Reason: "NUL bytes"}}, after: one + "\n" + nul(20) + two + "\n" + three + "\n",
		},
		{
			name: "a record, then NULs on its line", file: one + nul(4) + "\n" + two + "\n", lines: []string{one, two},
			middle: []eventlog.Damage{{Line: 1, Pos: 10, Bytes: 4, Reason: "NUL bytes"}}, after: one + nul(4) + "\n" + two + "\n" + three + "\n",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newStore(t, t.TempDir())
			path := put(t, s, "s", tt.file)
			l, damage := open(t, s, "s")
			reason := ""
			if len(damage) > 0 {
				reason = damage[0].Reason
				if d := damage[0]; len(damage) > 1 || !d.Dropped || int64(d.Pos)+d.Bytes != int64(len(tt.file)) {
					t.Errorf("damage %+v in a file of %d bytes", damage, len(tt.file))
				}
			}
			if reason != tt.dropped {
				t.Errorf("dropped: %q, want %q", reason, tt.dropped)
			}
			lines, middle := readBoth(t, l, 0)
			if diff := cmp.Diff(tt.lines, lines); diff != "" {
				t.Errorf("records (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.middle, middle); diff != "" {
				t.Errorf("damage (-want +got):\n%s", diff)
			}
			if b, _ := os.ReadFile(path); string(b) != tt.file {
				t.Errorf("opening and reading made it %q", b)
			}
			end := l.End()
			if err := l.Verify(); err != nil {
				t.Error(err)
			}
			pos, err := l.Append(eventlog.Batch{Lines: [][]byte{[]byte(three)}})
			if err != nil || pos != end {
				t.Fatalf("append at %d: %v; the log ended at %d", pos, err, end)
			}
			if b, _ := os.ReadFile(path); string(b) != tt.after {
				t.Errorf("after the append it is %q,\nwant %q", b, tt.after)
			}
			if err := l.Verify(); err != nil {
				t.Error(err)
			}
			if got := eventlogtest.ReadAll(t, l, pos); len(got) != 1 || got[0] != three {
				t.Errorf("at %d stands %q", pos, got)
			}
			lines, _ = readBoth(t, l, 0)
			if diff := cmp.Diff(append(tt.lines, three), lines); diff != "" {
				t.Errorf("records after the append (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTornAnywhere cuts the last record at every byte, with and without NUL
// bytes in place of what is missing.
func TestTornAnywhere(t *testing.T) {
	last := `{"type":"user.message","data":{"content":"a\u2028\"}{\" é"},"id":"9","parentId":null}`
	s := newStore(t, t.TempDir())
	n := 0
	for cut := 0; cut <= len(last); cut++ {
		for _, nuls := range []int{0, 1, 1700} {
			id := fmt.Sprintf("s%d", n)
			n++
			put(t, s, id, one+"\n"+two+"\n"+last[:cut]+strings.Repeat("\x00", nuls))
			l, damage := open(t, s, id)
			want := []string{one, two}
			if cut == len(last) {
				want = append(want, last)
			}
			if whole := (cut == 0 || cut == len(last)) && nuls == 0; whole != (len(damage) == 0) {
				t.Fatalf("cut at %d, %d NULs: damage %v", cut, nuls, damage)
			}
			if got := eventlogtest.ReadAll(t, l, 0); !cmp.Equal(got, want) {
				t.Fatalf("cut at %d, %d NULs: %q", cut, nuls, got)
			}
			if _, err := l.Append(eventlog.Batch{Lines: [][]byte{[]byte(three)}}); err != nil {
				t.Fatal(err)
			}
			want = append(want, three)
			if got := eventlogtest.ReadAll(t, l, 0); !cmp.Equal(got, want) {
				t.Fatalf("cut at %d, %d NULs, after an append: %q", cut, nuls, got)
			}
			again, damage := open(t, s, id)
			if got := eventlogtest.ReadAll(t, again, 0); !cmp.Equal(got, want) || damage != nil {
				t.Fatalf("cut at %d, %d NULs, opened again: %q, %v", cut, nuls, got, damage)
			}
			l.Close()
			again.Close()
		}
	}
}

func TestBadLineInALongLog(t *testing.T) {
	const n, bad = 20_000, 10_000
	var b bytes.Buffer
	var at eventlog.Position // of some record before the bad one
	for i := 1; i <= n; i++ {
		if i == bad {
			b.WriteString("{\"type\":\"tool.exec\x01\n")
			continue
		}
		if i == bad/2 {
			at = eventlog.Position(b.Len())
		}
		fmt.Fprintf(&b, `{"type":"test","id":"%d","data":{"x":"%s"}}`+"\n", i, strings.Repeat("x", i%300))
	}
	s := newStore(t, t.TempDir())
	put(t, s, "s", b.String())
	l, damage := open(t, s, "s")
	if damage != nil {
		t.Errorf("open reports %v", damage)
	}
	for _, from := range []eventlog.Position{0, at} {
		lines, damage := readBoth(t, l, from)
		want := n - 1
		if from > 0 {
			want = n - bad/2
		}
		if len(lines) != want {
			t.Errorf("%d records, want %d", len(lines), want)
		}
		if len(damage) != 1 || damage[0].Line != bad || damage[0].Dropped {
			t.Errorf("damage %+v, want line %d", damage, bad)
		}
	}
}

// TestLongLines: lines longer than any buffer, at the end of the file too.
func TestLongLines(t *testing.T) {
	long := func(n int) string { return `{"x":"` + strings.Repeat("y", n) + `"}` }
	want := []string{long(block - 8), long(block - 7), one, long(5 * block), two, long(16 << 20), three, long(3*block + 1)}
	s := newStore(t, t.TempDir())
	put(t, s, "s", strings.Join(want, "\n"))
	l, damage := open(t, s, "s")
	if damage != nil {
		t.Fatalf("damage %v", damage)
	}
	if got := eventlogtest.ReadAll(t, l, 0); !cmp.Equal(got, want) {
		t.Fatal("records differ")
	}
	path := put(t, s, "torn", strings.Join(want, "\n")[:15<<20])
	l, damage = open(t, s, "torn")
	if len(damage) != 1 || damage[0].Reason != "torn last record" {
		t.Fatalf("damage %v", damage)
	}
	if got := eventlogtest.ReadAll(t, l, 0); !cmp.Equal(got, want[:5]) {
		t.Fatal("records of the torn log differ")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

// TestEndlessLine: a line that is longer than any record may be is passed over
// and not taken into memory. (It is a hole in the file, and costs no disk.)
func TestEndlessLine(t *testing.T) {
	s := newStore(t, t.TempDir())
	path := put(t, s, "s", one+"\n")
	if err := os.Truncate(path, maxRecord+1000); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("\n" + two + "\n"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	l, damage := open(t, s, "s")
	if damage != nil {
		t.Errorf("damage %v", damage)
	}
	lines, damage := readBoth(t, l, 0)
	if !cmp.Equal(lines, []string{one, two}) || len(damage) != 1 || damage[0].Line != 2 || !strings.Contains(damage[0].Reason, "1024 MiB") {
		t.Errorf("records %q, damage %v", lines, damage)
	}
}

// FuzzOpen: whatever stands in a log, it can be opened, read and appended to,
// what was read stays, and nothing panics.
func FuzzOpen(f *testing.F) {
	for _, s := range []string{
		"", "\n", "\x00", one, one + "\n", one + "\n" + two + "\n", one + "\r\n" + two, one + "\n{\"id\":", one + two + "\n",
		one + "\n\x00\x00\x00", "\x00" + one + "\n", one + "\nbad\n" + two + "\n", "{\"a\":\"\u2028\"}\n", "[]\n{}", "\xef\xbb\xbf" + one + "\n",
		one + "\x00" + two, "{}\n{}{}\n{", "{\"a\":\"\xff\"}\n", strings.Repeat("[", 200) + "\n" + one,
	} {
		f.Add([]byte(s))
	}
	s := newStore(f, f.TempDir())
	f.Fuzz(func(t *testing.T, content []byte) {
		path := put(t, s, "s", string(content))
		l, dropped := open(t, s, "s")
		defer l.Close()
		before, damage := readBoth(t, l, 0)
		seen := 0
		for _, d := range append(damage, dropped...) {
			if d.Bytes <= 0 || int64(d.Pos) < 0 || int64(d.Pos)+d.Bytes > int64(len(content)) {
				t.Fatalf("damage %+v of %d bytes", d, len(content))
			}
			seen += int(d.Bytes)
		}
		for _, line := range before {
			if !json.Valid([]byte(line)) || !utf8.ValidString(line) || line[0] != '{' {
				t.Fatalf("not a record: %q", line)
			}
			seen += len(line)
		}
		if rest := len(content) - seen; rest < 0 || rest > strings.Count(string(content), "\n")+strings.Count(string(content), "\r")+strings.Count(string(content), " ")+strings.Count(string(content), "\t") {
			t.Fatalf("%d of %d bytes are neither a record nor reported", rest, len(content))
		}
		if b, _ := os.ReadFile(path); !bytes.Equal(b, content) {
			t.Fatal("opening changed the file")
		}
		pos, err := l.Append(eventlog.Batch{Lines: [][]byte{[]byte(three), []byte(two)}})
		if err != nil {
			t.Fatal(err)
		}
		want := append(before, three, two)
		if got, _ := readBoth(t, l, 0); !cmp.Equal(got, want) {
			t.Fatalf("after the append: %q, want %q", got, want)
		}
		if got := eventlogtest.ReadAll(t, l, pos); !cmp.Equal(got, []string{three, two}) {
			t.Fatalf("at %d: %q", pos, got)
		}
		again, dropped := open(t, s, "s")
		defer again.Close()
		if got, _ := readBoth(t, again, 0); !cmp.Equal(got, want) || len(dropped) > 0 {
			t.Fatalf("opened again: %q, %v, want %q", got, dropped, want)
		}
	})
}
