package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"

	"github.com/transom-run/transom/tool"
)

const grepSchema = `{
 "type": "object",
 "properties": {
  "pattern": {"type": "string", "description": "A regular expression; look-around is not supported."},
  "paths": {"description": "Files or directories to search; the working directory by default.", "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
  "output_mode": {"type": "string", "enum": ["files_with_matches", "content", "count"], "description": "The names of the files (default), the lines, or how many lines match in each file."},
  "glob": {"type": "string", "description": "Only files whose name matches, such as *.go or *.{ts,tsx}."},
  "type": {"type": "string", "description": "Only files of a language: go, js, ts, py, rust, java, c, cpp, md, json, yaml …"},
  "-i": {"type": "boolean", "description": "Letters match in either case."},
  "-n": {"type": "boolean", "description": "Line numbers, with output_mode content; on by default."},
  "-A": {"type": "integer", "minimum": 0, "description": "Lines to show after each match."},
  "-B": {"type": "integer", "minimum": 0, "description": "Lines to show before each match."},
  "-C": {"type": "integer", "minimum": 0, "description": "Lines to show around each match."},
  "head_limit": {"type": "integer", "minimum": 1, "description": "At most so many lines of output."},
  "multiline": {"type": "boolean", "description": "Matches may reach over line ends, and a dot matches one."}
 },
 "required": ["pattern"]
}`

// How results are shown.
const (
	modeFiles   = "files_with_matches"
	modeContent = "content"
	modeCount   = "count"
)

type grepArgs struct {
	Pattern   string `json:"pattern"`
	Paths     places `json:"paths"`
	Path      places `json:"path"`
	Mode      string `json:"output_mode"`
	Glob      string `json:"glob"`
	Type      string `json:"type"`
	Fold      bool   `json:"-i"`
	Numbers   *bool  `json:"-n"`
	After     int    `json:"-A"`
	Before    int    `json:"-B"`
	Around    int    `json:"-C"`
	Limit     int    `json:"head_limit"`
	Multiline bool   `json:"multiline"`
}

// settled fills in what the model left out.
func (a grepArgs) settled() grepArgs {
	const most = 1000 // lines around a match
	a.Around = min(a.Around, most)
	a.After = min(max(a.After, a.Around), most)
	a.Before = min(max(a.Before, a.Around), most)
	if a.Mode == "" {
		a.Mode = modeFiles
	}
	if a.Limit <= 0 || a.Limit > maxFound {
		a.Limit = maxFound
	}
	return a
}

func (a grepArgs) numbers() bool { return a.Numbers == nil || *a.Numbers }

func (s *Set) grep() tool.Tool {
	return tool.Tool{
		Name: "grep", Parameters: json.RawMessage(grepSchema),
		Permission: func(_ context.Context, call tool.Call) (tool.Permission, error) {
			var a grepArgs
			if err := decode(call, &a); err != nil {
				return tool.Permission{}, err
			}
			in := absolutes(s.where(call, a.Paths, a.Path))
			return s.askRead(call, valid(fmt.Sprintf("Search for %s in %s", oneLine(a.Pattern, 200), strings.Join(in, ", "))), in...)
		},
		Handler: func(ctx context.Context, call tool.Call) (tool.Result, error) {
			var a grepArgs
			if err := decode(call, &a); err != nil {
				return tool.Result{}, err
			}
			in := s.where(call, a.Paths, a.Path)
			for _, p := range in {
				if _, err := os.Stat(p.abs); errors.Is(err, fs.ErrNotExist) {
					return failure("%s", pathMissing(p.abs))
				} else if err != nil {
					return failure("%s cannot be read: %v", p.abs, cause(err))
				}
			}
			var lines []string
			var err error
			if rg := ripgrep(); rg != "" && a.forRipgrep() {
				lines, err = s.searchRipgrep(ctx, rg, s.dir(call), a.settled(), in)
			} else {
				lines, err = search(ctx, a.settled(), in)
			}
			return found(ctx, lines, err, a.settled().Limit)
		},
	}
}

// ripgrep is the path of rg, or "" where there is none. A variable so that tests
// can choose.
var ripgrep = func() string {
	path, err := exec.LookPath("rg")
	if err != nil {
		return ""
	}
	return path
}

// refused is an error that the model reads.
type refused string

func (r refused) Error() string { return string(r) }

func found(ctx context.Context, lines []string, err error, limit int) (tool.Result, error) {
	var r refused
	switch {
	case errors.As(err, &r):
		return failure("%s", string(r))
	case ctx.Err() != nil:
		return tool.Result{}, ctx.Err()
	case err != nil:
		return tool.Result{}, err
	case len(lines) == 0:
		return success("No matches found.")
	case len(lines) > limit:
		lines = append(lines[:limit:limit], fmt.Sprintf("[only the first %d lines are shown]", limit))
	}
	return success(strings.Join(lines, "\n"))
}
