package window

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/transom-run/transom/model"
)

// TestShorten: whatever the room, what comes out is a request that providers take:
// calls with their results, a user's message first, arguments that are objects.
func TestShorten(t *testing.T) {
	long := strings.Repeat("größer ", 5000)
	messages := []model.Message{
		{Role: model.System, Text: "SYS"},
		{Role: model.User, Text: "one", Images: []model.Image{{MIMEType: "image/png", Data: "QUJD"}}},
		{Role: model.Assistant, Text: "A", Reasoning: "R", ReasoningOpaque: "O", EncryptedContent: "E",
			Calls: []model.Call{{ID: "1", Name: "t", Arguments: `{"x":"` + long + `"}`}, {ID: "2", Name: "t", Arguments: "{}"}}},
		{Role: model.ToolRole, CallID: "1", Text: long}, {Role: model.ToolRole, CallID: "2", Text: "short"},
		{Role: model.Assistant, Text: "B"}, {Role: model.User, Text: "two"}, {Role: model.Assistant, Text: "C"}, {Role: model.User, Text: long},
	}
	before, err := json.Marshal(messages)
	if err != nil {
		t.Fatal(err)
	}
	for _, tokens := range []int{1 << 20, 20000, 3000, 700, 120, 0} {
		out := Shorten(messages, tokens)
		if n := size(out[1:]); n > tokens && tokens >= 700 {
			t.Errorf("%d tokens for room of %d", n, tokens)
		}
		if out[0].Text != "SYS" || out[1].Role != model.User || len(out) < 2 {
			t.Fatalf("room %d: %+v", tokens, out)
		}
		open := map[string]bool{}
		for _, m := range out {
			if !utf8.ValidString(m.Text) || len(m.Images) > 0 || m.ReasoningOpaque+m.EncryptedContent+m.Reasoning != "" {
				t.Errorf("room %d: %.80q %d images", tokens, m.Text, len(m.Images))
			}
			for _, c := range m.Calls {
				var o map[string]any
				if err := json.Unmarshal([]byte(c.Arguments), &o); err != nil {
					t.Errorf("room %d: arguments %.80q: %v", tokens, c.Arguments, err)
				}
				open[c.ID] = true
			}
			if m.Role == model.ToolRole && !open[m.CallID] {
				t.Errorf("room %d: a result without its call", tokens)
			}
		}
		if tokens == 20000 && (out[2].Text != "A" || !strings.Contains(out[3].Text, "bytes are left out here") || out[4].Text != "short" || !strings.Contains(out[1].Text, "1 pictures")) {
			t.Errorf("%+v", out)
		}
	}
	after, _ := json.Marshal(messages)
	if string(after) != string(before) {
		t.Error("the window itself was changed")
	}
}
