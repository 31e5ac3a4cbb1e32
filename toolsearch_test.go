package transom_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/transom-run/transom"
	"github.com/transom-run/transom/eventlog/memlog"
	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/tool"
)

// toolNames are the tools of the newest request.
func (s *script) toolNames() (out []string) {
	for _, d := range s.newest().Tools {
		out = append(out, d.Name)
	}
	return out
}

func asks(name, args string) model.Message {
	return model.Message{Calls: []model.Call{{ID: fmt.Sprintf("%s %d", name, len(args)), Name: name, Arguments: args}}}
}

// TestToolSearch: tools are held back, found, called, found again after a resume,
// and held back again after a clear; one that may not be held back never is.
func TestToolSearch(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	var s *transom.Session
	ran := map[string]int{}
	tools := []tool.Tool{
		{Name: "clear", Defer: "never", IsTerminal: true, Handler: func(ctx context.Context, _ tool.Call) (tool.Result, error) {
			return tool.Result{Text: "cleared"}, s.Do(ctx, transom.ClearContext{Prompt: "fresh"})
		}},
	}
	for name, about := range map[string]string{"get_weather": "Forecast for a city.", "send_mail": "Sends a letter.\nMore.", "delete_mail": "Removes a letter.", "sum": "Adds numbers."} {
		tools = append(tools, tool.Tool{Name: name, Description: about, Defer: "auto", Handler: func(context.Context, tool.Call) (tool.Result, error) {
			ran[name]++
			return tool.Result{Text: name + " ran"}, nil
		}})
	}
	sc := &script{replies: []model.Message{
		asks("tool_search_tool", `{"query":"mail letter","limit":1}`), asks("tool_search_tool", `{"query":"What is the WEATHER?"}`), asks("get_weather", `{}`), {Text: "sunny"},
		{Text: "resumed"},
		asks("sum", `{}`), {Text: "by name"},
		asks("tool_search_tool", `{"query":"zebra"}`), {Text: "nothing"},
		asks("clear", `{}`), {Text: "fresh window"},
		{Text: "off"},
	}}
	store := memlog.New()
	rt, err := transom.Open(transom.Config{Store: store, Provider: sc, ApproveAll: true})
	if err != nil {
		t.Fatal(err)
	}
	few := 2
	search := &transom.ToolSearch{DeferThreshold: &few}
	if s, err = rt.CreateSession(ctx, transom.SessionConfig{Tools: tools, ToolSearch: search}); err != nil {
		t.Fatal(err)
	}
	tells := func(want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, sc.toolNames()); diff != "" {
			t.Error(diff)
		}
	}
	sendAndWait(t, ctx, s)
	names := func(i int) (out []string) {
		for _, d := range sc.requests[i].Tools {
			out = append(out, d.Name)
		}
		return out
	}
	if diff := cmp.Diff([]string{"clear", "tool_search_tool"}, names(0)); diff != "" {
		t.Error(diff)
	}
	if got := names(1); len(got) != 3 || got[2] != "send_mail" && got[2] != "delete_mail" {
		t.Errorf("after the first search: %v", got)
	}
	mail := names(1)[2]
	tells("clear", "tool_search_tool", mail, "get_weather")
	if ran["get_weather"] != 1 || !strings.Contains(sc.seen()[4], "\n- get_weather: Forecast for a city.") {
		t.Errorf("%v %q", ran, sc.seen())
	}
	held := 0
	for _, w := range s.Tools() {
		if w.Held {
			held++
		}
		if w.Held != (w.Tokens == 0) {
			t.Errorf("%+v", w)
		}
	}
	if held != 2 {
		t.Errorf("%d tools are held back", held)
	}

	id := s.ID()
	if err := rt.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if rt, err = transom.Open(transom.Config{Store: store, Provider: sc, ApproveAll: true}); err != nil {
		t.Fatal(err)
	}
	defer rt.Close(ctx)
	if s, err = rt.ResumeSession(ctx, id, transom.ResumeConfig{Tools: tools, ToolSearch: search}); err != nil {
		t.Fatal(err)
	}
	sendAndWait(t, ctx, s)
	tells("clear", "tool_search_tool", mail, "get_weather")
	sendAndWait(t, ctx, s)
	if ran["sum"] != 1 {
		t.Error("a tool that is held back cannot be called by its name")
	}
	sendAndWait(t, ctx, s)
	if last := sc.seen(); !strings.Contains(last[len(last)-1], `No tool matches "zebra"`) || !strings.Contains(last[len(last)-1], "sum") {
		t.Errorf("%q", last[len(last)-1])
	}
	sendAndWait(t, ctx, s)
	tells("clear", "tool_search_tool")
	if err := s.Resume(ctx, transom.ResumeConfig{ToolSearch: &transom.ToolSearch{Disabled: true}}); err != nil {
		t.Fatal(err)
	}
	sendAndWait(t, ctx, s)
	if got := sc.toolNames(); len(got) != len(tools) {
		t.Errorf("without tool search: %v", got)
	}
	raw, err := s.Messages()
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, e := range raw {
		var m struct {
			Type string
			Data struct{ ToolNames []string }
		}
		if err := json.Unmarshal(e, &m); err != nil {
			t.Fatal(err)
		}
		if m.Type == "tool_search.activated" {
			found = append(found, m.Data.ToolNames...)
		}
	}
	if diff := cmp.Diff([]string{mail, "get_weather"}, found); diff != "" {
		t.Error(diff)
	}
}

