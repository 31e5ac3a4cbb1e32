package turn

import (
	"strings"

	"github.com/transom-run/transom/tool"
)

// toolsGone tells the model that tools were withdrawn. Hosts' recordings pin the
// text (test "multi-client" of the SDKs).
func toolsGone(names []string) string {
	return "<tools_changed_notice>\nTools no longer available: " + strings.Join(names, ", ") +
		"\n\nImportant: Do not attempt to call tools that are no longer available unless you've been notified that they're available again.\n</tools_changed_notice>\n\n"
}

// gone is the result of a call whose tool left with its client.
func gone(name string) tool.Result {
	text := "The tool '" + name + "' did not run: the client that provides it has disconnected."
	return tool.Result{Text: text, Type: tool.Failure}
}

// deniedByHook is what the model reads of a call that a hook denied. Hosts'
// recordings pin it (test "hooks" of the SDKs).
func deniedByHook(reason string) string {
	if reason == "" {
		reason = "No reason provided"
	}
	return "Denied by preToolUse hook: " + reason
}
