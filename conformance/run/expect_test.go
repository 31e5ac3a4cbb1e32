package main

import (
	"fmt"
	"strings"
	"testing"
)

// event makes an event; its id is its type unless data says otherwise.
func event(typ string, data map[string]any) Event {
	return Event{ID: typ, Type: typ, Data: data}
}

func TestBindings(t *testing.T) {
	data := map[string]any{"n": 2.0, "text": "hello", "list": []any{map[string]any{"id": "x"}}, "ok": true}
	tests := []struct {
		name string
		want any
		ok   bool
	}{
		{"subset", map[string]any{"n": 2}, true},
		{"wrong number", map[string]any{"n": 3}, false},
		{"text", map[string]any{"text": "hello"}, true},
		{"pattern", map[string]any{"text": "~^h"}, true},
		{"pattern fails", map[string]any{"text": "~^x"}, false},
		{"pattern on nothing", map[string]any{"other": "~.*"}, false},
		{"absent", map[string]any{"other": nil}, true},
		{"not absent", map[string]any{"text": nil}, false},
		{"list", map[string]any{"list": []any{map[string]any{"id": "x"}}}, true},
		{"list too short", map[string]any{"list": []any{}}, false},
		{"boolean", map[string]any{"ok": true}, true},
		{"same name, same value", map[string]any{"text": "$a", "list": []any{map[string]any{"id": "$b"}}}, true},
		{"same name, other value", map[string]any{"text": "$a", "ok": "$a"}, false},
		{"name for nothing", map[string]any{"other": "$a"}, false},
		{"not an object", map[string]any{"text": map[string]any{"x": 1}}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := (bindings{}).match(test.want, data); got != test.ok {
				t.Errorf("match = %v, want %v", got, test.ok)
			}
		})
	}
}

func TestEventOrder(t *testing.T) {
	events := []Event{
		event("user.message", map[string]any{"content": "go"}),
		{ID: "e7", Type: "session.context_cleared"},
		{ID: "u2", Type: "user.message", Data: map[string]any{"messageId": "e7"}},
	}
	cleared := EventMatch{Type: "session.context_cleared", ID: "$clear"}
	seeded := EventMatch{Type: "user.message", Data: map[string]any{"messageId": "$clear"}}
	wantErrors(t, EventCheck{Order: []EventMatch{cleared, seeded}, Count: map[string]int{"user.message": 2, "session.idle": 0}}.apply(events, bindings{}), "")
	wantErrors(t, EventCheck{Order: []EventMatch{seeded, cleared}}.apply(events, bindings{}), "no session.context_cleared")
	wantErrors(t, EventCheck{Count: map[string]int{"user.message": 1}}.apply(events, bindings{}), "2 events user.message")
	wantErrors(t, EventCheck{Order: []EventMatch{cleared}}.apply(events, bindings{"$clear": "another"}), "no session.context_cleared")
}

func wantErrors(t *testing.T, errs []error, want string) {
	t.Helper()
	text := fmt.Sprint(errs)
	if (want == "") != (len(errs) == 0) || !strings.Contains(text, want) {
		t.Errorf("errors %v, want %q", errs, want)
	}
}

func TestLog(t *testing.T) {
	o := &Observation{Log: []LogEntry{
		{At: "host", Do: "clear", As: "first", Error: "no tool call is in flight"},
		{At: "c1", Do: "clear", Value: map[string]any{"messagesCleared": 2.0}},
		{At: "c1", Do: "clear", Value: map[string]any{"messagesCleared": 0.0}},
	}}
	expect := func(want ...Outcome) []error {
		return checkLog(&Case{Expect: Expect{Log: want}}, o, bindings{})
	}
	refused := Outcome{Do: "clear", As: "first", Error: "~tool call"}
	two := Outcome{At: "c1", Do: "clear", Value: map[string]any{"messagesCleared": 2}}
	none := Outcome{At: "c1", Do: "clear", Value: map[string]any{"messagesCleared": 0}}
	wantErrors(t, expect(refused, two, none), "")
	wantErrors(t, expect(two), "no tool call is in flight") // an error nobody expects
	wantErrors(t, expect(refused, none), "was answered")    // in order
	wantErrors(t, expect(Outcome{Do: "clear", As: "first"}), "failed")
	wantErrors(t, expect(refused, Outcome{At: "c1", Do: "clear", Error: "~."}), "where an error is due")
	wantErrors(t, expect(refused, two, none, two), "no step clear")
	wantErrors(t, expect(Outcome{Do: "clear", As: "first", Error: "~prompt"}), "not \"~prompt\"")
}

