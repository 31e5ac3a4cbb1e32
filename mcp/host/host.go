package host

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/transom-run/transom/mcp"
	"github.com/transom-run/transom/tool"
)

// parallel is how many servers are connected to at a time: starting a process is
// cheap to ask for and dear to serve.
const parallel = 8

// Host keeps the servers of one session.
type Host struct {
	cfg  mcp.Context
	log  *slog.Logger
	gate chan struct{} // held while a server is being connected to

	mu      sync.Mutex
	servers map[string]*server
	tokens  map[string]given // by server
	started bool
	closed  bool
	settled *sync.Cond  // something is no longer pending
	outbox  []mcp.State // to be told, in order
	running sync.WaitGroup

	telling sync.Mutex // held while states are told

	logins logins
}

// New makes a host without servers. It starts nothing.
func New(cfg mcp.Context) (mcp.Host, error) {
	h := &Host{cfg: cfg, log: cfg.Logger, gate: make(chan struct{}, parallel), servers: map[string]*server{}}
	if h.log == nil {
		h.log = slog.New(slog.DiscardHandler)
	}
	if h.cfg.Redact == nil {
		h.cfg.Redact = func(s string) string { return s }
	}
	h.settled = sync.NewCond(&h.mu)
	return h, nil
}

// server is one server. The host's mutex guards it.
type server struct {
	name     string
	cfg      mcp.Server
	disabled bool
	state    mcp.State
	run      *run // the newest connection; nil: none was made
	retry    bool // the next Start connects again
}

// run is one connection, or an attempt at one.
type run struct {
	cancel context.CancelFunc
	link   *link         // nil: not connected
	done   chan struct{} // closed when all of it has ended
}

// Set says which servers there are.
func (h *Host) Set(servers map[string]mcp.Server, disabled []string) {
	h.mu.Lock()
	for name, s := range h.servers {
		if cfg, stays := servers[name]; !stays || !cfg.Same(s.cfg) {
			h.giveUp(s.cfg)
			s.stop()
			delete(h.servers, name)
		}
	}
	for name, cfg := range servers {
		off := slices.Contains(disabled, name)
		s := h.servers[name]
		if s == nil {
			s = &server{name: name, cfg: cfg, disabled: off}
			h.servers[name] = s
			h.came(s, mcp.NotStarted, "")
		}
		if s.disabled = off; off {
			h.giveUp(s.cfg)
			s.stop()
			if s.state.Status != mcp.Disabled {
				h.came(s, mcp.Disabled, "")
			}
		} else if s.state.Status == mcp.Disabled {
			h.came(s, mcp.NotStarted, "")
		}
	}
	if h.started {
		h.connectAll()
	}
	h.mu.Unlock()
	h.tell()
}

// Start begins to connect.
func (h *Host) Start() {
	h.mu.Lock()
	h.started = true
	h.connectAll()
	h.mu.Unlock()
	h.tell()
}

// connectAll begins to connect to what is not. mu is held.
func (h *Host) connectAll() {
	for _, name := range slices.Sorted(maps.Keys(h.servers)) {
		s := h.servers[name]
		if s.disabled || h.closed {
			continue
		}
		if s.state.Status == mcp.NotStarted || s.retry {
			h.connect(s)
		}
	}
}

// connect begins to connect to a server whose earlier connection, if there was
// one, has been told to end. mu is held.
func (h *Host) connect(s *server) {
	s.retry = false
	ctx, cancel := context.WithCancel(context.Background())
	before := s.run
	r := &run{cancel: cancel, done: make(chan struct{})}
	s.run = r
	h.came(s, mcp.Pending, "")
	cfg := s.cfg
	h.running.Go(func() {
		defer close(r.done)
		defer cancel()
		if before != nil {
			<-before.done
		}
		h.keep(ctx, s, r, cfg)
	})
}

// stop tells a server's connection to end. The host's mutex is held.
func (s *server) stop() {
	if s.run != nil {
		s.run.cancel()
		s.run.link = nil
	}
	s.retry = false
}

// came notes a server's new state. mu is held.
func (h *Host) came(s *server, to mcp.Status, why string) {
	s.state = mcp.State{Name: s.name, Status: to, Error: h.cfg.Redact(why), Transport: s.cfg.Transport(), Since: time.Now(), Config: s.cfg, Retry: s.retry}
	if s.run != nil && s.run.link != nil {
		s.state.Protocol, s.state.PID = s.run.link.protocol, s.run.link.pid()
	}
	h.settled.Broadcast()
	h.outbox = append(h.outbox, s.state)
}

