package agents

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/transom-run/transom/tool"
)

// Each of Transom's own agents has all that a model and a person read of it.
func TestBuiltIn(t *testing.T) {
	seen := map[string]bool{}
	for _, d := range BuiltIn() {
		if d.Name == "" || d.DisplayName == "" || d.Description == "" || len(d.Prompt) < 100 || seen[d.Name] {
			t.Errorf("%+v", d)
		}
		seen[d.Name] = true
	}
	if diff := cmp.Diff(BuiltIn(), BuiltIn()); diff != "" {
		t.Error(diff)
	}
}

// The tools' schemas compile, and task takes the kinds that there are and no other.
func TestTools(t *testing.T) {
	tools, err := Tools([]Definition{{Name: "a", Description: "does\na"}, {Name: `b"c`}})
	if err != nil || len(tools) != 4 {
		t.Fatalf("%d tools, %v", len(tools), err)
	}
	for _, def := range tools {
		if def.Description == "" || def.Handler != nil || def.Source != tool.BuiltIn {
			t.Errorf("%+v", def)
		}
		c, err := tool.Compile(def)
		if err != nil {
			t.Fatalf("%s: %v", def.Name, err)
		}
		if def.Name != "task" {
			continue
		}
		if !strings.Contains(def.Description, "\n- a: does a\n") {
			t.Errorf("the text does not list the kinds: %q", def.Description)
		}
		for kind, ok := range map[string]bool{"a": true, `b"c`: true, "c": false} {
			args, _ := json.Marshal(map[string]string{"name": "n", "prompt": "p", "description": "d", "agent_type": kind})
			if _, problem := c.Check(string(args)); (problem == nil) != ok {
				t.Errorf("kind %q: %v", kind, problem)
			}
		}
	}
	if none, err := Tools(nil); none != nil || err != nil {
		t.Errorf("without kinds: %v, %v", none, err)
	}
}

func TestParse(t *testing.T) {
	for name, tc := range map[string]struct {
		file string
		want Definition
		err  string
	}{
		"all": {
			"---\nname: r\ndisplayName: R\ndescription: Reviews\ntools: [view, grep]\nskills: s, t\nmodel: p/m\nreasoningEffort: high\ninfer: false\nmcp-servers:\n  x:\n    command: y\n---\n\nYou review.\n",
			Definition{Name: "r", DisplayName: "R", Description: "Reviews", Prompt: "You review.", Tools: []string{"view", "grep"}, NoInfer: true,
				Skills: []string{"s", "t"}, Model: "p/m", ReasoningEffort: "high", MCPServers: map[string]any{"x": map[string]any{"command": "y"}}}, "",
		},
		"text alone":     {"You review.", Definition{Name: "file", DisplayName: "file", Prompt: "You review."}, ""},
		"all tools":      {"---\ntools: \"*\"\n---\nP", Definition{Name: "file", DisplayName: "file", Prompt: "P"}, ""},
		"no tools":       {"---\ntools: []\n---\nP", Definition{Name: "file", DisplayName: "file", Prompt: "P", Tools: []string{}}, ""},
		"windows":        {"\ufeff---\r\nname: w\r\n---\r\nP", Definition{Name: "w", DisplayName: "w", Prompt: "P"}, ""},
		"no prompt":      {"---\nname: r\n---\n\n", Definition{}, "no text behind its front matter"},
		"no end":         {"---\nname: r\nP", Definition{}, "no line --- that ends it"},
		"not YAML":       {"---\nname: [\n---\nP", Definition{}, "front matter cannot be read"},
		"tools no list":  {"---\ntools: {a: b}\n---\nP", Definition{}, "a list of names is expected"},
		"name of lines":  {"---\nname: \"a\\nb\"\n---\nP", Definition{}, "no usable name"},
		"not UTF-8":      {"\xff", Definition{}, "not UTF-8"},
		"disabled model": {"---\ndisable-model-invocation: true\n---\nP", Definition{Name: "file", DisplayName: "file", Prompt: "P", NoInfer: true}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Parse("file", []byte(tc.file))
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("%v; want %q", err, tc.err)
				}
				return
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
				t.Errorf("%v\n%s", err, diff)
			}
		})
	}
}

// FuzzParse: whatever stands in a file, it is an agent with a name and a prompt, or
// an error that says something.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"P", "---\nname: a\n---\nP", "---\ntools: a, b\nskills: [c]\n---\nP", "---\n---\n", "---", "---\nmcp-servers: {a: {b: [c]}}\n---\nP"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := Parse("name", b)
		if err != nil {
			if err.Error() == "" {
				t.Error("an error without a word")
			}
			return
		}
		if d.Name == "" || d.Prompt == "" || strings.ContainsAny(d.Name, "\n\x00") {
			t.Errorf("%+v", d)
		}
	})
}

func TestDiscover(t *testing.T) {
	home, project := t.TempDir(), t.TempDir()
	write := func(text string, names ...string) {
		t.Helper()
		path := filepath.Join(names...)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("MINE", home, "agents", "one.md")
	write("THEIRS", project, ".github", "agents", "one.agent.md")
	write("TWO", project, ".github", "agents", "two.agent.md")
	write("THREE", project, ".claude", "agents", "three.md")
	write("", project, ".github", "agents", "empty.md")
	write("no agent", project, ".github", "agents", "notes.txt")
	if err := os.Mkdir(filepath.Join(project, ".github", "agents", "dir.md"), 0o755); err != nil {
		t.Fatal(err)
	}
	found, warnings := Discover(Places(home, []string{project}))
	var got []string
	for _, d := range found {
		got = append(got, d.Name+" "+d.Source+" "+d.Prompt)
		if _, err := os.Stat(d.Path); err != nil {
			t.Error(err)
		}
	}
	if diff := cmp.Diff([]string{"one user MINE", "two project TWO", "three project THREE"}, got); diff != "" {
		t.Error(diff)
	}
	if len(warnings) != 3 {
		t.Errorf("%q", warnings)
	}
	if found, warnings := Discover(Places("", []string{t.TempDir()})); found != nil || warnings != nil {
		t.Errorf("nowhere: %v, %q", found, warnings)
	}
}
