package transom_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/event"
)

// pluginAt makes a plugin with one skill that has the plugin's name.
func pluginAt(t *testing.T, dir, name, version string) string {
	t.Helper()
	put(t, filepath.Join(dir, "plugin.json"), `{"name":"`+name+`","version":"`+version+`"}`)
	put(t, filepath.Join(dir, "skills", name+"-skill", "SKILL.md"), "---\nname: "+name+"-skill\ndescription: d\n---\nx")
	return dir
}

func skillNames(s *transom.Session) (out []string) {
	for _, k := range s.Skills() {
		out = append(out, k.PluginName+"/"+k.Name)
	}
	return out
}

// A session has the plugins that its host named, and, where it looks for them,
// those that are installed; what of them cannot be used is told.
func TestPlugins(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	home, dir := t.TempDir(), t.TempDir()
	all := pluginAt(t, t.TempDir(), "all", "1")
	open := func() *transom.Runtime {
		rt, err := transom.Open(transom.Config{Home: home, Provider: &script{}, Dir: dir, PluginDirectories: []string{all}, Getenv: func(string) string { return "" }})
		if err != nil {
			t.Fatal(err)
		}
		return rt
	}
	rt := open()
	named := pluginAt(t, filepath.Join(dir, "named"), "named", "1")
	put(t, filepath.Join(named, "hooks.json"), `{"hooks":{"notification":[{"bash":"x"}]}}`)
	direct := pluginAt(t, filepath.Join(dir, "direct"), "direct", "1")
	if _, err := rt.InstallPlugin("direct", ""); err != nil {
		t.Fatal(err)
	}
	s, err := rt.CreateSession(ctx, transom.SessionConfig{PluginDirectories: []string{"named", "nowhere"}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"named/named-skill", "all/all-skill"}, skillNames(s)); diff != "" {
		t.Error(diff)
	}
	for e, err := range s.Events().All(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		if w, ok := e.Payload.(event.SessionWarning); ok {
			if !strings.Contains(w.Message, "nowhere") || !strings.Contains(w.Message, `hooks of "notification" are not run`) {
				t.Errorf("the warning reads %s", w.Message)
			}
			break
		}
	}
	other, err := rt.CreateSession(ctx, transom.SessionConfig{ConfigDiscovery: true})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"all/all-skill", "direct/direct-skill"}, skillNames(other)); diff != "" {
		t.Error(diff)
	}
	put(t, filepath.Join(direct, "skills", "more", "SKILL.md"), "---\nname: more\ndescription: d\n---\nx")
	if err := other.ReloadPlugins(ctx); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"all/all-skill", "direct/direct-skill", "direct/more"}, skillNames(other)); diff != "" {
		t.Error(diff)
	}
	if err := rt.PlugEverywhere([]string{filepath.Join(dir, "nowhere")}); !errors.Is(err, &transom.Error{Kind: transom.KindInvalidParams}) {
		t.Errorf("a plugin that there is not: %v", err)
	}
	if hooks, problems := rt.PluginHooks(); hooks != nil || problems != nil {
		t.Errorf("hooks of installed plugins: %v, %q", hooks, problems)
	}
	if err := rt.Close(ctx); err != nil {
		t.Fatal(err)
	}
	rt = open() // what is installed outlives the process
	defer rt.Close(ctx)
	if all, err := rt.InstalledPlugins(); err != nil || len(all) != 1 || all[0].Name != "direct" || all[0].DirectSource == "" {
		t.Errorf("installed: %+v, %v", all, err)
	}
}

