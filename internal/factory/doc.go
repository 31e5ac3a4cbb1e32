// Package factory keeps the runs of factories: work that a client does in steps,
// under the eyes of the session that asked for it.
//
//	Store.Create ─▶ run ─ Begin ─▶ attempt 1 ─ Log, Put ─ Settle (error)
//	                       Begin ─▶ attempt 2 ─ Get: a step done before ─ Settle (completed)
//
// A run is one file, RUN.jsonl: a line a record, only ever appended to. What it says
// of the run is the fold of its lines, so that a process that is killed loses nothing
// that was answered: a run that was under way reads as halted, with every step that
// it had done.
//
// # Ownership
//
// A [Store] belongs to one session and keeps no file open. Its methods may be called
// from any goroutine.
//
// # Ordering
//
// A record is on the disk before the method that wrote it returns. Records of an
// attempt that is over change nothing.
//
// # Errors
//
// [ErrUnknown] where there is no such run, [ErrStale] where the attempt is not the
// one that runs. A line that cannot be read ends the file: what stands behind it was
// never answered.
package factory
