package transom

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/internal/turn"
)

// Canvas is something that a host can show beside a conversation. The host answers
// the requests "canvas.open", "canvas.close" and "canvas.action.invoke" by its
// [RequestHandler].
type Canvas struct {
	ID, DisplayName, Description string
	Icon                         string
	InputSchema                  json.RawMessage // of what it is opened with
	Actions                      []CanvasAction
}

// CanvasAction is something that can be done to an open canvas.
type CanvasAction = event.CanvasAction

// CanvasProvider names a host's canvases among those of others. Where ID is "", it
// is one of this attachment only.
type CanvasProvider struct{ ID, Name string }

// CanvasInfo describes a canvas that a client of the session can show.
type CanvasInfo = event.CanvasInfo

// OpenCanvas is a canvas that is open. Status is "unavailable" where nobody is
// attached that shows it.
type OpenCanvas = event.CanvasOpened

// CanvasOpening says which canvas is to be opened, and under which name.
type CanvasOpening struct {
	CanvasID    string
	InstanceID  string
	ExtensionID string // needed where several clients have a canvas of that id
	Input       json.RawMessage
}

// canvases are those of one session.
type canvases struct {
	mu       sync.Mutex
	declared []declaredCanvas
	open     []OpenCanvas
	loaded   bool // what the log holds was taken
}

type declaredCanvas struct {
	client string
	CanvasInfo
}

const unavailable = "unavailable"

// declare notes what a client can show, in the place of what it said before.
func (c *canvases) declare(client string, p CanvasProvider, list []Canvas) {
	if p.ID == "" {
		p.ID = "connection:" + client
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.declared = slices.DeleteFunc(slices.Clone(c.declared), func(d declaredCanvas) bool {
		return d.client == client || d.ExtensionID == p.ID // the newest declaration counts
	})
	for _, one := range list {
		c.declared = append(c.declared, declaredCanvas{client, CanvasInfo{
			ExtensionID: p.ID, ExtensionName: p.Name, CanvasID: one.ID, DisplayName: one.DisplayName, Description: one.Description,
			Icon: one.Icon, InputSchema: one.InputSchema, Actions: one.Actions,
		}})
	}
}

// restore takes the canvases that were open when the session was left: those of
// its log, and what a host knows of them.
func (c *canvases) restore(kept []event.CanvasRecorded, known []OpenCanvas) {
	c.mu.Lock()
	defer c.mu.Unlock()
	add := func(o OpenCanvas) {
		if i := c.at(o.InstanceID); i < 0 {
			c.open = append(slices.Clip(c.open), o)
		} else if o.URL != "" || o.Title != "" {
			c.open = slices.Clone(c.open)
			c.open[i] = o
		}
	}
	if !c.loaded {
		c.loaded = true
		for _, k := range kept {
			add(OpenCanvas{InstanceID: k.InstanceID, ExtensionID: k.ExtensionID, CanvasID: k.CanvasID, Title: k.Title, Input: k.Input})
		}
	}
	for _, k := range known {
		if k.InstanceID != "" && k.CanvasID != "" {
			add(k)
		}
	}
}

func (c *canvases) at(instance string) int {
	return slices.IndexFunc(c.open, func(o OpenCanvas) bool { return o.InstanceID == instance })
}

// shower finds who shows a canvas: the extension that is named, else the only one
// that has it.
func (c *canvases) shower(canvas, extension string) (declaredCanvas, error) {
	var found []declaredCanvas
	for _, d := range c.declared {
		if d.CanvasID == canvas && d.ExtensionID == extension {
			return d, nil
		}
		if d.CanvasID == canvas {
			found = append(found, d)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) == 0:
		return declaredCanvas{}, &Error{Kind: KindNotFound, Msg: fmt.Sprintf("no client of this session shows the canvas %q", canvas)}
	}
	return declaredCanvas{}, &Error{Kind: KindInvalidParams, Msg: fmt.Sprintf("%d clients show a canvas %q: name one by its extensionId", len(found), canvas)}
}

// Canvases lists what clients of the session can show.
func (h *Session) Canvases() []CanvasInfo { return h.sess.canvases.infos() }

func (c *canvases) infos() []CanvasInfo {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]CanvasInfo, len(c.declared))
	for i, d := range c.declared {
		out[i] = d.CanvasInfo
	}
	return out
}

