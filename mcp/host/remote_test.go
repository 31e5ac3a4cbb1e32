package host

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/transom-run/transom/mcp"
	"github.com/transom-run/transom/mcp/mcptest"
	"github.com/transom-run/transom/tool"
)

// remote is a server over HTTP that wants to see a header.
func remote(t *testing.T, h http.Handler, header, value string) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(header) != value {
			http.Error(w, "no such header", http.StatusBadRequest)
			return
		}
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// Streamable HTTP in both generations, and SSE.
func TestRemote(t *testing.T) {
	of := func(kind string) func(*http.Request) *sdk.Server {
		s := mcptest.New(kind)
		return func(*http.Request) *sdk.Server { return s }
	}
	for name, tc := range map[string]struct {
		handler  http.Handler
		kind     string
		protocol string
	}{
		"stateless": {sdk.NewStreamableHTTPHandler(of("plain"), &sdk.StreamableHTTPOptions{Stateless: true}), "http", "2026-07-28"},
		"older":     {sdk.NewStreamableHTTPHandler(of("legacy"), nil), "http", "2025-11-25"},
		"untyped":   {sdk.NewStreamableHTTPHandler(of("legacy"), &sdk.StreamableHTTPOptions{JSONResponse: true}), "", "2025-11-25"},
		"sse":       {sdk.NewSSEHandler(of("legacy"), nil), "sse", "2025-11-25"},
	} {
		t.Run(name, func(t *testing.T) {
			s := remote(t, tc.handler, "X-Key", "a key")
			r := newRig(t, nil)
			r.set(map[string]mcp.Server{
				"s": {Type: tc.kind, URL: s.URL, Headers: map[string]string{"X-Key": "a key"}}, "keyless": {Type: tc.kind, URL: s.URL},
			})
			if st := r.state("s"); st.Status != mcp.Connected || st.Protocol != tc.protocol {
				t.Fatalf("%+v", st)
			}
			if st := r.state("keyless"); st.Status != mcp.Failed {
				t.Errorf("%+v", st)
			}
			if got := r.call("s-get_env", `{"name":"NOTHING"}`); got.Type != "" || got.Text != "" {
				t.Errorf("%+v", got)
			}
			if got := r.call("s-fails", `{}`); got.Type != tool.Failure || got.Text != "the disk is full" {
				t.Errorf("%+v", got)
			}
			if err := r.Stop(context.Background(), "s"); err != nil || len(r.Tools()) > 0 {
				t.Errorf("%v, %v", err, r.names())
			}
		})
	}
}

// What a server redirects to is not told the server's headers.
func TestRedirect(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, r.Header.Get("X-Key"))
		http.NotFound(w, r)
	}))
	defer other.Close()
	s := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer s.Close()
	r := newRig(t, nil)
	r.set(map[string]mcp.Server{"s": {URL: s.URL, Headers: map[string]string{"X-Key": "a key"}}})
	r.Close()
	mu.Lock()
	defer mu.Unlock()
	if len(seen) == 0 || slices.Contains(seen, "a key") {
		t.Errorf("the other server saw %q", seen)
	}
}

// guard wants a bearer token, and tells where more is to be read.
type guard struct {
	h    http.Handler
	mu   sync.Mutex
	good string
}

func (g *guard) want(token string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.good = token
}

