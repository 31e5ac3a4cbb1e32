package jsonrpc2

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
)

const (
	// maxHeaderBytes is the most that one header block may hold. The clients'
	// headers are under 40 bytes; what is longer is not the protocol.
	maxHeaderBytes = 64 << 10
	// maxSaneLength is the largest Content-Length taken for a length. Up to it an
	// oversized body is read and thrown away; beyond it the header is garbage, or
	// comes from a peer that nobody should listen to for so long.
	maxSaneLength = 4 << 30
	// bodyStep is how much memory a frame gets on the word of its header alone.
	// The rest is allocated as bytes arrive, so that a header that promises
	// 64 MiB and sends nothing costs little.
	bodyStep = 1 << 20
)

// FrameError says that the bytes on the stream are not Content-Length frames.
// Where the next message starts is then unknown, so the connection is closed.
type FrameError struct {
	// Reason says what was wrong, in words fit for the peer.
	Reason string
}

// Error describes the violation.
func (e *FrameError) Error() string { return "jsonrpc2: bad frame header: " + e.Reason }

// frameReader splits a stream into bodies. It is used by one goroutine.
type frameReader struct {
	br *bufio.Reader
}

func newFrameReader(r io.Reader) *frameReader {
	return &frameReader{br: bufio.NewReaderSize(r, maxHeaderBytes)}
}

// header reads one header block and returns the length of the body that
// follows. It returns io.EOF where the stream ended between two frames,
// io.ErrUnexpectedEOF where it ended inside a header, and a *FrameError for
// what is no header. Lines may end in CRLF or in a bare LF: both are
// unambiguous, since a header block ends at its first empty line.
func (f *frameReader) header() (int64, error) {
	length, total := int64(-1), 0
	for {
		if b, err := f.br.Peek(1); err == nil && !headerByte(b[0]) {
			// Told at once: such a stream may never hold the line feed that ends a line.
			return 0, &FrameError{"the stream holds bytes that no header has: " + quoteHead(b)}
		}
		line, err := f.br.ReadSlice('\n')
		total += len(line)
		switch {
		case errors.Is(err, bufio.ErrBufferFull) || total > maxHeaderBytes:
			return 0, &FrameError{fmt.Sprintf("header block is longer than %d bytes", maxHeaderBytes)}
		case errors.Is(err, io.EOF) && total > 0:
			return 0, io.ErrUnexpectedEOF
		case err != nil:
			return 0, err
		}
		line = bytes.TrimSuffix(line[:len(line)-1], []byte("\r"))
		if len(line) == 0 {
			if length < 0 {
				return 0, &FrameError{"header block has no Content-Length"}
			}
			return length, nil
		}
		name, value, ok := bytes.Cut(line, []byte(":"))
		if !ok {
			return 0, &FrameError{fmt.Sprintf("header line %s has no ':'", quoteHead(line))}
		}
		name = bytes.Trim(name, " \t")
		if !headerName(name) {
			return 0, &FrameError{fmt.Sprintf("header line %s has no name", quoteHead(line))}
		}
		if !bytes.EqualFold(name, []byte("Content-Length")) {
			continue
		}
		n, err := parseLength(bytes.Trim(value, " \t"))
		if err != nil {
			return 0, err
		}
		if length >= 0 && length != n {
			return 0, &FrameError{fmt.Sprintf("two values for Content-Length: %d and %d", length, n)}
		}
		length = n
	}
}

// headerByte reports whether a header line may begin with b.
func headerByte(b byte) bool {
	return b > ' ' && b < 0x7f || b == ' ' || b == '\t' || b == '\r' || b == '\n'
}

// headerName reports whether a header can have this name: a word of letters,
// digits and hyphens. The request line of HTTP, which may hold a colon ("POST /a:b
// HTTP/1.1"), is no such word. That is what keeps a page in a browser, which may
// send any body behind such a line to any port of this machine, from being served.
func headerName(name []byte) bool {
	for _, b := range name {
		if b != '-' && (b < '0' || b > '9') && (b|0x20 < 'a' || b|0x20 > 'z') {
			return false
		}
	}
	return len(name) > 0
}

// parseLength accepts decimal digits only: no sign, no blank, no fraction.
func parseLength(value []byte) (int64, error) {
	if len(value) == 0 {
		return 0, &FrameError{"Content-Length is empty"}
	}
	for _, b := range value {
		if b < '0' || b > '9' {
			return 0, &FrameError{"Content-Length must be a decimal number of bytes, got " + quoteHead(value)}
		}
	}
	n, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil || n > maxSaneLength {
		return 0, &FrameError{fmt.Sprintf("Content-Length %s is beyond any message (%d bytes)", quoteHead(value), int64(maxSaneLength))}
	}
	return n, nil
}

// quoteHead quotes the first bytes of what a peer sent, for an error text.
func quoteHead(b []byte) string {
	const limit = 40
	if len(b) > limit {
		return strconv.QuoteToASCII(string(b[:limit])) + "…"
	}
	return strconv.QuoteToASCII(string(b))
}

// body reads the n bytes of a body into memory of its own.
func (f *frameReader) body(n int64) ([]byte, error) {
	buf := make([]byte, min(n, bodyStep))
	for have := 0; ; {
		m, err := io.ReadFull(f.br, buf[have:])
		have += m
		if err != nil {
			return nil, cutShort(err)
		}
		if int64(have) == n {
			return buf, nil
		}
		grown := make([]byte, min(n, int64(len(buf))*4))
		copy(grown, buf)
		buf = grown
	}
}

// skim reads the n bytes of a body and keeps nothing but what tells whose
// message it was, so that the one request can be failed by its id.
func (f *frameReader) skim(n int64) (*outline, error) {
	o := &outline{keepID: true}
	for n > 0 {
		step := min(n, int64(f.br.Size()))
		chunk, err := f.br.Peek(int(step))
		if len(chunk) == 0 {
			return nil, cutShort(err)
		}
		o.feed(chunk)
		n -= int64(len(chunk))
		if _, err := f.br.Discard(len(chunk)); err != nil {
			return nil, cutShort(err)
		}
	}
	return o, nil
}

// drain reads and discards until the stream ends or is closed.
func (f *frameReader) drain() {
	_, _ = io.Copy(io.Discard, f.br)
}

func cutShort(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// appendHeader appends the header block of a frame of n bytes. The name is
// written exactly so: some clients compare it byte for byte.
func appendHeader(dst []byte, n int) []byte {
	dst = append(dst, "Content-Length: "...)
	dst = strconv.AppendInt(dst, int64(n), 10)
	return append(dst, "\r\n\r\n"...)
}
