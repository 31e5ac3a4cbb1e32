package schema

import (
	"net/url"
	"strconv"
	"strings"
)

// reference compiles a $ref.
func (c *compiler) reference(n *node, v *Value, key string, val *Value) error {
	target, _, err := c.target(v, key, val)
	if err != nil {
		return err
	}
	n.ref, err = c.compile(target)
	return err
}

// dynamicReference compiles a $dynamicRef, or a $recursiveRef of Draft 2019-09.
// It is dynamic only where what it names at first sight is a dynamic anchor.
func (c *compiler) dynamicReference(n *node, v *Value, key string, val *Value) error {
	target, fragment, err := c.target(v, key, val)
	if err != nil {
		return err
	}
	if key == "$recursiveRef" {
		fragment = recursiveAnchor
	}
	d := &dynamicRef{}
	if in := c.places[target].in; in != nil && in.dynamic[fragment] == target {
		d.anchor = fragment
		c.dynamic = true
	}
	n.dyn = d
	d.to, err = c.compile(target)
	return err
}

// linkDynamic compiles the dynamic anchors that a reference may reach at run
// time. Compiling may meet further ones; they are the same few resources.
func (c *compiler) linkDynamic() error {
	if !c.dynamic {
		return nil
	}
	for _, r := range c.resources {
		r.nodes = make(map[string]*node, len(r.dynamic))
		for name, v := range r.dynamic {
			n, err := c.compile(v)
			if err != nil {
				return err
			}
			r.nodes[name] = n
		}
	}
	return nil
}

// target finds the subschema that a reference of v names. The fragment is
// returned as written.
func (c *compiler) target(v *Value, key string, val *Value) (target *Value, fragment string, err error) {
	if val.Kind != String {
		return nil, "", c.fault(v, key, "must be a string, not %s", describe(val))
	}
	in := c.places[v].in
	uri, fragment, _ := strings.Cut(val.Text, "#")
	if uri != "" {
		abs, _, _ := strings.Cut(resolveURI(in.base, uri), "#")
		r, ok := c.resources[abs]
		if !ok {
			return nil, "", c.fault(v, key,
				"%s points outside this schema; nothing is fetched, so put what it names under $defs", quote(val.Text, 120))
		}
		in = r
	}
	if un, e := url.PathUnescape(fragment); e == nil {
		fragment = un
	}
	switch {
	case fragment == "":
		return in.root, "", nil
	case fragment[0] != '/':
		if target = in.anchors[fragment]; target == nil {
			return nil, "", c.fault(v, key, "%s names no anchor of this schema", quote(val.Text, 120))
		}
		return target, fragment, nil
	}
	if target = pointer(in.root, fragment); target == nil {
		return nil, "", c.fault(v, key, "%s names no part of this schema", quote(val.Text, 120))
	}
	if _, known := c.places[target]; !known {
		// A schema below an unknown keyword: not scanned before.
		if err := c.scan(target, fragment, in); err != nil {
			return nil, "", err
		}
	}
	return target, fragment, nil
}

// pointer follows a JSON pointer.
func pointer(v *Value, ptr string) *Value {
	for _, step := range strings.Split(ptr[1:], "/") {
		if strings.Contains(step, "~") {
			step = strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~")
		}
		switch v.Kind {
		case Object:
			if v = v.Get(step); v == nil {
				return nil
			}
		case Array:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(v.Items) {
				return nil
			}
			v = &v.Items[i]
		default:
			return nil
		}
	}
	return v
}

// resolveURI resolves ref against base. What cannot be parsed is left as it is:
// it can still be equal to the name it was given.
func resolveURI(base, ref string) string {
	if base == "" {
		return ref
	}
	b, err := url.Parse(base)
	if err != nil {
		return ref
	}
	r, err := url.Parse(ref)
	if err != nil {
		return ref
	}
	return b.ResolveReference(r).String()
}

// refuseLoops finds a reference that leads back to itself without going down
// into the value: no argument could ever be checked against it.
func (c *compiler) refuseLoops() error {
	const (
		open = 1
		done = 2
	)
	state := make(map[*node]int, len(c.nodes))
	var looped *node
	var visit func(n *node) bool
	visit = func(n *node) bool {
		if n == nil || state[n] == done {
			return false
		}
		if state[n] == open {
			looped = n
			return true
		}
		state[n] = open
		for _, next := range n.inPlace() {
			if visit(next) {
				return true
			}
		}
		state[n] = done
		return false
	}
	for _, v := range c.order {
		if !visit(c.nodes[v]) {
			continue
		}
		for _, v := range c.order {
			if c.nodes[v] == looped {
				return c.fault(v, "$ref", "the schema refers to itself without end")
			}
		}
	}
	return nil
}

// inPlace lists the nodes that apply to the same value as n.
func (n *node) inPlace() []*node {
	var out []*node
	out = append(out, n.ref, n.not, n.cond, n.then, n.els_)
	if n.dyn != nil {
		out = append(out, n.dyn.to)
	}
	out = append(append(append(out, n.allOf...), n.anyOf...), n.oneOf...)
	if n.obj != nil {
		for _, s := range n.obj.schemas {
			out = append(out, s.n)
		}
	}
	return out
}
