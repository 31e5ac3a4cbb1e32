package catalog

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"

	"github.com/transom-run/transom/model"
)

// FromRegistry is the source of a choice whose model the registry has.
const FromRegistry Source = "registry"

// Named is one of the providers of a registry. Its ModelID and WireModel say
// nothing: models have their own.
type Named struct {
	// Name is unique and has no slash in it.
	Name string
	Provider
}

// Entry is a model of a registry. Sessions and agents name it provider/id.
type Entry struct {
	ID       string
	Provider string // the name of a provider
	// WireModel is the name to send; empty: ID. ModelID is a well-known name, by
	// which a wire knows what the model can do; empty: ID.
	WireModel, ModelID string
	Name               string // for people; empty: provider/id
	// MaxPromptTokens, MaxContextTokens and MaxOutputTokens are limits; 0 where
	// unknown, and then those of the provider.
	MaxPromptTokens, MaxContextTokens, MaxOutputTokens int
	Vision                                             bool
	Images                                             model.ImageLimits
}

func (e *Entry) key() string { return e.Provider + "/" + e.ID }

// Registry is the providers and models that a session has beside its account. It
// is never changed.
type Registry struct {
	client    *http.Client
	providers []Named
	entries   []Entry
	open      map[string]*registered // by provider/id
	warnings  []string
}

// registered is a model that is ready for use.
type registered struct {
	server
	entry Entry
	info  model.Info
}

// NewRegistry checks and opens providers and models. It makes no connection.
// client makes the requests of providers that have no client of their own; nil is
// one for the whole process. A name that is used twice or holds a slash, a model
// whose provider is not there, and a provider that is not served are errors.
func NewRegistry(client *http.Client, providers []Named, entries []Entry) (*Registry, error) {
	r := &Registry{client: client, providers: slices.Clone(providers), entries: slices.Clone(entries), open: make(map[string]*registered)}
	byName := make(map[string]*Named)
	for i := range r.providers {
		p := &r.providers[i]
		switch {
		case p.Name == "" || strings.Contains(p.Name, "/"):
			return nil, setup("A provider's name is %q; it must not be empty, and must not have a slash in it.", p.Name)
		case byName[p.Name] != nil:
			return nil, setup("Two providers have the name %q. Give each its own.", p.Name)
		}
		byName[p.Name] = p
		// A provider without models is checked too.
		_, warnings, err := p.open(namesOf(p.Name), client)
		if err != nil {
			return nil, err
		}
		r.warnings = append(r.warnings, warnings...)
	}
	for _, e := range r.entries {
		p := byName[e.Provider]
		switch {
		case e.ID == "":
			return nil, setup("A model of the provider %q has no id.", e.Provider)
		case p == nil:
			return nil, setup("The model %q names the provider %q, which is not there. There are: %s.", e.ID, e.Provider, cmp.Or(r.names(), "none"))
		case r.open[e.key()] != nil:
			return nil, setup("Two models have the name %q. Give each its own id.", e.key())
		}
		at := fmt.Sprintf("models[%q].", e.key())
		if err := limits(map[string]int{
			at + "maxPromptTokens": e.MaxPromptTokens, at + "maxContextWindowTokens": e.MaxContextTokens, at + "maxOutputTokens": e.MaxOutputTokens,
		}); err != nil {
			return nil, err
		}
		own := p.Provider
		own.WireModel = cmp.Or(e.WireModel, e.ID)
		if e.MaxOutputTokens > 0 {
			own.MaxOutputTokens = e.MaxOutputTokens
		}
		s, _, err := own.open(namesOf(p.Name), client)
		if err != nil {
			return nil, err
		}
		r.open[e.key()] = &registered{server: s, entry: e, info: describe(&e, &own)}
	}
	return r, nil
}

func namesOf(provider string) settingNames {
	at := fmt.Sprintf("providers[%q].", provider)
	return settingNames{at + "type", at + "wireApi", at + "transport", at + "apiKey or " + at + "bearerToken of the session",
		at + "maxPromptTokens", at + "maxOutputTokens"}
}

func describe(e *Entry, p *Provider) model.Info {
	info := model.Info{ID: e.key(), Name: cmp.Or(e.Name, e.key()), MaxOutput: p.MaxOutputTokens, Vision: e.Vision, Images: e.Images}
	for _, n := range []int{e.MaxPromptTokens, e.MaxContextTokens, p.MaxPromptTokens, DefaultContextWindow} {
		if n > 0 {
			info.ContextWindow = n
			break
		}
	}
	return info
}

