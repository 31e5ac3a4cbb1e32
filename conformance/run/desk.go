package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"
)

// desk hands the cases of one language to its host, one at a time, and takes
// the observations back.
//
//	GET  next               the next case, or 204 when there is none
//	POST result             what was observed of it
//	GET  model/wait/N       answers once the model was asked N times
//	POST model/release/N    lets the held reply N go
//
// The model of a case is served under model/CASE/v1.
type desk struct {
	suite *Suite
	lang  *Language
	base  string // this desk's URL
	bin   string
	tmp   string

	mu      sync.Mutex
	queue   []*Case
	current *run
	runs    []*run
	// progress wakes the watchdog whenever a case starts or ends.
	progress chan struct{}
}

// run is one case in one language.
type run struct {
	c       *Case
	lang    *Language
	model   *modelRun
	server  *runtimeServer // Over: server
	started time.Time
	took    time.Duration
	errs    []error
}

func newDesk(suite *Suite, lang *Language, base, bin, tmp string, queue []*Case) *desk {
	return &desk{suite: suite, lang: lang, base: base, bin: bin, tmp: tmp, queue: queue, progress: make(chan struct{}, 1)}
}

// begin takes the next case from the queue and prepares its world.
func (d *desk) begin() (*run, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.queue) == 0 {
		return nil, nil
	}
	c := d.queue[0]
	d.queue = d.queue[1:]
	r := &run{c: c, lang: d.lang, model: newModelRun(c), started: time.Now()}
	d.current = r
	d.runs = append(d.runs, r)
	defer d.wake()
	if err := os.MkdirAll(d.home(r), 0o700); err != nil {
		return r, err
	}
	if c.Over == "server" {
		server, err := startServer(d.bin, d.home(r))
		if err != nil {
			return r, err
		}
		r.server = server
	}
	return r, nil
}

// end judges the current case. A nil observation means that there is none, for
// the given reason.
func (d *desk) end(o *Observation, reason string) {
	d.mu.Lock()
	r := d.current
	d.current = nil
	d.mu.Unlock()
	if r == nil {
		return
	}
	if r.server != nil {
		r.server.stop()
	}
	if o == nil {
		r.errs = append(r.errs, fmt.Errorf("%s", reason))
	} else {
		r.errs = append(r.errs, checkObservation(r.c.without(d.lang.Unseen), o)...)
	}
	r.errs = append(r.errs, checkRequests(r.c, d.toolNames(r.c), r.model.seen())...)
	r.took = time.Since(r.started)
	d.wake()
}

func (d *desk) wake() {
	select {
	case d.progress <- struct{}{}:
	default:
	}
}

// toolNames lists, sorted, what the model must be told of in every request of
// a case: what its first create step declares.
func (d *desk) toolNames(c *Case) []string {
	for _, step := range c.Host {
		if step.Do == "create" {
			var names []string
			for _, t := range d.suite.toolsNamed(step) {
				names = append(names, t.Name)
			}
			slices.Sort(names)
			return names
		}
	}
	return nil
}

func (d *desk) home(r *run) string { return filepath.Join(d.tmp, "home", r.c.ID) }

// modelURL is the base URL of the scripted model of a case.
func (d *desk) modelURL(c *Case) string { return d.base + "/model/" + c.ID + "/v1" }

// order is a case as its host gets it.
type order struct {
	ID          string            `json:"id"`
	Over        string            `json:"over"`
	Server      map[string]string `json:"server,omitempty"` // url and token
	Home        string            `json:"home"`
	Model       map[string]string `json:"model"` // baseUrl and name
	System      string            `json:"system"`
	Streaming   bool              `json:"streaming"`
	Tools       []Tool            `json:"tools"` // every tool a step may declare
	Handlers    map[string][]Step `json:"handlers"`
	Permissions map[string][]Step `json:"permissions"`
	Host        []Step            `json:"host"`
}

func (d *desk) order(r *run) order {
	o := order{
		ID: r.c.ID, Over: r.c.Over, Home: d.home(r), Streaming: r.c.Streaming,
		Model:  map[string]string{"baseUrl": d.modelURL(r.c), "name": "scripted"},
		System: "You are the agent of a conformance run.",
		Tools:  d.suite.Tools, Handlers: r.c.Handlers, Permissions: r.c.Permissions,
		Host: slices.Clone(r.c.Host),
	}
	if r.server != nil {
		o.Server = map[string]string{"url": r.server.url, "token": r.server.token}
	}
	for i, step := range o.Host {
		if step.Do == "create" || step.Do == "resume" {
			o.Host[i].Tools = []string{}
			for _, t := range d.suite.toolsNamed(step) {
				o.Host[i].Tools = append(o.Host[i].Tools, t.Name)
			}
		}
	}
	return o
}

// handler is the HTTP side of the desk, below its base URL.
func (d *desk) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /next", func(w http.ResponseWriter, _ *http.Request) {
		r, err := d.begin()
		for err != nil {
			d.end(nil, err.Error())
			r, err = d.begin()
		}
		if r == nil {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(d.order(r))
	})
	mux.HandleFunc("POST /result", func(w http.ResponseWriter, req *http.Request) {
		o := &Observation{}
		if err := json.NewDecoder(req.Body).Decode(o); err != nil {
			d.end(nil, "the host's result cannot be read: "+err.Error())
		} else {
			d.end(o, "")
		}
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("GET /model/wait/{n}", func(w http.ResponseWriter, req *http.Request) {
		n, _ := strconv.Atoi(req.PathValue("n"))
		if r := d.now(); r == nil || !r.model.wait(n, watchdog) {
			http.Error(w, fmt.Sprintf("the model was not asked %d times", n), http.StatusGatewayTimeout)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("POST /model/release/{n}", func(w http.ResponseWriter, req *http.Request) {
		n, _ := strconv.Atoi(req.PathValue("n"))
		if r := d.now(); r != nil {
			r.model.release(n)
		}
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("POST /model/{id}/v1/chat/completions", func(w http.ResponseWriter, req *http.Request) {
		// A request of an older case can only be a runtime that lives on too
		// long; it is told so, and disturbs nothing.
		r := d.now()
		if r == nil || r.c.ID != req.PathValue("id") {
			http.Error(w, "this case is over", http.StatusGone)
			return
		}
		r.model.ServeHTTP(w, req)
	})
	return mux
}

func (d *desk) now() *run {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.current
}
