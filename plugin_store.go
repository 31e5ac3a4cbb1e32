package transom

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/transom-run/transom/internal/lazy"
	"github.com/transom-run/transom/internal/plugin"
	"github.com/transom-run/transom/internal/skill"
)

// pluginStore is what a runtime knows of plugins beyond one session.
type pluginStore struct {
	file       stateFile[pluginFile]
	everywhere []string // directories of plugins of all sessions
}

// pluginFile is plugins.json in the runtime's home.
type pluginFile struct {
	Marketplaces map[string]string `json:"marketplaces,omitempty"` // directories by name
	Plugins      []installed       `json:"plugins,omitempty"`
}

type installed struct {
	Name     string    `json:"name"`
	Market   string    `json:"marketplace,omitempty"`
	Dir      string    `json:"directory"`
	Version  string    `json:"version,omitempty"`
	Disabled bool      `json:"disabled,omitempty"`
	At       time.Time `json:"installedAt"`
}

func (i installed) spec() string {
	if i.Market == "" {
		return i.Name
	}
	return i.Name + "@" + i.Market
}

// source tells apart plugins that were installed from directories.
func (i installed) source() string {
	if i.Market != "" {
		return ""
	}
	sum := sha256.Sum256([]byte(i.Dir))
	return hex.EncodeToString(sum[:])
}

func (i installed) public(live string) Plugin {
	return Plugin{Name: i.Name, Version: i.Version, Marketplace: i.Market, Enabled: !i.Disabled, Dir: i.Dir, DirectSource: i.source(), Live: live}
}

// homeMarket is the marketplace that is always there: the directory "marketplace"
// of the runtime's home.
const homeMarket = "home"

// Marketplace is a directory that lists plugins.
type Marketplace struct {
	Name string
	// Source says for people where it lies.
	Source string
	// Default: it is always there, and cannot be removed.
	Default bool
}

// MarketplacePlugin is a plugin that a marketplace lists.
type MarketplacePlugin struct{ Name, Version, Description string }

// PluginInstall is what came of an installation or an update.
type PluginInstall struct {
	Plugin   Plugin
	Skills   int    // how many it brings
	Previous string // its version before an update
	Message  string // for people
}

func (r *Runtime) marketDirs() (map[string]string, error) {
	f, err := r.plugged.file.read()
	if err != nil {
		return nil, err
	}
	dirs := maps.Clone(f.Marketplaces)
	if dirs == nil {
		dirs = map[string]string{}
	}
	if r.cfg.Home != "" {
		dirs[homeMarket] = filepath.Join(r.cfg.Home, "marketplace")
	}
	return dirs, nil
}

func (r *Runtime) market(name string) (plugin.Market, error) {
	dirs, err := r.marketDirs()
	if err != nil {
		return plugin.Market{}, err
	}
	dir, known := dirs[name]
	if !known {
		return plugin.Market{}, &Error{Kind: KindNotFound, Msg: fmt.Sprintf("there is no marketplace %q; there are: %s", name, strings.Join(slices.Sorted(maps.Keys(dirs)), ", "))}
	}
	m, err := plugin.LoadMarket(dir)
	if name == homeMarket && (errors.Is(err, plugin.ErrNoMarket) || errors.Is(err, os.ErrNotExist)) {
		return plugin.Market{Name: name, Dir: dir}, nil // nobody has put anything there
	}
	if err != nil {
		return m, &Error{Kind: KindInvalidParams, Msg: err.Error(), Err: err}
	}
	return m, nil
}

// remote matches sources that lie on the network.
var remoteSource = lazy.Regexp{Expr: `^([a-zA-Z][a-zA-Z0-9+.-]*://|[^/@ ]+@[^/: ]+:|[A-Za-z0-9][A-Za-z0-9_.-]*/[A-Za-z0-9_.-]+([#:].*)?$)`}

