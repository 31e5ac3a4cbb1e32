package modelfile

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/transom-run/transom/model"
)

const weather = `
models: [demo]
errors:
  - {model: broken, status: 500}
conversations:
  - messages:
      - {role: system, content: "${system}"}
      - {role: user, content: "Read ${workdir}/a.txt"}
      - role: assistant
        content: First.
        tool_calls: [{id: toolcall_0, function: {name: "${shell}", arguments: '{"p":"${workdir}/a.txt"}'}}]
      - role: assistant
        tool_calls: [{id: toolcall_1, function: {name: look, arguments: ""}}]
      - {role: tool, tool_call_id: toolcall_0, content: "Tool 'x' does not exist. Available are y."}
      - {role: tool, tool_call_id: toolcall_1, content: '{"a":1,"b":2}'}
      - {role: assistant, content: Done.}
  - messages:
      - {role: system, content: "${system}"}
      - {role: user, content: Silence}
  - when: {user: {contains: weather}}
    replies:
      - {content: one, repeat: 2}
      - {content: two}
  - when: {user: {equals: Fresh start}}
    replies: [{content: fresh}]
`

func user(s string) model.Message { return model.Message{Role: model.User, Text: s} }

func matcher(t *testing.T, text string) *Matcher {
	t.Helper()
	f, err := Parse("weather.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return NewMatcher(f, Normalizer{WorkDir: "/tmp/proj"})
}

func TestFindRecorded(t *testing.T) {
	m := matcher(t, weather)
	sys := model.Message{Role: model.System, Text: "You are"}
	req := &model.Request{Model: "demo", Messages: []model.Message{sys,
		user("<current_datetime>2026-01-01T00:00:00Z</current_datetime>\n\nRead /tmp/proj/a.txt")}}
	got, err := m.Find(req, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Answer) != 2 || got.Answer[0].ToolCalls[0].Name != "bash" ||
		got.Answer[0].ToolCalls[0].Arguments != `{"p":"/tmp/proj/a.txt"}` || got.Index != 2 {
		t.Fatalf("got %+v", got)
	}
	// The next request shows the two as one message, its results in any order,
	// under other ids.
	req.Messages = append(req.Messages,
		model.Message{Role: model.Assistant, Text: "First.", Calls: []model.Call{
			{ID: "q", Name: "bash", Arguments: `{ "p": "/tmp/proj/a.txt" }`}, {ID: "r", Name: "look", Arguments: "{}"}}},
		model.Message{Role: model.ToolRole, CallID: "r", Text: `{"b": 2, "a": 1}`},
		model.Message{Role: model.ToolRole, CallID: "q", Text: "Tool 'x' does not exist. Available tools are z, w."})
	got, err = m.Find(req, nil)
	if err != nil || got.Answer[0].Content != "Done." {
		t.Fatalf("got %+v, %v", got, err)
	}
	// A difference is named.
	req.Messages[4].Text = `{"a":1,"b":3}`
	req.Messages[4], req.Messages[3] = req.Messages[3], req.Messages[4]
	req.Messages[4].Text = `{"a":1,"b":3}`
	_, err = m.Find(req, nil)
	want := "weather.yaml has no answer to this request (model \"demo\", 5 messages, the last: tool \"{\\\"a\\\":1,\\\"b\\\":3}\")"
	if err == nil || !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), "conversations[0] (line 6)") {
		t.Fatalf("got %v", err)
	}
}

func TestFindDiff(t *testing.T) {
	m := matcher(t, weather)
	sys := model.Message{Role: model.System, Text: "You are"}
	_, err := m.Find(&model.Request{Model: "demo", Messages: []model.Message{sys, user("Read /tmp/proj/b.txt")}}, nil)
	want := `closest is conversations[0] (line 6): the first difference is in messages[1].content:
  request: "Read ${workdir}/b.txt"
  file:    "Read ${workdir}/a.txt"`
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Fatalf("got %v", err)
	}
}

