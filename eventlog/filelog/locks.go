package filelog

import (
	"sync"

	"github.com/transom-run/transom/eventlog/internal/holds"
)

// tables holds the accounts of the lock files of this process, for all its
// stores: see package holds.
var tables lockTables

type lockTables struct {
	mu     sync.Mutex
	byFile map[fileID]*holds.Table
}

// keep takes up the account of a file. mu is held.
func (t *lockTables) keep(id fileID, table *holds.Table) {
	if t.byFile == nil {
		t.byFile = map[fileID]*holds.Table{}
	}
	t.byFile[id] = table
}

// Two lock files a store, empty, in which session n has the byte n: in the first
// it is locked shared by every process that has the session loaded, in the
// second exclusively by the one that has the pen. They are two because the
// system's time for a lock grows with the number of locks on the file (some 20
// ns each), and the pen, which changes hands twice a turn, should not pay for
// thousands of sessions that are merely loaded.
const (
	presenceName = ".loaded"
	penName      = ".pens"
)
