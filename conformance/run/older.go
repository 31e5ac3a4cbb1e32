package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
)

// withVersions adds the older versions of the SDKs: each folder
// LANGUAGE/older/VERSION holds the files in which that version differs from the
// pinned one. which is "pinned", "older", "all" or a version.
func withVersions(langs []*Language, which string) ([]*Language, error) {
	if which == "pinned" {
		return langs, nil
	}
	var out []*Language
	for _, lang := range langs {
		if which == "all" {
			out = append(out, lang)
		}
		folders, err := filepath.Glob(filepath.Join(lang.Dir, "older", "*"))
		if err != nil {
			return nil, err
		}
		for _, folder := range folders {
			version := filepath.Base(folder)
			if which != "all" && which != "older" && which != version {
				continue
			}
			older, err := lang.at(version)
			if err != nil {
				return nil, err
			}
			out = append(out, older)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("-sdk %s: none of the chosen languages has such a version in its folder older", which)
	}
	return out, nil
}

// at returns the language with another version of its SDK. Its files are laid
// out in the cache: those of the language, and over them those of the version.
// What its lang.yaml does not name stays as it is in the language's.
func (l *Language) at(version string) (*Language, error) {
	older := *l
	older.Lacks, older.Unseen = maps.Clone(l.Lacks), maps.Clone(l.Unseen)
	older.Key += "-" + version
	older.Name += " " + version
	older.Dir = filepath.Join(l.Cache, "sdk", older.Key)
	if err := layOut(older.Dir, l.Dir, filepath.Join(l.Dir, "older", version)); err != nil {
		return nil, err
	}
	name := older.Name
	if err := older.read(filepath.Join(older.Dir, "lang.yaml")); err != nil {
		return nil, err
	}
	older.Name = name
	return &older, nil
}

// ours tells the folders of a language's sources from those that its tools make.
func ours(folder string) bool {
	switch folder {
	case ".cargo": // settings
		return true
	case "older", "node_modules", "target", "bin", "obj", "__pycache__", "build", "dist":
		return false
	}
	return !strings.HasPrefix(folder, ".")
}

// layOut copies the files of some folders into one, a later folder's over an
// earlier one's. What is there already and equal is left alone, so that a setup
// that is up to date stays so.
func layOut(to string, folders ...string) error {
	files := map[string]string{}
	for _, from := range folders {
		err := filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || path == from {
				return err
			}
			if entry.IsDir() {
				if !ours(entry.Name()) {
					return fs.SkipDir
				}
				return nil
			}
			name, err := filepath.Rel(from, path)
			files[name] = path
			return err
		})
		if err != nil {
			return err
		}
	}
	for name, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if old, err := os.ReadFile(filepath.Join(to, name)); err == nil && bytes.Equal(old, text) {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(to, name)), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
