package schema

import (
	"strings"

	"github.com/transom-run/transom/internal/jsonstring"
)

// AppendJSON appends the value as compact JSON: members in their order, numbers
// as they were written, strings as valid UTF-8 without HTML escapes. The line
// separators U+2028 and U+2029 are escaped, so that the text is one line for
// every reader.
func (v *Value) AppendJSON(b []byte) []byte {
	switch v.Kind {
	case Bool:
		if v.Bool {
			return append(b, "true"...)
		}
		return append(b, "false"...)
	case Number:
		return append(b, v.Text...)
	case String:
		return jsonstring.Append(b, v.Text)
	case Array:
		b = append(b, '[')
		for i := range v.Items {
			if i > 0 {
				b = append(b, ',')
			}
			b = v.Items[i].AppendJSON(b)
		}
		return append(b, ']')
	case Object:
		b = append(b, '{')
		for i := range v.Members {
			if i > 0 {
				b = append(b, ',')
			}
			b = jsonstring.Append(b, v.Members[i].Name)
			b = append(b, ':')
			b = v.Members[i].Value.AppendJSON(b)
		}
		return append(b, '}')
	}
	return append(b, "null"...)
}

// clip cuts s to at most n characters and marks the cut.
func clip(s string, n int) string {
	if len(s) <= n {
		return strings.ToValidUTF8(s, "\ufffd")
	}
	for i := range s {
		if n == 0 {
			return strings.ToValidUTF8(s[:i], "\ufffd") + "…"
		}
		n--
	}
	return strings.ToValidUTF8(s, "\ufffd")
}
