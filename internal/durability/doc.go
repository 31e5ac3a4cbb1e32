// Package durability holds the tests that break things: a process that is killed
// at every operation of its store, logs that are damaged, disks that are full, and
// processes that share a store. It has no code of its own; docs/reliability.md says
// what is promised, and with which of these tests each promise is held.
//
//	parent ── starts ─▶ child: plays a history, ends itself at operation n
//	   │                   │
//	   │                   └─▶ home: the log; a journal of all that was promised
//	   └── resumes the session ─▶ is everything there, once, and whole?
//
// A few points of each history are tried by `go test`; `make kill` tries all.
package durability
