package transom

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
)

// Diff is how the session's working directory differs from its repository.
type Diff struct {
	// Base is the branch that was compared with; "" for the index.
	Base    string
	Changes []FileDiff
}

// FileDiff is one changed file.
type FileDiff struct {
	Path      string // relative to the working directory
	OldPath   string // of a file that was renamed
	Type      string // "added", "modified", "deleted" or "renamed"
	Diff      string // unified
	Truncated bool   // Diff was too long, and is empty
}

const (
	maxFileDiff = 256 << 10
	maxDiff     = 16 << 20
	maxNewFiles = 1000
)

// Diff compares the working directory with the index, untracked files included,
// or with the point where the current branch left the repository's main branch.
// Where there is no such branch it compares with the index, and Base is "". A
// directory that is in no repository has no differences.
func (h *Session) Diff(ctx context.Context, branch, ignoreSpace bool) (Diff, error) {
	const op = "session.workspaces.diff"
	g := git{dir: h.Info().Dir, env: h.rt.environ()}
	var d Diff
	if _, err := g.run(ctx, "rev-parse", "--show-toplevel"); err != nil {
		return d, g.silent(op, h.id, err)
	}
	args := []string{"diff", "--no-color", "--no-ext-diff", "--no-textconv", "--relative", "-M", "--src-prefix=a/", "--dst-prefix=b/"}
	if ignoreSpace {
		args = append(args, "--ignore-all-space")
	}
	tracked := args
	if branch {
		base, from := g.base(ctx)
		d.Base = base
		if from != "" {
			tracked = append(tracked[:len(tracked):len(tracked)], from)
		}
	}
	raw, err := g.run(ctx, append(tracked[:len(tracked):len(tracked)], "--")...)
	if err != nil {
		return d, g.silent(op, h.id, err)
	}
	d.Changes = parseDiff(string(raw))
	fresh, err := g.run(ctx, "ls-files", "--others", "--exclude-standard", "-z")
	if err != nil {
		return d, g.silent(op, h.id, err)
	}
	names := strings.Split(string(fresh), "\x00")
	for _, name := range names[:min(len(names), maxNewFiles)] {
		if name == "" {
			continue
		}
		raw, err := g.run(ctx, append(args[:len(args):len(args)], "--no-index", "--", "/dev/null", name)...)
		var exit *exec.ExitError
		if err != nil && !(errors.As(err, &exit) && exit.ExitCode() == 1) { // 1: they differ
			continue
		}
		for _, c := range parseDiff(string(raw)) {
			c.Path, c.OldPath, c.Type = filepath.ToSlash(name), "", "added"
			d.Changes = append(d.Changes, c)
		}
	}
	return d, nil
}

// git asks git about a directory, with nothing of the repository's own settings
// that would run a program.
type git struct {
	dir string
	env []string
}

func (g git) run(ctx context.Context, args ...string) ([]byte, error) {
	safe := []string{"-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.quotePath=false", "-c", "core.pager=cat"}
	cmd := exec.CommandContext(ctx, "git", append(safe, args...)...)
	cmd.Dir = g.dir
	cmd.Env = append(g.env, "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "LC_ALL=C")
	var out bytes.Buffer
	cmd.Stdout = &limited{&out, maxDiff}
	err := cmd.Run()
	return out.Bytes(), err
}

// limited drops what is beyond its limit.
type limited struct {
	w    io.Writer
	left int
}

func (l *limited) Write(p []byte) (int, error) {
	n := min(len(p), l.left)
	l.left -= n
	if _, err := l.w.Write(p[:n]); err != nil {
		return 0, err
	}
	return len(p), nil
}

// silent passes over what only says that there is nothing to compare with: no
// git, no repository.
func (g git) silent(op, id string, err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) || errors.Is(err, exec.ErrNotFound) {
		return nil
	}
	return wrap(op, id, err)
}

// base finds the repository's main branch, and the commit where the current one
// left it.
func (g git) base(ctx context.Context) (name, commit string) {
	candidates := []string{"origin/main", "origin/master", "main", "master"}
	if raw, err := g.run(ctx, "symbolic-ref", "--short", "refs/remotes/origin/HEAD"); err == nil {
		candidates = append([]string{strings.TrimSpace(string(raw))}, candidates...)
	}
	for _, c := range candidates {
		if raw, err := g.run(ctx, "merge-base", "HEAD", c); err == nil {
			return strings.TrimPrefix(c, "origin/"), strings.TrimSpace(string(raw))
		}
	}
	return "", ""
}

// parseDiff cuts git's output into files.
func parseDiff(text string) []FileDiff {
	var out []FileDiff
	const head = "diff --git "
	for len(text) > 0 {
		if !strings.HasPrefix(text, head) {
			i := strings.Index(text, "\n"+head)
			if i < 0 {
				break
			}
			text = text[i+1:]
		}
		part := text
		if i := strings.Index(text[1:], "\n"+head); i >= 0 {
			part, text = text[:i+2], text[i+2:]
		} else {
			text = ""
		}
		out = append(out, parseFile(part))
	}
	return out
}

func parseFile(part string) FileDiff {
	c := FileDiff{Type: "modified", Diff: part}
	first := true
	for line := range strings.Lines(part) {
		line = strings.TrimSuffix(line, "\n")
		if first {
			first = false
			// "a/NAME b/NAME": for files that have no line of their own below.
			names := strings.TrimPrefix(line, "diff --git ")
			c.Path = strings.TrimPrefix(names[(len(names)+1)/2:], "b/")
			continue
		}
		if strings.HasPrefix(line, "@@") {
			break
		}
		switch {
		case strings.HasPrefix(line, "new file mode"):
			c.Type = "added"
		case strings.HasPrefix(line, "deleted file mode"):
			c.Type = "deleted"
		case strings.HasPrefix(line, "rename from "):
			c.Type, c.OldPath = "renamed", strings.TrimPrefix(line, "rename from ")
		case strings.HasPrefix(line, "rename to "):
			c.Path = strings.TrimPrefix(line, "rename to ")
		case strings.HasPrefix(line, "+++ b/"):
			c.Path = strings.TrimSuffix(strings.TrimPrefix(line, "+++ b/"), "\t")
		case strings.HasPrefix(line, "--- a/") && c.Type == "deleted":
			c.Path = strings.TrimSuffix(strings.TrimPrefix(line, "--- a/"), "\t")
		}
	}
	if len(c.Diff) > maxFileDiff {
		c.Diff, c.Truncated = "", true
	}
	return c
}
