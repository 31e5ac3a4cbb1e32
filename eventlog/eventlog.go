// Package eventlog defines where a session's records are kept.
//
// A [Log] is one session's append-only list of records; a [Store] holds the
// logs of many sessions. [eventlog/filelog] keeps them in files (the default),
// [eventlog/memlog] in memory. Package eventlogtest holds the tests that every
// implementation passes.
//
//	append ──▶ [ r0 | r1 | r2 | … ]      a Position is the place of a record
//	              ▲          ▲    ▲
//	           Start()    Read(p) End()
//
// # Ownership
//
// A Log has one writer, the goroutine that owns the session; Read may be called
// from any goroutine at any time. Closing a log is the writer's.
//
// # Ordering
//
// One Append is one unit: after a crash either all of its records are there, or
// a prefix of them; a batch of one record is all or nothing. Records are never
// changed or removed.
//
// # Errors
//
// A record that cannot be read is reported as [Damage] and passed over; it
// never hides the records after it.
package eventlog

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"
)

// Position is the place of a record in its log: 0 is the first. Positions grow
// along the log; only those an implementation returned are valid.
type Position int64

// Record is one line of a log.
type Record struct {
	Pos  Position // of this record
	Next Position // of the record after it
	Line []byte   // without the line feed; the reader owns it
}

// Damage is a stretch of a log that holds no readable record.
type Damage struct {
	Line   int      // 1-based physical line number; 0 where it is not known
	Pos    Position // where it begins
	Bytes  int64    // how many bytes were passed over
	Reason string   // such as "torn last record", "tail of NUL bytes", "not a JSON object"
	// Dropped is true where the bytes were at the end and are cut off by the
	// next append; false where they stay in the middle of the log.
	Dropped bool
}

func (d Damage) String() string {
	if d.Line > 0 {
		return fmt.Sprintf("line %d: %s (%d bytes)", d.Line, d.Reason, d.Bytes)
	}
	return fmt.Sprintf("at byte %d: %s (%d bytes)", d.Pos, d.Reason, d.Bytes)
}

// Batch is what one Append writes.
type Batch struct {
	// Lines are whole records without their line feeds.
	Lines [][]byte
	// Provisional holds the lines in memory, readable as if written, until a
	// batch that is not provisional comes and takes them along: a session in
	// which nothing happened leaves nothing behind. A batch that is neither
	// provisional nor has lines makes what was held real.
	Provisional bool
	// Sync asks for the batch, and all before it, to be on the disk before
	// Append returns. It overrides Provisional.
	Sync bool
}

// Log is one session's records.
type Log interface {
	// Append writes a batch and returns the position of its first record. On
	// return the bytes are with the operating system (with Sync: on the disk).
	// An error means that nothing of the batch is in the log. A line that is
	// empty, holds a line feed, or does not begin and end as a JSON object is
	// refused; what lies between its braces is the caller's word.
	Append(b Batch) (Position, error)
	// Read yields the records from a position on, up to the end at the time of
	// the call. A damaged stretch is yielded as a *DamageError with a zero
	// record, and reading goes on; any other error ends the sequence.
	Read(from Position) iter.Seq2[Record, error]
	// End is the position after the last record.
	End() Position
	// Close releases what the log holds. It does not sync.
	Close() error
}

// DamageError reports a damaged stretch while reading.
type DamageError struct{ Damage Damage }

func (e *DamageError) Error() string { return "unreadable record at " + e.Damage.String() }

// Info describes a stored session without opening it.
type Info struct {
	SessionID string
	Started   time.Time // of the first record, or of the place it is kept
	Modified  time.Time // of the last append
	Bytes     int64     // size of the records
}

// Store holds the logs of many sessions. One that needs an orderly end
// implements io.Closer.
type Store interface {
	// Create makes an empty log. [ErrExists] where the id has one.
	Create(ctx context.Context, id string) (Log, error)
	// Open opens the log of a stored session. [ErrNotFound] where there is none.
	// What was found wrong at the end of the log is in the second result.
	Open(ctx context.Context, id string) (Log, []Damage, error)
	// Stat describes a stored session; [ErrNotFound] where there is none.
	Stat(ctx context.Context, id string) (Info, error)
	// List describes all stored sessions, newest Modified first.
	List(ctx context.Context) ([]Info, error)
	// Delete removes a session's log and everything kept beside it.
	// [ErrNotFound] where there is none.
	Delete(ctx context.Context, id string) error
	// Dir is the directory that belongs to a session, for files beside its log
	// (large tool results); "" where the store has none. The directory need not
	// exist yet.
	Dir(id string) string
	// Hold marks a session as loaded by the caller. Any number of holders, in
	// any process, may hold one session: see [Hold].
	Hold(id string) (Hold, error)
}

// Hold is one holder's mark on a loaded session ("presence"), and its access to
// the right to write ("the pen"). Both end with the process that has them.
type Hold interface {
	// Others reports whether anyone else, in this process or another, holds the
	// session now.
	Others() (bool, error)
	// TakePen takes the right to write. A *HeldError where another holder has
	// it. Taking a pen already taken is no error.
	TakePen() error
	// DropPen gives the right to write back.
	DropPen() error
	// Release drops the pen and the mark.
	Release() error
}

// HeldError says that another holder has the pen of a session.
type HeldError struct {
	SessionID string
	PID       int // of the process that has it; this process's own where another runtime in it does; 0: not known
}

func (e *HeldError) Error() string {
	if e.PID <= 0 { // the operating system did not say, as across machines
		return fmt.Sprintf("session %s is busy in another process: wait until its turn has ended, or stop it there", e.SessionID)
	}
	return fmt.Sprintf("session %s is busy in process %d: wait until its turn has ended, or stop it there", e.SessionID, e.PID)
}

// Errors that stores return, wrapped.
var (
	ErrNotFound = errors.New("no such session in the store")
	ErrExists   = errors.New("the store already has a session of this id")
	// ErrInvalidID: an id that cannot name a session (empty, a path, over 255 bytes).
	ErrInvalidID = errors.New("not a valid session id")
	ErrClosed    = errors.New("the log is closed")
	// ErrInUse: another process has the session loaded, and may go on with it.
	ErrInUse = errors.New("the session is open in another process: close it there first")
	// ErrMoved: another writer has appended since this Log last did or was opened.
	ErrMoved = errors.New("the log was taken over by another writer: resume the session to take it back")
)
