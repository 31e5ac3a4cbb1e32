// Package turn is the life of a session as a pure function.
//
//	next, ready, err := turn.Step(state, input)
//
// Step decides everything: which records to append to the log, which events to
// publish, which effects to start, whether to cancel those that run, and what to
// answer. It has no goroutine, clock, I/O, randomness or logging: times and ids
// come in with the input. A state is a value; one that could not be written down
// is thrown away, and the old one goes on as if nothing had been asked.
//
//	         Send                    ModelDone with calls
//	idle ──────────▶ thinking ───────────────────────────▶ acting
//	 ▲                 │  ▲                                   │
//	 │   ModelDone     │  └───────── batch settled ───────────┤
//	 └─────────────────┴───────────── turn over ◀─────────────┘
//
// The turn loop is three functions: [machine.startLoop] puts messages into the
// window and asks the model, [machine.modelDone] takes its answer and begins its
// calls, [machine.settle] decides, once the last call has ended, whether to ask
// again. [machine.next] says what follows a loop.
//
// Letters and numbers such as S5 or T2 in comments are the statements that the
// conformance cases are evidence for; conformance/cases/00-statements.yaml lists
// them.
//
// # Two halves of a state
//
// [Durable] is what the log says: folding the log gives it, whole, and Step
// changes it only by folding the records that it emits. [Live] is what only this
// process knows: the clients, their tools, the effects that run.
//
// # Sub-agents
//
// A state holds those of its sub-agents: loops of their own, with windows and fences
// of their own. [machine.within] makes a part of a step for one of them.
//
// # Ordering
//
// The driver executes a [Ready] in this order: append, publish, cancel, start,
// reply.
//
// # Fences
//
// Every effect carries a [Fence]. An answer whose fence is not the current one
// changes nothing.
package turn
