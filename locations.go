package transom

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/transom-run/transom/internal/session"
)

// stateFile is a JSON object of the runtime's home, which changes as a whole.
// Without a home it lives as long as the process.
type stateFile[T any] struct {
	path string // "" is in memory

	mu   sync.Mutex
	kept T
}

// read returns what the file says; the zero T where there is none.
func (f *stateFile[T]) read() (T, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.load()
}

func (f *stateFile[T]) load() (T, error) {
	if f.path == "" {
		return f.kept, nil
	}
	var v T
	raw, err := os.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return v, nil
	}
	if err == nil {
		err = json.Unmarshal(raw, &v)
	}
	if err != nil {
		return v, &Error{Kind: KindInternal, Err: err, Msg: fmt.Sprintf("%s cannot be read: %v. Mend or remove it", f.path, err)}
	}
	return v, nil
}

// change reads, changes and writes the file.
func (f *stateFile[T]) change(do func(*T)) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	v, err := f.load()
	if err != nil {
		return err
	}
	do(&v)
	if f.path == "" {
		f.kept = v
		return nil
	}
	raw, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
		return err
	}
	temp := f.path + "." + session.NewID()
	if err := os.WriteFile(temp, append(raw, '\n'), 0o600); err != nil {
		return err
	}
	if err := os.Rename(temp, f.path); err != nil {
		os.Remove(temp)
		return err
	}
	return nil
}

// located is what is kept about places: permissions.json in the runtime's home.
type located struct {
	Locations map[string]*locatedRules `json:"locations,omitempty"`
	Trusted   []string                 `json:"trustedFolders,omitempty"`
}

type locatedRules struct {
	Rules       []Rule   `json:"rules,omitempty"`
	Directories []string `json:"directories,omitempty"`
}

// Rule allows calls of a kind: see [RuleKey].
type Rule struct {
	Kind     string  `json:"kind"`
	Argument *string `json:"argument"`
}

// Key is the rule's key.
func (r Rule) Key() string { return RuleKey(r.Kind, r.Argument) }

// Location is a place that approvals can be kept for, across sessions.
type Location struct {
	Key  string // its directory, links followed
	Repo bool   // it is the top of a repository
	// Rules and Directories are what is allowed there.
	Rules       []Rule
	Directories []string
}

// Location finds the place that a directory belongs to: the top of its
// repository, else the directory itself.
func (r *Runtime) Location(dir string) (Location, error) {
	const op = "session.permissions.locations.resolve"
	if !filepath.IsAbs(dir) {
		return Location{}, &Error{Op: op, Kind: KindInvalidParams, Msg: fmt.Sprintf("a location needs an absolute directory, not %q", dir)}
	}
	l := Location{Key: followed(dir)}
	for up := l.Key; ; up = filepath.Dir(up) {
		if _, err := os.Lstat(filepath.Join(up, ".git")); err == nil {
			l.Key, l.Repo = up, true
			break
		}
		if up == filepath.Dir(up) {
			break
		}
	}
	all, err := r.places.read()
	if err != nil {
		return l, wrap(op, "", err)
	}
	if kept := all.Locations[l.Key]; kept != nil {
		l.Rules, l.Directories = kept.Rules, kept.Directories
	}
	return l, nil
}

// ChangeLocation keeps rules for a location, by its key, and takes others away;
// all takes away every one that is not added.
func (r *Runtime) ChangeLocation(key string, add, remove []Rule, all bool) error {
	return wrap("session.permissions.modifyRules", "", r.places.change(func(l *located) {
		if l.Locations == nil {
			l.Locations = map[string]*locatedRules{}
		}
		kept := l.Locations[key]
		if kept == nil {
			kept = &locatedRules{}
			l.Locations[key] = kept
		}
		has := func(list []Rule, x Rule) bool {
			return slices.ContainsFunc(list, func(y Rule) bool { return x.Key() == y.Key() })
		}
		kept.Rules = slices.DeleteFunc(kept.Rules, func(x Rule) bool { return all || has(remove, x) })
		for _, x := range add {
			if !all && !has(kept.Rules, x) {
				kept.Rules = append(kept.Rules, x)
			}
		}
		if len(kept.Rules) == 0 && len(kept.Directories) == 0 {
			delete(l.Locations, key)
		}
	}))
}

// Trusted reports whether a folder, or one that it is in, was marked as trusted.
func (r *Runtime) Trusted(dir string) (bool, error) {
	all, err := r.places.read()
	if err != nil {
		return false, wrap("session.permissions.folderTrust.isTrusted", "", err)
	}
	dir = followed(dir)
	return slices.ContainsFunc(all.Trusted, func(t string) bool { return below(t, dir) }), nil
}

// Trust marks a folder as trusted, for all sessions.
func (r *Runtime) Trust(dir string) error {
	dir = followed(dir)
	return wrap("session.permissions.folderTrust.addTrusted", "", r.places.change(func(l *located) {
		if !slices.Contains(l.Trusted, dir) {
			l.Trusted = append(l.Trusted, dir)
		}
	}))
}
