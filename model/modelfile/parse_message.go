package modelfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/transom-run/transom/model"
)

func (p *parser) messages(n *yaml.Node, at string, to *[]Message) error {
	*to = []Message{}
	return p.list(n, at, func(n *yaml.Node, at string) error {
		m := Message{Line: n.Line}
		play := false
		known := p.playFields(&m)
		for name, read := range known {
			known[name] = func(n *yaml.Node, at string) error { play = true; return read(n, at) }
		}
		p.addMessageFields(known, &m)
		if err := p.mapping(n, at, known); err != nil {
			return err
		}
		switch {
		case m.Role == "":
			return p.fail(n.Line, at, "needs a role: system, developer, user, assistant or tool")
		case m.Role != model.Assistant && (play || m.ToolCalls != nil || m.Refusal != "" || m.Reasoning != ""):
			return p.fail(n.Line, at, "has fields that only an assistant message can have")
		case m.Role == model.ToolRole && m.ToolCallID == "":
			return p.fail(n.Line, at, "needs tool_call_id: the id of the call that it answers")
		case m.Role != model.ToolRole && m.ToolCallID != "":
			return p.fail(n.Line, at, "has tool_call_id, which only a tool message can have")
		case m.Repeat != 0:
			return p.fail(n.Line, at, "has repeat, which only the replies of a dialogue can have")
		}
		if err := p.finishMessage(n, at, &m); err != nil {
			return err
		}
		*to = append(*to, m)
		return nil
	})
}

func (p *parser) replies(n *yaml.Node, at string, to *[]Message) error {
	*to = []Message{}
	err := p.list(n, at, func(n *yaml.Node, at string) error {
		m := Message{Line: n.Line, Role: model.Assistant}
		known := p.playFields(&m)
		p.addMessageFields(known, &m)
		delete(known, "tool_call_id")
		if err := p.mapping(n, at, known); err != nil {
			return err
		}
		if m.Role != model.Assistant {
			return p.fail(n.Line, at+".role", "must be assistant; a reply is what the model says")
		}
		if err := p.finishMessage(n, at, &m); err != nil {
			return err
		}
		*to = append(*to, m)
		return nil
	})
	if err == nil && len(*to) == 0 {
		return p.fail(n.Line, at, "is empty; a dialogue has at least one reply")
	}
	return err
}

// finishMessage checks what concerns several fields.
func (p *parser) finishMessage(n *yaml.Node, at string, m *Message) error {
	if m.Chunks == nil {
		return nil
	}
	whole := strings.Join(m.Chunks, "")
	if m.Content == "" {
		m.Content = whole
	}
	if m.Content != whole {
		return p.fail(n.Line, at+".chunks", "joined do not make the content")
	}
	return nil
}

func (p *parser) addMessageFields(known fields, m *Message) {
	known["role"] = func(n *yaml.Node, at string) error {
		role, ok := roles.Get()[n.Value]
		if !ok || n.Kind != yaml.ScalarNode {
			return p.fail(n.Line, at, "must be system, developer, user, assistant or tool")
		}
		m.Role = role
		return nil
	}
	known["content"] = p.text(&m.Content)
	known["reasoning"] = p.text(&m.Reasoning)
	known["refusal"] = p.text(&m.Refusal)
	known["tool_call_id"] = p.text(&m.ToolCallID)
	known["tool_calls"] = func(n *yaml.Node, at string) error {
		return p.list(n, at, func(n *yaml.Node, at string) error { return p.toolCall(n, at, m) })
	}
}

func (p *parser) playFields(m *Message) fields {
	return fields{
		"finish":      p.text(&m.Finish),
		"chunks":      p.texts(&m.Chunks),
		"chunk_size":  p.count(&m.ChunkSize, 1, 0),
		"delay":       p.duration(&m.Delay),
		"chunk_delay": p.duration(&m.ChunkDelay),
		"repeat":      p.count(&m.Repeat, 1, Always),
		"usage": func(n *yaml.Node, at string) error {
			m.Usage = new(model.Usage)
			return p.mapping(n, at, fields{
				"input":       p.count(&m.Usage.InputTokens, 0, 0),
				"output":      p.count(&m.Usage.OutputTokens, 0, 0),
				"cache_read":  p.count(&m.Usage.CacheReadTokens, 0, 0),
				"cache_write": p.count(&m.Usage.CacheWriteTokens, 0, 0),
				"reasoning":   p.count(&m.Usage.ReasoningTokens, 0, 0),
			})
		},
		"failures": func(n *yaml.Node, at string) error {
			return p.list(n, at, func(n *yaml.Node, at string) error {
				f := Failure{}
				if err := p.mapping(n, at, p.failureFields(&f)); err != nil {
					return err
				}
				m.Failures = append(m.Failures, f)
				return p.checkFailure(n, at, &f)
			})
		},
	}
}

