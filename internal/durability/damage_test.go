package durability

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/eventlog/filelog"
)

// whole makes the log and the checkpoint of a session with a clear in it.
func whole(t *testing.T) (log, checkpoint []byte) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	home := t.TempDir()
	store, err := filelog.New(filelog.Config{Home: home})
	if err != nil {
		t.Fatal(err)
	}
	h, err := newHost(ctx, store, home)
	if err == nil {
		err = says("«one»", "«batch»", "«clear»", "«two»")(h)
	}
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(home, "session-state", sessionID)
	if log, err = os.ReadFile(filepath.Join(dir, "events.jsonl")); err != nil {
		t.Fatal(err)
	}
	if checkpoint, err = os.ReadFile(filepath.Join(dir, "transom.checkpoint")); err != nil {
		t.Fatal(err)
	}
	return log, checkpoint
}

// outcome is what a resume of a log led to.
type outcome struct {
	warnings []string
	window   []string // the last request's messages of users
	log      []byte
}

// takeUp resumes a log in a home of its own and gives it a prompt.
func takeUp(t *testing.T, home string, log, checkpoint []byte) (o outcome, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	dir := filepath.Join(home, "session-state", sessionID)
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "events.jsonl"), log, 0o600)); err != nil {
		t.Fatal(err)
	}
	if checkpoint != nil {
		if err := os.WriteFile(filepath.Join(dir, "transom.checkpoint"), checkpoint, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	store, err := filelog.New(filelog.Config{Home: home})
	if err != nil {
		t.Fatal(err)
	}
	h, err := newHost(ctx, store, home)
	if err != nil {
		t.Fatal(err)
	}
	if err = h.resume(true); err == nil {
		err = h.say("«final»")
	}
	if err = errors.Join(err, h.end()); err != nil {
		return o, err
	}
	journal, err := os.ReadFile(filepath.Join(home, "journal"))
	if err != nil || bytes.Contains(journal, []byte("broken")) {
		t.Fatalf("%s, %v", journal, err)
	}
	if o.log, err = os.ReadFile(filepath.Join(dir, "events.jsonl")); err != nil {
		return o, err
	}
	for line := range bytes.Lines(o.log) {
		e, err := event.Decode(bytes.TrimSpace(line))
		if err != nil {
			continue // the rest of a line that was there
		}
		if e.Type == event.TypeSessionWarning {
			if p, err := event.As[event.SessionWarning](e); err == nil {
				o.warnings = append(o.warnings, p.Message)
			}
		}
	}
	for _, m := range h.model.last().Messages {
		if m.Role == "user" {
			o.window = append(o.window, m.Text)
		}
	}
	return o, nil
}

// sees checks what the model was sent, by the marks of its messages.
func (o outcome) sees(t *testing.T, marks ...string) {
	t.Helper()
	ok := len(o.window) == len(marks)
	for i := range min(len(marks), len(o.window)) {
		ok = ok && strings.Contains(o.window[i], marks[i])
	}
	if !ok {
		t.Errorf("the model sees %q, want %q", o.window, marks)
	}
}

// TestCutAnywhere cuts a log at bytes of its last records, with -durability.full at
// every one of the last record: what was whole before the cut is there, and what
// follows is a log again.
func TestCutAnywhere(t *testing.T) {
	log, _ := whole(t)
	home := t.TempDir()
	last := bytes.LastIndexByte(log[:len(log)-1], '\n') + 1
	for cut := len(log); cut > len(log)/3; cut-- {
		switch {
		case cut < last:
			cut -= 192 // records before the last: at some bytes
		case !*full && cut < len(log)-3:
			cut -= 16
		}
		kept := log[:bytes.LastIndexByte(log[:cut], '\n')+1]
		torn := cut > len(kept) && !json.Valid(log[len(kept):cut]) // a record may lack its line feed alone
		o, err := takeUp(t, home, log[:cut], nil)
		if err != nil {
			t.Fatalf("cut at %d of %d: %v", cut, len(log), err)
		}
		if !bytes.HasPrefix(o.log, kept) {
			t.Fatalf("cut at %d of %d: what was before it has changed", cut, len(log))
		}
		if told := slices.ContainsFunc(o.warnings, func(w string) bool { return strings.Contains(w, "torn") }); told != torn {
			t.Errorf("cut at %d of %d: warned of %q", cut, len(log), o.warnings)
		}
		for line := range bytes.Lines(o.log) {
			if _, err := event.Decode(bytes.TrimSpace(line)); err != nil {
				t.Fatalf("cut at %d of %d: the log holds %q: %v", cut, len(log), line, err)
			}
		}
	}
}

// TestDamage takes up logs that are damaged in other ways: each says what was
// dropped and where, and goes on with the rest.
func TestDamage(t *testing.T) {
	log, checkpoint := whole(t)
	lines := bytes.SplitAfter(log, []byte("\n"))
	lines = lines[:len(lines)-1]
	find := func(typ string, from int) int {
		for i := from; i < len(lines); i++ {
			if bytes.Contains(lines[i], []byte(`{"type":"`+typ+`"`)) {
				return i
			}
		}
		t.Fatalf("no %s", typ)
		return 0
	}
	join := func(parts ...[][]byte) []byte { return bytes.Join(slices.Concat(parts...), nil) }
	bad := [][]byte{[]byte("{\"type\":\"us\n")}
	foreign := [][]byte{[]byte(`{"type":"other.program","id":"x","timestamp":"2020-01-01T00:00:00Z","data":{"a":[1]},"extra":true}` + "\n")}
	glued := [][]byte{bytes.TrimSuffix(lines[2], []byte("\n"))}
	clear := find(event.TypeContextCleared, 0)
	call := find(event.TypeToolComplete, 0)
	back := 0 // where the prompt behind the batch begins
	for range 3 {
		back = find(event.TypeUserMessage, back+1)
	}
	after := []string{"«seed»", "«two»", "«final»"}
	for _, c := range []struct {
		name       string
		log        []byte
		checkpoint []byte
		warns      string // "" is no warning
		sees       []string
	}{
		{"whole", log, nil, "", after},
		{"with its checkpoint", log, checkpoint, "", after},
		{"a checkpoint of rubbish", log, []byte("rubbish\n\x00\xff"), "", after},
		{"a checkpoint of nothing", log, []byte{}, "", after},
		{"a checkpoint cut short", log, checkpoint[:len(checkpoint)/2], "", after},
		{"a checkpoint of another log", join(lines[:clear]), checkpoint, "", []string{"«seed»", "«final»"}}, // the call that clears waits for its host
		{"NUL tail", append(slices.Clone(log), make([]byte, 1700)...), checkpoint, "tail of NUL bytes (1700 bytes)", after},
		{"bad line", join(lines[:5], bad, lines[5:]), nil, "line 6: not a JSON object", after},
		{"bad lines", join(lines[:5], bad, lines[5:8], bad, lines[8:]), nil, "line 10: not a JSON object", after},
		{"NUL bytes before a record", join(lines[:5], [][]byte{{0, 0, 0}}, lines[5:]), nil, "line 6: NUL bytes (3 bytes)", after},
		{"two records on a line", join(lines[:2], glued, lines[3:]), nil, "", after},
		{"CRLF", bytes.ReplaceAll(log, []byte("\n"), []byte("\r\n")), nil, "", after},
		{"foreign events", join(lines[:5], foreign, lines[5:], foreign), nil, "", after},
		{"a record without a type", join(lines[:5], [][]byte{[]byte("{\"id\":\"x\"}\n")}, lines[5:]), nil, "has no type", after},
		{"a clear that cannot be read", join(lines[:clear], bad, lines[clear+1:]), nil, fmt.Sprintf("line %d: not a JSON object", clear+1), after},
		{"a result that is missing", join(lines[:call], lines[call+1:]), nil, "", after},
		{"the window's result is missing", join(lines[:call], lines[call+1:clear]), nil, "the results of some tool calls (1)", []string{"«seed»", "«final»"}},
		{"a result that the conversation has gone past is missing", join(lines[:call], lines[call+1:back]), nil, "the results of some tool calls (1)", []string{"«one»", "«batch»", "«final»"}},
		{"a call is the last record", join(lines[:call]), nil, "", []string{"«one»", "«batch»", "«final»"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o, err := takeUp(t, t.TempDir(), c.log, c.checkpoint)
			if err != nil {
				t.Fatal(err)
			}
			o.sees(t, c.sees...)
			told := strings.Join(o.warnings, "\n")
			if c.warns == "" && told != "" || !strings.Contains(told, c.warns) {
				t.Errorf("warned of %q, want %q", told, c.warns)
			}
		})
	}
}
