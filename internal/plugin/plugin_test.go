package plugin

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, ".github", "plugin", "plugin.json"), `{"name":"pack","version":"1.2","description":"d","skills":["./more","../out"],"mcpServers":"./servers.json"}`)
	put(t, filepath.Join(dir, "SKILL.md"), "x")
	put(t, filepath.Join(dir, "skills", "a", "SKILL.md"), "x")
	put(t, filepath.Join(dir, "more", "b", "SKILL.md"), "x")
	agent := put(t, filepath.Join(dir, "agents", "reviewer.md"), "x")
	put(t, filepath.Join(dir, "agents", "notes.txt"), "x")
	put(t, filepath.Join(dir, ".mcp.json"), `{"mcpServers":{"one":{"command":"node","args":["${PLUGIN_ROOT}/s.js"]}}}`)
	put(t, filepath.Join(dir, "servers.json"), `{"two":{"url":"http://localhost"}}`)
	put(t, filepath.Join(dir, "hooks", "hooks.json"), `{"hooks":{"Stop":[{"hooks":[{"command":"x"}]}]}}`)
	p, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	var places []string
	for _, s := range p.Skills {
		rel, _ := filepath.Rel(dir, s.Dir)
		places = append(places, filepath.ToSlash(rel)+" "+s.Plugin+" "+s.PluginVersion)
	}
	if diff := cmp.Diff([]string{". pack 1.2", "skills pack 1.2", "more pack 1.2"}, places); diff != "" {
		t.Error(diff)
	}
	if len(p.Servers) != 2 || string(p.Servers["one"]) != `{"command":"node","args":["`+dir+`/s.js"]}` {
		t.Errorf("servers: %s", p.Servers)
	}
	if diff := cmp.Diff([]string{agent}, p.Agents); diff != "" {
		t.Error(diff)
	}
	if len(p.Hooks) != 1 || p.Hooks[0].Event != "agentStop" || p.Hooks[0].Source.Root != dir {
		t.Errorf("hooks: %+v", p.Hooks)
	}
	if len(p.Problems) != 1 || !strings.Contains(p.Problems[0], `"../out"`) {
		t.Errorf("problems: %q", p.Problems)
	}
}

