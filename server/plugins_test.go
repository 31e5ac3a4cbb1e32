package server_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

type pluginRow struct {
	Name, Marketplace, Version, DirectSourceID, InstalledFrom string
	Enabled                                                   bool
}

// Marketplaces and plugins over the protocol, and the plugins of a session.
func TestPlugins(t *testing.T) {
	w := play(t)
	c := w.connect(t)
	dir := t.TempDir()
	writeSkill(t, filepath.Join(dir, "p", "skills"), "of-p", "x")
	writeFile(t, filepath.Join(dir, "p", "plugin.json"), `{"name":"p","version":"1.0"}`)
	writeFile(t, filepath.Join(dir, "p", "hooks.json"), `{"hooks":{"preToolUse":[{"bash":"true"}],"notification":[{"bash":"true"}]}}`)
	writeFile(t, filepath.Join(dir, "marketplace.json"), `{"name":"m","plugins":[{"name":"p","source":"./p","description":"d"}]}`)

	var added struct{ Name string }
	c.ok("plugins.marketplaces.add", obj{"source": dir}, &added)
	var markets struct {
		Marketplaces []struct {
			Name, Source string
			IsDefault    bool
		}
	}
	if c.ok("plugins.marketplaces.list", obj{}, &markets); added.Name != "m" || len(markets.Marketplaces) == 0 || markets.Marketplaces[0].Name != "m" || markets.Marketplaces[0].Source != "Local: "+dir {
		t.Errorf("%+v, %+v", added, markets)
	}
	var browsed struct {
		Plugins []struct{ Name, Description string }
	}
	if c.ok("plugins.marketplaces.browse", obj{"name": "m"}, &browsed); len(browsed.Plugins) != 1 || browsed.Plugins[0].Description != "d" {
		t.Errorf("%+v", browsed)
	}
	var refreshed struct {
		Results []struct {
			Name    string
			Success bool
		}
	}
	if c.ok("plugins.marketplaces.refresh", obj{"name": "m"}, &refreshed); len(refreshed.Results) != 1 || !refreshed.Results[0].Success {
		t.Errorf("%+v", refreshed)
	}
	var install struct {
		Plugin             pluginRow
		SkillsInstalled    int
		DeprecationWarning *string
	}
	c.ok("plugins.install", obj{"source": "p@m"}, &install)
	if want := (pluginRow{"p", "m", "1.0", "", dir, true}); install.Plugin != want || install.SkillsInstalled != 1 || install.DeprecationWarning != nil {
		t.Errorf("%+v", install)
	}
	var list struct{ Plugins []pluginRow }
	c.ok("plugins.disable", obj{"names": []string{"p@m"}})
	if c.ok("plugins.list", obj{}, &list); len(list.Plugins) != 1 || list.Plugins[0].Enabled {
		t.Errorf("%+v", list)
	}
	c.ok("plugins.enable", obj{"names": []string{"p@m"}})
	var updated struct {
		PreviousVersion, NewVersion string
		SkillsInstalled             int
		Results                     []struct {
			Name    string
			Success bool
		}
	}
	if c.ok("plugins.update", obj{"name": "p@m"}, &updated); updated.PreviousVersion != "1.0" || updated.NewVersion != "1.0" || updated.SkillsInstalled != 1 {
		t.Errorf("%+v", updated)
	}
	if c.ok("plugins.updateAll", obj{}, &updated); len(updated.Results) != 1 || !updated.Results[0].Success {
		t.Errorf("%+v", updated)
	}
	var hooks struct {
		Hooks []struct {
			ID, HookType, Origin, Source string
			Enabled                      bool
		}
		Warnings, Errors []string
	}
	if c.ok("hooks.discover", obj{}, &hooks); len(hooks.Hooks) != 1 || hooks.Hooks[0].ID == "" || hooks.Hooks[0].HookType != "preToolUse" ||
		hooks.Hooks[0].Origin != "plugin" || hooks.Hooks[0].Source != "p" || !hooks.Hooks[0].Enabled || len(hooks.Warnings) != 1 || hooks.Errors == nil {
		t.Errorf("%+v", hooks)
	}
	c.ok("plugins.install", obj{"source": filepath.Join(dir, "p")}, &install)
	if install.DeprecationWarning == nil || !strings.Contains(*install.DeprecationWarning, "deprecated") || install.Plugin.Marketplace != "" {
		t.Errorf("%+v", install)
	}
	c.ok("plugins.uninstall", obj{"name": "p", "directSourceId": install.Plugin.DirectSourceID})
	var removed struct {
		Removed          bool
		DependentPlugins []string
	}
	if c.ok("plugins.marketplaces.remove", obj{"name": "m"}, &removed); removed.Removed || len(removed.DependentPlugins) != 1 {
		t.Errorf("%+v", removed)
	}
	if msg := c.fails(-32014, "plugins.install", obj{"source": "owner/repo"}); !strings.Contains(msg, "Clone it") {
		t.Error(msg)
	}
	c.fails(-32014, "sessions.setAdditionalPlugins", obj{"plugins": []obj{{"name": "x", "source": obj{"source": "github", "repo": "o/r"}}}})

	c.ok("sessions.setAdditionalPlugins", obj{"plugins": []obj{{"name": "p", "enabled": true, "cache_path": filepath.Join(dir, "p")}}})
	c.ok("session.create", in(obj{}))
	var skills struct{ Skills []skillRow }
	c.ok("session.skills.list", in(nil), &skills)
	if c.ok("session.plugins.list", in(nil), &list); len(list.Plugins) != 1 || list.Plugins[0].Name != "p" || len(skills.Skills) != 1 || skills.Skills[0].Source != "plugin" {
		t.Errorf("plugins %+v, skills %+v", list, skills)
	}
	c.ok("sessions.setAdditionalPlugins", obj{"plugins": []obj{}})
	if c.ok("session.plugins.reload", in(nil)); true {
		if c.ok("session.plugins.list", in(nil), &list); len(list.Plugins) != 0 {
			t.Errorf("plugins %+v", list)
		}
	}
}

// Instructions outside of any session.
func TestInstructionsDiscover(t *testing.T) {
	w := play(t)
	c := w.connect(t)
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "AGENTS.md"), "PLAIN")
	var found struct {
		Sources []struct{ ID, Label, SourcePath, ProjectPath, Content string }
	}
	c.ok("instructions.discover", obj{"projectPaths": []string{dir}}, &found)
	if len(found.Sources) != 1 || found.Sources[0].Content != "PLAIN" || found.Sources[0].ProjectPath != dir {
		t.Errorf("%+v", found)
	}
	var paths struct {
		Paths []struct {
			Path, Kind, Location, ProjectPath string
			PreferredForCreation              bool
		}
	}
	c.ok("instructions.getDiscoveryPaths", obj{"projectPaths": []string{dir}}, &paths)
	if n := len(paths.Paths); n != 4 || !paths.Paths[0].PreferredForCreation || paths.Paths[n-1].Kind != "directory" || paths.Paths[0].Kind != "file" {
		t.Errorf("%+v", paths)
	}
	if c.ok("instructions.getDiscoveryPaths", obj{}, &paths); len(paths.Paths) != 0 {
		t.Errorf("without a project: %+v", paths)
	}
}
