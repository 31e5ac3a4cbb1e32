package builtin

import (
	"fmt"
	"strings"
)

// diffContext is how many unchanged lines stand around a change.
const diffContext = 3

// change is where two texts differ: lines from (of the old text) up to oldEnd
// became the lines from up to newEnd of the new one. The tools change one place
// of a file, so one such region says everything.
type change struct {
	oldLines, newLines   []string // each with its line feed
	from, oldEnd, newEnd int
}

func compare(before, after string) change {
	c := change{oldLines: strings.SplitAfter(before, "\n"), newLines: strings.SplitAfter(after, "\n")}
	// A text that ends in a line feed has no further line.
	c.oldLines, c.newLines = dropEmpty(c.oldLines), dropEmpty(c.newLines)
	c.oldEnd, c.newEnd = len(c.oldLines), len(c.newLines)
	for c.from < c.oldEnd && c.from < c.newEnd && c.oldLines[c.from] == c.newLines[c.from] {
		c.from++
	}
	for c.oldEnd > c.from && c.newEnd > c.from && c.oldLines[c.oldEnd-1] == c.newLines[c.newEnd-1] {
		c.oldEnd, c.newEnd = c.oldEnd-1, c.newEnd-1
	}
	return c
}

func dropEmpty(lines []string) []string {
	if n := len(lines); lines[n-1] == "" {
		return lines[:n-1]
	}
	return lines
}

// of counts the lines of a change.
func (c change) of(ch Change) Change {
	ch.Added, ch.Removed = c.newEnd-c.from, c.oldEnd-c.from
	return ch
}

// core is the change without its surroundings, by which two changes are compared.
func (c change) core() string {
	var b strings.Builder
	writeLines(&b, '-', c.oldLines[c.from:c.oldEnd])
	writeLines(&b, '+', c.newLines[c.from:c.newEnd])
	return b.String()
}

// unified is the change as a unified diff, as git prints it. exists is false for a
// file that the change makes.
func (c change) unified(path string, exists bool) string {
	var b strings.Builder
	name := strings.TrimPrefix(path, "/")
	fmt.Fprintf(&b, "diff --git a/%s b/%s\n", name, name)
	if exists {
		fmt.Fprintf(&b, "--- a/%s\n", name)
	} else {
		b.WriteString("new file mode 100644\n--- /dev/null\n")
	}
	fmt.Fprintf(&b, "+++ b/%s\n", name)
	if c.from == c.oldEnd && c.from == c.newEnd {
		return b.String()
	}
	start := max(0, c.from-diffContext)
	oldStop := min(len(c.oldLines), c.oldEnd+diffContext)
	newStop := min(len(c.newLines), c.newEnd+diffContext)
	fmt.Fprintf(&b, "@@ -%s +%s @@\n", span(start, oldStop), span(start, newStop))
	writeLines(&b, ' ', c.oldLines[start:c.from])
	writeLines(&b, '-', c.oldLines[c.from:c.oldEnd])
	writeLines(&b, '+', c.newLines[c.from:c.newEnd])
	writeLines(&b, ' ', c.oldLines[c.oldEnd:oldStop])
	return b.String()
}

// span is a range of lines as a hunk's header has it.
func span(from, to int) string {
	switch to - from {
	case 0:
		return fmt.Sprintf("%d,0", from)
	case 1:
		return fmt.Sprint(from + 1)
	}
	return fmt.Sprintf("%d,%d", from+1, to-from)
}

func writeLines(b *strings.Builder, mark byte, lines []string) {
	for _, l := range lines {
		b.WriteByte(mark)
		b.WriteString(l)
		if !strings.HasSuffix(l, "\n") {
			b.WriteString("\n\\ No newline at end of file\n")
		}
	}
}
