package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const root = "../../"

// block returns the README's fenced block of a language that contains a text.
func block(t *testing.T, language, contains string) string {
	t.Helper()
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(string(read(t, root+"README.md")), -1) {
		if strings.Contains(m[1], contains) {
			return m[1]
		}
	}
	t.Fatalf("the README has no %s block with %q", language, contains)
	return ""
}

// What the README shows of the demo is what the demo prints.
func TestREADMEQuotesTheDemo(t *testing.T) {
	quoted := block(t, "text", "Window 1")
	home := regexp.MustCompile(`/tmp/transom-demo-\d+`)
	quoted = regexp.MustCompile(`(?m)^  rm -r HOME\n`).ReplaceAllString(home.ReplaceAllString(quoted, "HOME"), "")
	quoted = demoSelf.ReplaceAllString(demoIDs.ReplaceAllString(quoted, "ID"), "  transom sessions show")
	if diff := cmp.Diff(string(read(t, demoFile)), quoted); diff != "" {
		t.Error(diff)
	}
}

// What the README shows of the Go API is part of an example that runs.
func TestREADMEQuotesTheExample(t *testing.T) {
	left := regexp.MustCompile(`(?m)^\t+`)
	example := left.ReplaceAllString(string(read(t, root+"example_test.go")), "")
	quoted := left.ReplaceAllString(block(t, "go", "ClearContext"), "")
	if !strings.Contains(example, quoted) {
		t.Errorf("example_test.go does not contain this block of the README:\n%s", quoted)
	}
}

// Every file that the documentation links to exists.
func TestDocumentLinks(t *testing.T) {
	pages, err := filepath.Glob(root + "docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(pages, root+"README.md", root+"CONTRIBUTING.md", root+"conformance/README.md") {
		for _, m := range regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`).FindAllStringSubmatch(string(read(t, page)), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), m[1])); err != nil {
				t.Errorf("%s links to %s: %v", page, m[1], err)
			}
		}
	}
}
