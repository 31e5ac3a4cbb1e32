// Package session drives the pure core of package turn for one session: it owns
// the state, executes what each step asks for, and nothing else.
//
//	Post ─▶ mailbox ─▶ ┌─────────┐ ── start ──▶ effects (model, tool, question)
//	                   │  actor  │ ◀── one input for each outcome, fenced ──┘
//	                   └─────────┘ ── append ─▶ log ── publish ─▶ feed ─▶ subscriptions
//
// # Ownership
//
// One goroutine, the actor, takes inputs from the mailbox in order and touches
// the state; readers get an immutable copy ([Session.View]). The actor waits for
// nothing but its mailbox; while nothing is to be done it has no goroutine, and the
// next post starts one. Effects run in goroutines of their own and only ever
// post inputs.
//
// # Ordering
//
// For each input: append to the log, publish, cancel and start effects, reply.
// Subscribers see a session's events in log order, each once.
//
// # Slow subscribers
//
// A subscriber holds its place in a shared list of recent events. One that falls
// behind by more than [Config.MaxLag] bytes lets go of the list and reads the
// log instead: it misses ephemeral events but for a session.idle that is the
// newest event of all, never a persisted one, and costs no memory meanwhile.
//
// # Errors
//
// A record that cannot be written undoes the input that caused it: its caller
// gets the error and the state is the one from before.
package session
