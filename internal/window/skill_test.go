package window

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/model"
)

const reviewContext = "<skill-context name=\"review\">\nBase directory for this skill: /s/review\n\nBODY\n\n</skill-context>"

func loads(trigger string) event.SkillInvoked {
	return event.SkillInvoked{Name: "review", Path: "/s/review/SKILL.md", Content: "BODY\n", Trigger: trigger}
}

// The text of a skill follows the results of its batch, whenever it came; after a
// clear nothing of it is left, and a snapshot keeps it.
func TestSkillContext(t *testing.T) {
	var w Window
	n := 0
	apply := func(p event.Payload) {
		t.Helper()
		n++
		e, err := event.New(p, string(rune('a'+n)), "", time.Unix(0, 0))
		if err != nil {
			t.Fatal(err)
		}
		if w, err = w.Apply(e); err != nil {
			t.Fatal(err)
		}
	}
	apply(event.UserMessage{Content: "go", TransformedContent: "go"})
	apply(event.AssistantMessage{ToolRequests: []event.ToolRequest{
		{ToolCallID: "1", Name: "skill", Arguments: json.RawMessage(`{}`)}, {ToolCallID: "2", Name: "other", Arguments: json.RawMessage(`{}`)},
	}})
	apply(event.ToolComplete{ToolCallID: "1", Success: true, Result: &event.ToolResult{Content: "loaded"}})
	apply(loads(event.SkillByAgent))
	if w.Len() != 4 { // user, calls, one result, the skill
		t.Errorf("Len = %d", w.Len())
	}
	raw, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	var restored Window
	if err := json.Unmarshal(raw, &restored); err != nil {
		t.Fatal(err)
	}
	if err := restored.TakeMessages(string(w.AppendMessages(nil))); err != nil {
		t.Fatal(err)
	}
	w = restored
	before := w.Tokens()
	apply(event.ToolComplete{ToolCallID: "2", Success: true, Result: &event.ToolResult{Content: "done"}})
	if w.Tokens() <= before {
		t.Errorf("Tokens went from %d to %d", before, w.Tokens())
	}
	texts := func() (out []string) {
		for _, m := range w.Messages("") {
			out = append(out, string(m.Role)+" "+m.Text)
		}
		return out
	}
	want := []string{string(model.User) + " go", string(model.Assistant) + " ", string(model.ToolRole) + " loaded", string(model.ToolRole) + " done", string(model.User) + " " + reviewContext}
	if diff := cmp.Diff(want, texts()); diff != "" {
		t.Error(diff)
	}
	apply(loads(event.SkillByUser)) // its text stands in the prompt
	apply(loads(event.SkillByLoad)) // and this one's in the system message
	if diff := cmp.Diff(want, texts()); diff != "" {
		t.Error(diff)
	}
	apply(event.ContextCleared{InitialMessage: "SEED"})
	apply(loads(event.SkillByAgent)) // of a log that others wrote
	if diff := cmp.Diff([]string{string(model.User) + " SEED"}, texts()); diff != "" {
		t.Error(diff)
	}
}
