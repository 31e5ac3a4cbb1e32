package main

import "golang.org/x/sys/unix"

// harden keeps what runs below this process, under the same user, from reading its
// memory and the environment it was started with, where keys and tokens are. It
// also turns core dumps off. Programs below are not concerned.
func harden() { _ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }
