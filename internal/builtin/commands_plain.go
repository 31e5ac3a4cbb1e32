package builtin

import (
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// What decides whether a command line is plain: whether approving the names of its
// commands for longer covers what it does. Everything that the shell works out
// while it runs (variables, substitutions, arithmetic, which looks into variables)
// is not: who reads "echo" does not expect what stands in $X. Being wrong in that
// direction costs a question.

// strange reports whether text holds what a shell and a reader, or two shells,
// take for different things.
func strange(text string) bool {
	return !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == 0x7f })
}

// loopVariables are the names that for loops of a line set.
func loopVariables(file *syntax.File) map[string]bool {
	names := map[string]bool{}
	syntax.Walk(file, func(n syntax.Node) bool {
		if w, ok := n.(*syntax.WordIter); ok && w.Name != nil && w.InPos.IsValid() {
			names[w.Name.Value] = true
		}
		return true
	})
	return names
}

// loop takes up what a for loop goes through.
func (c *commandLine) loop(n *syntax.WordIter) {
	if n.Name == nil || steering(n.Name.Value) || !n.InPos.IsValid() {
		c.Plain = false
	}
	for _, w := range n.Items {
		text, static := literal(w)
		c.argument(w, text, static)
	}
}

// argument takes up an argument of a command, or what a loop goes through.
func (c *commandLine) argument(w *syntax.Word, text string, static bool) {
	switch {
	case static && len(c.Words) < maxWords:
		c.Words = append(c.Words, text)
	case !static && len(c.Patterns) < maxWords && isPattern(w):
		c.Patterns = append(c.Patterns, text)
	case !static && c.isLoopVariable(w):
	default:
		c.Plain = false
	}
}

// isPattern reports whether a word is text with the signs of file names' patterns,
// and nothing else that changes.
func isPattern(w *syntax.Word) bool {
	text, _ := literal(w)
	if strings.ContainsAny(text, "{~\\") {
		return false
	}
	for part := range strings.SplitSeq(text, "/") {
		if strings.HasPrefix(part, ".") && strings.ContainsAny(part, "*?[") { // may be ".."
			return false
		}
	}
	return !slices.ContainsFunc(w.Parts, func(p syntax.WordPart) bool {
		_, lit := p.(*syntax.Lit)
		return !lit // a quoted sign is none, and does not show in text any more
	})
}

// isLoopVariable reports whether a word is the variable of a loop and no more, or
// one of the shell's numbers ($?, $#).
func (c *commandLine) isLoopVariable(w *syntax.Word) bool {
	parts := w.Parts
	if len(parts) == 1 {
		if q, ok := parts[0].(*syntax.DblQuoted); ok {
			parts = q.Parts
		}
	}
	if len(parts) != 1 {
		return false
	}
	p, ok := parts[0].(*syntax.ParamExp)
	return ok && p.Param != nil && (c.loops[p.Param.Value] || strings.Contains("?#$!", p.Param.Value)) && c.plainNode(p)
}

// plainNode reports whether a part of a line is nothing but what it says.
func (c *commandLine) plainNode(n syntax.Node) bool {
	switch n := n.(type) {
	case *syntax.DeclClause, *syntax.FuncDecl, *syntax.CoprocClause:
		return false // it can change what later names mean
	case *syntax.CmdSubst, *syntax.ProcSubst, *syntax.ExtGlob:
		return false
	case *syntax.ArithmExp, *syntax.ArithmCmd, *syntax.LetClause, *syntax.CStyleLoop:
		return false // evaluates what variables hold, commands included
	case *syntax.UnaryTest:
		return n.Op != syntax.TsVarSet && n.Op != syntax.TsRefVar
	case *syntax.BinaryTest: // [[ 'a[$(cmd)]' -eq 0 ]] runs cmd
		return n.Op != syntax.TsEql && n.Op != syntax.TsNeq && n.Op != syntax.TsLeq && n.Op != syntax.TsGeq && n.Op != syntax.TsLss && n.Op != syntax.TsGtr
	case *syntax.ParamExp:
		if n.Param == nil || n.Excl || n.Length || n.Width || n.IsSet || n.NestedParam != nil || n.Flags != nil ||
			n.Index != nil || n.Slice != nil || n.Repl != nil || n.Names != 0 || n.Exp != nil || len(n.Modifiers) > 0 {
			return false
		}
		return c.loops[n.Param.Value] || strings.Contains("?#$!", n.Param.Value)
	}
	return true
}

// inside takes up paths that stand inside of a word, where a program may find
// them: after an option's letters, "=", "@", ":" or ",". A URL is no path.
func (c *commandLine) inside(text string) {
	for _, scheme := range []string{"http://", "https://", "ftp://"} {
		if i := strings.Index(text, scheme); i >= 0 {
			text = text[:i]
		}
	}
	pieces := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune("=@:,;\n", r) })
	if strings.HasPrefix(text, "-") && !strings.HasPrefix(text, "--") && len(text) > 2 {
		pieces = append(pieces, text[2:])
		if i := strings.IndexAny(text, "/~"); i > 0 {
			pieces = append(pieces, text[i:])
		}
	}
	for _, p := range pieces {
		if p == text && !strings.ContainsAny(p, "/~") || p == "" || p == "/dev/null" {
			continue
		}
		if len(c.Hidden) >= maxWords {
			c.Plain = false
			return
		}
		c.Hidden = append(c.Hidden, p)
	}
}

// maxBases is how many places relative paths of one line may start from, and
// maxMatches how many files its patterns may stand for.
const (
	maxBases   = 32
	maxMatches = 500
)

// staysInside reports whether every file that a line names lies in the allowed
// directories, as far as its words tell, from wherever the line changes to.
func (s *Set) staysInside(line commandLine, dir string) bool {
	bases := []string{dir}
	for _, d := range line.Dirs {
		for _, b := range slices.Clone(bases) {
			if !filepath.IsAbs(d) {
				b = filepath.Join(b, d)
			} else {
				b = d
			}
			if !slices.Contains(bases, b) {
				bases = append(bases, b)
			}
		}
		if len(bases) > maxBases {
			return false
		}
	}
	inside := func(p string) bool {
		if strings.HasPrefix(p, "~") {
			return false
		}
		if strings.ContainsRune(p, 0) {
			return true // no file has such a name
		}
		return !slices.ContainsFunc(bases, func(base string) bool {
			if !filepath.IsAbs(p) {
				p := filepath.Join(base, p)
				return !s.open(resolve(p), dir)
			}
			return !s.open(resolve(filepath.Clean(p)), dir)
		})
	}
	for _, list := range [][]string{line.Paths, line.Words, line.Hidden} {
		if slices.ContainsFunc(list, func(p string) bool { return !inside(p) }) {
			return false
		}
	}
	matches := 0
	for _, pattern := range line.Patterns {
		for _, base := range bases {
			full := pattern
			if !filepath.IsAbs(full) {
				full = filepath.Join(escapePattern(base), full)
			}
			found, err := filepath.Glob(full)
			if matches += len(found); err != nil || matches > maxMatches || slices.ContainsFunc(found, func(p string) bool { return !s.open(resolve(p), dir) }) {
				return false
			}
		}
	}
	return true
}

// escapePattern makes a pattern that matches a path alone.
func escapePattern(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}
