package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/transom-run/transom/mcp/mcptest"
)

// The tests run this test binary as transom.
func TestMain(m *testing.M) {
	mcptest.Main() // serves, where this process is to be an MCP server
	if os.Getenv("TRANSOM_TEST_MAIN") != "" {
		os.Unsetenv("TRANSOM_TEST_MAIN")
		main()
		return
	}
	os.Exit(m.Run())
}

const watchdog = 2 * time.Minute

// process is a transom that runs.
type process struct {
	*exec.Cmd
	t      *testing.T
	in     io.WriteCloser
	out    *bufio.Reader
	stderr *bytes.Buffer
}

func launch(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append([]string{"TRANSOM_TEST_MAIN=1", "HOME=" + t.TempDir(), "COPILOT_HOME=" + t.TempDir()}, env...)
	p := &process{Cmd: cmd, t: t, stderr: &bytes.Buffer{}}
	cmd.Stderr = p.stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.in, p.out = in, bufio.NewReader(out)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill := time.AfterFunc(watchdog, func() { cmd.Process.Kill() })
	t.Cleanup(func() {
		kill.Stop()
		cmd.Process.Kill()
	})
	return p
}

// exits waits for the end and checks the exit code.
func (p *process) exits(code int) {
	p.t.Helper()
	io.Copy(io.Discard, p.out)
	p.Wait()
	if got := p.ProcessState.ExitCode(); got != code {
		p.t.Errorf("%v exited with %d, want %d\n%s", p.Args[1:], got, code, p.stderr)
	}
}

func framed(body string) string { return fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body) }

func request(id int, method, params string) string {
	return framed(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params))
}

