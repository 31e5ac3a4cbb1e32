package turn

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/tool"
)

// TestBadRecord: a record that cannot be read is named and passed over.
func TestBadRecord(t *testing.T) {
	p := script(t, acting)
	before := print(&p.s)
	for typ := range folds.Get() {
		e, err := event.Decode([]byte(`{"type":"` + typ + `","id":"bad","data":[1]}`))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := p.s.Durable.Apply(e); typ == event.TypeLoopEnd || typ == event.TypeTurnEnd || typ == event.TypeContextCleared {
			continue // nothing of theirs is read here, or the window says it
		} else if err == nil || !strings.Contains(err.Error(), "bad") {
			t.Errorf("%s: %v", typ, err)
		} else if s := (State{Durable: got, Live: p.s.Live}); print(&s) != before {
			t.Errorf("%s changed the state", typ)
		}
	}
	// Ephemeral events and unknown types change nothing but the count.
	for _, line := range []string{`{"type":"session.idle","id":"x","data":{},"ephemeral":true}`, `{"type":"transom.future","id":"x"}`} {
		e, err := event.Decode([]byte(line))
		if err != nil {
			t.Fatal(err)
		}
		got, err := p.s.Durable.Apply(e)
		if s := (State{Durable: got, Live: p.s.Live}); err != nil || print(&s) != before {
			t.Errorf("%s changed the state: %v", line, err)
		}
	}
}

// TestAnyPrefix: a log may end anywhere; what is left can be resumed, with
// continue or without, and leads to a well-formed request.
func TestAnyPrefix(t *testing.T) {
	long := `new tools=a,b,clear!,local*; send "one"; model text "x"; send "two"; send "three"; model call c1 a {} call c2 b {} call c3 local {};
		send "steer" immediate; answer c1 "A"; done c3 "L"; answer c2 "B"; model call c4 clear {} call c5 a {}; clear "SEED"; answer c4 "ok"; answer c5 "late";
		model text "fresh"; model call c6 a {}; abort; send "four"; model fail "x"; configure dir=/x; send "five"; model call c7 clear {}; clear "SEED2"; answer c7 "ok"`
	long = strings.Join(strings.Fields(long), " ")
	whole := script(t, long)
	for n := 1; n <= len(whole.log); n++ {
		for _, resume := range []string{"resume B tools=a,b", "resume B continue tools=a,b", "attach B tools=a,b"} {
			p := &player{world: newWorld(t)}
			p.log, p.ids, p.now = slices.Clone(whole.log), whole.ids, whole.now
			p.kill(n)
			p.fields = split(t, resume)
			p.command(p.word())
			for i := 0; p.s.Phase() == Acting && i < 10; i++ {
				c := p.s.Loop.Calls[slices.IndexFunc(p.s.Loop.Calls, func(c Call) bool { return !c.Done })]
				if c.External == "" {
					t.Fatalf("after %d records, %s: call %s waits for nobody", n, resume, c.ID)
				}
				p.do(ToolAnswer{RequestID: c.External, Result: tool.Result{Text: "x"}})
			}
			if p.s.Phase() == Idle || p.s.Phase() == Stranded {
				p.do(Send{Message: event.Queued{Prompt: "go on"}})
			}
			if p.s.Phase() != Thinking || len(p.requests) == 0 { // world checks the requests
				t.Fatalf("after %d records, %s: the session is %s", n, resume, p.s.Phase())
			}
		}
	}
}

// TestSaveKeepsBytes: what models and handlers read is not escaped anew.
func TestSaveKeepsBytes(t *testing.T) {
	p := script(t, born+`; send "go"; model call c1 a {"prompt":"<b>&"}`)
	data, err := Save(p.s.Durable)
	if err != nil {
		t.Fatal(err)
	}
	d, err := Restore(string(data))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(d.Loop.Calls[0].Args); got != `{"prompt":"<b>&"}` {
		t.Errorf("arguments became %s", got)
	}
	for _, bad := range []string{"", "{", `{"Version":0}`, `{"Version":99,"Durable":{}}`, `[]`} {
		if _, err := Restore(bad); err == nil {
			t.Errorf("%q is a checkpoint", bad)
		}
	}
}

