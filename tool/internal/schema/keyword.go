package schema

// keyword compiles one keyword of the subschema v into n. Unknown keywords are
// annotations.
func (c *compiler) keyword(n *node, v *Value, key string, val *Value) (err error) {
	switch key {
	case "$ref":
		return c.reference(n, v, key, val)
	case "$dynamicRef", "$recursiveRef":
		return c.dynamicReference(n, v, key, val)
	case "$defs", "definitions":
		_, err = c.dictionary(val)
	case "type":
		n.types, err = c.types(v, val)
	case "enum":
		if val.Kind != Array {
			return c.fault(v, key, "must be an array of the allowed values, not %s", describe(val))
		}
		n.enum = val.Items
		n.enumText = stringSet(n.enum)
	case "const":
		n.constant = val
	case "allOf", "anyOf", "oneOf":
		if len(val.Items) == 0 {
			return c.fault(v, key, "must not be empty")
		}
		to := map[string]*[]*node{"allOf": &n.allOf, "anyOf": &n.anyOf, "oneOf": &n.oneOf}[key]
		*to, err = c.list(val)
	case "not":
		n.not, err = c.compile(val)
	case "if":
		n.cond, err = c.compile(val)
	case "then":
		n.then, err = c.compile(val)
	case "else":
		n.els_, err = c.compile(val)
	case "title", "description", "$comment", "format", "contentEncoding", "contentMediaType":
		if val.Kind != String {
			return c.fault(v, key, "must be a string, not %s", describe(val))
		}
	case "deprecated", "readOnly", "writeOnly":
		if val.Kind != Bool {
			return c.fault(v, key, "must be true or false, not %s", describe(val))
		}
	case "examples":
		if val.Kind != Array {
			return c.fault(v, key, "must be an array, not %s", describe(val))
		}
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf":
		return c.number(n, v, key, val)
	case "minLength", "maxLength", "pattern":
		return c.text(n, v, key, val)
	default:
		if ok, err := c.array(n, v, key, val); ok || err != nil {
			return err
		}
		return c.object(n, v, key, val)
	}
	return err
}

func (c *compiler) types(v, val *Value) (typeSet, error) {
	names := val.Items
	switch val.Kind {
	case String:
		names = []Value{*val}
	case Array:
		if len(names) == 0 {
			return 0, c.fault(v, "type", "must name at least one type")
		}
	default:
		return 0, c.fault(v, "type", "must be the name of a type or an array of names, not %s", describe(val))
	}
	var set typeSet
next:
	for i := range names {
		for _, tn := range typeNames {
			if names[i].Kind == String && names[i].Text == tn.name {
				if set&tn.set != 0 {
					return 0, c.fault(v, "type", "names %q twice", tn.name)
				}
				set |= tn.set
				continue next
			}
		}
		return 0, c.fault(v, "type", "%s is not a type; use string, number, integer, boolean, object, array or null",
			string(clip(string(names[i].AppendJSON(nil)), 60)))
	}
	return set, nil
}

// stringSet indexes the strings of an enum that is long enough to be worth it.
func stringSet(vs []Value) map[string]struct{} {
	if len(vs) < 16 {
		return nil
	}
	set := make(map[string]struct{}, len(vs))
	for i := range vs {
		if vs[i].Kind == String {
			set[vs[i].Text] = struct{}{}
		}
	}
	return set
}

func (c *compiler) number(n *node, v *Value, key string, val *Value) error {
	if n.num == nil {
		n.num = &numberRules{}
	}
	if c.dialect.boolBounds && val.Kind == Bool && (key == "exclusiveMinimum" || key == "exclusiveMaximum") {
		return nil // finish looks at it
	}
	if val.Kind != Number {
		return c.fault(v, key, "must be a number, not %s", describe(val))
	}
	b := &bound{parseDecimal(val.Text), val.Text}
	switch key {
	case "minimum":
		n.num.min = b
	case "maximum":
		n.num.max = b
	case "exclusiveMinimum":
		n.num.above = b
	case "exclusiveMaximum":
		n.num.below = b
	case "multipleOf":
		if b.d.sign() <= 0 {
			return c.fault(v, key, "must be greater than 0, not %s", clip(val.Text, 40))
		}
		n.num.multiple = b
	}
	return nil
}

// count reads a keyword that holds a number of things.
func (c *compiler) count(v *Value, key string, val *Value) (int, error) {
	if val.Kind == Number {
		if k, ok := parseDecimal(val.Text).smallInt(); ok {
			return k, nil
		}
	}
	return 0, c.fault(v, key, "must be a whole number of at least 0, not %s", describe(val))
}

func (c *compiler) text(n *node, v *Value, key string, val *Value) (err error) {
	if n.str == nil {
		n.str = &stringRules{min: -1, max: -1}
	}
	switch key {
	case "minLength":
		n.str.min, err = c.count(v, key, val)
	case "maxLength":
		n.str.max, err = c.count(v, key, val)
	case "pattern":
		if val.Kind != String {
			return c.fault(v, key, "must be a string, not %s", describe(val))
		}
		n.str.pattern, err = c.pattern(v, key, val.Text)
	}
	return err
}

func (c *compiler) pattern(v *Value, key, src string) (*pattern, error) {
	p, err := compilePattern(src)
	if err != nil {
		return nil, c.fault(v, key, "%s is not a regular expression: %v", quote(src, 100), err)
	}
	if p.re == nil {
		c.unchecked = append(c.unchecked, src)
	}
	return p, nil
}

