package modelfile

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/transom-run/transom/model"
)

// TestDocs reads every YAML block of the format's page.
func TestDocs(t *testing.T) {
	page, err := os.ReadFile("../../docs/model-files.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(page, -1)
	if len(blocks) < 6 {
		t.Fatalf("found %d blocks", len(blocks))
	}
	for i, b := range blocks {
		f, err := Parse("block", b[1])
		if err != nil {
			t.Errorf("block %d: %v\n%s", i, err, b[1])
			continue
		}
		roundTrip(t, f)
	}
}

var sameFile = cmp.Options{
	cmpopts.IgnoreFields(File{}, "Path"),
	cmpopts.IgnoreFields(Conversation{}, "Line"),
	cmpopts.IgnoreFields(Message{}, "Line"),
	cmpopts.IgnoreFields(ErrorRule{}, "Line"),
	cmp.Comparer(func(a, b *regexp.Regexp) bool {
		return (a == nil) == (b == nil) && (a == nil || a.String() == b.String())
	}),
}

type tb interface {
	Helper()
	Fatalf(format string, args ...any)
}

func roundTrip(t tb, f *File) {
	t.Helper()
	data, err := f.Encode()
	if err != nil {
		t.Fatalf("encode: %v", err)
	}
	again, err := Parse("again", data)
	if err != nil {
		t.Fatalf("parse what was encoded: %v\n%s", err, data)
	}
	if diff := cmp.Diff(f, again, sameFile); diff != "" {
		t.Fatalf("changed by writing and reading:\n%s\n%s", diff, data)
	}
}

// TestRoundTrip writes and reads files with any texts.
func TestRoundTrip(t *testing.T) {
	text := rapid.OneOf(
		rapid.String(),
		rapid.StringMatching(`[ \n\t:#'"\\{}\[\]|>&*!%@,?-]{0,12}`),
		rapid.StringMatching(`(- |  |\n|a: b|#x|---\n|\.\.\.\n){0,6}`),
		rapid.SampledFrom([]string{"null", "~", "yes", "1", "1.5", "0x10", "2001-01-01", "true", "", " ", "\n", "a\nb\n", "a\n\n\nb\n\n", "a \nb", "\ta\n\tb", "é\u0085\u2028\ufeff", "a\r\nb", "😀\nx", "=", "<<"}),
	)
	rapid.Check(t, func(t *rapid.T) {
		var msgs []Message
		for _, s := range rapid.SliceOfN(text, 1, 4).Draw(t, "texts") {
			msgs = append(msgs, Message{Role: model.User, Content: s},
				Message{Role: model.Assistant, Content: s, Reasoning: s,
					ToolCalls: []model.Call{{ID: "a" + s, Name: "t" + s, Arguments: s}}},
				Message{Role: model.ToolRole, ToolCallID: "a" + s, Content: s})
		}
		f := &File{Models: []Model{{ID: "m" + text.Draw(t, "model"), ContextWindow: 5}},
			Conversations: []Conversation{{Messages: msgs}}}
		roundTrip(t, f)
	})
}

func TestParseMistakes(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"empty", "", "is empty"},
		{"not yaml", "models: [a\nconversations: {", "f.yaml:"},
		{"tab", "models:\n\t- a", "f.yaml:2: is not YAML"},
		{"list at top", "- a", "f.yaml:1: must be a mapping with conversations, errors, models, not a list"},
		{"unknown key", "models: []\nconversation: []", "f.yaml:2: conversation: is not a field; known here: conversations, errors, models"},
		{"twice", "models: []\nmodels: []", "twice"},
		{"alias", "models: &a []\nconversations: *a", "f.yaml:1: models: anchors and aliases"},
		{"role", "conversations:\n  - messages:\n      - role: bot\n        content: x", "f.yaml:3: conversations[0].messages[0].role: must be system"},
		{"no role", "conversations:\n  - messages:\n      - content: x", "conversations[0].messages[0]: needs a role"},
		{"no messages", "conversations:\n  - when: {}", "f.yaml:2: conversations[0]: needs messages"},
		{"no rule", "conversations:\n  - replies: [{content: a}]", "add when"},
		{"both", "conversations:\n  - when: {}\n    messages: []\n    replies: [{content: a}]", "has both"},
		{"no replies", "conversations:\n  - when: {}\n    replies: []", "at least one reply"},
		{"bad regexp", "conversations:\n  - when: {user: {matches: '('}}\n    replies: [{content: a}]", "f.yaml:2: conversations[0].when.user.matches: is not a regular expression"},
		{"two rules", "conversations:\n  - when: {user: {equals: a, contains: b}}\n    replies: [{content: a}]", "exactly one of"},
		{"duration", "conversations:\n  - when: {}\n    replies:\n      - delay: fast", "f.yaml:4: conversations[0].replies[0].delay: must be a duration"},
		{"failure", "conversations:\n  - when: {}\n    replies:\n      - failures: [{status: 200}]", "must be a whole number of at least 400"},
		{"failure way", "conversations:\n  - when: {}\n    replies:\n      - failures: [{times: 2}]", "exactly one of status, cut, cut_bytes and stall"},
		{"chunks", "conversations:\n  - when: {}\n    replies:\n      - {content: ab, chunks: [a, c]}", "joined do not make the content"},
		{"call", "conversations:\n  - when: {}\n    replies:\n      - tool_calls: [{arguments: {}}]", "needs the name of a tool"},
		{"tool id", "conversations:\n  - messages: [{role: tool, content: x}]", "needs tool_call_id"},
		{"user plays", "conversations:\n  - messages: [{role: user, content: x, delay: 1s}]", "only an assistant message"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse("f.yaml", []byte(tt.text))
			var fe *Error
			if !errors.As(err, &fe) || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %v, want %q", err, tt.want)
			}
		})
	}
	if _, err := Load("no-such-file.yaml"); err == nil || !strings.HasPrefix(err.Error(), "no-such-file.yaml: cannot be read: no such file") {
		t.Errorf("missing file: %v", err)
	}
}

