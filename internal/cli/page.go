package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	pageWidth  = 80
	labelWidth = 13 // two of them the indentation
)

// page writes what a person reads: labelled paragraphs, wrapped and safe to show.
//
//	label     text that goes on and on until the line is full and then
//	          continues below itself
//
// The first error of the writer is kept; what is written after it is dropped.
type page struct {
	w   io.Writer
	cut int // show at most so many lines of an item; 0 is no limit
	err error
}

func (p *page) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", args...)
	}
}

// para writes a paragraph from the left margin.
func (p *page) para(text string) {
	for _, l := range wrap(text, pageWidth) {
		p.line("%s", l)
	}
}

// head begins a section.
func (p *page) head(format string, args ...any) {
	title := fmt.Sprintf(format, args...)
	p.line("")
	p.line("── %s %s", title, strings.Repeat("─", max(3, pageWidth-4-utf8.RuneCountInString(title))))
}

// item writes a labelled text.
func (p *page) item(label, text string) { p.short(label, text, p.cut) }

// short is item with a limit of its own; 0 is no limit.
func (p *page) short(label, text string, cut int) {
	lines := wrap(strings.TrimRight(printable(text), "\n"), pageWidth-labelWidth)
	left := 0
	if cut > 0 && len(lines) > cut+1 { // a remark in place of one line saves nothing
		left = len(lines) - cut
		lines = lines[:cut]
	}
	for i, l := range lines {
		if i > 0 {
			label = ""
		}
		p.line("%s", strings.TrimRight(fmt.Sprintf("  %-*s%s", labelWidth-2, label, l), " "))
	}
	if left > 0 {
		p.line("  %-*s(… and %d more lines: --full shows all)", labelWidth-2, "", left)
	}
}

// wrap cuts text into lines of at most width characters, at spaces where there
// are any. Line feeds and the indentation of a line stay.
func wrap(text string, width int) []string {
	var out []string
	for para := range strings.SplitSeq(text, "\n") {
		para = strings.TrimRight(strings.ReplaceAll(para, "\t", "    "), " ")
		body := strings.TrimLeft(para, " ")
		indent := strings.Repeat(" ", min(len(para)-len(body), width/2))
		rest := []rune(body)
		for len(rest) > width-len(indent) {
			at := width - len(indent)
			for at > 0 && rest[at] != ' ' {
				at--
			}
			if at == 0 {
				at = width - len(indent) // a long word is cut
			}
			out = append(out, indent+strings.TrimRight(string(rest[:at]), " "))
			rest = []rune(strings.TrimLeft(string(rest[at:]), " "))
		}
		out = append(out, strings.TrimRight(indent+string(rest), " "))
	}
	return out
}

// printable replaces what a terminal would take for a command. What models,
// tools and damaged files say is not trusted with the reader's terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return r
		}
		if unicode.IsControl(r) || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
			return utf8.RuneError
		}
		return r
	}, s)
}

// oneLine makes one line of at most width characters of text.
func oneLine(s string, width int) string {
	r := []rune(strings.Join(strings.Fields(printable(s)), " "))
	if len(r) > width {
		return string(r[:width-1]) + "…"
	}
	return string(r)
}

func plural(n int, one, many string) string {
	if n == 1 {
		return fmt.Sprintf("%d %s", n, one)
	}
	return fmt.Sprintf("%d %s", n, many)
}

func size(bytes int64) string {
	switch {
	case bytes < 1000:
		return fmt.Sprintf("%d B", bytes)
	case bytes < 1000*1000:
		return fmt.Sprintf("%.1f kB", float64(bytes)/1000)
	default:
		return fmt.Sprintf("%.1f MB", float64(bytes)/1000/1000)
	}
}

// isTerminal reports whether a person is at the other end of f.
func isTerminal(f any) bool {
	file, ok := f.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
