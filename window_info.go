package transom

import (
	"time"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/internal/turn"
	"github.com/transom-run/transom/model"
)

// Usage is what a session has used since it was created, clears and restarts
// included.
type Usage struct {
	Prompts    int64                        // of users
	APITime    time.Duration                // spent in model calls
	Models     map[string]event.ModelMetric // by model
	LastInput  int64                        // tokens of the newest model call
	LastOutput int64
	// Changes are the lines that the session's create and edit wrote, and their files.
	// What commands changed is not known.
	Changes event.CodeChanges
}

// Usage returns the session's totals.
func (h *Session) Usage() Usage {
	v := h.sess.View()
	u := Usage{Prompts: v.Prompts, APITime: time.Duration(v.APIMs) * time.Millisecond, Models: map[string]event.ModelMetric{}, LastInput: v.LastInput, LastOutput: v.LastOutput, Changes: v.Changes}
	u.Changes.FilesModified = append([]string{}, v.Changes.FilesModified...)
	for name, m := range v.Usage {
		u.Models[name] = m
	}
	return u
}

// Window is what the model would be sent now, in estimated tokens.
type Window struct {
	Limit int // of the model
	// Background and Blocking are the sizes at which the window is summarised by
	// itself, and at which a model call waits for that; Limit where it never is.
	Background, Blocking int
	Compactions          int // summaries that have taken the place of messages
	SystemTokens         int
	ToolTokens           int // of all tool definitions
	Messages             []WindowMessage
	Tools                []WindowTool
}

// WindowMessage is a message of the window.
type WindowMessage struct {
	Role   string // "user", "assistant" or "tool"
	Tool   string // whose result it is
	Tokens int
}

// WindowTool is a tool that the model is offered.
type WindowTool struct {
	Name        string
	Description string
	Parameters  []byte // JSON Schema
	Source      string // "custom", "builtin" or "mcp"
	Tokens      int    // in the model's list; 0 where it is held back
	Held        bool   // left out of the model's list until a tool search finds it
}

// MessageTokens is the size of all messages.
func (w Window) MessageTokens() int {
	n := 0
	for _, m := range w.Messages {
		n += m.Tokens
	}
	return n
}

// Tokens is the size of everything.
func (w Window) Tokens() int { return w.SystemTokens + w.ToolTokens + w.MessageTokens() }

// Window measures the session's window.
func (h *Session) Window() Window {
	v := h.sess.View()
	w := Window{Limit: v.Limit(), SystemTokens: model.EstimateText(v.Live.Settings.System), Tools: tools(v)}
	w.Background, w.Blocking, w.Compactions = w.Limit, w.Limit, v.Compactions
	if c := v.Live.Settings.Compaction; c.Enabled {
		w.Background, w.Blocking = int(float64(w.Limit)*c.Background), int(float64(w.Limit)*c.Blocking)
	}
	names := map[string]string{}
	for _, m := range v.Window.Messages("") {
		for _, c := range m.Calls {
			names[c.ID] = c.Name
		}
		w.Messages = append(w.Messages, WindowMessage{Role: string(m.Role), Tool: names[m.CallID], Tokens: model.EstimateMessage(&m)})
	}
	for _, t := range w.Tools {
		w.ToolTokens += t.Tokens
	}
	return w
}

// Tools lists what the model is offered now.
func (h *Session) Tools() []WindowTool { return tools(h.sess.View()) }

func tools(v *turn.State) []WindowTool {
	var out []WindowTool
	offers := v.Live.Offers
	for _, o := range offers.List() {
		def := o.Definition()
		t := WindowTool{Name: o.Name, Description: o.Description, Parameters: def, Source: string(o.Source), Held: offers.Held(o.Name)}
		if !t.Held {
			t.Tokens = model.EstimateTool(&model.ToolDef{Name: o.Name, Description: o.Description, Parameters: def})
		}
		out = append(out, t)
	}
	return out
}
