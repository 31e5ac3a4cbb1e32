package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func named(names ...string) []Tool {
	tools := make([]Tool, len(names))
	for i, n := range names {
		tools[i].Name = n
	}
	return tools
}

func TestRegistry(t *testing.T) {
	r, err := NewRegistry(named("b", "a-1", "C_2"))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"b", "a-1", "C_2"}, r.Names()); d != "" {
		t.Error(d)
	}
	if c, ok := r.Lookup("a-1"); !ok || c.Name != "a-1" {
		t.Errorf("Lookup(a-1) = %v, %t", c, ok)
	}
	if _, ok := r.Lookup("A-1"); ok {
		t.Error("names are case-sensitive")
	}
	more, err := r.With(Tool{Name: "d"}, Tool{Name: "a-1", Description: "newer"})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"b", "a-1", "C_2", "d"}, more.Names()); d != "" {
		t.Error(d)
	}
	if c, _ := more.Lookup("a-1"); c.Description != "newer" || more.All()[1] != c {
		t.Error("a newer declaration does not take the place of the older")
	}
	less := more.Without("b", "nobody")
	if d := cmp.Diff([]string{"a-1", "C_2", "d"}, less.Names()); d != "" {
		t.Error(d)
	}
	d, _ := less.Lookup("d")
	if got := r.WithCompiled(d).Len(); got != 4 {
		t.Errorf("WithCompiled: %d tools", got)
	}
	if c, _ := r.Lookup("a-1"); r.Len() != 3 || c.Description != "" {
		t.Error("a derived registry changed the first one")
	}
}

func TestNilRegistry(t *testing.T) {
	var r *Registry
	if _, ok := r.Lookup("a"); ok || r.Len() != 0 || len(r.Names()) != 0 || r.All() != nil || r.Without("a").Len() != 0 {
		t.Error("a nil registry is not empty")
	}
	if next, err := r.With(named("a")...); err != nil || next.Len() != 1 {
		t.Errorf("With: %v", err)
	}
}

func TestDefinitionErrors(t *testing.T) {
	params := func(s string) Tool { return Tool{Name: "t", Parameters: json.RawMessage(s)} }
	tests := []struct {
		name  string
		tools []Tool
		want  DefinitionError
	}{
		{"empty name", named("a", ""), DefinitionError{Msg: "the name of tool 2 of 2 is empty"}},
		{"space", named("has space"), DefinitionError{Tool: "has space", Msg: "ASCII letters, digits, '_' and '-'"}},
		{"umlaut", named("größe"), DefinitionError{Tool: "größe", Msg: "ASCII letters"}},
		{"twice", named("a", "b", "a"), DefinitionError{Tool: "a", Msg: "declared twice, as tool 1 and tool 3"}},
		{"keyword", []Tool{params(`{"type":"object","properties":{"x":{"type":"strin"}}}`)},
			DefinitionError{Tool: "t", Path: "/properties/x", Keyword: "type", Msg: `at /properties/x, keyword "type": "strin" is not a type`}},
		{"not JSON", []Tool{params(`{`)}, DefinitionError{Tool: "t", Msg: "not valid JSON"}},
		{"never an object", []Tool{params(`{"type":"string"}`)}, DefinitionError{Tool: "t", Keyword: "type", Msg: `include "object"`}},
		{"never an object by reference", []Tool{params(`{"$ref":"#/$defs/a","$defs":{"a":{"type":"array"}}}`)}, DefinitionError{Tool: "t", Keyword: "type", Msg: `include "object"`}},
		{"remote", []Tool{params(`{"$ref":"http://127.0.0.1:1/x"}`)}, DefinitionError{Tool: "t", Keyword: "$ref", Msg: "nothing is fetched"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := NewRegistry(tt.tools)
			var e *DefinitionError
			if !errors.As(err, &e) {
				t.Fatalf("error %v", err)
			}
			if e.Tool != tt.want.Tool || e.Path != tt.want.Path || e.Keyword != tt.want.Keyword || !strings.Contains(e.Msg, tt.want.Msg) {
				t.Errorf("got %+v\nwant %+v", *e, tt.want)
			}
			if !strings.Contains(e.Error(), fmt.Sprintf("%q", tt.want.Tool)) {
				t.Errorf("%v does not name the tool", e)
			}
		})
	}
}

