package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/internal/jsonrpc2"
)

// hooks makes the handler that puts hooks to a client, where it has any.
func (c *conn) hooks(p *sessionParams) transom.HookHandler {
	if !p.Hooks {
		return nil
	}
	return func(ctx context.Context, kind string, input json.RawMessage) (json.RawMessage, error) {
		var of struct {
			SessionID string `json:"sessionId"`
			Parent    string `json:"parentSessionId"` // of a sub-agent
		}
		if err := json.Unmarshal(input, &of); err != nil {
			return nil, err
		}
		session := cmp.Or(of.Parent, of.SessionID)
		defer c.asked(session)()
		raw, err := c.rpc.Call(ctx, "hooks.invoke", map[string]any{"sessionId": session, "hookType": kind, "input": input})
		if err != nil {
			var e *jsonrpc2.Error
			if errors.As(err, &e) {
				return nil, errors.New("the client answered with an error: " + e.Message)
			}
			return nil, err
		}
		var result struct {
			Output json.RawMessage `json:"output"`
		}
		if err := json.Unmarshal(raw, &result); err != nil {
			return nil, errors.New("the client's answer is not an object")
		}
		return result.Output, nil
	}
}
