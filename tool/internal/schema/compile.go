package schema

import (
	"fmt"
	"strings"

	"github.com/transom-run/transom/internal/jsonstring"
)

// compiler turns a parsed schema into nodes. Every subschema is compiled once,
// whoever refers to it, so that recursive schemas come out as cyclic nodes.
type compiler struct {
	opt       Options
	dialect   dialect
	doc       *Value
	places    map[*Value]place // of every subschema, from scan
	resources map[string]*resource
	nodes     map[*Value]*node
	order     []*Value // the keys of nodes, as they were met
	unchecked []string
	dynamic   bool // some subschema holds a dynamic reference
}

// place is where a subschema stands.
type place struct {
	path string // JSON pointer
	in   *resource
}

// dialect is what the drafts differ in.
type dialect struct {
	idKey       string
	refAlone    bool // keywords next to $ref are ignored
	tupleItems  bool // items may be an array
	prefixItems bool
	needs       bool // dependencies
	modern      bool // 2019-09 and later keywords
	boolBounds  bool // exclusiveMinimum: true
}

// dialectOf reads $schema. Without one all that can be told apart is allowed.
func dialectOf(doc *Value) (dialect, error) {
	d := dialect{idKey: "$id", tupleItems: true, prefixItems: true, needs: true, modern: true}
	if doc.Kind != Object {
		return d, nil
	}
	v := doc.Get("$schema")
	if v == nil {
		return d, nil
	}
	if v.Kind != String {
		return d, &Error{Keyword: "$schema", Msg: "must be a string"}
	}
	uri := strings.TrimRight(v.Text, "#")
	uri = strings.TrimPrefix(strings.TrimPrefix(uri, "http://"), "https://")
	switch uri {
	case "json-schema.org/draft-04/schema":
		return dialect{idKey: "id", refAlone: true, tupleItems: true, needs: true, boolBounds: true}, nil
	case "json-schema.org/draft-06/schema", "json-schema.org/draft-07/schema":
		return dialect{idKey: "$id", refAlone: true, tupleItems: true, needs: true}, nil
	case "json-schema.org/draft/2019-09/schema":
		return dialect{idKey: "$id", tupleItems: true, modern: true}, nil
	case "json-schema.org/draft/2020-12/schema":
		return dialect{idKey: "$id", prefixItems: true, modern: true}, nil
	}
	return d, nil
}

// knows reports whether the dialect has the keyword. What it does not have is an
// annotation, whatever it holds.
func (d dialect) knows(key string) bool {
	switch key {
	case "prefixItems":
		return d.prefixItems
	case "unevaluatedItems", "unevaluatedProperties", "dependentRequired", "dependentSchemas",
		"minContains", "maxContains", "$dynamicRef", "$recursiveRef":
		return d.modern
	}
	return true
}

// Compile compiles a schema: the text of a JSON object or a boolean.
func Compile(text string, opt Options) (*Schema, error) {
	doc, err := parse(text, maxSchemaDepth)
	if err != nil {
		return nil, &Error{Msg: "the schema is not valid JSON: " + err.Error()}
	}
	s := &Schema{doc: doc}
	c := &compiler{
		opt: opt, doc: &s.doc,
		places:    map[*Value]place{},
		resources: map[string]*resource{},
		nodes:     map[*Value]*node{},
	}
	if c.dialect, err = dialectOf(c.doc); err != nil {
		return nil, err
	}
	root := &resource{root: c.doc}
	c.resources[""] = root
	if err := c.scan(c.doc, "", root); err != nil {
		return nil, err
	}
	if s.root, err = c.compile(c.doc); err != nil {
		return nil, err
	}
	if err := c.linkDynamic(); err != nil {
		return nil, err
	}
	if err := c.refuseLoops(); err != nil {
		return nil, err
	}
	s.unchecked = c.unchecked
	return s, nil
}

// fault makes the error for a keyword of a subschema.
func (c *compiler) fault(v *Value, keyword, format string, args ...any) error {
	return &Error{Path: c.places[v].path, Keyword: keyword, Msg: fmt.Sprintf(format, args...)}
}

// How subschemas hang on their parent.
type shape uint8

