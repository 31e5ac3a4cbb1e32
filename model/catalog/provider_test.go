package catalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/model/endpoint"
	"github.com/transom-run/transom/model/modeltest"
)

// ask makes one request.
func ask(t *testing.T, p model.Provider, name string) (*model.Response, error) {
	t.Helper()
	return model.Collect(p.Stream(t.Context(), &model.Request{Model: name, SessionID: "s1", Messages: []model.Message{{Role: model.User, Text: "x"}}}))
}

// TestWires: each type and wire reaches its path with its key.
func TestWires(t *testing.T) {
	srv := modeltest.NewServer(t, script)
	tests := []struct {
		name           string
		p              Provider
		path, key, val string
	}{
		{"openai", Provider{}, "/chat/completions", "Authorization", "Bearer key"},
		{"responses", Provider{WireAPI: "Responses"}, "/responses", "Authorization", "Bearer key"},
		{"responses, websockets", Provider{WireAPI: "Responses", Transport: "websockets"}, "/responses", "Authorization", "Bearer key"},
		{"websockets, completions", Provider{Transport: "websockets"}, "/chat/completions", "Authorization", "Bearer key"},
		{"anthropic", Provider{Type: "anthropic", WireAPI: "responses"}, "/v1/messages", "X-Api-Key", "key"},
		{"anthropic, bearer", Provider{Type: "anthropic", BearerToken: "b"}, "/v1/messages", "Authorization", "Bearer b"},
		{"azure", Provider{Type: "azure"}, "/openai/v1/chat/completions", "Api-Key", "key"},
		{"azure, version", Provider{Type: "azure", AzureAPIVersion: "2024-10-21"}, "/openai/deployments/first/chat/completions", "Api-Key", "key"},
		{"azure, responses", Provider{Type: "azure", WireAPI: "responses", BearerToken: "b"}, "/openai/v1/responses", "Authorization", "Bearer b"},
		{"azure, responses, version", Provider{Type: "azure", WireAPI: "responses", AzureAPIVersion: "2025-04-01-preview"}, "/openai/responses", "Api-Key", "key"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.p.BaseURL, tt.p.APIKey = srv.URL, "key"
			c, err := Resolve(Config{Provider: &tt.p, Model: "first", Getenv: env()})
			if err != nil {
				t.Fatal(err)
			}
			if r, err := ask(t, c.Provider, c.Model.ID); err != nil || r.Message.Text != "hello" {
				t.Fatalf("%+v, %v", r, err)
			}
			reqs := srv.Requests()
			got := reqs[len(reqs)-1]
			if got.Path != tt.path || got.Header.Get(tt.key) != tt.val || got.Method == http.MethodPost && (got.Chat == nil || got.Chat.Model != "first") {
				t.Errorf("%s %v", got.Path, got.Header)
			}
			if warned := len(c.Warnings) > 0; warned != (tt.p.Transport != "" && tt.p.WireAPI == "") {
				t.Errorf("warnings %q", c.Warnings)
			}
			if socket := got.Method == http.MethodGet; socket != (tt.p.Transport != "" && tt.p.WireAPI != "") {
				t.Errorf("asked by %s", got.Method)
			}
		})
	}
}

func TestEnvironment(t *testing.T) {
	srv := modeltest.NewServer(t, script)
	c, err := Resolve(Config{Getenv: env("COPILOT_PROVIDER_BASE_URL", srv.URL, "COPILOT_PROVIDER_TYPE", "azure", "COPILOT_PROVIDER_WIRE_API", "completions",
		"COPILOT_PROVIDER_AZURE_API_VERSION", "V", "COPILOT_PROVIDER_API_KEY", "k", "COPILOT_MODEL", "first", "COPILOT_PROVIDER_WIRE_MODEL", "my deployment",
		"COPILOT_PROVIDER_MAX_PROMPT_TOKENS", "9000", "COPILOT_PROVIDER_MAX_OUTPUT_TOKENS", "900")})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := ask(t, c.Provider, c.Model.ID); err != nil || r.Message.Text != "hello" {
		t.Fatalf("%+v, %v", r, err)
	}
	got := srv.Requests()[0]
	if got.Path != "/openai/deployments/my deployment/chat/completions" || !strings.Contains(string(got.Body), `"max_completion_tokens":900`) || c.Model.ContextWindow != 9000 {
		t.Errorf("%s %s %+v", got.Path, got.Body, c.Model)
	}
}