// local is the directory that a source names, below base where it is relative.
func (r *Runtime) local(source, base string) (string, error) {
	if source == "" {
		return "", &Error{Kind: KindInvalidParams, Msg: "a source is a directory on the machine of the runtime; it must not be empty"}
	}
	dir := strings.TrimPrefix(source, "file://")
	if !filepath.IsAbs(dir) {
		if base == "" {
			base = r.cfg.Dir
		}
		dir = filepath.Join(base, dir)
	}
	dir = filepath.Clean(dir)
	if i, err := os.Stat(dir); err == nil && i.IsDir() {
		return dir, nil
	}
	if !strings.HasPrefix(source, "file://") && remoteSource.Get().MatchString(source) {
		return "", &Error{Kind: KindUnsupported, Msg: source + " lies on the network: Transom fetches no plugins and marketplaces. Clone it, and name its directory"}
	}
	return "", &Error{Kind: KindNotFound, Msg: "there is no directory " + dir + " on the machine of the runtime"}
}

// AddMarketplace keeps a directory as a marketplace, under the name that its
// manifest has. source may be relative to base; "" is the runtime's directory.
func (r *Runtime) AddMarketplace(source, base string) (name string, err error) {
	const op = "plugins.marketplaces.add"
	dir, err := r.local(source, base)
	if err != nil {
		return "", wrap(op, "", err)
	}
	m, err := plugin.LoadMarket(dir)
	if err != nil {
		return "", &Error{Op: op, Kind: KindInvalidParams, Msg: err.Error(), Err: err}
	}
	taken := ""
	err = r.plugged.file.change(func(f *pluginFile) {
		if have := f.Marketplaces[m.Name]; have != "" && have != dir || m.Name == homeMarket {
			taken = have
			return
		}
		f.Marketplaces = maps.Clone(f.Marketplaces)
		if f.Marketplaces == nil {
			f.Marketplaces = map[string]string{}
		}
		f.Marketplaces[m.Name] = dir
	})
	if err == nil && (taken != "" || m.Name == homeMarket) {
		err = &Error{Kind: KindConflict, Msg: fmt.Sprintf("the name %s is that of another marketplace (%s): remove it first", m.Name, taken)}
	}
	return m.Name, wrap(op, "", err)
}

// Marketplaces lists the marketplaces, the default one last.
func (r *Runtime) Marketplaces() ([]Marketplace, error) {
	dirs, err := r.marketDirs()
	if err != nil {
		return nil, wrap("plugins.marketplaces.list", "", err)
	}
	var out []Marketplace
	for _, name := range slices.Sorted(maps.Keys(dirs)) {
		if name != homeMarket {
			out = append(out, Marketplace{name, "Local: " + dirs[name], false})
		}
	}
	if dir := dirs[homeMarket]; dir != "" {
		out = append(out, Marketplace{homeMarket, "Local: " + dir, true})
	}
	return out, nil
}

// BrowseMarketplace lists the plugins of a marketplace.
func (r *Runtime) BrowseMarketplace(name string) ([]MarketplacePlugin, error) {
	m, err := r.market(name)
	var out []MarketplacePlugin
	for _, e := range m.Plugins {
		out = append(out, MarketplacePlugin{e.Name, e.Version, e.Description})
	}
	return out, wrap("plugins.marketplaces.browse", "", err)
}

// CheckMarketplaces reads a marketplace, or all of them where name is "", and says
// of each what is wrong with it. Nothing of them is kept: they are read when they
// are used.
func (r *Runtime) CheckMarketplaces(name string) (map[string]error, error) {
	const op = "plugins.marketplaces.refresh"
	dirs, err := r.marketDirs()
	if err != nil {
		return nil, wrap(op, "", err)
	}
	out := map[string]error{}
	for have := range dirs {
		if name == "" || name == have {
			_, out[have] = r.market(have)
		}
	}
	if len(out) == 0 && name != "" {
		_, err = r.market(name)
	}
	return out, wrap(op, "", err)
}

