package durability

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/transom-run/transom/event"
)

// TestHealthyLog: a log of 10,000 events and 20 MB, with those of sub-agents among
// its turns and single ones of 1.6 MB, is nothing to warn of: it is taken up, and the
// model sees its window. (The time is told, and held to the watchdog of a resume.)
func TestHealthyLog(t *testing.T) {
	var b bytes.Buffer
	n, parent, at := 0, "", time.Now().Add(-time.Hour)
	put := func(agent string, p event.Payload) {
		t.Helper()
		n++
		id := fmt.Sprintf("00000000-0000-4000-8000-%012d", n)
		e, err := event.NewOf(p, agent, id, parent, at)
		if err != nil {
			t.Fatal(err)
		}
		parent = id
		b.Write(append(e.Line, '\n'))
	}
	call := func(agent, id, result string) {
		put(agent, event.AssistantMessage{MessageID: "m" + id, InteractionID: "i", TurnID: "0", ToolRequests: []event.ToolRequest{{ToolCallID: id, Name: "probe", Arguments: []byte("{}"), Type: "function"}}})
		put(agent, event.ToolStart{ToolCallID: id, ToolName: "probe", Arguments: []byte("{}"), TurnID: "0"})
		put(agent, event.ToolComplete{ToolCallID: id, InteractionID: "i", TurnID: "0", Success: true, Result: &event.ToolResult{Content: result}})
	}
	put("", event.SessionStart{SessionID: sessionID, Version: 1, Producer: "transom", StartTime: at.UTC().Format(time.RFC3339Nano), SelectedModel: "m"})
	for turn := 0; n < 10_000; turn++ {
		result := strings.Repeat("r", 12_000)
		if turn%100 == 0 {
			result = strings.Repeat("R", 1_600_000)
		}
		put("", event.UserMessage{Content: fmt.Sprint("«turn ", turn, "»"), MessageID: fmt.Sprint("m", turn), Delivery: "idle", InteractionID: "i", TurnID: "0"})
		put("", event.TurnStart{TurnID: "0", InteractionID: "i"})
		call("", fmt.Sprint("c", turn), result)
		for i := range 3 { // an agent, and agents of agents: all stand in the session's log
			call(fmt.Sprintf("agent-%d-%d", turn, i), fmt.Sprintf("s%d-%d", turn, i), strings.Repeat("s", 500))
		}
		put("", event.TurnEnd{TurnID: "0"})
		put("", event.TurnStart{TurnID: "1", InteractionID: "i"})
		put("", event.AssistantMessage{MessageID: fmt.Sprint("b", turn), InteractionID: "i", TurnID: "1", Content: "done", ToolRequests: []event.ToolRequest{}})
		put("", event.TurnEnd{TurnID: "1"})
	}
	put("", event.ContextCleared{MessagesCleared: 4, InitialMessage: "«seed»"})
	begun := time.Now()
	o, err := takeUp(t, t.TempDir(), b.Bytes(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d events, %d MB: taken up, and another turn made, in %v", n, b.Len()>>20, time.Since(begun).Round(time.Millisecond))
	if len(o.warnings) > 0 {
		t.Errorf("warned of %q", o.warnings)
	}
	o.sees(t, "«seed»", "«final»")
}
