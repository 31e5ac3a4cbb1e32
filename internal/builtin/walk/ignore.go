package walk

import (
	"bufio"
	"bytes"
	"os"
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// maxIgnoreFile is how much of an ignore file is read.
const maxIgnoreFile = 1 << 20

// rule is one line of an ignore file.
type rule struct {
	pattern  string // for doublestar, against the path below the file's directory
	negated  bool
	dirsOnly bool
}

// rules are the lines of one ignore file, in their order.
type rules []rule

// parseRules reads an ignore file in the format of git. Lines that make no
// pattern are passed over, as git does.
func parseRules(text []byte) rules {
	var out rules
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, maxIgnoreFile)
	for first := true; lines.Scan(); first = false {
		line := lines.Text()
		if first {
			line = strings.TrimPrefix(line, "\uFEFF")
		}
		if r, ok := parseRule(line); ok {
			out = append(out, r)
		}
	}
	return out
}

func parseRule(line string) (rule, bool) {
	line = strings.TrimSuffix(line, "\r")
	if strings.HasPrefix(line, "#") {
		return rule{}, false
	}
	// Blanks at the end do not count unless escaped.
	for strings.HasSuffix(line, " ") && !oddBackslashes(line[:len(line)-1]) {
		line = line[:len(line)-1]
	}
	var r rule
	if strings.HasPrefix(line, "!") {
		r.negated, line = true, line[1:]
	}
	if strings.HasSuffix(line, "/") {
		r.dirsOnly, line = true, strings.TrimSuffix(line, "/")
	}
	if line == "" || oddBackslashes(line) {
		return rule{}, false
	}
	// A slash anywhere but at the end ties the pattern to the file's directory.
	anchored := strings.Contains(line, "/")
	line = strings.TrimPrefix(line, "/")
	if line == "" {
		return rule{}, false
	}
	// Braces are ordinary in ignore files, and alternatives in doublestar.
	line = escapeBraces(line)
	if strings.HasSuffix(line, "/**") {
		line += "/*" // all that is inside, not the directory itself
	}
	if !anchored {
		line = "**/" + line
	}
	if !doublestar.ValidatePattern(line) {
		return rule{}, false
	}
	r.pattern = line
	return r, true
}

func oddBackslashes(s string) bool {
	n := len(s) - len(strings.TrimRight(s, `\`))
	return n%2 == 1
}

func escapeBraces(s string) string {
	if !strings.ContainsAny(s, "{}") {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			b.WriteByte(s[i])
			if i++; i < len(s) {
				b.WriteByte(s[i])
			}
			continue
		case '{', '}':
			b.WriteByte('\\')
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// decide says what the rules hold of a path below their file's directory: the
// last that matches counts.
func (rs rules) decide(rel string, dir bool) (ignored, decided bool) {
	for i := len(rs) - 1; i >= 0; i-- {
		r := rs[i]
		if r.dirsOnly && !dir {
			continue
		}
		if ok, err := doublestar.Match(r.pattern, rel); err == nil && ok {
			return !r.negated, true
		}
	}
	return false, false
}

// level is the rules that hold in one directory and below it.
type level struct {
	up    *level
	base  string // the directory, below the walk's root or above it, absolute with slashes
	rules []rules
}

// ignored reports whether an entry is ignored, its absolute path given. The
// nearest directory's rules come first.
func (l *level) ignored(abs string, dir bool) bool {
	for ; l != nil; l = l.up {
		rel := strings.TrimPrefix(abs, l.base)
		rel = strings.TrimPrefix(rel, "/")
		for i := len(l.rules) - 1; i >= 0; i-- {
			if ignored, decided := l.rules[i].decide(rel, dir); decided {
				return ignored
			}
		}
	}
	return false
}

// enter adds the rules of a directory, where it has some.
func (l *level) enter(dir string) *level {
	text, err := readSmall(path.Join(dir, ".gitignore"))
	if err != nil {
		return l
	}
	if rs := parseRules(text); len(rs) > 0 {
		return &level{up: l, base: dir, rules: []rules{rs}}
	}
	return l
}

func readSmall(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxIgnoreFile {
		return nil, os.ErrInvalid
	}
	return os.ReadFile(name)
}

// above collects the rules that hold in a directory from further up: those of its
// repository, whose exclude file comes last. Outside of a repository there are
// none.
func above(dir string) *level {
	var chain []string
	for d := dir; ; d = path.Dir(d) {
		if _, err := os.Lstat(path.Join(d, ".git")); err == nil {
			break
		}
		if path.Dir(d) == d {
			return nil
		}
		chain = append(chain, path.Dir(d))
	}
	root := dir
	if len(chain) > 0 {
		root = chain[len(chain)-1]
	}
	var l *level
	if text, err := readSmall(path.Join(root, ".git", "info", "exclude")); err == nil {
		if rs := parseRules(text); len(rs) > 0 {
			l = &level{base: root, rules: []rules{rs}}
		}
	}
	for i := len(chain) - 1; i >= 0; i-- {
		l = l.enter(chain[i])
	}
	return l
}
