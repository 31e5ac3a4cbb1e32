package server

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/transom-run/transom"
)

type listParams struct {
	Filter struct {
		Cwd        string `json:"cwd"`
		GitRoot    string `json:"gitRoot"`
		Repository string `json:"repository"`
		Branch     string `json:"branch"`
	} `json:"filter"`
}

type sessionEntry struct {
	SessionID    string          `json:"sessionId"`
	StartTime    string          `json:"startTime"`
	ModifiedTime string          `json:"modifiedTime"`
	Summary      string          `json:"summary,omitempty"`
	Name         string          `json:"name,omitempty"`
	IsRemote     bool            `json:"isRemote"`
	Context      *sessionContext `json:"context,omitempty"`
}

type sessionContext struct {
	Cwd string `json:"cwd"`
}

func entry(s transom.Stored) sessionEntry {
	e := sessionEntry{
		SessionID: s.ID, StartTime: wireTime(s.Started), ModifiedTime: wireTime(s.Modified),
		Summary: s.Title, Name: s.Title, IsRemote: s.Remote,
	}
	if s.Dir != "" {
		e.Context = &sessionContext{s.Dir}
	}
	return e
}

// listSessions lists what is stored, newest first. Where a session stands in a
// repository is not known, so a filter by one matches nothing.
func listSessions(ctx context.Context, c *conn, p *listParams) (any, error) {
	entries := []sessionEntry{}
	f := p.Filter
	if f.GitRoot == "" && f.Repository == "" && f.Branch == "" {
		sessions, err := c.srv.cfg.Runtime.Sessions(ctx)
		if err != nil {
			return nil, err
		}
		for _, s := range sessions {
			if f.Cwd == "" || f.Cwd == s.Dir {
				entries = append(entries, entry(s))
			}
		}
		for _, s := range c.srv.remoteEntries(ctx) {
			if f.Cwd == "" || s.Context != nil && f.Cwd == s.Context.Cwd {
				entries = append(entries, s.sessionEntry)
			}
		}
	}
	return map[string]any{"sessions": entries}, nil
}

func getMetadata(ctx context.Context, c *conn, p *target) (any, error) {
	if p.SessionID == "" {
		return nil, invalid("session.getMetadata", "Missing sessionId in session.getMetadata request")
	}
	if e, ok := c.srv.remoteEntry(ctx, p.SessionID); ok {
		return map[string]any{"session": e.sessionEntry}, nil
	}
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

// getLastID names the session that was worked on last.
func getLastID(ctx context.Context, c *conn, _ *noParams) (any, error) {
	id, err := c.srv.cfg.Runtime.LastSessionID(ctx)
	if err != nil || id == "" {
		return struct{}{}, err
	}
	return map[string]any{"sessionId": id}, nil
}

func getForeground(*conn, *noParams) (any, error) { return struct{}{}, nil }

type failure struct {
	Success bool   `json:"success"`
	Error   string `json:"error"`
}

func setForeground(*conn, *target) (any, error) {
	return failure{Error: "Not running in TUI+server mode - there is no foreground session to set"}, nil
}

// getMessages returns the session's history: the lines of its log, as they are.
func getMessages(_ context.Context, s *transom.Session, _ *target) (any, error) {
	events, err := s.Messages()
	if err != nil {
		return nil, err
	}
	size := 16
	for _, e := range events {
		size += len(e) + 1
	}
	b := bytes.NewBuffer(make([]byte, 0, size))
	b.WriteString(`{"events":[`)
	for i, e := range events {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(e)
	}
	b.WriteString(`]}`)
	return json.RawMessage(b.Bytes()), nil
}
