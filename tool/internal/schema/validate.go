package schema

import "unicode/utf8"

// Limits of one check.
const (
	// maxProblems is how many problems a report lists.
	maxProblems = 10
	// maxRecursion bounds how deep references may nest; only a schema that
	// loops by a dynamic reference gets there.
	maxRecursion = 2000
	// baseSteps and stepsPerValue bound the work: subschemas looked at.
	baseSteps     = 200_000
	stepsPerValue = 200
)

// Validate checks a value. A nil report means that it satisfies the schema.
func (s *Schema) Validate(v *Value) *Report {
	r := run{steps: baseSteps + stepsPerValue*count(v)}
	if r.check(s.root, v, nil) && !r.exhausted {
		return nil
	}
	// The quick pass made no record; a second one writes down what is wrong.
	r = run{steps: baseSteps + stepsPerValue*count(v), report: &Report{}}
	r.check(s.root, v, nil)
	if r.exhausted || len(r.report.Problems) == 0 {
		r.report.Problems = append(r.report.Problems, Problem{Msg: "too complex to be checked against the tool's schema; send something simpler"})
	}
	return r.report
}

func count(v *Value) int {
	n := 1
	for i := range v.Items {
		n += count(&v.Items[i])
	}
	for i := range v.Members {
		n += count(&v.Members[i].Value)
	}
	return n
}

// run is one check. With a report it goes on after a fault and writes all of
// them down; without one it stops at the first.
type run struct {
	report    *Report
	path      []step
	scope     []*resource // dynamic scope, outermost first
	steps     int
	depth     int
	exhausted bool
}

// step is one step down into the value: a name, or an index where name is "".
type step struct {
	name  string
	index int
	item  bool
}

// marks notes which members or items of one value some subschema has looked at:
// what the unevaluated keywords need.
type marks struct {
	props []bool
	items []bool
}

func (m *marks) prop(v *Value, i int) {
	if m == nil {
		return
	}
	if m.props == nil {
		m.props = make([]bool, len(v.Members))
	}
	m.props[i] = true
}

func (m *marks) item(v *Value, i int) {
	if m == nil {
		return
	}
	if m.items == nil {
		m.items = make([]bool, len(v.Items))
	}
	m.items[i] = true
}

func (m *marks) merge(v *Value, from *marks) {
	if m == nil || from == nil {
		return
	}
	for i, on := range from.props {
		if on {
			m.prop(v, i)
		}
	}
	for i, on := range from.items {
		if on {
			m.item(v, i)
		}
	}
}

// fork gives marks for a branch that may fail; nil where nobody needs them.
func (m *marks) fork() *marks {
	if m == nil {
		return nil
	}
	return &marks{}
}

// quick checks without a record.
func (r *run) quick(n *node, v *Value, m *marks) bool {
	report := r.report
	r.report = nil
	ok := r.check(n, v, m)
	r.report = report
	return ok
}

// full reports whether the record takes no more.
func (r *run) full() bool { return r.report == nil || r.report.More }

// check reports whether v satisfies n, and marks in m what of v was evaluated.
func (r *run) check(n *node, v *Value, m *marks) bool {
	r.steps--
	if r.steps < 0 || r.depth >= maxRecursion {
		r.exhausted = true
		return false
	}
	if n.never {
		return r.fail(func() Problem { return Problem{Msg: "nothing is allowed here"} })
	}
	r.depth++
	defer func() { r.depth-- }()
	if n.in != nil && (len(r.scope) == 0 || r.scope[len(r.scope)-1] != n.in) {
		r.scope = append(r.scope, n.in)
		defer func() { r.scope = r.scope[:len(r.scope)-1] }()
	}
	own := m
	if n.unevaluates() {
		own = &marks{}
	}
	ok := r.plain(n, v)
	if !ok && r.full() {
		return false
	}
	ok = r.combine(n, v, own) && ok
	if !ok && r.full() {
		return false
	}
	switch v.Kind {
	case Array:
		ok = (n.arr == nil || r.array(n.arr, v, own)) && ok
	case Object:
		ok = (n.obj == nil || r.object(n.obj, v, own)) && ok
	}
	if ok && own != m {
		m.merge(v, own)
	}
	return ok
}

func (n *node) unevaluates() bool {
	return n.obj != nil && n.obj.unevaluated != nil || n.arr != nil && n.arr.unevaluated != nil
}

// plain checks the keywords that look at the value alone.
func (r *run) plain(n *node, v *Value) bool {
	if n.types != 0 && !n.types.has(v) {
		// Whatever else is wrong follows from this.
		return r.fail(func() Problem { return wrongType(n, v) })
	}
	if n.enum != nil && !n.inEnum(v) {
		return r.fail(func() Problem { return notInEnum(n.enum, v) })
	}
	if n.constant != nil && !equal(n.constant, v) {
		return r.fail(func() Problem { return notInEnum([]Value{*n.constant}, v) })
	}
	ok := true
	if n.num != nil && v.Kind == Number {
		ok = r.number(n.num, v) && ok
	}
	if n.str != nil && v.Kind == String {
		ok = r.text(n.str, v) && ok
	}
	return ok
}

