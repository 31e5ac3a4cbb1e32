package turn

import (
	"slices"
	"strings"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/tool"
)

// SearchTool is the name of the tool that finds tools which were held back. A host
// may declare one of its own in its place; what counts of its answer is the names
// (toolReferences).
const SearchTool = "tool_search_tool"

// searchStrategy is what the protocol's event calls a search that the runtime makes
// by itself, without a provider's help.
const searchStrategy = "client"

// Search says when tools are held back: where there are more than Threshold, those
// of hosts and servers that may be are left out of the model's list until a search
// finds them. The zero Search holds nothing back.
type Search struct {
	On        bool
	Threshold int
}

// holdBack marks the tools that the model's list goes without, and puts those that
// were found behind all others, so that what stands before them stays as it was.
// Without a tool to search by nothing is held back; with nothing to find, Transom's
// own is not offered.
func (o *Offers) holdBack(s Search, found []string) {
	at, searchable := o.byName[SearchTool]
	if !searchable {
		return
	}
	may := func(t Offer) bool { return t.Source != tool.BuiltIn && t.Defer != "never" && t.Name != SearchTool }
	if !s.On || len(o.list)-1 <= s.Threshold || !slices.ContainsFunc(o.list, may) {
		if o.list[at].Source == tool.BuiltIn {
			o.drop(at)
		}
		return
	}
	o.held = map[string]bool{}
	var first, last []Offer
	for _, t := range o.list {
		switch {
		case !may(t):
			first = append(first, t)
		case !slices.Contains(found, t.Name):
			o.held[t.Name] = true
		}
	}
	for _, name := range found {
		if i, ok := o.byName[name]; ok && may(o.list[i]) {
			last = append(last, o.list[i])
		}
	}
	o.told, o.always = append(first, last...), len(first)
}

// drop takes a tool out of the list.
func (o *Offers) drop(at int) {
	o.list = slices.Delete(o.list, at, at+1)
	clear(o.byName)
	for i, t := range o.list {
		o.byName[t.Name] = i
	}
}

// Held reports whether a tool that can be called is left out of the model's list.
func (o *Offers) Held(name string) bool { return o != nil && o.held[name] }

// define makes what a model is told of a tool.
func (t Offer) define() model.ToolDef {
	return model.ToolDef{Name: t.Name, Description: t.Description, Parameters: t.Definition()}
}

// activate puts the tools that a search named into the model's list, as far as they
// are held back. It goes before the call's own end: a process that dies between the
// two has found them all the same.
func (m *machine) activate(o *tool.Outcome) {
	var found []string
	for _, name := range o.References {
		if m.s.Live.Offers.Held(name) && !slices.Contains(found, name) {
			found = append(found, name)
		}
	}
	if len(found) > 0 {
		m.emit(event.ToolSearchActivated{Strategy: searchStrategy, ToolNames: found})
		m.s.Live.Offers = m.offered()
	}
	if o.Content == "" && o.ModelText == "" {
		o.ModelText = "Found, and can be called from now on: " + strings.Join(o.References, ", ")
		o.Content = o.ModelText
	}
}

func (d *Durable) foldFound(p event.ToolSearchActivated) {
	for _, name := range p.ToolNames {
		if !slices.Contains(d.Found, name) {
			d.Found = append(slices.Clip(d.Found), name)
		}
	}
}
