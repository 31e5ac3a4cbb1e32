package server

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/internal/extension"
	"github.com/transom-run/transom/internal/jsonrpc2"
)

// The methods about extensions: programs that run beside a session.
func extensionMethods() map[string]handler {
	return map[string]handler{
		"session.extensions.list":    posted(listExtensions),
		"session.extensions.enable":  posted(enableExtension),
		"session.extensions.disable": posted(disableExtension),
		"session.extensions.reload":  posted(reloadExtensions),
	}
}

// extensionParams is what session.create and session.resume say about extensions.
type extensionParams struct {
	RequestExtensions bool   `json:"requestExtensions"`
	ExtensionSDKPath  string `json:"extensionSdkPath"`
}

// extensionHost runs the extensions of one session.
type extensionHost struct {
	srv  *Server
	sess *transom.Session
	sdk  string

	changing sync.Mutex // held while extensions come and go

	mu    sync.Mutex
	list  []extension.Extension
	runs  map[string]*extensionRun // by id
	off   map[string]bool          // disabled, by id
	ended bool
}

// extensionRun is an extension that was started.
type extensionRun struct {
	proc    *extension.Process // nil: it could not be started
	conn    *conn
	stopped bool // on purpose
	over    bool
	why     string // it is over
	done    chan struct{}
}

// Statuses of an extension.
const (
	extensionRunning  = "running"
	extensionFailed   = "failed"
	extensionDisabled = "disabled"
)

// launch starts the extensions of a session, where its client asked for them and
// the server may run any.
func (c *conn) launch(s *transom.Session, p *sessionParams) {
	if !p.RequestExtensions || !c.srv.cfg.Extensions || c.only != "" {
		return
	}
	h := &extensionHost{srv: c.srv, sess: s, sdk: p.ExtensionSDKPath, runs: map[string]*extensionRun{}, off: map[string]bool{}}
	c.srv.mu.Lock()
	if c.srv.closing || c.srv.beside[s.ID()] != nil {
		c.srv.mu.Unlock()
		return
	}
	if c.srv.beside == nil {
		c.srv.beside = map[string]*extensionHost{}
	}
	c.srv.beside[s.ID()] = h
	c.srv.running.Add(1)
	c.srv.mu.Unlock()
	events := s.Subscribe()
	go func() {
		defer c.srv.running.Done()
		defer events.Close()
		h.reload()
		for { // until the session has ended, whoever ended it
			if _, err := events.Next(context.Background(), nil); err != nil {
				break
			}
		}
		h.end(context.Background())
	}()
}

// extensionsOf finds the extensions of a session; nil where none were asked for.
func (s *Server) extensionsOf(id string) *extensionHost {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.beside[id]
}

// reload stops what runs, looks for extensions anew and starts them.
func (h *extensionHost) reload() {
	h.changing.Lock()
	defer h.changing.Unlock()
	h.stop(context.Background(), "")
	found := extension.Find(filepath.Join(h.sess.Info().Dir, ".github", "extensions"), "project")
	if home := h.srv.cfg.Runtime.Home(); home != "" {
		found = append(found, extension.Find(filepath.Join(home, "extensions"), "user")...)
	}
	h.mu.Lock()
	h.list = found
	h.mu.Unlock()
	for _, e := range found {
		h.start(e)
	}
	h.tell()
}

// rows are the extensions as clients read of them.
func (h *extensionHost) rows() []wireExtension {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := []wireExtension{}
	for _, e := range h.list {
		w := wireExtension{ID: e.ID, Name: e.Name, Source: e.Source, Status: extensionFailed}
		switch run := h.runs[e.ID]; {
		case h.off[e.ID]:
			w.Status = extensionDisabled
		case run != nil && !run.over:
			w.Status, w.PID = extensionRunning, run.proc.PID()
		case run != nil:
			w.Error = run.why
		}
		list = append(list, w)
	}
	return list
}

// tell says how the extensions stand.
func (h *extensionHost) tell() {
	p := event.ExtensionsLoaded{Extensions: []event.ExtensionInfo{}}
	for _, w := range h.rows() {
		p.Extensions = append(p.Extensions, event.ExtensionInfo{ID: w.ID, Name: w.Name, Source: w.Source, Status: w.Status})
	}
	h.sess.TellExtensions(p)
}

// start runs an extension and serves it. changing is held.
func (h *extensionHost) start(e extension.Extension) {
	h.mu.Lock()
	if h.ended || h.off[e.ID] {
		h.mu.Unlock()
		return
	}
	h.mu.Unlock()
	log := h.srv.cfg.Logger.With("session", h.sess.ID(), "extension", e.ID)
	run := &extensionRun{done: make(chan struct{})}
	proc, err := extension.Start(extension.Config{
		Extension: e, SessionID: h.sess.ID(), Dir: h.sess.Info().Dir, SDK: h.sdk, Environ: h.srv.cfg.Runtime.Environ(),
		Log: func(line string) { log.Info("extension says", "line", line) },
	})
	if err != nil {
		log.Error("extension not started", "error", err)
		run.over, run.why = true, h.srv.cfg.Runtime.Redact(err.Error())
		close(run.done)
	} else {
		run.proc, run.conn = proc, newConn(h.srv, proc)
		run.conn.open, run.conn.only, run.conn.peer = true, h.sess.ID(), e.ID
	}
	h.mu.Lock()
	h.runs[e.ID] = run
	h.mu.Unlock()
	if err != nil {
		return
	}
	if !h.srv.enter(run.conn) {
		proc.Close()
		close(run.done)
		return
	}
	go func() {
		defer h.srv.leave(run.conn)
		defer close(run.done)
		err := run.conn.serve(context.Background())
		proc.Close()
		h.mu.Lock()
		run.over, run.why = true, h.srv.cfg.Runtime.Redact(proc.Why())
		wanted := run.stopped || h.ended
		h.mu.Unlock()
		if !wanted {
			log.Warn("extension ended by itself", "why", run.why, "connection", err)
			h.tell()
		}
	}()
}

