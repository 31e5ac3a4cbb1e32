package server

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/transom-run/transom"
)

// runSummary is a run in a list.
type runSummary struct {
	RunID          string          `json:"runId"`
	FactoryName    string          `json:"factoryName"`
	Description    string          `json:"description"`
	Status         string          `json:"status"`
	Revision       int64           `json:"revision"`
	CreatedAt      int64           `json:"createdAt"`
	UpdatedAt      int64           `json:"updatedAt"`
	ObservedAt     int64           `json:"observedAt"`
	StartedAt      *int64          `json:"startedAt"`
	CompletedAt    *int64          `json:"completedAt"`
	SegmentStarted *int64          `json:"activeSegmentStartedAt"`
	CanResume      bool            `json:"canResume"`
	Approved       *struct{}       `json:"approved"`
	DeclaredLimits json.RawMessage `json:"declaredLimits"`
	DeclaredPhases int             `json:"declaredPhaseCount"`
	CurrentPhase   *currentPhase   `json:"currentPhase"`
	LiveAgents     int             `json:"liveAgentCount"`
	SpawnedAgents  int             `json:"totalSpawnedAgentCount"`
	Consumed       consumed        `json:"consumed"`
	Terminal       *runTerminal    `json:"terminal"`
}

type currentPhase struct {
	ID      string `json:"id"`
	Ordinal *int   `json:"ordinal"`
}

type consumed struct {
	ActiveMs  int64 `json:"activeMs"`
	NanoAIU   int64 `json:"nanoAiu"`
	Subagents int64 `json:"subagents"`
}

type runTerminal struct {
	Error     string          `json:"error,omitempty"`
	Reason    string          `json:"reason,omitempty"`
	Failure   json.RawMessage `json:"failure,omitempty"`
	PauseInfo *pauseInfo      `json:"pauseInfo"`
	Preview   string          `json:"resultPreview,omitempty"`
}

// maxPreview is how much of a result a list shows, in bytes.
const maxPreview = 500

// phases are a run's, declared ones first: titles are their ids.
func phases(r transom.FactoryRun) (titles []string, details map[string]string, declared int) {
	details = map[string]string{}
	for _, p := range r.Meta.Phases {
		titles, details[p.Title] = append(titles, p.Title), p.Detail
	}
	declared = len(titles)
	for _, l := range r.Lines {
		if l.Kind == "phase" && !slices.Contains(titles, l.Text) {
			titles = append(titles, l.Text)
		}
	}
	return titles, details, declared
}

func summaryOf(r transom.FactoryRun) runSummary {
	titles, _, declared := phases(r)
	out := runSummary{
		RunID: r.ID, FactoryName: r.Meta.Name, Description: r.Meta.Description, Status: string(r.Status), Revision: r.Revision,
		CreatedAt: r.Created.UnixMilli(), UpdatedAt: r.Updated.UnixMilli(), ObservedAt: time.Now().UnixMilli(),
		StartedAt: millis(r.Begun), CompletedAt: millis(r.Ended), CanResume: r.CanResume, DeclaredLimits: r.Meta.Limits,
		DeclaredPhases: declared, Consumed: consumed{ActiveMs: r.Active.Milliseconds()},
	}
	if !present(out.DeclaredLimits) {
		out.DeclaredLimits = json.RawMessage("{}")
	}
	if now := r.Phase(); now != "" {
		out.CurrentPhase = &currentPhase{ID: now}
		if i := slices.Index(titles, now); i < declared {
			out.CurrentPhase.Ordinal = &i
		}
	}
	if r.Ended.IsZero() {
		out.SegmentStarted = millis(r.Begun)
	} else {
		preview := string(r.Result)
		if len(preview) > maxPreview {
			preview = preview[:maxPreview]
		}
		out.Terminal = &runTerminal{r.Error, r.Reason, r.Failure, pauseOf(r), preview}
	}
	return out
}

func listRuns(_ context.Context, s *transom.Session, p *runParams) (any, error) {
	all, err := s.FactoryRuns()
	limit := 50
	if p.Limit > 0 {
		limit = p.Limit
	}
	omitted := max(0, len(all)-limit)
	list := []runSummary{}
	for _, r := range all[omitted:] {
		list = append(list, summaryOf(r))
	}
	slices.Reverse(list) // newest first
	return map[string]any{"runs": list, "omittedOlder": omitted}, err
}

type phaseRow struct {
	ID            string `json:"id"`
	Title         string `json:"title"`
	Detail        string `json:"detail,omitempty"`
	Ordinal       *int   `json:"ordinal"`
	Status        string `json:"status"` // "pending", "active", "completed" or "skipped"
	EntryCount    int    `json:"entryCount"`
	LastAttempt   int    `json:"lastEnteredRunAttempt"`
	StartedAt     *int64 `json:"startedAt,omitempty"`
	CompletedAt   *int64 `json:"completedAt,omitempty"`
	AccumulatedMs int64  `json:"accumulatedActiveMs"`
	CurrentMs     int64  `json:"currentActiveMs"`
	LiveAgents    int    `json:"liveAgentCount"`
	TotalAgents   int    `json:"totalAgentCount"`
}

