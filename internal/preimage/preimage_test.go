package preimage

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/transom-run/transom/event"
)

type rig struct {
	t   *testing.T
	s   Store
	dir string
}

func newRig(t *testing.T) *rig {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &rig{t, Store{filepath.Join(dir, "kept")}, dir}
}

func (r *rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) path(name string) string { return filepath.Join(r.dir, name) }

func (r *rig) write(name, text string, mode os.FileMode) string {
	r.t.Helper()
	r.must(os.WriteFile(r.path(name), []byte(text), mode))
	r.must(os.Chmod(r.path(name), mode))
	return r.path(name)
}

// holds checks what a file holds; "-" is that there is none.
func (r *rig) holds(name, want string) {
	r.t.Helper()
	got, err := os.ReadFile(r.path(name))
	if os.IsNotExist(err) {
		got = []byte("-")
	}
	if string(got) != want {
		r.t.Errorf("%s holds %q, want %q", name, got, want)
	}
}

func (r *rig) keep(text string) string {
	r.t.Helper()
	h, err := r.s.Keep([]byte(text))
	r.must(err)
	return h
}

func restore(path, to, from string, mode uint32) event.FileRestore {
	f := event.FileRestore{Path: path, From: []string{Hash([]byte(from)), to}}
	if to != "" {
		f.To = event.FileImage{Hash: to, Mode: mode}
	}
	return f
}

func TestRestore(t *testing.T) {
	r := newRig(t)
	old := r.keep("old")
	edited := r.write("edited", "new", 0o644)
	made := r.write("made", "new", 0o644)
	mine := r.write("mine", "by the user", 0o644)
	files := []event.FileRestore{
		restore(edited, old, "new", 0o640), restore(made, "", "new", 0), restore(mine, old, "new", 0o644),
		{Path: r.path("lost"), Lost: true}, restore(r.path("gone"), old, "new", 0o644),
	}
	want := Result{
		Restored: []string{edited, made},
		Skipped:  []Skipped{{mine, UserModified}, {r.path("lost"), SkippedCapture}, {r.path("gone"), UserModified}},
	}
	for range 2 { // twice is the same as once
		if diff := cmp.Diff(want, r.s.Restore(files)); diff != "" {
			t.Error(diff)
		}
		r.holds("edited", "old")
		r.holds("made", "-")
		r.holds("mine", "by the user")
		r.holds("gone", "-")
	}
	if i, err := os.Stat(edited); err != nil || i.Mode().Perm() != 0o640 {
		t.Errorf("its permissions are %v: %v", i.Mode(), err)
	}
}

// TestWhereNoToolWrote: links and directories that have come in the way are left
// alone, and so is what they lead to.
func TestWhereNoToolWrote(t *testing.T) {
	r := newRig(t)
	old := r.keep("old")
	target := r.write("target", "new", 0o644)
	r.must(os.Symlink(target, r.path("link")))
	r.must(os.Mkdir(r.path("real"), 0o755))
	r.write("real/f", "new", 0o644)
	r.must(os.Symlink(r.path("real"), r.path("alias")))
	r.must(os.Mkdir(r.path("dir"), 0o755))
	for _, path := range []string{r.path("link"), r.path("alias/f"), r.path("dir"), "relative", r.dir + "/real/../target"} {
		got := r.s.Restore([]event.FileRestore{restore(path, old, "new", 0o644)})
		if diff := cmp.Diff(Result{Skipped: []Skipped{{path, UserModified}}}, got); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
	}
	r.holds("target", "new")
	r.holds("real/f", "new")
}

// TestRollBack: where one file cannot be brought back, none is.
func TestRollBack(t *testing.T) {
	r := newRig(t)
	old := r.keep("old")
	first := r.write("first", "new", 0o600)
	made := r.write("made", "new", 0o600)
	second := r.write("second", "newer", 0o600)
	r.must(os.Mkdir(filepath.Join(r.s.Dir, Hash([]byte("newer"))), 0o700)) // so that what it holds cannot be kept
	got := r.s.Restore([]event.FileRestore{restore(first, old, "new", 0o600), restore(made, "", "new", 0), restore(second, old, "newer", 0o600)})
	if got.Err == nil || got.Torn || got.Restored != nil {
		t.Errorf("got %+v", got)
	}
	r.holds("first", "new")
	r.holds("made", "new")
	r.holds("second", "newer")
}

// TestTorn: where what was changed cannot be changed again, that is said.
func TestTorn(t *testing.T) {
	r := newRig(t)
	old := r.keep("old")
	first := r.write("first", "new", 0o600)
	kept := filepath.Join(r.s.Dir, Hash([]byte("new")))
	second := r.write("second", "newer", 0o600)
	r.must(os.Mkdir(filepath.Join(r.s.Dir, Hash([]byte("newer"))), 0o700))
	r.keep("new")
	r.must(os.WriteFile(kept, []byte("bad"), 0o600)) // of the same length: damage
	got := r.s.Restore([]event.FileRestore{restore(first, old, "new", 0o600), restore(second, old, "newer", 0o600)})
	if got.Err == nil || !got.Torn || !cmp.Equal(got.Restored, []string{first}) {
		t.Errorf("got %+v", got)
	}
}

// TestDamagedStore: what is not what its name says is never written anywhere.
func TestDamagedStore(t *testing.T) {
	r := newRig(t)
	old := r.keep("old")
	r.must(os.WriteFile(filepath.Join(r.s.Dir, old), []byte("bad"), 0o600))
	f := r.write("f", "new", 0o644)
	for _, to := range []string{old, Hash([]byte("never kept")), "../../f"} {
		got := r.s.Restore([]event.FileRestore{{Path: f, To: event.FileImage{Hash: to}, From: []string{Hash([]byte("new"))}}})
		if diff := cmp.Diff(Result{Skipped: []Skipped{{f, SkippedCapture}}}, got); diff != "" {
			t.Errorf("%s: %s", to, diff)
		}
	}
	r.holds("f", "new")
}

func TestKeepAndPrune(t *testing.T) {
	r := newRig(t)
	r.must(r.s.Prune(nil)) // nothing is there
	a, b := r.keep("a"), r.keep("b")
	r.keep("a")
	r.must(os.WriteFile(filepath.Join(r.s.Dir, ".tmp-1"), nil, 0o600))
	for path, mode := range map[string]os.FileMode{r.s.Dir: 0o700, filepath.Join(r.s.Dir, a): 0o600} {
		if i, err := os.Stat(path); err != nil || i.Mode().Perm() != mode {
			t.Errorf("%s has mode %v: %v", path, i.Mode().Perm(), err)
		}
	}
	r.must(r.s.Prune([]string{b}))
	entries, err := os.ReadDir(r.s.Dir)
	r.must(err)
	if len(entries) != 1 || entries[0].Name() != b {
		t.Errorf("left: %v", entries)
	}
}
