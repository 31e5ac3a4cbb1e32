package transom_test

import (
	"context"
	"encoding/json"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/model/modelfile"
	"github.com/transom-run/transom/model/scripted"
	"github.com/transom-run/transom/tool"
)

// crew is a host with one agent of its own, and a model that is asked by request.
func crew(t *testing.T, p model.Provider, cfg transom.SessionConfig) (context.Context, *transom.Session) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	rt, err := transom.Open(transom.Config{Provider: p, Home: t.TempDir(), Dir: t.TempDir(), Getenv: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := rt.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	cfg.OnPermission = transom.ApproveAll
	if cfg.Agents == nil {
		cfg.Agents = []transom.Agent{{Name: "buyer", Prompt: "You buy.", Model: "cheap"}}
	}
	s, err := rt.CreateSession(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return ctx, s
}

// bySystem answers agents and the session's own model each from a script.
type bySystem struct {
	mark      string // of an agent's system message
	own, crew model.Provider
}

func (b bySystem) Stream(ctx context.Context, req *model.Request) iter.Seq2[model.Chunk, error] {
	if strings.Contains(req.Messages[0].Text, b.mark) {
		return b.crew.Stream(ctx, req)
	}
	return b.own.Stream(ctx, req)
}

func says(replies ...modelfile.Message) *scripted.Provider {
	return scripted.New(scripted.Config{Replies: replies})
}

// A background agent that was started before a clear goes on, its record settles, and
// nothing of it reaches the new window (S9).
func TestAgentAcrossClear(t *testing.T) {
	hold := make(chan struct{})
	wait := tool.Tool{Name: "wait", Handler: func(ctx context.Context, _ tool.Call) (tool.Result, error) {
		select {
		case <-hold:
		case <-ctx.Done():
		}
		return tool.Result{Text: "waited"}, nil
	}}
	own := says(
		scripted.Call("task", `{"name":"k","agent_type":"buyer","description":"d","prompt":"BUY","mode":"background"}`),
		scripted.Call("clear", `{}`), scripted.Say("fresh"), scripted.Say("next"),
	)
	agent := says(scripted.Call("wait", `{}`), scripted.Say("SECRET ANSWER"))
	var s *transom.Session
	clear := tool.Tool{Name: "clear", IsTerminal: true, Handler: func(ctx context.Context, _ tool.Call) (tool.Result, error) {
		_, err := s.History().ClearContext(ctx, "SEED")
		return tool.Result{Text: "cleared"}, err
	}}
	ctx, s := crew(t, bySystem{"You buy.", own, agent}, transom.SessionConfig{Tools: []tool.Tool{wait, clear}})
	if _, err := s.SendAndWait(ctx, transom.Message{Prompt: "go"}); err != nil {
		t.Fatal(err)
	}
	if list := s.Tasks(); len(list) != 1 || list[0].Status != "running" || list[0].Clears != 0 {
		t.Fatalf("after the clear: %+v", list)
	}
	events := s.Subscribe()
	defer events.Close()
	close(hold)
	for e, err := range events.All(ctx) { // a call that is open refuses the wait
		if err != nil {
			t.Fatal(err)
		}
		if e.Type == event.TypeToolComplete && e.AgentID == "k" {
			break
		}
	}
	if err := s.WaitTasks(ctx); err != nil {
		t.Fatal(err)
	}
	if list := s.Tasks(); list[0].Status != "completed" || list[0].Answer != "SECRET ANSWER" {
		t.Fatalf("at the end: %+v", list)
	}
	if _, err := s.SendAndWait(ctx, transom.Message{Prompt: "and?"}); err != nil {
		t.Fatal(err)
	}
	for _, r := range own.Requests() {
		for _, m := range r.Messages {
			if strings.Contains(m.Text, "SECRET") || m.Role == model.User && strings.Contains(m.Text, "notification") {
				t.Errorf("a request of the session holds %q", m.Text)
			}
		}
	}
}

// What an agent's tool asks to be cleared is refused, and its parent's window stays as
// it is (S1).
func TestAgentDoesNotClear(t *testing.T) {
	own := says(scripted.Call("task", `{"name":"k","agent_type":"buyer","description":"d","prompt":"BUY"}`), scripted.Say("done"))
	agent := says(scripted.Call("clear", `{}`), scripted.Say("it was refused"))
	var s *transom.Session
	var refused error
	clear := tool.Tool{Name: "clear", Handler: func(ctx context.Context, _ tool.Call) (tool.Result, error) {
		_, refused = s.History().ClearContext(ctx, "SEED")
		return tool.Result{Text: "no", Type: tool.Failure}, nil
	}}
	ctx, s := crew(t, bySystem{"You buy.", own, agent}, transom.SessionConfig{Tools: []tool.Tool{clear}})
	answer, err := s.SendAndWait(ctx, transom.Message{Prompt: "go"})
	if err != nil || answer.Content != "done" {
		t.Fatalf("%+v, %v", answer, err)
	}
	if refused == nil || !strings.Contains(refused.Error(), "the agent k") || s.Info().Clears != 0 {
		t.Errorf("%v, %d clears", refused, s.Info().Clears)
	}
	if calls := agent.Requests(); calls[0].Model != "cheap" || calls[0].AgentID != "k" || calls[0].SessionID != s.ID() {
		t.Errorf("the agent's request: %+v", calls[0])
	}
}

// A host hears of the pieces of an agent's answer only if it wants to, and of all else
// in any case.
func TestQuietAgents(t *testing.T) {
	for _, quiet := range []bool{false, true} {
		own := says(scripted.Call("task", `{"name":"k","agent_type":"buyer","description":"d","prompt":"BUY"}`), scripted.Say("done"))
		ctx, s := crew(t, bySystem{"You buy.", own, says(scripted.Say("piece by piece"))}, transom.SessionConfig{Streaming: true, QuietAgents: quiet})
		events := s.Subscribe()
		if _, err := s.SendAndWait(ctx, transom.Message{Prompt: "go"}); err != nil {
			t.Fatal(err)
		}
		var types []string
		for e, err := range events.All(ctx) {
			if err != nil {
				t.Fatal(err)
			}
			if e.AgentID == "k" {
				types = append(types, e.Type)
			}
			if e.Type == event.TypeSessionIdle {
				break
			}
		}
		events.Close()
		if got := slices.Contains(types, event.TypeMessageDelta); got == quiet || !slices.Contains(types, event.TypeAssistantMessage) {
			t.Errorf("quiet %v: %v", quiet, types)
		}
	}
}

// The agent that is selected has its prompt, its tools and its model, and the default
// one has its own back afterwards.
func TestSelectAgent(t *testing.T) {
	p := says(scripted.Say("1"), scripted.Say("2"), scripted.Say("3"))
	tools := []tool.Tool{{Name: "a"}, {Name: "b"}}
	ctx, s := crew(t, p, transom.SessionConfig{Model: "own", Tools: tools, Agents: []transom.Agent{{Name: "buyer", Prompt: "You buy.", Model: "cheap", Tools: []string{"a"}}}})
	say := func() {
		t.Helper()
		if _, err := s.SendAndWait(ctx, transom.Message{Prompt: "go"}); err != nil {
			t.Fatal(err)
		}
	}
	say()
	if err := s.SelectAgent(ctx, "nobody"); err == nil || !strings.Contains(err.Error(), "buyer") {
		t.Errorf("an unknown agent: %v", err)
	}
	if err := s.SelectAgent(ctx, "buyer"); err != nil || s.CurrentAgent().Name != "buyer" {
		t.Fatalf("%v", err)
	}
	say()
	if err := s.SelectAgent(ctx, ""); err != nil || s.CurrentAgent() != nil {
		t.Fatalf("%v", err)
	}
	say()
	for i, want := range []struct {
		model string
		buys  bool
		b     bool
	}{{"own", false, true}, {"cheap", true, false}, {"own", false, true}} {
		r := p.Requests()[i]
		names, _ := json.Marshal(r.Tools)
		if r.Model != want.model || strings.Contains(r.Messages[0].Text, "You buy.") != want.buys || strings.Contains(string(names), `"b"`) != want.b {
			t.Errorf("request %d: model %s, tools %s, system %q", i, r.Model, names, r.Messages[0].Text)
		}
	}
}
