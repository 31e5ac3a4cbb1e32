package responses

import (
	"encoding/json"

	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/model/internal/wire"
)

// DecodeRequest reads a body that [AppendRequest], or any client of the wire,
// wrote. It is for servers: tests, and the scripted endpoint. Items of the
// assistant that follow one another are one message; its reasoning items stand in
// EncryptedContent. What a [model.Message] cannot hold is dropped.
func DecodeRequest(body []byte) (*model.Request, error) {
	var w struct {
		Model        string          `json:"model"`
		Instructions string          `json:"instructions"`
		Input        json.RawMessage `json:"input"`
		Stream       bool            `json:"stream"`
		Reasoning    struct {
			Effort  string `json:"effort"`
			Summary string `json:"summary"`
		} `json:"reasoning"`
		Tools []struct {
			Type        string          `json:"type"`
			Name        string          `json:"name"`
			Description string          `json:"description"`
			Parameters  json.RawMessage `json:"parameters"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(body, &w); err != nil {
		return nil, err
	}
	req := &model.Request{Model: w.Model, Stream: w.Stream, ReasoningEffort: w.Reasoning.Effort, ReasoningSummary: w.Reasoning.Summary}
	if w.Instructions != "" {
		req.Messages = append(req.Messages, model.Message{Role: model.System, Text: w.Instructions})
	}
	for _, t := range w.Tools {
		if t.Type == "function" {
			req.Tools = append(req.Tools, model.ToolDef{Name: t.Name, Description: t.Description, Parameters: t.Parameters})
		}
	}
	var text string
	if json.Unmarshal(w.Input, &text) == nil {
		req.Messages = append(req.Messages, model.Message{Role: model.User, Text: text})
		return req, nil
	}
	var items []json.RawMessage
	if err := json.Unmarshal(w.Input, &items); err != nil {
		return nil, err
	}
	for _, raw := range items {
		if err := decodeItem(raw, req); err != nil {
			return nil, err
		}
	}
	return req, nil
}

// assistant returns the assistant message at the end, and begins one where there
// is none.
func assistant(req *model.Request) *model.Message {
	if n := len(req.Messages); n == 0 || req.Messages[n-1].Role != model.Assistant {
		req.Messages = append(req.Messages, model.Message{Role: model.Assistant})
	}
	return &req.Messages[len(req.Messages)-1]
}

func decodeItem(raw json.RawMessage, req *model.Request) error {
	var it struct {
		Type      string          `json:"type"`
		Role      model.Role      `json:"role"`
		Content   json.RawMessage `json:"content"`
		ID        string          `json:"id"`
		CallID    string          `json:"call_id"`
		Name      string          `json:"name"`
		Arguments string          `json:"arguments"`
		Output    json.RawMessage `json:"output"`
	}
	if err := json.Unmarshal(raw, &it); err != nil {
		return err
	}
	switch {
	case it.Type == "function_call":
		if it.CallID == "" {
			it.CallID = it.ID
		}
		m := assistant(req)
		m.Calls = append(m.Calls, model.Call{ID: it.CallID, Name: it.Name, Arguments: it.Arguments})
	case it.Type == "function_call_output":
		m := model.Message{Role: model.ToolRole, CallID: it.CallID}
		decodeContent(it.Output, &m)
		req.Messages = append(req.Messages, m)
	case it.Type == "reasoning":
		m := assistant(req)
		if m.EncryptedContent == "" {
			m.EncryptedContent = "[" + string(raw) + "]"
		} else {
			m.EncryptedContent = m.EncryptedContent[:len(m.EncryptedContent)-1] + "," + string(raw) + "]"
		}
	case it.Role == model.Assistant:
		decodeContent(it.Content, assistant(req))
	case it.Role != "":
		m := model.Message{Role: it.Role}
		decodeContent(it.Content, &m)
		req.Messages = append(req.Messages, m)
	}
	return nil
}

func decodeContent(raw json.RawMessage, m *model.Message) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		m.Text += text
		return
	}
	var parts []struct {
		Type     string `json:"type"`
		Text     string `json:"text"`
		ImageURL string `json:"image_url"`
		FileName string `json:"filename"`
		FileData string `json:"file_data"`
	}
	if json.Unmarshal(raw, &parts) != nil {
		return
	}
	for _, p := range parts {
		switch p.Type {
		case "input_image":
			m.Images = append(m.Images, wire.DataURL(p.ImageURL))
		case "input_file":
			f := wire.DataURL(p.FileData)
			m.Documents = append(m.Documents, model.Document{Title: p.FileName, MIMEType: f.MIMEType, Data: f.Data})
		default:
			m.Text += p.Text
		}
	}
}
