package hookfile

import (
	"encoding/json"
	"strings"
	"time"
	"unicode"

	"github.com/transom-run/transom/internal/lazy"
)

// tools are the names that plugins of other agents have for tools of ours.
var tools = lazy.Value[map[string]string]{Make: func() map[string]string {
	return map[string]string{
		"bash": "Bash", "powershell": "Bash", "view": "Read", "create": "Write", "edit": "Edit", "str_replace_editor": "Edit", "apply_patch": "Edit",
		"grep": "Grep", "rg": "Grep", "glob": "Glob", "web_fetch": "WebFetch", "web_search": "WebSearch", "ask_user": "AskUserQuestion",
		"update_todo": "TodoWrite", "task": "Agent",
	}
}}

// input is what a hook is told.
type input map[string]json.RawMessage

func (in input) text(name string) (s string) {
	_ = json.Unmarshal(in[name], &s) // another value is none
	return s
}

// about are the names that a matcher is held against.
func (in input) about(h *Hook) []string {
	name := in.text("toolName")
	if strings.HasPrefix(h.Event, "subagent") {
		return []string{in.text("agentName")}
	}
	if !h.pascal() {
		return []string{name}
	}
	also := tools.Get()[name]
	if name == "task" {
		return []string{name, also, "Task"}
	}
	return []string{name, also}
}

// payload is the input as a hook of the file reads it.
func (in input) payload(h *Hook) ([]byte, error) {
	out := map[string]any{}
	for k, v := range in {
		out[k] = v
	}
	if raw := in["error"]; h.Event == "errorOccurred" && len(raw) > 0 && raw[0] == '"' {
		out["error"] = map[string]any{"message": raw, "name": "Error"}
	}
	if !h.pascal() {
		return json.Marshal(out)
	}
	snaked := map[string]any{"hook_event_name": h.Name}
	for k, v := range out {
		snaked[snake(k)] = v
	}
	for from, to := range map[string]string{"tool_args": "tool_input", "response": "last_assistant_message"} {
		if v, ok := snaked[from]; ok {
			delete(snaked, from)
			snaked[to] = v
		}
	}
	if name := in.text("toolName"); tools.Get()[name] != "" {
		snaked["tool_name"] = tools.Get()[name]
	}
	var ms int64
	if json.Unmarshal(in["timestamp"], &ms) == nil {
		snaked["timestamp"] = time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z")
	}
	var result map[string]json.RawMessage
	if json.Unmarshal(in["toolResult"], &result) == nil && result != nil {
		inner := map[string]json.RawMessage{}
		for k, v := range result {
			inner[snake(k)] = v
		}
		snaked["tool_result"] = inner
	}
	return json.Marshal(snaked)
}

// snake is a name in camelCase as one in snake_case.
func snake(name string) string {
	var b strings.Builder
	for _, r := range name {
		if unicode.IsUpper(r) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