func setup(format string, args ...any) *model.Error {
	return &model.Error{Kind: model.Setup, Msg: fmt.Sprintf(format, args...)}
}

func (r *Registry) names() string {
	var list []string
	for _, p := range r.providers {
		list = append(list, p.Name)
	}
	return strings.Join(list, ", ")
}

// Add returns a registry that has more. r may be nil.
func (r *Registry) Add(providers []Named, entries []Entry) (*Registry, error) {
	if r == nil {
		r = &Registry{}
	}
	return NewRegistry(r.client, append(slices.Clone(r.providers), providers...), append(slices.Clone(r.entries), entries...))
}

// Remove returns a registry without a provider and its models.
func (r *Registry) Remove(provider string) (*Registry, error) {
	return NewRegistry(r.client,
		slices.DeleteFunc(slices.Clone(r.providers), func(p Named) bool { return p.Name == provider }),
		slices.DeleteFunc(slices.Clone(r.entries), func(e Entry) bool { return e.Provider == provider }))
}

// Models lists the models in their order, under the names provider/id.
func (r *Registry) Models() []model.Info {
	if r == nil {
		return nil
	}
	out := make([]model.Info, len(r.entries))
	for i := range r.entries {
		out[i] = r.open[r.entries[i].key()].info
	}
	return out
}

// Find returns the model of the name provider/id and the provider that it has.
func (r *Registry) Find(id string) (Entry, Named, bool) {
	if r == nil || r.open[id] == nil {
		return Entry{}, Named{}, false
	}
	e := r.open[id].entry
	i := slices.IndexFunc(r.providers, func(p Named) bool { return p.Name == e.Provider })
	return e, r.providers[i], true
}

// over lays the registry over what was decided without it: err where nothing was.
// Where there is nothing else, the first model is the default.
func (r *Registry) over(base *Choice, err error, id string) (*Choice, error) {
	m := r.open[id]
	if m == nil && err != nil && id == "" && len(r.entries) > 0 {
		m = r.open[r.entries[0].key()]
	}
	if m == nil && err != nil {
		if id != "" && len(r.entries) > 0 {
			return nil, setup("The model %q is not there. There are: %s.", id, strings.Join(r.keys(), ", "))
		}
		return nil, err
	}
	c := &Choice{Warnings: r.warnings}
	route := &router{registry: r}
	if err == nil {
		c.Source, c.Model, c.Account, c.Settings = base.Source, base.Model, base.Account, base.Settings
		c.Warnings = append(slices.Clone(base.Warnings), r.warnings...)
		route.base = base.Provider
	}
	if m != nil {
		c.Source, c.Model = FromRegistry, m.info
		route.first = m
	}
	c.Provider = route
	return c, nil
}

func (r *Registry) keys() []string {
	out := make([]string, len(r.entries))
	for i := range r.entries {
		out[i] = r.entries[i].key()
	}
	return out
}

// router sends each request to the provider of the model that it names.
type router struct {
	registry *Registry
	base     model.Provider // for models that the registry has not; nil where there is none
	first    *registered    // for requests without a model; nil: base
}

// Stream makes one attempt; see [model.Provider].
func (t *router) Stream(ctx context.Context, req *model.Request) iter.Seq2[model.Chunk, error] {
	m := t.registry.open[req.Model]
	if m == nil && req.Model == "" {
		m = t.first
	}
	switch {
	case m != nil:
		named := *req
		named.Model = cmp.Or(m.entry.ModelID, m.entry.ID)
		return m.Stream(ctx, &named)
	case t.base != nil:
		return t.base.Stream(ctx, req)
	}
	return func(yield func(model.Chunk, error) bool) {
		yield(model.Chunk{}, setup("The model %q is not there. There are: %s.", req.Model, strings.Join(t.registry.keys(), ", ")))
	}
}

// Models lists what the base has, where it knows, and then the registry's models.
func (t *router) Models(ctx context.Context) ([]model.Info, error) {
	var out []model.Info
	if l, ok := t.base.(model.Lister); ok {
		list, err := l.Models(ctx)
		if err != nil {
			return t.registry.Models(), err
		}
		out = slices.Clone(list)
	}
	return append(out, t.registry.Models()...), nil
}
