package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/transom-run/transom/eventlog/filelog"
)

// TestVerifyAndRepair: what is wrong with a log is said, and mended without losing
// the old log.
func TestVerifyAndRepair(t *testing.T) {
	home := t.TempDir()
	run(t, "", "sessions", "verify", "--home", home).want(t, CodeOK)
	clearedSession(t, home, "one")
	clearedSession(t, home, "two")
	run(t, "", "sessions", "verify", "--home", home).want(t, CodeOK, "ok       one  24 records", "ok       two  24 records")

	path := filepath.Join(home, "session-state", "one", "events.jsonl")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(whole, []byte("\n"))
	damaged := bytes.Join([][]byte{
		bytes.Join(lines[:3], nil), []byte("{\"broken\n"), []byte("{\"no\":\"type\"}\n"), bytes.Join(lines[3:], nil), []byte(`{"torn":`),
	}, nil)
	if err := os.WriteFile(path, damaged, 0o600); err != nil {
		t.Fatal(err)
	}
	r := run(t, "", "sessions", "verify", "--home", home)
	r.want(t, CodeFailed, "damaged  one  24 records", "line 4, byte", "not a JSON object, 8 bytes: passed over",
		"has no type, 14 bytes: passed over", "torn last record, 8 bytes: cut off by the next append", "ok       two", "1 log of 2 is damaged")
	var v finding
	told := []byte(run(t, "", "sessions", "verify", "o", "--json", "--home", home).out)
	if err := json.Unmarshal(told, &v); err != nil {
		t.Fatal(err)
	}
	var named struct {
		RecordBytes int
		Damage      []struct{ Offset, Length int }
	}
	if err := json.Unmarshal(told, &named); err != nil || len(named.Damage) != 3 {
		t.Fatalf("%s: %v", told, err)
	}
	lost := 0
	for i, d := range named.Damage {
		lost += d.Length
		if want := []string{"{\"broken\n", "{\"no\":\"type\"}\n", `{"torn":`}[i]; !strings.HasPrefix(string(damaged[d.Offset:]), want) {
			t.Errorf("damage %d is said to begin at %q", i, damaged[d.Offset:])
		}
	}
	if named.RecordBytes != len(whole) || named.RecordBytes+lost > len(damaged) {
		t.Errorf("%d bytes are said to be records and %d damage, of %d", named.RecordBytes, lost, len(damaged))
	}
	if v.OK || v.ID != "one" || v.Records != 24 || len(v.Damage) != 3 || v.Damage[0].Line != 4 || !v.Damage[2].Tail || v.Checkpoint != "none" || v.InUse {
		t.Errorf("%+v", v)
	}

	// A copy leaves all as it is.
	to := filepath.Join(t.TempDir(), "mended")
	run(t, "", "sessions", "repair", "one", "--to", to, "--home", home).want(t, CodeOK, "left out, line 4: not a JSON object (8 bytes)", "25 records")
	if raw, _ := os.ReadFile(path); !bytes.Equal(raw, damaged) {
		t.Error("the log was changed")
	}
	run(t, "", "sessions", "repair", "one", "--to", to, "--home", home).want(t, CodeFailed, "exists")

	// A session that is open is left alone.
	store, err := filelog.New(filelog.Config{Home: home})
	if err != nil {
		t.Fatal(err)
	}
	hold, err := store.Hold("one")
	if err != nil {
		t.Fatal(err)
	}
	run(t, "", "sessions", "repair", "one", "--home", home).want(t, CodeInUse, "close it there first")
	if err := hold.Release(); err != nil {
		t.Fatal(err)
	}

	r = run(t, "", "sessions", "repair", "one", "--home", home)
	r.want(t, CodeOK, "left out, ", "one: mended, 25 records", "the old log is kept in events.jsonl.2")
	kept, err := filepath.Glob(path + ".*.damaged")
	if err != nil || len(kept) != 1 {
		t.Fatalf("kept %v, %v", kept, err)
	}
	if raw, _ := os.ReadFile(kept[0]); !bytes.Equal(raw, damaged) {
		t.Error("the old log was not kept")
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(whole), strings.Replace(string(raw), "{\"no\":\"type\"}\n", "", 1)); diff != "" {
		t.Errorf("mended (-want +got):\n%s", diff)
	}
	run(t, "", "sessions", "repair", "two", "--home", home).want(t, CodeOK, "two: 24 records", "nothing to mend")
	run(t, "", "sessions", "repair", "--home", home).want(t, CodeUsage, "which session?")
	run(t, "", "sessions", "repair", "nobody", "--home", home).want(t, CodeNotFound)
}
