package server

import (
	"context"
	"encoding/json"

	"github.com/transom-run/transom"
)

// answers names the requests that a client says it answers.
func (p *sessionParams) answers() []string {
	var out []string
	for _, a := range []struct {
		given  bool
		method string
	}{
		{p.RequestUserInput, "userInput.request"},
		{p.RequestExitPlanMode, "exitPlanMode.request"},
		{p.transforms(), "systemMessage.transform"},
	} {
		if a.given {
			out = append(out, a.method)
		}
	}
	return out
}

// transforms reports whether the client changes sections of the system message
// itself.
func (p *sessionParams) transforms() bool {
	if p.SystemMessage == nil {
		return false
	}
	for _, s := range p.SystemMessage.Sections {
		if s.Action == "transform" {
			return true
		}
	}
	return false
}

// requests makes the handler that puts requests of the protocol to a client; nil
// where it answers none.
func (c *conn) requests(p *sessionParams) transom.RequestHandler {
	if len(p.answers()) == 0 {
		return nil
	}
	return func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
		return c.rpc.Call(ctx, method, params)
	}
}
