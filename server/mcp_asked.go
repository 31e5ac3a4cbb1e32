package server

import (
	"context"
	"encoding/json"

	"github.com/transom-run/transom"
)

// The methods by which clients answer for MCP servers, or have the model do so.
func mcpAskedMethods() map[string]handler {
	return map[string]handler{
		"session.mcp.executeSampling":         read(executeSampling),
		"session.mcp.cancelSamplingExecution": posted(cancelSampling),
		"session.ui.handlePendingSampling":    posted(answerSampling),
		"session.mcp.setEnvValueMode":         posted(setEnvValueMode),
		"session.mcp.configureGitHub":         settled(gitHubUnchanged),
		"session.mcp.removeGitHub":            read(removeGitHub),
	}
}

type samplingParams struct {
	target
	RequestID string          `json:"requestId"`
	Request   json.RawMessage `json:"request"`
	Response  json.RawMessage `json:"response"`
}

type samplingResult struct {
	Action string          `json:"action"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  string          `json:"error,omitempty"`
}

// executeSampling answers with what came of it, failures included.
func executeSampling(ctx context.Context, s *transom.Session, p *samplingParams) (any, error) {
	if p.RequestID == "" {
		return nil, invalid("session.mcp.executeSampling", "session.mcp.executeSampling needs a requestId")
	}
	raw, err := s.MCP().Sample(ctx, p.RequestID, p.Request)
	switch {
	case err == nil:
		return samplingResult{Action: "success", Result: raw}, nil
	case transom.KindOf(err) == transom.KindCancelled:
		return samplingResult{Action: "cancelled"}, nil
	}
	return samplingResult{Action: "failure", Error: err.Error()}, nil
}

func cancelSampling(q *call, p *samplingParams) {
	q.Reply(map[string]any{"cancelled": q.sess.MCP().CancelSample(p.RequestID)}, nil)
}

func answerSampling(q *call, p *samplingParams) {
	q.Reply(successResult{q.sess.AnswerSampling(p.RequestID, p.Response)}, nil)
}

type envValueModeParams struct {
	target
	Mode string `json:"mode"`
}

func setEnvValueMode(q *call, p *envValueModeParams) {
	if p.Mode != "direct" && p.Mode != "indirect" {
		q.Reply(nil, invalid(q.op(), q.op()+`: the mode is "direct" or "indirect", not "`+p.Mode+`"`))
		return
	}
	q.sess.MCP().SetIndirect(p.Mode == "indirect")
	q.Reply(map[string]any{"mode": p.Mode}, nil)
}

// gitHubUnchanged: whose account reaches GitHub's server follows from the session.
func gitHubUnchanged(*transom.Session, *target) (any, error) {
	return map[string]any{"changed": false}, nil
}

func removeGitHub(_ context.Context, s *transom.Session, _ *target) (any, error) {
	removed, err := s.MCP().RemoveGitHub()
	return map[string]any{"removed": removed}, err
}
