package builtin

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// TestSwappedLink: a link that comes into a path after the last look at it, just
// before the write, leads nowhere.
func TestSwappedLink(t *testing.T) {
	outside := resolve(t.TempDir())
	must(t, os.WriteFile(outside+"/f.txt", []byte("one\n"), 0o644))
	swap := func(r *rig) func(context.Context, Change) error {
		return func(context.Context, Change) error {
			must(t, os.Rename(r.path("sub"), r.path("aside")))
			return os.Symlink(outside, r.path("sub"))
		}
	}
	for name, call := range map[string]string{
		"create":       args("path", "sub/new.txt", "file_text", "x"),
		"create below": args("path", "sub/a/b/new.txt", "file_text", "x"),
		"edit":         args("path", "sub/f.txt", "old_str", "one", "new_str", "two"),
	} {
		t.Run(name, func(t *testing.T) {
			var swapped func(context.Context, Change) error
			r := newRig(t, func(c *Config) {
				c.BeforeWrite = func(ctx context.Context, ch Change) error { return swapped(ctx, ch) }
			})
			swapped = swap(r)
			r.write("sub/f.txt", "one\n")
			r.refusal(strings.Fields(name)[0], call, errMoved.Error())
			entries, err := os.ReadDir(outside)
			must(t, err)
			if text, _ := os.ReadFile(outside + "/f.txt"); len(entries) != 1 || string(text) != "one\n" {
				t.Errorf("written outside: %v %q", entries, text)
			}
			if text := r.read("aside/f.txt"); text != "one\n" {
				t.Errorf("the old file holds %q", text)
			}
		})
	}
}

// A file that another takes the place of, before the write, is left alone.
func TestSwappedFile(t *testing.T) {
	var r *rig
	r = newRig(t, func(c *Config) {
		c.BeforeWrite = func(context.Context, Change) error {
			must(t, os.Rename(r.path("other.txt"), r.path("f.txt")))
			return nil
		}
	})
	r.write("f.txt", "one\n")
	r.write("other.txt", "one, and more\n")
	r.refusal("edit", args("path", "f.txt", "old_str", "one", "new_str", "two"), errMoved.Error())
	equal(t, r.read("f.txt"), "one, and more\n")
}

// TestOpenParentRace swaps a directory and a link to another all the time: nothing
// is ever written in the other.
func TestOpenParentRace(t *testing.T) {
	base := resolve(t.TempDir())
	must(t, os.MkdirAll(base+"/good/sub", 0o755))
	must(t, os.MkdirAll(base+"/evil/sub", 0o755))
	must(t, os.Symlink(base+"/evil", base+"/link"))
	var stop atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for !stop.Load() {
			os.Rename(base+"/good", base+"/kept")
			os.Rename(base+"/link", base+"/good")
			os.Rename(base+"/good", base+"/link")
			os.Rename(base+"/kept", base+"/good")
		}
	}()
	written := 0
	for range 3000 {
		dir, name, err := openParent(base+"/good/sub/f", false)
		if err != nil {
			continue
		}
		if f, err := dir.Create(name); err == nil {
			f.Close()
			written++
		}
		dir.Close()
	}
	stop.Store(true)
	<-done
	if entries, err := os.ReadDir(base + "/evil/sub"); err != nil || len(entries) > 0 {
		t.Errorf("written through a link: %v %v", entries, err)
	}
	if written == 0 {
		t.Error("nothing was written at all")
	}
}

func TestOpenParent(t *testing.T) {
	base := resolve(t.TempDir())
	dir, name, err := openParent(filepath.Join(base, "a", "b", "c"), true)
	must(t, err)
	defer dir.Close()
	equal(t, name, "c")
	must(t, dir.WriteFile(name, []byte("x"), 0o600))
	if b, err := os.ReadFile(base + "/a/b/c"); err != nil || string(b) != "x" {
		t.Errorf("%q %v", b, err)
	}
	must(t, os.Symlink("a", base+"/link"))
	for path, want := range map[string]error{base + "/link/x": errMoved, base + "/none/x": os.ErrNotExist, "/": os.ErrInvalid} {
		if _, _, err := openParent(path, false); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", path, err, want)
		}
	}
}