// TestDefinition: what strict providers are sent for odd schemas.
func TestDefinition(t *testing.T) {
	const empty = `{"type":"object","properties":{}}`
	tests := []struct{ name, in, want string }{
		{"absent", ``, empty},
		{"null", `null`, empty},
		{"empty", ` { } `, empty},
		{"true", `true`, empty},
		{"false", `false`, `{"type":"object","properties":{},"additionalProperties":false}`},
		{"no properties", `{"type":"object"}`, empty},
		{"no type", `{"properties":{"a":{}},"required":["a"]}`, `{"type":"object","properties":{"a":{}},"required":["a"]}`},
		{"neither", `{"required":["a"]}`, `{"type":"object","properties":{},"required":["a"]}`},
		{"nullable", `{"description":"d","type":["object","null"],"properties":{}}`, `{"description":"d","type":"object","properties":{}}`},
		{"nullable without properties", `{"type":["null","object"],"required":[]}`, `{"type":"object","properties":{},"required":[]}`},
		{"dialect", `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}`,
			`{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}`},
		{"only a dialect", `{"$schema":"https://json-schema.org/draft/2020-12/schema"}`, empty},
		{"unknown dialect", `{"$schema":"https://example.com/mine","type":"object"}`, empty},
		{"verbatim", "{\"type\": \"object\",\n \"properties\": {\"z\": {\"minimum\": 1.50}, \"a\": {\"default\": \"<&>\"}}, \"x-own\": [1 , 2]}",
			`{"type":"object","properties":{"z":{"minimum":1.50},"a":{"default":"<&>"}},"x-own":[1,2]}`},
		{"root reference", `{"$ref":"#/definitions/In","$schema":"http://json-schema.org/draft-07/schema#","definitions":{"In":{"type":"object","properties":{"next":{"$ref":"#/definitions/In"}}}}}`,
			`{"type":"object","properties":{"next":{"$ref":"#/definitions/In"}},"definitions":{"In":{"type":"object","properties":{"next":{"$ref":"#/definitions/In"}}}}}`},
		{"two references", `{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b","title":"A"},"b":{"properties":{"x":true}}}}`,
			`{"type":"object","properties":{"x":true},"title":"A","$defs":{"a":{"$ref":"#/$defs/b","title":"A"},"b":{"properties":{"x":true}}}}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for range 2 { // the second time from the cache
				c, err := Compile(Tool{Name: "t", Parameters: json.RawMessage(tt.in)})
				if err != nil {
					t.Fatal(err)
				}
				if got := string(c.Definition()); got != tt.want {
					t.Errorf("Definition = %s\nwant %s", got, tt.want)
				}
			}
		})
	}
}

func TestUnchecked(t *testing.T) {
	c, err := Compile(Tool{Name: "t", Parameters: json.RawMessage(`{"properties":{"a":{"pattern":"^(?!x)"}}}`)})
	if err != nil || len(c.Unchecked()) != 1 {
		t.Errorf("%v, %v", c.Unchecked(), err)
	}
}

func TestCacheIsBounded(t *testing.T) {
	var c cache
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 2000 {
				text := fmt.Sprintf(`{"title":"%d/%d/%s"}`, w, i, strings.Repeat("x", i))
				if _, err := c.get(text, schemaOptions); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if len(c.young) > generationEntries || len(c.old) > generationEntries || c.bytes > generationBytes {
		t.Errorf("%d and %d entries, %d bytes", len(c.young), len(c.old), c.bytes)
	}
	keep, _ := c.get(`{"title":"keep"}`, schemaOptions)
	for i := range 3 * generationEntries {
		c.get(fmt.Sprintf(`{"title":"%d"}`, i), schemaOptions)
		if i%50 != 0 {
			continue
		}
		if again, _ := c.get(`{"title":"keep"}`, schemaOptions); again != keep {
			t.Fatal("a schema in use was dropped")
		}
	}
	big := `{"title":"` + strings.Repeat("x", generationBytes) + `"}`
	before := len(c.young)
	if _, err := c.get(big, schemaOptions); err != nil || len(c.young) != before {
		t.Errorf("%v, %d entries before, %d after", err, before, len(c.young))
	}
}

func FuzzCompile(f *testing.F) {
	for _, s := range []string{``, `null`, `false`, `{"type":["object","null"]}`, `{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/a"}}}`, `{"$ref":"#/$defs/a","$defs":{"a":{"type":"object"}}}`, `{"properties":{"a":{"pattern":"("}}}`} {
		f.Add("name", s)
	}
	f.Fuzz(func(t *testing.T, name, params string) {
		c, err := Compile(Tool{Name: name, Parameters: json.RawMessage(params)})
		if err != nil {
			if e := new(DefinitionError); !errors.As(err, &e) {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		var def map[string]any
		if err := json.Unmarshal(c.Definition(), &def); err != nil || def["type"] != "object" || def["properties"] == nil {
			t.Fatalf("definition %s: %v", c.Definition(), err)
		}
		if _, err := Compile(Tool{Name: name, Parameters: c.Definition()}); err != nil {
			t.Fatalf("the definition %s of %q does not compile: %v", c.Definition(), params, err)
		}
	})
}

// A deferred registry is made once, when it is first looked at; one that cannot be
// made is empty, and says why.
func TestDeferred(t *testing.T) {
	made := 0
	r := Deferred(func() ([]Tool, error) { made++; return named("a", "b"), nil })
	if made != 0 {
		t.Fatal("it was made before anybody looked")
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if _, ok := r.Lookup("b"); !ok || r.Len() != 2 || len(r.All()) != 2 {
				t.Error("a tool is missing")
			}
		})
	}
	wg.Wait()
	if more, err := r.With(named("c")...); err != nil || more.Len() != 3 || r.Err() != nil || made != 1 {
		t.Errorf("%v, %v; made %d times", err, r.Err(), made)
	}
	for name, list := range map[string]func() ([]Tool, error){
		"a bad tool": func() ([]Tool, error) { return named("a", "not a name"), nil },
		"no list":    func() ([]Tool, error) { return nil, errors.New("broken") },
	} {
		if bad := Deferred(list); bad.Len() != 0 || bad.Err() == nil {
			t.Errorf("%s: %d tools, %v", name, bad.Len(), bad.Err())
		}
	}
	if (*Registry)(nil).Err() != nil || Deferred(func() ([]Tool, error) { return nil, nil }).Err() != nil {
		t.Error("an empty registry is fine")
	}
}

// The names that are plain are those that tools may have.
func TestPlainName(t *testing.T) {
	for name, want := range map[string]string{
		"a-Z_09": "a-Z_09", "my server-dotted.name": "my_server-dotted_name", "größe/[@`{": "gr__e_____", "\xff\x00": "__", "": "",
	} {
		if got := PlainName(name); got != want {
			t.Errorf("%q is %q, not %q", name, got, want)
		}
		_, err := Compile(Tool{Name: name})
		if (err == nil) != (name == want && name != "") {
			t.Errorf("a tool %q: %v", name, err)
		}
	}
}