// tell passes on what servers came to, in that order. mu is not held.
func (h *Host) tell() {
	h.telling.Lock()
	defer h.telling.Unlock()
	h.mu.Lock()
	states := h.outbox
	h.outbox = nil
	h.mu.Unlock()
	if len(states) > 0 && h.cfg.Changed != nil {
		h.cfg.Changed()
	}
	for _, st := range states {
		if h.cfg.StateChanged != nil {
			h.cfg.StateChanged(st)
		}
	}
}

// keep connects, waits for the end of the connection, and takes it down.
func (h *Host) keep(ctx context.Context, s *server, r *run, cfg mcp.Server) {
	select {
	case h.gate <- struct{}{}:
	case <-ctx.Done():
		return
	}
	l, err := h.open(ctx, s.name, cfg)
	<-h.gate
	h.mu.Lock()
	if s.run != r || ctx.Err() != nil || h.closed {
		h.mu.Unlock()
		if l != nil {
			l.close()
		}
		return
	}
	if err != nil {
		h.came(s, statusOf(err), err.Error())
		h.mu.Unlock()
		h.tell()
		return
	}
	r.link = l
	h.came(s, mcp.Connected, "")
	h.mu.Unlock()
	for _, w := range l.warnings() {
		h.warn(w)
	}
	h.tell()
	select {
	case <-l.ended:
	case <-ctx.Done():
	}
	why := ""
	if ctx.Err() == nil {
		why = l.ending()
	}
	h.mu.Lock()
	r.link = nil
	if s.run == r && ctx.Err() == nil && !h.closed {
		to := mcp.Failed
		if denied := l.denied(); denied != nil {
			to, why = mcp.NeedsAuth, denied.Error()
		}
		s.retry = to == mcp.Failed
		h.came(s, to, why)
	}
	h.mu.Unlock()
	h.tell()
	close(l.noted)
	l.close()
}

// getenv resolves references in configurations; nil where there are none.
func (h *Host) getenv() func(string) string {
	if in := h.cfg.Indirect; in == nil || !in() {
		return nil
	}
	return h.cfg.Getenv
}

func (h *Host) warn(text string) {
	if h.cfg.Warn != nil {
		h.cfg.Warn(h.cfg.Redact(text))
	}
}

// Settle waits until nothing is pending.
func (h *Host) Settle(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.settled.Broadcast()
	})
	defer stop()
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		pending := false
		for _, s := range h.servers {
			pending = pending || s.state.Status == mcp.Pending
		}
		if !pending || h.closed {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		h.settled.Wait()
	}
}

// States describes the servers.
func (h *Host) States() []mcp.State {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := make([]mcp.State, 0, len(h.servers))
	for _, name := range slices.Sorted(maps.Keys(h.servers)) {
		out = append(out, h.servers[name].state)
	}
	return out
}

// Tools are those of the connected servers.
func (h *Host) Tools() []tool.Tool {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []tool.Tool
	taken := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(h.servers)) {
		if r := h.servers[name].run; r != nil && r.link != nil {
			for _, t := range r.link.offered() {
				if !taken[t.Name] {
					taken[t.Name] = true
					out = append(out, t)
				}
			}
		}
	}
	return out
}

// keepToken remembers what a server is authorised with, for its next connection.
func (h *Host) keepToken(server, url, header string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.tokens == nil {
		h.tokens = map[string]given{}
	}
	h.tokens[server] = given{url, header}
}

// token is what a server at an address was authorised with; "" is nothing.
func (h *Host) token(server, url string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t := h.tokens[server]; t.url == url {
		return t.header
	}
	return ""
}

// given is an Authorization header, and where it is for.
type given struct{ url, header string }

// linked finds a connected server.
func (h *Host) linked(name string) (*link, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s := h.servers[name]; s != nil && s.run != nil && s.run.link != nil {
		return s.run.link, nil
	}
	return nil, fmt.Errorf("the MCP server %q is not connected%s", name, h.among())
}

