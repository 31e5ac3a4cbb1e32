//go:build unix

package builtin

import (
	"io/fs"
	"os"
	"syscall"
)

// ours reports whether a file can be replaced by another without a difference:
// it has one name, and our owner and group.
func ours(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Nlink == 1 && int(st.Uid) == os.Geteuid() && int(st.Gid) == os.Getegid()
}
