package tokens

import (
	"unicode"
	"unicode/utf8"
)

// Both vocabularies are defined with a regular expression that cuts text into pieces,
// which tokens never cross. Go's regular expressions have no lookahead, and these two
// are asked at every few bytes, so they are written out here. The comments cite
// the alternatives; the first that matches wins, and each matches as far as it can.

// kind is the class of a character, as far as the expressions tell classes apart.
type kind uint8

const (
	symbol  kind = iota // neither of the others
	upper               // \p{Lu} \p{Lt}
	lower               // \p{Ll}
	letters             // \p{Lm} \p{Lo}
	mark                // \p{M}
	number              // \p{N}
	space               // \s but line ends
	newline             // \r \n
)

func (k kind) letter() bool { return k == upper || k == lower || k == letters }
func (k kind) blank() bool  { return k == space || k == newline }

// head and tail are the two classes of letters of a word: HELLO, hello, Hello and
// HELLOworld are one each, helloWORLD is two.
func (k kind) head() bool { return k == upper || k == letters || k == mark }
func (k kind) tail() bool { return k == lower || k == letters || k == mark }

// before is [^\r\n\p{L}\p{N}], what a word may begin with.
func (k kind) before() bool { return k == symbol || k == mark || k == space }

// other is [^\s\p{L}\p{N}].
func (k kind) other() bool { return k == symbol || k == mark }

// ascii is kindOf of a character below utf8.RuneSelf.
func ascii(c byte) kind {
	switch {
	case c|0x20 >= 'a' && c|0x20 <= 'z':
		if c >= 'a' {
			return lower
		}
		return upper
	case c >= '0' && c <= '9':
		return number
	case c == '\r' || c == '\n':
		return newline
	case c == ' ' || c >= '\t' && c < '\r':
		return space
	}
	return symbol
}

func kindOf(r rune) kind {
	switch {
	case r == '\r' || r == '\n':
		return newline
	case unicode.IsSpace(r):
		return space
	case unicode.Is(unicode.Ll, r):
		return lower
	case unicode.In(r, unicode.Lu, unicode.Lt):
		return upper
	case unicode.In(r, unicode.Lm, unicode.Lo):
		return letters
	case unicode.Is(unicode.N, r):
		return number
	case unicode.Is(unicode.M, r):
		return mark
	}
	return symbol
}

// at returns the class of the character at i, and where it ends.
func at(s string, i int) (kind, int) {
	if c := s[i]; c < utf8.RuneSelf {
		return ascii(c), i + 1
	}
	r, n := utf8.DecodeRuneInString(s[i:])
	return kindOf(r), i + n
}

// run returns where the characters from i on of which ok is true end.
func run(s string, i int, ok func(kind) bool) int {
	for i < len(s) {
		k, j := at(s, i)
		if !ok(k) {
			break
		}
		i = j
	}
	return i
}

// nextO200k returns where the piece that begins at i ends, for o200k_base.
func nextO200k(s string, i int) int {
	k, j := at(s, i)
	// [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?
	end := -1
	if k.before() {
		end = lowerWord(s, j)
	}
	if end < 0 && (k.letter() || k == mark) {
		end = lowerWord(s, i)
	}
	// [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?
	if end < 0 {
		begin := i
		if k.before() {
			begin = j
		}
		if e := run(s, begin, kind.head); e > begin {
			end = e
		}
	}
	if end >= 0 {
		return contraction(s, end)
	}
	return rest(s, i, k, j, true)
}

// lowerWord matches [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+, or
// returns -1.
func lowerWord(s string, i int) int {
	last := -1 // the end of the last character of the first part that could be of the second
	for i < len(s) {
		k, j := at(s, i)
		if !k.head() {
			break
		}
		if k.tail() {
			last = j
		}
		i = j
	}
	if end := run(s, i, kind.tail); end > i {
		return end
	}
	return last
}

// nextCL100k returns where the piece that begins at i ends, for cl100k_base.
func nextCL100k(s string, i int) int {
	// '(?i:[sdmt]|ll|ve|re)
	if end := contraction(s, i); end > i {
		return end
	}
	k, j := at(s, i)
	// [^\r\n\p{L}\p{N}]?+\p{L}++
	switch {
	case k.letter():
		return run(s, j, kind.letter)
	case k.before():
		if end := run(s, j, kind.letter); end > j {
			return end
		}
	}
	return rest(s, i, k, j, false)
}

// rest is what both expressions have after words: numbers, punctuation, blanks. k and j
// are the class and the end of the character at i.
func rest(s string, i int, k kind, j int, o200k bool) int {
	// \p{N}{1,3}
	if k == number {
		for range 2 {
			if j < len(s) {
				if k, e := at(s, j); k == number {
					j = e
				}
			}
		}
		return j
	}
	// ` ?[^\s\p{L}\p{N}]+[\r\n/]*`, in cl100k_base without the slash
	begin := i
	if s[i] == ' ' {
		begin = j
	}
	if end := run(s, begin, kind.other); end > begin {
		for end < len(s) && (s[end] == '\r' || s[end] == '\n' || o200k && s[end] == '/') {
			end++
		}
		return end
	}
	return blanks(s, i, o200k)
}

// blanks matches what begins with a blank.
func blanks(s string, i int, o200k bool) int {
	end, last, lineEnd := i, i, -1
	for end < len(s) {
		k, j := at(s, end)
		if !k.blank() {
			break
		}
		if k == newline {
			lineEnd = j
		}
		last, end = end, j
	}
	switch {
	case end == len(s) && !o200k: // \s++$
		return end
	case lineEnd >= 0: // \s*[\r\n]+
		return lineEnd
	case end < len(s) && last > i: // \s+(?!\S): the last blank belongs to the word after it
		return last
	}
	return end // \s+
}

// contraction returns where (?i:'s|'t|'re|'ve|'m|'ll|'d) ends that may begin at i, and
// i where none does.
func contraction(s string, i int) int {
	if i+1 >= len(s) || s[i] != '\'' {
		return i
	}
	switch s[i+1] | 0x20 {
	case 's', 't', 'm', 'd':
		return i + 2
	case 'r', 'v':
		if i+2 < len(s) && s[i+2]|0x20 == 'e' {
			return i + 3
		}
	case 'l':
		if i+2 < len(s) && s[i+2]|0x20 == 'l' {
			return i + 3
		}
	}
	if len(s) > i+2 && s[i+1:i+3] == "ſ" { // a small s of another form
		return i + 3
	}
	return i
}
