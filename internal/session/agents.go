package session

import (
	"context"
	"time"

	"github.com/transom-run/transom/internal/turn"
)

// scope is what the effects of one sub-agent end with.
type scope struct {
	ctx    context.Context
	cancel context.CancelFunc
}

// scope returns the context that an effect ends with: its agent's.
func (s *Session) scope(e turn.Effect) context.Context {
	id := ""
	switch e := e.(type) {
	case *turn.StartModel:
		id = e.Fence.Agent
	case *turn.StartTool:
		id = e.Fence.Agent
	case *turn.PreparePermission:
		id = e.Fence.Agent
	case *turn.CallHook:
		id = e.Agent
	case *turn.AskPermission:
		id = e.Agent
	case *turn.StartCompaction:
		id = e.Agent
	case *turn.StartCount:
		id = e.Agent
	}
	if id == "" {
		return s.effects
	}
	a, ok := s.agents[id]
	if !ok {
		a.ctx, a.cancel = context.WithCancel(context.Background())
		if s.agents == nil {
			s.agents = map[string]scope{}
		}
		s.agents[id] = a
	}
	return a.ctx
}

// cancelAgent ends the effects of a sub-agent.
func (s *Session) cancelAgent(id string) {
	if a, ok := s.agents[id]; ok {
		a.cancel()
		delete(s.agents, id)
	}
}

// cancelAgents ends the effects of all sub-agents.
func (s *Session) cancelAgents() {
	for id := range s.agents {
		s.cancelAgent(id)
	}
}

// wait posts that a call has waited long enough.
func (s *Session) wait(ctx context.Context, e *turn.StartTimer) {
	t := time.NewTimer(e.After)
	defer t.Stop()
	select {
	case <-t.C:
		s.box.post(item{body: turn.TimeUp{Fence: e.Fence}})
	case <-ctx.Done():
	}
}

// quiet names the clients that do not want the pieces of sub-agents' answers.
func (s *Session) quiet() []string {
	var not []string
	for _, c := range s.state.Live.Clients {
		if c.Quiet {
			not = append(not, c.ID)
		}
	}
	return not
}
