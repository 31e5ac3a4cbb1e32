package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/transom-run/transom/model/modelfile"
	"github.com/transom-run/transom/server"
	"github.com/transom-run/transom/sessionfs/sessionfstest"
)

// serveFiles answers what the server asks of a client that keeps files, until it is
// closed. before, where given, is called with each request before it is answered.
func (c *client) serveFiles(files map[string]*sessionfstest.Memory, before func(op string, p fileParams)) {
	go func() {
		for i := 0; ; i++ {
			f, ok := c.frameAt(i)
			if !ok {
				return
			}
			op, is := strings.CutPrefix(f.Method, "sessionFs.")
			if !is {
				continue
			}
			var p fileParams
			if err := json.Unmarshal(f.Params, &p); err != nil {
				c.t.Error(err)
			}
			if before != nil {
				before(op, p)
			}
			c.answer(asked{id: f.ID}, answerFile(files[p.SessionID], op, p))
		}
	}()
}

// frameAt waits for a frame; false where the connection has ended.
func (c *client) frameAt(i int) (frame, bool) {
	for {
		c.mu.Lock()
		moved, closed, n := c.moved, c.closed, len(c.frames)
		var f frame
		if i < n {
			f = c.frames[i]
		}
		c.mu.Unlock()
		if i < n {
			return f, true
		}
		if closed {
			return frame{}, false
		}
		<-moved
	}
}

type fileParams struct {
	SessionID, Path, Content, Src, Dest, Query, QueryType string
	Recursive, Force                                      bool
}

// answerFile is a client's answer, of the SDKs' forms.
func answerFile(m *sessionfstest.Memory, op string, p fileParams) any {
	if m == nil {
		return obj{"code": "UNKNOWN", "message": "no such session", "error": obj{"code": "UNKNOWN", "message": "no such session"}}
	}
	ctx := context.Background()
	said := func(err error) any {
		switch {
		case err == nil:
			return nil
		case errors.Is(err, fs.ErrNotExist):
			return obj{"code": "ENOENT", "message": "not there"}
		}
		return obj{"code": "UNKNOWN", "message": err.Error()}
	}
	switch op {
	case "readFile":
		text, err := m.ReadFile(ctx, p.Path)
		return obj{"content": text, "error": said(err)}
	case "writeFile":
		return said(m.WriteFile(ctx, p.Path, p.Content, 0))
	case "appendFile":
		return said(m.AppendFile(ctx, p.Path, p.Content, 0))
	case "exists":
		ok, _ := m.Exists(ctx, p.Path)
		return obj{"exists": ok}
	case "stat":
		i, err := m.Stat(ctx, p.Path)
		return obj{"isFile": !i.Dir, "isDirectory": i.Dir, "size": i.Bytes, "mtime": i.Modified, "birthtime": i.Modified, "error": said(err)}
	case "mkdir":
		return said(m.Mkdir(ctx, p.Path, p.Recursive, 0))
	case "readdirWithTypes":
		entries, err := m.ReadDir(ctx, p.Path)
		list := []obj{}
		for _, e := range entries {
			kind := "file"
			if e.Dir {
				kind = "directory"
			}
			list = append(list, obj{"name": e.Name, "type": kind})
		}
		return obj{"entries": list, "error": said(err)}
	case "rm":
		return said(m.Remove(ctx, p.Path, p.Recursive, p.Force))
	case "rename":
		return said(m.Rename(ctx, p.Src, p.Dest))
	}
	return obj{"error": obj{"code": "UNKNOWN", "message": "not served: " + op}}
}

var provider = obj{"initialCwd": "/", "sessionStatePath": "/state", "conventions": "posix"}

