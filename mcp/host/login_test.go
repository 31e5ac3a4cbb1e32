package host

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/transom-run/transom/internal/vault"
	"github.com/transom-run/transom/mcp"
	"github.com/transom-run/transom/mcp/mcptest"
	"github.com/transom-run/transom/tool"
)

func guarded(t *testing.T) *mcptest.Guarded {
	t.Helper()
	g := mcptest.NewGuarded()
	t.Cleanup(g.Close)
	return g
}

// comes waits until a server comes to stand so, as it is told.
func (r *rig) comes(name string, want mcp.Status) mcp.State {
	r.t.Helper()
	for {
		r.mu.Lock()
		i := slices.IndexFunc(r.states, func(st mcp.State) bool { return st.Name == name && st.Status == want })
		if i >= 0 {
			st := r.states[i]
			r.states = r.states[i+1:]
			r.mu.Unlock()
			return st
		}
		r.mu.Unlock()
		select {
		case <-r.news:
		case <-r.t.Context().Done():
			r.t.Fatalf("%s does not become %s: %+v", name, want, r.States())
		}
	}
}

func (r *rig) env() tool.Result {
	r.t.Helper()
	return r.call("s-get_env", `{"name":"NOTHING"}`)
}

// A server that wants a login holds nobody up; the login connects it; its token is
// renewed without a word, and a login that is lost is asked for again.
func TestLogin(t *testing.T) {
	g := guarded(t)
	r := newRig(t, nil)
	r.set(map[string]mcp.Server{"s": {URL: g.URL()}, "local": mcptest.Server("plain")})
	if st := r.state("s"); st.Status != mcp.NeedsAuth || !strings.Contains(st.Error, "session.mcp.oauth.login") {
		t.Fatalf("%+v", st)
	}
	if st := r.state("local"); st.Status != mcp.Connected {
		t.Errorf("%+v", st)
	}
	ctx := context.Background()
	page, err := r.Login(ctx, "s", mcp.Login{ClientName: "Host"})
	if err != nil || page == "" {
		t.Fatalf("%q, %v", page, err)
	}
	if _, err := g.Approve(page); err != nil {
		t.Fatal(err)
	}
	r.comes("s", mcp.Connected)
	if got := r.env(); got.Type != "" {
		t.Errorf("%+v", got)
	}
	if page, err := r.Login(ctx, "s", mcp.Login{}); page != "" || err != nil {
		t.Errorf("logged in again: %q, %v", page, err)
	}
	g.Expire(false)
	if got := r.env(); got.Type != "" || g.Count("refresh_token") != 1 {
		t.Errorf("%+v after %d refreshes", got, g.Count("refresh_token"))
	}
	g.Expire(true)
	if got := r.env(); got.Type != tool.Failure || !strings.Contains(got.Text, "refused to refresh") || strings.Contains(got.Text, g.Prefix) {
		t.Errorf("%+v", got)
	}
	r.comes("s", mcp.NeedsAuth)
	page, err = r.Login(ctx, "s", mcp.Login{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.Approve(page); err != nil {
		t.Fatal(err)
	}
	r.comes("s", mcp.Connected)
	if p := g.Problems(); len(p) > 0 {
		t.Errorf("problems: %q", p)
	}
}

// Many calls at once, and one refresh.
func TestOneRefresh(t *testing.T) {
	g := guarded(t)
	r := newRig(t, nil)
	r.logIn(g)
	for range 3 {
		g.Expire(false)
		before := g.Count("refresh_token")
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				if got := r.env(); got.Type != "" {
					t.Errorf("%+v", got)
				}
			})
		}
		all.Wait()
		if n := g.Count("refresh_token") - before; n != 1 {
			t.Errorf("%d refreshes", n)
		}
	}
	if p := g.Problems(); len(p) > 0 {
		t.Errorf("problems: %q", p)
	}
}

// logIn connects to a guarded server as "s".
func (r *rig) logIn(g *mcptest.Guarded) {
	r.t.Helper()
	r.set(map[string]mcp.Server{"s": {URL: g.URL()}})
	page, err := r.Login(context.Background(), "s", mcp.Login{})
	if err != nil {
		r.t.Fatal(err)
	}
	if page != "" {
		if _, err := g.Approve(page); err != nil {
			r.t.Fatal(err)
		}
	}
	r.comes("s", mcp.Connected)
}

// A server that wants more than its user approved: the next login asks for that, and
// for what there was.
func TestLoginForMore(t *testing.T) {
	g := guarded(t)
	r := newRig(t, nil)
	r.logIn(g)
	g.Do(func() { g.Need = "mcp.write" })
	if got := r.env(); got.Type != tool.Failure || !strings.Contains(got.Text, "more than its user approved") {
		t.Errorf("%+v", got)
	}
	page, err := r.Login(context.Background(), "s", mcp.Login{})
	if err != nil || !strings.Contains(page, "mcp.read") || !strings.Contains(page, "mcp.write") {
		t.Fatalf("%q, %v", page, err)
	}
	if _, err := g.Approve(page); err != nil {
		t.Fatal(err)
	}
	r.comes("s", mcp.Connected)
	if got := r.env(); got.Type != "" {
		t.Errorf("%+v", got)
	}
	if page, err := r.Login(context.Background(), "s", mcp.Login{}); page != "" || err != nil {
		t.Errorf("%q, %v", page, err)
	}
}

