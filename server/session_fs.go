package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"time"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/internal/jsonrpc2"
	"github.com/transom-run/transom/sessionfs"
)

// sessionFsMethods are those by which a client keeps the files of sessions.
func sessionFsMethods() map[string]handler {
	return map[string]handler{
		"sessionFs.setProvider": plain(setSessionFs),
	}
}

// keepers are the connections whose clients keep the files of sessions, and which of
// them has which session.
type keepers struct {
	mu    sync.Mutex
	all   []*conn
	owner map[string]*conn // by session id: who has it
}

type setProviderParams struct {
	InitialCwd       string `json:"initialCwd"`
	SessionStatePath string `json:"sessionStatePath"`
	Conventions      string `json:"conventions"`
	Capabilities     struct {
		SQLite bool `json:"sqlite"`
	} `json:"capabilities"`
}

// setSessionFs makes the client one that keeps the files of sessions, for as long
// as it is connected.
func setSessionFs(c *conn, p *setProviderParams) (any, error) {
	const op = "sessionFs.setProvider"
	if p.Conventions != "posix" && p.Conventions != "windows" {
		return nil, invalid(op, fmt.Sprintf("conventions must be posix or windows, not %q", p.Conventions))
	}
	s := c.srv
	err := s.cfg.Runtime.KeepFiles(transom.HostFiles{
		Dir: p.InitialCwd, Layout: sessionfs.Layout{Root: p.SessionStatePath, Windows: p.Conventions == "windows"},
		SQLite: p.Capabilities.SQLite, Open: s.openFiles,
	})
	if err != nil {
		return nil, err
	}
	s.keepers.mu.Lock()
	defer s.keepers.mu.Unlock()
	if !slices.Contains(s.keepers.all, c) {
		s.keepers.all = append(s.keepers.all, c)
	}
	return successResult{true}, nil
}

// openFiles returns a session's files by the client that has the session.
func (s *Server) openFiles(id string) (sessionfs.FS, error) {
	s.keepers.mu.Lock()
	defer s.keepers.mu.Unlock()
	c := s.keepers.owner[id]
	if c == nil {
		return nil, errNoKeeper
	}
	return clientFiles{c: c, id: id}, nil
}

var errNoKeeper = &transom.Error{Op: "sessionFs", Kind: transom.KindPeerGone, Msg: "the client that keeps this session's files has gone, or has not come yet: resume the session from one that has set a provider"}

// claim says that a session's files are with this client, where it keeps any and no
// other client has the session: of two that do, the first goes on keeping it.
func (c *conn) claim(id string) {
	k := &c.srv.keepers
	k.mu.Lock()
	defer k.mu.Unlock()
	if id == "" || k.owner[id] != nil || !slices.Contains(k.all, c) {
		return
	}
	if k.owner == nil {
		k.owner = map[string]*conn{}
	}
	k.owner[id] = c
}

// keeps reports whether this client keeps the files of sessions.
func (c *conn) keeps() bool {
	c.srv.keepers.mu.Lock()
	defer c.srv.keepers.mu.Unlock()
	return slices.Contains(c.srv.keepers.all, c)
}

// unclaim forgets a client that has gone. What it kept goes to another one that keeps
// files and has the session, where there is one.
func (c *conn) unclaim() {
	k := &c.srv.keepers
	k.mu.Lock()
	k.all = slices.DeleteFunc(k.all, func(o *conn) bool { return o == c })
	var left []string
	for id, o := range k.owner {
		if o == c {
			delete(k.owner, id)
			left = append(left, id)
		}
	}
	heirs := slices.Clone(k.all)
	k.mu.Unlock()
	for _, id := range left {
		if i := slices.IndexFunc(heirs, func(o *conn) bool { return o.has(id) }); i >= 0 {
			heirs[i].claim(id)
		}
	}
}

// has reports whether a session is attached through this connection.
func (c *conn) has(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.lanes[id]
	return l != nil && l.att != nil
}

// clientFiles are a session's files with a client.
type clientFiles struct {
	c  *conn
	id string
}

// filesError is how clients say that something went wrong.
type filesError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// fsRequest is what all requests of sessionFs are made of.
type fsRequest struct {
	SessionID string  `json:"sessionId"`
	Path      string  `json:"path,omitempty"`
	Content   *string `json:"content,omitempty"`
	Mode      int     `json:"mode,omitempty"`
	Recursive *bool   `json:"recursive,omitempty"`
	Force     *bool   `json:"force,omitempty"`
	Src       string  `json:"src,omitempty"`
	Dest      string  `json:"dest,omitempty"`
	Query     string  `json:"query,omitempty"`
	QueryType string  `json:"queryType,omitempty"`
}

// ask puts a request to the client. result is nil where success has nothing to say:
// then what comes is an error, or nothing.
func (f clientFiles) ask(ctx context.Context, op string, r fsRequest, result any, failed func() *filesError) error {
	r.SessionID = f.id
	at := r.Path
	if at == "" {
		at = r.Src
	}
	raw, err := f.c.rpc.Call(ctx, "sessionFs."+op, r)
	if err != nil {
		var e *jsonrpc2.Error
		switch {
		case errors.As(err, &e):
			return &sessionfs.Error{Op: op, Path: at, Code: sessionfs.Unknown, Msg: e.Message}
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, jsonrpc2.ErrClosed), f.c.rpc.Context().Err() != nil:
			return errNoKeeper
		}
		return err
	}
	if present(raw) {
		err = json.Unmarshal(raw, result)
	} else if !nothing(op) {
		err = errors.New("the answer is empty")
	}
	if err != nil {
		return &sessionfs.Error{Op: op, Path: at, Code: sessionfs.Unknown, Msg: "the client's answer is not of the documented form: " + err.Error()}
	}
	if e := failed(); e != nil && (e.Code != "" || e.Message != "") {
		return &sessionfs.Error{Op: op, Path: at, Code: e.Code, Msg: e.Message}
	}
	return nil
}

