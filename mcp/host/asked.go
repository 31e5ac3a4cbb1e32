package host

//lint:file-ignore SA1019 The newest protocol gives sampling and roots up; servers of today speak them.

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"path/filepath"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/transom-run/transom/mcp"
)

// options are what the client can do for a server.
func (l *link) options() *sdk.ClientOptions {
	o := &sdk.ClientOptions{
		Logger:                      l.host.log.With("mcpServer", l.name),
		Capabilities:                &sdk.ClientCapabilities{RootsV2: &sdk.RootCapabilities{}},
		ToolListChangedHandler:      func(context.Context, *sdk.ToolListChangedRequest) { l.relist() },
		PromptListChangedHandler:    func(context.Context, *sdk.PromptListChangedRequest) { l.changed("prompts") },
		ResourceListChangedHandler:  func(context.Context, *sdk.ResourceListChangedRequest) { l.changed("resources") },
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) { l.progress.said(l.host, r.Params) },
	}
	if can := l.host.cfg.Elicits; l.host.cfg.Elicit != nil && (can == nil || can()) {
		o.Capabilities.Elicitation = &sdk.ElicitationCapabilities{Form: &sdk.FormElicitationCapabilities{}, URL: &sdk.URLElicitationCapabilities{}}
		o.ElicitationHandler = l.elicit
	}
	if can := l.host.cfg.Samples; l.host.cfg.Sample != nil && (can == nil || can()) {
		o.CreateMessageHandler = l.sample
	}
	if l.host.cfg.Apps {
		o.Capabilities.Extensions = map[string]any{"io.modelcontextprotocol/ui": map[string]any{"mimeTypes": []string{"text/html;profile=mcp-app"}}}
	}
	return o
}

// roots says where the session works.
func (l *link) roots(c *sdk.Client) {
	if l.host.cfg.Roots == nil {
		return
	}
	for _, dir := range l.host.cfg.Roots() {
		c.AddRoots(&sdk.Root{Name: filepath.Base(dir), URI: (&url.URL{Scheme: "file", Path: filepath.ToSlash(dir)}).String()})
	}
}

// elicit asks the session's user.
func (l *link) elicit(ctx context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
	p := r.Params
	e := mcp.Elicitation{Message: p.Message, Mode: p.Mode, URL: p.URL}
	if p.RequestedSchema != nil {
		raw, err := json.Marshal(p.RequestedSchema)
		if err != nil {
			return nil, err
		}
		e.Schema = raw
	}
	a, err := l.host.cfg.Elicit(ctx, l.name, e)
	if err != nil {
		return nil, err
	}
	out := &sdk.ElicitResult{Action: a.Action}
	if a.Action == "accept" && len(a.Content) > 0 {
		if err := json.Unmarshal(a.Content, &out.Content); err != nil {
			return nil, errors.New("the answer of the session's user is not an object")
		}
	}
	return out, nil
}

// sample has the session's model answer.
func (l *link) sample(ctx context.Context, r *sdk.CreateMessageRequest) (*sdk.CreateMessageResult, error) {
	raw, err := json.Marshal(r.Params)
	if err != nil {
		return nil, err
	}
	answer, err := l.host.cfg.Sample(ctx, l.name, raw)
	if err != nil {
		return nil, err
	}
	out := new(sdk.CreateMessageResult)
	return out, json.Unmarshal(answer, out)
}
