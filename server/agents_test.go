package server_test

import (
	"testing"

	"github.com/transom-run/transom/model/scripted"
)

// Agents and their work, as a client on a connection sees them.
func TestAgents(t *testing.T) {
	w := playFiles(t, t.TempDir(), t.TempDir(), scripted.Say("ANSWER"), scripted.Say("noted"))
	c := w.connect(t)
	c.ok("session.create", obj{"sessionId": id1, "customAgents": []obj{
		{"name": "buyer", "displayName": "Buyer", "prompt": "You buy.", "tools": []string{}, "model": "cheap"},
		{"name": "cook", "prompt": "You cook.", "infer": false},
	}, "agent": "cook"})
	type agent struct {
		Name, DisplayName, Model string
		Tools                    *[]string
		DisableModelInvocation   bool
	}
	var list struct{ Agents []agent }
	c.ok("session.agent.list", in(nil), &list)
	if a := list.Agents; len(a) != 2 || a[0].DisplayName != "Buyer" || a[0].Tools == nil || len(*a[0].Tools) != 0 || a[0].Model != "cheap" || a[1].Tools != nil || !a[1].DisableModelInvocation || a[1].DisplayName != "cook" {
		t.Errorf("%+v", a)
	}
	var current struct{ Agent *agent }
	c.ok("session.agent.getCurrent", in(nil), &current)
	if current.Agent == nil || current.Agent.Name != "cook" {
		t.Errorf("at first: %+v", current.Agent)
	}
	c.ok("session.agent.select", in(obj{"name": "buyer"}), &current)
	if current.Agent == nil || current.Agent.Name != "buyer" {
		t.Errorf("selected: %+v", current.Agent)
	}
	c.fails(-32602, "session.agent.select", in(obj{"name": "nobody"}))
	c.ok("session.agent.deselect", in(nil))
	current.Agent = nil
	c.ok("session.agent.getCurrent", in(nil), &current)
	if current.Agent != nil {
		t.Errorf("deselected: %+v", current.Agent)
	}

	c.fails(-32602, "session.tasks.startAgent", in(obj{"agentType": "nobody", "prompt": "x", "name": "x"}))
	var started struct{ AgentID string }
	c.ok("session.tasks.startAgent", in(obj{"agentType": "buyer", "prompt": "BUY", "name": "leeks", "description": "buys leeks"}), &started)
	if started.AgentID != "leeks" {
		t.Errorf("%+v", started)
	}
	c.eventAt(0, "subagent.completed")
	c.eventAt(0, "session.idle") // the report's turn
	c.ok("session.tasks.waitForPending", in(nil))
	type task struct{ ID, Type, AgentType, Status, Result, ExecutionMode, Description string }
	var tasks struct{ Tasks []task }
	c.ok("session.tasks.list", in(nil), &tasks)
	want := task{"leeks", "agent", "buyer", "completed", "ANSWER", "background", "buys leeks"}
	if len(tasks.Tasks) != 1 || tasks.Tasks[0] != want {
		t.Errorf("%+v", tasks.Tasks)
	}
	var n int
	c.ok("session.cancelAllBackgroundAgents", in(nil), &n)
	var removed struct{ Removed bool }
	c.ok("session.tasks.remove", in(obj{"id": "leeks"}), &removed)
	c.ok("session.tasks.list", in(nil), &tasks)
	if n != 0 || !removed.Removed || len(tasks.Tasks) != 0 {
		t.Errorf("%d cancelled, removed %v, left %+v", n, removed.Removed, tasks.Tasks)
	}

	var places struct {
		Paths []struct {
			Path, Scope          string
			PreferredForCreation bool
		}
	}
	c.ok("agents.getDiscoveryPaths", obj{"projectPaths": []string{"/p"}}, &places)
	if p := places.Paths; len(p) != 3 || p[0].Scope != "user" || !p[1].PreferredForCreation || p[2].PreferredForCreation || p[1].Path != "/p/.github/agents" {
		t.Errorf("%+v", p)
	}
	c.fails(-32602, "session.fleet.start", in(nil))
}
