package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Observation is what a host reports about one case. The host does not judge.
type Observation struct {
	// Log holds the outcome of every step, in the order in which they ended.
	Log []LogEntry `json:"log"`
	// Events are the session's events as each client got them.
	Events map[string][]Event `json:"events"`
	// Error is why the host could not play the case to its end.
	Error string `json:"error"`
	// Stdout is what the example printed (filled in by the runner).
	Stdout string `json:"-"`
}

// LogEntry is the outcome of one step.
type LogEntry struct {
	At    string `json:"at"`
	Do    string `json:"do"`
	As    string `json:"as"`
	Value any    `json:"value"`
	Error string `json:"error"`
}

// Event is a session event as the SDK handed it over.
type Event struct {
	ID        string         `json:"id"`
	Type      string         `json:"type"`
	Data      map[string]any `json:"data"`
	ParentID  string         `json:"parentId"`
	Ephemeral bool           `json:"ephemeral"`
}

// bindings are the values of the "$names" of a case.
type bindings map[string]any

// checkObservation compares what a host saw with what the case expects, and
// with what must hold in every case.
func checkObservation(c *Case, o *Observation) []error {
	var errs []error
	if o.Error != "" {
		errs = append(errs, fmt.Errorf("the host: %s", o.Error))
	}
	if c.alone() {
		if !textMatches(c.Expect.Stdout, strings.TrimSpace(o.Stdout)) {
			errs = append(errs, fmt.Errorf("printed %q, not %q", o.Stdout, c.Expect.Stdout))
		}
		return errs
	}
	binds := bindings{}
	errs = append(errs, checkLog(c, o, binds)...)
	for _, check := range c.Expect.Events {
		events, err := o.stream(check.On)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		errs = append(errs, check.apply(events, binds)...)
	}
	errs = append(errs, checkCalls(c, o)...)
	for client, events := range o.Events {
		for _, err := range checkStream(c, events) {
			errs = append(errs, fmt.Errorf("client %s: %w", client, err))
		}
	}
	for _, name := range c.Expect.Also {
		if err := checks[name](o); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// checkLog finds each expected outcome, and every error that is not expected.
func checkLog(c *Case, o *Observation, binds bindings) []error {
	var errs []error
	used := make([]bool, len(o.Log))
	for _, want := range c.Expect.Log {
		if want.At == "" {
			want.At = "host"
		}
		i := slices.IndexFunc(o.Log, func(e LogEntry) bool {
			return e.At == want.At && e.Do == want.Do && e.As == want.As
		})
		for i >= 0 && used[i] { // several steps of one name: in order
			next := slices.IndexFunc(o.Log[i+1:], func(e LogEntry) bool {
				return e.At == want.At && e.Do == want.Do && e.As == want.As
			})
			if next < 0 {
				i = -1
				break
			}
			i += 1 + next
		}
		if i < 0 {
			errs = append(errs, fmt.Errorf("%s: no step %s %s ended", want.At, want.Do, want.As))
			continue
		}
		used[i] = true
		got := o.Log[i]
		switch {
		case want.Error == "" && got.Error != "":
			errs = append(errs, fmt.Errorf("%s: %s failed: %s", got.At, got.Do, got.Error))
		case want.Error != "" && got.Error == "":
			errs = append(errs, fmt.Errorf("%s: %s was answered %s where an error is due", got.At, got.Do, compact(got.Value)))
		case want.Error != "" && !textMatches(want.Error, got.Error):
			errs = append(errs, fmt.Errorf("%s: %s failed with %q, not %q", got.At, got.Do, got.Error, want.Error))
		case want.Value != nil && !binds.match(want.Value, got.Value):
			errs = append(errs, fmt.Errorf("%s: %s was answered %s, not %s", got.At, got.Do, compact(got.Value), compact(want.Value)))
		}
	}
	for i, e := range o.Log {
		if e.Error != "" && !used[i] {
			errs = append(errs, fmt.Errorf("%s: %s failed: %s", e.At, e.Do, e.Error))
		}
	}
	return errs
}

// stream returns the events a check is about.
func (o *Observation) stream(on string) ([]Event, error) {
	label, isLog := strings.CutPrefix(on, "log:")
	if !isLog {
		if on == "" {
			on = "a"
		}
		if o.Events[on] == nil {
			return nil, fmt.Errorf("client %s saw no events", on)
		}
		return o.Events[on], nil
	}
	for _, e := range o.Log {
		if e.Do == "get_events" && e.As == label {
			var events []Event
			text, err := json.Marshal(e.Value)
			if err == nil {
				err = json.Unmarshal(text, &events)
			}
			return events, err
		}
	}
	return nil, fmt.Errorf("no get_events step is called %s", label)
}

// apply runs one check over a stream.
func (check EventCheck) apply(events []Event, binds bindings) []error {
	var errs []error
	at := 0
	for _, want := range check.Order {
		i := slices.IndexFunc(events[at:], func(e Event) bool { return want.matches(e, binds) })
		if i < 0 {
			errs = append(errs, fmt.Errorf("no %s %s after event %d of %s\n%s", want.Type, compact(want.Data), at, name(check.On), indent(printEvents(events), "        ")))
			break
		}
		want.bind(events[at+i], binds)
		at += i + 1
	}
	for _, typ := range slices.Sorted(maps.Keys(check.Count)) {
		n := 0
		for _, e := range events {
			if e.Type == typ {
				n++
			}
		}
		if n != check.Count[typ] {
			errs = append(errs, fmt.Errorf("%d events %s on %s, not %d", n, typ, name(check.On), check.Count[typ]))
		}
	}
	return errs
}

func name(on string) string {
	if on == "" {
		return "a"
	}
	return on
}

// matches compares without keeping bindings: a later event may fit better.
func (want EventMatch) matches(e Event, binds bindings) bool {
	trial := maps.Clone(binds)
	return want.bind(e, trial)
}

// bind compares and keeps what the "$names" stood for.
func (want EventMatch) bind(e Event, binds bindings) bool {
	return e.Type == want.Type &&
		(want.ID == "" || binds.match(want.ID, e.ID)) &&
		(want.Data == nil || binds.match(want.Data, e.Data))
}

// match compares a wanted value with a seen one; objects need only hold the
// wanted fields.
func (b bindings) match(want, got any) bool {
	switch w := want.(type) {
	case nil:
		return got == nil
	case string:
		if strings.HasPrefix(w, "$") {
			if old, bound := b[w]; bound {
				return reflect.DeepEqual(old, got)
			}
			b[w] = got
			return got != nil
		}
		if strings.HasPrefix(w, "~") {
			s, ok := got.(string)
			if !ok {
				s = compact(got)
			}
			return got != nil && textMatches(w, s)
		}
		return want == got
	case map[string]any:
		g, ok := got.(map[string]any)
		for _, k := range slices.Sorted(maps.Keys(w)) {
			ok = ok && b.match(w[k], g[k])
		}
		return ok
	case []any:
		g, ok := got.([]any)
		ok = ok && len(g) == len(w)
		for i := 0; ok && i < len(w); i++ {
			ok = b.match(w[i], g[i])
		}
		return ok
	default: // numbers and booleans
		return compact(want) == compact(got)
	}
}

// checkCalls holds for every case: each call the model made has exactly one
// start and one completion, whatever happened to it.
func checkCalls(c *Case, o *Observation) []error {
	seen := map[string]bool{} // event ids: two clients see the same events
	asked, starts, ends := []string{}, map[string]int{}, map[string]int{}
	note := func(events []Event) {
		for _, e := range events {
			if seen[e.ID] {
				continue
			}
			seen[e.ID] = true
			id, _ := e.Data["toolCallId"].(string)
			switch e.Type {
			case "assistant.message":
				calls, _ := e.Data["toolRequests"].([]any)
				for _, call := range calls {
					if m, ok := call.(map[string]any); ok {
						asked = append(asked, fmt.Sprint(m["toolCallId"]))
					}
				}
			case "tool.execution_start":
				starts[id]++
			case "tool.execution_complete":
				ends[id]++
			}
		}
	}
	for _, client := range slices.Sorted(maps.Keys(o.Events)) {
		note(o.Events[client])
	}
	for _, e := range o.Log {
		if e.Do == "get_events" {
			events, err := o.stream("log:" + e.As)
			if err == nil {
				note(events)
			}
		}
	}
	var errs []error
	for _, id := range asked {
		if starts[id] != 1 {
			errs = append(errs, fmt.Errorf("call %s has %d tool.execution_start, not 1", id, starts[id]))
		}
		if ends[id] != 1 && !slices.Contains(c.Expect.Open, id) {
			errs = append(errs, fmt.Errorf("call %s has %d tool.execution_complete, not 1", id, ends[id]))
		}
	}
	return errs
}

// checkStream holds for every client's stream: ids are unique, parents form a
// chain over the persisted events, assistant.idle and session.idle end the work
// together, and nothing fails that the case does not speak of.
func checkStream(c *Case, events []Event) []error {
	var errs []error
	seen := map[string]bool{}
	parent, parents := "", map[string]string{}
	for i, e := range events {
		if seen[e.ID] {
			errs = append(errs, fmt.Errorf("event %d (%s) came twice", i, e.Type))
		}
		seen[e.ID] = true
		if to, ok := e.Data["upToEventId"].(string); ok && e.Type == "session.snapshot_rewind" {
			parent = parents[to] // the chain goes on before the event that was truncated to
		}
		if parent != "" && !e.Ephemeral && e.ParentID != parent {
			errs = append(errs, fmt.Errorf("the parent of event %d (%s) is not the persisted event before it", i, e.Type))
		}
		if !e.Ephemeral {
			parent, parents[e.ID] = e.ID, e.ParentID
		}
		// SDKs call events that are younger than they are "unknown".
		if e.Type == "session.idle" && (i == 0 || !slices.Contains([]string{"assistant.idle", "unknown"}, events[i-1].Type)) {
			errs = append(errs, fmt.Errorf("event %d, session.idle, does not follow assistant.idle", i))
		}
		if e.Type == "session.error" && !c.speaksOf("session.error") {
			errs = append(errs, fmt.Errorf("session.error: %v", e.Data["message"]))
		}
	}
	return errs
}

func (c *Case) speaksOf(typ string) bool {
	return slices.ContainsFunc(c.Expect.Events, func(e EventCheck) bool {
		_, counted := e.Count[typ]
		return counted || slices.ContainsFunc(e.Order, func(m EventMatch) bool { return m.Type == typ })
	})
}

// printEvents is a stream as a person reads it; deltas and the like left out.
func printEvents(events []Event) string {
	var b strings.Builder
	for i, e := range events {
		if !e.Ephemeral || e.Type == "session.idle" {
			fmt.Fprintf(&b, "%3d %s %.150s\n", i, e.Type, compact(e.Data))
		}
	}
	return b.String()
}

func compact(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(text)
}
