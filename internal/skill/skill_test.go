package skill

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/transom-run/transom/tool"
)

func put(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestParse(t *testing.T) {
	for _, c := range []struct {
		name, raw string
		want      front
		text      string
		warns     string
		fails     string
	}{
		{"plain", "---\nname: a\ndescription: Does a.\n---\n\n# A\n", front{name: "a", description: "Does a.", userInvocable: true}, "# A\n", "", ""},
		{"none", "# A\ntext", front{userInvocable: true}, "# A\ntext", "", ""},
		{"windows", "\ufeff---\r\nname: a\r\n---\r\nx\r\n", front{name: "a", userInvocable: true}, "x\n", "", ""},
		{"folded", "---\nname: a\ndescription: >\n  one\n  two\n---\nx", front{name: "a", description: "one two", userInvocable: true}, "x", "", ""},
		{"switches", "---\nname: a\nuser-invocable: false\ndisable-model-invocation: true\nargument-hint: '[file]'\n---\nx",
			front{name: "a", hint: "[file]", hidden: true}, "x", "", ""},
		{"tools as list", "---\nallowed-tools:\n  - view\n  - bash\n---\n", front{userInvocable: true, allowed: []string{"view", "bash"}}, "", "", ""},
		{"tools as text", "---\nallowed-tools: Read Bash(git:*)\n---\n", front{userInvocable: true, allowed: []string{"Read", "Bash(git:*)"}}, "", "", ""},
		{"tools with blanks", "---\nallowed-tools: Bash(git add *), Read\n---\n", front{userInvocable: true, allowed: []string{"Bash(git add *)", "Read"}}, "", "", ""},
		{"bare colon", "---\nname: a\ndescription: Use when: the user asks\n---\nx", front{name: "a", description: "Use when: the user asks", userInvocable: true}, "x", "not valid YAML", ""},
		{"number", "---\nname: 7\n---\nx", front{name: "7", userInvocable: true}, "x", "", ""},
		{"empty front", "---\n---\nx", front{userInvocable: true}, "x", "", ""},
		{"a rule in the text", "---\nname: a\n---\nx\n---\ny", front{name: "a", userInvocable: true}, "x\n---\ny", "", ""},
		{"never ends", "---\nname: a\n", front{}, "", "", "no line ---"},
		{"too long", "---\nname: " + strings.Repeat("x", maxFront) + "\n---\n", front{}, "", "", "more than"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, text, warning, err := parse(c.raw)
			if c.fails != "" {
				if err == nil || !strings.Contains(err.Error(), c.fails) {
					t.Fatalf("error %v, want one with %q", err, c.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(front{})); diff != "" {
				t.Error(diff)
			}
			if text != c.text || (c.warns == "") != (warning == "") || !strings.Contains(warning, c.warns) {
				t.Errorf("text %q, warning %q", text, warning)
			}
		})
	}
}

// Two places have a skill of the same name: the first counts, and the other is
// told of. A place may be a skill itself.
func TestScan(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "one", "b", "SKILL.md"), "---\nname: b\ndescription: B of one\n---\nx")
	put(t, filepath.Join(dir, "one", "a", "SKILL.md"), "# The a\nmore")
	put(t, filepath.Join(dir, "one", "README.md"), "no skill")
	put(t, filepath.Join(dir, "two", "B", "SKILL.md"), "---\nname: B\ndescription: B of two\n---\nx")
	put(t, filepath.Join(dir, "two", "bad", "SKILL.md"), "---\nname: a<b\n---\nx")
	put(t, filepath.Join(dir, "self", "SKILL.md"), "---\nname: self\ndescription: S\n---\nx")
	c := Scan([]Place{
		{Dir: filepath.Join(dir, "one"), Source: Custom}, {Dir: filepath.Join(dir, "none"), Source: Custom},
		{Dir: filepath.Join(dir, "two"), Source: Project}, {Dir: filepath.Join(dir, "self"), Source: Custom},
	})
	var got []string
	for _, s := range c.All() {
		got = append(got, s.Name+" "+string(s.Source)+" "+s.Description)
	}
	if diff := cmp.Diff([]string{"a custom The a", "b custom B of one", "self custom S"}, got); diff != "" {
		t.Error(diff)
	}
	if len(c.Errors) != 1 || !strings.Contains(c.Errors[0], `"a<b"`) {
		t.Errorf("errors: %q", c.Errors)
	}
	if w := strings.Join(c.Warnings, "\n"); len(c.Warnings) != 2 || !strings.Contains(w, "no description") || !strings.Contains(w, "the name B is taken by "+filepath.Join(dir, "one", "b")) {
		t.Errorf("warnings: %q", c.Warnings)
	}
	for _, name := range []string{"b", "B", "/b"} {
		if s, ok := c.Lookup(name); !ok || s.Description != "B of one" {
			t.Errorf("Lookup(%q) = %v, %v", name, s, ok)
		}
	}
}