// toolCall reads a call in the form of the wire (id, type, function) or in the
// short form (name, arguments).
func (p *parser) toolCall(n *yaml.Node, at string, m *Message) error {
	var c model.Call
	typ, short, long := "function", false, false
	err := p.mapping(n, at, fields{
		"id":        p.text(&c.ID),
		"type":      p.text(&typ),
		"name":      func(n *yaml.Node, at string) error { short = true; return p.text(&c.Name)(n, at) },
		"arguments": func(n *yaml.Node, at string) error { short = true; return p.arguments(n, at, &c) },
		"function": func(n *yaml.Node, at string) error {
			long = true
			return p.mapping(n, at, fields{
				"name":      p.text(&c.Name),
				"arguments": func(n *yaml.Node, at string) error { return p.arguments(n, at, &c) },
			})
		},
	})
	switch {
	case err != nil:
		return err
	case short && long:
		return p.fail(n.Line, at, "has function and name or arguments beside it; use one of the two forms")
	case typ != "function":
		return p.fail(n.Line, at+".type", "must be function")
	case c.Name == "":
		return p.fail(n.Line, at, "needs the name of a tool")
	}
	m.ToolCalls = append(m.ToolCalls, c)
	return nil
}

// arguments takes a text as it is, valid JSON or not (a model may write
// anything), and a mapping as JSON.
func (p *parser) arguments(n *yaml.Node, at string, c *model.Call) error {
	if n.Kind == yaml.ScalarNode {
		c.Arguments = n.Value
		return nil
	}
	var b bytes.Buffer
	if err := p.toJSON(&b, n, at, 0); err != nil {
		return err
	}
	c.Arguments = b.String()
	return nil
}

// toJSON writes a YAML value as compact JSON; mappings keep their order.
func (p *parser) toJSON(b *bytes.Buffer, n *yaml.Node, at string, depth int) error {
	if depth > 100 {
		return p.fail(n.Line, at, "is nested too deeply")
	}
	switch n.Kind {
	case yaml.MappingNode:
		b.WriteByte('{')
		for i := 0; i+1 < len(n.Content); i += 2 {
			if i > 0 {
				b.WriteByte(',')
			}
			quote(b, n.Content[i].Value)
			b.WriteByte(':')
			if err := p.toJSON(b, n.Content[i+1], join(at, n.Content[i].Value), depth+1); err != nil {
				return err
			}
		}
		b.WriteByte('}')
	case yaml.SequenceNode:
		b.WriteByte('[')
		for i, item := range n.Content {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := p.toJSON(b, item, fmt.Sprintf("%s[%d]", at, i), depth+1); err != nil {
				return err
			}
		}
		b.WriteByte(']')
	case yaml.ScalarNode:
		var v any
		if err := n.Decode(&v); err != nil {
			return p.fail(n.Line, at, "cannot be read: %v", err)
		}
		if _, ok := v.(time.Time); ok {
			v = n.Value // JSON has no dates
		}
		data, err := json.Marshal(v)
		if err != nil {
			return p.fail(n.Line, at, "is not a JSON value: %v", err)
		}
		b.Write(data)
	default:
		return p.fail(n.Line, at, "anchors and aliases are not part of the format; write the value out")
	}
	return nil
}

func quote(b *bytes.Buffer, s string) {
	data, _ := json.Marshal(s) // a string cannot fail
	b.Write(data)
}

