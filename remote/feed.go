package remote

import (
	"context"
	"sync"
)

// feedLimit is how many bytes of live events may wait for the client here before
// the link stops reading, and so the peer sending.
const feedLimit = 4 << 20

// item is one event on its way: the params of its session.event notification, in
// pieces. An item with a mark is no event: mark is called once all before it was
// handed on.
type item struct {
	pieces [][]byte
	mark   func()
}

func (i *item) size() int {
	n := 64
	for _, p := range i.pieces {
		n += len(p)
	}
	return n
}

// feed is a queue from the links of a session to its client.
type feed struct {
	wake chan struct{} // capacity 1

	mu     sync.Mutex
	items  []item
	bytes  int
	closed bool
	room   chan struct{} // closed when there is room again; nil while nobody waits
}

func newFeed() *feed { return &feed{wake: make(chan struct{}, 1)} }

// put adds without waiting.
func (f *feed) put(i item) {
	f.mu.Lock()
	f.putLocked(i)
	f.mu.Unlock()
}

func (f *feed) putLocked(i item) {
	if f.closed {
		if i.mark != nil {
			i.mark()
		}
		return
	}
	f.items = append(f.items, i)
	f.bytes += i.size()
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// putWait adds once fewer than feedLimit bytes wait, or ctx ends.
func (f *feed) putWait(ctx context.Context, i item) {
	for {
		f.mu.Lock()
		if f.closed || f.bytes < feedLimit {
			f.putLocked(i)
			f.mu.Unlock()
			return
		}
		if f.room == nil {
			f.room = make(chan struct{})
		}
		room := f.room
		f.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
			return
		}
	}
}

// next takes what waits; false once the feed is closed and empty, or ctx ended.
func (f *feed) next(ctx context.Context) ([]item, bool) {
	for {
		f.mu.Lock()
		items, closed := f.items, f.closed
		f.items = nil
		f.mu.Unlock()
		if len(items) > 0 {
			return items, true
		}
		if closed {
			return nil, false
		}
		select {
		case <-f.wake:
		case <-ctx.Done():
			return nil, false
		}
	}
}

// sent makes room for what was handed on.
func (f *feed) sent(i item) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.bytes -= i.size()
	if f.room != nil && f.bytes < feedLimit {
		close(f.room)
		f.room = nil
	}
}

// close lets nothing more in; what waits is still taken.
func (f *feed) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	if f.room != nil {
		close(f.room)
		f.room = nil
	}
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// abandon closes the feed, and calls the marks of what nobody takes any more.
func (f *feed) abandon() {
	f.close()
	f.mu.Lock()
	items := f.items
	f.items = nil
	f.mu.Unlock()
	for _, i := range items {
		if i.mark != nil {
			i.mark()
		}
	}
}
