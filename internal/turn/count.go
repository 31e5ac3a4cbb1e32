package turn

import (
	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/model/tokens"
)

// Sizes are estimates, which cost next to nothing, until a decision hangs on how far
// they may be off:
//
//	        80 %        95 %       100 %
//	──────────┼───────────┼──────────┼──▶ part of the window
//	   [───────────]                        counted first: the model call waits for it
//	[────]          [──]                    decided by the estimate
//
// What was counted stays, and only what has come since is estimated, so the next
// interval is small. A provider's own figure goes before both (measure).

// How many tokens a text of one estimated token may be: by what is known of the
// estimate (model/estimate_test.go has the texts), with room to spare. Of other
// vocabularies than o200k_base it may be far too low.
const (
	estimateLow  = 0.7
	estimateHigh = 1.5
	estimateFar  = 4.0
)

// StartCount counts the tokens of a model call with the model's own vocabulary, and
// posts Counted.
type StartCount struct {
	Agent    string
	ID       uint64
	Model    string
	System   string
	Messages []model.Message // without the system message
	Tools    []model.ToolDef
}

// Counted is the outcome of a StartCount. Where the model's vocabulary is not known,
// Encoding is "".
type Counted struct {
	Agent    string
	ID       uint64
	Encoding tokens.Encoding
	Size     tokens.Size
}

// KindCounted is the kind of Counted.
const KindCounted Kind = "counted"

func (Counted) kind() Kind { return KindCounted }

// size is what a model call comes to, by its parts.
type size struct{ system, words, tools int }

func (s size) total() int { return s.system + s.words + s.tools }

// count is a window that was counted, or is being counted. It is never changed in
// place.
type count struct {
	id        uint64
	model     string
	window    [3]int64 // which window it is: it only grows while these stay
	estimated size
	encoding  tokens.Encoding // "" is not counted
	exact     size
}

// estimated is the size of a model call made now, by the estimate alone.
func (m *machine) estimated() size {
	return size{model.EstimateText(m.s.System), m.s.Window.Tokens(), m.s.Live.Offers.Tokens()}
}

// size is the size of a model call made now: what of it was counted, and an estimate
// of the rest.
func (m *machine) size() size {
	now := m.estimated()
	if c := m.valid(now); c != nil {
		now.words += c.exact.words - c.estimated.words
		if now.system == c.estimated.system {
			now.system = c.exact.system
		}
		if now.tools == c.estimated.tools {
			now.tools = c.exact.tools
		}
	}
	return now
}

// valid returns the count that still says something of a window of this size.
func (m *machine) valid(now size) *count {
	c := m.s.Live.Counted
	if c == nil || c.encoding == "" || c.model != m.s.Model || c.window != m.window() || now.words < c.estimated.words {
		return nil
	}
	return c
}

// lapsed is a count of a window that is no more. It still says how far estimates fall
// short.
func (m *machine) lapsed() *count {
	c := m.s.Live.Counted
	if c == nil || c.encoding == "" || c.model != m.s.Model || m.valid(m.estimated()) != nil {
		return nil
	}
	return c
}

// scale is how far sizes fall short of the provider's figures, as far as that is known.
func (m *machine) scale() float64 {
	s := max(m.s.Live.Scale, 1)
	if c := m.lapsed(); c != nil {
		s *= max(float64(c.exact.total())/float64(max(c.estimated.total(), 1)), 1)
	}
	return min(s, maxScale)
}

// window tells windows apart that do not grow out of one another.
func (m *machine) window() [3]int64 {
	return [3]int64{int64(m.s.Clears), int64(m.s.Compactions), m.s.Boundaries}
}

// uncertain reports whether the next model call has to be counted before anything is
// decided by its size.
func (m *machine) uncertain() bool {
	l := &m.s.Live
	c, last := l.Settings.Compaction, l.Counted
	limit := float64(m.s.Limit())
	if !l.Settings.Count || !c.Enabled || limit <= 0 || last != nil && last.model == m.s.Model && last.encoding == "" {
		return false // nobody counts, nothing hangs on it, or the vocabulary is not known
	}
	now := m.estimated()
	total, rest := float64(m.size().total()), float64(now.total())
	high := estimateFar
	if known := m.valid(now); known != nil {
		rest = float64(now.total() - known.estimated.total())
		if known.encoding == tokens.O200k {
			high = estimateHigh
		}
	} else if tokens.Of(m.s.Model) == tokens.O200k {
		high = estimateHigh
	}
	scale := m.scale()
	from, to := (total-(1-estimateLow)*rest)*scale, (total+(high-1)*rest)*scale
	for _, at := range []float64{c.Background, c.Blocking, 1} {
		if from < at*limit && at*limit <= to {
			return true
		}
	}
	return false
}

// startCount begins to count the next model call, which waits for it.
func (m *machine) startCount() {
	l := &m.s.Live
	l.CountSerial++
	l.Counting = &count{id: l.CountSerial, model: m.s.Model, window: m.window(), estimated: m.estimated()}
	l.Awaiting, l.Parked = true, false
	m.start(&StartCount{
		Agent: m.agent, ID: l.CountSerial, Model: m.s.Model, System: m.s.System, Messages: m.s.Window.Messages(""), Tools: l.Offers.Definitions(),
	})
}

// counted takes a count, and goes on with the model call that waits for it. One of
// another model or another window says nothing.
func (m *machine) counted(in Counted) {
	l := &m.s.Live
	c := l.Counting
	if c == nil || c.id != in.ID {
		return
	}
	l.Counting = nil
	done := *c
	done.encoding = in.Encoding
	done.exact = size{in.Size.System, in.Size.Messages, in.Size.Tools}
	if last := l.Counted; last == nil && done.encoding != "" && l.Scale > 1 {
		// The provider's figure was compared with an estimate so far.
		l.Scale = max(l.Scale*float64(done.estimated.total())/float64(max(done.exact.total(), 1)), 1)
	}
	l.Counted = &done
	if m.uncertain() {
		m.startCount() // the model, or the window, is another by now
		return
	}
	if l.Awaiting = m.maybeCompact(); !l.Awaiting {
		m.ask()
	}
}
