package tool

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/transom-run/transom/tool/internal/schema"
)

var schemaOptions = schema.Options{}

func mustCompile(t testing.TB, name, params string) *Compiled {
	t.Helper()
	c, err := Compile(Tool{Name: name, Parameters: json.RawMessage(params)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCheck(t *testing.T) {
	const strict = `{"type":"object","properties":{"x":{"type":"string"},"n":{"type":"integer"}},"required":["x"],"additionalProperties":false}`
	tests := []struct {
		name, params, raw string
		args              string
		kind              ProblemKind
		model, event      string
	}{
		{"good", strict, ` {"n": 1, "x": "hi"} `, `{"n":1,"x":"hi"}`, "", "", ""},
		{"empty", `{}`, "", `{}`, "", "", ""},
		{"blank", `{}`, " \n\t", `{}`, "", "", ""},
		{"null", `{}`, "null", `{}`, "", "", ""},
		{"number text", `{}`, `{"a":1.50,"b":1E400,"c":123456789012345678901234567890}`, `{"a":1.50,"b":1E400,"c":123456789012345678901234567890}`, "", "", ""},
		{"repeated member", strict, `{"x":"a","n":1,"x":"b"}`, `{"x":"b","n":1}`, "", "", ""},
		{"lone surrogate", strict, `{"x":"\ud83d"}`, `{"x":"` + "\ufffd" + `"}`, "", "", ""},
		{"invalid UTF-8", strict, "{\"x\":\"a\xff\"}", `{"x":"a` + "\ufffd" + `"}`, "", "", ""},
		{"empty where something is required", strict, "", `{}`, Invalid,
			"Invalid input for the tool 'alpha':\n- missing required property \"x\" (string)\nThe tool did not run. Correct the arguments and call it again.",
			`Invalid input: missing required property "x" (string)`},
		{"two faults", strict, `{"x":1,"y":2}`, `{"x":1,"y":2}`, Invalid,
			"Invalid input for the tool 'alpha':\n- x: expected string, got number 1\n- property \"y\" is not allowed; allowed: \"x\", \"n\"\nThe tool did not run. Correct the arguments and call it again.",
			`Invalid input: x: expected string, got number 1; property "y" is not allowed; allowed: "x", "n"`},
		{"not JSON", strict, `{"x":"hi`, `{}`, NotJSON,
			"The arguments for the tool call 'alpha' were not valid JSON. They were discarded and the tool did not run. What was wrong: the string that begins here is not closed: at byte 5. Received: {\"x\":\"hi\nCall the tool again with one JSON object.",
			"the string that begins here is not closed: at byte 5"},
		{"array", strict, `[1,2]`, `{}`, NotObject, "Invalid input: Expected JSON object but got array", "Expected JSON object but got array"},
		{"string", strict, `"x"`, `{}`, NotObject, "Invalid input: Expected JSON object but got string", "Expected JSON object but got string"},
		{"number", strict, `1`, `{}`, NotObject, "Invalid input: Expected JSON object but got number", "Expected JSON object but got number"},
		{"boolean", strict, `true`, `{}`, NotObject, "Invalid input: Expected JSON object but got boolean", "Expected JSON object but got boolean"},
		{"too deep", `{}`, `{"a":` + strings.Repeat("[", 60) + strings.Repeat("]", 60) + `}`, `{}`, Invalid,
			"Invalid input: The arguments are nested more than 56 levels deep. Send something flatter.", "The arguments are nested more than 56 levels deep"},
		{"schema false", `false`, `{}`, `{}`, Invalid,
			"Invalid input for the tool 'alpha': the schema of this tool (false) allows no call. Do not call it again.", "Invalid input: the schema of this tool (false) allows no call"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			args, p := mustCompile(t, "alpha", tt.params).Check(tt.raw)
			if string(args) != tt.args {
				t.Errorf("args %s, want %s", args, tt.args)
			}
			if (p == nil) != (tt.kind == "") {
				t.Fatalf("problem %+v, want kind %q", p, tt.kind)
			}
			if p == nil {
				return
			}
			if p.Kind != tt.kind || p.ModelText != tt.model || p.Message != tt.event || p.Code != Failure {
				t.Errorf("problem %+v", *p)
			}
			if o := p.Outcome(); o.Success || o.Type != Failure || o.ModelText != tt.model || o.EventMessage != tt.event || o.Code != "failure" {
				t.Errorf("outcome %+v", o)
			}
		})
	}
}

func TestCheckTolerant(t *testing.T) {
	c, err := Compile(Tool{Name: "grep", Tolerant: true, Parameters: json.RawMessage(`{"properties":{"pattern":{"type":"string"}},"additionalProperties":false}`)})
	if err != nil {
		t.Fatal(err)
	}
	if args, p := c.Check(`{"pattern":"a","path":"."}`); p != nil || string(args) != `{"pattern":"a","path":"."}` {
		t.Errorf("%s, %+v", args, p)
	}
}

func TestProblemIsBounded(t *testing.T) {
	c := mustCompile(t, "alpha", `{"type":"object","additionalProperties":false}`)
	var b strings.Builder
	b.WriteString(`{"é":1`)
	for range 3000 {
		b.WriteString(`,"` + strings.Repeat("é", 100) + string(rune('a'+b.Len()%26)) + strings.Repeat("x", b.Len()%977) + `":1`)
	}
	for _, raw := range []string{b.String() + "}", b.String()} {
		_, p := c.Check(raw)
		if p == nil || len(p.ModelText) > 6000 || !utf8.ValidString(p.ModelText) {
			t.Errorf("problem of %d bytes", len(p.ModelText))
		}
	}
}

func TestUnknownTool(t *testing.T) {
	p := UnknownTool("nope", []string{"alpha", "beta"})
	if p.ModelText != "Tool 'nope' does not exist. Available tools that can be called are alpha, beta." || p.Message != "Tool 'nope' does not exist." || p.Kind != UnknownName {
		t.Errorf("%+v", p)
	}
	if p := UnknownTool("nope", nil); p.ModelText != "Tool 'nope' does not exist." {
		t.Errorf("%+v", p)
	}
	if p := UnknownTool(strings.Repeat("é", 10000)+"\xff", nil); len(p.ModelText) > 500 || !utf8.ValidString(p.ModelText) {
		t.Errorf("%d bytes", len(p.ModelText))
	}
}

func FuzzCheck(f *testing.F) {
	const params = `{"type":"object","properties":{"x":{"type":"string","maxLength":3},"l":{"items":{"anyOf":[{"type":"integer"},{"required":["a"]}]}}},"required":["x"],"additionalProperties":{"enum":[1,"b"]}}`
	for _, s := range []string{``, `null`, `{"x":"hi"}`, `{"x":"hi`, `[1]`, `{"x":"\ud83d","l":[1,{}],"y":1.0}`, `{"x":1,"x":"a"}`, "{\"x\":\"\xff\"}"} {
		f.Add(s)
	}
	c := mustCompile(f, "alpha", params)
	f.Fuzz(func(t *testing.T, raw string) {
		args, p := c.Check(raw)
		var object map[string]json.RawMessage
		if err := json.Unmarshal(args, &object); err != nil || object == nil || !utf8.Valid(args) {
			t.Fatalf("Check(%q) gives the arguments %s: %v", raw, args, err)
		}
		if p == nil {
			again, p := c.Check(string(args))
			if p != nil || string(again) != string(args) {
				t.Fatalf("%s is not stable: %s, %+v", args, again, p)
			}
			return
		}
		if p.ModelText == "" || p.Message == "" || !utf8.ValidString(p.ModelText) || !utf8.ValidString(p.Message) || len(p.ModelText) > 8000 {
			t.Fatalf("Check(%q): %+v", raw, p)
		}
	})
}
