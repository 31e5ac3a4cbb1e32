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

// DeniedByHook is what the model reads of a call that a hook of some kind kept from
// running.
func DeniedByHook(kind HookKind, reason string) string {
	return "Denied by " + string(kind) + " hook: " + reason
}

// compactionPrompt asks the model for a summary. Hosts' recordings pin how it
// begins (test "compaction" of the SDKs).
func compactionPrompt(instructions string) string {
	text := "Please create a detailed summary of the conversation so far. The history is being compacted, so that what you write takes the place of the messages above, and nothing else of them is kept but the user's own words.\n\n" +
		"Write what somebody needs who goes on from here, in these parts:\n" +
		"<overview> what the user wants, and how far it has come\n" +
		"<history> what was done, in order, with what came of it\n" +
		"<work_done> what exists now: files, results, decisions\n" +
		"<technical_details> facts that were found out and would be costly to find again\n" +
		"<important_files> files that matter, and why\n" +
		"<next_steps> what is to be done next\n" +
		"<checkpoint_title> a title of a few words\n\n" +
		"Close each part with its end tag. Call no tool."
	if instructions != "" {
		text += "\n\nThe user asks for this in particular: " + instructions
	}
	return text
}
