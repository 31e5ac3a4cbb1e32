package transom

import (
	"os"
	"path/filepath"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/internal/turn"
)

// Repository is what a host knows of the repository that a session works in.
type Repository struct {
	Root       string // its top directory
	Branch     string
	Name       string // such as "owner/name"
	Host       string // such as "github.com"
	HostType   string // "github" or "ado"
	HeadCommit string
	BaseCommit string // where the branch left the main one
}

func repository(c event.Context) Repository {
	return Repository{c.GitRoot, c.Branch, c.Repository, c.RepositoryHost, c.HostType, c.HeadCommit, c.BaseCommit}
}

// NoteRepository records what a host knows of the repository at Dir, and tells
// all clients. Where the session has left Dir meanwhile nothing happens. Result:
// nil.
type NoteRepository struct {
	Dir        string
	Repository Repository
}

func (NoteRepository) op() string { return "session.metadata.recordContextChange" }
func (n NoteRepository) body() (turn.Body, error) {
	r := n.Repository
	return turn.Configure{Place: &event.Context{
		Cwd: filepath.Clean(n.Dir), GitRoot: r.Root, Branch: r.Branch, Repository: r.Name, RepositoryHost: r.Host,
		HostType: r.HostType, HeadCommit: r.HeadCommit, BaseCommit: r.BaseCommit,
	}}, nil
}

// InUseElsewhere reports whether another process had the session when this one
// loaded it, and some other one has it still.
func (h *Session) InUseElsewhere() bool {
	if !h.others || h.sess == nil {
		return h.others
	}
	still, err := h.sess.Shared()
	return still || err != nil // it has left this process: as it was
}

// dir is the working directory of a session that asks for one. It is looked up
// where the call is made: a session must not begin where no tool could run.
func (r *Runtime) dir(dir string) (string, error) {
	if dir == "" {
		return r.cfg.Dir, nil
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(r.cfg.Dir, dir)
	}
	dir = filepath.Clean(dir)
	if i, err := os.Stat(dir); err != nil || !i.IsDir() {
		return "", &Error{Kind: KindInvalidParams, Err: err, Msg: "the working directory " + dir + " is no directory on the machine of the runtime: make it first, or name another"}
	}
	return dir, nil
}
