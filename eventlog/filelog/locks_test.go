//go:build unix

package filelog

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/transom-run/transom/eventlog"
)

// helperJob names the environment variable that makes this test binary another
// process: the home of the store it works on.
const helperJob = "FILELOG_TEST_HELPER"

// helper obeys commands from its input, one a line, and answers each with a line.
func helper(home string) {
	s, err := New(Config{Home: home})
	if err != nil {
		fmt.Println(err)
		return
	}
	holds := map[string]eventlog.Hold{}
	logs := map[string]eventlog.Log{}
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		verb, id, _ := strings.Cut(in.Text(), " ")
		var err error
		answer := "ok"
		switch h := holds[id]; verb {
		case "hold":
			holds[id], err = s.Hold(id)
		case "others":
			var yes bool
			yes, err = h.Others()
			answer = fmt.Sprint(yes)
		case "take":
			err = h.TakePen()
		case "drop":
			err = h.DropPen()
		case "release":
			err = h.Release()
		case "append":
			if logs[id] == nil {
				logs[id], _, err = s.Open(ctx, id)
			}
			if err == nil {
				_, err = logs[id].Append(eventlog.Batch{Lines: [][]byte{[]byte(two)}})
			}
		}
		var held *eventlog.HeldError
		if errors.As(err, &held) {
			answer = fmt.Sprint("held by ", held.PID)
		} else if err != nil {
			answer = err.Error()
		}
		fmt.Println(answer)
	}
}

// process is another process that works on a store.
type process struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func start(t *testing.T, home string) *process {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, cmd: exec.Command(exe)}
	p.cmd.Env = append(os.Environ(), helperJob+"="+home)
	p.cmd.Stderr = os.Stderr
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.out = bufio.NewScanner(out)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	return p
}

func (p *process) ask(format string, args ...any) string {
	p.t.Helper()
	if _, err := fmt.Fprintf(p.in, format+"\n", args...); err != nil {
		p.t.Fatal(err)
	}
	if !p.out.Scan() {
		p.t.Fatal("the other process ended")
	}
	return p.out.Text()
}

func (p *process) want(answer, format string, args ...any) {
	p.t.Helper()
	if got := p.ask(format, args...); got != answer {
		p.t.Fatalf("%s: %s, want %s", fmt.Sprintf(format, args...), got, answer)
	}
}

// kill ends the process with SIGKILL.
func (p *process) kill() {
	if p.cmd.ProcessState == nil {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	}
}

func wantOthers(t *testing.T, h eventlog.Hold, want bool) {
	t.Helper()
	if got, err := h.Others(); err != nil || got != want {
		t.Fatalf("others: %v, %v; want %v", got, err, want)
	}
}

