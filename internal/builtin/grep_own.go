package builtin

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/transom-run/transom/internal/builtin/walk"
)

// maxSearched is the largest file that is searched.
const maxSearched = 64 << 20

// search is grep without ripgrep.
func search(ctx context.Context, a grepArgs, in []place) ([]string, error) {
	expr := a.Pattern
	flags := "m"
	if a.Fold {
		flags += "i"
	}
	if a.Multiline {
		flags += "s"
	}
	re, err := regexp.Compile("(?" + flags + ":" + expr + ")")
	if err != nil {
		return nil, refused("The pattern is not a regular expression that can be searched for: " + strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	globs, err := nameGlobs(a)
	if err != nil {
		return nil, err
	}
	f := &finder{args: a, re: re}
	for _, p := range in {
		if err := f.place(ctx, p, globs); err != nil {
			return nil, err
		}
		if f.full() {
			break
		}
	}
	return f.lines, nil
}

// languages are the file names of the types that grep knows, the common ones.
var languages = [][2]string{
	{"c", "*.{c,h}"}, {"cpp", "*.{cpp,cc,cxx,hpp,hh,hxx,h,inl}"}, {"cs", "*.cs"}, {"csharp", "*.cs"}, {"css", "*.{css,scss}"}, {"dart", "*.dart"},
	{"docker", "*Dockerfile*"}, {"elixir", "*.{ex,eex,exs}"}, {"go", "*.go"}, {"haskell", "*.{hs,lhs}"}, {"html", "*.{htm,html}"}, {"java", "*.java"},
	{"js", "*.{js,jsx,mjs,cjs,vue}"}, {"json", "*.json"}, {"kotlin", "*.{kt,kts}"}, {"lua", "*.lua"}, {"make", "{*.mk,*.mak,[Mm]akefile,GNUmakefile}"},
	{"markdown", "*.{md,markdown,mdown,mkd}"}, {"md", "*.{md,markdown,mdown,mkd}"}, {"perl", "*.{pl,pm,t}"}, {"php", "*.php"}, {"proto", "*.proto"},
	{"py", "*.{py,pyi}"}, {"python", "*.{py,pyi}"}, {"rb", "*.{rb,gemspec}"}, {"ruby", "*.{rb,gemspec}"}, {"rust", "*.rs"}, {"scala", "*.{scala,sbt}"},
	{"sh", "*.{sh,bash,zsh,ksh}"}, {"sql", "*.{sql,psql}"}, {"svelte", "*.svelte"}, {"swift", "*.swift"}, {"toml", "*.toml"}, {"ts", "*.{ts,tsx,mts,cts}"},
	{"txt", "*.txt"}, {"typescript", "*.{ts,tsx,mts,cts}"}, {"vue", "*.vue"}, {"xml", "*.{xml,xsl,xslt,svg}"}, {"yaml", "*.{yaml,yml}"}, {"zig", "*.zig"},
}

// nameGlobs are the patterns that a file's name has to match, all of them.
func nameGlobs(a grepArgs) ([]nameGlob, error) {
	var globs []nameGlob
	if a.Type != "" {
		i := slices.IndexFunc(languages, func(l [2]string) bool { return l[0] == a.Type })
		if i < 0 {
			var known []string
			for _, l := range languages {
				known = append(known, l[0])
			}
			return nil, refused(fmt.Sprintf("The type %q is not known. Use glob, or one of %s.", a.Type, strings.Join(known, ", ")))
		}
		glob, _ := newNameGlob(languages[i][1])
		globs = append(globs, glob)
	}
	if a.Glob != "" {
		glob, ok := newNameGlob(a.Glob)
		if !ok {
			return nil, refused(fmt.Sprintf("The glob %q is not one: brackets and braces have to be closed.", a.Glob))
		}
		globs = append(globs, glob)
	}
	return globs, nil
}

// nameGlob is a pattern that a file's path below the place has to match. One without
// a slash is about the name alone; one with "!" is about all others.
type nameGlob struct {
	glob      walk.Glob
	not, base bool
}

func newNameGlob(pattern string) (n nameGlob, ok bool) {
	pattern, n.not = strings.CutPrefix(pattern, "!")
	pattern, anchored := strings.CutPrefix(pattern, "/")
	n.base = !anchored && !strings.Contains(pattern, "/")
	n.glob, ok = walk.CompileGlob(pattern)
	return n, ok
}

// named reports whether a path matches all patterns.
func named(globs []nameGlob, rel string) bool {
	for _, g := range globs {
		subject := rel
		if g.base {
			subject = path.Base(rel)
		}
		if g.glob.Match(subject) == g.not {
			return false
		}
	}
	return true
}

// finder collects the lines of a result.
type finder struct {
	args  grepArgs
	re    *regexp.Regexp
	lines []string
	any   bool // something was shown, so that a gap is marked
}

func (f *finder) full() bool { return len(f.lines) > f.args.Limit }

func (f *finder) place(ctx context.Context, p place, globs []nameGlob) error {
	info, err := os.Stat(p.abs)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		if info.Mode().IsRegular() && named(globs, path.Base(p.named)) {
			f.file(p.named, p.abs)
		}
		return nil
	}
	return walk.Files(ctx, p.abs, func(rel string) error {
		if named(globs, rel) {
			f.file(p.name(rel), path.Join(p.abs, rel))
		}
		if f.full() {
			return fs.SkipAll
		}
		return nil
	})
}

// file searches one file. What cannot be read, is binary or too large is passed
// over.
func (f *finder) file(name, abs string) {
	info, err := os.Stat(abs)
	if err != nil || info.Size() > maxSearched {
		return
	}
	text, err := os.ReadFile(abs)
	if err != nil || bytes.IndexByte(text, 0) >= 0 {
		return
	}
	lines, hits := f.hits(text)
	if len(hits) == 0 {
		return
	}
	switch f.args.Mode {
	case modeFiles:
		f.lines = append(f.lines, name)
	case modeCount:
		f.lines = append(f.lines, fmt.Sprintf("%s:%d", name, len(hits)))
	default:
		f.content(name, lines, hits)
	}
}

// hits are the lines of a text, and the numbers of those that match. With
// files_with_matches the first is enough.
func (f *finder) hits(text []byte) (lines [][]byte, hits []int) {
	if len(text) == 0 {
		return nil, nil
	}
	lines = bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n"))
	if f.args.Multiline {
		return lines, f.across(text, lines)
	}
	for i, l := range lines {
		if lines[i] = bytes.TrimSuffix(l, []byte("\r")); f.re.Match(lines[i]) {
			if hits = append(hits, i); f.args.Mode == modeFiles {
				break
			}
		}
	}
	return lines, hits
}

// across finds matches that may reach over line ends: each line they touch counts.
func (f *finder) across(text []byte, lines [][]byte) []int {
	var hits []int
	line, start := 0, 0 // start is where line begins
	for _, m := range f.re.FindAllIndex(text, -1) {
		end := max(m[1]-1, m[0])
		for line < len(lines)-1 && start+len(lines[line])+1 <= m[0] {
			start += len(lines[line]) + 1
			line++
		}
		i, at := line, start
		for {
			if n := len(hits); n == 0 || hits[n-1] < i {
				hits = append(hits, i)
			}
			if at += len(lines[i]) + 1; at > end || i == len(lines)-1 {
				break
			}
			i++
		}
	}
	for i, l := range lines {
		lines[i] = bytes.TrimSuffix(l, []byte("\r"))
	}
	return hits
}

// content shows the lines that match, and those around them.
func (f *finder) content(name string, lines [][]byte, hits []int) {
	around := f.args.Before > 0 || f.args.After > 0
	next, hit := 0, 0 // next is the first line that has not been shown
	for hit < len(hits) && !f.full() {
		from := max(next, hits[hit]-f.args.Before)
		if around && f.any && (from > next || next == 0) {
			f.lines = append(f.lines, "--")
		}
		f.any = true
		to := hits[hit] + f.args.After
		for i := from; i <= to && i < len(lines) && !f.full(); i++ {
			mark := byte('-')
			if hit < len(hits) && hits[hit] == i {
				mark = ':'
				hit++
				to = i + f.args.After
			}
			f.lines = append(f.lines, f.line(name, i, mark, lines[i]))
			next = i + 1
		}
	}
}

func (f *finder) line(name string, i int, mark byte, text []byte) string {
	if f.args.numbers() {
		return shown(fmt.Appendf(nil, "%s%c%d%c%s", name, mark, i+1, mark, text))
	}
	return shown(fmt.Appendf(nil, "%s%c%s", name, mark, text))
}
