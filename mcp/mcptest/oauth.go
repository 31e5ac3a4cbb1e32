package mcptest

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Guarded is an MCP server over HTTP that wants a token, and the authorisation
// server that gives some: discovery, registration, PKCE, and refresh tokens that
// are used once. Set its fields before the first request, or by Do.
type Guarded struct {
	MCP    *httptest.Server // the server is at its URL + "/mcp"
	Issuer *httptest.Server

	// Prefix begins every secret that is given out, so that a test can look for them.
	Prefix string
	// Lifetime is how long access tokens are good for; 0 says nothing of it.
	Lifetime time.Duration
	// Expires is written in the place of what Lifetime says.
	Expires json.RawMessage
	// Rotate: a refresh token is good for one use; a second use revokes all that came
	// of its login.
	Rotate bool
	// Deny is the error that the user's answer is; "" approves.
	Deny string
	// NoRegistration: clients are registered by hand only.
	NoRegistration bool
	// Clients are those that are registered, by id: their secrets.
	Clients map[string]string
	// Scope is what the challenge asks for. Need is a scope without which calls of
	// tools are refused; "" is none.
	Scope, Need string
	// Resource and Metadata may change the two documents before they are sent.
	Resource func(map[string]any)
	Metadata func(map[string]any)
	// Before is called with every request to the issuer; true: it has answered.
	Before func(http.ResponseWriter, *http.Request) bool

	mu       sync.Mutex
	uris     map[string][]string // of the registered clients
	codes    map[string]grant
	access   map[string]grant // tokens that are good
	refresh  map[string]grant
	spent    map[string]grant // refresh tokens that were used
	count    int
	counts   map[string]int // of what was asked for
	clientsN []string       // names of those that registered
	shown    []string       // the Authorization headers that the MCP server saw
	problems []string       // what a client did that it must not
	plain    *sdk.Server
	front    http.Handler // of the MCP server
}

type grant struct {
	family                                  int
	client, redirect, challenge, scope, aud string
	until                                   time.Time
}

// NewGuarded starts both servers; Close ends them.
func NewGuarded() *Guarded {
	g := &Guarded{
		Prefix: "tok-", Rotate: true, Clients: map[string]string{}, Scope: "mcp.read", uris: map[string][]string{}, codes: map[string]grant{},
		access: map[string]grant{}, refresh: map[string]grant{}, spent: map[string]grant{}, counts: map[string]int{}, plain: New("legacy"),
	}
	sdk.AddTool(g.plain, &sdk.Tool{Name: "whoami"}, func(_ context.Context, r *sdk.CallToolRequest, _ nothing) (*sdk.CallToolResult, any, error) {
		return text("you are " + r.Extra.Header.Get("Authorization")), nil, nil
	})
	streams := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return g.plain }, nil)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/oauth-protected-resource/mcp", g.resource)
	mux.Handle("/mcp", g.guard(streams))
	g.front = mux
	g.MCP = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		front := g.front
		g.mu.Unlock()
		front.ServeHTTP(w, r)
	}))
	auth := http.NewServeMux()
	auth.HandleFunc("GET /.well-known/oauth-authorization-server", g.metadata)
	auth.HandleFunc("POST /register", g.register)
	auth.HandleFunc("GET /authorize", g.authorize)
	auth.HandleFunc("POST /token", g.token)
	g.Issuer = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		g.counts[r.URL.Path]++
		before := g.Before
		g.mu.Unlock()
		if before == nil || !before(w, r) {
			auth.ServeHTTP(w, r)
		}
	}))
	return g
}

// Close ends both servers, and the sessions of the MCP server.
func (g *Guarded) Close() {
	for s := range g.plain.Sessions() { // nobody says goodbye without a token
		s.Close()
	}
	g.MCP.CloseClientConnections()
	g.MCP.Close()
	g.Issuer.CloseClientConnections()
	g.Issuer.Close()
}

// URL is where the MCP server is.
func (g *Guarded) URL() string { return g.MCP.URL + "/mcp" }

// Do changes fields while the servers run.
func (g *Guarded) Do(f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f()
}

// Count is how often a path of the issuer, or a grant type, was asked for.
func (g *Guarded) Count(what string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.counts[what]
}

// Names are those of the clients that registered themselves.
func (g *Guarded) Names() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.clientsN)
}

// Shown are the Authorization headers that the MCP server has seen.
func (g *Guarded) Shown() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.shown)
}

// Problems is what clients did that they must not.
func (g *Guarded) Problems() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.problems)
}

// Wrap puts a handler before that of the MCP server.
func (g *Guarded) Wrap(f func(next http.Handler) http.Handler) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.front = f(g.front)
}

