package server_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/transom-run/transom/eventlog/memlog"
	"github.com/transom-run/transom/model/modelfile"
	"github.com/transom-run/transom/model/scripted"
	"github.com/transom-run/transom/server"
)

// A session whose turn runs in another process is free again by itself.
func TestBusyElsewhereIsRetryable(t *testing.T) {
	store := memlog.New()
	here := newWorldIn(t, store, scripted.New(scripted.Config{Replies: []modelfile.Message{scripted.Call("slow", `{}`)}}), server.Config{}).connect(t)
	there := newWorldIn(t, store, scripted.New(scripted.Config{}), server.Config{}).connect(t)
	here.create(id1, hostTool("slow"))
	here.prompt(id1, "go")
	here.eventAt(0, "external_tool.requested")
	f := there.reply(there.send("session.resume", obj{"sessionId": id1}))
	if e := f.Error; e == nil || e.Code != -32012 || e.Data.Kind != "conflict" || !e.Data.Retryable || !strings.Contains(e.Message, "busy") {
		t.Errorf("resumed while its turn runs elsewhere: %+v", f)
	}
	// An id that exists does not go away.
	f = there.reply(there.send("session.create", obj{"sessionId": id1}))
	if e := f.Error; e == nil || e.Code != -32012 || e.Data.Retryable {
		t.Errorf("created twice: %+v", f)
	}
}

// What a host brings is its own fault, and said before anything is made.
func TestSettingsThatCannotBe(t *testing.T) {
	c := play(t).connect(t)
	missing := filepath.Join(t.TempDir(), "missing")
	bad := []obj{
		{"workingDirectory": missing},
		{"provider": obj{"type": "openai", "baseUrl": "nohost"}, "model": "m"},
	}
	for _, settings := range bad {
		settings["sessionId"] = id1
		c.fails(-32602, "session.create", settings)
	}
	c.create(id1)
	for _, settings := range bad {
		c.fails(-32602, "session.resume", settings)
	}
	if msg := c.fails(-32602, "session.options.update", obj{"sessionId": id1, "workingDirectory": missing}); !strings.Contains(msg, missing) {
		t.Error(msg)
	}
	c.ok("session.options.update", obj{"sessionId": id1, "workingDirectory": t.TempDir()})
}
