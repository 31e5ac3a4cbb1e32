package jsonrpc2

import (
	"context"
	"io"
	"slices"
	"sync"
)

const (
	// chunkSize is how much the writer hands to the stream in one call when many
	// small messages are queued.
	chunkSize = 64 << 10
	// smallChunk is the room opened behind a part queued by reference, where
	// usually one closing brace and the next header go.
	smallChunk = 4 << 10
	// copyLimit is the largest part that is copied into a chunk. Larger ones are
	// queued by reference: copying would cost more than another write call.
	copyLimit = 32 << 10
)

var chunks = sync.Pool{New: func() any { return new([chunkSize]byte) }}

// chunk is a piece of the byte stream that waits to be written.
type chunk struct {
	buf []byte
	// pooled is the array behind buf, if it goes back to the pool.
	pooled *[chunkSize]byte
	// open chunks may be appended to, up to their capacity.
	open bool
}

// queue is the outgoing byte stream of a connection: frames go in whole, in
// order, from any goroutine, and one writer takes the bytes out.
//
// Invariant: queued is the number of bytes put and not yet written to the
// stream, those the writer is busy with included.
type queue struct {
	soft, hard int64

	mu     sync.Mutex
	chunks []chunk
	queued int64
	err    error // why nothing more goes in; set once
	lost   bool  // what is queued is given up too
	idle   bool  // the writer waits for wake
	// line are those who wait for room, in the order in which they came: each is called
	// by closing its channel, one at a time, so that none is passed over for ever by
	// others that come again and again. called: one of them was, and has not come yet.
	line   []chan struct{}
	called bool

	wake chan struct{} // capacity 1
	// overflow is called, once, when the hard cap is passed.
	overflow func()
}

func newQueue(soft, hard int64, overflow func()) *queue {
	return &queue{soft: soft, hard: hard, wake: make(chan struct{}, 1), overflow: overflow}
}

// put appends one frame whose body is head followed by parts. It does not
// block. Head and small parts are copied; a part over copyLimit is kept by
// reference, which kept reports. Past the hard cap the queue fails with
// ErrSlowPeer. (Head stands apart so that callers can build it on their stack.)
func (q *queue) put(head []byte, parts ...[]byte) (kept bool, err error) {
	q.mu.Lock()
	kept, overflowed, err := q.putLocked(head, parts)
	q.mu.Unlock()
	if overflowed {
		q.overflow()
	}
	return kept, err
}

// putWait is put once fewer than soft bytes are queued, and all who waited before
// have had their turn. Waiting and appending are one step, so that any number of
// waiters overshoot by one frame at most.
func (q *queue) putWait(ctx context.Context, head []byte, parts ...[]byte) (kept bool, err error) {
	q.mu.Lock()
	if err := q.turnLocked(ctx); err != nil {
		return false, err
	}
	kept, _, err = q.putLocked(head, parts)
	q.callLocked(q.soft)
	q.mu.Unlock()
	return kept, err
}

// wait blocks until fewer than soft bytes are queued.
func (q *queue) wait(ctx context.Context) error {
	q.mu.Lock()
	if err := q.turnLocked(ctx); err != nil {
		return err
	}
	err := q.err
	q.callLocked(q.soft)
	q.mu.Unlock()
	return err
}

// turnLocked waits until there is room and nobody is before the caller, or nothing
// goes in any more. mu is held, and still is when it returns; but not where ctx has
// ended first, which is its error.
func (q *queue) turnLocked(ctx context.Context) error {
	if q.err != nil || q.queued < q.soft && len(q.line) == 0 && !q.called {
		return nil
	}
	me := make(chan struct{})
	q.line = append(q.line, me)
	for {
		q.mu.Unlock()
		select {
		case <-me:
			q.mu.Lock()
			q.called = false
			if q.err != nil || q.queued < q.soft {
				return nil
			}
			me = make(chan struct{}) // somebody who need not wait was faster
			q.line = slices.Insert(q.line, 0, me)
		case <-ctx.Done():
			q.mu.Lock()
			if i := slices.Index(q.line, me); i >= 0 {
				q.line = slices.Delete(q.line, i, i+1)
			} else {
				q.called = false // the next one comes in its place
				q.callLocked(q.soft)
			}
			q.mu.Unlock()
			return context.Cause(ctx)
		}
	}
}