func TestCallsCompleteOnce(t *testing.T) {
	asked := event("assistant.message", map[string]any{"toolRequests": []any{map[string]any{"toolCallId": "c1"}}})
	start := event("tool.execution_start", map[string]any{"toolCallId": "c1"})
	end := event("tool.execution_complete", map[string]any{"toolCallId": "c1"})
	again := Event{ID: "again", Type: end.Type, Data: end.Data}
	check := func(c *Case, events ...Event) []error {
		return checkCalls(c, &Observation{Events: map[string][]Event{"a": events, "b": events}})
	}
	wantErrors(t, check(&Case{}, asked, start, end), "")
	wantErrors(t, check(&Case{}, asked, start), "has 0 tool.execution_complete")
	wantErrors(t, check(&Case{}, asked, start, end, again), "has 2 tool.execution_complete")
	wantErrors(t, check(&Case{}, asked, end), "has 0 tool.execution_start")
	wantErrors(t, check(&Case{Expect: Expect{Open: []string{"c1"}}}, asked, start), "")
}

func TestStream(t *testing.T) {
	one := Event{ID: "1", Type: "session.start"}
	two := Event{ID: "2", Type: "user.message", ParentID: "1"}
	delta := Event{ID: "d", Type: "assistant.message_delta", ParentID: "1", Ephemeral: true}
	quiet := Event{ID: "3", Type: "assistant.idle", ParentID: "2", Ephemeral: true}
	idle := Event{ID: "4", Type: "session.idle", ParentID: "2", Ephemeral: true}
	failed := Event{ID: "5", Type: "session.error", ParentID: "2", Data: map[string]any{"message": "ill"}}
	wantErrors(t, checkStream(&Case{}, []Event{one, delta, two, quiet, idle}), "")
	wantErrors(t, checkStream(&Case{}, []Event{one, two, idle}), "does not follow assistant.idle")
	wantErrors(t, checkStream(&Case{}, []Event{one, two, two}), "came twice")
	wantErrors(t, checkStream(&Case{}, []Event{one, two, {ID: "6", Type: "abort", ParentID: "1"}}), "the parent of event 2")
	wantErrors(t, checkStream(&Case{}, []Event{one, two, failed}), "ill")
	spoken := &Case{Expect: Expect{Events: []EventCheck{{Count: map[string]int{"session.error": 1}}}}}
	wantErrors(t, checkStream(spoken, []Event{one, two, failed}), "")
}

func TestUsageFalls(t *testing.T) {
	usage := func(id string, tokens float64) Event {
		return Event{ID: id, Type: "session.usage_info", Data: map[string]any{"currentTokens": tokens}}
	}
	cleared := event("session.context_cleared", nil)
	stream := func(events ...Event) *Observation { return &Observation{Events: map[string][]Event{"a": events}} }
	wantError(t, usageFalls(stream(usage("1", 90), cleared, usage("2", 20))), "")
	wantError(t, usageFalls(stream(usage("1", 90), cleared, usage("2", 95))), "95 after it")
	wantError(t, usageFalls(stream(cleared, usage("2", 20))), "not seen on both sides")
}

func TestFieldsThatAnSDKDrops(t *testing.T) {
	c := &Case{Expect: Expect{Events: []EventCheck{{Order: []EventMatch{
		{Type: "user.message", Data: map[string]any{"content": "go", "messageId": "$clear"}},
	}}}}}
	o := &Observation{Events: map[string][]Event{"a": {{ID: "1", Type: "user.message", Data: map[string]any{"content": "go"}}}}}
	if errs := checkObservation(c.without(map[string][]string{"user.message": {"messageId"}}), o); len(errs) != 0 {
		t.Errorf("a field the SDK drops is still compared: %v", errs)
	}
	if errs := checkObservation(c.without(nil), o); len(errs) != 1 {
		t.Errorf("a missing field is not found: %v", errs)
	}
}
