package modelfile

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/transom-run/transom/model"
)

// Matcher finds the answer of a file to a request. It is not changed by use.
type Matcher struct {
	file *File
	z    Normalizer
	// recorded holds the normal form of each conversation's messages; nil for a
	// dialogue.
	recorded [][]Message
	// groups[i][j] are the messages in the file that recorded[i][j] stands for.
	groups [][][]Message
	rules  [][]Message
}

// NewMatcher prepares a file.
func NewMatcher(f *File, z Normalizer) *Matcher {
	m := &Matcher{file: f, z: z}
	for i := range f.Conversations {
		c := &f.Conversations[i]
		if c.Messages == nil {
			m.recorded, m.groups = append(m.recorded, nil), append(m.groups, nil)
			continue
		}
		normal := z.Messages(c.Messages)
		if normal == nil {
			normal = []Message{}
		}
		m.recorded = append(m.recorded, normal)
		m.groups = append(m.groups, group(c.Messages))
	}
	for i := range f.Errors {
		m.rules = append(m.rules, z.Messages(f.Errors[i].Messages))
	}
	return m
}

// group splits messages where their normal form does.
func group(msgs []Message) [][]Message {
	var out [][]Message
	for i := 0; i < len(msgs); {
		j := i + 1
		if msgs[i].Role == model.Assistant {
			for j < len(msgs) && msgs[j].Role == model.Assistant {
				j++
			}
		}
		out = append(out, msgs[i:j])
		i = j
	}
	return out
}

// Match is the answer of a file.
type Match struct {
	// Conversation and Index say where it stands: conversation, and message (in
	// the normal form) or reply. For a Rule they are -1 and the rule.
	Conversation, Index int
	// Answer is the answer: several messages are the choices of one answer. Its
	// placeholders are expanded. Empty where Rule or Silent is set.
	Answer []Message
	// Rule is the rule that makes the request fail.
	Rule *ErrorRule
	// Silent is set where the file has the request without an answer: the model
	// never answers.
	Silent bool
}

// Find returns the answer to a request. Where accept is not nil, only places
// that it accepts count; it is asked in the terms of [Match], once for the place
// that is returned. The error is a *[Miss].
func (m *Matcher) Find(req *model.Request, accept func(conversation, index int) bool) (*Match, error) {
	msgs := m.z.Messages(FromRequest(req.Messages))
	for i := range m.file.Errors {
		rule := &m.file.Errors[i]
		if rule.Model != "" && rule.Model != req.Model {
			continue
		}
		if rule.Messages == nil || len(msgs) == len(m.rules[i]) && samePrefix(msgs, m.rules[i]) == len(msgs) {
			if accept == nil || accept(-1, i) {
				return &Match{Conversation: -1, Index: i, Rule: rule}, nil
			}
		}
	}
	miss := &Miss{File: m.file.Path, Model: req.Model, Messages: len(req.Messages), Last: lastText(msgs)}
	runs := userRuns(msgs)
	// The newest run first: an old prompt that a rule knows must not hide a new
	// one that another rule knows.
	for r := 0; r < max(1, len(runs)); r++ {
		for i := range m.file.Conversations {
			c := &m.file.Conversations[i]
			var found *Match
			switch {
			case c.When != nil && c.When.Model != "" && c.When.Model != req.Model:
			case c.Replies == nil && r == 0:
				found = m.findRecorded(i, req, msgs, accept, miss)
			case c.Replies != nil:
				found = m.findReply(i, msgs, runs, r, accept, miss)
			}
			if found != nil {
				return found, nil
			}
		}
	}
	return nil, miss
}

func (m *Matcher) findRecorded(i int, req *model.Request, msgs []Message, accept func(int, int) bool, miss *Miss) *Match {
	c, want := &m.file.Conversations[i], m.recorded[i]
	if c.When != nil && c.When.User != nil && !lastRunHolds(c.When.User, msgs) {
		return nil
	}
	same := samePrefix(msgs, want)
	if same < len(msgs) {
		miss.differs(i, c, msgs, want, same)
		return nil
	}
	if c.Tools != nil {
		if at, ok := sameTools(req.Tools, c.Tools); !ok {
			miss.tools(i, c, req.Tools, at)
			return nil
		}
	}
	if same == len(want) {
		if len(want) > 0 && want[same-1].Role == model.Assistant {
			miss.note(i, c, same, fmt.Sprintf("it ends with message %d, and the request goes on from there", same-1))
			return nil
		}
		if accept != nil && !accept(i, same) {
			return nil
		}
		return &Match{Conversation: i, Index: same, Silent: true}
	}
	if want[same].Role != model.Assistant {
		miss.note(i, c, same, fmt.Sprintf("there it has a %s message (messages[%d]) and no answer", want[same].Role, same))
		return nil
	}
	if accept != nil && !accept(i, same) {
		miss.note(i, c, same, fmt.Sprintf("its answer at messages[%d] was played already, or is not due yet", same))
		return nil
	}
	return &Match{Conversation: i, Index: same, Answer: m.expandAll(m.groups[i][same])}
}

