//go:build !linux

package filelog

import "os"

func fdatasync(f *os.File) error { return f.Sync() }
