package modeltest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/model/anthropic"
	"github.com/transom-run/transom/model/endpoint"
	"github.com/transom-run/transom/model/modelfile"
	"github.com/transom-run/transom/model/openai"
	"github.com/transom-run/transom/model/responses"
	"github.com/transom-run/transom/model/scripted"
)

// Server is an endpoint for tests: it plays a model file, and answers the user
// lookup of GitHub accounts for the tokens that it knows.
type Server struct {
	*httptest.Server
	// Script plays the file; nil where the server has a handler of the test.
	Script *scripted.Provider

	t  testing.TB
	mu sync.Mutex
	// users are the bodies for /copilot_internal/user, by token. nil values are
	// filled in.
	users    map[string]map[string]any
	requests []HTTPRequest
}

// HTTPRequest is a request that a Server got.
type HTTPRequest struct {
	Method, Path string
	Header       http.Header
	Body         []byte
	// Chat is the body of a request to a model, on any wire; nil for other requests.
	Chat *model.Request
}

// NewServer starts a server that plays the text of a model file. It ends with
// the test.
func NewServer(t testing.TB, script string) *Server {
	t.Helper()
	f, err := modelfile.Parse("script.yaml", []byte(script))
	if err != nil {
		t.Fatal(err)
	}
	p := scripted.New(scripted.Config{File: f})
	s := NewHandler(t, p.Handler())
	s.Script = p
	return s
}

// NewHandler starts a server with a handler of the test.
func NewHandler(t testing.TB, h http.Handler) *Server {
	s := &Server{t: t, users: make(map[string]map[string]any)}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, h) }))
	t.Cleanup(func() {
		s.Client().CloseIdleConnections()
		endpoint.CloseIdleConnections()
		s.Close()
	})
	return s
}

// AddUser makes a token known. more adds fields to the answer, or replaces them.
func (s *Server) AddUser(token, login string, more map[string]any) {
	user := map[string]any{"login": login, "copilot_plan": "individual", "endpoints": map[string]string{"api": s.URL}}
	for k, v := range more {
		user[k] = v
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users[token] = user
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request, h http.Handler) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	req := HTTPRequest{Method: r.Method, Path: r.URL.Path, Header: r.Header.Clone(), Body: body}
	if r.Method == http.MethodPost {
		if req.Chat, err = decode(r.URL.Path, body); err != nil {
			s.t.Errorf("a request that strict providers refuse: %v\n%s", err, body)
		}
	}
	s.mu.Lock()
	s.requests = append(s.requests, req)
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	user, known := s.users[token]
	s.mu.Unlock()
	if r.URL.Path != "/copilot_internal/user" {
		r.Body = io.NopCloser(bytes.NewReader(body))
		h.ServeHTTP(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if !known {
		w.WriteHeader(http.StatusUnauthorized)
		io.WriteString(w, `{"message":"Bad credentials"}`)
		return
	}
	json.NewEncoder(w).Encode(user)
}

// decode reads a request to a model, and checks what strict providers demand of
// it; nil where the path is none of the wires'.
func decode(path string, body []byte) (req *model.Request, err error) {
	switch {
	case strings.HasSuffix(path, "/chat/completions"):
		req, err = openai.DecodeRequest(body)
	case strings.HasSuffix(path, "/responses"):
		if req, err = responses.DecodeRequest(body); err == nil {
			err = CheckResponses(body)
		}
	case strings.HasSuffix(path, "/messages"):
		if req, err = anthropic.DecodeRequest(body); err == nil {
			err = CheckMessages(body)
		}
	default:
		return nil, nil
	}
	if err == nil {
		err = CheckRequest(req)
	}
	return req, err
}

// Requests returns all requests so far, in the order of their arrival.
func (s *Server) Requests() []HTTPRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Chats returns the chat requests so far.
func (s *Server) Chats() []*model.Request {
	var out []*model.Request
	for _, r := range s.Requests() {
		if r.Chat != nil {
			out = append(out, r.Chat)
		}
	}
	return out
}
