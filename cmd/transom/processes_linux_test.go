package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/transom-run/transom/mcp/mcptest"
	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/model/modelfile"
	"github.com/transom-run/transom/model/scripted"
)

// ends matches what follows the name of a process in its stat: state and parent.
var ends = regexp.MustCompile(`\) ([A-Z]) (\d+) `)

// below lists the processes that run below one, and theirs.
func below(pid int) (all []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	children := map[int][]int{}
	for _, f := range files {
		raw, err := os.ReadFile(f)
		m := ends.FindSubmatch(raw)
		if err != nil || m == nil || m[1][0] == 'Z' {
			continue
		}
		parent, _ := strconv.Atoi(string(m[2]))
		child, _ := strconv.Atoi(strings.Split(f, "/")[2])
		children[parent] = append(children[parent], child)
	}
	for queue := []int{pid}; len(queue) > 0; queue = queue[1:] {
		all = append(all, children[queue[0]]...)
		queue = append(queue, children[queue[0]]...)
	}
	return all
}

// running lists those of some processes that run.
func running(pids []int) (left []int) {
	for _, pid := range pids {
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if m := ends.FindSubmatch(raw); err == nil && m != nil && m[1][0] != 'Z' {
			left = append(left, pid)
		}
	}
	return left
}

// until waits for something that is so after a while.
func until(t *testing.T, what string, f func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(watchdog); !f(); {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("%s: not within %s", what, watchdog)
		}
	}
}

// withServer is the params of a session that has an MCP server which starts a process
// of its own.
func withServer(id, endpoint string) string {
	cfg := mcptest.Server("forks")
	b, _ := json.Marshal(map[string]any{
		"sessionId": id, "model": "m", "provider": map[string]any{"type": "openai", "baseUrl": endpoint + "/v1"},
		"mcpServers": map[string]any{"s": map[string]any{"type": "local", "command": cfg.Command, "args": []string{}, "env": cfg.Env, "tools": []string{"*"}}},
	})
	return string(b)
}

// The processes of a session's MCP servers, and what those started, end with the
// session, with its client, and with the program.
func TestServersEndWithTheirSession(t *testing.T) {
	var replies []modelfile.Message
	for range 8 {
		replies = append(replies, scripted.Say("hello"))
	}
	endpoint := httptest.NewServer(scripted.New(scripted.Config{Replies: replies}).Handler())
	defer endpoint.Close()
	p := launch(t, []string{"PATH=" + os.Getenv("PATH")}, "--headless")
	p.in.Close()
	port := p.port()
	begin := func(ids ...string) net.Conn {
		c, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err != nil {
			t.Fatal(err)
		}
		q := &process{t: t, in: c, out: bufio.NewReader(c)}
		for _, id := range ids {
			q.ask(1, "session.create", withServer(id, endpoint.URL))
			if a := q.ask(2, "session.send", fmt.Sprintf(`{"sessionId":%q,"prompt":"go","wait":true}`, id)); strings.Contains(a, `"error"`) {
				t.Fatal(a)
			}
		}
		return c
	}
	var all []int
	left := func(n int) func() bool { return func() bool { return len(running(all)) == n } }
	c := begin("s1", "s2", "s3")
	defer c.Close()
	until(t, "three servers with a child each", func() bool { all = below(p.Process.Pid); return len(all) == 6 })
	q := &process{t: t, in: c, out: bufio.NewReader(c)}
	q.ask(3, "session.destroy", `{"sessionId":"s1"}`)
	until(t, "one ended with its session", left(4))
	q.ask(4, "session.delete", `{"sessionId":"s2"}`)
	until(t, "one was deleted", left(2))
	lost := begin("s4")
	until(t, "one more", func() bool { all = below(p.Process.Pid); return len(all) == 4 })
	lost.Close() // a client that is gone without a word
	until(t, "one ended with its client", left(2))
	if err := p.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	p.exits(0)
	until(t, "all ended with the program", left(0))
}

// A client that is gone without a word leaves nothing behind of fifty sessions whose
// servers were only being connected to, each with a process of its own.
func TestManyServersEndWithTheirClient(t *testing.T) {
	const sessions = 50
	p := launch(t, []string{"PATH=" + os.Getenv("PATH")}, "--headless")
	p.in.Close()
	c, err := net.Dial("tcp", "127.0.0.1:"+p.port())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	q := &process{t: t, in: c, out: bufio.NewReader(c)}
	for i := range sessions {
		a := q.ask(2*i, "session.create", fmt.Sprintf(`{"sessionId":"s%d","model":"m","provider":{"type":"openai","baseUrl":"http://127.0.0.1:1/v1"},
			"mcpServers":{"s":{"type":"local","command":"sh","args":["-c","sleep 300 & cat > /dev/null"],"tools":["*"]}}}`, i))
		if strings.Contains(a, `"error"`) {
			t.Fatal(a)
		}
		io.WriteString(c, request(2*i+1, "session.mcp.list", fmt.Sprintf(`{"sessionId":"s%d"}`, i)))
	}
	// Of each a shell, its sleep and its cat.
	until(t, "all servers", func() bool { return len(below(p.Process.Pid)) == 3*sessions })
	all := below(p.Process.Pid)
	c.Close()
	until(t, "all ended with their client", func() bool { return len(running(all)) == 0 })
	if left := below(p.Process.Pid); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if err := p.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	p.exits(0)
}

