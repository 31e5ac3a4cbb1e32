package schema

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestBrokenSchemas(t *testing.T) {
	tests := []struct{ name, schema, path, keyword, want string }{
		{"not JSON", `{"type":`, "", "", "not valid JSON"},
		{"not a schema", `12`, "", "", "an object or a boolean"},
		{"array", `[]`, "", "", "an object or a boolean"},
		{"unknown type", `{"properties":{"a":{"type":"strin"}}}`, "/properties/a", "type", `"strin" is not a type; use string`},
		{"type of a wrong kind", `{"type":12}`, "", "type", "the number 12"},
		{"type twice", `{"type":["string","string"]}`, "", "type", "twice"},
		{"no types", `{"type":[]}`, "", "type", "at least one"},
		{"properties", `{"properties":12}`, "", "properties", "an object whose values are schemas"},
		{"property", `{"properties":{"a":"string"}}`, "/properties/a", "", `an object or a boolean, not the string "string"`},
		{"required", `{"required":"a"}`, "", "required", "array of property names"},
		{"required twice", `{"required":["a","a"]}`, "", "required", "twice"},
		{"required of a property", `{"properties":{"a":{"required":true}}}`, "/properties/a", "required", "not true"},
		{"pattern", `{"properties":{"a":{"pattern":"("}}}`, "/properties/a", "pattern", "not a regular expression"},
		{"pattern property", `{"patternProperties":{"[":{}}}`, "", "patternProperties", "not a regular expression"},
		{"minLength", `{"minLength":-1}`, "", "minLength", "whole number"},
		{"maxItems", `{"maxItems":1.5}`, "", "maxItems", "whole number"},
		{"minimum", `{"minimum":"1"}`, "", "minimum", "must be a number"},
		{"exclusive flag without Draft 4", `{"minimum":1,"exclusiveMinimum":true}`, "", "exclusiveMinimum", "not true"},
		{"multipleOf", `{"multipleOf":0}`, "", "multipleOf", "greater than 0"},
		{"enum", `{"enum":"a"}`, "", "enum", "array"},
		{"anyOf", `{"anyOf":[]}`, "", "anyOf", "empty"},
		{"anyOf of a wrong kind", `{"anyOf":{}}`, "", "anyOf", "array of schemas"},
		{"description", `{"description":null}`, "", "description", "not null"},
		{"tuple in 2020-12", `{"$schema":"https://json-schema.org/draft/2020-12/schema","items":[{}]}`, "", "items", "prefixItems"},
		{"missing definition", `{"properties":{"a":{"$ref":"#/$defs/b"}}}`, "/properties/a", "$ref", "names no part"},
		{"missing anchor", `{"$ref":"#b"}`, "", "$ref", "names no anchor"},
		{"remote", `{"$ref":"https://example.com/s.json"}`, "", "$ref", "nothing is fetched"},
		{"file", `{"$ref":"file:///etc/passwd"}`, "", "$ref", "nothing is fetched"},
		{"relative", `{"$ref":"other.json#/a"}`, "", "$ref", "nothing is fetched"},
		{"loop", `{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"allOf":[{"$ref":"#/$defs/a"}]}}}`, "/$defs/a", "$ref", "without end"},
		{"self", `{"$ref":"#"}`, "", "$ref", "without end"},
		{"unused definition", `{"$defs":{"a/b":{"type":"x"}}}`, "/$defs/a~1b", "type", `"x" is not a type`},
		{"beside a lone reference", `{"$schema":"http://json-schema.org/draft-07/schema#","$ref":"#/definitions/a","definitions":{"a":{},"b":{"type":1}}}`, "/definitions/b", "type", "the number 1"},
		{"anchor twice", `{"$defs":{"a":{"$anchor":"x"},"b":{"$anchor":"x"}}}`, "/$defs/b", "$anchor", "used twice"},
		{"$schema", `{"$schema":7}`, "", "$schema", "string"},
		{"deep", strings.Repeat(`{"not":`, 300) + `{}` + strings.Repeat(`}`, 300), "", "", "too deeply"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Compile(tt.schema, Options{})
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("Compile = %v, want *Error", err)
			}
			if e.Path != tt.path || e.Keyword != tt.keyword || !strings.Contains(e.Msg, tt.want) {
				t.Errorf("got path %q keyword %q: %s\nwant path %q keyword %q: …%s…", e.Path, e.Keyword, e.Msg, tt.path, tt.keyword, tt.want)
			}
		})
	}
}

