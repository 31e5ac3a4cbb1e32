package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/server"
)

// decider is a model that answers each request by what it holds, and keeps them.
type decider struct {
	t      testing.TB
	decide func(ms []model.Message) []model.Chunk
	asked  chan model.Request
}

func (d *decider) Stream(_ context.Context, r *model.Request) iter.Seq2[model.Chunk, error] {
	if err := paired(r.Messages); err != nil {
		d.t.Errorf("no provider takes this: %v\n%+v", err, r.Messages)
	}
	d.asked <- *r
	return func(yield func(model.Chunk, error) bool) {
		for _, c := range d.decide(r.Messages) {
			if !yield(c, nil) {
				return
			}
		}
	}
}

// paired is the reader of a strict provider: each call has exactly one result,
// directly behind it and in order, no result stands elsewhere, ids are there once,
// and the conversation does not end with the model's own words.
func paired(ms []model.Message) error {
	var open []string
	ids := map[string]bool{}
	for i, m := range ms {
		if m.Role == model.ToolRole {
			if len(open) == 0 || open[0] != m.CallID {
				return fmt.Errorf("message %d is a result of %q, due is one of %q", i, m.CallID, open)
			}
			open = open[1:]
			continue
		}
		if len(open) > 0 {
			return fmt.Errorf("message %d comes before the results of %q", i, open)
		}
		for _, c := range m.Calls {
			if ids[c.ID] {
				return fmt.Errorf("message %d has the id %q again", i, c.ID)
			}
			ids[c.ID] = true
			open = append(open, c.ID)
		}
	}
	if len(open) > 0 || len(ms) == 0 || ms[len(ms)-1].Role == model.Assistant {
		return fmt.Errorf("the conversation ends too early: open are %q", open)
	}
	return nil
}

// TestAbortAnywhere aborts a turn of four calls behind each of its events in turn.
// Every call that was started is completed in the log, the next request pairs calls
// and results, and the session goes on.
func TestAbortAnywhere(t *testing.T) {
	decide := func(ms []model.Message) []model.Chunk {
		switch last := ms[len(ms)-1]; {
		case last.Role == model.ToolRole:
			return []model.Chunk{{Text: "done", Finish: "stop"}}
		case strings.Contains(last.Text, "go on"):
			return []model.Chunk{{Text: "again", Finish: "stop"}}
		}
		out := []model.Chunk{{Text: "I call four tools."}}
		for i, name := range []string{"a", "b", "c", "d"} {
			out = append(out, model.Chunk{Call: &model.CallChunk{Index: i, ID: "call-" + name, Name: name, Arguments: "{}"}})
		}
		return append(out, model.Chunk{Finish: "tool_calls"})
	}
	points := 0
	for over := false; !over; points++ {
		d := &decider{t: t, decide: decide, asked: make(chan model.Request, 9)}
		c := newWorld(t, d, server.Config{}).connect(t)
		c.ok("session.create", obj{"sessionId": id1, "streaming": true, "requestPermission": true, "tools": []obj{hostTool("a"), hostTool("b"), hostTool("c"), hostTool("d")}})
		at := c.count()
		c.send("session.send", obj{"sessionId": id1, "prompt": "go"})
		for n := 0; n < points && !over; n++ {
			i := c.await(at, "an event", func(f frame) bool { return f.event.Type != "" })
			at = i + 1
			switch e := c.at(i).event; e.Type {
			case "external_tool.requested":
				var q ask
				if err := json.Unmarshal(e.Data, &q); err != nil {
					t.Fatal(err)
				}
				c.send("session.tools.handlePendingToolCall", obj{"sessionId": id1, "requestId": q.RequestID, "result": "ok"})
			case "session.idle":
				over = true
			}
		}
		c.ok("session.abort", obj{"sessionId": id1})
		next := c.send("session.send", obj{"sessionId": id1, "prompt": "go on", "wait": true})
		if f := c.reply(next); f.Error != nil {
			t.Fatalf("aborted behind %d events: %+v", points, f.Error)
		}
		if types, _ := c.events(id1, true); slices.Contains(types, "session.error") {
			t.Errorf("aborted behind %d events: an error\n%s", points, c.transcript())
		}
		var log struct {
			Events []struct {
				Type string
				Data struct{ ToolCallID, Content string }
			}
		}
		c.ok("session.getMessages", obj{"sessionId": id1}, &log)
		open, said := map[string]int{}, ""
		for _, e := range log.Events {
			switch id := e.Data.ToolCallID; e.Type {
			case "assistant.message":
				said = e.Data.Content
			case "tool.execution_start":
				if open[id]++; open[id] != 1 {
					t.Errorf("aborted behind %d events: %s was started twice", points, id)
				}
			case "tool.execution_complete":
				if open[id]--; open[id] != 0 {
					t.Errorf("aborted behind %d events: %s was completed twice, or without a start", points, id)
				}
			}
		}
		if said != "again" {
			t.Errorf("aborted behind %d events: the next prompt is answered with %q", points, said)
		}
		for id, n := range open {
			if n != 0 {
				t.Errorf("aborted behind %d events: %s has no completion", points, id)
			}
		}
	}
	if points < 20 {
		t.Errorf("only %d points: the turn was shorter than it should be", points)
	}
}
