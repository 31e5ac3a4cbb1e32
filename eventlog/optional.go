package eventlog

// Verifier is implemented by logs that another process can reach.
type Verifier interface {
	// Verify reports, for about the price of one system call, whether the log
	// still ends where this Log left it: [ErrMoved] where another writer has
	// appended, [ErrNotFound] where the session was deleted. Whoever takes the
	// pen asks it before the first append; while the pen is held the answer
	// cannot change.
	Verify() error
}

// Checkpointer is implemented by logs that can keep something derived from
// their records beside them, so that opening a long log need not read it all.
//
// A checkpoint is a hint, never the truth: the log is read from its position
// on, and where it is missing, damaged, or does not belong to this log as it
// now stands, the log is read from the start. Deleting it costs time only.
type Checkpointer interface {
	// SaveCheckpoint keeps data as what was derived from the records before
	// pos, in place of an earlier checkpoint. The position is one that the log
	// returned, and not beyond its end. A checkpoint of records that are only
	// provisional is not kept, which is no error.
	SaveCheckpoint(pos Position, data []byte) error
	// LoadCheckpoint returns what was kept last, if it is whole and the record
	// that ends at pos is the one that ended there when it was saved.
	LoadCheckpoint() (pos Position, data []byte, ok bool)
}

// Waiting is implemented by logs whose Append waits for somebody else, such as a
// host at the other end of a connection. Whoever must not wait calls it from a
// goroutine of its own, one Append at a time.
type Waiting interface {
	// Waits does nothing.
	Waits()
}

// Sized is implemented by logs whose positions do not count bytes.
type Sized interface {
	// Bytes is the size of the records.
	Bytes() int64
}
