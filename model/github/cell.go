package github

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/transom-run/transom/model"
)

// maxBody bounds the answer to a question about the account, in bytes.
const maxBody = 4 << 20

func readAll(r io.Reader) ([]byte, error) { return io.ReadAll(io.LimitReader(r, maxBody)) }

// cell keeps a value that costs a request. Callers at once share the request;
// errors are not kept.
type cell[T any] struct {
	mu    sync.Mutex
	value T
	valid bool
	until time.Time // zero: for ever
	run   *flight[T]
}

// flight is a request under way. It ends when nobody waits for it any more.
type flight[T any] struct {
	done    chan struct{}
	value   T
	err     error
	waiters int
	cancel  context.CancelFunc
}

// get returns the value, asking for it where there is none or it is too old.
func (c *cell[T]) get(ctx context.Context, ttl time.Duration, fetch func(context.Context) (T, error)) (T, error) {
	c.mu.Lock()
	if c.valid && (c.until.IsZero() || time.Now().Before(c.until)) {
		defer c.mu.Unlock()
		return c.value, nil
	}
	f := c.run
	if f == nil {
		// The request outlives the caller who began it, not all who wait for it.
		rctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetchTimeout)
		f = &flight[T]{done: make(chan struct{}), cancel: cancel}
		c.run = f
		go c.fly(rctx, f, ttl, fetch)
	}
	f.waiters++
	c.mu.Unlock()

	select {
	case <-f.done:
		return f.value, f.err
	case <-ctx.Done():
		c.mu.Lock()
		if f.waiters--; f.waiters == 0 {
			f.cancel()
			if c.run == f {
				c.run = nil // whoever comes next begins anew
			}
		}
		c.mu.Unlock()
		var zero T
		return zero, &model.Error{Kind: model.Query, Err: ctx.Err(), Msg: "The question about the GitHub account was cancelled."}
	}
}

// expire makes the value too old.
func (c *cell[T]) expire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.valid = false
}

// last returns the value that was got last; the zero value where none was.
func (c *cell[T]) last() T {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.value
}

func (c *cell[T]) fly(ctx context.Context, f *flight[T], ttl time.Duration, fetch func(context.Context) (T, error)) {
	defer f.cancel()
	f.value, f.err = fetch(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.run == f {
		c.run = nil
	}
	if f.err == nil {
		c.value, c.valid, c.until = f.value, true, time.Time{}
		if ttl > 0 {
			c.until = time.Now().Add(ttl)
		}
	}
	close(f.done)
}
