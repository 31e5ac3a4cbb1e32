//go:build unix

package builtin

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/transom-run/transom/internal/picture"
	"github.com/transom-run/transom/tool"
	"pgregory.net/rapid"
)

// TestViewLines pins the form of lines, and the empty one after a final line feed.
func TestViewLines(t *testing.T) {
	r := newRig(t)
	r.write("lines.txt", "line1\nline2\nline3\nline4\nline5\n")
	r.write("one", "Created by test")
	r.write("crlf.txt", "a\r\nb\r\n")
	r.write("empty", "")
	r.write("bad", "x\xffy\n")
	abs := r.path("lines.txt")
	for _, tt := range []struct{ args, want string }{
		{args("path", abs), "1. line1\n2. line2\n3. line3\n4. line4\n5. line5\n6. "},
		{args("path", "lines.txt", "view_range", []int{2, 4}), "2. line2\n3. line3\n4. line4"},
		{args("path", abs, "view_range", []int{5, -1}), "5. line5\n6. "},
		{args("path", abs, "view_range", []int{5, 99}), "5. line5\n6. "},
		{args("path", "./one"), "1. Created by test"},
		{args("path", "crlf.txt"), "1. a\n2. b\n3. "},
		{args("path", "empty"), "1. "},
		{args("path", "bad"), "1. x\uFFFDy\n2. "},
	} {
		equal(t, r.text("view", tt.args), tt.want)
	}
	for _, bad := range [][]int{{0, 1}, {3, 2}, {7, -1}, {-1, -1}} {
		r.refusal("view", args("path", abs, "view_range", bad), "has 6 lines")
	}
}

// TestViewMissing pins the text for a path that is not there.
func TestViewMissing(t *testing.T) {
	r := newRig(t)
	out := r.call("view", args("path", r.path("none.txt")))
	equal(t, out.ModelText, "Path "+r.path("none.txt")+" does not exist. Please provide a valid path.")
	if out.Success {
		t.Error("it succeeded")
	}
	equal(t, r.call("view", args("path", "sub/none")).ModelText, "Path "+r.path("sub/none")+" does not exist. Please provide a valid path.")
	must(t, os.Symlink("nowhere", r.path("dangling")))
	r.refusal("view", args("path", "dangling"), "does not exist")
	must(t, syscall.Mkfifo(r.path("fifo"), 0o600))
	r.refusal("view", args("path", "fifo"), "not a file or a directory")
}

func TestViewDirectory(t *testing.T) {
	r := newRig(t)
	equal(t, r.text("view", args("path", r.dir)), "(the directory is empty)")
	for _, n := range []string{"readme.txt", ".hidden", "sub/x", "z 日本"} {
		r.write(n, "")
	}
	equal(t, r.text("view", args("path", ".")), ".hidden\nreadme.txt\nsub/\nz 日本")
	for i := range maxEntries + 5 {
		r.write(fmt.Sprintf("many/%d", i), "")
	}
	if out := r.text("view", args("path", "many")); !strings.Contains(out, "[5 more entries") {
		t.Error(out[len(out)-100:])
	}
}

// pixels is a PNG of that size.
func pixels(t *testing.T, w, h int) string {
	t.Helper()
	var b strings.Builder
	must(t, png.Encode(&b, image.NewGray(image.Rect(0, 0, w, h))))
	return b.String()
}

// TestViewImage pins the text of an image, which goes beside it.
func TestViewImage(t *testing.T) {
	r := newRig(t)
	pixel := pixels(t, 1, 1)
	r.write("pixel", pixel)
	out := r.call("view", args("path", r.path("pixel")))
	equal(t, out.ModelText, "Viewed image file successfully.")
	want := []tool.Binary{{Data: base64.StdEncoding.EncodeToString([]byte(pixel)), MIMEType: "image/png", Type: "image", Description: "Image file at path " + r.path("pixel")}}
	if diff := cmp.Diff(want, out.Binary); diff != "" {
		t.Error(diff)
	}
	r.write("wide.png", pixels(t, 4000, 40))
	out = r.call("view", args("path", "wide.png"))
	data, err := base64.StdEncoding.DecodeString(out.Binary[0].Data)
	must(t, err)
	if cfg, err := png.DecodeConfig(bytes.NewReader(data)); err != nil || cfg.Width != 2000 || cfg.Height != 20 {
		t.Errorf("a large image is shown as %dx%d (%v)", cfg.Width, cfg.Height, err)
	}
	r.write("broken.png", pixel[:24])
	r.refusal("view", args("path", "broken.png"), "cannot be shown: it is damaged")
	must(t, os.Truncate(r.path("wide.png"), picture.MaxSource+1))
	r.refusal("view", args("path", "wide.png"), "at most 30 MB")
	r.write("data.bin", "a\x00b")
	r.refusal("view", args("path", "data.bin"), "binary file of 3 bytes")
}

