package wire

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"sync"
)

// ErrLineTooLong is for a line beyond the limit of the whole answer.
var ErrLineTooLong = errors.New("a line of the stream is longer than the limit")

// Events reads server-sent events. It wants what the wire uses of them and
// forgives the rest: LF or CRLF, comments, any other field, data over several
// lines, no empty line and no line end at the end of the stream.
type Events struct {
	// Name is "error" for an event of that name, and empty otherwise: what else an
	// event is stands in its data.
	Name string

	r    *bufio.Reader
	max  int    // longest event in bytes
	long []byte // a line longer than r's buffer
	data []byte // data of several lines
	done bool   // the stream has ended
}

var readers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, 16<<10) }}

// NewEvents reads the events of r; max is the longest event in bytes.
func NewEvents(r io.Reader, max int) *Events {
	br := readers.Get().(*bufio.Reader)
	br.Reset(r)
	if bom, _ := br.Peek(3); bytes.Equal(bom, []byte("\xef\xbb\xbf")) {
		br.Discard(3)
	}
	return &Events{r: br, max: max}
}

// Release gives the buffer back. The last event's data is invalid then.
func (e *Events) Release() {
	e.r.Reset(nil)
	readers.Put(e.r)
	e.r = nil
}

// Next returns the data of the next event, valid until the call after it. At the
// end it returns io.EOF, or what broke the stream.
func (e *Events) Next() ([]byte, error) {
	count := 0
	e.data, e.Name = e.data[:0], ""
	for !e.done {
		line, err := e.line()
		if err != nil {
			e.done = true
			if err != io.EOF {
				return nil, err
			}
			if len(line) == 0 {
				break
			}
		}
		if len(line) == 0 {
			if count > 0 {
				break
			}
			e.Name = ""
			continue
		}
		value, ok := field(line, "data")
		if !ok {
			if v, ok := field(line, "event"); ok && string(v) == "error" {
				e.Name = "error"
			}
			continue
		}
		count++
		// The blank line after the data is mostly there already; then nothing is
		// copied.
		if count == 1 && e.blankNext() {
			return value, nil
		}
		if count > 1 {
			e.data = append(e.data, '\n')
		}
		if e.data = append(e.data, value...); len(e.data) > e.max {
			e.done = true
			return nil, ErrLineTooLong
		}
	}
	if count == 0 {
		return nil, io.EOF
	}
	return e.data, nil
}

// blankNext consumes the empty line after the current one, if it has arrived.
func (e *Events) blankNext() bool {
	n := e.r.Buffered()
	if n == 0 {
		return false
	}
	b, _ := e.r.Peek(min(n, 2))
	switch {
	case b[0] == '\n':
		e.r.Discard(1)
	case len(b) == 2 && b[0] == '\r' && b[1] == '\n':
		e.r.Discard(2)
	default:
		return false
	}
	return true
}

// line returns the next line without its end. Its last line may come with io.EOF.
func (e *Events) line() ([]byte, error) {
	e.long = e.long[:0]
	for {
		part, err := e.r.ReadSlice('\n')
		if err == bufio.ErrBufferFull {
			if e.long = append(e.long, part...); len(e.long) > e.max {
				return nil, ErrLineTooLong
			}
			continue
		}
		if len(e.long) > 0 {
			e.long = append(e.long, part...)
			part = e.long
		}
		part = bytes.TrimSuffix(part, []byte("\n"))
		part = bytes.TrimSuffix(part, []byte("\r"))
		return part, err
	}
}

// field returns the value of a line "name: value"; one space after the colon is
// not part of it.
func field(line []byte, name string) ([]byte, bool) {
	if len(line) < len(name) || string(line[:len(name)]) != name {
		return nil, false
	}
	rest := line[len(name):]
	if len(rest) == 0 {
		return rest, true
	}
	if rest[0] != ':' {
		return nil, false
	}
	rest = rest[1:]
	if len(rest) > 0 && rest[0] == ' ' {
		rest = rest[1:]
	}
	return rest, true
}
