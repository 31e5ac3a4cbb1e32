package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// request is what matters of a chat-completions body.
type request struct {
	Model    string        `json:"model"`
	Messages []wireMessage `json:"messages"`
	Tools    []struct {
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	} `json:"tools"`
}

type wireMessage struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	ToolCalls  []wireCall      `json:"tool_calls"`
	ToolCallID string          `json:"tool_call_id"`
}

type wireCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function wireFunction `json:"function"`
}

type wireFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// toolNames are the names of the tools that a request offers, sorted.
func (r *request) toolNames() []string {
	var names []string
	for _, t := range r.Tools {
		names = append(names, t.Function.Name)
	}
	slices.Sort(names)
	return names
}

// text returns the content of a message as one string.
func (m wireMessage) text() (string, error) {
	if len(m.Content) == 0 || string(m.Content) == "null" {
		return "", nil
	}
	var s string
	if json.Unmarshal(m.Content, &s) == nil {
		return s, nil
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if err := json.Unmarshal(m.Content, &parts); err != nil {
		return "", fmt.Errorf("content of the %s message is neither text nor parts: %s", m.Role, m.Content)
	}
	var texts []string
	for _, p := range parts {
		texts = append(texts, p.Text)
	}
	return strings.Join(texts, "\n"), nil
}

// additions are the elements a runtime may put around what a user wrote; they
// are taken away before texts are compared.
var additions = regexp.MustCompile(`(?s)<(current_datetime|reminder|system_reminder)>.*?</(current_datetime|reminder|system_reminder)>`)

func plain(s string) string { return strings.TrimSpace(additions.ReplaceAllString(s, "")) }

// checkRequests compares every request of a case with its windows.
func checkRequests(c *Case, toolNames []string, raw []json.RawMessage) []error {
	var errs []error
	model := newModelRun(c)
	if len(raw) != len(model.replies) {
		errs = append(errs, fmt.Errorf("the model was asked %d times, not %d", len(raw), len(model.replies)))
	}
	var first request
	for i, body := range raw {
		fail := func(err error) { errs = append(errs, fmt.Errorf("request %d: %w", i+1, err)) }
		var req request
		if err := json.Unmarshal(body, &req); err != nil {
			fail(err)
			continue
		}
		if err := checkPairing(body, req); err != nil {
			fail(err)
		}
		if i == 0 {
			first = req
		}
		if i < len(model.replies) {
			if err := sameWindow(model.replies[i].before, req.Messages); err != nil {
				fail(fmt.Errorf("%w\n%s", err, indent(printWindow(req.Messages), "        ")))
			}
		}
		if i < len(model.replies) && model.replies[i].agent {
			continue
		}
		if err := sameSetup(first, req, toolNames); err != nil {
			fail(err)
		}
	}
	return errs
}

// sameSetup holds M3 and M4 for every case: whatever happens to the
// conversation, the system message, the model and the tools stay.
func sameSetup(first, req request, toolNames []string) error {
	if req.Model != first.Model {
		return fmt.Errorf("the model changed from %s to %s", first.Model, req.Model)
	}
	if len(first.Messages) > 0 && len(req.Messages) > 0 && !bytes.Equal(first.Messages[0].Content, req.Messages[0].Content) {
		return errors.New("the system message changed")
	}
	names := req.toolNames()
	if toolNames == nil {
		toolNames = first.toolNames() // a program that declares what it likes
	}
	if !slices.Equal(names, toolNames) {
		return fmt.Errorf("the model was told of the tools %v, not of %v", names, toolNames)
	}
	return nil
}

// sameWindow compares a window with what the model was shown.
func sameWindow(want []Message, got []wireMessage) error {
	for i := range max(len(want), len(got)) {
		if i >= len(got) {
			return fmt.Errorf("message %d is missing: %s %q", i+1, want[i].Role, want[i].Content)
		}
		text, err := got[i].text()
		if err != nil {
			return err
		}
		if i >= len(want) {
			return fmt.Errorf("message %d should not be there: %s %q", i+1, got[i].Role, text)
		}
		if err := sameMessage(want[i], got[i], text); err != nil {
			return fmt.Errorf("message %d: %w", i+1, err)
		}
	}
	return nil
}

func sameMessage(want Message, got wireMessage, text string) error {
	if got.Role != want.Role {
		return fmt.Errorf("role %s, not %s", got.Role, want.Role)
	}
	if want.Content != "${system}" && !textMatches(want.Content, plain(text)) {
		return fmt.Errorf("%s says %q, not %q", got.Role, plain(text), want.Content)
	}
	if got.ToolCallID != want.ToolCallID {
		return fmt.Errorf("answers call %q, not %q", got.ToolCallID, want.ToolCallID)
	}
	if len(got.ToolCalls) != len(want.ToolCalls) {
		return fmt.Errorf("holds %d calls, not %d", len(got.ToolCalls), len(want.ToolCalls))
	}
	for i, call := range want.ToolCalls {
		g := got.ToolCalls[i]
		if g.ID != call.ID || g.Function.Name != call.Name || !sameArguments(call.arguments(), g.Function.Arguments) {
			return fmt.Errorf("call %d is %s %s(%s), not %s %s(%s)", i+1,
				g.ID, g.Function.Name, g.Function.Arguments, call.ID, call.Name, call.arguments())
		}
	}
	return nil
}

// sameArguments compares two argument texts as JSON. What the model wrote and
// no object could be made of is an empty object in the window.
func sameArguments(want, got string) bool {
	var w, g map[string]any
	if json.Unmarshal([]byte(want), &w) != nil {
		w = map[string]any{}
	}
	if json.Unmarshal([]byte(got), &g) != nil {
		return false
	}
	a, _ := json.Marshal(w)
	b, _ := json.Marshal(g)
	return bytes.Equal(a, b)
}

// textMatches compares a text with a wanted one: equal, or a regular expression
// behind "~".
func textMatches(want, got string) bool {
	if rest, ok := strings.CutPrefix(want, "~"); ok {
		re, err := regexp.Compile(rest)
		return err == nil && re.MatchString(got)
	}
	return want == got
}

// checkPairing is the strictest reading of the chat-completions wire that a
// provider in use has: it holds for every request of every case.
func checkPairing(body []byte, req request) error {
	if !utf8.Valid(body) {
		return errors.New("the body is not valid UTF-8")
	}
	if len(req.Messages) == 0 || req.Messages[0].Role != "system" {
		return errors.New("the first message is not the system message")
	}
	seen := map[string]bool{}
	var open []string // calls of the last assistant message not yet answered
	for i, m := range req.Messages {
		if len(open) > 0 && m.Role != "tool" {
			return fmt.Errorf("message %d: %s speaks while calls %v have no result", i+1, m.Role, open)
		}
		switch m.Role {
		case "system":
			if i > 0 {
				return fmt.Errorf("message %d: a second system message", i+1)
			}
		case "user":
		case "assistant":
			text, _ := m.text()
			if text == "" && len(m.ToolCalls) == 0 {
				return fmt.Errorf("message %d: an assistant message without text or calls", i+1)
			}
			for _, call := range m.ToolCalls {
				if seen[call.ID] || call.ID == "" {
					return fmt.Errorf("message %d: call id %q is empty or used twice", i+1, call.ID)
				}
				seen[call.ID] = true
				var args map[string]any
				if err := json.Unmarshal([]byte(call.Function.Arguments), &args); err != nil || args == nil {
					return fmt.Errorf("message %d: the arguments of call %s are no object: %s", i+1, call.ID, call.Function.Arguments)
				}
				open = append(open, call.ID)
			}
		case "tool":
			if len(open) == 0 || open[0] != m.ToolCallID {
				return fmt.Errorf("message %d: a result of call %q where %v is due", i+1, m.ToolCallID, open)
			}
			open = open[1:]
		default:
			return fmt.Errorf("message %d: role %q", i+1, m.Role)
		}
	}
	if last := req.Messages[len(req.Messages)-1].Role; len(open) > 0 || (last != "user" && last != "tool") {
		return fmt.Errorf("the last message is the %s's, and calls %v have no result", last, open)
	}
	return nil
}

// printWindow is a window as a person reads it.
func printWindow(messages []wireMessage) string {
	var b strings.Builder
	for _, m := range messages {
		text, _ := m.text()
		fmt.Fprintf(&b, "%s: ", m.Role)
		if m.ToolCallID != "" {
			fmt.Fprintf(&b, "[%s] ", m.ToolCallID)
		}
		fmt.Fprintf(&b, "%.160q", plain(text))
		for _, call := range m.ToolCalls {
			fmt.Fprintf(&b, " %s=%s(%s)", call.ID, call.Function.Name, call.Function.Arguments)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func indent(s, by string) string {
	return by + strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n"+by)
}