func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/meta" {
		_, _ = w.Write([]byte(`{"resource": "it"}`))
		return
	}
	g.mu.Lock()
	good := g.good
	g.mu.Unlock()
	if r.Header.Get("Authorization") != "Bearer "+good {
		w.Header().Set("WWW-Authenticate", `Basic realm="x", Bearer error="invalid_token"`)
		w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="http://`+r.Host+`/meta", scope="read \"all\"", error="invalid_token"`)
		http.Error(w, "who are you", http.StatusUnauthorized)
		return
	}
	g.h.ServeHTTP(w, r)
}

// The host is asked for tokens: to begin with, again where one is refused, and once
// more where it has none; it may decline.
func TestAuthorization(t *testing.T) {
	plain := mcptest.New("legacy")
	g := &guard{h: sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return plain }, nil), good: "one"}
	s := httptest.NewServer(g)
	t.Cleanup(func() {
		for session := range plain.Sessions() { // nobody could say goodbye without a token
			session.Close()
		}
		s.CloseClientConnections()
		s.Close()
	})
	var mu sync.Mutex
	var asked []mcp.AuthRequest
	answers := []string{"one", "two", "", "three", "", ""}
	r := newRig(t, func(c *mcp.Context) {
		c.Authorize = func(_ context.Context, a mcp.AuthRequest) (mcp.Token, error) {
			mu.Lock()
			defer mu.Unlock()
			asked = append(asked, a)
			if a.Server == "declined" {
				return mcp.Token{}, &mcp.ErrNoToken{Msg: "no"}
			}
			token := answers[0]
			answers = answers[1:]
			if token == "" {
				return mcp.Token{}, &mcp.ErrNoToken{Msg: "no"}
			}
			return mcp.Token{Value: token}, nil
		}
	})
	r.set(map[string]mcp.Server{"s": {URL: s.URL}})
	if st := r.state("s"); st.Status != mcp.Connected {
		t.Fatalf("%+v", st)
	}
	for _, token := range []string{"two", "three"} {
		g.want(token)
		if got := r.call("s-get_env", `{"name":"NOTHING"}`); got.Type != "" {
			t.Errorf("%+v", got)
		}
	}
	g.want("four")
	if got := r.call("s-get_env", `{"name":"NOTHING"}`); got.Type != tool.Failure || !strings.Contains(got.Text, "no token was given") {
		t.Errorf("%+v", got)
	}
	if st := r.state("s"); st.Status != mcp.NeedsAuth || len(r.Tools()) > 0 {
		t.Errorf("%+v, %v", st, r.names())
	}
	var reasons []string
	for _, a := range asked {
		reasons = append(reasons, a.Reason)
	}
	if want := []string{"initial", "refresh", "refresh", "reauth", "refresh", "reauth"}; !slices.Equal(reasons, want) {
		t.Errorf("asked for %v, want %v", reasons, want)
	}
	a := asked[0]
	if a.Metadata != `{"resource": "it"}` || a.Challenge["scope"] != `read "all"` || a.Challenge["error"] != "invalid_token" || a.StatusCode != 401 || !strings.Contains(a.Body, "who are you") {
		t.Errorf("asked %+v", a)
	}
	asked = nil
	r.set(map[string]mcp.Server{"declined": {URL: s.URL + "/x"}})
	if st := r.state("declined"); st.Status != mcp.NeedsAuth || len(asked) != 1 {
		t.Errorf("%+v after %d questions", st, len(asked))
	}
}

func FuzzParseChallenge(f *testing.F) {
	for _, s := range []string{`Bearer`, `Bearer a="b", c=d`, `bearer error="x\"y",scope=z`, `Basic realm="x"`, `Bearer a=`, `Bearer ="`, `Bearer a="`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for name := range parseChallenge([]string{s, s}) {
			if name != strings.ToLower(name) {
				t.Errorf("%q has an upper-case name", name)
			}
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{`{}`, `{"command":"a","args":["b"],"env":{"c":"d"}}`, `{"type":"http","url":"x","tools":null}`, `{"type":"memory"}`, `[]`,
		`{"url":"x","auth":true,"oauthClientId":"a","oauthClientSecret":"b","oauthPublicClient":false,"oauthGrantType":"client_credentials"}`,
		`{"url":"x","auth":{"redirectPort":8123}}`, `{"url":"x","auth":false}`, `{"auth":{"redirectPort":-1}}`, `{"auth":null}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		server, err := mcp.Parse(json.RawMessage(s))
		if err != nil {
			return
		}
		again, err := json.Marshal(server)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := mcp.Parse(again); err != nil || !back.Same(server) && len(server.Args) > 0 {
			t.Errorf("%+v came back as %+v, %v", server, back, err)
		}
	})
}
