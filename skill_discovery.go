package transom

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/transom-run/transom/internal/prompt"
	"github.com/transom-run/transom/internal/skill"
)

// SkillQuery says where to look for skills outside of any session.
type SkillQuery struct {
	// Projects are directories whose own skills are wanted; Directories hold skills
	// themselves.
	Projects, Directories []string
	// ProjectsOnly leaves out what belongs to the runtime's user.
	ProjectsOnly bool
}

// DiscoverSkills reads the skills of projects, of directories and of the runtime's
// user. Enabled says what holds for all sessions. problems tells of skills that
// could not be read.
func (r *Runtime) DiscoverSkills(q SkillQuery) (found []Skill, problems SkillProblems) {
	var places []skill.Place
	if !q.ProjectsOnly {
		for _, d := range q.Directories {
			places = append(places, skill.Place{Dir: r.absolute(d), Source: skill.Custom})
		}
	}
	for _, p := range q.Projects {
		dir := r.absolute(p)
		places = append(places, skill.Places(dir, prompt.Repository(dir))...)
	}
	if !q.ProjectsOnly {
		places = append(places, r.installedSkills()...)
		places = append(places, r.personalSkills()...)
	}
	c, off := skill.Scan(places), r.disabledSkills()
	for _, k := range c.All() {
		found = append(found, public(k, !slices.ContainsFunc(off, func(n string) bool { return strings.EqualFold(n, k.Name) })))
	}
	return found, SkillProblems{c.Warnings, c.Errors}
}

// DiscoveryPath is a place where something is looked for; it need not exist.
type DiscoveryPath struct {
	Path string
	// Scope is "project", "personal-copilot" or "personal-agents".
	Scope string
	// Project is the project that it belongs to.
	Project string
	// Preferred: the place of its scope where new ones belong.
	Preferred bool
}

// SkillPaths lists where skills are looked for: of the projects, then, unless
// projectsOnly, of the runtime's user.
func (r *Runtime) SkillPaths(projects []string, projectsOnly bool) []DiscoveryPath {
	var out []DiscoveryPath
	for _, p := range projects {
		for i, d := range skill.ProjectDirs {
			out = append(out, DiscoveryPath{filepath.Join(r.absolute(p), filepath.FromSlash(d)), string(skill.Project), p, i == 0})
		}
	}
	if !projectsOnly {
		for _, p := range r.personalSkills() {
			out = append(out, DiscoveryPath{Path: p.Dir, Scope: string(p.Source), Preferred: p.Source == skill.Personal})
		}
	}
	return out
}

// absolute is a path below the runtime's directory, where it is relative.
func (r *Runtime) absolute(path string) string {
	if !filepath.IsAbs(path) {
		path = filepath.Join(r.cfg.Dir, path)
	}
	return filepath.Clean(path)
}

// userHome is the home directory of the runtime's user; "" where there is none.
func (r *Runtime) userHome() string {
	if h := r.cfg.Getenv("HOME"); h != "" {
		return h
	}
	h, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return h
}

// disabledKey is the setting that names skills which no session uses.
const disabledKey = "disabledSkills"

// disabledSkills are the skills that no session of the runtime uses, unless a
// client enables one there.
func (r *Runtime) disabledSkills() (names []string) {
	kept, err := r.readSettings()
	if err == nil && len(kept[disabledKey]) > 0 {
		err = json.Unmarshal(kept[disabledKey], &names)
	}
	if err != nil {
		r.cfg.Logger.Warn("the list of disabled skills cannot be read; all are enabled", "error", err)
	}
	return names
}

// DisableSkills says which skills sessions do not use from now on, in place of
// those named before. Sessions that run already stay as they are until their
// skills are read anew.
func (r *Runtime) DisableSkills(names []string) error {
	return r.changeDisabled("skills.config.setDisabledSkills", func([]string) []string { return names })
}

// SetSkillDisabled adds one skill to those of [Runtime.DisableSkills], or takes it
// out.
func (r *Runtime) SetSkillDisabled(name string, disabled bool) error {
	return r.changeDisabled("skills.config.setSkillDisabled", func(have []string) []string {
		have = slices.DeleteFunc(have, func(n string) bool { return strings.EqualFold(n, name) })
		if disabled {
			have = append(have, name)
		}
		return have
	})
}

func (r *Runtime) changeDisabled(op string, change func([]string) []string) error {
	err := r.user.file.change(func(all *map[string]json.RawMessage) {
		next := maps.Clone(*all)
		if next == nil {
			next = map[string]json.RawMessage{}
		}
		var have []string
		if json.Unmarshal(next[disabledKey], &have) != nil {
			have = nil
		}
		if have = change(have); len(have) == 0 {
			delete(next, disabledKey)
		} else {
			next[disabledKey], _ = json.Marshal(have) // texts always encode
		}
		*all = next
	})
	r.ReloadSettings()
	return wrap(op, "", err)
}