func (p *parser) failureFields(f *Failure) fields {
	return fields{
		"status":      p.count(&f.Status, 400, 0),
		"cut":         p.countPtr(&f.Cut),
		"cut_bytes":   p.countPtr(&f.CutBytes),
		"stall":       p.countPtr(&f.Stall),
		"code":        p.text(&f.Code),
		"message":     p.text(&f.Message),
		"body":        p.text(&f.Body),
		"retry_after": p.duration(&f.RetryAfter),
		// As the recordings of the SDKs spell it.
		"retryAfterSeconds": func(n *yaml.Node, at string) error {
			s, err := strconv.ParseFloat(n.Value, 64)
			if err != nil || s < 0 || s > 1e6 {
				return p.fail(n.Line, at, "must be a number of seconds")
			}
			f.RetryAfter = time.Duration(s * float64(time.Second))
			return nil
		},
		"times": p.count(&f.Times, 1, Always),
		"headers": func(n *yaml.Node, at string) error {
			if n.Kind != yaml.MappingNode {
				return p.fail(n.Line, at, "must be a mapping of names to texts")
			}
			f.Headers = make(map[string]string)
			for i := 0; i+1 < len(n.Content); i += 2 {
				key := n.Content[i]
				var value string
				if err := p.text(&value)(n.Content[i+1], join(at, key.Value)); err != nil {
					return err
				}
				f.Headers[key.Value] = value
			}
			return nil
		},
	}
}

func (p *parser) checkFailure(n *yaml.Node, at string, f *Failure) error {
	ways := 0
	for _, set := range []bool{f.Status != 0, f.Cut != nil, f.CutBytes != nil, f.Stall != nil} {
		if set {
			ways++
		}
	}
	switch {
	case ways != 1:
		return p.fail(n.Line, at, "needs exactly one of status, cut, cut_bytes and stall")
	case f.Status > 599:
		return p.fail(n.Line, at+".status", "must be an HTTP error status, 400 to 599")
	case f.Status == 0 && (f.Code != "" || f.Message != "" || f.Body != "" || f.RetryAfter != 0 || f.Headers != nil):
		return p.fail(n.Line, at, "has fields that only go with status")
	}
	return nil
}

// text reads a scalar as it is written: 42 and true are texts too.
func (p *parser) text(to *string) func(*yaml.Node, string) error {
	return func(n *yaml.Node, at string) error {
		if n.Kind != yaml.ScalarNode {
			return p.fail(n.Line, at, "must be a text, not %s", kind(n))
		}
		*to = n.Value
		return nil
	}
}

func (p *parser) texts(to *[]string) func(*yaml.Node, string) error {
	return func(n *yaml.Node, at string) error {
		*to = []string{}
		return p.list(n, at, func(n *yaml.Node, at string) error {
			var s string
			if err := p.text(&s)(n, at); err != nil {
				return err
			}
			*to = append(*to, s)
			return nil
		})
	}
}

func (p *parser) boolean(to *bool) func(*yaml.Node, string) error {
	return func(n *yaml.Node, at string) error {
		if n.Kind != yaml.ScalarNode || (n.Value != "true" && n.Value != "false") {
			return p.fail(n.Line, at, "must be true or false")
		}
		*to = n.Value == "true"
		return nil
	}
}

// count reads a whole number of at least least. Where always is Always, the word
// always is read as that.
func (p *parser) count(to *int, least, always int) func(*yaml.Node, string) error {
	return func(n *yaml.Node, at string) error {
		if always == Always && n.Kind == yaml.ScalarNode && n.Value == "always" {
			*to = Always
			return nil
		}
		v, err := strconv.Atoi(n.Value)
		if n.Kind != yaml.ScalarNode || err != nil || v < least || v > 1<<40 {
			word := ""
			if always == Always {
				word = ", or always"
			}
			return p.fail(n.Line, at, "must be a whole number of at least %d%s", least, word)
		}
		*to = v
		return nil
	}
}

func (p *parser) countPtr(to **int) func(*yaml.Node, string) error {
	return func(n *yaml.Node, at string) error {
		*to = new(int)
		return p.count(*to, 0, 0)(n, at)
	}
}

func (p *parser) duration(to *time.Duration) func(*yaml.Node, string) error {
	return func(n *yaml.Node, at string) error {
		d, err := time.ParseDuration(n.Value)
		if n.Kind != yaml.ScalarNode || err != nil || d < 0 || d > 24*time.Hour {
			return p.fail(n.Line, at, "must be a duration such as 300ms or 2s, of at most 24h")
		}
		*to = d
		return nil
	}
}