func readBody(t *testing.T, r *bufio.Reader) string {
	t.Helper()
	var n int
	if _, err := fmt.Fscanf(r, "Content-Length: %d\r\n\r\n", &n); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(r, b); err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func (p *process) ask(id int, method, params string) string {
	p.t.Helper()
	io.WriteString(p.in, request(id, method, params))
	for {
		b := readBody(p.t, p.out)
		if strings.Contains(b, fmt.Sprintf(`"id":%d,`, id)) {
			return b
		}
	}
}

func TestStdio(t *testing.T) {
	for _, args := range [][]string{
		{"--headless", "--no-auto-update", "--log-level", "error", "--stdio", "--no-auto-login"},
		{"--stdio", "--server"},
	} {
		p := launch(t, nil, args...)
		if a := p.ask(0, "connect", "{}"); !strings.Contains(a, `"protocolVersion":3`) {
			t.Errorf("connect: %s", a)
		}
		p.in.Close() // stdin ends: so does the process, in order
		p.exits(0)
	}
}

func TestRuntimeShutdown(t *testing.T) {
	p := launch(t, nil, "--headless", "--stdio")
	p.ask(1, "session.create", `{"sessionId":"s1"}`)
	if a := p.ask(2, "runtime.shutdown", "{}"); !strings.Contains(a, `"result":null`) {
		t.Errorf("runtime.shutdown: %s", a)
	}
	if a := p.ask(3, "ping", "{}"); !strings.Contains(a, "pong") {
		t.Errorf("the process does not wait for its client to go: %s", a)
	}
	p.in.Close()
	p.exits(0)
}

func TestSignal(t *testing.T) {
	p := launch(t, nil, "--headless", "--stdio")
	p.ask(1, "session.create", `{"sessionId":"s1"}`)
	p.Process.Signal(syscall.SIGTERM)
	p.exits(0)
}

var listening = regexp.MustCompile(`^CLI server listening on port (\d+)\n$`)

func (p *process) port() string {
	p.t.Helper()
	line, err := p.out.ReadString('\n')
	if err != nil {
		p.t.Fatal(err, p.stderr)
	}
	m := listening.FindStringSubmatch(line)
	if m == nil {
		p.t.Fatalf("stdout begins with %q", line)
	}
	return m[1]
}

func TestTCP(t *testing.T) {
	p := launch(t, nil, "--headless")
	p.in.Close() // as with </dev/null: no reason to end
	port := p.port()
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addrs { // nobody comes in from elsewhere
		ip := a.(*net.IPNet).IP
		if ip.IsLoopback() || ip.IsLinkLocalUnicast() {
			continue
		}
		if c, err := net.DialTimeout("tcp", net.JoinHostPort(ip.String(), port), watchdog); err == nil {
			t.Errorf("it listens on %s", c.RemoteAddr())
			c.Close()
		}
	}
	c, err := net.Dial("tcp", "127.0.0.1:"+port)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r := bufio.NewReader(c)
	io.WriteString(c, request(1, "ping", `{"message":"hi"}`))
	if a := readBody(t, r); !strings.Contains(a, "pong: hi") {
		t.Errorf("ping: %s", a)
	}
	io.WriteString(c, request(2, "runtime.shutdown", `{}`))
	readBody(t, r)
	c.Close()
	p.exits(0)
	if warning := p.stderr.String(); !strings.Contains(warning, "COPILOT_CONNECTION_TOKEN") {
		t.Errorf("no warning: %q", warning)
	}
}

func TestTCPToken(t *testing.T) {
	p := launch(t, []string{"COPILOT_CONNECTION_TOKEN=the-secret"}, "--headless", "--require-token", "--host", "localhost", "--log-level", "all")
	c, err := net.Dial("tcp", "localhost:"+p.port())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r := bufio.NewReader(c)
	io.WriteString(c, request(1, "ping", `{}`))
	if a := readBody(t, r); !strings.Contains(a, "AUTHENTICATION_REQUIRED") {
		t.Errorf("ping: %s", a)
	}
	io.WriteString(c, request(2, "connect", `{"token":"a-guess"}`))
	if a := readBody(t, r); !strings.Contains(a, "AUTHENTICATION_FAILED") {
		t.Errorf("connect: %s", a)
	}
	io.WriteString(c, request(3, "session.create", `{"sessionId":"s1"}`))
	if a := readBody(t, r); !strings.Contains(a, "AUTHENTICATION_REQUIRED") {
		t.Errorf("session.create: %s", a)
	}
	io.WriteString(c, request(4, "connect", `{"token":"the-secret"}`))
	if a := readBody(t, r); !strings.Contains(a, `"ok":true`) {
		t.Errorf("connect: %s", a)
	}
	p.Process.Signal(syscall.SIGTERM)
	p.exits(0)
	if log := p.stderr.String(); !strings.Contains(log, "wrong or missing token") || strings.Contains(log, "a-guess") || strings.Contains(log, "the-secret") {
		t.Errorf("the log: %s", log)
	}
}

func TestRefusesToStart(t *testing.T) {
	for _, tt := range []struct {
		name string
		env  []string
		args []string
		say  string
	}{
		{"no token where one is required", nil, []string{"--headless", "--require-token"}, "COPILOT_CONNECTION_TOKEN"},
		{"other machines without a token", nil, []string{"--headless", "--host", "0.0.0.0"}, "COPILOT_CONNECTION_TOKEN"},
		{"other machines by IPv6 without a token", nil, []string{"--headless", "--host", "::"}, "COPILOT_CONNECTION_TOKEN"},
		{"an empty token is none", []string{"COPILOT_CONNECTION_TOKEN="}, []string{"--headless", "--host", "0.0.0.0"}, "COPILOT_CONNECTION_TOKEN"},
		{"peer", nil, []string{"--headless", "--stdio", "--peer", "x"}, "NAME=tcp://HOST:PORT"},
		{"peer's token in an argument", nil, []string{"--headless", "--stdio", "--peer", "x=tcp://127.0.0.1:1?token=s"}, "token-env"},
		{"peer's token variable", nil, []string{"--headless", "--stdio", "--peer", "x=tcp://127.0.0.1:1?token-env=NOPE"}, "NOPE"},
		{"two peers of one name", nil, []string{"--headless", "--stdio", "--peer", "x=tcp://127.0.0.1:1", "--peer", "x=tcp://127.0.0.1:2"}, "two peers are named x"},
		{"stdio and no server", nil, []string{"--stdio"}, "--headless"},
		{"port and no server", nil, []string{"--port", "3000", "--yolo"}, "no use for --port, --yolo"},
		{"log level", nil, []string{"--headless", "--stdio", "--log-level", "loud"}, "loud"},
		{"token variable", nil, []string{"--headless", "--stdio", "--auth-token-env", "NOPE"}, "NOPE"},
		{"unknown flag", nil, []string{"--nonexistent-flag-for-testing", "--headless", "--no-auto-update", "--stdio"}, "nonexistent-flag-for-testing"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := launch(t, tt.env, tt.args...)
			// A client writes before it looks; its first request must not meet a
			// closed pipe.
			io.WriteString(p.in, "Content-Length: 52\r\n\r\n")
			if _, err := io.WriteString(p.in, `{"jsonrpc":"2.0","id":0,"method":"connect","params":{}}`); err != nil {
				t.Errorf("the second write: %v", err)
			}
			out, _ := io.ReadAll(p.out)
			p.Wait()
			if p.ProcessState.ExitCode() != 2 || !strings.Contains(p.stderr.String(), tt.say) || len(out) > 0 {
				t.Errorf("exit %d, stderr %q, stdout %q", p.ProcessState.ExitCode(), p.stderr, out)
			}
		})
	}
}