// A login that fails is told by the server's state; what ends the server ends it.
func TestLoginFails(t *testing.T) {
	g := guarded(t)
	g.Do(func() { g.Deny = "access_denied" })
	r := newRig(t, nil)
	r.set(map[string]mcp.Server{"s": {URL: g.URL()}})
	r.comes("s", mcp.NeedsAuth)
	ctx := context.Background()
	page, err := r.Login(ctx, "s", mcp.Login{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.Approve(page); err != nil {
		t.Fatal(err)
	}
	if st := r.comes("s", mcp.NeedsAuth); !strings.Contains(st.Error, "The login failed") || !strings.Contains(st.Error, "access_denied") {
		t.Errorf("%+v", st)
	}
	g.Do(func() { g.Deny = "" })
	for what, end := range map[string]func() error{
		"stop":    func() error { return r.Stop(ctx, "s") },
		"disable": func() error { return r.Disable(ctx, "s") },
		"change":  func() error { r.Set(map[string]mcp.Server{"s": {URL: g.URL(), Timeout: 5000}}, nil); return nil },
	} {
		r.set(map[string]mcp.Server{"s": {URL: g.URL()}})
		page, err := r.Login(ctx, "s", mcp.Login{})
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if err := end(); err != nil {
			t.Fatal(err)
		}
		if text, err := g.Approve(page); err == nil && strings.Contains(text, "Logged in") {
			t.Errorf("%s: the login went on", what)
		}
	}
	for name, want := range map[string]string{"nobody": "is not configured", "local": "not a remote server", "off": "auth: false", "theirs": "account"} {
		r.set(map[string]mcp.Server{
			"local": mcptest.Server("plain"), "off": {URL: g.URL(), Auth: &mcp.Auth{Off: true}},
			"theirs": {URL: g.URL(), Reach: func(context.Context) (string, string, error) { return g.URL(), "", nil }},
		})
		if _, err := r.Login(ctx, name, mcp.Login{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	r.Set(map[string]mcp.Server{"gone": {URL: "http://127.0.0.1:1/mcp"}}, nil)
	if _, err := r.Login(ctx, "gone", mcp.Login{}); err == nil || !strings.Contains(err.Error(), "cannot be asked how") {
		t.Errorf("%v", err)
	}
}

// A host that is asked for a token may log in instead: the question is taken back. A
// token that it gives goes on counting as its own.
func TestLoginInsteadOfToken(t *testing.T) {
	g := guarded(t)
	asked, withdrawn := make(chan mcp.AuthRequest, 8), make(chan struct{}, 8)
	r := newRig(t, func(c *mcp.Context) {
		c.Authorize = func(ctx context.Context, a mcp.AuthRequest) (mcp.Token, error) {
			asked <- a
			<-ctx.Done()
			withdrawn <- struct{}{}
			return mcp.Token{}, context.Cause(ctx)
		}
	})
	r.Set(map[string]mcp.Server{"s": {URL: g.URL()}}, nil)
	r.Start()
	if a := <-asked; a.Reason != "initial" {
		t.Errorf("asked %+v", a)
	}
	page, err := r.Login(context.Background(), "s", mcp.Login{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.Approve(page); err != nil {
		t.Fatal(err)
	}
	<-withdrawn
	r.comes("s", mcp.Connected)
	g.Expire(true)
	called := make(chan tool.Result, 1)
	go func() { called <- r.env() }()
	if a := <-asked; a.Reason != "refresh" {
		t.Errorf("asked %+v", a)
	}
	if err := r.Stop(context.Background(), "s"); err != nil {
		t.Error(err)
	}
	<-called
}

// Two sessions have each their own login, unless they keep it in one place; then a
// login of one serves the other.
func TestLoginsApart(t *testing.T) {
	g := guarded(t)
	one, two := newRig(t, nil), newRig(t, nil)
	one.logIn(g)
	two.set(map[string]mcp.Server{"s": {URL: g.URL()}})
	if st := two.state("s"); st.Status != mcp.NeedsAuth {
		t.Errorf("%+v", st)
	}
	dir := t.TempDir()
	kept := func(c *mcp.Context) { c.Vault = vault.Files(dir) }
	three, four := newRig(t, kept), newRig(t, kept)
	four.set(map[string]mcp.Server{"s": {URL: g.URL()}})
	four.comes("s", mcp.NeedsAuth)
	three.logIn(g)
	if err := four.Renewed(context.Background(), "", false); err != nil {
		t.Error(err)
	}
	four.comes("s", mcp.Connected)
	if err := four.Renewed(context.Background(), "s", true); err != nil || g.Count("refresh_token") != 1 {
		t.Errorf("%v, %d refreshes", err, g.Count("refresh_token"))
	}
	if got := four.env(); got.Type != "" {
		t.Errorf("%+v", got)
	}
	g.Expire(false)
	for _, r := range []*rig{three, four} {
		if got := r.env(); got.Type != "" {
			t.Errorf("%+v", got)
		}
	}
	if p := g.Problems(); len(p) > 0 {
		t.Errorf("problems: %q", p)
	}
	if err := four.Renewed(context.Background(), "nobody", false); err == nil {
		t.Error("a server that there is not was connected to")
	}
}

// A client with a secret connects by itself.
func TestClientCredentials(t *testing.T) {
	g := guarded(t)
	g.Do(func() { g.Clients["machine"] = "a secret of the machine" })
	r := newRig(t, func(c *mcp.Context) {
		c.Indirect = func() bool { return true }
		c.Getenv = func(name string) string { return map[string]string{"MACHINE": "a secret of the machine"}[name] }
	})
	r.set(map[string]mcp.Server{
		"named": {URL: g.URL(), OAuthClientID: "machine", OAuthClientSecret: "$MACHINE", OAuthGrantType: mcp.ClientCredentials},
		"s":     {URL: g.URL(), OAuthClientID: "machine", OAuthClientSecret: "a secret of the machine", OAuthGrantType: mcp.ClientCredentials},
		"wrong": {URL: g.URL(), OAuthClientID: "machine", OAuthClientSecret: "another secret", OAuthGrantType: mcp.ClientCredentials, Timeout: 30000},
	})
	if st := r.state("s"); st.Status != mcp.Connected {
		t.Errorf("%+v", st)
	}
	if st := r.state("named"); st.Status != mcp.Connected {
		t.Errorf("%+v", st)
	}
	if st := r.state("wrong"); st.Status != mcp.NeedsAuth || strings.Contains(st.Error, "secret of") {
		t.Errorf("%+v", st)
	}
	g.Expire(true)
	if got := r.env(); got.Type != "" {
		t.Errorf("%+v", got)
	}
}

// A probe says how a server stands, and changes nothing.
func TestProbe(t *testing.T) {
	g := guarded(t)
	open := mcptest.New("legacy")
	free := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return open }, nil))
	t.Cleanup(func() {
		free.CloseClientConnections()
		free.Close()
	})
	more := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="mcp.write"`)
		w.WriteHeader(http.StatusForbidden)
	}))
	t.Cleanup(more.Close)
	broken := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "out of order", http.StatusInternalServerError)
	}))
	t.Cleanup(broken.Close)
	r := newRig(t, nil)
	r.Set(map[string]mcp.Server{
		"s": {URL: g.URL()}, "free": {URL: free.URL}, "more": {URL: more.URL}, "broken": {URL: broken.URL}, "gone": {URL: "http://127.0.0.1:1/mcp"},
		"local": mcptest.Server("plain"),
	}, nil)
	ctx := context.Background()
	for name, want := range map[string]string{
		"s": "needs-auth initial 401", "free": "no-auth-required  200", "more": "needs-auth upscope 403", "broken": "failed  500", "gone": "failed  0",
		"local": "failed  0", "nobody": "failed  0",
	} {
		p := r.Probe(ctx, name)
		if got := fmt.Sprint(p.Status, " ", p.Reason, " ", p.StatusCode); got != want || p.Status == mcp.ProbeFailed && p.Error == "" {
			t.Errorf("%s: %s %q, want %s", name, got, p.Error, want)
		}
	}
	for _, st := range r.States() {
		if st.Status != mcp.NotStarted {
			t.Errorf("%s became %s", st.Name, st.Status)
		}
	}
	for range open.Sessions() {
		t.Error("a probe left a session behind")
	}
	if p := r.Probe(ctx, "s"); p.Body == nil || *p.Body != "who are you\n" || p.Challenge["scope"] != "mcp.read" {
		t.Errorf("%+v", p)
	}
	r.logIn(g)
	if p := r.Probe(ctx, "s"); p.Status != mcp.ProbeAuthenticated {
		t.Errorf("%+v", p)
	}
	g.Expire(true)
	if p := r.Probe(ctx, "s"); p.Status != mcp.ProbeNeedsAuth || p.Reason != "refresh" {
		t.Errorf("%+v", p)
	}
}

// The token of a login is not shown where its server sends the client.
func TestLoginTokenStaysAtHome(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, fmt.Sprint(r.Header, string(body)))
		http.NotFound(w, r)
	}))
	defer other.Close()
	g := guarded(t)
	r := newRig(t, nil)
	r.logIn(g)
	g.Wrap(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			if q.Header.Get("Authorization") == "" || q.Method != http.MethodPost {
				next.ServeHTTP(w, q)
				return
			}
			http.Redirect(w, q, other.URL, http.StatusTemporaryRedirect)
		})
	})
	_ = r.env()
	_ = r.Probe(context.Background(), "s")
	mu.Lock()
	defer mu.Unlock()
	if len(seen) == 0 {
		t.Error("the client was not sent away")
	}
	for _, s := range seen {
		if strings.Contains(s, g.Prefix) {
			t.Errorf("the other server saw %s", s)
		}
	}
}
