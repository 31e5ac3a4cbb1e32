package tool

import (
	"fmt"
	"strings"
)

// The texts of this file are functional: hosts' tests and recorded
// conversations hold them word for word. A change here breaks replay. The test
// that pins each is named; texts that nothing pins stand where they are used.

// unknownTool is what a model reads that called a tool there is not. Recordings
// compare its first sentence, which is also the error of the event, and allow
// the list. Pinned by TestUnknownTool.
func unknownTool(name string, available []string) (model, event string) {
	event = fmt.Sprintf("Tool '%s' does not exist.", name)
	if len(available) == 0 {
		return event, event
	}
	return event + " Available tools that can be called are " + strings.Join(available, ", ") + ".", event
}

// failedToExecute is what a model reads of a handler that threw: never the
// detail, which may hold anything. Pinned by TestWireTable.
func failedToExecute(name, arguments string) string {
	return fmt.Sprintf("Failed to execute `%s` tool with arguments: %s due to error: Error: %s", name, arguments, executionFailed)
}

// executionFailed stands for a detail that is not shown or not known.
const executionFailed = "Tool execution failed"

// notAnObject is the error of arguments that are JSON, but no object: the model
// reads it after "Invalid input: ". Pinned by TestCheck.
func notAnObject(kind string) string { return "Expected JSON object but got " + kind }

// notJSON begins what a model reads whose arguments were not JSON. Pinned by
// TestCheck.
func notJSON(name string) string {
	return fmt.Sprintf("The arguments for the tool call '%s' were not valid JSON.", name)
}

// interrupted is the result of a call that was cut off. Pinned by
// TestRunInterrupted.
const interrupted = "The execution of this tool, or a previous tool was interrupted."

// tooLarge is the notice that stands for a large result; size is in KB. The
// recorded conversation with a large result holds all of it, the advice
// included. Pinned by TestOversizedNotice.
func tooLarge(size, path, preview string) string {
	return fmt.Sprintf("Output too large to read at once (%s KB). Saved to: %s\n"+
		"Consider using tools like grep (for searching), head/tail (for viewing start/end), view with view_range (for specific sections), or jq (for JSON) to examine portions of the output.\n"+
		"\n%s", size, path, previewOf(preview))
}

// previewOf is the end of a notice about a large result.
func previewOf(preview string) string {
	return fmt.Sprintf("Preview (first %d chars):\n%s", previewChars, preview)
}
