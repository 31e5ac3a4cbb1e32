package wire

import (
	"bytes"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Scanner reads JSON without reflection. It is lenient where that costs nothing:
// what encoding/json accepts it reads the same way (a fuzz test compares), and
// broken input sets bad and ends every loop.
type Scanner struct {
	b     []byte
	i     int
	bad   bool
	depth int
	tmp   []byte // scratch for texts with escapes
}

// maxDepth bounds the recursion of skip.
const maxDepth = 1000

// Reset begins with b.
func (s *Scanner) Reset(b []byte) { s.b, s.i, s.bad, s.depth = b, 0, false, 0 }

// Bad reports whether something was not JSON.
func (s *Scanner) Bad() bool { return s.bad }

func (s *Scanner) fail() { s.bad, s.i = true, len(s.b) }

// Peek returns the next byte that is not space; 0 at the end.
func (s *Scanner) Peek() byte {
	for s.i < len(s.b) {
		switch c := s.b[s.i]; c {
		case ' ', '\n', '\r', '\t':
			s.i++
		default:
			return c
		}
	}
	return 0
}

// Open enters an object or array; where the value is another one it skips it.
func (s *Scanner) Open(c byte) bool {
	if s.Peek() != c {
		s.Skip()
		return false
	}
	s.i++
	if s.depth++; s.depth > maxDepth {
		s.fail()
		return false
	}
	return true
}

// More moves to the next key or element; first is true before the first one. It
// returns false after the closing byte.
func (s *Scanner) More(closing byte, first bool) bool {
	c := s.Peek()
	if c == closing {
		s.i++
		s.depth--
		return false
	}
	if !first {
		if c != ',' {
			s.fail()
			return false
		}
		s.i++
		if s.Peek() == closing {
			s.fail()
			return false
		}
	}
	return !s.bad && s.i < len(s.b)
}

// Key reads a key and its colon. The bytes are valid until the next call.
func (s *Scanner) Key() []byte {
	seg, escaped := s.quoted()
	if escaped {
		seg = s.unescape(seg, nil)
	}
	if s.Peek() != ':' {
		s.fail()
		return nil
	}
	s.i++
	return seg
}

// quoted reads a text and returns what stands between its quotes.
func (s *Scanner) quoted() (seg []byte, escaped bool) {
	if s.Peek() != '"' {
		s.fail()
		return nil, false
	}
	start := s.i + 1
	from := start
	for {
		q := bytes.IndexByte(s.b[from:], '"')
		if q < 0 {
			s.fail()
			return nil, false
		}
		end := from + q
		slashes := 0
		for end-slashes > start && s.b[end-slashes-1] == '\\' {
			slashes++
		}
		from = end + 1
		if slashes%2 == 0 {
			s.i = from
			seg = s.b[start:end]
			return seg, bytes.IndexByte(seg, '\\') >= 0
		}
	}
}

// Text reads a text; null and values of other types are "". carry holds the first
// half of a character that the text before it ended with (a server that cuts
// UTF-16 texts into chunks may cut there), and receives the half that this one
// ends with. nil: a lone half becomes U+FFFD.
func (s *Scanner) Text(carry *rune) string {
	seg, ok := s.TextBytes(carry)
	if !ok {
		return ""
	}
	return string(seg)
}

// TextBytes is Text without a copy: the bytes are valid until the next call. It
// returns false where the value is not a text.
func (s *Scanner) TextBytes(carry *rune) ([]byte, bool) {
	if s.Peek() != '"' {
		s.Skip()
		return nil, false
	}
	seg, escaped := s.quoted()
	if s.bad {
		return nil, false
	}
	if !escaped && (carry == nil || *carry == 0 || len(seg) == 0) && utf8.Valid(seg) {
		return seg, true
	}
	return s.unescape(seg, carry), true
}

// unescape returns the text of seg, in scratch memory.
func (s *Scanner) unescape(seg []byte, carry *rune) []byte {
	out := s.tmp[:0]
	half := rune(0) // the first half of a pair that waits for the second
	if carry != nil {
		half, *carry = *carry, 0
	}
	flush := func() {
		if half != 0 {
			out = append(out, "\uFFFD"...)
			half = 0
		}
	}
	for i := 0; i < len(seg); {
		c := seg[i]
		if c == '\\' && i+1 < len(seg) && seg[i+1] == 'u' {
			r, ok := hex4(seg[i+2:])
			if !ok {
				s.fail()
				break
			}
			i += 6
			switch {
			case half != 0 && r >= 0xdc00 && r < 0xe000:
				out = utf8.AppendRune(out, utf16.DecodeRune(half, r))
				half = 0
			case r >= 0xd800 && r < 0xdc00:
				flush()
				half = r
			default:
				flush()
				out = utf8.AppendRune(out, r) // a lone second half becomes U+FFFD
			}
			continue
		}
		flush()
		switch {
		case c == '\\':
			if i+1 >= len(seg) {
				s.fail()
				return out
			}
			out = appendSimple(out, seg[i+1])
			i += 2
		case c < utf8.RuneSelf:
			out = append(out, c)
			i++
		default:
			r, n := utf8.DecodeRune(seg[i:])
			out = utf8.AppendRune(out, r)
			i += n
		}
	}
	if carry != nil && half != 0 {
		*carry = half
	} else {
		flush()
	}
	s.tmp = out
	return out
}

func appendSimple(out []byte, c byte) []byte {
	switch c {
	case 'n':
		c = '\n'
	case 't':
		c = '\t'
	case 'r':
		c = '\r'
	case 'b':
		c = '\b'
	case 'f':
		c = '\f'
	}
	return append(out, c)
}

func hex4(b []byte) (rune, bool) {
	if len(b) < 4 {
		return 0, false
	}
	var r rune
	for _, c := range b[:4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// Skip passes over a value.
func (s *Scanner) Skip() {
	switch s.Peek() {
	case '"':
		s.quoted()
	case '{':
		if s.Open('{') {
			for first := true; s.More('}', first); first = false {
				s.Key()
				s.Skip()
			}
		}
	case '[':
		if s.Open('[') {
			for first := true; s.More(']', first); first = false {
				s.Skip()
			}
		}
	case 0, '}', ']', ',', ':':
		s.fail()
	default:
		s.scalar()
	}
}

// scalar reads a number or one of the words true, false and null.
func (s *Scanner) scalar() []byte {
	start := s.i
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ' ', '\n', '\r', '\t', ',', '}', ']', ':', '"', '{', '[':
			return s.b[start:s.i]
		}
		s.i++
	}
	return s.b[start:s.i]
}

// Raw returns the bytes of a value; nil where it is not JSON.
func (s *Scanner) Raw() []byte {
	s.Peek()
	start := s.i
	s.Skip()
	if s.bad {
		return nil
	}
	return s.b[start:s.i]
}

// Integer reads a number, also one in quotes; anything else is not ok.
func (s *Scanner) Integer() (int, bool) {
	var seg []byte
	switch c := s.Peek(); {
	case c == '"':
		seg, _ = s.quoted()
	case c == '-' || c >= '0' && c <= '9':
		seg = s.scalar()
	default:
		s.Skip()
		return 0, false
	}
	// Most are small: no conversion to a string then.
	n := 0
	for i, c := range seg {
		if c < '0' || c > '9' || i > 9 {
			f, err := strconv.ParseFloat(string(seg), 64)
			if err != nil || f != f || f > 1<<53 || f < -(1<<53) {
				return 0, false
			}
			return int(f), true
		}
		n = n*10 + int(c-'0')
	}
	return n, len(seg) > 0
}