func TestPluginStore(t *testing.T) {
	home, dir := t.TempDir(), t.TempDir()
	rt, err := transom.Open(transom.Config{Home: home, Provider: &script{}, Dir: dir, Getenv: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close(context.Background())
	market := filepath.Join(dir, "market")
	pluginAt(t, filepath.Join(market, "p"), "p", "1.0")
	put(t, filepath.Join(market, "marketplace.json"), `{"name":"m","plugins":[{"name":"p","source":"./p","description":"d"},{"name":"far","source":{"source":"github","repo":"o/r"}}]}`)
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	if name, err := rt.AddMarketplace("market", ""); err != nil || name != "m" {
		t.Fatalf("%q, %v", name, err)
	}
	if _, err := rt.AddMarketplace("market", ""); err != nil {
		t.Errorf("the same once more: %v", err)
	}
	i, err := rt.InstallPlugin("p@m", "")
	check(err)
	want := transom.PluginInstall{Plugin: transom.Plugin{Name: "p", Version: "1.0", Marketplace: "m", Enabled: true, Dir: filepath.Join(market, "p"), Live: market}, Skills: 1, Message: i.Message}
	if diff := cmp.Diff(want, i); diff != "" {
		t.Error(diff)
	}
	check(rt.DisablePlugins([]string{"p@m", "unknown"}))
	put(t, filepath.Join(market, "p", "plugin.json"), `{"name":"p","version":"2.0"}`)
	if i, err = rt.UpdatePlugin("p"); err != nil || i.Previous != "1.0" || i.Plugin.Version != "2.0" || i.Plugin.Enabled {
		t.Errorf("%+v, %v", i, err)
	}
	if all, errs, err := rt.UpdatePlugins(); err != nil || len(all) != 1 || errs[0] != nil || all[0].Previous != "2.0" {
		t.Errorf("%+v, %v, %v", all, errs, err)
	}
	check(rt.EnablePlugins([]string{"p"}))
	if all, err := rt.InstalledPlugins(); err != nil || len(all) != 1 || !all[0].Enabled || all[0].Version != "2.0" {
		t.Errorf("%+v, %v", all, err)
	}
	removed, dependent, err := rt.RemoveMarketplace("m", false)
	if removed || err != nil || len(dependent) != 1 {
		t.Errorf("removed %v, %q, %v", removed, dependent, err)
	}
	for _, c := range []struct {
		source string
		kind   transom.Kind
	}{
		{"far@m", transom.KindUnsupported}, {"none@m", transom.KindNotFound}, {"p@none", transom.KindNotFound}, {"owner/repo", transom.KindUnsupported},
		{"https://example.com/x.git", transom.KindUnsupported}, {"git@example.com:o/r.git", transom.KindUnsupported}, {"./nowhere", transom.KindNotFound},
		{market, transom.KindInvalidParams}, {"", transom.KindInvalidParams},
	} {
		if _, err := rt.InstallPlugin(c.source, ""); !errors.Is(err, &transom.Error{Kind: c.kind}) {
			t.Errorf("%q: %v, want %s", c.source, err, c.kind)
		}
	}
	if removed, _, err := rt.RemoveMarketplace("m", true); !removed || err != nil {
		t.Errorf("removed %v, %v", removed, err)
	}
	if all, err := rt.InstalledPlugins(); err != nil || len(all) != 0 {
		t.Errorf("%+v, %v", all, err)
	}
	if _, _, err := rt.RemoveMarketplace("home", true); !errors.Is(err, &transom.Error{Kind: transom.KindWrongState}) {
		t.Error(err)
	}
	// The marketplace of the home is there, whether somebody has filled it or not.
	if list, err := rt.BrowseMarketplace("home"); err != nil || list != nil {
		t.Errorf("%+v, %v", list, err)
	}
	pluginAt(t, filepath.Join(home, "marketplace", "q"), "q", "3")
	put(t, filepath.Join(home, "marketplace", "marketplace.json"), `{"name":"mine","plugins":[{"name":"q","source":"./q"}]}`)
	if i, err := rt.InstallPlugin("q@home", ""); err != nil || i.Plugin.Version != "3" {
		t.Errorf("%+v, %v", i, err)
	}
	if all, err := rt.CheckMarketplaces(""); err != nil || len(all) != 1 || all["home"] != nil {
		t.Errorf("%v, %v", all, err)
	}
	check(rt.UninstallPlugin("q@home", ""))
	if err := rt.UninstallPlugin("q@home", ""); !errors.Is(err, &transom.Error{Kind: transom.KindNotFound}) {
		t.Error(err)
	}
}