// Expire ends all access tokens, and with all the refresh tokens, too.
func (g *Guarded) Expire(all bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	clear(g.access)
	if all {
		clear(g.refresh)
	}
}

// Approve is the user's browser: it opens the page and follows to the client's. It
// returns what stands there.
func (g *Guarded) Approve(page string) (text string, err error) {
	c := http.Client{Timeout: time.Minute}
	defer c.CloseIdleConnections()
	res, err := c.Get(page)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if res.StatusCode != http.StatusOK && err == nil {
		err = fmt.Errorf("%s: %s", res.Status, raw)
	}
	return string(raw), err
}

// guard lets through who shows a good token.
func (g *Guarded) guard(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		header := r.Header.Get("Authorization")
		g.shown = append(g.shown, header)
		token := strings.TrimPrefix(header, "Bearer ")
		t, good := g.access[token]
		good = good && (t.until.IsZero() || time.Now().Before(t.until)) && t.aud == g.URL()
		challenge := fmt.Sprintf(`Bearer resource_metadata="%s/.well-known/oauth-protected-resource/mcp", scope="%s"`, g.MCP.URL, g.Scope)
		if header != "" && !good {
			challenge += `, error="invalid_token"`
		}
		need := g.Need
		g.mu.Unlock()
		if good && need != "" && !slices.Contains(strings.Fields(t.scope), need) && calls(r) {
			w.Header().Set("WWW-Authenticate", strings.Replace(challenge, `scope="`+g.Scope, `error="insufficient_scope", scope="`+need, 1))
			http.Error(w, "not that", http.StatusForbidden)
			return
		}
		if !good {
			w.Header().Set("WWW-Authenticate", challenge)
			w.Header().Set("X-Seen", header) // as some servers have it
			http.Error(w, strings.TrimSpace("who are you "+header), http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// calls reports whether a request calls a tool; it can be read again.
func calls(r *http.Request) bool {
	body, err := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	return err == nil && bytes.Contains(body, []byte(`"tools/call"`))
}

func (g *Guarded) resource(w http.ResponseWriter, _ *http.Request) {
	doc := map[string]any{"resource": g.URL(), "authorization_servers": []string{g.Issuer.URL}, "scopes_supported": []string{"mcp.read", "mcp.write"}}
	g.mu.Lock()
	change := g.Resource
	g.mu.Unlock()
	if change != nil {
		change(doc)
	}
	answer(w, http.StatusOK, doc)
}

func (g *Guarded) metadata(w http.ResponseWriter, _ *http.Request) {
	at := g.Issuer.URL
	doc := map[string]any{
		"issuer": at, "authorization_endpoint": at + "/authorize", "token_endpoint": at + "/token", "registration_endpoint": at + "/register",
		"response_types_supported": []string{"code"}, "grant_types_supported": []string{"authorization_code", "refresh_token", "client_credentials"},
		"code_challenge_methods_supported": []string{"S256"}, "token_endpoint_auth_methods_supported": []string{"none", "client_secret_post"},
		"authorization_response_iss_parameter_supported": true,
	}
	g.mu.Lock()
	change := g.Metadata
	if g.NoRegistration {
		delete(doc, "registration_endpoint")
	}
	g.mu.Unlock()
	if change != nil {
		change(doc)
	}
	answer(w, http.StatusOK, doc)
}

func (g *Guarded) register(w http.ResponseWriter, r *http.Request) {
	var in struct {
		RedirectURIs []string `json:"redirect_uris"`
		Name         string   `json:"client_name"`
		Method       string   `json:"token_endpoint_auth_method"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || len(in.RedirectURIs) == 0 {
		answer(w, http.StatusBadRequest, map[string]any{"error": "invalid_client_metadata", "error_description": "no redirect_uris"})
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	id := g.make("client")
	g.Clients[id], g.uris[id] = "", in.RedirectURIs
	g.clientsN = append(g.clientsN, in.Name)
	out := map[string]any{"client_id": id, "redirect_uris": in.RedirectURIs, "token_endpoint_auth_method": in.Method}
	if in.Method != "none" {
		g.Clients[id] = g.make("secret")
		out["client_secret"] = g.Clients[id]
	}
	answer(w, http.StatusCreated, out)
}

// make makes up a value. mu is held.
func (g *Guarded) make(kind string) string {
	g.count++
	if kind == "client" {
		return fmt.Sprintf("client-%d", g.count) // no secret
	}
	return fmt.Sprintf("%s%s-%d-%s", g.Prefix, kind, g.count, rand.Text())
}

// authorize is the page where the user approves, as one who always does at once.
func (g *Guarded) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	g.mu.Lock()
	defer g.mu.Unlock()
	client, redirect := q.Get("client_id"), q.Get("redirect_uri")
	_, known := g.Clients[client]
	u, err := url.Parse(redirect)
	switch uris := g.uris[client]; {
	case !known, err != nil, uris != nil && !slices.Contains(uris, redirect), u.Hostname() != "127.0.0.1":
		g.problem(w, "an unknown client or redirect_uri: "+r.URL.RawQuery)
		return
	case q.Get("response_type") != "code", q.Get("code_challenge_method") != "S256", q.Get("code_challenge") == "", q.Get("state") == "":
		g.problem(w, "no code flow with PKCE and a state: "+r.URL.RawQuery)
		return
	case q.Get("resource") != g.URL():
		g.problem(w, "a token for "+q.Get("resource"))
		return
	}
	back := url.Values{"state": {q.Get("state")}, "iss": {g.Issuer.URL}}
	if g.Deny != "" {
		back.Set("error", g.Deny)
		back.Set("error_description", "<b>the user said no</b>")
	} else {
		code := g.make("code")
		g.count++
		g.codes[code] = grant{family: g.count, client: client, redirect: redirect, challenge: q.Get("code_challenge"), scope: q.Get("scope"), aud: q.Get("resource")}
		back.Set("code", code)
	}
	u.RawQuery = back.Encode()
	http.Redirect(w, r, u.String(), http.StatusFound)
}

func (g *Guarded) problem(w http.ResponseWriter, what string) {
	g.problems = append(g.problems, what)
	http.Error(w, what, http.StatusBadRequest)
}

func (g *Guarded) token(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	f := r.PostForm
	g.counts[f.Get("grant_type")]++
	client, secret := f.Get("client_id"), f.Get("client_secret")
	if id, s, ok := r.BasicAuth(); ok {
		client, secret = id, s
	}
	refuse := func(code string) {
		// What was sent comes back, as some servers have it.
		answer(w, http.StatusBadRequest, map[string]any{"error": code, "error_description": "refused: " + f.Encode()})
	}
	if want, known := g.Clients[client]; !known || want != secret {
		refuse("invalid_client")
		return
	}
	if f.Get("resource") != g.URL() {
		g.problems = append(g.problems, "a token for "+f.Get("resource"))
		refuse("invalid_target")
		return
	}
	var of grant
	switch f.Get("grant_type") {
	case "authorization_code":
		sum := sha256.Sum256([]byte(f.Get("code_verifier")))
		var ok bool
		of, ok = g.codes[f.Get("code")]
		delete(g.codes, f.Get("code"))
		if !ok || of.client != client || of.redirect != f.Get("redirect_uri") || base64.RawURLEncoding.EncodeToString(sum[:]) != of.challenge {
			g.problems = append(g.problems, "a wrong code or verifier")
			refuse("invalid_grant")
			return
		}
	case "refresh_token":
		token := f.Get("refresh_token")
		if old, used := g.spent[token]; used {
			g.problems = append(g.problems, "a refresh token was used twice")
			g.revoke(old.family)
		}
		var ok bool
		if of, ok = g.refresh[token]; !ok || of.client != client {
			refuse("invalid_grant")
			return
		}
		if g.Rotate {
			delete(g.refresh, token)
			g.spent[token] = of
		}
	case "client_credentials":
		if secret == "" {
			refuse("unauthorized_client")
			return
		}
		of = grant{client: client, aud: f.Get("resource"), scope: f.Get("scope")}
	default:
		refuse("unsupported_grant_type")
		return
	}
	g.give(w, of, f.Get("grant_type"))
}

// give answers with new tokens. mu is held.
func (g *Guarded) give(w http.ResponseWriter, of grant, kind string) {
	out := map[string]any{"access_token": g.make("access"), "token_type": "Bearer"}
	if of.scope != "" {
		out["scope"] = of.scope
	}
	of.until = time.Time{}
	if g.Lifetime > 0 {
		out["expires_in"] = int(g.Lifetime.Seconds())
		of.until = time.Now().Add(g.Lifetime)
	}
	if g.Expires != nil {
		out["expires_in"] = g.Expires
	}
	g.access[out["access_token"].(string)] = of
	if kind == "authorization_code" || kind == "refresh_token" && g.Rotate {
		next := g.make("refresh")
		out["refresh_token"] = next
		g.refresh[next] = of
	}
	answer(w, http.StatusOK, out)
}

// revoke ends all that came of a login. mu is held.
func (g *Guarded) revoke(family int) {
	for _, tokens := range []map[string]grant{g.access, g.refresh} {
		for t, of := range tokens {
			if of.family == family {
				delete(tokens, t)
			}
		}
	}
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}
