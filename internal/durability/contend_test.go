//go:build unix

package durability

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/eventlog/filelog"
)

// contend is a process that works on a session as its input says, one command a
// line, each answered with a line.
func contend(home string) int {
	ctx := context.Background()
	store, err := filelog.New(filelog.Config{Home: home})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	h, err := newHost(ctx, store, home)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		verb, arg, _ := strings.Cut(in.Text(), " ")
		var err error
		switch verb {
		case "create":
			err = h.create()
		case "resume":
			err = h.resume(arg == "on")
		case "say":
			_, err = h.s.SendAndWait(ctx, transom.Message{Prompt: arg})
		case "send":
			_, err = h.s.Send(ctx, transom.Message{Prompt: arg})
		case "compete":
			err = compete(ctx, h, arg)
		case "end":
			err = h.end()
		}
		answer := "ok"
		if err != nil {
			answer = strings.ReplaceAll(string(transom.KindOf(err))+": "+err.Error(), "\n", " ")
		}
		fmt.Println(answer)
	}
	return 0
}

// compete gives a session a number of prompts that others give prompts, too. It
// takes the session back whenever another process has taken it over.
func compete(ctx context.Context, h *host, name string) error {
	deadline := time.Now().Add(watchdog)
	for n := 0; n < turnsEach; {
		if time.Now().After(deadline) {
			return fmt.Errorf("%s got only %d turns", name, n)
		}
		if h.s == nil {
			s, err := h.rt.ResumeSession(ctx, sessionID, transom.ResumeConfig{})
			if transom.KindOf(err) == transom.KindConflict {
				continue // busy elsewhere
			}
			if err != nil {
				return err
			}
			h.s = s
		}
		_, err := h.s.SendAndWait(ctx, transom.Message{Prompt: fmt.Sprintf("«%s %d»", name, n)})
		switch {
		case err == nil:
			n++
		case transom.KindOf(err) == transom.KindConflict:
			if err := h.s.Close(ctx); err != nil {
				return fmt.Errorf("leave a session that was taken over: %w", err)
			}
			h.s = nil
		default:
			return err
		}
	}
	return nil
}

const turnsEach = 8

