package extension

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func put(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	b := put(t, filepath.Join(dir, "b", "extension.mjs"), "")
	put(t, filepath.Join(dir, "b", "extension.js"), "")
	a := put(t, filepath.Join(dir, "a", "extension.js"), "")
	put(t, filepath.Join(dir, "none", "other.mjs"), "")
	out := put(t, filepath.Join(t.TempDir(), "extension.mjs"), "")
	for link, to := range map[string]string{"linked": filepath.Dir(out), filepath.Join("none", "extension.mjs"): out} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	want := []Extension{{"project:a", "a", "project", a}, {"project:b", "b", "project", b}}
	if diff := cmp.Diff(want, Find(dir, "project")); diff != "" {
		t.Error(diff)
	}
	if got := Find(filepath.Join(dir, "nowhere"), "user"); got != nil {
		t.Errorf("%v", got)
	}
}

// The host's SDK is what the extension imports; one that does not heed the end of
// its connection is ended all the same, within the time that it has.
func TestStart(t *testing.T) {
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("extensions are run by node, which is not installed here")
	}
	dir := t.TempDir()
	put(t, filepath.Join(dir, "the sdk", "package.json"), `{"type":"module"}`)
	put(t, filepath.Join(dir, "the sdk", "extension.js"), "export const name = 'host';")
	put(t, filepath.Join(dir, "the sdk", "index.js"), "export const index = 'index';")
	file := put(t, filepath.Join(dir, "extension.mjs"), `
import { name } from "@github/copilot-sdk/extension";
import { index } from "@github/copilot-sdk";
process.on("SIGTERM", () => {});
setInterval(() => {}, 1000);
console.error("to the log");
process.stdout.write(name + " " + index + " " + process.env.SESSION_ID + " " + process.env.SECRET + "\n");
`)
	t.Setenv("SECRET", "not for it")
	logged := make(chan string, 9)
	p, err := Start(Config{
		Extension: Extension{ID: "project:x", File: file}, SessionID: "s", Dir: dir, SDK: filepath.Join(dir, "the sdk"),
		Environ: []string{"PATH=" + os.Getenv("PATH")}, Log: func(line string) { logged <- line },
	})
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(p).ReadString('\n')
	if line != "host index s undefined\n" || err != nil {
		t.Errorf("%q, %v", line, err)
	}
	if got := <-logged; got != "to the log" {
		t.Errorf("logged %q", got)
	}
	ended := make(chan struct{})
	go func() { p.Close(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(2 * time.Minute):
		t.Fatal("it does not end")
	}
	if p.cmd.ProcessState == nil {
		t.Error("nobody waited for it")
	}
	p.Close() // once more is fine
}

// TestHoldsSDK: a directory without the SDK's files is none.
func TestHoldsSDK(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"", "index.js", "extension.js"} {
		if holdsSDK(dir) {
			t.Errorf("it has the SDK before %q was there", name)
		}
		if name != "" {
			if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if !holdsSDK(dir) {
		t.Error("it has the SDK, and is passed over")
	}
}
