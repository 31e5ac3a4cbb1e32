package transom

import (
	"cmp"
	"context"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/internal/turn"
)

// equip gives a new session what it works with: agents, skills, tools and the
// system message. It returns what the session's own agent is; nil is the default
// one.
func (r *Runtime) equip(ctx context.Context, sess *loaded, cfg SessionConfig, settings *turn.Settings) (*event.SubagentSelected, error) {
	sess.requests.set(shape{&cfg.ClientName, &cfg.ReasoningSummary, &cfg.Citations, cfg.Vision, &cfg.NoSockets})
	sess.skills.update(cfg.Skills, &cfg.ConfigDiscovery)
	r.scan(sess, cfg.Dir)
	r.scanAgents(sess, cfg.Dir)
	selected, err := sess.agents.begin(cfg)
	if err != nil {
		return nil, err
	}
	sess.agents.settle(settings)
	if settings.BuiltIns, err = sess.offered(cfg.Answers); err != nil {
		return nil, err
	}
	if err := clash(settings.BuiltIns, cfg.Tools, *settings); err != nil {
		return nil, err
	}
	return selected, sess.system.begin(ctx, r.cfg.Dir, cfg, settings)
}

// answer puts the model of the agent that was selected into a session's beginning.
func (s *agentSet) answer(begin *turn.Begin) {
	if d, ok := s.current(); ok {
		s.mu.Lock()
		s.before = modelChoice{begin.Model, begin.Effort}
		s.mu.Unlock()
		begin.Model, begin.Effort = cmp.Or(d.Model, begin.Model), cmp.Or(d.ReasoningEffort, begin.Effort)
	}
}
