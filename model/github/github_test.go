package github

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/model/modeltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const script = `
models:
  - {id: first, context_window: 128000, vision: true}
  - second
conversations:
  - when: {model: first}
    replies: [{content: from first}]
  - when: {model: second}
    replies: [{content: from second}]
`

func account(t *testing.T, srv *modeltest.Server, change func(*Config)) *Account {
	t.Helper()
	cfg := Config{Token: "good-token-123", Source: "GH_TOKEN", GitHubURL: srv.URL + "/"}
	if change != nil {
		change(&cfg)
	}
	a, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func ask(m string) *model.Request {
	return &model.Request{Model: m, Messages: []model.Message{{Role: model.User, Text: "hi"}}, Initiator: "user", InteractionID: "i1"}
}

func TestPath(t *testing.T) {
	srv := modeltest.NewServer(t, script)
	srv.AddUser("good-token-123", "octo", nil)
	a := account(t, srv, nil)
	if n := len(srv.Requests()); n != 0 {
		t.Fatalf("%d requests before anything was needed", n)
	}
	for m, want := range map[string]string{"": "from first", "second": "from second"} {
		r, err := model.Collect(a.Stream(t.Context(), ask(m)))
		if err != nil || r.Message.Text != want {
			t.Errorf("model %q: %+v, %v", m, r, err)
		}
	}
	user, err := a.User(t.Context())
	if err != nil || user.Login != "octo" || user.Plan != "individual" || !json.Valid(user.Raw) {
		t.Errorf("%+v, %v", user, err)
	}
	counts := map[string]int{}
	for _, r := range srv.Requests() {
		counts[r.Method+" "+r.Path]++
		if r.Header.Get("Authorization") != "Bearer good-token-123" {
			t.Errorf("%s without the token", r.Path)
		}
		if r.Chat != nil && (r.Header.Get("X-Initiator") != "user" || r.Header.Get("X-Interaction-Id") != "i1" || r.Header.Get("X-Interaction-Type") != "conversation-user" || r.Header.Get("Copilot-Integration-Id") != "transom") {
			t.Errorf("headers %v", r.Header)
		}
	}
	if counts["GET /copilot_internal/user"] != 1 || counts["GET /models"] != 1 || counts["POST /chat/completions"] != 2 {
		t.Errorf("requests %v", counts)
	}
}

func TestAPIURLWins(t *testing.T) {
	srv := modeltest.NewServer(t, script)
	a := account(t, srv, func(c *Config) { c.APIURL = srv.URL + "/other/"; c.GitHubURL = "http://127.0.0.1:1" })
	if _, err := model.Collect(a.Stream(t.Context(), ask("first"))); err != nil {
		t.Fatal(err)
	}
	if got := srv.Requests(); len(got) != 1 || got[0].Path != "/other/chat/completions" {
		t.Errorf("%+v", got)
	}
}

// TestResponsesOnly: a model that the list gives to responses alone is asked there,
// once the list is known: over a WebSocket where there is one. Where the API opens
// none after all, that is tried once.
func TestResponsesOnly(t *testing.T) {
	for _, off := range []bool{false, true} {
		responsesOnly(t, off)
	}
}

func responsesOnly(t *testing.T, off bool) {
	var paths []string
	sockets := 0
	srv := modeltest.NewHandler(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/models":
			io.WriteString(w, `{"data":[{"id":"both","supported_endpoints":["/chat/completions","/responses"]},{"id":"new","supported_endpoints":["/responses","ws:/responses"]},{"id":"old"}]}`)
		case "/responses":
			io.WriteString(w, `{"id":"r","status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"a"}]}]}`)
		default:
			io.WriteString(w, `{"choices":[{"message":{"content":"a"}}]}`)
		}
		if r.Method == http.MethodPost {
			paths = append(paths, r.URL.Path)
		}
		if r.Header.Get("Upgrade") == "websocket" {
			sockets++
		}
	}))
	srv.AddUser("good-token-123", "octo", nil)
	a := account(t, srv, func(c *Config) { c.NoSockets = off })
	for _, name := range []string{"new", "", "both", "new", "new", "old"} {
		if _, err := model.Collect(a.Stream(t.Context(), ask(name))); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := strings.Join(paths, " "), "/chat/completions /chat/completions /chat/completions /responses /responses /chat/completions"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if want := map[bool]int{false: 1, true: 0}[off]; sockets != want {
		t.Errorf("switched off %v: %d WebSockets tried", off, sockets)
	}
}

