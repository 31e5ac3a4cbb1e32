package transom

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/eventlog"
	"github.com/transom-run/transom/internal/session"
	"github.com/transom-run/transom/internal/turn"
)

// Fork says what a copy of a session is to be.
type Fork struct {
	// SessionID is the session that is copied, loaded or not.
	SessionID string
	// ToEventID is the event of its history before which the copy ends; "" copies
	// all.
	ToEventID string
	// Name is the copy's name; "" is none.
	Name string
}

// ForkSession copies a session's history into a new one, and returns its id. The
// copy is stored, and on the disk before this returns; it is not loaded. It begins
// with the window that the source had at that place. Messages that wait for their
// turn, totals, approvals and files are not copied, and calls that are open are
// closed in the copy. NotFound where the source has no log, or no such event.
func (r *Runtime) ForkSession(ctx context.Context, f Fork) (id string, err error) {
	const op = "sessions.fork"
	if r.kept.Load() != nil {
		return "", &Error{Op: op, Kind: KindUnsupported, SessionID: f.SessionID, Msg: "sessions whose files a client keeps cannot be forked: nobody keeps the files of the new one yet. Create a session, and give it what it has to know"}
	}
	if s := r.live(f.SessionID); s != nil { // behind what it was asked before
		_, _ = s.Do(ctx, turn.Configure{}, nil)
	}
	if _, err := r.storage().Stat(ctx, f.SessionID); errors.Is(err, eventlog.ErrNotFound) || errors.Is(err, eventlog.ErrInvalidID) {
		return "", &Error{Op: op, Kind: KindNotFound, SessionID: f.SessionID, Err: err, Msg: fmt.Sprintf("Session %s not found or has no persisted events: send it a message first, or save it", f.SessionID)}
	}
	source, _, err := r.storage().Open(ctx, f.SessionID)
	if err != nil {
		return "", wrap(op, f.SessionID, err)
	}
	defer source.Close()
	now := time.Now()
	id = session.NewID()
	lines, err := session.Fork{Source: f.SessionID, ID: id, To: f.ToEventID, Name: f.Name, At: now}.Records(source)
	if err == nil && len(lines) == 0 {
		err = &Error{Op: op, Kind: KindNotFound, SessionID: f.SessionID, Msg: fmt.Sprintf("Session %s not found or has no persisted events: nothing of its log can be read", f.SessionID)}
	}
	if err == nil {
		err = r.writeFork(ctx, id, lines)
	}
	if err != nil {
		return "", wrap(op, f.SessionID, err)
	}
	r.tell(Lifecycle{Type: "session.created", SessionID: id, Started: now, Modified: now})
	return id, nil
}

// writeFork writes the log of a copy: all of it, or nothing.
func (r *Runtime) writeFork(ctx context.Context, id string, lines [][]byte) error {
	hold, _, err := r.hold(id)
	if err != nil {
		return err
	}
	defer hold.Release()
	if err := hold.TakePen(); err != nil {
		return err
	}
	log, err := r.storage().Create(ctx, id)
	if err != nil {
		return err
	}
	_, err = log.Append(eventlog.Batch{Lines: lines, Sync: true})
	return errors.Join(err, log.Close())
}

// PersistedQuery says which events of a stored session to read.
type PersistedQuery struct {
	SessionID string
	// Cursor is what the last read returned; "" begins with the first event, and
	// backwards with the newest.
	Cursor string
	// Backward reads towards older events; a cursor goes on in its direction.
	Backward bool
	// Max is how many events a page may have, 1 to 1000; 0 is 200. A page has at
	// most about 1 MiB of them.
	Max int
}

// ReadPersisted reads a page of a stored session's history, loaded or not, without
// loading it. All pages are of the history as it was at the first read: where it has
// been truncated since, the page is empty and Expired.
func (r *Runtime) ReadPersisted(ctx context.Context, q PersistedQuery) (EventPage, error) {
	const op = "sessions.readPersistedEvents"
	if q.Max <= 0 {
		q.Max = 200
	}
	log, _, err := r.storage().Open(ctx, q.SessionID)
	if err != nil {
		return EventPage{}, wrap(op, q.SessionID, err)
	}
	defer log.Close()
	p, err := session.ReadPersisted(log, session.PersistedQuery{SessionID: q.SessionID, Cursor: q.Cursor, Backward: q.Backward, Max: min(q.Max, 1000)})
	if errors.Is(err, session.ErrBadCursor) {
		err = &Error{Op: op, Kind: KindInvalidParams, SessionID: q.SessionID, Msg: err.Error(), Err: err}
	}
	return EventPage(p), wrap(op, q.SessionID, err)
}

// RemoteSteerable is what a host last said of a stored session, loaded or not: whether
// it may be steered from afar ([NoteSteerable]). recorded is false where nobody has
// said so.
func (r *Runtime) RemoteSteerable(ctx context.Context, sessionID string) (steerable, recorded bool, err error) {
	const op = "sessions.getPersistedRemoteSteerable"
	log, _, err := r.storage().Open(ctx, sessionID)
	if err != nil {
		return false, false, wrap(op, sessionID, err)
	}
	defer log.Close()
	e, err := session.Newest(log, event.TypeRemoteSteerableChanged)
	if err != nil || e == nil {
		return false, false, wrap(op, sessionID, err)
	}
	p, err := event.As[event.RemoteSteerableChanged](e)
	return p.RemoteSteerable, err == nil, wrap(op, sessionID, err)
}
