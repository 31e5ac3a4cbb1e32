package openai

import (
	"encoding/json"
	"unicode/utf8"

	"github.com/transom-run/transom/model"
)

// emptySchema stands for a tool without parameters.
const emptySchema = `{"type":"object","properties":{}}`

// AppendRequest appends the body of a request. The same request gives the same
// bytes: tools in their order, nothing from maps. reasoningField is
// Config.ReasoningField.
func AppendRequest(b []byte, req *model.Request, wireModel, reasoningField string) []byte {
	if wireModel == "" {
		wireModel = req.Model
	}
	b = append(b, `{"model":`...)
	b = appendString(b, wireModel)
	b = append(b, `,"messages":[`...)
	b = appendMessages(b, req.Messages, reasoningField)
	b = append(b, ']')
	if len(req.Tools) > 0 {
		b = append(b, `,"tools":[`...)
		for i := range req.Tools {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendTool(b, &req.Tools[i])
		}
		b = append(b, ']')
	}
	if req.ReasoningEffort != "" {
		b = append(b, `,"reasoning_effort":`...)
		b = appendString(b, req.ReasoningEffort)
	}
	if req.Stream {
		b = append(b, `,"stream":true,"stream_options":{"include_usage":true}`...)
	}
	return append(b, '}')
}

// appendMessages writes the messages. System and developer messages at the start
// become one system message: many servers accept only one, and only there.
// Pictures of tool results follow the results of their batch as a user message,
// since a tool message holds text only.
func appendMessages(b []byte, msgs []model.Message, reasoningField string) []byte {
	n := 0
	for n < len(msgs) && isSystem(msgs[n].Role) {
		n++
	}
	start := len(b)
	if n > 0 {
		b = append(b, `{"role":"system","content":"`...)
		for i := range msgs[:n] {
			if i > 0 && msgs[i].Text != "" && msgs[i-1].Text != "" {
				b = append(b, `\n\n`...)
			}
			b = appendEscaped(b, msgs[i].Text)
		}
		b = append(b, `"}`...)
	}
	var pictures []model.Image
	for i := n; i < len(msgs); i++ {
		m := &msgs[i]
		if len(pictures) > 0 && m.Role != model.ToolRole {
			b = appendPictures(comma(b, start), pictures)
			pictures = nil
		}
		b = appendMessage(comma(b, start), m, reasoningField)
		if m.Role == model.ToolRole {
			pictures = append(pictures, m.Images...)
		}
	}
	if len(pictures) > 0 {
		b = appendPictures(comma(b, start), pictures)
	}
	return b
}

func isSystem(r model.Role) bool { return r == model.System || r == model.Developer }

func comma(b []byte, start int) []byte {
	if len(b) > start {
		return append(b, ',')
	}
	return b
}

func appendMessage(b []byte, m *model.Message, reasoningField string) []byte {
	role := m.Role
	if role == model.Developer {
		role = model.System
	}
	b = append(b, `{"role":`...)
	b = appendString(b, string(role))
	if m.Role == model.ToolRole {
		b = append(b, `,"tool_call_id":`...)
		b = appendString(b, m.CallID)
	}
	b = append(b, `,"content":`...)
	switch {
	case m.Role == model.User && len(m.Images) > 0:
		b = append(b, '[')
		if m.Text != "" {
			b = append(b, `{"type":"text","text":`...)
			b = appendString(b, m.Text)
			b = append(b, `},`...)
		}
		b = appendImages(b, m.Images)
		b = append(b, ']')
	case m.Role == model.Assistant && m.Text == "" && len(m.Calls) > 0:
		b = append(b, `null`...)
	default:
		b = appendString(b, m.Text)
	}
	if m.Role == model.Assistant && m.Reasoning != "" && reasoningField != "" {
		b = append(b, ',')
		b = appendString(b, reasoningField)
		b = append(b, ':')
		b = appendString(b, m.Reasoning)
	}
	if len(m.Calls) > 0 {
		b = append(b, `,"tool_calls":[`...)
		for i := range m.Calls {
			if i > 0 {
				b = append(b, ',')
			}
			c := &m.Calls[i]
			b = append(b, `{"id":`...)
			b = appendString(b, c.ID)
			b = append(b, `,"type":"function","function":{"name":`...)
			b = appendString(b, c.Name)
			b = append(b, `,"arguments":`...)
			if c.Arguments == "" {
				b = append(b, `"{}"`...) // strict servers refuse an empty text
			} else {
				b = appendString(b, c.Arguments)
			}
			b = append(b, `}}`...)
		}
		b = append(b, ']')
	}
	return append(b, '}')
}

func appendPictures(b []byte, images []model.Image) []byte {
	b = append(b, `{"role":"user","content":[`...)
	b = appendImages(b, images)
	return append(b, `]}`...)
}