func TestBadToken(t *testing.T) {
	srv := modeltest.NewServer(t, script)
	a := account(t, srv, nil)
	for range 2 { // not kept
		err := a.Verify(t.Context())
		var e *model.Error
		if !errors.As(err, &e) || e.Kind != model.Authentication || e.Status != 401 || e.Retryable ||
			!strings.Contains(e.Msg, "401 Unauthorized") || !strings.Contains(e.Msg, "GH_TOKEN") || strings.Contains(e.Msg, "good-token") {
			t.Errorf("%+v", err)
		}
	}
	if n := len(srv.Requests()); n != 2 {
		t.Errorf("%d requests", n)
	}
	_, err := model.Collect(a.Stream(t.Context(), ask("")))
	var e *model.Error
	if !errors.As(err, &e) || e.Status != 401 {
		t.Errorf("%v", err)
	}
}

func TestLookupFailures(t *testing.T) {
	tests := []struct {
		name   string
		status int
		body   string
		again  bool
		want   string
	}{
		{"500", 500, "", true, "500 Internal Server Error"},
		{"404", 404, "", false, "404 Not Found"},
		{"not JSON", 200, "<html>", true, "not JSON"},
	}
	for _, tt := range tests {
		srv := modeltest.NewHandler(t, nil)
		srv.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(tt.status)
			io.WriteString(w, tt.body)
		})
		var e *model.Error
		if err := account(t, srv, nil).Verify(t.Context()); !errors.As(err, &e) || e.Retryable != tt.again || !strings.Contains(e.Msg, tt.want) {
			t.Errorf("%s: %+v", tt.name, err)
		}
	}
	srv := modeltest.NewServer(t, script)
	srv.AddUser("good-token-123", "octo", map[string]any{"endpoints": nil})
	var e *model.Error
	if _, err := account(t, srv, nil).Models(t.Context()); !errors.As(err, &e) || e.Kind != model.Setup || !strings.Contains(e.Msg, "octo") {
		t.Errorf("no endpoint: %v", err)
	}
	srv = modeltest.NewServer(t, "conversations: []")
	srv.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, `{"data":[]}`) })
	a := account(t, srv, func(c *Config) { c.APIURL = srv.URL })
	if _, err := a.DefaultModel(t.Context()); !errors.As(err, &e) || e.Kind != model.Setup {
		t.Errorf("no models: %v", err)
	}
}

func TestNewRefuses(t *testing.T) {
	for _, cfg := range []Config{{}, {Token: " "}, {Token: "t", GitHubURL: "nope"}, {Token: "t", APIURL: "ftp://x"}} {
		var e *model.Error
		if _, err := New(cfg); !errors.As(err, &e) || e.Kind != model.Setup {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}

// TestShared: callers at once share one request; one who leaves does not end it
// for the others, the last one does.
func TestShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c cell[int]
		var asked atomic.Int32
		ended := make(chan error, 2)
		release := make(chan struct{})
		fetch := func(ctx context.Context) (int, error) {
			asked.Add(1)
			select {
			case <-release:
				return 7, nil
			case <-ctx.Done():
				ended <- ctx.Err()
				return 0, ctx.Err()
			}
		}
		first, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		results := make(chan int, 3)
		wg.Go(func() {
			if _, err := c.get(first, time.Hour, fetch); !errors.Is(err, context.Canceled) {
				t.Errorf("first: %v", err)
			}
		})
		synctest.Wait()
		for range 3 {
			wg.Go(func() {
				v, err := c.get(t.Context(), time.Hour, fetch)
				if err != nil {
					t.Error(err)
				}
				results <- v
			})
		}
		synctest.Wait()
		cancel()
		synctest.Wait()
		close(release)
		wg.Wait()
		if asked.Load() != 1 || len(results) != 3 || <-results != 7 {
			t.Errorf("asked %d times", asked.Load())
		}
		// Kept until it is too old.
		if v, _ := c.get(t.Context(), time.Hour, fetch); v != 7 || asked.Load() != 1 {
			t.Error("not kept")
		}
		<-time.After(time.Hour + time.Second)
		c.get(t.Context(), time.Hour, fetch)
		if asked.Load() != 2 {
			t.Errorf("asked %d times after the time", asked.Load())
		}
		// The last one who leaves ends the request.
		release = make(chan struct{})
		<-time.After(2 * time.Hour)
		last, cancel := context.WithCancel(t.Context())
		wg.Go(func() { c.get(last, time.Hour, fetch) })
		synctest.Wait()
		cancel()
		wg.Wait()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the request ended with %v", err)
		}
	})
}