// Where nobody answers questions nothing runs that needs an answer: no file is
// written, no command run, nothing fetched, no tool of a host or a server called. The
// model reads of each call that it was denied.
func TestNothingRunsUnapproved(t *testing.T) {
	dir := t.TempDir()
	page := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a page was fetched") }))
	defer page.Close()
	calls := []model.Call{
		{ID: "c1", Name: "create", Arguments: fmt.Sprintf(`{"path":%q,"file_text":"x"}`, filepath.Join(dir, "created"))},
		{ID: "c2", Name: "bash", Arguments: fmt.Sprintf(`{"command":"touch %s","description":"d"}`, filepath.Join(dir, "touched"))},
		{ID: "c3", Name: "web_fetch", Arguments: fmt.Sprintf(`{"url":%q}`, page.URL)},
		{ID: "c4", Name: "s-where", Arguments: `{}`},
		{ID: "c5", Name: "mine", Arguments: `{}`},
	}
	m := scripted.New(scripted.Config{Replies: []modelfile.Message{scripted.Calls(calls...), scripted.Say("done")}})
	endpoint := httptest.NewServer(m.Handler())
	defer endpoint.Close()
	p := launch(t, []string{"PATH=" + os.Getenv("PATH")}, "--headless", "--stdio")
	settings := strings.TrimSuffix(withServer("s1", endpoint.URL), "}") +
		fmt.Sprintf(`,"workingDirectory":%q,"tools":[{"name":"mine","description":"d","parameters":{"type":"object"}}]}`, dir)
	p.ask(1, "session.create", settings)
	io.WriteString(p.in, request(2, "session.send", `{"sessionId":"s1","prompt":"go"}`))
	for idle := false; !idle; {
		var f frame
		if err := json.Unmarshal([]byte(readBody(t, p.out)), &f); err != nil {
			t.Fatal(err)
		}
		switch typ := f.Params.Event.Type; typ {
		case "external_tool.requested", "permission.requested":
			t.Errorf("%s: %s", typ, f.Params.Event.Data)
		case "session.idle":
			idle = true
		}
	}
	requests := m.Requests()
	if len(requests) != 2 {
		t.Fatalf("%d model calls", len(requests))
	}
	msgs := requests[1].Messages
	for i, msg := range msgs[len(msgs)-len(calls):] {
		if msg.CallID != calls[i].ID || !strings.Contains(msg.Text, "Permission denied") {
			t.Errorf("%s: the model was shown %q", calls[i].Name, msg.Text)
		}
	}
	if files, _ := os.ReadDir(dir); len(files) > 0 {
		t.Errorf("written: %v", files)
	}
	p.in.Close()
	p.exits(0)
}

// A command that was left running goes on over a clear and speaks into the new window
// only where the model asks for it.
func TestCommandAcrossAClear(t *testing.T) {
	dir := t.TempDir()
	m := scripted.New(scripted.Config{Replies: []modelfile.Message{
		scripted.Call("bash", `{"command":"while [ ! -e go ]; do sleep 0.02; done; echo OLD-WORK; touch done","description":"d","mode":"async","shellId":"talk"}`),
		scripted.Call("clear", `{}`), scripted.Say("fresh"), scripted.Say("next"),
		scripted.Call("read_bash", `{"shellId":"talk","delay":30}`), scripted.Say("read"),
	}})
	endpoint := httptest.NewServer(m.Handler())
	defer endpoint.Close()
	p := launch(t, []string{"PATH=" + os.Getenv("PATH")}, "--headless", "--stdio")
	p.ask(1, "session.create", fmt.Sprintf(`{"sessionId":"s1","model":"m","workingDirectory":%q,"provider":{"type":"openai","baseUrl":%q},
		"tools":[{"name":"clear","description":"d","parameters":{"type":"object"},"isTerminal":true}]}`, dir, endpoint.URL+"/v1"))
	p.ask(2, "session.permissions.setApproveAll", `{"sessionId":"s1","enabled":true}`)
	io.WriteString(p.in, request(3, "session.send", `{"sessionId":"s1","prompt":"go"}`))
	for idle := false; !idle; {
		var f frame
		if err := json.Unmarshal([]byte(readBody(t, p.out)), &f); err != nil {
			t.Fatal(err)
		}
		switch e := f.Params.Event; e.Type {
		case "external_tool.requested":
			var q struct{ RequestID string }
			if err := json.Unmarshal(e.Data, &q); err != nil {
				t.Fatal(err)
			}
			io.WriteString(p.in, request(4, "session.history.clearContext", `{"sessionId":"s1","prompt":"SEED"}`))
			io.WriteString(p.in, request(5, "session.tools.handlePendingToolCall", fmt.Sprintf(`{"sessionId":"s1","requestId":%q,"result":"x"}`, q.RequestID)))
		case "session.idle":
			idle = true
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	until(t, "the command's end", func() bool { _, err := os.Stat(filepath.Join(dir, "done")); return err == nil })
	p.ask(6, "session.send", `{"sessionId":"s1","prompt":"and?","wait":true}`)
	p.ask(7, "session.send", `{"sessionId":"s1","prompt":"look","wait":true}`)
	requests := m.Requests()
	if len(requests) != 6 {
		t.Fatalf("%d model calls", len(requests))
	}
	for i, r := range requests[2:5] {
		for _, msg := range r.Messages {
			if msg.Role != model.System && (strings.Contains(msg.Text, "OLD-WORK") || strings.Contains(msg.Text, "talk")) {
				t.Errorf("request %d of the new window holds %q", i, msg.Text)
			}
		}
	}
	if last := requests[5].Messages; !strings.Contains(last[len(last)-1].Text, "OLD-WORK") {
		t.Errorf("the model asked for it and was shown %q", last[len(last)-1].Text)
	}
	p.in.Close()
	p.exits(0)
}
