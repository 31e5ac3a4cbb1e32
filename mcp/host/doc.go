// Package host connects sessions to MCP servers, by the official Go SDK.
//
//	Set ──▶ servers ── Start ──▶ connect (several at a time) ──▶ connected ──▶ Tools
//	                                     │                            │ its end, unasked
//	                                     ▼                            ▼
//	                              failed, needs-auth               failed
//
// Both generations of the protocol are spoken: a server is first asked what it is
// (server/discover), and one that does not know that gets the older handshake. A
// program that never answers the question gets the handshake, too.
//
// # Ownership
//
// A [Host] owns its connections and the process groups that it started. One
// goroutine a server connects, waits for the end of the connection and takes down
// what is left of it: nothing of a server outlives the goroutine, and Close waits
// for all of them.
//
// # Ordering
//
// Each connection has a number. What an older one has to say changes nothing any
// more.
//
// # Errors
//
// A server that fails has a state that says why, and its tools are withdrawn: what
// is listed can be called. A call under way fails with a result that the model
// reads.
package host
