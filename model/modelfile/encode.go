package modelfile

import (
	"fmt"
	"sort"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/transom-run/transom/model"
)

// Encode writes the file's text. Parse reads it back as the same File, but for
// lines and path.
func (f *File) Encode() ([]byte, error) {
	top := mapNode()
	models := listNode()
	for _, m := range f.Models {
		models.Content = append(models.Content, modelNode(m))
	}
	add(top, "models", models)
	if len(f.Errors) > 0 {
		rules := listNode()
		for i := range f.Errors {
			rules.Content = append(rules.Content, ruleNode(&f.Errors[i]))
		}
		add(top, "errors", rules)
	}
	convs := listNode()
	for i := range f.Conversations {
		convs.Content = append(convs.Content, conversationNode(&f.Conversations[i]))
	}
	add(top, "conversations", convs)
	data, err := yaml.Dump(top, yaml.WithIndent(2), yaml.WithLineWidth(-1))
	if err != nil {
		return nil, fmt.Errorf("encode the model file: %w", err)
	}
	return data, nil
}

func modelNode(m Model) *yaml.Node {
	if m == (Model{ID: m.ID}) {
		return textNode(m.ID)
	}
	n := mapNode()
	addText(n, "id", m.ID)
	addText(n, "name", m.Name)
	addInt(n, "context_window", m.ContextWindow)
	addInt(n, "max_output", m.MaxOutput)
	if m.Vision {
		add(n, "vision", plainNode("true"))
	}
	return n
}

func conversationNode(c *Conversation) *yaml.Node {
	n := mapNode()
	if c.When != nil {
		when := mapNode()
		when.Style = yaml.FlowStyle
		if r := c.When.User; r != nil {
			rule := mapNode()
			switch {
			case r.Matches != nil:
				add(rule, "matches", textNode(r.Matches.String()))
			case r.Contains != "":
				add(rule, "contains", textNode(r.Contains))
			default:
				add(rule, "equals", textNode(r.Equals))
			}
			add(when, "user", rule)
		}
		addText(when, "model", c.When.Model)
		add(n, "when", when)
	}
	if c.Tools != nil {
		tools := textsNode(c.Tools)
		tools.Style = yaml.FlowStyle
		add(n, "tools", tools)
	}
	if c.Messages != nil {
		add(n, "messages", messagesNode(c.Messages, true))
	}
	if c.Replies != nil {
		add(n, "replies", messagesNode(c.Replies, false))
	}
	return n
}

func messagesNode(msgs []Message, roles bool) *yaml.Node {
	list := listNode()
	for i := range msgs {
		list.Content = append(list.Content, messageNode(&msgs[i], roles))
	}
	return list
}

func messageNode(m *Message, role bool) *yaml.Node {
	n := mapNode()
	if role {
		addText(n, "role", string(m.Role))
	}
	addText(n, "tool_call_id", m.ToolCallID)
	addText(n, "reasoning", m.Reasoning)
	addText(n, "content", m.Content)
	addText(n, "refusal", m.Refusal)
	if len(m.ToolCalls) > 0 {
		calls := listNode()
		for _, c := range m.ToolCalls {
			calls.Content = append(calls.Content, callNode(c))
		}
		add(n, "tool_calls", calls)
	}
	addText(n, "finish", m.Finish)
	if u := m.Usage; u != nil {
		usage := mapNode()
		usage.Style = yaml.FlowStyle
		addInt(usage, "input", u.InputTokens)
		addInt(usage, "output", u.OutputTokens)
		addInt(usage, "cache_read", u.CacheReadTokens)
		addInt(usage, "cache_write", u.CacheWriteTokens)
		addInt(usage, "reasoning", u.ReasoningTokens)
		add(n, "usage", usage)
	}
	if m.Chunks != nil {
		add(n, "chunks", textsNode(m.Chunks))
	}
	addInt(n, "chunk_size", m.ChunkSize)
	addDuration(n, "delay", m.Delay)
	addDuration(n, "chunk_delay", m.ChunkDelay)
	addTimes(n, "repeat", m.Repeat)
	if len(m.Failures) > 0 {
		list := listNode()
		for i := range m.Failures {
			item := mapNode()
			addFailure(item, &m.Failures[i])
			list.Content = append(list.Content, item)
		}
		add(n, "failures", list)
	}
	if len(n.Content) == 0 {
		n.Style = yaml.FlowStyle // {}
	}
	return n
}

func callNode(c model.Call) *yaml.Node {
	n := mapNode()
	addText(n, "id", c.ID)
	addText(n, "type", "function")
	fn := mapNode()
	addText(fn, "name", c.Name)
	add(fn, "arguments", textNode(c.Arguments))
	add(n, "function", fn)
	return n
}