func appendImages(b []byte, images []model.Image) []byte {
	for i := range images {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"type":"image_url","image_url":{"url":"data:`...)
		b = appendEscaped(b, images[i].MIMEType)
		b = append(b, `;base64,`...)
		b = appendEscaped(b, images[i].Data)
		b = append(b, `"}}`...)
	}
	return b
}

func appendTool(b []byte, t *model.ToolDef) []byte {
	b = append(b, `{"type":"function","function":{"name":`...)
	b = appendString(b, t.Name)
	if t.Description != "" {
		b = append(b, `,"description":`...)
		b = appendString(b, t.Description)
	}
	b = append(b, `,"parameters":`...)
	if len(t.Parameters) == 0 || !json.Valid(t.Parameters) {
		b = append(b, emptySchema...)
	} else {
		b = append(b, t.Parameters...)
	}
	return append(b, `}}`...)
}

func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	b = appendEscaped(b, s)
	return append(b, '"')
}

// plainByte tells the bytes that stand for themselves.
var plainByte = func() (t [256]bool) {
	for c := ' '; c < utf8.RuneSelf; c++ {
		t[c] = c != '"' && c != '\\'
	}
	return t
}()

const hex = "0123456789abcdef"

// appendEscaped escapes what JSON requires and nothing else; bytes that are not
// UTF-8 become U+FFFD.
func appendEscaped(b []byte, s string) []byte {
	from := 0
	for i := 0; i < len(s); {
		for i < len(s) && plainByte[s[i]] {
			i++
		}
		if i == len(s) {
			break
		}
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r != utf8.RuneError || n != 1 {
				i += n
				continue
			}
			b = append(b, s[from:i]...)
			b = append(b, "\uFFFD"...)
			i++
			from = i
			continue
		}
		b = append(b, s[from:i]...)
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		case '\t':
			b = append(b, '\\', 't')
		default:
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		i++
		from = i
	}
	return append(b, s[from:]...)
}

// requestSize is about the size of the body, to allocate once.
func requestSize(req *model.Request) int {
	n := 256
	for i := range req.Messages {
		m := &req.Messages[i]
		n += 96 + len(m.Text) + len(m.Text)/16 + len(m.Reasoning)
		for _, c := range m.Calls {
			n += 112 + len(c.Arguments) + len(c.Arguments)/4
		}
		for _, im := range m.Images {
			n += 96 + len(im.Data)
		}
	}
	for i := range req.Tools {
		n += 96 + len(req.Tools[i].Description) + len(req.Tools[i].Parameters)
	}
	return n
}

// DecodeRequest reads a body that [AppendRequest], or any client of the wire,
// wrote. It is for servers: tests, and the scripted endpoint. Parts of a message
// that a [model.Message] cannot hold are dropped.
func DecodeRequest(body []byte) (*model.Request, error) {
	var w struct {
		Model           string `json:"model"`
		Stream          bool   `json:"stream"`
		ReasoningEffort string `json:"reasoning_effort"`
		Messages        []struct {
			Role       model.Role      `json:"role"`
			Content    json.RawMessage `json:"content"`
			ToolCallID string          `json:"tool_call_id"`
			ToolCalls  []struct {
				ID       string `json:"id"`
				Function struct {
					Name      string `json:"name"`
					Arguments string `json:"arguments"`
				} `json:"function"`
			} `json:"tool_calls"`
		} `json:"messages"`
		Tools []struct {
			Function struct {
				Name        string          `json:"name"`
				Description string          `json:"description"`
				Parameters  json.RawMessage `json:"parameters"`
			} `json:"function"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(body, &w); err != nil {
		return nil, err
	}
	req := &model.Request{Model: w.Model, Stream: w.Stream, ReasoningEffort: w.ReasoningEffort}
	for _, m := range w.Messages {
		out := model.Message{Role: m.Role, CallID: m.ToolCallID}
		if err := decodeContent(m.Content, &out); err != nil {
			return nil, err
		}
		for _, c := range m.ToolCalls {
			out.Calls = append(out.Calls, model.Call{ID: c.ID, Name: c.Function.Name, Arguments: c.Function.Arguments})
		}
		req.Messages = append(req.Messages, out)
	}
	for _, t := range w.Tools {
		req.Tools = append(req.Tools, model.ToolDef{Name: t.Function.Name, Description: t.Function.Description, Parameters: t.Function.Parameters})
	}
	return req, nil
}

func decodeContent(raw json.RawMessage, out *model.Message) error {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	if raw[0] == '"' {
		return json.Unmarshal(raw, &out.Text)
	}
	var parts []struct {
		Type     string `json:"type"`
		Text     string `json:"text"`
		ImageURL struct {
			URL string `json:"url"`
		} `json:"image_url"`
	}
	if err := json.Unmarshal(raw, &parts); err != nil {
		return err
	}
	for _, p := range parts {
		switch p.Type {
		case "text":
			if out.Text != "" {
				out.Text += "\n"
			}
			out.Text += p.Text
		case "image_url":
			out.Images = append(out.Images, dataURL(p.ImageURL.URL))
		}
	}
	return nil
}

// dataURL takes a data URL apart; of another URL the address stays as the data.
func dataURL(s string) model.Image {
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