func TestTwoProcesses(t *testing.T) {
	home := t.TempDir()
	s := newStore(t, home)
	a, b := start(t, home), start(t, home)
	h := hold(t, s, "s")
	wantOthers(t, h, false)
	a.want("ok", "hold s")
	wantOthers(t, h, true)
	a.want("true", "others s")
	b.want("ok", "hold t")
	b.want("false", "others t")

	a.want("ok", "take s")
	var held *eventlog.HeldError
	if err := h.TakePen(); !errors.As(err, &held) || held.PID != a.cmd.Process.Pid {
		t.Fatalf("pen: %v, want process %d", err, a.cmd.Process.Pid)
	}
	b.want("ok", "hold s")
	b.want(fmt.Sprint("held by ", a.cmd.Process.Pid), "take s")
	b.want("ok", "take t") // another session is no matter
	a.want("ok", "drop s")
	if err := h.TakePen(); err != nil {
		t.Fatal(err)
	}
	a.want(fmt.Sprint("held by ", os.Getpid()), "take s")

	// What another store of this process does to the same files does not end
	// the locks, nor does opening and closing logs.
	other := newStore(t, home)
	second := hold(t, other, "s")
	if err := second.TakePen(); !errors.As(err, &held) || held.PID != os.Getpid() {
		t.Fatalf("pen in the same process: %v", err)
	}
	if err := second.Release(); err != nil {
		t.Fatal(err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	a.want(fmt.Sprint("held by ", os.Getpid()), "take s")
	if err := h.Release(); err != nil {
		t.Fatal(err)
	}
	a.want("ok", "take s")
	a.want("true", "others s")
	b.want("ok", "release s")
	a.want("false", "others s")
}

func TestKilledHolder(t *testing.T) {
	home := t.TempDir()
	s := newStore(t, home)
	h := hold(t, s, "s")
	for range 3 {
		p := start(t, home)
		p.want("ok", "hold s")
		p.want("ok", "take s")
		wantOthers(t, h, true)
		if err := h.TakePen(); err == nil {
			t.Fatal("two have the pen")
		}
		p.kill()
		wantOthers(t, h, false)
		if err := h.TakePen(); err != nil {
			t.Fatal(err)
		}
		if err := h.DropPen(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTakeover is the way of a session from one process to another and back.
func TestTakeover(t *testing.T) {
	home := t.TempDir()
	s := newStore(t, home)
	put(t, s, "s", one+"\n")
	p := start(t, home)
	h := hold(t, s, "s")
	l, _ := open(t, s, "s")
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ok(h.TakePen())
	ok(l.Verify())
	p.want("ok", "hold s")
	p.want(fmt.Sprint("held by ", os.Getpid()), "take s")
	ok(h.DropPen())
	p.want("ok", "take s")
	p.want("ok", "append s")
	p.want("ok", "drop s")
	ok(h.TakePen())
	if err := l.Verify(); !errors.Is(err, eventlog.ErrMoved) {
		t.Fatalf("verify: %v", err)
	}
	if lines, damage := readBoth(t, l, 0); len(lines) != 1 || damage != nil {
		t.Fatalf("it reads %q, %v", lines, damage)
	}
	l, _ = open(t, s, "s")
	if lines, _ := readBoth(t, l, 0); len(lines) != 2 {
		t.Fatalf("opened again it reads %q", lines)
	}
	ok(l.Verify())
}

// TestNeverCutsOthers: a log that was opened in the middle of another's write,
// against the rules, does not cut what the other went on to write.
func TestNeverCutsOthers(t *testing.T) {
	s := newStore(t, t.TempDir())
	path := put(t, s, "s", one+"\n"+`{"id`)
	l, damage := open(t, s, "s")
	if len(damage) != 1 {
		t.Fatalf("damage %v", damage)
	}
	whole := one + "\n" + two + "\n"
	if err := os.WriteFile(path, []byte(whole), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Append(eventlog.Batch{Lines: [][]byte{[]byte(three)}}); !errors.Is(err, eventlog.ErrMoved) {
		t.Fatalf("append: %v", err)
	}
	if b, _ := os.ReadFile(path); string(b) != whole {
		t.Fatalf("the file is now %q", b)
	}
}

func TestLockFile(t *testing.T) {
	home := t.TempDir()
	s := newStore(t, home)
	h := hold(t, s, "s")
	path := filepath.Join(home, "session-state", penName)
	for _, path := range []string{path, filepath.Join(filepath.Dir(path), presenceName)} {
		fi, err := os.Lstat(path)
		if err != nil || fi.Mode() != 0o600 || fi.Size() != 0 {
			t.Fatalf("lock file: %v, %v", fi, err)
		}
	}
	// Reached by another path it is the same file.
	link := filepath.Join(t.TempDir(), "home")
	if err := os.Symlink(home, link); err != nil {
		t.Fatal(err)
	}
	wantOthers(t, hold(t, newStore(t, link), "s"), true)
	// Removed and made anew it is another one: old holds go on with the old file.
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	wantOthers(t, hold(t, s, "s"), false)
	wantOthers(t, h, true)
	// A link in its place is not followed.
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(home, "elsewhere"), path); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Hold("s"); err == nil {
		t.Fatal("a symbolic link was taken for the lock file")
	}
}
