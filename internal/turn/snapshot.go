package turn

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/transom-run/transom/internal/window"
)

// snapshotVersion changes when Durable does: a snapshot of another version is
// not read, and the log is folded from the start.
const snapshotVersion = 13

type snapshot struct {
	Version int
	Durable Durable
	Agents  [][]byte `json:",omitempty"` // the messages of their windows, in the order of Durable.Agents
	// SameSystem: Durable.System is that of the piece before, and not repeated.
	SameSystem bool `json:",omitempty"`
}

// Saved is what [Extend] goes on from: how much of a fold a checkpoint holds. The
// zero Saved is nothing.
type Saved struct {
	window window.Mark
	system string
}

// Mark is what Extend needs to know of a fold that was saved.
func Mark(d *Durable) Saved { return Saved{d.Window.Mark(), d.System} }

// Save encodes the fold of a log, for a checkpoint beside it: the length of some
// JSON, the JSON, the length of the window's messages, and those (see
// window.Window.AppendMessages). Arguments of calls keep their bytes: models and
// handlers read them.
func Save(d Durable) ([]byte, error) {
	s := snapshot{Version: snapshotVersion, Durable: d}
	for _, a := range d.Agents {
		s.Agents = append(s.Agents, a.State.Window.AppendMessages(nil))
	}
	return s.encode(d.Window.AppendMessages(nil))
}

// Extend encodes what a fold has come to since it was saved, to be put behind that:
// all but the messages of its window is encoded anew, so that it costs what has
// come, and not what there is. repeated is how many bytes of it take the place of what
// stands in the checkpoint already. ok is false where the fold does not go on from
// there, or cannot be encoded so: then it is to be saved.
func Extend(d Durable, since Saved) (data []byte, repeated int, ok bool) {
	if len(d.Agents) > 0 {
		return nil, 0, false // their windows would be encoded each time
	}
	messages, ok := d.Window.AppendSince(nil, since.window)
	if !ok {
		return nil, 0, false
	}
	s := snapshot{Version: snapshotVersion, Durable: d, SameSystem: d.System == since.system}
	if s.SameSystem {
		s.Durable.System = ""
	}
	data, err := s.encode(messages)
	return data, len(data) - len(messages), err == nil
}

func (s *snapshot) encode(messages []byte) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return nil, err
	}
	out := make([]byte, 0, 2*binary.MaxVarintLen64+b.Len()+len(messages))
	out = append(binary.AppendUvarint(out, uint64(b.Len())), b.Bytes()...)
	return append(binary.AppendUvarint(out, uint64(len(messages))), messages...), nil
}

// Restore decodes what [Save] encoded, and what [Extend] added to it. The texts of
// the messages are parts of data.
func Restore(data string) (Durable, error) {
	d, err := restore(data)
	if err != nil {
		return Durable{}, fmt.Errorf("read checkpoint: %w", err)
	}
	return d, nil
}

func restore(data string) (d Durable, err error) {
	var states, messages []string
	for len(data) > 0 {
		var state, more string
		if state, data, err = cut(data); err == nil {
			more, data, err = cut(data)
		}
		if err != nil {
			return d, err
		}
		states, messages = append(states, state), append(messages, more)
	}
	if len(states) == 0 {
		return d, errors.New("it is empty")
	}
	s, err := decoded(states[len(states)-1])
	if err != nil {
		return d, err
	}
	d = s.Durable
	if s.SameSystem {
		if d.System, err = systemOf(states); err != nil {
			return d, err
		}
	}
	d.Window.Reserve(messages...)
	for _, m := range messages {
		if err := d.Window.TakeMessages(m); err != nil {
			return d, err
		}
	}
	if len(s.Agents) != len(d.Agents) {
		return d, fmt.Errorf("it has %d agents and the messages of %d", len(d.Agents), len(s.Agents))
	}
	for i, a := range d.Agents {
		if err := a.State.Window.TakeMessages(string(s.Agents[i])); err != nil {
			return d, fmt.Errorf("agent %s: %w", a.ID, err)
		}
	}
	return d, nil
}

func decoded(state string) (s snapshot, err error) {
	if err = json.Unmarshal([]byte(state), &s); err == nil && s.Version != snapshotVersion {
		err = fmt.Errorf("it is of version %d, not %d", s.Version, snapshotVersion)
	}
	return s, err
}

// systemOf finds the system message that the last state goes on with.
func systemOf(states []string) (string, error) {
	for i := len(states) - 2; i >= 0; i-- {
		var s struct {
			Durable    struct{ System string }
			SameSystem bool
		}
		if err := json.Unmarshal([]byte(states[i]), &s); err != nil {
			return "", err
		}
		if !s.SameSystem {
			return s.Durable.System, nil
		}
	}
	return "", errors.New("the piece that it begins with is missing")
}

// cut takes a text with its length before it off the front of data.
func cut(data string) (text, rest string, err error) {
	var n uint64
	for i := 0; i < len(data) && i < binary.MaxVarintLen64; i++ {
		c := data[i]
		if n |= uint64(c&0x7f) << (7 * i); c < 0x80 {
			if rest = data[i+1:]; n > uint64(len(rest)) {
				break
			}
			return rest[:n], rest[n:], nil
		}
	}
	return "", "", errors.New("it ends early")
}
