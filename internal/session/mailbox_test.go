package session

import (
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/internal/turn"
)

// Whoever posts while the reader goes to rest starts the next one: every item is
// taken, in the order of each poster, and never by two readers at once.
func TestMailboxRests(t *testing.T) {
	const posters, each = 8, 2000
	var (
		m       *mailbox
		readers atomic.Int32
		last    [posters]int
		left    sync.WaitGroup
	)
	m = newMailbox(func() {
		if readers.Add(1) != 1 {
			t.Error("two readers")
		}
		for {
			for _, it := range m.take(nil) {
				n := it.body.(turn.TimeUp).Fence
				if int(n.Window) != last[n.Turn]+1 {
					t.Errorf("poster %d: %d after %d", n.Turn, n.Window, last[n.Turn])
				}
				last[n.Turn] = int(n.Window)
				left.Done()
			}
			readers.Add(-1) // before rest: the next one may be there when it returns
			if m.rest() {
				return
			}
			readers.Add(1)
		}
	})
	left.Add(posters * each)
	for p := range posters {
		go func() {
			for i := range each {
				m.post(item{body: turn.TimeUp{Fence: turn.Fence{Turn: uint64(p), Window: uint64(i + 1)}}})
				if i%7 == 0 {
					runtime.Gosched()
				}
			}
		}()
	}
	left.Wait()
	for p, n := range last {
		if n != each {
			t.Errorf("poster %d: %d of %d", p, n, each)
		}
	}
}

// A session with nothing to do has no goroutine of its own.
func TestIdleSessionHasNoGoroutine(t *testing.T) {
	r := newRig(t, rigConfig{})
	for range 3 {
		r.send("go")
		r.until(event.TypeSessionIdle)
		for running() { // it goes to rest a moment after it said that it is idle
			runtime.Gosched()
		}
	}
}

func running() bool {
	buf := make([]byte, 1<<20)
	return strings.Contains(string(buf[:runtime.Stack(buf, true)]), "session.(*Session).run(")
}
