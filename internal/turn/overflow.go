package turn

import (
	"strconv"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/internal/window"
	"github.com/transom-run/transom/model"
)

// A model call that is too large for the model's window is made again once, with a
// summary in place of the conversation:
//
//	refused ─▶ summary of a shortened window ─▶ asked again ─▶ refused: the turn fails, and says so
//	                   └─▶ failed: the turn fails with the refusal
//
// Where the estimate says that the call is too large, the summary comes first.

const (
	// minSqueeze is how many messages are worth a summary there: a single prompt
	// stands in the summary as it is.
	minSqueeze = 2
	// minScaled is the size of a request from which a provider's own figure says how
	// far the estimate is off, and maxScale how far that is believed.
	minScaled = 1000
	maxScale  = 4.0
)

// part is how much of the window the next model call takes, by what is known of its
// size and by how far that was off the provider's own figures.
func (m *machine) part() float64 {
	return float64(m.size().total()) * m.scale() / float64(m.s.Limit())
}

// Limit is the size of the window in tokens: as it is configured, or less where the
// model has refused a request of that size. 0 is not known.
func (s *State) Limit() int {
	if c := s.Live.Ceiling; c > 0 && (c < s.Live.Settings.TokenLimit || s.Live.Settings.TokenLimit <= 0) {
		return c
	}
	return s.Live.Settings.TokenLimit
}

// measure compares what was known of the size of the request just answered with the
// provider's figure for it. That is never corrected downwards: a summary too early
// costs a summary, one too late the turn.
func (m *machine) measure(u *model.Usage, call *ModelCall) {
	l := &m.s.Live
	if l.Ceiling > 0 && float64(call.Tokens)*m.scale() >= float64(l.Ceiling) {
		l.Ceiling = 0 // the model has taken it after all
	}
	if u == nil || u.InputTokens == 0 || call.Estimate < minScaled {
		return
	}
	known := call.Tokens
	if m.lapsed() != nil { // from now on the estimate is all that is known
		known, l.Counted = call.Estimate, nil
	}
	l.Scale = min(max(float64(u.InputTokens)/float64(max(known, 1)), 1), maxScale)
}

// squeeze begins a summary because the model call that is due would not fit, or
// did not: err is the refusal then. It reports whether the call waits for it; where
// one was made already, or cannot be, it does not.
func (m *machine) squeeze(trigger string, err *model.Error) bool {
	l := &m.s.Live
	if !l.Settings.Compaction.Enabled || l.Squeezed || l.Compacting == nil && m.s.Window.Compactable() < minSqueeze {
		return false
	}
	if l.Compacting == nil {
		m.beginCompaction(trigger, "", 1)
	}
	l.Squeezed, l.Overflow, l.Awaiting, l.Parked = true, err, true, false
	return true
}

// tooLarge takes a provider's refusal of a request of so many estimated tokens,
// which is too long for the model. What was refused is known to be too much from now
// on. It reports whether the call is made again: also where a summary came while it
// was under way.
func (m *machine) tooLarge(err *model.Error, total int) bool {
	m.tooMuch(err, total)
	if m.size().total() < total {
		m.ask()
		return true
	}
	return m.squeeze("context_limit_retry", err)
}

// tooMuch notes the estimated size of a request that the model refused as too long.
func (m *machine) tooMuch(err *model.Error, total int) {
	total = int(float64(total) * m.scale())
	if err.Status != 413 && (m.s.Limit() <= 0 || total < m.s.Limit()) {
		m.s.Live.Ceiling = total
	}
}

// shortened is a window fit for a summary where the whole of it is too large: at
// most half of what is left for it in a request of a size that is too much.
func (m *machine) shortened(messages []model.Message, prompt int) []model.Message {
	now := m.size()
	limit := float64(now.total())
	if n := m.s.Limit(); n > 0 {
		limit = min(limit, float64(n))
	}
	room := int(limit/m.scale()) - now.system - now.tools - prompt
	return window.Shorten(messages, max(room/2, 0))
}

// fail ends the turn whose model call failed for good. unmade says why no summary
// could be made of a conversation that is too long; nil where that is not the case.
func (m *machine) fail(err *model.Error, unmade error) {
	l := &m.s.Live
	msg := err.Error()
	if err.Kind == model.ContextLimit {
		switch {
		case unmade != nil:
			msg += " It could not be compacted: " + unmade.Error()
		case !l.Settings.Compaction.Enabled:
			msg += " It was not compacted: the session's host has switched that off."
		case l.Squeezed:
			msg += " It was compacted once, and is still too long."
		default:
			msg += " There is nothing in it to compact."
		}
	}
	l.Overflow = nil
	m.emit(event.TurnEnd{TurnID: strconv.Itoa(m.s.Loop.Turn)})
	m.trouble(event.SessionError{ErrorType: string(err.Kind), Message: msg, StatusCode: err.Status, ErrorCode: err.Code})
	if m.hooked() {
		m.hook(HookError, "", nil, map[string]any{"error": msg, "errorContext": "model_call", "recoverable": true})
	}
	m.quiet = true
	m.next(false)
}