func (n *node) inEnum(v *Value) bool {
	if n.enumText != nil && v.Kind == String {
		_, ok := n.enumText[v.Text]
		return ok
	}
	for i := range n.enum {
		if equal(&n.enum[i], v) {
			return true
		}
	}
	return false
}

func (r *run) number(n *numberRules, v *Value) bool {
	d := parseDecimal(v.Text)
	ok := true
	if n.min != nil && d.cmp(n.min.d) < 0 {
		ok = r.fail(func() Problem { return bounded("at least", n.min, v) })
	}
	if n.max != nil && d.cmp(n.max.d) > 0 {
		ok = r.fail(func() Problem { return bounded("at most", n.max, v) })
	}
	if n.above != nil && d.cmp(n.above.d) <= 0 {
		ok = r.fail(func() Problem { return bounded("greater than", n.above, v) })
	}
	if n.below != nil && d.cmp(n.below.d) >= 0 {
		ok = r.fail(func() Problem { return bounded("less than", n.below, v) })
	}
	if n.multiple != nil && !d.multipleOf(n.multiple.d) {
		ok = r.fail(func() Problem { return bounded("a multiple of", n.multiple, v) })
	}
	return ok
}

func (r *run) text(s *stringRules, v *Value) bool {
	ok := true
	if s.min >= 0 || s.max >= 0 {
		n := utf8.RuneCountInString(v.Text)
		if n < s.min {
			ok = r.fail(func() Problem { return sized("at least", s.min, "character", n) })
		}
		if s.max >= 0 && n > s.max {
			ok = r.fail(func() Problem { return sized("at most", s.max, "character", n) })
		}
	}
	if s.pattern != nil && !s.pattern.match(v.Text) {
		ok = r.fail(func() Problem { return unmatched(s.pattern, v) })
	}
	return ok
}

// combine checks the keywords that apply other schemas to the same value.
func (r *run) combine(n *node, v *Value, m *marks) bool {
	ok := true
	all := func(sub *node) {
		if sub != nil && (ok || !r.full()) {
			ok = r.check(sub, v, m) && ok
		}
	}
	all(n.ref)
	if n.dyn != nil {
		all(r.resolve(n.dyn))
	}
	for _, sub := range n.allOf {
		all(sub)
	}
	if len(n.anyOf) > 0 && (ok || !r.full()) {
		ok = r.anyOf(n.anyOf, v, m) && ok
	}
	if len(n.oneOf) > 0 && (ok || !r.full()) {
		ok = r.oneOf(n.oneOf, v, m) && ok
	}
	if n.not != nil && (ok || !r.full()) && r.quick(n.not, v, m.fork()) {
		ok = r.fail(func() Problem { return Problem{Msg: forbidden(n.not)} })
	}
	if n.cond != nil && (ok || !r.full()) {
		branch := m.fork()
		if r.quick(n.cond, v, branch) {
			m.merge(v, branch)
			all(n.then)
		} else {
			all(n.els_)
		}
	}
	return ok
}

// resolve finds what a dynamic reference means here: the anchor of the outermost
// resource that has it.
func (r *run) resolve(d *dynamicRef) *node {
	if d.anchor != "" {
		for _, res := range r.scope {
			if n := res.nodes[d.anchor]; n != nil {
				return n
			}
		}
	}
	return d.to
}

func (r *run) anyOf(subs []*node, v *Value, m *marks) bool {
	ok := false
	for _, sub := range subs {
		branch := m.fork()
		if r.quick(sub, v, branch) {
			ok = true
			if m == nil {
				return true
			}
			m.merge(v, branch)
		}
	}
	return ok || r.noBranch(subs, v)
}

func (r *run) oneOf(subs []*node, v *Value, m *marks) bool {
	first := -1
	var marked *marks
	for i, sub := range subs {
		branch := m.fork()
		if !r.quick(sub, v, branch) {
			continue
		}
		if first >= 0 {
			return r.fail(func() Problem { return ambiguous(first, i, len(subs)) })
		}
		first, marked = i, branch
	}
	if first < 0 {
		return r.noBranch(subs, v)
	}
	m.merge(v, marked)
	return true
}

// noBranch records that no alternative fits.
func (r *run) noBranch(subs []*node, v *Value) bool {
	if r.report == nil || r.exhausted {
		return false
	}
	if p, ok := simpleAlternatives(subs, v); ok {
		return r.fail(func() Problem { return p })
	}
	// The alternative that came closest says the most.
	outer := r.report
	var best *Report
	bestAt, bestRank := 0, -1
	for i, sub := range subs {
		r.report = &Report{}
		r.check(sub, v, nil)
		if rank := r.report.closeness(len(r.path)); rank > bestRank && len(r.report.Problems) > 0 {
			best, bestAt, bestRank = r.report, i, rank
		}
	}
	r.report = outer
	if best == nil || len(subs) == 0 {
		return r.fail(func() Problem { return Problem{Msg: "matches none of the allowed forms"} })
	}
	if len(subs) > 1 {
		r.fail(func() Problem { return closest(bestAt, len(subs)) })
	}
	for _, p := range best.Problems {
		r.report.add(p)
	}
	return false
}

