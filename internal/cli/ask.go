package cli

import (
	"bufio"
	"context"
	"io"
	"strings"
	"sync"
)

// asker reads a person's answers, a line each. Reading ends with the context,
// although a read from a terminal cannot be called off: the goroutine that reads
// stays behind until its line comes or the process ends, and the line is the
// answer to the next question.
type asker struct {
	in    *bufio.Reader
	lines chan string

	mu      sync.Mutex
	reading bool
}

func newAsker(in io.Reader) *asker {
	return &asker{in: bufio.NewReader(in), lines: make(chan string, 1)}
}

// line returns the next answer in lower case and without space around it. ok is
// false at the end of the input and where ctx ends first.
func (a *asker) line(ctx context.Context) (answer string, ok bool) {
	a.mu.Lock()
	if !a.reading {
		a.reading = true
		go a.read()
	}
	a.mu.Unlock()
	select {
	case text, open := <-a.lines:
		return strings.ToLower(strings.TrimSpace(text)), open
	case <-ctx.Done():
		return "", false
	}
}

func (a *asker) read() {
	text, err := a.in.ReadString('\n')
	a.mu.Lock()
	defer a.mu.Unlock()
	if text == "" && err != nil {
		close(a.lines) // the end: reading stays set, nobody reads again
		return
	}
	a.lines <- text
	a.reading = false
}
