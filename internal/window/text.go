package window

import "path/filepath"

// Interrupted is what the model reads as the result of a call that an abort or a
// restart cut off. Hosts' recordings pin it (tests "abort" and
// "pending_work_resume" of the SDKs).
const Interrupted = "The execution of this tool, or a previous tool was interrupted."

// Unknown follows [Interrupted] where a restart, or a store that could
// not be written to, cut off a call of a tool that changes things outside of the session.
const Unknown = " What became of this call was lost: it may have taken effect, in whole or in part. Look before you repeat it."

// SeedSource marks the user.message of a seeded turn; the SDKs' published types
// document the value.
const SeedSource = "session-memory-rollover"

// SkillContext is the message that brings the text of a skill into the window;
// path is that of its SKILL.md. Hosts' recordings pin it (test "skills" of the
// SDKs).
func SkillContext(name, path, text string) string {
	return "<skill-context name=\"" + name + "\">\nBase directory for this skill: " + filepath.Dir(path) + "\n\n" + text + "\n</skill-context>"
}