func (r *run) array(a *arrayRules, v *Value, m *marks) bool {
	ok := true
	if len(v.Items) < a.min {
		ok = r.fail(func() Problem { return sized("at least", a.min, "item", len(v.Items)) })
	}
	if a.max >= 0 && len(v.Items) > a.max {
		ok = r.fail(func() Problem { return sized("at most", a.max, "item", len(v.Items)) })
	}
	if a.unique {
		if i, j, dup := duplicate(v.Items); dup {
			ok = r.fail(func() Problem { return repeated(i, j) })
		}
	}
	for i := range v.Items {
		if !ok && r.full() {
			return false
		}
		sub := a.items
		if i < len(a.prefix) {
			sub = a.prefix[i]
		}
		if sub != nil {
			ok = r.item(sub, v, i) && ok
			m.item(v, i)
		}
	}
	if a.contains != nil && (ok || !r.full()) {
		ok = r.contains(a, v, m) && ok
	}
	if a.unevaluated != nil && (ok || !r.full()) {
		for i := range v.Items {
			if m.items == nil || !m.items[i] {
				ok = r.item(a.unevaluated, v, i) && ok
				m.item(v, i)
			}
		}
	}
	return ok
}

func (r *run) item(n *node, v *Value, i int) bool {
	r.path = append(r.path, step{index: i, item: true})
	ok := r.check(n, &v.Items[i], nil)
	r.path = r.path[:len(r.path)-1]
	return ok
}

func (r *run) contains(a *arrayRules, v *Value, m *marks) bool {
	found := 0
	for i := range v.Items {
		if r.quick(a.contains, &v.Items[i], nil) {
			found++
			m.item(v, i)
		}
	}
	if found < a.minContains {
		return r.fail(func() Problem { return containing("at least", a.minContains, a.contains, found) })
	}
	if a.maxContains >= 0 && found > a.maxContains {
		return r.fail(func() Problem { return containing("at most", a.maxContains, a.contains, found) })
	}
	return true
}

func (r *run) object(o *objectRules, v *Value, m *marks) bool {
	ok := true
	if len(v.Members) < o.min {
		ok = r.fail(func() Problem { return sized("at least", o.min, "property", len(v.Members)) })
	}
	if o.max >= 0 && len(v.Members) > o.max {
		ok = r.fail(func() Problem { return sized("at most", o.max, "property", len(v.Members)) })
	}
	for _, name := range o.required {
		if v.find(name) < 0 {
			ok = r.fail(func() Problem { return missing(o, name, "") })
		}
	}
	for _, d := range o.needs {
		if v.find(d.name) < 0 {
			continue
		}
		for _, name := range d.needs {
			if v.find(name) < 0 {
				ok = r.fail(func() Problem { return missing(o, name, d.name) })
			}
		}
	}
	for i := range v.Members {
		if !ok && r.full() {
			return false
		}
		ok = r.member(o, v, i, m) && ok
	}
	for _, d := range o.schemas {
		if (ok || !r.full()) && v.find(d.name) >= 0 {
			ok = r.check(d.n, v, m) && ok
		}
	}
	if o.unevaluated != nil && (ok || !r.full()) {
		for i := range v.Members {
			if m.props == nil || !m.props[i] {
				ok = r.property(o, o.unevaluated, v, i) && ok
				m.prop(v, i)
			}
		}
	}
	return ok
}

// member checks one member against all that speaks of it.
func (r *run) member(o *objectRules, v *Value, i int, m *marks) bool {
	name := v.Members[i].Name
	ok, known := true, false
	if o.nameRule != nil && !r.quick(o.nameRule, &Value{Kind: String, Text: name}, nil) {
		ok = r.fail(func() Problem { return badName(o.nameRule, name) })
	}
	if sub := o.props[name]; sub != nil {
		known = true
		ok = r.property(o, sub, v, i) && ok
	}
	for _, pr := range o.patterns {
		if pr.pattern.match(name) {
			known = true
			ok = r.property(o, pr.n, v, i) && ok
		}
	}
	if !known && o.additional != nil {
		known = true
		ok = r.property(o, o.additional, v, i) && ok
	}
	if known {
		m.prop(v, i)
	}
	return ok
}

func (r *run) property(o *objectRules, n *node, v *Value, i int) bool {
	if n.never {
		r.steps--
		return r.fail(func() Problem { return unknown(o, v.Members[i].Name) })
	}
	r.path = append(r.path, step{name: v.Members[i].Name})
	ok := r.check(n, &v.Members[i].Value, nil)
	r.path = r.path[:len(r.path)-1]
	return ok
}
