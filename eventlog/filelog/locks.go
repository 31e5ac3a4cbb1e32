package filelog

import (
	"sync"

	"github.com/transom-run/transom/eventlog/internal/holds"
)

// tables holds the accounts of the lock files of this process, for all its
// stores: see package holds.
var tables = struct {
	mu     sync.Mutex
	byFile map[fileID]*holds.Table
}{byFile: map[fileID]*holds.Table{}}

// Two lock bytes a session, far behind the end of the empty lock file: the first
// is locked shared by every process that has the session loaded, the second
// exclusively by the one that has the pen.
func presenceByte(key int64) int64 { return 2 * key }
func penByte(key int64) int64      { return 2*key + 1 }
