package filelog

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/transom-run/transom/eventlog"
)

// checkpointName is the file of the checkpoint: pieces, each a line of JSON
// (checkpointHead) and then its data as it was given. The first piece is what was
// saved, those behind it are what was added since.
//
//	{"version":2,"pos":900,…}⏎ data  {"version":2,"pos":1300,…}⏎ more  …
const checkpointName = "transom.checkpoint"

const checkpointVersion = 2

type checkpointHead struct {
	Version int   `json:"version"`
	Pos     int64 `json:"pos"`
	// Record is the SHA-256 of the line that ends at Pos, so that a checkpoint
	// that came from another log, or from this one before it was put back from
	// a backup, is known as such.
	Record string `json:"record"`
	Bytes  int64  `json:"bytes"` // of the data
	// Sum is the SHA-256 over the fields above, the Sum of the piece before, and the
	// data: so a piece counts only behind the one that it was added to.
	Sum string `json:"sum"`
}

func (h checkpointHead) begin(before string) hash.Hash {
	s := sha256.New()
	fmt.Fprintf(s, "%d %d %s %d %s\n", h.Version, h.Pos, h.Record, h.Bytes, before)
	return s
}

// savedCheckpoint is the file as this Log wrote it last; the zero one is none.
type savedCheckpoint struct {
	sum  string // of its last piece
	pos  int64
	size int64
}

// SaveCheckpoint implements eventlog.Checkpointer. It replaces the file by a
// rename and does not sync it: what a crash leaves of it is either whole or
// known as damaged.
func (l *Log) SaveCheckpoint(pos eventlog.Position, data []byte) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.saved = savedCheckpoint{}
	piece, sum, err := l.piece(pos, data, "")
	if err != nil || piece == nil {
		return err
	}
	if err := l.replace(checkpointName, piece); err != nil {
		return l.wrap("save a checkpoint of", err)
	}
	l.saved = savedCheckpoint{sum, int64(pos), int64(len(piece))}
	return nil
}

// ExtendCheckpoint implements eventlog.Extender: one write behind what this Log
// wrote before. Where anybody else has written the file since, it is an error.
func (l *Log) ExtendCheckpoint(pos eventlog.Position, data []byte) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	was := l.saved
	l.saved = savedCheckpoint{} // what becomes of it is not known before the end
	fail := func(err error) error { return l.wrap("add to the checkpoint of", err) }
	if was.sum == "" {
		return fail(errors.New("none was saved"))
	}
	if int64(pos) < was.pos {
		return fail(fmt.Errorf("position %d lies before it", pos))
	}
	piece, sum, err := l.piece(pos, data, was.sum)
	if err != nil || piece == nil {
		return err
	}
	f, err := l.store.fs.open(filepath.Join(l.dir, checkpointName), os.O_WRONLY|os.O_APPEND)
	if err != nil {
		return fail(err)
	}
	fi, err := f.Stat()
	if err == nil && fi.Size() != was.size {
		err = errors.New("it is not the one that was saved")
	}
	if err == nil {
		_, err = f.Write(piece)
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		return fail(err)
	}
	l.saved = savedCheckpoint{sum, int64(pos), was.size + int64(len(piece))}
	return nil
}

// piece makes a piece of the file, and its sum; nil where records are only
// provisional. The caller has writing.
func (l *Log) piece(pos eventlog.Position, data []byte, before string) ([]byte, string, error) {
	l.mu.Lock()
	f, t, pending, closed := l.file, l.tail, int64(len(l.pending)), l.closed
	l.mu.Unlock()
	fail := func(err error) ([]byte, string, error) { return nil, "", l.wrap("save a checkpoint of", err) }
	switch {
	case closed:
		return fail(eventlog.ErrClosed)
	case pos < 0 || int64(pos) > t.end+pending:
		return fail(fmt.Errorf("position %d is not in the log, which ends at %d", pos, t.end+pending))
	case f == nil || int64(pos) > t.end:
		return nil, "", nil // provisional
	}
	digest, err := digestBefore(f, int64(pos))
	if err != nil {
		return fail(readError(err))
	}
	head := checkpointHead{Version: checkpointVersion, Pos: int64(pos), Record: digest, Bytes: int64(len(data))}
	s := head.begin(before)
	s.Write(data)
	head.Sum = hex.EncodeToString(s.Sum(nil))
	b, err := json.Marshal(head)
	if err != nil {
		return fail(err)
	}
	return append(append(b, '\n'), data...), head.Sum, nil
}

// replace writes a file of the session's directory anew. The caller has writing.
func (l *Log) replace(name string, b []byte) error {
	name = filepath.Join(l.dir, name)
	tmp := name + ".tmp"
	f, err := l.store.fs.open(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = l.store.fs.rename(tmp, name)
	}
	if err != nil {
		_ = l.store.fs.remove(tmp)
	}
	return err
}

