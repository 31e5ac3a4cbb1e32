package transom

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/internal/session"
	"github.com/transom-run/transom/internal/turn"
)

// Files are the files that belong to a session, in its own directory: the plan,
// and what clients keep below "files". Paths are relative to that, with slashes;
// one that leads out of it, by ".." or by a link, is refused. Each change is
// written before it is announced to clients.
type Files struct{ s *Session }

// Files returns the session's own files.
func (h *Session) Files() Files { return Files{h} }

const (
	planFile  = "plan.md"
	filesDir  = "files"
	planLimit = 4 << 20
)

// record is a command that writes one event.
type record struct {
	name    string
	payload event.Payload
}

func (r record) op() string               { return r.name }
func (r record) body() (turn.Body, error) { return turn.Note{Payload: r.payload}, nil }

// own opens the session's directory, making it where there is none. The caller
// closes it.
func (f Files) own(op string) (*os.Root, error) {
	select {
	case <-f.s.gone:
		return nil, notFound(op, f.s.id)
	default:
	}
	dir := f.s.Workspace()
	if dir == "" {
		return nil, &Error{Op: op, Kind: KindUnsupported, SessionID: f.s.id, Msg: "session " + f.s.id + " has no directory: its store keeps no files"}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, f.failed(op, "", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, f.failed(op, "", err)
	}
	return root, nil
}

// below opens the directory of the clients' files.
func (f Files) below(op string) (*os.Root, error) {
	own, err := f.own(op)
	if err != nil {
		return nil, err
	}
	defer own.Close()
	if err := own.MkdirAll(filesDir, 0o700); err != nil {
		return nil, f.failed(op, "", err)
	}
	root, err := own.OpenRoot(filesDir)
	if err != nil {
		return nil, f.failed(op, "", err)
	}
	return root, nil
}

// failed gives an error of the file system its kind and words.
func (f Files) failed(op, name string, err error) error {
	e := &Error{Op: op, Kind: KindInternal, SessionID: f.s.id, Err: err}
	switch {
	case strings.Contains(err.Error(), "escapes from parent"):
		e.Kind, e.Msg = KindInvalidParams, outside(name)
	case errors.Is(err, fs.ErrNotExist):
		e.Kind, e.Msg = KindNotFound, fmt.Sprintf("there is no %q in the workspace files directory", name)
	case errors.Is(err, fs.ErrExist):
		e.Kind, e.Msg = KindConflict, fmt.Sprintf("%q exists already in the workspace files directory", name)
	default:
		e.Msg = "the session's files: " + err.Error()
		var p *fs.PathError
		if errors.As(err, &p) {
			e.Kind = KindInvalidParams // such as a directory where a file is meant
		}
	}
	return e
}

func outside(name string) string {
	return fmt.Sprintf("the path %q leads out of the workspace files directory: give a relative path below it", name)
}

// local checks a path and gives it the form of the system.
func (f Files) local(op, name string) (string, error) {
	bad := ""
	local := filepath.FromSlash(path.Clean(name))
	switch {
	case name == "":
		bad = "the path is empty: give one below the workspace files directory"
	case strings.ContainsRune(name, 0):
		bad = "the path holds a zero byte: give one below the workspace files directory"
	case path.IsAbs(name), !filepath.IsLocal(local), local == ".":
		bad = outside(name)
	default:
		return local, nil
	}
	return "", &Error{Op: op, Kind: KindInvalidParams, SessionID: f.s.id, Msg: bad}
}

// Plan reads the session's plan; exists is false where there is none.
func (f Files) Plan() (text string, exists bool, err error) {
	const op = "session.plan.read"
	root, err := f.own(op)
	if err != nil {
		return "", false, err
	}
	defer root.Close()
	raw, err := root.ReadFile(planFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", false, nil
	case err != nil:
		return "", false, f.failed(op, planFile, err)
	}
	return string(raw), true, nil
}

// PlanPath is where the plan is kept; "" where the store has no files.
func (f Files) PlanPath() string {
	if dir := f.s.Workspace(); dir != "" {
		return filepath.Join(dir, planFile)
	}
	return ""
}

// WritePlan replaces the session's plan.
func (f Files) WritePlan(ctx context.Context, text string) error {
	const op = "session.plan.update"
	if len(text) > planLimit {
		return &Error{Op: op, Kind: KindInvalidParams, SessionID: f.s.id, Msg: fmt.Sprintf("the plan has %d bytes: at most %d are kept", len(text), planLimit)}
	}
	root, err := f.own(op)
	if err != nil {
		return err
	}
	defer root.Close()
	f.s.sess.files.Lock()
	defer f.s.sess.files.Unlock()
	existed, err := replace(root, planFile, text)
	if err != nil {
		return f.failed(op, planFile, err)
	}
	return f.tell(ctx, op, event.PlanChanged{Operation: written(existed)})
}

// DeletePlan removes the session's plan. Where there is none nothing happens.
func (f Files) DeletePlan(ctx context.Context) error {
	const op = "session.plan.delete"
	root, err := f.own(op)
	if err != nil {
		return err
	}
	defer root.Close()
	f.s.sess.files.Lock()
	defer f.s.sess.files.Unlock()
	switch err := root.Remove(planFile); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return f.failed(op, planFile, err)
	}
	return f.tell(ctx, op, event.PlanChanged{Operation: "delete"})
}

// tell writes what was changed into the log, where every client sees it.
func (f Files) tell(ctx context.Context, op string, p event.Payload) error {
	_, err := f.s.do(context.WithoutCancel(ctx), record{op, p})
	return err
}

func written(existed bool) string {
	if existed {
		return "update"
	}
	return "create"
}

