// Package jsonrpc2 owns one JSON-RPC 2.0 connection: Content-Length framing on
// any byte stream, message ids, the table of what is in flight, error codes and
// back-pressure. It knows no method names, except $/cancelRequest.
//
// It is made for a server whose every client handler may call back in while
// the server waits for that same handler. So nothing here waits for an answer
// in order to go on reading:
//
//	peer ── frames ─▶ reader ── Admit, in order ─▶ Handler ── Post ─▶ (mailboxes)
//	  ▲                  └───── answers ─▶ pending calls                   │
//	  └── bytes ── writer ◀── queue, FIFO, byte cap ◀── Reply, Notify, Go ◀┘
//
// A server for one connection:
//
//	conn := jsonrpc2.New(rwc, jsonrpc2.Config{
//		Handler: jsonrpc2.HandlerFunc(func(ctx context.Context, c *jsonrpc2.Conn, r *jsonrpc2.Responder) {
//			switch r.Request().Method {
//			case "ping":
//				r.Reply("pong", nil)
//			case "slow":
//				r.Go(func(ctx context.Context) (any, error) { return work(ctx) })
//			default:
//				r.Reply(nil, jsonrpc2.MethodNotFound(r.Request().Method))
//			}
//		}),
//	})
//	err := conn.Serve(ctx) // until the peer closes, ctx ends, or Close
//
// # Ownership
//
// A Conn owns its stream from New on: it alone reads, writes and closes it.
// Serve runs the reader on its own goroutine and starts two more, the writer
// and the guard (which closes things down); each Responder.Go adds one. Serve
// returns once all of them have ended. That needs a stream whose Close
// interrupts a blocked Read and Write: sockets, net.Pipe and non-blocking pipes
// do; a blocking os.Stdin does not, and has to be wrapped by whoever opens it.
//
// Bytes handed to NotifyRaw, NotifyWait or as a json.RawMessage belong to the
// connection until they are written and must not be changed afterwards. The
// Params of a Request belong to whoever gets it.
//
// # Ordering
//
//   - Requests and notifications are admitted in the order they arrived, one at
//     a time. They may be answered in any order, from any goroutine.
//   - What is enqueued first is written first. What the after step of ReplyThen
//     enqueues comes after the reply.
//   - The callback of an outgoing call runs on the reader, before anything the
//     peer sent after that answer is admitted.
//   - $/cancelRequest takes effect before anything the peer sent after it.
//
// # Back-pressure
//
// Nothing that enqueues blocks, except what says so in its name (NotifyWait,
// WaitRoom) and a Responder.Go goroutine with a result to deliver. Producers
// that can wait, such as an event pump that reads a log, use the waiting forms
// and so go at the client's pace. Producers that cannot wait enqueue up to a
// hard cap; beyond it the peer has stopped reading, and the connection is
// closed with ErrSlowPeer. Memory is bounded by Config.MaxQueueBytes plus one
// message. One connection's queue never delays another's.
//
// # Errors
//
// A bad body costs one error answer, a bad header the connection (see Serve).
// Errors with a code are of type *Error; AsError is the total function from any
// error to one. Everything that ends for want of a connection matches
// ErrClosed with errors.Is.
package jsonrpc2
