package filelog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"

	"github.com/transom-run/transom/eventlog"
	"github.com/transom-run/transom/eventlog/internal/record"
)

var errShrunk = errors.New("the file is shorter than it was: something else cut it")

// Read implements eventlog.Log. It keeps one buffer, and a line that is longer
// than that only while it is handed over.
func (l *Log) Read(from eventlog.Position) iter.Seq2[eventlog.Record, error] {
	l.mu.Lock()
	f, t, pending, closed := l.file, l.tail, l.pending, l.closed
	l.mu.Unlock()
	pending = pending[:len(pending):len(pending)]
	var err error
	switch end := t.end + int64(len(pending)); {
	case closed:
		err = l.wrap("read", eventlog.ErrClosed)
	case from < 0 || int64(from) > end:
		err = l.wrap("read", fmt.Errorf("position %d is not in the log, which ends at %d", from, end))
	}
	return func(yield func(eventlog.Record, error) bool) {
		if err != nil {
			yield(eventlog.Record{}, err)
			return
		}
		at := int64(from)
		r := reading{log: l, yield: yield, from: at}
		if at < t.end {
			if !r.run(f, at, t.good(), 0) {
				return
			}
			at = t.end
		}
		r.run(bytes.NewReader(pending), at-t.end, int64(len(pending)), t.end)
	}
}

// reading is one pass over a log.
type reading struct {
	log   *Log
	yield func(eventlog.Record, error) bool
	from  int64
	// line counts the physical lines since from; before is how many there are
	// ahead of it, counted when the first damage needs a line number.
	line    int
	before  int
	counted bool
}

// run yields the records of r from one offset to another; shift is added to
// offsets to make positions. It reports whether to go on.
func (r *reading) run(src io.ReaderAt, from, to, shift int64) bool {
	s := scanner{src: src, off: from, end: to}
	for {
		l, ok, err := s.next()
		if err != nil {
			r.yield(eventlog.Record{}, r.log.wrap("read", readError(err)))
			return false
		}
		if !ok {
			return true
		}
		r.line++
		l.pos += shift
		l.next += shift
		if !r.emit(l) {
			return false
		}
	}
}

// emit yields what one line holds.
func (r *reading) emit(l line) bool {
	if l.tooLong {
		return r.damage(l.pos, l.next-l.pos, fmt.Sprintf("a line of over %d MiB", maxRecord>>20))
	}
	if b := record.Trim(l.data); record.Valid(b) {
		if !l.owned {
			b = bytes.Clone(b)
		}
		return r.yield(eventlog.Record{Pos: eventlog.Position(l.pos), Next: eventlog.Position(l.next), Line: b}, nil)
	}
	segs := record.Split(l.data)
	for i, seg := range segs {
		pos, next := l.pos+int64(seg.Start), l.next
		if i+1 < len(segs) {
			next = l.pos + int64(segs[i+1].Start)
		}
		ok := false
		if seg.Bad != "" {
			ok = r.damage(pos, int64(seg.End-seg.Start), seg.Bad)
		} else {
			data := bytes.Clone(l.data[seg.Start:seg.End])
			ok = r.yield(eventlog.Record{Pos: eventlog.Position(pos), Next: eventlog.Position(next), Line: data}, nil)
		}
		if !ok {
			return false
		}
	}
	return true
}

func (r *reading) damage(pos, n int64, reason string) bool {
	d := eventlog.Damage{Pos: eventlog.Position(pos), Bytes: n, Reason: reason}
	if !r.counted {
		r.counted = true
		if before, err := r.log.countLines(r.from); err == nil {
			r.before = before
		} else {
			r.before = -1
		}
	}
	if r.before >= 0 {
		d.Line = r.before + r.line
	}
	return r.yield(eventlog.Record{}, &eventlog.DamageError{Damage: d})
}