func TestParseDetails(t *testing.T) {
	f, err := Parse("f.yaml", []byte(`
models: [1.5]
conversations:
  - when: {}
    replies:
      - content: 42
        tool_calls:
          - {name: a, arguments: {z: 1, a: [true, null, "x", 2.5, 2001-01-01]}}
          - {name: b, arguments: '{bad'}
          - {name: c}
        delay: 1500ms
        repeat: always
`))
	if err != nil {
		t.Fatal(err)
	}
	want := Message{Role: model.Assistant, Content: "42", Delay: 1500 * time.Millisecond, Repeat: Always,
		ToolCalls: []model.Call{{Name: "a", Arguments: `{"z":1,"a":[true,null,"x",2.5,"2001-01-01"]}`}, {Name: "b", Arguments: "{bad"}, {Name: "c"}}}
	if diff := cmp.Diff(want, f.Conversations[0].Replies[0], sameFile); diff != "" {
		t.Error(diff)
	}
	if f.Models[0].ID != "1.5" {
		t.Errorf("model %q", f.Models[0].ID)
	}
}

func FuzzModelfile(f *testing.F) {
	page, _ := os.ReadFile("../../docs/model-files.md")
	for _, b := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(page, -1) {
		f.Add(string(b[1]))
	}
	f.Add("a: &a [*a]")
	f.Add("conversations: [{when: {}, replies: [{}]}]")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 4096 {
			return
		}
		file, err := Parse("fuzz", []byte(text))
		if err != nil {
			var fe *Error
			if !errors.As(err, &fe) {
				t.Fatalf("an error of another type: %T %v", err, err)
			}
			return
		}
		m := NewMatcher(file, Normalizer{WorkDir: "/w"})
		req := &model.Request{Model: "m", Messages: []model.Message{{Role: model.User, Text: "hello"}}}
		m.Find(req, nil)
	})
}
