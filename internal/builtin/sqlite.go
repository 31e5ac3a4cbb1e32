package builtin

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/ncruces/go-sqlite3"
)

// Limits of the session's database: enough for lists and tables of a model's
// making, and no way to fill a disk or the memory.
const (
	maxPages  = 64 << 10  // of 4 KB
	maxValue  = 10 << 20  // of one value or row
	maxRead   = 10000     // rows of one result
	maxMemory = 128 << 20 // of one database; taken as it is needed
)

// sqliteFile is a SQLite database on one connection. SQLite runs in a memory of its
// own here (its C code was translated to Go that works on a byte slice), so what
// goes wrong in it ends with the connection.
type sqliteFile struct {
	name string
	conn *sqlite3.Conn // nil: the next statement makes it
}

// openSQLite opens a file, or with "" a database in memory.
func openSQLite(path string) (Database, error) {
	d := &sqliteFile{name: ":memory:"}
	if path != "" {
		// Made here so that it is nobody else's to read.
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, fmt.Errorf("opening the session's database: %w", err)
		}
		f.Close()
		d.name = (&url.URL{Scheme: "file", Path: filepath.ToSlash(path)}).String()
	}
	if err := d.connect(); err != nil {
		return nil, fmt.Errorf("opening the session's database %s: %w", path, err)
	}
	return d, nil
}

// connect makes the connection and sets its limits. No other database can be
// attached to it, which also rules out VACUUM INTO. What this build of SQLite does
// otherwise than most is set to what models know: text in double quotes is text
// where it names no column, and foreign keys are checked only where asked for.
func (d *sqliteFile) connect() (err error) {
	defer d.caught(&err)
	d.conn, err = sqlite3.OpenContext(sqlite3.WithMaxMemory(context.Background(), maxMemory), d.name)
	if err != nil {
		return err
	}
	d.conn.Limit(sqlite3.LIMIT_ATTACHED, 0)
	d.conn.Limit(sqlite3.LIMIT_LENGTH, maxValue)
	for _, set := range []struct {
		option sqlite3.DBConfig
		to     bool
	}{
		{sqlite3.DBCONFIG_DQS_DML, true}, {sqlite3.DBCONFIG_DQS_DDL, true},
		{sqlite3.DBCONFIG_ENABLE_FKEY, false}, {sqlite3.DBCONFIG_TRUSTED_SCHEMA, false},
	} {
		if _, err := d.conn.Config(set.option, set.to); err != nil {
			return err
		}
	}
	return d.conn.Exec(fmt.Sprintf("PRAGMA busy_timeout = 5000; PRAGMA max_page_count = %d", maxPages))
}

// caught ends a connection that broke, which is how SQLite's code says that there is
// no memory left for it. What was committed is in the file.
func (d *sqliteFile) caught(err *error) {
	broken := recover()
	if broken == nil {
		return
	}
	*err = fmt.Errorf("it needed more memory than there is for it (%d MB), or failed otherwise: %v", maxMemory>>20, broken)
	conn := d.conn
	d.conn = nil
	if conn == nil {
		return
	}
	defer func() { _ = recover() }() // it may be beyond closing
	for st := range conn.Stmts() {
		st.Close()
	}
	conn.Close()
}

// Query runs one statement. A connection that broke is replaced at the next one.
func (d *sqliteFile) Query(ctx context.Context, kind QueryKind, query string) (r Rows, err error) {
	defer d.caught(&err)
	if d.conn == nil {
		if err := d.connect(); err != nil {
			return Rows{}, err
		}
	}
	d.conn.SetInterrupt(ctx)
	defer func() {
		if d.conn != nil {
			d.conn.SetInterrupt(context.Background())
		}
		if errors.Is(err, sqlite3.INTERRUPT) && ctx.Err() != nil {
			err = ctx.Err()
		}
	}()
	if kind == QueryRows {
		return d.rows(query)
	}
	if err := d.conn.Exec(query); err != nil {
		return Rows{}, plainly(err)
	}
	return Rows{RowsAffected: d.conn.Changes(), LastInsertID: d.conn.LastInsertRowID()}, nil
}

// plainly leaves the library's name out of an error that a model reads.
func plainly(err error) error {
	if said := new(sqlite3.Error); errors.As(err, &said) {
		return errors.New(strings.TrimPrefix(err.Error(), "sqlite3: "))
	}
	return err
}

// rows runs a statement that gives rows.
func (d *sqliteFile) rows(query string) (Rows, error) {
	st, _, err := d.conn.Prepare(query)
	if err != nil || st == nil {
		return Rows{}, plainly(err)
	}
	defer st.Close()
	r := Rows{}
	for i := range st.ColumnCount() {
		r.Columns = append(r.Columns, st.ColumnName(i))
	}
	size := 0
	for len(r.Rows) < maxRead && size <= maxValue && st.Step() {
		vals := make([]any, len(r.Columns)) // of each row anew: values are not copied
		if err := st.Columns(vals...); err != nil {
			return r, plainly(err)
		}
		row := make(map[string]any, len(vals))
		for i, c := range r.Columns {
			row[c] = vals[i]
			switch v := vals[i].(type) {
			case string:
				size += len(v)
			case []byte:
				size += len(v)
			}
		}
		r.Rows = append(r.Rows, row)
	}
	return r, plainly(st.Err())
}

// Close closes the file.
func (d *sqliteFile) Close() (err error) {
	defer d.caught(&err)
	if d.conn == nil {
		return nil
	}
	err = d.conn.Close()
	d.conn = nil
	return err
}

// hasDatabase reports whether the session has a database from earlier, or one of
// its host's.
func (s *Set) hasDatabase(ctx context.Context) (bool, error) {
	if s.cfg.Database != nil {
		return s.cfg.Database.Exists(ctx)
	}
	if s.cfg.SessionDir == "" {
		return false, nil
	}
	_, err := os.Stat(filepath.Join(s.cfg.SessionDir, databaseFile))
	return err == nil, nil
}

// Exists implements Database.
func (d *sqliteFile) Exists(context.Context) (bool, error) { return true, nil }
