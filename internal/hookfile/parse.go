package hookfile

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/transom-run/transom/internal/lazy"
)

// Source is where hooks come from.
type Source struct {
	Name string // in messages, such as "plugin p"
	File string // as people know it, such as "hooks.json"
	Root string // the plugin's directory, absolute; "" is none
}

// Hook is one command for one event.
type Hook struct {
	Source Source
	Event  string // in the words of the protocol, such as "preToolUse"
	// Name is the event as the file names it. One that begins with a capital letter
	// has the payload of other agents' plugins.
	Name  string
	Shell string   // a command line; "" runs Exec
	Exec  []string // a program and its arguments
	Dir   string   // "" is the session's working directory; relative ones lie below it
	Env   map[string]string
	Limit time.Duration

	match matcher
	// unread is why this is no hook, but stands for one that cannot be read: asked, it
	// fails.
	unread string
}

// Unread is a hook before tools that stands for those of a file that cannot be read:
// it denies every call, since one of them might have.
func Unread(from Source, err error) Hook {
	const event = "preToolUse"
	return Hook{Source: from, Event: event, Name: event, match: matcher{none: true}, unread: fmt.Sprintf("the hooks of %s cannot be read: %v", from.File, err)}
}

// names are the events of the format that Transom knows, in lower case.
var names = lazy.Value[map[string]string]{Make: func() map[string]string {
	return map[string]string{
		"sessionstart": "sessionStart", "sessionend": "sessionEnd", "userpromptsubmitted": "userPromptSubmitted", "userpromptsubmit": "userPromptSubmitted",
		"userprompttransformed": "userPromptTransformed", "pretooluse": "preToolUse", "posttooluse": "postToolUse", "posttoolusefailure": "postToolUseFailure",
		"agentstop": "agentStop", "stop": "agentStop", "subagentstart": "subagentStart", "subagentstop": "subagentStop", "erroroccurred": "errorOccurred",
		"premcptoolcall": "preMcpToolCall",
	}
}}

// maxLimit bounds a hook's own time; all hooks of an event together have less.
const (
	defaultLimit = 30 * time.Second
	maxLimit     = 10 * time.Minute
)

// maxHooks bounds the hooks of a file.
const maxHooks = 200

// entry is a hook as it stands in a file. Hooks is a group of other agents' plugins,
// whose members share its matcher.
type entry struct {
	Type       string            `json:"type"`
	Bash       string            `json:"bash"`
	PowerShell string            `json:"powershell"`
	Command    string            `json:"command"`
	Exec       string            `json:"exec"`
	Args       []string          `json:"args"`
	Dir        string            `json:"cwd"`
	Env        map[string]string `json:"env"`
	TimeoutSec *float64          `json:"timeoutSec"`
	Timeout    *float64          `json:"timeout"`
	Matcher    *string           `json:"matcher"`
	Hooks      []json.RawMessage `json:"hooks"`
}

// Parse reads a file of hooks. One that cannot be read is named in problems: where it
// would have a say, one that fails takes its place, elsewhere it is left out. An error is
// a file that is none; see [Unread].
func Parse(raw []byte, from Source) (hooks []Hook, problems []string, err error) {
	var file struct {
		Version  *int                       `json:"version"`
		Disabled bool                       `json:"disableAllHooks"`
		Hooks    map[string]json.RawMessage `json:"hooks"`
	}
	if err := json.Unmarshal(bytes.TrimPrefix(raw, []byte("\ufeff")), &file); err != nil {
		return nil, nil, fmt.Errorf("it is no file of hooks: %w", err)
	}
	if file.Version != nil && *file.Version != 1 {
		return nil, nil, fmt.Errorf("its version is %d, and only 1 is known", *file.Version)
	}
	if file.Disabled {
		return nil, nil, nil
	}
	p := parser{from: from}
	for _, name := range slices.Sorted(maps.Keys(file.Hooks)) {
		var list []json.RawMessage
		if err := json.Unmarshal(file.Hooks[name], &list); err != nil {
			p.problem("the hooks of %q are no list, so they are read as a list of one", name)
			list = []json.RawMessage{file.Hooks[name]}
		}
		event, known := names.Get()[strings.ToLower(name)]
		if !known && len(list) > 0 {
			p.problem("hooks of %q are not run: no such event is served", name)
			continue
		}
		for _, raw := range list {
			p.take(event, name, raw, nil)
		}
	}
	return p.hooks, p.problems, nil
}

type parser struct {
	from     Source
	hooks    []Hook
	problems []string
}

func (p *parser) problem(format string, args ...any) {
	if len(p.problems) < 20 {
		p.problems = append(p.problems, fmt.Sprintf(format, args...))
	}
}

// unread names a hook that cannot be read. Of those of an event one is enough to deny.
func (p *parser) unread(event, name, format string, args ...any) {
	why := fmt.Sprintf(format, args...)
	if !decides(event) {
		p.problem("a hook of %q was left out: %s", name, why)
		return
	}
	p.problem("a hook of %q cannot be read, and counts as one that failed: %s", name, why)
	if slices.ContainsFunc(p.hooks, func(h Hook) bool { return h.Event == event && h.unread != "" }) {
		return
	}
	p.hooks = append(p.hooks, Hook{
		Source: p.from, Event: event, Name: name, match: matcher{none: true},
		unread: fmt.Sprintf("a hook of %q in %s cannot be read: %s", name, p.from.File, why),
	})
}

