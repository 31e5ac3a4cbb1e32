package transom

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/internal/prompt"
	"github.com/transom-run/transom/internal/session"
	"github.com/transom-run/transom/internal/skill"
	"github.com/transom-run/transom/internal/turn"
	"github.com/transom-run/transom/internal/window"
	"github.com/transom-run/transom/tool"
)

// SkillConfig says which skills a session has. On a resume a nil field leaves a
// loaded session as it is; nothing of it is stored.
type SkillConfig struct {
	// Directories hold skills: directories with a SKILL.md, or one that is a skill
	// itself. Relative ones are below the working directory.
	Directories []string
	// Disabled are the names of skills that the session does not use.
	Disabled []string
	// Enabled, where it is false, takes all skills away; nil is true.
	Enabled *bool
}

// Skill is instructions for one kind of task that a session can load.
type Skill struct {
	Name        string
	CommandName string // of its slash command, without the slash
	Description string
	// ArgumentHint says what may be given to it; "" is nothing.
	ArgumentHint string
	// Source is "custom" (a directory that the host named), "project", "inherited"
	// (of a directory around the project, in its repository), "plugin",
	// "personal-copilot" (of the runtime's home) or "personal-agents" (of ~/.agents).
	Source        string
	Path          string // of its SKILL.md, absolute
	ProjectPath   string // the project that it was found for
	PluginName    string
	Enabled       bool
	UserInvocable bool // a user may begin it, by its slash command
	// ModelInvocable: the model may load it by itself.
	ModelInvocable bool
}

// SkillProblems is what was wrong with skills when they were read. Those of
// Errors were left out.
type SkillProblems struct{ Warnings, Errors []string }

// InvokedSkill is a skill whose text came into a session's conversation.
type InvokedSkill struct {
	Name, Path, Content string
	AllowedTools        []string
	// Turn is how many model calls the session had begun.
	Turn int
}

// skills are those of one session.
type skills struct {
	renewing sync.Mutex // held while they are read anew and offered

	mu       sync.Mutex
	dirs     []string // that the host named
	off      bool
	discover bool
	disabled []string        // by the host
	toggled  map[string]bool // by the session's clients since, by folded name
	global   []string        // disabled for all sessions of the runtime
	catalog  *skill.Catalog  // nil: there are none
}

// update takes what a host configures and reports whether something may be
// another way than before.
func (k *skills) update(c SkillConfig, discover *bool) (changed bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if c.Directories != nil {
		changed = changed || !slices.Equal(k.dirs, c.Directories)
		k.dirs = c.Directories
	}
	if c.Disabled != nil {
		k.disabled, k.toggled = c.Disabled, nil
		changed = true
	}
	if c.Enabled != nil {
		changed = changed || k.off == *c.Enabled
		k.off = !*c.Enabled
	}
	if discover != nil {
		changed = changed || k.discover != *discover
		k.discover = *discover
	}
	return changed
}

// wanted reports whether the session has been given a place to find skills in.
func (k *skills) wanted(plugins []skill.Place) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return !k.off && (len(k.dirs) > 0 || k.discover || len(plugins) > 0)
}

// discovers reports whether the session looks for what nobody named.
func (k *skills) discovers() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.discover
}

// follow reports whether the session's skills depend on its working directory.
func (k *skills) follow() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return !k.off && (k.discover || slices.ContainsFunc(k.dirs, func(d string) bool { return !filepath.IsAbs(d) }))
}

func (k *skills) list() *skill.Catalog {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.catalog
}

// enabled reports whether a skill is used.
func (k *skills) enabled(name string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if on, ok := k.toggled[strings.ToLower(name)]; ok {
		return on
	}
	is := func(n string) bool { return strings.EqualFold(n, name) }
	return !slices.ContainsFunc(k.disabled, is) && !slices.ContainsFunc(k.global, is)
}

func (k *skills) toggle(name string, on bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	next := map[string]bool{strings.ToLower(name): on}
	for n, v := range k.toggled {
		if n != strings.ToLower(name) {
			next[n] = v
		}
	}
	k.toggled = next
}

// scan reads the session's skills for a working directory.
func (r *Runtime) scan(s *loaded, dir string) {
	k := &s.skills
	plugins := s.plugins.skills()
	if !k.wanted(plugins) {
		k.mu.Lock()
		k.catalog = nil
		k.mu.Unlock()
		return
	}
	k.mu.Lock()
	dirs, discover := k.dirs, k.discover
	k.mu.Unlock()
	var places []skill.Place
	for _, d := range dirs {
		if !filepath.IsAbs(d) {
			d = filepath.Join(dir, d)
		}
		places = append(places, skill.Place{Dir: filepath.Clean(d), Source: skill.Custom})
	}
	if discover {
		places = append(places, skill.Places(dir, prompt.Repository(dir))...)
	}
	places = append(places, plugins...)
	if discover {
		places = append(places, r.personalSkills()...)
	}
	c, global := skill.Scan(places), r.disabledSkills()
	k.mu.Lock()
	k.catalog, k.global = c, global
	k.mu.Unlock()
}

