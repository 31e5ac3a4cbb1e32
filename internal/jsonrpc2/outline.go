package jsonrpc2

import (
	"bytes"
	"encoding/json"
)

// member numbers the members of a message that this package reads.
type member int

const (
	memberOther member = iota
	memberVersion
	memberID
	memberMethod
	memberParams
	memberResult
	memberError
	memberCount
)

// memberNamed is the member of a name; 0 is none of ours.
func memberNamed(name string) member {
	switch name {
	case "jsonrpc":
		return memberVersion
	case "id":
		return memberID
	case "method":
		return memberMethod
	case "params":
		return memberParams
	case "result":
		return memberResult
	case "error":
		return memberError
	}
	return 0
}

const (
	longestName   = 64      // longer member names are none of ours
	longestSkimID = 4 << 10 // ids of skimmed messages are given up beyond this
)

// span is a half-open range of offsets in a body; the zero span means "absent".
type span struct{ from, to int64 }

func (s span) found() bool { return s.to > s.from }

// of cuts the span out of the body, without the space around it.
func (s span) of(body []byte) []byte {
	return bytes.Trim(body[s.from:s.to], " \t\r\n")
}

// outline finds where the members of one JSON object lie, in one pass and
// without a copy, however large the object. The object may come in pieces.
//
// It does not validate: on text that is not JSON its spans mean nothing. So
// callers validate first, or, for bodies too large to keep, check what they
// take from it.
type outline struct {
	spans    [memberCount]span
	isObject bool
	repeated bool // a member of ours occurs twice

	// keepID makes it collect the text of the id in id, for messages not kept.
	keepID bool
	id     []byte

	off      int64 // offset of the piece at hand
	depth    int
	inString bool
	escaped  bool // the next byte of the string stands behind a backslash
	inName   bool // the string is a member name of the outermost object
	wantName bool // the next string is one
	name     []byte
	cur      member // the member whose value is being passed over
	from     int64  // where that value starts, behind its colon
}

// feed takes the next piece of the text.
func (o *outline) feed(p []byte) {
	for i := 0; i < len(p); i++ {
		if o.inString {
			i = o.feedString(p, i)
			continue
		}
		b := p[i]
		switch b {
		case '"':
			o.inString = true
			if o.wantName && o.depth == 1 {
				o.inName, o.wantName, o.name = true, false, o.name[:0]
			}
		case ':':
			if o.depth == 1 {
				o.begin(o.off + int64(i) + 1)
				continue
			}
		case ',':
			if o.depth == 1 {
				o.finish(o.off + int64(i))
				o.wantName = true
			}
		case '{', '[':
			if o.depth == 0 {
				o.isObject, o.wantName = b == '{', b == '{'
			}
			o.depth++
		case '}', ']':
			if o.depth == 1 {
				o.finish(o.off + int64(i))
			}
			o.depth--
		}
		o.keep(p[i : i+1])
	}
	o.off += int64(len(p))
}

// feedString takes p from i on, up to the end of the string or of p, and
// returns the index of the last byte taken. Most bytes of large messages are
// inside strings, so this is where the time goes.
func (o *outline) feedString(p []byte, i int) int {
	from := i
	for ; i < len(p); i++ {
		if o.escaped {
			o.escaped = false
			continue
		}
		if p[i] == '\\' {
			o.escaped = true
		} else if p[i] == '"' {
			o.inString = false
			break
		}
	}
	if o.inName && len(o.name) <= longestName {
		o.name = append(o.name, p[from:min(i, from+longestName+1)]...)
	}
	if !o.inString {
		o.keep(p[from : i+1])
		o.inName = false
		return i
	}
	o.keep(p[from:])
	return len(p) - 1
}

// keep collects p where it is part of the id and ids are wanted.
func (o *outline) keep(p []byte) {
	if o.keepID && o.cur == memberID && len(o.id) <= longestSkimID {
		o.id = append(o.id, p[:min(len(p), longestSkimID+1)]...)
	}
}

// begin marks the start of the value that belongs to the name just read.
func (o *outline) begin(at int64) {
	o.cur, o.from = o.lookUp(), at
}

// finish marks the end of the current value, if it is one of ours.
func (o *outline) finish(at int64) {
	if o.cur == memberOther {
		return
	}
	if o.spans[o.cur].found() {
		o.repeated = true
	}
	o.spans[o.cur] = span{o.from, at}
	o.cur = memberOther
}

// lookUp says which member the name is. Escapes count: "\u0069d" is "id".
func (o *outline) lookUp() member {
	if len(o.name) > longestName {
		return memberOther
	}
	if bytes.IndexByte(o.name, '\\') < 0 {
		return memberNamed(string(o.name))
	}
	var plain string
	if json.Unmarshal([]byte(`"`+string(o.name)+`"`), &plain) != nil {
		return memberOther
	}
	return memberNamed(plain)
}
