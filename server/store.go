package server

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/internal/jsonrpc2"
)

// The methods about all sessions of the store.
func storeMethods() map[string]handler {
	return map[string]handler{
		"sessions.list":                   aside(listStored),
		"sessions.getMetadata":            aside(storedMetadata),
		"sessions.enrichMetadata":         aside(enrichMetadata),
		"sessions.listNonEmptySessionIds": aside(listIDs),
		"sessions.findByPrefix":           aside(findByPrefix),
		"sessions.findByTaskId":           aside(findByTask),
		"sessions.getLastForContext":      aside(lastForContext),
		"sessions.getSizes":               aside(sessionSizes),
		"sessions.getEventFilePath":       aside(eventFile),
		"sessions.checkInUse":             aside(checkInUse),
		"sessions.pruneOld":               aside(pruneOld),
		"sessions.bulkDelete":             aside(bulkDelete),
		"sessions.getClientMetadata":      aside(clientBags),
		"sessions.save":                   ordered(saveStored),
		"sessions.close":                  ordered(closeStored),
		"sessions.releaseLock":            ordered(releaseStored),
		"sessions.reloadPluginHooks":      waiting(reloadHooks),
		"sessions.loadDeferredRepoHooks":  plain(loadHooks),
	}
}

// ordered is a method about any session, attached here or not, that comes after
// what this client asked of it before.
func ordered(f func(ctx context.Context, rt *transom.Runtime, id string) error) handler {
	return func(c *conn, r *jsonrpc2.Responder) {
		inLane(c, r, func(l *lane, p *target) bool {
			r.Go(func(ctx context.Context) (any, error) {
				defer l.leave()
				err := f(ctx, c.srv.cfg.Runtime, p.SessionID)
				return struct{}{}, fail(r.Request().Method, err)
			})
			return true
		})
	}
}

func saveStored(ctx context.Context, rt *transom.Runtime, id string) error {
	return rt.SaveSession(ctx, id)
}

func closeStored(ctx context.Context, rt *transom.Runtime, id string) error {
	return rt.CloseSession(ctx, id)
}

// releaseStored takes the session out of this process: its lock is held for as
// long as it is loaded.
func releaseStored(ctx context.Context, rt *transom.Runtime, id string) error {
	return rt.ReleaseSession(ctx, id)
}

type listStoredParams struct {
	Source string `json:"source"`
	Filter struct {
		Cwd        string `json:"cwd"`
		GitRoot    string `json:"gitRoot"`
		Repository string `json:"repository"`
		Branch     string `json:"branch"`
	} `json:"filter"`
}

func (p *listStoredParams) wants(e sessionEntry) bool {
	c := value(e.Context)
	f := p.Filter
	return (f.Cwd == "" || f.Cwd == c.Cwd) && (f.GitRoot == "" || f.GitRoot == c.GitRoot) &&
		(f.Repository == "" || f.Repository == c.Repository) && (f.Branch == "" || f.Branch == c.Branch)
}

// listStored lists sessions of this server, of its peers, or both; newest first.
func listStored(ctx context.Context, c *conn, p *listStoredParams) (any, error) {
	list := []any{}
	switch p.Source {
	case "", "local", "remote", "all":
	default:
		return nil, invalid("sessions.list", "sessions.list: the source is local, remote or all, not "+p.Source)
	}
	if p.Source != "remote" {
		sessions, err := c.srv.cfg.Runtime.Sessions(ctx)
		if err != nil {
			return nil, err
		}
		for _, s := range sessions {
			if e := entry(s); p.wants(e) {
				list = append(list, e)
			}
		}
	}
	if p.Source == "remote" || p.Source == "all" {
		for _, e := range c.srv.remoteEntries(ctx) {
			if p.wants(e.sessionEntry) {
				list = append(list, e)
			}
		}
	}
	return map[string]any{"sessions": list}, nil
}

