package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/transom-run/transom/tool"
)

// sqlTimeout ends a statement that would never end, such as a recursive one.
const sqlTimeout = 30 * time.Second

// maxRows is how many rows of a result are shown.
const maxRows = 500

const sqlSchema = `{
 "type": "object",
 "properties": {
  "description": {"type": "string", "description": "What the statements do, in a few words."},
  "query": {"type": "string", "description": "One or more SQLite statements, separated by semicolons."}
 },
 "required": ["description", "query"]
}`

// QueryKind says what a statement is to a [Database]. Its values are those of the
// protocol's sessionFs.sqliteQuery.
type QueryKind string

// The kinds of statements.
const (
	QueryExec QueryKind = "exec"  // changes the schema, or several statements; gives nothing
	QueryRows QueryKind = "query" // gives rows
	QueryRun  QueryKind = "run"   // changes rows
)

// Rows is what a statement came to.
type Rows struct {
	Columns      []string
	Rows         []map[string]any
	RowsAffected int64
	LastInsertID int64
}

// Database runs SQL for a session: a SQLite file of Transom's own, or a host that
// keeps its sessions' files. One statement is run at a time.
type Database interface {
	Query(ctx context.Context, kind QueryKind, query string) (Rows, error)
	// Exists reports whether there is a database already.
	Exists(ctx context.Context) (bool, error)
	Close() error
}

// todoTables exist before the first statement.
const todoTables = `CREATE TABLE IF NOT EXISTS todos (
  id TEXT PRIMARY KEY, title TEXT NOT NULL, description TEXT, status TEXT NOT NULL DEFAULT 'pending',
  created_at TEXT DEFAULT CURRENT_TIMESTAMP, updated_at TEXT DEFAULT CURRENT_TIMESTAMP);
CREATE TABLE IF NOT EXISTS todo_deps (todo_id TEXT NOT NULL, depends_on TEXT NOT NULL, PRIMARY KEY (todo_id, depends_on));`

// lazyDatabase opens the database with the first statement.
type lazyDatabase struct {
	mu     sync.Mutex
	open   func() (Database, error)
	db     Database
	ready  bool
	closed bool
}

func (l *lazyDatabase) get(ctx context.Context) (Database, error) {
	if l.closed {
		return nil, errors.New("the session is closed: its database cannot be used any more")
	}
	if l.db == nil {
		db, err := l.open()
		if err != nil {
			return nil, err
		}
		l.db = db
	}
	if !l.ready {
		if _, err := l.db.Query(ctx, QueryExec, todoTables); err != nil {
			return nil, fmt.Errorf("preparing the session's database: %w", err)
		}
		l.ready = true
	}
	return l.db, nil
}

func (l *lazyDatabase) shut() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.db == nil {
		return nil
	}
	return l.db.Close()
}

func (s *Set) openDatabase() (Database, error) {
	if s.cfg.Database != nil {
		return s.cfg.Database, nil
	}
	if s.cfg.SessionDir == "" {
		return openSQLite("")
	}
	path, err := s.sessionFile(databaseFile)
	if err != nil {
		return nil, err
	}
	return openSQLite(path)
}

// databaseFile is the database's name among the session's files.
const databaseFile = "session.db"

func (s *Set) sql() tool.Tool {
	return tool.Tool{
		Name: "sql", Parameters: json.RawMessage(sqlSchema), Effects: true, Permission: noPermission,
		Handler: func(ctx context.Context, call tool.Call) (tool.Result, error) {
			var a struct {
				Query string `json:"query"`
			}
			if err := decode(call, &a); err != nil {
				return tool.Result{}, err
			}
			return s.runSQL(ctx, a.Query)
		},
	}
}

