package prompt

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func labels(s []Source) (out []string) {
	for _, s := range s {
		out = append(out, filepath.Base(s.Base)+"/"+s.Label+"="+strings.TrimSpace(s.Text))
	}
	return out
}

func TestReadInstructions(t *testing.T) {
	tmp := t.TempDir()
	repo, dir, more, secret := filepath.Join(tmp, "repo"), filepath.Join(tmp, "repo", "sub"), filepath.Join(tmp, "more"), filepath.Join(tmp, "secret")
	write(t, filepath.Join(repo, "AGENTS.md"), "ROOT")
	write(t, filepath.Join(repo, "CLAUDE.md"), "ROOT\n")
	write(t, filepath.Join(dir, ".github/copilot-instructions.md"), "\ufeffSUB\r\nTWO")
	write(t, filepath.Join(dir, ".github/instructions/b.instructions.md"), "---\napplyTo: '**/*.go, *.md'\ndescription: of go\nother: x\n---\nGO")
	write(t, filepath.Join(dir, ".github/instructions/a.instructions.md"), "A")
	write(t, filepath.Join(dir, ".github/instructions/other.md"), "not one")
	write(t, filepath.Join(more, ".github/instructions/extra.instructions.md"), "EXTRA")
	write(t, filepath.Join(more, "AGENTS.md"), "not of a directory of instructions")
	write(t, secret, "SECRET")
	if err := os.Symlink(secret, filepath.Join(dir, "AGENTS.md")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(repo, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	if got := Repository(dir); got != repo {
		t.Errorf("the repository is %q", got)
	}
	got := ReadInstructions(dir, repo, []string{more, filepath.Join(tmp, "missing")})
	if diff := cmp.Diff([]string{
		"repo/AGENTS.md=ROOT", "sub/.github/copilot-instructions.md=SUB\nTWO", "sub/.github/instructions/a.instructions.md=A",
		"sub/.github/instructions/b.instructions.md=GO", "more/.github/instructions/extra.instructions.md=EXTRA",
	}, labels(got)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"**/*.go", "*.md"}, got[3].ApplyTo); diff != "" || got[3].Description != "of go" || got[0].Path != filepath.Join(repo, "AGENTS.md") {
		t.Errorf("%s %+v", diff, got[3])
	}
	if got := ReadInstructions(repo, repo, nil); len(got) != 1 {
		t.Errorf("the root itself: %v", labels(got))
	}
	if got := ReadInstructions(filepath.Join(tmp, "missing"), "", nil); got != nil {
		t.Errorf("of nothing: %v", labels(got))
	}
}

func TestLongInstructions(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "AGENTS.md"), strings.Repeat("é", maxInstruction))
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		write(t, filepath.Join(dir, ".github/instructions", name+".instructions.md"), name+strings.Repeat("x", maxInstruction-1))
	}
	got := ReadInstructions(dir, "", nil)
	if len(got) != 3 {
		t.Fatalf("%d files", len(got))
	}
	if text := got[0].Text; !strings.HasSuffix(text, "é\n[Cut here: the file is longer than what is read of instructions.]") {
		t.Errorf("ends with %q", text[len(text)-100:])
	}
}

func FuzzFront(f *testing.F) {
	for _, s := range []string{"", "x", "---\n---\nx", "---\napplyTo: \"**\"\n---\nx", "---\napplyTo: '\n---", "---\na", "---\ndescription: :\n---\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		text, applyTo, _ := front(raw)
		if !strings.HasSuffix(raw, text) {
			t.Errorf("%q is no end of %q", text, raw)
		}
		for _, p := range applyTo {
			if strings.TrimSpace(p) == "" {
				t.Errorf("a pattern %q of %q", p, raw)
			}
		}
	})
}
