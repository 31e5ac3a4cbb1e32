package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The floors: what a turn cannot do without, whatever runtime makes it.

func TestMain(m *testing.M) {
	if os.Getenv("BENCH_ECHO") != "" {
		io.Copy(os.Stdout, os.Stdin)
		return
	}
	os.Exit(m.Run())
}

// BenchmarkPipe is a line to a child process and back.
func BenchmarkPipe(b *testing.B) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "BENCH_ECHO=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	defer func() { in.Close(); cmd.Wait() }()
	line := append(bytes.Repeat([]byte("x"), 1000), '\n')
	r := bufio.NewReader(out)
	for b.Loop() {
		if _, err := in.Write(line); err != nil {
			b.Fatal(err)
		}
		if _, err := r.ReadSlice('\n'); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkModel is a request to the scripted model server and its answer, over
// a connection that is open.
func BenchmarkModel(b *testing.B) {
	m, err := serveModel()
	if err != nil {
		b.Fatal(err)
	}
	defer m.close()
	body, _ := json.Marshal(map[string]any{"model": "bench", "messages": []any{map[string]any{"role": "user", "content": "say hello"}}})
	for b.Loop() {
		r, err := http.Post(m.url+"/chat/completions", "application/json", bytes.NewReader(body))
		if err != nil {
			b.Fatal(err)
		}
		io.Copy(io.Discard, r.Body)
		r.Body.Close()
	}
}

// BenchmarkWrite appends four records' worth of bytes to a file, as a turn does.
func BenchmarkWrite(b *testing.B) {
	f, err := os.OpenFile(filepath.Join(b.TempDir(), "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	record := bytes.Repeat([]byte("x"), 1000)
	for b.Loop() {
		for range 4 {
			if _, err := f.Write(record); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkSync is what a clear waits for: a record on the disk.
func BenchmarkSync(b *testing.B) {
	f, err := os.OpenFile(filepath.Join(b.TempDir(), "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	record := bytes.Repeat([]byte("x"), 1000)
	for b.Loop() {
		if _, err := f.Write(record); err != nil {
			b.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			b.Fatal(err)
		}
	}
}

// TestScenariosAreNamedOnce: -only picks by name.
func TestScenariosAreNamedOnce(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range scenarios {
		if seen[s.name] || s.says == "" || s.run == nil {
			t.Errorf("scenario %q is incomplete, or stands twice", s.name)
		}
		seen[s.name] = true
	}
	if got := choose("turn,clear"); len(got) != 2 || got[0].name != "turn" {
		t.Errorf("turn,clear chose %v", got)
	}
	for _, s := range choose("") {
		if s.asked {
			t.Errorf("%s runs unasked", s.name)
		}
	}
}
