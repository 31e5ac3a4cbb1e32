package transom

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/eventlog"
	"github.com/transom-run/transom/internal/turn"
	"github.com/transom-run/transom/tool"
)

// SaveSession brings what a loaded session has written to the disk, and makes it
// one that is stored, though nothing was said in it yet. One that is not loaded
// here is no error.
func (r *Runtime) SaveSession(ctx context.Context, id string) error {
	s := r.live(id)
	if s == nil {
		return nil
	}
	_, err := s.Do(ctx, turn.Note{Payload: event.Saved{}, Sync: true}, nil)
	return wrap("sessions.save", id, err)
}

// ReleaseSession takes a session out of this process, so that others find it free;
// what is under way stays open in its log. One that is not loaded is no error.
func (r *Runtime) ReleaseSession(ctx context.Context, id string) error {
	s := r.live(id)
	if s == nil {
		return nil
	}
	return wrap("sessions.releaseLock", id, finish(ctx, s, turn.Suspend{}))
}

// InUse reports whether another process has a session.
func (r *Runtime) InUse(id string) (bool, error) {
	if s := r.live(id); s != nil {
		if others, err := s.Shared(); err == nil {
			return others, nil
		} // else it leaves this process just now, and has no mark of its own any more
	}
	hold, others, err := r.hold(id)
	if errors.Is(err, eventlog.ErrInvalidID) {
		return false, nil
	}
	if err != nil {
		return false, wrap("sessions.checkInUse", id, err)
	}
	return others, wrap("sessions.checkInUse", id, hold.Release())
}

// FindSession returns the id of the one stored session whose id begins with a
// prefix; "" where there is none, or more than one.
func (r *Runtime) FindSession(ctx context.Context, prefix string) (string, error) {
	infos, err := r.storage().List(ctx)
	if err != nil {
		return "", wrap("sessions.findByPrefix", "", err)
	}
	found := ""
	for _, i := range infos {
		if strings.HasPrefix(strings.ToLower(i.SessionID), strings.ToLower(prefix)) {
			if found != "" {
				return "", nil
			}
			found = i.SessionID
		}
	}
	return found, nil
}

// SessionSize is how many bytes a stored session takes: its log, and what lies
// beside it.
func (r *Runtime) SessionSize(ctx context.Context, id string) (int64, error) {
	info, err := r.storage().Stat(ctx, id)
	if err != nil {
		return 0, wrap("sessions.getSizes", id, err)
	}
	dir := r.storage().Dir(id)
	if dir == "" {
		return info.Bytes, nil
	}
	var n int64
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil // gone meanwhile, or nothing of its own
		}
		if i, err := d.Info(); err == nil {
			n += i.Size()
		}
		return nil
	})
	return n, err
}

// Prune says which stored sessions are old.
type Prune struct {
	Older  time.Duration // not worked on for this long
	Named  bool          // those too that a host gave a name
	Except []string      // ids
	DryRun bool          // nothing is deleted
}

// Pruned is what became of them.
type Pruned struct {
	Old     []string // that were, or would be, deleted
	Skipped []string // old, and kept: named, in use, or not deletable
	Bytes   int64    // freed, or that would be
}

// PruneSessions deletes stored sessions that are old. One that is loaded, here or
// elsewhere, stays.
func (r *Runtime) PruneSessions(ctx context.Context, p Prune) (Pruned, error) {
	var out Pruned
	sessions, err := r.Sessions(ctx)
	if err != nil {
		return out, err
	}
	for _, s := range sessions {
		if time.Since(s.Modified) < p.Older || slices.Contains(p.Except, s.ID) {
			continue
		}
		used, err := r.InUse(s.ID)
		if err != nil || used || s.Loaded || s.Name != "" && !p.Named {
			out.Skipped = append(out.Skipped, s.ID)
			continue
		}
		n, err := r.SessionSize(ctx, s.ID)
		if err == nil && !p.DryRun {
			err = r.DeleteSession(ctx, s.ID)
		}
		if err != nil {
			if ctx.Err() != nil {
				return out, wrap("sessions.pruneOld", "", context.Cause(ctx))
			}
			out.Skipped = append(out.Skipped, s.ID)
			continue
		}
		out.Old = append(out.Old, s.ID)
		out.Bytes += n
	}
	return out, nil
}

// EventFile is where a session's log is, stored or not; "" where the store has no
// files.
func (r *Runtime) EventFile(id string) string { return r.transcript(id) }

// BuiltInTools lists Transom's own tools, those too that a session has only where
// its host answers their questions.
func (r *Runtime) BuiltInTools() ([]tool.Tool, error) {
	const op = "tools.list"
	if r.cfg.BuiltIns == nil {
		return nil, nil
	}
	own, err := r.cfg.BuiltIns(BuiltInContext{
		Dir: func() string { return r.cfg.Dir }, Environ: r.environ(), Secrets: r.keys.list,
		Ask: func(context.Context, string, any) (json.RawMessage, error) { return nil, closing(op, "") },
	})
	if err != nil {
		return nil, wrap(op, "", err)
	}
	return own.Tools(), wrap(op, "", own.Close())
}
