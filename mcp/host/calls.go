package host

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/transom-run/transom/mcp"
	"github.com/transom-run/transom/tool"
)

// tool makes a server's tool one of the session's.
func (l *link) tool(t *sdk.Tool, d mcp.Tool) tool.Tool {
	schema, err := json.Marshal(t.InputSchema)
	if err != nil || string(schema) == "null" {
		schema = nil
	}
	name := toolName(l.name, t.Name)
	return tool.Tool{
		Name: name, Description: t.Description, Parameters: schema, Source: tool.MCP, Defer: l.cfg.DeferTools,
		Origin: &tool.Origin{Server: l.name, Tool: t.Name},
		Permission: func(_ context.Context, call tool.Call) (tool.Permission, error) {
			ask := map[string]any{
				"kind": "mcp", "serverName": l.name, "toolName": name, "toolTitle": d.Title,
				"args": call.Arguments, "readOnly": d.ReadOnly,
			}
			if l.host.cfg.Agent != "" {
				ask["serverAgent"] = l.host.cfg.Agent
			}
			raw, err := json.Marshal(ask)
			return tool.Permission{Request: raw}, err
		},
		Handler: func(ctx context.Context, call tool.Call) (tool.Result, error) { return l.call(ctx, t.Name, call) },
	}
}

// call makes a call of the model.
func (l *link) call(ctx context.Context, name string, call tool.Call) (tool.Result, error) {
	params := &sdk.CallToolParams{Name: name, Arguments: call.Arguments}
	if l.host.cfg.BeforeCall != nil {
		meta, err := l.host.cfg.BeforeCall(ctx, mcp.PreCall{CallID: call.ID, AgentID: call.AgentID, Server: l.name, Tool: name, Arguments: call.Arguments})
		if err != nil {
			return tool.Result{Text: err.Error(), Type: tool.Denied}, nil
		}
		params.Meta = meta
	}
	params.Meta = traced(params.Meta, call)
	if l.host.cfg.Progress != nil {
		token := l.progress.begin(call)
		defer l.progress.end(token)
		params.SetProgressToken(token)
	}
	limit := time.Duration(l.cfg.Timeout) * time.Millisecond
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, errLate)
		defer cancel()
	}
	res, err := l.session.CallTool(ctx, params)
	switch {
	case err == nil:
		return result(res), nil
	case errors.Is(context.Cause(ctx), errLate):
		return tool.Result{Type: tool.Timeout, Text: fmt.Sprintf("The tool '%s' of the MCP server '%s' did not answer within %v.", name, l.name, limit)}, nil
	case ctx.Err() != nil:
		return tool.Result{}, ctx.Err()
	}
	return tool.Result{Type: tool.Failure, Text: l.why(err)}, nil
}

// traced is the "_meta" of a call with its place in a trace, under the names of W3C
// Trace Context, where a hook put none there. It is always a map of its own: the SDK
// adds to it.
func traced(meta map[string]any, call tool.Call) sdk.Meta {
	_, parent := meta["traceparent"]
	_, state := meta["tracestate"]
	out := sdk.Meta(maps.Clone(meta))
	if call.Traceparent == "" || parent || state {
		return out
	}
	if out == nil {
		out = sdk.Meta{}
	}
	out["traceparent"] = call.Traceparent
	if call.Tracestate != "" {
		out["tracestate"] = call.Tracestate
	}
	return out
}

// errLate tells a server's own time limit from one of the caller's.
var errLate = errors.New("the server's time limit")

// why is the text that the model reads of a call that got no result. What comes of a
// call must not reach the session before the news that its tools are gone.
func (l *link) why(err error) string {
	var said *jsonrpc.Error // by the server, which is there then
	denied := l.denied()
	if errors.Is(err, sdk.ErrConnectionClosed) || denied != nil || l.proc != nil && !errors.As(err, &said) {
		t := time.NewTimer(noteTime)
		defer t.Stop()
		gone := errors.Is(err, sdk.ErrConnectionClosed)
		select {
		case <-l.noted:
			gone = true
		case <-t.C: // or it is there, and its answer cannot be read
		}
		if denied == nil && gone {
			return l.host.cfg.Redact(fmt.Sprintf("MCP server '%s' is gone: %s", l.name, l.ending()))
		}
	}
	switch {
	case denied != nil:
		err = denied
	case l.wire != nil:
		err = l.wire.auth.forbidden(err)
	}
	return l.host.cfg.Redact(fmt.Sprintf("MCP server '%s': %v", l.name, err))
}

// noteTime bounds the wait until a session has been told of a server's end.
const noteTime = 2 * time.Second

// result is what the model reads of a call's result: the texts as they are, files
// and images beside them. A result that is structured only is read as JSON.
func result(r *sdk.CallToolResult) tool.Result {
	var out tool.Result
	var texts []string
	for _, c := range r.Content {
		switch c := c.(type) {
		case *sdk.TextContent:
			texts = append(texts, c.Text)
		case *sdk.ImageContent:
			out.Binary = append(out.Binary, binary("image", c.Data, c.MIMEType, ""))
		case *sdk.AudioContent:
			out.Binary = append(out.Binary, binary("resource", c.Data, c.MIMEType, ""))
		case *sdk.ResourceLink:
			texts = append(texts, strings.TrimSpace(c.Name+" "+c.URI))
		case *sdk.EmbeddedResource:
			switch res := c.Resource; {
			case res == nil:
			case len(res.Blob) > 0:
				kind := "resource"
				if strings.HasPrefix(res.MIMEType, "image/") {
					kind = "image"
				}
				out.Binary = append(out.Binary, binary(kind, res.Blob, res.MIMEType, res.URI))
			default:
				texts = append(texts, res.Text)
			}
		}
	}
	out.Text = strings.Join(texts, "\n")
	if r.StructuredContent != nil {
		out.Structured = plain(r.StructuredContent)
		if len(texts) == 0 && len(out.Binary) == 0 {
			out.Text = string(out.Structured)
		}
	}
	if r.IsError {
		out.Type = tool.Failure
	}
	return out
}

// plain is a value as JSON, with the characters of markup as they are.
func plain(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil {
		return nil
	}
	return bytes.TrimSpace(b.Bytes())
}

func binary(kind string, data []byte, mime, of string) tool.Binary {
	return tool.Binary{Type: kind, Data: base64.StdEncoding.EncodeToString(data), MIMEType: mime, Description: of}
}

// Call sends a request to a connected server.
func (h *Host) Call(ctx context.Context, name, method string, params json.RawMessage) (json.RawMessage, error) {
	l, err := h.linked(name)
	if err != nil {
		return nil, err
	}
	var res any
	switch method {
	case "tools/call":
		res, err = request(ctx, params, l.session.CallTool)
	case "resources/list":
		res, err = request(ctx, params, l.session.ListResources)
	case "resources/templates/list":
		res, err = request(ctx, params, l.session.ListResourceTemplates)
	case "resources/read":
		res, err = request(ctx, params, l.session.ReadResource)
	default:
		err = fmt.Errorf("%s cannot be asked of a server", method)
	}
	if err != nil {
		return nil, errors.New(l.why(err))
	}
	return json.Marshal(res)
}

func request[P, R any](ctx context.Context, raw json.RawMessage, send func(context.Context, *P) (*R, error)) (any, error) {
	p := new(P)
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, p); err != nil {
			return nil, err
		}
	}
	return send(ctx, p)
}
