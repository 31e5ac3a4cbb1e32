package window

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/transom-run/transom/model"
)

// shortest is the length in bytes to which [Shorten] cuts texts at most.
const shortest = 256

// Shorten makes messages of about so many tokens of a window that is too large, for
// a summary of it: pictures, documents and reasoning go, the longest texts lose
// their middle, and only where that is not enough the oldest messages go. Calls
// keep their results. The system message stays as it is, and is not counted.
func Shorten(messages []model.Message, tokens int) []model.Message {
	system := messages[:0:0]
	for len(messages) > 0 && messages[0].Role == model.System {
		system, messages = append(system, messages[0]), messages[1:]
	}
	limit := 0
	for i := range messages {
		limit = max(limit, len(messages[i].Text))
		for _, c := range messages[i].Calls {
			limit = max(limit, len(c.Arguments))
		}
	}
	out := clipped(messages, limit)
	for limit > shortest && size(out) > tokens {
		limit = max(limit/2, shortest)
		out = clipped(messages, limit)
	}
	for size(out) > tokens {
		// A conversation begins with a user's message.
		next := 1
		for next < len(out) && out[next].Role != model.User {
			next++
		}
		if next >= len(out) {
			break
		}
		out = out[next:]
	}
	return append(system, out...)
}

func size(messages []model.Message) (n int) {
	for i := range messages {
		n += model.EstimateMessage(&messages[i])
	}
	return n
}

// clipped copies messages with texts of at most so many bytes.
func clipped(messages []model.Message, limit int) []model.Message {
	out := make([]model.Message, len(messages))
	for i, m := range messages {
		m.Text = clip(m.Text, limit)
		if n := len(m.Images) + len(m.Documents); n > 0 {
			m.Text = strings.TrimLeft(m.Text+fmt.Sprintf("\n(%d pictures and documents are left out here.)", n), "\n")
		}
		m.Images, m.Documents = nil, nil
		m.Reasoning, m.ReasoningField, m.ReasoningOpaque, m.EncryptedContent = "", "", "", ""
		if len(m.Calls) > 0 {
			calls := make([]model.Call, len(m.Calls))
			for k, c := range m.Calls {
				if len(c.Arguments) > limit {
					short, _ := json.Marshal(map[string]string{"shortened": clip(c.Arguments, limit)}) // strings always encode
					c.Arguments = string(short)
				}
				calls[k] = c
			}
			m.Calls = calls
		}
		out[i] = m
	}
	return out
}

// clip leaves out the middle of a text.
func clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	head, tail := limit*2/3, limit/3
	left := len(s) - head - tail
	return strings.ToValidUTF8(s[:head], "") + fmt.Sprintf("\n[%d bytes are left out here]\n", left) + strings.ToValidUTF8(s[len(s)-tail:], "")
}