func phaseRows(r transom.FactoryRun) []phaseRow {
	titles, details, declared := phases(r)
	rows := make([]phaseRow, len(titles))
	for i, t := range titles {
		rows[i] = phaseRow{ID: t, Title: t, Detail: details[t], Status: "pending"}
		if i < declared {
			rows[i].Ordinal = &i
		}
	}
	last := -1
	var since time.Time
	leave := func(at time.Time) {
		if last >= 0 {
			rows[last].Status, rows[last].CompletedAt = "completed", millis(at)
			rows[last].AccumulatedMs += at.Sub(since).Milliseconds()
		}
	}
	for _, l := range r.Lines {
		if l.Kind != "phase" {
			continue
		}
		leave(l.At)
		last, since = slices.Index(titles, l.Text), l.At
		row := &rows[last]
		row.Status, row.LastAttempt, row.CompletedAt = "active", l.Attempt, nil
		row.EntryCount++
		if row.StartedAt == nil {
			row.StartedAt = millis(l.At)
		}
	}
	if !r.Ended.IsZero() {
		leave(r.Ended)
		for i := range rows {
			if rows[i].Status == "pending" && r.Over() {
				rows[i].Status = "skipped"
			}
		}
	} else if last >= 0 {
		rows[last].CurrentMs = time.Since(since).Milliseconds()
	}
	return rows
}

type progressRow struct {
	Seq        int64   `json:"seq"`
	Kind       string  `json:"kind"`
	Text       string  `json:"text"`
	PhaseID    *string `json:"phaseId"`
	Attempt    int     `json:"attempt"`
	RecordedAt int64   `json:"recordedAt"`
}

type progressPage struct {
	Records      []progressRow `json:"records"`
	OldestSeq    *int64        `json:"oldestSeq"`
	NewestSeq    *int64        `json:"newestSeq"`
	HasMoreOlder bool          `json:"hasMoreOlder"`
	HasMoreNewer bool          `json:"hasMoreNewer"`
	Revision     int64         `json:"revision"`
}

// pageOf is a page of a run's progress: behind AfterSeq, before BeforeSeq, or the
// newest lines.
func pageOf(r transom.FactoryRun, p *runParams) progressPage {
	lines := r.Lines
	if p.PhaseID != nil {
		lines = slices.DeleteFunc(slices.Clone(lines), func(l transom.FactoryLine) bool { return l.Phase != *p.PhaseID })
	}
	limit := 100
	if p.Limit > 0 {
		limit = min(p.Limit, 1000)
	}
	from, to := 0, len(lines)
	switch {
	case p.AfterSeq != nil:
		for from < to && lines[from].Seq <= *p.AfterSeq {
			from++
		}
		to = min(to, from+limit)
	default:
		for p.BeforeSeq != nil && to > 0 && lines[to-1].Seq >= *p.BeforeSeq {
			to--
		}
		from = max(0, to-limit)
	}
	out := progressPage{Records: []progressRow{}, HasMoreOlder: from > 0, HasMoreNewer: to < len(lines), Revision: r.Revision}
	for _, l := range lines[from:to] {
		row := progressRow{Seq: l.Seq, Kind: l.Kind, Text: l.Text, Attempt: l.Attempt, RecordedAt: l.At.UnixMilli()}
		if l.Phase != "" {
			row.PhaseID = &l.Phase
		}
		out.Records = append(out.Records, row)
	}
	if n := len(out.Records); n > 0 {
		out.OldestSeq, out.NewestSeq = &out.Records[0].Seq, &out.Records[n-1].Seq
	}
	return out
}

func runProgress(_ context.Context, s *transom.Session, p *runParams) (any, error) {
	if p.AfterSeq != nil && p.BeforeSeq != nil {
		return nil, invalid("session.factory.getRunProgress", "session.factory.getRunProgress takes afterSeq or beforeSeq, not both")
	}
	r, err := s.FactoryRun(p.RunID)
	if err != nil {
		return nil, err
	}
	return pageOf(r, p), nil
}

type runDetailResult struct {
	runSummary
	Phases   []phaseRow   `json:"phases"`
	Agents   []any        `json:"agents"`
	Progress progressPage `json:"progress"`
}

func runDetail(_ context.Context, s *transom.Session, p *runParams) (any, error) {
	r, err := s.FactoryRun(p.RunID)
	if err != nil {
		return nil, err
	}
	return runDetailResult{summaryOf(r), phaseRows(r), []any{}, pageOf(r, p)}, nil
}
