package server

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/transom-run/transom"
)

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
	Cwd        string `json:"cwd"`
	GitRoot    string `json:"gitRoot,omitempty"`
	Repository string `json:"repository,omitempty"`
	HostType   string `json:"hostType,omitempty"`
	Branch     string `json:"branch,omitempty"`
}

func entry(s transom.Stored) sessionEntry {
	e := sessionEntry{
		SessionID: s.ID, StartTime: wireTime(s.Started), ModifiedTime: wireTime(s.Modified),
		Summary: s.Title, Name: s.Title, IsRemote: s.Remote,
	}
	if s.Dir != "" {
		r := s.Repository
		e.Context = &sessionContext{s.Dir, r.Root, r.Name, r.HostType, r.Branch}
	}
	return e
}

// listSessions lists what is stored, newest first, and the sessions of peers that
// clients here are attached to.
func listSessions(ctx context.Context, c *conn, p *listStoredParams) (any, error) {
	entries := []sessionEntry{}
	sessions, err := c.srv.cfg.Runtime.Sessions(ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range sessions {
		if e := entry(s); p.wants(e) {
			entries = append(entries, e)
		}
	}
	for _, s := range c.srv.remoteEntries(ctx) {
		if p.wants(s.sessionEntry) {
			entries = append(entries, s.sessionEntry)
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
	c.claim(p.SessionID)
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
