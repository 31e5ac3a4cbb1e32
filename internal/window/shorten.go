package window

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/transom-run/transom/model"
)

// shortest is the length in bytes to which [Shorten] cuts texts at most.
const shortest = 256

// Shorten makes messages of about so many tokens of a window that is too large, for
// a summary of it: pictures, documents and reasoning go, the longest texts lose
// their middle, and only where that is not enough the oldest messages go, up to a
// single one. Calls keep their results. What an earlier summary tells of all that
// was before stays, in half of the room at most. The system message stays as it is,
// and is not counted.
func Shorten(messages []model.Message, tokens int) []model.Message {
	system := messages[:0:0]
	for len(messages) > 0 && messages[0].Role == model.System {
		system, messages = append(system, messages[0]), messages[1:]
	}
	if len(messages) > 0 {
		if told, ok := retold(messages[0].Text, max(tokens/2, shortest/4)); ok {
			system, messages = append(system, model.Message{Role: model.User, Text: told}), messages[1:]
			tokens -= model.EstimateMessage(&system[len(system)-1])
		}
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
	return append(system, newest(out, tokens)...)
}

// retold is what a digest tells in so many tokens, without the prompts: a new one
// repeats them by itself.
func retold(text string, tokens int) (string, bool) {
	if !strings.HasPrefix(text, digestHead) {
		return "", false
	}
	_, told, ok := strings.Cut(text, digestText)
	if !ok {
		return "", false
	}
	d := digest{text: clipTokens(strings.TrimSuffix(told, digestEnd), tokens)}
	return d.String(), true
}

// newest leaves out the oldest messages, so that those that stay are of so many
// tokens at most: up to the newest message of a user, which stays, and then the
// answers behind it with the results of their calls.
func newest(out []model.Message, tokens int) []model.Message {
	have, first := size(out), 0
	for have > tokens {
		next := first + 1
		for next < len(out) && out[next].Role != model.User {
			next++
		}
		if next >= len(out) {
			break
		}
		have -= size(out[first:next])
		first = next
	}
	said := first
	if said < len(out) && out[said].Role == model.User {
		said++
	}
	end := said
	for have > tokens && end < len(out) {
		next := end + 1
		for next < len(out) && out[next].Role == model.ToolRole {
			next++
		}
		have -= size(out[end:next])
		end = next
	}
	return slices.Concat(out[first:said], out[end:])
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