// among names the servers that there are. mu is held.
func (h *Host) among() string {
	if len(h.servers) == 0 {
		return ": this session has no MCP servers"
	}
	return ": this session has " + strings.Join(slices.Sorted(maps.Keys(h.servers)), ", ")
}

// ListTools lists the tools of a server.
func (h *Host) ListTools(name string) ([]mcp.Tool, error) {
	l, err := h.linked(name)
	if err != nil {
		return nil, err
	}
	return l.described(), nil
}

// Instructions are what connected servers say about themselves.
func (h *Host) Instructions() map[string]string {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := map[string]string{}
	for name, s := range h.servers {
		if s.run != nil && s.run.link != nil && s.run.link.instructions != "" {
			out[name] = s.run.link.instructions
		}
	}
	return out
}

// find finds a server. mu is held.
func (h *Host) find(name string) (*server, error) {
	if s := h.servers[name]; s != nil {
		return s, nil
	}
	return nil, fmt.Errorf("the MCP server %q is not configured%s", name, h.among())
}

// Enable lets a server run, and connects to it where others are connected.
func (h *Host) Enable(name string) error {
	h.mu.Lock()
	s, err := h.find(name)
	if err == nil && s.disabled {
		s.disabled = false
		h.came(s, mcp.NotStarted, "")
		if h.started {
			h.connectAll()
		}
	}
	h.mu.Unlock()
	h.tell()
	return err
}

// Disable ends a server and keeps it from running.
func (h *Host) Disable(ctx context.Context, name string) error {
	return h.halt(ctx, name, mcp.Disabled)
}

// Stop ends a server.
func (h *Host) Stop(ctx context.Context, name string) error { return h.halt(ctx, name, mcp.Stopped) }

func (h *Host) halt(ctx context.Context, name string, to mcp.Status) error {
	h.mu.Lock()
	s, err := h.find(name)
	if err != nil {
		h.mu.Unlock()
		return err
	}
	s.disabled = s.disabled || to == mcp.Disabled
	h.giveUp(s.cfg)
	r := s.run
	s.stop()
	if s.state.Status != to && s.state.Status != mcp.Disabled {
		h.came(s, to, "")
	}
	h.mu.Unlock()
	h.tell()
	return ended(ctx, r)
}

// ended waits for the end of a connection.
func ended(ctx context.Context, r *run) error {
	if r == nil {
		return nil
	}
	select {
	case <-r.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Run connects to a server, anew where it runs.
func (h *Host) Run(ctx context.Context, name string, cfg *mcp.Server) error {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return fmt.Errorf("the MCP server %q is not started: the session is ending", name)
	}
	s, err := h.find(name)
	if err != nil && cfg == nil {
		h.mu.Unlock()
		return err
	}
	if s == nil {
		s = &server{name: name}
		h.servers[name] = s
	}
	s.stop()
	if cfg != nil {
		s.cfg = *cfg
	}
	s.disabled = false
	h.connect(s)
	r := s.run
	h.mu.Unlock()
	h.tell()
	return h.awaited(ctx, s, r)
}

// awaited waits until a connection is made or has failed.
func (h *Host) awaited(ctx context.Context, s *server, r *run) error {
	stop := context.AfterFunc(ctx, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.settled.Broadcast()
	})
	defer stop()
	h.mu.Lock()
	defer h.mu.Unlock()
	for s.run == r && s.state.Status == mcp.Pending && !h.closed && ctx.Err() == nil {
		h.settled.Wait()
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case s.run == r && s.state.Status == mcp.Connected:
		return nil
	case s.state.Error != "":
		return fmt.Errorf("the MCP server %q could not be started: %s", s.name, s.state.Error)
	}
	return fmt.Errorf("the MCP server %q is %s", s.name, s.state.Status)
}

// Close ends all servers.
func (h *Host) Close() error {
	h.mu.Lock()
	h.closed = true
	for _, s := range h.servers {
		s.stop()
	}
	h.settled.Broadcast()
	h.mu.Unlock()
	h.endLogins()
	h.running.Wait()
	return nil
}

// matches reports whether a tool's name is among patterns.
func matches(patterns []string, name string) bool {
	for _, p := range patterns {
		if p == "*" || p == name {
			return true
		}
		if ok, err := path.Match(p, name); err == nil && ok {
			return true
		}
	}
	return false
}

var _ mcp.Host = (*Host)(nil)
