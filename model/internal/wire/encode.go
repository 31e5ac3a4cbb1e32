package wire

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/transom-run/transom/internal/jsonstring"
	"github.com/transom-run/transom/internal/lazy"
	"github.com/transom-run/transom/model"
)

// EmptySchema stands for a tool without parameters.
const EmptySchema = `{"type":"object","properties":{}}`

// AppendSchema appends a tool's schema as it is; one that is missing or is not
// JSON becomes [EmptySchema].
func AppendSchema(b []byte, schema json.RawMessage) []byte {
	if len(schema) == 0 || !json.Valid(schema) {
		return append(b, EmptySchema...)
	}
	return append(b, schema...)
}

// RequestSize is about the size of the body, to allocate once.
func RequestSize(req *model.Request) int {
	n := 256
	for i := range req.Messages {
		m := &req.Messages[i]
		n += 96 + len(m.Text) + len(m.Text)/16 + len(m.Reasoning)
		for _, c := range m.Calls {
			n += 112 + len(c.Arguments) + len(c.Arguments)/4
		}
		for _, im := range m.Images {
			n += 144 + len(im.Name) + len(im.Data)
		}
	}
	for i := range req.Tools {
		n += 96 + len(req.Tools[i].Description) + len(req.Tools[i].Parameters)
	}
	return n
}

// DataURL takes a data URL apart; of another URL the address stays as the data.
func DataURL(s string) model.Image {
	const prefix = "data:"
	if len(s) > len(prefix) && s[:len(prefix)] == prefix {
		for i := len(prefix); i < len(s); i++ {
			if s[i] == ',' {
				mime := s[len(prefix):i]
				if k := len(mime) - len(";base64"); k >= 0 && mime[k:] == ";base64" {
					mime = mime[:k]
				}
				return model.Image{MIMEType: mime, Data: s[i+1:]}
			}
		}
	}
	return model.Image{Data: s}
}

// Instructions is how many messages at the start instruct the model, of the system or
// the developer: every wire has one place for them.
func Instructions(msgs []model.Message) int {
	n := 0
	for n < len(msgs) && (msgs[n].Role == model.System || msgs[n].Role == model.Developer) {
		n++
	}
	return n
}

// Comma appends a comma where something stands in b behind start.
func Comma(b []byte, start int) []byte {
	if len(b) > start {
		return append(b, ',')
	}
	return b
}

// AppendJoined appends the texts of messages, escaped, with a blank line between
// those that have one.
func AppendJoined(b []byte, msgs []model.Message) []byte {
	first := true
	for i := range msgs {
		if msgs[i].Text == "" {
			continue
		}
		if !first {
			b = append(b, `\n\n`...)
		}
		b, first = jsonstring.AppendEscaped(b, msgs[i].Text), false
	}
	return b
}

// AppendObject appends arguments of a call, which are JSON text, as a value. What
// is not an object becomes an empty one, and halves of surrogate pairs U+FFFD.
func AppendObject(b []byte, args string) []byte {
	if args == "" || args == "{}" {
		return append(b, `{}`...)
	}
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(args), &object) != nil || object == nil {
		return append(b, `{}`...)
	}
	if utf8.ValidString(args) && !surrogate.Get().MatchString(args) {
		return append(b, args...)
	}
	dec := json.NewDecoder(strings.NewReader(args))
	dec.UseNumber()
	var v map[string]any
	if dec.Decode(&v) != nil {
		return append(b, `{}`...)
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if enc.Encode(v) != nil {
		return append(b, `{}`...)
	}
	return append(b, bytes.TrimSpace(out.Bytes())...)
}

// surrogate is the escape of half of a character.
var surrogate = lazy.Regexp{Expr: `\\u[dD][89a-fA-F]`}
