package builtin

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/transom-run/transom/tool"
)

// maxEdit is the largest file that edit changes.
const maxEdit = 50 << 20

const editSchema = `{
 "type": "object",
 "properties": {
  "path": {"type": "string", "description": "The file. Relative paths start at the working directory."},
  "old_str": {"type": "string", "description": "What to replace; it has to occur exactly once, white space included."},
  "new_str": {"type": "string", "description": "What takes its place; may be empty."}
 },
 "required": ["path", "old_str", "new_str"]
}`

type editArgs struct {
	Path string `json:"path"`
	Old  string `json:"old_str"`
	New  string `json:"new_str"`
}

// edition is an edit worked out, before anything is written.
type edition struct {
	path, resolved string
	info           fs.FileInfo
	before, after  string
	refusal        string
}

func (s *Set) edit() tool.Tool {
	return tool.Tool{
		Name: "edit", Parameters: json.RawMessage(editSchema), Effects: true,
		Permission: func(_ context.Context, call tool.Call) (tool.Permission, error) {
			e, err := s.workOut(call)
			if err != nil {
				return tool.Permission{}, err
			}
			if e.refusal != "" {
				s.plans.put(call.ID, plan{refusal: e.refusal})
				return s.askWrite(call, writeRequest{Intention: "Edit " + valid(e.path) + doomed, FileName: e.path, ResolvedPath: e.resolved})
			}
			c := compare(e.before, e.after)
			s.plans.put(call.ID, plan{resolved: e.resolved, diff: c.core()})
			return s.askWrite(call, writeRequest{Intention: "Edit " + valid(e.path), FileName: e.path, ResolvedPath: e.resolved,
				Diff: valid(c.unified(e.path, true))})
		},
		Handler: s.runEdit,
	}
}

// workOut reads the file and makes the edit in memory.
func (s *Set) workOut(call tool.Call) (edition, error) {
	var a editArgs
	if err := decode(call, &a); err != nil {
		return edition{}, err
	}
	e := edition{path: s.abs(call, a.Path)}
	e.resolved = resolve(e.path)
	info, err := os.Stat(e.resolved)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e.refusal = pathMissing(e.path)
	case err != nil:
		e.refusal = fmt.Sprintf("%s cannot be read: %v", e.path, cause(err))
	case !info.Mode().IsRegular():
		e.refusal = fmt.Sprintf("%s is not a file.", e.path)
	case info.Size() > maxEdit:
		e.refusal = fmt.Sprintf("%s is too large to be edited (%d MB).", e.path, info.Size()>>20)
	case a.Old == "":
		e.refusal = "The old_str is empty: it has to name what to replace."
	case a.Old == a.New:
		e.refusal = "The old_str and the new_str are equal: there is nothing to change."
	}
	if e.refusal != "" {
		return e, nil
	}
	e.info = info
	raw, err := os.ReadFile(e.resolved)
	if err != nil {
		e.refusal = fmt.Sprintf("%s cannot be read: %v", e.path, cause(err))
		return e, nil
	}
	e.before = string(raw)
	e.after, e.refusal = replaceOnce(e.path, e.before, a.Old, a.New)
	return e, nil
}

// replaceOnce makes the edit, or says why it cannot be made. In a file whose
// lines end in CR LF, which view does not show, a text with bare line feeds is
// found as well, and what takes its place gets the file's line ends.
func replaceOnce(path, text, old, with string) (string, string) {
	n := strings.Count(text, old)
	if n == 0 && strings.Contains(text, "\r\n") && !strings.Contains(old, "\r") {
		old = strings.ReplaceAll(old, "\n", "\r\n")
		n = strings.Count(text, old)
	}
	if n == 1 && strings.Contains(text, "\r\n") && !strings.Contains(strings.ReplaceAll(text, "\r\n", ""), "\n") {
		with = strings.ReplaceAll(strings.ReplaceAll(with, "\r\n", "\n"), "\n", "\r\n")
	}
	switch {
	case n == 0:
		return "", fmt.Sprintf("The old_str does not occur in %s: nothing was changed. It has to match to the letter, white space included; view the file and try again.", path)
	case n > 1:
		return "", fmt.Sprintf("The old_str occurs %d times in %s: nothing was changed. Take in more of the lines around it, so that it occurs once.", n, path)
	}
	return strings.Replace(text, old, with, 1), ""
}

func (s *Set) runEdit(ctx context.Context, call tool.Call) (tool.Result, error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	p, asked := s.plans.take(call.ID)
	if asked && p.refusal != "" {
		return failure("%s", p.refusal)
	}
	e, err := s.workOut(call)
	if err != nil {
		return tool.Result{}, err
	}
	if e.refusal != "" {
		return failure("%s", e.refusal)
	}
	if asked && (p.resolved != e.resolved || p.diff != compare(e.before, e.after).core()) {
		return failure("%s has changed since the edit was approved: nothing was written. View it and try again.", e.path)
	}
	if s.cfg.BeforeWrite != nil {
		if err := s.cfg.BeforeWrite(ctx, compare(e.before, e.after).of(Change{Path: e.resolved, Exists: true, Before: []byte(e.before), Mode: e.info.Mode(), After: []byte(e.after)})); err != nil {
			return failure("%s was not changed: %v", e.path, err)
		}
	}
	if err := replaceFile(e.resolved, e.info, e.after); err != nil {
		return failure("%s cannot be written: %v", e.path, cause(err))
	}
	return wrote(edited(e.path), compare(e.before, e.after).of(Change{Path: e.resolved}))
}

// wrote is the result of a call that changed a file. Its telemetry is what the
// session's count of changed lines is made of.
func wrote(text string, c Change) (tool.Result, error) {
	t, err := json.Marshal(map[string]any{
		"metrics":              map[string]int{"linesAdded": c.Added, "linesRemoved": c.Removed},
		"restrictedProperties": map[string]string{"filePath": valid(c.Path)},
	})
	return tool.Result{Text: text, Telemetry: t}, err
}

// replaceFile puts new contents in the place of a file, whole or not at all, with
// its permissions. Where that would make the file another's or cut its other names
// off, or the directory may not be written to, it is written in place.
func replaceFile(path string, info fs.FileInfo, text string) error {
	dir, name, err := openParent(path, false)
	if err != nil {
		return err
	}
	defer dir.Close()
	// A file that may not be written to is not replaced either, nor is another than
	// the one that was read.
	f, err := dir.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if now, err := f.Stat(); err != nil || !os.SameFile(now, info) {
		return errors.Join(err, errMoved)
	}
	tmp, temp, err := temporary(dir, rand.Text)
	if err != nil || !ours(info) {
		if err == nil {
			tmp.Close()
			_ = dir.Remove(temp)
		}
		return rewrite(f, text)
	}
	_, err = tmp.WriteString(text)
	err = errors.Join(err, tmp.Chmod(info.Mode().Perm()), tmp.Close())
	if err == nil {
		err = dir.Rename(temp, name)
	}
	if err != nil {
		_ = dir.Remove(temp)
	}
	return err
}

// rewrite puts new contents into an open file.
func rewrite(f *os.File, text string) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteString(text)
	return err
}