func TestProblems(t *testing.T) {
	const city = `{"type":"object","properties":{"city":{"type":"string","minLength":2},"unit":{"enum":["c","f"]},"days":{"type":"integer","minimum":1,"maximum":7}},"required":["city","unit"],"additionalProperties":false}`
	const shape = `{"properties":{"shape":{"oneOf":[
		{"type":"object","properties":{"kind":{"const":"circle"},"r":{"type":"number"}},"required":["kind","r"]},
		{"type":"object","properties":{"kind":{"const":"square"},"side":{"type":"number"}},"required":["kind","side"]}]}}}`
	tests := []struct {
		name, schema, args string
		want               []string
	}{
		{"fine", city, `{"city":"Riga","unit":"c","days":1.0}`, nil},
		{"several", city, `{"unit":"k","days":0,"town":"Riga"}`, []string{
			`missing required property "city" (string)`,
			`unit: expected one of "c", "f", got string "k"`,
			`days: must be at least 1, got 0`,
			`property "town" is not allowed; allowed: "city", "unit", "days"`,
		}},
		{"type", city, `{"city":5,"unit":"c"}`, []string{`city: expected string, got number 5`}},
		{"integer", city, `{"city":"Riga","unit":"c","days":1.5}`, []string{`days: expected integer, got number 1.5`}},
		{"short", city, `{"city":"R","unit":"c"}`, []string{`city: must have at least 2 characters, has 1`}},
		{"missing choice", city, `{"city":"Riga"}`, []string{`missing required property "unit" (one of "c", "f")`}},
		{"items", `{"properties":{"l":{"type":"array","items":{"properties":{"odd name":{"type":"boolean"}}}}}}`,
			`{"l":[{},{"odd name":1}]}`, []string{`l[1]["odd name"]: expected boolean, got number 1`}},
		{"nullable", `{"properties":{"a":{"anyOf":[{"type":"string"},{"type":"null"}]}}}`, `{"a":1}`,
			[]string{`a: expected string or null, got number 1`}},
		{"literals", `{"properties":{"a":{"anyOf":[{"const":"x"},{"const":"y"},{"type":"null"}]}}}`, `{"a":"z"}`,
			[]string{`a: expected null or one of "x", "y", got string "z"`}},
		{"union", shape, `{"shape":{"kind":"square","size":2}}`, []string{
			`shape: fits none of the 2 allowed forms; form 2 is the closest, but:`,
			`shape: missing required property "side" (number)`,
		}},
		{"both", `{"oneOf":[{"required":["a"]},{"required":["b"]}]}`, `{"a":1,"b":2}`,
			[]string{`fits forms 1 and 2 of the 2 allowed ones at once, but must fit exactly one`}},
		{"condition", `{"if":{"properties":{"a":{"const":1}}},"then":{"required":["b"]}}`, `{"a":1}`,
			[]string{`missing required property "b"`}},
		{"not", `{"properties":{"a":{"not":{"type":"string"}}}}`, `{"a":"x"}`, []string{`a: must not be string`}},
		{"never", `false`, `{}`, []string{`nothing is allowed here`}},
		{"forbidden", `{"properties":{"a":false,"b":true}}`, `{"a":1}`, []string{`property "a" is not allowed; allowed: "b"`}},
		{"pattern", `{"properties":{"a":{"pattern":"^[a-z]+$"}}}`, `{"a":"A"}`, []string{`a: must match the pattern ^[a-z]+$, got string "A"`}},
		{"names", `{"propertyNames":{"pattern":"^x-"}}`, `{"y":1}`, []string{`the property name "y" is not allowed; names must match ^x-`}},
		{"needs", `{"dependentRequired":{"a":["b"]}}`, `{"a":1}`, []string{`missing required property "b", which "a" makes necessary`}},
		{"unique", `{"properties":{"a":{"uniqueItems":true}}}`, `{"a":[1,2,1.0]}`, []string{`a: items must differ from each other, but [0] and [2] are equal`}},
		{"contains", `{"properties":{"a":{"contains":{"type":"string"}}}}`, `{"a":[1]}`, []string{`a: must hold at least 1 items that are string, holds 0`}},
		{"unevaluated", `{"allOf":[{"properties":{"a":{}}}],"properties":{"b":{}},"unevaluatedProperties":false}`, `{"a":1,"b":1,"c":1}`,
			[]string{`property "c" is not allowed; allowed: "b"`}},
		{"huge number", `{"properties":{"a":{"maximum":10,"multipleOf":3}}}`, `{"a":1e1000000000}`, []string{
			`a: must be at most 10, got 1e1000000000`, `a: must be a multiple of 3, got 1e1000000000`}},
		{"Draft 4 bounds", `{"$schema":"http://json-schema.org/draft-04/schema#","properties":{"a":{"minimum":1,"exclusiveMinimum":true}}}`, `{"a":1}`,
			[]string{`a: must be greater than 1, got 1`}},
		{"mixed drafts", `{"definitions":{"s":{"type":"string"}},"properties":{"a":{"items":[{"$ref":"#/definitions/s"}],"additionalItems":false}},"dependencies":{"a":["b"]}}`, `{"a":[1]}`,
			[]string{`missing required property "b", which "a" makes necessary`, `a[0]: expected string, got number 1`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			if rep := check(t, tt.schema, tt.args, Options{}); rep != nil {
				for _, p := range rep.Problems {
					got = append(got, p.String())
				}
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("problems (-want +got):\n%s", d)
			}
		})
	}
}

