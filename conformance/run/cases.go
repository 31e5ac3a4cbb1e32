package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Suite is everything under conformance/cases: the statements the table has a
// row for, the tools every host declares, and the cases.
type Suite struct {
	Statements []Statement
	Tools      []Tool
	Cases      []*Case
}

// Statement is one row of the table.
type Statement struct {
	ID   string `yaml:"id"`
	Says string `yaml:"says"`
	// Elsewhere is the reason why no host can show the statement, and where it
	// is tested instead. Empty for all others.
	Elsewhere string `yaml:"elsewhere"`
}

// Tool is a tool as the hosts declare it, in each language's own way.
type Tool struct {
	Name        string         `yaml:"name" json:"name"`
	Description string         `yaml:"description" json:"description"`
	Parameters  map[string]any `yaml:"parameters" json:"parameters,omitempty"`
	Terminal    bool           `yaml:"terminal" json:"terminal,omitempty"`
	DeferNever  bool           `yaml:"defer_never" json:"deferNever,omitempty"`
	// Special tools are declared only by the steps that name them.
	Special bool `yaml:"special" json:"-"`
}

// Case is one story: what the host does, what the model says, what must follow.
type Case struct {
	ID    string   `yaml:"id"`
	Shows []string `yaml:"shows"` // the statements it is evidence for
	Says  string   `yaml:"says"`  // what is to be seen, in a sentence
	// Over is how the host reaches the runtime: "stdio" (the default) and "tcp"
	// start it through the SDK, "server" joins one that the runner started, and
	// "example" runs the language's hand-written example as its own program, and
	// the names in programs another one.
	Over      string `yaml:"over"`
	Streaming bool   `yaml:"streaming"`
	// Handlers and Permissions say, for each call id, what the tool handler and
	// the permission handler do. A call without an entry returns "ok" and is
	// approved.
	Handlers    map[string][]Step `yaml:"handlers"`
	Permissions map[string][]Step `yaml:"permissions"`
	// Host is the main program.
	Host []Step `yaml:"host"`
	// Conversations are the windows the model must be shown, in the format of
	// the SDK's own recordings: each assistant message is the reply to a request
	// that holds exactly the messages before it.
	Conversations []Conversation `yaml:"conversations"`
	Expect        Expect         `yaml:"expect"`
}

// Step is one thing a host does. The README lists what each Do means and which
// of the other fields it reads.
type Step struct {
	Do       string   `yaml:"do" json:"do"`
	Client   string   `yaml:"client" json:"client,omitempty"`
	As       string   `yaml:"as" json:"as,omitempty"`
	Prompt   *string  `yaml:"prompt" json:"prompt,omitempty"`
	Mode     string   `yaml:"mode" json:"mode,omitempty"`
	Type     string   `yaml:"type" json:"type,omitempty"`
	Call     string   `yaml:"call" json:"call,omitempty"`
	Count    int      `yaml:"count" json:"count,omitempty"`
	Gate     string   `yaml:"gate" json:"gate,omitempty"`
	Tools    []string `yaml:"tools" json:"tools"`
	Continue bool     `yaml:"continue" json:"continue,omitempty"`
	Text     string   `yaml:"text" json:"text,omitempty"`
	Kind     string   `yaml:"kind" json:"kind,omitempty"`
}

// Conversation is one window, from its system message on.
type Conversation struct {
	// Agent marks the window of a sub-agent, which has a system message and tools
	// of its own.
	Agent    bool      `yaml:"agent"`
	Messages []Message `yaml:"messages"`
}

// Message is one message of a window.
type Message struct {
	Role       string     `yaml:"role"`
	Content    string     `yaml:"content"`
	ToolCalls  []ToolCall `yaml:"tool_calls"`
	ToolCallID string     `yaml:"tool_call_id"`
	// Said is an assistant message that was a reply of an earlier conversation: it
	// must be in the window, and is not given again.
	Said bool `yaml:"said"`
	// Hold keeps this reply back until a host releases it.
	Hold bool `yaml:"hold"`
	// Failures are answered first, one request each; a message that has nothing
	// else is never given.
	Failures []Failure `yaml:"failures"`
}

// Failure is what a model endpoint answers when it refuses.
type Failure struct {
	Status  int    `yaml:"status"`
	Message string `yaml:"message"`
}

// ToolCall is a call in an assistant message. Arguments are an object, or the
// text the model writes in its place.
type ToolCall struct {
	ID        string `yaml:"id"`
	Name      string `yaml:"name"`
	Arguments any    `yaml:"arguments"`
}

// arguments returns the argument text as the model writes it.
func (c ToolCall) arguments() string {
	if text, ok := c.Arguments.(string); ok {
		return text
	}
	return compact(c.Arguments)
}

// Expect is what the runner asserts beyond the model's requests.
type Expect struct {
	// Log holds outcomes of steps. A step that fails and is not listed with an
	// error fails the case.
	Log []Outcome `yaml:"log"`
	// Events are checked for one stream of events each.
	Events []EventCheck `yaml:"events"`
	// Open lists the calls that may lack a completion at the end.
	Open []string `yaml:"open"`
	// Also names checks that are written in Go (checks.go).
	Also []string `yaml:"also"`
	// Stdout is what the program must print (Over: example, remote).
	Stdout string `yaml:"stdout"`
}

