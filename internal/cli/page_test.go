package cli

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{
		{"", []string{""}},
		{"one two three four", []string{"one two", "three four"}},
		{"abcdefghijklmno", []string{"abcdefghij", "klmno"}},
		{"a\n\nb", []string{"a", "", "b"}},
		{"  - one two three", []string{"  - one", "  two", "  three"}},
		{"0123456789 x", []string{"0123456789", "x"}},
		{"\tx", []string{"    x"}},
		{"           ", []string{""}},
	} {
		if diff := cmp.Diff(c.want, wrap(c.text, 10)); diff != "" {
			t.Errorf("wrap(%q): %s", c.text, diff)
		}
	}
}

func TestWrapKeepsEveryWord(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[a-z \n\tä]{0,80}`).Draw(t, "text")
		width := rapid.IntRange(2, 30).Draw(t, "width")
		lines := wrap(text, width)
		for _, l := range lines {
			if utf8.RuneCountInString(l) > width {
				t.Fatalf("line %q is longer than %d", l, width)
			}
		}
		squeeze := func(s string) string { return strings.Join(strings.Fields(s), "") }
		if got, want := squeeze(strings.Join(lines, "")), squeeze(text); got != want {
			t.Fatalf("wrapped %q, want %q", got, want)
		}
	})
}

func TestPrintableDisarmsTerminalCommands(t *testing.T) {
	if got, want := printable("a\x1b[2Jb\u202ec\u009b\td\r\n"), "a\ufffd[2Jb\ufffdc\ufffd\td\ufffd\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestShortSaysWhatItLeavesOut(t *testing.T) {
	var b strings.Builder
	p := page{w: &b}
	p.short("result", "1\n2\n3\n4\n5", 2)
	p.short("result", "1\n2\n3", 2)
	want := "  result     1\n             2\n             (… and 3 more lines: --full shows all)\n  result     1\n             2\n             3\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}
