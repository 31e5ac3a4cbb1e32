// Package jsonstring writes texts as JSON strings into buffers, for the encoders that
// run for every event and every request and make no garbage.
//
//	b = jsonstring.Append(b, "a \"b\"\n")  // "a \"b\"\n", quoted and escaped
//
// What it writes is valid UTF-8 on one physical line for every reader: control
// characters and the line separators U+2028 and U+2029 are escaped. HTML is not, and
// bytes that are not UTF-8 become U+FFFD. encoding/json reads it back as it was.
package jsonstring

import "unicode/utf8"

const hex = "0123456789abcdef"

// isPlain tells the bytes that stand for themselves.
func isPlain(c byte) bool { return c >= ' ' && c < utf8.RuneSelf && c != '"' && c != '\\' }

// Append appends s as a JSON string.
func Append(b []byte, s string) []byte {
	b = append(b, '"')
	b = AppendEscaped(b, s)
	return append(b, '"')
}

// AppendEscaped appends what stands between the quotes of s as a JSON string.
func AppendEscaped(b []byte, s string) []byte {
	from := 0 // what lies before is written
	for i := 0; i < len(s); {
		c := s[i]
		if isPlain(c) {
			i++
			continue
		}
		n := 1
		if c >= utf8.RuneSelf {
			var r rune
			r, n = utf8.DecodeRuneInString(s[i:])
			switch {
			case r == utf8.RuneError && n == 1:
				b = append(append(b, s[from:i]...), "\uFFFD"...)
			case r == '\u2028' || r == '\u2029':
				b = append(append(b, s[from:i]...), '\\', 'u', '2', '0', '2', hex[r&15])
			default:
				i += n
				continue
			}
		} else {
			b = appendControl(append(b, s[from:i]...), c)
		}
		i += n
		from = i
	}
	return append(b, s[from:]...)
}

// appendControl appends an ASCII character that may not stand for itself.
func appendControl(b []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(b, '\\', c)
	case '\n':
		return append(b, '\\', 'n')
	case '\r':
		return append(b, '\\', 'r')
	case '\t':
		return append(b, '\\', 't')
	}
	return append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
}
