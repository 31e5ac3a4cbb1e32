package main

import (
	"testing"

	"golang.org/x/sys/unix"
)

// Other processes of the user read neither memory nor environment of a server.
func TestHarden(t *testing.T) {
	was, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Prctl(unix.PR_SET_DUMPABLE, uintptr(was), 0, 0, 0)
	harden()
	if now, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0); err != nil || now != 0 {
		t.Errorf("dumpable is %d: %v", now, err)
	}
}
