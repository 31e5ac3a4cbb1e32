package sessionfs

import (
	"errors"
	"io/fs"
	"path"
	"strings"
	"testing"
)

func TestLayout(t *testing.T) {
	for _, tt := range []struct {
		l          Layout
		name, want string
	}{
		{Layout{Root: "/s"}, "a/b", "/s/a/b"},
		{Layout{Root: "/"}, "a", "/a"},
		{Layout{Root: "/s/"}, "./a//b", "/s/a/b"},
		{Layout{Root: `C:\s`, Windows: true}, "a/b", `C:\s\a\b`},
		{Layout{Root: `C:\s`, Windows: true}, `a\..\..\b`, ""},
		{Layout{Root: `C:\s`, Windows: true}, `D:x`, ""},
		{Layout{Root: "/s"}, "../s", ""},
		{Layout{Root: "/s"}, "a/..", ""},
		{Layout{Root: "/s"}, "/s/a", ""},
	} {
		got, err := tt.l.Path(tt.name)
		if got != tt.want || (err != nil) != (tt.want == "") {
			t.Errorf("%+v %q: %q, %v", tt.l, tt.name, got, err)
		}
		if tt.want == "" {
			continue
		}
		if name, ok := tt.l.Name(got); !ok || strings.TrimPrefix(strings.ReplaceAll(tt.name, "//", "/"), "./") != name {
			t.Errorf("%+v %q is named %q, %v", tt.l, got, name, ok)
		}
	}
	for _, out := range []string{"/s", "/sx/a", "/s/../a", "/t", "s/a"} {
		if name, ok := (Layout{Root: "/s"}).Name(out); ok {
			t.Errorf("%q is %q", out, name)
		}
	}
	if !errors.Is(&Error{Code: NotExist}, fs.ErrNotExist) {
		t.Error("ENOENT is no fs.ErrNotExist")
	}
}

// FuzzLayout: no name leads out of the directory, and each is found again.
func FuzzLayout(f *testing.F) {
	for _, s := range []string{"a", "../a", "a/../..", "/a", "a\\..\\..\\b", "C:x", "a//b/./c", ""} {
		f.Add(s, true)
		f.Add(s, false)
	}
	f.Fuzz(func(t *testing.T, name string, windows bool) {
		l := Layout{Root: "/s/t", Windows: windows}
		p, err := l.Path(name)
		if err != nil {
			return
		}
		slashes := p
		if windows {
			slashes = strings.ReplaceAll(p, `\`, "/")
		}
		if !strings.HasPrefix(path.Clean(slashes), "/s/t/") {
			t.Errorf("%q is %q", name, p)
		}
		if again, ok := l.Name(p); !ok || again != path.Clean(name) {
			t.Errorf("%q is %q, and that %q", name, p, again)
		}
	})
}
