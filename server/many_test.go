package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/eventlog/filelog"
	"github.com/transom-run/transom/mcp/host"
	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/server"
)

// caller is a model that calls one tool and then has done.
type caller string

func (c caller) Stream(_ context.Context, req *model.Request) iter.Seq2[model.Chunk, error] {
	out := model.Chunk{Text: "done", Finish: "stop"}
	if req.Messages[len(req.Messages)-1].Role == model.User {
		out = model.Chunk{Call: &model.CallChunk{ID: "c", Name: string(c), Arguments: "{}"}, Finish: "tool_calls"}
	}
	return func(yield func(model.Chunk, error) bool) { yield(out, nil) }
}

// mcpAnswer is what a small MCP server of the older generation, which keeps nothing,
// answers to a request; nil is no answer.
func mcpAnswer(body []byte) []byte {
	var r struct {
		ID     json.RawMessage
		Method string
	}
	if json.Unmarshal(body, &r) != nil || r.ID == nil {
		return nil
	}
	answer := map[string]string{
		"initialize": `"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"small","version":"1"},"instructions":"Call it."}`,
		"tools/list": `"result":{"tools":[{"name":"call","description":"d","inputSchema":{"type":"object"}}]}`,
		"tools/call": `"result":{"content":[{"type":"text","text":"called"}]}`,
		"ping":       `"result":{}`,
	}[r.Method]
	if answer == "" {
		answer = `"error":{"code":-32601,"message":"Method not found"}`
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,%s}`, r.ID, answer)
}

// held is what this process holds.
type holding struct {
	objects           uint64 // of the heap, after collections
	goroutines        int
	handles, children int // 0 where the system does not tell
}

func holds() holding {
	var m runtime.MemStats
	for range 3 { // pools and finalizers take more than one
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	h := holding{objects: m.HeapObjects, goroutines: runtime.NumGoroutine()}
	fds, _ := os.ReadDir("/proc/self/fd")
	h.handles = len(fds)
	tasks, _ := filepath.Glob("/proc/self/task/*/children")
	for _, task := range tasks {
		pids, _ := os.ReadFile(task)
		h.children += len(strings.Fields(string(pids)))
	}
	return h
}

// A session with MCP servers costs what the first ones cost, however many there were
// before it, and leaves nothing behind: a loop of sessions that are created, used,
// left and deleted. What is compared is what is counted, never a time.
func TestManySessionsWithServers(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		answer := mcpAnswer(body)
		switch {
		case r.Method != http.MethodPost:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case answer == nil:
			w.WriteHeader(http.StatusAccepted)
		default:
			w.Header().Set("Content-Type", "application/json")
			w.Write(answer)
		}
	}))
	t.Cleanup(web.Close)
	store, err := filelog.New(filelog.Config{Home: t.TempDir(), SyncInterval: -1})
	if err != nil {
		t.Fatal(err)
	}
	rt, err := transom.Open(transom.Config{Store: store, Provider: caller("web-call"), Dir: t.TempDir(), Getenv: func(string) string { return "" }, MCP: host.New})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{rt: rt, srv: server.New(server.Config{Runtime: rt})}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), watchdog)
		defer cancel()
		if err := rt.Close(ctx); err != nil {
			t.Error(err)
		}
		if err := w.srv.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	})
	c := w.connect(t)
	one := func(n int) {
		t.Helper()
		id := fmt.Sprintf("00000000-0000-4000-8000-%012d", n)
		servers := obj{"web": obj{"type": "http", "url": web.URL}}
		if n%50 == 0 {
			servers["process"] = obj{"command": os.Args[0], "env": obj{smallServer: "1"}}
		}
		c.ok("session.create", obj{"sessionId": id, "mcpServers": servers, "requestPermission": true})
		c.ok("session.permissions.setApproveAll", obj{"sessionId": id, "enabled": true})
		c.prompt(id, "go")
		c.idle(0)
		var result struct {
			Success bool
			Result  struct{ Content string }
		}
		c.awaitEvent("tool.execution_complete", &result)
		if result.Result.Content != "called" {
			t.Fatalf("session %d: %+v\n%s", n, result, c.transcript())
		}
		c.ok("session.detach", obj{"sessionId": id})
		c.ok("session.delete", obj{"sessionId": id})
		c.forget()
	}
	// spent is what the sessions from one to another allocate, each on average.
	spent := func(from, to int) (objects, bytes uint64) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for n := from; n <= to; n++ {
			one(n)
		}
		runtime.ReadMemStats(&after)
		k := uint64(to - from + 1)
		return (after.Mallocs - before.Mallocs) / k, (after.TotalAlloc - before.TotalAlloc) / k
	}
	spent(1, 4)
	earlyObjects, earlyBytes := spent(5, 24)
	spent(25, 100)
	base := holds()
	spent(101, 480)
	lateObjects, lateBytes := spent(481, 500)
	t.Logf("a session: %d objects and %d bytes early, %d and %d late", earlyObjects, earlyBytes, lateObjects, lateBytes)
	if 2*lateObjects > 3*earlyObjects || 2*lateBytes > 3*earlyBytes {
		t.Errorf("a session allocates %d objects and %d bytes after 500 others, and %d and %d after 5", lateObjects, lateBytes, earlyObjects, earlyBytes)
	}
	var now holding
	again := time.NewTicker(20 * time.Millisecond) // what ends by itself takes a moment
	defer again.Stop()
	for end := time.Now().Add(watchdog); ; <-again.C {
		now = holds()
		if now.objects < base.objects+200 && now.goroutines <= base.goroutines && now.handles <= base.handles && now.children <= base.children || time.Now().After(end) {
			break
		}
	}
	t.Logf("held: %+v, then %+v", base, now)
	if now.goroutines > base.goroutines || now.handles > base.handles || now.children > base.children {
		t.Errorf("400 sessions left something: %+v, where there was %+v", now, base)
	}
	if now.objects >= base.objects+200 { // one of each session would be 400
		t.Errorf("400 sessions left %d objects", now.objects-base.objects)
	}
}

// smallServer is the variable that makes a process of this test an MCP server.
const smallServer = "TRANSOM_TEST_SMALL_SERVER"

// serveSmall is such a server, on stdin and stdout.
func serveSmall() {
	if os.Getenv(smallServer) == "" {
		return
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		if answer := mcpAnswer(lines.Bytes()); answer != nil {
			fmt.Printf("%s\n", answer)
		}
	}
	os.Exit(0)
}

// forget drops what the server said so far.
func (c *client) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.frames, c.sent = nil, map[int]int{}
}
