package builtin

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/transom-run/transom/tool"
)

func query(q string) string { return args("description", "d", "query", q) }

// TestSQL pins the recorded results.
func TestSQL(t *testing.T) {
	changed := 0
	r := newRig(t, func(c *Config) { c.TodosChanged = func() { changed++ } })
	equal(t, r.text("sql", query("CREATE TABLE items (id TEXT PRIMARY KEY, name TEXT)")), "Schema operation completed successfully.")
	equal(t, r.text("sql", query("INSERT INTO items (id, name) VALUES ('a1', 'Widget')")), "1 row(s) inserted. Last inserted row ID: 1.")
	if changed != 0 {
		t.Error("the todos are said to have changed")
	}
	equal(t, r.text("sql", query("INSERT INTO todos (id, title, status) VALUES ('alpha', 'First todo', 'pending');\nINSERT INTO todos (id, title, status) VALUES ('beta', 'Second todo', 'done');\nINSERT INTO todo_deps (todo_id, depends_on) VALUES ('beta', 'alpha');")),
		"Executed 3 statement(s):\n\n1. INSERT\n   1 row(s) inserted. Last inserted row ID: 1.\n\n2. INSERT\n   1 row(s) inserted. Last inserted row ID: 2.\n\n3. INSERT\n   1 row(s) inserted. Last inserted row ID: 1.")
	if changed != 1 {
		t.Errorf("told %d times of one call", changed)
	}
	todos, deps, err := r.set.Todos(t.Context())
	must(t, err)
	if len(todos) != 2 || todos[0].ID != "alpha" || todos[1].Status != "done" || todos[0].CreatedAt == "" || todos[0].Description != "" {
		t.Errorf("%+v", todos)
	}
	if diff := cmp.Diff([]TodoDependency{{"beta", "alpha"}}, deps); diff != "" {
		t.Error(diff)
	}
}

func TestSQLResults(t *testing.T) {
	r := newRig(t)
	for _, tt := range []struct{ query, want string }{
		{"SELECT 1 AS a, 'x;y' AS \"b;c\" -- ; no\n;;", "1 row(s) returned:\na | b;c\n1 | x;y"},
		{"SELECT * FROM todos", "0 row(s) returned."},
		{"INSERT INTO todos (id, title) VALUES ('a', 'l1\nl2'), ('b', 'ü')", "2 row(s) inserted. Last inserted row ID: 2."},
		{"UPDATE todos SET status = 'done'", "2 row(s) updated."},
		{"SELECT id, title, description, x'00ff' AS x FROM todos", "2 row(s) returned:\nid | title | description | x\na | l1\\nl2 | NULL | x'00ff'\nb | ü | NULL | x'00ff'"},
		{"DELETE FROM todos WHERE id = 'a' RETURNING id", "1 row(s) returned:\nid\na"},
		{"DELETE FROM todos", "1 row(s) deleted."},
		{"WITH t(x) AS (SELECT 1) SELECT x FROM t", "1 row(s) returned:\nx\n1"},
		{"WITH t(x) AS (SELECT 'w') INSERT INTO todos (id, title) SELECT x, x FROM t", "1 row(s) inserted. Last inserted row ID: 1."},
		{"CREATE TRIGGER tr AFTER UPDATE ON todos BEGIN UPDATE todos SET updated_at = CASE WHEN 1 THEN 'n;ow' END; SELECT 1; END", "Schema operation completed successfully."},
		{"UPDATE todos SET title = 'x'; SELECT updated_at FROM todos", "Executed 2 statement(s):\n\n1. UPDATE\n   1 row(s) updated.\n\n2. SELECT\n   1 row(s) returned:\n   updated_at\n   n;ow"},
		{"BEGIN; DELETE FROM todos; ROLLBACK; SELECT count(*) AS n FROM todos", "Executed 4 statement(s):\n\n1. BEGIN\n   Schema operation completed successfully.\n\n2. DELETE\n   1 row(s) deleted.\n\n3. ROLLBACK\n   Schema operation completed successfully.\n\n4. SELECT\n   1 row(s) returned:\n   n\n   1"},
		{"PRAGMA table_info(todo_deps)", "2 row(s) returned:\ncid | name | type | notnull | dflt_value | pk\n0 | todo_id | TEXT | 1 | NULL | 1\n1 | depends_on | TEXT | 1 | NULL | 2"},
	} {
		equal(t, r.text("sql", query(tt.query)), tt.want)
	}
	r.refusal("sql", query(" ; -- nothing"), "no statement")
	r.refusal("sql", query("SELEC 1"), "syntax error")
	r.refusal("sql", query("DELETE FROM todos; nonsense; SELECT 1"), "Statement 2 of 3 failed")
	if out := r.text("sql", query("WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c LIMIT 2000) SELECT x FROM c")); !strings.Contains(out, "only the first 500 rows") {
		t.Error(out[len(out)-100:])
	}
}

