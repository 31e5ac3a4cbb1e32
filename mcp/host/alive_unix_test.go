//go:build unix

package host

import (
	"fmt"
	"os"
	"regexp"
	"runtime"
	"syscall"
)

// alive reports whether a process runs: one that is dead and not waited for does
// not, where the system says which those are.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	if runtime.GOOS != "linux" {
		return true
	}
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !regexp.MustCompile(`\) [ZX] `).Match(raw)
}
