package skill

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/transom-run/transom/tool"
)

// Source says where a skill was found. Its values are those of the protocol.
type Source string

// The sources of skills.
const (
	Project   Source = "project"          // of the working directory
	Inherited Source = "inherited"        // of a directory around it, in the same repository
	Personal  Source = "personal-copilot" // of the runtime's home
	Agents    Source = "personal-agents"  // of ~/.agents
	Custom    Source = "custom"           // of a directory that the host named
	Plugin    Source = "plugin"
)

// ProjectDirs are where the skills of a project lie, in the order in which they
// are looked through. New ones belong into the first.
var ProjectDirs = []string{".github/skills", ".agents/skills", ".claude/skills"}

// Place is a directory to look for skills in: it holds a SKILL.md itself, or
// directories that do.
type Place struct {
	Dir    string // absolute
	Source Source
	// Inside is what no link may lead out of; "" is no bound.
	Inside string
	// Project is the directory that the place was derived from, for [Project] and
	// [Inherited].
	Project string
	// Plugin and PluginVersion name the plugin that brings it.
	Plugin, PluginVersion string
}

// Places lists where to look for a working directory: its own skills, then those
// of the directories around it up to root, the top of its repository ("" is none).
func Places(dir, root string) []Place {
	out := project(dir, dir, root, Project)
	for up := dir; root != "" && up != root; {
		next := filepath.Dir(up)
		if next == up {
			break
		}
		up = next
		out = append(out, project(up, dir, root, Inherited)...)
	}
	return out
}

func project(base, of, root string, s Source) []Place {
	inside := root
	if inside == "" {
		inside = base
	}
	var out []Place
	for _, d := range ProjectDirs {
		out = append(out, Place{Dir: filepath.Join(base, filepath.FromSlash(d)), Source: s, Inside: inside, Project: of})
	}
	return out
}

// Skill is what is known of a skill without its text.
type Skill struct {
	Name        string
	Description string
	Hint        string // of what may be given to it
	Path        string // of its SKILL.md, absolute
	// UserInvocable: a user may begin it. Hidden: the model may not.
	UserInvocable, Hidden bool
	AllowedTools          []string
	Place
}

// Catalog is the skills of a list of places.
type Catalog struct {
	skills   []Skill
	Warnings []string // of skills that were taken, with what is odd about them
	Errors   []string // of skills that were left out
}

// All lists the skills, in the order of their places.
func (c *Catalog) All() []Skill {
	if c == nil {
		return nil
	}
	return c.skills
}

// Lookup finds a skill by its name, its command's name, or PLUGIN:NAME; case does not count where
// nothing else differs.
func (c *Catalog) Lookup(name string) (Skill, bool) {
	name = strings.TrimLeft(strings.TrimSpace(name), "/")
	for _, same := range []func(a, b string) bool{func(a, b string) bool { return a == b }, strings.EqualFold} {
		for _, s := range c.All() {
			if same(s.Name, name) || same(s.Command(), name) || s.Plugin != "" && same(s.Plugin+":"+s.Name, name) {
				return s, true
			}
		}
	}
	return Skill{}, false
}

// Command is the name of the skill's slash command, without the slash.
func (s Skill) Command() string { return strings.ReplaceAll(s.Name, " ", "-") }

const (
	maxPerPlace = 500
	maxSkills   = 2000
)

// Scan reads what stands in the places.
func Scan(places []Place) *Catalog {
	c := &Catalog{}
	seen := map[string]string{}
	for _, p := range places {
		for _, dir := range p.candidates() {
			file := filepath.Join(dir, "SKILL.md")
			s, warning, err := load(p, file)
			switch {
			case errors.Is(err, fs.ErrNotExist):
				continue
			case err != nil:
				c.Errors = append(c.Errors, file+": "+err.Error())
				continue
			case len(c.skills) >= maxSkills:
				c.Errors = append(c.Errors, fmt.Sprintf("%s: there are more than %d skills; the rest is left out", file, maxSkills))
				return c
			}
			if warning != "" {
				c.Warnings = append(c.Warnings, file+": "+warning)
			}
			if first, taken := seen[strings.ToLower(s.Name)]; taken {
				if first != file {
					c.Warnings = append(c.Warnings, fmt.Sprintf("%s: the name %s is taken by %s, which counts", file, s.Name, first))
				}
				continue
			}
			seen[strings.ToLower(s.Name)] = file
			c.skills = append(c.skills, s)
		}
	}
	return c
}

// candidates are the directories of a place that may hold a skill.
func (p Place) candidates() []string {
	out := []string{p.Dir}
	f, err := p.open("")
	if err != nil {
		return nil
	}
	defer f.Close()
	entries, err := f.ReadDir(-1)
	if err != nil {
		return out
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	for _, e := range entries {
		if (e.IsDir() || e.Type()&fs.ModeSymlink != 0) && len(out) < maxPerPlace {
			out = append(out, filepath.Join(p.Dir, e.Name()))
		}
	}
	return out
}

// open opens what stands below a place, inside its bound; name has slashes.
func (p Place) open(name string) (*os.File, error) {
	full := filepath.Join(p.Dir, filepath.FromSlash(name))
	if p.Inside == "" {
		return os.Open(full)
	}
	rel, err := filepath.Rel(p.Inside, full)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(p.Inside)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.Open(rel)
}

// read reads a SKILL.md of the place.
func (p Place) read(file string) (string, error) {
	rel, err := filepath.Rel(p.Dir, file)
	if err != nil {
		return "", err
	}
	f, err := p.open(path.Clean(filepath.ToSlash(rel)))
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", errors.New("it is not a regular file")
	}
	if info.Size() > maxFile {
		return "", fmt.Errorf("it has %d bytes, more than the %d that a skill may have: move what is not always needed into files beside it", info.Size(), maxFile)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(b) > maxFile {
		err = fmt.Errorf("it has more than the %d bytes that a skill may have", maxFile)
	}
	return string(b), err
}

func load(p Place, file string) (s Skill, warning string, err error) {
	raw, err := p.read(file)
	if err != nil {
		return s, "", err
	}
	f, text, warning, err := parse(raw)
	if err != nil {
		return s, "", err
	}
	if f.name == "" {
		f.name = filepath.Base(filepath.Dir(file))
	}
	if bad := badName(f.name); bad != "" {
		return s, "", errors.New(bad)
	}
	if f.description == "" {
		f.description = summary(text)
		if warning == "" {
			warning = "it has no description, so the model reads its first line instead"
		}
	}
	return Skill{
		Name: f.name, Description: f.description, Hint: f.hint, Path: file, UserInvocable: f.userInvocable, Hidden: f.hidden,
		AllowedTools: f.allowed, Place: p,
	}, warning, nil
}

// Read reads a skill's text as it stands now.
func (s Skill) Read() (tool.Skill, error) {
	raw, err := s.Place.read(s.Path)
	if err == nil {
		var text string
		if _, text, _, err = parse(raw); err == nil {
			return tool.Skill{
				Name: s.Name, Path: s.Path, Text: text, Description: s.Description, Source: string(s.Source),
				Plugin: s.Plugin, PluginVersion: s.PluginVersion, AllowedTools: s.AllowedTools,
			}, nil
		}
	}
	return tool.Skill{}, fmt.Errorf("the skill %s cannot be read from %s: %w", s.Name, s.Path, err)
}
