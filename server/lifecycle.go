package server

import (
	"sync"
	"time"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/event"
)

// updatesApart is how long session.updated notifications are collected: a turn
// writes many records, and whoever lists sessions needs only the last.
const updatesApart = 25 * time.Millisecond

// maxNews bounds what waits for a client that does not read.
const maxNews = 100_000

// lifecycle tells one client what happens to sessions, attached or not.
type lifecycle struct {
	c    *conn
	wake chan struct{}

	mu      sync.Mutex
	news    []transom.Lifecycle
	updated map[string]int // place of a session's session.updated in news
	urgent  bool           // something other than an update waits
}

func newLifecycle(c *conn) *lifecycle {
	return &lifecycle{c: c, wake: make(chan struct{}, 1), updated: map[string]int{}}
}

// add takes news from a session's goroutine; it does not block.
func (n *lifecycle) add(l transom.Lifecycle) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if l.Type == "session.updated" {
		if i, waits := n.updated[l.SessionID]; waits {
			n.news[i].Modified = l.Modified
			return
		}
		n.updated[l.SessionID] = len(n.news)
	} else {
		delete(n.updated, l.SessionID)
		n.urgent = true
	}
	if len(n.news) >= maxNews {
		n.c.rpc.Close()
		return
	}
	n.news = append(n.news, l)
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// take returns what waits.
func (n *lifecycle) take() []transom.Lifecycle {
	n.mu.Lock()
	defer n.mu.Unlock()
	news := n.news
	n.news, n.urgent = nil, false
	clear(n.updated)
	return news
}

func (n *lifecycle) isUrgent() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.urgent
}

// run sends until the connection ends.
func (n *lifecycle) run() {
	ctx := n.c.rpc.Context()
	timer := time.NewTimer(0)
	defer timer.Stop()
	<-timer.C
	for {
		select {
		case <-n.wake:
		case <-ctx.Done():
			return
		}
		timer.Reset(updatesApart)
		for collecting := !n.isUrgent(); collecting; {
			select {
			case <-timer.C:
				collecting = false
			case <-n.wake:
				collecting = !n.isUrgent()
			case <-ctx.Done():
				return
			}
		}
		for _, l := range n.take() {
			if n.c.rpc.WaitRoom(ctx) != nil {
				return
			}
			if n.c.rpc.Notify("session.lifecycle", wireLifecycle(l)) != nil {
				return
			}
		}
	}
}

type lifecycleParams struct {
	Type      string             `json:"type"`
	SessionID string             `json:"sessionId"`
	Metadata  *lifecycleMetadata `json:"metadata,omitempty"`
}

type lifecycleMetadata struct {
	StartTime    string `json:"startTime"`
	ModifiedTime string `json:"modifiedTime"`
}

func wireLifecycle(l transom.Lifecycle) lifecycleParams {
	p := lifecycleParams{Type: l.Type, SessionID: l.SessionID}
	if !l.Started.IsZero() && !l.Modified.IsZero() {
		p.Metadata = &lifecycleMetadata{StartTime: wireTime(l.Started), ModifiedTime: wireTime(l.Modified)}
	}
	return p
}

// wireTime writes a time as all clients read it.
func wireTime(t time.Time) string { return t.UTC().Format(event.TimeFormat) }