// OpenCanvases lists what is open, oldest first.
func (h *Session) OpenCanvases() []OpenCanvas {
	c := &h.sess.canvases
	c.mu.Lock()
	defer c.mu.Unlock()
	out := slices.Clone(c.open)
	for i := range out {
		if _, err := c.shower(out[i].CanvasID, out[i].ExtensionID); err != nil {
			out[i].Status = unavailable
		}
	}
	return out
}

// askShower puts a request about a canvas to the client that shows it.
func (s *loaded) askShower(ctx context.Context, d declaredCanvas, method string, o OpenCanvas, more map[string]any) (json.RawMessage, error) {
	v, ok := s.requesters.Load(d.client)
	if !ok || v.(requester).handle == nil {
		return nil, &Error{Kind: KindPeerGone, Msg: fmt.Sprintf("the client that shows the canvas %q is gone", d.CanvasID)}
	}
	params := map[string]any{
		"sessionId": s.ID(), "extensionId": d.ExtensionID, "canvasId": o.CanvasID, "instanceId": o.InstanceID,
		"session": map[string]any{"workingDirectory": s.View().Dir},
	}
	for k, v := range more {
		params[k] = v
	}
	raw, err := json.Marshal(params)
	if err != nil {
		return nil, err
	}
	out, err := v.(requester).handle(ctx, method, raw)
	if err != nil {
		err = &Error{Kind: KindUpstream, Msg: fmt.Sprintf("the client that shows the canvas %q failed: %v", d.CanvasID, err), Err: err}
	}
	return out, err
}

// OpenCanvas has a client show a canvas. One that is open under the same instance
// id is shown anew.
func (h *Session) OpenCanvas(ctx context.Context, in CanvasOpening) (OpenCanvas, error) {
	const op = "session.canvas.open"
	o, err := h.sess.openCanvas(ctx, in)
	return o, wrap(op, h.id, err)
}

func (s *loaded) openCanvas(ctx context.Context, in CanvasOpening) (o OpenCanvas, err error) {
	if in.CanvasID == "" || in.InstanceID == "" {
		return o, &Error{Kind: KindInvalidParams, Msg: "a canvas is opened by its canvasId, under an instanceId of the caller's choice; both are needed"}
	}
	c := &s.canvases
	c.mu.Lock()
	d, err := c.shower(in.CanvasID, in.ExtensionID)
	if i := c.at(in.InstanceID); err == nil && i >= 0 && c.open[i].CanvasID != in.CanvasID {
		err = &Error{Kind: KindConflict, Msg: fmt.Sprintf("the instance %q is an open canvas %q: choose another instanceId, or close it", in.InstanceID, c.open[i].CanvasID)}
	}
	c.mu.Unlock()
	if err != nil {
		return o, err
	}
	o = OpenCanvas{InstanceID: in.InstanceID, ExtensionID: d.ExtensionID, ExtensionName: d.ExtensionName, CanvasID: in.CanvasID, Icon: d.Icon, Input: in.Input}
	more := map[string]any{}
	if len(in.Input) > 0 {
		more["input"] = in.Input
	}
	raw, err := s.askShower(ctx, d, "canvas.open", o, more)
	if err != nil {
		return o, err
	}
	var shown struct{ URL, Title, Status string }
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &shown); err != nil {
			return o, &Error{Kind: KindUpstream, Msg: fmt.Sprintf("the client that shows the canvas %q answered with no object", in.CanvasID), Err: err}
		}
	}
	o.URL, o.Title, o.Status = shown.URL, shown.Title, shown.Status
	c.mu.Lock()
	c.open = slices.DeleteFunc(slices.Clone(c.open), func(have OpenCanvas) bool { return have.InstanceID == o.InstanceID })
	c.open = append(c.open, o)
	c.mu.Unlock()
	s.tell(o)
	_, err = s.Do(context.WithoutCancel(ctx), turn.Note{Payload: event.CanvasRecorded{
		InstanceID: o.InstanceID, ExtensionID: o.ExtensionID, CanvasID: o.CanvasID, Title: o.Title, Input: o.Input,
	}}, nil)
	return o, err
}

