package schema

import (
	"errors"
	"regexp"
	"regexp/syntax"
	"strings"
)

// pattern is a regular expression of a schema. re is nil where Go's engine
// cannot express it: then everything matches.
type pattern struct {
	source string
	re     *regexp.Regexp
}

func (p *pattern) match(s string) bool { return p.re == nil || p.re.MatchString(s) }

// compilePattern compiles an ECMAScript pattern. The error says what is wrong
// with a pattern that no engine would take.
func compilePattern(src string) (*pattern, error) {
	p := &pattern{source: src}
	re, err := regexp.Compile(translate(src))
	if err == nil {
		p.re = re
		return p, nil
	}
	var se *syntax.Error
	if errors.As(err, &se) && beyondGo(se, src) {
		return p, nil
	}
	return nil, err
}

// beyondGo reports whether the error may be a limit of Go's engine rather than
// a fault of the pattern.
func beyondGo(e *syntax.Error, src string) bool {
	switch e.Code {
	case syntax.ErrInvalidPerlOp, syntax.ErrInvalidEscape, syntax.ErrInvalidRepeatSize,
		syntax.ErrInvalidRepeatOp, syntax.ErrLarge, syntax.ErrNestingDepth, syntax.ErrInvalidNamedCapture:
		return true
	case syntax.ErrInvalidCharRange, syntax.ErrInvalidCharClass:
		return strings.Contains(e.Expr, `\`) // an unknown \p{…}, or [\w-.]
	case syntax.ErrMissingBracket:
		return strings.Contains(src, "[]") || strings.Contains(src, "[^]")
	}
	return false
}

// translate rewrites the escapes that ECMAScript and Go spell differently.
func translate(src string) string {
	if !strings.Contains(src, `\u`) && !strings.Contains(src, `\c`) && !strings.Contains(src, `\0`) {
		return src
	}
	var b strings.Builder
	for i := 0; i < len(src); i++ {
		if src[i] != '\\' || i+1 == len(src) {
			b.WriteByte(src[i])
			continue
		}
		rest := src[i+1:]
		switch rest[0] {
		case 'u':
			if _, ok := hex4(rest[1:]); ok {
				b.WriteString(`\x{` + rest[1:5] + `}`)
				i += 5
				continue
			}
			if strings.HasPrefix(rest[1:], "{") {
				b.WriteString(`\x`)
				i++
				continue
			}
		case 'c':
			if len(rest) > 1 && isLetter(rest[1]) {
				const hex = "0123456789abcdef"
				c := rest[1] & 31
				b.WriteString(`\x` + string(hex[c>>4]) + string(hex[c&15]))
				i += 2
				continue
			}
		case '0':
			b.WriteString(`\x00`)
			i++
			continue
		}
		b.WriteString(src[i : i+2])
		i++
	}
	return b.String()
}

func isLetter(c byte) bool { return 'a' <= c|32 && c|32 <= 'z' }
