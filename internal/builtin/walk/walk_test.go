package walk

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func tree(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func list(t testing.TB, root string) []string {
	t.Helper()
	var out []string
	if err := Files(context.Background(), root, func(rel string) error { out = append(out, rel); return nil }); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "w ü")
	tree(t, dir, map[string]string{
		".git/config": "", ".git/info/exclude": "excluded\n", ".gitignore": "*.log\n!keep.log\n/build/\nnode_modules\n# note\n\\#odd\ntrail\\ \na{b}\n",
		"a.log": "", "keep.log": "", "src/x.log": "", "src/keep.log": "", "src/main.go": "", "build/out": "", "src/build/out": "",
		"node_modules/x/y.js": "", "src/.gitignore": "!x.log\nlocal/**\n!local/keep\n", "src/local/a": "", "src/local/keep": "", "src/local/sub/b": "",
		"excluded": "", ".hidden/f": "", "#odd": "", "trail ": "", "a{b}": "", "ab": "", "z 日本": "",
	})
	if err := os.Symlink(dir, filepath.Join(dir, "loop")); err != nil {
		t.Fatal(err)
	}
	want := strings.Fields(".gitignore .hidden/f ab keep.log src/.gitignore src/build/out src/keep.log src/local/keep src/main.go src/x.log")
	want = append(want, "z 日本")
	if diff := cmp.Diff(want, list(t, dir)); diff != "" {
		t.Error(diff)
	}
	// From below, the rules above hold.
	if diff := cmp.Diff(strings.Fields(".gitignore build/out keep.log local/keep main.go x.log"), list(t, filepath.Join(dir, "src"))); diff != "" {
		t.Error(diff)
	}
	// A directory that is asked for by name is searched, ignored or not.
	if diff := cmp.Diff([]string{"x/y.js"}, list(t, filepath.Join(dir, "node_modules"))); diff != "" {
		t.Error(diff)
	}
	// Through a link as well.
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(filepath.Join(dir, "src"), link); err != nil {
		t.Fatal(err)
	}
	if got := list(t, link); !slices.Contains(got, "main.go") || slices.Contains(got, "local/a") {
		t.Errorf("%q", got)
	}
}

func TestEnds(t *testing.T) {
	dir := t.TempDir()
	tree(t, dir, map[string]string{"a": "", "b/c": "", "d": ""})
	boom := errors.New("boom")
	if err := Files(context.Background(), dir, func(string) error { return boom }); !errors.Is(err, boom) {
		t.Error(err)
	}
	n := 0
	if err := Files(context.Background(), dir, func(string) error { n++; return fs.SkipAll }); err != nil || n != 1 {
		t.Error(err, n)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := Files(ctx, dir, func(string) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := Files(context.Background(), filepath.Join(dir, "none"), func(string) error { return nil }); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// TestLikeGit holds the walk against git's own list, over ignore files and trees
// of all kinds.
func TestLikeGit(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git, by which ignore files are judged here, is not installed")
	}
	name := rapid.SampledFrom([]string{"a", "b", "ab", "a.x", "b.x", "[a]", "a{b}"})
	part := rapid.SampledFrom([]string{"a", "b", "ab", "*", "**", "a*", "*b", "*.x", "?", "[ab]", "[!a]", "a{b}", `\a`, "{a,b}", "a**b"})
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		if n++; n > 60 { // each starts processes
			return
		}
		dir, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			rt.Fatal(err)
		}
		files := map[string]string{}
		for range rapid.IntRange(1, 8).Draw(rt, "files") {
			p := strings.Join(rapid.SliceOfN(name, 1, 3).Draw(rt, "path"), "/")
			files[p] = ""
		}
		for p := range files { // no name is both file and directory
			for d := filepath.Dir(p); d != "."; d = filepath.Dir(d) {
				delete(files, d)
			}
		}
		for _, where := range []string{".gitignore", "a/.gitignore"} {
			if _, isFile := files["a"]; isFile && where != ".gitignore" {
				continue
			}
			var lines []string
			for range rapid.IntRange(0, 4).Draw(rt, "rules") {
				l := rapid.SampledFrom([]string{"", "!", "/", "!/"}).Draw(rt, "start") + strings.Join(rapid.SliceOfN(part, 1, 3).Draw(rt, "rule"), "/") +
					rapid.SampledFrom([]string{"", "/", " ", "/**"}).Draw(rt, "end")
				lines = append(lines, l)
			}
			files[where] = strings.Join(lines, "\n")
		}
		tree(t, dir, files)
		env := append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
		for _, cmd := range [][]string{{"init", "-q"}, {"ls-files", "-z", "--others", "--exclude-standard"}} {
			c := exec.Command(git, cmd...)
			c.Dir, c.Env = dir, env
			out, err := c.CombinedOutput()
			if err != nil {
				rt.Fatalf("%v: %s", err, out)
			}
			if cmd[0] == "init" {
				continue
			}
			want := strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 })
			got := list(t, dir)
			slices.Sort(want)
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" && len(want)+len(got) > 0 {
				rt.Fatalf("%v\n%s", files, diff)
			}
		}
	})
}

func FuzzRules(f *testing.F) {
	for _, s := range []string{"*.log\n!keep", "/a/**\n", "[a-\n{b}\n\\", "a/**/b\r\n#x\n! \n"} {
		f.Add(s, "a/b.log")
	}
	f.Fuzz(func(t *testing.T, text, path string) {
		rs := parseRules([]byte(text))
		rs.decide(path, true)
		if ignored, decided := rs.decide(path, false); ignored && !decided {
			t.Error("ignored without a rule")
		}
	})
}
