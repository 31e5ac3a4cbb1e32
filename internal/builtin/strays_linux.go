package builtin

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// marker is the variable that every command of a session, and all that it starts,
// carries. What leaves its process group (setsid, a daemon) is found by it.
const marker = "TRANSOM_SHELL"

// signalMarked sends a signal to every process whose marker begins with value,
// and returns how many there were. Processes that have ended and wait to be
// collected have no environment any more.
func signalMarked(value string, sig syscall.Signal) int {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return 0
	}
	want := []byte(marker + "=" + value)
	n := 0
	for _, dir := range dirs {
		env, err := os.ReadFile(filepath.Join(dir, "environ"))
		if err != nil || !bytes.HasPrefix(env, want) && !bytes.Contains(env, append([]byte{0}, want...)) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil || pid == os.Getpid() {
			continue
		}
		if syscall.Kill(pid, sig) == nil {
			n++
		}
	}
	return n
}

func askMarked(value string) int   { return signalMarked(value, syscall.SIGTERM) }
func forceMarked(value string) int { return signalMarked(value, syscall.SIGKILL) }
func anyMarked(value string) bool  { return signalMarked(value, 0) > 0 }