const (
	one        shape = 1 << iota // a schema
	list                         // an array of schemas
	dictionary                   // an object whose values are schemas
	mixed                        // a dictionary whose values may be arrays of names
)

// applicator is how a keyword holds subschemas; 0 where it holds none.
func applicator(keyword string) shape {
	switch keyword {
	case "$defs", "definitions", "properties", "patternProperties", "dependentSchemas":
		return dictionary
	case "dependencies":
		return mixed
	case "additionalProperties", "unevaluatedProperties", "propertyNames", "additionalItems", "unevaluatedItems", "contains", "not", "if", "then", "else":
		return one
	case "items":
		return one | list
	case "prefixItems", "allOf", "anyOf", "oneOf":
		return list
	}
	return 0
}

// scan notes every subschema's place and every name that a reference can use.
func (c *compiler) scan(v *Value, path string, in *resource) error {
	if v.Kind == Bool {
		c.places[v] = place{path, in}
		return nil
	}
	if v.Kind != Object {
		return &Error{Path: path, Msg: fmt.Sprintf("a schema must be an object or a boolean, not %s", describe(v))}
	}
	if in = c.enter(v, in); in.root == v {
		in.base = strings.TrimSuffix(in.base, "#")
	}
	c.places[v] = place{path, in}
	if err := c.anchors(v, in); err != nil {
		return err
	}
	for i := range v.Members {
		m := &v.Members[i]
		shape := applicator(m.Name)
		if shape == 0 || !c.dialect.knows(m.Name) {
			continue
		}
		if err := c.scanKeyword(v, m, shape, path+"/"+m.Name, in); err != nil {
			return err
		}
	}
	return nil
}

func (c *compiler) scanKeyword(owner *Value, m *Member, s shape, path string, in *resource) error {
	v := &m.Value
	switch {
	case v.Kind == Array && s&list != 0:
		for i := range v.Items {
			if err := c.scan(&v.Items[i], fmt.Sprintf("%s/%d", path, i), in); err != nil {
				return err
			}
		}
	case v.Kind == Object && s&(dictionary|mixed) != 0:
		for i := range v.Members {
			sub := &v.Members[i]
			if s == mixed && sub.Value.Kind == Array {
				continue
			}
			if err := c.scan(&sub.Value, path+"/"+escapePointer(sub.Name), in); err != nil {
				return err
			}
		}
	case s&one != 0:
		return c.scan(v, path, in)
	case s&list != 0:
		return c.fault(owner, m.Name, "must be an array of schemas, not %s", describe(v))
	default:
		return c.fault(owner, m.Name, "must be an object whose values are schemas, not %s", describe(v))
	}
	return nil
}

// enter returns the resource that v belongs to: a new one where v has an id.
func (c *compiler) enter(v *Value, in *resource) *resource {
	id := v.Get(c.dialect.idKey)
	if id == nil || id.Kind != String || strings.HasPrefix(id.Text, "#") {
		return in
	}
	if c.dialect.refAlone && v.Get("$ref") != nil {
		return in
	}
	r := in
	if v != c.doc {
		r = &resource{root: v}
	}
	r.base = strings.TrimSuffix(resolveURI(in.base, id.Text), "#")
	if _, taken := c.resources[r.base]; !taken {
		c.resources[r.base] = r
	}
	return r
}

// anchors notes the names that v gives itself.
func (c *compiler) anchors(v *Value, in *resource) error {
	for _, key := range [...]string{"$anchor", "$dynamicAnchor"} {
		a := v.Get(key)
		if a == nil || !c.dialect.modern {
			continue
		}
		if a.Kind != String || a.Text == "" {
			return c.fault(v, key, "must be a name")
		}
		if err := c.addAnchor(v, in, key, a.Text); err != nil {
			return err
		}
	}
	if r := v.Get("$recursiveAnchor"); r != nil && r.Kind == Bool && r.Bool && in.root == v {
		if err := c.addAnchor(v, in, "$dynamicAnchor", recursiveAnchor); err != nil {
			return err
		}
	}
	if id := v.Get(c.dialect.idKey); id != nil {
		if id.Kind != String {
			return c.fault(v, c.dialect.idKey, "must be a string, not %s", describe(id))
		}
		if name, ok := strings.CutPrefix(id.Text, "#"); ok && name != "" {
			return c.addAnchor(v, in, c.dialect.idKey, name)
		}
	}
	return nil
}