// personalSkills are where the skills of the runtime's user lie.
func (r *Runtime) personalSkills() []skill.Place {
	var out []skill.Place
	if r.cfg.Home != "" {
		out = append(out, skill.Place{Dir: filepath.Join(r.cfg.Home, "skills"), Source: skill.Personal})
	}
	if home := r.userHome(); home != "" {
		out = append(out, skill.Place{Dir: filepath.Join(home, ".agents", "skills"), Source: skill.Agents})
	}
	return out
}

// skillTool is the tool that loads skills; false where the model has none to load.
func (s *loaded) skillTool() (tool.Tool, bool) {
	usable := skill.Usable(s.skills.list(), s.skills.enabled)
	if len(usable) == 0 {
		return tool.Tool{}, false
	}
	return skill.Tool(usable, func(name string) (skill.Skill, error) { return s.skill(name, false) }), true
}

// skillText is a skill as it stands in a conversation; "" where there is none that
// may be used.
func (s *loaded) skillText(name string) string {
	found, ok := s.skills.list().Lookup(name)
	if !ok || !s.skills.enabled(found.Name) {
		return ""
	}
	t, err := found.Read()
	if err != nil {
		return ""
	}
	return window.SkillContext(t.Name, t.Path, t.Text)
}

// skill finds a skill that may be used now, by the model or by a user.
func (s *loaded) skill(name string, user bool) (skill.Skill, error) {
	catalog := s.skills.list()
	found, ok := catalog.Lookup(name)
	var names []string
	for _, have := range catalog.All() {
		if s.skills.enabled(have.Name) && (user && have.UserInvocable || !user && !have.Hidden) {
			names = append(names, have.Name)
		}
	}
	others := "There are none in this session."
	if len(names) > 0 {
		others = "There are: " + strings.Join(names, ", ") + "."
	}
	fail := func(kind Kind, what string) (skill.Skill, error) {
		return found, &Error{Kind: kind, SessionID: s.ID(), Msg: "The skill " + fmt.Sprintf("%q", name) + " " + what + " " + others}
	}
	switch {
	case !ok:
		return fail(KindNotFound, "does not exist.")
	case !s.skills.enabled(found.Name):
		return fail(KindWrongState, "is disabled.")
	case user && !found.UserInvocable:
		return fail(KindWrongState, "is for the model alone.")
	case !user && found.Hidden:
		return fail(KindWrongState, "can only be begun by a user.")
	}
	return found, nil
}

// reoffer reads the skills anew where asked to, and offers the model what there is.
func (r *Runtime) renewSkills(ctx context.Context, s *loaded, read bool) error {
	s.skills.renewing.Lock()
	defer s.skills.renewing.Unlock()
	if read {
		r.scan(s, s.View().Dir)
	}
	own := s.offered(nil)
	_, err := s.Do(ctx, turn.Configure{Settings: func(v *turn.Settings) { v.BuiltIns = own }}, nil)
	if err == nil {
		s.tellSkills()
	}
	return err
}

// tellSkills says which skills there are, where the session was given some.
func (s *loaded) tellSkills() {
	if s.skills.list() == nil {
		return
	}
	p := event.SkillsLoaded{Skills: []event.SkillInfo{}}
	for _, k := range s.listed() {
		p.Skills = append(p.Skills, event.SkillInfo{
			Name: k.Name, CommandName: k.CommandName, Description: k.Description, ArgumentHint: k.ArgumentHint,
			Source: k.Source, UserInvocable: k.UserInvocable, Enabled: k.Enabled, Path: k.Path,
		})
	}
	s.tell(p)
}

func (s *loaded) listed() []Skill {
	var out []Skill
	for _, k := range s.skills.list().All() {
		out = append(out, public(k, s.skills.enabled(k.Name)))
	}
	return out
}

func public(k skill.Skill, enabled bool) Skill {
	return Skill{
		Name: k.Name, CommandName: k.Command(), Description: k.Description, ArgumentHint: k.Hint, Source: string(k.Source), Path: k.Path,
		ProjectPath: k.Project, PluginName: k.Plugin, Enabled: enabled, UserInvocable: k.UserInvocable, ModelInvocable: !k.Hidden,
	}
}

// Skills lists the session's skills, disabled ones too.
func (h *Session) Skills() []Skill { return h.sess.listed() }

