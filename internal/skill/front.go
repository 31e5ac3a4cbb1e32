package skill

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

const (
	// maxFile is how long a SKILL.md may be: its text goes into the conversation
	// whole.
	maxFile = 256 << 10
	// maxFront bounds the front matter.
	maxFront = 64 << 10
	// maxDescription is how much of a description is kept, in bytes.
	maxDescription = 1024
	maxName        = 128
)

// front is what a SKILL.md says of itself.
type front struct {
	name, description, hint string
	userInvocable           bool // a user may begin it
	hidden                  bool // the model may not
	allowed                 []string
}

// parse takes a SKILL.md apart. A front matter that is not YAML is read line by
// line as far as it goes, since many that people write hold a bare colon; the
// warning says so.
func parse(raw string) (f front, text, warning string, err error) {
	f.userInvocable = true
	raw = strings.ReplaceAll(strings.TrimPrefix(strings.ToValidUTF8(raw, "\ufffd"), "\ufeff"), "\r\n", "\n")
	head, text, err := split(raw)
	if err != nil {
		return f, "", "", err
	}
	fields := map[string]any{}
	if e := yaml.Unmarshal([]byte(head), &fields); e != nil {
		fields = byLine(head)
		warning = "its front matter is not valid YAML and was read line by line: " + strings.ReplaceAll(e.Error(), "\n", " ")
	}
	f.name = clean(one(fields["name"]))
	f.description = cut(clean(one(fields["description"])), maxDescription)
	f.hint = cut(clean(one(fields["argument-hint"])), maxDescription)
	f.userInvocable = flag(fields["user-invocable"], true)
	f.hidden = flag(fields["disable-model-invocation"], false)
	f.allowed = list(fields["allowed-tools"])
	return f, text, warning, nil
}

// split separates the front matter from the text. A file without one is text.
func split(raw string) (head, text string, err error) {
	rest, ok := strings.CutPrefix(raw, "---\n")
	if !ok {
		return "", raw, nil
	}
	if strings.HasPrefix(rest, "---\n") || rest == "---" {
		head, text = "", strings.TrimPrefix(rest[3:], "\n")
	} else if h, t, ok := strings.Cut(rest, "\n---\n"); ok {
		head, text = h, t
	} else if h, ok := strings.CutSuffix(rest, "\n---"); ok {
		head = h
	} else {
		return "", "", errors.New("its front matter begins with --- and has no line --- that ends it")
	}
	if len(head) > maxFront {
		return "", "", fmt.Errorf("its front matter has %d bytes, more than the %d that are read", len(head), maxFront)
	}
	return head, strings.TrimLeft(text, "\n"), nil
}

// byLine reads "name: value" lines.
func byLine(head string) map[string]any {
	out := map[string]any{}
	for _, line := range strings.Split(head, "\n") {
		name, value, ok := strings.Cut(line, ":")
		if !ok || name == "" || name != strings.TrimSpace(name) {
			continue
		}
		value = strings.TrimSpace(value)
		if n := len(value); n > 1 && (value[0] == '"' || value[0] == '\'') && value[n-1] == value[0] {
			value = value[1 : n-1]
		}
		out[name] = value
	}
	return out
}

// one is a value as text; "" for lists and maps.
func one(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case nil, []any, map[string]any, map[any]any:
		return ""
	}
	return fmt.Sprint(v)
}

func flag(v any, otherwise bool) bool {
	switch v := v.(type) {
	case bool:
		return v
	case string:
		switch strings.ToLower(strings.TrimSpace(v)) {
		case "true", "yes":
			return true
		case "false", "no":
			return false
		}
	}
	return otherwise
}

// list is a YAML list of texts, or one text with commas, or with blanks between
// its parts. Parentheses hold a part together: "Bash(git add *), Read".
func list(v any) (out []string) {
	if items, ok := v.([]any); ok {
		for _, item := range items {
			if s := clean(one(item)); s != "" {
				out = append(out, s)
			}
		}
		return out
	}
	text := one(v)
	commas := strings.Contains(text, ",")
	depth := 0
	for _, s := range strings.FieldsFunc(text, func(r rune) bool {
		switch r {
		case '(':
			depth++
		case ')':
			depth--
		}
		return depth <= 0 && (r == ',' || !commas && unicode.IsSpace(r))
	}) {
		if s = clean(s); s != "" {
			out = append(out, s)
		}
	}
	return out
}

// clean is text on one line.
func clean(s string) string { return strings.Join(strings.Fields(s), " ") }

func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// badName says why a name cannot be used; "" where it can. It stands in quotes and
// tags that the model reads, and behind a slash that people type.
func badName(name string) string {
	switch {
	case name == "":
		return "its name is empty"
	case len(name) > maxName:
		return fmt.Sprintf("its name has %d bytes, more than the %d that a name may have", len(name), maxName)
	case strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) || strings.ContainsRune("\"<>&/\\`", r) }):
		return fmt.Sprintf("its name %q has a character that a name may not have: use letters, digits and hyphens", name)
	}
	return ""
}

// summary is the first line of a text that says something, for skills without a
// description.
func summary(text string) string {
	for _, line := range strings.Split(text, "\n") {
		if line = strings.TrimSpace(strings.TrimLeft(line, "# ")); line != "" {
			return cut(clean(line), maxDescription)
		}
	}
	return ""
}
