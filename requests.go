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
	noSockets  *bool
}

// shaping puts a host's settings into a session's model requests.
type shaping struct {
	mu    sync.Mutex
	shape shape
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
	if in.noSockets != nil {
		s.shape.noSockets = in.noSockets
	}
}

// switched notes that another model answers: what was said of the abilities of the
// one before holds no longer.
func (s *shaping) switched(vision *bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shape.vision = vision
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
	req.Citations = in.citations != nil && *in.citations
	req.NoSockets = in.noSockets != nil && *in.noSockets
	if in.clientName != nil {
		s.sign(req, *in.clientName)
	}
	if pictured(req.Messages) {
		sees := in.vision
		if sees == nil {
			v := s.models.vision(ctx, req.Model)
			sees = &v
		}
		if !*sees {
			req.Messages = blind(req.Messages)
		}
	}
	return p, nil
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

// vision reports whether a model takes pictures. Only an account says so of its
// models; others are taken to.
func (m *models) vision(ctx context.Context, id string) bool {
	m.mu.Lock()
	answers, choice := m.answers, m.choice
	_, listed := m.listed(id)
	m.mu.Unlock()
	if answers != nil || listed || choice == nil || choice.Account == nil {
		return true
	}
	list, err := choice.Account.Models(ctx)
	if err != nil {
		return true
	}
	for i, info := range list {
		if info.ID == id || id == "" && i == 0 {
			return info.Vision
		}
	}
	return true
}

func pictured(ms []model.Message) bool {
	for i := range ms {
		if len(ms[i].Images) > 0 {
			return true
		}
	}
	return false
}

// blind is a window for a model that takes no pictures. What a user sent is said
// to be missing; a tool's result has its text.
func blind(ms []model.Message) []model.Message {
	out := make([]model.Message, len(ms))
	for i, m := range ms {
		for _, image := range m.Images {
			if m.Role != model.User {
				break
			}
			name := image.Name
			if name == "" {
				name = "an image"
			}
			m.Text += "\n(" + name + " is not shown: the model in use takes no images.)"
		}
		m.Images = nil
		out[i] = m
	}
	return out
}
