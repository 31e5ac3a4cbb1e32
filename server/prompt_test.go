package server_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/transom-run/transom/model/scripted"
)

// TestSystemMessageSections: sections come over the wire, and the client is asked
// for those that it changes itself.
func TestSystemMessageSections(t *testing.T) {
	w := play(t, scripted.Say("one"), scripted.Say("two"))
	c := w.connect(t)
	c.ok("session.create", obj{"sessionId": id1, "systemMessage": obj{"mode": "customize", "content": "END", "sections": obj{
		"identity": obj{"action": "transform"}, "environment_context": obj{"action": "remove"}, "tone": obj{"action": "replace", "content": "WARM"}, "mine": obj{"action": "append", "content": "MINE"},
	}}})
	c.prompt(id1, "go")
	a := c.awaitAsked(0, "systemMessage.transform")
	sections, _ := a.params["sections"].(obj)
	identity, _ := sections["identity"].(obj)
	if content, _ := identity["content"].(string); a.params["sessionId"] != id1 || len(sections) != 1 || !strings.Contains(content, "GitHub Copilot SDK") {
		t.Errorf("asked for %v", a.params)
	}
	c.answer(a, obj{"sections": obj{"identity": obj{"content": "BOTANICA"}}})
	c.idle(a.place)
	text := w.model.Requests()[0].Messages[0].Text
	if !strings.HasPrefix(text, "BOTANICA\n\nWARM\n\n") || !strings.HasSuffix(text, "\n\nMINE\n\nEND") || strings.Contains(text, "Operating System") || !strings.Contains(text, "<code_change_instructions>") {
		t.Errorf("the system message is\n%s", text)
	}
	if msg := c.fails(-32602, "session.create", obj{"systemMessage": obj{"mode": "customize", "sections": obj{"tone": obj{"action": "shout"}}}}); !strings.Contains(msg, "tone") || !strings.Contains(msg, "shout") {
		t.Error(msg)
	}
}