// misread is why a hook is none, in words for who wrote it.
func misread(err error) string {
	var wrong *json.UnmarshalTypeError
	switch {
	case !errors.As(err, &wrong):
		return err.Error()
	case wrong.Field == "":
		return "it is no object but a JSON " + wrong.Value
	}
	return fmt.Sprintf("its %s cannot be a JSON %s", wrong.Field, wrong.Value)
}

// take reads one hook, or a group of them.
func (p *parser) take(event, name string, raw json.RawMessage, group *string) {
	var e entry
	if err := json.Unmarshal(raw, &e); err != nil {
		p.unread(event, name, "%s", misread(err))
		return
	}
	if e.Hooks != nil && group == nil {
		matcher := ""
		if e.Matcher != nil {
			matcher = *e.Matcher
		}
		for _, inner := range e.Hooks {
			p.take(event, name, inner, &matcher)
		}
		return
	}
	h := Hook{Source: p.from, Event: event, Name: name, Env: e.Env, Limit: defaultLimit}
	h.Shell, h.Exec = shellOf(e)
	switch {
	case e.Type != "" && e.Type != "command":
		p.problem("a hook of %q was left out: hooks of the type %q are not run, only commands", name, e.Type)
		return
	case cmp.Or(e.Bash, e.PowerShell, e.Command, e.Exec) == "":
		p.unread(event, name, "it names no command")
		return
	case h.Shell == "" && e.Exec == "":
		p.problem("a hook of %q was left out: it names no command for this system", name)
		return
	case e.Exec != "" && cmp.Or(e.Bash, e.PowerShell, e.Command) != "":
		p.unread(event, name, "it has both exec and a command line")
		return
	}
	for i := range h.Exec {
		h.Exec[i] = p.from.expand(h.Exec[i])
	}
	h.Dir = p.from.expand(e.Dir)
	if limit := cmp.Or(e.TimeoutSec, e.Timeout); limit != nil {
		switch {
		case *limit <= 0: // JSON has no NaN
			p.problem("a hook of %q has %v: its time of %v s is none", name, defaultLimit, *limit)
		case *limit < maxLimit.Seconds():
			h.Limit = max(time.Duration(*limit*float64(time.Second)), 1)
		default:
			h.Limit = maxLimit
		}
	}
	if e.Matcher == nil {
		e.Matcher = group
	}
	var bad error
	if h.match, bad = newMatcher(h, e.Matcher); bad != nil {
		if event != "preToolUse" && event != "preMcpToolCall" {
			p.problem("a hook of %q was left out: its matcher cannot be read: %v", name, bad)
			return
		}
		p.problem("the matcher of a hook of %q cannot be read, so it is asked about every tool: %v", name, bad)
	}
	if len(p.hooks) >= maxHooks {
		p.unread(event, name, "the file has more than %d", maxHooks)
		return
	}
	p.hooks = append(p.hooks, h)
}

// Placeholders of a plugin's directory.
var placeholders = []string{"PLUGIN_ROOT", "COPILOT_PLUGIN_ROOT", "CLAUDE_PLUGIN_ROOT"}

// expand puts the plugin's directory into a text that no shell reads.
func (s Source) expand(text string) string {
	if s.Root == "" {
		return text
	}
	for _, name := range placeholders {
		text = strings.ReplaceAll(text, "${"+name+"}", s.Root)
	}
	return text
}

// pascal reports whether the hook is one in the format of other agents' plugins.
func (h *Hook) pascal() bool { return unicode.IsUpper([]rune(h.Name)[0]) }

// matcher says which tools or agents a hook is asked about.
type matcher struct {
	none  bool // there is none: all
	words []string
	re    *regexp.Regexp
}

// newMatcher reads a matcher. One that cannot be read matches all.
func newMatcher(h Hook, text *string) (matcher, error) {
	switch h.Event {
	case "preToolUse", "postToolUse", "postToolUseFailure", "preMcpToolCall", "subagentStart", "subagentStop":
	default:
		return matcher{none: true}, nil
	}
	if text == nil || *text == "" && h.pascal() {
		return matcher{none: true}, nil
	}
	var m matcher
	if h.pascal() {
		if *text == "*" || *text == "**" {
			return matcher{none: true}, nil
		}
		if !strings.ContainsFunc(*text, func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-|", r)
		}) {
			return matcher{words: strings.Split(*text, "|")}, nil
		}
	}
	re, err := regexp.Compile("^(?:" + *text + ")$")
	if err != nil {
		return matcher{none: true}, err
	}
	m.re = re
	return m, nil
}

// hits reports whether one of the names of what an event is about matches.
func (m matcher) hits(names ...string) bool {
	return m.none || slices.ContainsFunc(names, func(n string) bool {
		return n != "" && (m.re != nil && m.re.MatchString(n) || slices.Contains(m.words, n))
	})
}
