//go:build !unix

package filelog

import "io/fs"

// syncDir has no counterpart here: the entry goes with the file.
func syncDir(string) error { return nil }

// unlinked: an open file cannot lose its name here.
func unlinked(fs.FileInfo) bool { return false }
