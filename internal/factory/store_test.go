package factory

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func clock() func() time.Time {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return func() time.Time { at = at.Add(time.Second); return at }
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A run over two attempts and a restart: what was done stays done.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	s := New(dir, clock())
	check(t, s.Create("r1", Meta{Name: "build", Phases: []Phase{{Title: "one"}}}, json.RawMessage(`{"a":1}`)))
	n, err := s.Begin("r1")
	check(t, err)
	check(t, s.Log("r1", n, []Line{{Kind: "phase", Text: "one"}, {Kind: "log", Text: "hello"}}))
	check(t, s.Put("r1", n, "step", json.RawMessage(`[1]`)))
	if err := s.Put("r1", n+1, "step", nil); !errors.Is(err, ErrStale) {
		t.Errorf("another attempt: %v", err)
	}
	if err := s.Log("r2", n, nil); !errors.Is(err, ErrUnknown) {
		t.Errorf("another run: %v", err)
	}

	s = New(dir, clock()) // the process was killed
	r, err := s.Read("r1")
	check(t, err)
	if r.Status != Halted || r.Reason == "" || r.Attempt != 1 || r.Phase() != "one" || string(r.Args) != `{"a":1}` || s.Running("r1") {
		t.Errorf("%+v", r)
	}
	if err := s.Put("r1", 1, "late", nil); !errors.Is(err, ErrStale) {
		t.Errorf("an attempt of the killed process: %v", err)
	}
	n, err = s.Begin("r1")
	check(t, err)
	if n != 2 || !s.Running("r1") || s.Actives() != 1 {
		t.Errorf("attempt %d, %d active", n, s.Actives())
	}
	v, hit, err := s.Get("r1", n, "step")
	if err != nil || !hit || string(v) != `[1]` {
		t.Errorf("%s, %v, %v", v, hit, err)
	}
	check(t, s.Log("r1", n, []Line{{Kind: "log", Text: "again"}}))
	check(t, s.Settle("r1", n, Outcome{Status: Completed, Result: json.RawMessage(`"done"`)}))
	if err := s.Settle("r1", n, Outcome{Status: Failed}); !errors.Is(err, ErrStale) {
		t.Errorf("settled twice: %v", err)
	}
	list, err := New(dir, clock()).List()
	check(t, err)
	if len(list) != 1 || list[0].Status != Completed || string(list[0].Result) != `"done"` || !list[0].Over() {
		t.Errorf("%+v", list)
	}
	var lines []string
	for i, l := range list[0].Lines {
		if l.Seq != int64(i) {
			t.Errorf("line %d has number %d", i, l.Seq)
		}
		lines = append(lines, l.Phase+" "+l.Text)
	}
	if diff := cmp.Diff([]string{"one one", "one hello", "one again"}, lines); diff != "" {
		t.Error(diff)
	}
}

// A file that ends anywhere reads as a run, and goes on from there.
func TestTornFile(t *testing.T) {
	dir := t.TempDir()
	s := New(dir, clock())
	check(t, s.Create("r", Meta{Name: "f"}, nil))
	n, err := s.Begin("r")
	check(t, err)
	check(t, s.Put("r", n, "a", json.RawMessage(`1`)))
	check(t, s.Settle("r", n, Outcome{Status: Failed, Error: "e"}))
	whole, err := os.ReadFile(filepath.Join(dir, "r.jsonl"))
	check(t, err)
	for cut := range len(whole) {
		part := t.TempDir()
		check(t, os.WriteFile(filepath.Join(part, "r.jsonl"), whole[:cut], 0o600))
		s := New(part, clock())
		r, err := s.Read("r")
		if errors.Is(err, ErrUnknown) {
			continue // not even the first line
		}
		check(t, err)
		if r.Status == Running || r.Status == Pending {
			t.Fatalf("cut at %d: %s", cut, r.Status)
		}
		n, err := s.Begin("r")
		check(t, err)
		check(t, s.Settle("r", n, Outcome{Status: Completed}))
		if r, err = New(part, clock()).Read("r"); err != nil || r.Status != Completed {
			t.Fatalf("cut at %d, gone on: %s, %v", cut, r.Status, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"k":"run","run":"r","meta":{"name":"f"}}` + "\n" + `{"k":"attempt","attempt":1}` + "\n" + `{"k":"end","outcome":{"status":"error"}}` + "\n"))
	f.Add([]byte(`{"k":"lines","lines":[{"kind":"phase","text":"x"}]}` + "\n{"))
	f.Add([]byte("\n\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, good := parse(raw)
		if good > len(raw) {
			t.Errorf("%d of %d bytes", good, len(raw))
		}
		again, n := parse(raw[:good])
		if n != good || again.ID != r.ID || again.Status != r.Status {
			t.Errorf("the good part reads otherwise: %d, %+v, %+v", n, r, again)
		}
	})
}
