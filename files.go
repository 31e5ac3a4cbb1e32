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
func (f Files) own(op string) (folder, error) {
	select {
	case <-f.s.gone:
		return nil, notFound(op, f.s.id)
	default:
	}
	dir := f.s.Workspace()
	if dir == "" {
		return nil, &Error{Op: op, Kind: KindUnsupported, SessionID: f.s.id, Msg: "session " + f.s.id + " has no directory: its store keeps no files"}
	}
	if k := f.s.rt.keptFiles(f.s.id); k != nil {
		files, err := k.open()
		if err != nil {
			return nil, f.failed(op, "", err)
		}
		return hostFolder{files: files, layout: k.layout}, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, f.failed(op, "", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, f.failed(op, "", err)
	}
	return diskFolder{root}, nil
}

// below opens the directory of the clients' files.
func (f Files) below(op string) (folder, error) {
	own, err := f.own(op)
	if err != nil {
		return nil, err
	}
	defer own.Close()
	root, err := own.Below(filesDir)
	if err != nil {
		return nil, f.failed(op, "", err)
	}
	return root, nil
}

// failed gives an error of the file system its kind and words.
func (f Files) failed(op, name string, err error) error {
	var own *Error
	if errors.As(err, &own) {
		return err
	}
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
	return f.at(planFile)
}

// at is where a file of the session is; "" where the store has no files.
func (f Files) at(name ...string) string {
	if k := f.s.rt.keptFiles(f.s.id); k != nil {
		return k.layout.Must(path.Join(name...))
	}
	if dir := f.s.Workspace(); dir != "" {
		return filepath.Join(append([]string{dir}, name...)...)
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
	existed, err := root.Replace(planFile, text)
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
	switch err := root.Remove(planFile, false, false); {
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

// List returns the paths of all files, sorted.
func (f Files) List() ([]string, error) {
	const op = "session.workspaces.listFiles"
	root, err := f.below(op)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	out, err := root.List()
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
		if err := root.Mkdir(dir, true); err != nil {
			return f.failed(op, name, err)
		}
	}
	existed, err := root.Replace(local, text)
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
	return info, nil
}

// MakeDir makes a directory; all makes those above it too.
func (f Files) MakeDir(name string, all bool) error {
	const op = "session.workspaces.createDirectory"
	return f.change(op, name, func(root folder, local string) error { return root.Mkdir(local, all) })
}

// Remove removes a file or an empty directory; all removes what is in it too. A
// path that is not there is an error unless missing is fine.
func (f Files) Remove(name string, all, missing bool) error {
	const op = "session.workspaces.removePath"
	return f.change(op, name, func(root folder, local string) error { return root.Remove(local, all, missing) })
}

// Rename moves a file or directory to where nothing is, or over a file.
func (f Files) Rename(from, to string) error {
	const op = "session.workspaces.renamePath"
	target, err := f.local(op, to)
	if err != nil {
		return err
	}
	return f.change(op, from, func(root folder, local string) error {
		if dir := filepath.Dir(target); dir != "." {
			if err := root.Mkdir(dir, true); err != nil {
				return err
			}
		}
		return root.Rename(local, target)
	})
}

// change makes a change that no event tells of.
func (f Files) change(op, name string, do func(root folder, local string) error) error {
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
	return name, f.at(filesDir, name), nil
}