func TestViewLarge(t *testing.T) {
	r := newRig(t)
	var b strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&b, "line %d é\n", i+1)
	}
	r.write("large", b.String())
	out := r.text("view", args("path", "large"))
	if tool.Oversized(out) || !strings.Contains(out, "has 5001 lines") || !strings.Contains(out, "Go on with view_range [") {
		t.Errorf("%d bytes: %s", len(out), out[len(out)-200:])
	}
	// Going on from there shows the rest without a gap.
	next := 1
	fmt.Sscanf(out[strings.LastIndex(out, "view_range [")+len("view_range ["):], "%d", &next)
	out = r.text("view", args("path", "large", "view_range", []int{next, next}))
	equal(t, out, fmt.Sprintf("%d. line %d é", next, next))
	out = r.text("view", args("path", "large", "forceReadLargeFiles", true))
	if strings.Count(out, "\n") != 5000 {
		t.Errorf("not whole: %d lines", strings.Count(out, "\n")+1)
	}
	if whole := r.call("view", args("path", "large", "forceReadLargeFiles", true)); !whole.Whole || r.call("view", args("path", "large")).Whole {
		t.Error("what was asked for whole would be cut, or what was not would stay")
	}
	for shift := range 4 {
		r.write("wide", strings.Repeat("x", shift)+strings.Repeat("🙂", 20000))
		out = r.text("view", args("path", "wide"))
		if tool.Oversized(out) || !strings.Contains(out, "Line 1 of") || strings.Contains(out, "\uFFFD") {
			t.Errorf("shift %d: %d bytes", shift, len(out))
		}
	}
	r.write("huge", strings.Repeat("x\n", maxForced))
	r.refusal("view", args("path", "huge", "forceReadLargeFiles", true), "too much to view")
}

// TestApprovedPath: what was approved is what is read, also where a link was
// turned since.
func TestApprovedPath(t *testing.T) {
	r := newRig(t)
	r.write("a", "one\n")
	r.write("b", "two\n")
	for _, tt := range []struct{ tool, args string }{
		{"view", args("path", "link")},
		{"edit", args("path", "link", "old_str", "one", "new_str", "three")},
	} {
		os.Remove(r.path("link"))
		must(t, os.Symlink("a", r.path("link")))
		c, call := r.prepare(tt.tool, tt.args)
		_, err := c.Permission(t.Context(), call)
		must(t, err)
		must(t, os.Remove(r.path("link")))
		must(t, os.Symlink("b", r.path("link")))
		r.write("b", "one\n")
		if out := tool.Run(t.Context(), c, call, nil); out.Success {
			t.Errorf("%s: %s", tt.tool, out.ModelText)
		}
	}
	equal(t, r.read("a")+r.read("b"), "one\none\n")
}

// TestCreate pins its text.
func TestCreate(t *testing.T) {
	r := newRig(t)
	equal(t, r.text("create", args("path", r.path("new_file.txt"), "file_text", "Created by test")), "Created file "+r.path("new_file.txt")+" with 15 characters")
	equal(t, r.read("new_file.txt"), "Created by test")
	equal(t, r.text("create", args("path", "deep/er/ü.txt", "file_text", "日本\r\n")), "Created file "+r.path("deep/er/ü.txt")+" with 4 characters")
	equal(t, r.read("deep/er/ü.txt"), "日本\r\n")
	r.refusal("create", args("path", "new_file.txt", "file_text", "x"), "exists already")
	r.refusal("create", args("path", "deep", "file_text", "x"), "is a directory")
	r.refusal("create", args("path", "new_file.txt/x", "file_text", "x"), "cannot be made")
	must(t, os.Symlink("nowhere", r.path("dangling")))
	r.refusal("create", args("path", "dangling", "file_text", "x"), "exists already")
	equal(t, r.read("new_file.txt"), "Created by test")

	p := r.ask("create", args("path", "ask.txt", "file_text", "a\nb"))
	var w writeRequest
	must(t, json.Unmarshal(p.Request, &w))
	if w.NewFileContents == nil || *w.NewFileContents != "a\nb" || w.FileName != r.path("ask.txt") || !w.CanOfferSessionApproval || !strings.Contains(w.Diff, "+b\n\\ No newline at end of file\n") {
		t.Errorf("%s", p.Request)
	}
	if _, err := os.Stat(r.path("ask.txt")); err == nil {
		t.Error("asking made the file")
	}
}

