package builtin

import (
	"fmt"
	"sync"
	"unicode/utf8"
)

// What is kept of one command's output: its beginning and its end. The rest of
// the runtime cuts long results again, and keeps the whole of what it gets in a
// file.
const (
	maxHead = 512 << 10
	maxTail = 512 << 10
)

// output collects what a command prints. It never blocks the command: past its
// limit the middle is dropped.
type output struct {
	mu    sync.Mutex
	head  []byte
	tail  []byte // the bytes before total
	total int64
	grown chan struct{} // closed and replaced at each write
}

// Write appends; it cannot fail.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := len(p)
	o.total += int64(n)
	if free := maxHead - len(o.head); free > 0 {
		k := min(free, len(p))
		o.head = append(o.head, p[:k]...)
		p = p[k:]
	}
	o.tail = append(o.tail, p...)
	if len(o.tail) > 2*maxTail {
		// Moved down at twice the size, so that each byte is moved once.
		o.tail = o.tail[:copy(o.tail, o.tail[len(o.tail)-maxTail:])]
	}
	if o.grown != nil {
		close(o.grown)
		o.grown = nil
	}
	return n, nil
}

// moved is a channel that is closed at the next write.
func (o *output) moved() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.grown == nil {
		o.grown = make(chan struct{})
	}
	return o.grown
}

// since gives what was written from an offset on, and the offset for the next
// time. With more to come, a character that has not come whole is left for then.
// What was dropped is named in its place.
func (o *output) since(from int64, more bool) (string, int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	tail := o.tail
	if len(tail) > maxTail {
		tail = tail[len(tail)-maxTail:]
	}
	end := o.total
	var text []byte
	if h := int64(len(o.head)); from < h {
		text = append(text, o.head[from:]...)
		from = h
	}
	if start := o.total - int64(len(tail)); from < start {
		text = wholeEnd(text)
		for len(tail) > 0 && !utf8.RuneStart(tail[0]) {
			tail, start = tail[1:], start+1
		}
		text = fmt.Appendf(text, "\n[… %d bytes of output left out …]\n", start-from)
		from = start
	}
	text = append(text, tail[int64(len(tail))-(o.total-from):]...)
	if more {
		cut := wholeEnd(text)
		end -= int64(len(text) - len(cut))
		text = cut
	}
	return string(text), end
}

// wholeEnd takes off the first bytes of a character whose rest is missing.
func wholeEnd(b []byte) []byte {
	for i := 1; i < utf8.UTFMax && i <= len(b); i++ {
		c := b[len(b)-i]
		if utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRune(b[len(b)-i:]) {
				return b[:len(b)-i]
			}
			break
		}
	}
	return b
}
