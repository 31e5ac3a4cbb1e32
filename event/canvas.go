package event

import "encoding/json"

// The types of the payloads below.
const (
	TypeCanvasOpened      = "session.canvas.opened"
	TypeCanvasClosed      = "session.canvas.closed"
	TypeCanvasUnavailable = "session.canvas.unavailable"
	TypeCanvasRegistry    = "session.canvas.registry_changed"
	TypeCanvasRecorded    = "session.canvas.recorded"
	TypeCanvasRemoved     = "session.canvas.removed"
)

// CanvasOpened says that a client shows a canvas, or shows it anew.
type CanvasOpened struct {
	InstanceID    string          `json:"instanceId"`
	ExtensionID   string          `json:"extensionId"`
	ExtensionName string          `json:"extensionName,omitempty"`
	CanvasID      string          `json:"canvasId"`
	Title         string          `json:"title,omitempty"`
	Status        string          `json:"status,omitempty"`
	URL           string          `json:"url,omitempty"`
	Icon          string          `json:"icon,omitempty"`
	Input         json.RawMessage `json:"input,omitempty"`
}

// CanvasClosed says that a canvas is no longer shown.
type CanvasClosed struct {
	InstanceID  string `json:"instanceId"`
	ExtensionID string `json:"extensionId"`
	CanvasID    string `json:"canvasId"`
}

// CanvasUnavailable says that the client of an open canvas has gone.
type CanvasUnavailable CanvasClosed

// CanvasRecorded keeps an open canvas over a restart, without what only the
// client that showed it can know.
type CanvasRecorded struct {
	InstanceID  string          `json:"instanceId"`
	ExtensionID string          `json:"extensionId"`
	CanvasID    string          `json:"canvasId"`
	Title       string          `json:"title,omitempty"`
	Input       json.RawMessage `json:"input,omitempty"`
}

// CanvasRemoved takes back a CanvasRecorded.
type CanvasRemoved CanvasClosed

// CanvasRegistry lists the canvases that clients can show.
type CanvasRegistry struct {
	Canvases []CanvasInfo `json:"canvases"`
}

// CanvasInfo describes a canvas.
type CanvasInfo struct {
	ExtensionID   string          `json:"extensionId"`
	ExtensionName string          `json:"extensionName,omitempty"`
	CanvasID      string          `json:"canvasId"`
	DisplayName   string          `json:"displayName"`
	Description   string          `json:"description"`
	Icon          string          `json:"icon,omitempty"`
	InputSchema   json.RawMessage `json:"inputSchema,omitempty"`
	Actions       []CanvasAction  `json:"actions,omitempty"`
}

// CanvasAction is something that can be done to an open canvas.
type CanvasAction struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"inputSchema,omitempty"`
}

// EventType returns "session.canvas.opened".
func (CanvasOpened) EventType() string { return TypeCanvasOpened }

// EventType returns "session.canvas.closed".
func (CanvasClosed) EventType() string { return TypeCanvasClosed }

// EventType returns "session.canvas.unavailable".
func (CanvasUnavailable) EventType() string { return TypeCanvasUnavailable }

// EventType returns "session.canvas.registry_changed".
func (CanvasRegistry) EventType() string { return TypeCanvasRegistry }

// EventType returns "session.canvas.recorded".
func (CanvasRecorded) EventType() string { return TypeCanvasRecorded }

// EventType returns "session.canvas.removed".
func (CanvasRemoved) EventType() string { return TypeCanvasRemoved }

func (CanvasOpened) ephemeralEvent()      {}
func (CanvasClosed) ephemeralEvent()      {}
func (CanvasUnavailable) ephemeralEvent() {}
func (CanvasRegistry) ephemeralEvent()    {}
