package walk

import (
	"strings"
	"testing"
	"time"

	"github.com/bmatcuk/doublestar/v4"
)

func TestGlob(t *testing.T) {
	for _, tc := range []struct {
		pattern, path string
		want          bool
	}{
		{"*.go", "a.go", true}, {"*.go", "sub/a.go", false}, {"**/*.go", "a.go", true}, {"**/*.go", "x/y/a.go", true},
		{"a/**", "a/b/c", true}, {"a/**/c", "a/c", true}, {"a/**/c", "a/b/d/c", true}, {"a/**/c", "ab/c", false},
		{"a**b", "axb", true}, {"a**b", "a/b", false}, {"{a,b/*}.go", "b/x.go", true}, {"{a,{b,c}}", "c", true}, {"{,a}b", "b", true},
		{"[a-c]x", "bx", true}, {"[!a-c]x", "bx", false}, {"[!a]x", "/x", false}, {"[^a]x", "bx", true}, {`\*`, "*", true}, {`\*`, "a", false},
		{"a.b", "axb", false}, {"?", "ü", true}, {"?", "/", false}, {"日*", "日本", true}, {"a+(b)", "a+(b)", true}, {"[a]]", "a]", true},
	} {
		g, ok := CompileGlob(tc.pattern)
		if !ok || g.Match(tc.path) != tc.want {
			t.Errorf("%q of %q: %v (%v)", tc.path, tc.pattern, !tc.want, ok)
		}
	}
	for _, bad := range []string{"[", "{a", `\`, strings.Repeat("a", maxGlob+1)} {
		if _, ok := CompileGlob(bad); ok {
			t.Errorf("%.20q is a pattern", bad)
		}
	}
}

// FuzzGlob compares with a matcher that tries all there is, on what is short enough
// for it.
func FuzzGlob(f *testing.F) {
	for _, s := range [][2]string{{"*.go", "a.go"}, {"**/a", "b/a"}, {"a/**/b", "a/b"}, {"{a,b}[!c]?", "axy"}, {"a**", "ab"}, {`\[x`, "[x"}, {"{**,a}/b", "b"}} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, pattern, path string) {
		begun := time.Now()
		g, ok := CompileGlob(pattern)
		if !ok {
			return
		}
		got := g.Match(path)
		if d := time.Since(begun); d > 5*time.Second {
			t.Errorf("%q took %v", pattern, d)
		}
		if len(pattern) > 10 || strings.ContainsFunc(pattern+path, func(r rune) bool { return r < ' ' || r > '~' }) {
			return
		}
		// Where "**" meets braces, or a path is none, matchers may differ.
		if strings.Contains(pattern, "**") || strings.HasPrefix(path, "/") || strings.Contains(path, "//") || strings.HasSuffix(path, "/") || strings.ContainsAny(pattern, "[\\") {
			return
		}
		if want := doublestar.MatchUnvalidated(pattern, path); got != want {
			t.Errorf("%q of %q: %v, want %v", path, pattern, got, want)
		}
	})
}
