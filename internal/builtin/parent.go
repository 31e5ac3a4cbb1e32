package builtin

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// errMoved is why a file is not written where a link has come into its path since
// it was looked at.
var errMoved = errors.New("a link has come into its path")

// openParent opens the directory of a resolved path, going down name by name and
// holding on to each directory, so that no link that is put into the path
// meanwhile is followed: what was judged is what is written to. Directories that
// are missing are made where makeDirs is set.
func openParent(resolved string, makeDirs bool) (dir *os.Root, name string, err error) {
	volume := filepath.VolumeName(resolved) + string(filepath.Separator)
	at := volume
	if dir, err = os.OpenRoot(at); err != nil {
		return nil, "", err
	}
	names := parts(resolved[len(filepath.VolumeName(resolved)):])
	if len(names) == 0 {
		dir.Close()
		return nil, "", fs.ErrInvalid
	}
	for _, part := range names[:len(names)-1] {
		next, err := dir.OpenRoot(part)
		if makeDirs && errors.Is(err, fs.ErrNotExist) {
			if err = dir.Mkdir(part, 0o777); err == nil || errors.Is(err, fs.ErrExist) {
				next, err = dir.OpenRoot(part)
			}
		}
		at = filepath.Join(at, part)
		if info, e := dir.Lstat(part); err != nil && e == nil && info.Mode()&os.ModeSymlink != 0 {
			err = errMoved
		}
		if errors.Is(err, fs.ErrPermission) {
			// A directory above that may be passed and not read: nobody of ours puts
			// links there either.
			if next, err = os.OpenRoot(at); err == nil {
				dir.Close()
				dir = next
				continue
			}
		}
		if err == nil {
			err = same(dir, part, next)
		}
		dir.Close()
		if err != nil {
			if next != nil {
				next.Close()
			}
			return nil, "", err
		}
		dir = next
	}
	return dir, names[len(names)-1], nil
}

// same makes sure that what was opened below a directory stands there itself, and
// is not what a link led to. Names of directories that are not case sensitive are
// compared by the system.
func same(dir *os.Root, part string, opened *os.Root) error {
	there, err := dir.Lstat(part)
	if err != nil {
		return err
	}
	here, err := opened.Stat(".")
	if err != nil {
		return err
	}
	if there.Mode()&os.ModeSymlink != 0 || !os.SameFile(there, here) {
		return errMoved
	}
	return nil
}

// temporary makes a file of a name that nobody has in a directory.
func temporary(dir *os.Root, nonce func() string) (*os.File, string, error) {
	for range 100 {
		name := ".transom-edit-" + strings.ToLower(nonce())
		f, err := dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if !errors.Is(err, fs.ErrExist) {
			return f, name, err
		}
	}
	return nil, "", fs.ErrExist
}
