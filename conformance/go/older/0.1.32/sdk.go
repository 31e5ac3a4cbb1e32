package main

// What the player needs of the SDK, as version 0.1 has it: a client hears of its
// session only once it has it.

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	copilot "github.com/github/copilot-sdk/go"
	"github.com/github/copilot-sdk/go/rpc"
)

// use is a step on an open session.
func (p *player) use(ctx context.Context, seat *seat, s step) (any, error) {
	session := seat.session
	switch s.Do {
	case "send":
		return session.Send(ctx, copilot.MessageOptions{Prompt: s.Prompt, Mode: s.Mode})
	case "send_and_wait":
		answer, err := session.SendAndWait(ctx, copilot.MessageOptions{Prompt: s.Prompt})
		if err != nil || answer == nil {
			return nil, err
		}
		return answer.Data.Content, nil
	case "abort":
		return nil, session.Abort(ctx)
	case "answer":
		request, err := p.requestOf(s.Call)
		if err != nil {
			return nil, err
		}
		return session.RPC.Tools.HandlePendingToolCall(ctx, &rpc.SessionToolsHandlePendingToolCallParams{
			RequestID: request, Result: &rpc.ResultUnion{String: &s.Text},
		})
	case "get_events":
		return session.GetMessages(ctx)
	case "get_mode":
		mode, err := session.RPC.Mode.Get(ctx)
		if err != nil {
			return nil, err
		}
		return mode.Mode, nil
	case "get_model":
		model, err := session.RPC.Model.GetCurrent(ctx)
		if err != nil {
			return nil, err
		}
		return model.ModelID, nil
	case "wait_event":
		seat.until(s.Type, s.Call, max(s.Count, 1))
		return nil, nil
	case "disconnect":
		return nil, session.Disconnect()
	case "stop":
		return nil, seat.client.Stop()
	case "kill":
		seat.client.ForceStop()
		return nil, nil
	}
	return nil, fmt.Errorf("this host does not know the step %s", s.Do)
}

// open seats a client and gives it a session: a new one, or the case's.
func (p *player) open(ctx context.Context, s step) (any, error) {
	o := p.order
	client := copilot.NewClient(&copilot.ClientOptions{
		CLIPath:  os.Getenv("COPILOT_CLI_PATH"),
		UseStdio: copilot.Bool(o.Over == "stdio"),
		Env:      append(os.Environ(), "COPILOT_HOME="+o.Home),
	})
	seat := &seat{client: client, changed: make(chan struct{})}
	p.mu.Lock()
	p.seats[s.Client] = seat
	id := p.sessionID
	p.mu.Unlock()

	config := copilot.SessionConfig{
		Model:               o.Model.Name,
		Provider:            &copilot.ProviderConfig{Type: "openai", BaseURL: o.Model.BaseURL, APIKey: "none"},
		SystemMessage:       &copilot.SystemMessageConfig{Mode: "replace", Content: o.System},
		AvailableTools:      s.Tools, // ours only, none of the runtime's
		Streaming:           o.Streaming,
		Tools:               p.tools(s),
		OnPermissionRequest: p.permission(s.Client),
	}
	var session *copilot.Session
	var err error
	if s.Do == "create" {
		session, err = client.CreateSession(ctx, &config)
	} else {
		resume := copilot.ResumeSessionConfig{
			Model: config.Model, Provider: config.Provider, SystemMessage: config.SystemMessage,
			AvailableTools: config.AvailableTools, Streaming: config.Streaming, Tools: config.Tools,
			OnPermissionRequest: config.OnPermissionRequest,
		}
		// A runtime that was just killed may still hold the session for a moment.
		for busy := true; busy; busy = err != nil && strings.Contains(err.Error(), "busy in process") {
			session, err = client.ResumeSession(ctx, id, &resume)
		}
	}
	if err != nil {
		return nil, err
	}
	session.On(seat.saw)
	p.mu.Lock()
	defer p.mu.Unlock()
	seat.session, p.sessionID = session, session.SessionID
	return session.SessionID, nil
}

// tools makes the tools that a create or resume step declares.
func (p *player) tools(s step) []copilot.Tool {
	tools := []copilot.Tool{}
	for _, t := range p.order.Tools {
		if slices.Contains(s.Tools, t.Name) {
			tools = append(tools, copilot.Tool{
				Name: t.Name, Description: t.Description, Parameters: t.Parameters, Handler: p.handler(s.Client),
			})
		}
	}
	return tools
}

// handler is the handler of every tool: the call's id says what it does.
func (p *player) handler(client string) copilot.ToolHandler {
	return func(call copilot.ToolInvocation) (copilot.ToolResult, error) {
		end, scripted := p.end(call.ToolCallID, client, p.order.Handlers, call.ToolCallID)
		switch {
		case !scripted:
			return copilot.ToolResult{TextResultForLLM: "ok"}, nil
		case end.Do == "throw":
			return copilot.ToolResult{}, errors.New(end.Text)
		}
		return copilot.ToolResult{TextResultForLLM: end.Text}, nil
	}
}

// permission is the permission handler: approve, unless the case says more.
func (p *player) permission(client string) copilot.PermissionHandlerFunc {
	return func(request copilot.PermissionRequest, invocation copilot.PermissionInvocation) (copilot.PermissionRequestResult, error) {
		call := ""
		if request.ToolCallID != nil {
			call = *request.ToolCallID
		}
		end, _ := p.end(call+"/permission", client, p.order.Permissions, call)
		if end.Do == "throw" {
			return copilot.PermissionRequestResult{}, errors.New(end.Text)
		}
		return copilot.PermissionHandler.ApproveAll(request, invocation)
	}
}

// saw is told of every event.
func (s *seat) saw(e copilot.SessionEvent) {
	kept := seen{event: e, typ: string(e.Type)}
	if e.Data.ToolCallID != nil {
		kept.call = *e.Data.ToolCallID
	}
	if e.Data.RequestID != nil {
		kept.question = *e.Data.RequestID
	}
	s.keep(kept)
}
