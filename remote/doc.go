// Package remote attaches to sessions that live in another server of the same
// protocol, a peer: it follows their events, hands requests on, and mends the
// link when it breaks. Nothing is stored here; the peer alone writes the log.
//
//	host ─▶ this server ── Session ── link, one TCP connection ──▶ peer, session
//	  ▲                       │  ▲                                     │
//	  └──── Config.Events ◀─ feed └── history, then live events ◀──────┘
//
// An attachment of a client here is an attachment, and a connection, of its own
// there: the peer sees one client for each, with the tools that client declared.
//
//	s, err := remote.Attach(ctx, remote.Config{Peer: peer, SessionID: id, History: true, Events: send})
//	s.Start()                                             // events flow
//	s.Forward(ctx, "session.send", params, answer)        // requests do
//	s.Drop()                                              // as a lost client leaves
//
// # Ownership
//
// A Session owns its link, the goroutine that mends it and the one that hands
// events on; all have ended when [Session.Done] is closed. What it tells its
// owner it tells by the functions of [Config].
//
// # Ordering
//
// Events come in the order of the peer's log, each once, also across a broken
// link: a link that is made again reads the history, and what of it was handed on
// before is left out. Ephemeral events of the time between are lost; where the
// work ended meanwhile, one session.idle is made up for the one that was missed.
// Requests reach the peer in the order of [Session.Forward].
//
// # Errors
//
// Errors of the peer are passed on as they are (*jsonrpc2.Error). Those of the
// link are of type [Error]: unreachable, unauthenticated, another protocol, not
// found. While there is no link, answers to tools and questions wait for the next
// one, since whoever gave them gives them once; anything else fails at once and
// may be tried again. A request whose answer was lost with the link fails and
// says that it may have been carried out; answers are sent again, because the
// peer takes each once.
package remote
