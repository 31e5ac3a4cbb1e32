package responses

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
	// Encrypted asks for the reasoning in encrypted form.
	Encrypted bool
	// MaxTokens bounds the answer; 0: nothing is said.
	MaxTokens int
	// Message makes it the message response.create of a WebSocket, whose answer is
	// always streamed.
	Message bool
}

// AppendRequest appends the body of a request. The same request gives the same
// bytes: tools in their order, nothing from maps.
func AppendRequest(b []byte, req *model.Request, enc Encoding) []byte {
	name := enc.Model
	if name == "" {
		name = req.Model
	}
	b = append(b, '{')
	if enc.Message {
		b = append(b, `"type":"response.create",`...)
	}
	b = append(b, `"model":`...)
	b = jsonstring.Append(b, name)
	n := wire.Instructions(req.Messages)
	if n > 0 {
		b = append(b, `,"instructions":"`...)
		b = wire.AppendJoined(b, req.Messages[:n])
		b = append(b, '"')
	}
	b = append(b, `,"input":[`...)
	b = appendInput(b, req.Messages[n:])
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
	b = appendReasoning(b, req)
	if enc.Encrypted {
		b = append(b, `,"include":["reasoning.encrypted_content"]`...)
	}
	if enc.MaxTokens > 0 {
		b = append(b, `,"max_output_tokens":`...)
		b = strconv.AppendInt(b, int64(enc.MaxTokens), 10)
	}
	b = append(b, `,"store":false`...)
	if req.Stream && !enc.Message {
		b = append(b, `,"stream":true`...)
	}
	return append(b, '}')
}

func appendReasoning(b []byte, req *model.Request) []byte {
	if req.ReasoningEffort == "" && req.ReasoningSummary == "" {
		return b
	}
	b = append(b, `,"reasoning":{`...)
	if req.ReasoningEffort != "" {
		b = append(b, `"effort":`...)
		b = jsonstring.Append(b, req.ReasoningEffort)
	}
	if req.ReasoningSummary != "" && req.ReasoningSummary != "none" {
		if req.ReasoningEffort != "" {
			b = append(b, ',')
		}
		b = append(b, `"summary":`...)
		b = jsonstring.Append(b, req.ReasoningSummary)
	}
	return append(b, '}')
}

// appendInput writes the conversation as items. Pictures of tool results follow
// the results of their batch as a user message, as in chat completions.
func appendInput(b []byte, msgs []model.Message) []byte {
	start := len(b)
	var pictures []model.Image
	for i := range msgs {
		m := &msgs[i]
		if len(pictures) > 0 && m.Role != model.ToolRole {
			b = appendUser(wire.Comma(b, start), &model.Message{Role: model.User, Images: pictures})
			pictures = nil
		}
		switch m.Role {
		case model.Assistant:
			b = appendAssistant(b, m, start)
		case model.ToolRole:
			b = append(wire.Comma(b, start), `{"type":"function_call_output","call_id":`...)
			b = jsonstring.Append(b, m.CallID)
			b = append(b, `,"output":`...)
			b = jsonstring.Append(b, m.Text)
			b = append(b, '}')
			pictures = append(pictures, m.Images...)
		default:
			b = appendUser(wire.Comma(b, start), m)
		}
	}
	if len(pictures) > 0 {
		b = appendUser(wire.Comma(b, start), &model.Message{Role: model.User, Images: pictures})
	}
	return b
}

func appendUser(b []byte, m *model.Message) []byte {
	b = append(b, `{"type":"message","role":`...)
	b = jsonstring.Append(b, string(m.Role))
	b = append(b, `,"content":`...)
	if len(m.Images)+len(m.Documents) == 0 {
		b = jsonstring.Append(b, m.Text)
		return append(b, '}')
	}
	b = append(b, '[')
	start := len(b)
	for i := range m.Documents {
		d := &m.Documents[i]
		b = append(wire.Comma(b, start), `{"type":"input_file","filename":`...)
		b = jsonstring.Append(b, d.Title)
		b = append(b, `,"file_data":"data:`...)
		b = jsonstring.AppendEscaped(b, d.MIMEType)
		b = append(b, `;base64,`...)
		b = jsonstring.AppendEscaped(b, d.Data)
		b = append(b, `"}`...)
	}
	if m.Text != "" {
		b = append(wire.Comma(b, start), `{"type":"input_text","text":`...)
		b = jsonstring.Append(b, m.Text)
		b = append(b, '}')
	}
	for i := range m.Images {
		if name := m.Images[i].Name; name != "" {
			b = append(wire.Comma(b, start), `{"type":"input_text","text":`...)
			b = jsonstring.Append(b, name)
			b = append(b, '}')
		}
		b = append(wire.Comma(b, start), `{"type":"input_image","image_url":"data:`...)
		b = jsonstring.AppendEscaped(b, m.Images[i].MIMEType)
		b = append(b, `;base64,`...)
		b = jsonstring.AppendEscaped(b, m.Images[i].Data)
		b = append(b, `","detail":"auto"}`...)
	}
	return append(b, `]}`...)
}

// appendAssistant writes reasoning, text and calls in the order in which the
// model wrote them, as far as that is known: a reasoning item must stand directly
// before what it led to.
func appendAssistant(b []byte, m *model.Message, start int) []byte {
	text := m.Text != ""
	var sent []bool
	if m.EncryptedContent != "" {
		var order []json.RawMessage
		if json.Unmarshal([]byte(m.EncryptedContent), &order) == nil {
			sent = make([]bool, len(m.Calls))
			for _, e := range order {
				n, err := strconv.Atoi(string(e))
				switch {
				case e[0] == '{':
					b = append(wire.Comma(b, start), e...)
				case e[0] == '"' && text:
					b, text = appendText(wire.Comma(b, start), m.Text), false
				case err == nil && n >= 0 && n < len(sent) && !sent[n]:
					b, sent[n] = appendCall(wire.Comma(b, start), &m.Calls[n]), true
				}
			}
		}
	}
	if text {
		b = appendText(wire.Comma(b, start), m.Text)
	}
	for i := range m.Calls {
		if sent == nil || !sent[i] {
			b = appendCall(wire.Comma(b, start), &m.Calls[i])
		}
	}
	return b
}

func appendText(b []byte, text string) []byte {
	b = append(b, `{"type":"message","role":"assistant","content":`...)
	b = jsonstring.Append(b, text)
	return append(b, '}')
}

func appendCall(b []byte, c *model.Call) []byte {
	b = append(b, `{"type":"function_call","call_id":`...)
	b = jsonstring.Append(b, c.ID)
	b = append(b, `,"name":`...)
	b = jsonstring.Append(b, c.Name)
	b = append(b, `,"arguments":`...)
	if c.Arguments == "" {
		b = append(b, `"{}"`...)
	} else {
		b = jsonstring.Append(b, c.Arguments)
	}
	return append(b, '}')
}

// appendTool says strict:false, since the wire's default is true, and most
// schemas do not keep its rules.
func appendTool(b []byte, t *model.ToolDef) []byte {
	b = append(b, `{"type":"function","name":`...)
	b = jsonstring.Append(b, t.Name)
	if t.Description != "" {
		b = append(b, `,"description":`...)
		b = jsonstring.Append(b, t.Description)
	}
	b = append(b, `,"parameters":`...)
	b = wire.AppendSchema(b, t.Parameters)
	return append(b, `,"strict":false}`...)
}
