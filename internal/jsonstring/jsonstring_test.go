package jsonstring

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

func ExampleAppend() {
	fmt.Printf("%s\n", Append(nil, "a <b> \"c\"\n\u2028\x00\xff"))
	// Output: "a <b> \"c\"\n\u2028\u0000�"
}

func FuzzAppend(f *testing.F) {
	f.Add("")
	f.Add("plain text")
	f.Add("\x00\x1f \"\\/\x7f\u0080\u2027\u2028\u2029\u202a\U0010ffff")
	f.Add("cut \xe2\x80 and \xed\xa0\x80 and \xff")
	f.Fuzz(func(t *testing.T, s string) {
		b := Append([]byte("before"), s)
		text, ok := strings.CutPrefix(string(b), "before")
		if !ok || !utf8.ValidString(text) || strings.ContainsAny(text, "\n\r\u2028\u2029") {
			t.Fatalf("%q became %q", s, b)
		}
		want, _ := json.Marshal(s)
		var got, same string
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(want, &same); err != nil || got != same {
			t.Errorf("%q became %q, which is read as %q", s, text, got)
		}
	})
}

func BenchmarkAppend(b *testing.B) {
	text := strings.Repeat("some text of a model, \"quoted\"\n", 100)
	buf := make([]byte, 0, 2*len(text))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		buf = Append(buf[:0], text)
	}
}