// array compiles the keywords of arrays; it reports whether key is one.
func (c *compiler) array(n *node, v *Value, key string, val *Value) (ok bool, err error) {
	switch key {
	case "items", "prefixItems", "additionalItems", "contains", "minContains", "maxContains",
		"minItems", "maxItems", "uniqueItems", "unevaluatedItems":
	default:
		return false, nil
	}
	if n.arr == nil {
		n.arr = &arrayRules{min: -1, max: -1, minContains: 1, maxContains: -1}
	}
	a := n.arr
	switch key {
	case "items":
		err = c.items(a, v, val)
	case "prefixItems":
		if len(val.Items) == 0 {
			return true, c.fault(v, key, "must not be empty")
		}
		a.prefix, err = c.list(val)
	case "additionalItems":
		var rest *node
		rest, err = c.compile(val)
		if items := v.Get("items"); err == nil && c.dialect.tupleItems && items != nil && items.Kind == Array {
			a.items = rest
		}
	case "contains":
		a.contains, err = c.compile(val)
	case "minContains", "maxContains":
		to := &a.minContains
		if key == "maxContains" {
			to = &a.maxContains
		}
		*to, err = c.count(v, key, val)
	case "minItems":
		a.min, err = c.count(v, key, val)
	case "maxItems":
		a.max, err = c.count(v, key, val)
	case "uniqueItems":
		if val.Kind != Bool {
			return true, c.fault(v, key, "must be true or false, not %s", describe(val))
		}
		a.unique = val.Bool
	case "unevaluatedItems":
		a.unevaluated, err = c.compile(val)
	}
	return true, err
}

func (c *compiler) items(a *arrayRules, v, val *Value) (err error) {
	if val.Kind != Array {
		a.items, err = c.compile(val)
		return err
	}
	if !c.dialect.tupleItems {
		return c.fault(v, "items", "must be one schema; Draft 2020-12 writes the schemas of single items as prefixItems")
	}
	if len(val.Items) == 0 {
		return c.fault(v, "items", "must not be an empty array")
	}
	a.prefix, err = c.list(val)
	return err
}

// object compiles the keywords of objects, and passes over unknown ones.
func (c *compiler) object(n *node, v *Value, key string, val *Value) (err error) {
	switch key {
	case "properties", "patternProperties", "additionalProperties", "unevaluatedProperties", "propertyNames",
		"required", "minProperties", "maxProperties", "dependentRequired", "dependentSchemas", "dependencies":
	default:
		return nil
	}
	if n.obj == nil {
		n.obj = &objectRules{min: -1, max: -1}
	}
	o := n.obj
	switch key {
	case "properties":
		o.names = make([]string, len(val.Members))
		for i := range val.Members {
			o.names[i] = val.Members[i].Name
		}
		o.props, err = c.dictionary(val)
	case "patternProperties":
		err = c.patternProperties(o, v, val)
	case "additionalProperties":
		o.additional, err = c.compile(val)
	case "unevaluatedProperties":
		o.unevaluated, err = c.compile(val)
	case "propertyNames":
		o.nameRule, err = c.compile(val)
	case "required":
		o.required, err = c.names(v, key, val)
	case "minProperties":
		o.min, err = c.count(v, key, val)
	case "maxProperties":
		o.max, err = c.count(v, key, val)
	case "dependentRequired", "dependentSchemas", "dependencies":
		err = c.dependencies(o, v, key, val)
	}
	return err
}

func (c *compiler) patternProperties(o *objectRules, v, val *Value) error {
	for i := range val.Members {
		m := &val.Members[i]
		p, err := c.pattern(v, "patternProperties", m.Name)
		if err != nil {
			return err
		}
		n, err := c.compile(&m.Value)
		if err != nil {
			return err
		}
		if p.re == nil {
			// Which names it means cannot be told, so its schema binds none of
			// them; every name counts as known.
			n = &node{in: c.places[v].in}
		}
		o.patterns = append(o.patterns, patternRule{p, n})
	}
	return nil
}

func (c *compiler) names(v *Value, key string, val *Value) ([]string, error) {
	if val.Kind != Array {
		return nil, c.fault(v, key, "must be an array of property names, not %s", describe(val))
	}
	names := make([]string, 0, len(val.Items))
	seen := make(map[string]bool, len(val.Items))
	for i := range val.Items {
		item := &val.Items[i]
		if item.Kind != String {
			return nil, c.fault(v, key, "must hold property names only, not %s", describe(item))
		}
		if seen[item.Text] {
			return nil, c.fault(v, key, "names %s twice", quote(item.Text, 60))
		}
		seen[item.Text] = true
		names = append(names, item.Text)
	}
	return names, nil
}

func (c *compiler) dependencies(o *objectRules, v *Value, key string, val *Value) error {
	if val.Kind != Object {
		return c.fault(v, key, "must be an object, not %s", describe(val))
	}
	active := key != "dependencies" || c.dialect.needs
	for i := range val.Members {
		m := &val.Members[i]
		if key == "dependentRequired" || key == "dependencies" && m.Value.Kind == Array {
			names, err := c.names(v, key, &m.Value)
			if err != nil {
				return err
			}
			if active {
				o.needs = append(o.needs, dependency{m.Name, names})
			}
			continue
		}
		n, err := c.compile(&m.Value)
		if err != nil {
			return err
		}
		if active {
			o.schemas = append(o.schemas, dependentSchema{m.Name, n})
		}
	}
	return nil
}
