package cli

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/transom-run/transom/model/scripted"
)

// script writes a model file.
func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "script.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// plain leaves no setting of the person who runs the tests.
func plain(t *testing.T) (home string) {
	for _, name := range []string{
		"COPILOT_HOME", "COPILOT_MODEL", "COPILOT_PROVIDER_BASE_URL", "COPILOT_PROVIDER_API_KEY", "COPILOT_PROVIDER_BEARER_TOKEN",
		"COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN",
	} {
		t.Setenv(name, "")
	}
	return t.TempDir()
}

const helloScript = `
models: [demo]
conversations:
  - when: {user: {contains: again}}
    replies: [{content: "Hello again."}]
  - when: {user: {contains: clear}}
    replies:
      - content: Let me start afresh.
        tool_calls: [{name: clear_context, arguments: {prompt: "say fresh"}}]
      - content: Then not.
  - when: {user: {equals: say fresh}}
    replies: [{content: Fresh.}]
  - when: {user: {contains: fail}}
    replies: [{content: x, failures: [{status: 400, message: no such thing, times: always}]}]
  - when: {user: {contains: hang}}
    replies: [{content: "begun and never ended", chunks: ["begun", " and never ended"], failures: [{stall: 1, times: always}]}]
  - when: {}
    replies: [{content: "Hello to you.", chunk_size: 4}]
`

func TestRun(t *testing.T) {
	home, file := plain(t), script(t, helloScript)
	for _, extra := range [][]string{nil, {"--no-stream"}} {
		r := run(t, "", append([]string{"run", "-p", "Hello", "--script", file, "--home", home}, extra...)...)
		r.want(t, CodeOK, "· session ")
		if r.out != "Hello to you.\n" {
			t.Errorf("%q: stdout is %q", extra, r.out)
		}
	}
	r := run(t, "from stdin", "run", "-q", "-p", "-", "--script", file, "--home", home)
	if r.want(t, CodeOK); r.out != "Hello to you.\n" || r.err != "" {
		t.Errorf("got %+v", r)
	}
}

func TestRunGoesOn(t *testing.T) {
	home, file := plain(t), script(t, helloScript)
	r := run(t, "", "run", "-p", "Hello", "--script", file, "--home", home)
	id := strings.TrimSpace(strings.TrimPrefix(r.err, "· session "))
	for _, flags := range [][]string{{"--resume", id}, {"--resume", id[:5]}, {"--continue"}} {
		r = run(t, "", append([]string{"run", "-p", "again", "--script", file, "--home", home}, flags...)...)
		r.want(t, CodeOK, "· session "+id)
		if r.out != "Hello again.\n" {
			t.Errorf("%q: stdout is %q", flags, r.out)
		}
	}
	run(t, "", "sessions", "show", "--window", "--home", home).want(t, CodeOK, "Hello to you.", "Hello again.")
	run(t, "", "run", "-p", "x", "--script", file, "--home", home, "--resume", "nix").want(t, CodeNotFound, `"nix"`)
	run(t, "", "run", "-p", "x", "--script", file, "--home", home, "--resume", id, "--continue").want(t, CodeUsage, "exclude")
	run(t, "", "run", "-p", "x", "--script", file, "--home", t.TempDir(), "--continue").want(t, CodeNotFound, "no sessions")
}

