package catalog

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/model/modeltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func env(pairs ...string) func(string) string {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return func(name string) string { return m[name] }
}

const script = `
models: [{id: first, context_window: 64000}, second]
conversations:
  - when: {}
    replies: [{content: hello}]
`

// TestOrder: who wins, seen from the server.
func TestOrder(t *testing.T) {
	srv := modeltest.NewServer(t, script)
	for _, token := range []string{"session-token", "launcher-token", "copilot-token", "gh-token", "github-token"} {
		srv.AddUser(token, token, nil)
	}
	all := []string{
		"COPILOT_PROVIDER_BASE_URL", srv.URL + "/env/v1/", "COPILOT_PROVIDER_API_KEY", "env-key", "COPILOT_MODEL", "env-model",
		"COPILOT_DEBUG_GITHUB_API_URL", srv.URL,
		"COPILOT_GITHUB_TOKEN", "copilot-token", "GH_TOKEN", "gh-token", "GITHUB_TOKEN", "github-token",
	}
	own := &Provider{Type: "OpenAI", BaseURL: srv.URL + "/own/v1", APIKey: "own-key", ModelID: "own-model"}
	tests := []struct {
		name              string
		cfg               Config
		path, auth, model string
		source            Source
	}{
		{"own", Config{Provider: own, SessionToken: "session-token", Getenv: env(all...)}, "/own/v1/chat/completions", "own-key", "own-model", FromSession},
		{"own, model of the session", Config{Provider: own, Model: "m", Getenv: env(all...)}, "/own/v1/chat/completions", "own-key", "m", FromSession},
		{"environment", Config{SessionToken: "session-token", Getenv: env(all...)}, "/env/v1/chat/completions", "env-key", "env-model", FromEnvironment},
		{"environment, bearer", Config{Getenv: env(append(all, "COPILOT_PROVIDER_BEARER_TOKEN", "env-bearer")...)}, "/env/v1/chat/completions", "env-bearer", "env-model", FromEnvironment},
		{"session token", Config{SessionToken: "session-token", LauncherToken: "launcher-token", Getenv: env(all[6:]...)}, "/chat/completions", "session-token", "first", FromGitHub},
		{"launcher token", Config{LauncherToken: "launcher-token", Getenv: env(all[6:]...)}, "/chat/completions", "launcher-token", "first", FromGitHub},
		{"launcher token without login", Config{LauncherToken: "launcher-token", NoAutoLogin: true, Getenv: env(all[6:]...)}, "/chat/completions", "launcher-token", "first", FromGitHub},
		{"COPILOT_GITHUB_TOKEN", Config{Model: "second", Getenv: env(all[6:]...)}, "/chat/completions", "copilot-token", "second", FromGitHub},
		{"GH_TOKEN", Config{Getenv: env("COPILOT_API_URL", srv.URL+"/api", "GH_TOKEN", "gh-token", "GITHUB_TOKEN", "x")}, "/api/chat/completions", "gh-token", "first", FromGitHub},
		{"GITHUB_TOKEN", Config{Getenv: env("COPILOT_API_URL", srv.URL, "COPILOT_MODEL", "second", "GITHUB_TOKEN", "github-token")}, "/chat/completions", "github-token", "second", FromGitHub},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before := len(srv.Requests())
			c, err := Resolve(tt.cfg)
			if err != nil {
				t.Fatal(err)
			}
			if len(srv.Requests()) != before {
				t.Error("deciding asked the server")
			}
			r, err := model.Collect(c.Provider.Stream(t.Context(), &model.Request{Model: c.Model.ID, Messages: []model.Message{{Role: model.User, Text: "x"}}}))
			if err != nil || r.Message.Text != "hello" {
				t.Fatalf("%+v, %v", r, err)
			}
			reqs := srv.Requests()
			got := reqs[len(reqs)-1]
			if got.Path != tt.path || got.Header.Get("Authorization") != "Bearer "+tt.auth || got.Chat.Model != tt.model || c.Source != tt.source {
				t.Errorf("%s %s %s %s", got.Path, got.Header.Get("Authorization"), got.Chat.Model, c.Source)
			}
			if c.Model.ContextWindow != DefaultContextWindow {
				t.Errorf("window %d", c.Model.ContextWindow)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	base := "http://localhost:1/v1"
	tests := []struct {
		name string
		cfg  Config
		code string
		want string
	}{
		{"nothing", Config{}, "", "(1) set COPILOT_PROVIDER_BASE_URL"},
		{"nothing, no login", Config{NoAutoLogin: true, Getenv: env("GH_TOKEN", "x")}, "", "--no-auto-login"},
		{"type", Config{Provider: &Provider{Type: "bedrock", BaseURL: base}}, CodeUnsupported, `provider.type "bedrock" is not supported`},
		{"wire", Config{Provider: &Provider{WireAPI: "grpc", BaseURL: base}}, CodeUnsupported, `provider.wireApi "grpc"`},
		{"transport", Config{Provider: &Provider{Transport: "pigeon", BaseURL: base}}, CodeUnsupported, `provider.transport`},
		{"type by environment", Config{Getenv: env("COPILOT_PROVIDER_BASE_URL", base, "COPILOT_PROVIDER_TYPE", "cohere")}, CodeUnsupported, `COPILOT_PROVIDER_TYPE "cohere"`},
		{"no number", Config{Getenv: env("COPILOT_PROVIDER_BASE_URL", base, "COPILOT_PROVIDER_MAX_PROMPT_TOKENS", "64k")}, "", `"64k", which is not a number`},
		{"a negative window", Config{Provider: &Provider{BaseURL: base, MaxPromptTokens: -5}}, "", "provider.maxPromptTokens is -5, which is not a number of tokens"},
		{"a negative length", Config{Provider: &Provider{BaseURL: base, MaxOutputTokens: -1}}, "", "provider.maxOutputTokens is -1, which"},
		{"no URL", Config{Provider: &Provider{}}, "", "base URL"},
		{"bad API URL", Config{SessionToken: "t", Getenv: env("COPILOT_API_URL", "x")}, "", "model API"},
	}
	for _, tt := range tests {
		if tt.cfg.Getenv == nil {
			tt.cfg.Getenv = env()
		}
		_, err := Resolve(tt.cfg)
		var e *model.Error
		if !errors.As(err, &e) || e.Kind != model.Setup || e.Code != tt.code || !strings.Contains(e.Msg, tt.want) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

func TestDescribe(t *testing.T) {
	srv := modeltest.NewServer(t, script)
	srv.AddUser("t0ken", "octo", nil)
	for _, tt := range []struct {
		cfg    Config
		id     string
		window int
	}{
		{Config{SessionToken: "t0ken", Getenv: env("COPILOT_DEBUG_GITHUB_API_URL", srv.URL)}, "first", 64000},
		{Config{Model: "second", SessionToken: "t0ken", Getenv: env("COPILOT_DEBUG_GITHUB_API_URL", srv.URL)}, "second", DefaultContextWindow},
		{Config{Model: "mine", Provider: &Provider{BaseURL: srv.URL, MaxPromptTokens: 9000}, Getenv: env()}, "mine", 9000},
	} {
		c, err := Resolve(tt.cfg)
		if err != nil {
			t.Fatal(err)
		}
		info, err := c.Describe(t.Context())
		if err != nil || info.ID != tt.id || info.ContextWindow != tt.window {
			t.Errorf("%+v, %v", info, err)
		}
	}
	c, err := Resolve(Config{Model: "m", Provider: &Provider{BaseURL: "http://127.0.0.1:1"}, Getenv: env()})
	if err != nil {
		t.Fatal(err)
	}
	if info, err := c.Describe(t.Context()); err == nil || info.ID != "m" || info.ContextWindow != DefaultContextWindow {
		t.Errorf("%+v, %v", info, err)
	}
}

// TestNoName: a server with one model needs no name, one with several does.
func TestNoName(t *testing.T) {
	req := &model.Request{Messages: []model.Message{{Role: model.User, Text: "x"}}}
	one := modeltest.NewServer(t, "models: [only]\nconversations: [{when: {model: only}, replies: [{content: hello}]}]")
	c, err := Resolve(Config{Provider: &Provider{BaseURL: one.URL}, Getenv: env()})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if r, err := model.Collect(c.Provider.Stream(t.Context(), req)); err != nil || r.Message.Text != "hello" {
			t.Errorf("%+v, %v", r, err)
		}
	}
	if n := len(one.Requests()); n != 3 {
		t.Errorf("%d requests", n)
	}
	two := modeltest.NewServer(t, script)
	c, err = Resolve(Config{Provider: &Provider{BaseURL: two.URL}, Getenv: env()})
	if err != nil {
		t.Fatal(err)
	}
	_, err = model.Collect(c.Provider.Stream(t.Context(), req))
	var e *model.Error
	if !errors.As(err, &e) || e.Kind != model.Setup || !strings.Contains(e.Msg, "first, second") {
		t.Errorf("%v", err)
	}
}

// TestAccounts: sessions of one token share an account, and what is kept is
// bounded.
func TestAccounts(t *testing.T) {
	var shared Accounts
	get := func(token string) *Choice {
		c, err := Resolve(Config{SessionToken: token, Getenv: env(), Accounts: &shared})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	first, again, other := get("a"), get("a"), get("b")
	if first.Account != again.Account || first.Account == other.Account {
		t.Error("not shared by token")
	}
	for i := range 1000 {
		get(fmt.Sprint("token", i))
	}
	if n := len(shared.m); n > maxAccounts {
		t.Errorf("%d accounts are kept", n)
	}
}

func BenchmarkResolve(b *testing.B) {
	cfg := Config{Model: "m", Provider: &Provider{BaseURL: "http://localhost:11434/v1", APIKey: "key-key-key"}, Getenv: env()}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Resolve(cfg); err != nil {
			b.Fatal(err)
		}
	}
}
