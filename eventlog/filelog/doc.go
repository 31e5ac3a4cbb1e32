// Package filelog keeps session logs in files, in the place and format that the
// Copilot SDKs document.
//
//	HOME/session-state/
//	    .loaded, .pens            a lock byte a session each, no content
//	    SESSION-ID/
//	        events.jsonl          the log: one JSON object a line
//	        transom.checkpoint    how far it was folded, and the result; may be deleted
//	        …                     whatever the session keeps beside its log
//
// Directories are made with mode 0700 and files with 0600. A
// [eventlog.Position] is a byte offset.
//
// # Ownership
//
// A [Store] makes logs; each Log belongs to the goroutine that owns its session.
// A Log holds one descriptor and no goroutine. A Store has one timer, and only
// while some record is not on the disk yet.
//
// # Ordering
//
// One Append is one write to the end of the file. So a killed process leaves a
// batch whole, or not at all; a machine that dies may leave part of its last
// writes. A session's directory and file are made by the first batch that is
// not provisional, not by Create.
//
// # What damage looks like
//
// Open looks at the end of the file only, and changes nothing. What it finds
// there that is no record is reported, is not read, and is cut off by the next
// append:
//
//	…}⏎{"type":"us           torn last record
//	…}⏎{"type":"us␀␀␀        the same, and a tail of NUL bytes
//	…}⏎␀␀␀␀                  tail of NUL bytes
//	…}⏎{"type":"us⏎          last record is not a JSON object
//	…}⏎⏎⏎                    empty lines
//
// A last record that is whole and lacks only its line feed is kept: the next
// append begins with the line feed. At most one line is dropped; what is wrong
// before it stays where it is, and each Read reports it and goes on. Two records
// on one line (a lost line feed) are read as two, NUL bytes before a record are
// reported and the record is read, a CR before a line feed and empty lines are
// passed over in silence.
//
// A log that is opened while another process is in the middle of a write looks
// torn. Take the pen first: see [eventlog.Hold].
//
// # Errors
//
// They name the file and, where there is something to be done about it, what. A
// batch that could not be written whole is taken back. Where a sync has failed,
// the operating system may have let go of records that it never wrote, so from
// then on the Log refuses batches that ask for a sync, until the session is
// opened anew.
package filelog
