package prompt

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var here = Surroundings{Dir: "/w/sub", Repository: "/w", System: "Linux", Instructions: []Source{
	{Label: "AGENTS.md", Text: "SENTINEL\n"}, {Label: "x.instructions.md", Text: "GO", ApplyTo: []string{"**/*.go"}},
}}

func compose(t *testing.T, c Config) string {
	t.Helper()
	got, err := Compose(context.Background(), c, here, nil)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// all names the sections that have a text of their own.
func all() []string {
	var out []string
	for _, id := range order {
		if m, ok := group(id); ok {
			out = append(out, m...)
			continue
		}
		out = append(out, id)
	}
	return out
}

func TestDefault(t *testing.T) {
	got := compose(t, Config{})
	at := -1
	for _, id := range all() {
		text := strings.TrimSpace(section(id, here))
		if text == "" {
			t.Errorf("%s has no text", id)
		}
		if i := strings.Index(got, text); i <= at {
			t.Errorf("%s stands at %d, behind %d", id, i, at)
		} else {
			at = i
		}
	}
	for _, want := range []string{
		"GitHub Copilot SDK", "<code_change_instructions>", "Current working directory: /w/sub\n", "Repository root: /w\n", "Operating System: Linux\n",
		"<instructions source=\"AGENTS.md\">\nSENTINEL\n</instructions>", "<instructions source=\"x.instructions.md\" for=\"**/*.go\">",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if again := compose(t, Config{Mode: "append", Content: "  "}); again != got {
		t.Error("an empty addition changes the message")
	}
}

func TestBare(t *testing.T) {
	got, err := Compose(context.Background(), Config{}, Surroundings{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(got, "directory:") || strings.Contains(got, "<custom_instructions>") {
		t.Error(got)
	}
}

func TestModes(t *testing.T) {
	base := compose(t, Config{})
	for _, tc := range []struct {
		name string
		c    Config
		want func(string) bool
	}{
		{"append", Config{Mode: "append", Content: "MORE"}, func(s string) bool { return s == base+"\n\nMORE" }},
		{"replace", Config{Mode: "replace", Content: "  MINE\n"}, func(s string) bool { return s == "  MINE\n" }},
		{"replace by nothing", Config{Mode: "replace"}, func(s string) bool { return s == "" }},
		{"sections count with customize only", Config{Sections: map[string]Override{Tone: {Action: Remove}}}, func(s string) bool { return s == base }},
		{"customize with nothing", Config{Mode: "customize"}, func(s string) bool { return s == base }},
	} {
		if got := compose(t, tc.c); !tc.want(got) {
			t.Errorf("%s:\n%s", tc.name, got)
		}
	}
}

func customize(sections map[string]Override) Config {
	return Config{Mode: "customize", Sections: sections, Content: "EXTRA"}
}

// without is the default message with sections replaced; "" leaves one out.
func without(t *testing.T, replaced map[string]string) string {
	t.Helper()
	var texts []string
	for _, id := range all() {
		text, ok := replaced[id]
		if !ok {
			text = section(id, here)
		}
		texts = append(texts, text)
	}
	return join(append(texts, "EXTRA")...)
}

func TestOverrides(t *testing.T) {
	tone, guide := section(Tone, here), section(Guidelines, here)
	for _, tc := range []struct {
		name     string
		sections map[string]Override
		want     map[string]string
	}{
		{"replace", map[string]Override{Tone: {Replace, "WARM"}}, map[string]string{Tone: "WARM"}},
		{"replace by nothing", map[string]Override{Tone: {Replace, ""}}, map[string]string{Tone: ""}},
		{"remove", map[string]Override{CodeChange: {Remove, "passed over"}, Environment: {Action: Remove}}, map[string]string{CodeChange: "", Environment: ""}},
		{"append", map[string]Override{Guidelines: {Append, "\n* cite"}}, map[string]string{Guidelines: guide + "\n* cite"}},
		{"append a line", map[string]Override{Guidelines: {Append, "* cite"}}, map[string]string{Guidelines: guide + "\n* cite"}},
		{"append nothing", map[string]Override{Guidelines: {Append, ""}}, nil},
		{"prepend", map[string]Override{Safety: {Prepend, "FIRST"}}, map[string]string{Safety: "FIRST\n" + section(Safety, here)}},
		{"preserve", map[string]Override{Tone: {Action: Preserve}}, nil},
		{"a member of a group", map[string]Override{Preamble: {Replace, "BOTANICA"}}, map[string]string{Preamble: "BOTANICA"}},
		{"a group", map[string]Override{Identity: {Replace, "BOTANICA"}}, map[string]string{Preamble: "BOTANICA", Tone: "", Efficiency: ""}},
		{"a group but for a member", map[string]Override{Identity: {Action: Remove}, Tone: {Action: Preserve}}, map[string]string{Preamble: "", Efficiency: ""}},
		{"a group and a member", map[string]Override{Identity: {Replace, "ME"}, Tone: {Append, "DRY"}}, map[string]string{Preamble: "ME", Tone: tone + "\nDRY", Efficiency: ""}},
		{"unknown sections", map[string]Override{"zeta": {Replace, "Z"}, "alpha": {Append, "A"}, "gone": {Remove, "G"}, "kept": {Preserve, "K"}}, map[string]string{Last: section(Last, here) + "\n\nA\n\nZ"}},
	} {
		if diff := cmp.Diff(without(t, tc.want), compose(t, customize(tc.sections))); diff != "" {
			t.Errorf("%s: %s", tc.name, diff)
		}
	}
}

func TestTransform(t *testing.T) {
	c := customize(map[string]Override{
		Identity: {Action: Transform}, Tone: {Action: Transform}, Safety: {Action: Remove}, Guidelines: {Action: Transform}, "other": {Action: Transform},
	})
	if !c.Transforms() || (Config{Mode: "append", Sections: c.Sections}).Transforms() || customize(map[string]Override{"other": {Action: Transform}}).Transforms() {
		t.Error("who has to be asked")
	}
	var asked map[string]string
	got, err := Compose(context.Background(), c, here, func(_ context.Context, s map[string]string) (map[string]string, error) {
		asked = maps.Clone(s)
		return map[string]string{Identity: s[Identity] + "\nMARK", Tone: "", Safety: "not asked for"}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{Guidelines, Identity, Tone}, slices.Sorted(maps.Keys(asked))); diff != "" {
		t.Error(diff)
	}
	if asked[Identity] != join(section(Preamble, here), section(Efficiency, here)) || asked[Tone] != section(Tone, here) {
		t.Errorf("asked for %q", asked)
	}
	want := without(t, map[string]string{Preamble: section(Preamble, here), Tone: section(Efficiency, here), Efficiency: "MARK", Safety: ""})
	if got != strings.Replace(want, "\n\nMARK", "\nMARK", 1) {
		t.Error(cmp.Diff(want, got))
	}
	gone := errors.New("gone")
	if _, err := Compose(context.Background(), c, here, func(context.Context, map[string]string) (map[string]string, error) { return nil, gone }); !errors.Is(err, gone) {
		t.Errorf("the host failed: %v", err)
	}
	if _, err := Compose(context.Background(), c, here, nil); err == nil {
		t.Error("nobody to ask")
	}
}

func TestCheck(t *testing.T) {
	for _, c := range []Config{{Mode: "other"}, customize(map[string]Override{Tone: {Action: "shout"}}), customize(map[string]Override{Tone: {}})} {
		var wrong *ConfigError
		if _, err := Compose(context.Background(), c, here, nil); !errors.As(err, &wrong) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestSame: what a host configured gives the same bytes each time, and a section
// that was removed leaves nothing behind.
func TestSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids := append(all(), Identity, "unknown", "another")
		sections := map[string]Override{}
		for _, id := range rapid.SliceOfDistinct(rapid.SampledFrom(ids), rapid.ID).Draw(t, "sections") {
			sections[id] = Override{rapid.SampledFrom([]string{Replace, Remove, Append, Prepend, Preserve}).Draw(t, "action"), rapid.SampledFrom([]string{"", "TEXT", "\n"}).Draw(t, "content")}
		}
		c := Config{Mode: "customize", Sections: sections}
		first, err := Compose(context.Background(), c, here, nil)
		if err != nil {
			t.Fatal(err)
		}
		c.Sections = maps.Clone(sections)
		if again, err := Compose(context.Background(), c, here, nil); err != nil || again != first {
			t.Fatalf("another message: %v\n%s\n%s", err, first, again)
		}
		for id, o := range sections {
			if m, several := group(id); o.Action == Remove && known(id) && !several && len(m) == 0 && strings.Contains(first, section(id, here)) {
				t.Fatalf("%s is still there:\n%s", id, first)
			}
		}
	})
}
