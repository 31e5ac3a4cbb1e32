package builtin

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// Limits of the session's database: enough for lists and tables of a model's
// making, and no way to fill a disk or the memory.
const (
	maxPages = 64 << 10 // of 4 KB
	maxValue = 10 << 20 // of one value or row
	maxRead  = 10000    // rows of one result
)

// sqliteFile is a SQLite database on one connection.
type sqliteFile struct {
	db   *sql.DB
	conn *sql.Conn
}

// openSQLite opens a file, or with "" a database in memory.
func openSQLite(path string) (Database, error) {
	name := ":memory:"
	if path != "" {
		// Made here so that it is nobody else's to read.
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, fmt.Errorf("opening the session's database: %w", err)
		}
		f.Close()
		name = (&url.URL{Scheme: "file", Path: filepath.ToSlash(path)}).String()
	}
	db, err := sql.Open("sqlite", name)
	if err != nil {
		return nil, fmt.Errorf("opening the session's database: %w", err)
	}
	db.SetMaxOpenConns(1)
	d := &sqliteFile{db: db}
	if err := d.connect(context.Background()); err != nil {
		db.Close()
		return nil, fmt.Errorf("opening the session's database %s: %w", path, err)
	}
	return d, nil
}

// connect takes the one connection and sets its limits. No other database can be
// attached to it, which also rules out VACUUM INTO.
func (d *sqliteFile) connect(ctx context.Context) error {
	conn, err := d.db.Conn(ctx)
	if err != nil {
		return err
	}
	d.conn = conn
	if _, err := sqlite.Limit(conn, sqlite3.SQLITE_LIMIT_ATTACHED, 0); err != nil {
		return err
	}
	if _, err := sqlite.Limit(conn, sqlite3.SQLITE_LIMIT_LENGTH, maxValue); err != nil {
		return err
	}
	_, err = conn.ExecContext(ctx, fmt.Sprintf("PRAGMA busy_timeout = 5000; PRAGMA max_page_count = %d; PRAGMA trusted_schema = OFF", maxPages))
	return err
}

// Query runs one statement. A connection that broke is replaced at the next one.
func (d *sqliteFile) Query(ctx context.Context, kind QueryKind, query string) (Rows, error) {
	if d.conn == nil {
		if err := d.connect(ctx); err != nil {
			return Rows{}, err
		}
	}
	r, err := d.run(ctx, kind, query)
	if errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) {
		d.conn.Close()
		d.conn = nil
	}
	return r, err
}

func (d *sqliteFile) run(ctx context.Context, kind QueryKind, query string) (Rows, error) {
	if kind != QueryRows {
		res, err := d.conn.ExecContext(ctx, query)
		if err != nil {
			return Rows{}, err
		}
		var r Rows
		r.RowsAffected, err = res.RowsAffected()
		if err != nil {
			return r, err
		}
		r.LastInsertID, err = res.LastInsertId()
		return r, err
	}
	rows, err := d.conn.QueryContext(ctx, query)
	if err != nil {
		return Rows{}, err
	}
	defer rows.Close()
	return scan(rows)
}

func scan(rows *sql.Rows) (Rows, error) {
	cols, err := rows.Columns()
	if err != nil {
		return Rows{}, err
	}
	r := Rows{Columns: cols}
	size := 0
	for rows.Next() {
		if len(r.Rows) == maxRead || size > maxValue {
			break
		}
		vals := make([]any, len(cols))
		ptrs := make([]any, len(cols))
		for i := range vals {
			ptrs[i] = &vals[i]
		}
		if err := rows.Scan(ptrs...); err != nil {
			return r, err
		}
		row := make(map[string]any, len(cols))
		for i, c := range cols {
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
	return r, rows.Err()
}

// Close closes the file.
func (d *sqliteFile) Close() error {
	if d.conn != nil {
		d.conn.Close()
	}
	return d.db.Close()
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