func check(t testing.TB, schema, args string, opt Options) *Report {
	t.Helper()
	s, err := Compile(schema, opt)
	if err != nil {
		t.Fatal(err)
	}
	v, err := Parse(args)
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(&v)
}

func TestTolerant(t *testing.T) {
	const s = `{"properties":{"a":{"additionalProperties":false},"b":{"type":"string"}},"additionalProperties":false}`
	if rep := check(t, s, `{"x":1,"a":{"y":2}}`, Options{Tolerant: true}); rep != nil {
		t.Errorf("unlisted properties: %v", rep.Problems)
	}
	if rep := check(t, s, `{"b":1}`, Options{Tolerant: true}); rep == nil {
		t.Error("a wrong type passed")
	}
	if rep := check(t, s, `{"x":1,"a":{"y":2}}`, Options{}); rep == nil || len(rep.Problems) != 2 {
		t.Errorf("strict: %v, want two problems", rep)
	}
}

func TestReportIsBounded(t *testing.T) {
	var args strings.Builder
	args.WriteString(`{"l":[0`)
	for range 5000 {
		args.WriteString(`,"` + strings.Repeat("x", 500) + `"`)
	}
	args.WriteString(`]}`)
	rep := check(t, `{"properties":{"l":{"items":{"type":"integer"}}}}`, args.String(), Options{})
	if len(rep.Problems) != maxProblems || !rep.More {
		t.Fatalf("%d problems, more = %t", len(rep.Problems), rep.More)
	}
	for _, p := range rep.Problems {
		if len(p.String()) > 400 {
			t.Errorf("a problem of %d bytes", len(p.String()))
		}
	}
}

// TestExplosion: a schema that doubles the work at each level ends soon.
func TestExplosion(t *testing.T) {
	s := `{"$defs":{"n0":{"type":"string"}`
	for i := 1; i < 40; i++ {
		prev := `{"$ref":"#/$defs/n` + itoa(i-1) + `"}`
		s += `,"n` + itoa(i) + `":{"anyOf":[` + prev + `,` + prev + `]}`
	}
	s += `},"properties":{"a":{"$ref":"#/$defs/n39"}}}`
	rep := check(t, s, `{"a":1}`, Options{})
	if rep == nil {
		t.Fatal("a wrong value passed")
	}
	last := rep.Problems[len(rep.Problems)-1].String()
	if !strings.Contains(last, "too complex") {
		t.Errorf("last problem %q", last)
	}
}

func itoa(i int) string { b, _ := json.Marshal(i); return string(b) }

func TestRecursiveSchema(t *testing.T) {
	const tree = `{"type":"object","properties":{"name":{"type":"string"},"children":{"type":"array","items":{"$ref":"#"}}},"required":["name"]}`
	if rep := check(t, tree, `{"name":"a","children":[{"name":"b","children":[]}]}`, Options{}); rep != nil {
		t.Errorf("problems %v", rep.Problems)
	}
	rep := check(t, tree, `{"name":"a","children":[{"name":"b","children":[{}]}]}`, Options{})
	if rep == nil || rep.Problems[0].String() != `children[0].children[0]: missing required property "name" (string)` {
		t.Errorf("report %v", rep)
	}
}

