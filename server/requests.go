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
		{p.RequestAutoModeSwitch, transom.AutoModeRequest},
		{p.asksToken(), transom.TokenRequest},
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

// requests makes the handler that puts requests of the protocol to a client. It is
// there even where the client answers none yet: a provider that it adds later may
// be one that asks it for tokens.
func (c *conn) requests() transom.RequestHandler {
	return func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
		return c.rpc.Call(ctx, method, params)
	}
}
