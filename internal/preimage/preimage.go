// Package preimage keeps files as they were before a tool wrote to them, and brings
// them back.
//
//	DIR/
//	    2c26b46b68ff…   the bytes of a file, under their SHA-256
//	    .tmp-…          one that is being written; may be deleted
//
// # Ownership
//
// A [Store] belongs to one session and keeps nothing in memory. Its methods may be
// called from any goroutine. Directories are made with mode 0700 and files with
// 0600, on the first use.
//
// # Ordering
//
// What is kept is on the disk before [Store.Keep] returns. A file that is brought
// back is replaced whole or not at all, and is on the disk before [Store.Restore]
// returns. Restoring twice is the same as once.
//
// # Errors
//
// A file that somebody else has changed since is left alone, and is no error.
// Where a file cannot be brought back for another reason, those before it are
// changed again to what they held.
package preimage

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/transom-run/transom/event"
)

// Why a file is left alone, as the protocol says it.
const (
	UserModified   = "user-modified"   // it is not what a tool left there
	SkippedCapture = "skipped-capture" // what it held was not kept
)

// Store keeps files below Dir.
type Store struct{ Dir string }

// Hash names the bytes of a file.
func Hash(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// Keep keeps the bytes of a file and returns their hash.
func (s Store) Keep(content []byte) (string, error) {
	hash := Hash(content)
	path := filepath.Join(s.Dir, hash)
	if i, err := os.Lstat(path); err == nil && i.Mode().IsRegular() && i.Size() == int64(len(content)) {
		return hash, nil
	}
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return "", fmt.Errorf("keep a file as it was: %w", err)
	}
	if err := replace(path, content, 0o600, ".tmp-*"); err != nil {
		return "", fmt.Errorf("keep a file as it was: %w", err)
	}
	return hash, nil
}

// kept reads what was kept, and makes sure that it is that.
func (s Store) kept(hash string) ([]byte, error) {
	if len(hash) != sha256.Size*2 || strings.ContainsAny(hash, `/\.`) {
		return nil, fmt.Errorf("%q is no name of a kept file", hash)
	}
	content, err := os.ReadFile(filepath.Join(s.Dir, hash))
	if err != nil {
		return nil, err
	}
	if Hash(content) != hash {
		return nil, fmt.Errorf("the kept file %s is damaged", hash)
	}
	return content, nil
}

// Prune forgets what is kept under other hashes than these.
func (s Store) Prune(needed []string) error {
	entries, err := os.ReadDir(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if !slices.Contains(needed, e.Name()) && e.Type().IsRegular() {
			err = errors.Join(err, os.Remove(filepath.Join(s.Dir, e.Name())))
		}
	}
	return err
}

// Skipped is a file that was left alone.
type Skipped struct {
	Path   string
	Reason string
}

// Result is what became of files. With an error nothing was restored, unless Torn:
// then some could not be changed again to what they held before.
type Result struct {
	Restored []string
	Skipped  []Skipped
	Err      error
	Torn     bool
}

// undo is a file as it was before it was brought back.
type undo struct {
	path string
	was  event.FileImage
}

// Restore brings files back.
func (s Store) Restore(files []event.FileRestore) Result {
	var out Result
	var done []undo
	for _, f := range files {
		u, reason, err := s.restore(f)
		switch {
		case err != nil:
			out.Err = fmt.Errorf("%s cannot be brought back: %w", f.Path, err)
			for i := len(done) - 1; i >= 0; i-- {
				if err := s.put(done[i].path, done[i].was); err != nil {
					out.Torn = true
					out.Err = fmt.Errorf("%w; and %s could not be changed again: %v", out.Err, done[i].path, err)
				}
			}
			if !out.Torn {
				out.Restored = nil
			}
			return out
		case reason != "":
			out.Skipped = append(out.Skipped, Skipped{f.Path, reason})
		default:
			out.Restored = append(out.Restored, f.Path)
			if u != nil {
				done = append(done, *u)
			}
		}
	}
	return out
}

// restore brings one file back. Without undo it was as it should be already.
func (s Store) restore(f event.FileRestore) (*undo, string, error) {
	if f.Lost {
		return nil, SkippedCapture, nil
	}
	content, mode, ok, err := current(f.Path)
	if err != nil {
		return nil, "", err
	}
	if !ok {
		return nil, UserModified, nil
	}
	now := ""
	if content != nil {
		now = Hash(content)
	}
	switch {
	case now == f.To.Hash:
		return nil, "", nil
	case !slices.Contains(f.From, now):
		return nil, UserModified, nil
	}
	u := &undo{path: f.Path}
	if content != nil {
		if u.was.Hash, err = s.Keep(content); err != nil {
			return nil, "", err
		}
		u.was.Mode = uint32(mode)
	}
	if f.To.Hash != "" {
		if _, err := s.kept(f.To.Hash); err != nil {
			return nil, SkippedCapture, nil
		}
	}
	return u, "", s.put(f.Path, f.To)
}

// current reads a file; nil where there is none. ok is false where the path is not
// what a tool wrote to: something else than a file stands there, or a link leads
// elsewhere now.
func current(path string) (content []byte, mode fs.FileMode, ok bool, err error) {
	if !filepath.IsAbs(path) || filepath.Clean(path) != path {
		return nil, 0, false, nil
	}
	dir := filepath.Dir(path)
	switch real, err := filepath.EvalSymlinks(dir); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, 0, true, nil
	case err != nil:
		return nil, 0, false, err
	case real != dir:
		return nil, 0, false, nil
	}
	i, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, true, nil
	}
	if err != nil {
		return nil, 0, false, err
	}
	if !i.Mode().IsRegular() {
		return nil, 0, false, nil
	}
	content, err = os.ReadFile(path)
	if content == nil {
		content = []byte{}
	}
	return content, i.Mode().Perm(), true, err
}

// put makes a file what an image says.
func (s Store) put(path string, to event.FileImage) error {
	if to.Hash == "" {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return syncDir(filepath.Dir(path))
	}
	content, err := s.kept(to.Hash)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	return replace(path, content, fs.FileMode(to.Mode).Perm(), ".transom-rewind-*")
}

// replace puts a file in the place of another, whole or not at all.
func replace(path string, content []byte, mode fs.FileMode, pattern string) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), pattern)
	if err != nil {
		return err
	}
	_, err = tmp.Write(content)
	if err = errors.Join(err, tmp.Chmod(mode), tmp.Sync(), tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		_ = os.Remove(tmp.Name())
		return err
	}
	return syncDir(filepath.Dir(path))
}

// syncDir brings the entries of a directory to the disk, where the system can.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return nil // the entry is made; the system brings it to the disk in its time
	}
	defer d.Close()
	_ = d.Sync()
	return nil
}
