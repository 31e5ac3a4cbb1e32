package builtin

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/transom-run/transom/tool"
	"mvdan.cc/sh/v3/syntax"
)

// maxParsed is the longest command line that is looked into.
const maxParsed = 64 << 10

// maxWords is how many of a line's words are looked up as files.
const maxWords = 200

// commandLine is what a command line shows of itself before it runs. It serves
// people and approvals; it is no sandbox, and where anything is not plain it says
// so (Plain is false) and nothing is promised.
type commandLine struct {
	Commands []shellCommand
	Segments []shellSegment
	Paths    []string
	URLs     []shellURL
	// Words are the arguments without a slash, which may name links.
	Words []string
	// Hidden are paths inside of arguments (of=/etc/x, -f/etc/x, @/etc/x), and
	// Patterns arguments that stand for the files they match. Neither is shown.
	Hidden, Patterns []string
	// Dirs are the directories that the line changes to.
	Dirs []string

	loops map[string]bool // the variables of its loops
	// Writes: some output is redirected into a file.
	Writes bool
	// Plain: the identifiers say what runs, so that approving them for longer
	// makes sense.
	Plain bool
	// Parsed is false where the line could not be read at all.
	Parsed bool
}

// readCommandLine looks into a command line. It never fails and never panics.
func readCommandLine(text string) (c commandLine) {
	c = commandLine{Commands: []shellCommand{}, Paths: []string{}, URLs: []shellURL{}}
	if len(text) > maxParsed || strings.Count(text, "(")+strings.Count(text, "{") > 2000 {
		return c
	}
	none := c
	defer func() {
		if recover() != nil { // the parser's fault, not the command's
			c = none
		}
	}()
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		return none
	}
	c.Parsed, c.Plain = true, !strange(text)
	c.loops = loopVariables(file)
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CallExpr:
			c.call(text, n)
		case *syntax.Redirect:
			c.redirect(n)
		case *syntax.Word:
			c.word(n)
		case *syntax.WordIter: // for PATH in …
			c.loop(n)
		}
		if !c.plainNode(n) {
			c.Plain = false
		}
		return true
	})
	slices.Sort(c.Paths)
	c.Paths = slices.Compact(c.Paths)
	if len(c.Commands) == 0 {
		c.Plain = false
	}
	return c
}

// call takes up one simple command.
func (c *commandLine) call(text string, n *syntax.CallExpr) {
	if len(n.Assigns) > 0 {
		c.Plain = false // variables steer programs, and are looked into by the shell
	}
	if len(n.Args) == 0 {
		return
	}
	words := make([]string, len(n.Args))
	static := make([]bool, len(n.Args))
	for i, w := range n.Args {
		words[i], static[i] = literal(w)
		static[i] = static[i] || words[i] == "["
	}
	for i := range words[1:] {
		c.argument(n.Args[i+1], words[i+1], static[i+1])
	}
	if words[0] == "cd" && len(words) == 2 {
		c.Dirs = append(c.Dirs, words[1])
	}
	segment := text[min(n.Pos().Offset(), uint(len(text))):min(n.End().Offset(), uint(len(text)))]
	id := segment
	if static[0] && words[0] != "" {
		var plain bool
		if id, plain = identify(words, static); !plain {
			c.Plain = false
		}
	} else {
		c.Plain = false
	}
	c.Segments = append(c.Segments, shellSegment{Identifier: id, FullCommandText: segment})
	reads := static[0] && readsOnly(words, static)
	for i := range c.Commands {
		if c.Commands[i].Identifier == id {
			c.Commands[i].ReadOnly = c.Commands[i].ReadOnly && reads
			return
		}
	}
	c.Commands = append(c.Commands, shellCommand{Identifier: id, ReadOnly: reads})
}

func (c *commandLine) redirect(n *syntax.Redirect) {
	if n.N != nil && strings.Trim(n.N.Value, "0123456789") != "" { // {PATH}<file sets a variable
		c.Plain = false
	}
	target, static := "", false
	if n.Word != nil {
		target, static = literal(n.Word)
	}
	switch n.Op {
	case syntax.RdrIn, syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc, syntax.DplIn:
	case syntax.DplOut: // 2>&1, but also >&file
		if !static || strings.Trim(target, "0123456789-") != "" {
			c.Writes = true
		}
	default:
		if !static || target != "/dev/null" {
			c.Writes = true
		}
	}
	if static && target != "/dev/null" && strings.Trim(target, "0123456789-") != "" {
		switch n.Op {
		case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
		default:
			c.Paths = append(c.Paths, target)
		}
	}
}

