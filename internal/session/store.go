package session

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/eventlog"
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
// be read. It begins at the log's checkpoint, where there is a good one.
func Load(log eventlog.Log) (turn.State, []eventlog.Damage, error) {
	var s turn.State
	from := eventlog.Position(0)
	if c, ok := log.(eventlog.Checkpointer); ok {
		if pos, data, ok := c.LoadCheckpoint(); ok {
			if d, err := turn.Restore(data); err == nil {
				s.Durable, from = d, pos
			}
		}
	}
	var damages []eventlog.Damage
	for rec, err := range log.Read(from) {
		if err != nil {
			var damage *eventlog.DamageError
			if errors.As(err, &damage) {
				damages = append(damages, damage.Damage)
				continue
			}
			return s, damages, err
		}
		e, err := event.Decode(rec.Line)
		if err == nil {
			var next turn.Durable
			if next, err = s.Durable.Apply(e); err == nil {
				s.Durable = next
				continue
			}
		}
		damages = append(damages, eventlog.Damage{Pos: rec.Pos, Bytes: int64(rec.Next - rec.Pos), Reason: err.Error()})
	}
	s.Live.Parked = s.Loop.Open
	return s, damages, nil
}

// Usable reports whether a checkpoint is one that this version reads.
func Usable(data []byte) bool {
	_, err := turn.Restore(data)
	return err == nil
}

// checkpointEvery is after how many bytes of log a checkpoint is due, where half
// the last one's size is not more: a resume folds no more than that, and
// checkpoints write no more than about twice what the log does.
const checkpointEvery = 64 << 10

// checkpoint keeps the fold beside the log, so that the next resume need not
// read what lies before it. It is only ever a help: failures are not reported.
func (s *Session) checkpoint() {
	c, ok := s.cfg.Log.(eventlog.Checkpointer)
	if !ok || !s.real || s.state.SessionID == "" {
		return
	}
	data, err := turn.Save(s.state.Durable)
	if err != nil {
		return
	}
	s.kept, s.keptBytes = s.cfg.Log.End(), int64(len(data))
	if err := c.SaveCheckpoint(s.kept, data); err != nil {
		s.cfg.Logger.Debug("save checkpoint", "session", s.cfg.ID, "error", err)
	}
}

// History reads the public events of a log, in order. What cannot be read is
// passed over.
func History(log eventlog.Log) ([]json.RawMessage, error) {
	var out []json.RawMessage
	for rec, err := range log.Read(0) {
		if err != nil {
			var damage *eventlog.DamageError
			if errors.As(err, &damage) {
				continue
			}
			return nil, err
		}
		if e, err := event.Decode(rec.Line); err == nil && e.Public() && e.Persisted() {
			out = append(out, json.RawMessage(rec.Line))
		}
	}
	return out, nil
}
