// Package vault keeps small secrets under keys: in memory, or in files that only
// their owner may read.
//
//	v := vault.Files("/home/u/.transom/mcp-oauth")
//	err := v.Change(ctx, "3f9a…", func(old []byte) ([]byte, error) { return renewed(old) })
//
// # Ownership
//
// A vault in memory ends with who holds it. One in files is shared by all processes
// that name the same directory; nothing is read or made before the first use.
//
// # Ordering
//
// Changes of one key come one after the other, those of other processes included,
// and each sees what the one before it wrote: a change may take as long as a request
// to a server does. Loads never wait.
//
// # Errors
//
// What cannot be read or written is an error that names the file, and never what was
// to be kept. A change that fails leaves what was there.
package vault

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// maxSize bounds what is kept under a key.
const maxSize = 256 << 10

// Vault keeps values. Its methods may be called from any goroutine.
type Vault struct {
	dir string // "" is in memory

	mu    sync.Mutex
	kept  map[string][]byte
	locks map[string]chan struct{} // by key: held while it is changed
}

// Memory is a vault that ends with its holder.
func Memory() *Vault { return &Vault{} }

// Files is a vault in a directory, made when something is kept: one file a key.
func Files(dir string) *Vault { return &Vault{dir: dir} }

// Dir is the directory of a vault in files; "" is in memory.
func (v *Vault) Dir() string { return v.dir }

// good reports whether a key is one: it becomes the name of a file.
func good(key string) bool {
	for _, r := range key {
		if (r < '0' || r > '9') && (r < 'a' || r > 'z') {
			return false
		}
	}
	return key != "" && len(key) <= 64
}

// Load returns what is kept under a key of digits and small letters; nil is nothing.
func (v *Vault) Load(key string) ([]byte, error) {
	if !good(key) {
		return nil, fmt.Errorf("%q is no key of a vault", key)
	}
	if v.dir == "" {
		v.mu.Lock()
		defer v.mu.Unlock()
		return v.kept[key], nil
	}
	path := v.path(key)
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && (!info.Mode().IsRegular() || info.Size() > maxSize) {
		err = fmt.Errorf("%s is no file of at most %d bytes: remove it", path, maxSize)
	}
	if err != nil {
		return nil, err
	}
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // just removed
	}
	return raw, err
}

// Change puts in place of what is kept under a key what change makes of it; nil is
// nothing. It waits until no other change of the key is under way, or ctx ends.
func (v *Vault) Change(ctx context.Context, key string, change func(old []byte) ([]byte, error)) error {
	if !good(key) {
		return fmt.Errorf("%q is no key of a vault", key)
	}
	lock := v.lock(key)
	select {
	case lock <- struct{}{}:
		defer func() { <-lock }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if v.dir == "" {
		old, _ := v.Load(key)
		now, err := change(old)
		if err != nil {
			return err
		}
		v.mu.Lock()
		defer v.mu.Unlock()
		if v.kept == nil {
			v.kept = map[string][]byte{}
		}
		if v.kept[key] = now; now == nil {
			delete(v.kept, key)
		}
		return nil
	}
	if err := os.MkdirAll(v.dir, 0o700); err != nil {
		return err
	}
	release, err := v.hold(ctx, key)
	if err != nil {
		return err
	}
	defer release()
	old, err := v.Load(key)
	if err != nil {
		return err
	}
	now, err := change(old)
	if err != nil {
		return err
	}
	return v.write(key, now)
}

func (v *Vault) lock(key string) chan struct{} {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.locks == nil {
		v.locks = map[string]chan struct{}{}
	}
	if v.locks[key] == nil {
		v.locks[key] = make(chan struct{}, 1)
	}
	return v.locks[key]
}

func (v *Vault) path(key string) string { return filepath.Join(v.dir, key+".json") }

// poll is how often a key that another process is changing is tried.
const poll = 20 * time.Millisecond

// hold keeps other processes from changing a key until release is called, or this
// process ends.
func (v *Vault) hold(ctx context.Context, key string) (release func(), err error) {
	f, err := os.OpenFile(filepath.Join(v.dir, key+".lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		got, err := tryLock(f)
		if err != nil {
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", f.Name(), err)
		}
		if got {
			return func() { f.Close() }, nil // which ends the lock
		}
		t := time.NewTimer(poll)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			f.Close()
			return nil, context.Cause(ctx)
		}
	}
}

// write puts a file in place as a whole, or removes it.
func (v *Vault) write(key string, now []byte) error {
	path := v.path(key)
	if now == nil {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	if len(now) > maxSize {
		return fmt.Errorf("%s is not written: it would be larger than %d bytes", path, maxSize)
	}
	f, err := os.OpenFile(path+"."+rand.Text(), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(now)
	if err == nil {
		err = f.Sync()
	}
	if closing := f.Close(); err == nil {
		err = closing
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}
