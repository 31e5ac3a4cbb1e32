package wire

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/transom-run/transom/internal/jsonstring"
)

// slow gives a stream out in pieces of n bytes.
type slow struct {
	s string
	n int
}

func (r *slow) Read(b []byte) (int, error) {
	if r.s == "" {
		return 0, io.EOF
	}
	n := copy(b, r.s[:min(r.n, len(r.s), len(b))])
	r.s = r.s[n:]
	return n, nil
}

// FuzzSSE checks that how a stream is cut into reads changes nothing, and that
// data lines come out as they went in.
func FuzzSSE(f *testing.F) {
	f.Add("data: a\n\ndata: b\n\n", 3)
	f.Add("data:a\r\ndata: b\r\n\r\n: c\n\nevent: error\ndata\n\n", 1)
	f.Add("\xef\xbb\xbfdata: "+strings.Repeat("x", 17000)+"\n\ndata: y", 1000)
	f.Fuzz(func(t *testing.T, stream string, n int) {
		if n <= 0 || n > 1<<16 {
			n = 1
		}
		read := func(r io.Reader) (out []string) {
			ev := NewEvents(r, 1<<20)
			defer ev.Release()
			for {
				data, err := ev.Next()
				if err != nil {
					if !errors.Is(err, io.EOF) {
						t.Fatal(err)
					}
					return out
				}
				out = append(out, string(data)+"|"+ev.Name)
			}
		}
		whole, pieces := read(strings.NewReader(stream)), read(&slow{stream, n})
		if strings.Join(whole, "\n") != strings.Join(pieces, "\n") || len(whole) != len(pieces) {
			t.Fatalf("whole %q\npieces %q", whole, pieces)
		}
		// The plain reading of the format.
		var want []string
		var data []string
		name := ""
		lines := strings.Split(strings.TrimPrefix(stream, "\xef\xbb\xbf"), "\n")
		for i, line := range lines {
			line = strings.TrimSuffix(line, "\r")
			last := i == len(lines)-1
			if line == "" || last {
				if v, ok := strings.CutPrefix(line, "data:"); ok && last {
					data = append(data, strings.TrimPrefix(v, " "))
				} else if line == "data" && last {
					data = append(data, "")
				}
				if data != nil {
					want = append(want, strings.Join(data, "\n"))
				}
				data, name = nil, ""
				continue
			}
			if v, ok := strings.CutPrefix(line, "data:"); ok {
				data = append(data, strings.TrimPrefix(v, " "))
			} else if line == "data" {
				data = append(data, "")
			}
		}
		_ = name
		if len(want) != len(whole) {
			t.Fatalf("%q: got %q, want %q", stream, whole, want)
		}
		for i := range want {
			if got := whole[i][:strings.LastIndexByte(whole[i], '|')]; got != want[i] {
				t.Fatalf("%q: got %q, want %q", stream, got, want[i])
			}
		}
	})
}

// FuzzEscape: what is written is JSON, and encoding/json reads the same text.
func FuzzEscape(f *testing.F) {
	f.Add("a\"\\\n\x00\x7f\xffé😀\u2028")
	f.Fuzz(func(t *testing.T, s string) {
		var got string
		if err := json.Unmarshal(jsonstring.Append(nil, s), &got); err != nil || got != strings.ToValidUTF8(s, "\uFFFD") && !sameRunes(got, s) {
			t.Fatalf("%q: got %q, %v", s, got, err)
		}
	})
}

// sameRunes compares where each bad byte is one replacement (ToValidUTF8 makes
// one of a run).
func sameRunes(got, s string) bool { return got == string([]rune(s)) }