// RemoveMarketplace forgets a marketplace. Where plugins of it are installed they
// are named and nothing is done, unless force removes them too.
func (r *Runtime) RemoveMarketplace(name string, force bool) (removed bool, dependent []string, err error) {
	const op = "plugins.marketplaces.remove"
	if name == homeMarket {
		return false, nil, &Error{Op: op, Kind: KindWrongState, Msg: "the marketplace of the home is always there: empty its directory instead"}
	}
	if _, err := r.market(name); errors.Is(err, &Error{Kind: KindNotFound}) {
		return false, nil, wrap(op, "", err)
	}
	err = r.plugged.file.change(func(f *pluginFile) {
		for _, p := range f.Plugins {
			if p.Market == name {
				dependent = append(dependent, p.Name)
			}
		}
		if len(dependent) > 0 && !force {
			return
		}
		removed = true
		f.Plugins = slices.DeleteFunc(slices.Clone(f.Plugins), func(p installed) bool { return p.Market == name })
		f.Marketplaces = maps.Clone(f.Marketplaces)
		delete(f.Marketplaces, name)
	})
	if removed {
		dependent = nil
	}
	return removed, dependent, wrap(op, "", err)
}

// InstallPlugin notes a plugin for the sessions that look for plugins: NAME@MARKET,
// or a directory. Nothing is copied; sessions read it where it lies.
func (r *Runtime) InstallPlugin(source, base string) (PluginInstall, error) {
	const op = "plugins.install"
	i, live, err := r.locate(source, base)
	if err != nil {
		return PluginInstall{}, wrap(op, "", err)
	}
	p, err := plugin.Load(i.Dir)
	if err != nil {
		return PluginInstall{}, &Error{Op: op, Kind: KindInvalidParams, Msg: err.Error(), Err: err}
	}
	if i.Market == "" {
		i.Name = p.Name
	}
	if i.Version == "" || p.Version != "" {
		i.Version = p.Version
	}
	i.At = time.Now().UTC()
	err = r.plugged.file.change(func(f *pluginFile) {
		f.Plugins = slices.DeleteFunc(slices.Clone(f.Plugins), func(have installed) bool {
			return have.spec() == i.spec() && have.source() == i.source()
		})
		f.Plugins = append(f.Plugins, i)
	})
	out := PluginInstall{Plugin: i.public(live), Skills: count(p), Message: "It is read from " + i.Dir + " by each session; nothing was copied."}
	return out, wrap(op, "", err)
}

// locate finds what is to be installed.
func (r *Runtime) locate(source, base string) (i installed, live string, err error) {
	name, market, ok := strings.Cut(source, "@")
	if !ok || strings.ContainsAny(source, "/\\:") {
		i.Dir, err = r.local(source, base)
		return i, "", err
	}
	m, err := r.market(market)
	if err != nil {
		return i, "", err
	}
	e, ok := m.Lookup(name)
	switch {
	case !ok:
		return i, "", &Error{Kind: KindNotFound, Msg: fmt.Sprintf("the marketplace %s lists no plugin %q", market, name)}
	case e.Dir == "":
		return i, "", &Error{Kind: KindUnsupported, Msg: fmt.Sprintf("the plugin %s lies outside of its marketplace's directory (%s): Transom fetches no plugins. Clone it, and install its directory", source, e.Elsewhere)}
	}
	return installed{Name: e.Name, Market: market, Dir: e.Dir, Version: e.Version}, m.Dir, nil
}

// count is how many skills a plugin brings.
func count(p plugin.Plugin) int { return len(skill.Scan(p.Skills).All()) }

// InstalledPlugins lists what is installed, in the order of installation.
func (r *Runtime) InstalledPlugins() ([]Plugin, error) {
	f, err := r.plugged.file.read()
	if err != nil {
		return nil, wrap("plugins.list", "", err)
	}
	dirs, err := r.marketDirs()
	var out []Plugin
	for _, i := range f.Plugins {
		out = append(out, i.public(dirs[i.Market]))
	}
	return out, wrap("plugins.list", "", err)
}

// enabledPlugins are those that sessions with discovery have.
func (r *Runtime) enabledPlugins() []installed {
	f, err := r.plugged.file.read()
	if err != nil {
		r.cfg.Logger.Warn("installed plugins", "error", err)
	}
	return slices.DeleteFunc(slices.Clone(f.Plugins), func(i installed) bool { return i.Disabled })
}

// installedSkills are where the skills of plugins lie that are installed and
// enabled.
func (r *Runtime) installedSkills() (out []skill.Place) {
	for _, i := range r.enabledPlugins() {
		if p, err := plugin.Load(i.Dir); err == nil {
			out = append(out, p.Skills...)
		}
	}
	return out
}

