package plugin

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Market is a marketplace in a directory: a list of plugins.
type Market struct {
	Name        string
	Description string
	Dir         string // absolute
	Plugins     []Entry
}

// Entry is a plugin that a marketplace lists.
type Entry struct {
	Name, Version, Description string
	// Dir is where it lies; "" where that is not in the marketplace's directory.
	Dir string
	// Elsewhere says where it lies then, for people.
	Elsewhere string
}

// markets are where a marketplace's manifest is looked for, below its directory.
var markets = []string{"marketplace.json", ".github/plugin/marketplace.json", ".claude-plugin/marketplace.json"}

// ErrNoMarket says that a directory holds no marketplace.
var ErrNoMarket = errors.New("there is no marketplace.json")

// LoadMarket reads the marketplace in a directory, which is absolute.
func LoadMarket(dir string) (Market, error) {
	m := Market{Dir: dir}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return m, fmt.Errorf("no marketplace can be read from %s: %w", dir, err)
	}
	defer root.Close()
	raw, file, err := first(root, markets)
	if errors.Is(err, fs.ErrNotExist) {
		return m, fmt.Errorf("%s is no marketplace: %w", dir, ErrNoMarket)
	}
	var list struct {
		Name        string `json:"name"`
		Description string `json:"description"`
		Metadata    struct {
			Description string `json:"description"`
			Root        string `json:"pluginRoot"`
		} `json:"metadata"`
		Plugins []struct {
			Name        string          `json:"name"`
			Version     string          `json:"version"`
			Description string          `json:"description"`
			Source      json.RawMessage `json:"source"`
		} `json:"plugins"`
	}
	if err == nil {
		err = json.Unmarshal(raw, &list)
	}
	if err != nil {
		return m, fmt.Errorf("the manifest %s is no marketplace's: %w", filepath.Join(dir, file), err)
	}
	if bad := badName(list.Name); bad != "" {
		return m, fmt.Errorf("the marketplace in %s: %s", dir, bad)
	}
	m.Name, m.Description = list.Name, list.Metadata.Description
	if m.Description == "" {
		m.Description = list.Description
	}
	for _, p := range list.Plugins {
		if badName(p.Name) != "" {
			continue
		}
		e := Entry{Name: p.Name, Version: p.Version, Description: p.Description}
		e.Dir, e.Elsewhere = place(dir, list.Metadata.Root, p.Source)
		m.Plugins = append(m.Plugins, e)
	}
	return m, nil
}

// place says where an entry's source lies.
func place(dir, base string, source json.RawMessage) (in, elsewhere string) {
	var rel string
	if json.Unmarshal(source, &rel) != nil {
		var local struct {
			Source, Path string
		}
		if json.Unmarshal(source, &local) != nil || local.Source != "local" {
			return "", string(source)
		}
		rel = local.Path
	}
	rel = filepath.FromSlash(rel)
	if base != "" && filepath.IsLocal(filepath.FromSlash(base)) && !hasDot(rel) {
		rel = filepath.Join(filepath.FromSlash(base), rel)
	}
	if rel == "" || !filepath.IsLocal(rel) {
		return "", rel
	}
	return filepath.Join(dir, rel), ""
}

// hasDot reports whether a path begins with a dot: it then starts at the
// marketplace's own directory, whatever its pluginRoot is.
func hasDot(rel string) bool {
	first, _, _ := strings.Cut(filepath.ToSlash(rel), "/")
	return first == "." || first == ".."
}

// Lookup finds an entry by its name.
func (m Market) Lookup(name string) (Entry, bool) {
	for _, e := range m.Plugins {
		if e.Name == name {
			return e, true
		}
	}
	return Entry{}, false
}
