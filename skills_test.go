package transom_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/eventlog/memlog"
	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/tool"
)

const skillBody = "Always say PINEAPPLE.\n"

// skilled makes a directory with the skills review and tidy.
func skilled(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	put(t, filepath.Join(dir, "review", "SKILL.md"), "---\nname: review\ndescription: Reviews code.\nargument-hint: '[file]'\n---\n\n"+skillBody)
	put(t, filepath.Join(dir, "tidy", "SKILL.md"), "---\nname: tidy\ndescription: Tidies up.\nuser-invocable: false\n---\n\nTidy $ARGUMENTS.")
	return dir
}

func calls(name, args string) model.Message {
	return model.Message{Calls: []model.Call{{ID: name + args, Name: name, Arguments: args}}}
}

// sent is every text of the newest request, and toolText what the model reads of
// a tool.
func (s *script) sent() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for _, m := range s.requests[len(s.requests)-1].Messages {
		b.WriteString(string(m.Role) + ": " + m.Text + "\n")
	}
	return b.String()
}

func (s *script) toolText(name string) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.requests[len(s.requests)-1].Tools {
		if d.Name == name {
			return d.Description, true
		}
	}
	return "", false
}

func skillSession(t *testing.T, ctx context.Context, sc *script, cfg transom.SessionConfig) (*transom.Runtime, *transom.Session) {
	t.Helper()
	home := t.TempDir()
	rt, err := transom.Open(transom.Config{Store: memlog.New(), Provider: sc, Dir: t.TempDir(), ApproveAll: true, Getenv: func(name string) string {
		if name == "HOME" {
			return home
		}
		return ""
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rt.Close(context.WithoutCancel(ctx)) })
	s, err := rt.CreateSession(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return rt, s
}

// The model reads names and descriptions, and the text once it has loaded a skill.
// After a clear nothing of that text is left, and it can be loaded again.
func TestSkillAndClear(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	sc := &script{replies: []model.Message{
		calls("skill", `{"skill":"review"}`), {Text: "PINEAPPLE"},
		calls("clear", `{}`), {Text: "fresh"},
		calls("skill", `{"skill":"review"}`), {Text: "PINEAPPLE"},
	}}
	var s *transom.Session
	clear := tool.Tool{Name: "clear", IsTerminal: true, Handler: func(ctx context.Context, _ tool.Call) (tool.Result, error) {
		_, err := s.History().ClearContext(ctx, "SEED")
		return tool.Result{Text: "cleared"}, err
	}}
	dir := skilled(t)
	_, s = skillSession(t, ctx, sc, transom.SessionConfig{Tools: []tool.Tool{clear}, Skills: transom.SkillConfig{Directories: []string{dir}}})
	events := s.Subscribe()
	defer events.Close()

	sendAndWait(t, ctx, s)
	text, ok := sc.toolText("skill")
	if !ok || !strings.Contains(text, "- review: Reviews code.") || strings.Contains(text, "PINEAPPLE") {
		t.Errorf("the tool skill reads\n%s", text)
	}
	body := "user: <skill-context name=\"review\">\nBase directory for this skill: " + filepath.Join(dir, "review") + "\n\n" + skillBody + "\n</skill-context>\n"
	if got := sc.sent(); !strings.HasSuffix(got, "Skill \"review\" loaded successfully. Follow the instructions in the skill context.\n"+body) {
		t.Errorf("the model was sent\n%s", got)
	}
	sendAndWait(t, ctx, s) // clears
	if got := sc.sent(); strings.Contains(got, "PINEAPPLE") || !strings.HasSuffix(got, "SEED\n") {
		t.Errorf("after the clear the model was sent\n%s", got)
	}
	sendAndWait(t, ctx, s)
	if got := sc.sent(); !strings.HasSuffix(got, body) {
		t.Errorf("loaded again, the model was sent\n%s", got)
	}
	invoked, err := s.InvokedSkills()
	if err != nil || len(invoked) != 2 || invoked[0].Content != skillBody || invoked[0].Turn != 1 || invoked[1].Turn != 5 {
		t.Errorf("invoked: %+v, %v", invoked, err)
	}
	var order []string
	for e, err := range events.All(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Type == event.TypeToolComplete || e.Type == event.TypeSkillInvoked || e.Type == event.TypeTurnEnd {
			order = append(order, e.Type)
		}
		if e.Type == event.TypeSessionIdle {
			break
		}
	}
	if diff := cmp.Diff([]string{event.TypeToolComplete, event.TypeSkillInvoked, event.TypeTurnEnd, event.TypeTurnEnd}, order); diff != "" {
		t.Error(diff)
	}
}

// A skill that is loaded beside a clear in one batch is an orphan, text and all.
func TestSkillBesideClear(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	hold := make(chan struct{})
	sc := &script{replies: []model.Message{
		{Calls: []model.Call{{ID: "1", Name: "clear", Arguments: "{}"}, {ID: "2", Name: "skill", Arguments: `{"skill":"review"}`}}},
		{Text: "fresh"}, {Text: "next"},
	}}
	var s *transom.Session
	clear := tool.Tool{Name: "clear", Handler: func(ctx context.Context, _ tool.Call) (tool.Result, error) {
		_, err := s.History().ClearContext(ctx, "SEED")
		close(hold)
		return tool.Result{Text: "cleared"}, err
	}}
	hook := func(ctx context.Context, kind string, in json.RawMessage) (json.RawMessage, error) {
		if kind == "preToolUse" && strings.Contains(string(in), `"skill"`) {
			select { // the skill runs once the context is cleared
			case <-hold:
			case <-ctx.Done():
			}
		}
		return nil, nil
	}
	_, s = skillSession(t, ctx, sc, transom.SessionConfig{Tools: []tool.Tool{clear}, OnHook: hook, Skills: transom.SkillConfig{Directories: []string{skilled(t)}}})
	sendAndWait(t, ctx, s)
	sendAndWait(t, ctx, s)
	if got := sc.sent(); strings.Contains(got, "PINEAPPLE") || strings.Contains(got, "skill-context") {
		t.Errorf("the new window holds the skill's text:\n%s", got)
	}
}

// Skills come and go while the session lives; the model is offered what there is.
func TestSkillToggle(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	dir := skilled(t)
	sc := &script{replies: append([]model.Message{{Text: "ok"}, {Text: "ok"}, {Text: "ok"}, calls("skill", `{"skill":"review"}`)}, texts(5)...)}
	rt, s := skillSession(t, ctx, sc, transom.SessionConfig{Skills: transom.SkillConfig{Directories: []string{dir}, Disabled: []string{"REVIEW"}}})
	offered := func(want ...string) {
		t.Helper()
		sendAndWait(t, ctx, s)
		var got []string
		text, _ := sc.toolText("skill")
		for _, name := range []string{"review", "tidy", "late"} {
			if strings.Contains(text, "- "+name+":") {
				got = append(got, name)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("the model is offered %v, want %v", got, want)
		}
	}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	offered("tidy")
	check(s.EnableSkill(ctx, "review"))
	check(s.DisableSkill(ctx, "tidy"))
	offered("review")
	check(s.DisableSkill(ctx, "review"))
	offered()
	if _, there := sc.toolText("skill"); there {
		t.Error("with no skill to load the tool skill is offered all the same")
	}
	check(s.DisableSkill(ctx, "late"))
	if err := s.EnableSkill(ctx, "nothing"); err == nil || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("enabling a skill that there is not: %v", err)
	}
	put(t, filepath.Join(dir, "late", "SKILL.md"), "---\nname: late\ndescription: L\n---\nx")
	put(t, filepath.Join(dir, "broken", "SKILL.md"), "---\nname: broken\n")
	problems, err := s.ReloadSkills(ctx)
	check(err)
	if len(problems.Errors) != 1 || !strings.Contains(problems.Errors[0], "broken") {
		t.Errorf("problems: %+v", problems)
	}
	check(s.EnableSkill(ctx, "late"))
	offered("late") // the model calls review all the same
	if got := sc.sent(); !strings.Contains(got, `Tool 'skill'`) && !strings.Contains(got, `The skill "review" is disabled. There are: late.`) {
		t.Errorf("the model was sent\n%s", got)
	}
	off := false
	check(s.Resume(ctx, transom.ResumeConfig{Skills: transom.SkillConfig{Enabled: &off}}))
	offered()
	if n := len(s.Skills()); n != 0 {
		t.Errorf("%d skills where they are off", n)
	}
	_ = rt
}

// A user begins a skill by its slash command: its text is the prompt, and the
// window holds it once.
func TestSkillByUser(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	dir := skilled(t)
	sc := &script{replies: texts(9)}
	_, s := skillSession(t, ctx, sc, transom.SessionConfig{Skills: transom.SkillConfig{Directories: []string{dir}}})
	if _, err := s.SkillPrompt("tidy", ""); err == nil || !strings.Contains(err.Error(), "for the model alone") {
		t.Errorf("tidy: %v", err)
	}
	m, err := s.SkillPrompt("review", "main.go")
	if err != nil || m.DisplayPrompt != "/review main.go" || !strings.HasSuffix(m.Prompt, "</skill-context>\n\nmain.go") {
		t.Fatalf("%+v, %v", m, err)
	}
	if _, err := s.SendAndWait(ctx, m); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(sc.sent(), "PINEAPPLE"); n != 1 {
		t.Errorf("the text stands in the window %d times", n)
	}
	events := s.Subscribe()
	defer events.Close()
	if err := s.Do(ctx, transom.SlashCommand{Text: "/review other.go"}); err != nil {
		t.Fatal(err)
	}
	var seen []string
	for e, err := range events.All(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		switch p := e.Payload.(type) {
		case event.SkillInvoked:
			seen = append(seen, "skill "+p.Name+" "+p.Trigger)
		case event.UserMessage:
			seen = append(seen, p.Content)
		}
		if e.Type == event.TypeSessionIdle {
			break
		}
	}
	if diff := cmp.Diff([]string{"skill review user-invoked", "/review other.go"}, seen); diff != "" {
		t.Error(diff)
	}
	var names []string
	for _, c := range s.Commands() {
		if c.Skill {
			names = append(names, c.Name+" "+c.Hint)
		}
	}
	if diff := cmp.Diff([]string{"review [file]"}, names); diff != "" {
		t.Error(diff)
	}
}

// With discovery the skills of the project and of the user's homes count, in that
// order, and follow the working directory; without it they do not.
func TestSkillDiscovery(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	repo, home, state := t.TempDir(), t.TempDir(), t.TempDir()
	put(t, filepath.Join(repo, ".git", "HEAD"), "")
	skill := func(dir, name, says string) {
		put(t, filepath.Join(dir, name, "SKILL.md"), "---\nname: "+name+"\ndescription: "+says+"\n---\nx")
	}
	skill(filepath.Join(repo, ".claude", "skills"), "a", "around")
	skill(filepath.Join(repo, "sub", ".github", "skills"), "b", "sub")
	skill(filepath.Join(state, "skills"), "b", "mine")
	skill(filepath.Join(state, "skills"), "c", "mine")
	skill(filepath.Join(home, ".agents", "skills"), "d", "agents")
	rt, err := transom.Open(transom.Config{Home: state, Provider: &script{}, Dir: repo, Getenv: func(name string) string {
		if name == "HOME" {
			return home
		}
		return ""
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close(ctx)
	list := func(s *transom.Session) (out []string) {
		for _, k := range s.Skills() {
			out = append(out, k.Name+" "+k.Source+" "+k.Description)
		}
		return out
	}
	sub := filepath.Join(repo, "sub")
	plain, err := rt.CreateSession(ctx, transom.SessionConfig{Dir: sub})
	if err != nil {
		t.Fatal(err)
	}
	if got := list(plain); got != nil {
		t.Errorf("without discovery: %q", got)
	}
	s, err := rt.CreateSession(ctx, transom.SessionConfig{Dir: sub, ConfigDiscovery: true})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"b project sub", "a inherited around", "c personal-copilot mine", "d personal-agents agents"}, list(s)); diff != "" {
		t.Error(diff)
	}
	if err := s.Configure(ctx, transom.Configure{Dir: &repo}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a project around", "b personal-copilot mine", "c personal-copilot mine", "d personal-agents agents"}, list(s)); diff != "" {
		t.Error(diff)
	}
	if err := rt.SetSkillDisabled("A", true); err != nil {
		t.Fatal(err)
	}
	found, _ := rt.DiscoverSkills(transom.SkillQuery{Projects: []string{repo}, ProjectsOnly: true})
	if len(found) != 1 || found[0].Name != "a" || found[0].Enabled || found[0].ProjectPath != repo {
		t.Errorf("found %+v", found)
	}
	if err := rt.DisableSkills(nil); err != nil {
		t.Fatal(err)
	}
	if found, _ = rt.DiscoverSkills(transom.SkillQuery{Projects: []string{repo}}); len(found) != 4 || !found[0].Enabled {
		t.Errorf("found %+v", found)
	}
	paths := rt.SkillPaths([]string{repo}, false)
	if len(paths) != 5 || paths[0] != (transom.DiscoveryPath{Path: filepath.Join(repo, ".github", "skills"), Scope: "project", Project: repo, Preferred: true}) {
		t.Errorf("paths %+v", paths)
	}
}
