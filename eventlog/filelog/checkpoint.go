package filelog

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/transom-run/transom/eventlog"
)

// checkpointName is the file of the checkpoint: a line of JSON (checkpointHead),
// then the data as it was given.
const checkpointName = "transom.checkpoint"

type checkpointHead struct {
	Version int   `json:"version"`
	Pos     int64 `json:"pos"`
	// Record is the SHA-256 of the line that ends at Pos, so that a checkpoint
	// that came from another log, or from this one before it was put back from
	// a backup, is known as such.
	Record string `json:"record"`
	Bytes  int64  `json:"bytes"` // of the data
	// Sum is the SHA-256 over the fields above and the data.
	Sum string `json:"sum"`
}

func (h checkpointHead) sum(data []byte) string {
	s := sha256.New()
	fmt.Fprintf(s, "%d %d %s %d\n", h.Version, h.Pos, h.Record, h.Bytes)
	s.Write(data)
	return hex.EncodeToString(s.Sum(nil))
}

// SaveCheckpoint implements eventlog.Checkpointer. It replaces the file by a
// rename and does not sync it: what a crash leaves of it is either whole or
// known as damaged.
func (l *Log) SaveCheckpoint(pos eventlog.Position, data []byte) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.mu.Lock()
	f, t, pending, closed := l.file, l.tail, int64(len(l.pending)), l.closed
	l.mu.Unlock()
	fail := func(err error) error { return l.wrap("save a checkpoint of", err) }
	switch {
	case closed:
		return fail(eventlog.ErrClosed)
	case pos < 0 || int64(pos) > t.end+pending:
		return fail(fmt.Errorf("position %d is not in the log, which ends at %d", pos, t.end+pending))
	case f == nil || int64(pos) > t.end:
		return nil // provisional
	}
	digest, err := digestBefore(f, int64(pos))
	if err != nil {
		return fail(readError(err))
	}
	head := checkpointHead{Version: 1, Pos: int64(pos), Record: digest, Bytes: int64(len(data))}
	head.Sum = head.sum(data)
	b, err := json.Marshal(head)
	if err != nil {
		return fail(err)
	}
	b = append(append(b, '\n'), data...)
	if err := l.replace(checkpointName, b); err != nil {
		return fail(err)
	}
	return nil
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
func (l *Log) LoadCheckpoint() (eventlog.Position, []byte, bool) {
	l.mu.Lock()
	f, end, closed := l.file, l.tail.end, l.closed
	l.mu.Unlock()
	if f == nil || closed {
		return 0, nil, false
	}
	head, data, err := l.readCheckpoint(f, end)
	if err != nil {
		return 0, nil, false
	}
	return eventlog.Position(head.Pos), data, true
}

// readCheckpoint looks at the head and the log before it reads the data.
func (l *Log) readCheckpoint(f file, end int64) (head checkpointHead, data []byte, err error) {
	bad := errors.New("not a checkpoint of this log")
	c, err := l.store.fs.open(filepath.Join(l.dir, checkpointName), os.O_RDONLY)
	if err != nil {
		return head, nil, err
	}
	defer c.Close()
	fi, err := c.Stat()
	if err != nil {
		return head, nil, err
	}
	if !fi.Mode().IsRegular() {
		return head, nil, bad
	}
	r := bufio.NewReaderSize(io.NewSectionReader(c, 0, fi.Size()), 1024)
	first, err := r.ReadSlice('\n') // a longer first line is none of ours
	if err != nil {
		return head, nil, err
	}
	if err := json.Unmarshal(first, &head); err != nil {
		return head, nil, err
	}
	if head.Version != 1 || head.Pos < 0 || head.Pos > end || head.Bytes != fi.Size()-int64(len(first)) {
		return head, nil, bad
	}
	if digest, err := digestBefore(f, head.Pos); err != nil || digest != head.Record {
		return head, nil, bad
	}
	data = make([]byte, head.Bytes)
	if _, err := io.ReadFull(r, data); err != nil {
		return head, nil, err
	}
	if head.sum(data) != head.Sum {
		return head, nil, bad
	}
	return head, data, nil
}

// digestBefore hashes the line that ends at pos, without its line feed (which
// the last line of a log may lack).
func digestBefore(r io.ReaderAt, pos int64) (string, error) {
	s := sha256.New()
	if pos > 0 {
		start, err := lineStart(r, pos-1)
		if err != nil {
			return "", err
		}
		if _, err := io.Copy(s, io.NewSectionReader(r, start, pos-1-start)); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(s.Sum(nil)), nil
}
