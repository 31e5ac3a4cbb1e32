package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/transom-run/transom/tool/internal/schema"
)

// Compiled is a tool whose definition was found to be sound. It is shared and
// never changes.
type Compiled struct {
	Tool
	schema     *schema.Schema
	definition json.RawMessage
}

// DefinitionError says why a tool cannot be offered.
type DefinitionError struct {
	Tool string
	// Path is a JSON pointer into the parameters, and Keyword the keyword of
	// JSON Schema at fault there; both are "" where the fault is not in the
	// parameters.
	Path    string
	Keyword string
	Msg     string
}

// Error names the tool, the place and the fault.
func (e *DefinitionError) Error() string {
	return fmt.Sprintf("tool %q: %s", short(e.Tool, 100), e.Msg)
}

// Compile checks a tool's name and parameters. A broken schema is a
// *[DefinitionError] that names the tool, the place and the keyword.
//
// Schemas that are odd but valid are fine: none, null, true, {}, an object
// without properties, without a type, or with several types of which one is
// object. The schema false is fine too, and refuses every call, {} included.
func Compile(t Tool) (*Compiled, error) {
	if err := checkName(t.Name); err != nil {
		return nil, err
	}
	text := strings.TrimSpace(string(t.Parameters))
	if text == "" || text == "null" {
		text = "true"
	}
	s, err := schemas.get(text, schema.Options{Tolerant: t.Tolerant})
	if err != nil {
		out := &DefinitionError{Tool: t.Name, Msg: "its parameters are not a sound JSON Schema, " + err.Error()}
		if se := new(schema.Error); errors.As(err, &se) {
			out.Path, out.Keyword = se.Path, se.Keyword
		}
		return nil, out
	}
	if !s.schema.AllowsObjects() {
		return nil, &DefinitionError{
			Tool: t.Name, Keyword: "type",
			Msg: `its parameters at the root, keyword "type": arguments are always an object, so the type must be or include "object"`,
		}
	}
	return &Compiled{Tool: t, schema: s.schema, definition: s.definition}, nil
}

func checkName(name string) error {
	if name == "" {
		return &DefinitionError{Msg: "the name is empty; use ASCII letters, digits, '_' and '-'"}
	}
	if PlainName(name) != name {
		return &DefinitionError{Tool: name, Msg: "the name may only hold ASCII letters, digits, '_' and '-'"}
	}
	return nil
}

// PlainName is a name with '_' for every character that names of tools may not have: how
// models are told what comes from outside, and what rules about it are held against.
func PlainName(name string) string {
	return strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, name)
}

// Definition is the JSON Schema that a model is told of: always a JSON object of
// the type object with properties, as strict providers want it, and otherwise
// the tool's own schema in compact form. At its root $schema is left out, and a
// lone $ref is replaced by what it names. Equal parameters give equal bytes; the
// caller must not change them.
func (c *Compiled) Definition() json.RawMessage { return c.definition }

// Unchecked lists the regular expressions of the schema that are beyond Go's
// engine (look-around, back references): what they ask for is left to the
// tool's handler.
func (c *Compiled) Unchecked() []string { return c.schema.Unchecked() }

// schemas holds the schemas compiled last, for every session of the process:
// the same tools are declared again and again.
var schemas cache

type cached struct {
	schema     *schema.Schema
	definition json.RawMessage
}

type cacheKey struct {
	text string
	opt  schema.Options
}

// A cache keeps two generations. When the young one is full the old one is
// dropped; what is still in use moves over when it is next asked for. So it is
// bounded, in entries and in bytes of schema text, and needs no list.
type cache struct {
	mu         sync.Mutex
	young, old map[cacheKey]*cached
	bytes      int // of the texts in young
}

const (
	generationEntries = 256
	generationBytes   = 512 << 10
)

func (c *cache) get(text string, opt schema.Options) (*cached, error) {
	key := cacheKey{text, opt}
	c.mu.Lock()
	hit := c.young[key]
	if hit == nil {
		if hit = c.old[key]; hit != nil {
			c.put(key, hit)
		}
	}
	c.mu.Unlock()
	if hit != nil {
		return hit, nil
	}
	s, err := schema.Compile(text, opt)
	if err != nil {
		return nil, err
	}
	made := &cached{schema: s, definition: s.Definition()}
	c.mu.Lock()
	c.put(key, made)
	c.mu.Unlock()
	return made, nil
}

// put adds to the young generation; c.mu is held.
func (c *cache) put(key cacheKey, e *cached) {
	if len(key.text) > generationBytes/8 {
		return // one schema must not push out all the others
	}
	if c.young == nil || len(c.young) >= generationEntries || c.bytes+len(key.text) > generationBytes {
		c.old, c.young, c.bytes = c.young, make(map[cacheKey]*cached), 0
	}
	if _, there := c.young[key]; !there {
		c.bytes += len(key.text)
	}
	c.young[key] = e
}

// short cuts s to at most n characters and marks the cut.
func short(s string, n int) string {
	s = strings.ToValidUTF8(s, "\ufffd")
	if len(s) <= n {
		return s
	}
	left := n
	for i := range s {
		if left == 0 {
			return s[:i] + "…"
		}
		left--
	}
	return s
}
