package host

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// clock ends a context once a time has passed in which it was not paused.
type clock struct {
	mu     sync.Mutex
	limit  time.Duration
	timer  *time.Timer
	paused int
	over   bool
}

// within makes a context that ends after limit, and the clock that counts it.
func within(ctx context.Context, limit time.Duration) (context.Context, *clock, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	c := &clock{limit: limit}
	c.timer = time.AfterFunc(limit, func() { cancel(fmt.Errorf("it did not answer within %s", limit)) })
	return ctx, c, func() {
		c.mu.Lock()
		c.over = true
		c.timer.Stop()
		c.mu.Unlock()
		cancel(nil)
	}
}

// pause stops the clock until resume is called; it begins anew then.
func (c *clock) pause() (resume func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.paused++
	c.timer.Stop()
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.paused--; c.paused == 0 && !c.over {
			c.timer.Reset(c.limit)
		}
	}
}
