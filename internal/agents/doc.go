// Package agents knows which agents there are: those that Transom has of its own,
// and those that people keep in files; and it defines the tools by which a model
// starts agents and talks to them.
//
//	.github/agents/reviewer.md
//	---
//	description: Reviews changes
//	tools: [view, grep]
//	---
//	You review changes …                  the prompt
//
// The tools have no handler: the session's own core runs them.
//
// # Ownership
//
// Everything is a value. Files are read and not kept open.
//
// # Errors
//
// A file that is no agent is left out, and a warning says why; [Discover] never
// fails.
package agents
