package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"sync"

	copilot "github.com/github/copilot-sdk/go"
)

// player plays one case. Handlers run at the same time as the main steps, so
// what they share is behind mu.
type player struct {
	order order

	mu        sync.Mutex
	log       []entry
	seats     map[string]*seat
	gates     map[string]chan struct{}
	sessionID string
}

// seat is one client of a case: its connection, its session, and what it was
// told.
type seat struct {
	client  *copilot.Client
	session *copilot.Session

	mu      sync.Mutex
	events  []seen
	changed chan struct{} // closed and replaced with every event
}

// seen is an event, and what it says about a call.
type seen struct {
	event               copilot.SessionEvent
	typ, call, question string
}

func newPlayer(o order) *player {
	return &player{order: o, seats: map[string]*seat{}, gates: map[string]chan struct{}{}}
}

func (p *player) play() observation {
	ctx := context.Background()
	p.run(ctx, "host", "a", p.order.Host)
	var errs []error
	for name, s := range p.seats {
		// After the orderly end the SDK kills the process, and reports it where the
		// process was quicker.
		if err := s.client.Stop(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			errs = append(errs, fmt.Errorf("stop %s: %w", name, err))
		}
	}
	o := observation{Events: map[string]any{}}
	for name, s := range p.seats {
		events := []copilot.SessionEvent{}
		for _, e := range s.seen() {
			events = append(events, e.event)
		}
		o.Events[name] = events
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	o.Log = p.log
	if err := errors.Join(errs...); err != nil {
		o.Error = err.Error()
	}
	return o
}

// run runs steps until one of them ends a handler, and returns that one.
func (p *player) run(ctx context.Context, at, client string, steps []step) step {
	for _, s := range steps {
		switch s.Do {
		case "return", "throw", "decide":
			return s
		}
		if s.Client == "" {
			s.Client = client
		}
		e := entry{At: at, Do: s.Do, As: s.As}
		fmt.Fprintf(os.Stderr, "%s: %s\n", at, s.Do) // shown only where the case hangs
		value, err := p.step(ctx, s)
		if e.Value = value; err != nil {
			e.Value, e.Error = nil, err.Error()
		}
		p.mu.Lock()
		p.log = append(p.log, e)
		p.mu.Unlock()
	}
	return step{}
}

func (p *player) step(ctx context.Context, s step) (any, error) {
	switch s.Do {
	case "create", "resume":
		return p.open(ctx, s)
	case "wait_gate":
		<-p.gate(s.Gate)
		return nil, nil
	case "open_gate":
		close(p.gate(s.Gate))
		return nil, nil
	case "wait_model":
		_, err := ask(http.MethodGet, fmt.Sprintf("model/wait/%d", s.Count), nil, nil)
		return nil, err
	case "release_model":
		_, err := ask(http.MethodPost, fmt.Sprintf("model/release/%d", s.Count), nil, nil)
		return nil, err
	case "park": // a handler that never returns
		select {}
	}
	seat, err := p.at(s.Client)
	if err != nil {
		return nil, err
	}
	return p.use(ctx, seat, s)
}

// at returns the seat of a client.
func (p *player) at(client string) (*seat, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.seats[client]
	if s == nil || s.session == nil {
		return nil, fmt.Errorf("client %s has no session", client)
	}
	return s, nil
}

// gate returns the channel that open_gate closes.
func (p *player) gate(name string) chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gates[name] == nil {
		p.gates[name] = make(chan struct{})
	}
	return p.gates[name]
}

// requestOf finds the request id under which the runtime asked for a call.
func (p *player) requestOf(call string) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.seats {
		for _, e := range s.seen() {
			if e.typ == "external_tool.requested" && e.call == call {
				return e.question, nil
			}
		}
	}
	return "", fmt.Errorf("nobody was asked for call %s", call)
}

// end plays the steps of a handler and returns the one that ends it; false where
// the case has none for this call.
func (p *player) end(at, client string, scripts map[string][]step, call string) (step, bool) {
	steps, scripted := scripts[call]
	if !scripted {
		return step{}, false
	}
	return p.run(context.Background(), at, client, steps), true
}

// keep keeps an event and wakes whoever waits for it.
func (s *seat) keep(e seen) {
	fmt.Fprintf(os.Stderr, "  %s\n", e.typ)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, e)
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *seat) seen() []seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.events)
}

// until returns once count events of a type were seen, for one call if named.
func (s *seat) until(typ, call string, count int) {
	for {
		s.mu.Lock()
		n, changed := 0, s.changed
		for _, e := range s.events {
			if e.typ == typ && (call == "" || e.call == call) {
				n++
			}
		}
		s.mu.Unlock()
		if n >= count {
			return
		}
		<-changed
	}
}
