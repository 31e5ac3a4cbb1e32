package eventlog

import "context"

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
	LoadCheckpoint() (pos Position, data string, ok bool)
}

// Extender is implemented by a [Checkpointer] that can add to what it keeps for less
// than it takes to keep all of it anew.
type Extender interface {
	// ExtendCheckpoint puts data behind what this Log has saved, and the checkpoint
	// at pos: [Checkpointer.LoadCheckpoint] returns both, one behind the other. What
	// was added last may be missing again after a crash, or where the log has lost
	// its end: the data is then that of an earlier position. It is an error where
	// this Log has saved no checkpoint, or one of a later position, the last attempt to add to it has failed, or
	// somebody else has saved one since: the next one is to be a whole one. Provisional
	// records are as for SaveCheckpoint.
	ExtendCheckpoint(pos Position, data []byte) error
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

// Searcher is implemented by logs that can be searched from their end, which costs
// less than reading them.
type Searcher interface {
	// LastWith returns where the last line before a position begins that holds a
	// text; ok is false where there is none, or the log cannot be read.
	LastWith(text []byte, before Position) (at Position, ok bool)
}

// Header is implemented by stores that can show the first records of a log for less
// than it takes to open it.
type Header interface {
	// Head calls see with the records of a stored log, in order, until that returns
	// false or enough of the log has been looked at. What is damaged is passed over;
	// the line is see's only during the call. [ErrNotFound] where there is no log.
	Head(ctx context.Context, id string, see func(line []byte) bool) error
}
