//go:build unix

package stress

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/transom-run/transom/mcp/mcptest"
	"github.com/transom-run/transom/model"
)

// marker is a secret that is looked for. All of them are told apart by their names.
func marker(name string) string { return "mArk3r-" + name + "-" + strings.Repeat("7zQ", 6) }

// secretNames are what a server is entrusted with here.
var secretNames = []string{"connection", "github", "launcher", "apikey", "header", "password", "bearer", "provided", "filter", "sessiontoken", "envkey", "mcpenv", "mcpheader", "oauth", "login", "loginclient", "otelheader", "otelurl"}

// TestSecretsNowhere gives a server every kind of secret, in two sessions, makes
// tools, hosts and model servers repeat them, and looks for them in everything that
// comes out: messages to the clients, stderr at the noisiest level, the files of the
// store, the command lines and environments of what runs below the server, and what
// is exported as traces and metrics, with all that is said in them.
func TestSecretsNowhere(t *testing.T) {
	for _, export := range []string{"http/protobuf", "http/json", "file"} {
		t.Run(export, func(t *testing.T) { secretsNowhere(t, export) })
	}
}

// receiver takes what is exported, and refuses metrics by repeating what it was sent.
type receiver struct {
	mu   sync.Mutex
	got  []byte
	keys []string // of the requests
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	if err != nil {
		return // the server has ended
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got = append(r.got, body...)
	password, _ := url.QueryUnescape(q.Header.Get("Authorization"))
	r.keys = append(r.keys, fmt.Sprint(q.Header)+password)
	if strings.HasSuffix(q.URL.Path, "/metrics") {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, q.Header)
	}
}

// exporting is the environment of a server that exports to a receiver or a file, all
// that is said included.
func exporting(to *url.URL, export, file string) []string {
	env := []string{
		"COPILOT_OTEL_ENABLED=true", "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true", "OTEL_METRIC_EXPORT_INTERVAL=50",
		"OTEL_EXPORTER_OTLP_HEADERS=x-otel-key=" + marker("otelheader"),
	}
	with := *to
	with.User = url.UserPassword("user", marker("otelurl"))
	env = append(env, "OTEL_EXPORTER_OTLP_ENDPOINT="+with.String())
	if export == "file" {
		return append(env, "COPILOT_OTEL_FILE_EXPORTER_PATH="+file)
	}
	return append(env, "OTEL_EXPORTER_OTLP_PROTOCOL="+export)
}

