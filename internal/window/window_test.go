package window

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/model"
)

var serial int

// record is a record as it is read from a log.
func record(p event.Payload) *event.Event {
	serial++
	e, err := event.New(p, fmt.Sprint("e", serial), "", time.Unix(0, 0))
	if err != nil {
		panic(err)
	}
	read, err := event.Decode(e.Line)
	if err != nil {
		panic(err)
	}
	return read
}

func user(text string) *event.Event {
	return record(event.UserMessage{Content: "shown", TransformedContent: text, MessageID: "m-" + text})
}

func said(text string) *event.Event { return record(event.AssistantMessage{Content: text}) }

// asked is an assistant message with calls of the tool t.
func asked(ids ...string) *event.Event {
	m := event.AssistantMessage{}
	for _, id := range ids {
		m.ToolRequests = append(m.ToolRequests, event.ToolRequest{ToolCallID: id, Name: "t", Arguments: json.RawMessage(`{}`)})
	}
	return record(m)
}

func done(id, text string) *event.Event {
	return record(event.ToolComplete{ToolCallID: id, Success: true, Result: &event.ToolResult{Content: text}})
}

func cleared(seed string) *event.Event {
	return record(event.ContextCleared{InitialMessage: seed})
}

// seeded is the seeded turn's message of a clear.
func seeded(clear *event.Event, text string) *event.Event {
	return record(event.UserMessage{Content: text, TransformedContent: text, MessageID: clear.ID})
}

