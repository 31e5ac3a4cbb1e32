package turn

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// snapshotVersion changes when Durable does: a snapshot of another version is
// not read, and the log is folded from the start.
const snapshotVersion = 3

type snapshot struct {
	Version int
	Durable Durable
}

// Save encodes the fold of a log, for a checkpoint beside it. Arguments of calls
// keep their bytes: models and handlers read them.
func Save(d Durable) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(snapshot{snapshotVersion, d}); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// Restore decodes what [Save] encoded.
func Restore(data []byte) (Durable, error) {
	var s snapshot
	if err := json.Unmarshal(data, &s); err != nil {
		return Durable{}, fmt.Errorf("read checkpoint: %w", err)
	}
	if s.Version != snapshotVersion {
		return Durable{}, fmt.Errorf("checkpoint is of version %d, not %d", s.Version, snapshotVersion)
	}
	return s.Durable, nil
}