func secretsNowhere(t *testing.T, export string) {
	var mu sync.Mutex
	keys := map[string][]string{} // what the model server was shown, by the prompt's first word
	var said []byte               // all that clients were sent
	brain := newBrain(t, func(h http.Header, req *model.Request, body string) reply {
		last := req.Messages[len(req.Messages)-1]
		session := "one"
		if strings.Contains(body, "session-two") {
			session = "two"
		}
		mu.Lock()
		keys[session] = append(keys[session], fmt.Sprint(h))
		mu.Unlock()
		echoed := strings.Join(slices.Concat(h["Authorization"], h["X-Api-Key"], h["X-Private-Token"]), " ")
		switch {
		case last.Role == model.ToolRole:
			return reply{text: "done with " + marker("spoken")}
		case strings.Contains(last.Text, "fail"):
			// A server that repeats what it was sent.
			return reply{status: 400, body: fmt.Sprintf(`{"error":{"message":"bad key %s","code":"%s"}}`, echoed, echoed)}
		case strings.Contains(last.Text, "tools"):
			calls := []model.Call{
				{ID: "a", Name: "bash", Arguments: `{"command":"env; echo $0; cat keys.txt; cat keys.txt >&2","description":"d"}`},
				{ID: "b", Name: "bash", Arguments: `{"command":"sleep 47","description":"d","mode":"async"}`},
				{ID: "c", Name: "view", Arguments: `{"path":"keys.txt"}`},
				{ID: "d", Name: "grep", Arguments: `{"pattern":"mArk3r","output_mode":"content"}`},
				{ID: "e", Name: "throws", Arguments: `{}`}, {ID: "f", Name: "returns", Arguments: `{}`},
				{ID: "g", Name: "bash", Arguments: fmt.Sprintf(`{"command":"echo %s","description":"d"}`, marker("spoken"))},
			}
			if session == "one" { // a server that repeats what it was sent
				calls = append(calls, model.Call{ID: "i", Name: "guarded-whoami", Arguments: `{}`}, model.Call{ID: "j", Name: "machine-whoami", Arguments: `{}`})
			}
			return reply{calls: calls}
		}
		return reply{text: "hello"}
	})

	home, work := t.TempDir(), t.TempDir()
	var all []string
	for _, name := range secretNames {
		if name != "login" { // which is a part of others only
			all = append(all, marker(name))
		}
	}
	if err := os.WriteFile(filepath.Join(work, "keys.txt"), []byte(strings.Join(all, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	github := newBrainless(t) // knows the tokens of no account
	guarded := mcptest.NewGuarded()
	defer guarded.Close()
	guarded.Do(func() {
		guarded.Prefix, guarded.Clients["machine"] = marker("login"), marker("loginclient")
	})
	exported := &receiver{}
	to := httptest.NewServer(exported)
	defer to.Close()
	at, err := url.Parse(to.URL)
	if err != nil {
		t.Fatal(err)
	}
	spans := filepath.Join(home, "exported", "spans.jsonl")
	defer syscall.Umask(syscall.Umask(0))
	s := start(t, home, false, append(exporting(at, export, spans),
		"COPILOT_CONNECTION_TOKEN="+marker("connection"), "COPILOT_GITHUB_TOKEN="+marker("github"), "LAUNCHER="+marker("launcher"),
		"COPILOT_PROVIDER_API_KEY="+marker("envkey"), "COPY=x"+marker("github"), "COPILOT_DEBUG_GITHUB_API_URL="+github,
	), "--auth-token-env", "LAUNCHER")

	idle, in := make(chan string, 16), make(chan string, 16)
	var c *client
	c = s.client(func(e event) {
		switch e.Type {
		case "session.idle":
			idle <- e.session
		case "session.mcp_server_status_changed":
			var d struct{ ServerName, Status string }
			if _ = json.Unmarshal(e.Data, &d); d.Status == "connected" && (d.ServerName == "guarded" || d.ServerName == "machine") {
				in <- d.ServerName
			}
		case "mcp.oauth_required":
			var d struct{ RequestID string }
			_ = json.Unmarshal(e.Data, &d)
			go c.call("session.mcp.oauth.handlePendingRequest", obj{"sessionId": e.session, "requestId": d.RequestID, "result": obj{"kind": "token", "accessToken": marker("oauth")}})
		case "external_tool.requested":
			var d struct {
				RequestID, ToolName string
			}
			_ = json.Unmarshal(e.Data, &d)
			answer := obj{"sessionId": e.session, "requestId": d.RequestID, "error": "it broke on " + strings.Join(all, " ")}
			if d.ToolName == "returns" {
				answer = obj{"sessionId": e.session, "requestId": d.RequestID, "result": obj{
					"textResultForLlm": "it holds " + strings.Join(all, " "), "resultType": "success", "sessionLog": strings.Join(all, " "),
					"toolTelemetry": obj{"a": strings.Join(all, " ")},
				}}
			}
			go c.call("session.tools.handlePendingToolCall", answer)
		}
	}, func(m message) (any, bool) {
		if m.Method == "providerToken.getToken" {
			return obj{"token": marker("provided")}, true
		}
		return nil, true
	}, func(b []byte) {
		mu.Lock()
		defer mu.Unlock()
		said = append(append(said, b...), '\n')
	})
	wrong, _ := c.call("connect", obj{"token": marker("connection") + "x"})
	if wrong.Error == nil {
		t.Fatal("a wrong token was taken")
	}
	c.ok("connect", obj{"token": marker("connection")}, nil)
	c.ok("secrets.addFilterValues", obj{"values": []string{marker("filter"), marker("spoken")}}, nil)
	address := strings.Replace(brain.URL, "http://", "http://user:"+marker("password")+"@", 1)
	servers := obj{
		"local":   obj{"type": "stdio", "command": os.Args[0], "args": []string{"x"}, "tools": []string{"*"}, "env": obj{mcptest.Variable: "plain", "SOME_TOKEN": marker("mcpenv")}},
		"guarded": obj{"type": "http", "url": guarded.URL(), "tools": []string{"*"}},
		"machine": obj{"type": "http", "url": guarded.URL(), "tools": []string{"*"}, "oauthGrantType": "client_credentials", "oauthClientId": "machine",
			"oauthClientSecret": marker("loginclient")},
		"far":   obj{"type": "http", "url": github, "tools": []string{"*"}, "headers": obj{"Authorization": "Bearer " + marker("mcpheader")}},
		"gated": obj{"type": "http", "url": github + "/gated", "tools": []string{"*"}},
	}
	tools := []obj{{"name": "throws", "description": "d"}, {"name": "returns", "description": "d"}}
	c.ok("session.create", obj{"sessionId": "one", "model": "m", "workingDirectory": work, "tools": tools, "streaming": true, "mcpServers": servers, "mcpOAuthTokenStorage": "persistent", "provider": obj{
		"type": "openai", "baseUrl": address + "/v1", "apiKey": marker("apikey"), "headers": obj{"X-Private-Token": marker("header")}}}, nil)
	logIn(t, c, guarded, in)
	c.ok("session.eventLog.registerInterest", obj{"sessionId": "one", "eventType": "mcp.oauth_required"}, nil)
	_, _ = c.call("session.mcp.restartServer", obj{"sessionId": "one", "serverName": "gated"}) // which takes no token
	c.ok("session.create", obj{"sessionId": "two", "model": "m", "workingDirectory": work, "tools": tools, "provider": obj{
		"type": "openai", "baseUrl": brain.URL + "/v1", "bearerToken": marker("bearer")}}, nil)
	c.ok("session.create", obj{"sessionId": "three", "model": "m", "workingDirectory": work, "tools": tools, "provider": obj{
		"type": "openai", "baseUrl": brain.URL + "/v1", "hasBearerTokenProvider": true}}, nil)
	refused, err := c.call("session.create", obj{"sessionId": "four", "gitHubToken": marker("sessiontoken")})
	if err != nil || refused.Error == nil {
		t.Errorf("a token that no account has: %s", refused.Raw())
	}
	// The first prompts have the server ask for tokens: then it has all secrets.
	for _, prompt := range []string{"hello", "tools", "fail"} {
		for _, id := range []string{"three", "one", "two"} {
			c.ok("session.permissions.setApproveAll", obj{"sessionId": id, "enabled": true}, nil)
			c.ok("session.send", obj{"sessionId": id, "prompt": "session-" + id + " " + prompt}, nil)
			select {
			case <-idle:
			case <-time.After(watchdog):
				s.dump("a turn does not end")
			}
		}
	}
	for _, id := range []string{"three", "one", "two"} {
		var ran struct{ Output string }
		c.ok("session.shell.executeUserRequested", obj{"sessionId": id, "requestId": "r", "command": "cat keys.txt; env"}, &ran)
		if !strings.Contains(ran.Output, "******") {
			t.Errorf("the command printed %q", ran.Output)
		}
	}
	for _, lost := range []bool{false, true} { // the token is renewed, and then it cannot be
		guarded.Expire(lost)
		c.ok("session.send", obj{"sessionId": "one", "prompt": "tools"}, nil)
		select {
		case <-idle:
		case <-time.After(watchdog):
			s.dump("a turn does not end")
		}
	}
	if n := guarded.Count("refresh_token"); n != 2 {
		t.Errorf("refreshed %d times: the search would find little", n)
	}
	if below := children(s.cmd.Process.Pid); len(below) < 4 {
		t.Errorf("there are %d processes below the server: the search would find nothing", len(below))
	} else {
		for _, pid := range below {
			for _, file := range []string{"cmdline", "environ"} {
				b, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), file))
				if strings.Contains(string(b), mcptest.Variable) { // it is given its own
					b = []byte(strings.ReplaceAll(string(b), "SOME_TOKEN="+marker("mcpenv"), ""))
				}
				search(t, fmt.Sprintf("the %s of process %d", file, pid), b)
			}
		}
	}
	for _, id := range []string{"one", "two", "three"} {
		var got struct{ Events []json.RawMessage }
		c.ok("session.getMessages", obj{"sessionId": id}, &got)
		if len(got.Events) < 10 {
			t.Errorf("%s has %d events", id, len(got.Events))
		}
	}
	s.stop()

	// The model servers were given each session's own keys and no other's.
	mu.Lock()
	defer mu.Unlock()
	for session, own := range map[string][]string{"one": {"apikey", "header"}, "two": {"bearer"}} {
		got := strings.Join(keys[session], "\n")
		for _, name := range secretNames {
			if has := strings.Contains(got, marker(name)); has != slices.Contains(own, name) && session == "two" || !has && slices.Contains(own, name) {
				t.Errorf("the model server of session %s was given %s: %v", session, name, has)
			}
		}
	}
	search(t, "what clients were sent", said)
	if !strings.Contains(string(said), "you are Bearer ******") {
		t.Error("no server repeated its token: the search would find little")
	}
	if !strings.Contains(string(said), `"outcome":"token"`) {
		t.Error("no server was given the token of the host")
	}
	exported.mu.Lock()
	defer exported.mu.Unlock()
	out := exported.got
	if export == "file" {
		if out, err = os.ReadFile(spans); err != nil {
			t.Error(err)
		}
	} else if keys := strings.Join(exported.keys, "\n"); !strings.Contains(keys, marker("otelheader")) {
		t.Errorf("the receiver was shown %s", keys)
	}
	search(t, "what was exported", out)
	if strings.Contains(string(out), marker("spoken")) { // a conversation keeps what the model says
		t.Error("what was exported holds a secret that the model said")
	}
	for _, want := range []string{"execute_tool bash", "gen_ai.tool.call.result", "gen_ai.input.messages", "session-one hello", "it holds ", "gen_ai.client.token.usage"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%q is not among the %d bytes that were exported: the search would find nothing", want, len(out))
		}
	}
	search(t, "stderr", []byte(s.stderr.String()))
	if !strings.Contains(s.stderr.String(), "client rejected") {
		t.Error("the log tells nothing: the search would find nothing")
	}
	files, kept := 0, 0
	err = filepath.WalkDir(home, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		private(t, path, info)
		search(t, "the name of "+path, []byte(path))
		if d.Type().IsRegular() {
			files++
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if filepath.Base(filepath.Dir(path)) == "mcp-oauth" && filepath.Ext(path) == ".json" { // kept, as the host wants it
				kept++
				b = []byte(strings.ReplaceAll(string(b), marker("login"), ""))
			}
			search(t, path, b)
		}
		return nil
	})
	if err != nil || files < 3 || kept != 2 {
		t.Errorf("%d files, %d of tokens, %v", files, kept, err)
	}
}

