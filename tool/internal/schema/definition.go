package schema

import (
	"strings"

	"github.com/transom-run/transom/internal/jsonstring"
)

// Definition writes the schema for a model: always a JSON object with the type
// object and with properties, because strict providers refuse every request that
// carries anything else. Otherwise it is the schema as it was given, in compact
// form, with two exceptions at the root:
//
//   - $schema is left out: no provider needs it and some refuse it.
//   - a $ref into the schema is replaced by what it names, since a root that is
//     only a reference has no properties of its own.
//
// Equal texts give equal bytes.
func (s *Schema) Definition() []byte {
	const typ, props = `"type":"object"`, `"properties":{}`
	if s.doc.Kind == Bool {
		if s.doc.Bool {
			return []byte("{" + typ + "," + props + "}")
		}
		return []byte("{" + typ + "," + props + `,"additionalProperties":false}`)
	}
	root := s.inlined()
	b := []byte{'{'}
	hasProps := root.Get("properties") != nil
	emitType := func() {
		b = append(b, typ...)
		if !hasProps {
			b = append(append(b, ','), props...)
		}
	}
	if root.Get("type") == nil {
		emitType()
	}
	for i := range root.Members {
		m := &root.Members[i]
		if m.Name == "$schema" {
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		if m.Name == "type" {
			emitType()
			continue
		}
		b = append(jsonstring.Append(b, m.Name), ':')
		b = m.Value.AppendJSON(b)
	}
	return append(b, '}')
}

// inlined is the root with its references replaced. What stands beside a
// reference wins over what it names.
func (s *Schema) inlined() *Value {
	root := &s.doc
	for range 8 { // longer chains of references are left alone
		ref := root.Get("$ref")
		if ref == nil || !strings.HasPrefix(ref.Text, "#/") {
			return root
		}
		target := pointer(&s.doc, strings.TrimPrefix(ref.Text, "#"))
		if target == nil || target.Kind != Object {
			return root
		}
		next := &Value{Kind: Object}
		for i := range target.Members {
			m := &target.Members[i]
			if m.Name == "$ref" || root.Get(m.Name) == nil {
				next.add(m.Name, m.Value)
			}
		}
		for i := range root.Members {
			if m := &root.Members[i]; m.Name != "$ref" {
				next.add(m.Name, m.Value)
			}
		}
		root = next
	}
	return root
}
