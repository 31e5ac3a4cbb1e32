package server

import (
	"context"
	"encoding/json"

	"github.com/transom-run/transom"
)

// The methods about canvases: what clients show beside a conversation.
func canvasMethods() map[string]handler {
	return map[string]handler{
		"session.canvas.list":          settled(listCanvases),
		"session.canvas.listOpen":      settled(openCanvases),
		"session.canvas.open":          waiting(openCanvas),
		"session.canvas.close":         waiting(closeCanvas),
		"session.canvas.action.invoke": waiting(invokeCanvas),
	}
}

// canvasParams is what session.create and session.resume say about canvases.
type canvasParams struct {
	Canvases []struct {
		ID          string                 `json:"id"`
		DisplayName string                 `json:"displayName"`
		Description string                 `json:"description"`
		Icon        string                 `json:"icon"`
		InputSchema json.RawMessage        `json:"inputSchema"`
		Actions     []transom.CanvasAction `json:"actions"`
	} `json:"canvases"`
	CanvasProvider *struct {
		ID   string `json:"id"`
		Name string `json:"name"`
	} `json:"canvasProvider"`
	ExtensionInfo *struct {
		Source string `json:"source"`
		Name   string `json:"name"`
	} `json:"extensionInfo"`
	OpenCanvases []transom.OpenCanvas `json:"openCanvases"`
}

func (p *canvasParams) canvases() []transom.Canvas {
	var out []transom.Canvas
	for _, c := range p.Canvases {
		out = append(out, transom.Canvas{
			ID: c.ID, DisplayName: c.DisplayName, Description: c.Description, Icon: c.Icon, InputSchema: c.InputSchema, Actions: c.Actions,
		})
	}
	return out
}

func (p *canvasParams) provider() (out transom.CanvasProvider) {
	if p.ExtensionInfo != nil {
		out.ID, out.Name = p.ExtensionInfo.Source+":"+p.ExtensionInfo.Name, p.ExtensionInfo.Name
	}
	if p.CanvasProvider != nil && p.CanvasProvider.ID != "" {
		out.ID, out.Name = p.CanvasProvider.ID, p.CanvasProvider.Name
	}
	return out
}

func listCanvases(s *transom.Session, _ *target) (any, error) {
	return map[string]any{"canvases": s.Canvases()}, nil
}

func openCanvases(s *transom.Session, _ *target) (any, error) {
	return map[string]any{"openCanvases": opensOf(s)}, nil
}

// opensOf is never null.
func opensOf(s *transom.Session) []transom.OpenCanvas {
	if list := s.OpenCanvases(); list != nil {
		return list
	}
	return []transom.OpenCanvas{}
}

type openCanvasParams struct {
	target
	CanvasID    string          `json:"canvasId"`
	InstanceID  string          `json:"instanceId"`
	ExtensionID string          `json:"extensionId"`
	ActionName  string          `json:"actionName"`
	Input       json.RawMessage `json:"input"`
}

func openCanvas(ctx context.Context, s *transom.Session, p *openCanvasParams) (any, error) {
	return s.OpenCanvas(ctx, transom.CanvasOpening{CanvasID: p.CanvasID, InstanceID: p.InstanceID, ExtensionID: p.ExtensionID, Input: p.Input})
}

func closeCanvas(ctx context.Context, s *transom.Session, p *openCanvasParams) (any, error) {
	return nil, s.CloseCanvas(ctx, p.InstanceID)
}

type actionResult struct {
	Result json.RawMessage `json:"result,omitempty"`
}

func invokeCanvas(ctx context.Context, s *transom.Session, p *openCanvasParams) (any, error) {
	raw, err := s.InvokeCanvas(ctx, p.InstanceID, p.ActionName, p.Input)
	return actionResult{raw}, err
}
