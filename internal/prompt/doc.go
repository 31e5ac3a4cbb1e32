// Package prompt makes the system message of a session, and the text around a
// user's prompt that tells of its attachments.
//
//	preamble, tone, tool_efficiency      the group "identity"
//	environment_context                  directory, operating system, repository
//	code_change_rules, guidelines, safety, tool_instructions
//	custom_instructions                  files of the repository and the host
//	runtime_instructions, last_instructions
//	what the host adds
//
// Each section is text of this package (sections/NAME.md) or of the session's
// surroundings, and a host may override it by its name: see [Override]. The same
// [Config] and [Surroundings] give the same bytes: no clock, no random order.
//
// # Ownership
//
// Everything is a value. [ReadInstructions] reads files and keeps none of them
// open.
//
// # Errors
//
// What a host got wrong is a *[ConfigError]. A file that cannot be read as
// instructions is left out.
package prompt
