package server

import (
	"context"

	"github.com/transom-run/transom"
)

func compactionMethods() map[string]handler {
	return map[string]handler{
		"session.history.compact":                    read(compact),
		"session.history.cancelBackgroundCompaction": posted(cancelCompaction("cancelled")),
		"session.history.abortManualCompaction":      posted(cancelCompaction("aborted")),
		"session.history.summarizeForHandoff":        read(summarize),
	}
}

// wireInfinite is how hosts say when a window is summarised.
type wireInfinite struct {
	Enabled    *bool   `json:"enabled"`
	Background float64 `json:"backgroundCompactionThreshold"`
	Blocking   float64 `json:"bufferExhaustionThreshold"`
}

func (w *wireInfinite) compaction() *transom.Compaction {
	if w == nil {
		return nil
	}
	return &transom.Compaction{Disabled: w.Enabled != nil && !*w.Enabled, Background: w.Background, Blocking: w.Blocking}
}

type compactParams struct {
	target
	CustomInstructions string `json:"customInstructions"`
}

type compactResult struct {
	Success         bool   `json:"success"`
	MessagesRemoved int    `json:"messagesRemoved"`
	TokensRemoved   int    `json:"tokensRemoved"`
	SummaryContent  string `json:"summaryContent,omitempty"`
}

// compact answers once the summary is made. A window without messages has nothing
// to summarise: that is a success that removed nothing.
func compact(ctx context.Context, s *transom.Session, p *compactParams) (any, error) {
	if s.Info().Messages == 0 {
		return compactResult{Success: true}, nil
	}
	done, err := s.History().Compact(ctx, p.CustomInstructions)
	if err != nil {
		return nil, err
	}
	if !done.Success {
		return nil, failKind("session.history.compact", transom.KindUpstream, "the context was not compacted: "+done.Error)
	}
	return compactResult{true, done.MessagesRemoved, done.TokensRemoved, done.SummaryContent}, nil
}

type cancelCompactionParams struct{ target }

func cancelCompaction(field string) func(*call, *cancelCompactionParams) {
	return func(q *call, _ *cancelCompactionParams) {
		q.sess.Post(transom.CancelCompaction{}, q.answer(func(v any) any { return map[string]any{field: v} }))
	}
}

func summarize(ctx context.Context, s *transom.Session, _ *target) (any, error) {
	text, err := s.History().Summary(ctx)
	if err != nil {
		return nil, err
	}
	return map[string]any{"summary": text}, nil
}