// InvokeCanvas does something to an open canvas, and returns what its client
// answered.
func (h *Session) InvokeCanvas(ctx context.Context, instance, action string, input json.RawMessage) (json.RawMessage, error) {
	const op = "session.canvas.action.invoke"
	o, d, err := h.sess.opened(instance)
	if err != nil {
		return nil, wrap(op, h.id, err)
	}
	if !slices.ContainsFunc(d.Actions, func(a CanvasAction) bool { return a.Name == action }) {
		var names []string
		for _, a := range d.Actions {
			names = append(names, a.Name)
		}
		return nil, &Error{Op: op, Kind: KindInvalidParams, SessionID: h.id, Msg: fmt.Sprintf("the canvas %q has no action %q; it has: %s", d.CanvasID, action, strings.Join(names, ", "))}
	}
	more := map[string]any{"actionName": action}
	if len(input) > 0 {
		more["input"] = input
	}
	raw, err := h.sess.askShower(ctx, d, "canvas.action.invoke", o, more)
	return raw, wrap(op, h.id, err)
}

func (s *loaded) opened(instance string) (OpenCanvas, declaredCanvas, error) {
	c := &s.canvases
	c.mu.Lock()
	defer c.mu.Unlock()
	i := c.at(instance)
	if i < 0 {
		return OpenCanvas{}, declaredCanvas{}, &Error{Kind: KindNotFound, Msg: fmt.Sprintf("no canvas is open as %q", instance)}
	}
	d, err := c.shower(c.open[i].CanvasID, c.open[i].ExtensionID)
	return c.open[i], d, err
}

// CloseCanvas closes a canvas. It is closed whatever its client does about it; an
// error says that the client failed.
func (h *Session) CloseCanvas(ctx context.Context, instance string) error {
	const op = "session.canvas.close"
	s := h.sess
	o, d, shown := s.opened(instance)
	if o.InstanceID == "" {
		return wrap(op, h.id, shown)
	}
	var failed error
	if shown == nil {
		_, failed = s.askShower(ctx, d, "canvas.close", o, nil)
	}
	s.canvases.mu.Lock()
	s.canvases.open = slices.DeleteFunc(slices.Clone(s.canvases.open), func(have OpenCanvas) bool { return have.InstanceID == instance })
	s.canvases.mu.Unlock()
	gone := event.CanvasClosed{InstanceID: o.InstanceID, ExtensionID: o.ExtensionID, CanvasID: o.CanvasID}
	s.tell(gone)
	_, err := s.Do(context.WithoutCancel(ctx), turn.Note{Payload: event.CanvasRemoved(gone)}, nil)
	if err == nil {
		err = failed
	}
	return wrap(op, h.id, err)
}

// showCanvases notes what an attachment shows, and tells everybody.
func (h *Session) showCanvases(p CanvasProvider, list []Canvas, known []OpenCanvas) {
	c := &h.sess.canvases
	c.restore(h.sess.View().Canvases, known)
	if list == nil {
		return
	}
	c.declare(h.client.ID, p, list)
	h.sess.tell(event.CanvasRegistry{Canvases: c.infos()})
}

// hideCanvases notes that an attachment has gone, and what it showed with it.
func (h *Session) hideCanvases() {
	s, c := h.sess, &h.sess.canvases
	c.mu.Lock()
	was := len(c.declared)
	before := slices.Clone(c.declared)
	c.declared = slices.DeleteFunc(slices.Clone(c.declared), func(d declaredCanvas) bool { return d.client == h.client.ID })
	changed := len(c.declared) != was
	var lost []OpenCanvas
	for _, o := range c.open {
		shown := slices.ContainsFunc(before, func(d declaredCanvas) bool { return d.client == h.client.ID && d.CanvasID == o.CanvasID })
		if _, err := c.shower(o.CanvasID, o.ExtensionID); err != nil && shown {
			lost = append(lost, o)
		}
	}
	c.mu.Unlock()
	if !changed {
		return
	}
	for _, o := range lost {
		s.tell(event.CanvasUnavailable{InstanceID: o.InstanceID, ExtensionID: o.ExtensionID, CanvasID: o.CanvasID})
	}
	s.tell(event.CanvasRegistry{Canvases: c.infos()})
}
