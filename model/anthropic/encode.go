package anthropic

import (
	"encoding/base64"
	"encoding/json"
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/transom-run/transom/internal/jsonstring"
	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/model/internal/wire"
)

// Encoding says how a server wants requests written.
type Encoding struct {
	// Model is the name to send; empty: the request's.
	Model string
	// MaxTokens bounds the answer; 0 is a default by the model's name.
	MaxTokens int
	// Cache marks what the server may cache: tools, system text, and the
	// conversation up to its last two messages of the user's side.
	Cache bool
}

const cacheMark = `,"cache_control":{"type":"ephemeral"}`

// AppendRequest appends the body of a request. The same request gives the same
// bytes: tools in their order, nothing from maps.
func AppendRequest(b []byte, req *model.Request, enc Encoding) []byte {
	name := enc.Model
	if name == "" {
		name = req.Model
	}
	bound := enc.MaxTokens
	if bound <= 0 {
		bound = defaultMaxTokens(name, req.Stream)
	}
	b = append(b, `{"model":`...)
	b = jsonstring.Append(b, name)
	b = appendThinking(b, req, name, bound)
	n := wire.Instructions(req.Messages)
	if system := wire.AppendJoined(nil, req.Messages[:n]); len(system) > 0 {
		b = append(b, `,"system":[{"type":"text","text":"`...)
		b = append(b, system...)
		b = append(b, '"')
		if enc.Cache {
			b = append(b, cacheMark...)
		}
		b = append(b, `}]`...)
	}
	if len(req.Tools) > 0 {
		b = append(b, `,"tools":[`...)
		for i := range req.Tools {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendTool(b, &req.Tools[i], enc.Cache && i == len(req.Tools)-1)
		}
		b = append(b, ']')
	}
	b = append(b, `,"messages":[`...)
	w := writer{b: b, citations: req.Citations}
	w.messages(req.Messages[n:], enc.Cache)
	b = append(w.b, ']')
	if req.Stream {
		b = append(b, `,"stream":true`...)
	}
	return append(b, '}')
}

func appendTool(b []byte, t *model.ToolDef, mark bool) []byte {
	b = append(b, `{"name":`...)
	b = jsonstring.Append(b, t.Name)
	if t.Description != "" {
		b = append(b, `,"description":`...)
		b = jsonstring.Append(b, t.Description)
	}
	b = append(b, `,"input_schema":`...)
	b = wire.AppendSchema(b, t.Parameters)
	if mark {
		b = append(b, cacheMark...)
	}
	return append(b, '}')
}

// writer writes messages. A message is begun by the first block of its side.
type writer struct {
	b         []byte
	citations bool
	role      string // of the message that is open; "" none
	blocks    int    // in it
	// shown are pictures of results, which follow the results of their batch;
	// markShown puts a mark at the last of them.
	shown     []model.Image
	markShown bool
}

func (w *writer) messages(msgs []model.Message, cache bool) {
	marks := [2]int{-1, -1} // messages whose last block gets a mark
	if cache {
		marks = markable(msgs)
	}
	for i := range msgs {
		m := &msgs[i]
		mark := i == marks[0] || i == marks[1]
		if m.Role != model.ToolRole {
			w.show()
		}
		switch m.Role {
		case model.Assistant:
			w.assistant(m)
		case model.ToolRole:
			w.result(m, mark)
		default:
			w.user(m, mark)
		}
	}
	w.show()
	w.close()
}

// show writes the pictures of the results that stand before.
func (w *writer) show() {
	w.images(w.shown, w.markShown)
	w.shown, w.markShown = nil, false
}

// markable finds the last message of the user's side, and the last before the
// assistant message before it: the next request begins with what they end.
func markable(msgs []model.Message) [2]int {
	marks, n := [2]int{-1, -1}, 0
	for i := len(msgs) - 1; i >= 0 && n < 2; i-- {
		last := i == len(msgs)-1 || msgs[i+1].Role == model.Assistant
		if m := &msgs[i]; last && m.Role != model.Assistant && (m.Role == model.ToolRole || !blank(m.Text) || len(m.Images) > 0) {
			marks[n] = i
			n++
		}
	}
	return marks
}

// block begins a block of a side's message.
func (w *writer) block(role string) {
	if w.role == "" && role == "assistant" && w.b[len(w.b)-1] == '[' {
		// A conversation begins with the user.
		w.block("user")
		w.b = append(w.b, `{"type":"text","text":"Go on."}`...)
	}
	if w.role != role {
		first := w.role == ""
		w.close()
		if !first {
			w.b = append(w.b, ',')
		}
		w.b = append(w.b, `{"role":"`...)
		w.b = append(w.b, role...)
		w.b = append(w.b, `","content":[`...)
		w.role = role
	}
	if w.blocks > 0 {
		w.b = append(w.b, ',')
	}
	w.blocks++
}

// close ends the message that is open.
func (w *writer) close() {
	if w.role != "" {
		w.b = append(w.b, `]}`...)
	}
	w.blocks = 0
}

func (w *writer) end(mark bool) {
	if mark {
		w.b = append(w.b, cacheMark...)
	}
	w.b = append(w.b, '}')
}

