package plugin

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/transom-run/transom/internal/hookfile"
	"github.com/transom-run/transom/internal/skill"
)

// Plugin is what stands in a plugin's directory.
type Plugin struct {
	Name        string
	Version     string // "" where the manifest names none
	Description string
	Dir         string // absolute
	// Skills are the places where its skills lie.
	Skills []skill.Place
	// Agents are the files of its agents, absolute.
	Agents []string
	// Servers are its MCP servers by name, each as its configuration stands there;
	// ${PLUGIN_ROOT} and ${CLAUDE_PLUGIN_ROOT} in it are the plugin's directory.
	Servers map[string]json.RawMessage
	// Hooks are its hooks, in the order of its files.
	Hooks []hookfile.Hook
	// Problems are parts that could not be read.
	Problems []string
}

// manifests are where a plugin's manifest is looked for, below its directory.
var manifests = []string{"plugin.json", ".github/plugin.json", ".github/plugin/plugin.json", ".claude-plugin/plugin.json"}

// maxManifest bounds what is read of a JSON file.
const maxManifest = 1 << 20

type manifest struct {
	Name        string          `json:"name"`
	Version     string          `json:"version"`
	Description string          `json:"description"`
	Skills      paths           `json:"skills"`
	Agents      paths           `json:"agents"`
	Hooks       json.RawMessage `json:"hooks"`
	Servers     json.RawMessage `json:"mcpServers"`
}

// paths is one path or a list of them.
type paths []string

// UnmarshalJSON takes a text as a list of one.
func (p *paths) UnmarshalJSON(raw []byte) error {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		*p = paths{one}
		return nil
	}
	return json.Unmarshal(raw, (*[]string)(p))
}

// Load reads the plugin in a directory, which is absolute.
func Load(dir string) (Plugin, error) {
	p := Plugin{Name: filepath.Base(dir), Dir: dir}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return p, fmt.Errorf("no plugin can be read from %s: %w", dir, err)
	}
	defer root.Close()
	var m manifest
	raw, file, err := first(root, manifests)
	switch {
	case err == nil:
		if err := json.Unmarshal(raw, &m); err != nil {
			return p, fmt.Errorf("the manifest %s is no plugin's: %w", filepath.Join(dir, file), err)
		}
	case !errors.Is(err, fs.ErrNotExist):
		return p, fmt.Errorf("the manifest of the plugin in %s cannot be read: %w", dir, err)
	case !exists(root, "SKILL.md") && !exists(root, "skills") && !exists(root, ".mcp.json") && !exists(root, "hooks.json"):
		return p, fmt.Errorf("%s is no plugin: it has neither a plugin.json nor a SKILL.md", dir)
	}
	if m.Name != "" {
		p.Name = m.Name
	}
	if bad := badName(p.Name); bad != "" {
		return p, fmt.Errorf("the plugin in %s: %s", dir, bad)
	}
	p.Version, p.Description = m.Version, m.Description
	p.skills(root, m.Skills)
	p.agents(root, m.Agents)
	p.servers(root, m.Servers)
	p.hooks(root, m.Hooks)
	return p, nil
}

// badName says why a name cannot be used; "" where it can. It stands in "name@market".
func badName(name string) string {
	if name == "" || len(name) > 128 || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) || strings.ContainsRune("@/\\:\"<> ", r) }) {
		return fmt.Sprintf("the name %q cannot be used: use letters, digits, dots and hyphens", name)
	}
	return ""
}

func (p *Plugin) problem(format string, args ...any) {
	p.Problems = append(p.Problems, "plugin "+p.Name+": "+fmt.Sprintf(format, args...))
}

// inside is a path that a manifest names, relative to the plugin with slashes;
// false where it leads out.
func (p *Plugin) inside(name string) (string, bool) {
	name = path.Clean(strings.TrimPrefix(filepath.ToSlash(name), "./"))
	if path.IsAbs(name) || !filepath.IsLocal(filepath.FromSlash(name)) {
		p.problem("the path %q leads out of it and was left out", name)
		return "", false
	}
	return name, true
}

func (p *Plugin) skills(root *os.Root, named paths) {
	place := func(name string) {
		p.Skills = append(p.Skills, skill.Place{
			Dir: filepath.Join(p.Dir, filepath.FromSlash(name)), Source: skill.Plugin, Inside: p.Dir, Plugin: p.Name, PluginVersion: p.Version,
		})
	}
	if exists(root, "SKILL.md") {
		place(".")
	}
	for _, name := range append(paths{"skills"}, named...) {
		if name, ok := p.inside(name); ok && exists(root, name) && !slices.ContainsFunc(p.Skills, func(s skill.Place) bool { return s.Dir == filepath.Join(p.Dir, filepath.FromSlash(name)) }) {
			place(name)
		}
	}
}