// TestToken: the host is asked before every request, and what it says is neither
// kept nor shown.
func TestToken(t *testing.T) {
	for _, kind := range []string{"openai", "anthropic", "azure"} {
		srv := modeltest.NewServer(t, script)
		n := 0
		p := &Provider{Type: kind, BaseURL: srv.URL, APIKey: "key", BearerToken: "static", Token: func(context.Context) (string, error) {
			if n++; n > 2 {
				return "", errors.New("the vault is closed")
			}
			return fmt.Sprint("token-", n), nil
		}}
		c, err := Resolve(Config{Provider: p, Model: "first", Getenv: env()})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 2 {
			if _, err := ask(t, c.Provider, "first"); err != nil {
				t.Fatal(err)
			}
			h := srv.Requests()[i].Header
			if got := h.Get("Authorization"); got != fmt.Sprint("Bearer token-", i+1) || h.Get("X-Api-Key")+h.Get("Api-Key") != "" {
				t.Errorf("%s: %v", kind, h)
			}
		}
		_, err = ask(t, c.Provider, "first")
		var e *model.Error
		if !errors.As(err, &e) || e.Kind != model.Authentication || e.Retryable || !strings.Contains(e.Msg, "the vault is closed") || len(srv.Requests()) != 2 {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// host makes requests itself, and refuses them with the token that they carried.
type host struct{ asked []*model.Request }

func (h *host) RoundTrip(r *http.Request) (*http.Response, error) {
	h.asked = append(h.asked, endpoint.Asked(r.Context()))
	return &http.Response{StatusCode: 404, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
		Body: io.NopCloser(strings.NewReader(`{"error":{"message":"no model for ` + r.Header.Get("Authorization") + `"}}`))}, nil
}

// TestHost: a host that makes the requests sees whose they are.
func TestHost(t *testing.T) {
	for _, p := range []Provider{{}, {WireAPI: "responses"}, {Type: "anthropic"}, {Type: "azure", AzureAPIVersion: "1"}} {
		h := &host{}
		p.BaseURL = "https://byok.invalid/v1"
		p.Token = func(context.Context) (string, error) { return "the-token-of-this-request", nil }
		c, err := Resolve(Config{Provider: &p, Model: "m", HTTPClient: &http.Client{Transport: h}, Getenv: env()})
		if err != nil {
			t.Fatal(err)
		}
		_, err = ask(t, c.Provider, "m")
		var e *model.Error
		if !errors.As(err, &e) || e.Status != 404 || e.Retryable || strings.Contains(e.Msg, "the-token") {
			t.Errorf("%v", err)
		}
		if len(h.asked) != 1 || h.asked[0] == nil || h.asked[0].SessionID != "s1" {
			t.Errorf("asked %+v", h.asked)
		}
	}
}

func TestRegistry(t *testing.T) {
	srv := modeltest.NewServer(t, "models: [x]\nconversations: [{when: {}, replies: [{content: hello}]}]")
	srv.AddUser("t0ken", "octo", nil)
	providers := []Named{
		{Name: "alpha", Provider: Provider{BaseURL: srv.URL + "/alpha", APIKey: "alpha-secret", Headers: map[string]string{"X-Provider": "alpha"}, MaxPromptTokens: 5000}},
		{Name: "beta", Provider: Provider{Type: "anthropic", BaseURL: srv.URL + "/beta", BearerToken: "beta-bearer", Headers: map[string]string{"X-Provider": "beta"}}},
	}
	entries := []Entry{
		{ID: "sonnet", Provider: "alpha", WireModel: "byok-gpt-4o", MaxPromptTokens: 111111, Vision: true},
		{ID: "haiku", Provider: "alpha", Name: "Haiku"},
		{ID: "haiku", Provider: "beta", WireModel: "byok-claude", MaxContextTokens: 222},
	}
	reg, err := NewRegistry(nil, providers, entries)
	if err != nil {
		t.Fatal(err)
	}
	got := reg.Models()
	if len(got) != 3 || got[0].ID != "alpha/sonnet" || got[0].ContextWindow != 111111 || !got[0].Vision || got[1].Name != "Haiku" || got[1].ContextWindow != 5000 || got[2].Name != "beta/haiku" || got[2].ContextWindow != 222 {
		t.Errorf("%+v", got)
	}
	account := env("COPILOT_DEBUG_GITHUB_API_URL", srv.URL)
	tests := []struct {
		name         string
		cfg          Config
		asked        string // the request's model; empty: the choice's
		path, sent   string
		source       Source
		providerName string
	}{
		{"by name", Config{Model: "alpha/sonnet", Getenv: env()}, "", "/alpha/chat/completions", "byok-gpt-4o", FromRegistry, "alpha"},
		{"the same id elsewhere", Config{Model: "beta/haiku", Getenv: env()}, "", "/beta/v1/messages", "byok-claude", FromRegistry, "beta"},
		{"the first, where there is nothing else", Config{Getenv: env()}, "", "/alpha/chat/completions", "byok-gpt-4o", FromRegistry, "alpha"},
		{"beside an account", Config{SessionToken: "t0ken", Getenv: account}, "x", "/chat/completions", "x", FromGitHub, ""},
		{"another model of the same session", Config{SessionToken: "t0ken", Getenv: account}, "alpha/haiku", "/alpha/chat/completions", "haiku", FromGitHub, "alpha"},
		{"an account's model in a session of the registry", Config{Model: "alpha/haiku", SessionToken: "t0ken", Getenv: account}, "x", "/chat/completions", "x", FromRegistry, ""},
	}
	for _, tt := range tests {
		tt.cfg.Registry = reg
		c, err := Resolve(tt.cfg)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if _, err := ask(t, c.Provider, cmp.Or(tt.asked, c.Model.ID)); err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		reqs := srv.Requests()
		last := reqs[len(reqs)-1]
		if last.Path != tt.path || last.Chat.Model != tt.sent || c.Source != tt.source || last.Header.Get("X-Provider") != tt.providerName {
			t.Errorf("%s: %s %s %s", tt.name, last.Path, last.Chat.Model, c.Source)
		}
	}
	if e, p, ok := reg.Find("beta/haiku"); !ok || e.WireModel != "byok-claude" || p.BearerToken != "beta-bearer" {
		t.Errorf("%+v %+v %v", e, p, ok)
	}
}

func TestRegistryChanges(t *testing.T) {
	base := Provider{BaseURL: "http://localhost:1/v1"}
	var none *Registry
	if none.Models() != nil {
		t.Error("models of nothing")
	}
	one, err := none.Add([]Named{{"a", base}}, []Entry{{ID: "m", Provider: "a"}})
	if err != nil {
		t.Fatal(err)
	}
	two, err := one.Add([]Named{{"b", base}}, []Entry{{ID: "m", Provider: "b"}, {ID: "n", Provider: "a"}})
	if err != nil || len(two.Models()) != 3 || len(one.Models()) != 1 {
		t.Fatalf("%v", err)
	}
	less, err := two.Remove("a")
	if err != nil || len(less.Models()) != 1 || less.Models()[0].ID != "b/m" {
		t.Errorf("%v", err)
	}
	for _, tt := range []struct {
		p    []Named
		e    []Entry
		want string
	}{
		{[]Named{{"a", base}}, nil, `Two providers have the name "a"`},
		{[]Named{{"x/y", base}}, nil, "must not have a slash"},
		{[]Named{{"", base}}, nil, "must not be empty"},
		{[]Named{{"c", Provider{Type: "bedrock", BaseURL: "http://x"}}}, nil, `providers["c"].type "bedrock"`},
		{[]Named{{"c", Provider{}}}, nil, "base URL"},
		{nil, []Entry{{ID: "m", Provider: "c"}}, `names the provider "c"`},
		{nil, []Entry{{ID: "m", Provider: "a"}}, `Two models have the name "a/m"`},
		{nil, []Entry{{Provider: "a"}}, "has no id"},
		{[]Named{{"c", Provider{BaseURL: "http://x", MaxOutputTokens: -2}}}, nil, `providers["c"].maxOutputTokens is -2`},
		{nil, []Entry{{ID: "k", Provider: "a", MaxPromptTokens: -3}}, `models["a/k"].maxPromptTokens is -3`},
		{nil, []Entry{{ID: "k", Provider: "a", MaxContextTokens: -4}}, `models["a/k"].maxContextWindowTokens is -4`},
		{nil, []Entry{{ID: "k", Provider: "a", MaxOutputTokens: -5}}, `models["a/k"].maxOutputTokens is -5`},
	} {
		_, err := one.Add(tt.p, tt.e)
		var e *model.Error
		if !errors.As(err, &e) || e.Kind != model.Setup || !strings.Contains(e.Msg, tt.want) {
			t.Errorf("%v, want %q", err, tt.want)
		}
	}
	_, err = Resolve(Config{Registry: one, Model: "a/other", Getenv: env()})
	if err == nil || !strings.Contains(err.Error(), "There are: a/m") {
		t.Errorf("%v", err)
	}
}
