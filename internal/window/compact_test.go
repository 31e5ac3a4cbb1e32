package window

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/model"
)

// prompt is a message of a user, who said just that.
func prompt(text string) *event.Event {
	return record(event.UserMessage{Content: text, TransformedContent: text})
}

// summarised are the records of a compaction in a window of so many tokens.
func summarised(limit int, text string) []*event.Event {
	return []*event.Event{record(event.CompactionStart{TokenLimit: limit}), record(event.CompactionComplete{Success: true, SummaryContent: text})}
}

// TestDigest: what of prompts and summary stands in a summary's message.
func TestDigest(t *testing.T) {
	word := func(n int) string { return strings.TrimSpace(strings.Repeat("word ", n)) }
	for _, c := range []struct {
		name    string
		limit   int
		prompts []string
		text    string
		want    []string
		not     []string
	}{
		{"nobody knows the limit", 0, []string{"one", word(5000)}, "S", []string{"\none\n", "\n" + word(5000) + "\n", "\nS\n"}, []string{"left out"}},
		{"all of it fits", 100000, []string{"one", word(5000)}, "S", []string{"\none\n", "\n" + word(5000) + "\n", "\nS\n"}, []string{"left out"}},
		{"older prompts go", 1000, []string{"one", word(200), "three", word(200)}, "S", []string{"\nthree\n", "\n" + word(200) + "\n", "(2 earlier user messages are left out here"}, []string{"\none\n"}},
		{"the newest prompt is cut", 1000, []string{"one", "two", "BEGIN " + word(900) + " END"}, "S", []string{"\nBEGIN word", "word END\n", "bytes are left out here", "(2 earlier user messages"}, []string{"\none\n"}},
		{"the summary is cut", 1000, []string{"one"}, "BEGIN " + word(900) + " END", []string{"\none\n", "\nBEGIN word", "word END\n", "bytes are left out here"}, []string{"earlier user messages"}},
		{"no room at all", 10, []string{word(900)}, word(900), []string{digestHead, digestText, digestEnd}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var records []*event.Event
			for _, p := range c.prompts {
				records = append(records, prompt(p))
			}
			ms := fold(t, append(records, summarised(c.limit, c.text)...)...).Messages("")
			if len(ms) != 1 || ms[0].Role != model.User {
				t.Fatalf("%s", show(ms))
			}
			for _, w := range c.want {
				if !strings.Contains(ms[0].Text, w) {
					t.Errorf("it lacks %.60q:\n%.2000s", w, ms[0].Text)
				}
			}
			for _, w := range c.not {
				if strings.Contains(ms[0].Text, w) {
					t.Errorf("it holds %.60q:\n%.2000s", w, ms[0].Text)
				}
			}
			if n, most := model.EstimateText(ms[0].Text), max(c.limit*2/5, minShare); c.limit > 0 && n > most+20 {
				t.Errorf("it takes %d tokens of %d", n, most)
			}
		})
	}
}

// TestProvidersFigures: where the figures of a compaction say that the model counts
// more tokens than the estimate, the summary takes that much less.
func TestProvidersFigures(t *testing.T) {
	var records []*event.Event
	for n := range 200 {
		records = append(records, prompt(fmt.Sprintf("prompt number %d", n)))
	}
	have := fold(t, records...).Tokens()
	size := func(factor int) int {
		start := record(event.CompactionStart{TokenLimit: 3000, SystemTokens: 500, ToolDefinitionsTokens: 500, ConversationTokens: factor * have})
		return fold(t, append(records, start, record(event.CompactionComplete{Success: true, SummaryContent: "S"}))...).Tokens()
	}
	for factor, most := range map[int]int{1: 800, 2: 400} {
		if n := size(factor); n > most+20 || n < most-60 {
			t.Errorf("counted %d times: %d tokens, of %d", factor, n, most)
		}
	}
}

