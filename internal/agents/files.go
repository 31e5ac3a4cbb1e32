package agents

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// maxFile bounds what is read of a file.
const maxFile = 1 << 20

// Place is a directory that may hold agents.
type Place struct {
	Dir     string
	Source  string // "user" or "project"
	Project string // the directory of the project that it belongs to; "" for a user's
}

// Places lists where agents are looked for: below home, unless it is "", and below
// each project. A directory need not exist. The first of each home and project is
// the one to put new agents into.
func Places(home string, projects []string) []Place {
	var out []Place
	if home != "" {
		out = append(out, Place{Dir: filepath.Join(home, "agents"), Source: "user"})
	}
	for _, p := range projects {
		for _, d := range []string{filepath.Join(".github", "agents"), filepath.Join(".claude", "agents")} {
			out = append(out, Place{Dir: filepath.Join(p, d), Source: "project", Project: p})
		}
	}
	return out
}

// Discover reads the agents in some places. Where two have one name, that of the
// earlier place counts. The warnings say what is no agent, and why.
func Discover(places []Place) (found []Definition, warnings []string) {
	s := scan{taken: map[string]string{}}
	for _, p := range places {
		entries, err := os.ReadDir(p.Dir)
		if err != nil {
			if !errors.Is(err, os.ErrNotExist) {
				s.warnings = append(s.warnings, err.Error())
			}
			continue
		}
		for _, e := range entries {
			if strings.HasSuffix(e.Name(), ".md") {
				s.add(filepath.Join(p.Dir, e.Name()), p.Source, "")
			}
		}
	}
	return s.found, s.warnings
}

// Plugged reads the agents in the files of a plugin whose directory is root, and
// adds them to those that were found before. One of a name that there is already
// does not count.
func Plugged(before []Definition, root string, files []string) (found []Definition, warnings []string) {
	s := scan{taken: map[string]string{}, found: before}
	for _, d := range before {
		s.taken[d.Name] = d.Path
	}
	for _, f := range files {
		s.add(f, "plugin", root)
	}
	return s.found, s.warnings
}

// scan is what reading files has come to.
type scan struct {
	taken    map[string]string // names, and which file each is from
	found    []Definition
	warnings []string
}

// add reads one file.
func (s *scan) add(path, source, root string) {
	d, err := read(path)
	if err != nil {
		s.warnings = append(s.warnings, path+": "+err.Error())
		return
	}
	if have, ok := s.taken[d.Name]; ok {
		s.warnings = append(s.warnings, fmt.Sprintf("%s: there is an agent %s already, in %s", path, d.Name, have))
		return
	}
	s.taken[d.Name], d.Source, d.Root = path, source, root
	s.found = append(s.found, d)
}

// read reads one file.
func read(path string) (Definition, error) {
	i, err := os.Stat(path)
	if err != nil {
		return Definition{}, err
	}
	if !i.Mode().IsRegular() {
		return Definition{}, errors.New("it is no file")
	}
	f, err := os.Open(path)
	if err != nil {
		return Definition{}, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return Definition{}, err
	}
	if len(b) > maxFile {
		return Definition{}, fmt.Errorf("it is longer than the %d bytes that an agent may have", maxFile)
	}
	name := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(path), ".md"), ".agent")
	d, err := Parse(name, b)
	d.Path = path
	return d, err
}

// header is the front matter of a file.
type header struct {
	Name            string         `yaml:"name"`
	DisplayName     string         `yaml:"displayName"`
	Description     string         `yaml:"description"`
	Tools           *list          `yaml:"tools"`
	Infer           *bool          `yaml:"infer"`
	Disable         *bool          `yaml:"disable-model-invocation"`
	Skills          list           `yaml:"skills"`
	Model           string         `yaml:"model"`
	ReasoningEffort string         `yaml:"reasoningEffort"`
	MCPServers      map[string]any `yaml:"mcp-servers"`
}

// list is a list of names: a YAML sequence, or text with commas.
type list []string

// UnmarshalYAML takes both forms.
func (l *list) UnmarshalYAML(n *yaml.Node) error {
	var many []string
	if err := n.Decode(&many); err == nil {
		*l = many
		return nil
	}
	var one string
	if err := n.Decode(&one); err != nil {
		return fmt.Errorf("line %d: a list of names is expected", n.Line)
	}
	for _, name := range strings.Split(one, ",") {
		if name = strings.TrimSpace(name); name != "" {
			*l = append(*l, name)
		}
	}
	return nil
}

// Parse takes a file apart: name is what it is called where its front matter does
// not say.
func Parse(name string, file []byte) (Definition, error) {
	if !utf8.Valid(file) {
		return Definition{}, errors.New("it is not UTF-8 text")
	}
	text := strings.ReplaceAll(strings.TrimPrefix(string(file), "\ufeff"), "\r\n", "\n")
	head, body, err := split(text)
	if err != nil {
		return Definition{}, err
	}
	var h header
	if err := yaml.NewDecoder(bytes.NewReader([]byte(head))).Decode(&h); err != nil && !errors.Is(err, io.EOF) {
		return Definition{}, fmt.Errorf("its front matter cannot be read: %w", err)
	}
	d := Definition{
		Name: name, DisplayName: h.DisplayName, Description: strings.TrimSpace(h.Description), Prompt: strings.TrimSpace(body),
		Skills: h.Skills, Model: h.Model, ReasoningEffort: h.ReasoningEffort, MCPServers: h.MCPServers,
		NoInfer: h.Infer != nil && !*h.Infer || h.Disable != nil && *h.Disable,
	}
	if h.Name != "" {
		d.Name = h.Name
	}
	if d.DisplayName == "" {
		d.DisplayName = d.Name
	}
	if h.Tools != nil && !slices.Contains(*h.Tools, "*") {
		d.Tools = append([]string{}, *h.Tools...)
	}
	switch {
	case d.Name == "" || strings.ContainsAny(d.Name, "\n\x00"):
		return Definition{}, errors.New("it has no usable name")
	case d.Prompt == "":
		return Definition{}, errors.New("there is no text behind its front matter: that text is the agent's prompt")
	}
	return d, nil
}

// split separates the front matter from the text. A file without one is text.
func split(text string) (head, body string, err error) {
	rest, ok := strings.CutPrefix(text, "---\n")
	if !ok {
		return "", text, nil
	}
	if strings.HasPrefix(rest, "---\n") || rest == "---" {
		return "", strings.TrimPrefix(strings.TrimPrefix(rest, "---"), "\n"), nil
	}
	head, body, ok = strings.Cut(rest, "\n---\n")
	if !ok {
		if head, ok = strings.CutSuffix(rest, "\n---"); !ok {
			return "", "", errors.New("its front matter begins with --- and has no line --- that ends it")
		}
	}
	return head, body, nil
}
