package transom

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/transom-run/transom/internal/turn"
	"github.com/transom-run/transom/tool"
)

// DefaultDeferThreshold is how many tools a session with tool search has before
// some are held back, where its host does not say.
const DefaultDeferThreshold = 30

// ToolSearch keeps the model's list of tools small: where there are more than
// DeferThreshold, built-in ones counted, those of hosts and MCP servers whose Defer
// is not "never" are held back until the model finds them with the tool
// tool_search_tool. A host may declare a tool of that name with OverridesBuiltIn;
// the tools that its results name in References are found. Without
// tool_search_tool, such as by ExcludedTools, nothing is held back.
//
// What was found stays in the list until the context is cleared. A tool that is held
// back can be called all the same by a model that knows its name.
type ToolSearch struct {
	Disabled       bool
	DeferThreshold *int // nil: DefaultDeferThreshold
}

func (t *ToolSearch) settings() turn.Search {
	if t == nil || t.Disabled {
		return turn.Search{}
	}
	threshold := DefaultDeferThreshold
	if t.DeferThreshold != nil {
		threshold = max(*t.DeferThreshold, 0)
	}
	return turn.Search{On: true, Threshold: threshold}
}

const (
	searchDescription = "Finds tools that are not in your list. Some of the tools of this session are held back to keep the list short. " +
		"When none of your tools fits what you want to do, search by what the tool should do, or by its name. The tools found are in your list from the next step on."
	searchSchema = `{"type":"object","properties":{` +
		`"query":{"type":"string","description":"Words for what the tool does, or parts of its name"},` +
		`"limit":{"type":"integer","minimum":1,"maximum":20,"description":"How many tools at most; 5 if left out"}},"required":["query"]}`
	// maxUnfound is how many names are told where a search finds nothing.
	maxUnfound = 100
)

// searchTool is the tool that finds those held back.
func (s *loaded) searchTool() tool.Tool {
	return tool.Tool{
		Name: turn.SearchTool, Description: searchDescription, Parameters: json.RawMessage(searchSchema),
		Source: tool.BuiltIn, Tolerant: true, SkipPermission: true,
		Handler: func(_ context.Context, call tool.Call) (tool.Result, error) {
			var in struct {
				Query string `json:"query"`
				Limit int    `json:"limit"`
			}
			if err := json.Unmarshal(call.Arguments, &in); err != nil {
				return tool.Result{}, err
			}
			v := s.View()
			offers := v.Live.Offers
			for _, a := range v.Live.Agents {
				if a.ID == call.AgentID {
					offers = a.Live.Offers
				}
			}
			return searched(offers, in.Query, cmp.Or(in.Limit, 5)), nil
		},
	}
}

// searched is what a search finds among the tools held back, best first.
func searched(offers *turn.Offers, query string, limit int) tool.Result {
	type hit struct {
		t     turn.Offer
		score int
	}
	var hits []hit
	var names []string
	words := wordsOf(query)
	for _, t := range offers.List() {
		if !offers.Held(t.Name) {
			continue
		}
		names = append(names, t.Name)
		if n := match(words, query, t.Name, t.Description); n > 0 {
			hits = append(hits, hit{t, n})
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return cmp.Compare(b.score, a.score) })
	if len(hits) == 0 {
		if len(names) == 0 {
			return tool.Result{Text: "No tool is held back any more: all are in your list."}
		}
		more := ""
		if n := len(names) - maxUnfound; n > 0 {
			names, more = names[:maxUnfound], fmt.Sprintf(" and %d more", n)
		}
		return tool.Result{Text: fmt.Sprintf("No tool matches %q. Search by one of the names of those that are held back: %s%s.", query, strings.Join(names, ", "), more)}
	}
	var r tool.Result
	var b strings.Builder
	b.WriteString("These tools are in your list from the next step on:")
	for _, h := range hits[:min(len(hits), max(limit, 1))] {
		r.References = append(r.References, h.t.Name)
		about, _, _ := strings.Cut(h.t.Description, "\n")
		fmt.Fprintf(&b, "\n- %s: %s", h.t.Name, about)
	}
	r.Text = b.String()
	return r
}

// match weighs a tool by the words of a query: its name counts more than its
// description, and being named outright most.
func match(words []string, query, name, description string) int {
	if strings.EqualFold(strings.TrimSpace(query), name) {
		return 1 << 20
	}
	inName, inText := wordsOf(name), wordsOf(description)
	n := 0
	for _, w := range words {
		switch {
		case slices.Contains(inName, w):
			n += 8
		case strings.Contains(strings.ToLower(name), w) && len(w) > 2:
			n += 5
		case slices.Contains(inText, w):
			n += 3
		case len(w) > 3 && strings.Contains(strings.ToLower(description), w):
			n++
		}
	}
	return n
}

// wordsOf cuts a text into its words, in lower case.
func wordsOf(s string) []string {
	return strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}
