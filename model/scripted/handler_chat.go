package scripted

import (
	"time"

	"github.com/transom-run/transom/model"
)

type wireCall struct {
	Index    *int         `json:"index,omitempty"`
	ID       string       `json:"id,omitempty"`
	Type     string       `json:"type,omitempty"`
	Function wireFunction `json:"function"`
}

type wireFunction struct {
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments"`
}

type wireMessage struct {
	Role      string     `json:"role,omitempty"`
	Content   *string    `json:"content,omitempty"`
	Reasoning string     `json:"reasoning_content,omitempty"`
	Refusal   string     `json:"refusal,omitempty"`
	ToolCalls []wireCall `json:"tool_calls,omitempty"`
}

type wireChoice struct {
	Index   int          `json:"index"`
	Delta   *wireMessage `json:"delta,omitempty"`
	Message *wireMessage `json:"message,omitempty"`
	Finish  *string      `json:"finish_reason"`
}

type wireUsage struct {
	Prompt     int            `json:"prompt_tokens"`
	Completion int            `json:"completion_tokens"`
	Total      int            `json:"total_tokens"`
	In         map[string]int `json:"prompt_tokens_details,omitempty"`
	Out        map[string]int `json:"completion_tokens_details,omitempty"`
}

type wireAnswer struct {
	ID      string       `json:"id"`
	Object  string       `json:"object"`
	Created int64        `json:"created"`
	Model   string       `json:"model"`
	Choices []wireChoice `json:"choices"`
	Usage   *wireUsage   `json:"usage,omitempty"`
}

func toWireUsage(u *model.Usage) *wireUsage {
	if u == nil {
		return nil
	}
	return &wireUsage{u.InputTokens, u.OutputTokens, u.InputTokens + u.OutputTokens,
		map[string]int{"cached_tokens": u.CacheReadTokens, "cache_write_tokens": u.CacheWriteTokens},
		map[string]int{"reasoning_tokens": u.ReasoningTokens}}
}

// wholeChat answers with every message of the plan as a choice.
func wholeChat(p *Provider, pl *plan) any {
	a := wireAnswer{ID: pl.id, Object: "chat.completion", Created: time.Now().Unix(), Model: pl.model}
	for i := range pl.answer {
		m := &pl.answer[i]
		msg := &wireMessage{Role: "assistant", Reasoning: m.Reasoning, Refusal: m.Refusal}
		if m.Content != "" || len(m.ToolCalls) == 0 && m.Refusal == "" {
			msg.Content = &m.Content
		}
		for _, c := range m.ToolCalls {
			msg.ToolCalls = append(msg.ToolCalls, wireCall{ID: orID(c.ID, p), Type: "function", Function: wireFunction{c.Name, c.Arguments}})
		}
		finish := m.FinishReason()
		a.Choices = append(a.Choices, wireChoice{Index: i, Message: msg, Finish: &finish})
		if m.Usage != nil {
			a.Usage = toWireUsage(m.Usage)
		}
	}
	return a
}

// chatEvents is a stream of chat completions.
type chatEvents struct {
	answer wireAnswer // but for its choices
	begun  bool
}

func streamChat(pl *plan) events {
	return &chatEvents{answer: wireAnswer{ID: pl.id, Object: "chat.completion.chunk", Created: time.Now().Unix(), Model: pl.model}}
}

// chunk writes usage as an event of its own.
func (e *chatEvents) chunk(c model.Chunk) []event {
	d := &wireMessage{Reasoning: c.Reasoning}
	if !e.begun {
		d.Role, e.begun = "assistant", true
	}
	if c.Text != "" {
		d.Content = &c.Text
	}
	if c.Call != nil {
		call := wireCall{Index: &c.Call.Index, ID: c.Call.ID, Function: wireFunction{c.Call.Name, c.Call.Arguments}}
		if call.ID != "" {
			call.Type = "function"
		}
		d.ToolCalls = []wireCall{call}
	}
	choice := wireChoice{Delta: d}
	if c.Finish != "" {
		choice.Finish = &c.Finish
	}
	a := e.answer
	a.Choices = []wireChoice{choice}
	list := []event{{data: a}}
	if c.Usage != nil {
		a.Choices, a.Usage = []wireChoice{}, toWireUsage(c.Usage)
		list = append(list, event{data: a})
	}
	return list
}

func (e *chatEvents) end() []event { return []event{{data: "[DONE]"}} }
