package transom_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/eventlog/memlog"
	"github.com/transom-run/transom/model/endpoint"
)

func open(t *testing.T, env map[string]string) *transom.Runtime {
	t.Helper()
	rt, err := transom.Open(transom.Config{Store: memlog.New(), Getenv: func(name string) string { return env[name] }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rt.Close(context.Background()) })
	return rt
}

// A Go host gives a token for every request, on the wires of all types; a server
// that repeats a token does not get it into what the session says.
func TestTokenForEveryRequest(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	var paths, keys []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		paths, keys = append(paths, r.URL.RequestURI()), append(keys, r.Header.Get("Authorization"))
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"error":{"message":"what is %s?"}}`, r.Header.Get("Authorization"))
	}))
	defer srv.Close()
	defer endpoint.CloseIdleConnections()
	rt := open(t, nil)
	n := 0
	config := func(kind, wire string) *transom.ProviderConfig {
		return &transom.ProviderConfig{Type: kind, WireAPI: wire, BaseURL: srv.URL, AzureAPIVersion: "2025-01-01", ModelID: "m", APIKey: "not-this-one",
			Token: func(context.Context) (string, error) { n++; return fmt.Sprint("token-number-", n), nil }}
	}
	for _, p := range []*transom.ProviderConfig{config("", ""), config("openai", "responses"), config("anthropic", ""), config("azure", ""), config("azure", "responses")} {
		s, err := rt.CreateSession(ctx, transom.SessionConfig{Provider: p})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.SendAndWait(ctx, transom.Message{Prompt: "hi"}); err == nil || strings.Contains(err.Error(), "token-number") {
			t.Errorf("the failure is %v", err)
		}
		s.Close(ctx)
	}
	want := []string{"/chat/completions", "/responses", "/v1/messages", "/openai/deployments/m/chat/completions?api-version=2025-01-01", "/openai/responses?api-version=2025-01-01"}
	if diff := cmp.Diff(want, paths); diff != "" {
		t.Errorf("paths (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"Bearer token-number-1", "Bearer token-number-2", "Bearer token-number-3", "Bearer token-number-4", "Bearer token-number-5"}, keys); diff != "" {
		t.Errorf("tokens (-want +got)\n%s", diff)
	}
}

func TestEndpoint(t *testing.T) {
	ctx := context.Background()
	rt := open(t, map[string]string{"COPILOT_ALLOW_GET_PROVIDER_ENDPOINT": "true", "GITHUB_TOKEN": "gho_secret", "COPILOT_API_URL": "https://api.invalid"})
	s, err := rt.CreateSession(ctx, transom.SessionConfig{
		Providers: []transom.NamedProvider{{Name: "a", ProviderConfig: transom.ProviderConfig{Type: "anthropic", BaseURL: "https://a.invalid", APIKey: "k",
			Token: func(context.Context) (string, error) { return "fresh", nil }}}},
		Models: []transom.ModelConfig{{ID: "m", Provider: "a"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Endpoint(ctx, "a/m")
	if diff := cmp.Diff(transom.Endpoint{Type: "anthropic", Transport: "http", BaseURL: "https://a.invalid", APIKey: "fresh"}, got); err != nil || diff != "" {
		t.Errorf("a model of the registry: %v\n%s", err, diff)
	}
	if got, err = s.Endpoint(ctx, ""); err != nil || got.BaseURL != "https://api.invalid" || got.APIKey != "gho_secret" || got.Headers["Authorization"] != "Bearer gho_secret" || got.Headers["X-Interaction-Id"] == "" {
		t.Errorf("the account: %+v %v", got, err)
	}
	own, err := rt.CreateSession(ctx, transom.SessionConfig{Provider: &transom.ProviderConfig{BaseURL: "https://b.invalid/v1", APIKey: "k", BearerToken: "b", ModelID: "m"}})
	if err != nil {
		t.Fatal(err)
	}
	got, err = own.Endpoint(ctx, "")
	if diff := cmp.Diff(transom.Endpoint{Type: "openai", WireAPI: "completions", Transport: "http", BaseURL: "https://b.invalid/v1", APIKey: "b"}, got); err != nil || diff != "" {
		t.Errorf("an own provider: %v\n%s", err, diff)
	}
	closed, err := open(t, nil).CreateSession(ctx, transom.SessionConfig{Provider: &transom.ProviderConfig{BaseURL: "https://b.invalid"}})
	if err != nil {
		t.Fatal(err)
	}
	var e *transom.Error
	if _, err := closed.Endpoint(ctx, ""); !errors.As(err, &e) || e.Kind != transom.KindUnsupported {
		t.Errorf("without the setting: %v", err)
	}
}
