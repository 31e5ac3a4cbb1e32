package main

import (
	"encoding/json"
	"strings"
	"testing"
)

// body writes a request with the given messages as JSON.
func body(messages string) json.RawMessage {
	return json.RawMessage(`{"model":"m","messages":[` + messages + `],"tools":[]}`)
}

const (
	sys   = `{"role":"system","content":"S"}`
	user  = `,{"role":"user","content":"go"}`
	calls = `,{"role":"assistant","content":null,"tool_calls":[` +
		`{"id":"c1","type":"function","function":{"name":"look","arguments":"{\"at\":\"1\"}"}},` +
		`{"id":"c2","type":"function","function":{"name":"look","arguments":"{}"}}]}`
	tool1 = `,{"role":"tool","tool_call_id":"c1","content":"one"}`
	tool2 = `,{"role":"tool","tool_call_id":"c2","content":"two"}`
	said  = `,{"role":"assistant","content":"done"}`
)

func TestPairing(t *testing.T) {
	tests := []struct{ name, messages, want string }{
		{"good", sys + user + calls + tool1 + tool2, ""},
		{"good, later", sys + user + calls + tool1 + tool2 + said + user, ""},
		{"no system", `{"role":"user","content":"go"}`, "not the system message"},
		{"two systems", sys + user + `,` + sys + user, "a second system message"},
		{"result missing", sys + user + calls + tool1 + user, "have no result"},
		{"result missing at the end", sys + user + calls + tool1, "have no result"},
		{"results in the wrong order", sys + user + calls + tool2 + tool1, `result of call "c2"`},
		{"result twice", sys + user + calls + tool1 + tool2 + tool2, `result of call "c2"`},
		{"result without a call", sys + user + tool1, `result of call "c1"`},
		{"id used twice", sys + user + calls + tool1 + tool2 + calls + tool1 + tool2, "used twice"},
		{"assistant last", sys + user + said, "the last message is the assistant's"},
		{"empty assistant", sys + user + `,{"role":"assistant","content":""}` + user, "without text or calls"},
		{"arguments no object", sys + user + strings.Replace(calls, `"{}"`, `"[]"`, 1) + tool1 + tool2, "no object"},
		{"arguments empty", sys + user + strings.Replace(calls, `"{}"`, `""`, 1) + tool1 + tool2, "no object"},
		{"bad UTF-8", sys + `,{"role":"user","content":"` + "\xff" + `"}`, "UTF-8"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			raw := body(test.messages)
			var req request
			if err := json.Unmarshal(raw, &req); err != nil {
				t.Fatal(err)
			}
			wantError(t, checkPairing(raw, req), test.want)
		})
	}
}

// wantError checks that an error says something; "" stands for no error.
func wantError(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("unexpected error: %v", err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("error %v, want one with %q", err, want)
	}
}

func TestSameWindow(t *testing.T) {
	window := []Message{
		{Role: "system", Content: "${system}"},
		{Role: "user", Content: "go"},
		{Role: "assistant", ToolCalls: []ToolCall{
			{ID: "c1", Name: "look", Arguments: map[string]any{"at": "1"}},
			{ID: "c2", Name: "look", Arguments: "not JSON"},
		}},
		{Role: "tool", ToolCallID: "c1", Content: "~^o.e$"},
		{Role: "tool", ToolCallID: "c2", Content: "two"},
	}
	full := sys + user + calls + tool1 + tool2
	tests := []struct{ name, messages, want string }{
		{"equal", full, ""},
		{"with a date", strings.Replace(full, `"go"`, `"<current_datetime>now</current_datetime>\n\ngo"`, 1), ""},
		{"content in parts", strings.Replace(full, `"go"`, `[{"type":"text","text":"go"}]`, 1), ""},
		{"another text", strings.Replace(full, `"go"`, `"stop"`, 1), `user says "stop", not "go"`},
		{"another result", strings.Replace(full, `"two"`, `"2"`, 1), `tool says "2"`},
		{"pattern fails", strings.Replace(full, `"one"`, `"oone"`, 1), `tool says "oone"`},
		{"one too few", sys + user + calls + tool1, "message 5 is missing"},
		{"one too many", full + user, "message 6 should not be there"},
		{"another call", strings.Replace(full, `{\"at\":\"1\"}`, `{\"at\":\"2\"}`, 1), "call 1 is"},
		{"no call", sys + user + said + tool1 + tool2, "message 3: assistant says"},
		{"another role", sys + said, "role assistant, not user"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var req request
			if err := json.Unmarshal(body(test.messages), &req); err != nil {
				t.Fatal(err)
			}
			wantError(t, sameWindow(window, req.Messages), test.want)
		})
	}
}

func TestSetupMustNotChange(t *testing.T) {
	parse := func(text string) (r request) {
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	const tools = `"tools":[{"function":{"name":"b"}},{"function":{"name":"a"}}]`
	first := parse(`{"model":"m","messages":[` + sys + `],` + tools + `}`)
	names := []string{"a", "b"}
	wantError(t, sameSetup(first, first, names), "")
	wantError(t, sameSetup(first, parse(`{"model":"x","messages":[`+sys+`],`+tools+`}`), names), "the model changed")
	wantError(t, sameSetup(first, parse(`{"model":"m","messages":[{"role":"system","content":"T"}],`+tools+`}`), names), "the system message changed")
	wantError(t, sameSetup(first, first, []string{"a"}), "was told of the tools [a b]")
}

func TestNumberOfRequests(t *testing.T) {
	c := &Case{Conversations: []Conversation{{Messages: []Message{
		{Role: "system", Content: "${system}"}, {Role: "user", Content: "go"}, {Role: "assistant", Content: "done"},
	}}}}
	if errs := checkRequests(c, nil, []json.RawMessage{body(sys + user)}); len(errs) != 0 {
		t.Errorf("unexpected: %v", errs)
	}
	if errs := checkRequests(c, nil, nil); len(errs) != 1 {
		t.Errorf("a missing request is not found: %v", errs)
	}
	if errs := checkRequests(c, nil, []json.RawMessage{body(sys + user), body(sys + user)}); len(errs) != 1 {
		t.Errorf("a request too many is not found: %v", errs)
	}
}