// TestPromptsOfManySummaries: prompts that were left out once are counted on, those
// that came while the summary was made stand in the next one, and a clear forgets
// all of them.
func TestPromptsOfManySummaries(t *testing.T) {
	var records []*event.Event
	for n := range 300 {
		records = append(records, prompt(fmt.Sprintf("prompt number %d", n)))
		if n%30 == 29 {
			c := summarised(1000, "S")
			records = append(records, c[0], prompt(fmt.Sprintf("meanwhile %d", n)), c[1])
		}
	}
	records = append(records, summarised(1000, "LAST")...)
	w := fold(t, records...)
	text := w.Messages("")[0].Text
	var left int
	if _, err := fmt.Sscanf(text[strings.Index(text, "("):], "(%d earlier", &left); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	if n := strings.Count(text, "<user_message>"); left+n != 310 || n < 10 {
		t.Errorf("%d prompts stand there and %d are left out, of 310", n, left)
	}
	if !strings.Contains(text, "meanwhile 299") || !strings.Contains(text, "LAST") || strings.Contains(text, "\nS\n") {
		t.Errorf("%s", text)
	}
	raw, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	var kept Window
	if err := json.Unmarshal(raw, &kept); err != nil {
		t.Fatal(err)
	}
	if err := kept.TakeMessages(string(w.AppendMessages(nil))); err != nil {
		t.Fatal(err)
	}
	for _, w := range []Window{w, kept} {
		for _, e := range append([]*event.Event{prompt("next")}, summarised(1000, "S")...) {
			if w, err = w.Apply(e); err != nil {
				t.Fatal(err)
			}
		}
		text := w.Messages("")[0].Text
		var more int
		if _, err := fmt.Sscanf(text[strings.Index(text, "("):], "(%d earlier", &more); err != nil || more+strings.Count(text, "<user_message>") != 311 {
			t.Errorf("%v:\n%s", err, text)
		}
	}
	if got := show(fold(t, append(records, append([]*event.Event{cleared("SEED")}, append([]*event.Event{prompt("next")}, summarised(1000, "S")...)...)...)...).Messages("")); strings.Contains(got, "number") || strings.Contains(got, "earlier") || !strings.Contains(got, "\nSEED\n") {
		t.Errorf("after a clear: %s", got)
	}
}

// TestShortenedTurn: a single turn of any number of calls can be shortened to any
// room, its oldest answers first, and what an earlier summary told stays.
func TestShortenedTurn(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		told := rapid.Bool().Draw(rt, "told")
		records := []*event.Event{prompt("PROMPT")}
		if told {
			records = append(records, prompt("again"))
			records = append(records, summarised(0, "TOLD "+strings.Repeat("word ", rapid.IntRange(0, 3000).Draw(rt, "length")))...)
		}
		rounds := rapid.IntRange(0, 300).Draw(rt, "rounds")
		for n := range rounds {
			id := fmt.Sprint("c", n)
			records = append(records, asked(id, id+"b"), done(id, "small"), done(id+"b", "small"))
		}
		tokens := rapid.IntRange(0, 4000).Draw(rt, "room")
		out := Shorten(fold(t, records...).Messages("SYS"), tokens)
		if n := size(out[1:]); n > max(tokens, 300) {
			rt.Fatalf("%d tokens for room of %d", n, tokens)
		}
		if out[0].Role != model.System || out[1].Role != model.User || told != strings.Contains(out[1].Text, "TOLD") || told == (out[1].Text == "PROMPT") || told && strings.Contains(out[1].Text, "PROMPT") {
			rt.Fatalf("it begins with %s, %.200s", out[0].Role, out[1].Text)
		}
		for i := 2; i < len(out); i += 3 {
			if len(out[i].Calls) != 2 || out[i+1].CallID != out[i].Calls[0].ID || out[i+2].CallID != out[i].Calls[1].ID {
				rt.Fatalf("message %d: %s", i, show(out))
			}
		}
		if last := out[len(out)-1]; len(out) > 2 && last.CallID != fmt.Sprintf("c%db", rounds-1) {
			rt.Fatalf("the newest result is gone: %s", show(out))
		}
	})
}
