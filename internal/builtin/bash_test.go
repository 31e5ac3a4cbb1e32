//go:build unix

package builtin

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/transom-run/transom/tool"
)

func run(command string, more ...any) string {
	return args(append([]any{"command", command, "description", "d"}, more...)...)
}

// TestBash pins the recorded results.
func TestBash(t *testing.T) {
	r := newRig(t)
	for command, want := range map[string]string{
		"echo hello && echo world":               "hello\nworld\n<exited with exit code 0>",
		"echo error_msg >&2; sleep 0.5; echo ok": "error_msg\nok\n<exited with exit code 0>",
		"printf 'no line feed'":                  "no line feed\n<exited with exit code 0>",
		"true":                                   "<exited with exit code 0>",
		"exit 3":                                 "<exited with exit code 3>",
		"kill -9 $$":                             "<exited with exit code 137>",
		"for i in 1 2 3; do echo o$i; echo e$i >&2; done": "o1\ne1\no2\ne2\no3\ne3\n<exited with exit code 0>",
		"printf 'a\\r\\nb\\033[31mred\\033[0m\\n'":        "a\nbred\n<exited with exit code 0>",
		"cat":                                   "<exited with exit code 0>", // nobody types
		"[ -t 1 ] && [ -t 2 ] && echo terminal": "terminal\n<exited with exit code 0>",
	} {
		equal(t, r.text("bash", run(command)), want)
	}
}

// TestBashPlace: the shell starts in the working directory, whatever its name,
// and a directory that has gone is named.
func TestBashPlace(t *testing.T) {
	r := newRig(t)
	r.write("it's.txt", "found")
	equal(t, r.text("bash", run(`pwd; cat "it's.txt"`)), r.dir+"\nfound\n<exited with exit code 0>")
	r.dir = filepath.Join(r.dir, "gone")
	r.refusal("bash", run("true"), "does not exist any more")
	r.dir = filepath.Dir(r.dir)
	r.refusal("bash", run("  \n"), "empty")
	r.refusal("bash", run("a\x00b"), "NUL")
}

// TestBashEnvironment: nothing that was entrusted to Transom is there.
func TestBashEnvironment(t *testing.T) {
	r := newRig(t, func(c *Config) {
		c.Environ = []string{"PATH=" + os.Getenv("PATH"), "GH_TOKEN=t0ken", "INNOCENT=https://x:s3cret-value@host/", "SHORT=abc", "LONGER=abcd",
			"BASH_ENV=/tmp/evil", "KEPT=yes", "TERM=xterm"}
		c.HideEnv = func(name string) bool { return strings.HasSuffix(name, "_TOKEN") }
		c.Secrets = func() []string { return []string{"", "s3cret-value", "abc"} }
	})
	out := r.text("bash", run("env"))
	for _, banned := range []string{"GH_TOKEN", "INNOCENT", "SHORT=", "BASH_ENV", "TERM=xterm", "s3cret"} {
		if strings.Contains(out, banned) {
			t.Errorf("a command sees %s:\n%s", banned, out)
		}
	}
	for _, wanted := range []string{"KEPT=yes", "LONGER=abcd", "TERM=dumb", "PAGER=cat", "GIT_TERMINAL_PROMPT=0"} {
		if !strings.Contains(out, wanted) {
			t.Errorf("a command lacks %s:\n%s", wanted, out)
		}
	}
}

// TestBashAsync pins the form of a command that was left running.
func TestBashAsync(t *testing.T) {
	r := newRig(t)
	out := r.text("bash", run("read x; echo got $x; read y; exit 4", "mode", "async", "shellId", "talk"))
	if !strings.Contains(out, "<shellId: talk is still running") {
		t.Fatal(out)
	}
	r.refusal("bash", run("true", "shellId", "talk"), "still runs")
	if out := r.text("write_bash", args("shellId", "talk", "input", "ünï\n", "delay", 0.5)); !strings.Contains(out, "got ünï") || !strings.Contains(out, "still running") {
		t.Error(out)
	}
	if out := r.text("list_bash", `{}`); !strings.Contains(out, "shellId: talk (running for ") {
		t.Error(out)
	}
	if out := r.text("write_bash", args("shellId", "talk", "input", "\n", "delay", 60)); !strings.HasSuffix(out, "<shellId: talk completed with exit code 4>") {
		t.Error(out)
	}
	equal(t, r.text("read_bash", args("shellId", "talk")), "<shellId: talk completed with exit code 4>")
	r.refusal("write_bash", args("shellId", "talk", "input", "x"), "has ended")
	r.refusal("read_bash", args("shellId", "nobody"), `no command with the shellId "nobody". Those there are: talk`)
	equal(t, r.text("bash", run("echo again", "shellId", "talk")), "again\n<exited with exit code 0>")
}

