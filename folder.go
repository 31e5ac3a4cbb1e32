package transom

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/transom-run/transom/internal/session"
	"github.com/transom-run/transom/sessionfs"
)

// folder is a directory of a session: on this machine, or with the session's host.
// Names are relative, in the form of this system, and checked by the caller.
type folder interface {
	ReadFile(name string) ([]byte, error)
	// Replace writes a file whole or not at all, in a directory that is there.
	Replace(name, text string) (existed bool, err error)
	Stat(name string) (FileInfo, error)
	// Mkdir makes a directory; all makes those above it too, and is content with one
	// that is there.
	Mkdir(name string, all bool) error
	// Remove removes a file or an empty directory, or all of a directory; missing is
	// content where there is nothing.
	Remove(name string, all, missing bool) error
	Rename(from, to string) error
	// List lists all files below, with slashes.
	List() ([]string, error)
	// Below opens a directory in it, making it where there is none.
	Below(name string) (folder, error)
	Close() error
}

// unfinished begins the names of files that are being written.
const unfinished = ".new-"

// diskFolder is a directory of this machine.
type diskFolder struct{ root *os.Root }

func (d diskFolder) ReadFile(name string) ([]byte, error) { return d.root.ReadFile(name) }
func (d diskFolder) Close() error                         { return d.root.Close() }
func (d diskFolder) Rename(from, to string) error         { return d.root.Rename(from, to) }

func (d diskFolder) Below(name string) (folder, error) {
	if err := d.root.MkdirAll(name, 0o700); err != nil {
		return nil, err
	}
	root, err := d.root.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	return diskFolder{root}, nil
}

func (d diskFolder) Replace(name, text string) (existed bool, err error) {
	info, err := d.root.Stat(name)
	switch {
	case err == nil && info.IsDir():
		return true, &fs.PathError{Op: "write", Path: name, Err: errors.New("is a directory")}
	case err == nil:
		existed = true
	case !errors.Is(err, fs.ErrNotExist):
		return false, err
	}
	temp := path.Join(filepath.ToSlash(filepath.Dir(name)), unfinished+session.NewID())
	if err := d.root.WriteFile(temp, []byte(text), 0o600); err != nil {
		return existed, err
	}
	if err := d.root.Rename(temp, name); err != nil {
		d.root.Remove(temp)
		return existed, err
	}
	return existed, nil
}

func (d diskFolder) Stat(name string) (FileInfo, error) {
	info, err := d.root.Stat(name)
	if err != nil {
		return FileInfo{}, err
	}
	return FileInfo{info.IsDir(), info.Size(), info.ModTime()}, nil
}

func (d diskFolder) Mkdir(name string, all bool) error {
	if all {
		return d.root.MkdirAll(name, 0o700)
	}
	return d.root.Mkdir(name, 0o700)
}

func (d diskFolder) Remove(name string, all, missing bool) error {
	_, err := d.root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist) && missing:
		return nil
	case err != nil:
		return err
	case all:
		return d.root.RemoveAll(name)
	}
	if err := d.root.Remove(name); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return &fs.PathError{Op: "remove", Path: name, Err: errors.New("the directory is not empty")}
}

func (d diskFolder) List() ([]string, error) {
	out := []string{}
	err := fs.WalkDir(d.root.FS(), ".", func(p string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && !strings.HasPrefix(e.Name(), unfinished) {
			out = append(out, p)
		}
		return err
	})
	return out, err
}

// hostFolder is a directory with the session's host. at is where it is below the
// session's own, with slashes; "" is that itself.
type hostFolder struct {
	files  sessionfs.FS
	layout sessionfs.Layout
	at     string
}

// ask calls f with the host's name of a path, and bounds how long it may take.
func (h hostFolder) ask(name string, f func(ctx context.Context, at string) error) error {
	at := h.layout.Root
	if full := path.Join(h.at, filepath.ToSlash(name)); full != "" && full != "." {
		var err error
		if at, err = h.layout.Path(full); err != nil {
			return err
		}
	}
	ctx, cancel := fileTime(context.Background())
	defer cancel()
	return f(ctx, at)
}

func (h hostFolder) Close() error { return nil }

func (h hostFolder) ReadFile(name string) (raw []byte, err error) {
	err = h.ask(name, func(ctx context.Context, at string) error {
		text, err := h.files.ReadFile(ctx, at)
		raw = []byte(text)
		return err
	})
	return raw, err
}

func (h hostFolder) Replace(name, text string) (existed bool, err error) {
	err = h.ask(name, func(ctx context.Context, at string) error {
		if existed, err = h.files.Exists(ctx, at); err != nil {
			return err
		}
		dir, last := path.Split(path.Join(h.at, filepath.ToSlash(name)))
		temp, err := h.layout.Path(dir + unfinished + last)
		if err != nil {
			return err
		}
		if err := h.files.WriteFile(ctx, temp, text, 0o600); err != nil {
			return err
		}
		return h.files.Rename(ctx, temp, at)
	})
	return existed, err
}

func (h hostFolder) Stat(name string) (info FileInfo, err error) {
	err = h.ask(name, func(ctx context.Context, at string) error {
		i, err := h.files.Stat(ctx, at)
		info = FileInfo{i.Dir, i.Bytes, i.Modified}
		return err
	})
	return info, err
}

func (h hostFolder) Mkdir(name string, all bool) error {
	return h.ask(name, func(ctx context.Context, at string) error { return h.files.Mkdir(ctx, at, all, 0o700) })
}

func (h hostFolder) Remove(name string, all, missing bool) error {
	return h.ask(name, func(ctx context.Context, at string) error { return h.files.Remove(ctx, at, all, missing) })
}

func (h hostFolder) Rename(from, to string) error {
	target, err := h.layout.Path(path.Join(h.at, filepath.ToSlash(to)))
	if err != nil {
		return err
	}
	return h.ask(from, func(ctx context.Context, at string) error { return h.files.Rename(ctx, at, target) })
}

func (h hostFolder) Below(name string) (folder, error) {
	h.at = path.Join(h.at, name)
	return h, nil
}

// maxListed bounds how much of a host's directories is looked at.
const maxListed = 100000

func (h hostFolder) List() ([]string, error) {
	out := []string{}
	seen := 0
	var walk func(dir string) error
	walk = func(dir string) error {
		return h.ask(dir, func(ctx context.Context, at string) error {
			entries, err := h.files.ReadDir(ctx, at)
			if errors.Is(err, fs.ErrNotExist) && dir == "" {
				return nil // nothing was kept yet
			}
			for _, e := range entries {
				if seen++; seen > maxListed {
					return errors.New("the session has too many files to list")
				}
				name := path.Join(dir, e.Name)
				switch {
				case strings.ContainsAny(e.Name, "/\x00") || e.Name == "." || e.Name == "..":
					// no name of a file: nothing is asked about it
				case e.Dir:
					if err := walk(name); err != nil {
						return err
					}
				case !strings.HasPrefix(e.Name, unfinished):
					out = append(out, name)
				}
			}
			return err
		})
	}
	err := walk("")
	return out, err
}
