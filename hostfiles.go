package transom

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/eventlog"
	"github.com/transom-run/transom/eventlog/hostlog"
	"github.com/transom-run/transom/sessionfs"
)

// HostFiles says how a host keeps the files of sessions itself: their logs, and all
// that otherwise lies beside them.
type HostFiles struct {
	// Dir is the working directory of sessions that name none. It is taken as it is:
	// where it is no directory on this machine, the session's own tools cannot work
	// there. "" is the runtime's.
	Dir string
	// Layout says where the files of each session are, in the host's words.
	Layout sessionfs.Layout
	// SQLite says that what Open returns is a sessionfs.Database, too. Without one
	// sessions have no sql tool.
	SQLite bool
	// Open returns the files of a session, for each piece of work anew. It does not
	// wait.
	Open func(sessionID string) (sessionfs.FS, error)
	// AppendTime is how long the host may take to append to a log; 0 is
	// [hostlog.DefaultAppendTime]. What is not answered by then counts as not
	// written: a clear is refused, a turn ends.
	AppendTime time.Duration
}

// keeping is how sessions are kept by hosts, from when one has asked for it.
type keeping struct {
	HostFiles
	layout sessionfs.Layout
	store  *hostlog.Store
}

// KeepFiles has a host keep the files of all sessions from now on, for as long as
// the runtime is open. Where hosts keep them already, the same words again are
// fine, and Open is that of the last call: a host that comes back, or another one
// like it. Other words are a Conflict, and so is it while sessions are loaded that
// are kept here.
//
// There is no lock on such a session: that only one runtime has it at a time is the
// host's part.
func (r *Runtime) KeepFiles(h HostFiles) error {
	const op = "sessionFs.setProvider"
	switch root := h.Layout.Root; {
	case h.Open == nil:
		return &Error{Op: op, Kind: KindInvalidParams, Msg: "nobody says how the files are reached: set Open"}
	case !h.Layout.Windows && !path.IsAbs(root), h.Layout.Windows && root == "", strings.ContainsRune(root, 0), climbs(root):
		return &Error{Op: op, Kind: KindInvalidParams, Msg: fmt.Sprintf("sessionStatePath must be an absolute path without %q, not %q", "..", root)}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if k := r.kept.Load(); k != nil {
		if k.Dir != h.Dir || k.Layout != h.Layout || k.SQLite != h.SQLite {
			return &Error{Op: op, Kind: KindConflict, Msg: "another client keeps the files of this runtime's sessions in another way: give the same initialCwd, sessionStatePath, conventions and capabilities, or start a runtime of your own"}
		}
		again := *k
		again.HostFiles = h
		r.kept.Store(&again)
		return nil
	}
	if len(r.sessions) > 0 {
		return &Error{Op: op, Kind: KindConflict, Msg: "sessions exist already whose files are kept by the runtime: set the provider before the first session is created"}
	}
	r.kept.Store(&keeping{HostFiles: h, layout: h.Layout, store: hostlog.New(hostlog.Config{
		Open: r.openKept, Layout: h.Layout, AppendTime: h.AppendTime,
		Begin: func(ctx context.Context, id string, files sessionfs.FS, lines [][]byte) error {
			return describeKept(ctx, id, files, h.Layout, lines)
		},
	})})
	return nil
}

func climbs(root string) bool {
	for part := range strings.SplitSeq(strings.ReplaceAll(root, `\`, "/"), "/") {
		if part == ".." {
			return true
		}
	}
	return false
}

// openKept reaches a session's files by whoever keeps them now.
func (r *Runtime) openKept(id string) (sessionfs.FS, error) { return r.kept.Load().Open(id) }

// storage is where the logs are.
func (r *Runtime) storage() eventlog.Store {
	if k := r.kept.Load(); k != nil {
		return k.store
	}
	return r.store
}

// workspace is the directory of a session, in the words of whoever keeps it.
func (r *Runtime) workspace(id string) string {
	if k := r.kept.Load(); k != nil {
		return k.layout.Root
	}
	return r.store.Dir(id)
}

// begins is the working directory of a session that begins.
func (r *Runtime) begins(dir string) (string, error) {
	if k := r.kept.Load(); k != nil && dir == "" && k.Dir != "" {
		return k.Dir, nil
	}
	return r.dir(dir)
}

// keeps keeps what is too large for a session's window; nil: it is kept here.
func (r *Runtime) keeps(id string) func(name, text string) error {
	k := r.kept.Load()
	if k == nil {
		return nil
	}
	return func(name, text string) error {
		ctx, cancel := fileTime(context.Background())
		defer cancel()
		files, err := r.openKept(id)
		if err != nil {
			return err
		}
		at, err := k.layout.Path(name)
		if err != nil {
			return err
		}
		return files.WriteFile(ctx, at, text, 0o600)
	}
}

// fileLimit is how long a host may take over a file.
const fileLimit = 60 * time.Second

func fileTime(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, fileLimit, fmt.Errorf("the host that keeps the session's files has not answered for %v", fileLimit))
}

// KeptFiles are a session's files where its host keeps them.
type KeptFiles struct {
	layout sessionfs.Layout
	open   func() (sessionfs.FS, error)
	sqlite bool
}

func (r *Runtime) keptFiles(id string) *KeptFiles {
	k := r.kept.Load()
	if k == nil {
		return nil
	}
	return &KeptFiles{k.layout, func() (sessionfs.FS, error) { return r.openKept(id) }, k.SQLite}
}

// Has reports whether a path is that of a file of the session.
func (k *KeptFiles) Has(path string) bool {
	_, ok := k.layout.Name(path)
	return ok
}

// Read reads a file of the session; fs.ErrNotExist where there is none.
func (k *KeptFiles) Read(ctx context.Context, path string) (string, error) {
	files, err := k.open()
	if err != nil {
		return "", err
	}
	name, ok := k.layout.Name(path)
	if !ok {
		return "", fmt.Errorf("%s is no file of the session", path)
	}
	ctx, cancel := fileTime(ctx)
	defer cancel()
	return files.ReadFile(ctx, k.layout.Must(name))
}

// Database returns the session's database, which its host keeps; nil where it keeps
// none.
func (k *KeptFiles) Database() sessionfs.Database {
	if !k.sqlite {
		return nil
	}
	return keptDatabase{k}
}

type keptDatabase struct{ k *KeptFiles }

func (d keptDatabase) reach() (sessionfs.Database, error) {
	files, err := d.k.open()
	if err != nil {
		return nil, err
	}
	db, ok := files.(sessionfs.Database)
	if !ok {
		return nil, errors.New("the host that keeps the session's files has no database, although it said so")
	}
	return db, nil
}

func (d keptDatabase) Query(ctx context.Context, kind, query string) (sessionfs.Rows, error) {
	db, err := d.reach()
	if err != nil {
		return sessionfs.Rows{}, err
	}
	return db.Query(ctx, kind, query)
}

func (d keptDatabase) HasDatabase(ctx context.Context) (bool, error) {
	db, err := d.reach()
	if err != nil {
		return false, err
	}
	ctx, cancel := fileTime(ctx)
	defer cancel()
	return db.HasDatabase(ctx)
}

// describeKept writes what people who look into the session's directory read about
// it: workspace.yaml, and the list of its checkpoints.
func describeKept(ctx context.Context, id string, files sessionfs.FS, layout sessionfs.Layout, lines [][]byte) error {
	about := "id: " + yamlText(id) + "\n"
	if len(lines) > 0 {
		if e, err := event.Decode(lines[0]); err == nil && e.Type == event.TypeSessionStart {
			if p, err := event.As[event.SessionStart](e); err == nil {
				about += "cwd: " + yamlText(p.Context.Cwd) + "\ncreated_at: " + p.StartTime + "\n"
			}
		}
	}
	if err := files.WriteFile(ctx, layout.Must("workspace.yaml"), about, 0o600); err != nil {
		return err
	}
	index := layout.Must("checkpoints/index.md")
	if there, err := files.Exists(ctx, index); there || err != nil {
		return err
	}
	return files.WriteFile(ctx, index, checkpointIndex, 0o600)
}

// checkpointIndex is the list of checkpoints of a session that has none yet.
const checkpointIndex = "# Checkpoints\n\nWhat was summarised in this session, oldest first.\n"

// yamlText is a text as YAML has it: between quotes where it is not plain.
func yamlText(s string) string {
	for _, r := range s {
		plain := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/_-.", r)
		if !plain {
			return fmt.Sprintf("%q", s)
		}
	}
	if s == "" {
		return `""`
	}
	return s
}