// TestInvalidText: what is not UTF-8 is repaired on its way in, so that a state
// and the fold of its log say the same (world.take compares them).
func TestInvalidText(t *testing.T) {
	p := script(t, born)
	p.do(Send{Message: event.Queued{Prompt: "a\xffb"}})
	p.do(ModelDone{Fence: p.model, Response: model.Response{Message: model.Message{Text: "c\xff", Reasoning: "\xfe", Calls: []model.Call{{ID: "i\xff", Name: "a", Arguments: "{}"}}}}})
	p.do(Clear{Prompt: "seed\xff"})
	if got := p.s.Window.Seed().Text; got != "seed\ufffd" {
		t.Errorf("the seed is %q", got)
	}
}

// TestHeaders: secret headers reach the requests of their message's loop, and
// nothing that is written.
func TestHeaders(t *testing.T) {
	p := script(t, born+`; send "go"`)
	p.do(Send{Message: event.Queued{Prompt: "with"}, Headers: map[string]string{"K": "SECRET"}})
	p.do(Send{Message: event.Queued{Prompt: "without"}})
	for _, line := range []string{`model text "1"`, `model call c1 a {}`, `answer c1 "x"`, `model text "2"`, `model text "3"`} {
		p.fields = split(t, line)
		p.command(p.word())
	}
	var got []string
	for _, r := range p.requests {
		got = append(got, r.Headers["K"])
	}
	if want := []string{"", "SECRET", "SECRET", ""}; !slices.Equal(got, want) {
		t.Errorf("headers %q, want %q", got, want)
	}
	for _, e := range p.seen {
		if strings.Contains(string(e.Line), "SECRET") {
			t.Errorf("written: %s", e.Line)
		}
	}
	if len(p.s.Live.Waiting) != 0 {
		t.Error("headers are kept for nobody")
	}
}

func TestFilter(t *testing.T) {
	for pattern, want := range map[string]bool{
		"view": true, "custom:view": true, "custom:*": true, "custom:vi*": true, "*": true, "VIEW": false,
		"builtin:view": false, "mcp:*": false, "": false, "custom:[": false,
	} {
		if got := (Filter{Set: true, Patterns: []string{pattern}}).Matches(tool.Custom, "view"); got != want {
			t.Errorf("%q matches view: %v", pattern, got)
		}
	}
	p := script(t, `new tools=a,b,c`)
	names := func(s Settings) []string { return offers(p.s.Live.Clients, s, nil).Names() }
	for _, tc := range []struct {
		s    Settings
		want []string
	}{
		{Settings{}, []string{"a", "b", "c"}},
		{Settings{Available: Filter{Set: true, Patterns: []string{"c", "a", "x"}}}, []string{"a", "c"}},
		{Settings{Available: Filter{Set: true}}, nil},
		{Settings{Excluded: Filter{Set: true, Patterns: []string{"b"}}}, []string{"a", "c"}},
	} {
		if got := names(tc.s); !slices.Equal(got, tc.want) {
			t.Errorf("%+v offers %q, want %q", tc.s, got, tc.want)
		}
	}
}

func TestTitle(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "  one \n two": "one", strings.Repeat("é", 80): strings.Repeat("é", 80),
		strings.Repeat("é", 81): strings.Repeat("é", 79) + "…", "\n\n x": "x",
	} {
		if got := Title(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// TestQuestion: what clients read of a permission question.
func TestQuestion(t *testing.T) {
	p := script(t, `new tools=a ask; send "go"; model call c1 a {"prompt":"x"}`)
	for _, e := range p.log {
		if e.Type != event.TypePermissionRequested {
			continue
		}
		q, err := event.As[event.PermissionRequested](e)
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]any
		if err := json.Unmarshal(q.PermissionRequest, &got); err != nil {
			t.Fatal(err)
		}
		if got["kind"] != "custom-tool" || got["toolCallId"] != "c1" || got["toolName"] != "a" {
			t.Errorf("%s", q.PermissionRequest)
		}
		return
	}
	t.Error("no question")
}