func TestFindOthers(t *testing.T) {
	m := matcher(t, weather)
	sys := model.Message{Role: model.System, Text: "You are"}
	got, err := m.Find(&model.Request{Model: "demo", Messages: []model.Message{sys, user("Silence")}}, nil)
	if err != nil || !got.Silent {
		t.Fatalf("silent: %+v, %v", got, err)
	}
	got, err = m.Find(&model.Request{Model: "broken"}, nil)
	if err != nil || got.Rule == nil || got.Rule.Failure.Status != 500 {
		t.Fatalf("rule: %+v, %v", got, err)
	}
}

func TestFindDialogue(t *testing.T) {
	m := matcher(t, weather)
	said := func(s string) model.Message { return model.Message{Role: model.Assistant, Text: s} }
	ask := user("How is the weather?")
	tests := []struct {
		name string
		msgs []model.Message
		want string
	}{
		{"first", []model.Message{ask}, "one"},
		{"second", []model.Message{ask, said("one"), user("and?")}, "one"},
		{"third", []model.Message{ask, said("one"), said("x"), user("and?")}, "one"}, // two in a row count as one
		{"third apart", []model.Message{ask, said("one"), user("so"), said("x"), user("and?")}, "two"},
		{"beside other user messages", []model.Message{user("context"), ask, user("more")}, "one"},
		{"the newest prompt counts", []model.Message{ask, said("one"), ask}, "one"},
		{"the newest rule counts", []model.Message{ask, said("one"), user("Fresh start")}, "fresh"},
		{"used up", []model.Message{ask, said("1"), user("b"), said("2"), user("c"), said("3"), user("d")},
			"its rule holds (user contains \"weather\"), but it has only 3 of the 4 replies"},
		{"no rule", []model.Message{user("What?")}, "no answer to this request"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := m.Find(&model.Request{Model: "demo", Messages: tt.msgs}, nil)
			if err != nil {
				if !strings.Contains(err.Error(), tt.want) {
					t.Fatal(err)
				}
				return
			}
			if got.Answer[0].Content != tt.want {
				t.Fatalf("got %q, want %q", got.Answer[0].Content, tt.want)
			}
		})
	}
}

func TestNormalizerText(t *testing.T) {
	z := Normalizer{WorkDir: "/a/b", Paths: map[string]string{"home": "/a"}}
	for in, want := range map[string]string{
		"<current_datetime>x</current_datetime>\n\nhi ": "hi",
		"<reminder>a\nb</reminder>hi":                   "hi",
		"[[PLAN]] do /a/b/c and /a/c":                   "do ${workdir}/c and ${home}/c",
		"x\nPlease create a detailed summary of the conversation so far. The history is being compacted.\nmore": "x\n${compaction_prompt}",
	} {
		if got := z.Text(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
	got := z.Messages(FromRequest([]model.Message{
		{Role: model.User, Text: "see", Images: []model.Image{{}, {Name: "b.png"}}},
		{Role: model.Assistant, Calls: []model.Call{{ID: "1", Name: "t"}, {ID: "2", Name: "t"}}},
		{Role: model.ToolRole, CallID: "1", Text: "r", Images: []model.Image{{Name: "at /q"}}}, {Role: model.ToolRole, CallID: "2", Text: "s"},
	}))
	if diff := cmp.Diff([]Message{
		{Role: model.User, Content: "see\n[image]\nb.png\n[image]"},
		{Role: model.Assistant, ToolCalls: []model.Call{{ID: "toolcall_0", Name: "t", Arguments: "{}"}, {ID: "toolcall_1", Name: "t", Arguments: "{}"}}},
		{Role: model.ToolRole, ToolCallID: "toolcall_0", Content: "r"}, {Role: model.ToolRole, ToolCallID: "toolcall_1", Content: "s"},
		{Role: model.User, Content: "at /q\n[image]"},
	}, got); diff != "" {
		t.Error(diff)
	}
}
