package hookfile

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/transom-run/transom/internal/shell"
)

// Bounds of what a hook may print. What it says on stderr is for people.
const (
	maxOutput = 1 << 20
	maxStderr = 4 << 10
)

// Runner runs hooks for a session.
type Runner struct {
	// Environ is the environment of commands, without secrets; Dir the session's
	// working directory.
	Environ func() []string
	Dir     func() string
	// Warn is told of hooks that failed and have no say in what goes on.
	Warn func(text string)
}

// Has reports whether some hook is asked at an event.
func Has(hooks []Hook, event string) bool {
	return slices.ContainsFunc(hooks, func(h Hook) bool { return h.Event == event })
}

// decides names the events where a hook that failed has not consented. The others'
// hooks are told only, or may add something.
func decides(event string) bool {
	switch event {
	case "preToolUse", "postToolUse", "userPromptTransformed", "preMcpToolCall":
		return true
	}
	return false
}

// Ask runs the hooks of an event and returns what they came to: an object of the
// protocol; nil is no verdict. Each is given the same input.
func (r *Runner) Ask(ctx context.Context, hooks []Hook, event string, raw json.RawMessage) (json.RawMessage, error) {
	var in input
	var merged map[string]json.RawMessage
	for i := range hooks {
		h := &hooks[i]
		if h.Event != event {
			continue
		}
		if in == nil {
			if err := json.Unmarshal(raw, &in); err != nil {
				return nil, err
			}
		}
		if !h.match.hits(in.about(h)...) {
			continue
		}
		out, err := r.run(ctx, h, in)
		switch {
		case err != nil && decides(event):
			return nil, fmt.Errorf("%s of %s: %w", h.Name, h.Source.Name, err)
		case err != nil:
			r.warn(h, err.Error())
		case event != "userPromptSubmitted": // in this format it is told only
			merged = merge(merged, out)
		}
		if Stands(merged["permissionDecision"]) {
			break
		}
	}
	if len(merged) == 0 {
		return nil, nil
	}
	return json.Marshal(merged)
}

func (r *Runner) warn(h *Hook, text string) {
	if r.Warn != nil {
		r.Warn(fmt.Sprintf("The hook %s of %s: %s", h.Name, h.Source.Name, text))
	}
}

// Stands reports whether no later answer changes a permissionDecision: it denies, or it
// is none that is known, which denies too.
func Stands(decision json.RawMessage) bool {
	switch string(decision) {
	case "", "null", `"allow"`, `"ask"`:
		return false
	}
	return true
}

// merge adds a hook's answer to those before it: contexts are joined, other values
// take the place of earlier ones.
func merge(have, more map[string]json.RawMessage) map[string]json.RawMessage {
	for k, v := range more {
		if string(v) == "null" {
			continue
		}
		var a, b string
		if k == "additionalContext" && json.Unmarshal(have[k], &a) == nil && json.Unmarshal(v, &b) == nil {
			v, _ = json.Marshal(a + "\n\n" + b) // a text
		}
		if have == nil {
			have = map[string]json.RawMessage{}
		}
		have[k] = v
	}
	return have
}

// run runs one hook.
func (r *Runner) run(ctx context.Context, h *Hook, in input) (map[string]json.RawMessage, error) {
	if h.unread != "" {
		return nil, errors.New(h.unread + ". Mend it, or disable the plugin")
	}
	payload, err := in.payload(h)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, h.Limit, fmt.Errorf("it did not end within %v", h.Limit))
	defer cancel()
	var out, said bound
	out.max, said.max = maxOutput, maxStderr
	env := r.environ(h)
	dir := r.Dir()
	if h.Dir != "" {
		if dir = h.Dir; !filepath.IsAbs(dir) {
			dir = filepath.Join(r.Dir(), dir)
		}
	}
	p, err := shell.Start(shell.Config{Command: h.Shell, Argv: h.Exec, Stdin: append(payload, '\n'), Dir: dir, Env: env, Output: func(errors bool, data []byte) {
		if errors {
			said.add(data)
		} else {
			out.add(data)
		}
	}})
	if err != nil {
		return nil, fmt.Errorf("it cannot be started: %w", err)
	}
	select {
	case <-p.Done():
	case <-ctx.Done():
		p.Signal(shell.Kill)
		p.Wait()
		return nil, context.Cause(ctx)
	}
	return r.verdict(h, p.Wait(), &out, strings.TrimSpace(said.String()))
}