// logIn has a user approve what session one asks for, and waits for both servers.
func logIn(t *testing.T, c *client, g *mcptest.Guarded, in <-chan string) {
	t.Helper()
	var login struct{ AuthorizationURL string }
	c.ok("session.mcp.list", obj{"sessionId": "one"}, nil)
	c.ok("session.mcp.oauth.login", obj{"sessionId": "one", "serverName": "guarded"}, &login)
	if _, err := g.Approve(login.AuthorizationURL); err != nil {
		t.Fatal(err)
	}
	for there := map[string]bool{}; len(there) < 2; {
		select {
		case name := <-in:
			there[name] = true
		case <-time.After(watchdog):
			t.Fatalf("connected to %v only", there)
		}
	}
}

// search looks for all secrets.
func search(t *testing.T, where string, b []byte) {
	t.Helper()
	for _, name := range secretNames {
		if i := strings.Index(string(b), marker(name)); i >= 0 {
			t.Errorf("%s: the secret %s:\n…%s…", where, name, b[max(0, i-300):min(len(b), i+60)])
		}
	}
}

// private checks that nobody else may look: whatever the umask, here 0.
func private(t *testing.T, path string, info fs.FileInfo) {
	t.Helper()
	if filepath.Base(path) == "001" { // the test's own directory
		return
	}
	switch mode := info.Mode(); {
	case mode.IsDir() && mode.Perm() != 0o700, mode.IsRegular() && mode.Perm() != 0o600:
		t.Errorf("%s has mode %v", path, mode)
	}
}

// children are the processes below one.
func children(pid int) []int {
	parents := map[int]int{}
	dirs, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, d := range dirs {
		b, err := os.ReadFile(d)
		if err != nil {
			continue
		}
		text := string(b)
		fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
		id, _ := strconv.Atoi(filepath.Base(filepath.Dir(d)))
		parents[id], _ = strconv.Atoi(fields[1])
	}
	var out []int
	for id := range parents {
		for at := parents[id]; at > 1; at = parents[at] {
			if at == pid {
				out = append(out, id)
				break
			}
		}
	}
	return out
}

// newBrainless is a service of accounts that knows nobody, and repeats what it was
// sent.
func newBrainless(t *testing.T) string {
	b := newBrain(t, nil)
	b.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintf(w, `{"message":"Bad credentials %s"}`, r.Header.Get("Authorization"))
	})
	return b.URL
}
