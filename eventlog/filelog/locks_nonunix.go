//go:build !unix && !windows

package filelog

import (
	"path/filepath"

	"github.com/transom-run/transom/eventlog/internal/holds"
)

// fileID is the path of the store.
type fileID string

// tableOf returns the table of the store in a directory. This system has no record locks: the
// table sees the holders of this process only, and two processes must not share
// a home.
func tableOf(dir string) (*holds.Table, error) {
	tables.mu.Lock()
	defer tables.mu.Unlock()
	id := fileID(filepath.Clean(dir))
	if tables.byFile[id] == nil {
		tables.keep(id, holds.New(nil))
	}
	return tables.byFile[id], nil
}
