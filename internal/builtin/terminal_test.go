package builtin

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestReadable(t *testing.T) {
	for in, want := range map[string]string{
		"":                                   "",
		"plain\n\ttext":                      "plain\n\ttext",
		"a\r\nb\r\n":                         "a\nb\n",
		"10%\r50%\r100%\n":                   "100%\n",
		"long line\rshort\n":                 "shortline\n",
		"long line\r\x1b[Kshort\n":           "short\n",
		"x\x1b[2Ky":                          "y",
		"\x1b[1;31mred\x1b[0m \x1b[38;5;1mx": "red x",
		"\x1b]0;title\x07text":               "text",
		"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\": "link",
		"\x1b]never ended\nnext":                   "\nnext",
		"\x1bPdata\x1b\\after":                     "after",
		"ab\bc":                                    "ac",
		"\b\bx":                                    "x",
		"bell\x07 nul\x00":                         "bell nul",
		"cut \x1b":                                 "cut ",
		"cut \x1b[31":                              "cut ",
		"\x1b(Bx\x1b=y\x1bMz":                      "xyz",
		"\x1b[3\nx":                                "\nx",
		"\x1bé":                                    "é",
		"日本\r月":                                    "月本",
		"bad \xff byte":                            "bad \uFFFD byte",
	} {
		if got := readable(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func FuzzReadable(f *testing.F) {
	for _, s := range []string{"a\rb\x1b[K", "\x1b]0;x\x07y", "\x1b[31mx\x1b[0m\b\n", "\xff\x1b", "\x1bP\x1b\\"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		got := readable(in)
		if !plain(got) {
			t.Errorf("%q: %q is not plain", in, got)
		}
		if again := readable(got); again != got {
			t.Errorf("%q: reading it twice gives another text", in)
		}
		if strings.Count(got, "\n") > strings.Count(in, "\n") {
			t.Errorf("%q: lines were made up: %q", in, got)
		}
	})
}

// TestOutput: what is read piece by piece is what was written, characters whole,
// and beyond the limit the beginning and the end are kept.
func TestOutput(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var o output
		var all, got strings.Builder
		seen := int64(0)
		for range rapid.IntRange(1, 30).Draw(t, "writes") {
			p := rapid.StringMatching(`[a🙂é\n]{0,20}`).Draw(t, "text")
			cut := rapid.IntRange(0, len(p)).Draw(t, "cut")
			for _, part := range []string{p[:cut], p[cut:]} {
				all.WriteString(part)
				_, _ = o.Write([]byte(part))
				text, end := o.since(seen, true)
				if !utf8.ValidString(text) {
					t.Fatalf("a character was cut: %q", text)
				}
				got.WriteString(text)
				seen = end
			}
		}
		text, _ := o.since(seen, false)
		got.WriteString(text)
		if got.String() != all.String() {
			t.Fatalf("got %q, want %q", got.String(), all.String())
		}
	})
}

func TestOutputLimit(t *testing.T) {
	for shift := range 4 {
		var o output
		head := strings.Repeat("h", shift)
		_, _ = o.Write([]byte(head))
		for range 40000 {
			_, _ = o.Write([]byte(strings.Repeat("🙂", 20)))
		}
		_, _ = o.Write([]byte("end"))
		text, end := o.since(0, false)
		if !utf8.ValidString(text) || !strings.HasPrefix(text, head+"🙂") || !strings.HasSuffix(text, "🙂end") || end != o.total {
			t.Errorf("shift %d: %q … %q, %d of %d", shift, text[:20], text[len(text)-20:], end, o.total)
		}
		if cap(o.tail) > 5*maxTail || len(text) > maxHead+maxTail+100 {
			t.Errorf("%d bytes are kept, %d shown", cap(o.tail), len(text))
		}
		// Read on from within the part that was dropped.
		if text, _ := o.since(maxHead+1000, false); !strings.HasPrefix(text, "\n[… ") || !strings.HasSuffix(text, "end") || !utf8.ValidString(text) {
			t.Errorf("%q", text[:50])
		}
	}
}
