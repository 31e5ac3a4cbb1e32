package builtin

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/transom-run/transom/tool"
)

// hardPatterns are what some matchers take exponential time for.
var hardPatterns = []string{
	strings.Repeat("*a", 30) + "b", strings.Repeat("**/", 30) + "x", strings.Repeat("{,a}", 40) + "b", strings.Repeat("{a,aa}", 40) + "b",
	strings.Repeat("{a,", 40) + strings.Repeat("}", 40), strings.Repeat("**/*a", 12) + "/b", strings.Repeat("a*{b,*}", 20), strings.Repeat("[a-z]*", 30) + "0",
	strings.Repeat("*/**/", 15) + "none",
}

// TestHardPatterns: no pattern of a model keeps a call busy.
func TestHardPatterns(t *testing.T) {
	r := newRig(t)
	r.write(strings.Repeat("a", 200), "")
	r.write(strings.Repeat("a/", 60)+strings.Repeat("a", 60), "")
	for _, p := range hardPatterns {
		begun := time.Now()
		r.call("glob", args("pattern", p))
		r.call("grep", args("pattern", "x", "glob", p))
		if d := time.Since(begun); d > 10*time.Second {
			t.Errorf("%.30s… took %v", p, d)
		}
	}
}

// FuzzGlob: any pattern is answered, and names only what lies where it was said to
// look.
func FuzzGlob(f *testing.F) {
	for _, s := range []string{"*.go", "**/x", "{a,b}/[!c]*", "../*", "/etc/{a,../b}", "[", "a\\", "**", "./x", "sub/../../*", "{..,.}/*"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, pattern string) {
		if len(pattern) > 200 {
			return
		}
		r := newRig(t)
		r.write("a.go", "")
		r.write("sub/b/x", "")
		c, call := r.prepare("glob", args("pattern", pattern))
		p, err := c.Permission(t.Context(), call)
		must(t, err)
		if filepath.IsAbs(pattern) || strings.Contains(pattern, "..") { // the places are the question's, which names them
			if p.None {
				t.Errorf("%q is not asked about", pattern)
			}
			return
		}
		out := tool.Run(t.Context(), c, call, nil)
		if !out.Success {
			return
		}
		for line := range strings.Lines(out.ModelText) {
			if name := strings.TrimSpace(line); strings.HasPrefix(name, "/") || strings.HasPrefix(name, "..") {
				t.Errorf("%q found %s", pattern, name)
			}
		}
	})
}