func TestLoadFails(t *testing.T) {
	for name, c := range map[string]struct{ file, text, want string }{
		"nothing":  {"README.md", "x", "neither a plugin.json nor a SKILL.md"},
		"no JSON":  {"plugin.json", "{", "is no plugin's"},
		"bad name": {"plugin.json", `{"name":"a@b"}`, "cannot be used"},
		"too long": {"plugin.json", strings.Repeat(" ", maxManifest+1), "more than"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			put(t, filepath.Join(dir, c.file), c.text)
			if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
	if _, err := Load(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no directory: %v", err)
	}
	dir := t.TempDir()
	put(t, filepath.Join(dir, "SKILL.md"), "x")
	put(t, filepath.Join(dir, ".mcp.json"), `[]`)
	p, err := Load(dir)
	if err != nil || len(p.Problems) != 1 || p.Name != filepath.Base(dir) {
		t.Errorf("a damaged part: %+v, %v", p, err)
	}
	secret := put(t, filepath.Join(t.TempDir(), "mcp.json"), `{"mcpServers":{"x":{}}}`)
	dir = t.TempDir()
	put(t, filepath.Join(dir, "SKILL.md"), "x")
	if err := os.Symlink(secret, filepath.Join(dir, ".mcp.json")); err != nil {
		t.Fatal(err)
	}
	if p, err := Load(dir); err != nil || p.Servers != nil || len(p.Problems) != 1 {
		t.Errorf("a link that leads out: %+v, %v", p, err)
	}
}

func TestLoadMarket(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "marketplace.json"), `{"name":"m","metadata":{"description":"d","pluginRoot":"packs"},"plugins":[
		{"name":"a","source":"./a","version":"1"},{"name":"b","source":"b"},{"name":"c","source":"../c"},
		{"name":"d","source":{"source":"github","repo":"o/r"}},{"name":"e","source":{"source":"local","path":"./e"}},{"name":"x/y","source":"./x"}]}`)
	m, err := LoadMarket(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := Market{Name: "m", Description: "d", Dir: dir, Plugins: []Entry{
		{Name: "a", Version: "1", Dir: filepath.Join(dir, "a")}, {Name: "b", Dir: filepath.Join(dir, "packs", "b")},
		{Name: "c", Elsewhere: "../c"}, {Name: "d", Elsewhere: `{"source":"github","repo":"o/r"}`}, {Name: "e", Dir: filepath.Join(dir, "e")},
	}}
	if diff := cmp.Diff(want, m); diff != "" {
		t.Error(diff)
	}
	if _, err := LoadMarket(t.TempDir()); !errors.Is(err, ErrNoMarket) {
		t.Errorf("an empty directory: %v", err)
	}
}

func FuzzManifests(f *testing.F) {
	f.Add(`{"name":"a","skills":"x","agents":["y"],"hooks":{},"mcpServers":{"s":{"command":"c"}}}`)
	f.Add(`{"name":"m","plugins":[{"name":"p","source":"./p"}]}`)
	f.Add(`{"skills":[1]}`)
	f.Add(`[]`)
	f.Fuzz(func(t *testing.T, raw string) {
		dir := t.TempDir()
		put(t, filepath.Join(dir, "plugin.json"), raw)
		put(t, filepath.Join(dir, "marketplace.json"), raw)
		if p, err := Load(dir); err == nil {
			for _, s := range p.Skills {
				if !strings.HasPrefix(s.Dir, dir) {
					t.Errorf("skills in %s", s.Dir)
				}
			}
		}
		if m, err := LoadMarket(dir); err == nil {
			for _, e := range m.Plugins {
				if e.Dir != "" && !strings.HasPrefix(e.Dir, dir) {
					t.Errorf("a plugin in %s", e.Dir)
				}
			}
		}
	})
}

// Hooks stand in a file, in several, or in the manifest itself; in the place of a file
// that cannot be read is a hook that denies, and the rest of the plugin stays.
func TestHooks(t *testing.T) {
	for manifest, want := range map[string]string{
		`{}`: "root", `{"hooks":"./more.json"}`: "root more", `{"hooks":["more.json","../out.json","hooks.json"]}`: "deny root more",
		`{"hooks":{"preToolUse":[{"bash":"inline"}]}}`: "inline root", `{"hooks":{"hooks":{"preToolUse":[{"bash":"inline"}]}}}`: "inline root",
		`{"hooks":"bad.json"}`: "root deny", `{"hooks":"none.json"}`: "root deny", `{"hooks":"link.json"}`: "root deny", `{"hooks":3}`: "deny root",
	} {
		dir := t.TempDir()
		put(t, filepath.Join(dir, "plugin.json"), manifest)
		put(t, filepath.Join(dir, "hooks.json"), `{"hooks":{"preToolUse":[{"bash":"root"}]}}`)
		put(t, filepath.Join(dir, "hooks", "hooks.json"), `{"hooks":{"preToolUse":[{"bash":"not beside the other"}]}}`)
		put(t, filepath.Join(dir, "more.json"), `{"hooks":{"preToolUse":[{"bash":"more"}]}}`)
		put(t, filepath.Join(dir, "bad.json"), `{"version":7}`)
		if err := os.Symlink("/etc/none", filepath.Join(dir, "link.json")); err != nil {
			t.Fatal(err)
		}
		p, err := Load(dir)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, h := range p.Hooks {
			what := h.Shell
			if what == "" && h.Event == "preToolUse" {
				what = "deny"
			}
			got = append(got, what)
		}
		if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%s: %s", manifest, diff)
		}
		if bad := strings.Contains(manifest, "bad") || strings.Contains(manifest, "none") || strings.Contains(manifest, "link") || strings.Contains(manifest, "../out") || strings.Contains(manifest, "3"); bad != (len(p.Problems) > 0) {
			t.Errorf("%s: problems %q", manifest, p.Problems)
		}
	}
	dir := t.TempDir()
	put(t, filepath.Join(dir, "plugin.json"), `{}`)
	if err := os.Symlink("/etc/none", filepath.Join(dir, "hooks.json")); err != nil {
		t.Fatal(err)
	}
	if p, err := Load(dir); err != nil || len(p.Hooks) != 1 || len(p.Problems) != 1 {
		t.Errorf("a link that leads out: %+v, %v", p, err)
	}
}
