package schema

import (
	"strings"
	"unicode/utf8"
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
		return AppendString(b, v.Text)
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
			b = AppendString(b, v.Members[i].Name)
			b = append(b, ':')
			b = v.Members[i].Value.AppendJSON(b)
		}
		return append(b, '}')
	}
	return append(b, "null"...)
}

// AppendString appends s as a JSON string, as AppendJSON does.
func AppendString(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			switch {
			case r == utf8.RuneError && n == 1:
				b = append(append(b, s[start:i]...), "\ufffd"...)
				start = i + n
			case r == '\u2028' || r == '\u2029':
				b = append(append(b, s[start:i]...), '\\', 'u', '2', '0', '2', hex[r&15])
				start = i + n
			}
			i += n
			continue
		}
		if c >= 0x20 && c != '"' && c != '\\' {
			i++
			continue
		}
		b = append(b, s[start:i]...)
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		case '\t':
			b = append(b, '\\', 't')
		default:
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		i++
		start = i
	}
	return append(append(b, s[start:]...), '"')
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
