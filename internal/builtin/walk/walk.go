// Package walk lists the files below a directory as a person would want them
// searched: without what git ignores, and without git's own files.
//
//	err := walk.Files(ctx, "/home/a/project", func(rel string) error {
//		fmt.Println(rel) // src/index.ts
//		return nil
//	})
//
// # Ordering
//
// Files come in the order of their paths, directory by directory, always the same.
//
// # Errors
//
// A directory that cannot be read is passed over: what can be found is found. Only
// a root that cannot be read, the context's end and the callback's error end a
// walk; [fs.SkipAll] ends it without an error.
package walk

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// maxDepth is how deep a walk goes. Links are not followed, so that nothing but a
// truly deep tree comes there.
const maxDepth = 256

// Files calls fn for every regular file below root that is not ignored, with its
// path below root, in slashes. Hidden files are among them; links are not
// followed. Ignore files hold whether or not the directory is a repository; those
// of directories above root hold where root is inside of one.
func Files(ctx context.Context, root string, fn func(rel string) error) error {
	abs, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		abs = real
	}
	w := walker{ctx: ctx, fn: fn}
	dir := filepath.ToSlash(abs)
	if _, err := os.ReadDir(abs); err != nil {
		return err
	}
	err = w.dir(dir, "", above(dir), 0)
	if errors.Is(err, fs.SkipAll) {
		return nil
	}
	return err
}

type walker struct {
	ctx context.Context
	fn  func(rel string) error
}

func (w *walker) dir(abs, rel string, l *level, depth int) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	entries, err := os.ReadDir(filepath.FromSlash(abs))
	if err != nil || depth > maxDepth {
		return nil
	}
	l = l.enter(abs)
	for _, e := range entries {
		name := e.Name()
		if name == ".git" {
			continue
		}
		full, below := path.Join(abs, name), path.Join(rel, name)
		switch {
		case e.IsDir():
			if l.ignored(full, true) {
				continue
			}
			if err := w.dir(full, below, l, depth+1); err != nil {
				return err
			}
		case e.Type().IsRegular():
			if l.ignored(full, false) {
				continue
			}
			if err := w.fn(below); err != nil {
				return err
			}
		}
	}
	return nil
}