// callLocked calls the first in line where fewer bytes than that are queued.
func (q *queue) callLocked(below int64) {
	if len(q.line) > 0 && !q.called && q.queued < below {
		close(q.line[0])
		q.line[0], q.line = nil, q.line[1:]
		q.called = true
	}
}

func (q *queue) putLocked(head []byte, parts [][]byte) (kept, overflowed bool, err error) {
	if q.err != nil {
		return false, false, q.err
	}
	if q.queued >= q.hard {
		q.closeLocked(closedBy(ErrSlowPeer), true)
		return false, true, q.err
	}
	length := len(head)
	for _, p := range parts {
		length += len(p)
	}
	var header [40]byte
	h := appendHeader(header[:0], length)
	q.copyLocked(h)
	q.copyLocked(head)
	for _, p := range parts {
		if len(p) > copyLimit {
			kept = true
			q.chunks = append(q.chunks, chunk{buf: p})
			continue
		}
		q.copyLocked(p)
	}
	q.queued += int64(len(h) + length)
	if q.idle {
		q.idle = false
		q.wake <- struct{}{}
	}
	return kept, false, nil
}

// copyLocked appends p to the open chunk at the end, and opens one as needed.
func (q *queue) copyLocked(p []byte) {
	for len(p) > 0 {
		last := len(q.chunks) - 1
		if last < 0 || !q.chunks[last].open || len(q.chunks[last].buf) == cap(q.chunks[last].buf) {
			if last >= 0 && !q.chunks[last].open && len(p) <= smallChunk {
				q.chunks = append(q.chunks, chunk{buf: make([]byte, 0, smallChunk), open: true})
			} else {
				array := chunks.Get().(*[chunkSize]byte)
				q.chunks = append(q.chunks, chunk{buf: array[:0], pooled: array, open: true})
			}
			last++
		}
		c := &q.chunks[last]
		n := min(len(p), cap(c.buf)-len(c.buf))
		c.buf = append(c.buf, p[:n]...)
		p = p[n:]
	}
}

// close lets nothing more in, for the reason err. Unless lost, what is queued
// may still be written. Only the first call's reason counts.
func (q *queue) close(err error, lost bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closeLocked(err, lost)
}

func (q *queue) closeLocked(err error, lost bool) {
	if q.err == nil {
		q.err = err
	}
	if lost {
		q.lost = true
		q.chunks = nil
	}
	for _, waiter := range q.line {
		close(waiter)
	}
	q.line = nil
	if q.idle {
		q.idle = false
		q.wake <- struct{}{}
	}
}

// size returns the number of bytes not yet written.
func (q *queue) size() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.queued
}

// take waits for bytes and takes all there are; spare becomes the next list.
// It returns nil when the queue is closed and there is nothing left to write.
func (q *queue) take(spare []chunk) []chunk {
	for {
		q.mu.Lock()
		if len(q.chunks) > 0 {
			batch := q.chunks
			q.chunks = spare
			q.mu.Unlock()
			return batch
		}
		if q.err != nil {
			q.mu.Unlock()
			return nil
		}
		q.idle = true
		q.mu.Unlock()
		<-q.wake
	}
}

// wrote takes n bytes off the count and calls the first of the waiters once the queue
// is half empty, so that their turns are worth a write: each calls the next one. It
// reports whether the queue is lost.
func (q *queue) wrote(n int) (lost bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.queued -= int64(n)
	q.callLocked(q.soft/2 + 1)
	return q.lost
}

// drainTo writes what comes until the queue is closed and empty, or lost, or
// the stream fails. It is the writer goroutine's whole life.
func (q *queue) drainTo(w io.Writer) error {
	var spare []chunk
	for {
		batch := q.take(spare)
		if batch == nil {
			return nil
		}
		for i := range batch {
			n, err := w.Write(batch[i].buf)
			if err == nil && n < len(batch[i].buf) {
				err = io.ErrShortWrite
			}
			if err != nil {
				return err
			}
			if batch[i].pooled != nil {
				chunks.Put(batch[i].pooled)
			}
			batch[i] = chunk{}
			if q.wrote(n) {
				return nil
			}
		}
		spare = batch[:0]
		if cap(spare) > 1024 {
			spare = nil
		}
	}
}