// word takes up what looks like a path or a URL.
func (c *commandLine) word(n *syntax.Word) {
	text, static := literal(n)
	if !static {
		text = prefix(n)
	}
	c.inside(text)
	for _, scheme := range []string{"http://", "https://", "ftp://"} {
		if i := strings.Index(text, scheme); i >= 0 {
			url := strings.TrimRight(text[i:], ",;\"')")
			if fields := strings.FieldsFunc(url, func(r rune) bool { return r <= ' ' }); len(fields) > 0 && !slices.Contains(c.URLs, shellURL{fields[0]}) {
				c.URLs = append(c.URLs, shellURL{fields[0]})
			}
			return
		}
	}
	if option, value, ok := strings.Cut(text, "="); ok && strings.HasPrefix(option, "-") {
		text = value
	}
	if strings.ContainsAny(text, "\n\x00") || text == "/dev/null" {
		return
	}
	if strings.HasPrefix(text, "/") || strings.HasPrefix(text, "~") || strings.HasPrefix(text, ".") && len(strings.Trim(text, ".")) < len(text) ||
		strings.Contains(text, "/") && !strings.HasPrefix(text, "-") {
		c.Paths = append(c.Paths, text)
	}
}

// literal is the text of a word, and whether that is all there is to it: no
// variable, no substitution, no pattern.
func literal(w *syntax.Word) (string, bool) {
	var b strings.Builder
	static := true
	var add func(parts []syntax.WordPart, quoted bool)
	add = func(parts []syntax.WordPart, quoted bool) {
		for _, p := range parts {
			switch p := p.(type) {
			case *syntax.Lit:
				text := p.Value
				if !quoted {
					if strings.ContainsAny(text, "*?[{") {
						static = false
					}
				}
				b.WriteString(unescape(text, quoted))
			case *syntax.SglQuoted:
				b.WriteString(p.Value)
				static = static && !p.Dollar
			case *syntax.DblQuoted:
				add(p.Parts, true)
			default:
				static = false
				return
			}
		}
	}
	add(w.Parts, false)
	return b.String(), static
}

// unescape takes the backslashes off, as the shell does.
func unescape(text string, quoted bool) string {
	if !strings.Contains(text, `\`) {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) && (!quoted || strings.IndexByte("$`\"\\\n", text[i+1]) >= 0) {
			i++
			if text[i] == '\n' {
				continue
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// prefix is the part of a word that stands before anything that changes.
func prefix(w *syntax.Word) string {
	text, _ := literal(&syntax.Word{Parts: w.Parts[:min(1, len(w.Parts))]})
	return text
}

// exactly begins no identifier, so that what begins so can be told from one.
const exactly = "="

// askShell is the question about a command line.
func (s *Set) askShell(call tool.Call, command, intention, warning string) (tool.Permission, error) {
	line := readCommandLine(command)
	dir := s.dir(call)
	req := shellRequest{Kind: "shell", FullCommandText: valid(command), Intention: valid(intention), Warning: warning,
		Commands: line.Commands, CommandSegments: line.Segments, PossiblePaths: line.Paths, PossibleURLs: line.URLs,
		HasWriteFileRedirection: line.Writes, ResolvedWorkingDirectory: valid(resolve(dir)),
		CanOfferSessionApproval: line.Plain && !line.Writes && warning == "",
	}
	if !line.Parsed && warning == "" {
		req.Warning = "The command could not be read as a shell would read it."
	}
	for _, w := range line.Words {
		if strings.ContainsAny(w, "/\x00") || len(w) > 255 {
			continue
		}
		if info, err := os.Lstat(filepath.Join(dir, w)); err == nil && info.Mode()&os.ModeSymlink != 0 && !slices.Contains(req.PossiblePaths, w) {
			req.PossiblePaths = append(req.PossiblePaths, w)
		}
	}
	for _, p := range req.PossiblePaths {
		if strings.HasPrefix(p, "~") {
			continue
		}
		full := p
		if !filepath.IsAbs(full) {
			full = filepath.Join(dir, full)
		}
		if req.ResolvedPaths == nil {
			req.ResolvedPaths = map[string]string{}
		}
		req.ResolvedPaths[valid(p)] = valid(resolve(filepath.Clean(full)))
	}
	req.CanOfferSessionApproval = req.CanOfferSessionApproval && s.staysInside(line, dir)
	return shellPermission(req)
}

// askInput is the question about what is typed into a running command.
func (s *Set) askInput(input, command string) (tool.Permission, error) {
	return shellPermission(shellRequest{Kind: "shell", FullCommandText: valid(input), Intention: valid("Input for the running command: " + oneLine(command, 200)),
		Commands: []shellCommand{}, PossiblePaths: []string{}, PossibleURLs: []shellURL{}})
}

func shellPermission(req shellRequest) (tool.Permission, error) {
	prompt := shellPrompt{Kind: "commands", FullCommandText: req.FullCommandText, Intention: req.Intention, Warning: req.Warning,
		CanOfferSessionApproval: req.CanOfferSessionApproval, CommandIdentifiers: []string{}}
	for i := range req.Commands {
		req.Commands[i].Identifier = valid(req.Commands[i].Identifier)
		prompt.CommandIdentifiers = append(prompt.CommandIdentifiers, req.Commands[i].Identifier)
	}
	var p tool.Permission
	var err error
	if p.Request, err = json.Marshal(req); err != nil {
		return p, err
	}
	p.Prompt, err = json.Marshal(prompt)
	return p, err
}
