//go:build linux

package durability

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/eventlog/filelog"
)

var huge = flag.Int("durability.huge", 0, "size of a log to resume, in MB; 0: none")

// writeHuge makes the log of a session of many turns with a tool call each, and a
// clear near its end. It returns the number of records.
func writeHuge(path string, size int) (records int, err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return 0, err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, err
	}
	out := bufio.NewWriterSize(f, 1<<20)
	at, parent, written := time.Now().Add(-time.Hour), "", 0
	put := func(p event.Payload) {
		records++
		id := fmt.Sprintf("00000000-0000-4000-8000-%012d", records)
		e, e2 := event.New(p, id, parent, at)
		if e2 != nil && err == nil {
			err = e2
			return
		}
		parent = id
		_, _ = out.Write(append(e.Line, '\n')) // an error stays until Flush
		written += len(e.Line) + 1
	}
	put(event.SessionStart{SessionID: sessionID, Version: 1, Producer: "transom", StartTime: at.UTC().Format(time.RFC3339Nano), SelectedModel: "m"})
	result := strings.Repeat("a line of what a tool has printed\n", 256)
	turn := func(n int) {
		in, call := fmt.Sprint("i", n), fmt.Sprint("call", n)
		put(event.UserMessage{Content: fmt.Sprint("«turn ", n, "»"), MessageID: fmt.Sprint("m", n), Delivery: "idle", InteractionID: in, TurnID: "0"})
		put(event.TurnStart{TurnID: "0", InteractionID: in})
		put(event.AssistantMessage{MessageID: fmt.Sprint("a", n), InteractionID: in, TurnID: "0", ToolRequests: []event.ToolRequest{{ToolCallID: call, Name: "probe", Arguments: []byte("{}"), Type: "function"}}})
		put(event.ToolStart{ToolCallID: call, ToolName: "probe", Arguments: []byte("{}"), TurnID: "0"})
		put(event.ToolComplete{ToolCallID: call, InteractionID: in, TurnID: "0", Success: true, Result: &event.ToolResult{Content: result}})
		put(event.TurnEnd{TurnID: "0"})
		put(event.TurnStart{TurnID: "1", InteractionID: in})
		put(event.AssistantMessage{MessageID: fmt.Sprint("b", n), InteractionID: in, TurnID: "1", Content: "done", ToolRequests: []event.ToolRequest{}})
		put(event.TurnEnd{TurnID: "1"})
	}
	n := 0
	for ; written < size*995/1000; n++ {
		turn(n)
	}
	put(event.ContextCleared{MessagesCleared: 4 * n, InitialMessage: "«seed»"})
	for end := n + 20; n < end; n++ {
		turn(n)
	}
	if err == nil {
		err = out.Flush()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	return records, err
}

// memory returns how much memory of its own a process has, and has had at most.
func memory(t *testing.T, pid int) (now, peak float64) {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		kb, _ := strconv.ParseFloat(f[1], 64)
		switch f[0] {
		case "VmHWM:":
			peak = kb / 1024
		case "VmRSS:":
			now = kb / 1024
		}
	}
	return now, peak
}

// TestHuge resumes a long log in another process: without its checkpoint, from the
// last clear; and with it.
func TestHuge(t *testing.T) {
	size, limit := *huge, 300.0
	if size == 0 {
		size, limit = 24, 100 // CI: that what was cleared is in nobody's memory
	}
	home := t.TempDir()
	path := filepath.Join(home, "session-state", sessionID, "events.jsonl")
	records, err := writeHuge(path, size<<20)
	if err != nil {
		t.Fatal(err)
	}
	for _, way := range []string{"without a checkpoint", "with one"} {
		p := startPeer(t, home)
		p.want("nothing", "ok") // it has begun
		base, _ := memory(t, p.cmd.Process.Pid)
		begun := time.Now()
		p.want("resume off", "ok") // going on, this host would read the whole history
		took := time.Since(begun)
		_, peak := memory(t, p.cmd.Process.Pid)
		t.Logf("%d MB, %d records, %s: resumed in %v, %.0f MiB at most, %.0f before", size, records, way, took.Round(time.Millisecond), peak, base)
		if peak-base > limit {
			t.Errorf("%s: the resume took %.0f MiB", way, peak-base)
		}
		limit = 30
		p.want("say «next»", "ok")
		p.want("end", "ok")
	}
}

// onProcessor is the processor time of this process so far.
func onProcessor() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestManySessions lists many stored sessions, from their first and last records
// alone.
func TestManySessions(t *testing.T) {
	n := 200
	if *huge > 0 {
		n = 10_000
	}
	home := t.TempDir()
	h := here(t, home)
	if err := says("«one»", "«batch»", "«clear»")(h); err != nil {
		t.Fatal(err)
	}
	one := filepath.Join(home, "session-state", sessionID)
	raw, err := os.ReadFile(filepath.Join(one, "events.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range n - 1 {
		dir := filepath.Join(home, "session-state", fmt.Sprint("s", i))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "events.jsonl"), raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	store, err := filelog.New(filelog.Config{Home: home})
	if err != nil {
		t.Fatal(err)
	}
	rt, err := transom.Open(transom.Config{Store: store, Provider: h.model})
	if err != nil {
		t.Fatal(err)
	}
	begun, before := time.Now(), onProcessor()
	list, err := rt.Sessions(context.Background())
	if err != nil || len(list) != n || list[0].Title != "«one»" {
		t.Fatalf("%d sessions, %v", len(list), err)
	}
	took := time.Since(begun)
	t.Logf("%d sessions listed in %v, %v of them on a processor", n, took.Round(time.Millisecond), (onProcessor() - before).Round(time.Millisecond))
	if err := rt.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if err := store.Close(); err != nil {
		t.Error(err)
	}
}
