package transom

import (
	"context"
	"maps"
	"net/http"
	"strings"
	"sync"

	"github.com/transom-run/transom/model"
)

// shape is what a host configures about the requests of its session; nil leaves a
// part of it as it is.
type shape struct {
	clientName *string
	summary    *string
	citations  *bool
	vision     *bool
	abilities  *Abilities
	noSockets  *bool
}

// shaping puts a host's settings into a session's model requests.
type shaping struct {
	mu     sync.Mutex
	shape  shape
	fitted fitted
}

// set takes what a host configures.
func (s *shaping) set(in shape) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if in.clientName != nil {
		s.shape.clientName = in.clientName
	}
	if in.summary != nil {
		s.shape.summary = in.summary
	}
	if in.citations != nil {
		s.shape.citations = in.citations
	}
	if in.vision != nil {
		s.shape.vision = in.vision
	}
	if in.abilities != nil {
		s.shape.abilities = in.abilities
	}
	if in.noSockets != nil {
		s.shape.noSockets = in.noSockets
	}
}

// switched notes that another model answers: what was said of the abilities of the
// one before holds no longer.
func (s *shaping) switched(vision *bool, abilities *Abilities) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shape.vision, s.shape.abilities = vision, abilities
}

// reshape takes what a change of settings says about requests and their model.
func (s *loaded) reshape(set *Configure) {
	if set.Model != nil && *set.Model != s.View().Model {
		s.requests.switched(set.Vision, set.Abilities)
		s.models.bound(set.Abilities.window())
	} else if set.Abilities != nil {
		s.models.bound(set.Abilities.window())
	}
	s.requests.set(shape{summary: set.ReasoningSummary, citations: set.Citations, vision: set.Vision, abilities: set.Abilities})
}

func (s *shaping) get() shape {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shape
}

// model says who answers a request, and makes the request as the session's host
// and the model want it. It runs outside the session's goroutine.
func (s *loaded) model(ctx context.Context, req *model.Request) (model.Provider, error) {
	p, err := s.models.provider(ctx, req)
	if err != nil {
		return nil, err
	}
	in := s.requests.get()
	if in.summary != nil {
		req.ReasoningSummary = *in.summary
	}
	if a := in.abilities; a != nil && s.known(req) {
		req.MaxOutput = a.OutputTokens
		if a.Reasons != nil && !*a.Reasons {
			req.ReasoningEffort, req.ReasoningSummary = "", ""
		}
	}
	req.Citations = in.citations != nil && *in.citations
	req.NoSockets = in.noSockets != nil && *in.noSockets
	if in.clientName != nil {
		s.sign(req, *in.clientName)
	}
	return p, s.show(ctx, req)
}

// known reports whether a request is for the session's model, of which its host may
// know more: another agent may have a model of its own.
func (s *loaded) known(req *model.Request) bool {
	return req.Interaction != model.ForSubagent || req.Model == s.View().Model
}

// sign names the client in the User-Agent, unless the host has set one.
func (s *loaded) sign(req *model.Request, client string) {
	client = strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || r == '(' || r == ')' || r == '\\' {
			return -1
		}
		return r
	}, client))
	if client == "" || agentHeader(req.Headers) || s.models.agentHeader() {
		return
	}
	headers := maps.Clone(req.Headers)
	if headers == nil {
		headers = map[string]string{}
	}
	headers["User-Agent"] = "transom (" + client + ")"
	req.Headers = headers
}

func agentHeader(h map[string]string) bool {
	for name := range h {
		if http.CanonicalHeaderKey(name) == "User-Agent" {
			return true
		}
	}
	return false
}

// agentHeader reports whether the session's own provider says what its requests
// call themselves.
func (m *models) agentHeader() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.has.own != nil && agentHeader(m.has.own.Headers)
}
