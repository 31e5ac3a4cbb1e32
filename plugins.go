package transom

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/internal/plugin"
	"github.com/transom-run/transom/internal/skill"
	"github.com/transom-run/transom/internal/turn"
)

// Plugin is a directory with skills, MCP servers and the like that belong
// together.
type Plugin struct {
	Name    string
	Version string // "" where its manifest names none
	// Marketplace is where it was installed from; "" where it was not.
	Marketplace string
	Enabled     bool
	Dir         string
	// DirectSource tells apart plugins that were installed from a directory; "" for
	// those of a marketplace.
	DirectSource string
	// Live is the directory of the marketplace, which is read anew by each session.
	Live string
}

// plugins are those of one session.
type plugins struct {
	mu       sync.Mutex
	dirs     []string // that the host named
	list     []sessionPlugin
	problems []string
}

type sessionPlugin struct {
	plugin.Plugin
	market string
}

// update takes what a host configures and reports whether it is new.
func (p *plugins) update(dirs []string) (changed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if dirs == nil || slices.Equal(dirs, p.dirs) {
		return false
	}
	p.dirs = dirs
	return true
}

func (p *plugins) all() []sessionPlugin {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.list
}

// skills are the places where the skills of the session's plugins lie.
func (p *plugins) skills() (out []skill.Place) {
	for _, one := range p.all() {
		out = append(out, one.Skills...)
	}
	return out
}

// plug reads the plugins of a session for a working directory: those that the host
// named, those of all sessions, and, with discovery, those that are installed.
func (r *Runtime) plug(s *loaded, dir string) {
	type found struct{ dir, market string }
	s.plugins.mu.Lock()
	named := s.plugins.dirs
	s.plugins.mu.Unlock()
	var dirs []found
	for _, d := range named {
		if !filepath.IsAbs(d) {
			d = filepath.Join(dir, d)
		}
		dirs = append(dirs, found{dir: d})
	}
	for _, d := range r.everywhere() {
		dirs = append(dirs, found{dir: d})
	}
	if s.skills.discovers() {
		for _, p := range r.enabledPlugins() {
			dirs = append(dirs, found{p.Dir, p.Market})
		}
	}
	var list []sessionPlugin
	var problems []string
	for _, d := range dirs {
		p, err := plugin.Load(filepath.Clean(d.dir))
		if err != nil {
			problems = append(problems, err.Error())
			continue
		}
		if slices.ContainsFunc(list, func(have sessionPlugin) bool { return have.Name == p.Name }) {
			continue
		}
		problems = append(problems, p.Problems...)
		list = append(list, sessionPlugin{p, d.market})
	}
	s.plugins.mu.Lock()
	defer s.plugins.mu.Unlock()
	s.plugins.list, s.plugins.problems = list, problems
	r.hook(s)
}

// equip reads a session's plugins and skills for a working directory, where what a
// host configures asks for it, or where they have to be read anyway.
func (r *Runtime) equip(s *loaded, dir string, anew bool, k SkillConfig, discover *bool, dirs []string) {
	plugged := s.plugins.update(dirs)
	if s.skills.update(k, discover) || plugged || anew {
		r.plug(s, dir)
		r.scan(s, dir)
		r.scanAgents(s, dir)
	}
}

// tellEquipment says what a session was equipped with.
func (s *loaded) tellEquipment() {
	s.warnPlugins()
	s.tellSkills()
}

// warnPlugins tells what of the plugins could not be used.
func (s *loaded) warnPlugins() {
	s.plugins.mu.Lock()
	problems := s.plugins.problems
	s.plugins.problems = nil
	s.plugins.mu.Unlock()
	if len(problems) > 0 {
		s.Post(turn.Note{Payload: event.SessionWarning{WarningType: "plugin", Message: strings.Join(problems, "\n")}}, nil, nil)
	}
}

// Plugins lists the session's plugins.
func (h *Session) Plugins() []Plugin {
	var out []Plugin
	for _, p := range h.sess.plugins.all() {
		out = append(out, Plugin{Name: p.Name, Version: p.Version, Marketplace: p.market, Enabled: true, Dir: p.Dir})
	}
	return out
}

// ReloadPlugins reads the session's plugins anew, and the skills with them.
func (h *Session) ReloadPlugins(ctx context.Context) error {
	dir := h.sess.View().Dir
	h.rt.plug(h.sess, dir)
	h.rt.scanAgents(h.sess, dir)
	hooked := h.sess.plugins.hooked()
	h.sess.Post(turn.Configure{Settings: func(set *turn.Settings) { set.FileHooks = hooked }}, nil, nil)
	err := errors.Join(h.rt.renewSkills(ctx, h.sess, true), h.refreshAgents(ctx))
	h.sess.warnPlugins()
	return wrap("session.plugins.reload", h.id, err)
}

// everywhere are the directories of plugins that every session has.
func (r *Runtime) everywhere() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, d := range r.cfg.PluginDirectories {
		out = append(out, r.absolute(d))
	}
	return append(out, r.plugged.everywhere...)
}

// PlugEverywhere says which plugins sessions that begin later have besides their
// own, by their directories; it takes the place of what was said before.
func (r *Runtime) PlugEverywhere(dirs []string) error {
	const op = "sessions.setAdditionalPlugins"
	for _, d := range dirs {
		if !filepath.IsAbs(d) {
			return &Error{Op: op, Kind: KindInvalidParams, Msg: "the directory of a plugin must be absolute, not " + d}
		}
		if _, err := plugin.Load(filepath.Clean(d)); err != nil {
			return &Error{Op: op, Kind: KindInvalidParams, Msg: err.Error(), Err: err}
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.plugged.everywhere = slices.Clone(dirs)
	return nil
}
