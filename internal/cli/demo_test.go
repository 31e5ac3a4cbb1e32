package cli

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var rewrite = flag.Bool("rewrite", false, "write the expected outputs anew")

const demoFile = "testdata/demo.txt"

func TestDemo(t *testing.T) {
	home := t.TempDir()
	r := run(t, "", "demo", "--home", home)
	r.want(t, CodeOK)
	if r.err != "" {
		t.Errorf("stderr: %q", r.err)
	}
	got := demoIDs.ReplaceAllString(strings.ReplaceAll(r.out, shellWord(home), "HOME"), "ID")
	got = demoSelf.ReplaceAllString(got, "  transom sessions show")
	if *rewrite {
		if err := os.WriteFile(demoFile, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(string(read(t, demoFile)), got); diff != "" {
		t.Errorf("the demo says something else (-rewrite accepts it): %s", diff)
	}

	// What the demo promises at its end holds.
	path := regexp.MustCompile(`(?m)^  (/.*events\.jsonl)$`).FindStringSubmatch(r.out)
	if path == nil || len(read(t, path[1])) == 0 {
		t.Errorf("no log is named in %s", r.out)
	}
	run(t, "", "sessions", "show", "--home", home).want(t, CodeOK, "Window 2", "in_season", "Ines does")
}

var (
	demoIDs  = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}`)
	demoSelf = regexp.MustCompile(`(?m)^  .* sessions show`)
)

func TestDemoWithoutHomeMakesOne(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	r := run(t, "", "demo")
	r.want(t, CodeOK, "rm -r "+filepath.Join(os.Getenv("TMPDIR"), "transom-demo-"))
}

func TestDemoSaysWhyNot(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, "", "demo", "--home", file).want(t, CodeFailed, "the demo did not work", file)
	run(t, "", "demo", "extra").want(t, CodeUsage, "takes no arguments")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	runContext(t, ctx, strings.NewReader(""), "demo", "--home", t.TempDir()).want(t, CodeAborted)
}
