// Package stress holds the tests that treat a real server badly, or for long:
// clients that call anything at any time, clients that do not read, sessions by the
// thousand, and a search for secrets in all that a server leaves behind. It has no
// code of its own; docs/reliability.md says what is promised.
//
//	test ── builds ─▶ transom ◀── stdio, TCP ── clients of the test
//	  │                  └── requests ─▶ a model of the test, which checks each
//	  └── watches: no hang, no crash, every promise held, figures as at the start
//
// `go test` plays a little of it; `make chaos` and `make soak` play for longer.
// Every run prints its seed, and -stress.seed plays it again.
package stress
