package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/transom-run/transom/internal/vault"
	"github.com/transom-run/transom/mcp"
	"github.com/transom-run/transom/mcp/mcptest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// watchdog bounds a wait that should be short.
const watchdog = 60 * time.Second

// rig is a keeper, a server that wants a token, and what the keeper was told to hide.
type rig struct {
	*Keeper
	t        *testing.T
	g        *mcptest.Guarded
	v        *vault.Vault
	s        mcp.Server
	finished chan error

	mu     sync.Mutex
	hidden map[string]bool
}

func newRig(t *testing.T, change func(*mcptest.Guarded)) *rig {
	t.Helper()
	g := mcptest.NewGuarded()
	t.Cleanup(g.Close)
	if change != nil {
		g.Do(func() { change(g) })
	}
	r := &rig{t: t, g: g, v: vault.Memory(), s: mcp.Server{URL: g.URL()}, finished: make(chan error, 4), hidden: map[string]bool{}}
	r.Keeper = r.keeper(r.v)
	return r
}

// keeper is another one beside that of the rig, as another session has.
func (r *rig) keeper(v mcp.Vault) *Keeper {
	k := New(Config{Vault: v, Secret: func(_ string, values ...string) {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, v := range values {
			r.hidden[v] = true
		}
	}})
	r.t.Cleanup(k.Close)
	return k
}

// challenge is how the server asks for a token.
func (r *rig) challenge() []string {
	r.t.Helper()
	_, headers := r.ask("")
	return headers
}