// TestSQLStays: nothing but the session's own database is reached.
func TestSQLStays(t *testing.T) {
	r := newRig(t)
	out := r.path("out.db")
	for _, q := range []string{
		"ATTACH '" + out + "' AS o", "attach database '" + out + "' as o", "/**/ ATTACH '" + out + "' AS o", "SELECT 1; ATTACH '" + out + "' AS o",
		"VACUUM INTO '" + out + "'", "VACUUM main INTO '" + out + "'", "PRAGMA journal_mode = WAL", "PRAGMA temp_store_directory = '/tmp'", "PRAGMA main.journal_mode", "SELECT load_extension('x')",
		"EXPLAIN ATTACH '" + out + "' AS o",
	} {
		c := r.call("sql", query(q))
		if c.Success && !strings.HasPrefix(q, "EXPLAIN") {
			t.Errorf("%s: %s", q, c.ModelText)
		}
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("a file was made")
	}
	// Also where a statement gets past us: the database itself refuses.
	db, err := openSQLite("")
	must(t, err)
	defer db.Close()
	if _, err := db.Query(t.Context(), QueryExec, "ATTACH '"+out+"' AS o"); err == nil {
		t.Error("SQLite attached another file")
	}
	if _, err := db.Query(t.Context(), QueryExec, "VACUUM INTO '"+out+"'"); err == nil {
		t.Error("SQLite wrote another file")
	}
	if _, err := db.Query(t.Context(), QueryRows, "SELECT zeroblob(100000000)"); err == nil {
		t.Error("a value of 100 MB was made")
	}
}