// blank texts are refused in blocks of their own.
func blank(s string) bool { return strings.TrimSpace(s) == "" }

func (w *writer) text(role, text string, mark bool) {
	w.block(role)
	w.b = append(w.b, `{"type":"text","text":`...)
	w.b = jsonstring.Append(w.b, text)
	w.end(mark)
}

func (w *writer) user(m *model.Message, mark bool) {
	for i := range m.Documents {
		w.document(&m.Documents[i])
	}
	if !blank(m.Text) {
		w.text("user", m.Text, mark && len(m.Images) == 0)
	}
	w.images(m.Images, mark)
}

// images writes pictures, each behind its name.
func (w *writer) images(list []model.Image, mark bool) {
	for i := range list {
		if !blank(list[i].Name) {
			w.text("user", list[i].Name, false)
		}
		w.block("user")
		w.image(&list[i], mark && i == len(list)-1)
	}
}

func (w *writer) image(im *model.Image, mark bool) {
	w.b = append(w.b, `{"type":"image","source":{"type":"base64","media_type":`...)
	w.b = jsonstring.Append(w.b, im.MIMEType)
	w.b = append(w.b, `,"data":`...)
	w.b = jsonstring.Append(w.b, im.Data)
	w.b = append(w.b, '}')
	w.end(mark)
}

func (w *writer) document(d *model.Document) {
	w.block("user")
	w.b = append(w.b, `{"type":"document","source":{`...)
	if text, err := base64.StdEncoding.DecodeString(d.Data); err == nil && strings.HasPrefix(d.MIMEType, "text/") {
		w.b = append(w.b, `"type":"text","media_type":"text/plain","data":`...)
		w.b = jsonstring.Append(w.b, string(text))
	} else {
		w.b = append(w.b, `"type":"base64","media_type":`...)
		w.b = jsonstring.Append(w.b, d.MIMEType)
		w.b = append(w.b, `,"data":`...)
		w.b = jsonstring.Append(w.b, d.Data)
	}
	w.b = append(w.b, '}')
	if d.Title != "" {
		w.b = append(w.b, `,"title":`...)
		w.b = jsonstring.Append(w.b, d.Title)
	}
	if w.citations {
		w.b = append(w.b, `,"citations":{"enabled":true}`...)
	}
	w.b = append(w.b, '}')
}

func (w *writer) result(m *model.Message, mark bool) {
	w.block("user")
	w.b = append(w.b, `{"type":"tool_result","tool_use_id":`...)
	w.b = appendID(w.b, m.CallID)
	if m.Text != "" {
		w.b = append(w.b, `,"content":`...)
		w.b = jsonstring.Append(w.b, m.Text)
	}
	if len(m.Images) > 0 {
		w.shown = append(w.shown, m.Images...)
		w.markShown, mark = mark, false
	}
	w.end(mark)
}

// assistant writes thinking, text and calls in the order in which the model wrote
// them, as far as that is known.
func (w *writer) assistant(m *model.Message) {
	text := !blank(m.Text)
	sent := make([]bool, len(m.Calls))
	var order []json.RawMessage
	if strings.HasPrefix(m.ReasoningOpaque, "[") && json.Unmarshal([]byte(m.ReasoningOpaque), &order) == nil {
		for _, e := range order {
			n, err := strconv.Atoi(string(e))
			switch {
			case e[0] == '{':
				w.block("assistant")
				w.b = append(w.b, e...)
			case e[0] == '"' && text:
				w.text("assistant", m.Text, false)
				text = false
			case err == nil && n >= 0 && n < len(sent) && !sent[n]:
				w.call(&m.Calls[n])
				sent[n] = true
			}
		}
	}
	if text {
		w.text("assistant", m.Text, false)
	}
	for i := range m.Calls {
		if !sent[i] {
			w.call(&m.Calls[i])
		}
	}
}

func (w *writer) call(c *model.Call) {
	w.block("assistant")
	w.b = append(w.b, `{"type":"tool_use","id":`...)
	w.b = appendID(w.b, c.ID)
	w.b = append(w.b, `,"name":`...)
	w.b = jsonstring.Append(w.b, c.Name)
	w.b = append(w.b, `,"input":`...)
	w.b = wire.AppendObject(w.b, c.Arguments)
	w.b = append(w.b, '}')
}

// appendID writes the id of a call. The wire knows letters, digits, _ and - only;
// ids of other providers get a form of those.
func appendID(b []byte, id string) []byte {
	ok := id != ""
	for i := 0; i < len(id) && ok; i++ {
		ok = plainID(id[i])
	}
	if ok {
		return jsonstring.Append(b, id)
	}
	h := fnv.New64a()
	h.Write([]byte(id))
	b = append(b, '"')
	for i := 0; i < len(id) && i < 40; i++ {
		if c := id[i]; plainID(c) {
			b = append(b, c)
		} else {
			b = append(b, '_')
		}
	}
	b = append(b, '_')
	b = strconv.AppendUint(b, h.Sum64(), 16)
	return append(b, '"')
}

func plainID(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}