func fold(t testing.TB, es ...*event.Event) Window {
	t.Helper()
	var w Window
	for _, e := range es {
		var err error
		if w, err = w.Apply(e); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func show(ms []model.Message) string {
	var out []string
	for _, m := range ms {
		s := string(m.Role[0]) + m.CallID
		if m.Text != "" {
			s += "=" + m.Text
		}
		for _, c := range m.Calls {
			s += "(" + c.ID + c.Arguments + ")"
		}
		out = append(out, s)
	}
	return strings.ReplaceAll(strings.Join(out, " "), Interrupted, "CUT")
}

func TestFold(t *testing.T) {
	seed, later := cleared("SEED"), cleared("LATER")
	agent := func(e *event.Event) *event.Event {
		e.AgentID = "sub"
		return e
	}
	for _, tc := range []struct {
		name string
		log  []*event.Event
		want string
		n    int // as counted, without what stands in for missing results
	}{
		{"empty", nil, "", 0},
		{"talk", []*event.Event{user("a"), said("b"), user("c")}, "u=a a=b u=c", 3},
		{"two messages in a row stay apart", []*event.Event{user("a"), user("b")}, "u=a u=b", 2},
		{"an answer of nothing is no message", []*event.Event{user("a"), said(""), user("b")}, "u=a u=b", 2},
		{"a message without a transformed text", []*event.Event{record(event.UserMessage{Content: "plain"})}, "u=plain", 1},
		{"results in the order of the calls", []*event.Event{user("a"), asked("1", "2", "3"), done("3", "C"), done("1", "A"), done("2", "B")}, "u=a a(1{})(2{})(3{}) t1=A t2=B t3=C", 5},
		{"an open batch", []*event.Event{user("a"), asked("1", "2"), done("2", "B")}, "u=a a(1{})(2{}) t1=CUT t2=B", 3},
		{"arguments are those of the start", []*event.Event{asked("1", "2"), record(event.ToolStart{ToolCallID: "2", Arguments: json.RawMessage(`{"x":1}`)}), done("1", "A"), done("2", "B")}, `a(1{})(2{"x":1}) t1=A t2=B`, 3},
		{"a failure reads as its result", []*event.Event{asked("1"), record(event.ToolComplete{ToolCallID: "1", Result: &event.ToolResult{Content: "bare"}, Error: &event.ToolError{Message: "detail"}})}, "a(1{}) t1=bare", 2},
		{"or as its message", []*event.Event{asked("1"), record(event.ToolComplete{ToolCallID: "1", Error: &event.ToolError{Message: "detail"}})}, "a(1{}) t1=detail", 2},
		{"a completion of nothing", []*event.Event{asked("1"), record(event.ToolComplete{ToolCallID: "1"})}, "a(1{}) t1", 2},

		{"a clear", []*event.Event{user("a"), said("b"), seed}, "u=SEED", 1},
		{"the seeded message is the seed", []*event.Event{user("a"), seed, seeded(seed, "@SEED"), said("x")}, "u=@SEED a=x", 2},
		{"a message follows a seed that waits", []*event.Event{user("a"), seed, user("b")}, "u=SEED u=b", 2},
		{"orphans stay outside", []*event.Event{user("a"), asked("1", "2"), seed, done("1", "A"), seeded(seed, "SEED"), done("2", "B")}, "u=SEED", 1},
		{"an orphan's id in the new window", []*event.Event{asked("1"), seed, done("1", "OLD"), seeded(seed, "SEED"), asked("1"), done("1", "NEW")}, "u=SEED a(1{}) t1=NEW", 3},
		{"the last of several clears", []*event.Event{user("a"), seed, seeded(seed, "SEED"), said("x"), later}, "u=LATER", 1},
		{"two clears in a row", []*event.Event{user("a"), seed, later, seeded(later, "LATER")}, "u=LATER", 1},
		{"a seeded message of an older clear follows the seed", []*event.Event{seed, later, seeded(seed, "SEED")}, "u=LATER u=SEED", 2},

		{"a batch that was never completed", []*event.Event{user("a"), asked("1", "2"), done("1", "A"), user("b")}, "u=a a(1{})(2{}) t1=A t2=CUT u=b", 5},
		{"a batch behind one", []*event.Event{asked("1"), asked("2"), done("2", "B")}, "a(1{}) t1=CUT a(2{}) t2=B", 4},
		{"text behind one", []*event.Event{asked("1"), said("x")}, "a(1{}) t1=CUT a=x", 3},
		{"a result that comes too late", []*event.Event{asked("1"), user("b"), done("1", "A")}, "a(1{}) t1=CUT u=b", 3},
		{"results without calls", []*event.Event{user("a"), done("1", "A"), done("", "B")}, "u=a", 1},
		{"a completion twice: the first counts", []*event.Event{asked("1", "2"), done("1", "A"), done("1", "AGAIN"), done("2", "B"), done("2", "AGAIN")}, "a(1{})(2{}) t1=A t2=B", 3},
		{"one id twice in a batch", []*event.Event{asked("1", "1"), done("1", "A"), done("1", "B")}, "a(1{})(1{}) t1=A t1=B", 3},
		{"a start of no call", []*event.Event{user("a"), record(event.ToolStart{ToolCallID: "x", Arguments: json.RawMessage(`{}`)})}, "u=a", 1},
		{"a sub-agent's own", []*event.Event{user("a"), agent(said("x")), agent(asked("1"))}, "u=a", 1},
		{"what is not for the model", []*event.Event{user("a"), record(event.SessionIdle{}), record(event.Queued{Prompt: "q"}), record(event.SystemMessage{Content: "s"})}, "u=a", 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := fold(t, tc.log...)
			if got := show(w.Messages("")); got != tc.want {
				t.Errorf("%s\nwant\n%s", got, tc.want)
			}
			if w.Len() != tc.n {
				t.Errorf("%d messages, want %d", w.Len(), tc.n)
			}
			if got := show(w.Messages("SYS")); got != strings.TrimSpace("s=SYS "+tc.want) {
				t.Errorf("with a system message: %s", got)
			}
			if (w.Tokens() > 0) != (tc.want != "") {
				t.Errorf("%d tokens", w.Tokens())
			}
			if w.HasUser() != strings.Contains(" "+tc.want, " u=") {
				t.Errorf("has a user: %v", w.HasUser())
			}
		})
	}
}

func TestImages(t *testing.T) {
	w := fold(t, asked("1"), record(event.ToolComplete{ToolCallID: "1", Success: true, Result: &event.ToolResult{Content: "x", Binary: []event.BinaryResult{
		{Type: "image", MIMEType: "image/png", Data: "AAAA", Description: "at /q"}, {Type: "resource", MIMEType: "text/plain", Data: "BBBB"},
	}}}))
	ms := w.Messages("")
	if diff := cmp.Diff([]model.Image{{Name: "at /q", MIMEType: "image/png", Data: "AAAA"}}, ms[1].Images); diff != "" {
		t.Error(diff)
	}
}

func TestAttachments(t *testing.T) {
	w := fold(t, record(event.UserMessage{TransformedContent: "see", Attachments: []json.RawMessage{
		json.RawMessage(`{"type":"blob","mimeType":"image/png","data":"AAAA","displayName":"a.png"}`), json.RawMessage(`{"type":"file","path":"/x"}`),
		json.RawMessage(`{"type":"blob","mimeType":"application/pdf","data":"BBBB"}`), json.RawMessage(`7`), json.RawMessage(`{"type":"blob","mimeType":"text/plain","data":"CCCC"}`),
	}}))
	if diff := cmp.Diff([]model.Message{{
		Role: model.User, Text: "see", Images: []model.Image{{Name: "a.png", MIMEType: "image/png", Data: "AAAA"}},
		Documents: []model.Document{{Title: "document.pdf", MIMEType: "application/pdf", Data: "BBBB"}},
	}}, w.Messages("")); diff != "" {
		t.Error(diff)
	}
}

func TestHasCall(t *testing.T) {
	w := fold(t, asked("1"), done("1", "A"), asked("2"))
	for id, want := range map[string]bool{"1": true, "2": true, "3": false, "": false} {
		if w.HasCall(id) != want {
			t.Errorf("%q: %v", id, !want)
		}
	}
	if w = fold(t, asked("1"), cleared("SEED")); w.HasCall("1") {
		t.Error("a call of the old window")
	}
}

// TestBadPayload: a record that cannot be read is named, and changes nothing.
func TestBadPayload(t *testing.T) {
	w := fold(t, user("a"))
	for _, typ := range []string{event.TypeUserMessage, event.TypeAssistantMessage, event.TypeToolStart, event.TypeToolComplete, event.TypeContextCleared} {
		e, err := event.Decode([]byte(`{"type":"` + typ + `","id":"bad","data":[1]}`))
		if err != nil {
			t.Fatal(err)
		}
		got, err := w.Apply(e)
		if err == nil || !strings.Contains(err.Error(), "bad") || !strings.Contains(err.Error(), typ) {
			t.Errorf("%s: %v", typ, err)
		}
		if show(got.Messages("")) != "u=a" {
			t.Errorf("%s changed the window to %s", typ, show(got.Messages("")))
		}
	}
}

// anyRecord draws a record, of a healthy log or of none.
func anyRecord(t *rapid.T, clears *[]*event.Event) *event.Event {
	id := func() string { return rapid.SampledFrom([]string{"1", "2", "3", ""}).Draw(t, "id") }
	switch rapid.IntRange(0, 7).Draw(t, "record") {
	case 0:
		return user("u")
	case 1:
		return said(rapid.SampledFrom([]string{"", "a"}).Draw(t, "text"))
	case 2, 3:
		ids := make([]string, rapid.IntRange(1, 3).Draw(t, "calls"))
		for i := range ids {
			ids[i] = id()
		}
		return asked(ids...)
	case 4:
		return record(event.ToolStart{ToolCallID: id(), Arguments: json.RawMessage(`{"x":1}`)})
	case 5:
		*clears = append(*clears, cleared("SEED"))
		return (*clears)[len(*clears)-1]
	case 6:
		if len(*clears) > 0 {
			return seeded(rapid.SampledFrom(*clears).Draw(t, "clear"), "SEED")
		}
	}
	return done(id(), "r")
}

// TestAnyLog: whatever stands in a log, calls and results are paired, a snapshot
// is the window, and other folds from the same value leave no trace.
func TestAnyLog(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var w, kept Window
		var file []string
		var clears []*event.Event
		for range rapid.IntRange(0, 30).Draw(t, "records") {
			e := anyRecord(t, &clears)
			other := anyRecord(t, &clears)
			before := show(w.Messages("S"))
			raw, err := json.Marshal(w)
			if err != nil {
				t.Fatal(err)
			}
			var restored Window
			err = errors.Join(json.Unmarshal(raw, &restored), restored.TakeMessages(string(w.AppendMessages(nil))))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.Apply(other); err != nil {
				t.Fatal(err)
			}
			next, err := w.Apply(e)
			if err != nil {
				t.Fatal(err)
			}
			want := show(next.Messages("S"))
			if _, err := w.Apply(other); err != nil {
				t.Fatal(err)
			}
			if got := show(w.Messages("S")); got != before {
				t.Fatalf("folding changed the value it began with:\n%s\nwas\n%s", got, before)
			}
			if got := show(next.Messages("S")); got != want {
				t.Fatalf("another fold changed the value:\n%s\nwas\n%s", got, want)
			}
			again, err := restored.Apply(e)
			if err != nil {
				t.Fatal(err)
			}
			if got := show(again.Messages("S")); got != want || again.Len() != next.Len() || again.Tokens() != next.Tokens() {
				t.Fatalf("from a snapshot:\n%s (%d, %d)\nnot\n%s (%d, %d)", got, again.Len(), again.Tokens(), want, next.Len(), next.Tokens())
			}
			paired(t, next.Messages("S"))
			w = next
			// A window kept in pieces is the window.
			if more, ok := w.AppendSince(nil, kept.Mark()); ok {
				file = append(file, string(more))
			} else {
				file = []string{string(w.AppendMessages(nil))}
			}
			if rapid.Bool().Draw(t, "kept whole") {
				file = []string{string(w.AppendMessages(nil))}
			}
			kept = w
			var pieces Window
			pieces.Reserve(file...)
			for _, p := range file {
				if err := pieces.TakeMessages(p); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(w.settled, pieces.settled, cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("in %d pieces (-want +got):\n%s", len(file), diff)
			}
			if !slices.Equal(w.prompts, pieces.prompts) {
				t.Fatalf("prompts in %d pieces: %q, want %q", len(file), pieces.prompts, w.prompts)
			}
		}
	})
}

