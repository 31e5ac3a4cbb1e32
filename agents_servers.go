package transom

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/internal/agents"
	"github.com/transom-run/transom/internal/plugin"
	"github.com/transom-run/transom/internal/turn"
	"github.com/transom-run/transom/mcp"
	"github.com/transom-run/transom/tool"
)

// ownServers are the MCP servers that the agents of a session have of their own.
// The agents of one kind share them: they are connected to when the first of these
// works, and end with the session. The zero value has none.
type ownServers struct {
	connect func(ctx context.Context, kind string)

	mu     sync.Mutex
	count  uint64 // of what any kind was given
	kinds  map[string]*kindServers
	closed bool
}

// kindServers are those of one kind of agent. The mutex of all guards it, but for
// posted.
type kindServers struct {
	cfg  map[string]mcp.Server
	n    uint64   // turn.OwnServers.Awaited
	host mcp.Host // nil: nobody of the kind has worked yet

	setting sync.Mutex // held while the host is told what there is
	posting sync.Mutex // held from reading the tools to posting them
	posted  []tool.Tool
	said    map[string]string // what the newest system message of such an agent is to hold of servers
}

// update takes the agents that there are, and returns what their servers are in
// the settings. It starts and ends nothing: renewOwn does.
func (o *ownServers) update(defs []agents.Definition, now map[string]turn.OwnServers) map[string]turn.OwnServers {
	given := map[string]map[string]mcp.Server{}
	for _, d := range defs {
		if len(d.MCPServers) > 0 {
			given[d.Name] = serversOf(d)
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(given) == 0 && len(o.kinds) == 0 {
		return nil
	}
	if o.kinds == nil {
		o.kinds = map[string]*kindServers{}
	}
	for name := range given {
		if o.kinds[name] == nil {
			o.kinds[name] = &kindServers{}
		}
	}
	out := map[string]turn.OwnServers{}
	for name, k := range o.kinds {
		if !maps.EqualFunc(k.cfg, given[name], mcp.Server.Same) {
			o.count++
			k.cfg, k.n = given[name], o.count
		}
		if len(k.cfg) > 0 {
			out[name] = turn.OwnServers{Awaited: k.n, Tools: now[name].Tools}
		}
	}
	return out
}

// serversOf reads the servers of an agent. One that cannot be read is one that
// fails, and says why.
func serversOf(d agents.Definition) map[string]mcp.Server {
	out := map[string]mcp.Server{}
	for name, given := range d.MCPServers {
		if strings.TrimSpace(name) == "" {
			continue
		}
		raw, err := json.Marshal(given)
		var server mcp.Server
		if err == nil {
			server, err = mcp.Parse(plugin.Expand(raw, d.Root))
		}
		if err != nil {
			server = mcp.Server{Type: "unreadable: " + err.Error()}
		}
		if server.Source = source(d.Source); d.Root != "" && !filepath.IsAbs(server.Dir) {
			server.Dir = filepath.Join(d.Root, server.Dir)
		}
		out[name] = server
	}
	return out
}

// source is who configured the servers of an agent from somewhere.
func source(agent string) mcp.Source {
	switch agent {
	case "user":
		return mcp.FromUser
	case "project":
		return mcp.FromWorkspace
	case "plugin":
		return mcp.FromPlugin
	}
	return mcp.FromHost
}

// of returns the servers of a kind of agent; nil where it has none.
func (o *ownServers) of(kind string) *kindServers {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.kinds[kind]
}

// hosted returns the host of a kind, and makes it where there is none; nil where
// there is nothing to connect to.
func (o *ownServers) hosted(k *kindServers, create func() (mcp.Host, error)) (mcp.Host, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if k.host != nil || o.closed || len(k.cfg) == 0 {
		return k.host, nil
	}
	h, err := create()
	if err == nil {
		k.host = h
	}
	return k.host, err
}

// set tells a host what there is now.
func (o *ownServers) set(k *kindServers, off []string) {
	k.setting.Lock()
	defer k.setting.Unlock()
	o.mu.Lock()
	h, cfg := k.host, k.cfg
	o.mu.Unlock()
	if h != nil {
		h.Set(cfg, off)
	}
}

// renewOwn has the hosts of all kinds run what there is now, and posts their tools
// again: settings that were made meanwhile may have lost them.
func (s *loaded) renewOwn() {
	own := &s.agents.servers
	own.mu.Lock()
	kinds := maps.Clone(own.kinds)
	own.mu.Unlock()
	for name, k := range kinds {
		own.set(k, s.switchedOff())
		s.ownChanged(name, k, true)
	}
}

// broke counts that a server has to be connected to anew, and returns the number
// that is waited for.
func (o *ownServers) broke(k *kindServers) uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.count++
	k.n = o.count
	return k.n
}

// close ends all of them, side by side.
func (o *ownServers) close() error {
	o.mu.Lock()
	o.closed = true
	var hosts []mcp.Host
	for _, k := range o.kinds {
		if k.host != nil {
			hosts = append(hosts, k.host)
		}
	}
	o.mu.Unlock()
	var ending sync.WaitGroup
	errs := make([]error, len(hosts))
	for i, h := range hosts {
		ending.Go(func() { errs[i] = h.Close() })
	}
	ending.Wait()
	return errors.Join(errs...)
}

// connectOwn connects to the servers that a kind of agent has of its own, and waits
// for them.
func (r *Runtime) connectOwn(ctx context.Context, s *loaded, kind string) {
	own := &s.agents.servers
	k := own.of(kind)
	if k == nil {
		return
	}
	h, err := own.hosted(k, func() (mcp.Host, error) { return r.newHost(s, kind, &MCPConfig{}, s.ownNews(kind, k)) })
	if err != nil {
		s.tell(event.SessionWarning{WarningType: "mcp", Message: "The MCP servers of the agent " + kind + " are left out: " + err.Error()})
	}
	if h == nil {
		return
	}
	own.mu.Lock()
	for _, server := range k.cfg {
		r.keys.server(server)
	}
	own.mu.Unlock()
	own.set(k, s.switchedOff())
	h.Start()
	_ = h.Settle(ctx) // whoever is late comes later
	s.ownChanged(kind, k, false)
}

// ownNews is what becomes of the news of a kind's servers: its agents have the
// tools, and people read of what failed.
func (s *loaded) ownNews(kind string, k *kindServers) hostNews {
	return hostNews{
		changed: func() { s.ownChanged(kind, k, false) },
		lists:   func(string, string) {},
		came: func(st mcp.State) {
			if st.Status != mcp.Failed && st.Status != mcp.NeedsAuth {
				return
			}
			s.tell(event.SessionWarning{WarningType: "mcp", Message: "The MCP server " + st.Name + " of the agent " + kind + " cannot be used: " + st.Error})
			if st.Retry { // before the next model call
				n := s.agents.servers.broke(k)
				s.postOwn(kind, func(v *turn.OwnServers) { v.Awaited = max(v.Awaited, n) })
			}
		},
	}
}

// ownChanged gives the agents of a kind the tools that their servers have now; anew
// where settings that were made meanwhile may have lost them.
func (s *loaded) ownChanged(kind string, k *kindServers, anew bool) {
	own := &s.agents.servers
	own.mu.Lock()
	h := k.host
	own.mu.Unlock()
	if h == nil {
		return
	}
	k.posting.Lock()
	defer k.posting.Unlock()
	tools, said := h.Tools(), h.Instructions()
	if anew && len(said) > 0 || !maps.Equal(said, k.said) {
		k.said = said
		s.Post(turn.Configure{Settings: func(set *turn.Settings) {
			if set.Kind == kind && set.Wanted > 0 {
				set.Wanted++
			}
		}}, nil, nil)
	}
	if !anew && slices.EqualFunc(tools, k.posted, func(a, b tool.Tool) bool { return a.Origin == b.Origin }) {
		return
	}
	reg, err := tool.NewRegistry(tools)
	if err != nil {
		s.tell(event.SessionWarning{WarningType: "mcp", Message: "The tools of the MCP servers of the agent " + kind + " are not offered: " + err.Error()})
		return
	}
	k.posted = tools
	s.postOwn(kind, func(v *turn.OwnServers) { v.Tools = reg })
}

// postOwn changes what the settings have of a kind's servers, where the kind still
// has some.
func (s *loaded) postOwn(kind string, change func(*turn.OwnServers)) {
	s.Post(turn.Configure{Settings: func(set *turn.Settings) {
		v, ok := set.OwnServers[kind]
		if !ok {
			return
		}
		change(&v)
		set.OwnServers = maps.Clone(set.OwnServers)
		set.OwnServers[kind] = v
	}}, nil, nil)
}
