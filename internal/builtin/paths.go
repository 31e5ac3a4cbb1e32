package builtin

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/transom-run/transom/tool"
)

// maxLinks is how many symbolic links a path may lead through.
const maxLinks = 255

// dir is the working directory of a call.
func (s *Set) dir(call tool.Call) string {
	if call.Dir != "" {
		return call.Dir
	}
	return s.cfg.Dir()
}

// abs is the path that a model means: relative ones are below the working
// directory.
func (s *Set) abs(call tool.Call, path string) string {
	if !filepath.IsAbs(path) {
		path = filepath.Join(s.dir(call), path)
	}
	return filepath.Clean(path)
}

// resolve follows every symbolic link of an absolute path, also of one whose
// end does not exist, so that what a path is judged by is what it leads to. A
// path that cannot be followed (a loop, a directory that may not be read) is
// itself from there on.
func resolve(path string) string {
	done := filepath.VolumeName(path) + string(filepath.Separator)
	rest := parts(path[len(filepath.VolumeName(path)):])
	for links := 0; len(rest) > 0; {
		next := filepath.Join(done, rest[0])
		if rest[0] == ".." {
			done, rest = filepath.Dir(done), rest[1:]
			continue
		}
		info, err := os.Lstat(next)
		if err != nil {
			// Nothing is there, so nothing leads elsewhere. A ".." after a name
			// that does not exist takes that name away again.
			return filepath.Join(append([]string{done}, rest...)...)
		}
		if info.Mode()&os.ModeSymlink == 0 {
			done, rest = next, rest[1:]
			continue
		}
		target, err := os.Readlink(next)
		if links++; err != nil || links > maxLinks {
			return filepath.Join(append([]string{done}, rest...)...)
		}
		if filepath.IsAbs(target) {
			done = filepath.VolumeName(target) + string(filepath.Separator)
		}
		rest = append(parts(target[len(filepath.VolumeName(target)):]), rest[1:]...)
	}
	return done
}

// parts splits a path into its names.
func parts(path string) []string {
	var out []string
	for p := range strings.FieldsFuncSeq(path, func(r rune) bool { return r < 0x80 && os.IsPathSeparator(uint8(r)) }) {
		if p != "." {
			out = append(out, p)
		}
	}
	return out
}

// within reports whether a resolved path is root or below it.
func within(root, path string) bool {
	rel, err := filepath.Rel(root, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// open reports whether an approval that lasts may cover changing a file: it is
// allowed, and decides nothing about what is approved or run. What git runs by
// itself stands below ".git".
func (s *Set) open(resolved, dir string) bool {
	return s.allowed(resolved, dir) && !s.guarded(resolved) && !slices.Contains(parts(resolved), ".git")
}

// guarded reports whether a file is one of Transom's own: the logs of sessions,
// which say what was approved, the settings, what is approved for a place. A
// session may change its plan and its files.
func (s *Set) guarded(resolved string) bool {
	if s.cfg.SessionDir != "" {
		if own := resolve(s.cfg.SessionDir); within(own, resolved) {
			return filepath.Dir(resolved) == own && filepath.Base(resolved) != "plan.md"
		}
	}
	return s.cfg.Home != "" && within(resolve(s.cfg.Home), resolved)
}

// Allowed reports whether a path lies, once every symbolic link is followed, in
// the working directory, in one of the additional directories, or among the
// session's own files. Requests about other paths can be approved one by one only.
func (s *Set) Allowed(path string) bool {
	if !filepath.IsAbs(path) {
		path = filepath.Join(s.cfg.Dir(), path)
	}
	return s.allowed(resolve(path), s.cfg.Dir())
}

func (s *Set) allowed(resolved, dir string) bool {
	if within(resolve(dir), resolved) {
		return true
	}
	if s.cfg.SessionDir != "" && within(resolve(s.cfg.SessionDir), resolved) {
		return true
	}
	if s.cfg.ExtraDirs != nil {
		for _, d := range s.cfg.ExtraDirs() {
			if !filepath.IsAbs(d) {
				d = filepath.Join(dir, d)
			}
			if within(resolve(d), resolved) {
				return true
			}
		}
	}
	return false
}
