package transom

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/internal/hookfile"
	"github.com/transom-run/transom/internal/plugin"
	"github.com/transom-run/transom/internal/turn"
)

// hooks are those of the session's plugins, in the order of the plugins.
func (p *plugins) hooks() (out []hookfile.Hook) {
	for _, one := range p.all() {
		out = append(out, one.Hooks...)
	}
	return out
}

// hooked reports whether the session's plugins bring hooks.
func (p *plugins) hooked() bool {
	return slices.ContainsFunc(p.all(), func(one sessionPlugin) bool { return len(one.Hooks) > 0 })
}

// hook says who answers for the hooks of the session's plugins.
func (r *Runtime) hook(s *loaded) {
	run := hookfile.Runner{
		Environ: r.environ,
		Dir:     func() string { return s.View().Dir },
		Warn:    func(text string) { s.tell(event.SessionWarning{WarningType: "hook", Message: r.keys.redact(text)}) },
	}
	s.SetHooker(turn.FileHooks, func(ctx context.Context, kind string, input json.RawMessage) (json.RawMessage, error) {
		return run.Ask(ctx, s.plugins.hooks(), kind, input)
	})
}

// PluginHook is a hook that a plugin brings.
type PluginHook struct {
	// ID stays the same as long as the plugin and its hook do.
	ID     string
	Event  string // such as "preToolUse"
	Plugin string
}

// PluginHooks lists the hooks of plugins that every session has, and of those that
// are installed and enabled; problems are what of them cannot be used.
func (r *Runtime) PluginHooks() (hooks []PluginHook, problems []string) {
	dirs := r.everywhere()
	for _, i := range r.enabledPlugins() {
		dirs = append(dirs, i.Dir)
	}
	for _, d := range dirs {
		p, err := plugin.Load(d)
		if err != nil {
			problems = append(problems, err.Error())
			continue
		}
		problems = append(problems, p.Problems...)
		for i, h := range p.Hooks {
			sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%d\x00%s\x00%q", d, h.Name, i, h.Shell, h.Exec))
			hooks = append(hooks, PluginHook{ID: hex.EncodeToString(sum[:8]), Event: h.Event, Plugin: p.Name})
		}
	}
	return hooks, problems
}