func (p *Plugin) agents(root *os.Root, named paths) {
	for _, name := range append(paths{"agents"}, named...) {
		name, ok := p.inside(name)
		if !ok {
			continue
		}
		files := []string{name}
		if entries, err := fs.ReadDir(root.FS(), name); err == nil {
			files = nil
			for _, e := range entries {
				files = append(files, path.Join(name, e.Name()))
			}
		}
		for _, f := range files {
			full := filepath.Join(p.Dir, filepath.FromSlash(f))
			if strings.HasSuffix(f, ".md") && exists(root, f) && !slices.Contains(p.Agents, full) {
				p.Agents = append(p.Agents, full)
			}
		}
	}
}

// servers reads .mcp.json, and what the manifest says or where it says it is.
func (p *Plugin) servers(root *os.Root, named json.RawMessage) {
	take := func(where string, raw []byte) {
		var all struct {
			Servers map[string]json.RawMessage `json:"mcpServers"`
		}
		err := json.Unmarshal(raw, &all)
		if err == nil && all.Servers == nil {
			err = json.Unmarshal(raw, &all.Servers)
		}
		if err != nil {
			p.problem("%s names no MCP servers: %v", where, err)
			return
		}
		for _, name := range slices.Sorted(maps.Keys(all.Servers)) {
			if p.Servers == nil {
				p.Servers = map[string]json.RawMessage{}
			}
			p.Servers[name] = Expand(all.Servers[name], p.Dir)
		}
	}
	files := []string{".mcp.json"}
	var file string
	switch {
	case json.Unmarshal(named, &file) == nil && file != "":
		if file, ok := p.inside(file); ok {
			files = append(files, file)
		}
	case len(named) > 0 && string(named) != "null":
		take("its manifest", named)
	}
	for _, f := range files {
		raw, err := read(root, f)
		if errors.Is(err, fs.ErrNotExist) && f == ".mcp.json" {
			continue
		}
		if err != nil {
			p.problem("%s cannot be read: %v", f, err)
			continue
		}
		take(f, raw)
	}
}

// Expand puts a plugin's directory into the texts of a configuration of its own;
// where root is "", it is no plugin's and stays as it is.
func Expand(raw json.RawMessage, root string) json.RawMessage {
	dir, err := json.Marshal(root)
	if err != nil || root == "" {
		return raw
	}
	inner := string(dir[1 : len(dir)-1])
	return json.RawMessage(strings.NewReplacer("${PLUGIN_ROOT}", inner, "${CLAUDE_PLUGIN_ROOT}", inner).Replace(string(raw)))
}

// hooks reads hooks.json, or else hooks/hooks.json, and what the manifest says or where
// it says it is. Where those of a file cannot be read, one that denies takes their place.
func (p *Plugin) hooks(root *os.Root, named json.RawMessage) {
	from := func(where string) hookfile.Source {
		return hookfile.Source{Name: "the plugin " + p.Name, File: where, Root: p.Dir}
	}
	unread := func(where string, err error) {
		p.problem("the hooks of %s cannot be read, so no tool is run: %v", where, err)
		p.Hooks = append(p.Hooks, hookfile.Unread(from(where), err))
	}
	take := func(where string, raw []byte) {
		found, problems, err := hookfile.Parse(raw, from(where))
		if err != nil {
			unread(where, err)
		}
		for _, text := range problems {
			p.problem("%s: %s", where, text)
		}
		p.Hooks = append(p.Hooks, found...)
	}
	var files, more paths
	for _, f := range []string{"hooks.json", "hooks/hooks.json"} {
		if _, err := root.Lstat(f); err == nil { // a link that leads nowhere is one that cannot be read
			files = append(files, f)
			break
		}
	}
	var inline map[string]json.RawMessage
	switch {
	case len(named) == 0 || string(named) == "null":
	case json.Unmarshal(named, &more) == nil:
		for _, f := range more {
			at, ok := p.inside(f)
			switch {
			case !ok:
				p.Hooks = append(p.Hooks, hookfile.Unread(from(f), errors.New("the path leads out of the plugin")))
			case !slices.Contains(files, at):
				files = append(files, at)
			}
		}
	case json.Unmarshal(named, &inline) == nil && inline["hooks"] == nil:
		named, _ = json.Marshal(map[string]any{"hooks": inline}) // it was decoded from JSON
		take("its manifest", named)
	default:
		take("its manifest", named)
	}
	for _, f := range files {
		raw, err := read(root, f)
		if err != nil {
			unread(f, err)
			continue
		}
		take(f, raw)
	}
}

func exists(root *os.Root, name string) bool {
	_, err := root.Stat(name)
	return err == nil
}

// first reads the first of several files that there is.
func first(root *os.Root, names []string) (raw []byte, name string, err error) {
	for _, name := range names {
		if raw, err = read(root, name); !errors.Is(err, fs.ErrNotExist) {
			return raw, name, err
		}
	}
	return nil, "", fs.ErrNotExist
}

func read(root *os.Root, name string) ([]byte, error) {
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if i, err := f.Stat(); err != nil || !i.Mode().IsRegular() {
		return nil, errors.Join(err, fmt.Errorf("%s is not a regular file", name))
	}
	raw, err := io.ReadAll(io.LimitReader(f, maxManifest+1))
	if err == nil && len(raw) > maxManifest {
		err = fmt.Errorf("%s has more than %d bytes", name, maxManifest)
	}
	return raw, err
}