// TestEdit pins its text.
func TestEdit(t *testing.T) {
	r := newRig(t)
	r.write("edit_me.txt", "Hello World\nGoodbye World\n")
	equal(t, r.text("edit", args("path", r.path("edit_me.txt"), "old_str", "Hello World", "new_str", "Hi Universe")), "File "+r.path("edit_me.txt")+" updated with changes.")
	equal(t, r.read("edit_me.txt"), "Hi Universe\nGoodbye World\n")
	for _, tt := range []struct{ before, old, with, after string }{
		{"no line feed", "feed", "end", "no line end"},
		{"a\nb\nc\n", "b\n", "", "a\nc\n"},
		{"a\r\nb\r\nc\r\n", "a\nb\n", "x\ny\nz\n", "x\r\ny\r\nz\r\nc\r\n"},
		{"a\r\nb\r\n", "b", "b\nc", "a\r\nb\r\nc\r\n"},
		{"a\r\nb\nc\n", "b", "b\nd", "a\r\nb\nd\nc\n"},
		{"\xef\xbb\xbfx", "x", "y", "\xef\xbb\xbfy"},
		{"\xffx\xff", "x", "y", "\xffy\xff"},
		{"$1 \\1", "$1", "$2", "$2 \\1"},
	} {
		r.write("f", tt.before)
		r.text("edit", args("path", "f", "old_str", tt.old, "new_str", tt.with))
		equal(t, r.read("f"), tt.after)
	}
	r.write("f", "x x\n")
	r.refusal("edit", args("path", "f", "old_str", "x", "new_str", "y"), "occurs 2 times")
	r.refusal("edit", args("path", "f", "old_str", "z", "new_str", "y"), "does not occur")
	r.refusal("edit", args("path", "f", "old_str", "", "new_str", "y"), "empty")
	r.refusal("edit", args("path", "f", "old_str", "x x", "new_str", "x x"), "equal")
	r.refusal("edit", args("path", "none", "old_str", "x", "new_str", "y"), "does not exist")
	r.refusal("edit", args("path", ".", "old_str", "x", "new_str", "y"), "not a file")
	equal(t, r.read("f"), "x x\n")
}

