package turn

import (
	"path"
	"slices"
	"strings"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/tool"
)

// Client is one attached connection or in-process host.
type Client struct {
	ID string
	// Tools are what the client declared; nil declares none.
	Tools *tool.Registry
	// Permission: the client answers permission questions.
	Permission bool
	// Hooks: the client answers hooks.
	Hooks bool
	// Elicits: the client can ask its user for something.
	Elicits bool
	// Commands are the slash commands that the client has registered.
	Commands []event.CommandInfo
	// Continues: the client took up pending work, and answers requests made to
	// clients that are gone.
	Continues bool
	// Quiet: the client does not want the pieces of sub-agents' answers.
	Quiet bool
}

// Offer is a tool that the model is offered, and the client that declared it.
type Offer struct {
	*tool.Compiled
	Owner string
}

// Offers is an immutable list of tools.
type Offers struct {
	list   []Offer // all that can be called
	byName map[string]int
	told   []Offer         // those that the model is told of, where that is not all
	always int             // how many of those were not found by a search
	held   map[string]bool // the others, by name
	defs   []model.ToolDef
	tokens int
}

// Lookup finds a tool by name.
func (o *Offers) Lookup(name string) (Offer, bool) {
	if o == nil {
		return Offer{}, false
	}
	i, ok := o.byName[name]
	if !ok {
		return Offer{}, false
	}
	return o.list[i], true
}

// Names returns the names in the order in which the model sees them.
func (o *Offers) Names() []string {
	if o == nil {
		return nil
	}
	names := make([]string, len(o.list))
	for i, t := range o.list {
		names[i] = t.Name
	}
	return names
}

// List returns the tools in the order in which the model sees them.
func (o *Offers) List() []Offer {
	if o == nil {
		return nil
	}
	return o.list
}

// Definitions returns the tools as a model is told of them.
func (o *Offers) Definitions() []model.ToolDef {
	if o == nil {
		return nil
	}
	return o.defs
}

// Tokens estimates the size of the definitions.
func (o *Offers) Tokens() int {
	if o == nil {
		return 0
	}
	return o.tokens
}

// Filter is a list of tool patterns; the zero Filter names nothing and Set says
// whether it was given at all. A pattern is a bare name, or "builtin:", "mcp:"
// or "custom:" followed by a name or "*".
type Filter struct {
	Set      bool
	Patterns []string
}

// Matches reports whether the filter names a tool of a source. A bare name means
// a tool of any source.
func (f Filter) Matches(source tool.Source, name string) bool {
	if source == "" {
		source = tool.Custom
	}
	for _, p := range f.Patterns {
		of, rest, ok := strings.Cut(p, ":")
		if !ok {
			of, rest = string(source), p
		}
		if of != string(source) {
			continue
		}
		if rest == name {
			return true
		}
		if ok, err := path.Match(rest, name); err == nil && ok {
			return true
		}
	}
	return false
}

// offers computes what can be called: the built-in tools, then the tools of
// all clients in the order in which they were declared, then those of MCP servers: of
// the agent's own kind first, then of the session.
// Where two declare one name, the newest declaration counts, and a client's goes
// before a built-in one and before a server's.
func offers(clients []Client, s Settings, found []string) *Offers {
	o := &Offers{byName: map[string]int{}}
	own := s.BuiltIns
	if !s.Admits(tool.BuiltIn) {
		own = nil // so that nobody has to make them
	}
	for _, c := range append([]Client{{Tools: own}}, clients...) {
		for _, t := range c.Tools.All() {
			name := t.Name
			if !s.offers(t) {
				continue
			}
			if i, ok := o.byName[name]; ok {
				o.list[i] = Offer{t, c.ID}
				continue
			}
			o.byName[name] = len(o.list)
			o.list = append(o.list, Offer{t, c.ID})
		}
	}
	for _, from := range []*tool.Registry{s.OwnServers[s.Kind].Tools, s.Servers} {
		for _, t := range from.All() {
			if _, taken := o.byName[t.Name]; !taken && s.offers(t) {
				o.byName[t.Name] = len(o.list)
				o.list = append(o.list, Offer{t, ""})
			}
		}
	}
	o.holdBack(s.Search, found)
	if len(o.list) == 0 {
		return nil
	}
	if o.held == nil {
		o.told = o.list
	}
	for _, t := range o.told {
		d := t.define()
		o.defs = append(o.defs, d)
		o.tokens += model.EstimateTool(&d)
	}
	// In whichever order hosts declare their tools, and servers list theirs: the same
	// tools are the same bytes to the provider, which keeps what it has read of them.
	// What a search found stays behind the rest, in the order in which it was found.
	always := o.defs
	if o.held != nil {
		always = o.defs[:o.always]
	}
	slices.SortFunc(always, func(a, b model.ToolDef) int { return strings.Compare(a.Name, b.Name) })
	return o
}

// Admits reports whether the filter of what is available may let a tool of a source
// through.
func (s *Settings) Admits(source tool.Source) bool {
	return !s.Available.Set || slices.ContainsFunc(s.Available.Patterns, func(p string) bool {
		of, _, ok := strings.Cut(p, ":")
		return !ok || of == string(source)
	})
}

