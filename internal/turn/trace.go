package turn

import (
	"maps"

	"github.com/transom-run/transom/trace"
)

// A message's own place in a trace waits with the headers of its model calls, under
// names that no header can have.
const (
	traceParent = ":traceparent"
	traceState  = ":tracestate"
)

// WithTrace adds a message's place in a trace to the headers of its model calls.
func WithTrace(headers map[string]string, at trace.Context) map[string]string {
	if at.Parent == "" {
		return headers
	}
	out := maps.Clone(headers)
	if out == nil {
		out = map[string]string{}
	}
	out[traceParent], out[traceState] = at.Parent, at.State
	return out
}

// HostTrace is the place in a trace that the running loop's host has named, by the
// message or for the session; the zero Context where it named none.
func (s *State) HostTrace() trace.Context {
	if p := s.Live.Headers[traceParent]; p != "" {
		return trace.Context{Parent: p, State: s.Live.Headers[traceState]}
	}
	return s.Live.Settings.Trace
}

// AgentTrace is the place of the running loop in the host's trace, or in one of its
// own; the host's own where nobody makes traces here.
func (s *State) AgentTrace() trace.Context {
	host := s.HostTrace()
	if !s.Live.Settings.Traced {
		return host
	}
	if host.Parent == "" {
		host = trace.Root(s.SessionID + "\x00" + s.Loop.InteractionID)
	}
	return host.Child(trace.Agent + " " + s.Loop.InteractionID)
}

// ChatTrace is the place of the model call that makes a message.
func (s *State) ChatTrace(messageID string) trace.Context {
	if !s.Live.Settings.Traced {
		return s.HostTrace()
	}
	return s.AgentTrace().Child(trace.Chat + " " + messageID)
}

// ToolTrace is the place of a call.
func (s *State) ToolTrace(callID string) trace.Context {
	if !s.Live.Settings.Traced {
		return s.HostTrace()
	}
	return s.AgentTrace().Child(trace.Tool + " " + callID)
}

// headers are those of the model call that makes a message: the host's, and the
// call's place in a trace where traces are made.
func (m *machine) headers(messageID string) map[string]string {
	h := m.s.Live.Headers
	if !m.s.Live.Settings.Traced && h[traceParent] == "" {
		return h
	}
	out := maps.Clone(h)
	if out == nil {
		out = map[string]string{}
	}
	delete(out, traceParent)
	delete(out, traceState)
	if !m.s.Live.Settings.Traced || out["traceparent"] != "" {
		return out
	}
	at := m.s.ChatTrace(messageID)
	out["traceparent"] = at.Parent
	if at.State != "" {
		out["tracestate"] = at.State
	}
	return out
}