// TestEditKeeps: permissions, links and other names of a file stay.
func TestEditKeeps(t *testing.T) {
	r := newRig(t)
	f := r.write("f", "one\n")
	must(t, os.Chmod(f, 0o751))
	must(t, os.Symlink("f", r.path("link")))
	r.text("edit", args("path", "link", "old_str", "one", "new_str", "two"))
	info, err := os.Lstat(r.path("link"))
	must(t, err)
	if info.Mode()&os.ModeSymlink == 0 {
		t.Error("the link became a file")
	}
	info, err = os.Stat(f)
	must(t, err)
	if info.Mode().Perm() != 0o751 {
		t.Errorf("mode %v", info.Mode())
	}
	must(t, os.Link(f, r.path("other")))
	r.text("edit", args("path", "f", "old_str", "two", "new_str", "three"))
	equal(t, r.read("other"), "three\n")
	left, err := filepath.Glob(r.path(".transom-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// TestEditsOfOneBatch: several edits of one file, approved before any ran, all
// hold; one whose place was changed meanwhile does not.
func TestEditsOfOneBatch(t *testing.T) {
	r := newRig(t)
	r.write("f", "a\nb\nc\nd e\n")
	type pending struct {
		c    *tool.Compiled
		call tool.Call
	}
	var batch []pending
	for _, p := range [][2]string{{"a", "A"}, {"c", "C1\nC2"}, {"d", "D"}, {"e", "E"}} {
		c, call := r.prepare("edit", args("path", "f", "old_str", p[0], "new_str", p[1]))
		perm, err := c.Permission(t.Context(), call)
		must(t, err)
		if perm.None {
			t.Fatal("not asked")
		}
		batch = append(batch, pending{c, call})
	}
	done := make(chan tool.Outcome, 4)
	for _, p := range batch[:3] {
		go func() { done <- tool.Run(t.Context(), p.c, p.call, nil) }()
	}
	for range 3 {
		if out := <-done; !out.Success {
			t.Error(out.ModelText)
		}
	}
	// The line of the last edit is another one now.
	if out := tool.Run(t.Context(), batch[3].c, batch[3].call, nil); out.Success || !strings.Contains(out.ModelText, "changed since") {
		t.Error(out.ModelText)
	}
	equal(t, r.read("f"), "A\nb\nC1\nC2\nD e\n")
}

// TestDoomed: a call that could not work when it was asked about does not work
// later either, whatever became of the file.
func TestDoomed(t *testing.T) {
	r := newRig(t)
	r.write("f", "x x\n")
	c, call := r.prepare("edit", args("path", "f", "old_str", "x", "new_str", "y"))
	_, err := c.Permission(t.Context(), call)
	must(t, err)
	r.write("f", "x\n")
	if out := tool.Run(t.Context(), c, call, nil); out.Success {
		t.Error("it was carried out")
	}
	equal(t, r.read("f"), "x\n")
}

func TestBeforeWrite(t *testing.T) {
	var seen []Change
	var refuse error
	r := newRig(t, func(c *Config) {
		c.BeforeWrite = func(_ context.Context, ch Change) error { seen = append(seen, ch); return refuse }
	})
	f := r.write("f", "one\n")
	must(t, os.Chmod(f, 0o640))
	r.text("edit", args("path", "f", "old_str", "one", "new_str", "two"))
	r.text("create", args("path", "g", "file_text", "x"))
	refuse = errors.New("not now")
	r.refusal("edit", args("path", "f", "old_str", "two", "new_str", "three"), "not now")
	r.refusal("create", args("path", "h", "file_text", "x"), "not now")
	want := []Change{
		{Path: f, Exists: true, Before: []byte("one\n"), Mode: 0o640, After: []byte("two\n"), Added: 1, Removed: 1},
		{Path: r.path("g"), After: []byte("x"), Added: 1},
		{Path: f, Exists: true, Before: []byte("two\n"), Mode: 0o640, After: []byte("three\n"), Added: 1, Removed: 1},
		{Path: r.path("h"), After: []byte("x"), Added: 1},
	}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Error(diff)
	}
	equal(t, r.read("f"), "two\n")
}

func TestDiff(t *testing.T) {
	equal(t, compare("a\nb\nc\nd\ne\nf\ng\nh\n", "a\nb\nc\nd\nE\nf\ng\nh\n").unified("/w/f", true),
		"diff --git a/w/f b/w/f\n--- a/w/f\n+++ b/w/f\n@@ -2,7 +2,7 @@\n b\n c\n d\n-e\n+E\n f\n g\n h\n")
	equal(t, compare("", "x\n").unified("/w/f", false), "diff --git a/w/f b/w/f\nnew file mode 100644\n--- /dev/null\n+++ b/w/f\n@@ -0,0 +1 @@\n+x\n")
	equal(t, compare("a", "b").unified("f", true), "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n")
}

// TestDiffApplies: git makes the new text of the old one and the diff.
func TestDiffApplies(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git, by which diffs are judged here, is not installed")
	}
	dir := t.TempDir()
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		if n++; n > 25 { // each starts a process
			return
		}
		text := rapid.StringMatching(`([ab]\n){0,12}[ab]?`)
		before := text.Draw(rt, "before")
		i := rapid.IntRange(0, len(before)).Draw(rt, "from")
		j := rapid.IntRange(i, len(before)).Draw(rt, "to")
		after := before[:i] + text.Draw(rt, "with") + before[j:]
		if before == after || before == "" {
			return
		}
		if err := os.WriteFile(filepath.Join(dir, "f"), []byte(before), 0o644); err != nil {
			rt.Fatal(err)
		}
		diff := compare(before, after).unified("f", true)
		cmd := exec.Command(git, "apply", "--unidiff-zero", "-")
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(diff)
		if out, err := cmd.CombinedOutput(); err != nil {
			rt.Fatalf("%v: %s\n%q to %q\n%s", err, out, before, after, diff)
		}
		if got, _ := os.ReadFile(filepath.Join(dir, "f")); !bytes.Equal(got, []byte(after)) {
			rt.Fatalf("got %q, want %q\n%s", got, after, diff)
		}
	})
}
