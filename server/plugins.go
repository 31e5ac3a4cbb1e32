package server

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/transom-run/transom"
)

// The methods about plugins and marketplaces.
func pluginMethods() map[string]handler {
	return map[string]handler{
		"session.plugins.list":   settled(sessionPlugins),
		"session.plugins.reload": waiting(reloadPlugins),

		"sessions.setAdditionalPlugins": aside(setPlugins),

		"plugins.list":      aside(listPlugins),
		"plugins.install":   aside(installPlugin),
		"plugins.uninstall": aside(uninstallPlugin),
		"plugins.enable":    aside(enablePlugins),
		"plugins.disable":   aside(disablePlugins),
		"plugins.update":    aside(updatePlugin),
		"plugins.updateAll": aside(updatePlugins),

		"plugins.marketplaces.add":     aside(addMarketplace),
		"plugins.marketplaces.list":    aside(listMarketplaces),
		"plugins.marketplaces.browse":  aside(browseMarketplace),
		"plugins.marketplaces.refresh": aside(refreshMarketplaces),
		"plugins.marketplaces.remove":  aside(removeMarketplace),
	}
}

type wirePlugin struct {
	Name           string `json:"name"`
	Marketplace    string `json:"marketplace"`
	Version        string `json:"version,omitempty"`
	Enabled        bool   `json:"enabled"`
	DirectSourceID string `json:"directSourceId,omitempty"`
	InstalledFrom  string `json:"installedFrom,omitempty"`
}

func pluginRow(p transom.Plugin) wirePlugin {
	return wirePlugin{p.Name, p.Marketplace, p.Version, p.Enabled, p.DirectSource, p.Live}
}

func sessionPlugins(s *transom.Session, _ *target) (any, error) {
	list := []wirePlugin{}
	for _, p := range s.Plugins() {
		list = append(list, pluginRow(p))
	}
	return map[string]any{"plugins": list}, nil
}

func reloadPlugins(ctx context.Context, s *transom.Session, _ *target) (any, error) {
	return nil, s.ReloadPlugins(ctx)
}

func listPlugins(_ context.Context, c *conn, _ *noParams) (any, error) {
	list := []wirePlugin{}
	all, err := c.srv.cfg.Runtime.InstalledPlugins()
	for _, p := range all {
		list = append(list, pluginRow(p))
	}
	return map[string]any{"plugins": list}, err
}

type pluginParams struct {
	Source           string   `json:"source"`
	WorkingDirectory string   `json:"workingDirectory"`
	Name             string   `json:"name"`
	Names            []string `json:"names"`
	DirectSourceID   string   `json:"directSourceId"`
	Force            bool     `json:"force"`
}

type installResult struct {
	Plugin             wirePlugin `json:"plugin"`
	SkillsInstalled    int        `json:"skillsInstalled"`
	PostInstallMessage string     `json:"postInstallMessage,omitempty"`
	DeprecationWarning string     `json:"deprecationWarning,omitempty"`
}

// deprecated is said of plugins that come from no marketplace: the protocol has
// them so, and the SDKs' suite ("rpc_server_plugins") looks for the word.
const deprecated = "The protocol calls it deprecated to install a plugin from its own directory: list it in a marketplace, and install NAME@MARKETPLACE."

func installPlugin(_ context.Context, c *conn, p *pluginParams) (any, error) {
	i, err := c.srv.cfg.Runtime.InstallPlugin(p.Source, p.WorkingDirectory)
	if err != nil {
		return nil, err
	}
	out := installResult{Plugin: pluginRow(i.Plugin), SkillsInstalled: i.Skills, PostInstallMessage: i.Message}
	if i.Plugin.Marketplace == "" {
		out.DeprecationWarning = deprecated
	}
	return out, nil
}

func uninstallPlugin(_ context.Context, c *conn, p *pluginParams) (any, error) {
	return nil, c.srv.cfg.Runtime.UninstallPlugin(p.Name, p.DirectSourceID)
}

func enablePlugins(_ context.Context, c *conn, p *pluginParams) (any, error) {
	return nil, c.srv.cfg.Runtime.EnablePlugins(p.Names)
}

func disablePlugins(_ context.Context, c *conn, p *pluginParams) (any, error) {
	return nil, c.srv.cfg.Runtime.DisablePlugins(p.Names)
}

type updateResult struct {
	SkillsInstalled int    `json:"skillsInstalled"`
	PreviousVersion string `json:"previousVersion,omitempty"`
	NewVersion      string `json:"newVersion,omitempty"`
}

