package modelfile

import (
	"fmt"
	"strings"

	"github.com/transom-run/transom/model"
)

// Miss says that a file has no answer to a request, and what comes closest.
type Miss struct {
	File     string
	Model    string // asked for
	Messages int    // in the request
	Last     string // the last message, for people

	closest string
	score   int
	noted   bool
}

func (m *Miss) Error() string {
	file := m.File
	if file == "" {
		file = "the script"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s has no answer to this request (model %q, %d messages, the last: %s)", file, m.Model, m.Messages, m.Last)
	if m.noted {
		b.WriteString("; closest is ")
		b.WriteString(m.closest)
	} else {
		b.WriteString("; no rule holds for it")
	}
	return b.String()
}

// note keeps the text of the conversation that agrees with the most messages.
func (m *Miss) note(i int, c *Conversation, score int, text string) {
	if m.noted && score <= m.score {
		return
	}
	at := fmt.Sprintf("conversations[%d]", i)
	if c.Line > 0 {
		at += fmt.Sprintf(" (line %d)", c.Line)
	}
	m.closest, m.score, m.noted = at+": "+text, score, true
}

func (m *Miss) differs(i int, c *Conversation, got, want []Message, at int) {
	if m.noted && at <= m.score {
		return
	}
	if at >= len(want) {
		m.note(i, c, at, fmt.Sprintf("it has only %d messages; the request goes on with messages[%d]: %s", len(want), at, describe(&got[at])))
		return
	}
	m.note(i, c, at, fmt.Sprintf("the first difference is in messages[%d].%s", at, Diff(&got[at], &want[at])))
}

func (m *Miss) tools(i int, c *Conversation, got []model.ToolDef, at int) {
	g, w := "(nothing)", "(nothing)"
	if at < len(got) {
		g = got[at].Name
	}
	if at < len(c.Tools) {
		w = c.Tools[at]
	}
	m.note(i, c, len(c.Messages), fmt.Sprintf("the first difference is in tools[%d]:\n  request: %s\n  file:    %s", at, g, w))
}

func lastText(msgs []Message) string {
	if len(msgs) == 0 {
		return "none"
	}
	return describe(&msgs[len(msgs)-1])
}

func describe(m *Message) string {
	if m.Content == "" && len(m.ToolCalls) > 0 {
		return fmt.Sprintf("%s, calling %s", m.Role, m.ToolCalls[0].Name)
	}
	return fmt.Sprintf("%s %s", m.Role, cut(m.Content, 0))
}