func TestRunClears(t *testing.T) {
	home, file := plain(t), script(t, helloScript)
	args := []string{"run", "-p", "clear", "--clear-tool", "--script", file, "--home", home}
	for _, c := range []struct {
		name, stdin string
		flags       []string
		out, err    string
	}{
		{"yes", "what\ny\n", nil, "Let me start afresh.\nFresh.\n", "? Run clear_context {\"prompt\":\"say fresh\"}"},
		{"always", "a\n", nil, "Let me start afresh.\nFresh.\n", "context cleared: 2 messages removed"},
		{"no", "n\n", nil, "Let me start afresh.\nThen not.\n", "rejected"},
		{"nobody", "", nil, "Let me start afresh.\nThen not.\n", "nobody answers: denied"},
		{"unasked", "", []string{"--yes"}, "Let me start afresh.\nFresh.\n", "done: Cleared 2 messages."},
		{"all", "", []string{"--allow-all"}, "Let me start afresh.\nFresh.\n", "done: Cleared 2 messages."},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := run(t, c.stdin, append(args, c.flags...)...)
			r.want(t, CodeOK, c.err)
			if r.out != c.out {
				t.Errorf("stdout is %q, want %q", r.out, c.out)
			}
		})
	}
	// Without the tool the model's call of it is an error that it reads.
	r := run(t, "", "run", "-p", "clear", "--script", file, "--home", home)
	if r.want(t, CodeOK, "does not exist"); !strings.HasSuffix(r.out, "Then not.\n") {
		t.Errorf("stdout is %q", r.out)
	}
}

func TestRunJSON(t *testing.T) {
	home, file := plain(t), script(t, helloScript)
	r := run(t, "", "run", "-p", "Hello", "--json", "--script", file, "--home", home)
	if r.want(t, CodeOK); r.err != "" {
		t.Errorf("stderr is %q", r.err)
	}
	types := map[string]int{}
	for line := range strings.Lines(r.out) {
		var e struct{ Type string }
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		types[e.Type]++
	}
	for _, want := range []string{"session.start", "user.message", "assistant.message_delta", "assistant.message", "session.idle"} {
		if types[want] == 0 {
			t.Errorf("no %s among %v", want, types)
		}
	}
}

func TestRunFails(t *testing.T) {
	home, file := plain(t), script(t, helloScript)
	run(t, "", "run", "-p", "fail", "--script", file, "--home", home).want(t, CodeFailed, "transom: ", "no such thing")
	run(t, "", "run", "-p", "fail", "--json", "--script", file, "--home", home).want(t, CodeFailed, "no such thing", "session.error")
}

func TestRunAborts(t *testing.T) {
	home, file := plain(t), script(t, helloScript)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	// The interrupt comes once something of the answer was printed.
	root := newTestRoot(strings.NewReader(""), writerFunc(func(b []byte) (int, error) {
		if strings.Contains(string(b), "begun") {
			cancel()
		}
		return len(b), nil
	}), io.Discard, "run", "-p", "hang", "--script", file, "--home", home)
	if code := execute(ctx, root); code != CodeAborted {
		t.Errorf("exit code %d, want %d", code, CodeAborted)
	}
	run(t, "", "sessions", "show", "--home", home).want(t, CodeOK, "aborted    user initiated", "ended ")
	run(t, "", "run", "-p", "again", "--continue", "--script", file, "--home", home).want(t, CodeOK, "Hello again.")
}

