package anthropic

import (
	"encoding/json"

	"github.com/transom-run/transom/model"
)

// DecodeRequest reads a body that [AppendRequest], or any client of the wire,
// wrote. It is for servers: tests, and the scripted endpoint. Blocks of text of
// one user message that follow one another become user messages of their own; the
// thinking of an assistant message stands in ReasoningOpaque. What a
// [model.Message] cannot hold is dropped.
func DecodeRequest(body []byte) (*model.Request, error) {
	var w struct {
		Model    string          `json:"model"`
		System   json.RawMessage `json:"system"`
		Stream   bool            `json:"stream"`
		Messages []struct {
			Role    model.Role      `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
		Tools []struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			Schema      json.RawMessage `json:"input_schema"`
		} `json:"tools"`
		Output struct {
			Effort string `json:"effort"`
		} `json:"output_config"`
	}
	if err := json.Unmarshal(body, &w); err != nil {
		return nil, err
	}
	req := &model.Request{Model: w.Model, Stream: w.Stream, ReasoningEffort: w.Output.Effort}
	if blocks, err := decodeBlocks(w.System); err != nil {
		return nil, err
	} else if len(blocks) > 0 {
		m := model.Message{Role: model.System}
		for i, b := range blocks {
			if i > 0 {
				m.Text += "\n"
			}
			m.Text += b.Text
		}
		req.Messages = append(req.Messages, m)
	}
	for _, m := range w.Messages {
		blocks, err := decodeBlocks(m.Content)
		if err != nil {
			return nil, err
		}
		if m.Role == model.Assistant {
			req.Messages = append(req.Messages, decodeAssistant(blocks))
		} else {
			req.Messages = append(req.Messages, decodeUser(blocks)...)
		}
	}
	for _, t := range w.Tools {
		req.Tools = append(req.Tools, model.ToolDef{Name: t.Name, Description: t.Description, Parameters: t.Schema})
	}
	return req, nil
}

// requestBlock is a block of a request's message.
type requestBlock struct {
	Type    string          `json:"type"`
	Text    string          `json:"text"`
	ID      string          `json:"id"`
	Name    string          `json:"name"`
	Input   json.RawMessage `json:"input"`
	CallID  string          `json:"tool_use_id"`
	Content json.RawMessage `json:"content"`
	Title   string          `json:"title"`
	Source  struct {
		MediaType string `json:"media_type"`
		Data      string `json:"data"`
	} `json:"source"`

	raw json.RawMessage
}

// decodeBlocks reads content: a text, a list of blocks, or nothing.
func decodeBlocks(raw json.RawMessage) ([]requestBlock, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return []requestBlock{{Type: "text", Text: text}}, nil
	}
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, err
	}
	blocks := make([]requestBlock, len(list))
	for i, r := range list {
		if err := json.Unmarshal(r, &blocks[i]); err != nil {
			return nil, err
		}
		blocks[i].raw = r
	}
	return blocks, nil
}

func decodeAssistant(blocks []requestBlock) model.Message {
	m := model.Message{Role: model.Assistant}
	for _, b := range blocks {
		switch b.Type {
		case "text":
			m.Text += b.Text
		case "tool_use":
			m.Calls = append(m.Calls, model.Call{ID: b.ID, Name: b.Name, Arguments: string(b.Input)})
		case "thinking", "redacted_thinking":
			if m.ReasoningOpaque == "" {
				m.ReasoningOpaque = "[" + string(b.raw) + "]"
			} else {
				m.ReasoningOpaque = m.ReasoningOpaque[:len(m.ReasoningOpaque)-1] + "," + string(b.raw) + "]"
			}
		}
	}
	return m
}

// decodeUser takes a user message apart: results of tools, and texts with what
// belongs to them. Pictures follow their text, documents go before it.
func decodeUser(blocks []requestBlock) []model.Message {
	var out []model.Message
	var docs []model.Document
	user := func() *model.Message {
		out = append(out, model.Message{Role: model.User, Documents: docs})
		docs = nil
		return &out[len(out)-1]
	}
	for _, b := range blocks {
		switch b.Type {
		case "text":
			user().Text = b.Text
		case "image":
			m := (*model.Message)(nil)
			if n := len(out); n > 0 && out[n-1].Role == model.User {
				m = &out[n-1]
			} else {
				m = user()
			}
			m.Images = append(m.Images, model.Image{MIMEType: b.Source.MediaType, Data: b.Source.Data})
		case "document":
			docs = append(docs, model.Document{Title: b.Title, MIMEType: b.Source.MediaType, Data: b.Source.Data})
		case "tool_result":
			m := model.Message{Role: model.ToolRole, CallID: b.CallID}
			inner, _ := decodeBlocks(b.Content)
			for _, c := range inner {
				if c.Type == "image" {
					m.Images = append(m.Images, model.Image{MIMEType: c.Source.MediaType, Data: c.Source.Data})
				}
				m.Text += c.Text
			}
			out = append(out, m)
		}
	}
	if docs != nil {
		user()
	}
	return out
}