// recursiveAnchor stands for $recursiveAnchor among the dynamic anchors; no
// schema can spell it.
const recursiveAnchor = "\x00recursive"

func (c *compiler) addAnchor(v *Value, in *resource, key, name string) error {
	if old, ok := in.anchors[name]; ok && old != v {
		return c.fault(v, key, "the name %q is used twice", name)
	}
	if in.anchors == nil {
		in.anchors = map[string]*Value{}
	}
	in.anchors[name] = v
	if key == "$dynamicAnchor" {
		if in.dynamic == nil {
			in.dynamic = map[string]*Value{}
		}
		in.dynamic[name] = v
	}
	return nil
}

// compile returns the node of a subschema.
func (c *compiler) compile(v *Value) (*node, error) {
	if n, ok := c.nodes[v]; ok {
		return n, nil
	}
	n := &node{in: c.places[v].in}
	c.nodes[v] = n
	c.order = append(c.order, v)
	if v.Kind == Bool {
		n.never = !v.Bool
		return n, nil
	}
	for i := range v.Members {
		m := &v.Members[i]
		if !c.dialect.knows(m.Name) {
			continue
		}
		if err := c.keyword(n, v, m.Name, &m.Value); err != nil {
			return nil, err
		}
	}
	if c.dialect.refAlone && n.ref != nil {
		// What stands beside the reference had to be sound, and is ignored.
		*n = node{in: n.in, ref: n.ref}
	}
	c.finish(n, v)
	return n, nil
}

func (c *compiler) list(v *Value) ([]*node, error) {
	nodes := make([]*node, len(v.Items))
	for i := range v.Items {
		var err error
		if nodes[i], err = c.compile(&v.Items[i]); err != nil {
			return nil, err
		}
	}
	return nodes, nil
}

func (c *compiler) dictionary(v *Value) (map[string]*node, error) {
	nodes := make(map[string]*node, len(v.Members))
	for i := range v.Members {
		n, err := c.compile(&v.Members[i].Value)
		if err != nil {
			return nil, err
		}
		nodes[v.Members[i].Name] = n
	}
	return nodes, nil
}

// finish settles what depends on several keywords.
func (c *compiler) finish(n *node, v *Value) {
	if n.cond == nil {
		n.then, n.els_ = nil, nil
	}
	if a := n.arr; a != nil && a.contains == nil {
		a.minContains, a.maxContains = 0, -1
	}
	if o := n.obj; o != nil && c.opt.Tolerant {
		if o.additional != nil && o.additional.never {
			o.additional = nil
		}
		if o.unevaluated != nil && o.unevaluated.never {
			o.unevaluated = nil
		}
	}
	if c.dialect.boolBounds {
		exclusive(v, "exclusiveMinimum", n.num, func(r *numberRules) (from, to **bound) { return &r.min, &r.above })
		exclusive(v, "exclusiveMaximum", n.num, func(r *numberRules) (from, to **bound) { return &r.max, &r.below })
	}
}

// exclusive turns a bound into an exclusive one where Draft 4's flag says so.
func exclusive(v *Value, key string, r *numberRules, pick func(*numberRules) (from, to **bound)) {
	if flag := v.Get(key); r == nil || flag == nil || flag.Kind != Bool || !flag.Bool {
		return
	}
	from, to := pick(r)
	*to, *from = *from, nil
}

// describe names a value in an error about a schema.
func describe(v *Value) string {
	switch v.Kind {
	case Null:
		return "null"
	case Bool:
		return string(v.AppendJSON(nil))
	case Number:
		return "the number " + clip(v.Text, 40)
	case String:
		return "the string " + quote(v.Text, 40)
	case Array:
		return "an array"
	}
	return "an object"
}

func quote(s string, n int) string { return string(jsonstring.Append(nil, clip(s, n))) }

func escapePointer(s string) string {
	if !strings.ContainsAny(s, "~/") {
		return s
	}
	return strings.ReplaceAll(strings.ReplaceAll(s, "~", "~0"), "/", "~1")
}
