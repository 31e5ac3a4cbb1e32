package vault

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
)

func kinds(t *testing.T) map[string]func() *Vault {
	dir := filepath.Join(t.TempDir(), "deep", "kept")
	memory := Memory()
	return map[string]func() *Vault{"memory": func() *Vault { return memory }, "files": func() *Vault { return Files(dir) }}
}

// Changes of one key never overlap, whoever makes them, and each sees the one before.
func TestChangesComeOneByOne(t *testing.T) {
	for name, open := range kinds(t) {
		t.Run(name, func(t *testing.T) {
			const each, many = 25, 4
			var all sync.WaitGroup
			for range many {
				v := open() // another process would open its own
				all.Go(func() {
					for range each {
						err := v.Change(context.Background(), "k", func(old []byte) ([]byte, error) {
							n, _ := strconv.Atoi(string(old))
							return []byte(strconv.Itoa(n + 1)), nil
						})
						if err != nil {
							t.Error(err)
						}
					}
				})
			}
			all.Wait()
			if got, err := open().Load("k"); string(got) != fmt.Sprint(each*many) || err != nil {
				t.Errorf("%s, %v", got, err)
			}
		})
	}
}

func TestKept(t *testing.T) {
	for name, open := range kinds(t) {
		t.Run(name, func(t *testing.T) {
			v, ctx := open(), context.Background()
			if got, err := v.Load("a"); got != nil || err != nil {
				t.Errorf("%s, %v", got, err)
			}
			to := func(s []byte, err error) func([]byte) ([]byte, error) {
				return func([]byte) ([]byte, error) { return s, err }
			}
			if err := v.Change(ctx, "a", to([]byte("one"), nil)); err != nil {
				t.Fatal(err)
			}
			refused := errors.New("no")
			if err := v.Change(ctx, "a", to([]byte("two"), refused)); !errors.Is(err, refused) {
				t.Error(err)
			}
			if got, err := v.Load("a"); string(got) != "one" || err != nil {
				t.Errorf("%s, %v", got, err)
			}
			if err := v.Change(ctx, "a", to(nil, nil)); err != nil {
				t.Error(err)
			}
			if got, err := v.Load("a"); got != nil || err != nil {
				t.Errorf("%s, %v", got, err)
			}
			for _, key := range []string{"", "../a", "A", "a/b", strings.Repeat("a", 65)} {
				if _, err := v.Load(key); err == nil {
					t.Errorf("%q was looked up", key)
				}
				if err := v.Change(ctx, key, to([]byte("x"), nil)); err == nil {
					t.Errorf("%q was changed", key)
				}
			}
		})
	}
}

// Who waits for a key can leave.
func TestWaitingEnds(t *testing.T) {
	for name, open := range kinds(t) {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			err := open().Change(context.Background(), "k", func([]byte) ([]byte, error) {
				cancel()
				return nil, open().Change(ctx, "k", func([]byte) ([]byte, error) { return []byte("x"), nil })
			})
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
	}
}

// Nobody else may look, whatever else lies there.
func TestFilesArePrivate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes of files say nothing on Windows")
	}
	dir := filepath.Join(t.TempDir(), "v")
	v := Files(dir)
	if err := v.Change(context.Background(), "k", func([]byte) ([]byte, error) { return []byte("x"), nil }); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Fatalf("%v, %v", entries, err)
	}
	for _, e := range entries {
		if info, err := e.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", e.Name(), info.Mode(), err)
		}
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "linked.json")); err != nil {
		t.Fatal(err)
	}
	if got, err := v.Load("linked"); err == nil {
		t.Errorf("a link was followed to %q", got)
	}
}
