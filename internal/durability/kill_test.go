//go:build unix

package durability

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// play starts a child that plays a history in a home, and waits for it. It returns
// how many points the child has passed, or killed: it ended itself.
func play(home, name string, env ...string) (points int, killed bool, err error) {
	exe, err := os.Executable()
	if err != nil {
		return 0, false, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), watchdog)
	defer cancel()
	cmd := exec.CommandContext(ctx, exe)
	cmd.Env = append(append(os.Environ(), envHistory+"="+name, envHome+"="+home), env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && ctx.Err() == nil {
		if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() && ws.Signal() == syscall.SIGKILL {
			return 0, true, nil
		}
	}
	if err != nil {
		return 0, false, fmt.Errorf("%s: %w: %s", name, err, stderr.String())
	}
	points, err = strconv.Atoi(strings.TrimSpace(stdout.String()))
	return points, false, err
}

// begin makes a home in which what comes before a history has happened.
func begin(t *testing.T, name, prefab string) string {
	t.Helper()
	home := t.TempDir()
	if prefab != "" {
		if err := os.CopyFS(home, os.DirFS(prefab)); err != nil {
			t.Fatal(err)
		}
	}
	return home
}

// TestKill kills a process that plays a history, at each point in turn, and resumes
// its session in two ways: going on with what was under way, and not.
func TestKill(t *testing.T) {
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano())
	}
	t.Logf("-durability.seed=%d", *seed)
	var mu sync.Mutex
	tried, resumes := 0, 0
	t.Run("histories", func(t *testing.T) {
		for i, name := range slices.Sorted(maps.Keys(histories)) {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				points, done := killAll(t, name, rand.New(rand.NewPCG(*seed, uint64(i))))
				mu.Lock()
				tried += points
				resumes += done
				mu.Unlock()
			})
		}
	})
	t.Logf("killed at %d points of %d histories, and resumed %d times", tried, len(histories), resumes)
}

func killAll(t *testing.T, name string, random *rand.Rand) (tried, resumes int) {
	hist, prefab := histories[name], ""
	if hist.after != "" {
		prefab = t.TempDir()
		if _, killed, err := play(prefab, hist.after, envUntil+"="+hist.mark); err != nil || !killed {
			t.Fatalf("before it: killed %t, %v", killed, err)
		}
	}
	points, _, err := play(begin(t, name, prefab), name)
	if err != nil {
		t.Fatal(err)
	}
	if points < 10 {
		t.Fatalf("only %d points: the seam is not in the way", points)
	}
	at := random.Perm(points)
	if !*full {
		at = at[:min(*samples, points)]
	}
	check := t.TempDir() // one home for all resumes: lock files stay open
	for _, n := range at {
		home := begin(t, name, prefab)
		_, killed, err := play(home, name, fmt.Sprint(envAt, "=", n+1))
		if err != nil {
			t.Fatalf("point %d: %v", n+1, err)
		}
		if killed { // a sync in the background may have been left out this time
			tried++
		}
		ways := []bool{true, false}
		if !*full {
			ways = ways[n%2 : n%2+1]
		}
		for _, goOn := range ways {
			if err := resumeAt(home, check, hist, goOn); err != nil {
				t.Errorf("killed at point %d of %d, resumed with %t: %v", n+1, points, goOn, err)
			}
			resumes++
		}
		if err := os.RemoveAll(home); err != nil {
			t.Fatal(err)
		}
	}
	return tried, resumes
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// resumeAt verifies a copy of a home, but for its lock files.
func resumeAt(home, check string, hist history, goOn bool) error {
	old, err := filepath.Glob(filepath.Join(check, "session-state", "[^.]*"))
	if err != nil {
		return err
	}
	for _, dir := range append(old, filepath.Join(check, "journal"), filepath.Join(check, "kept")) {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	dirs, err := filepath.Glob(filepath.Join(home, "session-state", "[^.]*"))
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		if err := os.CopyFS(filepath.Join(check, "session-state", filepath.Base(dir)), os.DirFS(dir)); err != nil {
			return err
		}
	}
	if kept := filepath.Join(home, "kept"); hist.kept && exists(kept) {
		if err := os.CopyFS(filepath.Join(check, "kept"), os.DirFS(kept)); err != nil {
			return err
		}
	}
	if work, saved := filepath.Join(home, "work"), filepath.Join(home, "saved"); hist.tracked {
		// The log names these files where they are: each resume finds them as the killed
		// process left them.
		from, to := work, saved
		if exists(saved) {
			from, to = saved, work
		}
		if err := errors.Join(os.RemoveAll(to), os.CopyFS(to, os.DirFS(from))); err != nil {
			return err
		}
	}
	if raw, err := os.ReadFile(filepath.Join(home, "journal")); err == nil {
		if err := os.WriteFile(filepath.Join(check, "journal"), raw, 0o600); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), watchdog)
	defer cancel()
	return verify(ctx, check, hist, goOn)
}
