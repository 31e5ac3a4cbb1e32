package builtin

import "strings"

// statement is one SQL statement.
type statement struct {
	text  string
	verb  string   // its first word, in capitals
	rest  []string // its words up to a few, in capitals, outside of quotes and comments
	main  string   // the verb that decides: for WITH, what follows the tables it names
	gives bool     // RETURNING
}

// splitSQL takes statements apart at their semicolons, those inside of strings,
// names, comments and triggers aside. It reads no more of SQL than that.
func splitSQL(query string) []statement {
	var out []statement
	for len(query) > 0 {
		st, n := nextSQL(query)
		if st.verb != "" {
			out = append(out, st)
		}
		query = query[n:]
	}
	return out
}

// nextSQL reads up to and with the next semicolon.
func nextSQL(q string) (statement, int) {
	var st statement
	depth, blocks := 0, 0 // parentheses; BEGIN and CASE of a trigger
	trigger := false
	i := 0
	for i < len(q) {
		if n := skipSQL(q[i:]); n > 0 {
			i += n
			continue
		}
		switch c := q[i]; {
		case c == ';':
			if !trigger || blocks == 0 && st.last() == "END" {
				st.text = strings.TrimSpace(q[:i])
				return st, i + 1
			}
			i++
		case c == '(':
			depth++
			i++
		case c == ')':
			depth--
			i++
		case letter(c):
			j := i + 1
			for j < len(q) && (letter(q[j]) || q[j] >= '0' && q[j] <= '9' || q[j] == '$') {
				j++
			}
			word := strings.ToUpper(q[i:j])
			st.word(word, depth)
			switch {
			case word == "TRIGGER" && st.verb == "CREATE" && len(st.rest) <= 3:
				trigger = true
			case trigger && (word == "BEGIN" || word == "CASE"):
				blocks++
			case trigger && word == "END":
				blocks--
			}
			i = j
		default:
			i++
		}
	}
	st.text = strings.TrimSpace(q)
	return st, len(q)
}

// word takes up one word of a statement.
func (st *statement) word(w string, depth int) {
	if st.verb == "" {
		st.verb, st.main = w, w
	}
	st.rest = append(st.rest, w)
	if depth > 0 {
		return
	}
	switch w {
	case "SELECT", "VALUES", "INSERT", "REPLACE", "UPDATE", "DELETE":
		if st.main == "WITH" {
			st.main = w
		}
	case "RETURNING":
		st.gives = true
	}
}

func (st *statement) last() string {
	if len(st.rest) == 0 {
		return ""
	}
	return st.rest[len(st.rest)-1]
}

func letter(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

// skipSQL is the length of the string, quoted name or comment that q begins with,
// or 0. One that does not end reaches to the end.
func skipSQL(q string) int {
	upTo := func(from int, end string) int {
		if i := strings.Index(q[from:], end); i >= 0 {
			return from + i + len(end)
		}
		return len(q)
	}
	switch {
	case strings.HasPrefix(q, "--"):
		return upTo(2, "\n")
	case strings.HasPrefix(q, "/*"):
		return upTo(2, "*/")
	case q[0] == '[':
		return upTo(1, "]")
	case q[0] == '\'' || q[0] == '"' || q[0] == '`':
		return upTo(1, q[:1]) // a doubled quote begins the next string at once
	}
	return 0
}

// kind is how a database has to run the statement.
func (st statement) kind() QueryKind {
	switch st.main {
	case "SELECT", "VALUES", "PRAGMA", "EXPLAIN":
		return QueryRows
	case "INSERT", "REPLACE", "UPDATE", "DELETE":
		if st.gives {
			return QueryRows
		}
		return QueryRun
	}
	return QueryExec
}

// pragmas are those that only tell.
const pragmas wordList = "TABLE_INFO TABLE_XINFO TABLE_LIST INDEX_LIST INDEX_INFO INDEX_XINFO FOREIGN_KEY_LIST FOREIGN_KEY_CHECK INTEGRITY_CHECK QUICK_CHECK USER_VERSION"

// forbidden says why a statement is not run; "" where it is. The sql tool is not
// asked about, so that it must not reach other files.
func (st statement) forbidden() string {
	switch {
	case st.verb == "ATTACH" || st.verb == "DETACH":
		return "ATTACH is not allowed: the sql tool works with the session's own database only."
	case st.verb == "VACUUM":
		return "VACUUM is not allowed here."
	case st.verb == "PRAGMA":
		name := st.last()
		if len(st.rest) > 1 {
			name = st.rest[1]
		}
		if len(st.rest) > 2 && (name == "MAIN" || name == "TEMP") {
			name = st.rest[2]
		}
		if !pragmas.has(name) {
			return "This PRAGMA is not allowed here."
		}
	case st.verb == "LOAD" || strings.Contains(strings.ToUpper(st.text), "LOAD_EXTENSION"):
		return "Extensions cannot be loaded."
	}
	return ""
}