func (m *Matcher) findReply(i int, msgs []Message, runs []run, r int, accept func(int, int) bool, miss *Miss) *Match {
	c := &m.file.Conversations[i]
	start := run{}
	if len(runs) > 0 {
		start = runs[r]
	}
	holds := c.When.User == nil && r == 0
	for _, u := range msgs[start.from:start.to] {
		if c.When.User != nil && u.Role == model.User && c.When.User.Holds(u.Content) {
			holds = true
		}
	}
	if !holds {
		return nil
	}
	index := 0
	for _, msg := range msgs[start.to:] {
		if msg.Role == model.Assistant {
			index++
		}
	}
	left := index
	for k := range c.Replies {
		times := max(c.Replies[k].Repeat, 1)
		if c.Replies[k].Repeat == Always || left < times {
			if accept != nil && !accept(i, k) {
				return nil
			}
			return &Match{Conversation: i, Index: k, Answer: m.expandAll(c.Replies[k : k+1])}
		}
		left -= times
	}
	miss.note(i, c, len(msgs), fmt.Sprintf("its rule holds (user %s), but it has only %d of the %d replies that this request needs",
		c.When.User, index-left, index+1))
	return nil
}

func (m *Matcher) expandAll(msgs []Message) []Message {
	out := make([]Message, len(msgs))
	for i := range msgs {
		out[i] = m.z.Expand(msgs[i])
	}
	return out
}

// run is a run of user messages.
type run struct{ from, to int }

// userRuns returns the runs of user messages, newest first.
func userRuns(msgs []Message) []run {
	var runs []run
	for i := len(msgs); i > 0; {
		j := i
		for j > 0 && msgs[j-1].Role == model.User {
			j--
		}
		if j < i {
			runs = append(runs, run{j, i})
			i = j
			continue
		}
		i--
	}
	return runs
}

func lastRunHolds(rule *TextRule, msgs []Message) bool {
	runs := userRuns(msgs)
	if len(runs) == 0 {
		return false
	}
	for _, u := range msgs[runs[0].from:runs[0].to] {
		if rule.Holds(u.Content) {
			return true
		}
	}
	return false
}

// samePrefix counts the messages that are equal from the start.
func samePrefix(got, want []Message) int {
	n := 0
	for n < len(got) && n < len(want) && Diff(&got[n], &want[n]) == nil {
		n++
	}
	return n
}

func sameTools(got []model.ToolDef, want []string) (int, bool) {
	for i := 0; i < len(got) || i < len(want); i++ {
		if i >= len(got) || i >= len(want) || got[i].Name != want[i] {
			return i, false
		}
	}
	return 0, true
}

// Difference is the first difference of two messages.
type Difference struct {
	Field     string // such as content or tool_calls[1].function.arguments
	Got, Want string
}

// Diff compares two messages in normal form; nil means equal. A wanted system
// message ${system} equals any.
func Diff(got, want *Message) *Difference {
	switch {
	case got.Role != want.Role:
		return &Difference{"role", string(got.Role), string(want.Role)}
	case want.Role == model.System && want.Content == SystemPlaceholder:
		return nil
	case got.Content != want.Content:
		return &Difference{"content", got.Content, want.Content}
	case got.ToolCallID != want.ToolCallID:
		return &Difference{"tool_call_id", got.ToolCallID, want.ToolCallID}
	}
	for i := 0; i < len(got.ToolCalls) || i < len(want.ToolCalls); i++ {
		at := fmt.Sprintf("tool_calls[%d]", i)
		if i >= len(got.ToolCalls) {
			return &Difference{at, "", want.ToolCalls[i].Name + " " + want.ToolCalls[i].Arguments}
		}
		if i >= len(want.ToolCalls) {
			return &Difference{at, got.ToolCalls[i].Name + " " + got.ToolCalls[i].Arguments, ""}
		}
		g, w := got.ToolCalls[i], want.ToolCalls[i]
		switch {
		case g.Name != w.Name:
			return &Difference{at + ".function.name", g.Name, w.Name}
		case g.Arguments != w.Arguments:
			return &Difference{at + ".function.arguments", g.Arguments, w.Arguments}
		case w.ID != "" && g.ID != w.ID:
			return &Difference{at + ".id", g.ID, w.ID}
		}
	}
	return nil
}

func (d *Difference) String() string {
	got, want := Excerpt(d.Got, d.Want)
	return fmt.Sprintf("%s:\n  request: %s\n  file:    %s", d.Field, got, want)
}

// excerptAround is how many characters an excerpt shows before the difference;
// after it come twice as many.
const excerptAround = 40

// Excerpt quotes two texts around the place where they begin to differ.
func Excerpt(got, want string) (string, string) {
	if got == "" || want == "" {
		return cut(got, 0), cut(want, 0)
	}
	at := 0
	for at < len(got) && at < len(want) && got[at] == want[at] {
		at++
	}
	from := max(0, at-excerptAround)
	for from > 0 && !utf8.RuneStart(got[from]) {
		from--
	}
	return cut(got, from), cut(want, from)
}

func cut(s string, from int) string {
	if s == "" {
		return "(nothing)"
	}
	to := min(len(s), from+3*excerptAround)
	for to < len(s) && !utf8.RuneStart(s[to]) {
		to--
	}
	text := strings.ToValidUTF8(s[min(from, len(s)):to], "\uFFFD")
	out := fmt.Sprintf("%q", text)
	if from > 0 {
		out = "…" + out
	}
	if to < len(s) {
		out += "…"
	}
	return out
}
