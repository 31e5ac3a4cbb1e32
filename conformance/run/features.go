package main

import (
	"fmt"
	"maps"
	"slices"
)

// leftOut is a case that an SDK cannot express.
type leftOut struct {
	c               *Case
	feature, reason string
}

// extras are the features that are not simply a step or a way of connecting.
var extras = []string{
	"terminal",           // declaring a tool terminal
	"continue",           // resuming with pending work
	"decisions",          // permission decisions as protocol 3 names them
	"feedback",           // rejecting with a reason
	"permission throws",  // a permission handler that fails
	"result kinds",       // tool results that are no success
	"streaming",          // a session that streams
	"send while waiting", // sending from a handler while the host waits for idle
}

// features is the closed list of what an SDK may lack: any step, any way of
// connecting, the extras, and single cases.
func (s *Suite) features() []string {
	all := slices.Concat(steps, overs, extras)
	for _, c := range s.Cases {
		all = append(all, c.ID)
	}
	return all
}

// needs lists the features a case needs.
func (s *Suite) needs(c *Case) map[string]bool {
	need := map[string]bool{c.ID: true, c.Over: true, "streaming": c.Streaming}
	if c.Over == "example" { // every example is the same program
		need["terminal"], need["clear"] = true, true
	}
	for _, list := range c.stepLists() {
		for _, step := range list {
			need[step.Do] = true
			need["continue"] = need["continue"] || step.Continue
		}
	}
	for _, list := range c.Handlers {
		need["result kinds"] = need["result kinds"] || slices.ContainsFunc(list, func(s Step) bool { return s.Do == "return" && s.Kind != "" })
		need["send while waiting"] = need["send while waiting"] || (contains(list, "send") && contains(c.Host, "send_and_wait"))
	}
	for _, list := range c.Permissions {
		for _, step := range list {
			need["decisions"] = need["decisions"] || step.Do == "decide"
			need["feedback"] = need["feedback"] || (step.Do == "decide" && step.Text != "")
			need["permission throws"] = need["permission throws"] || step.Do == "throw"
		}
	}
	for _, conv := range c.Conversations {
		for _, m := range conv.Messages {
			for _, call := range m.ToolCalls {
				need["terminal"] = need["terminal"] || s.isTerminal(call.Name)
			}
		}
	}
	return need
}

func contains(list []Step, do string) bool {
	return slices.ContainsFunc(list, func(s Step) bool { return s.Do == do })
}

func (s *Suite) isTerminal(tool string) bool {
	return slices.ContainsFunc(s.Tools, func(t Tool) bool { return t.Name == tool && t.Terminal })
}

// cannot returns the first of the needed features that the language's SDK lacks,
// and why; "" where it lacks none.
func (l *Language) cannot(need map[string]bool) (feature, reason string) {
	for _, name := range programs {
		if need[name] && len(l.Programs[name]) == 0 {
			return name, "no program for it in this language: what it shows is the same for all"
		}
	}
	for _, f := range slices.Sorted(maps.Keys(l.Lacks)) {
		if need[f] {
			return f, l.Lacks[f]
		}
	}
	return "", ""
}

// checkLacks finds what languages lack and no case can need.
func (s *Suite) checkLacks(langs []*Language) error {
	known := s.features()
	for _, l := range langs {
		for feature := range l.Lacks {
			if !slices.Contains(known, feature) {
				return fmt.Errorf("%s: lacks %q, which no case can need", l.Key, feature)
			}
		}
	}
	return nil
}

// without is the case with the fields of events that an SDK drops taken out of
// what is expected.
func (c *Case) without(unseen map[string][]string) *Case {
	if len(unseen) == 0 {
		return c
	}
	seen := *c
	seen.Expect.Events = slices.Clone(c.Expect.Events)
	for i, check := range seen.Expect.Events {
		check.Order = slices.Clone(check.Order)
		for j, want := range check.Order {
			want.Data = maps.Clone(want.Data)
			for _, field := range unseen[want.Type] {
				delete(want.Data, field)
			}
			check.Order[j] = want
		}
		seen.Expect.Events[i] = check
	}
	return &seen
}
