package builtin

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// The texts of this file are functional: recorded conversations of the SDKs'
// suites hold them word for word, and a change here breaks their replay. The
// test that pins each is named; texts that nothing pins stand where they are
// used.

// pathMissing is pinned by TestViewMissing ("builtin_tools").
func pathMissing(path string) string {
	return fmt.Sprintf("Path %s does not exist. Please provide a valid path.", path)
}

// numbered is one line of a file as view shows it. A file that ends in a line
// feed has an empty line after it. Pinned by TestViewLines ("builtin_tools",
// "permissions" and more).
func numbered(n int, line string) string { return fmt.Sprintf("%d. %s", n, line) }

// viewedImage stands for an image; the image itself goes beside it. Pinned by
// TestViewImage ("session", "session_config").
const viewedImage = "Viewed image file successfully."

// imageAt names an image for the model, beside which it stands. Pinned by
// TestViewImage ("session", "session_config").
func imageAt(path string) string { return "Image file at path " + path }

// created is pinned by TestCreate ("builtin_tools", "multi_turn").
func created(path, text string) string {
	return fmt.Sprintf("Created file %s with %d characters", path, utf8.RuneCountInString(text))
}

// edited is pinned by TestEdit ("builtin_tools", "permissions").
func edited(path string) string { return fmt.Sprintf("File %s updated with changes.", path) }

// exited ends the output of a command. Pinned by TestBash ("builtin_tools").
func exited(code int) string { return fmt.Sprintf("<exited with exit code %d>", code) }

// completed ends the output of a command that was left running for a while; the
// SDKs' harness takes it for the same as exited. Pinned by TestBashAsync.
func completed(id string, code int) string {
	return fmt.Sprintf("<shellId: %s completed with exit code %d>", id, code)
}

// The statements' results are pinned by TestSQL ("session_todos_changed",
// "session_fs_sqlite").
const schemaDone = "Schema operation completed successfully."

func inserted(rows, last int64) string {
	return fmt.Sprintf("%d row(s) inserted. Last inserted row ID: %d.", rows, last)
}

// statements puts several results into one text.
func statements(verbs, results []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Executed %d statement(s):", len(verbs))
	for i, v := range verbs {
		fmt.Fprintf(&b, "\n\n%d. %s\n   %s", i+1, v, strings.ReplaceAll(results[i], "\n", "\n   "))
	}
	return b.String()
}

// The answers to ask_user are pinned by TestAskUser ("ask_user").
func selected(choice string) string  { return "User selected: " + choice }
func responded(answer string) string { return "User responded: " + answer }

// planApproved is pinned by TestExitPlanMode ("mode_handlers") for the mode
// interactive.
const planApproved = "Plan approved! Exited plan mode.\n\n"

const planInteractive = "You are now in interactive mode. Start implementing the plan now, in this same response. " +
	"Approving the plan is your go-signal, so do not stop to ask whether to proceed or wait for another message."