// ask makes a request with an Authorization header.
func (r *rig) ask(header string) (status int, challenge []string) {
	r.t.Helper()
	req, err := http.NewRequest(http.MethodPost, r.g.URL(), strings.NewReader("{}"))
	if err != nil {
		r.t.Fatal(err)
	}
	if header != "" {
		req.Header.Set("Authorization", header)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	res.Body.Close()
	return res.StatusCode, res.Header.Values("WWW-Authenticate")
}

// takes checks that the server takes a token, and that it is hidden.
func (r *rig) takes(header string) {
	r.t.Helper()
	if status, _ := r.ask(header); status == http.StatusUnauthorized || header == "" {
		r.t.Errorf("the server refused %q", header)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.hidden[strings.TrimPrefix(header, "Bearer ")] {
		r.t.Errorf("nobody was told to hide %q", header)
	}
}

func (r *rig) login(how mcp.Login) (page string, err error) {
	return r.Login(context.Background(), r.s, how, r.challenge(), func(err error) { r.finished <- err })
}

// in logs in as a user does who approves.
func (r *rig) in(how mcp.Login) (text string) {
	r.t.Helper()
	page, err := r.login(how)
	if err != nil {
		r.t.Fatal(err)
	}
	text, err = r.g.Approve(page)
	if err != nil {
		r.t.Fatal(err)
	}
	if err := r.end(); err != nil {
		r.t.Fatal(err)
	}
	return text
}

// end is how a login came out.
func (r *rig) end() error {
	r.t.Helper()
	select {
	case err := <-r.finished:
		return err
	case <-time.After(watchdog):
		r.t.Fatal("a login does not end")
		return nil
	}
}

// edit changes what is kept, as time would.
func (r *rig) edit(f func(*record)) {
	r.t.Helper()
	err := r.v.Change(context.Background(), keyOf(r.s), func(old []byte) ([]byte, error) {
		kept := parse(old, r.s)
		if kept == nil {
			r.t.Fatalf("nothing is kept: %s", old)
		}
		f(kept)
		return json.Marshal(kept)
	})
	if err != nil {
		r.t.Fatal(err)
	}
	r.Changed(r.s)
}

// kept is what the vault has.
func (r *rig) kept() *record {
	raw, err := r.v.Load(keyOf(r.s))
	if err != nil {
		r.t.Fatal(err)
	}
	return parse(raw, r.s)
}

// clean checks that a client did nothing that an authorization server must refuse.
func (r *rig) clean() {
	r.t.Helper()
	if p := r.g.Problems(); len(p) > 0 {
		r.t.Errorf("problems: %q", p)
	}
}

// quiet checks that an error says what to do, and nothing of what was sent or given.
func (r *rig) quiet(err error, wants ...string) {
	r.t.Helper()
	if err == nil {
		r.t.Errorf("no error, want one with %q", wants)
		return
	}
	if strings.Contains(err.Error(), r.g.Prefix) {
		r.t.Errorf("the error shows a secret: %v", err)
	}
	for _, want := range wants {
		if !strings.Contains(err.Error(), want) {
			r.t.Errorf("the error is %q, want %q in it", err, want)
		}
	}
}

// Discovery, registration, PKCE, the page of this machine, and a token for the server.
func TestLogin(t *testing.T) {
	r := newRig(t, nil)
	if got := r.Token(context.Background(), r.s); got != "" {
		t.Errorf("there is a token before the login: %q", got)
	}
	if text := r.in(mcp.Login{ClientName: "The <App>", Message: "Back to <App>."}); !strings.Contains(text, "Logged in") || !strings.Contains(text, "Back to &lt;App&gt;.") {
		t.Errorf("the user read %q", text)
	}
	r.takes(r.Token(context.Background(), r.s))
	if names := r.g.Names(); len(names) != 1 || names[0] != "The <App>" {
		t.Errorf("registered %q", names)
	}
	// The next login asks with the client that is registered, where its port is free.
	r.g.Expire(true)
	r.in(mcp.Login{})
	r.takes(r.Token(context.Background(), r.s))
	if n := r.g.Count("/register"); n > 2 {
		t.Errorf("registered %d times", n)
	}
	r.in(mcp.Login{Anew: true})
	if n := r.g.Count("/register"); n < 2 {
		t.Errorf("a login from the beginning registered nobody: %d", n)
	}
	r.clean()
}

// Two logins to one server are one.
func TestLoginIsJoined(t *testing.T) {
	r := newRig(t, nil)
	one, err := r.login(mcp.Login{})
	if err != nil {
		t.Fatal(err)
	}
	two, err := r.login(mcp.Login{})
	if err != nil || two != one {
		t.Errorf("%q and %q, %v", one, two, err)
	}
	three, err := r.login(mcp.Login{Anew: true})
	if err != nil || three == one {
		t.Errorf("begun anew: %q and %q, %v", one, three, err)
	}
	if err := r.end(); err == nil || !strings.Contains(err.Error(), "another login was begun") {
		t.Errorf("the first came out with %v", err)
	}
	if _, err := r.g.Approve(three); err != nil {
		t.Error(err)
	}
	if err := r.end(); err != nil {
		t.Error(err)
	}
	r.takes(r.Token(context.Background(), r.s))
}

// A token is renewed before it ends, and when it is refused: once, however many want
// it, and wherever they are.
func TestRefresh(t *testing.T) {
	r := newRig(t, func(g *mcptest.Guarded) { g.Lifetime = time.Hour })
	files := vault.Files(t.TempDir())
	r.v = files
	r.Keeper = r.keeper(files)
	r.in(mcp.Login{})
	ctx := context.Background()
	first := r.Token(ctx, r.s)
	if again := r.Token(ctx, r.s); again != first || r.g.Count("refresh_token") != 0 {
		t.Errorf("%q became %q after %d refreshes", first, again, r.g.Count("refresh_token"))
	}
	r.edit(func(k *record) { k.Got, k.Ends = time.Now().Add(-time.Hour), time.Now().Add(30*time.Second) })
	second := r.Token(ctx, r.s)
	if second == first || r.g.Count("refresh_token") != 1 {
		t.Errorf("%q became %q after %d refreshes", first, second, r.g.Count("refresh_token"))
	}
	r.takes(second)

	r.g.Expire(false)
	keepers := []*Keeper{r.Keeper, r.keeper(vault.Files(files.Dir())), r.keeper(vault.Files(files.Dir()))}
	var all sync.WaitGroup
	for _, k := range keepers {
		for range 8 {
			all.Go(func() {
				header, err := k.Renew(ctx, r.s, second, nil)
				if err != nil || header == second {
					t.Errorf("%q, %v", header, err)
				}
			})
		}
	}
	all.Wait()
	if n := r.g.Count("refresh_token"); n != 2 {
		t.Errorf("refreshed %d times, want 2", n)
	}
	r.takes(r.Token(ctx, r.s))
	r.clean()
}

// A refresh token that is refused is forgotten: a user has to log in.
func TestRevoked(t *testing.T) {
	r := newRig(t, nil)
	r.in(mcp.Login{})
	ctx := context.Background()
	header := r.Token(ctx, r.s)
	r.g.Expire(true)
	_, err := r.Renew(ctx, r.s, header, nil)
	if !errors.Is(err, ErrNone) {
		t.Errorf("got %v", err)
	}
	r.quiet(err, "refused to refresh", "invalid_grant")
	if got := r.Token(ctx, r.s); got != "" {
		t.Errorf("the token is still shown: %q", got)
	}
	if _, err := r.Renew(ctx, r.s, "", nil); !errors.Is(err, ErrNone) || r.g.Count("refresh_token") != 1 {
		t.Errorf("%v after %d refreshes", err, r.g.Count("refresh_token"))
	}
	r.in(mcp.Login{})
	r.takes(r.Token(ctx, r.s))
	r.clean()
}

// An authorization server that is out of order for a while costs no login.
func TestRefreshFailsForNow(t *testing.T) {
	r := newRig(t, func(g *mcptest.Guarded) { g.Lifetime = time.Hour })
	r.in(mcp.Login{})
	ctx := context.Background()
	header := r.Token(ctx, r.s)
	down := func(w http.ResponseWriter, q *http.Request) bool {
		_ = q.ParseForm()
		http.Error(w, "down with "+q.PostForm.Encode(), http.StatusServiceUnavailable)
		return true
	}
	r.g.Do(func() { r.g.Before = down })
	_, err := r.Renew(ctx, r.s, header, nil)
	if errors.Is(err, ErrNone) {
		t.Errorf("the login is lost: %v", err)
	}
	r.quiet(err, "could not be refreshed", "503")
	r.edit(func(k *record) { k.Got, k.Ends = time.Now().Add(-time.Hour), time.Now().Add(30*time.Second) })
	if got := r.Token(ctx, r.s); got != header {
		t.Errorf("a token that is still good was given up: %q", got)
	}
	r.g.Do(func() { r.g.Before = nil })
	if got, err := r.Renew(ctx, r.s, header, nil); err != nil || got == header {
		t.Errorf("%q, %v", got, err)
	}
	r.clean()
}

// Whoever waits for a renewal can leave; the renewal goes on and is kept.
func TestRenewalOutlivesItsRequest(t *testing.T) {
	r := newRig(t, nil)
	r.in(mcp.Login{})
	header := r.Token(context.Background(), r.s)
	came, goOn := make(chan struct{}), make(chan struct{})
	r.g.Do(func() {
		r.g.Before = func(http.ResponseWriter, *http.Request) bool {
			close(came)
			<-goOn
			return false
		}
	})
	ctx, cancel := context.WithCancel(context.Background())
	left := make(chan error, 1)
	go func() {
		_, err := r.Renew(ctx, r.s, header, nil)
		left <- err
	}()
	<-came
	r.g.Do(func() { r.g.Before = nil })
	cancel()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("left with %v", err)
	}
	close(goOn)
	got, err := r.Renew(context.Background(), r.s, header, nil)
	if err != nil || got == header || r.g.Count("refresh_token") != 1 {
		t.Errorf("%q, %v after %d refreshes", got, err, r.g.Count("refresh_token"))
	}
	r.takes(got)
	r.clean()
}

// A client with a secret needs no browser.
func TestClientCredentials(t *testing.T) {
	r := newRig(t, func(g *mcptest.Guarded) { g.Clients["machine"] = g.Prefix + "machine-secret" })
	ctx := context.Background()
	r.s.OAuthClientID, r.s.OAuthClientSecret, r.s.OAuthGrantType = "machine", r.g.Prefix+"machine-secret", mcp.ClientCredentials
	header, err := r.Renew(ctx, r.s, "", r.challenge())
	if err != nil {
		t.Fatal(err)
	}
	r.takes(header)
	r.g.Expire(true)
	next, err := r.Renew(ctx, r.s, header, r.challenge())
	if err != nil || next == header {
		t.Errorf("%q, %v", next, err)
	}
	r.takes(next)
	if r.g.Count("/authorize") != 0 || r.g.Count("client_credentials") != 2 || r.kept().Refresh != "" {
		t.Errorf("%d pages, %d tokens, %+v", r.g.Count("/authorize"), r.g.Count("client_credentials"), r.kept())
	}
	wrong := r.s
	wrong.OAuthClientSecret = r.g.Prefix + "wrong-secret"
	_, err = r.keeper(vault.Memory()).Renew(ctx, wrong, "", r.challenge())
	r.quiet(err, `"machine"`, "invalid_client", "secret")
	none := r.s
	none.OAuthClientSecret = ""
	if _, err = r.keeper(vault.Memory()).Renew(ctx, none, "", r.challenge()); !errors.Is(err, ErrNone) {
		t.Errorf("without a secret: %v", err)
	}
	r.clean()
}

// A login may choose another client than the configuration; its secret is kept
// nowhere.
func TestLoginChooses(t *testing.T) {
	r := newRig(t, func(g *mcptest.Guarded) {
		g.Clients["machine"], g.Clients["app"] = g.Prefix+"machine-secret", g.Prefix+"app-secret"
		g.NoRegistration = true
	})
	ctx := context.Background()
	yes, no := true, false
	for name, how := range map[string]mcp.Login{
		"machine": {ClientID: "machine", ClientSecret: r.g.Prefix + "machine-secret", GrantType: mcp.ClientCredentials},
		"app":     {ClientID: "app", ClientSecret: r.g.Prefix + "app-secret", PublicClient: &no},
	} {
		if err := r.Forget(ctx, r.s); err != nil {
			t.Fatal(err)
		}
		page, err := r.login(how)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if page != "" {
			if _, err := r.g.Approve(page); err != nil {
				t.Fatal(err)
			}
			if err := r.end(); err != nil {
				t.Fatal(err)
			}
		}
		header := r.Token(ctx, r.s)
		r.takes(header)
		if raw, _ := r.v.Load(keyOf(r.s)); strings.Contains(string(raw), "-secret") {
			t.Errorf("%s: kept %s", name, raw)
		}
		r.g.Expire(false)
		if next, err := r.Renew(ctx, r.s, header, r.challenge()); err != nil || next == header {
			t.Errorf("%s: %q, %v", name, next, err)
		}
	}
	for what, how := range map[string]mcp.Login{
		"give oauthClientSecret":    {ClientID: "app", PublicClient: &no},
		"none of":                   {GrantType: "password"},
		"needs a client":            {GrantType: mcp.ClientCredentials, PublicClient: &yes},
		"registers no clients":      {Anew: true},
		"is registered there, by o": {Anew: true},
	} {
		if err := r.Forget(ctx, r.s); err != nil {
			t.Fatal(err)
		}
		_, err := r.login(how)
		r.quiet(err, what)
	}
	r.clean()
}

// What the user or the server refuses is told, to both who wait for it.
func TestDenied(t *testing.T) {
	r := newRig(t, func(g *mcptest.Guarded) { g.Deny = "access_denied" })
	page, err := r.login(mcp.Login{})
	if err != nil {
		t.Fatal(err)
	}
	text, err := r.g.Approve(page)
	if err != nil || !strings.Contains(text, "The login failed") || !strings.Contains(text, "access_denied") || strings.Contains(text, "<b>") {
		t.Errorf("the user read %q, %v", text, err)
	}
	r.quiet(r.end(), "access_denied", "Log in anew")
	if got := r.Token(context.Background(), r.s); got != "" {
		t.Errorf("there is a token: %q", got)
	}
}

// Only the browser that was sent is let in, and once.
func TestCallback(t *testing.T) {
	r := newRig(t, nil)
	page, err := r.login(mcp.Login{})
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(page)
	if err != nil {
		t.Fatal(err)
	}
	back := u.Query().Get("redirect_uri")
	for what, want := range map[string]int{
		"?code=x&state=wrong": 400, "?code=x": 400, "?error=access_denied&state=": 400, "elsewhere?state=" + u.Query().Get("state"): 404, "": 400,
	} {
		res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get(back + what)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != want || res.Header.Get("Content-Security-Policy") == "" {
			t.Errorf("%q: %s", what, res.Status)
		}
	}
	if _, err := r.g.Approve(page); err != nil {
		t.Fatal(err)
	}
	if err := r.end(); err != nil {
		t.Errorf("the login came out with %v", err)
	}
	if res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get(back); err == nil {
		res.Body.Close()
		t.Error("the page of this machine is still there")
	}
	r.takes(r.Token(context.Background(), r.s))
}

// A port that is taken, and one that is not.
func TestRedirectPort(t *testing.T) {
	r := newRig(t, nil)
	taken, err := url.Parse(r.g.MCP.URL)
	if err != nil {
		t.Fatal(err)
	}
	port := 0
	if err := json.Unmarshal([]byte(taken.Port()), &port); err != nil {
		t.Fatal(err)
	}
	r.s.Auth = &mcp.Auth{RedirectPort: port}
	_, err = r.login(mcp.Login{})
	r.quiet(err, taken.Port(), "auth.redirectPort")
}

// A login ends with its session, and when it is told to.
func TestLoginGivenUp(t *testing.T) {
	r := newRig(t, nil)
	if _, err := r.login(mcp.Login{}); err != nil {
		t.Fatal(err)
	}
	r.Cancel(r.s)
	r.quiet(r.end(), "the server was stopped")
	if _, err := r.login(mcp.Login{}); err != nil {
		t.Fatal(err)
	}
	r.Close()
	r.quiet(r.end(), "the session has ended")
	if _, err := r.login(mcp.Login{}); err == nil || !strings.Contains(err.Error(), "ending") {
		t.Errorf("a login after the end: %v", err)
	}
	if _, err := r.Renew(context.Background(), r.s, "", nil); err == nil {
		t.Error("a renewal after the end")
	}
}

// What is kept of one address is of no other.
func TestKeptByAddress(t *testing.T) {
	r := newRig(t, nil)
	r.in(mcp.Login{})
	ctx := context.Background()
	for _, other := range []mcp.Server{
		{URL: r.g.URL() + "/"}, {URL: r.g.URL() + "?a=b"}, {URL: strings.Replace(r.g.URL(), "127.0.0.1", "localhost", 1)},
		{URL: strings.Replace(r.g.URL(), "http:", "https:", 1)}, {URL: r.g.URL(), OAuthClientID: "other"},
		{URL: r.g.URL(), OAuthGrantType: mcp.ClientCredentials},
	} {
		if got := r.Token(ctx, other); got != "" {
			t.Errorf("%+v has the token %q", other, got)
		}
	}
	// A record under another's key is nobody's.
	raw, _ := r.v.Load(keyOf(r.s))
	other := mcp.Server{URL: "http://127.0.0.1:1/mcp"}
	if err := r.v.Change(ctx, keyOf(other), func([]byte) ([]byte, error) { return raw, nil }); err != nil {
		t.Fatal(err)
	}
	if got := r.Token(ctx, other); got != "" {
		t.Errorf("a record of another server counted: %q", got)
	}
}
