package session

import (
	"crypto/rand"
	"encoding/hex"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/eventlog"
	"github.com/transom-run/transom/internal/history"
	"github.com/transom-run/transom/internal/turn"
)

// newID makes a random UUID (version 4).
func newID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	var out [36]byte
	hex.Encode(out[:8], b[:4])
	hex.Encode(out[9:13], b[4:6])
	hex.Encode(out[14:18], b[6:8])
	hex.Encode(out[19:23], b[8:10])
	hex.Encode(out[24:], b[10:])
	out[8], out[13], out[18], out[23] = '-', '-', '-', '-'
	return string(out[:])
}

// NewID makes a random id for a session or a client.
func NewID() string { return newID() }

// Load folds a log into a state that nothing drives yet, and says what could not
// be read. It begins at the log's checkpoint, where there is a good one. Where a
// boundary follows that, the log is read from the start: what the history was
// before the boundary stands nowhere else.
func Load(log eventlog.Log) (turn.State, []eventlog.Damage, error) {
	d, from := turn.Durable{}, eventlog.Position(0)
	if c, ok := log.(eventlog.Checkpointer); ok {
		if pos, data, ok := c.LoadCheckpoint(); ok {
			if kept, err := turn.Restore(data); err == nil {
				d, from = kept, pos
			}
		}
	}
	f := folding{log: log, from: from}
	if from == 0 {
		f.clear = lastClear(log)
	}
	s, damages, bounded, err := f.run(d)
	if err == nil && bounded {
		f = folding{log: log}
		if f.index, err = index(log); err == nil {
			s, damages, _, err = f.run(turn.Durable{})
		}
	}
	s.Live.Parked = s.Loop.Open
	return s, damages, err
}

// folding is one pass over a log.
type folding struct {
	log   eventlog.Log
	from  eventlog.Position
	clear eventlog.Position // before it nothing is in the window any more
	index *history.Index    // what is still shown; nil: all, and the pass ends at the first boundary
}

func (f *folding) run(d turn.Durable) (s turn.State, damages []eventlog.Damage, bounded bool, err error) {
	s.Durable = d
	note := func(d eventlog.Damage) { damages = append(damages, d) }
	err = records(f.log, f.from, note, func(rec eventlog.Record, e *event.Event) error {
		if f.index == nil && e.Type == event.TypeTruncated {
			bounded = true
			return errEnough
		}
		apply := s.Durable.Apply
		if rec.Pos < f.clear || f.index != nil && f.index.Hidden(int64(rec.Pos)) {
			apply = s.Durable.Behind
		}
		next, err := apply(e)
		if err == nil {
			s.Durable = next
		}
		return err
	})
	return s, damages, bounded, err
}

// searched is how long a log has to be for a search of its last clear to be worth
// its while.
const searched = 4 << 20

// lastClear finds the last clear of a long log, so that the windows before it need
// not be folded: they may have been as large as the log. 0 where there is none.
func lastClear(log eventlog.Log) eventlog.Position {
	find, ok := log.(eventlog.Searcher)
	if !ok || log.End() < searched {
		return 0
	}
	mark := []byte(`"type":"` + event.TypeContextCleared + `"`)
	for at, ok := find.LastWith(mark, log.End()); ok; at, ok = find.LastWith(mark, at) {
		for rec, err := range log.Read(at) {
			if err != nil {
				break
			}
			if e, err := event.Decode(rec.Line); err == nil && e.Type == event.TypeContextCleared && e.AgentID == "" {
				if _, err := event.As[event.ContextCleared](e); err == nil {
					return rec.Pos
				}
			}
			break
		}
	}
	return 0
}

// Usable reports whether a checkpoint is one that this version reads.
func Usable(data string) bool {
	_, err := turn.Restore(data)
	return err == nil
}

const (
	// checkpointEvery is after how many bytes of log a whole checkpoint is due, where
	// half the last one's size is not more: checkpoints write no more than about twice
	// what the log does.
	checkpointEvery = 64 << 10
	// extendEvery is after how many bytes of log, or as many as an addition repeats
	// where that is more, one is made to the checkpoint: a resume folds no more.
	extendEvery = 16 << 10
	// repeatedMost bounds what additions repeat, and so how many there are.
	repeatedMost = 512 << 10
)

// kept is what the actor knows of its checkpoint.
type kept struct {
	at       eventlog.Position // where it stands, or the session began here
	whole    eventlog.Position // where it was last kept as a whole
	bytes    int64             // its size then
	repeated int64             // what additions have repeated since
	last     int64             // what the last of them has
	saved    turn.Saved        // what additions go on from; the zero Saved: there are none
}

// due reports whether a checkpoint is worth its while.
func (k *kept) due(end eventlog.Position) bool {
	if k.extends() {
		return int64(end-k.at) > max(extendEvery, 2*k.last)
	}
	return int64(end-k.whole) > max(checkpointEvery, k.bytes/2)
}

// extends reports whether the checkpoint can be added to, and additions do not repeat
// more yet than another whole one would, or than is quickly read.
func (k *kept) extends() bool {
	return k.saved != turn.Saved{} && k.repeated < min(max(checkpointEvery, k.bytes), repeatedMost)
}

// checkpoint keeps the fold beside the log, so that the next resume need not
// read what lies before it. It is only ever a help: failures are not reported.
func (s *Session) checkpoint() {
	c, ok := s.cfg.Log.(eventlog.Checkpointer)
	if !ok || !s.real || s.state.SessionID == "" || s.extendCheckpoint() {
		return
	}
	data, err := turn.Save(s.state.Durable)
	if err != nil {
		return
	}
	s.kept = kept{at: s.cfg.Log.End(), whole: s.cfg.Log.End(), bytes: int64(len(data))}
	if err := c.SaveCheckpoint(s.kept.at, data); err != nil {
		s.cfg.Logger.Debug("save checkpoint", "session", s.cfg.ID, "error", err)
	} else if _, more := c.(eventlog.Extender); more {
		s.kept.saved = turn.Mark(&s.state.Durable)
	}
}

// extendCheckpoint adds to the checkpoint; false where it is to be kept anew.
func (s *Session) extendCheckpoint() bool {
	c, ok := s.cfg.Log.(eventlog.Extender)
	if !ok || !s.kept.extends() {
		return false
	}
	end := s.cfg.Log.End()
	if end == s.kept.at {
		return true
	}
	data, repeated, next, ok := turn.Extend(s.state.Durable, s.kept.saved)
	if !ok {
		return false
	}
	if err := c.ExtendCheckpoint(end, data); err != nil {
		s.cfg.Logger.Debug("add to the checkpoint", "session", s.cfg.ID, "error", err)
		return false
	}
	s.kept.at, s.kept.last = end, int64(repeated)
	s.kept.repeated += s.kept.last
	s.kept.saved = next
	return true
}
