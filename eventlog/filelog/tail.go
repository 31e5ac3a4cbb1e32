package filelog

import (
	"bytes"
	"io"

	"github.com/transom-run/transom/eventlog"
	"github.com/transom-run/transom/eventlog/internal/record"
)

// block is how much is read at a time.
const block = 64 << 10

// nearby is how much is read at first where what is looked for is usually close.
const nearby = 4 << 10

// maxRecord is the length of the longest line that is taken into memory. A
// longer one is damage: a log made of one endless line must not end the process.
const maxRecord = 1 << 30

// tail is how a log ends.
type tail struct {
	// end is the position after the last record.
	end int64
	// bare is true where the last record lacks its line feed: the file's good
	// part then ends one byte before end, and the next write begins with it.
	bare bool
	// damage is what lies behind the good part, none or one stretch.
	damage []eventlog.Damage
}

// good is the length of the file's good part.
func (t tail) good() int64 {
	if t.bare {
		return t.end - 1
	}
	return t.end
}

// examine looks at the end of a log of the given size. It reads back to the
// last line that holds anything, and that line.
func examine(r io.ReaderAt, size int64) (tail, error) {
	text, err := trimBack(r, size) // after the last byte that says something
	if err != nil {
		return tail{}, err
	}
	start, err := lineStart(r, text)
	if err != nil {
		return tail{}, err
	}
	term, err := terminator(r, text, size)
	if err != nil {
		return tail{}, err
	}
	var t tail
	reason := "empty lines"
	if term.nul {
		reason = "tail of NUL bytes"
	}
	whole, err := endsInRecord(r, start, text)
	switch {
	case err != nil:
		return tail{}, err
	case text == 0:
		// Nothing but blanks.
	case whole && term.feed > 0:
		t.end = term.feed
	case whole:
		t.end, t.bare = text+1, true
	case term.feed > 0:
		t.end, reason = start, "last record is not a JSON object"
	default:
		t.end, reason = start, "torn last record"
		if term.nul {
			reason += ", and NUL bytes"
		}
	}
	if n := size - t.good(); n > 0 {
		t.damage = []eventlog.Damage{{Pos: eventlog.Position(t.good()), Bytes: n, Reason: reason, Dropped: true}}
	}
	return t, nil
}

// endsInRecord reports whether the line at [start,end) ends in a record.
func endsInRecord(r io.ReaderAt, start, end int64) (bool, error) {
	if start == end || end-start > maxRecord {
		return false, nil
	}
	line := make([]byte, end-start)
	if err := readFull(r, line, start); err != nil {
		return false, err
	}
	segs := record.Split(line)
	return len(segs) > 0 && segs[len(segs)-1].Bad == "", nil
}

// blank holds the bytes that say nothing at the end of a log.
const blank = "\x00 \t\r\n"

// trimBack returns the offset after the last byte before end that is not blank.
func trimBack(r io.ReaderAt, end int64) (int64, error) {
	var buf []byte
	for size := nearby; end > 0; size = block {
		if len(buf) < size {
			buf = make([]byte, size)
		}
		b, err := blockBefore(r, buf, end)
		if err != nil {
			return 0, err
		}
		start := end - int64(len(b))
		if b = bytes.TrimRight(b, blank); len(b) > 0 {
			return start + int64(len(b)), nil
		}
		end = start
	}
	return 0, nil
}

// lineStart returns the offset of the first byte of the line that the byte
// before end belongs to.
func lineStart(r io.ReaderAt, end int64) (int64, error) {
	var buf []byte
	for size := nearby; end > 0; size = block {
		if len(buf) < size {
			buf = make([]byte, size)
		}
		b, err := blockBefore(r, buf, end)
		if err != nil {
			return 0, err
		}
		start := end - int64(len(b))
		if i := bytes.LastIndexByte(b, '\n'); i >= 0 {
			return start + int64(i) + 1, nil
		}
		end = start
	}
	return 0, nil
}

// blockBefore reads the bytes before end: a full buffer, or all there are.
func blockBefore(r io.ReaderAt, buf []byte, end int64) ([]byte, error) {
	b := buf[:min(int64(len(buf)), end)]
	return b, readFull(r, b, end-int64(len(b)))
}

// ending describes the blank bytes at the end of a log.
type ending struct {
	feed int64 // after the line feed that ends the last line; 0 where none does
	nul  bool  // there are NUL bytes among them
}

func terminator(r io.ReaderAt, from, size int64) (ending, error) {
	var e ending
	buf := make([]byte, min(block, size-from))
	for from < size {
		b := buf[:min(int64(len(buf)), size-from)]
		if err := readFull(r, b, from); err != nil {
			return e, err
		}
		if i := bytes.IndexAny(b, "\x00\n"); i >= 0 && b[i] == '\n' && !e.nul && e.feed == 0 {
			e.feed = from + int64(i) + 1
		}
		if e.nul = e.nul || bytes.IndexByte(b, 0) >= 0; e.nul {
			return e, nil
		}
		from += int64(len(b))
	}
	return e, nil
}

// readFull reads all of b. A file that ends before is an error: it was longer
// when it was looked at.
func readFull(r io.ReaderAt, b []byte, off int64) error {
	n, err := r.ReadAt(b, off)
	if n == len(b) {
		return nil
	}
	if err == nil || err == io.EOF {
		err = errShrunk
	}
	return err
}