// offers reports whether the filters let a tool through.
func (s *Settings) offers(t *tool.Compiled) bool {
	return !(s.Available.Set && !s.Available.Matches(t.Source, t.Name) || s.Excluded.Matches(t.Source, t.Name) || s.Hidden.Matches(t.Source, t.Name) || s.Agent.Set && !s.Agent.Matches(t.Source, t.Name))
}

// reoffer recomputes the offers after clients or settings changed, and notes
// which tools went away.
func (m *machine) reoffer() {
	l := &m.s.Live
	before := l.Offers
	l.Offers = m.offered()
	gone := slices.Clone(l.Gone)
	if l.Asked {
		for _, name := range before.Names() {
			if _, ok := l.Offers.Lookup(name); !ok && !slices.Contains(gone, name) {
				gone = append(gone, name)
			}
		}
	}
	l.Gone = slices.DeleteFunc(gone, func(name string) bool { _, ok := l.Offers.Lookup(name); return ok })
	l.Fresh = true
	m.eachAgent(func(string) { m.reoffer(); m.s.Live.Fresh = false })
}

// offered is what the model is offered now.
func (m *machine) offered() *Offers {
	s := m.s.Live.Settings
	if m.s.Mode != autopilot {
		s.Excluded.Patterns = append(slices.Clip(s.Excluded.Patterns), "builtin:"+CompleteTool)
	}
	return offers(m.s.Live.Clients, s, m.s.Found)
}

// autopilot is the mode in which the model says when its task is done.
const autopilot = "autopilot"

// attach adds the client, or replaces its declaration. A client that declares
// anew counts as the newest.
func (m *machine) attach(c Client) {
	clients := slices.DeleteFunc(slices.Clone(m.s.Live.Clients), func(have Client) bool { return have.ID == c.ID })
	if names := redeclared(clients, c); len(names) > 0 {
		m.emit(event.SessionWarning{WarningType: "tools", Message: "Another client has declared these tools too, and is asked to run them from now on: " + strings.Join(names, ", ") + ". They come back to the earlier client when the later one leaves."})
	}
	before := m.s
	m.s.Live.Clients = append(clients, c)
	if len(clients) > 0 {
		m.newcomers(before)
	}
	m.reoffer()
}

// redeclared names the tools of a client that others declare already.
func redeclared(others []Client, c Client) []string {
	var names []string
	for _, t := range c.Tools.All() {
		if slices.ContainsFunc(others, func(o Client) bool { _, ok := o.Tools.Lookup(t.Name); return ok }) {
			names = append(names, t.Name)
		}
	}
	return names
}

// detach takes a client away and settles what only it could have answered.
func (m *machine) detach(in Detach) {
	l := &m.s.Live
	clients := slices.DeleteFunc(slices.Clone(l.Clients), func(c Client) bool { return c.ID == in.ClientID })
	m.ready.Result = false
	if len(clients) == len(l.Clients) {
		return
	}
	if len(clients) == 0 && !in.Lost && m.hooked() && m.s.Phase() != Ending {
		m.hangUp(Close{EventsBytes: in.EventsBytes})
		m.ready.Result = true
		return
	}
	if len(clients) == 0 && !in.Lost {
		m.close(Close{EventsBytes: in.EventsBytes})
		m.ready.Result = true
		return
	}
	before, was := l.Offers, m.s
	l.Clients = clients
	if len(clients) > 0 {
		m.newcomers(was)
	}
	if len(clients) == 0 {
		if m.s.Phase() == Ending {
			m.ended() // nobody is left to answer
		}
		l.Parked = l.Parked || l.Prep != nil && m.s.Loop.Open
		if m.s.goingBack() == nil { // that needs no client
			l.Prep, l.Waits = nil, nil // what waited for hooks waits in the log now
		}
		m.deserted()
		return // the turn runs on with the tools it has; what needs a client waits for a resume
	}
	m.reoffer()
	m.deprived(in, before)
	for _, a := range was.Live.Agents {
		m.within(a.ID, func() { m.deprived(in, a.Live.Offers) })
	}
}

// deprived settles the calls that only a client which is gone could have answered;
// before is what was offered while it was there.
func (m *machine) deprived(in Detach, before *Offers) {
	clients := m.s.Live.Clients
	if m.s.Phase() != Acting {
		return
	}
	if slices.ContainsFunc(clients, func(c Client) bool { return c.Continues }) {
		return
	}
	answers := slices.ContainsFunc(clients, func(c Client) bool { return c.Permission })
	for i := range m.s.Loop.Calls {
		c := m.s.Loop.Calls[i]
		offer, _ := before.Lookup(c.Name)
		switch {
		case c.Done:
		case c.External != "" && offer.Compiled != nil && offer.Owner == in.ClientID:
			m.complete(c.ID, m.settled(c.ID, gone(c.Name)))
		case c.Permission != "" && !answers:
			m.decide(c.ID, notAvailable)
		}
	}
	m.settle()
}

// answersPermission reports whether somebody attached can be asked. With nobody
// attached the question waits for a resume.
func (m *machine) answersPermission() bool {
	l := m.s.Live
	return len(l.Clients) == 0 || slices.ContainsFunc(l.Clients, func(c Client) bool { return c.Permission })
}