// TestBashGoesOn: a command that takes longer than the wait goes on, and each read
// gives what is new.
func TestBashGoesOn(t *testing.T) {
	r := newRig(t)
	out := r.text("bash", run("echo one; while [ ! -e go ]; do sleep 0.02; done; echo two", "initial_wait", 0.5))
	if !strings.HasPrefix(out, "one\n<shellId: 0 is still running.") {
		t.Fatal(out)
	}
	if out := r.text("read_bash", args("shellId", "0", "delay", 0)); out != "<shellId: 0 is still running>" {
		t.Error(out)
	}
	r.write("go", "")
	equal(t, r.text("read_bash", args("shellId", "0", "delay", 60)), "two\n<shellId: 0 completed with exit code 0>")
	r.refusal("write_bash", args("shellId", "0", "input", "x"), "has ended")
}

func TestBashInput(t *testing.T) {
	r := newRig(t)
	r.text("bash", run("trap 'echo caught; exit 5' INT; touch ready; while :; do sleep 0.02; done", "mode", "async"))
	until(t, "the trap", func() bool { _, err := os.Stat(r.path("ready")); return err == nil })
	if out := r.text("write_bash", args("shellId", "0", "input", "^C", "delay", 60)); !strings.Contains(out, "caught\n<shellId: 0 completed with exit code 5>") {
		t.Error(out)
	}
	r.text("bash", run("cat; echo end", "mode", "async"))
	if out := r.text("write_bash", args("shellId", "1", "input", "^D", "delay", 60)); !strings.Contains(out, "end\n<shellId: 1 completed") {
		t.Error(out)
	}
	r.text("bash", run("while [ ! -e go ]; do sleep 0.02; done", "initial_wait", 0))
	r.refusal("write_bash", args("shellId", "2", "input", "x\n"), "without an input")
	r.write("go", "")
	if p := r.ask("write_bash", args("shellId", "2", "input", "rm -rf /")); p.None || lasts(t, p) != "" {
		t.Errorf("input is not asked about: %+v", p)
	}
}

// pids reads the numbers that a command wrote.
func (r *rig) pids(name string, n int) []int {
	r.t.Helper()
	var out []int
	until(r.t, "pids in "+name, func() bool {
		b, _ := os.ReadFile(r.path(name))
		out = nil
		for _, f := range strings.Fields(string(b)) {
			if p, err := strconv.Atoi(f); err == nil {
				out = append(out, p)
			}
		}
		return len(out) == n
	})
	return out
}

// runs reports whether a process is there and has not ended.
func runs(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	s := string(b)
	return !strings.HasPrefix(s[strings.LastIndexByte(s, ')')+1:], " Z")
}

func (r *rig) allEnd(pids []int) {
	r.t.Helper()
	for _, p := range pids {
		until(r.t, fmt.Sprintf("the end of process %d", p), func() bool { return !runs(p) })
	}
}

// stubborn forks children that ignore signals, of which one leaves the process
// group and one is orphaned, and writes their numbers.
const stubborn = `
trap '' TERM HUP INT
bash -c 'trap "" TERM HUP INT; while :; do sleep 0.05; done' & echo $! >> pids
setsid bash -c 'echo $$ >> pids; trap "" TERM HUP INT; while :; do sleep 0.05; done' &
(setsid bash -c 'echo $$ >> pids; exec sleep 1000' &)
echo $$ >> pids
while :; do sleep 0.05; done`

func TestBashTimeout(t *testing.T) {
	r := newRig(t)
	out := r.call("bash", run("echo begun; "+stubborn, "timeout", 1.5))
	if out.Type != tool.Timeout || !strings.HasPrefix(out.ModelText, "begun\n") || !strings.Contains(out.ModelText, "longer than 1.5s") {
		t.Errorf("%s: %s", out.Type, out.ModelText)
	}
	r.allEnd(r.pids("pids", 4))
}

func TestBashStop(t *testing.T) {
	r := newRig(t)
	r.text("bash", run(stubborn, "mode", "async"))
	pids := r.pids("pids", 4)
	if out := r.text("stop_bash", args("shellId", "0")); !strings.Contains(out, "was stopped") {
		t.Error(out)
	}
	r.allEnd(pids)
	if out := r.text("stop_bash", args("shellId", "0")); !strings.Contains(out, "completed with exit code 137") {
		t.Error(out)
	}
}

