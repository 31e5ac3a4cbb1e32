package transom_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/model/scripted"
	"github.com/transom-run/transom/tool"
)

// The model hands a question to an agent of the host's, which has a window and
// tools of its own. Only the agent's answer comes back.
func ExampleSession_Tasks() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	rt := play(
		scripted.Call("task", `{"name":"prices","agent_type":"buyer","description":"looks prices up","prompt":"What are leeks?"}`),
		scripted.Call("price", `{"item":"leek"}`), // the agent's
		scripted.Say("Leeks are 2.40 a kilo."),    // the agent's
		scripted.Say("Buy leeks: 2.40."),
	)
	defer rt.Close(ctx)

	price, err := tool.Func("price", "Looks a price up", func(_ context.Context, in struct {
		Item string `json:"item"`
	}) (string, error) {
		return "2.40", nil
	})
	if err != nil {
		log.Fatal(err)
	}
	s, err := rt.CreateSession(ctx, transom.SessionConfig{
		Tools:        []tool.Tool{price},
		HiddenTools:  []string{"price"}, // from the session's own agent
		OnPermission: transom.ApproveAll,
		Agents: []transom.Agent{{
			Name: "buyer", Description: "Knows what things cost.", Prompt: "You look prices up.", Tools: []string{"price"},
		}},
	})
	if err != nil {
		log.Fatal(err)
	}
	events := s.Subscribe()
	defer events.Close()
	answer, err := s.SendAndWait(ctx, transom.Message{Prompt: "What do we buy?"})
	if err != nil {
		log.Fatal(err)
	}
	for e, err := range events.All(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		switch p := e.Payload.(type) {
		case event.SubagentStarted:
			fmt.Printf("%s: started, a %s\n", e.AgentID, p.AgentName)
		case event.ToolStart:
			fmt.Printf("%s: calls %s\n", e.AgentID, p.ToolName)
		case event.SubagentCompleted:
			fmt.Printf("%s: completed after %d call\n", e.AgentID, p.TotalToolCalls)
		}
		if e.Type == event.TypeSessionIdle {
			break
		}
	}
	for _, t := range s.Tasks() {
		fmt.Printf("%s (%s): %s\n", t.ID, t.Status, t.Answer)
	}
	fmt.Println(answer.Content, s.Info().Messages, "messages in the window")
	// Output:
	// : calls task
	// prices: started, a buyer
	// prices: calls price
	// prices: completed after 1 call
	// prices (completed): Leeks are 2.40 a kilo.
	// Buy leeks: 2.40. 4 messages in the window
}
