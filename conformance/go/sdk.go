package main

// What the player needs of the SDK. Older versions have a file of their own.

import (
	"context"
	"errors"
	"fmt"
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
		return answer.Data.(*copilot.AssistantMessageData).Content, nil
	case "clear":
		return session.RPC.History.ClearContext(ctx, &rpc.HistoryClearContextRequest{Prompt: s.Prompt})
	case "truncate":
		events, err := session.GetEvents(ctx)
		if err != nil {
			return nil, err
		}
		last := ""
		for _, e := range events {
			if string(e.Type()) == s.Type {
				last = e.ID
			}
		}
		return session.RPC.History.Truncate(ctx, &rpc.HistoryTruncateRequest{EventID: last})
	case "abort":
		return nil, session.Abort(ctx)
	case "answer":
		request, err := p.requestOf(s.Call)
		if err != nil {
			return nil, err
		}
		return session.RPC.Tools.HandlePendingToolCall(ctx, &rpc.HandlePendingToolCallRequest{
			RequestID: request, Result: rpc.ExternalToolStringResult(s.Text),
		})
	case "get_events":
		return session.GetEvents(ctx)
	case "get_mode":
		return session.RPC.Mode.Get(ctx)
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
	case "kill": // SIGKILL to a runtime of our own, a closed socket to one we joined
		seat.client.ForceStop()
		return nil, nil
	}
	return nil, fmt.Errorf("this host does not know the step %s", s.Do)
}

// open seats a client and gives it a session: a new one, or the case's.
func (p *player) open(ctx context.Context, s step) (any, error) {
	o := p.order
	options := &copilot.ClientOptions{BaseDirectory: o.Home}
	switch o.Over {
	case "stdio": // the binary is COPILOT_CLI_PATH
		options.Connection = copilot.StdioConnection{}
	case "tcp":
		options.Connection = copilot.TCPConnection{}
	case "server":
		options.Connection = copilot.URIConnection{URL: o.Server.URL, ConnectionToken: o.Server.Token}
	}
	seat := &seat{client: copilot.NewClient(options), changed: make(chan struct{})}
	p.mu.Lock()
	p.seats[s.Client] = seat
	id := p.sessionID
	p.mu.Unlock()

	config := copilot.SessionConfig{
		Model:               o.Model.Name,
		Provider:            &copilot.ProviderConfig{Type: "openai", BaseURL: o.Model.BaseURL, APIKey: "none"},
		SystemMessage:       &copilot.SystemMessageConfig{Mode: "replace", Content: o.System},
		AvailableTools:      copilot.NewToolSet().AddCustom("*").ToSlice(), // ours only, none of the runtime's
		Streaming:           copilot.Bool(o.Streaming),
		Tools:               p.tools(s),
		OnPermissionRequest: p.permission(s.Client),
		OnEvent:             seat.saw,
	}
	var session *copilot.Session
	var err error
	if s.Do == "create" {
		session, err = seat.client.CreateSession(ctx, &config)
	} else {
		resume := copilot.ResumeSessionConfig{
			Model: config.Model, Provider: config.Provider, SystemMessage: config.SystemMessage,
			AvailableTools: config.AvailableTools, Streaming: config.Streaming, Tools: config.Tools,
			OnPermissionRequest: config.OnPermissionRequest, OnEvent: config.OnEvent,
			ContinuePendingWork: copilot.Bool(s.Continue),
		}
		// A runtime that was just killed may still hold the session for a moment.
		for busy := true; busy; busy = err != nil && strings.Contains(err.Error(), "busy in process") {
			session, err = seat.client.ResumeSession(ctx, id, &resume)
		}
	}
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	seat.session, p.sessionID = session, session.SessionID
	return session.SessionID, nil
}

// tools makes the tools that a create or resume step declares.
func (p *player) tools(s step) []copilot.Tool {
	tools := []copilot.Tool{}
	for _, t := range p.order.Tools {
		if !slices.Contains(s.Tools, t.Name) {
			continue
		}
		tool := copilot.Tool{
			Name:        t.Name,
			Description: t.Description,
			Parameters:  t.Parameters,
			IsTerminal:  t.Terminal,
			Handler:     p.handler(s.Client),
		}
		if t.DeferNever {
			tool.Defer = copilot.ToolDeferNever
		}
		tools = append(tools, tool)
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
		return copilot.ToolResult{TextResultForLLM: end.Text, ResultType: end.Kind}, nil
	}
}

// permission is the permission handler: approve, unless the case says more.
func (p *player) permission(client string) copilot.PermissionHandlerFunc {
	return func(request copilot.PermissionRequest, invocation copilot.PermissionInvocation) (rpc.PermissionDecision, error) {
		var call string
		if r, ok := request.(*copilot.PermissionRequestCustomTool); ok && r.ToolCallID != nil {
			call = *r.ToolCallID
		}
		end, scripted := p.end(call+"/permission", client, p.order.Permissions, call)
		switch {
		case !scripted:
			return copilot.PermissionHandler.ApproveAll(request, invocation)
		case end.Do == "throw":
			return nil, errors.New(end.Text)
		case end.Kind == "approve-once":
			return &rpc.PermissionDecisionApproveOnce{}, nil
		case end.Kind == "user-not-available":
			return &rpc.PermissionDecisionUserNotAvailable{}, nil
		case end.Kind == "reject" && end.Text == "":
			return &rpc.PermissionDecisionReject{}, nil
		case end.Kind == "reject":
			return &rpc.PermissionDecisionReject{Feedback: &end.Text}, nil
		}
		return nil, fmt.Errorf("this host does not know the decision %s", end.Kind)
	}
}

// saw is told of every event.
func (s *seat) saw(e copilot.SessionEvent) {
	kept := seen{event: e, typ: string(e.Type())}
	switch d := e.Data.(type) {
	case *copilot.ToolExecutionStartData:
		kept.call = d.ToolCallID
	case *copilot.ToolExecutionCompleteData:
		kept.call = d.ToolCallID
	case *copilot.ExternalToolRequestedData:
		kept.call, kept.question = d.ToolCallID, d.RequestID
	}
	s.keep(kept)
}