func TestInstructionSources(t *testing.T) {
	w := play(t, scripted.Say("one"))
	c := w.connect(t)
	dir, more := t.TempDir(), t.TempDir()
	for path, text := range map[string]string{
		filepath.Join(dir, "AGENTS.md"): "PLAIN", filepath.Join(more, ".github", "instructions", "x.instructions.md"): "---\napplyTo: '*.go'\ndescription: of go\n---\nGO",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c.ok("session.create", obj{"sessionId": id1, "workingDirectory": dir, "instructionDirectories": []any{more}})
	var out struct {
		Sources []struct {
			ID, Label, Content, SourcePath, Type, Location, Description string
			ApplyTo                                                     []string
		}
	}
	c.ok("session.instructions.getSources", obj{"sessionId": id1}, &out)
	if len(out.Sources) != 2 || out.Sources[0].Type != "repo" || out.Sources[0].SourcePath != filepath.Join(dir, "AGENTS.md") || out.Sources[1].Type != "vscode" ||
		out.Sources[1].Description != "of go" || out.Sources[1].ApplyTo[0] != "*.go" || !strings.HasPrefix(out.Sources[1].Content, "---\n") {
		t.Errorf("%+v", out.Sources)
	}
	c.ok("session.options.update", obj{"sessionId": id1, "skipCustomInstructions": true})
	c.ok("session.instructions.getSources", obj{"sessionId": id1}, &out)
	if len(out.Sources) != 0 {
		t.Errorf("skipped: %+v", out.Sources)
	}
}

// TestMessageSettings: what a message and the settings carry besides the prompt
// reaches the model.
func TestMessageSettings(t *testing.T) {
	w := play(t, scripted.Say("one"), scripted.Say("two"), scripted.Say("three"))
	c := w.connect(t)
	c.ok("session.create", obj{
		"sessionId": id1, "clientName": "app", "reasoningSummary": "auto", "enableCitations": true, "sessionLimits": obj{"maxAiCredits": 30},
		"modelCapabilities": obj{"supports": obj{"vision": false}, "limits": obj{}}, "defaultAgent": obj{"excludedTools": []any{"hidden"}},
		"tools": []any{hostTool("shown"), hostTool("hidden")},
	})
	image := obj{"type": "blob", "mimeType": "image/png", "data": "QUJD", "displayName": "p.png"}
	c.ok("session.send", obj{"sessionId": id1, "prompt": "see", "attachments": []any{image, obj{"type": "github_reference", "number": 7, "referenceType": "issue", "state": "open", "title": "T", "url": "U"}}})
	c.idle(0)
	c.ok("session.model.switchTo", obj{"sessionId": id1, "modelId": "m", "modelCapabilities": obj{"supports": obj{"vision": true}}})
	from := c.count()
	c.prompt(id1, "again")
	c.idle(from)
	r := w.model.Requests()
	if r[0].Headers["User-Agent"] != "transom (app)" || r[0].ReasoningSummary != "auto" || !r[0].Citations || len(r[0].Tools) != 1 {
		t.Errorf("%+v", r[0])
	}
	if m := r[0].Messages; len(m[1].Images) != 0 || !strings.Contains(m[1].Text, "see\n\n\n\n<github_references>\n#7 - T [issue] [open] (U)\n</github_references>") || !strings.Contains(m[2].Text, "30 AI credits") {
		t.Errorf("%+v", m)
	}
	if m := r[1].Messages; len(m[1].Images) != 1 || m[1].Images[0].Name != "p.png" {
		t.Errorf("%+v", m)
	}
	types, _ := c.events(id1, true)
	for _, typ := range types {
		if typ == "session.warning" {
			t.Error("a warning though everything is served")
		}
	}
	c.fails(-32602, "session.send", obj{"sessionId": id1, "prompt": "x", "attachments": []any{obj{"type": "file"}}})
	id2 := "22222222-2222-4222-8222-222222222222"
	c.ok("session.create", obj{"sessionId": id2, "reasoningEffort": "high", "modelCapabilities": obj{
		"supports": obj{"reasoningEffort": false, "adaptive_thinking": "optional"},
		"limits":   obj{"max_output_tokens": 5, "max_prompt_tokens": 777, "vision": obj{"max_prompt_image_size": 9}},
	}})
	var warning struct{ Message string }
	c.awaitEvent("session.warning", &warning)
	if !strings.Contains(warning.Message, "modelCapabilities.supports.adaptive_thinking") || strings.Contains(warning.Message, "limits") {
		t.Error(warning.Message)
	}
	from = c.count()
	c.prompt(id2, "small")
	var usage struct{ TokenLimit int }
	c.eventFrom(from, "session.usage_info", &usage)
	c.idle(from)
	if last := w.model.Requests()[2]; last.MaxOutput != 5 || last.ReasoningEffort != "" || usage.TokenLimit != 777 {
		t.Errorf("%+v, a window of %d", last, usage.TokenLimit)
	}
}

// TestModelOptions: what is said of the model with a switch, and by the options of
// a session, counts; what does not is named.
func TestModelOptions(t *testing.T) {
	w := play(t, scripted.Say("one"), scripted.Say("two"))
	c := w.connect(t)
	c.create(id1)
	c.ok("session.options.update", obj{"sessionId": id1, "reasoningSummary": "detailed", "enableCitations": true, "modelCapabilitiesOverrides": obj{"limits": obj{"max_output_tokens": 7, "max_context_window_tokens": 555}}})
	from := c.count()
	c.prompt(id1, "go")
	var usage struct{ TokenLimit int }
	c.eventFrom(from, "session.usage_info", &usage)
	c.idle(from)
	if r := w.model.Requests()[0]; r.ReasoningSummary != "detailed" || !r.Citations || r.MaxOutput != 7 || usage.TokenLimit != 555 {
		t.Errorf("%+v, a window of %d", r, usage.TokenLimit)
	}
	types, _ := c.events(id1, true)
	if slices.Contains(types, "session.warning") {
		t.Error("a warning though everything is served")
	}
	c.ok("session.model.switchTo", obj{"sessionId": id1, "modelId": "m", "contextTier": "long_context", "reasoningSummary": "concise"})
	var current struct{ ContextTier string }
	if c.ok("session.model.getCurrent", obj{"sessionId": id1}, &current); current.ContextTier != "long_context" {
		t.Errorf("the context tier is %q", current.ContextTier)
	}
	if msg := c.fails(-32602, "session.model.switchTo", obj{"sessionId": id1, "modelId": "m", "contextTier": "huge"}); !strings.Contains(msg, `"huge"`) {
		t.Error(msg)
	}
	from = c.count()
	c.prompt(id1, "again")
	c.idle(from)
	if r := w.model.Requests()[1]; r.MaxOutput != 0 || r.ReasoningSummary != "concise" {
		t.Errorf("what was said of another model counts still: %+v", r)
	}
}

// TestToolSearchSetting: tools are held back as the client says, and it can see
// which.
func TestToolSearchSetting(t *testing.T) {
	w := play(t, scripted.Say("one"), scripted.Say("two"), scripted.Say("three"), scripted.Say("four"))
	c := w.connect(t)
	never := hostTool("never")
	never["defer"] = "never"
	c.ok("session.create", obj{"sessionId": id1, "toolSearch": obj{"deferThreshold": 1}, "tools": []any{never, hostTool("later")}})
	c.prompt(id1, "go")
	c.idle(0)
	var names []string
	for _, d := range w.model.Requests()[0].Tools {
		names = append(names, d.Name)
	}
	if got := strings.Join(names, " "); got != "never tool_search_tool" {
		t.Error(got)
	}
	var out struct {
		Tools []struct {
			Name         string
			DeferLoading bool
		}
	}
	c.ok("session.tools.getCurrentMetadata", obj{"sessionId": id1}, &out)
	for _, tool := range out.Tools {
		if tool.DeferLoading != (tool.Name == "later") {
			t.Errorf("%+v", tool)
		}
	}
	if len(out.Tools) != 3 {
		t.Errorf("%+v", out.Tools)
	}
	// The client changes its mind, and sees that at once; so does the model.
	offered := func() string {
		t.Helper()
		from := c.count()
		c.prompt(id1, "go")
		c.idle(from)
		requests, names := w.model.Requests(), []string{}
		for _, d := range requests[len(requests)-1].Tools {
			names = append(names, d.Name)
		}
		slices.Sort(names)
		return strings.Join(names, " ")
	}
	for _, change := range []struct {
		search obj
		want   string
	}{
		{obj{"enabled": false}, "later never"},
		{obj{"deferThreshold": 5}, "later never"},
		{obj{"deferThreshold": 0}, "never tool_search_tool"},
	} {
		c.ok("session.options.update", in(obj{"toolSearch": change.search}))
		if got := offered(); got != change.want {
			t.Errorf("with %v the model is offered %s", change.search, got)
		}
	}
	types, _ := c.events(id1, true)
	for _, typ := range types {
		if typ == "session.warning" || typ == "session.skills_loaded" {
			t.Errorf("%s though the setting is served", typ)
		}
	}
	c.ok("session.options.update", in(obj{"toolSearch": obj{"enabled": false}}))
	c.ok("session.resume", in(obj{"tools": []any{hostTool("tool_search_tool")}}))
	if msg := c.fails(-32602, "session.options.update", in(obj{"toolSearch": obj{}})); !strings.Contains(msg, "tool_search_tool") {
		t.Error(msg)
	}
}