// countLines counts the line feeds before an offset in the file.
func (l *Log) countLines(to int64) (int, error) {
	l.mu.Lock()
	f, good := l.file, l.tail.good()
	l.mu.Unlock()
	if to > good { // among the provisional lines
		return 0, errShrunk
	}
	buf, lines := make([]byte, block), 0
	for at := int64(0); at < to; {
		b := buf[:min(block, to-at)]
		if err := readFull(f, b, at); err != nil {
			return 0, err
		}
		lines += bytes.Count(b, []byte{'\n'})
		at += int64(len(b))
	}
	return lines, nil
}

func readError(err error) error {
	if errors.Is(err, fs.ErrClosed) {
		return eventlog.ErrClosed
	}
	return err
}

// line is one physical line.
type line struct {
	pos, next int64
	data      []byte // without the line feed
	owned     bool   // data is in no buffer that is used again
	tooLong   bool   // data is missing
}

// scanner yields the lines of src between off and end. It takes a line from its
// buffer where it fits, and else measures it first and reads it into memory of
// exactly its length.
type scanner struct {
	src      io.ReaderAt
	off, end int64  // off is the offset of buf's first unread byte
	buf      []byte // what was read and not used yet
	mem      []byte
}

func (s *scanner) next() (line, bool, error) {
	if s.off >= s.end {
		return line{}, false, nil
	}
	i := bytes.IndexByte(s.buf, '\n')
	if i < 0 {
		if err := s.fill(); err != nil {
			return line{}, false, err
		}
		i = bytes.IndexByte(s.buf, '\n')
	}
	atEnd := s.off+int64(len(s.buf)) == s.end
	if i < 0 && !atEnd {
		return s.long()
	}
	if i < 0 {
		l := line{pos: s.off, next: s.end + 1, data: s.buf}
		s.off, s.buf = s.end, nil
		return l, true, nil
	}
	l := line{pos: s.off, next: s.off + int64(i) + 1, data: s.buf[:i]}
	s.off, s.buf = l.next, s.buf[i+1:]
	return l, true, nil
}

// fill moves the unread bytes to the front and reads as many as fit behind them.
func (s *scanner) fill() error {
	if s.mem == nil {
		s.mem = make([]byte, min(block, s.end-s.off))
	}
	n := copy(s.mem, s.buf)
	more := min(int64(len(s.mem)-n), s.end-s.off-int64(n))
	s.buf = s.mem[:n+int(more)]
	return readFull(s.src, s.buf[n:], s.off+int64(n))
}

// long takes a line that is longer than the buffer.
func (s *scanner) long() (line, bool, error) {
	l := line{pos: s.off, owned: true}
	feed := s.end
	for at := s.off + int64(len(s.buf)); at < s.end; {
		b := s.mem[:min(int64(len(s.mem)), s.end-at)]
		if err := readFull(s.src, b, at); err != nil {
			return line{}, false, err
		}
		if i := bytes.IndexByte(b, '\n'); i >= 0 {
			feed = at + int64(i)
			break
		}
		at += int64(len(b))
	}
	l.next = feed + 1
	if feed-l.pos > maxRecord {
		l.tooLong = true
	} else {
		l.data = make([]byte, feed-l.pos)
		if err := readFull(s.src, l.data, l.pos); err != nil {
			return line{}, false, err
		}
	}
	s.off, s.buf = min(l.next, s.end), nil
	return l, true, nil
}

// LastWith implements eventlog.Searcher. It does not look at provisional lines.
func (l *Log) LastWith(text []byte, before eventlog.Position) (eventlog.Position, bool) {
	l.mu.Lock()
	f, good, closed := l.file, l.tail.good(), l.closed
	l.mu.Unlock()
	if f == nil || closed || len(text) == 0 || len(text) > block {
		return 0, false
	}
	buf := make([]byte, block+len(text))
	for end := min(int64(before), good); end > 0; {
		b, err := blockBefore(f, buf, end)
		if err != nil {
			return 0, false
		}
		start := end - int64(len(b))
		if i := bytes.LastIndex(b, text); i >= 0 {
			at, err := lineStart(f, start+int64(i))
			return eventlog.Position(at), err == nil
		}
		if start == 0 {
			break
		}
		end = start + int64(len(text)) - 1 // a match may lie across the two blocks
	}
	return 0, false
}