// TestSQLFile: the database is made with the first statement, is nobody else's to
// read, and is there again later.
func TestSQLFile(t *testing.T) {
	r := newRig(t)
	file := filepath.Join(r.set.cfg.SessionDir, databaseFile)
	if todos, _, err := r.set.Todos(t.Context()); err != nil || todos != nil {
		t.Error(todos, err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("reading the todos made a database")
	}
	r.text("sql", query("INSERT INTO todos (id, title) VALUES ('a', 'b')"))
	info, err := os.Stat(file)
	must(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	must(t, r.set.Close())
	again := newRig(t, func(c *Config) { c.SessionDir = r.set.cfg.SessionDir })
	todos, _, err := again.set.Todos(t.Context())
	must(t, err)
	if len(todos) != 1 || todos[0].Title != "b" {
		t.Errorf("%+v", todos)
	}
}

// TestSQLAbort: a statement that would never end is cut off, and the next works.
func TestSQLAbort(t *testing.T) {
	r := newRig(t)
	r.text("sql", query("CREATE TABLE kept (x)"))
	ctx, cancel := context.WithCancel(t.Context())
	c, call := r.prepare("sql", query("WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) SELECT count(*) FROM c"))
	done := make(chan error, 1)
	go func() { _, err := c.Handler(ctx, call); done <- err }()
	until(t, "the statement to begin", func() bool {
		if r.set.db.mu.TryLock() {
			r.set.db.mu.Unlock()
			return false
		}
		return true
	})
	cancel()
	if err := <-done; err == nil {
		t.Error("no error")
	}
	equal(t, r.text("sql", query("SELECT count(*) AS n FROM kept")), "1 row(s) returned:\nn\n0")
}

// TestSQLMemory: a statement that needs more memory than there is for a database
// fails, and what was written before it is there after.
func TestSQLMemory(t *testing.T) {
	r := newRig(t)
	r.text("sql", query("CREATE TABLE kept (x); INSERT INTO kept VALUES (1)"))
	large := strings.TrimSuffix(strings.Repeat("hex(zeroblob(4000000)), ", 2*maxMemory/8000000), ", ")
	r.refusal("sql", query("SELECT "+large), "memory")
	equal(t, r.text("sql", query("SELECT count(*) AS n FROM kept")), "1 row(s) returned:\nn\n1")
}

// TestSQLAsElsewhere: what models know of SQLite holds here, too.
func TestSQLAsElsewhere(t *testing.T) {
	r := newRig(t)
	for _, tt := range []struct{ query, want string }{
		{`INSERT INTO todos (id, title) VALUES ("a", "in double quotes")`, "1 row(s) inserted. Last inserted row ID: 1."},
		{`SELECT title FROM todos WHERE id = "a"`, "1 row(s) returned:\ntitle\nin double quotes"},
		{`CREATE TABLE d (at TEXT DEFAULT "now", seen DATETIME, note)`, "Schema operation completed successfully."},
		{`INSERT INTO d (seen, note) VALUES ('2026-11-30 10:00:00', x'')`, "1 row(s) inserted. Last inserted row ID: 1."},
		{`SELECT * FROM d`, "1 row(s) returned:\nat | seen | note\nnow | 2026-11-30 10:00:00 | x''"},
		{`CREATE TABLE c (of TEXT REFERENCES todos (id))`, "Schema operation completed successfully."},
		{`INSERT INTO c VALUES ('nobody')`, "1 row(s) inserted. Last inserted row ID: 1."},
		{`SELECT json_extract('{"a":[1,2.5]}', '$.a[1]') AS j, 1 / 2.0 AS f, upper('x') AS u`, "1 row(s) returned:\nj | f | u\n2.5 | 0.5 | X"},
		{`SELECT group_concat(id, '; ') AS ids FROM todos`, "1 row(s) returned:\nids\na"},
	} {
		equal(t, r.text("sql", query(tt.query)), tt.want)
	}
	r.refusal("sql", query("INSERT INTO todos (id, title) VALUES ('a', 'again')"), "UNIQUE constraint failed: todos.id")
}

// host is a database of the host's.
type host struct {
	calls []string
	there bool
}

func (h *host) Query(_ context.Context, kind QueryKind, q string) (Rows, error) {
	h.calls = append(h.calls, fmt.Sprintf("%s %.20s", kind, q))
	return Rows{RowsAffected: 1, LastInsertID: 7}, nil
}
func (h *host) Exists(context.Context) (bool, error) { return h.there, nil }
func (h *host) Close() error                         { return nil }

// A host is not made to make a database only to find out that there are no todos.
func TestSQLHostTodos(t *testing.T) {
	h := &host{}
	r := newRig(t, func(c *Config) { c.Database = h })
	for _, there := range []bool{false, true} {
		h.there = there
		if todos, _, err := r.set.Todos(t.Context()); err != nil || len(todos) > 0 {
			t.Errorf("todos %v, %v", todos, err)
		}
		if asked := len(h.calls) > 0; asked != there {
			t.Errorf("there %v: asked %v", there, h.calls)
		}
	}
}

func TestSQLHost(t *testing.T) {
	h := &host{}
	r := newRig(t, func(c *Config) { c.Database = h })
	equal(t, r.text("sql", query("INSERT INTO items VALUES (1)")), "1 row(s) inserted. Last inserted row ID: 7.")
	equal(t, r.text("sql", query("CREATE TABLE x (y)")), "Schema operation completed successfully.")
	if diff := cmp.Diff([]string{"exec CREATE TABLE IF NOT ", "run INSERT INTO items VA", "exec CREATE TABLE x (y)"}, h.calls); diff != "" {
		t.Error(diff)
	}
}

// FuzzSplitSQL: nothing of a query is lost, and no statement is empty.
func FuzzSplitSQL(f *testing.F) {
	for _, q := range []string{"a;b", "'x;''y';", "CREATE TRIGGER t BEGIN SELECT 1; END; b", "-- x\n/* ; */ [a;b] \"c;d\" `e;f`;", "WITH x AS (SELECT 1) DELETE", "'"} {
		f.Add(q)
	}
	f.Fuzz(func(t *testing.T, q string) {
		total := 0
		for _, st := range splitSQL(q) {
			if st.text == "" || st.verb == "" || !strings.Contains(q, st.text) {
				t.Errorf("%q: %+v", q, st)
			}
			total += len(st.text)
			st.kind()
			st.forbidden()
		}
		if total > len(q) {
			t.Errorf("%q: more than there was", q)
		}
	})
}

// TestAskUser pins the texts of answers.
func TestAskUser(t *testing.T) {
	var got Question
	answer := Answer{Answer: "Option A"}
	r := newRig(t, func(c *Config) {
		c.AskUser = func(_ context.Context, call tool.Call, q Question) (Answer, error) {
			if call.ID == "" || call.Name != "ask_user" {
				t.Errorf("%+v", call)
			}
			got = q
			return answer, nil
		}
	})
	equal(t, r.text("ask_user", args("question", "Which?", "choices", []string{"Option A", "Option B"})), "User selected: Option A")
	if got.Question != "Which?" || len(got.Choices) != 2 || !got.Freeform() {
		t.Errorf("%+v", got)
	}
	answer = Answer{Answer: "my own", WasFreeform: true}
	equal(t, r.text("ask_user", args("question", "Which?", "choices", []string{"a"}, "allow_freeform", false)), "User responded: my own")
	if got.Freeform() {
		t.Error("free answers were allowed")
	}
}

// TestExitPlanMode pins the text of an approval.
func TestExitPlanMode(t *testing.T) {
	var answer PlanAnswer
	var got Plan
	r := newRig(t, func(c *Config) {
		c.ExitPlan = func(_ context.Context, _ tool.Call, p Plan) (PlanAnswer, error) { got = p; return answer, nil }
	})
	call := `{"summary":"Greeting file implementation plan","actions":["autopilot","interactive","exit_only"],"recommendedAction":"interactive"}`
	answer = PlanAnswer{Approved: true, Action: "interactive", Feedback: "Approved by the TypeScript E2E test"}
	equal(t, r.text("exit_plan_mode", call), "Plan approved! Exited plan mode.\n\nYou are now in interactive mode. Start implementing the plan now, in this same response. Approving the plan is your go-signal, so do not stop to ask whether to proceed or wait for another message.")
	if got.Summary != "Greeting file implementation plan" || len(got.Actions) != 3 || got.Recommended != "interactive" {
		t.Errorf("%+v", got)
	}
	for a, want := range map[PlanAnswer]string{
		{}: "not approved", {Feedback: "shorter"}: "shorter", {Approved: true, Action: "autopilot"}: "autopilot mode", {Approved: true, Action: "exit_only"}: "wait for the next message",
	} {
		answer = a
		if out := r.text("exit_plan_mode", call); !strings.Contains(out, want) {
			t.Errorf("%+v: %s", a, out)
		}
	}
}

func TestTaskComplete(t *testing.T) {
	var got string
	r := newRig(t, func(c *Config) {
		c.Complete = func(_ context.Context, _ tool.Call, s string) error { got = s; return nil }
	})
	r.text("task_complete", args("summary", "all done"))
	equal(t, got, "all done")
}