func TestBashAbort(t *testing.T) {
	r := newRig(t)
	ctx, cancel := context.WithCancel(t.Context())
	c, call := r.prepare("bash", run(stubborn))
	done := make(chan tool.Outcome, 1)
	go func() { done <- tool.Run(ctx, c, call, nil) }()
	pids := r.pids("pids", 4)
	cancel()
	if out := <-done; out.Success {
		t.Error("an aborted command succeeded")
	}
	r.allEnd(pids)
}

// TestBashClose: what a command left running goes on when it ends, and ends with
// the session.
func TestBashClose(t *testing.T) {
	r := newRig(t)
	out := r.text("bash", run("bash -c 'trap \"\" HUP; while :; do echo tick; sleep 0.05; done' & echo $! > pids; echo started"))
	if !strings.Contains(out, "started\n") || !strings.HasSuffix(out, "<exited with exit code 0>") {
		t.Fatal(out)
	}
	pids := r.pids("pids", 1)
	if !runs(pids[0]) {
		t.Error("the program left running has ended")
	}
	if out := r.text("list_bash", `{}`); !strings.Contains(out, "with programs left running") {
		t.Error(out)
	}
	r.text("bash", run(stubborn, "mode", "async"))
	pids = append(pids, r.pids("pids", 5)...)
	must(t, r.set.Close())
	r.allEnd(pids)
}

func TestBashDetach(t *testing.T) {
	r := newRig(t)
	r.refusal("read_bash", args("shellId", "0"), "and no other")
	out := r.text("bash", run("echo $$ > pids; echo out; exec sleep 1000", "detach", true))
	pids := r.pids("pids", 1)
	defer syscall.Kill(pids[0], syscall.SIGKILL)
	if !strings.Contains(out, fmt.Sprintf("<detached with process id %d; its output goes to ", pids[0])) {
		t.Error(out)
	}
	file := strings.TrimSuffix(out[strings.Index(out, r.set.cfg.SessionDir):], ">")
	until(t, "its output", func() bool { b, _ := os.ReadFile(file); return string(b) == "out\n" })
	must(t, r.set.Close())
	if !runs(pids[0]) {
		t.Error("a detached command ended with the session")
	}
	none := newRig(t, func(c *Config) { c.SessionDir = "" })
	none.refusal("bash", run("true", "detach", true), "cannot be detached")
}

// TestBashHuge: the middle of a large output is left out, without cutting a
// character.
func TestBashHuge(t *testing.T) {
	r := newRig(t)
	out := r.text("bash", run(`for i in 1 2 3; do printf 'x%.0s' $(seq $i); yes '🙂🙂🙂' | head -c 3000000; done; echo; echo end`))
	if len(out) > maxHead+maxTail+1000 || !utf8.ValidString(out) || !strings.Contains(out, "bytes of output left out") || !strings.HasSuffix(out, "\nend\n<exited with exit code 0>") {
		t.Errorf("%d bytes, valid %v, end %q", len(out), utf8.ValidString(out), out[max(0, len(out)-100):])
	}
}

// TestBashMany: many commands at once, and a limit.
func TestBashMany(t *testing.T) {
	r := newRig(t)
	done := make(chan string, 20)
	for i := range 20 {
		c, call := r.prepare("bash", run(fmt.Sprintf("echo n%d; exit %d", i, i)))
		go func() { done <- tool.Run(t.Context(), c, call, nil).ModelText }()
	}
	seen := map[string]bool{}
	for range 20 {
		seen[<-done] = true
	}
	for i := range 20 {
		if want := fmt.Sprintf("n%d\n<exited with exit code %d>", i, i); !seen[want] {
			t.Errorf("missing %q", want)
		}
	}
	r.set.shells.mu.Lock()
	for i := range maxRunning {
		r.set.shells.byID[fmt.Sprint("fake", i)] = &shell{ended: make(chan struct{}), exited: make(chan struct{}), drained: make(chan struct{})}
	}
	r.set.shells.mu.Unlock()
	r.refusal("bash", run("true"), "run already")
	r.set.shells.mu.Lock()
	for i := range maxRunning {
		delete(r.set.shells.byID, fmt.Sprint("fake", i))
	}
	r.set.shells.mu.Unlock()
	for range maxEnded + 10 {
		r.text("bash", run("true"))
	}
	if n := len(r.set.shells.list()); n > maxEnded+1 {
		t.Errorf("%d ended commands are kept", n)
	}
}

func TestSeconds(t *testing.T) {
	for in, want := range map[float64]time.Duration{-1: 0, 0.5: 500 * time.Millisecond, 1e300: 7 * 24 * time.Hour} {
		if got := seconds(in); got != want {
			t.Errorf("seconds(%v) = %v", in, got)
		}
	}
}
