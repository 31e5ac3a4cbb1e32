package modelfile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"sort"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/transom-run/transom/internal/lazy"
	"github.com/transom-run/transom/model"
)

// MaxSize is the size of the largest file that is read, in bytes.
const MaxSize = 64 << 20

// Load reads the file at path.
func Load(path string) (*File, error) {
	info, err := os.Stat(path)
	if err == nil && info.Size() > MaxSize {
		return nil, &Error{File: path, Msg: fmt.Sprintf("has %d bytes; the limit is %d", info.Size(), MaxSize)}
	}
	data, err := os.ReadFile(path)
	if err != nil {
		var pe *fs.PathError
		if errors.As(err, &pe) {
			err = pe.Err
		}
		return nil, &Error{File: path, Msg: "cannot be read: " + err.Error()}
	}
	return Parse(path, data)
}

// Parse reads a file's text; path is for errors only.
func Parse(path string, data []byte) (*File, error) {
	p := &parser{path: path}
	if len(data) > MaxSize {
		return nil, p.fail(0, "", "has %d bytes; the limit is %d", len(data), MaxSize)
	}
	var doc yaml.Node
	empty := "is empty; a model file has the keys models and conversations"
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, p.fail(1, "", "%s", empty)
	}
	if err := yaml.Load(data, &doc); err != nil {
		line, msg := yamlError(err)
		return nil, p.fail(line, "", "%s", msg)
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
		return nil, p.fail(1, "", "%s", empty)
	}
	f := &File{Path: path}
	err := p.mapping(doc.Content[0], "", fields{
		"models":        func(n *yaml.Node, at string) error { return p.models(n, at, f) },
		"conversations": func(n *yaml.Node, at string) error { return p.conversations(n, at, f) },
		"errors":        func(n *yaml.Node, at string) error { return p.errorRules(n, at, f) },
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}

// yamlError takes line and text from an error of the YAML library.
func yamlError(err error) (line int, msg string) {
	var le *yaml.LoadError
	if errors.As(err, &le) {
		return le.Mark.Line, "is not YAML: " + le.Message
	}
	return 0, "is not YAML: " + strings.TrimPrefix(err.Error(), "yaml: ")
}

type parser struct{ path string }

type fields map[string]func(n *yaml.Node, at string) error

func (p *parser) fail(line int, field, format string, args ...any) error {
	return &Error{File: p.path, Line: line, Field: field, Msg: fmt.Sprintf(format, args...)}
}

// mapping walks a mapping in the order of the file. Every key must be known and
// stand there once.
func (p *parser) mapping(n *yaml.Node, at string, known fields) error {
	if n.Kind == yaml.AliasNode || n.Anchor != "" {
		return p.fail(n.Line, at, "anchors and aliases are not part of the format; write the value out")
	}
	if n.Kind != yaml.MappingNode {
		return p.fail(n.Line, at, "must be a mapping with %s, not %s", keyList(known), kind(n))
	}
	seen := make(map[string]bool, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		name := join(at, key.Value)
		read, ok := known[key.Value]
		if !ok || key.Kind != yaml.ScalarNode {
			return p.fail(key.Line, name, "is not a field; known here: %s", keyList(known))
		}
		if seen[key.Value] {
			return p.fail(key.Line, name, "stands here twice")
		}
		seen[key.Value] = true
		if value.Kind == yaml.AliasNode || value.Anchor != "" {
			return p.fail(value.Line, name, "anchors and aliases are not part of the format; write the value out")
		}
		if isNull(value) {
			continue // as if it was left out
		}
		if err := read(value, name); err != nil {
			return err
		}
	}
	return nil
}

// list walks a sequence.
func (p *parser) list(n *yaml.Node, at string, each func(n *yaml.Node, at string) error) error {
	if n.Kind != yaml.SequenceNode {
		return p.fail(n.Line, at, "must be a list, not %s", kind(n))
	}
	for i, item := range n.Content {
		name := fmt.Sprintf("%s[%d]", at, i)
		if item.Kind == yaml.AliasNode || item.Anchor != "" {
			return p.fail(item.Line, name, "anchors and aliases are not part of the format; write the value out")
		}
		if err := each(item, name); err != nil {
			return err
		}
	}
	return nil
}

func (p *parser) models(n *yaml.Node, at string, f *File) error {
	return p.list(n, at, func(n *yaml.Node, at string) error {
		var m Model
		if n.Kind == yaml.ScalarNode {
			m.ID = n.Value
		} else if err := p.mapping(n, at, fields{
			"id":             p.text(&m.ID),
			"name":           p.text(&m.Name),
			"context_window": p.count(&m.ContextWindow, 1, 0),
			"max_output":     p.count(&m.MaxOutput, 1, 0),
			"vision":         p.boolean(&m.Vision),
		}); err != nil {
			return err
		}
		if m.ID == "" {
			return p.fail(n.Line, at, "needs an id")
		}
		f.Models = append(f.Models, m)
		return nil
	})
}

func (p *parser) conversations(n *yaml.Node, at string, f *File) error {
	return p.list(n, at, func(n *yaml.Node, at string) error {
		c := Conversation{Line: n.Line}
		if err := p.mapping(n, at, fields{
			"when":     func(n *yaml.Node, at string) error { return p.when(n, at, &c) },
			"tools":    p.texts(&c.Tools),
			"messages": func(n *yaml.Node, at string) error { return p.messages(n, at, &c.Messages) },
			"replies":  func(n *yaml.Node, at string) error { return p.replies(n, at, &c.Replies) },
		}); err != nil {
			return err
		}
		switch {
		case c.Messages == nil && c.Replies == nil:
			return p.fail(n.Line, at, "needs messages (a recorded exchange) or when and replies (a dialogue)")
		case c.Messages != nil && c.Replies != nil:
			return p.fail(n.Line, at, "has both messages and replies; write two conversations")
		case c.Replies != nil && c.When == nil:
			return p.fail(n.Line, at, "replies need a rule: add when (when: {} holds for every request)")
		}
		f.Conversations = append(f.Conversations, c)
		return nil
	})
}

func (p *parser) when(n *yaml.Node, at string, c *Conversation) error {
	c.When = new(When)
	return p.mapping(n, at, fields{
		"model": p.text(&c.When.Model),
		"user": func(n *yaml.Node, at string) error {
			rule := new(TextRule)
			set := 0
			note := func(read func(*yaml.Node, string) error) func(*yaml.Node, string) error {
				return func(n *yaml.Node, at string) error { set++; return read(n, at) }
			}
			err := p.mapping(n, at, fields{
				"equals":   note(p.text(&rule.Equals)),
				"contains": note(p.text(&rule.Contains)),
				"matches": note(func(n *yaml.Node, at string) error {
					re, err := regexp.Compile(n.Value)
					if err != nil || n.Kind != yaml.ScalarNode {
						return p.fail(n.Line, at, "is not a regular expression: %v", err)
					}
					rule.Matches = re
					return nil
				}),
			})
			if err != nil {
				return err
			}
			if set != 1 || (rule.Matches == nil && rule.Contains == "" && rule.Equals == "") {
				return p.fail(n.Line, at, "needs exactly one of equals, contains and matches, with a text")
			}
			c.When.User = rule
			return nil
		},
	})
}

func (p *parser) errorRules(n *yaml.Node, at string, f *File) error {
	return p.list(n, at, func(n *yaml.Node, at string) error {
		r := ErrorRule{Line: n.Line, Failure: Failure{Times: Always}}
		known := p.failureFields(&r.Failure)
		known["model"] = p.text(&r.Model)
		known["messages"] = func(n *yaml.Node, at string) error { return p.messages(n, at, &r.Messages) }
		if err := p.mapping(n, at, known); err != nil {
			return err
		}
		if err := p.checkFailure(n, at, &r.Failure); err != nil {
			return err
		}
		f.Errors = append(f.Errors, r)
		return nil
	})
}

func kind(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.ScalarNode:
		if isNull(n) {
			return "empty"
		}
		return "a text or number"
	default:
		return "this"
	}
}

// isNull reports whether a value is left empty. A quoted text never is.
func isNull(n *yaml.Node) bool {
	if n.Kind != yaml.ScalarNode || n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		return false
	}
	switch n.Value {
	case "", "~", "null", "Null", "NULL":
		return true
	}
	return false
}

func join(at, key string) string {
	if at == "" {
		return key
	}
	return at + "." + key
}

func keyList(known fields) string {
	keys := make([]string, 0, len(known))
	for k := range known {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return strings.Join(keys, ", ")
}

// roles are the roles that a message of a file may have.
var roles = lazy.Value[map[string]model.Role]{Make: func() map[string]model.Role {
	return map[string]model.Role{
		"system": model.System, "developer": model.Developer, "user": model.User,
		"assistant": model.Assistant, "tool": model.ToolRole,
	}
}}
