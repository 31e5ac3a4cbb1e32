package schema

import (
	"fmt"
	"strings"
)

// Report lists what is wrong with a value.
type Report struct {
	Problems []Problem
	// More tells that there were more problems than are listed.
	More bool
}

// Problem is one fault of a value.
type Problem struct {
	// Path leads to the value at fault, such as items[2].name; "" is the value
	// itself.
	Path string
	// Msg says what was wrong and what is allowed.
	Msg string

	depth int
	kind  problemKind
}

// problemKind ranks problems where alternatives are compared.
type problemKind uint8

const (
	otherProblem problemKind = iota
	typeProblem
	choiceProblem // enum, const: what tells alternatives apart
)

// String is the problem in one line.
func (p Problem) String() string {
	if p.Path == "" {
		return p.Msg
	}
	return p.Path + ": " + p.Msg
}

// fail records a problem at the current place; it is always false. Where nothing
// is recorded the problem is not put into words.
func (r *run) fail(say func() Problem) bool {
	if r.report != nil {
		p := say()
		p.Path, p.depth = r.render(), len(r.path)
		r.report.add(p)
	}
	return false
}

func (rep *Report) add(p Problem) {
	if len(rep.Problems) >= maxProblems {
		rep.More = true
		return
	}
	rep.Problems = append(rep.Problems, p)
}

// closeness tells how near an alternative came, for a value that stands at
// depth: one that failed at its first sight is far, one whose distinguishing
// choice failed is not much nearer, and of the others the one with the fewest
// faults is nearest.
func (rep *Report) closeness(depth int) int {
	rank := 1000
	for _, p := range rep.Problems {
		switch {
		case p.kind == typeProblem && p.depth == depth:
			return 0
		case p.kind == choiceProblem && p.depth == depth+1:
			rank -= 100
		default:
			rank -= 10
		}
	}
	return max(rank, 1)
}

// render writes the current place.
func (r *run) render() string {
	var b strings.Builder
	for i, s := range r.path {
		switch {
		case b.Len() > 300:
			b.WriteString("…")
			return b.String()
		case s.item:
			fmt.Fprintf(&b, "[%d]", s.index)
		case !plainName(s.name):
			fmt.Fprintf(&b, "[%s]", quote(s.name, 60))
		case i > 0:
			b.WriteString("." + s.name)
		default:
			b.WriteString(s.name)
		}
	}
	return b.String()
}

// plainName reports whether a name can stand in a path as it is.
func plainName(s string) bool {
	if s == "" || len(s) > 60 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if !isLetter(c) && (c < '0' || c > '9') && c != '_' && c != '-' && c != '$' {
			return false
		}
	}
	return true
}

// show renders a value of the model's, shortly.
func show(v *Value) string {
	switch v.Kind {
	case Null:
		return "null"
	case Bool:
		return "boolean " + describe(v)
	case Number:
		return "number " + clip(v.Text, 40)
	case String:
		return "string " + quote(v.Text, 60)
	case Array:
		return fmt.Sprintf("an array of %s", plural(len(v.Items), "item"))
	}
	return fmt.Sprintf("an object with %s", plural(len(v.Members), "property"))
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if stem, ok := strings.CutSuffix(noun, "y"); ok {
		return fmt.Sprintf("%d %sies", n, stem)
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// listed joins at most 20 texts.
func listed(texts []string) string {
	const most = 20
	if len(texts) > most {
		return fmt.Sprintf("%s … (%d more)", strings.Join(texts[:most], ", "), len(texts)-most)
	}
	return strings.Join(texts, ", ")
}

func quoted(names []string) string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = quote(n, 60)
	}
	return listed(out)
}

func values(vs []Value) []string {
	out := make([]string, len(vs))
	for i := range vs {
		out[i] = clip(string(vs[i].AppendJSON(nil)), 60)
	}
	return out
}

// want says in a few words what a schema asks for; "" where that is not easily
// said.
func (n *node) want() string {
	for range 8 {
		if n.ref == nil || n.types != 0 || n.enum != nil {
			break
		}
		n = n.ref
	}
	switch {
	case n.constant != nil:
		return values([]Value{*n.constant})[0]
	case n.enum != nil:
		return choices(n.enum)
	case n.types == 1<<Array && n.arr != nil && n.arr.items != nil && n.arr.items.types != 0:
		return "array of " + n.arr.items.types.String()
	case n.types != 0:
		return n.types.String()
	}
	return ""
}

