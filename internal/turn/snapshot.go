package turn

import (
	"encoding/json"
	"fmt"
)

// snapshotVersion changes when Durable does: a snapshot of another version is
// not read, and the log is folded from the start.
const snapshotVersion = 1

type snapshot struct {
	Version int
	Durable Durable
}

// Save encodes the fold of a log, for a checkpoint beside it.
func Save(d Durable) ([]byte, error) { return json.Marshal(snapshot{snapshotVersion, d}) }

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