// TestToolSearchOfHost: a host's own search counts by the names it gives, and
// nothing is held back where there are few tools, or no search is offered.
func TestToolSearchOfHost(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	own := tool.Tool{Name: "tool_search_tool", OverridesBuiltIn: true, Handler: func(context.Context, tool.Call) (tool.Result, error) {
		return tool.Result{References: []string{"b", "never heard of", "b"}}, nil
	}}
	tools := []tool.Tool{own, {Name: "a"}, {Name: "b"}, {Name: "c", Defer: "never"}}
	zero, four := 0, 4
	for name, tt := range map[string]struct {
		search        *transom.ToolSearch
		excluded      []string
		first, second []string
	}{
		"held back":     {&transom.ToolSearch{DeferThreshold: &zero}, nil, []string{"c", "tool_search_tool"}, []string{"c", "tool_search_tool", "b"}},
		"few tools":     {&transom.ToolSearch{DeferThreshold: &four}, nil, []string{"a", "b", "c", "tool_search_tool"}, []string{"a", "b", "c", "tool_search_tool"}},
		"the default":   {&transom.ToolSearch{}, nil, []string{"a", "b", "c", "tool_search_tool"}, []string{"a", "b", "c", "tool_search_tool"}},
		"not asked for": {nil, nil, []string{"a", "b", "c", "tool_search_tool"}, []string{"a", "b", "c", "tool_search_tool"}},
		"no search":     {&transom.ToolSearch{DeferThreshold: &zero}, []string{"tool_search_tool"}, []string{"a", "b", "c"}, []string{"a", "b", "c"}},
	} {
		sc := &script{replies: []model.Message{asks("tool_search_tool", `{}`), {Text: "ok"}}}
		rt, err := transom.Open(transom.Config{Store: memlog.New(), Provider: sc, ApproveAll: true})
		if err != nil {
			t.Fatal(err)
		}
		s, err := rt.CreateSession(ctx, transom.SessionConfig{Tools: tools, ToolSearch: tt.search, ExcludedTools: tt.excluded})
		if err != nil {
			t.Fatal(err)
		}
		sendAndWait(t, ctx, s)
		var got [][]string
		for _, r := range sc.requests {
			var names []string
			for _, d := range r.Tools {
				names = append(names, d.Name)
			}
			got = append(got, names)
		}
		if diff := cmp.Diff([][]string{tt.first, tt.second}, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if last := sc.seen(); name != "no search" && !strings.Contains(last[len(last)-1], "Found, and can be called") {
			t.Errorf("%s: %q", name, last)
		}
		if err := rt.Close(ctx); err != nil {
			t.Fatal(err)
		}
	}
}