// LoadCheckpoint implements eventlog.Checkpointer.
func (l *Log) LoadCheckpoint() (eventlog.Position, string, bool) {
	l.mu.Lock()
	f, end, closed := l.file, l.tail.end, l.closed
	l.mu.Unlock()
	if f == nil || closed {
		return 0, "", false
	}
	pos, data, err := l.readCheckpoint(f, end)
	if err != nil {
		return 0, "", false
	}
	return eventlog.Position(pos), data, true
}

var errNoCheckpoint = errors.New("not a checkpoint of this log")

// readCheckpoint looks at the first head and the log before it reads the data. It
// takes as many pieces as are whole, and of those as many as the log has records
// for.
func (l *Log) readCheckpoint(f file, end int64) (pos int64, data string, err error) {
	c, err := l.store.fs.open(filepath.Join(l.dir, checkpointName), os.O_RDONLY)
	if err != nil {
		return 0, "", err
	}
	defer c.Close()
	fi, err := c.Stat()
	if err != nil {
		return 0, "", err
	}
	if !fi.Mode().IsRegular() {
		return 0, "", errNoCheckpoint
	}
	p := pieces{r: bufio.NewReaderSize(io.NewSectionReader(c, 0, fi.Size()), 8<<10), left: fi.Size()}
	first, err := p.head()
	if err != nil {
		return 0, "", err
	}
	if !of(f, first, end) {
		return 0, "", errNoCheckpoint
	}
	p.data.Grow(int(p.left))
	if err := p.take(first); err != nil {
		return 0, "", err
	}
	for {
		h, err := p.head()
		if err != nil || h.Pos < p.heads[len(p.heads)-1].Pos || p.take(h) != nil {
			break // the end, or what a crash has left behind it
		}
	}
	for i := len(p.heads) - 1; i > 0; i-- {
		if of(f, p.heads[i], end) {
			return p.heads[i].Pos, p.data.String()[:p.ends[i]], nil
		}
	}
	return first.Pos, p.data.String()[:p.ends[0]], nil
}

// of reports whether a piece was made of a log that ends there.
func of(f file, h checkpointHead, end int64) bool {
	if h.Pos < 0 || h.Pos > end {
		return false
	}
	digest, err := digestBefore(f, h.Pos)
	return err == nil && digest == h.Record
}

// pieces reads the pieces of a checkpoint.
type pieces struct {
	r     *bufio.Reader
	left  int64 // of the file
	data  strings.Builder
	heads []checkpointHead
	ends  []int // of their data
}

// head reads the head of the next piece, whose data is all there.
func (p *pieces) head() (h checkpointHead, err error) {
	line, err := p.r.ReadSlice('\n') // a line longer than the buffer is none of ours
	if err != nil {
		return h, err
	}
	p.left -= int64(len(line))
	if err := json.Unmarshal(line, &h); err != nil {
		return h, err
	}
	if h.Version != checkpointVersion || h.Bytes < 0 || h.Bytes > p.left {
		return h, errNoCheckpoint
	}
	return h, nil
}

// take reads a piece's data behind that of those before it.
func (p *pieces) take(h checkpointHead) error {
	before := ""
	if n := len(p.heads); n > 0 {
		before = p.heads[n-1].Sum
	}
	s := h.begin(before)
	for left := h.Bytes; left > 0; {
		b, err := p.r.Peek(int(min(left, int64(p.r.Size()))))
		if err != nil {
			return err
		}
		s.Write(b)
		p.data.Write(b)
		left -= int64(len(b))
		_, _ = p.r.Discard(len(b)) // they are there
	}
	p.left -= h.Bytes
	if hex.EncodeToString(s.Sum(nil)) != h.Sum {
		return errNoCheckpoint
	}
	p.heads, p.ends = append(p.heads, h), append(p.ends, p.data.Len())
	return nil
}

// digestBefore hashes the line that ends at pos, without its line feed (which
// the last line of a log may lack).
func digestBefore(r io.ReaderAt, pos int64) (string, error) {
	s := sha256.New()
	buf := make([]byte, 4<<10)
	if pos > 0 {
		// Most lines are short: one read finds such a line's beginning, and has it.
		b, err := blockBefore(r, buf, pos-1)
		if err != nil {
			return "", err
		}
		if i := bytes.LastIndexByte(b, '\n'); i >= 0 || int64(len(b)) == pos-1 {
			s.Write(b[i+1:])
		} else {
			start, err := lineStart(r, pos-1)
			if err != nil {
				return "", err
			}
			if _, err := io.CopyBuffer(s, io.NewSectionReader(r, start, pos-1-start), buf); err != nil {
				return "", err
			}
		}
	}
	return hex.EncodeToString(s.Sum(nil)), nil
}