// names reports whether a name, or NAME@MARKET, means a plugin.
func (i installed) is(name string) bool { return i.Name == name || i.spec() == name }

// EnablePlugins lets sessions that begin later have plugins, and DisablePlugins
// takes them away. Names that there are not are passed over; one that was installed
// from a directory can only be uninstalled.
func (r *Runtime) EnablePlugins(names []string) error { return r.switchPlugins(names, false) }

// DisablePlugins is described at [Runtime.EnablePlugins].
func (r *Runtime) DisablePlugins(names []string) error { return r.switchPlugins(names, true) }

func (r *Runtime) switchPlugins(names []string, off bool) error {
	return wrap("plugins.enable", "", r.plugged.file.change(func(f *pluginFile) {
		f.Plugins = slices.Clone(f.Plugins)
		for k, i := range f.Plugins {
			if i.Market != "" && slices.ContainsFunc(names, i.is) {
				f.Plugins[k].Disabled = off
			}
		}
	}))
}

// UpdatePlugin reads an installed plugin's manifest anew.
func (r *Runtime) UpdatePlugin(name string) (PluginInstall, error) {
	const op = "plugins.update"
	i, err := r.installed(name, "")
	if err != nil {
		return PluginInstall{}, wrap(op, "", err)
	}
	out, err := r.updated(i)
	return out, wrap(op, "", err)
}

func (r *Runtime) updated(i installed) (PluginInstall, error) {
	source := i.Dir
	if i.Market != "" {
		source = i.spec()
	}
	now, live, err := r.locate(source, "")
	if err != nil {
		return PluginInstall{Plugin: i.public("")}, err
	}
	p, err := plugin.Load(now.Dir)
	if err != nil {
		return PluginInstall{Plugin: i.public(live)}, &Error{Kind: KindInvalidParams, Msg: err.Error(), Err: err}
	}
	was := i.Version
	if i.Dir, i.Version = now.Dir, now.Version; i.Version == "" || p.Version != "" {
		i.Version = p.Version
	}
	err = r.plugged.file.change(func(f *pluginFile) {
		f.Plugins = slices.Clone(f.Plugins)
		for k, have := range f.Plugins {
			if have.spec() == i.spec() && have.source() == i.source() {
				i.Disabled = have.Disabled
				f.Plugins[k] = i
			}
		}
	})
	return PluginInstall{Plugin: i.public(live), Skills: count(p), Previous: was}, err
}

// UpdatePlugins updates all plugins, and says of each what went wrong.
func (r *Runtime) UpdatePlugins() ([]PluginInstall, []error, error) {
	f, err := r.plugged.file.read()
	var out []PluginInstall
	var errs []error
	for _, i := range f.Plugins {
		p, err := r.updated(i)
		out, errs = append(out, p), append(errs, err)
	}
	return out, errs, wrap("plugins.updateAll", "", err)
}

// installed finds an installed plugin; source is needed where two that were
// installed from directories have one name.
func (r *Runtime) installed(name, source string) (installed, error) {
	f, err := r.plugged.file.read()
	if err != nil {
		return installed{}, err
	}
	var found []installed
	for _, i := range f.Plugins {
		if i.is(name) && (source == "" || i.source() == source) {
			found = append(found, i)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return installed{}, &Error{Kind: KindNotFound, Msg: fmt.Sprintf("no plugin %q is installed", name)}
	}
	return installed{}, &Error{Kind: KindInvalidParams, Msg: fmt.Sprintf("%d plugins are called %q: give NAME@MARKETPLACE, or directSourceId", len(found), name)}
}

// UninstallPlugin forgets a plugin; its directory stays as it is.
func (r *Runtime) UninstallPlugin(name, source string) error {
	const op = "plugins.uninstall"
	i, err := r.installed(name, source)
	if err == nil {
		err = r.plugged.file.change(func(f *pluginFile) {
			f.Plugins = slices.DeleteFunc(slices.Clone(f.Plugins), func(have installed) bool {
				return have.spec() == i.spec() && have.source() == i.source()
			})
		})
	}
	return wrap(op, "", err)
}
