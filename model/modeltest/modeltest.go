// Package modeltest helps tests of what talks to a model.
//
//	srv := modeltest.NewServer(t, script)        // an endpoint that plays a model file
//	p := modeltest.Watch(t, provider)            // keeps requests, and checks each
//	err := modeltest.CheckRequest(req)           // what a strict provider demands
//	err := modeltest.CheckShape(path, body)      // what a wire's documentation has
//	modeltest.TestProvider(t, open)              // the contract of model.Provider
//
// Any request that breaks the rules of [CheckRequest] fails the test at once,
// whoever made it: a server and a watched provider check every one.
package modeltest

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/transom-run/transom/model"
)

// CheckRequest reports the first thing about which a strict provider would
// refuse a request: a system message that is not the first or not the only one,
// an unknown role, a call without exactly one result directly after its message
// and in the order of the calls, a result without a call, an id twice, arguments
// that are not an object, text that is not UTF-8, an empty user message, an end
// that is neither user nor tool.
func CheckRequest(req *model.Request) error {
	ids := make(map[string]bool)
	msgs := req.Messages
	if len(msgs) == 0 {
		return fmt.Errorf("the request has no messages")
	}
	for i := 0; i < len(msgs); i++ {
		m := &msgs[i]
		if err := checkText(m); err != nil {
			return fmt.Errorf("messages[%d] (%s): %w", i, m.Role, err)
		}
		switch m.Role {
		case model.System:
			if i > 0 {
				return fmt.Errorf("messages[%d]: a system message that is not the first", i)
			}
		case model.Developer:
			if i > 0 && msgs[i-1].Role != model.System && msgs[i-1].Role != model.Developer {
				return fmt.Errorf("messages[%d]: a developer message in the middle", i)
			}
		case model.User:
			if m.Text == "" && len(m.Images) == 0 {
				return fmt.Errorf("messages[%d]: an empty user message", i)
			}
		case model.Assistant:
			n, err := checkBatch(msgs, i, ids)
			if err != nil {
				return err
			}
			i += n
		case model.ToolRole:
			return fmt.Errorf("messages[%d]: a result for call %q, which the message before does not make", i, m.CallID)
		default:
			return fmt.Errorf("messages[%d]: role %q", i, m.Role)
		}
	}
	if last := msgs[len(msgs)-1].Role; last != model.User && last != model.ToolRole {
		return fmt.Errorf("the request ends with a message of role %s", last)
	}
	return checkTools(req.Tools)
}

// checkBatch checks the calls of messages[at] and their results; it returns how
// many results there are.
func checkBatch(msgs []model.Message, at int, ids map[string]bool) (int, error) {
	calls := msgs[at].Calls
	for k, c := range calls {
		switch {
		case c.ID == "":
			return 0, fmt.Errorf("messages[%d].calls[%d]: no id", at, k)
		case ids[c.ID]:
			return 0, fmt.Errorf("messages[%d].calls[%d]: id %q is used twice", at, k, c.ID)
		case c.Name == "":
			return 0, fmt.Errorf("messages[%d].calls[%d]: no name", at, k)
		}
		ids[c.ID] = true
		var object map[string]json.RawMessage
		if err := json.Unmarshal([]byte(c.Arguments), &object); err != nil || object == nil {
			return 0, fmt.Errorf("messages[%d].calls[%d]: arguments %.60q are not a JSON object", at, k, c.Arguments)
		}
	}
	for k, c := range calls {
		i := at + 1 + k
		switch {
		case i >= len(msgs) || msgs[i].Role != model.ToolRole:
			return 0, fmt.Errorf("messages[%d].calls[%d]: call %q has no result directly after it", at, k, c.ID)
		case msgs[i].CallID != c.ID:
			return 0, fmt.Errorf("messages[%d]: a result for call %q where that of %q is due", i, msgs[i].CallID, c.ID)
		}
		if err := checkText(&msgs[i]); err != nil {
			return 0, fmt.Errorf("messages[%d] (tool): %w", i, err)
		}
	}
	return len(calls), nil
}

func checkText(m *model.Message) error {
	if m.Role != model.Assistant && len(m.Calls) > 0 {
		return fmt.Errorf("calls outside an assistant message")
	}
	if m.Role != model.ToolRole && m.CallID != "" {
		return fmt.Errorf("a call id outside a tool message")
	}
	texts := []string{m.Text, m.Reasoning, m.CallID}
	for _, c := range m.Calls {
		texts = append(texts, c.ID, c.Name, c.Arguments)
	}
	for _, s := range texts {
		if !utf8.ValidString(s) {
			return fmt.Errorf("text that is not UTF-8: %.60q", s)
		}
	}
	return nil
}

func checkTools(tools []model.ToolDef) error {
	names := make(map[string]bool)
	for i, t := range tools {
		var schema struct {
			Type any `json:"type"`
		}
		switch {
		case t.Name == "":
			return fmt.Errorf("tools[%d]: no name", i)
		case names[t.Name]:
			return fmt.Errorf("tools[%d]: name %q is used twice", i, t.Name)
		case json.Unmarshal(t.Parameters, &schema) != nil || schema.Type != "object":
			return fmt.Errorf("tools[%d] (%s): parameters %.60q are not a schema of type object", i, t.Name, t.Parameters)
		}
		names[t.Name] = true
	}
	return nil
}

// Watched is a provider whose requests are kept and checked.
type Watched struct {
	model.Provider
	t testing.TB

	mu       sync.Mutex
	requests []model.Request
}

// Watch wraps a provider: every request is kept, and fails the test where it
// breaks the rules of [CheckRequest].
func Watch(t testing.TB, p model.Provider) *Watched { return &Watched{Provider: p, t: t} }

// Stream passes the request on.
func (w *Watched) Stream(ctx context.Context, req *model.Request) iter.Seq2[model.Chunk, error] {
	if err := CheckRequest(req); err != nil {
		w.t.Errorf("a request that strict providers refuse: %v", err)
	}
	kept := *req
	kept.Messages = slices.Clone(req.Messages)
	w.mu.Lock()
	w.requests = append(w.requests, kept)
	w.mu.Unlock()
	return w.Provider.Stream(ctx, req)
}

// Requests returns the requests so far.
func (w *Watched) Requests() []model.Request {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.requests)
}
