// Package wire holds what the decoders and encoders of all wires share.
//
//	bytes ─▶ Events ─▶ Scanner ─▶ (a wire's own events) ─▶ Calls ─▶ model.Chunk
//
// [Events] cuts a stream into server-sent events, [Scanner] reads their JSON
// without reflection, and [Calls] puts the fragments of tool calls in order. The
// Append functions write JSON.
//
// # Ownership
//
// Nothing here is safe for concurrent use: each belongs to one attempt. Bytes
// that [Events] and [Scanner] return are valid until the next call.
package wire
