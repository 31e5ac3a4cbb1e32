package builtin

import (
	"strings"
	"unicode/utf8"
)

// screen turns what a program wrote to a terminal into what a person would read
// there: sequences that move or colour are gone, a line that was written over
// (a progress bar) is as it was last.
//
// It keeps one line, which is what programs write over; whole screens, as of an
// editor, are not drawn.
type screen struct {
	out  strings.Builder
	line []rune
	col  int
}

// readable is the text of a terminal's output.
func readable(raw string) string {
	if plain(raw) {
		return raw
	}
	var s screen
	for len(raw) > 0 {
		if raw[0] == 0x1b {
			raw = raw[s.escape(raw):]
			continue
		}
		r, n := utf8.DecodeRuneInString(raw)
		raw = raw[n:]
		s.put(r)
	}
	s.out.WriteString(string(s.line))
	return s.out.String()
}

// plain reports whether text can stand as it is.
func plain(text string) bool {
	for i := 0; i < len(text); i++ {
		if c := text[i]; c < ' ' && c != '\n' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return utf8.ValidString(text)
}

func (s *screen) put(r rune) {
	switch {
	case r == '\n':
		s.out.WriteString(string(s.line))
		s.out.WriteByte('\n')
		s.line, s.col = s.line[:0], 0
	case r == '\r':
		s.col = 0
	case r == '\b':
		s.col = max(0, s.col-1)
	case r == '\t' || r >= ' ' && r != 0x7f:
		if s.col < len(s.line) {
			s.line[s.col] = r
		} else {
			s.line = append(s.line, r)
		}
		s.col++
	}
}

// escape handles one sequence and returns its length. One that is cut off is
// dropped to the end of the text, at most.
func (s *screen) escape(raw string) int {
	if len(raw) < 2 {
		return len(raw)
	}
	switch raw[1] {
	case '[': // parameters, then a final byte
		i := 2
		for i < len(raw) && raw[i] >= 0x20 && raw[i] <= 0x3f {
			i++
		}
		if i == len(raw) {
			return i
		}
		if raw[i] < 0x40 || raw[i] > 0x7e {
			return i // not a sequence after all: go on with what stands there
		}
		s.control(raw[i], raw[2:i])
		return i + 1
	case ']', 'P', '_', '^', 'X': // a string up to BEL or ESC \, on one line
		for i := 2; i < len(raw); i++ {
			switch {
			case raw[i] == 0x07:
				return i + 1
			case raw[i] == 0x1b && i+1 < len(raw) && raw[i+1] == '\\':
				return i + 2
			case raw[i] == '\n':
				return i
			}
		}
		return len(raw)
	case '(', ')', '*', '+', '#', ' ', '%': // one more byte
		return min(3, len(raw))
	}
	if raw[1] >= 0x20 && raw[1] < utf8.RuneSelf {
		return 2
	}
	return 1
}

// control does what concerns the line.
func (s *screen) control(final byte, params string) {
	switch final {
	case 'K':
		switch params {
		case "", "0":
			s.line = s.line[:min(s.col, len(s.line))]
		case "2":
			s.line, s.col = s.line[:0], 0
		}
	case 'G': // to the start of the line, for all that programs do with it
		s.col = 0
	}
}
