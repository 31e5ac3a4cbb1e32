package filelog

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/transom-run/transom/eventlog"
)

// TestHead: the first records of a log, whole, each once, also beyond the first read;
// what is damaged is passed over, and a record that was not read whole is left out.
func TestHead(t *testing.T) {
	s := newStore(t, t.TempDir())
	long := `{"id":"long","pad":"` + strings.Repeat("x", firstRecord) + `"}`
	endless := `{"id":"endless","pad":"` + strings.Repeat("x", block) + `"}`
	put(t, s, "s", one+"\nbad\n"+two+"\r\n"+long+"\n"+three)
	put(t, s, "endless", one+"\n"+endless+"\n"+two+"\n")
	put(t, s, "empty", "")
	head := func(id string, max int) (lines []string) {
		t.Helper()
		err := s.Head(ctx, id, func(line []byte) bool {
			lines = append(lines, string(line))
			return len(lines) < max
		})
		if err != nil {
			t.Fatal(err)
		}
		return lines
	}
	for _, c := range []struct {
		id   string
		max  int
		want []string
	}{
		{"s", 10, []string{one, two, long, three}},
		{"s", 1, []string{one}},
		{"s", 3, []string{one, two, long}},
		{"endless", 10, []string{one}},
		{"empty", 10, nil},
	} {
		if diff := cmp.Diff(c.want, head(c.id, c.max)); diff != "" {
			t.Errorf("%s, %d:\n%s", c.id, c.max, diff)
		}
	}
	if err := s.Head(ctx, "none", func([]byte) bool { return true }); !errors.Is(err, eventlog.ErrNotFound) {
		t.Error(err)
	}
}

// TestLastWith: the last line with a text, wherever the text lies in the blocks that
// are read.
func TestLastWith(t *testing.T) {
	s := newStore(t, t.TempDir())
	mark := `{"mark":true}`
	for _, n := range []int{0, 1, block - 20, block - 10, block - 1, block, block + 5, 2*block - 3} {
		pad := `{"pad":"` + strings.Repeat("x", max(n-11, 0)) + `"}`
		put(t, s, "s", mark+"\n"+one+"\n"+mark+"\n"+pad+"\n")
		l, _ := open(t, s, "s")
		log := l
		second := eventlog.Position(len(mark) + len(one) + 2)
		if at, ok := log.LastWith([]byte(`"mark"`), log.End()); !ok || at != second {
			t.Fatalf("%d behind it: %d, %t", n, at, ok)
		}
		if at, ok := log.LastWith([]byte(`"mark"`), second); !ok || at != 0 {
			t.Fatalf("%d behind it, before the last: %d, %t", n, at, ok)
		}
		if _, ok := log.LastWith([]byte("nowhere"), log.End()); ok {
			t.Fatal("found what is not there")
		}
	}
}
