package transom

import "time"

// Lifecycle is something that happened to a session, for whoever lists sessions.
type Lifecycle struct {
	Type      string // "session.created", "session.updated" or "session.deleted"
	SessionID string
	Started   time.Time
	Modified  time.Time
}

// Watch calls f for what happens to sessions until stop is called. f is called
// from the sessions' goroutines and must not block.
func (r *Runtime) Watch(f func(Lifecycle)) (stop func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.serial++
	n := r.serial
	r.watchers[n] = f
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.watchers, n)
	}
}

func (r *Runtime) tell(l Lifecycle) {
	r.mu.Lock()
	fs := make([]func(Lifecycle), 0, len(r.watchers))
	for _, f := range r.watchers {
		fs = append(fs, f)
	}
	r.mu.Unlock()
	for _, f := range fs {
		f(l)
	}
}
