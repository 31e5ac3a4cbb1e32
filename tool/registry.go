package tool

import (
	"fmt"
	"slices"
	"sync"
)

// Registry is an immutable set of tools, in the order of their declaration. A
// nil registry is an empty one.
type Registry struct {
	list   []*Compiled
	byName map[string]*Compiled
	later  *later // of what [Deferred] makes; nil for others
}

// later is what makes a registry.
type later struct {
	once sync.Once
	make func() ([]Tool, error)
	err  error
}

// Deferred makes a registry of the tools that list returns, which is asked once,
// when the registry is first looked at: most sessions of a host that brings its own
// tools never look at Transom's. Where list or a tool is at fault, the registry is
// empty and [Registry.Err] says why.
func Deferred(list func() ([]Tool, error)) *Registry { return &Registry{later: &later{make: list}} }

// Err makes sure that the registry is made, and says why it could not be: only
// those of [Deferred] can have one.
func (r *Registry) Err() error {
	if r == nil || r.later == nil {
		return nil
	}
	r.ready()
	return r.later.err
}

// ready makes what is not made yet.
func (r *Registry) ready() {
	if r.later != nil {
		r.later.once.Do(r.fill)
	}
}

func (r *Registry) fill() {
	tools, err := r.later.make()
	if err == nil && len(tools) > 0 {
		var made *Registry
		if made, err = NewRegistry(tools); err == nil {
			r.list, r.byName = made.list, made.byName
		}
	}
	r.later.make, r.later.err = nil, err
}

// NewRegistry compiles tools. The first that is unsound, or whose name was there
// before, is a *[DefinitionError].
func NewRegistry(tools []Tool) (*Registry, error) {
	r := &Registry{byName: make(map[string]*Compiled, len(tools))}
	if err := r.declare(tools); err != nil {
		return nil, err
	}
	return r, nil
}

func (r *Registry) declare(tools []Tool) error {
	declared := make(map[string]int, len(tools))
	for i, t := range tools {
		c, err := Compile(t)
		if err != nil {
			if t.Name == "" {
				err = &DefinitionError{Msg: fmt.Sprintf("the name of tool %d of %d is empty; use ASCII letters, digits, '_' and '-'", i+1, len(tools))}
			}
			return err
		}
		if first, again := declared[t.Name]; again {
			return &DefinitionError{
				Tool: t.Name,
				Msg:  fmt.Sprintf("declared twice, as tool %d and tool %d; give each tool its own name", first+1, i+1),
			}
		}
		declared[t.Name] = i
		r.set(c)
	}
	return nil
}

// set adds a tool, or replaces the one of that name at its place.
func (r *Registry) set(c *Compiled) {
	if old := r.byName[c.Name]; old != nil {
		r.list[slices.Index(r.list, old)] = c
	} else {
		r.list = append(r.list, c)
	}
	r.byName[c.Name] = c
}

// Lookup finds a tool by its name.
func (r *Registry) Lookup(name string) (*Compiled, bool) {
	if r == nil {
		return nil, false
	}
	r.ready()
	c, ok := r.byName[name]
	return c, ok
}

// Len is the number of tools.
func (r *Registry) Len() int {
	if r == nil {
		return 0
	}
	r.ready()
	return len(r.list)
}

// All lists the tools. The caller must not change the slice.
func (r *Registry) All() []*Compiled {
	if r == nil {
		return nil
	}
	r.ready()
	return r.list
}

// Names lists the names of the tools in a new slice.
func (r *Registry) Names() []string {
	names := make([]string, r.Len())
	for i, c := range r.All() {
		names[i] = c.Name
	}
	return names
}

// With makes a registry that holds these tools too. A tool of a name that r has
// takes its place: the newest declaration counts. Two tools of one name among
// the new ones are an error, as in [NewRegistry].
func (r *Registry) With(tools ...Tool) (*Registry, error) {
	next := r.clone(len(tools))
	if err := next.declare(tools); err != nil {
		return nil, err
	}
	return next, nil
}

// WithCompiled is With for tools that are compiled already; it cannot fail.
func (r *Registry) WithCompiled(tools ...*Compiled) *Registry {
	next := r.clone(len(tools))
	for _, c := range tools {
		next.set(c)
	}
	return next
}

// Without makes a registry that lacks the tools of these names. Names that r
// does not have are passed over.
func (r *Registry) Without(names ...string) *Registry {
	next := &Registry{byName: make(map[string]*Compiled, r.Len())}
	for _, c := range r.All() {
		if !slices.Contains(names, c.Name) {
			next.set(c)
		}
	}
	return next
}

func (r *Registry) clone(more int) *Registry {
	next := &Registry{
		list:   make([]*Compiled, 0, r.Len()+more),
		byName: make(map[string]*Compiled, r.Len()+more),
	}
	for _, c := range r.All() {
		next.set(c)
	}
	return next
}
