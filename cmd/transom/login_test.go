package main

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	copilot "github.com/github/copilot-sdk/go"
	"github.com/github/copilot-sdk/go/rpc"

	"github.com/transom-run/transom/mcp/mcptest"
	"github.com/transom-run/transom/model/modelfile"
	"github.com/transom-run/transom/model/scripted"
)

// sdkHost is a host on the published Go SDK, and the program that it started.
type sdkHost struct {
	*copilot.Client
	t    *testing.T
	ctx  context.Context
	mu   sync.Mutex
	said []byte // all events
}

func newSDKHost(t *testing.T, ctx context.Context, home string) *sdkHost {
	t.Helper()
	no := false
	h := &sdkHost{t: t, ctx: ctx, Client: copilot.NewClient(&copilot.ClientOptions{
		Connection: copilot.StdioConnection{Path: os.Args[0], Env: []string{
			"TRANSOM_TEST_MAIN=1", "HOME=" + home, "COPILOT_HOME=" + home, "PATH=" + os.Getenv("PATH"),
		}},
		UseLoggedInUser: &no,
	})}
	if err := h.Start(ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.ForceStop() })
	return h
}

// sdkSession is a session with a guarded server, and the states that the server came to.
type sdkSession struct {
	*copilot.Session
	h      *sdkHost
	states chan string
	ran    chan bool // whether calls came out well
}

func (h *sdkHost) session(storage, endpoint, url string) *sdkSession {
	h.t.Helper()
	s := &sdkSession{h: h, states: make(chan string, 100), ran: make(chan bool, 100)}
	made, err := h.CreateSession(h.ctx, &copilot.SessionConfig{
		Model: "m", Provider: &copilot.ProviderConfig{Type: "openai", BaseURL: endpoint + "/v1"}, MCPOAuthTokenStorage: storage,
		OnPermissionRequest: copilot.PermissionHandler.ApproveAll,
		MCPServers:          map[string]copilot.MCPServerConfig{"s": copilot.MCPHTTPServerConfig{URL: url, Tools: []string{"*"}}},
		OnEvent: func(e copilot.SessionEvent) {
			raw, _ := json.Marshal(e)
			h.mu.Lock()
			h.said = append(append(h.said, raw...), '\n')
			h.mu.Unlock()
			if d, ok := e.Data.(*copilot.SessionMCPServerStatusChangedData); ok {
				s.states <- string(d.Status)
			}
			if d, ok := e.Data.(*copilot.ToolExecutionCompleteData); ok {
				s.ran <- d.Success
			}
		},
	})
	if err != nil {
		h.t.Fatal(err)
	}
	s.Session = made
	if _, err := s.RPC.MCP.List(h.ctx); err != nil { // which begins to connect
		h.t.Fatal(err)
	}
	return s
}

// comes waits for a state of the server.
func (s *sdkSession) comes(want string) {
	s.h.t.Helper()
	for {
		select {
		case got := <-s.states:
			if got == want {
				return
			}
		case <-s.h.ctx.Done():
			s.h.t.Fatalf("the server does not become %s", want)
		}
	}
}

// calls has the model call the server's tool.
func (s *sdkSession) calls() {
	s.h.t.Helper()
	e, err := s.SendAndWait(s.h.ctx, copilot.MessageOptions{Prompt: "Call it."})
	if err != nil {
		s.h.t.Fatal(err)
	}
	if d, ok := e.Data.(*copilot.AssistantMessageData); !ok || d.Content != "done" {
		s.h.t.Errorf("answered %+v", e.Data)
	}
	select {
	case well := <-s.ran:
		if !well {
			s.h.t.Error("the call of the server's tool failed")
		}
	case <-s.h.ctx.Done():
		s.h.t.Fatal("no tool was called")
	}
}

// A host on the published SDK has its user log in to a server: the page comes from
// login, a browser opens it, and the server is connected to. Its token is renewed
// without a word, and another process finds it, where the host wants that.
func TestLoginBySDK(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	g := mcptest.NewGuarded()
	defer g.Close()
	var replies []modelfile.Message
	for range 3 {
		replies = append(replies, scripted.Call("s-get_env", `{"name":"NOTHING"}`), scripted.Say("done"))
	}
	brain := scripted.New(scripted.Config{Replies: replies})
	endpoint := httptest.NewServer(brain.Handler())
	defer endpoint.Close()
	home := t.TempDir()

	h := newSDKHost(t, ctx, home)
	s := h.session("persistent", endpoint.URL, g.URL())
	s.comes("needs-auth")
	name, message := "A host", "Back to the host."
	res, err := s.RPC.MCP.Oauth().Login(ctx, &rpc.MCPOauthLoginRequest{ServerName: "s", ClientName: &name, CallbackSuccessMessage: &message})
	if err != nil || res.AuthorizationURL == nil {
		t.Fatalf("%+v, %v", res, err)
	}
	if text, err := g.Approve(*res.AuthorizationURL); err != nil || !strings.Contains(text, message) {
		t.Fatalf("the user read %q, %v", text, err)
	}
	s.comes("connected")
	if got, err := s.RPC.MCP.Oauth().Probe(ctx, &rpc.MCPOauthProbeRequest{ServerName: "s"}); err != nil || got.Status() != rpc.MCPOauthProbeResultStatusAuthenticated {
		t.Errorf("%+v, %v", got, err)
	}
	s.calls()
	g.Expire(false)
	s.calls()
	if n := g.Count("refresh_token"); n != 1 {
		t.Errorf("refreshed %d times", n)
	}
	if err := h.Stop(); err != nil {
		t.Fatal(err)
	}

	again := newSDKHost(t, ctx, home)
	s = again.session("persistent", endpoint.URL, g.URL())
	s.comes("connected")
	s.calls()
	apart := again.session("in-memory", endpoint.URL, g.URL())
	apart.comes("needs-auth")
	if got, err := apart.RPC.MCP.Oauth().Probe(ctx, &rpc.MCPOauthProbeRequest{ServerName: "s"}); err != nil || got.Status() != rpc.MCPOauthProbeResultStatusNeedsAuth {
		t.Errorf("%+v, %v", got, err)
	}
	if p := g.Problems(); len(p) > 0 {
		t.Errorf("problems: %q", p)
	}
	for _, host := range []*sdkHost{h, again} {
		host.mu.Lock()
		if strings.Contains(string(host.said), g.Prefix) {
			t.Errorf("an event shows a token: %s", host.said)
		}
		host.mu.Unlock()
	}
	files, err := filepath.Glob(filepath.Join(home, "mcp-oauth", "*.json"))
	if err != nil || len(files) != 1 {
		t.Errorf("kept in %v, %v", files, err)
	}
	for _, f := range files {
		if info, err := os.Stat(f); err != nil || info.Mode().Perm() != 0o600 && os.PathSeparator == '/' {
			t.Errorf("%s: %v, %v", f, info, err)
		}
	}
}
