package schema

import (
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// MaxDepth is how deep arrays and objects may be nested in a parsed text. The
// strictest JSON readers of the SDK languages stop at 64 levels, and an event
// puts up to eight of its own around a tool's arguments: what passes here can be
// read by every client.
const MaxDepth = 56

// maxSchemaDepth is the same for schemas, which no client parses back.
const maxSchemaDepth = 256

// Kind is the kind of a JSON value.
type Kind uint8

// The kinds of JSON values.
const (
	Null Kind = iota
	Bool
	Number
	String
	Array
	Object
)

// String is the kind's name in JSON Schema.
func (k Kind) String() string {
	return [...]string{"null", "boolean", "number", "string", "array", "object"}[k]
}

// Value is a parsed JSON value. It keeps the order of members and the text of
// numbers.
type Value struct {
	Kind Kind
	Bool bool
	// Text is a string's content, valid UTF-8, or a number as it was written.
	Text string
	// Items are the items of an array.
	Items []Value
	// Members are the members of an object. Names are unique: of a repeated
	// name the last value counts, at the place of the first, as in JavaScript,
	// Python and Go.
	Members []Member

	index map[string]int // of Members, where there are many
}

// Member is one member of an object.
type Member struct {
	Name  string
	Value Value
}

// indexFrom is the number of members from which an object is indexed.
const indexFrom = 12

func (v *Value) find(name string) int {
	if v.index != nil {
		if i, ok := v.index[name]; ok {
			return i
		}
		return -1
	}
	for i := range v.Members {
		if v.Members[i].Name == name {
			return i
		}
	}
	return -1
}

// Get returns the member of that name; nil where there is none.
func (v *Value) Get(name string) *Value {
	if i := v.find(name); i >= 0 {
		return &v.Members[i].Value
	}
	return nil
}

// add appends a member, or replaces the one of that name.
func (v *Value) add(name string, val Value) {
	if i := v.find(name); i >= 0 {
		v.Members[i].Value = val
		return
	}
	v.Members = append(v.Members, Member{name, val})
	switch {
	case v.index != nil:
		v.index[name] = len(v.Members) - 1
	case len(v.Members) == indexFrom:
		v.index = make(map[string]int, 2*indexFrom)
		for i := range v.Members {
			v.index[v.Members[i].Name] = i
		}
	}
}

// SyntaxError says where and why a text is not JSON.
type SyntaxError struct {
	Offset  int // of the byte at which the text went wrong
	Msg     string
	TooDeep bool // the text may be JSON, but is nested beyond the limit
}

// Error gives the fault and its place.
func (e *SyntaxError) Error() string { return fmt.Sprintf("%s at byte %d", e.Msg, e.Offset) }

// Parse reads one JSON value. Bytes that are not valid UTF-8, and escapes that
// stand for half of a surrogate pair, become U+FFFD. A text nested deeper than
// [MaxDepth] is an error.
func Parse(text string) (Value, error) { return parse(text, MaxDepth) }

func parse(text string, maxDepth int) (Value, error) {
	p := parser{s: text, left: maxDepth}
	var v Value
	p.space()
	err := p.value(&v)
	if err == nil {
		if p.space(); p.i < len(p.s) {
			err = p.failf("expected the end of the text but found %s", p.here())
		}
	}
	if err != nil {
		return Value{}, err
	}
	return v, nil
}

type parser struct {
	s    string
	i    int
	left int // levels that may still be opened
}

func (p *parser) failf(format string, args ...any) error {
	return &SyntaxError{Offset: p.i, Msg: fmt.Sprintf(format, args...)}
}

// here describes what stands at the current place.
func (p *parser) here() string {
	if p.i >= len(p.s) {
		return "the end of the text"
	}
	r, n := utf8.DecodeRuneInString(p.s[p.i:])
	if r == utf8.RuneError && n == 1 {
		return fmt.Sprintf("the byte 0x%02x", p.s[p.i])
	}
	return fmt.Sprintf("%q", r)
}

func (p *parser) space() {
	for p.i < len(p.s) {
		switch p.s[p.i] {
		case ' ', '\t', '\n', '\r':
			p.i++
		default:
			return
		}
	}
}

func (p *parser) value(v *Value) error {
	if p.i >= len(p.s) {
		return p.failf("expected a value but found the end of the text")
	}
	switch c := p.s[p.i]; {
	case c == '{':
		return p.object(v)
	case c == '[':
		return p.array(v)
	case c == '"':
		v.Kind = String
		var err error
		v.Text, err = p.str()
		return err
	case c == '-' || '0' <= c && c <= '9':
		return p.number(v)
	case p.word("true"):
		v.Kind, v.Bool = Bool, true
	case p.word("false"):
		v.Kind = Bool
	case p.word("null"):
		v.Kind = Null
	default:
		return p.failf("expected a value but found %s", p.here())
	}
	return nil
}

func (p *parser) word(w string) bool {
	if strings.HasPrefix(p.s[p.i:], w) {
		p.i += len(w)
		return true
	}
	return false
}

func (p *parser) open() error {
	if p.left == 0 {
		return &SyntaxError{Offset: p.i, Msg: "the value is nested too deeply", TooDeep: true}
	}
	p.left--
	p.i++
	p.space()
	return nil
}

// closes reports whether the closing character stands here, and passes it.
func (p *parser) closes(c byte) bool {
	if p.i < len(p.s) && p.s[p.i] == c {
		p.i++
		p.left++
		return true
	}
	return false
}

func (p *parser) object(v *Value) error {
	v.Kind = Object
	if err := p.open(); err != nil {
		return err
	}
	if p.closes('}') {
		return nil
	}
	for {
		if p.i >= len(p.s) || p.s[p.i] != '"' {
			return p.failf("expected a property name in double quotes but found %s", p.here())
		}
		name, err := p.str()
		if err != nil {
			return err
		}
		p.space()
		if p.i >= len(p.s) || p.s[p.i] != ':' {
			return p.failf("expected ':' after the property name but found %s", p.here())
		}
		p.i++
		p.space()
		var val Value
		if err := p.value(&val); err != nil {
			return err
		}
		v.add(name, val)
		p.space()
		if p.closes('}') {
			return nil
		}
		if p.i >= len(p.s) || p.s[p.i] != ',' {
			return p.failf("expected ',' or '}' but found %s", p.here())
		}
		p.i++
		p.space()
	}
}

func (p *parser) array(v *Value) error {
	v.Kind = Array
	if err := p.open(); err != nil {
		return err
	}
	if p.closes(']') {
		return nil
	}
	for {
		v.Items = append(v.Items, Value{})
		if err := p.value(&v.Items[len(v.Items)-1]); err != nil {
			return err
		}
		p.space()
		if p.closes(']') {
			return nil
		}
		if p.i >= len(p.s) || p.s[p.i] != ',' {
			return p.failf("expected ',' or ']' but found %s", p.here())
		}
		p.i++
		p.space()
	}
}

func (p *parser) digits() bool {
	from := p.i
	for p.i < len(p.s) && '0' <= p.s[p.i] && p.s[p.i] <= '9' {
		p.i++
	}
	return p.i > from
}

func (p *parser) number(v *Value) error {
	from := p.i
	if p.s[p.i] == '-' {
		p.i++
	}
	first := p.i
	if !p.digits() {
		return p.failf("expected a digit but found %s", p.here())
	}
	if p.s[first] == '0' && p.i > first+1 {
		p.i = first
		return p.failf("a number must not begin with 0")
	}
	if p.i < len(p.s) && p.s[p.i] == '.' {
		p.i++
		if !p.digits() {
			return p.failf("expected a digit after the decimal point but found %s", p.here())
		}
	}
	if p.i < len(p.s) && (p.s[p.i] == 'e' || p.s[p.i] == 'E') {
		p.i++
		if p.i < len(p.s) && (p.s[p.i] == '+' || p.s[p.i] == '-') {
			p.i++
		}
		if !p.digits() {
			return p.failf("expected a digit in the exponent but found %s", p.here())
		}
	}
	v.Kind, v.Text = Number, p.s[from:p.i]
	return nil
}

// str reads a string. Without escapes it is a part of the text, not a copy.
func (p *parser) str() (string, error) {
	start := p.i
	p.i++
	from := p.i
	ascii := true
	for p.i < len(p.s) {
		switch c := p.s[p.i]; {
		case c == '"':
			s := p.s[from:p.i]
			p.i++
			if !ascii {
				s = strings.ToValidUTF8(s, "\ufffd")
			}
			return s, nil
		case c == '\\':
			return p.escaped(start, from)
		case c < 0x20:
			return "", p.control(c)
		default:
			ascii = ascii && c < utf8.RuneSelf
			p.i++
		}
	}
	p.i = start
	return "", p.failf("the string that begins here is not closed:")
}

func (p *parser) control(c byte) error {
	switch c {
	case '\n', '\r':
		return p.failf("a line break inside a string must be written as \\n; found one")
	case '\t':
		return p.failf("a tab inside a string must be written as \\t; found one")
	}
	return p.failf("the control character 0x%02x inside a string must be escaped; found one", c)
}

func (p *parser) escaped(start, from int) (string, error) {
	b := make([]byte, 0, p.i-from+64)
	b = append(b, p.s[from:p.i]...)
	for p.i < len(p.s) {
		c := p.s[p.i]
		switch {
		case c == '"':
			p.i++
			return strings.ToValidUTF8(string(b), "\ufffd"), nil
		case c < 0x20:
			return "", p.control(c)
		case c != '\\':
			run := p.i
			for p.i < len(p.s) && p.s[p.i] != '"' && p.s[p.i] != '\\' && p.s[p.i] >= 0x20 {
				p.i++
			}
			b = append(b, p.s[run:p.i]...)
		default:
			var err error
			if b, err = p.escape(b); err != nil {
				return "", err
			}
		}
	}
	p.i = start
	return "", p.failf("the string that begins here is not closed:")
}

func (p *parser) escape(b []byte) ([]byte, error) {
	if p.i+1 >= len(p.s) {
		p.i++
		return nil, p.failf("the escape is not complete")
	}
	switch c := p.s[p.i+1]; c {
	case '"', '\\', '/':
		b = append(b, c)
	case 'b':
		b = append(b, '\b')
	case 'f':
		b = append(b, '\f')
	case 'n':
		b = append(b, '\n')
	case 'r':
		b = append(b, '\r')
	case 't':
		b = append(b, '\t')
	case 'u':
		r, ok := hex4(p.s[p.i+2:])
		if !ok {
			return nil, p.failf("\\u must be followed by four hexadecimal digits")
		}
		p.i += 6
		if utf16.IsSurrogate(r) {
			r = p.pair(r)
		}
		return utf8.AppendRune(b, r), nil
	default:
		r, _ := utf8.DecodeRuneInString(p.s[p.i+1:])
		return nil, p.failf("\\%c is not an escape of JSON", r)
	}
	p.i += 2
	return b, nil
}

// pair completes a surrogate pair whose first half is r. Half a pair is U+FFFD.
func (p *parser) pair(r rune) rune {
	if !strings.HasPrefix(p.s[p.i:], `\u`) {
		return utf8.RuneError
	}
	low, ok := hex4(p.s[p.i+2:])
	if !ok {
		return utf8.RuneError
	}
	full := utf16.DecodeRune(r, low)
	if full != utf8.RuneError {
		p.i += 6
	}
	return full
}

func hex4(s string) (rune, bool) {
	if len(s) < 4 {
		return 0, false
	}
	var r rune
	for i := range 4 {
		c := s[i]
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}