func storedMetadata(ctx context.Context, c *conn, p *target) (any, error) {
	s, err := c.srv.cfg.Runtime.Stored(ctx, p.SessionID)
	switch transom.KindOf(err) {
	case transom.KindNotFound, transom.KindInvalidParams:
		return struct{}{}, nil
	}
	if err != nil {
		return nil, err
	}
	return map[string]any{"session": entry(s)}, nil
}

type enrichParams struct {
	Sessions []json.RawMessage `json:"sessions"`
}

// enrichMetadata fills in what is missing in records of sessions, and keeps what
// is there. Records of sessions that are not stored stay as they are.
func enrichMetadata(ctx context.Context, c *conn, p *enrichParams) (any, error) {
	out := make([]any, 0, len(p.Sessions))
	for _, raw := range p.Sessions {
		var have map[string]json.RawMessage
		if json.Unmarshal(raw, &have) != nil {
			return nil, invalid("sessions.enrichMetadata", "sessions.enrichMetadata: a record is not an object")
		}
		var id string
		if json.Unmarshal(have["sessionId"], &id) != nil || id == "" {
			return nil, invalid("sessions.enrichMetadata", "sessions.enrichMetadata: a record has no sessionId")
		}
		s, err := c.srv.cfg.Runtime.Stored(ctx, id)
		if err == nil {
			fresh, err := json.Marshal(entry(s))
			if err != nil {
				return nil, err
			}
			var found map[string]json.RawMessage
			if err := json.Unmarshal(fresh, &found); err != nil {
				return nil, err
			}
			for name, v := range found {
				if !present(have[name]) || string(have[name]) == `""` {
					have[name] = v
				}
			}
		}
		out = append(out, have)
	}
	return map[string]any{"sessions": out}, nil
}

type limitParams struct {
	Limit *int `json:"limit"`
}

func listIDs(ctx context.Context, c *conn, p *limitParams) (any, error) {
	ids := []string{}
	sessions, err := c.srv.cfg.Runtime.Sessions(ctx)
	for _, s := range sessions {
		if s.Title != "" && (p.Limit == nil || len(ids) < *p.Limit) {
			ids = append(ids, s.ID)
		}
	}
	return map[string]any{"sessionIds": ids}, err
}

// optionalID is a session's id; "" is left out.
type optionalID struct {
	SessionID string `json:"sessionId,omitempty"`
}

type prefixParams struct {
	Prefix string `json:"prefix"`
}

// minPrefix is how much of an id is needed to find a session by it.
const minPrefix = 7

func findByPrefix(ctx context.Context, c *conn, p *prefixParams) (any, error) {
	if len(p.Prefix) < minPrefix {
		return nil, invalid("sessions.findByPrefix", fmt.Sprintf("sessions.findByPrefix needs at least %d characters of an id", minPrefix))
	}
	id, err := c.srv.cfg.Runtime.FindSession(ctx, p.Prefix)
	return optionalID{id}, err
}

// findByTask finds nothing: sessions here are bound to no task of a service.
func findByTask(context.Context, *conn, *noParams) (any, error) { return optionalID{}, nil }

type lastParams struct {
	Context *sessionContext `json:"context"`
}

// lastForContext finds the newest session that shares most with a place: the
// repository and its branch, its top, or the directory. Where none shares
// anything it is the newest.
func lastForContext(ctx context.Context, c *conn, p *lastParams) (any, error) {
	sessions, err := c.srv.cfg.Runtime.Sessions(ctx)
	if err != nil || len(sessions) == 0 {
		return optionalID{}, err
	}
	want := value(p.Context)
	score := func(s transom.Stored) (n int) {
		same := func(a, b string, points int) {
			if a != "" && a == b {
				n += points
			}
		}
		same(want.Cwd, s.Dir, 4)
		same(want.Repository, s.Repository.Name, 2)
		same(want.GitRoot, s.Repository.Root, 2)
		same(want.Branch, s.Repository.Branch, 1)
		return n
	}
	best := slices.MaxFunc(sessions, func(a, b transom.Stored) int {
		return cmp.Or(cmp.Compare(score(a), score(b)), a.Modified.Compare(b.Modified))
	})
	return optionalID{best.ID}, nil
}

