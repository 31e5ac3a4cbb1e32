package transom

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/eventlog"
	"github.com/transom-run/transom/internal/turn"
)

// Stored describes a session of the store, loaded or not.
type Stored struct {
	ID         string
	Title      string // its name, else made of its first prompt
	Name       string // as a host gave it
	Dir        string
	Repository Repository // at Dir, as far as a host told
	Started    time.Time
	Modified   time.Time
	Bytes      int64 // size of its log
	Loaded     bool  // in this process
	Remote     bool
}

// Sessions lists the sessions that have a log, newest first. A session that never
// got a message has none.
func (r *Runtime) Sessions(ctx context.Context) ([]Stored, error) {
	infos, err := r.storage().List(ctx)
	if err != nil {
		return nil, wrap("session.list", "", err)
	}
	out := make([]Stored, 0, len(infos))
	for _, info := range infos {
		if s, ok := r.stored(ctx, info); ok {
			out = append(out, s)
		}
	}
	slices.SortStableFunc(out, func(a, b Stored) int { return b.Modified.Compare(a.Modified) })
	return out, nil
}

// Stored describes one session; NotFound where it has no log.
func (r *Runtime) Stored(ctx context.Context, id string) (Stored, error) {
	info, err := r.storage().Stat(ctx, id)
	if err == nil {
		if s, ok := r.stored(ctx, info); ok {
			return s, nil
		}
		err = eventlog.ErrNotFound
	}
	return Stored{}, wrap("session.getMetadata", id, err)
}

// headRecords bounds how far into a log the title is looked for.
const headRecords = 40

// stored completes what the store knows by what the session, or the head of its
// log, says. ok is false where the log has gone meanwhile.
func (r *Runtime) stored(ctx context.Context, info eventlog.Info) (s Stored, ok bool) {
	s = Stored{ID: info.SessionID, Started: info.Started, Modified: info.Modified, Bytes: info.Bytes}
	if live := r.live(info.SessionID); live != nil {
		d := describe(live.View())
		s.Title, s.Dir, s.Started, s.Loaded, s.Remote, s.Repository = d.Title, d.Dir, d.Started, true, d.Remote, d.Repository
		if !d.AutoNamed {
			s.Name = d.Name
		}
		return s, true
	}
	n := 0
	see := func(line []byte) bool {
		if e, err := event.Decode(line); err == nil {
			s.head(e)
		}
		n++
		return n < headRecords && s.Title == ""
	}
	if h, ok := r.storage().(eventlog.Header); ok {
		return s, h.Head(ctx, info.SessionID, see) == nil
	}
	log, _, err := r.storage().Open(ctx, info.SessionID)
	if err != nil {
		return s, false
	}
	defer log.Close()
	for rec, err := range log.Read(0) {
		var damage *eventlog.DamageError
		if err != nil && !errors.As(err, &damage) || err == nil && !see(rec.Line) {
			break
		}
	}
	return s, true
}

func (s *Stored) head(e *event.Event) {
	switch e.Type {
	case event.TypeSessionStart:
		if p, err := event.As[event.SessionStart](e); err == nil {
			s.Dir, s.Repository = p.Context.Cwd, repository(p.Context)
			if t, err := time.Parse(time.RFC3339Nano, p.StartTime); err == nil {
				s.Started = t
			}
		}
	case event.TypeContextChanged:
		if p, err := event.As[event.ContextChanged](e); err == nil {
			s.Dir, s.Repository = p.Cwd, repository(event.Context(p))
		}
	case event.TypeNamed:
		if p, err := event.As[event.Named](e); err == nil {
			s.Title = p.Name
			if !p.Auto {
				s.Name = p.Name
			}
		}
	case event.TypeUserMessage:
		if p, err := event.As[event.UserMessage](e); err == nil {
			s.Title = turn.TitleOf(p)
		}
	}
}

// LastSessionID names the session that was worked on last; "" where there is
// none.
func (r *Runtime) LastSessionID(ctx context.Context) (string, error) {
	infos, err := r.storage().List(ctx)
	if err != nil || len(infos) == 0 {
		return "", wrap("session.getLastId", "", err)
	}
	return infos[0].SessionID, nil
}

// Workspace is the directory that belongs to the session, for files beside its
// log, in its host's words where that keeps them; "" where the store has none. It
// need not exist yet.
func (h *Session) Workspace() string { return h.rt.workspace(h.id) }
