package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"

	copilot "github.com/github/copilot-sdk/go"
	"github.com/github/copilot-sdk/go/rpc"
)

// player plays one case. Handlers run at the same time as the main steps, so
// what they share is behind mu.
type player struct {
	order order

	mu        sync.Mutex
	log       []entry
	seats     map[string]*seat
	gates     map[string]chan struct{}
	sessionID string
}

// seat is one client of a case: its connection, its session, and what it was
// told.
type seat struct {
	client  *copilot.Client
	session *copilot.Session

	mu      sync.Mutex
	events  []copilot.SessionEvent
	changed chan struct{} // closed and replaced with every event
}

func newPlayer(o order) *player {
	return &player{order: o, seats: map[string]*seat{}, gates: map[string]chan struct{}{}}
}

func (p *player) play() observation {
	ctx := context.Background()
	p.run(ctx, "host", "a", p.order.Host)
	var errs []error
	for name, s := range p.seats {
		if err := s.client.Stop(); err != nil {
			errs = append(errs, fmt.Errorf("stop %s: %w", name, err))
		}
	}
	o := observation{Events: map[string]any{}}
	for name, s := range p.seats {
		o.Events[name] = s.seen()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	o.Log = p.log
	if err := errors.Join(errs...); err != nil {
		o.Error = err.Error()
	}
	return o
}

// run runs steps until one of them ends a handler, and returns that one.
func (p *player) run(ctx context.Context, at, client string, steps []step) step {
	for _, s := range steps {
		switch s.Do {
		case "return", "throw", "decide":
			return s
		}
		if s.Client == "" {
			s.Client = client
		}
		e := entry{At: at, Do: s.Do, As: s.As}
		fmt.Fprintf(os.Stderr, "%s: %s\n", at, s.Do) // shown only where the case hangs
		value, err := p.step(ctx, s)
		if e.Value = value; err != nil {
			e.Value, e.Error = nil, err.Error()
		}
		p.mu.Lock()
		p.log = append(p.log, e)
		p.mu.Unlock()
	}
	return step{}
}

func (p *player) step(ctx context.Context, s step) (any, error) {
	switch s.Do {
	case "create", "resume":
		return p.open(ctx, s)
	case "wait_gate":
		<-p.gate(s.Gate)
		return nil, nil
	case "open_gate":
		close(p.gate(s.Gate))
		return nil, nil
	case "wait_model":
		_, err := ask(http.MethodGet, fmt.Sprintf("model/wait/%d", s.Count), nil, nil)
		return nil, err
	case "release_model":
		_, err := ask(http.MethodPost, fmt.Sprintf("model/release/%d", s.Count), nil, nil)
		return nil, err
	case "park": // a handler that never returns
		select {}
	}
	seat, err := p.at(s.Client)
	if err != nil {
		return nil, err
	}
	return p.use(ctx, seat, s)
}

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
		steps, scripted := p.order.Handlers[call.ToolCallID]
		if !scripted {
			steps = []step{{Do: "return", Text: "ok"}}
		}
		end := p.run(context.Background(), call.ToolCallID, client, steps)
		if end.Do == "throw" {
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
		steps, scripted := p.order.Permissions[call]
		if !scripted {
			return copilot.PermissionHandler.ApproveAll(request, invocation)
		}
		end := p.run(context.Background(), call+"/permission", client, steps)
		switch {
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

// at returns the seat of a client.
func (p *player) at(client string) (*seat, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.seats[client]
	if s == nil || s.session == nil {
		return nil, fmt.Errorf("client %s has no session", client)
	}
	return s, nil
}

// gate returns the channel that open_gate closes.
func (p *player) gate(name string) chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gates[name] == nil {
		p.gates[name] = make(chan struct{})
	}
	return p.gates[name]
}

// requestOf finds the request id under which the runtime asked for a call.
func (p *player) requestOf(call string) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.seats {
		for _, e := range s.seen() {
			if d, ok := e.Data.(*copilot.ExternalToolRequestedData); ok && d.ToolCallID == call {
				return d.RequestID, nil
			}
		}
	}
	return "", fmt.Errorf("nobody was asked for call %s", call)
}

// saw keeps an event and wakes whoever waits for it.
func (s *seat) saw(e copilot.SessionEvent) {
	fmt.Fprintf(os.Stderr, "  %s\n", e.Type())
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, e)
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *seat) seen() []copilot.SessionEvent {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.events)
}

// until returns once count events of a type were seen, for one call if named.
func (s *seat) until(typ, call string, count int) {
	for {
		s.mu.Lock()
		n, changed := 0, s.changed
		for _, e := range s.events {
			if string(e.Type()) == typ && (call == "" || callOf(e) == call) {
				n++
			}
		}
		s.mu.Unlock()
		if n >= count {
			return
		}
		<-changed
	}
}

// callOf returns the call that an event is about.
func callOf(e copilot.SessionEvent) string {
	switch d := e.Data.(type) {
	case *copilot.ToolExecutionStartData:
		return d.ToolCallID
	case *copilot.ToolExecutionCompleteData:
		return d.ToolCallID
	case *copilot.ExternalToolRequestedData:
		return d.ToolCallID
	}
	return ""
}