func updatePlugin(_ context.Context, c *conn, p *pluginParams) (any, error) {
	i, err := c.srv.cfg.Runtime.UpdatePlugin(p.Name)
	return updateResult{i.Skills, i.Previous, i.Plugin.Version}, err
}

type updateRow struct {
	Name        string `json:"name"`
	Marketplace string `json:"marketplace"`
	Success     bool   `json:"success"`
	Error       string `json:"error,omitempty"`
	updateResult
}

func updatePlugins(_ context.Context, c *conn, _ *noParams) (any, error) {
	all, errs, err := c.srv.cfg.Runtime.UpdatePlugins()
	list := []updateRow{}
	for k, i := range all {
		row := updateRow{Name: i.Plugin.Name, Marketplace: i.Plugin.Marketplace, Success: errs[k] == nil}
		if errs[k] != nil {
			row.Error = errs[k].Error()
		} else {
			row.updateResult = updateResult{i.Skills, i.Previous, i.Plugin.Version}
		}
		list = append(list, row)
	}
	return map[string]any{"results": list}, err
}

func addMarketplace(_ context.Context, c *conn, p *pluginParams) (any, error) {
	name, err := c.srv.cfg.Runtime.AddMarketplace(p.Source, p.WorkingDirectory)
	return map[string]any{"name": name}, err
}

type marketRow struct {
	Name      string `json:"name"`
	Source    string `json:"source"`
	IsDefault bool   `json:"isDefault"`
}

func listMarketplaces(_ context.Context, c *conn, _ *noParams) (any, error) {
	all, err := c.srv.cfg.Runtime.Marketplaces()
	list := []marketRow{}
	for _, m := range all {
		list = append(list, marketRow{m.Name, m.Source, m.Default})
	}
	return map[string]any{"marketplaces": list}, err
}

type marketPlugin struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Version     string `json:"version,omitempty"`
}

func browseMarketplace(_ context.Context, c *conn, p *pluginParams) (any, error) {
	all, err := c.srv.cfg.Runtime.BrowseMarketplace(p.Name)
	list := []marketPlugin{}
	for _, m := range all {
		list = append(list, marketPlugin{m.Name, m.Description, m.Version})
	}
	return map[string]any{"plugins": list}, err
}

type refreshRow struct {
	Name    string `json:"name"`
	Success bool   `json:"success"`
	Error   string `json:"error,omitempty"`
}

func refreshMarketplaces(_ context.Context, c *conn, p *pluginParams) (any, error) {
	all, err := c.srv.cfg.Runtime.CheckMarketplaces(p.Name)
	list := []refreshRow{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		row := refreshRow{Name: name, Success: all[name] == nil}
		if all[name] != nil {
			row.Error = all[name].Error()
		}
		list = append(list, row)
	}
	return map[string]any{"results": list}, err
}

type removeMarketResult struct {
	Removed   bool     `json:"removed"`
	Dependent []string `json:"dependentPlugins,omitempty"`
}

func removeMarketplace(_ context.Context, c *conn, p *pluginParams) (any, error) {
	removed, dependent, err := c.srv.cfg.Runtime.RemoveMarketplace(p.Name, p.Force)
	return removeMarketResult{removed, dependent}, err
}

// additionalPlugin is a plugin of all sessions, as hosts name it.
type additionalPlugin struct {
	Name      string          `json:"name"`
	Enabled   *bool           `json:"enabled"`
	CachePath string          `json:"cache_path"`
	Source    json.RawMessage `json:"source"`
}

func setPlugins(_ context.Context, c *conn, p *struct {
	Plugins []additionalPlugin `json:"plugins"`
}) (any, error) {
	const op = "sessions.setAdditionalPlugins"
	var dirs []string
	for _, one := range p.Plugins {
		if one.Enabled != nil && !*one.Enabled {
			continue
		}
		dir := one.CachePath
		if dir == "" {
			var from struct{ Source, Path string }
			if json.Unmarshal(one.Source, &from) != nil || from.Source != "local" || strings.TrimSpace(from.Path) == "" {
				return nil, failKind(op, transom.KindUnsupported, op+": the plugin "+one.Name+" has no directory on this machine (cache_path), and Transom fetches no plugins")
			}
			dir = from.Path
		}
		dirs = append(dirs, dir)
	}
	return struct{}{}, c.srv.cfg.Runtime.PlugEverywhere(dirs)
}
