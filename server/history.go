package server

import (
	"context"
	"fmt"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/internal/jsonrpc2"
)

// The methods that take a session's history back, or copy it.
func historyMethods() map[string]handler {
	return map[string]handler{
		"session.history.truncate":         posted(truncate),
		"session.history.rewind":           posted(rewind),
		"session.history.listRewindPoints": surveyed(rewindPoints),
		"session.history.previewRewind":    surveyed(previewRewind),
		"sessions.fork":                    forkSession,
		"sessions.readPersistedEvents":     aside(readPersisted),

		"sessions.getPersistedRemoteSteerable": aside(readSteerable),
	}
}

type historyParams struct {
	target
	EventID string `json:"eventId"`
	Mode    string `json:"mode"`
}

func truncate(q *call, p *historyParams) {
	q.sess.Post(transom.Truncate{EventID: p.EventID}, q.answer(func(v any) any { return map[string]any{"eventsRemoved": v} }))
}

type skippedFile struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

type rewindResult struct {
	Outcome       string        `json:"outcome"`
	EventsRemoved *int64        `json:"eventsRemoved,omitempty"`
	RestoredFiles []string      `json:"restoredFiles"`
	SkippedFiles  []skippedFile `json:"skippedFiles"`
	Error         string        `json:"error,omitempty"`
}

func rewind(q *call, p *historyParams) {
	switch p.Mode {
	case "conversation", "conversation-and-files":
	default:
		q.Reply(nil, invalid(q.op(), fmt.Sprintf("%s needs a mode, conversation or conversation-and-files, not %q", q.op(), p.Mode)))
		return
	}
	files := p.Mode == "conversation-and-files"
	q.sess.Post(transom.Rewind{EventID: p.EventID, Files: files}, func(v any, err error) {
		if err != nil {
			q.Reply(nil, fail(q.op(), err))
			return
		}
		r := v.(transom.RewindResult)
		out := rewindResult{Outcome: string(r.Outcome), RestoredFiles: append([]string{}, r.Restored...), SkippedFiles: []skippedFile{}, Error: r.Error}
		for _, s := range r.Skipped {
			out.SkippedFiles = append(out.SkippedFiles, skippedFile(s))
		}
		if r.Outcome != transom.Rewound {
			q.Reply(out, nil)
			return
		}
		out.EventsRemoved = &r.EventsRemoved
		if !files {
			q.Reply(out, nil)
			return
		}
		q.Go(func(context.Context) (any, error) { // off the session's own goroutine
			if err := q.sess.History().Prune(); err != nil {
				out.Outcome, out.Error = "snapshot-prune-failed", err.Error()
			}
			return out, nil
		})
	})
}

// surveyed is a method that reads what a history can be rewound to, once all that
// came before it is done.
func surveyed[P any, T aimed[P]](f func(s *transom.Session, busy transom.RewindOutcome, p *P) (any, error)) handler {
	return posted[P, T](func(q *call, p *P) {
		q.sess.Post(transom.Configure{}, func(_ any, err error) {
			if err != nil {
				q.Reply(nil, fail(q.op(), err))
				return
			}
			busy := q.sess.History().Busy()
			q.Go(func(context.Context) (any, error) {
				result, err := f(q.sess, busy, p)
				return result, fail(q.op(), err)
			})
		})
	})
}

type rewindPoint struct {
	EventID                 string `json:"eventId"`
	Timestamp               string `json:"timestamp"`
	UserMessage             string `json:"userMessage"`
	CanRestoreFiles         bool   `json:"canRestoreFiles"`
	FileCount               int    `json:"fileCount"`
	TurnChangedFiles        bool   `json:"turnChangedFiles"`
	LinesAdded              int    `json:"linesAdded"`
	LinesRemoved            int    `json:"linesRemoved"`
	IsAutopilotContinuation bool   `json:"isAutopilotContinuation"`
}

type rewindPointsResult struct {
	Enabled           bool          `json:"fileChangeTrackingEnabled"`
	Points            []rewindPoint `json:"points"`
	UnavailableReason string        `json:"unavailableReason,omitempty"`
}

