package builtin

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// engines runs a test with our own search, and with ripgrep where it is.
func engines(t *testing.T, test func(t *testing.T, r *rig)) {
	rg := os.Getenv("TRANSOM_TEST_RG")
	if rg == "" {
		rg, _ = exec.LookPath("rg")
	}
	for name, path := range map[string]string{"own": "", "ripgrep": rg} {
		t.Run(name, func(t *testing.T) {
			if name == "ripgrep" && rg == "" {
				t.Skip("ripgrep is not installed; Transom then searches by itself")
			}
			old := ripgrep
			ripgrep = func() string { return path }
			t.Cleanup(func() { ripgrep = old })
			test(t, newRig(t))
		})
	}
}

// TestGrep pins the form of lines; the rest is ours, and the same with either.
func TestGrep(t *testing.T) {
	engines(t, func(t *testing.T, r *rig) {
		data := r.write("data.txt", "apple\nbanana\napricot\ncherry\n")
		equal(t, r.text("grep", args("pattern", "^ap", "path", data, "output_mode", "content", "-n", true)), data+":1:apple\n"+data+":3:apricot")

		r.write("src/a.go", "func A() {\n\treturn\n}\n")
		r.write("src/b.ts", "function b() {}\r\nRETURN\r\n")
		r.write("src/.gitignore", "ignored\n")
		r.write("src/ignored/c.go", "return\n")
		r.write(".hidden/d.go", "return it\n")
		r.write(".git/config", "return\n")
		r.write("bin", "return\x00\n")
		r.write("ü 日/-e.md", "x return ü\nno\nno\nno\nreturn\nno\nreturn\n")
		must(t, os.Symlink("src", r.path("link")))
		for _, tt := range []struct{ args, want string }{
			{args("pattern", "return"), "./.hidden/d.go\n./src/a.go\n./ü 日/-e.md"},
			{args("pattern", "return", "-i", true), "./.hidden/d.go\n./src/a.go\n./src/b.ts\n./ü 日/-e.md"},
			{args("pattern", "RETURN$", "output_mode", "content"), "./src/b.ts:2:RETURN"},
			{args("pattern", "return", "output_mode", "count"), "./.hidden/d.go:1\n./src/a.go:1\n./ü 日/-e.md:3"},
			{args("pattern", "return", "paths", "src", "output_mode", "content", "-n", false), "src/a.go:\treturn"},
			{args("pattern", "return", "paths", []string{"src/a.go", "ü 日"}, "output_mode", "content"), "src/a.go:2:\treturn\nü 日/-e.md:1:x return ü\nü 日/-e.md:5:return\nü 日/-e.md:7:return"},
			{args("pattern", "return", "paths", "ü 日", "output_mode", "content", "-C", 1),
				"ü 日/-e.md:1:x return ü\nü 日/-e.md-2-no\n--\nü 日/-e.md-4-no\nü 日/-e.md:5:return\nü 日/-e.md-6-no\nü 日/-e.md:7:return"},
			{args("pattern", "return", "output_mode", "content", "-A", 1, "glob", "*.go"), "./.hidden/d.go:1:return it\n--\n./src/a.go:2:\treturn\n./src/a.go-3-}"},
			{args("pattern", "return", "type", "go"), "./.hidden/d.go\n./src/a.go"},
			{args("pattern", "return", "glob", "*.{ts,md}"), "./ü 日/-e.md"},
			{args("pattern", "return", "glob", "!*.md"), "./.hidden/d.go\n./src/a.go"},
			{args("pattern", "return", "glob", "src/**"), "./src/a.go"},
			{args("pattern", `\{.*return`, "multiline", true, "output_mode", "content"), "./src/a.go:1:func A() {\n./src/a.go:2:\treturn"},
			{args("pattern", "-e", "output_mode", "content"), "No matches found."},
			{args("pattern", "return", "paths", "src/ignored"), "src/ignored/c.go"},
			{args("pattern", "return", "output_mode", "content", "head_limit", 2), "./.hidden/d.go:1:return it\n./src/a.go:2:\treturn\n[only the first 2 lines are shown]"},
			{args("pattern", "return", "paths", "bin"), "No matches found."},
		} {
			if name := t.Name(); strings.HasSuffix(name, "ripgrep") && strings.Contains(tt.args, `"bin"`) {
				continue // says that the binary file matches
			}
			if diff := cmp.Diff(tt.want, r.text("grep", tt.args)); diff != "" {
				t.Errorf("%s: %s", tt.args, diff)
			}
		}
		r.refusal("grep", args("pattern", "x", "paths", "none"), "Path "+r.path("none")+" does not exist.")
		r.refusal("grep", args("pattern", "(?=x)"), "search")
		r.refusal("grep", args("pattern", "x", "type", "klingon"), "klingon")
		r.refusal("grep", args("pattern", "x", "glob", "[a"), "")
	})
}

func TestGrepLarge(t *testing.T) {
	engines(t, func(t *testing.T, r *rig) {
		r.write("long", strings.Repeat("é", 5000)+"\n"+strings.Repeat("short é\n", 5000))
		out := r.text("grep", args("pattern", "é", "output_mode", "content"))
		lines := strings.Split(out, "\n")
		if len(lines) != maxFound+1 || len(lines[0]) > maxLine+10 || !strings.HasSuffix(lines[0], "é […]") || lines[1] != "./long:2:short é" {
			t.Errorf("%d lines, the first of %d bytes; %.80q", len(lines), len(lines[0]), lines[1])
		}
	})
}

// TestGlob pins the form of names.
func TestGlob(t *testing.T) {
	r := newRig(t)
	for _, n := range []string{"src/index.ts", "README.md", "node_modules/x.ts", ".github/w.yml", "a b/ü.md", ".git/x.ts"} {
		r.write(n, "")
	}
	r.write(".gitignore", "node_modules\n")
	for _, tt := range []struct{ args, want string }{
		{args("pattern", "**/*.ts"), "./src/index.ts"},
		{args("pattern", "*.md"), "./README.md"},
		{args("pattern", "./**/*.md"), "./README.md\n./a b/ü.md"},
		{args("pattern", "**/*.{ts,yml}"), "./.github/w.yml\n./src/index.ts"},
		{args("pattern", "*.ts", "paths", "src"), "src/index.ts"},
		{args("pattern", "*.ts", "path", []string{"src/"}), "src/index.ts"},
		{args("pattern", "*.ts", "paths", r.path("src")), r.path("src", "index.ts")},
		{args("pattern", r.dir+"/src/*.ts"), r.path("src", "index.ts")},
		{args("pattern", "*.zig"), "No files matched the pattern."},
	} {
		equal(t, r.text("glob", tt.args), tt.want)
	}
	r.refusal("glob", args("pattern", "[a"), "is not one")
	r.refusal("glob", args("pattern", ""), "is not one")
	r.refusal("glob", args("pattern", "*", "paths", "none"), "does not exist")
	r.refusal("glob", args("pattern", "*", "paths", "README.md"), "not a directory")
	for i := range maxFound + 1 {
		r.write(fmt.Sprintf("many/%d", i), "")
	}
	if out := r.text("glob", args("pattern", "many/*")); !strings.HasSuffix(out, "[only the first 1000 are shown]") {
		t.Error(out[len(out)-60:])
	}
}
