package prompt

import (
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/transom-run/transom/internal/lazy"
)

// Source is one file of custom instructions.
type Source struct {
	// Path is absolute; Label is it as people know it, relative to Base.
	Path, Label, Base string
	// Text is what stands in the file, without its front matter.
	Text string
	// Raw is the file as it stands.
	Raw string
	// ApplyTo are the patterns of files that the instructions are for; empty: all.
	ApplyTo []string
	// Description is the front matter's, if it has one.
	Description string
}

const (
	// maxInstruction is how much of one file is read; what is beyond is left out,
	// and said to be.
	maxInstruction = 64 << 10
	// maxInstructions bounds all of them together.
	maxInstructions = 256 << 10
	// maxInstructionFiles bounds how many files of one directory are read.
	maxInstructionFiles = 100
)

// instructionFiles are looked for in the working directory and at the root of its
// repository.
var instructionFiles = []string{".github/copilot-instructions.md", "AGENTS.md", "CLAUDE.md"}

// InstructionPaths are where instructions are looked for in a directory, with
// slashes; new ones belong into the first. The last is a directory of files
// NAME.instructions.md.
func InstructionPaths() []string { return append(slices.Clone(instructionFiles), instructionDir) }

// instructionDir holds further files, NAME.instructions.md.
const instructionDir = ".github/instructions"

// ReadInstructions reads the custom instructions for a session in dir, whose
// repository begins at root ("" is none), and of more directories that a host
// named. The order is that of the arguments, names sorted; a text that stands in
// two files counts once. Links that lead out of their directory are not followed:
// the contents of a repository must not decide which files of the machine are
// read.
func ReadInstructions(dir, root string, more []string) []Source {
	var out []Source
	bases := []string{}
	if root != "" && root != dir {
		bases = append(bases, root)
	}
	for _, base := range append(bases, dir) {
		out = append(out, readBase(base, instructionFiles)...)
	}
	for _, base := range more {
		out = append(out, readBase(base, nil)...)
	}
	seen, size := map[string]bool{}, 0
	return slices.DeleteFunc(out, func(s Source) bool {
		text := strings.TrimSpace(s.Text)
		if text == "" || seen[text] || size+len(text) > maxInstructions {
			return true
		}
		seen[text], size = true, size+len(text)
		return false
	})
}

func readBase(base string, names []string) (out []Source) {
	root, err := os.OpenRoot(base)
	if err != nil {
		return nil
	}
	defer root.Close()
	names = slices.Clone(names)
	if entries, err := fs.ReadDir(root.FS(), instructionDir); err == nil {
		for _, e := range entries {
			if strings.HasSuffix(e.Name(), ".instructions.md") && len(names) < maxInstructionFiles {
				names = append(names, path.Join(instructionDir, e.Name()))
			}
		}
	}
	for _, name := range names {
		raw, ok := read(root, name)
		if !ok {
			continue
		}
		s := Source{Path: filepath.Join(base, filepath.FromSlash(name)), Label: name, Base: base, Raw: raw}
		s.Text, s.ApplyTo, s.Description = front(raw)
		out = append(out, s)
	}
	return out
}

// read reads a file of text; what else there is under the name is none.
func read(root *os.Root, name string) (string, bool) {
	if info, err := root.Stat(name); err != nil || !info.Mode().IsRegular() {
		return "", false
	}
	f, err := root.Open(name)
	if err != nil {
		return "", false
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxInstruction+1))
	if err != nil {
		return "", false
	}
	text := string(b)
	if len(b) > maxInstruction {
		cut := maxInstruction
		for cut > 0 && !utf8.RuneStart(b[cut]) {
			cut--
		}
		text = string(b[:cut]) + "\n[Cut here: the file is longer than what is read of instructions.]"
	}
	text = strings.TrimPrefix(text, "\ufeff")
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\ufffd"), "\r\n", "\n"), true
}

// front takes the front matter off a text: applyTo and description count.
func front(raw string) (text string, applyTo []string, description string) {
	rest, ok := strings.CutPrefix(raw, "---\n")
	if !ok {
		return raw, nil, ""
	}
	head, body, ok := strings.Cut(rest, "\n---\n")
	if !ok {
		if head, ok = strings.CutSuffix(rest, "\n---"); !ok {
			return raw, nil, ""
		}
	}
	for _, line := range strings.Split(head, "\n") {
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		if n := len(value); n > 1 && (value[0] == '"' || value[0] == '\'') && value[n-1] == value[0] {
			value = value[1 : n-1]
		}
		switch strings.TrimSpace(name) {
		case "applyTo":
			for _, p := range strings.Split(value, ",") {
				if p = strings.TrimSpace(p); p != "" {
					applyTo = append(applyTo, p)
				}
			}
		case "description":
			description = value
		}
	}
	return body, applyTo, description
}

// everywhere reports whether patterns name all files.
func everywhere(patterns []string) bool {
	return len(patterns) == 0 || slices.Contains(patterns, "**") || slices.Contains(patterns, "**/*") || slices.Contains(patterns, "*")
}

// instructions is the section of custom instructions; "" where there are none.
func instructions(s Surroundings) string {
	var b strings.Builder
	if text := strings.TrimSpace(s.Organization); text != "" {
		b.WriteString("<instructions source=\"organization\">\n" + text + "\n</instructions>\n")
	}
	for _, f := range s.Instructions {
		b.WriteString("<instructions source=\"" + attribute(f.Label) + "\"")
		if !everywhere(f.ApplyTo) {
			b.WriteString(" for=\"" + attribute(strings.Join(f.ApplyTo, ", ")) + "\"")
		}
		b.WriteString(">\n" + strings.TrimSpace(f.Text) + "\n</instructions>\n")
	}
	if b.Len() == 0 {
		return ""
	}
	return "<custom_instructions>\nThe people who own this work wrote these instructions. Follow them where they apply; what the user says goes before them. Those with \"for\" are for work on matching files.\n" +
		b.String() + "</custom_instructions>"
}

var attributes = lazy.Value[*strings.Replacer]{Make: func() *strings.Replacer {
	return strings.NewReplacer(`"`, "&quot;", "<", "&lt;", "\n", " ")
}}

func attribute(s string) string { return attributes.Get().Replace(s) }

// Repository is the root of the repository that a directory is in; "" where it is
// in none.
func Repository(dir string) string {
	for {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			return ""
		}
		dir = up
	}
}