// An interrupt while a question is open ends the run although nobody answers.
func TestRunAbortsAtQuestion(t *testing.T) {
	home, file := plain(t), script(t, helloScript)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stdin, hold := io.Pipe()
	defer hold.Close()
	root := newTestRoot(stdin, io.Discard, writerFunc(func(b []byte) (int, error) {
		if strings.Contains(string(b), "? Run") {
			cancel()
		}
		return len(b), nil
	}), "run", "-p", "clear", "--clear-tool", "--script", file, "--home", home)
	if code := execute(ctx, root); code != CodeAborted {
		t.Errorf("exit code %d, want %d", code, CodeAborted)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

func TestRunUsage(t *testing.T) {
	home, file := plain(t), script(t, helloScript)
	bad := script(t, "models: 7\n")
	for _, c := range []struct {
		want string
		args []string
	}{
		{"what should the model be asked", nil},
		{"what should the model be asked", []string{"-p", " \n"}},
		{"what should the model be asked", []string{"-p", "-"}},
		{"takes no arguments", []string{"Hello"}},
		{"--script and --replay play a file", []string{"-p", "x", "--script", file, "--base-url", "http://localhost:1"}},
		{"/nowhere/x.yaml: cannot be read", []string{"-p", "x", "--script", "/nowhere/x.yaml"}},
		{"--replay plays a recording", []string{"-p", "x", "--script", file, "--replay", file}},
		{"--replay plays a recording", []string{"-p", "x", "--record", home + "/x", "--replay", file}},
		{"/nowhere/x.yaml", []string{"-p", "x", "--replay", "/nowhere/x.yaml"}},
		{"/nowhere/x.yaml", []string{"-p", "x", "--script", file, "--record", "/nowhere/x.yaml"}},
		{"script.yaml:1: models", []string{"-p", "x", "--script", bad}},
		{"which server?", []string{"-p", "x", "--wire-model", "m"}},
		{"the variable NIX, which is not set", []string{"-p", "x", "--base-url", "http://localhost:1", "--model", "m", "--api-key-env", "NIX"}},
		{"not -1", []string{"-p", "x", "--context-window", "-1"}},
		{"invalid argument", []string{"-p", "x", "--context-window", "many"}},
	} {
		run(t, "", append([]string{"run", "--home", home}, c.args...)...).want(t, CodeUsage, c.want)
	}
	if entries, err := os.ReadDir(home); err != nil || len(entries) != 0 {
		t.Errorf("commands that were refused left %v, %v", entries, err)
	}
}

// server is an endpoint that answers from helloScript and remembers the request.
func server(t *testing.T) (url string, seen func() (key string, body map[string]any)) {
	t.Helper()
	p, err := scripted.Open(script(t, helloScript))
	if err != nil {
		t.Fatal(err)
	}
	var key string
	var body map[string]any
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		key, body = r.Header.Get("Authorization"), nil
		json.Unmarshal(raw, &body)
		r.Body = io.NopCloser(strings.NewReader(string(raw)))
		p.Handler().ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL + "/v1", func() (string, map[string]any) { return key, body }
}

func TestRunWithServer(t *testing.T) {
	home := plain(t)
	url, seen := server(t)
	t.Setenv("A_KEY", "secret-1")
	args := []string{"run", "-p", "Hello", "--home", home}

	r := run(t, "", append(args, "--base-url", url, "--model", "m", "--api-key-env", "A_KEY", "--wire-model", "wm", "--reasoning-effort", "low")...)
	r.want(t, CodeOK, "Hello to you.")
	if key, body := seen(); key != "Bearer secret-1" || body["model"] != "wm" || body["stream"] != true || body["reasoning_effort"] != "low" {
		t.Errorf("key %q, body %v", key, body)
	}

	// A key of the environment does not go to another server than its own.
	t.Setenv("COPILOT_PROVIDER_BASE_URL", "http://127.0.0.1:1/v1")
	t.Setenv("COPILOT_PROVIDER_API_KEY", "secret-2")
	t.Setenv("COPILOT_MODEL", "em")
	run(t, "", append(args, "--base-url", url, "--no-stream")...).want(t, CodeOK, "Hello to you.")
	if key, body := seen(); strings.Contains(key, "secret") || body["model"] != "em" || body["stream"] == true {
		t.Errorf("key %q, body %v", key, body)
	}

	t.Setenv("COPILOT_PROVIDER_BASE_URL", url)
	run(t, "", args...).want(t, CodeOK, "Hello to you.")
	if key, body := seen(); key != "Bearer secret-2" || body["model"] != "em" {
		t.Errorf("key %q, body %v", key, body)
	}
	run(t, "", append(args, "--wire-model", "wm")...).want(t, CodeOK, "Hello to you.")
	if key, body := seen(); key != "Bearer secret-2" || body["model"] != "wm" {
		t.Errorf("key %q, body %v", key, body)
	}
	// The same server on its other wires, by flags and by the environment.
	base := strings.TrimSuffix(url, "/v1")
	run(t, "", append(args, "--base-url", base, "--provider-type", "anthropic", "--model", "m")...).want(t, CodeOK, "Hello to you.")
	if _, body := seen(); body["max_tokens"] == nil || body["messages"] == nil {
		t.Errorf("body %v", body)
	}
	run(t, "", append(args, "--base-url", url, "--wire-api", "responses", "--model", "m")...).want(t, CodeOK, "Hello to you.")
	if _, body := seen(); body["input"] == nil {
		t.Errorf("body %v", body)
	}
	t.Setenv("COPILOT_PROVIDER_WIRE_API", "responses")
	run(t, "", append(args, "--wire-model", "wm")...).want(t, CodeOK, "Hello to you.")
	if _, body := seen(); body["input"] == nil || body["model"] != "wm" {
		t.Errorf("body %v", body)
	}
	run(t, "", append(args, "--base-url", url, "--model", "m")...).want(t, CodeOK, "Hello to you.")
	if _, body := seen(); body["messages"] == nil {
		t.Errorf("a wire of the environment's server was used for another: %v", body)
	}
	for _, s := range []string{"secret-1", "secret-2"} {
		if raw := run(t, "", "sessions", "show", "--json", "--home", home); strings.Contains(raw.out, s) {
			t.Errorf("%s is in the log", s)
		}
	}
}

func TestRunNamesTheServerThatRefuses(t *testing.T) {
	home := plain(t)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	defer s.Close()
	run(t, "", "run", "-p", "x", "--home", home, "--base-url", s.URL, "--model", "m").want(t, CodeFailed, strings.TrimPrefix(s.URL, "http://"))
}

// What a server said once is said again by the recording, without the server.
func TestRunRecordsAndReplays(t *testing.T) {
	home := plain(t)
	url, _ := server(t)
	t.Setenv("A_KEY", "secret-1")
	file := filepath.Join(t.TempDir(), "recorded.yaml")
	run(t, "", "run", "-p", "clear, secret-1", "--clear-tool", "-y", "--home", home, "--record", file,
		"--base-url", url, "--model", "m", "--api-key-env", "A_KEY").want(t, CodeOK, "Fresh.")
	if strings.Contains(string(read(t, file)), "secret-1") {
		t.Error("the key is in the recording")
	}
	r := run(t, "", "run", "-p", "Hello", "--home", home, "--record", file, "--base-url", url, "--model", "m")
	r.want(t, CodeOK, "Hello to you.")

	for range 2 {
		r = run(t, "", "run", "-p", "Hello", "--home", home, "--replay", file)
		if r.want(t, CodeOK); r.out != "Hello to you.\n" {
			t.Errorf("the replay said %q", r.out)
		}
	}
	run(t, "", "run", "-p", "Something else", "--home", home, "--replay", file).want(t, CodeFailed, "recorded.yaml", "Something else")

	// With the environment's model.
	t.Setenv("COPILOT_PROVIDER_BASE_URL", url)
	t.Setenv("COPILOT_MODEL", "em")
	run(t, "", "run", "-p", "Hello", "--home", home, "--record", file).want(t, CodeOK, "Hello to you.")
	run(t, "", "run", "-p", "Hello", "--home", home, "--replay", file).want(t, CodeOK, "Hello to you.")
}

// Without a model nothing is begun, so that nothing is left behind.
func TestRunWithoutModel(t *testing.T) {
	home := plain(t)
	run(t, "", "run", "-p", "x", "--home", home).want(t, CodeUsage, "which model?", "--base-url")
	run(t, "", "sessions", "list", "--home", home).want(t, CodeOK, "No sessions are stored")
	t.Setenv("COPILOT_PROVIDER_BASE_URL", "nohost")
	run(t, "", "run", "-p", "x", "--home", home).want(t, CodeUsage, "nohost")
	run(t, "", "sessions", "list", "--home", home).want(t, CodeOK, "No sessions are stored")
}

// A reason that was told is not told again.
func TestRunRetries(t *testing.T) {
	home := plain(t)
	file := script(t, `
models: [demo]
conversations:
  - when: {}
    replies: [{content: At last., failures: [{status: 503, message: too busy, retry_after: 1ms, times: 2}]}]
`)
	r := run(t, "", "run", "-p", "x", "--script", file, "--home", home)
	r.want(t, CodeOK, "At last.", "asked again, for the same reason")
	if n := strings.Count(r.err, "too busy"); n != 1 {
		t.Errorf("the reason is told %d times:\n%s", n, r.err)
	}
}
