//go:build linux

package durability

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/eventlog/filelog"
)

// fill works on a session until the store refuses, makes room, and goes on. It
// returns what the refusal said.
func fill(t *testing.T, home string, room func()) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	store, err := filelog.New(filelog.Config{Home: home})
	if err != nil {
		t.Fatal(err)
	}
	h, err := newHost(ctx, store, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := h.create(); err != nil {
		t.Fatal(err)
	}
	var refused error
	long := strings.Repeat("0123456789", 3000)
	for n := 0; refused == nil; n++ {
		if n > 1000 {
			t.Fatal("it is never full")
		}
		_, refused = h.s.SendAndWait(ctx, transom.Message{Prompt: "«one» " + long})
	}
	if ctx.Err() != nil {
		t.Fatalf("it hangs: %v", refused)
	}
	room()
	if err := h.say("«healed»"); err != nil { // a sync may have failed: only a resume goes on
		t.Log(err)
	}
	if err := h.end(); err != nil {
		t.Fatal(err)
	}
	store, err = filelog.New(filelog.Config{Home: home})
	if err != nil {
		t.Fatal(err)
	}
	again, err := newHost(ctx, store, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(again.resume(true), again.say("«clear»"), again.end()); err != nil {
		t.Fatal(err)
	}
	one(t, home)
	return refused
}

// TestFullDisk: on a disk that is full a turn ends with what to do; once there is
// room, the session goes on.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("making a small disk needs the right to mount one: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 400<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	err := fill(t, dir, func() {
		if err := os.Remove(ballast); err != nil {
			t.Fatal(err)
		}
	})
	if !strings.Contains(err.Error(), "no space left") || !strings.Contains(err.Error(), "free some space") {
		t.Errorf("refused with: %v", err)
	}
}

// TestFileSizeLimit is the same with the limit that a process has for its files.
func TestFileSizeLimit(t *testing.T) {
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Setrlimit(syscall.RLIMIT_FSIZE, &old) }()
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 400 << 10, Max: old.Max}); err != nil {
		t.Fatal(err)
	}
	err := fill(t, t.TempDir(), func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
			t.Fatal(err)
		}
	})
	if !strings.Contains(err.Error(), "file too large") || !strings.Contains(err.Error(), "ulimit -f") {
		t.Errorf("refused with: %v", err)
	}
}
