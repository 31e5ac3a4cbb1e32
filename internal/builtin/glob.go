package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/transom-run/transom/internal/builtin/walk"
	"github.com/transom-run/transom/tool"
)

// maxFound is how many files a search lists.
const maxFound = 1000

const globSchema = `{
 "type": "object",
 "properties": {
  "pattern": {"type": "string", "description": "For example **/*.go, src/*.{ts,tsx}, **/test/**."},
  "paths": {"description": "Directories to search in; the working directory by default.", "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
 },
 "required": ["pattern"]
}`

// places are the directories or files that a search is about: one or several,
// under either of two names.
type places []string

// UnmarshalJSON takes a string as a list of one.
func (p *places) UnmarshalJSON(raw []byte) error {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		*p = nil
		if one != "" {
			*p = places{one}
		}
		return nil
	}
	var many []string
	if err := json.Unmarshal(raw, &many); err != nil {
		return err
	}
	*p = many
	return nil
}

type globArgs struct {
	Pattern string `json:"pattern"`
	Paths   places `json:"paths"`
	Path    places `json:"path"`
}

// place is where a search begins: as the model named it, which is how results are
// named, and where that is.
type place struct{ named, abs string }

// where lists the places of a search.
func (s *Set) where(call tool.Call, lists ...places) []place {
	var out []place
	for _, l := range lists {
		for _, p := range l {
			out = append(out, place{filepath.ToSlash(p), s.abs(call, p)})
		}
	}
	if len(out) == 0 {
		out = append(out, place{".", s.dir(call)})
	}
	return out
}

func absolutes(ps []place) []string {
	out := make([]string, len(ps))
	for i, p := range ps {
		out[i] = p.abs
	}
	return out
}

// name is the name of a file below a place, as a search prints it.
func (p place) name(rel string) string {
	named := strings.TrimSuffix(p.named, "/")
	if named == "" {
		named = "/"
		return named + rel
	}
	return named + "/" + rel
}

// globWhere moves the fixed beginning of an absolute or upward pattern into the
// places.
func (s *Set) globWhere(call tool.Call, a *globArgs) []place {
	a.Pattern = filepath.ToSlash(a.Pattern)
	for strings.HasPrefix(a.Pattern, "./") {
		a.Pattern = a.Pattern[2:]
	}
	if path.IsAbs(a.Pattern) || strings.HasPrefix(a.Pattern, "../") {
		base, rest := doublestar.SplitPattern(a.Pattern)
		a.Pattern = rest
		return s.where(call, places{base})
	}
	return s.where(call, a.Paths, a.Path)
}

func (s *Set) glob() tool.Tool {
	return tool.Tool{
		Name: "glob", Parameters: json.RawMessage(globSchema),
		Permission: func(_ context.Context, call tool.Call) (tool.Permission, error) {
			var a globArgs
			if err := decode(call, &a); err != nil {
				return tool.Permission{}, err
			}
			pattern := a.Pattern
			in := absolutes(s.globWhere(call, &a))
			return s.askRead(call, valid(fmt.Sprintf("Find files named %s in %s", pattern, strings.Join(in, ", "))), in...)
		},
		Handler: func(ctx context.Context, call tool.Call) (tool.Result, error) {
			var a globArgs
			if err := decode(call, &a); err != nil {
				return tool.Result{}, err
			}
			in := s.globWhere(call, &a)
			pattern, ok := walk.CompileGlob(a.Pattern)
			if a.Pattern == "" || !ok {
				return failure("The pattern %q is not one: brackets and braces have to be closed, and it may not be empty.", a.Pattern)
			}
			return globIn(ctx, pattern, in)
		},
	}
}

func globIn(ctx context.Context, pattern walk.Glob, in []place) (tool.Result, error) {
	var found []string
	more := false
	for _, p := range in {
		info, err := os.Stat(p.abs)
		if errors.Is(err, fs.ErrNotExist) {
			return failure("%s", pathMissing(p.abs))
		}
		if err != nil {
			return failure("%s cannot be read: %v", p.abs, cause(err))
		}
		if !info.IsDir() {
			return failure("%s is not a directory.", p.abs)
		}
		err = walk.Files(ctx, p.abs, func(rel string) error {
			if !pattern.Match(rel) {
				return nil
			}
			if len(found) == maxFound {
				more = true
				return fs.SkipAll
			}
			found = append(found, p.name(rel))
			return nil
		})
		if err != nil && ctx.Err() != nil {
			return tool.Result{}, ctx.Err()
		}
		if err != nil {
			return failure("%s cannot be read: %v", p.abs, cause(err))
		}
	}
	if len(found) == 0 {
		return success("No files matched the pattern.")
	}
	text := strings.Join(found, "\n")
	if more {
		text += fmt.Sprintf("\n[only the first %d are shown]", maxFound)
	}
	return success(text)
}