// replace writes a file whole or not at all.
func replace(root *os.Root, name, text string) (existed bool, err error) {
	info, err := root.Stat(name)
	switch {
	case err == nil && info.IsDir():
		return true, &fs.PathError{Op: "write", Path: name, Err: errors.New("is a directory")}
	case err == nil:
		existed = true
	case !errors.Is(err, fs.ErrNotExist):
		return false, err
	}
	temp := path.Join(filepath.ToSlash(filepath.Dir(name)), ".new-"+session.NewID())
	if err := root.WriteFile(temp, []byte(text), 0o600); err != nil {
		return existed, err
	}
	if err := root.Rename(temp, name); err != nil {
		root.Remove(temp)
		return existed, err
	}
	return existed, nil
}

// List returns the paths of all files, sorted.
func (f Files) List() ([]string, error) {
	const op = "session.workspaces.listFiles"
	root, err := f.below(op)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	out := []string{}
	err = fs.WalkDir(root.FS(), ".", func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !strings.HasPrefix(d.Name(), ".new-") {
			out = append(out, p)
		}
		return err
	})
	if err != nil {
		return nil, f.failed(op, "", err)
	}
	slices.Sort(out)
	return out, nil
}

// Read returns a file's text.
func (f Files) Read(name string) (string, error) {
	const op = "session.workspaces.readFile"
	local, err := f.local(op, name)
	if err != nil {
		return "", err
	}
	root, err := f.below(op)
	if err != nil {
		return "", err
	}
	defer root.Close()
	raw, err := root.ReadFile(local)
	if err != nil {
		return "", f.failed(op, name, err)
	}
	if !utf8.Valid(raw) {
		return "", &Error{Op: op, Kind: KindInvalidParams, SessionID: f.s.id, Msg: fmt.Sprintf("%q is not UTF-8 text: it cannot be read as text", name)}
	}
	return string(raw), nil
}

// Write makes or replaces a file, and the directories that it needs.
func (f Files) Write(ctx context.Context, name, text string) error {
	const op = "session.workspaces.createFile"
	local, err := f.local(op, name)
	if err != nil {
		return err
	}
	root, err := f.below(op)
	if err != nil {
		return err
	}
	defer root.Close()
	f.s.sess.files.Lock()
	defer f.s.sess.files.Unlock()
	if dir := filepath.Dir(local); dir != "." {
		if err := root.MkdirAll(dir, 0o700); err != nil {
			return f.failed(op, name, err)
		}
	}
	existed, err := replace(root, local, text)
	if err != nil {
		return f.failed(op, name, err)
	}
	return f.tell(ctx, op, event.WorkspaceFileChanged{Path: filepath.ToSlash(local), Operation: written(existed)})
}

// FileInfo describes a file or directory of a session.
type FileInfo struct {
	Dir      bool
	Bytes    int64
	Modified time.Time
}

// Stat describes a file or directory.
func (f Files) Stat(name string) (FileInfo, error) {
	const op = "session.workspaces.statFile"
	local, err := f.local(op, name)
	if err != nil {
		return FileInfo{}, err
	}
	root, err := f.below(op)
	if err != nil {
		return FileInfo{}, err
	}
	defer root.Close()
	info, err := root.Stat(local)
	if err != nil {
		return FileInfo{}, f.failed(op, name, err)
	}
	return FileInfo{info.IsDir(), info.Size(), info.ModTime()}, nil
}

// MakeDir makes a directory; all makes those above it too.
func (f Files) MakeDir(name string, all bool) error {
	const op = "session.workspaces.createDirectory"
	return f.change(op, name, func(root *os.Root, local string) error {
		if all {
			return root.MkdirAll(local, 0o700)
		}
		return root.Mkdir(local, 0o700)
	})
}

// Remove removes a file or an empty directory; all removes what is in it too. A
// path that is not there is an error unless missing is fine.
func (f Files) Remove(name string, all, missing bool) error {
	const op = "session.workspaces.removePath"
	return f.change(op, name, func(root *os.Root, local string) error {
		_, err := root.Lstat(local)
		switch {
		case errors.Is(err, fs.ErrNotExist) && missing:
			return nil
		case err != nil:
			return err
		case all:
			return root.RemoveAll(local)
		}
		if err := root.Remove(local); !errors.Is(err, fs.ErrExist) {
			return err
		}
		return &fs.PathError{Op: "remove", Path: name, Err: errors.New("the directory is not empty")}
	})
}

// Rename moves a file or directory to where nothing is, or over a file.
func (f Files) Rename(from, to string) error {
	const op = "session.workspaces.renamePath"
	target, err := f.local(op, to)
	if err != nil {
		return err
	}
	return f.change(op, from, func(root *os.Root, local string) error {
		if dir := filepath.Dir(target); dir != "." {
			if err := root.MkdirAll(dir, 0o700); err != nil {
				return err
			}
		}
		return root.Rename(local, target)
	})
}

// change makes a change that no event tells of.
func (f Files) change(op, name string, do func(root *os.Root, local string) error) error {
	local, err := f.local(op, name)
	if err != nil {
		return err
	}
	root, err := f.below(op)
	if err != nil {
		return err
	}
	defer root.Close()
	f.s.sess.files.Lock()
	defer f.s.sess.files.Unlock()
	if err := do(root, local); err != nil {
		return f.failed(op, name, err)
	}
	return nil
}

// SavePaste keeps a long text that was pasted as a file of its own, and returns
// its path and where that is.
func (f Files) SavePaste(ctx context.Context, text string) (name, full string, err error) {
	name = "paste-" + time.Now().UTC().Format("20060102-150405") + "-" + session.NewID()[:8] + ".txt"
	if err := f.Write(ctx, name, text); err != nil {
		return "", "", err
	}
	return name, filepath.Join(f.s.Workspace(), filesDir, name), nil
}
