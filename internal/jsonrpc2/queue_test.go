package jsonrpc2

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
)

// inLine waits until so many wait for room.
func inLine(q *queue, n int) {
	for {
		q.mu.Lock()
		have := len(q.line)
		q.mu.Unlock()
		if have == n {
			return
		}
		runtime.Gosched()
	}
}

// written takes all that is queued, as the writer does, in pieces that open little
// room each.
func written(q *queue) []byte {
	q.mu.Lock()
	batch := q.chunks
	q.chunks = nil
	q.mu.Unlock()
	var all []byte
	for _, c := range batch {
		all = append(all, c.buf...)
		q.wrote(len(c.buf))
	}
	return all
}

// TestWaitersInOrder: who waits for room gets it in the order of coming. Nobody who
// comes later, or again, goes before: of many sessions that share a connection none
// starves. One that gives up holds nobody up.
func TestWaitersInOrder(t *testing.T) {
	const soft = 100
	q := newQueue(soft, 1<<30, func() {})
	full := bytes.Repeat([]byte("x"), soft)
	if _, err := q.put(full); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	const sessions, each = 20, 3
	gone, give := context.WithCancel(context.Background())
	for i := range sessions {
		ctx := context.Background()
		if i%5 == 4 {
			ctx = gone
		}
		all.Go(func() {
			for n := range each {
				// Longer than half of the room, so that each write lets one or two in.
				_, err := q.putWait(ctx, fmt.Appendf(bytes.Repeat([]byte(" "), soft*2/3), "<%d:%d>", i, n))
				if err != nil {
					return
				}
			}
		})
		inLine(q, i+1)
	}
	give()
	inLine(q, sessions-sessions/5)
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	var seen []byte
	for waiting := true; waiting; {
		select {
		case <-done:
			waiting = false
		default:
			runtime.Gosched()
		}
		seen = append(seen, written(q)...)
	}
	// Everybody's first comes in the order of the line, before anybody's second one
	// that stood behind it.
	at := func(i, n int) int { return bytes.Index(seen, fmt.Appendf(nil, "<%d:%d>", i, n)) }
	last := -1
	for i := range sessions {
		if i%5 == 4 {
			if at(i, 0) >= 0 {
				t.Errorf("%d had given up", i)
			}
			continue
		}
		if at(i, 0) <= last {
			t.Errorf("the first of %d is at %d, before %d", i, at(i, 0), last)
		}
		last = at(i, 0)
	}
	for i := range sessions {
		if i%5 < 4 && at(i, 1) < last {
			t.Errorf("the second of %d is at %d, before the first of another at %d", i, at(i, 1), last)
		}
	}
}

// TestLineEnds: a queue that is closed lets all go.
func TestLineEnds(t *testing.T) {
	q := newQueue(1, 1<<30, func() {})
	if _, err := q.put([]byte("full")); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range 10 {
		all.Go(func() {
			if i%2 == 0 {
				if err := q.wait(context.Background()); err != ErrClosed {
					t.Error(err)
				}
			} else if _, err := q.putWait(context.Background(), nil); err != ErrClosed {
				t.Error(err)
			}
		})
	}
	inLine(q, 10)
	q.close(ErrClosed, true)
	all.Wait()
	if err := q.wait(context.Background()); err != ErrClosed {
		t.Error(err)
	}
}
