package schema

import (
	"slices"
	"strconv"
	"strings"

	"github.com/transom-run/transom/internal/jsonstring"
)

// equal compares two values as JSON Schema does: numbers by value, objects
// without regard to order.
func equal(a, b *Value) bool {
	if a.Kind != b.Kind {
		return false
	}
	switch a.Kind {
	case Bool:
		return a.Bool == b.Bool
	case Number:
		return a.Text == b.Text || parseDecimal(a.Text).cmp(parseDecimal(b.Text)) == 0
	case String:
		return a.Text == b.Text
	case Array:
		return slices.EqualFunc(a.Items, b.Items, func(x, y Value) bool { return equal(&x, &y) })
	case Object:
		if len(a.Members) != len(b.Members) {
			return false
		}
		for i := range a.Members {
			other := b.Get(a.Members[i].Name)
			if other == nil || !equal(&a.Members[i].Value, other) {
				return false
			}
		}
	}
	return true
}

// duplicate finds two equal items.
func duplicate(items []Value) (i, j int, found bool) {
	if len(items) <= 8 {
		for j := range items {
			for i := range j {
				if equal(&items[i], &items[j]) {
					return i, j, true
				}
			}
		}
		return 0, 0, false
	}
	seen := make(map[string]int, len(items))
	var b []byte
	for j := range items {
		b = items[j].appendKey(b[:0])
		if i, ok := seen[string(b)]; ok {
			return i, j, true
		}
		seen[string(b)] = j
	}
	return 0, 0, false
}

// appendKey appends a text that two values share if and only if they are equal.
func (v *Value) appendKey(b []byte) []byte {
	switch v.Kind {
	case Number:
		d := parseDecimal(v.Text)
		if d.neg {
			b = append(b, '-')
		}
		b = append(append(b, '.'), d.digits...)
		return strconv.AppendInt(append(b, 'e'), d.exp, 10)
	case Array:
		b = append(b, '[')
		for i := range v.Items {
			b = append(v.Items[i].appendKey(b), ',')
		}
		return append(b, ']')
	case Object:
		sorted := make([]*Member, len(v.Members))
		for i := range v.Members {
			sorted[i] = &v.Members[i]
		}
		slices.SortFunc(sorted, func(x, y *Member) int { return strings.Compare(x.Name, y.Name) })
		b = append(b, '{')
		for _, m := range sorted {
			b = append(jsonstring.Append(b, m.Name), ':')
			b = append(m.Value.appendKey(b), ',')
		}
		return append(b, '}')
	}
	return v.AppendJSON(b)
}