// Outcome is the expected result of a step: At is "host", a call id, or
// "CALL/permission".
type Outcome struct {
	At    string `yaml:"at"`
	Do    string `yaml:"do"`
	As    string `yaml:"as"`
	Value any    `yaml:"value"`
	Error string `yaml:"error"`
}

// EventCheck asserts on what one client saw ("a"), or on what a get_events step
// returned ("log:LABEL").
type EventCheck struct {
	On string `yaml:"on"`
	// Order must appear in this order; other events may stand between.
	Order []EventMatch `yaml:"order"`
	// Count is the exact number of events of a type.
	Count map[string]int `yaml:"count"`
}

// EventMatch describes one event. Strings that start with "~" are regular
// expressions; "$name" stands for any value the first time and for the same
// value from then on; null means that the field is absent.
type EventMatch struct {
	Type string         `yaml:"type"`
	ID   string         `yaml:"id"`
	Data map[string]any `yaml:"data"`
}

// alone reports whether the case is played by a program of its own.
func (c *Case) alone() bool { return c.Over == "example" || slices.Contains(programs, c.Over) }

// toolsNamed returns the definitions of the tools a create or resume step
// declares: the ones it names, or all that are not special.
func (s *Suite) toolsNamed(step Step) []Tool {
	out := []Tool{}
	for _, t := range s.Tools {
		if (step.Tools == nil && !t.Special) || slices.Contains(step.Tools, t.Name) {
			out = append(out, t)
		}
	}
	return out
}

// loadSuite reads every file of a directory and checks that they agree.
func loadSuite(dir string) (*Suite, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, err
	}
	sort.Strings(files)
	suite := &Suite{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var part struct {
			Statements []Statement `yaml:"statements"`
			Tools      []Tool      `yaml:"tools"`
			Common     any         `yaml:"common"` // a place for anchors
			Cases      []*Case     `yaml:"cases"`
		}
		dec := yaml.NewDecoder(bytes.NewReader(text))
		dec.KnownFields(true)
		if err := dec.Decode(&part); err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		suite.Statements = append(suite.Statements, part.Statements...)
		suite.Tools = append(suite.Tools, part.Tools...)
		suite.Cases = append(suite.Cases, part.Cases...)
	}
	return suite, suite.check()
}

// overTCP moves the cases that are played over stdio.
func (s *Suite) overTCP() {
	for _, c := range s.Cases {
		if c.Over == "stdio" {
			c.Over = "tcp"
		}
	}
}

// overs is the closed list of ways to reach the runtime.
var overs = append([]string{"stdio", "tcp", "server", "example"}, programs...)

// programs are the hand-written hosts that only some languages have, one a case.
var programs = []string{"remote", "everyday", "elsewhere", "reference", "kept"}

// steps is the closed list of what a host can do.
var steps = strings.Fields(`connect create resume send send_and_wait clear truncate abort
	wait_event wait_gate open_gate wait_model release_model kill disconnect stop
	get_events get_mode get_model answer return throw decide park`)

// check finds mistakes in the files before any host is started.
func (s *Suite) check() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	shown := map[string]bool{}
	for _, st := range s.Statements {
		if _, twice := shown[st.ID]; twice {
			bad("statement %s stands twice", st.ID)
		}
		shown[st.ID] = st.Elsewhere != ""
	}
	ids := map[string]bool{}
	for _, c := range s.Cases {
		if c.Over == "" {
			c.Over = "stdio"
		}
		if ids[c.ID] || c.ID == "" {
			bad("case id %q is empty or stands twice", c.ID)
		}
		ids[c.ID] = true
		if !slices.Contains(overs, c.Over) {
			bad("%s: over: %s is not known", c.ID, c.Over)
		}
		for _, id := range c.Shows {
			if _, ok := shown[id]; !ok {
				bad("%s: shows %s, which is no statement", c.ID, id)
			}
			shown[id] = true
		}
		for _, list := range c.stepLists() {
			for i := range list {
				if !slices.Contains(steps, list[i].Do) {
					bad("%s: no step is called %q", c.ID, list[i].Do)
				}
			}
		}
		for _, name := range c.Expect.Also {
			if checks[name] == nil {
				bad("%s: no check is called %q", c.ID, name)
			}
		}
		for _, conv := range c.Conversations {
			for _, m := range conv.Messages {
				if rest, ok := strings.CutPrefix(m.Content, "~"); ok {
					if _, err := regexp.Compile(rest); err != nil {
						bad("%s: %w", c.ID, err)
					}
				}
			}
		}
	}
	for _, st := range s.Statements {
		if !shown[st.ID] {
			bad("no case shows %s, and no reason is given", st.ID)
		}
	}
	return errors.Join(errs...)
}

// stepLists returns every list of steps of a case.
func (c *Case) stepLists() [][]Step {
	lists := [][]Step{c.Host}
	for _, l := range c.Handlers {
		lists = append(lists, l)
	}
	for _, l := range c.Permissions {
		lists = append(lists, l)
	}
	return lists
}
