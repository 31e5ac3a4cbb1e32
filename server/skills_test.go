package server_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/transom-run/transom/model/scripted"
)

func writeSkill(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name, "SKILL.md")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("---\nname: "+name+"\ndescription: Does "+name+".\n---\n\n"+text+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

type skillRow struct {
	Name, CommandName, Description, Source, Path, ProjectPath string
	Enabled, UserInvocable                                    bool
}

// The skills of a session over the protocol: told of after the start, listed,
// switched, read anew, loaded by the model, begun by a user.
func TestSkills(t *testing.T) {
	w := play(t, scripted.Call("skill", `{"skill":"review"}`), scripted.Say("done"))
	c := w.connect(t)
	dir := t.TempDir()
	path := writeSkill(t, dir, "review", "BODY")
	c.ok("session.create", in(obj{"skillDirectories": []string{dir}, "disabledSkills": []string{"review"}, "requestPermission": false}))
	var list, told struct{ Skills []skillRow }
	c.awaitEvent("session.skills_loaded", &told)
	c.ok("session.skills.list", in(nil), &list)
	want := skillRow{Name: "review", CommandName: "review", Description: "Does review.", Source: "custom", Path: path, UserInvocable: true}
	if len(list.Skills) != 1 || list.Skills[0] != want || len(told.Skills) != 1 || told.Skills[0] != want {
		t.Fatalf("listed %+v, told %+v", list.Skills, told.Skills)
	}
	at := c.count()
	c.ok("session.skills.enable", in(obj{"name": "review"}))
	c.eventFrom(at, "session.skills_loaded", &told)
	if c.ok("session.skills.list", in(nil), &list); !list.Skills[0].Enabled || !told.Skills[0].Enabled {
		t.Errorf("enabled: %+v, told %+v", list.Skills, told.Skills)
	}
	writeSkill(t, dir, "other", "x")
	var problems struct{ Warnings, Errors []string }
	c.ok("session.skills.reload", in(nil), &problems)
	c.ok("session.skills.ensureLoaded", in(nil))
	if c.ok("session.skills.list", in(nil), &list); len(list.Skills) != 2 || problems.Errors == nil || problems.Warnings == nil {
		t.Errorf("reloaded: %+v, %+v", list.Skills, problems)
	}
	c.ok("session.skills.disable", in(obj{"name": "other"}))

	c.prompt(id1, "go")
	c.idle(0)
	var invoked struct {
		Skills []struct {
			Name, Path, Content string
			InvokedAtTurn       int
		}
	}
	c.ok("session.skills.getInvoked", in(nil), &invoked)
	if len(invoked.Skills) != 1 || invoked.Skills[0].Path != path || invoked.Skills[0].Content != "BODY\n" || invoked.Skills[0].InvokedAtTurn != 1 {
		t.Errorf("invoked: %+v", invoked.Skills)
	}

	var commands struct{ Commands []struct{ Name, Kind string } }
	c.ok("session.commands.list", in(obj{"includeBuiltins": false, "includeClientCommands": false}), &commands)
	if len(commands.Commands) != 1 || commands.Commands[0].Name != "review" || commands.Commands[0].Kind != "skill" {
		t.Errorf("commands: %+v", commands.Commands)
	}
	var begun struct{ Kind, Prompt, DisplayPrompt string }
	c.ok("session.commands.invoke", in(obj{"name": "/review", "input": "it"}), &begun)
	if begun.Kind != "agent-prompt" || begun.DisplayPrompt != "/review it" || !strings.Contains(begun.Prompt, "BODY") || !strings.HasSuffix(begun.Prompt, "\n\nit") {
		t.Errorf("%+v", begun)
	}
	c.fails(-32010, "session.skills.enable", in(obj{"name": "nobody"}))
	c.fails(-32602, "session.skills.disable", in(obj{"name": " "}))
}

// Skills outside of any session.
func TestSkillsDiscover(t *testing.T) {
	w := play(t)
	c := w.connect(t)
	project, dir := t.TempDir(), t.TempDir()
	writeSkill(t, filepath.Join(project, ".github", "skills"), "mine", "x")
	writeSkill(t, dir, "theirs", "x")
	find := func(params obj) (rows []skillRow) {
		t.Helper()
		var list struct {
			Skills []skillRow
			Errors []string
		}
		c.ok("skills.discover", params, &list)
		if list.Errors == nil {
			t.Error("errors are null")
		}
		return list.Skills
	}
	if rows := find(obj{"projectPaths": []string{project}, "skillDirectories": []string{dir}, "excludeHostSkills": true}); len(rows) != 1 || rows[0].ProjectPath != project || rows[0].Source != "project" {
		t.Errorf("of the project: %+v", rows)
	}
	c.ok("skills.config.setSkillDisabled", obj{"name": "theirs", "disabled": true})
	if rows := find(obj{"skillDirectories": []string{dir}}); len(rows) == 0 || rows[0].Name != "theirs" || rows[0].Enabled {
		t.Errorf("of a directory: %+v", rows)
	}
	c.ok("skills.config.setDisabledSkills", obj{"disabledSkills": []string{}})
	if rows := find(obj{"skillDirectories": []string{dir}}); len(rows) == 0 || !rows[0].Enabled {
		t.Errorf("enabled again: %+v", rows)
	}
	var paths struct {
		Paths []struct {
			Path, Scope, ProjectPath string
			PreferredForCreation     bool
		}
	}
	c.ok("skills.getDiscoveryPaths", obj{"projectPaths": []string{project}, "excludeHostSkills": true}, &paths)
	if len(paths.Paths) != 3 || !paths.Paths[0].PreferredForCreation || paths.Paths[1].PreferredForCreation || paths.Paths[0].ProjectPath != project {
		t.Errorf("%+v", paths.Paths)
	}
	c.fails(-32602, "skills.config.setSkillDisabled", obj{"disabled": true})
}