func (s *Set) runSQL(ctx context.Context, query string) (tool.Result, error) {
	list := splitSQL(query)
	if len(list) == 0 {
		return failure("The query holds no statement.")
	}
	for _, st := range list {
		if why := st.forbidden(); why != "" {
			return failure("%s", why)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, sqlTimeout)
	defer cancel()
	s.db.mu.Lock()
	defer s.db.mu.Unlock()
	db, err := s.db.get(ctx)
	if err != nil {
		return tool.Result{}, err
	}
	var verbs, results []string
	todos := false
	defer func() {
		if todos && s.cfg.TodosChanged != nil {
			s.cfg.TodosChanged()
		}
	}()
	for i, st := range list {
		rows, err := db.Query(ctx, st.kind(), st.text)
		if err != nil {
			if errors.Is(err, context.Canceled) && ctx.Err() != nil {
				return tool.Result{}, ctx.Err()
			}
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				err = fmt.Errorf("it took longer than %v", sqlTimeout)
			}
			if len(list) == 1 {
				return failure("The statement failed: %v", err)
			}
			return failure("Statement %d of %d failed: %v\nThe %d before it were carried out.", i+1, len(list), err, i)
		}
		todos = todos || st.kind() != QueryRows && strings.Contains(strings.ToLower(st.text), "todo")
		verbs, results = append(verbs, st.verb), append(results, st.result(rows))
	}
	if len(results) == 1 {
		return success(results[0])
	}
	return success(statements(verbs, results))
}

// result is what the model reads of one statement.
func (st statement) result(r Rows) string {
	switch st.kind() {
	case QueryRows:
		return tableText(r)
	case QueryExec:
		return schemaDone
	}
	switch st.main {
	case "INSERT", "REPLACE":
		return inserted(r.RowsAffected, r.LastInsertID)
	case "UPDATE":
		return fmt.Sprintf("%d row(s) updated.", r.RowsAffected)
	}
	return fmt.Sprintf("%d row(s) deleted.", r.RowsAffected)
}

// tableText shows rows, a column after the other.
func tableText(r Rows) string {
	if len(r.Rows) == 0 {
		return "0 row(s) returned."
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d row(s) returned:\n%s", len(r.Rows), strings.Join(r.Columns, " | "))
	for i, row := range r.Rows {
		if i == maxRows {
			fmt.Fprintf(&b, "\n[only the first %d rows are shown; add a LIMIT or a WHERE]", maxRows)
			break
		}
		b.WriteByte('\n')
		for j, c := range r.Columns {
			if j > 0 {
				b.WriteString(" | ")
			}
			b.WriteString(cellText(row[c]))
		}
	}
	return b.String()
}

func cellText(v any) string {
	switch v := v.(type) {
	case nil:
		return "NULL"
	case []byte:
		return fmt.Sprintf("x'%x'", v[:min(len(v), 64)])
	case string:
		return strings.ReplaceAll(v, "\n", `\n`)
	}
	return fmt.Sprint(v)
}

// Todo is a row of the table todos; what is NULL is "".
type Todo struct{ ID, Title, Description, Status, CreatedAt, UpdatedAt string }

// TodoDependency says that one todo waits for another.
type TodoDependency struct{ TodoID, DependsOn string }

// Todos reads the model's list of what is to be done, in the order of its making.
// A session whose model never used the database has none, and gets no database.
func (s *Set) Todos(ctx context.Context) ([]Todo, []TodoDependency, error) {
	s.db.mu.Lock()
	defer s.db.mu.Unlock()
	if s.db.db == nil {
		if there, err := s.hasDatabase(ctx); !there || err != nil {
			return nil, nil, err
		}
	}
	db, err := s.db.get(ctx)
	if err != nil {
		return nil, nil, err
	}
	rows, err := db.Query(ctx, QueryRows, "SELECT id, title, description, status, created_at, updated_at FROM todos ORDER BY rowid")
	if err != nil {
		return nil, nil, fmt.Errorf("reading the todos: %w", err)
	}
	deps, err := db.Query(ctx, QueryRows, "SELECT todo_id, depends_on FROM todo_deps ORDER BY rowid")
	if err != nil {
		return nil, nil, fmt.Errorf("reading the todos' dependencies: %w", err)
	}
	todos := make([]Todo, len(rows.Rows))
	for i, r := range rows.Rows {
		todos[i] = Todo{str(r["id"]), str(r["title"]), str(r["description"]), str(r["status"]), str(r["created_at"]), str(r["updated_at"])}
	}
	waits := make([]TodoDependency, len(deps.Rows))
	for i, r := range deps.Rows {
		waits[i] = TodoDependency{str(r["todo_id"]), str(r["depends_on"])}
	}
	return todos, waits, nil
}

func str(v any) string {
	if v == nil {
		return ""
	}
	return fmt.Sprint(v)
}
