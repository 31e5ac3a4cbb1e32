package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/transom-run/transom/tool"
)

const createSchema = `{
 "type": "object",
 "properties": {
  "path": {"type": "string", "description": "The new file. Relative paths start at the working directory."},
  "file_text": {"type": "string", "description": "All that the file is to hold."}
 },
 "required": ["path", "file_text"]
}`

type createArgs struct {
	Path string `json:"path"`
	Text string `json:"file_text"`
}

func (s *Set) create() tool.Tool {
	return tool.Tool{
		Name: "create", Parameters: json.RawMessage(createSchema), Effects: true,
		Permission: func(_ context.Context, call tool.Call) (tool.Permission, error) {
			var a createArgs
			if err := decode(call, &a); err != nil {
				return tool.Permission{}, err
			}
			path := s.abs(call, a.Path)
			p := plan{resolved: resolve(path), refusal: cannotCreate(path)}
			s.plans.put(call.ID, p)
			if p.refusal != "" {
				return s.askWrite(call, writeRequest{Intention: "Create " + valid(path) + doomed, FileName: path, ResolvedPath: p.resolved})
			}
			contents := a.Text
			return s.askWrite(call, writeRequest{Intention: "Create " + valid(path), FileName: path, ResolvedPath: p.resolved,
				Diff: compare("", a.Text).unified(valid(path), false), NewFileContents: &contents})
		},
		Handler: s.runCreate,
	}
}

// doomed ends the intention of a call that cannot work. It is asked about all the
// same: what it comes to says something about a file.
const doomed = " (cannot be applied as things stand)"

// cannotCreate says why a file cannot be made; "" where it can.
func cannotCreate(path string) string {
	if info, err := os.Lstat(path); err == nil {
		if info.IsDir() {
			return fmt.Sprintf("%s is a directory.", path)
		}
		return fmt.Sprintf("%s exists already. Use edit to change it, or another path.", path)
	}
	return ""
}

func (s *Set) runCreate(ctx context.Context, call tool.Call) (tool.Result, error) {
	var a createArgs
	if err := decode(call, &a); err != nil {
		return tool.Result{}, err
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	path := s.abs(call, a.Path)
	resolved := resolve(path)
	if p, ok := s.plans.take(call.ID); ok {
		if p.refusal != "" {
			return failure("%s", p.refusal)
		}
		if p.resolved != resolved {
			return failure("%s leads elsewhere than when the call was approved: nothing was written.", path)
		}
	}
	if why := cannotCreate(path); why != "" {
		return failure("%s", why)
	}
	if s.cfg.BeforeWrite != nil {
		if err := s.cfg.BeforeWrite(ctx, compare("", a.Text).of(Change{Path: resolved, After: []byte(a.Text)})); err != nil {
			return failure("%s was not created: %v", path, err)
		}
	}
	dir, name, err := openParent(resolved, true)
	if err != nil {
		return failure("The directory of %s cannot be made: %v", path, cause(err))
	}
	defer dir.Close()
	// O_EXCL: nothing that has come there since is overwritten, and no link is
	// followed.
	f, err := dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, fs.ErrExist) {
		return failure("%s exists already. Use edit to change it, or another path.", path)
	}
	if err != nil {
		return failure("%s cannot be created: %v", path, cause(err))
	}
	_, err = f.WriteString(a.Text)
	if err = errors.Join(err, f.Close()); err != nil {
		_ = dir.Remove(name)
		return failure("%s cannot be written: %v", path, cause(err))
	}
	return wrote(created(path, a.Text), compare("", a.Text).of(Change{Path: resolved}))
}