// verdict is what an exit code and an output mean.
func (r *Runner) verdict(h *Hook, code int, out *bound, said string) (map[string]json.RawMessage, error) {
	answer, err := answered(out)
	switch {
	case code == 2 && h.Event == "preToolUse":
		if answer == nil {
			answer = map[string]json.RawMessage{}
		}
		answer["permissionDecision"] = json.RawMessage(`"deny"`)
		if _, why := answer["permissionDecisionReason"]; !why {
			answer["permissionDecisionReason"], _ = json.Marshal(cmp.Or(said, h.Source.Name)) // a text
		}
		return answer, nil
	case code == 2 && h.Event == "postToolUseFailure":
		text, _ := json.Marshal(strings.TrimSpace(out.String()))
		return map[string]json.RawMessage{"additionalContext": text}, nil
	case code == 2 && !decides(h.Event) || code == 2 && h.Event == "postToolUse":
		r.warn(h, cmp.Or(said, "it ended with exit code 2"))
		return nil, nil
	case code != 0 && said != "":
		return nil, fmt.Errorf("it ended with exit code %d: %s", code, said)
	case code != 0:
		return nil, fmt.Errorf("it ended with exit code %d", code)
	case err != nil:
		return nil, err
	}
	return lift(h, answer), nil
}

// answered reads the answer of a command. Lines that tell of its progress are no part
// of it, nor is text above it, and a text that is no object is none; what begins as one
// and is not is an error, and so is what was not read to its end.
func answered(out *bound) (map[string]json.RawMessage, error) {
	said := bytes.TrimPrefix(out.bytes(), []byte("\ufeff"))
	switch {
	case out.over():
		return nil, fmt.Errorf("it printed more than %d bytes", maxOutput)
	case bytes.HasPrefix(said, []byte{0xff, 0xfe}), bytes.HasPrefix(said, []byte{0xfe, 0xff}):
		return nil, errors.New("what it printed is UTF-16: UTF-8 is read")
	}
	var rest bytes.Buffer
	at := -1 // of the first line that begins as an object
	for line := range bytes.Lines(said) {
		var p struct {
			Type string `json:"type"`
		}
		trimmed := bytes.TrimSpace(line)
		object := len(trimmed) > 0 && trimmed[0] == '{'
		if object && json.Unmarshal(trimmed, &p) == nil && p.Type == "progress" {
			continue
		}
		if object && at < 0 {
			at = rest.Len()
		}
		rest.Write(line)
	}
	if at < 0 {
		return nil, nil
	}
	text := rest.Bytes()
	if bytes.TrimSpace(text)[0] != '{' && json.Valid(text) { // a list with an object in it
		return nil, nil
	}
	text = text[at:]
	var answer map[string]json.RawMessage
	if err := json.Unmarshal(text, &answer); err != nil {
		return nil, errors.New("what it printed is not one JSON object")
	}
	return answer, nil
}

// lift takes what plugins of other agents answer as the protocol's members. Their names
// are read in any case, as the protocol's are.
func lift(h *Hook, answer map[string]json.RawMessage) map[string]json.RawMessage {
	const decision = "permissionDecision"
	for k, v := range answer {
		if k != decision && strings.EqualFold(k, decision) {
			delete(answer, k)
			if !Stands(answer[decision]) {
				answer[decision] = v
			}
		}
	}
	var special map[string]json.RawMessage
	if json.Unmarshal(answer["hookSpecificOutput"], &special) == nil {
		for from, to := range map[string]string{
			"permissionDecision": "permissionDecision", "permissionDecisionReason": "permissionDecisionReason",
			"updatedInput": "modifiedArgs", "additionalContext": "additionalContext",
		} {
			if v, ok := special[from]; ok && answer[to] == nil {
				answer[to] = v
			}
		}
	}
	if h.Event == "preToolUse" && string(answer["decision"]) == `"block"` && answer["permissionDecision"] == nil {
		answer["permissionDecision"] = json.RawMessage(`"deny"`)
		if answer["permissionDecisionReason"] == nil && answer["reason"] != nil {
			answer["permissionDecisionReason"] = answer["reason"]
		}
	}
	return answer
}

// environ is the environment of a hook.
func (r *Runner) environ(h *Hook) []string {
	env := r.Environ()
	known := map[string]string{}
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		known[name] = value
	}
	set := func(name, value string) {
		known[name] = value
		env = append(env, name+"="+value)
	}
	if h.Source.Root != "" {
		for _, name := range placeholders {
			set(name, h.Source.Root)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(h.Env)) {
		set(name, os.Expand(h.Env[name], func(name string) string { return known[name] }))
	}
	return env
}

// bound keeps the first bytes of what a command prints.
type bound struct {
	mu   sync.Mutex
	buf  []byte
	max  int
	more bool
}

func (b *bound) add(data []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := min(len(data), b.max-len(b.buf))
	b.buf, b.more = append(b.buf, data[:n]...), b.more || n < len(data)
}

func (b *bound) bytes() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf
}

func (b *bound) over() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.more
}

func (b *bound) String() string { return strings.ToValidUTF8(string(b.bytes()), "\ufffd") }