func TestPatternsBeyondGo(t *testing.T) {
	// What zod writes for z.email().
	const mail = `^(?!\\.)(?!.*\\.\\.)([A-Za-z0-9_'+\\-\\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\\-]*\\.)+[A-Za-z]{2,}$`
	s, err := Compile(`{"properties":{"a":{"type":"string","pattern":"`+mail+`"}}}`, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Unchecked()) != 1 {
		t.Errorf("Unchecked = %q", s.Unchecked())
	}
	for _, p := range []string{`(?<=a)b`, `(a)\1`, `[^]`, `[\w-.]`, `\p{Script_Extensions=Greek}`, `a{2000}`} {
		if _, err := compilePattern(p); err != nil {
			t.Errorf("%s: %v", p, err)
		}
	}
	for src, s := range map[string]string{`^\u0041\cA\0\u{42}\/$`: "A\x01\x00B/"} {
		p, err := compilePattern(src)
		if err != nil || p.re == nil || !p.match(s) {
			t.Errorf("%s does not match %q: %v", src, s, err)
		}
	}
}

func TestParse(t *testing.T) {
	tests := []struct{ in, want, err string }{
		{`{"b":1.50,"a":[true,null,"x"]}`, `{"b":1.50,"a":[true,null,"x"]}`, ""},
		{" {\n\"a\" : 1e400 } \t", `{"a":1e400}`, ""},
		{`{"a":1,"b":2,"a":3}`, `{"a":3,"b":2}`, ""},
		{`"\ud83d"`, `"` + "\ufffd" + `"`, ""},
		{`"\ud83d\ude00"`, `"😀"`, ""},
		{`"\ud83dx\ude00"`, `"` + "\ufffdx\ufffd" + `"`, ""},
		{`"\ud83d\u0041"`, `"` + "\ufffdA" + `"`, ""},
		{"\"a\xffb\"", "\"a\ufffdb\"", ""},
		{"\"\\n\xff\"", "\"\\n\ufffd\"", ""},
		{"\"\u2028<\\u2029\\u0001\\b\"", `"\u2028<\u2029\u0001\u0008"`, ""},
		{`{"x":"hi`, "", "the string that begins here is not closed: at byte 5"},
		{`{"x":"a` + "\n" + `b"}`, "", "a line break inside a string must be written as \\n; found one at byte 7"},
		{`{"x":1,}`, "", `expected a property name in double quotes but found '}' at byte 7`},
		{`{'x':1}`, "", `expected a property name in double quotes but found '\'' at byte 1`},
		{`{"x" 1}`, "", "expected ':' after the property name but found '1' at byte 5"},
		{`[1 2]`, "", "expected ',' or ']' but found '2' at byte 3"},
		{`{} x`, "", "expected the end of the text but found 'x' at byte 3"},
		{`01`, "", "a number must not begin with 0 at byte 0"},
		{`-`, "", "expected a digit but found the end of the text at byte 1"},
		{`1.`, "", "expected a digit after the decimal point but found the end of the text at byte 2"},
		{`NaN`, "", "expected a value but found 'N' at byte 0"},
		{`"\x"`, "", `\x is not an escape of JSON at byte 1`},
		{`"\u12"`, "", `\u must be followed by four hexadecimal digits at byte 1`},
		{strings.Repeat("[", MaxDepth+1), "", "the value is nested too deeply at byte 56"},
	}
	for _, tt := range tests {
		v, err := Parse(tt.in)
		switch {
		case tt.err != "":
			if err == nil || err.Error() != tt.err {
				t.Errorf("Parse(%q) error %v, want %s", tt.in, err, tt.err)
			}
		case err != nil:
			t.Errorf("Parse(%q): %v", tt.in, err)
		default:
			if got := string(v.AppendJSON(nil)); got != tt.want {
				t.Errorf("Parse(%q) = %s, want %s", tt.in, got, tt.want)
			}
		}
	}
}

func TestManyMembers(t *testing.T) {
	var b strings.Builder
	b.WriteByte('{')
	for i := range 100 {
		b.WriteString(`"k` + itoa(i) + `":` + itoa(i) + `,`)
	}
	b.WriteString(`"k50":"last"}`)
	v, err := Parse(b.String())
	if err != nil || len(v.Members) != 100 || v.Get("k50").Text != "last" || v.Members[50].Name != "k50" || v.Get("x") != nil {
		t.Errorf("%v, %d members", err, len(v.Members))
	}
}