func sessionSizes(ctx context.Context, c *conn, _ *noParams) (any, error) {
	sizes := map[string]int64{}
	sessions, err := c.srv.cfg.Runtime.Sessions(ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range sessions {
		if n, err := c.srv.cfg.Runtime.SessionSize(ctx, s.ID); err == nil {
			sizes[s.ID] = n
		}
	}
	return map[string]any{"sizes": sizes}, nil
}

func eventFile(_ context.Context, c *conn, p *target) (any, error) {
	const op = "sessions.getEventFilePath"
	path := c.srv.cfg.Runtime.EventFile(p.SessionID)
	if path == "" {
		return nil, failKind(op, transom.KindUnsupported, op+": this store keeps no files")
	}
	return map[string]any{"filePath": path}, nil
}

type idsParams struct {
	SessionIDs []string `json:"sessionIds"`
}

func checkInUse(_ context.Context, c *conn, p *idsParams) (any, error) {
	used := []string{}
	for _, id := range p.SessionIDs {
		yes, err := c.srv.cfg.Runtime.InUse(id)
		if err != nil {
			return nil, err
		}
		if yes {
			used = append(used, id)
		}
	}
	return map[string]any{"inUse": used}, nil
}

type pruneParams struct {
	OlderThanDays *int     `json:"olderThanDays"`
	DryRun        bool     `json:"dryRun"`
	IncludeNamed  bool     `json:"includeNamed"`
	Exclude       []string `json:"excludeSessionIds"`
}

type pruneResult struct {
	DryRun     bool     `json:"dryRun"`
	Candidates []string `json:"candidates"`
	Deleted    []string `json:"deleted"`
	Skipped    []string `json:"skipped"`
	FreedBytes int64    `json:"freedBytes"`
}

func pruneOld(ctx context.Context, c *conn, p *pruneParams) (any, error) {
	if p.OlderThanDays == nil || *p.OlderThanDays < 0 {
		return nil, invalid("sessions.pruneOld", "sessions.pruneOld needs olderThanDays, 0 or more")
	}
	pruned, err := c.srv.cfg.Runtime.PruneSessions(ctx, transom.Prune{
		Older: time.Duration(*p.OlderThanDays) * 24 * time.Hour, Named: p.IncludeNamed, Except: p.Exclude, DryRun: p.DryRun,
	})
	if err != nil {
		return nil, err
	}
	out := pruneResult{DryRun: p.DryRun, Candidates: []string{}, Deleted: []string{}, Skipped: append([]string{}, pruned.Skipped...), FreedBytes: pruned.Bytes}
	if p.DryRun {
		out.Candidates = append(out.Candidates, pruned.Old...)
	} else {
		out.Deleted = append(out.Deleted, pruned.Old...)
	}
	return out, nil
}

// bulkDelete deletes sessions; those that could not be are not in the answer.
func bulkDelete(ctx context.Context, c *conn, p *idsParams) (any, error) {
	freed := map[string]int64{}
	for _, id := range p.SessionIDs {
		n, err := c.srv.cfg.Runtime.SessionSize(ctx, id)
		if err == nil || transom.KindOf(err) == transom.KindNotFound { // it may be loaded all the same
			err = c.srv.cfg.Runtime.DeleteSession(ctx, id)
		}
		switch {
		case err == nil:
			freed[id] = n
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		default:
			c.srv.cfg.Logger.Info("a session was not deleted", "session", id, "error", err)
		}
	}
	return map[string]any{"freedBytes": freed}, nil
}

// reloadHooks and loadHooks: no hooks are read from files.
func reloadHooks(ctx context.Context, s *transom.Session, _ *target) (any, error) {
	return struct{}{}, s.ReloadPlugins(ctx)
}

func loadHooks(*conn, *noParams) (any, error) {
	return map[string]any{"startupPrompts": []string{}, "hookCount": 0}, nil
}
