package openai

import (
	"encoding/json"
	"strconv"

	"github.com/transom-run/transom/internal/jsonstring"
	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/model/internal/wire"
)

// Encoding says how a server wants requests written.
type Encoding struct {
	// Model is the name to send; empty: the request's.
	Model string
	// ReasoningField is Config.ReasoningField.
	ReasoningField string
	// MaxTokens bounds the answer, under the name MaxTokensField; 0: nothing is
	// said.
	MaxTokens      int
	MaxTokensField string
}

// AppendRequest appends the body of a request. The same request gives the same
// bytes: tools in their order, nothing from maps.
func AppendRequest(b []byte, req *model.Request, enc Encoding) []byte {
	name := enc.Model
	if name == "" {
		name = req.Model
	}
	b = append(b, `{"model":`...)
	b = jsonstring.Append(b, name)
	b = append(b, `,"messages":[`...)
	b = appendMessages(b, req.Messages, enc.ReasoningField)
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
		b = jsonstring.Append(b, req.ReasoningEffort)
	}
	if enc.MaxTokens > 0 {
		b = append(b, ',')
		b = jsonstring.Append(b, enc.MaxTokensField)
		b = append(b, ':')
		b = strconv.AppendInt(b, int64(enc.MaxTokens), 10)
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
	n := wire.Instructions(msgs)
	start := len(b)
	if n > 0 {
		b = append(b, `{"role":"system","content":"`...)
		b = wire.AppendJoined(b, msgs[:n])
		b = append(b, `"}`...)
	}
	var pictures []model.Image
	for i := n; i < len(msgs); i++ {
		m := &msgs[i]
		if len(pictures) > 0 && m.Role != model.ToolRole {
			b = appendPictures(wire.Comma(b, start), pictures)
			pictures = nil
		}
		b = appendMessage(wire.Comma(b, start), m, reasoningField)
		if m.Role == model.ToolRole {
			pictures = append(pictures, m.Images...)
		}
	}
	if len(pictures) > 0 {
		b = appendPictures(wire.Comma(b, start), pictures)
	}
	return b
}

func appendMessage(b []byte, m *model.Message, reasoningField string) []byte {
	role := m.Role
	if role == model.Developer {
		role = model.System
	}
	b = append(b, `{"role":`...)
	b = jsonstring.Append(b, string(role))
	if m.Role == model.ToolRole {
		b = append(b, `,"tool_call_id":`...)
		b = jsonstring.Append(b, m.CallID)
	}
	b = append(b, `,"content":`...)
	switch {
	case m.Role == model.User && len(m.Images)+len(m.Documents) > 0:
		b = append(b, '[')
		b = appendDocuments(b, m.Documents)
		if m.Text != "" {
			b = append(b, `{"type":"text","text":`...)
			b = jsonstring.Append(b, m.Text)
			b = append(b, `},`...)
		}
		b = appendImages(b, m.Images)
		if b[len(b)-1] == ',' {
			b = b[:len(b)-1]
		}
		b = append(b, ']')
	case m.Role == model.Assistant && m.Text == "" && len(m.Calls) > 0:
		b = append(b, `null`...)
	default:
		b = jsonstring.Append(b, m.Text)
	}
	if m.Role == model.Assistant {
		b = appendReasoning(b, m, reasoningField)
	}
	if len(m.Calls) > 0 {
		b = append(b, `,"tool_calls":[`...)
		for i := range m.Calls {
			if i > 0 {
				b = append(b, ',')
			}
			c := &m.Calls[i]
			b = append(b, `{"id":`...)
			b = jsonstring.Append(b, c.ID)
			b = append(b, `,"type":"function","function":{"name":`...)
			b = jsonstring.Append(b, c.Name)
			b = append(b, `,"arguments":`...)
			if c.Arguments == "" {
				b = append(b, `"{}"`...) // strict servers refuse an empty text
			} else {
				b = jsonstring.Append(b, c.Arguments)
			}
			b = append(b, `}}`...)
		}
		b = append(b, ']')
	}
	return append(b, '}')
}

// appendReasoning sends reasoning back in the field in which it came, unless the
// settings name one. An opaque part that is JSON is another wire's.
func appendReasoning(b []byte, m *model.Message, field string) []byte {
	if field == "" {
		field = m.ReasoningField
	}
	if m.Reasoning != "" && field != "" {
		b = append(b, ',')
		b = jsonstring.Append(b, field)
		b = append(b, ':')
		b = jsonstring.Append(b, m.Reasoning)
	}
	if o := m.ReasoningOpaque; o != "" && o[0] != '[' {
		b = append(b, `,"reasoning_opaque":`...)
		b = jsonstring.Append(b, o)
	}
	return b
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
		if images[i].Name != "" {
			b = append(b, `{"type":"text","text":`...)
			b = jsonstring.Append(b, images[i].Name)
			b = append(b, `},`...)
		}
		b = append(b, `{"type":"image_url","image_url":{"url":"data:`...)
		b = jsonstring.AppendEscaped(b, images[i].MIMEType)
		b = append(b, `;base64,`...)
		b = jsonstring.AppendEscaped(b, images[i].Data)
		b = append(b, `"}}`...)
	}
	return b
}

// appendDocuments leaves a comma at its end.
func appendDocuments(b []byte, docs []model.Document) []byte {
	for i := range docs {
		b = append(b, `{"type":"file","file":{"filename":`...)
		b = jsonstring.Append(b, docs[i].Title)
		b = append(b, `,"file_data":"data:`...)
		b = jsonstring.AppendEscaped(b, docs[i].MIMEType)
		b = append(b, `;base64,`...)
		b = jsonstring.AppendEscaped(b, docs[i].Data)
		b = append(b, `"}},`...)
	}
	return b
}

func appendTool(b []byte, t *model.ToolDef) []byte {
	b = append(b, `{"type":"function","function":{"name":`...)
	b = jsonstring.Append(b, t.Name)
	if t.Description != "" {
		b = append(b, `,"description":`...)
		b = jsonstring.Append(b, t.Description)
	}
	b = append(b, `,"parameters":`...)
	b = wire.AppendSchema(b, t.Parameters)
	return append(b, `}}`...)
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
			out.Images = append(out.Images, wire.DataURL(p.ImageURL.URL))
		}
	}
	return nil
}
