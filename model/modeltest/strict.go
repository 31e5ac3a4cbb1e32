package modeltest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// CheckResponses reports the first thing in the body of a request to responses
// about which a strict provider would refuse it, or that would tie it to an
// earlier conversation: a stored one, an id of an earlier response, a reasoning
// item that nothing follows, one without what makes it known, a call without a
// result.
func CheckResponses(body []byte) error {
	var w struct {
		Store        *bool           `json:"store"`
		Previous     json.RawMessage `json:"previous_response_id"`
		Conversation json.RawMessage `json:"conversation"`
		Input        []struct {
			Type      string          `json:"type"`
			Role      string          `json:"role"`
			CallID    string          `json:"call_id"`
			Arguments string          `json:"arguments"`
			Content   json.RawMessage `json:"content"`
			Encrypted string          `json:"encrypted_content"`
			Summary   json.RawMessage `json:"summary"`
		} `json:"input"`
	}
	if err := json.Unmarshal(body, &w); err != nil {
		return err
	}
	switch {
	case w.Previous != nil:
		return fmt.Errorf("previous_response_id %s: the request hangs on an earlier one", w.Previous)
	case w.Conversation != nil:
		return fmt.Errorf("conversation %s: the request hangs on one that the server keeps", w.Conversation)
	case w.Store == nil || *w.Store:
		return fmt.Errorf("store is not false: the server would keep the conversation")
	}
	open := map[string]bool{}
	for i, it := range w.Input {
		switch it.Type {
		case "reasoning":
			if it.Encrypted == "" && len(it.Content) == 0 || it.Summary == nil {
				return fmt.Errorf("input[%d]: a reasoning item that the server cannot know", i)
			}
			if i+1 == len(w.Input) || w.Input[i+1].Type == "function_call_output" || w.Input[i+1].Role == "user" {
				return fmt.Errorf("input[%d]: a reasoning item without the item that it led to", i)
			}
		case "function_call":
			open[it.CallID] = true
		case "function_call_output":
			if !open[it.CallID] {
				return fmt.Errorf("input[%d]: a result for call %q, which is not open", i, it.CallID)
			}
			delete(open, it.CallID)
		case "message":
		default:
			return fmt.Errorf("input[%d]: type %q", i, it.Type)
		}
	}
	for id := range open {
		return fmt.Errorf("call %q has no result", id)
	}
	return nil
}

// messageBlock is what CheckMessages looks at of a block.
type messageBlock struct {
	Type     string          `json:"type"`
	Text     string          `json:"text"`
	ID       string          `json:"id"`
	CallID   string          `json:"tool_use_id"`
	Input    json.RawMessage `json:"input"`
	Thinking *string         `json:"thinking"`
	Cache    json.RawMessage `json:"cache_control"`
}

var messageID = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

// CheckMessages reports the first thing in the body of a request to Anthropic's
// messages about which the provider would refuse it: no max_tokens, roles that do
// not take turns, a conversation that does not begin with the user, content that
// is empty, a text that is blank, results that are not first, a call without one,
// an id or an input of the wrong form, thinking after which nothing comes, more
// than four cache marks.
func CheckMessages(body []byte) error {
	var w struct {
		MaxTokens int            `json:"max_tokens"`
		System    []messageBlock `json:"system"`
		Tools     []messageBlock `json:"tools"`
		Thinking  struct {
			Budget int `json:"budget_tokens"`
		} `json:"thinking"`
		Messages []struct {
			Role    string         `json:"role"`
			Content []messageBlock `json:"content"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(body, &w); err != nil {
		return err
	}
	if w.MaxTokens < 1 || w.Thinking.Budget != 0 && (w.Thinking.Budget < 1024 || w.Thinking.Budget >= w.MaxTokens) {
		return fmt.Errorf("max_tokens %d with a budget of %d", w.MaxTokens, w.Thinking.Budget)
	}
	marks := 0
	for _, b := range append(w.System, w.Tools...) {
		if b.Cache != nil {
			marks++
		}
	}
	role := "assistant"
	var open []string
	for i, m := range w.Messages {
		if m.Role == role || m.Role != "user" && m.Role != "assistant" {
			return fmt.Errorf("messages[%d]: role %q after %q", i, m.Role, role)
		}
		role = m.Role
		if len(m.Content) == 0 {
			return fmt.Errorf("messages[%d]: no content", i)
		}
		var err error
		if open, err = checkMessage(m.Role, m.Content, open, &marks); err != nil {
			return fmt.Errorf("messages[%d]%w", i, err)
		}
	}
	switch {
	case len(open) > 0:
		return fmt.Errorf("call %q has no result", open[0])
	case marks > 4:
		return fmt.Errorf("%d cache marks; four are allowed", marks)
	}
	return nil
}

// checkMessage checks the blocks of a message; open are the calls that it must
// answer, and what it returns those that it makes.
func checkMessage(role string, blocks []messageBlock, open []string, marks *int) (calls []string, err error) {
	for k, b := range blocks {
		at := func(format string, args ...any) error {
			return fmt.Errorf(".content[%d] (%s): %s", k, b.Type, fmt.Sprintf(format, args...))
		}
		if b.Cache != nil {
			*marks++
		}
		switch b.Type {
		case "text":
			if strings.TrimSpace(b.Text) == "" {
				return nil, at("a blank text")
			}
		case "tool_use":
			if !messageID.MatchString(b.ID) || len(b.Input) == 0 || b.Input[0] != '{' {
				return nil, at("id %q, input %.40s", b.ID, b.Input)
			}
			calls = append(calls, b.ID)
			continue
		case "tool_result":
			if len(open) == 0 || open[0] != b.CallID {
				return nil, at("a result for %q where those of %q are due", b.CallID, open)
			}
			open = open[1:]
			continue
		case "thinking":
			if b.Thinking == nil || b.Cache != nil || k+1 == len(blocks) {
				return nil, at("thinking that is empty, marked, or the last block")
			}
		}
		if len(open) > 0 {
			return nil, at("results %q must come first", open)
		}
		if len(calls) > 0 && b.Type == "text" && role == "user" {
			return nil, at("calls in a user message")
		}
	}
	if len(open) > 0 {
		return nil, fmt.Errorf(": no results for %q", open)
	}
	return calls, nil
}

// isObject reports whether a text is a JSON object.
func isObject(text string) bool {
	var object map[string]json.RawMessage
	return json.Unmarshal([]byte(text), &object) == nil && object != nil
}
