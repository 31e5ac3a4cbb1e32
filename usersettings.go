package transom

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/transom-run/transom/internal/lazy"
)

// Setting is one of the user's settings, in settings.json of the runtime's home.
type Setting struct {
	Value   any // what holds: the user's, else the default
	Default any
	IsSet   bool // by the user
}

// knownSettings are the settings that there are, with their defaults.
var knownSettings = lazy.Value[map[string]any]{Make: func() map[string]any {
	return map[string]any{
		// A token of the environment is the account of sessions that bring none.
		"autoLogin": true,
		// The model of sessions that name none.
		"model": "",
	}
}}

// userSettings is the file as it was read last.
type userSettings struct {
	file stateFile[map[string]json.RawMessage]
	// kept is nil until the file is read.
	kept map[string]json.RawMessage
}

// Settings returns every setting that there is.
func (r *Runtime) Settings() (map[string]Setting, error) {
	kept, err := r.readSettings()
	if err != nil {
		return nil, wrap("user.settings.get", "", err)
	}
	out := map[string]Setting{}
	for name, def := range knownSettings.Get() {
		s := Setting{Value: def, Default: def}
		if v, ok := settingValue(kept[name], def); ok {
			s.Value, s.IsSet = v, true
		}
		out[name] = s
	}
	return out, nil
}

// settingValue decodes a value of the type that the default has.
func settingValue(raw json.RawMessage, def any) (any, bool) {
	switch def.(type) {
	case bool:
		var b *bool
		if json.Unmarshal(raw, &b) == nil && b != nil {
			return *b, true
		}
	case string:
		var s *string
		if json.Unmarshal(raw, &s) == nil && s != nil {
			return *s, true
		}
	}
	return nil, false
}

func (r *Runtime) readSettings() (map[string]json.RawMessage, error) {
	r.mu.Lock()
	kept := r.user.kept
	r.mu.Unlock()
	if kept != nil {
		return kept, nil
	}
	kept, err := r.user.file.read()
	if err != nil {
		return nil, err
	}
	if kept == nil {
		kept = map[string]json.RawMessage{}
	}
	r.mu.Lock()
	r.user.kept = kept
	r.mu.Unlock()
	return kept, nil
}

// ReloadSettings forgets what was read, so that the file is read anew.
func (r *Runtime) ReloadSettings() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.user.kept = nil
}

// ChangeSettings writes settings, each in place of what it was; null takes one
// back. One that there is not, or of another type, changes nothing at all.
func (r *Runtime) ChangeSettings(change map[string]json.RawMessage) error {
	const op = "user.settings.set"
	for name, raw := range change {
		def, known := knownSettings.Get()[name]
		if !known {
			return &Error{Op: op, Kind: KindInvalidParams, Msg: fmt.Sprintf("there is no setting %q; there are: %s", name, strings.Join(slices.Sorted(maps.Keys(knownSettings.Get())), ", "))}
		}
		if _, ok := settingValue(raw, def); !ok && string(raw) != "null" {
			return &Error{Op: op, Kind: KindInvalidParams, Msg: fmt.Sprintf("the setting %q has values like %v, not %s", name, def, raw)}
		}
	}
	err := r.user.file.change(func(all *map[string]json.RawMessage) {
		if *all == nil {
			*all = map[string]json.RawMessage{}
		} else {
			*all = maps.Clone(*all)
		}
		for name, raw := range change {
			if string(raw) == "null" {
				delete(*all, name)
			} else {
				(*all)[name] = raw
			}
		}
	})
	r.ReloadSettings()
	return wrap(op, "", err)
}

// setting is the value of a setting that holds; the default where the file cannot
// be read.
func (r *Runtime) setting(name string) any {
	kept, err := r.readSettings()
	if err != nil {
		r.cfg.Logger.Warn("user settings", "error", err)
		return knownSettings.Get()[name]
	}
	if v, ok := settingValue(kept[name], knownSettings.Get()[name]); ok {
		return v
	}
	return knownSettings.Get()[name]
}

func (r *Runtime) noAutoLogin() bool { return r.cfg.NoAutoLogin || r.setting("autoLogin") == false }

// defaultModel is the model of sessions that name none.
func (r *Runtime) defaultModel() string {
	if r.cfg.Model != "" || r.cfg.Getenv("COPILOT_MODEL") != "" {
		return r.cfg.Model // or the environment's
	}
	return r.setting("model").(string)
}
