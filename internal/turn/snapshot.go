package turn

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/transom-run/transom/internal/window"
)

// snapshotVersion changes when Durable does: a snapshot of another version is
// not read, and the log is folded from the start.
const snapshotVersion = 14

// snapshot is all of a fold but the messages of its window.
type snapshot struct {
	Version int
	// Durable are the fields that are not zero, by name. Each is encoded by itself:
	// encoding/json would prepare for all types below Durable, which takes longer than
	// to read the few fields that a session usually has.
	Durable map[string]json.RawMessage
	Agents  [][]byte `json:",omitempty"` // the messages of their windows, in the order of Durable.Agents
	// System is the number of the piece, from 1, whose Durable has the system message;
	// 0: this one.
	System int `json:",omitempty"`
}

// fieldsOf encodes the fields of a fold. Text keeps its bytes.
func fieldsOf(d *Durable) (map[string]json.RawMessage, error) {
	out := map[string]json.RawMessage{}
	v := reflect.ValueOf(d).Elem()
	for i := range v.NumField() {
		if v.Field(i).IsZero() && v.Type().Field(i).Name != "Thread" { // a window is never just zero
			continue
		}
		raw, err := encoded(v.Field(i).Interface())
		if err != nil {
			return nil, err
		}
		out[v.Type().Field(i).Name] = raw
	}
	return out, nil
}

// setFields decodes what fieldsOf encoded.
func setFields(d *Durable, fields map[string]json.RawMessage) error {
	v := reflect.ValueOf(d).Elem()
	for name, raw := range fields {
		f := v.FieldByName(name)
		if !f.IsValid() {
			return fmt.Errorf("it has a field %q that is not known", name)
		}
		if err := json.Unmarshal(raw, f.Addr().Interface()); err != nil {
			return err
		}
	}
	return nil
}

func encoded(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return b.Bytes(), err
}

// Saved is what [Extend] goes on from: how much of a fold a checkpoint holds. The
// zero Saved is nothing.
type Saved struct {
	window window.Mark
	system string
	pieces int // that the checkpoint has
	piece  int // which of them has the system message, from 1
}

// Mark is what Extend needs to know of a fold that was saved.
func Mark(d *Durable) Saved { return Saved{d.Window.Mark(), d.System, 1, 1} }

// Save encodes the fold of a log, for a checkpoint beside it: the length of some
// JSON, the JSON, the length of the window's messages, and those (see
// window.Window.AppendMessages). Arguments of calls keep their bytes: models and
// handlers read them.
func Save(d Durable) ([]byte, error) {
	s := snapshot{Version: snapshotVersion}
	for _, a := range d.Agents {
		s.Agents = append(s.Agents, a.State.Window.AppendMessages(nil))
	}
	return s.encode(&d, d.Window.AppendMessages(nil))
}

// Extend encodes what a fold has come to since it was saved, to be put behind that:
// all but the messages of its window is encoded anew, so that it costs what has
// come, and not what there is. repeated is how many bytes of it take the place of what
// stands in the checkpoint already, and next what a further Extend goes on from. ok is
// false where the fold does not go on from there, or cannot be encoded so: then it is
// to be saved.
func Extend(d Durable, since Saved) (data []byte, repeated int, next Saved, ok bool) {
	if len(d.Agents) > 0 {
		return nil, 0, next, false // their windows would be encoded each time
	}
	messages, ok := d.Window.AppendSince(nil, since.window)
	if !ok {
		return nil, 0, next, false
	}
	next = Saved{d.Window.Mark(), d.System, since.pieces + 1, since.pieces + 1}
	s := snapshot{Version: snapshotVersion}
	if d.System == since.system {
		s.System, next.piece = since.piece, since.piece
		d.System = ""
	}
	data, err := s.encode(&d, messages)
	return data, len(data) - len(messages), next, err == nil
}

func (s *snapshot) encode(d *Durable, messages []byte) (out []byte, err error) {
	if s.Durable, err = fieldsOf(d); err != nil {
		return nil, err
	}
	b, err := encoded(s)
	if err != nil {
		return nil, err
	}
	out = make([]byte, 0, 2*binary.MaxVarintLen64+len(b)+len(messages))
	out = append(binary.AppendUvarint(out, uint64(len(b))), b...)
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
		if state, data, err = window.Cut(data); err == nil {
			more, data, err = window.Cut(data)
		}
		if err != nil {
			return d, err
		}
		states, messages = append(states, state), append(messages, more)
	}
	s, err := pieceOf(states, len(states))
	if err == nil {
		err = setFields(&d, s.Durable)
	}
	if err == nil && s.System > 0 {
		var with snapshot
		if with, err = pieceOf(states, s.System); err == nil && with.Durable["System"] != nil {
			err = json.Unmarshal(with.Durable["System"], &d.System)
		}
	}
	if err != nil {
		return d, err
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

// pieceOf decodes one of the pieces, from 1.
func pieceOf(states []string, n int) (s snapshot, err error) {
	if n < 1 || n > len(states) {
		return s, fmt.Errorf("it has no piece %d", n)
	}
	if err = json.Unmarshal([]byte(states[n-1]), &s); err == nil && s.Version != snapshotVersion {
		err = fmt.Errorf("it is of version %d, not %d", s.Version, snapshotVersion)
	}
	return s, err
}