// peer is such a process.
type peer struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func startPeer(t *testing.T, home string) *peer {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &peer{t: t, cmd: exec.Command(exe)}
	p.cmd.Env = append(os.Environ(), envHistory+"=contend", envHome+"="+home)
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

func (p *peer) kill() {
	if p.cmd.ProcessState == nil {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	}
}

func (p *peer) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

func (p *peer) ask(command string) string {
	p.t.Helper()
	if _, err := io.WriteString(p.in, command+"\n"); err != nil {
		p.t.Fatal(err)
	}
	return p.answer()
}

func (p *peer) answer() string {
	p.t.Helper()
	if !p.out.Scan() {
		p.t.Fatal("the other process ended")
	}
	return p.out.Text()
}

func (p *peer) want(command string, texts ...string) {
	p.t.Helper()
	got := p.ask(command)
	for _, text := range texts {
		if !strings.Contains(got, text) {
			p.t.Fatalf("%s: %s; want %q", command, got, text)
		}
	}
}

// here is a host in this process.
func here(t *testing.T, home string) *host {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*watchdog)
	t.Cleanup(cancel)
	store, err := filelog.New(filelog.Config{Home: home})
	if err != nil {
		t.Fatal(err)
	}
	h, err := newHost(ctx, store, home)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// one checks that a log is one conversation: every record follows the one before,
// and every turn ends before the next begins.
func one(t *testing.T, home string) (prompts int) {
	t.Helper()
	store, err := filelog.New(filelog.Config{Home: home})
	if err != nil {
		t.Fatal(err)
	}
	log, damage, err := store.Open(t.Context(), sessionID)
	if err != nil || len(damage) > 0 {
		t.Fatal(err, damage)
	}
	defer log.Close()
	last, open := "", false
	for rec, err := range log.Read(0) {
		if err != nil {
			t.Fatal(err)
		}
		e, err := event.Decode(rec.Line)
		if err != nil {
			t.Fatal(err)
		}
		if e.Private() {
			continue
		}
		if e.ParentID != last {
			t.Fatalf("%s %s follows %s, not the record before it, %s", e.Type, e.ID, e.ParentID, last)
		}
		last = e.ID
		switch e.Type {
		case event.TypeUserMessage:
			prompts++
			if open {
				t.Fatal("a turn begins within another")
			}
		case event.TypeTurnStart:
			open = true
		case event.TypeTurnEnd:
			open = false
		}
	}
	return prompts
}

// TestContention: several processes give one session prompts at the same time. Each
// prompt has its turn, once, and the log is one conversation.
func TestContention(t *testing.T) {
	home := t.TempDir()
	first := startPeer(t, home)
	first.want("create", "ok")
	first.want("say «first»", "ok")
	peers := []*peer{first, startPeer(t, home), startPeer(t, home)}
	var wg sync.WaitGroup
	for i, p := range peers {
		wg.Go(func() {
			if got := p.ask(fmt.Sprintf("compete p%d", i)); got != "ok" {
				t.Error(got)
			}
		})
	}
	wg.Wait()
	if n := one(t, home); n != 1+len(peers)*turnsEach {
		t.Errorf("%d prompts are in the log, not %d", n, 1+len(peers)*turnsEach)
	}
}

// TestStopped: a process that is stopped in the middle of its work keeps others from
// it, and names itself; nothing hangs. One that is stopped while idle is in nobody's
// way, and finds out when it goes on.
func TestStopped(t *testing.T) {
	home := t.TempDir()
	p, h := startPeer(t, home), here(t, home)
	p.want("create", "ok")
	p.want("say «one»", "ok")
	p.want("send «wait»", "ok")
	p.signal(syscall.SIGSTOP)
	err := h.resume(true)
	if transom.KindOf(err) != transom.KindConflict || !strings.Contains(err.Error(), fmt.Sprint(p.cmd.Process.Pid)) {
		t.Fatalf("the session of a stopped process at work: %v", err)
	}
	if err := h.rt.DeleteSession(h.ctx, sessionID); transom.KindOf(err) != transom.KindConflict {
		t.Fatalf("it was deleted: %v", err)
	}
	p.signal(syscall.SIGCONT)
	p.kill() // in the middle of the call: a dead process is in nobody's way
	if err := h.resume(false); err != nil {
		t.Fatal(err)
	}
	if err := h.say("«two»"); err != nil {
		t.Fatal(err)
	}

	q := startPeer(t, home)
	q.want("resume on", "ok")
	q.want("say «three»", "ok")
	q.signal(syscall.SIGSTOP)
	if err := h.s.Close(h.ctx); err != nil {
		t.Fatal(err)
	}
	if err := h.resume(true); err != nil {
		t.Fatalf("the session of a stopped process that is idle: %v", err)
	}
	if err := h.say("«four»"); err != nil {
		t.Fatal(err)
	}
	q.signal(syscall.SIGCONT)
	q.want("say «lost»", string(transom.KindConflict), "taken over", "resume")
	q.want("resume on", "ok")
	q.want("say «five»", "ok")
	q.want("end", "ok")
	if err := h.end(); err != nil {
		t.Fatal(err)
	}
	if n := one(t, home); n != 6 {
		t.Errorf("%d prompts are in the log", n)
	}
}

// TestDeadHolder: a process that is killed, at work or not, is in nobody's way, and
// its number says nothing: another process may have it by now.
func TestDeadHolder(t *testing.T) {
	home := t.TempDir()
	path := filepath.Join(home, "session-state", sessionID, "events.jsonl")
	epoch := regexp.MustCompile(`("type":"transom.epoch","data":\{"pid":)\d+`)
	begin := "create"
	for i, pid := range []int{0, os.Getpid(), 1, os.Getppid()} {
		p := startPeer(t, home)
		p.want(begin, "ok")
		begin = "resume off"
		p.want(fmt.Sprintf("say «a%d»", i), "ok")
		p.want("send «wait»", "ok")
		p.kill()
		if pid != 0 {
			raw, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !epoch.Match(raw) {
				t.Fatal("no record tells of the process")
			}
			raw = epoch.ReplaceAll(raw, fmt.Appendf(nil, "${1}%d", pid))
			if err := os.WriteFile(path, raw, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		h := here(t, home)
		begun := time.Now()
		if err := h.resume(i%2 == 0); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took > watchdog/2 {
			t.Errorf("the resume took %v", took)
		}
		if other, err := h.rt.InUse(sessionID); err != nil || other {
			t.Errorf("in use by a dead process: %v, %v", other, err)
		}
		if i%2 == 0 {
			if err := h.s.Abort(h.ctx); err != nil { // the call waits for its host again
				t.Fatal(err)
			}
		}
		if err := errors.Join(h.say(fmt.Sprintf("«b%d»", i)), h.end()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestClocks: what clocks say decides nothing. A log of the future and one of long
// ago are taken up, and go on with the time that it is.
func TestClocks(t *testing.T) {
	stamp := regexp.MustCompile(`"timestamp":"[^"]*"`)
	for _, at := range []time.Time{time.Unix(0, 0), time.Now().AddDate(70, 0, 0)} {
		home := t.TempDir()
		h := here(t, home)
		if err := says("«one»", "«clear»")(h); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(home, "session-state", sessionID, "events.jsonl")
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		raw = stamp.ReplaceAll(raw, []byte(`"timestamp":"`+at.UTC().Format(event.TimeFormat)+`"`))
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
		h = here(t, home)
		if err := errors.Join(h.resume(true), h.say("«two»")); err != nil {
			t.Fatal(err)
		}
		list, err := h.rt.Sessions(h.ctx)
		if err != nil || len(list) != 1 || time.Since(list[0].Modified).Abs() > time.Hour {
			t.Errorf("listed as %+v, %v", list, err)
		}
		if err := h.end(); err != nil {
			t.Fatal(err)
		}
		one(t, home)
	}
}
