package walk

import (
	"regexp"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// maxGlob is the longest pattern that is one.
const maxGlob = 4096

// Glob is a pattern of paths: "*" and "?" stay within a name, "**" as a whole name
// is any number of directories, "[a-z]" and "[!a-z]" are characters, "{a,b}" are
// alternatives, and a backslash takes the meaning off what follows.
//
// It takes time in proportion to the path, whatever the pattern: patterns come from
// models, and matchers that try alternatives one by one can be kept busy for years
// by a line of them.
type Glob struct{ re *regexp.Regexp }

// CompileGlob reads a pattern; false where it is none.
func CompileGlob(pattern string) (Glob, bool) {
	if len(pattern) > maxGlob || !doublestar.ValidatePattern(pattern) {
		return Glob{}, false
	}
	var b strings.Builder
	b.WriteString(`^(?s:`)
	p := globParser{in: pattern, out: &b}
	p.sequence(0)
	b.WriteString(`)$`)
	re, err := regexp.Compile(b.String())
	return Glob{re}, err == nil
}

// Match reports whether a path with slashes matches.
func (g Glob) Match(path string) bool { return g.re.MatchString(path) }

// globParser turns a pattern that is known to be one into an expression.
type globParser struct {
	in  string
	at  int
	out *strings.Builder
}

// sequence reads up to the end, or inside of braces up to the next "," or "}".
func (p *globParser) sequence(depth int) {
	for p.at < len(p.in) {
		c := p.in[p.at]
		switch {
		case depth > 0 && (c == ',' || c == '}'):
			return
		case c == '\\' && p.at+1 < len(p.in):
			p.at++
			p.literal()
		case c == '*':
			p.stars(depth)
		case c == '?':
			p.at++
			p.out.WriteString(`[^/]`)
		case c == '[':
			p.class()
		case c == '{':
			p.at++
			p.out.WriteString(`(?:`)
			for {
				p.sequence(depth + 1)
				if p.at >= len(p.in) || p.in[p.at] == '}' {
					break
				}
				p.at++
				p.out.WriteByte('|')
			}
			p.at++
			p.out.WriteByte(')')
		default:
			p.literal()
		}
	}
}

// literal takes one character as it is.
func (p *globParser) literal() {
	n := 1
	for p.at+n < len(p.in) && p.in[p.at+n]&0xc0 == 0x80 { // a character of several bytes
		n++
	}
	p.out.WriteString(regexp.QuoteMeta(p.in[p.at : p.at+n]))
	p.at += n
}

// stars reads "*", "**", and "**" as a whole name with the slash at one side of it.
func (p *globParser) stars(depth int) {
	from := p.at
	for p.at < len(p.in) && p.in[p.at] == '*' {
		p.at++
	}
	begins := from == 0 || strings.ContainsRune("/{,", rune(p.in[from-1])) && (p.in[from-1] == '/' || depth > 0)
	rest := p.in[p.at:]
	ends := rest == "" || rest[0] == '/' || depth > 0 && (rest[0] == ',' || rest[0] == '}')
	switch {
	case p.at-from != 2 || !begins || !ends:
		p.out.WriteString(`[^/]*`)
	case rest != "" && rest[0] == '/': // none, or some directories
		p.at++
		p.out.WriteString(`(?:.*/)?`)
	default:
		p.out.WriteString(`.*`)
	}
}

// class reads "[…]".
func (p *globParser) class() {
	p.at++
	p.out.WriteByte('[')
	if p.at < len(p.in) && (p.in[p.at] == '!' || p.in[p.at] == '^') {
		p.at++
		p.out.WriteString(`^/`)
	}
	for first := true; p.at < len(p.in) && (first || p.in[p.at] != ']'); first = false {
		switch c := p.in[p.at]; c {
		case '\\':
			if p.at++; p.at < len(p.in) {
				p.member()
			}
		case '-':
			p.at++
			p.out.WriteByte('-')
		default:
			p.member()
		}
	}
	p.at++
	p.out.WriteByte(']')
}

// member takes one character of a class.
func (p *globParser) member() {
	c := p.in[p.at]
	if c < 0x80 && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
		p.out.WriteByte('\\')
	}
	p.out.WriteByte(c)
	p.at++
}
