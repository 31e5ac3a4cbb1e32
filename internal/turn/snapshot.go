package turn

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// snapshotVersion changes when Durable does: a snapshot of another version is
// not read, and the log is folded from the start.
const snapshotVersion = 13

type snapshot struct {
	Version int
	Durable Durable
	Agents  [][]byte `json:",omitempty"` // the messages of their windows, in the order of Durable.Agents
}

// Save encodes the fold of a log, for a checkpoint beside it: a line of JSON, and
// the messages of its window (see window.Window.AppendMessages). Arguments of
// calls keep their bytes: models and handlers read them.
func Save(d Durable) ([]byte, error) {
	s := snapshot{Version: snapshotVersion, Durable: d}
	for _, a := range d.Agents {
		s.Agents = append(s.Agents, a.State.Window.AppendMessages(nil))
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil { // ends with the only newline
		return nil, err
	}
	return d.Window.AppendMessages(b.Bytes()), nil
}

// Restore decodes what [Save] encoded.
func Restore(data []byte) (Durable, error) {
	line, messages, ok := bytes.Cut(data, []byte("\n"))
	if !ok {
		return Durable{}, errors.New("read checkpoint: it has no messages")
	}
	var s snapshot
	if err := json.Unmarshal(line, &s); err != nil {
		return Durable{}, fmt.Errorf("read checkpoint: %w", err)
	}
	if s.Version != snapshotVersion {
		return Durable{}, fmt.Errorf("checkpoint is of version %d, not %d", s.Version, snapshotVersion)
	}
	if err := s.Durable.Window.TakeMessages(string(messages)); err != nil {
		return Durable{}, fmt.Errorf("read checkpoint: %w", err)
	}
	if len(s.Agents) != len(s.Durable.Agents) {
		return Durable{}, fmt.Errorf("read checkpoint: it has %d agents and the messages of %d", len(s.Durable.Agents), len(s.Agents))
	}
	for i, a := range s.Durable.Agents {
		if err := a.State.Window.TakeMessages(string(s.Agents[i])); err != nil {
			return Durable{}, fmt.Errorf("read checkpoint: agent %s: %w", a.ID, err)
		}
	}
	return s.Durable, nil
}
