// Package sessionfs is how Transom reaches the files of a session whose host
// keeps them itself: in a database, in a bucket, in memory.
//
//	log, plan, files ──▶ FS ──▶ the host        paths: Layout{Root: "/state"}.Path("plan.md")
//	sql tool ──────────▶ Database ──▶ the host
//
// An [FS] is one session's. Paths are absolute, below the root that the host has
// named, and in its conventions; [Layout] makes them, and refuses those that would
// lead out of it. Whether a link leads out is for the host to say: it alone knows
// its links.
//
// # Ownership
//
// All methods may be called from any goroutine. They wait for the host, so nothing
// that must not wait calls them: not the goroutine that owns a session, and not
// the one that reads a connection.
//
// # Errors
//
// What is not there is fs.ErrNotExist; anything else is what the host said, as an
// [Error].
package sessionfs

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"
)

// FS is one session's files.
type FS interface {
	// ReadFile reads a whole file of UTF-8 text.
	ReadFile(ctx context.Context, path string) (string, error)
	// WriteFile makes or replaces a file, and the directories that it needs.
	WriteFile(ctx context.Context, path, content string, mode fs.FileMode) error
	// AppendFile adds to the end of a file, making it where there is none, and the
	// directories that it needs. It is durable once it has returned nil.
	AppendFile(ctx context.Context, path, content string, mode fs.FileMode) error
	// Exists reports whether there is a file or directory.
	Exists(ctx context.Context, path string) (bool, error)
	// Stat describes a file or directory.
	Stat(ctx context.Context, path string) (Info, error)
	// Mkdir makes a directory; all makes those above it too, and is content with
	// one that is there.
	Mkdir(ctx context.Context, path string, all bool, mode fs.FileMode) error
	// ReadDir lists a directory.
	ReadDir(ctx context.Context, path string) ([]Entry, error)
	// Remove removes a file or an empty directory; all removes what is in it too,
	// and missing is content where there is nothing.
	Remove(ctx context.Context, path string, all, missing bool) error
	// Rename moves a file or directory, over a file that is there.
	Rename(ctx context.Context, from, to string) error
}

// Info describes a file or directory.
type Info struct {
	Dir      bool
	Bytes    int64
	Modified time.Time
	Born     time.Time // zero where the host does not know
}

// Entry is something in a directory.
type Entry struct {
	Name string
	Dir  bool
}

// The kinds of statements of a [Database].
const (
	Exec  = "exec"  // changes the schema, or several statements; gives nothing
	Query = "query" // gives rows
	Run   = "run"   // changes rows
)

// Database is one session's SQLite database, where the host keeps one.
type Database interface {
	// Query runs one statement of a kind.
	Query(ctx context.Context, kind, query string) (Rows, error)
	// HasDatabase reports whether the session has a database already.
	HasDatabase(ctx context.Context) (bool, error)
}

// Rows is what a statement came to.
type Rows struct {
	Columns      []string
	Rows         []map[string]any
	RowsAffected int64
	LastInsertID int64
}

// NotExist is the code of what is not there; Unknown that of any other failure.
const (
	NotExist = "ENOENT"
	Unknown  = "UNKNOWN"
)

// Error is what a host said went wrong.
type Error struct {
	Op   string // such as "readFile"
	Path string
	Code string // [NotExist] or [Unknown]
	Msg  string // the host's own words; may be ""
}

func (e *Error) Error() string {
	msg := e.Msg
	if msg == "" {
		msg = e.Code
	}
	return fmt.Sprintf("the host that keeps the session's files: %s %s: %s", e.Op, e.Path, msg)
}

// Is makes an Error of code [NotExist] an fs.ErrNotExist.
func (e *Error) Is(target error) bool { return target == fs.ErrNotExist && e.Code == NotExist }

// Layout says where a session's files are in what its host keeps.
type Layout struct {
	Root    string // the directory of the session's own files
	Windows bool   // paths have backslashes
}

// Path is where a file of the session is. The name is relative, with slashes; one
// that leads out of the directory, or is the directory itself, is an error.
func (l Layout) Path(name string) (string, error) {
	if !l.local(name) {
		return "", fmt.Errorf("the path %q leads out of the session's directory: give a relative path below it", name)
	}
	return l.join(path.Clean(name)), nil
}

// Must is Path for a name that is known to be good.
func (l Layout) Must(name string) string {
	p, err := l.Path(name)
	if err != nil {
		panic(err)
	}
	return p
}

// Name is the name of a path below the directory, with slashes; ok is false where
// the path is not below it.
func (l Layout) Name(p string) (name string, ok bool) {
	rest, below := strings.CutPrefix(l.slashes(p), strings.TrimSuffix(l.slashes(l.Root), "/")+"/")
	if !below || !l.local(rest) {
		return "", false
	}
	return path.Clean(rest), true
}

func (l Layout) slashes(p string) string {
	if l.Windows {
		return strings.ReplaceAll(p, `\`, "/")
	}
	return p
}

func (l Layout) local(name string) bool {
	bad := "\x00"
	if l.Windows {
		bad += `\:`
	}
	if name == "" || strings.ContainsAny(name, bad) || path.IsAbs(name) {
		return false
	}
	clean := path.Clean(name)
	return clean != "." && clean != ".." && !strings.HasPrefix(clean, "../")
}

func (l Layout) join(name string) string {
	if l.Windows {
		return strings.TrimRight(l.Root, `\/`) + `\` + strings.ReplaceAll(name, "/", `\`)
	}
	return strings.TrimRight(l.Root, "/") + "/" + name
}
