package builtin

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os/exec"
	"strconv"
	"strings"
)

// maxLine is how much of a line is shown.
const maxLine = 1000

// forRipgrep reports whether ripgrep can be told all of it: patterns of paths, and
// a pattern beside a type, it would take for something else.
func (a grepArgs) forRipgrep() bool {
	return !strings.ContainsAny(a.Glob, "/:") && (a.Glob == "" || a.Type == "")
}

// searchRipgrep searches with ripgrep, told to do as our own search does: no
// configuration of the user's, the ignore files of git only, hidden files too, in
// the order of the paths.
func (s *Set) searchRipgrep(ctx context.Context, rg, dir string, a grepArgs, in []place) ([]string, error) {
	args := []string{"--no-config", "--color=never", "--no-messages", "--no-heading", "--with-filename", "--hidden", "--crlf",
		"--no-require-git", "--no-ignore-dot", "--no-ignore-global", "--sort=path"}
	switch a.Mode {
	case modeFiles:
		args = append(args, "--files-with-matches")
	case modeCount:
		args = append(args, "--count")
	default:
		if a.numbers() {
			args = append(args, "--line-number")
		} else {
			args = append(args, "--no-line-number")
		}
		args = append(args, "--after-context="+strconv.Itoa(a.After), "--before-context="+strconv.Itoa(a.Before))
	}
	if a.Fold {
		args = append(args, "--ignore-case")
	}
	if a.Multiline {
		args = append(args, "--multiline", "--multiline-dotall")
	}
	if a.Type != "" {
		args = append(args, "--type="+a.Type)
	}
	// A pattern given as a type and not as a glob, because ripgrep's globs bring back
	// what git ignores.
	if glob, not := strings.CutPrefix(a.Glob, "!"); not {
		args = append(args, "--type-add=wanted:"+glob, "--type-not=wanted")
	} else if glob != "" {
		args = append(args, "--type-add=wanted:"+glob, "--type=wanted")
	}
	args = append(args, "--glob=!.git", "--regexp="+a.Pattern, "--")
	for _, p := range in {
		args = append(args, p.named)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := exec.CommandContext(ctx, rg, args...)
	cmd.Dir, cmd.Env = dir, s.environment()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	lines, full, err := firstLines(stdout, a.Limit+1)
	if full || err != nil {
		cancel()
	}
	waited := cmd.Wait()
	if full || err != nil {
		return lines, err
	}
	var exit *exec.ExitError
	if errors.As(waited, &exit) {
		switch {
		case exit.ExitCode() == 1:
			return lines, nil // nothing was found
		case len(lines) > 0:
			return lines, nil // some file could not be read
		case exit.ExitCode() == 2 && stderr.Len() > 0:
			return nil, refused("The search cannot be made: " + strings.TrimSpace(stderr.String()))
		case exit.ExitCode() == 2:
			return nil, nil // nothing but files that cannot be read
		}
	}
	return lines, waited
}

// firstLines reads up to most lines, each cut to what is shown.
func firstLines(r io.Reader, most int) (lines []string, full bool, err error) {
	br := bufio.NewReaderSize(r, 64<<10)
	var line []byte
	for {
		part, err := br.ReadSlice('\n')
		if len(line) <= maxLine {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF):
			if len(line) > 0 {
				lines = append(lines, shown(line))
			}
			return lines, false, nil
		case err != nil:
			return lines, false, err
		}
		if lines = append(lines, shown(line)); len(lines) == most {
			return lines, true, nil
		}
		line = line[:0]
	}
}

// shown is a line as results have it: without its end, and not too long.
func shown(line []byte) string {
	line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
	if len(line) > maxLine {
		return string(wholeEnd(line[:maxLine])) + " […]"
	}
	return string(line)
}
