package eventlog

import (
	"errors"
	"strings"
	"testing"
)

func TestTexts(t *testing.T) {
	for want, got := range map[string]string{
		"line 7: not a JSON object (12 bytes)":             Damage{Line: 7, Pos: 99, Bytes: 12, Reason: "not a JSON object"}.String(),
		"at byte 99: torn last record (12 bytes)":          Damage{Pos: 99, Bytes: 12, Reason: "torn last record"}.String(),
		"unreadable record at line 1: NUL bytes (3 bytes)": (&DamageError{Damage{Line: 1, Bytes: 3, Reason: "NUL bytes"}}).Error(),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if s := (&HeldError{SessionID: "s", PID: 42}).Error(); !strings.Contains(s, "process 42") {
		t.Error(s)
	}
	if s := (&HeldError{SessionID: "s"}).Error(); !strings.Contains(s, "another process") {
		t.Error(s)
	}
}

func FuzzCheckID(f *testing.F) {
	for _, id := range []string{"", ".", "a", "con.txt", "é\xff", "a/b", strings.Repeat("é", 200)} {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, id string) {
		err := CheckID(id)
		if err != nil && !errors.Is(err, ErrInvalidID) {
			t.Fatalf("%q: %v", id, err)
		}
		if err == nil && (id == "" || len(id) > 255 || id[0] == '.' || strings.ContainsAny(id, "/\\\x00\n")) {
			t.Fatalf("%q was taken", id)
		}
	})
}
