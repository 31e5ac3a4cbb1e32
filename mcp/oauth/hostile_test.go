package oauth

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/transom-run/transom/internal/vault"
	"github.com/transom-run/transom/mcp"
	"github.com/transom-run/transom/mcp/mcptest"
)

// stranger is another origin, and what was sent to it.
type stranger struct {
	*httptest.Server
	mu   sync.Mutex
	seen []string
}

func newStranger(t *testing.T) *stranger {
	s := &stranger{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.seen = append(s.seen, fmt.Sprint(r.Method, " ", r.URL, " ", r.Header, " ", string(body)))
		s.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"access_token":"from-elsewhere","token_type":"Bearer"}`))
	}))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// told is what it was sent.
func (s *stranger) told() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen
}

// Servers that lie, and servers that are broken: each costs its own login, and none is
// told anything of use.
func TestHostile(t *testing.T) {
	huge := strings.Repeat("x", 3<<20)
	answers := func(path string, f http.HandlerFunc) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == path {
				f(w, r)
			}
			return r.URL.Path == path
		}
	}
	const metadata = "/.well-known/oauth-authorization-server"
	for name, tc := range map[string]struct {
		change func(*mcptest.Guarded, *stranger)
		want   string
	}{
		"metadata of another issuer": {func(g *mcptest.Guarded, s *stranger) { g.Metadata = func(d map[string]any) { d["issuer"] = s.URL } }, "does not match issuer"},
		"a token endpoint in the clear": {func(g *mcptest.Guarded, _ *stranger) {
			g.Metadata = func(d map[string]any) { d["token_endpoint"] = "http://example.com/token" }
		}, "does not use HTTPS"},
		"a page that is a script": {func(g *mcptest.Guarded, _ *stranger) {
			g.Metadata = func(d map[string]any) { d["authorization_endpoint"] = "javascript:alert(1)" }
		}, "disallowed scheme"},
		"no PKCE": {func(g *mcptest.Guarded, _ *stranger) {
			g.Metadata = func(d map[string]any) { delete(d, "code_challenge_methods_supported") }
		}, "PKCE"},
		"huge metadata": {func(g *mcptest.Guarded, _ *stranger) {
			g.Before = answers(metadata, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprintf(w, `{"issuer":"%s","x":"%s"}`, g.Issuer.URL, huge)
			})
		}, "of no use"},
		"metadata that are elsewhere": {func(g *mcptest.Guarded, s *stranger) {
			g.Before = answers(metadata, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, s.URL, http.StatusFound) })
		}, "redirects to another place"},
		"a token endpoint that is elsewhere": {func(g *mcptest.Guarded, s *stranger) {
			g.Before = answers("/token", func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, s.URL, http.StatusTemporaryRedirect)
			})
		}, "redirects to another place"},
		"a registration that is elsewhere": {func(g *mcptest.Guarded, s *stranger) {
			g.Before = answers("/register", func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, s.URL, http.StatusTemporaryRedirect)
			})
		}, "registered no client"},
		"a registration that repeats a secret": {func(g *mcptest.Guarded, _ *stranger) {
			g.Before = answers("/register", func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusCreated)
				fmt.Fprintf(w, `{"client_secret":%q, "client_id": 7}`, g.Prefix+"secret")
			})
		}, "status 201"},
		"a server that is another's": {func(g *mcptest.Guarded, s *stranger) {
			g.Resource = func(d map[string]any) {
				d["resource"], d["authorization_servers"] = s.URL, []string{s.URL}
			}
		}, "registered no client"},
		"an issuer in the clear": {func(g *mcptest.Guarded, _ *stranger) {
			g.Resource = func(d map[string]any) { d["authorization_servers"] = []string{"http://example.com"} }
		}, "registered no client"},
		"nobody to go to": {func(g *mcptest.Guarded, _ *stranger) {
			g.Resource = func(d map[string]any) { d["authorization_servers"] = []string{} }
		}, "no authorization servers"},
		"a token answer without end": {func(g *mcptest.Guarded, _ *stranger) {
			g.Before = answers("/token", func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_ = r.ParseForm()
				fmt.Fprintf(w, `{"error":%q,"x":%q`, g.Prefix+"x"+huge, r.PostForm.Encode())
			})
		}, "Log in anew"},
		"a token answer that repeats the code": {func(g *mcptest.Guarded, _ *stranger) {
			g.Before = answers("/token", func(w http.ResponseWriter, r *http.Request) {
				_ = r.ParseForm()
				w.WriteHeader(http.StatusBadRequest)
				fmt.Fprintf(w, `{"error":%q,"error_description":%q}`, r.PostForm.Get("code"), r.PostForm.Encode())
			})
		}, "Log in anew"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStranger(t)
			r := newRig(t, func(g *mcptest.Guarded) { tc.change(g, s) })
			page, err := r.login(mcp.Login{})
			if err == nil {
				if _, err := r.g.Approve(page); err != nil {
					t.Fatal(err)
				}
				err = r.end()
			}
			if err == nil {
				t.Fatal("the login came out well")
			}
			r.quiet(err, tc.want)
			if told := s.told(); len(told) > 0 {
				t.Errorf("the other origin was sent %q", told)
			}
			if got := r.Token(context.Background(), r.s); got != "" {
				t.Errorf("there is a token: %q", got)
			}
		})
	}
}

// Metadata by which no login could end well are told of before anybody is asked to
// approve.
func TestNobodyIsAskedInVain(t *testing.T) {
	for name, tc := range map[string]struct {
		field string
		value func(*mcptest.Guarded) any
		want  string
	}{
		"no token endpoint":       {"token_endpoint", func(*mcptest.Guarded) any { return nil }, "names no token_endpoint"},
		"an empty token endpoint": {"token_endpoint", func(*mcptest.Guarded) any { return "" }, "names no token_endpoint"},
		"a state of its own": {"authorization_endpoint", func(g *mcptest.Guarded) any { return g.Issuer.URL + "/authorize?state=s" },
			"/authorize brings a state of its own"},
		"an address of its own": {"authorization_endpoint", func(g *mcptest.Guarded) any { return g.Issuer.URL + "/authorize?a=b&redirect_uri=http://x/" },
			"/authorize brings a redirect_uri of its own"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, func(g *mcptest.Guarded) {
				g.Metadata = func(d map[string]any) { d[tc.field] = tc.value(g) }
			})
			page, err := r.login(mcp.Login{})
			if err == nil {
				t.Fatalf("somebody is to open %s", page)
			}
			r.quiet(err, tc.want)
		})
	}
	r := newRig(t, func(g *mcptest.Guarded) {
		g.Metadata = func(d map[string]any) { d["authorization_endpoint"] = g.Issuer.URL + "/authorize?tenant=t" }
	})
	r.in(mcp.Login{}) // what the page needs for itself stays
}

// The client's own secret is sent nowhere where there is no token endpoint.
func TestHeadlessNeedsATokenEndpoint(t *testing.T) {
	r := newRig(t, func(g *mcptest.Guarded) {
		g.Metadata = func(d map[string]any) {
			delete(d, "token_endpoint")
			delete(d, "authorization_endpoint")
		}
	})
	r.s.OAuthClientID, r.s.OAuthClientSecret, r.s.OAuthGrantType = "c", "shh", mcp.ClientCredentials
	_, err := r.login(mcp.Login{})
	if err == nil || !strings.Contains(err.Error(), "names no token_endpoint") {
		t.Errorf("%v", err)
	}
}

// A token's time may be written in many ways; none of them loses the token.
func TestTimesOfTokens(t *testing.T) {
	for written, want := range map[string]time.Duration{
		`3600`: time.Hour, `3600.0`: time.Hour, `3.6e3`: time.Hour, `"3600"`: time.Hour, `" 3600.5 "`: 3601 * time.Second, `0.2`: time.Second,
		`9e18`: math.MaxInt32 * time.Second, `99999999999999999999`: math.MaxInt32 * time.Second,
		`1e999`: 0, `"soon"`: 0, `""`: 0, `true`: 0, `{}`: 0, `null`: 0, `"NaN"`: 0,
	} {
		t.Run(written, func(t *testing.T) {
			r := newRig(t, func(g *mcptest.Guarded) { g.Expires = json.RawMessage(written) })
			before := time.Now()
			r.in(mcp.Login{})
			after := time.Now()
			kept := r.kept()
			if want == 0 && !kept.Ends.IsZero() || want != 0 && (kept.Ends.Before(before.Add(want-time.Second)) || kept.Ends.After(after.Add(want+time.Second))) {
				t.Errorf("it ends at %v, not %v after %v", kept.Ends, want, before)
			}
			if header, err := r.Renew(context.Background(), r.s, kept.header(), nil); err != nil || header == kept.header() {
				t.Errorf("renewed: %q, %v", header, err)
			}
		})
	}
}

func FuzzMended(f *testing.F) {
	for _, raw := range []string{``, `{}`, `[]`, `{"expires_in":1.5,"access_token":"a"}`, `{"expires_in":"x"}`, `{"expires_in":{}}`, `{"expires_in":-1e400}`} {
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var before, after map[string]any
		if json.Unmarshal(raw, &before) != nil {
			return
		}
		if err := json.Unmarshal(mended(raw), &after); err != nil {
			t.Fatal(err)
		}
		if n, ok := after["expires_in"]; ok {
			if f, is := n.(float64); !is || f != math.Trunc(f) || math.Abs(f) > -math.MinInt32 {
				t.Errorf("%s has %v", raw, n)
			}
		}
		delete(before, "expires_in")
		delete(after, "expires_in")
		if d := cmp.Diff(before, after); d != "" {
			t.Errorf("%s: %s", raw, d)
		}
	})
}

// A refresh token goes where it came from, and nowhere else.
func TestRefreshStaysAtHome(t *testing.T) {
	s := newStranger(t)
	r := newRig(t, nil)
	r.in(mcp.Login{})
	ctx := context.Background()
	header := r.Token(ctx, r.s)
	r.g.Do(func() {
		r.g.Before = func(w http.ResponseWriter, q *http.Request) bool {
			http.Redirect(w, q, s.URL, http.StatusTemporaryRedirect)
			return true
		}
		r.g.Resource = func(d map[string]any) { d["authorization_servers"] = []string{s.URL} }
	})
	_, err := r.Renew(ctx, r.s, header, r.challenge())
	r.quiet(err, "redirects to another place")
	if told := s.told(); len(told) > 0 {
		t.Errorf("the other origin was sent %q", told)
	}
}

// An answer of another issuer is not taken (RFC 9207).
func TestAnswerOfAnotherIssuer(t *testing.T) {
	r := newRig(t, nil)
	page, err := r.login(mcp.Login{})
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(page)
	if err != nil {
		t.Fatal(err)
	}
	q := url.Values{"code": {"stolen"}, "state": {u.Query().Get("state")}, "iss": {"https://evil.example"}}
	res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get(u.Query().Get("redirect_uri") + "?" + q.Encode())
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	r.quiet(r.end(), "evil.example", "does not match")
	if r.g.Count("/token") != 0 {
		t.Error("the code of another issuer was redeemed")
	}
}

// Tokens do not cross a network in the clear.
func TestUnencrypted(t *testing.T) {
	k := New(Config{Vault: vault.Memory()})
	t.Cleanup(k.Close)
	_, err := k.Login(context.Background(), mcp.Server{URL: "http://example.com/mcp"}, mcp.Login{}, nil, nil)
	if err == nil || !strings.Contains(err.Error(), "https") {
		t.Errorf("got %v", err)
	}
}

// Where a server is public, what it names is not looked for in this network.
func TestPrivateAddresses(t *testing.T) {
	for address, want := range map[string]bool{
		"127.0.0.1": true, "10.1.2.3": true, "192.168.0.1": true, "169.254.169.254": true, "::1": true, "fe80::1": true, "fd00::1": true,
		"::ffff:127.0.0.1": true, "0.0.0.0": true, "100.64.0.1": true, "224.0.0.1": true,
		"93.184.216.34": false, "2606:2800:220:1::1": false,
	} {
		if got := private(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s: %v", address, got)
		}
	}
	at, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer at.Close()
	tr := &http.Transport{}
	for server, want := range map[string]bool{"http://127.0.0.1/mcp": false, "https://93.184.216.34/mcp": true, "https://10.0.0.1/mcp": false} {
		if got := guarded(context.Background(), tr, server); got != want {
			t.Errorf("%s: guarded %v", server, got)
		}
	}
	k := New(Config{Vault: vault.Memory()})
	t.Cleanup(k.Close)
	c, release := k.requests(context.Background(), "https://93.184.216.34/mcp")
	defer release()
	if p := c.Transport.(*patient).RoundTripper.(*http.Transport).Proxy; p != nil {
		if via, _ := p(&http.Request{URL: &url.URL{Scheme: "https", Host: "93.184.216.34"}}); via != nil {
			return // the proxy decides
		}
	}
	res, err := c.Get("http://" + at.Addr().String())
	if err == nil {
		res.Body.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "private address") {
		t.Errorf("connected to %s: %v", at.Addr(), err)
	}
}

func FuzzRecord(f *testing.F) {
	s := mcp.Server{URL: "https://example.com/mcp"}
	for _, raw := range []string{``, `{}`, `null`, `[]`, `{"server":"https://example.com/mcp","accessToken":"a","ends":"2026-01-01T00:00:00Z"}`, `{"server":7}`} {
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		r := parse(raw, s)
		if r == nil {
			return
		}
		if r.Server != s.URL {
			t.Errorf("a record of %q counted", r.Server)
		}
		again, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if back := parse(again, s); back == nil || back.header() != r.header() {
			t.Errorf("%s came back as %s", raw, again)
		}
	})
}
