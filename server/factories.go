package server

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/internal/jsonrpc2"
)

// The methods about factories: work that clients do in steps.
func factoryMethods() map[string]handler {
	return map[string]handler{
		"session.factory.run":               read(runFactory),
		"session.factory.resume":            read(resumeFactory),
		"session.factory.getRun":            read(getRun),
		"session.factory.getRunDetail":      read(runDetail),
		"session.factory.getRunProgress":    read(runProgress),
		"session.factory.listRuns":          read(listRuns),
		"session.factory.cancel":            waiting(cancelRun),
		"session.factory.pause":             read(pauseRun),
		"session.factory.log":               filed(logRun),
		"session.factory.journal.get":       read(getStep),
		"session.factory.journal.put":       read(putStep),
		"session.factory.pauseAtCheckpoint": read(checkpoint),
	}
}

// factoryParams is what session.resume says about factories.
type factoryParams struct {
	Factories []transom.Factory `json:"factories"`
}

type runParams struct {
	target
	RunID          string          `json:"runId"`
	ExecutionToken string          `json:"executionToken"`
	Name           string          `json:"name"`
	Args           json.RawMessage `json:"args"`
	Limits         json.RawMessage `json:"limits"`
	Options        struct {
		Limits          json.RawMessage `json:"limits"`
		ResumeFromRunID string          `json:"resumeFromRunId"`
	} `json:"options"`
	Lines  []transom.FactoryLine `json:"lines"`
	Key    string                `json:"key"`
	Result json.RawMessage       `json:"resultJson"`

	AfterSeq  *int64  `json:"afterSeq"`
	BeforeSeq *int64  `json:"beforeSeq"`
	Limit     int     `json:"limit"`
	PhaseID   *string `json:"phaseId"`
}

// envelope is a run as those see it who wait for it.
type envelope struct {
	RunID     string          `json:"runId"`
	Status    string          `json:"status"`
	Attempt   int             `json:"attempt,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
	Error     string          `json:"error,omitempty"`
	Reason    string          `json:"reason,omitempty"`
	Failure   json.RawMessage `json:"failure,omitempty"`
	PauseInfo *pauseInfo      `json:"pauseInfo,omitempty"`
}

type pauseInfo struct {
	Type string `json:"type"` // "user" or "checkpoint"
	Key  string `json:"key,omitempty"`
}

func pauseOf(r transom.FactoryRun) *pauseInfo {
	if string(r.Status) != "paused" {
		return nil
	}
	if r.PausedAt != "" {
		return &pauseInfo{"checkpoint", r.PausedAt}
	}
	return &pauseInfo{Type: "user"}
}

func envelopeOf(r transom.FactoryRun) envelope {
	return envelope{r.ID, string(r.Status), r.Attempt, r.Result, r.Error, r.Reason, r.Failure, pauseOf(r)}
}

func runFactory(_ context.Context, s *transom.Session, p *runParams) (any, error) {
	if p.Options.ResumeFromRunID != "" {
		r, err := s.ResumeFactory(p.Options.ResumeFromRunID, orNone(p.Options.Limits))
		return envelopeOf(r), unresumed(err)
	}
	r, err := s.RunFactory(p.Name, p.Args, orNone(p.Options.Limits))
	return envelopeOf(r), err
}

// orNone takes null as nothing.
func orNone(raw json.RawMessage) json.RawMessage {
	if !present(raw) {
		return nil
	}
	return raw
}

func resumeFactory(_ context.Context, s *transom.Session, p *runParams) (any, error) {
	r, err := s.ResumeFactory(p.RunID, orNone(p.Limits))
	return map[string]any{"factoryName": r.Meta.Name, "run": envelopeOf(r)}, unresumed(err)
}

// resumeData is the data of a run that cannot be resumed: the SDKs look for code.
type resumeData struct {
	errorData
	Code string `json:"code"`
}

func unresumed(err error) error {
	var why *transom.FactoryError
	if !errors.As(err, &why) {
		return err
	}
	return &jsonrpc2.Error{
		Code: jsonrpc2.CodeInvalidParams, Message: why.Msg,
		Data: resumeData{errorData{Kind: string(transom.KindInvalidParams), Op: "session.factory.resume"}, why.Code},
	}
}

func getRun(_ context.Context, s *transom.Session, p *runParams) (any, error) {
	r, err := s.FactoryRun(p.RunID)
	return envelopeOf(r), err
}

func cancelRun(ctx context.Context, s *transom.Session, p *runParams) (any, error) {
	r, err := s.CancelFactory(ctx, p.RunID)
	return envelopeOf(r), err
}

func pauseRun(_ context.Context, s *transom.Session, p *runParams) (any, error) {
	r, err := s.PauseFactory(p.RunID)
	return envelopeOf(r), err
}

func logRun(_ context.Context, s *transom.Session, p *runParams) (any, error) {
	return struct{}{}, s.LogFactory(p.RunID, p.ExecutionToken, p.Lines)
}

type stepResult struct {
	Hit    bool            `json:"hit"`
	Result json.RawMessage `json:"resultJson,omitempty"`
}

func getStep(_ context.Context, s *transom.Session, p *runParams) (any, error) {
	v, hit, err := s.FactoryStep(p.RunID, p.ExecutionToken, p.Key)
	return stepResult{hit, v}, err
}

func putStep(_ context.Context, s *transom.Session, p *runParams) (any, error) {
	if !present(p.Result) {
		p.Result = json.RawMessage("null")
	}
	return struct{}{}, s.PutFactoryStep(p.RunID, p.ExecutionToken, p.Key, p.Result)
}

func checkpoint(_ context.Context, s *transom.Session, p *runParams) (any, error) {
	pause, err := s.FactoryCheckpoint(p.RunID, p.ExecutionToken, p.Key)
	action := "continue"
	if pause {
		action = "pause"
	}
	return map[string]any{"action": action}, err
}

func millis(t time.Time) *int64 {
	if t.IsZero() {
		return nil
	}
	ms := t.UnixMilli()
	return &ms
}
