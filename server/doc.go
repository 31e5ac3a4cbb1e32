// Package server serves a transom.Runtime to clients of the Copilot SDKs'
// protocol, version 3: JSON-RPC on any connection or listener.
//
//	srv := server.New(server.Config{Runtime: rt})
//	err := srv.ServeConn(ctx, stdio) // one client
//	err = srv.Serve(ctx, listener)   // many
//
// It uses only what package transom exports, so whoever embeds the library can do
// all that the server does. Sessions of other servers come through package remote:
// see remote.go.
//
//	frames ─▶ reader ─ admit ─▶ lane of the session ─▶ Session.Post ─▶ (session)
//	              │                    └ create, resume, destroy: own goroutine
//	              └ everything else: answered at once, or own goroutine
//	(session) ─▶ events ─▶ pump, one a session and connection ─▶ NotifyWait ─▶ frames
//
// # Ownership
//
// A connection owns its attachments: at most one transom.Session a session id.
// When the connection ends they are dropped, as a lost client is. The Runtime is
// the caller's; runtime.shutdown closes it and makes [Server.Stopped] report so.
//
// # Ordering
//
// What a client asks of one session takes effect in the order in which it asked,
// also where it did not wait for answers: a request that follows a session.create
// waits for it, and nothing else waits. The answers of session.create and
// session.resume come before the events they cause. Events are sent in log order.
// session.destroy is answered after the session's last event was sent.
//
// # Errors
//
// Every kind of transom.Error has one code, see [Code]; the error's data is
// {kind, op, retryable}. Names of the protocol that are not served answer
// Unsupported with a reason (unimplemented.go), all others -32601.
package server
