package filelog

import (
	"errors"
	"sync"
	"time"
)

// syncer brings records to the disk that nobody asked a sync for. It is one
// timer a store, and none while every record is on the disk.
type syncer struct {
	every time.Duration // 0 or less: off

	mu      sync.Mutex
	dirty   []*Log
	timer   *time.Timer // nil: nothing is due
	running bool        // a pass is under way
	idle    *sync.Cond  // a pass has ended
	closed  bool
}

func newSyncer(every time.Duration) *syncer {
	s := &syncer{every: every}
	s.idle = sync.NewCond(&s.mu)
	return s
}

// freshShare is the part of the interval after which a log just made is synced:
// its place in the directories takes several syncs, which are better done before
// a clear has to wait for them.
const freshShare = 100

// mark hands over a log that has become dirty. After close it is synced at once.
// fresh: the log was just made.
func (s *syncer) mark(l *Log, fresh bool) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		_ = l.background() // kept in the log, and told to OnSyncError
		return
	}
	s.dirty = append(s.dirty, l)
	s.arm()
	if fresh && s.timer != nil && s.timer.Stop() { // not where it has fired already
		s.timer.Reset(s.every / freshShare)
	}
	s.mu.Unlock()
}

// arm sets the timer where there is something to do. The caller has mu.
func (s *syncer) arm() {
	if s.timer == nil && !s.running && !s.closed && len(s.dirty) > 0 {
		s.timer = time.AfterFunc(s.every, func() { _ = s.pass() })
	}
}

// pass syncs what is dirty now.
func (s *syncer) pass() error {
	s.mu.Lock()
	logs := s.dirty
	s.dirty, s.timer, s.running = nil, nil, true
	s.mu.Unlock()
	var errs []error
	for _, l := range logs {
		if err := l.background(); err != nil {
			errs = append(errs, err)
		}
	}
	s.mu.Lock()
	s.running = false
	s.arm()
	s.idle.Broadcast()
	s.mu.Unlock()
	return errors.Join(errs...)
}

// close ends the background work after a last pass.
func (s *syncer) close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	if s.timer != nil && !s.timer.Stop() {
		s.running = true // the pass has been started, though it may not have begun
	}
	for s.running {
		s.idle.Wait()
	}
	s.mu.Unlock()
	return s.pass()
}
