package tool

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// MaxResultBytes is the size up to which a model reads a result whole.
const MaxResultBytes = 20480

// previewChars is how much of a larger one it reads, in characters.
const previewChars = 500

// Oversized reports whether a result's text must be cut.
func Oversized(text string) bool { return len(text) > MaxResultBytes }

// OversizedNotice is what the model reads in place of a large result: its size,
// where the whole of it is, and how it begins. path is where the caller saved
// the text; "" where the session has no tool that could read it there, and then
// the notice names none.
func OversizedNotice(text, path string) string {
	size := strconv.FormatFloat(float64(len(text))/1024, 'f', 1, 64)
	preview := firstChars(text, previewChars)
	if path != "" {
		return tooLarge(size, path, preview)
	}
	return fmt.Sprintf("Output too large to read at once (%s KB), and this session has no tool that could read the rest.\n"+
		"If the preview is not enough, call the tool again in a way that gives less output.\n\n%s", size, previewOf(preview))
}

// firstChars takes the first n characters of s.
func firstChars(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// OutputFileName is the name of the file that keeps a large result:
// <milliseconds>-copilot-tool-output-<id>.txt, the form that recorded
// conversations are compared in. Of id, which should be random, only lower-case
// letters and digits are used.
func OutputFileName(at time.Time, id string) string {
	id = strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || '0' <= r && r <= '9' {
			return r
		}
		return -1
	}, strings.ToLower(id))
	if id == "" {
		id = "0"
	}
	return fmt.Sprintf("%d-copilot-tool-output-%s.txt", at.UnixMilli(), id)
}