// rewindPoints lists where the history can go back to. A session that keeps no
// track of files lists them while it is busy, too: nothing that could still change
// is said of files then.
func rewindPoints(s *transom.Session, busy transom.RewindOutcome, _ *target) (any, error) {
	out := rewindPointsResult{Enabled: s.FileTracking(), Points: []rewindPoint{}}
	if busy == transom.RewindRemote || busy != "" && out.Enabled {
		out.UnavailableReason = string(busy)
		return out, nil
	}
	points, err := s.History().RewindPoints()
	if err != nil {
		return nil, err
	}
	for _, p := range points {
		out.Points = append(out.Points, rewindPoint{
			EventID: p.EventID, Timestamp: wireTime(p.Time), UserMessage: p.Text, CanRestoreFiles: p.Restorable > 0, FileCount: p.Files,
			TurnChangedFiles: p.Changed, LinesAdded: p.Added, LinesRemoved: p.Removed, IsAutopilotContinuation: p.Continuation,
		})
	}
	return out, nil
}

type filePreview struct {
	Path         string `json:"path"`
	ChangeType   string `json:"changeType"`
	LinesAdded   int    `json:"linesAdded"`
	LinesRemoved int    `json:"linesRemoved"`
}

type previewResult struct {
	Available bool          `json:"available"`
	FileCount int           `json:"fileCount"`
	Files     []filePreview `json:"files"`
	Reason    string        `json:"reason,omitempty"`
}

func previewRewind(s *transom.Session, busy transom.RewindOutcome, p *historyParams) (any, error) {
	out := previewResult{Files: []filePreview{}, Reason: string(busy)}
	if busy != transom.RewindRemote && !s.FileTracking() {
		out.Reason = string(transom.RewindUntracked)
	}
	if out.Reason != "" {
		return out, nil
	}
	files, err := s.History().PreviewRewind(p.EventID)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		out.Files = append(out.Files, filePreview{f.Path, f.Change, f.Added, f.Removed})
	}
	out.Available, out.FileCount = true, len(files)
	return out, nil
}

type forkParams struct {
	target
	ToEventID string `json:"toEventId"`
	Name      string `json:"name"`
}

type forkResult struct {
	SessionID string `json:"sessionId"`
	Name      string `json:"name,omitempty"`
}

// forkSession copies any session, attached here or not, as it stands after what
// this client asked of it before.
func forkSession(c *conn, r *jsonrpc2.Responder) {
	inLane(c, r, func(l *lane, p *forkParams) bool {
		r.Go(func(ctx context.Context) (any, error) {
			defer l.leave()
			id, err := c.srv.cfg.Runtime.ForkSession(ctx, transom.Fork{SessionID: p.SessionID, ToEventID: p.ToEventID, Name: p.Name})
			if err != nil {
				return nil, fail(r.Request().Method, err)
			}
			return forkResult{id, p.Name}, nil
		})
		return true
	})
}

type persistedParams struct {
	SessionID string `json:"sessionId"`
	Cursor    string `json:"cursor"`
	Direction string `json:"direction"`
	Max       *int   `json:"max"`
}

// readPersisted reads the history of any stored session.
func readPersisted(ctx context.Context, c *conn, p *persistedParams) (any, error) {
	const op = "sessions.readPersistedEvents"
	q := transom.PersistedQuery{SessionID: p.SessionID, Cursor: p.Cursor, Backward: p.Direction == "backward"}
	switch {
	case p.SessionID == "":
		return nil, invalid(op, "Missing sessionId in "+op+" request")
	case p.Direction != "" && p.Direction != "forward" && p.Direction != "backward":
		return nil, invalid(op, op+": the direction is forward or backward, not "+p.Direction)
	case p.Max != nil && (*p.Max < 1 || *p.Max > 1000):
		return nil, invalid(op, fmt.Sprintf("%s: max is 1 to 1000, not %d", op, *p.Max))
	case p.Max != nil:
		q.Max = *p.Max
	}
	page, err := c.srv.cfg.Runtime.ReadPersisted(ctx, q)
	if err != nil {
		return nil, err
	}
	out := eventsResult{lines(page.Events), page.Cursor, page.More, "ok"}
	if page.Expired {
		out.CursorStatus = "expired"
	}
	return out, nil
}

type persistedSteerableParams struct {
	SessionID string `json:"sessionId"`
}

type persistedSteerable struct {
	RemoteSteerable *bool `json:"remoteSteerable,omitempty"`
}

// readSteerable reads what notifySteerable kept.
func readSteerable(ctx context.Context, c *conn, p *persistedSteerableParams) (any, error) {
	const op = "sessions.getPersistedRemoteSteerable"
	if p.SessionID == "" {
		return nil, invalid(op, "Missing sessionId in "+op+" request")
	}
	steerable, recorded, err := c.srv.cfg.Runtime.RemoteSteerable(ctx, p.SessionID)
	if err != nil || !recorded {
		return persistedSteerable{}, err
	}
	return persistedSteerable{&steerable}, nil
}