// nothing reports whether an operation that succeeds is answered with nothing.
func nothing(op string) bool {
	switch op {
	case "writeFile", "appendFile", "mkdir", "rm", "rename":
		return true
	}
	return false
}

// do puts a request to the client that is answered with nothing, or an error.
func (f clientFiles) do(ctx context.Context, op string, r fsRequest) error {
	var e filesError
	return f.ask(ctx, op, r, &e, func() *filesError { return &e })
}

// ReadFile implements sessionfs.FS, as the methods below do.
func (f clientFiles) ReadFile(ctx context.Context, path string) (string, error) {
	var a struct {
		Content string      `json:"content"`
		Error   *filesError `json:"error"`
	}
	err := f.ask(ctx, "readFile", fsRequest{Path: path}, &a, func() *filesError { return a.Error })
	return a.Content, err
}

// WriteFile makes or replaces a file.
func (f clientFiles) WriteFile(ctx context.Context, path, content string, mode fs.FileMode) error {
	return f.do(ctx, "writeFile", fsRequest{Path: path, Content: &content, Mode: int(mode.Perm())})
}

// AppendFile adds to a file.
func (f clientFiles) AppendFile(ctx context.Context, path, content string, mode fs.FileMode) error {
	return f.do(ctx, "appendFile", fsRequest{Path: path, Content: &content, Mode: int(mode.Perm())})
}

// Exists reports whether something is there.
func (f clientFiles) Exists(ctx context.Context, path string) (bool, error) {
	var a struct {
		Exists bool        `json:"exists"`
		Error  *filesError `json:"error"`
	}
	err := f.ask(ctx, "exists", fsRequest{Path: path}, &a, func() *filesError { return a.Error })
	return a.Exists, err
}

// Stat describes a file or directory.
func (f clientFiles) Stat(ctx context.Context, path string) (sessionfs.Info, error) {
	var a struct {
		IsDirectory bool        `json:"isDirectory"`
		Size        int64       `json:"size"`
		Mtime       time.Time   `json:"mtime"`
		Birthtime   time.Time   `json:"birthtime"`
		Error       *filesError `json:"error"`
	}
	err := f.ask(ctx, "stat", fsRequest{Path: path}, &a, func() *filesError { return a.Error })
	return sessionfs.Info{Dir: a.IsDirectory, Bytes: a.Size, Modified: a.Mtime, Born: a.Birthtime}, err
}

// Mkdir makes a directory.
func (f clientFiles) Mkdir(ctx context.Context, path string, all bool, mode fs.FileMode) error {
	return f.do(ctx, "mkdir", fsRequest{Path: path, Recursive: &all, Mode: int(mode.Perm())})
}

// ReadDir lists a directory.
func (f clientFiles) ReadDir(ctx context.Context, path string) ([]sessionfs.Entry, error) {
	var a struct {
		Entries []struct {
			Name string `json:"name"`
			Type string `json:"type"`
		} `json:"entries"`
		Error *filesError `json:"error"`
	}
	err := f.ask(ctx, "readdirWithTypes", fsRequest{Path: path}, &a, func() *filesError { return a.Error })
	out := make([]sessionfs.Entry, len(a.Entries))
	for i, e := range a.Entries {
		out[i] = sessionfs.Entry{Name: e.Name, Dir: e.Type == "directory"}
	}
	return out, err
}

// Remove removes a file or directory.
func (f clientFiles) Remove(ctx context.Context, path string, all, missing bool) error {
	return f.do(ctx, "rm", fsRequest{Path: path, Recursive: &all, Force: &missing})
}

// Rename moves a file or directory.
func (f clientFiles) Rename(ctx context.Context, from, to string) error {
	return f.do(ctx, "rename", fsRequest{Src: from, Dest: to})
}

// Query implements sessionfs.Database.
func (f clientFiles) Query(ctx context.Context, kind, query string) (sessionfs.Rows, error) {
	var a struct {
		Columns         []string                     `json:"columns"`
		Rows            []map[string]json.RawMessage `json:"rows"`
		RowsAffected    int64                        `json:"rowsAffected"`
		LastInsertRowid int64                        `json:"lastInsertRowid"`
		Error           *filesError                  `json:"error"`
	}
	err := f.ask(ctx, "sqliteQuery", fsRequest{Query: query, QueryType: kind}, &a, func() *filesError { return a.Error })
	var said *sessionfs.Error
	if errors.As(err, &said) && said.Msg != "" {
		err = errors.New(said.Msg) // what the model reads of a statement that failed
	}
	rows := sessionfs.Rows{Columns: a.Columns, RowsAffected: a.RowsAffected, LastInsertID: a.LastInsertRowid}
	for _, r := range a.Rows {
		row := make(map[string]any, len(r))
		for name, v := range r {
			row[name] = cell(v)
		}
		rows.Rows = append(rows.Rows, row)
	}
	return rows, err
}

// cell is a value of a database as it is shown: numbers as they were written.
func cell(v json.RawMessage) any {
	var s *string
	switch {
	case !present(v):
		return nil
	case json.Unmarshal(v, &s) == nil && s != nil:
		return *s
	}
	return string(v)
}

// HasDatabase implements sessionfs.Database.
func (f clientFiles) HasDatabase(ctx context.Context) (bool, error) {
	var a struct {
		Exists bool `json:"exists"`
	}
	err := f.ask(ctx, "sqliteExists", fsRequest{}, &a, func() *filesError { return nil })
	return a.Exists, err
}