// A repository may link its skills to each other, and to nothing outside of it.
func TestLinks(t *testing.T) {
	dir := t.TempDir()
	secret := put(t, filepath.Join(dir, "secret", "SKILL.md"), "---\nname: secret\ndescription: d\n---\nkey")
	repo := filepath.Join(dir, "repo")
	put(t, filepath.Join(repo, "kept", "ok", "SKILL.md"), "---\nname: ok\ndescription: d\n---\nx")
	at := filepath.Join(repo, ".github", "skills")
	if err := os.MkdirAll(filepath.Join(at, "file"), 0o755); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{
		filepath.Join(at, "ok"):               filepath.Join("..", "..", "kept", "ok"),
		filepath.Join(at, "out"):              filepath.Dir(secret),
		filepath.Join(at, "file", "SKILL.md"): secret,
	} {
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
	c := Scan(Places(repo, repo))
	if len(c.All()) != 1 || c.All()[0].Name != "ok" {
		t.Errorf("found %v", c.All())
	}
	if len(c.Errors) != 2 {
		t.Errorf("errors: %q", c.Errors)
	}
	mine := Scan([]Place{{Dir: at, Source: Custom}}) // a host that names the directory means its links too
	if _, ok := mine.Lookup("secret"); !ok {
		t.Errorf("a directory that a host named: found %v, %q", mine.All(), mine.Errors)
	}
}

// Places lists the project first, then what is around it, up to the repository.
func TestPlaces(t *testing.T) {
	root := filepath.FromSlash("/r")
	dir := filepath.Join(root, "a", "b")
	var got []string
	for _, p := range Places(dir, root) {
		got = append(got, string(p.Source)+" "+filepath.ToSlash(p.Dir))
	}
	want := []string{
		"project /r/a/b/.github/skills", "project /r/a/b/.agents/skills", "project /r/a/b/.claude/skills",
		"inherited /r/a/.github/skills", "inherited /r/a/.agents/skills", "inherited /r/a/.claude/skills",
		"inherited /r/.github/skills", "inherited /r/.agents/skills", "inherited /r/.claude/skills",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if n := len(Places(dir, "")); n != 3 {
		t.Errorf("%d places without a repository", n)
	}
}

// The text of a skill is that of its file when it is used.
func TestTool(t *testing.T) {
	dir := t.TempDir()
	file := put(t, filepath.Join(dir, "review", "SKILL.md"), "---\nname: review\ndescription: Reviews code.\n---\n\nold")
	put(t, filepath.Join(dir, "mine", "SKILL.md"), "---\nname: mine\ndescription: M\ndisable-model-invocation: true\n---\nx")
	put(t, filepath.Join(dir, "off", "SKILL.md"), "---\nname: off\ndescription: O\n---\nx")
	c := Scan([]Place{{Dir: dir, Source: Custom}})
	usable := Usable(c, func(name string) bool { return name != "off" })
	made := Tool(usable, func(name string) (Skill, error) {
		s, ok := c.Lookup(name)
		if !ok {
			return s, os.ErrNotExist
		}
		return s, nil
	})
	if _, list, _ := strings.Cut(made.Description, "<available_skills>\n"); list != "- review: Reviews code.\n</available_skills>" {
		t.Errorf("the list of skills: %q", list)
	}
	put(t, file, "---\nname: review\ndescription: Reviews code.\n---\n\nnew\n")
	res, err := made.Handler(context.Background(), tool.Call{Name: "skill", Arguments: json.RawMessage(`{"skill":"review"}`)})
	if err != nil {
		t.Fatal(err)
	}
	want := tool.Result{
		Text:  `Skill "review" loaded successfully. Follow the instructions in the skill context.`,
		Skill: &tool.Skill{Name: "review", Path: file, Text: "new\n", Description: "Reviews code.", Source: "custom"},
	}
	if diff := cmp.Diff(want, res); diff != "" {
		t.Error(diff)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"review", "other"} {
		res, err = made.Handler(context.Background(), tool.Call{Name: "skill", Arguments: json.RawMessage(`{"skill":"` + name + `"}`)})
		if err != nil || res.Type != tool.Failure || res.Skill != nil || res.Text == "" {
			t.Errorf("%s: %+v, %v", name, res, err)
		}
	}
}

// A list of skills that is too long gives names only.
func TestLongList(t *testing.T) {
	var many []Skill
	for range 100 {
		many = append(many, Skill{Name: "n", Description: strings.Repeat("d", maxDescription)})
	}
	text := describe(many)
	if len(text) > maxList+100*4 || strings.Count(text, "- n") != 100 {
		t.Errorf("%d bytes, %d names", len(text), strings.Count(text, "- n"))
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"---\nname: a\ndescription: b\n---\ntext", "---\n---", "---\nx: [1, {y: z}]\n---\n", "---\na: &a [*a]\n---\n",
		"---\nname: \"\\u0000\"\n---\n", "---\nallowed-tools: ((,)\n---\n", "\ufeff---\r\n---\r\n", "---\n? a\n: b\n---\n",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		got, text, _, err := parse(raw)
		if err != nil {
			return
		}
		if strings.ContainsAny(got.name+got.description, "\n\r") {
			t.Errorf("a line feed in %q or %q", got.name, got.description)
		}
		if len(text) > 3*len(raw)+1 {
			t.Errorf("text of %d bytes from %d", len(text), len(raw))
		}
		_ = badName(got.name)
	})
}

// The page for hosts shows the text that models read.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/skills.md")
	if err != nil {
		t.Fatal(err)
	}
	s := Skill{Name: "release-notes", Description: "How release notes are written here. Use it before you write or change any."}
	for _, want := range []string{describe([]Skill{s}), loaded(s.Name)} {
		if !strings.Contains(string(page), want) {
			t.Errorf("docs/skills.md does not hold\n%s", want)
		}
	}
}