// A client keeps a session's files; while the runtime waits for it, it may ask for
// anything else on the same connection.
func TestSessionFs(t *testing.T) {
	w := play(t, modelfile.Message{Content: "hello"}, modelfile.Message{Content: "again"})
	c := w.connect(t)
	c.ok("sessionFs.setProvider", provider)
	m := sessionfstest.New()
	nested, turn := 0, true
	c.serveFiles(map[string]*sessionfstest.Memory{"s": m}, func(op string, p fileParams) {
		if op != "appendFile" || !turn {
			return
		}
		for _, method := range []string{"ping", "session.getMessages"} {
			nested++
			id := fmt.Sprintf(`"nested-%d"`, nested)
			body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"%s","params":{"sessionId":"s"}}`, id, method)
			c.write(fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body))
			for i := 0; ; i++ {
				f, ok := c.frameAt(i)
				if !ok {
					return
				}
				if string(f.ID) == id {
					if f.Error != nil {
						t.Errorf("%s while it writes: %+v", method, f.Error)
					}
					break
				}
			}
		}
	})
	c.create("s")
	from := c.count()
	c.prompt("s", "hi")
	c.idle(from)
	turn = false
	c.ok("session.plan.update", obj{"sessionId": "s", "content": "# P"})
	if got := m.Get("/state/plan.md"); got != "# P" {
		t.Errorf("plan.md is %q", got)
	}
	c.fails(-32602, "session.workspaces.createFile", obj{"sessionId": "s", "path": "../../x", "content": "evil"})
	c.ok("session.workspaces.createFile", obj{"sessionId": "s", "path": "d/f", "content": "F"})
	var list struct{ Files []string }
	c.ok("session.workspaces.listFiles", obj{"sessionId": "s"}, &list)
	if fmt.Sprint(list.Files) != "[d/f]" {
		t.Errorf("files %v", list.Files)
	}
	c.fails(-32010, "session.workspaces.readFile", obj{"sessionId": "s", "path": "nothing"})
	c.ok("session.destroy", obj{"sessionId": "s"})
	if log := m.Get("/state/events.jsonl"); !strings.Contains(log, "hello") || !strings.Contains(log, "session.shutdown") {
		t.Errorf("events.jsonl:\n%s", log)
	}
	c.ok("session.resume", obj{"sessionId": "s"})
	from = c.count()
	c.prompt("s", "more")
	c.idle(from)
	c.ok("session.delete", obj{"sessionId": "s"})
	if log := m.Get("/state/events.jsonl"); log != "" {
		t.Errorf("after the deletion:\n%s", log)
	}
}

// A client keeps what it created: another one with files of its own is not asked
// about it, and a session whose client has gone waits for one that resumes it.
func TestSessionFsOwners(t *testing.T) {
	w := play(t, modelfile.Message{Content: "one"}, modelfile.Message{Content: "two"})
	dial := w.tcp(t)
	a, b := dial(), dial()
	ours := sessionfstest.New()
	for _, c := range []*client{a, b} {
		c.ok("connect", obj{})
		c.ok("sessionFs.setProvider", provider)
	}
	a.serveFiles(map[string]*sessionfstest.Memory{"s": ours}, nil)
	b.serveFiles(map[string]*sessionfstest.Memory{"s": ours, "t": sessionfstest.New()}, nil)
	a.create("s")
	b.create("t")
	from := a.count()
	a.prompt("s", "hi")
	a.idle(from)
	b.ok("session.resume", obj{"sessionId": "s"}) // the first goes on keeping it
	b.ok("session.plan.update", obj{"sessionId": "s", "content": "P"})
	for i := range b.count() {
		if f := b.at(i); strings.HasPrefix(f.Method, "sessionFs.") && strings.Contains(string(f.Params), `"s"`) {
			t.Errorf("the other client is asked: %s %s", f.Method, f.Params)
		}
	}
	a.conn.Close()
	a.awaitClosed()
	for deadline := time.Now().Add(watchdog); ; { // the server has to notice that the first has gone
		f := b.reply(b.send("session.plan.update", obj{"sessionId": "s", "content": "Q"}))
		if f.Error == nil {
			break
		}
		if f.Error.Code != -32018 || time.Now().After(deadline) {
			t.Fatalf("resume: %+v", f.Error)
		}
	}
	from = b.count()
	b.prompt("s", "go on")
	b.idle(from)
	if log := ours.Get("/state/events.jsonl"); !strings.Contains(log, "two") {
		t.Errorf("after the change:\n%s", log)
	}
	stranger := dial()
	stranger.ok("connect", obj{})
	if msg := stranger.fails(-32018, "session.create", obj{"sessionId": "u"}); !strings.Contains(msg, "keeps this session's files") {
		t.Errorf("a client that keeps nothing: %s", msg)
	}
	other := obj{"initialCwd": "/", "sessionStatePath": "/elsewhere", "conventions": "posix"}
	stranger.fails(-32012, "sessionFs.setProvider", other)
	stranger.fails(-32602, "sessionFs.setProvider", obj{"initialCwd": "/", "sessionStatePath": "/s", "conventions": "vms"})
}

// What a client answers that is none of the documented forms is an error, and ends
// nothing but what asked.
func TestSessionFsNonsense(t *testing.T) {
	for _, nonsense := range []any{nil, "x", 3, []any{}, obj{"exists": "perhaps"}, obj{"error": obj{"code": "ENOENT"}}} {
		w := newWorld(t, nil, server.Config{})
		c := w.connect(t)
		c.ok("sessionFs.setProvider", provider)
		id := c.send("session.create", obj{"sessionId": "s"})
		c.answer(c.awaitAsked(0, "sessionFs.exists"), nonsense)
		if f := c.reply(id); f.Error == nil {
			t.Errorf("%v: %s", nonsense, f.Result)
		}
		c.ok("ping", obj{})
	}
}