func choices(vs []Value) string {
	switch len(vs) {
	case 0:
		return "nothing"
	case 1:
		return values(vs)[0]
	}
	return "one of " + listed(values(vs))
}

func wrongType(n *node, v *Value) Problem {
	want := n.types.String()
	if n.enum != nil {
		want = choices(n.enum)
	}
	return Problem{kind: typeProblem, Msg: fmt.Sprintf("expected %s, got %s", want, show(v))}
}

func notInEnum(vs []Value, v *Value) Problem {
	return Problem{kind: choiceProblem, Msg: fmt.Sprintf("expected %s, got %s", choices(vs), show(v))}
}

func bounded(what string, b *bound, v *Value) Problem {
	return Problem{Msg: fmt.Sprintf("must be %s %s, got %s", what, clip(b.text, 40), clip(v.Text, 40))}
}

func sized(what string, limit int, noun string, got int) Problem {
	return Problem{Msg: fmt.Sprintf("must have %s %s, has %d", what, plural(limit, noun), got)}
}

func unmatched(p *pattern, v *Value) Problem {
	return Problem{Msg: fmt.Sprintf("must match the pattern %s, got %s", clip(p.source, 120), show(v))}
}

func repeated(i, j int) Problem {
	return Problem{Msg: fmt.Sprintf("items must differ from each other, but [%d] and [%d] are equal", i, j)}
}

func containing(what string, limit int, n *node, found int) Problem {
	like := "matching items"
	if w := n.want(); w != "" {
		like = "items that are " + w
	}
	return Problem{Msg: fmt.Sprintf("must hold %s %d %s, holds %d", what, limit, like, found)}
}

func missing(o *objectRules, name, because string) Problem {
	msg := "missing required property " + quote(name, 60)
	if sub := o.props[name]; sub != nil {
		if w := sub.want(); w != "" {
			msg += " (" + w + ")"
		}
	}
	if because != "" {
		msg += fmt.Sprintf(", which %s makes necessary", quote(because, 60))
	}
	return Problem{Msg: msg}
}

func unknown(o *objectRules, name string) Problem {
	known := make([]string, 0, len(o.names))
	for _, n := range o.names {
		if !o.props[n].never {
			known = append(known, n)
		}
	}
	msg := fmt.Sprintf("property %s is not allowed", quote(name, 60))
	if len(known) > 0 {
		msg += "; allowed: " + quoted(known)
	} else if len(o.patterns) == 0 {
		msg += "; no properties are"
	}
	for i, p := range o.patterns {
		if i == 5 {
			break
		}
		msg += "; names that match " + clip(p.pattern.source, 80)
	}
	return Problem{Msg: msg}
}

func badName(rule *node, name string) Problem {
	msg := fmt.Sprintf("the property name %s is not allowed", quote(name, 60))
	switch {
	case rule.enum != nil:
		msg += "; allowed: " + listed(values(rule.enum))
	case rule.str != nil && rule.str.pattern != nil:
		msg += "; names must match " + clip(rule.str.pattern.source, 80)
	}
	return Problem{Msg: msg}
}

func forbidden(not *node) string {
	if w := not.want(); w != "" {
		return "must not be " + w
	}
	if not.obj != nil && len(not.obj.required) > 0 {
		return "must not have " + quoted(not.obj.required) + " together"
	}
	return "has a form that the schema excludes"
}

func ambiguous(i, j, n int) Problem {
	return Problem{Msg: fmt.Sprintf("fits forms %d and %d of the %d allowed ones at once, but must fit exactly one", i+1, j+1, n)}
}

func closest(i, n int) Problem {
	return Problem{Msg: fmt.Sprintf("fits none of the %d allowed forms; form %d is the closest, but:", n, i+1)}
}

// simpleAlternatives says it in one line where every alternative is a type, an
// enum or a constant that the value is not.
func simpleAlternatives(subs []*node, v *Value) (Problem, bool) {
	var types typeSet
	var vals []Value
	for _, n := range subs {
		switch {
		case n.constant != nil:
			vals = append(vals, *n.constant)
		case n.enum != nil:
			vals = append(vals, n.enum...)
		case n.types != 0 && !n.types.has(v):
			types |= n.types
		default:
			return Problem{}, false
		}
	}
	want := types.String()
	if len(vals) > 0 {
		if want != "" {
			want += " or "
		}
		want += choices(vals)
	}
	kind := typeProblem
	if len(vals) > 0 {
		kind = choiceProblem
	}
	return Problem{kind: kind, Msg: fmt.Sprintf("expected %s, got %s", want, show(v))}, true
}
