// Package record knows what a line of a log looks like, and what can be saved
// from one that does not look so.
//
//	{"type":…}            one record
//	{"type":…}{"type":…}  a lost line feed: two records
//	␀␀␀{"type":…}         written behind the NUL tail of a crash: damage, then a record
//	{"type":"us           damage
package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"unicode/utf8"
)

// Check says whether a line may be appended. It looks at the frame only: see
// the Append method of eventlog.Log.
func Check(line []byte) error {
	switch {
	case len(line) == 0:
		return errors.New("a record is empty")
	case line[0] != '{' || line[len(line)-1] != '}':
		return errors.New("a record is not a JSON object")
	case bytes.IndexByte(line, '\n') >= 0:
		return errors.New("a record holds a line feed: it must be one line")
	}
	return nil
}

// Join appends the lines to dst, each with its line feed.
func Join(dst []byte, lines [][]byte) []byte {
	for _, l := range lines {
		dst = append(append(dst, l...), '\n')
	}
	return dst
}

// Valid reports whether b is one JSON object in UTF-8, with nothing around it.
func Valid(b []byte) bool {
	return len(b) >= 2 && b[0] == '{' && b[len(b)-1] == '}' && utf8.Valid(b) && json.Valid(b)
}

// Trim takes JSON's white space off both ends: the CR of a CRLF, mostly.
func Trim(b []byte) []byte { return bytes.Trim(b, " \t\r\n") }

// Segment is a part of a line, by the offsets of its first byte and of the one
// after its last.
type Segment struct {
	Start, End int
	// Bad is empty for a record, else what is wrong with the part.
	Bad string
}

// Split finds the records of a line, and what stands between and after them. A
// record is taken only where the line ends or another record or NUL bytes
// follow; otherwise it is more likely to be a piece of a damaged one. A line of
// white space has no segments.
func Split(line []byte) []Segment {
	var segs []Segment
	for at := 0; ; {
		at += len(line[at:]) - len(bytes.TrimLeft(line[at:], " \t\r\n"))
		if at == len(line) {
			return segs
		}
		rest := line[at:]
		if n := len(rest) - len(bytes.TrimLeft(rest, "\x00")); n > 0 {
			segs = append(segs, Segment{at, at + n, "NUL bytes"})
			at += n
			continue
		}
		n, bad := object(rest)
		if bad != "" {
			return append(segs, Segment{at, len(line), bad})
		}
		segs = append(segs, Segment{at, at + n, ""})
		at += n
	}
}

// object measures the JSON object that b begins with, or says why there is none.
func object(b []byte) (n int, bad string) {
	const notObject = "not a JSON object"
	if whole := Trim(b); Valid(whole) {
		return len(whole), ""
	}
	if b[0] != '{' {
		return 0, notObject
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	var raw json.RawMessage
	if err := dec.Decode(&raw); err != nil {
		return 0, notObject
	}
	if !utf8.Valid(raw) {
		return 0, "not valid UTF-8"
	}
	n = int(dec.InputOffset())
	if next := bytes.TrimLeft(b[n:], " \t\r\n"); len(next) > 0 && next[0] != '{' && next[0] != 0 {
		return 0, notObject
	}
	return n, ""
}
