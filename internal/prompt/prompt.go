package prompt

import (
	"context"
	"embed"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The sections that hosts can address, by the names that the SDKs give them.
const (
	Preamble     = "preamble"
	Identity     = "identity" // the group of preamble, tone and tool_efficiency
	Tone         = "tone"
	Efficiency   = "tool_efficiency"
	Environment  = "environment_context"
	CodeChange   = "code_change_rules"
	Guidelines   = "guidelines"
	Safety       = "safety"
	Tools        = "tool_instructions"
	Instructions = "custom_instructions"
	RuntimeNotes = "runtime_instructions"
	Last         = "last_instructions"
)

// order is how the sections follow each other; a group stands in for its members.
var order = []string{Identity, Environment, CodeChange, Guidelines, Safety, Tools, Instructions, RuntimeNotes, Last}

// group is the members of a section that has some.
func group(id string) (members []string, ok bool) {
	if id != Identity {
		return nil, false
	}
	return []string{Preamble, Tone, Efficiency}, true
}

// What a host can do with a section.
const (
	Replace   = "replace"   // by the content
	Remove    = "remove"    //
	Append    = "append"    // the content
	Prepend   = "prepend"   // the content
	Preserve  = "preserve"  // as it is, whatever happens to its group
	Transform = "transform" // as the host's own function says
)

// Override is what a host does with one section. One of a group takes those of
// its members that have no override of their own; the others stand after it.
type Override struct {
	Action  string
	Content string
}

// Config is the host's part of a system message.
type Config struct {
	// Mode is "append" (also where empty), "customize" or "replace".
	Mode string
	// Content stands at the end, or is the whole message with "replace".
	Content string
	// Sections are the overrides by the name of their section, with "customize".
	// The content of one for an unknown section goes before Content.
	Sections map[string]Override
}

// ConfigError says what is wrong with a [Config].
type ConfigError struct{ Msg string }

func (e *ConfigError) Error() string { return e.Msg }

// Check reports what is wrong with a configuration, as a *[ConfigError].
func (c Config) Check() error {
	switch c.Mode {
	case "", "append", "customize", "replace":
	default:
		return &ConfigError{fmt.Sprintf("systemMessage.mode %q is not known: the modes are append, customize and replace", c.Mode)}
	}
	for _, id := range slices.Sorted(maps.Keys(c.Sections)) {
		switch a := c.Sections[id].Action; a {
		case Replace, Remove, Append, Prepend, Preserve, Transform:
		default:
			return &ConfigError{fmt.Sprintf("systemMessage.sections.%s: the action %q is not known: the actions are replace, remove, append, prepend, preserve and transform", id, a)}
		}
	}
	return nil
}

// Transforms reports whether the host has to be asked for some section.
func (c Config) Transforms() bool {
	if c.Mode != "customize" {
		return false
	}
	for id, o := range c.Sections {
		if o.Action == Transform && known(id) {
			return true
		}
	}
	return false
}

// Surroundings is what the message says of where the session works.
type Surroundings struct {
	Dir          string // the working directory
	System       string // the operating system, for people
	Repository   string // the root of the repository that Dir is in; "" is none
	Instructions []Source
	Organization string // instructions that the host gave for all its sessions
	// Servers are what MCP servers say of how they are used, by the servers' names.
	Servers map[string]string
}

// Transformer asks a host for sections: contents by name, in and out. A section
// that is missing from what it returns stays as it is.
type Transformer func(ctx context.Context, sections map[string]string) (map[string]string, error)

// Compose makes the system message. ask is needed where c.Transforms; it is called
// at most once, with what the sections are after the other overrides.
func Compose(ctx context.Context, c Config, s Surroundings, ask Transformer) (string, error) {
	if err := c.Check(); err != nil {
		return "", err
	}
	if c.Mode == "replace" {
		return c.Content, nil
	}
	overrides := c.Sections
	if c.Mode != "customize" {
		overrides = nil
	}
	parts, wanted := lay(overrides, s)
	if len(wanted) > 0 {
		if ask == nil {
			return "", &ConfigError{"systemMessage: a section with the action transform needs a host that answers for it"}
		}
		made, err := ask(ctx, wanted)
		if err != nil {
			return "", err
		}
		for i, p := range parts {
			if text, ok := made[p.id]; ok && p.ask {
				parts[i].text = text
			}
		}
	}
	var texts []string
	for _, p := range parts {
		texts = append(texts, p.text)
	}
	for _, id := range slices.Sorted(maps.Keys(overrides)) {
		switch o := overrides[id]; {
		case known(id):
		case o.Action == Replace, o.Action == Append, o.Action == Prepend:
			texts = append(texts, o.Content)
		}
	}
	return join(append(texts, c.Content)...), nil
}

// part is a section on its way into the message.
type part struct {
	id, text string
	ask      bool // the host transforms it
}

// lay applies the overrides that need nobody, and says what has to be asked.
func lay(overrides map[string]Override, s Surroundings) (parts []part, wanted map[string]string) {
	wanted = map[string]string{}
	put := func(id, text string) {
		o, ok := overrides[id]
		if ok && o.Action == Transform {
			wanted[id] = text
		}
		parts = append(parts, part{id, o.on(text), ok && o.Action == Transform})
	}
	for _, id := range order {
		members, several := group(id)
		if !several {
			put(id, section(id, s))
			continue
		}
		_, whole := overrides[id]
		var texts, apart []string
		for _, member := range members {
			if _, own := overrides[member]; own && whole {
				apart = append(apart, member)
				continue
			}
			if !whole {
				put(member, section(member, s))
				continue
			}
			texts = append(texts, section(member, s))
		}
		if whole {
			put(id, join(texts...))
		}
		for _, member := range apart {
			put(member, section(member, s))
		}
	}
	return parts, wanted
}

// on applies an override to a section's text.
func (o Override) on(text string) string {
	switch o.Action {
	case Replace:
		return o.Content
	case Remove:
		return ""
	case Append:
		return lines(text, o.Content)
	case Prepend:
		return lines(o.Content, text)
	}
	return text
}

// lines puts two texts under each other.
func lines(a, b string) string {
	if a == "" || b == "" || strings.HasSuffix(a, "\n") || strings.HasPrefix(b, "\n") {
		return a + b
	}
	return a + "\n" + b
}

// join puts texts under each other with a blank line between, but for empty ones.
func join(texts ...string) string {
	var kept []string
	for _, t := range texts {
		if t = strings.Trim(t, "\n"); strings.TrimSpace(t) != "" {
			kept = append(kept, t)
		}
	}
	return strings.Join(kept, "\n\n")
}

func known(id string) bool {
	if slices.Contains(order, id) {
		return true
	}
	members, _ := group(Identity)
	return slices.Contains(members, id)
}

//go:embed sections/*.md
var files embed.FS

// section is the text of a section that is no group.
func section(id string, s Surroundings) string {
	switch id {
	case Environment:
		return environment(s)
	case Instructions:
		return instructions(s)
	}
	b, err := files.ReadFile("sections/" + id + ".md")
	if err != nil {
		panic("prompt: the section " + id + " has no text: " + err.Error()) // impossible: a test reads them all
	}
	if id == Tools {
		return join(strings.TrimSpace(string(b)), servers(s.Servers))
	}
	return strings.TrimSpace(string(b))
}

func environment(s Surroundings) string {
	var b strings.Builder
	b.WriteString("<environment_context>\n")
	for _, l := range []struct{ name, value string }{
		{"Current working directory", s.Dir}, {"Repository root", s.Repository}, {"Operating System", s.System},
	} {
		if l.value != "" {
			b.WriteString(l.name + ": " + l.value + "\n")
		}
	}
	b.WriteString("</environment_context>")
	return b.String()
}