func TestDecimal(t *testing.T) {
	order := []string{"-1e400", "-2", "-1.5", "-1e-400", "0", "1e-400", "0.5", "1", "1.5", "9", "10", "1e2", "1e400", "1e999999999999999999999"}
	for i, a := range order {
		for j, b := range order {
			if got, want := parseDecimal(a).cmp(parseDecimal(b)), sign(i-j); got != want {
				t.Errorf("cmp(%s, %s) = %d, want %d", a, b, got, want)
			}
		}
	}
	for _, eq := range [][2]string{{"1", "1.0"}, {"100", "1e2"}, {"0.001", "1E-3"}, {"0", "-0.0e5"}, {"12e-1", "1.2"}} {
		if parseDecimal(eq[0]).cmp(parseDecimal(eq[1])) != 0 {
			t.Errorf("%s and %s differ", eq[0], eq[1])
		}
	}
	for text, want := range map[string]bool{"1": true, "1.0": true, "1e3": true, "1.5": false, "15e-1": false, "0": true, "1e-400": false} {
		if parseDecimal(text).isInt() != want {
			t.Errorf("%s is an integer = %t", text, !want)
		}
	}
	for _, tt := range []struct {
		n, of string
		want  bool
	}{{"9", "3", true}, {"10", "3", false}, {"0.0075", "0.0001", true}, {"0.00751", "0.0001", false}, {"1e308", "0.5", true}, {"1e1000000000", "7", false}, {"4.5", "1.5", true}, {"-6", "3", true}} {
		if parseDecimal(tt.n).multipleOf(parseDecimal(tt.of)) != tt.want {
			t.Errorf("%s a multiple of %s = %t", tt.n, tt.of, !tt.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{`{}`, `{"a":[1,-2.5e10,"x\u00e9\ud83d\ude00",true,false,null]}`, `{"a":1,"a":2}`, `"\ud83d"`, "\"\xff\"", `01`, `[[[[`, `{"a":`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, err := Parse(s)
		if err != nil {
			if json.Valid([]byte(s)) && !strings.Contains(err.Error(), "too deeply") {
				t.Fatalf("Parse(%q) refuses valid JSON: %v", s, err)
			}
			return
		}
		out := v.AppendJSON(nil)
		if !json.Valid(out) || !utf8.Valid(out) || strings.ContainsAny(string(out), "\n\r\u2028\u2029") {
			t.Fatalf("Parse(%q) is written as %q", s, out)
		}
		if !json.Valid([]byte(s)) {
			t.Fatalf("Parse takes %q, which is not JSON", s)
		}
		again, err := Parse(string(out))
		if err != nil || !equal(&v, &again) || string(again.AppendJSON(nil)) != string(out) {
			t.Fatalf("%q does not read back: %v", out, err)
		}
	})
}

func FuzzCompile(f *testing.F) {
	for _, s := range []string{
		`true`, `{"type":"object","properties":{"a":{"type":["string","null"],"pattern":"^(?=x)"}},"required":["a"],"additionalProperties":false}`,
		`{"$defs":{"t":{"$dynamicAnchor":"n","properties":{"c":{"items":{"$dynamicRef":"#n"}}}}},"$ref":"#/$defs/t"}`,
		`{"oneOf":[{"const":1},{"minimum":2,"multipleOf":0.1}],"unevaluatedProperties":false,"if":{"required":["a"]},"then":false}`,
		`{"$id":"http://x/y","$ref":"z#/a","definitions":{"b":{"$id":"z","a":{}}}}`, `{"dependencies":{"a":["b"],"c":{}},"contains":{},"minContains":2}`,
	} {
		f.Add(s, `{"a":"x","b":[1,2],"c":{"c":[{}]}}`)
	}
	f.Fuzz(func(t *testing.T, s, args string) {
		c, err := Compile(s, Options{})
		if err != nil {
			if e := new(Error); !errors.As(err, &e) || !utf8.ValidString(err.Error()) || len(err.Error()) > 2000 {
				t.Fatalf("error %T of %d bytes: %v", err, len(err.Error()), err)
			}
			return
		}
		v, err := Parse(args)
		if err != nil {
			return
		}
		if rep := c.Validate(&v); rep != nil && len(rep.Problems) == 0 {
			t.Fatal("a report without a problem")
		}
	})
}