func paired(t interface{ Fatalf(string, ...any) }, ms []model.Message) {
	for i := 0; i < len(ms); i++ {
		switch m := ms[i]; {
		case m.Role == model.ToolRole:
			t.Fatalf("a result without its call in %s", show(ms))
		case m.Role == model.Assistant:
			for n, c := range m.Calls {
				if i+1+n >= len(ms) || ms[i+1+n].Role != model.ToolRole || ms[i+1+n].CallID != c.ID {
					t.Fatalf("call %s is not answered in its place in %s", c.ID, show(ms))
				}
			}
			i += len(m.Calls)
		}
	}
}

// FuzzApply folds lines as they may stand in a damaged log.
func FuzzApply(f *testing.F) {
	c := cleared("SEED")
	for _, es := range [][]*event.Event{
		{user("a"), asked("1", "2"), done("2", "B"), c, done("1", "A"), seeded(c, "SEED"), said("x")},
		{asked("1"), asked("1"), done("1", "A"), user("b"), done("1", "B")},
	} {
		var lines []string
		for _, e := range es {
			lines = append(lines, string(e.Line))
		}
		f.Add([]byte(strings.Join(lines, "\n")))
	}
	f.Add([]byte(`{"type":"assistant.message","id":"a","data":{"toolRequests":[{},{"toolCallId":"1"}]}}` + "\n" + `{"type":"tool.execution_complete","id":"b","data":{}}`))
	f.Add([]byte(`{"type":"user.message","id":"a","data":null}` + "\n" + `{"type":"session.context_cleared","id":"a"}` + "\n" + `{"type":"user.message","id":"a"}`))
	f.Fuzz(func(t *testing.T, log []byte) {
		var w Window
		for _, line := range strings.Split(string(log), "\n") {
			e, err := event.Decode([]byte(line))
			if err != nil {
				continue
			}
			before := w.Len()
			next, err := w.Apply(e)
			if err != nil && next.Len() != before {
				t.Fatalf("an error (%v) that changed the window", err)
			}
			w = next
			paired(t, w.Messages("S"))
			if w.Len() > len(w.Messages("")) || w.Tokens() < 0 {
				t.Fatalf("%d messages counted, %d sent, %d tokens", w.Len(), len(w.Messages("")), w.Tokens())
			}
		}
	})
}
