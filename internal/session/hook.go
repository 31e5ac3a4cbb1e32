package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/transom-run/transom/internal/hookfile"
	"github.com/transom-run/transom/internal/turn"
)

// Hooker answers hooks for one client: input and output are the protocol's
// objects. A nil output is no verdict.
type Hooker func(ctx context.Context, kind string, input json.RawMessage) (json.RawMessage, error)

// SetHooker says who answers hooks for a client, or for the files (turn.FileHooks).
func (s *Session) SetHooker(clientID string, h Hooker) { s.hookers.Store(clientID, h) }

// Times that hooks may take. A hook at the end of a session holds up whoever
// closes it.
const (
	hookTime    = 60 * time.Second
	hookEndTime = 5 * time.Second
)

// errNoHooks says that a client which had hooks is not there to answer.
var errNoHooks = errors.New("the client that has the hook is gone")

// callHook asks the clients in turn and posts what they came to.
func (s *Session) callHook(ctx context.Context, e *turn.CallHook) {
	limit := hookTime
	if e.Kind == turn.HookSessionEnd {
		limit = hookEndTime
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it did not answer within %s", limit))
	defer cancel()
	if e.Kind == turn.HookCompose {
		s.compose(ctx, e)
		return
	}
	if e.Kind == turn.HookConnect {
		if s.cfg.Connect != nil {
			s.cfg.Connect(ctx, e.Type, e.Agent != "")
		}
		s.box.post(item{body: turn.HookDone{Agent: e.Agent, ID: e.ID}})
		return
	}
	var merged map[string]json.RawMessage
	for _, id := range e.Clients {
		out, err := s.askHook(ctx, id, e)
		if err == nil {
			merged, err = merge(merged, out)
		}
		if err != nil {
			s.box.post(item{body: turn.HookDone{Agent: e.Agent, ID: e.ID, Err: err}})
			return
		}
	}
	in := turn.HookDone{Agent: e.Agent, ID: e.ID}
	if merged != nil {
		in.Output, in.Err = json.Marshal(merged)
	}
	s.box.post(item{body: in})
}

// compose makes the system message and posts it.
func (s *Session) compose(ctx context.Context, e *turn.CallHook) {
	in := turn.HookDone{Agent: e.Agent, ID: e.ID}
	defer func() {
		if v := recover(); v != nil {
			in.Output, in.Err = nil, fmt.Errorf("composing it panicked: %v", v)
		}
		s.box.post(item{body: in})
	}()
	var place struct {
		Dir string `json:"cwd"`
	}
	if in.Err = json.Unmarshal(e.Input, &place); in.Err != nil {
		return
	}
	if s.cfg.Compose == nil {
		in.Err = errors.New("nobody composes it")
		return
	}
	var text string
	if text, in.Err = s.cfg.Compose(ctx, place.Dir, e.Type); in.Err == nil {
		in.Output, in.Err = json.Marshal(map[string]string{"system": text})
	}
}

// AskHooks asks the hooks of files and of attached clients about something that no turn
// waits for, and returns what they came to; nil is no verdict.
func (s *Session) AskHooks(ctx context.Context, kind turn.HookKind, input json.RawMessage) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, hookTime, fmt.Errorf("it did not answer within %s", hookTime))
	defer cancel()
	var merged map[string]json.RawMessage
	var asked []string
	live := &s.View().Live
	if live.Settings.FileHooks {
		asked = append(asked, turn.FileHooks)
	}
	for _, c := range live.Clients {
		if c.Hooks {
			asked = append(asked, c.ID)
		}
	}
	for _, id := range asked {
		out, err := s.askHook(ctx, id, &turn.CallHook{Kind: kind, Input: input})
		if err == nil {
			merged, err = merge(merged, out)
		}
		if err != nil {
			return nil, err
		}
	}
	if merged == nil {
		return nil, nil
	}
	return json.Marshal(merged)
}

// askHook asks one client, and gives up on one that does not heed its context.
func (s *Session) askHook(ctx context.Context, id string, e *turn.CallHook) (json.RawMessage, error) {
	v, ok := s.hookers.Load(id)
	if !ok {
		return nil, errNoHooks
	}
	type answer struct {
		out json.RawMessage
		err error
	}
	ch := make(chan answer, 1)
	go func() {
		a := answer{err: errors.New("it ended without an answer")}
		defer func() {
			if p := recover(); p != nil {
				a = answer{err: fmt.Errorf("it panicked: %v", p)}
			}
			ch <- a
		}()
		a.out, a.err = v.(Hooker)(ctx, string(e.Kind), e.Input)
	}()
	select {
	case a := <-ch:
		return a.out, a.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// merge adds one client's answer to those before it. A denial stands.
func merge(have map[string]json.RawMessage, out json.RawMessage) (map[string]json.RawMessage, error) {
	if len(out) == 0 || string(out) == "null" {
		return have, nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(out, &fields); err != nil {
		return have, fmt.Errorf("its answer is not a JSON object: %w", err)
	}
	if have == nil {
		return fields, nil
	}
	stands := hookfile.Stands(have["permissionDecision"])
	for k, v := range fields {
		if stands && strings.HasPrefix(k, "permissionDecision") || string(v) == "null" {
			continue // the decision and its reason
		}
		have[k] = v
	}
	return have, nil
}
