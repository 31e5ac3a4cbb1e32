package window

import (
	"slices"
	"strings"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/model"
)

// A compaction replaces the messages that stood in the window when it began by a
// summary of them. Messages that came while it was being made follow it.
//
//	begun    u1 a1 u2 |
//	meanwhile         | a2
//	done     [summary of u1 a1 u2] a2

// compacting notes what a compaction that begins now will replace.
func (w *Window) compacting() {
	if w.batch != nil {
		return // never begun between a call and its result
	}
	w.mark, w.marked = len(w.settled), len(w.prompts)
}

// compacted puts the summary in place of what stood in the window when the
// compaction began. One that failed, or that a clear has overtaken, changes
// nothing.
func (w *Window) compacted(e *event.Event) error {
	p, err := event.As[event.CompactionComplete](e)
	if err != nil {
		return err
	}
	mark, marked := w.mark, w.marked
	w.mark, w.marked = 0, 0
	if !p.Success || mark == 0 || mark > len(w.settled) || marked > len(w.prompts) {
		return nil
	}
	rest := slices.Clone(w.settled[mark:])
	batch, results := w.batch, w.results
	w.batch, w.results, w.settled, w.used, w.tokens = nil, nil, nil, nil, 0
	w.add(model.Message{Role: model.User, Text: summary(w.prompts[:marked], p.SummaryContent)})
	for _, m := range rest {
		w.add(m)
	}
	w.batch, w.results = batch, results
	return nil
}

// Compactable counts the messages that a compaction begun now would replace.
func (w Window) Compactable() int {
	if w.batch != nil {
		return 0
	}
	return len(w.settled)
}

// summary is the message that stands in place of those compacted. Hosts'
// recordings pin its form (test "compaction" of the SDKs).
func summary(prompts []string, text string) string {
	var b strings.Builder
	b.WriteString("Some of the conversation history has been summarized to free up context.\n\n" +
		"You were originally given instructions from a user over one or more turns. Here were the user messages:\n")
	for _, p := range prompts {
		b.WriteString("<user_message>\n" + p + "\n</user_message>\n")
	}
	b.WriteString("\nHere is a summary of the prior context:\n<summary>\n" + text + "\n</summary>")
	return b.String()
}