// stop ends one extension, or all where id is "": they leave the session in order.
// changing is held.
func (h *extensionHost) stop(ctx context.Context, id string) {
	h.mu.Lock()
	var ending []*extensionRun
	for have, run := range h.runs {
		if id == "" || have == id {
			run.stopped = true
			ending = append(ending, run)
			delete(h.runs, have)
		}
	}
	h.mu.Unlock()
	for _, run := range ending {
		if run.conn != nil {
			run.conn.detachAll(ctx)
			run.conn.rpc.Close()
		}
	}
	for _, run := range ending {
		if run.proc != nil {
			run.proc.Close()
		}
		<-run.done
	}
}

// detachAll takes the connection's client out of its sessions in order.
func (c *conn) detachAll(ctx context.Context) {
	c.mu.Lock()
	var atts []*attachment
	for _, l := range c.lanes {
		if l.att != nil {
			atts = append(atts, l.att)
		}
	}
	c.mu.Unlock()
	for _, a := range atts {
		_ = a.sess.Close(ctx) // it is dropped with the connection otherwise
	}
}

// end stops all extensions for good.
func (h *extensionHost) end(ctx context.Context) {
	h.mu.Lock()
	h.ended = true
	h.mu.Unlock()
	h.changing.Lock()
	defer h.changing.Unlock()
	h.stop(ctx, "")
	h.srv.mu.Lock()
	if h.srv.beside[h.sess.ID()] == h {
		delete(h.srv.beside, h.sess.ID())
	}
	h.srv.mu.Unlock()
}

// extensionTime bounds how long a client's leaving waits for extensions.
const extensionTime = 5 * time.Second

// releaseExtensions ends the extensions of a session that a client is leaving,
// where nobody but them would be left: they keep no session alive.
func (c *conn) releaseExtensions(id string) {
	h := c.srv.extensionsOf(id)
	if h == nil || c.only != "" {
		return
	}
	c.srv.mu.Lock()
	var others []*conn
	for o := range c.srv.conns {
		if o != c && o.only == "" {
			others = append(others, o)
		}
	}
	c.srv.mu.Unlock()
	for _, o := range others {
		o.mu.Lock()
		l := o.lanes[id]
		attached := l != nil && l.att != nil
		o.mu.Unlock()
		if attached {
			return
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), extensionTime)
	defer cancel()
	h.end(ctx)
}

// mayAsk reports, as an error, that a method is not for extensions: they belong to
// one session, and approve nothing.
func (c *conn) mayAsk(r jsonrpc2.Request) error {
	switch name := r.Method; {
	case name == "connect", name == "ping", name == "status.get":
		return nil
	case strings.HasPrefix(name, "session.permissions."), !strings.HasPrefix(name, "session."), name == "session.create", name == "session.delete":
		return failKind(name, transom.KindDenied, name+" is not for extensions: they belong to one session, and approve nothing in it")
	}
	var t target
	if err := decode(r, &t); err != nil {
		return err
	}
	if t.SessionID != c.only {
		return notFound(r.Method, t.SessionID)
	}
	return nil
}

type wireExtension struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Source string `json:"source"`
	Status string `json:"status"`
	PID    int    `json:"pid,omitempty"`
	Error  string `json:"error,omitempty"` // why it failed
}

func listExtensions(q *call, _ *target) {
	list := []wireExtension{}
	if h := q.c.srv.extensionsOf(q.lane.id); h != nil {
		list = h.rows()
	}
	q.Reply(map[string]any{"extensions": list}, nil)
}

// errNoExtensions says why a session has none. The SDKs' suite
// ("rpc_mcp_and_skills") looks for its first words.
//
//lint:ignore ST1005 The words are theirs.
var errNoExtensions = errors.New("Extensions not available in this session: they run where the server has COPILOT_CLI_ENABLED_FEATURE_FLAGS=EXTENSIONS and the session was created with requestExtensions")

type extensionIDParams struct {
	target
	ID string `json:"id"`
}

// change does something to the extensions of the session, aside.
func (q *call) change(do func(h *extensionHost) error) {
	h := q.c.srv.extensionsOf(q.lane.id)
	if h == nil {
		q.Reply(nil, failKind(q.op(), transom.KindWrongState, errNoExtensions.Error()))
		return
	}
	q.Go(func(context.Context) (any, error) { return nil, fail(q.op(), do(h)) })
}

func (h *extensionHost) find(op, id string) (extension.Extension, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range h.list {
		if e.ID == id {
			return e, nil
		}
	}
	return extension.Extension{}, failKind(op, transom.KindNotFound, "session "+h.sess.ID()+" has no extension "+id)
}

func (q *call) toggle(id string, off bool) {
	q.change(func(h *extensionHost) error {
		h.changing.Lock()
		defer h.changing.Unlock()
		e, err := h.find(q.op(), id)
		if err != nil {
			return err
		}
		h.mu.Lock()
		h.off[id] = off
		run := h.runs[id]
		up := run != nil && !run.over
		h.mu.Unlock()
		switch {
		case off:
			h.stop(context.Background(), id)
		case !up:
			h.start(e)
		}
		h.tell()
		return nil
	})
}

func enableExtension(q *call, p *extensionIDParams)  { q.toggle(p.ID, false) }
func disableExtension(q *call, p *extensionIDParams) { q.toggle(p.ID, true) }

func reloadExtensions(q *call, _ *target) {
	q.change(func(h *extensionHost) error { h.reload(); return nil })
}
