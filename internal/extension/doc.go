// Package extension finds extensions, and runs them: programs that join a session as
// clients of it, with the SDK of their author.
//
//	.github/extensions/NAME/extension.mjs ─ Find ─▶ Extension ─ Start ─▶ Process
//	                                                                        │
//	        the protocol, on its stdin and stdout ◀─ Read, Write, Close ────┘
//
// An extension is JavaScript and is run by node, with the session's id in SESSION_ID.
// Where the host names its SDK, "@github/copilot-sdk" is that in the extension's
// imports.
//
// # Ownership
//
// A [Process] owns the child, and everything that is in its process group: [Process.Close]
// asks it to end, ends it by force after a while, and returns when it has ended.
//
// # Errors
//
// [Start] fails where node is not there or the program cannot be started. What the
// extension writes on stderr goes to the log; that it ended is the end of the stream.
package extension