func ruleNode(r *ErrorRule) *yaml.Node {
	n := mapNode()
	addText(n, "model", r.Model)
	f := r.Failure
	if f.Times == Always {
		f.Times = 0 // the default of a rule
	} else if f.Times == 0 {
		f.Times = 1
	}
	addFailure(n, &f)
	if r.Messages != nil {
		add(n, "messages", messagesNode(r.Messages, true))
	}
	return n
}

func addFailure(n *yaml.Node, f *Failure) {
	addInt(n, "status", f.Status)
	for _, p := range []struct {
		key string
		v   *int
	}{{"cut", f.Cut}, {"cut_bytes", f.CutBytes}, {"stall", f.Stall}} {
		if p.v != nil {
			add(n, p.key, plainNode(strconv.Itoa(*p.v)))
		}
	}
	addText(n, "code", f.Code)
	addText(n, "message", f.Message)
	addDuration(n, "retry_after", f.RetryAfter)
	if f.Headers != nil {
		headers := mapNode()
		names := make([]string, 0, len(f.Headers))
		for name := range f.Headers {
			names = append(names, name)
		}
		sort.Strings(names)
		for _, name := range names {
			headers.Content = append(headers.Content, textNode(name), textNode(f.Headers[name]))
		}
		add(n, "headers", headers)
	}
	addText(n, "body", f.Body)
	addTimes(n, "times", f.Times)
}

func mapNode() *yaml.Node  { return &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"} }
func listNode() *yaml.Node { return &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"} }

func plainNode(v string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: v} }

// textNode writes several lines as a block where YAML can hold them exactly.
func textNode(s string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
	switch {
	case blockSafe(s):
		n.Style = yaml.LiteralStyle
	case plainSafe(s):
	case strings.IndexByte(s, '"') >= 0 && strings.IndexByte(s, '\n') < 0 && printable(s) && strings.TrimSpace(s) == s:
		n.Style = yaml.SingleQuotedStyle // JSON stays readable
	default:
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

// blockSafe reports whether a literal block gives the text back unchanged.
func blockSafe(s string) bool {
	if !strings.Contains(s, "\n") || strings.HasPrefix(s, " ") || strings.HasPrefix(s, "\n") {
		return false
	}
	for _, line := range strings.Split(s, "\n") {
		if strings.HasSuffix(line, " ") {
			return false
		}
	}
	return printable(s)
}

func printable(s string) bool {
	for _, r := range s {
		if r != '\n' && (r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r == 0x2028 || r == 0x2029 || r == 0xfeff || r == 0xfffd || r > 0xffff && r&0xfffe == 0xfffe) {
			return false
		}
	}
	return true
}

// plainSafe is narrow on purpose: what is not surely a plain text is quoted.
func plainSafe(s string) bool {
	if s == "" || len(s) > 200 {
		return false
	}
	first := s[0]
	if !(first >= 'a' && first <= 'z' || first >= 'A' && first <= 'Z' || strings.HasPrefix(s, "${")) {
		return false
	}
	switch strings.ToLower(s) {
	case "y", "n", "yes", "no", "on", "off", "true", "false", "null":
		return false
	}
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case strings.IndexByte("_-./()=+@;'!?$", c) >= 0:
		case (c == '{' || c == '}') && strings.HasPrefix(s, "${"):
		case c == ' ' && i+1 < len(s) && s[i+1] != ' ':
		default:
			return false
		}
	}
	return true
}

func textsNode(texts []string) *yaml.Node {
	n := listNode()
	for _, s := range texts {
		t := textNode(s)
		if t.Style == yaml.LiteralStyle {
			t.Style = yaml.DoubleQuotedStyle
		}
		n.Content = append(n.Content, t)
	}
	return n
}

func add(n *yaml.Node, key string, v *yaml.Node) {
	n.Content = append(n.Content, plainNode(key), v)
}

func addText(n *yaml.Node, key, v string) {
	if v != "" {
		add(n, key, textNode(v))
	}
}

func addInt(n *yaml.Node, key string, v int) {
	if v != 0 {
		add(n, key, plainNode(strconv.Itoa(v)))
	}
}

func addTimes(n *yaml.Node, key string, v int) {
	if v == Always {
		add(n, key, plainNode("always"))
		return
	}
	addInt(n, key, v)
}

func addDuration(n *yaml.Node, key string, d time.Duration) {
	if d != 0 {
		add(n, key, plainNode(d.String()))
	}
}