// EnableSkill lets the session use a skill, and DisableSkill takes it away; text
// of it that the conversation holds already stays there. The model is told with
// its next call. Disabling one that there is not holds for one that comes.
func (h *Session) EnableSkill(ctx context.Context, name string) error {
	const op = "session.skills.enable"
	if _, ok := h.sess.skills.list().Lookup(name); !ok {
		_, err := h.sess.skill(name, false)
		return wrap(op, h.id, err)
	}
	return wrap(op, h.id, h.toggleSkill(ctx, name, true))
}

// DisableSkill is described at [Session.EnableSkill].
func (h *Session) DisableSkill(ctx context.Context, name string) error {
	return wrap("session.skills.disable", h.id, h.toggleSkill(ctx, name, false))
}

func (h *Session) toggleSkill(ctx context.Context, name string, on bool) error {
	if strings.TrimSpace(name) == "" {
		return &Error{Kind: KindInvalidParams, Msg: "a skill is named by its name, which must not be empty"}
	}
	if found, ok := h.sess.skills.list().Lookup(name); ok {
		name = found.Name
	}
	h.sess.skills.toggle(name, on)
	return h.rt.renewSkills(ctx, h.sess, false)
}

// ReloadSkills reads the session's skills anew.
func (h *Session) ReloadSkills(ctx context.Context) (SkillProblems, error) {
	err := h.rt.renewSkills(ctx, h.sess, true)
	p := SkillProblems{}
	if c := h.sess.skills.list(); c != nil {
		p = SkillProblems{c.Warnings, c.Errors}
	}
	return p, wrap("session.skills.reload", h.id, err)
}

// InvokedSkills lists the skills whose text came into the conversation, oldest
// first. A clear takes the text out of the window, and none of the list.
func (h *Session) InvokedSkills() ([]InvokedSkill, error) {
	const op = "session.skills.getInvoked"
	events, err := session.History(h.sess.Log())
	if err != nil {
		return nil, wrap(op, h.id, err)
	}
	var out []InvokedSkill
	turns := 0
	for _, raw := range events {
		var e struct {
			Type string          `json:"type"`
			Data json.RawMessage `json:"data"`
		}
		if err := json.Unmarshal(raw, &e); err != nil {
			continue // a log that others wrote
		}
		switch e.Type {
		case event.TypeTurnStart:
			turns++
		case event.TypeSkillInvoked:
			var p event.SkillInvoked
			if err := json.Unmarshal(e.Data, &p); err == nil {
				out = append(out, InvokedSkill{p.Name, p.Path, p.Content, p.AllowedTools, turns})
			}
		}
	}
	return out, nil
}

// SkillPrompt makes the prompt by which a user begins a skill: its text, and what
// the user gave with it. The text takes the arguments where it says $ARGUMENTS.
// The event skill.invoked tells of it; the prompt is the caller's to send.
func (h *Session) SkillPrompt(name, args string) (Message, error) {
	m, err := h.sess.skillPrompt(name, args)
	return m, wrap("session.commands.invoke", h.id, err)
}

func (s *loaded) skillPrompt(name, args string) (Message, error) {
	found, err := s.skill(name, true)
	if err != nil {
		return Message{}, err
	}
	t, err := found.Read()
	if err != nil {
		return Message{}, &Error{Kind: KindInternal, Msg: err.Error(), Err: err}
	}
	body, args := t.Text, strings.TrimSpace(args)
	if strings.Contains(body, "$ARGUMENTS") {
		body, args = strings.ReplaceAll(body, "$ARGUMENTS", args), ""
	}
	m := Message{Prompt: window.SkillContext(t.Name, t.Path, body), DisplayPrompt: strings.TrimSpace("/" + found.Command() + " " + args)}
	if args != "" {
		m.Prompt += "\n\n" + args
	}
	s.tell(invoked(t, found.Hidden, event.SkillByUser))
	return m, nil
}

// queueSkill has a user's skill begin with the next turn.
func (s *loaded) queueSkill(ctx context.Context, name, args string) error {
	m, err := s.skillPrompt(name, args)
	if err != nil {
		return err
	}
	_, err = s.Do(ctx, turn.Arrange{Op: turn.ArrangeInsert, Message: event.Queued{Prompt: m.Prompt, DisplayPrompt: m.DisplayPrompt}}, nil)
	return err
}

// RunSkill begins a skill as its slash command does: as the next prompt, before
// what waits already.
func (h *Session) RunSkill(ctx context.Context, name, args string) error {
	return wrap("session.commands.execute", h.id, h.sess.queueSkill(ctx, name, args))
}

func invoked(t tool.Skill, hidden bool, trigger string) event.SkillInvoked {
	return event.SkillInvoked{
		Name: t.Name, Path: t.Path, Content: t.Text, Description: t.Description, AllowedTools: t.AllowedTools, DisableModelInvocation: hidden,
		Source: t.Source, PluginName: t.Plugin, PluginVersion: t.PluginVersion, Trigger: trigger,
	}
}
