package window

import (
	"fmt"
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
//
// The summary holds the users' own words, too, of all that was summarised before as
// well. So that it does not grow with their number it takes a share of the window
// at most: see digest.

// Of what the window has for the conversation, a summary takes two fifths at most,
// so that it fits where the model counts twice as many tokens as the estimate, and
// the model's text half of that. It is never kept below minShare tokens.
const (
	shareOfRoom = 0.4
	shareOfText = 0.5
	minShare    = 200
)

// compacting notes what a compaction that begins now will replace, and how much
// room there is for its summary.
func (w *Window) compacting(e *event.Event) error {
	p, err := event.As[event.CompactionStart](e)
	if err != nil {
		return err
	}
	if w.batch != nil {
		return nil // never begun between a call and its result
	}
	w.mark, w.marked, w.share = len(w.settled), len(w.prompts), 0
	if p.TokenLimit <= 0 {
		return nil // nobody knows how much there is
	}
	room := p.TokenLimit - p.SystemTokens - p.ToolDefinitionsTokens
	if have := w.Tokens(); have > 0 && p.ConversationTokens > have {
		// The figures are the provider's, which counts more than the estimate.
		room = int(int64(room) * int64(have) / int64(p.ConversationTokens))
	}
	w.share = max(int(float64(room)*shareOfRoom), minShare)
	return nil
}

// compacted puts the summary in place of what stood in the window when the
// compaction began. One that failed, or that a clear has overtaken, changes
// nothing.
func (w *Window) compacted(e *event.Event) error {
	p, err := event.As[event.CompactionComplete](e)
	if err != nil {
		return err
	}
	mark, marked, share := w.mark, w.marked, w.share
	w.mark, w.marked, w.share = 0, 0, 0
	if !p.Success || mark == 0 || mark > len(w.settled) || marked > len(w.prompts) {
		return nil
	}
	d := digest{prompts: w.prompts[:marked], left: w.left, text: p.SummaryContent}
	if share > 0 {
		d.fit(share)
	}
	rest := slices.Clone(w.settled[mark:])
	batch, results := w.batch, w.results
	w.batch, w.results, w.settled, w.used, w.tokens = nil, nil, nil, nil, 0
	w.prompts, w.left = slices.Concat(d.prompts, w.prompts[marked:]), d.left
	w.add(model.Message{Role: model.User, Text: d.String()})
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

// digest is the message that stands in place of those compacted.
type digest struct {
	prompts []string // of users, oldest first
	left    int      // how many older ones are left out
	text    string   // the model's
}

const (
	digestHead = "Some of the conversation history has been summarized to free up context.\n\n" +
		"You were originally given instructions from a user over one or more turns. Here were the user messages:\n"
	digestText = "\nHere is a summary of the prior context:\n<summary>\n"
	digestEnd  = "\n</summary>"
)

// quoted is a prompt as it stands in a digest.
func quoted(prompt string) string { return "<user_message>\n" + prompt + "\n</user_message>\n" }

// leftOut tells of prompts that a digest has no room for.
func leftOut(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("(%d earlier user messages are left out here; the summary below tells of them.)\n", n)
}

// String is the message. Hosts' recordings pin its form (test "compaction" of the
// SDKs).
func (d *digest) String() string {
	var b strings.Builder
	b.WriteString(digestHead + leftOut(d.left))
	for _, p := range d.prompts {
		b.WriteString(quoted(p))
	}
	b.WriteString(digestText + d.text + digestEnd)
	return b.String()
}

// fit makes a digest of so many tokens at most. The model's text loses its middle
// where it takes more than half of them. Of the prompts as many stay as fit,
// the newest ones, each whole; where not even the newest fits, it loses its middle.
func (d *digest) fit(tokens int) {
	d.text = clipTokens(d.text, int(float64(tokens)*shareOfText))
	left := tokens - model.EstimateText(digestHead+leftOut(d.left+len(d.prompts))+digestText+d.text+digestEnd)
	first := len(d.prompts)
	for first > 0 {
		cost := model.EstimateText(quoted(d.prompts[first-1]))
		if cost > left {
			break
		}
		left -= cost
		first--
	}
	kept := slices.Clone(d.prompts[first:])
	if first == len(d.prompts) && first > 0 {
		first--
		kept = []string{clipTokens(d.prompts[first], left-model.EstimateText(quoted("")))}
	}
	d.prompts, d.left = kept, d.left+first
}

// clipTokens leaves out the middle of a text of more than so many tokens.
func clipTokens(s string, tokens int) string {
	have := model.EstimateText(s)
	if have <= tokens {
		return s
	}
	limit := len(s) * max(tokens, 0) / have
	for {
		out := clip(s, limit)
		if model.EstimateText(out) <= tokens || limit == 0 {
			return out
		}
		limit = limit * 7 / 8
	}
}
