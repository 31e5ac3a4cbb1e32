// Package schema compiles the JSON Schema of a tool's arguments and checks a
// model's arguments against it, with an account of what is wrong that a model
// can act on.
//
//	s, err := schema.Compile(`{"type":"object","required":["city"]}`, schema.Options{})
//	v, err := schema.Parse(`{"town":"Riga"}`)
//	report := s.Validate(&v)
//	report.Problems[0].String()   // missing required property "city"
//
// # Why not a library
//
// The complete library of the field (santhosh-tekuri/jsonschema) compiles every
// metaschema when the process starts: 5.6 ms and 1.7 MB before main, more than
// half of what a start of Transom may take, and nothing can defer it. The light
// one (google/jsonschema-go, which the tool package uses to infer schemas from
// Go types) stops at the first problem and prints values in Go's notation, and
// takes {"type":"strin"} for a good schema. Both refuse patterns with
// look-around, which zod writes for every e-mail address.
//
// # What is supported
//
// Draft 2020-12 and Draft 7 in full, but for the points below; Drafts 2019-09,
// 6 and 4 as far as they are subsets of those. A schema without $schema may mix
// the drafts, as those in the wild do: "definitions", "items" with an array and
// "dependencies" work next to "$defs" and "prefixItems".
//
//   - format and content* are annotations, as both drafts allow.
//   - A pattern that Go's linear-time engine cannot express (look-around, back
//     references) is accepted and not enforced; [Schema.Unchecked] lists them.
//   - A reference that leads out of the schema is an error. Nothing is ever
//     fetched, from the network or from files.
//   - An unknown $schema is read as Draft 2020-12.
//
// # Ownership
//
// A [Schema] never changes after Compile and may be used by any number of
// goroutines. A [Value] belongs to whoever parsed it.
//
// # Errors
//
// [Parse] fails with *[SyntaxError], [Compile] with *[Error]. Neither panics,
// whatever the bytes, and the time of [Schema.Validate] is bounded.
package schema

import (
	"fmt"
	"strings"
)

// Options say how strict a schema is.
type Options struct {
	// Tolerant ignores "additionalProperties": false and
	// "unevaluatedProperties": false: properties the schema does not list pass.
	Tolerant bool
}

// Error says what is wrong with a schema.
type Error struct {
	Path    string // JSON pointer of the subschema, "" for the root
	Keyword string // "" where the subschema itself is wrong
	Msg     string
}

// Error names the place, the keyword and the fault.
func (e *Error) Error() string {
	where := "at the root"
	if e.Path != "" {
		where = "at " + clip(e.Path, 200)
	}
	if e.Keyword != "" {
		return fmt.Sprintf("%s, keyword %q: %s", where, e.Keyword, e.Msg)
	}
	return where + ": " + e.Msg
}

// Schema is a compiled schema.
type Schema struct {
	root      *node
	doc       Value
	unchecked []string
}

// Unchecked lists the patterns that are not enforced, in the order they were
// met.
func (s *Schema) Unchecked() []string { return s.unchecked }

// AllowsObjects reports whether the root's "type" leaves room for an object.
// References of the root are followed.
func (s *Schema) AllowsObjects() bool {
	n := s.root
	for range 16 { // a chain of references is never longer in earnest
		if n.types != 0 && n.types&(1<<Object) == 0 {
			return false
		}
		if n.ref == nil {
			return true
		}
		n = n.ref
	}
	return true
}

// Never reports whether the schema is false.
func (s *Schema) Never() bool { return s.root.never }

// node is a compiled subschema. Its zero value allows everything.
type node struct {
	never bool
	ref   *node
	dyn   *dynamicRef
	types typeSet // 0 where any type is fine

	enum     []Value
	enumText map[string]struct{} // the strings of a long enum
	constant *Value

	num *numberRules
	str *stringRules
	arr *arrayRules
	obj *objectRules

	allOf, anyOf, oneOf   []*node
	not, cond, then, els_ *node

	// in is the resource (the document or a part with its own $id) that holds
	// the subschema: the dynamic scope of $dynamicRef.
	in *resource
}

type dynamicRef struct {
	to     *node
	anchor string // "" where the reference behaves like $ref
}

type resource struct {
	base    string
	root    *Value
	anchors map[string]*Value
	dynamic map[string]*Value
	nodes   map[string]*node // of dynamic
}

type numberRules struct {
	min, max, above, below, multiple *bound
}

type bound struct {
	d    decimal
	text string
}

type stringRules struct {
	min, max int // -1 where absent
	pattern  *pattern
}

type arrayRules struct {
	prefix      []*node
	items       *node // of the items after prefix
	contains    *node
	minContains int // 1 by default
	maxContains int
	min, max    int
	unique      bool
	unevaluated *node
}

type objectRules struct {
	props       map[string]*node
	names       []string // of props, in the schema's order
	patterns    []patternRule
	additional  *node
	required    []string
	min, max    int
	nameRule    *node
	needs       []dependency
	schemas     []dependentSchema
	unevaluated *node
}

type patternRule struct {
	pattern *pattern
	n       *node
}

type dependency struct {
	name  string
	needs []string
}

type dependentSchema struct {
	name string
	n    *node
}

// typeSet is a set of kinds, with one more bit for integer.
type typeSet uint8

const integerBit typeSet = 1 << (Object + 1)

var typeNames = []struct {
	name string
	set  typeSet
}{
	{"string", 1 << String},
	{"integer", integerBit},
	{"number", 1 << Number},
	{"boolean", 1 << Bool},
	{"array", 1 << Array},
	{"object", 1 << Object},
	{"null", 1 << Null},
}

func (t typeSet) has(v *Value) bool {
	if t&(1<<v.Kind) != 0 {
		return true
	}
	return v.Kind == Number && t&integerBit != 0 && parseDecimal(v.Text).isInt()
}

// String lists the types, such as "string or null".
func (t typeSet) String() string {
	var names []string
	for _, tn := range typeNames {
		if t&tn.set != 0 {
			names = append(names, tn.name)
		}
	}
	return strings.Join(names, " or ")
}
