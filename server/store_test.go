package server_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/eventlog/memlog"
	"github.com/transom-run/transom/model/scripted"
	"github.com/transom-run/transom/server"
)

const id2 = "22222222-2222-4222-8222-222222222222"

func TestStoreMethods(t *testing.T) {
	home, dir := t.TempDir(), t.TempDir()
	w := playFiles(t, home, dir, scripted.Say("hello"))
	c := w.connect(t)
	c.create(id1)
	c.create(id2)
	ids := func(params obj) []string {
		var out struct{ Sessions []struct{ SessionID string } }
		c.ok("sessions.list", params, &out)
		var list []string
		for _, s := range out.Sessions {
			list = append(list, s.SessionID)
		}
		return list
	}
	if got := ids(obj{}); len(got) != 0 {
		t.Errorf("sessions that nobody saved: %v", got)
	}
	c.ok("sessions.save", obj{"sessionId": id1})
	c.ok("sessions.save", obj{"sessionId": id1})
	c.ok("sessions.save", obj{"sessionId": "33333333-3333-4333-8333-333333333333"})
	c.prompt(id2, "hi")
	c.idle(0)
	earlier := time.Now().Add(-time.Hour) // file systems may give both the same time
	if err := os.Chtimes(filepath.Join(home, "session-state", id1, "events.jsonl"), earlier, earlier); err != nil {
		t.Fatal(err)
	}
	if got := ids(obj{"filter": obj{"cwd": dir}}); len(got) != 2 {
		t.Errorf("stored: %v", got)
	}
	if got := ids(obj{"filter": obj{"branch": "none"}}); len(got) != 0 {
		t.Errorf("of a branch: %v", got)
	}
	c.fails(-32602, "sessions.list", obj{"source": "moon"})
	one := func(method string, params obj) string {
		var out struct{ SessionID, FilePath string }
		c.ok(method, params, &out)
		return out.SessionID + out.FilePath
	}
	for _, tc := range []struct {
		method string
		params obj
		want   string
	}{
		{"sessions.findByPrefix", obj{"prefix": id1[:8]}, id1},
		{"sessions.findByPrefix", obj{"prefix": "3333333"}, ""},
		{"sessions.findByTaskId", obj{"taskId": "x"}, ""},
		{"sessions.getLastForContext", obj{}, id2},
		{"sessions.getLastForContext", obj{"context": obj{"cwd": dir}}, id2},
		{"sessions.getEventFilePath", obj{"sessionId": id1}, filepath.Join(home, "session-state", id1, "events.jsonl")},
	} {
		if got := one(tc.method, tc.params); got != tc.want {
			t.Errorf("%s %v: %q, want %q", tc.method, tc.params, got, tc.want)
		}
	}
	var enriched struct {
		Sessions []struct {
			SessionID, Name, Summary string
			Context                  struct{ Cwd string }
		}
	}
	c.ok("sessions.enrichMetadata", obj{"sessions": []obj{{"sessionId": id2, "name": "mine", "startTime": "x"}, {"sessionId": "unknown"}}}, &enriched)
	if e := enriched.Sessions; len(e) != 2 || e[0].Name != "mine" || e[0].Summary != "hi" || e[0].Context.Cwd != dir {
		t.Errorf("%+v", e)
	}
	var used struct{ InUse []string }
	c.ok("sessions.checkInUse", obj{"sessionIds": []string{id1, id2, "../x"}}, &used)
	if len(used.InUse) != 0 {
		t.Errorf("in use elsewhere: %v", used.InUse)
	}
	var pruned struct {
		DryRun                       bool
		Candidates, Deleted, Skipped []string
		FreedBytes                   int
	}
	c.ok("sessions.close", obj{"sessionId": id1})
	c.eventAt(0, "session.shutdown")
	c.ok("sessions.close", obj{"sessionId": id1})
	c.fails(-32010, "session.mode.get", obj{"sessionId": id1})
	c.ok("sessions.pruneOld", obj{"olderThanDays": 0, "dryRun": true}, &pruned)
	if !pruned.DryRun || !slices.Equal(pruned.Candidates, []string{id1}) || !slices.Equal(pruned.Skipped, []string{id2}) || len(pruned.Deleted) != 0 || pruned.FreedBytes == 0 {
		t.Errorf("%+v", pruned)
	}
	c.fails(-32602, "sessions.pruneOld", obj{})
	var freed struct{ FreedBytes map[string]int }
	c.ok("sessions.bulkDelete", obj{"sessionIds": []string{id1, id2, "44444444-4444-4444-8444-444444444444"}}, &freed)
	if len(freed.FreedBytes) != 2 || freed.FreedBytes[id2] == 0 {
		t.Errorf("%+v", freed)
	}
	if got := ids(obj{}); len(got) != 0 {
		t.Errorf("after all were deleted: %v", got)
	}
}

// Another runtime of the same home sees who has a session, and can get it.
func TestInUse(t *testing.T) {
	home := t.TempDir()
	a := playFiles(t, home, t.TempDir()).connect(t)
	b := playFiles(t, home, t.TempDir()).connect(t)
	a.create(id1)
	a.ok("sessions.save", obj{"sessionId": id1})
	inUse := func() []string {
		var used struct{ InUse []string }
		b.ok("sessions.checkInUse", obj{"sessionIds": []string{id1, id2}}, &used)
		return used.InUse
	}
	if diff := cmp.Diff([]string{id1}, inUse()); diff != "" {
		t.Error(diff)
	}
	snapshot := func(c *client) bool {
		var s struct{ AlreadyInUse bool }
		c.ok("session.metadata.snapshot", in(nil), &s)
		return s.AlreadyInUse
	}
	b.ok("session.resume", in(nil))
	if !snapshot(b) || snapshot(a) {
		t.Errorf("in use before it came: %v for the first, %v for the second", snapshot(a), snapshot(b))
	}
	a.ok("sessions.releaseLock", obj{"sessionId": id1})
	if snapshot(b) {
		t.Error("in use, though nobody else has it any more")
	}
	b.ok("sessions.releaseLock", obj{"sessionId": id1})
	if used := inUse(); len(used) != 0 {
		t.Errorf("still in use: %v", used)
	}
	b.ok("session.resume", in(nil))
	if snapshot(b) {
		t.Error("in use, though nobody has it")
	}
}

// Ending a session ends it for all; suspending leaves its work open.
func TestEndForAll(t *testing.T) {
	w := play(t, scripted.Call("host", `{}`), scripted.Say("done"))
	c, d := w.connect(t), w.connect(t)
	c.create(id1, hostTool("host"))
	d.ok("session.resume", in(obj{"disableResume": true}))
	c.prompt(id1, "go")
	var a ask
	c.awaitEvent("external_tool.requested", &a)
	d.ok("session.suspend", in(nil))
	c.fails(-32010, "session.mode.get", in(nil))
	if types, _ := c.events(id1, true); slices.Contains(types, "tool.execution_complete") || slices.Contains(types, "session.shutdown") {
		t.Errorf("suspending closed something: %v", types)
	}
	c.ok("session.resume", in(obj{"continuePendingWork": true, "tools": []obj{hostTool("host")}}))
	var success struct{ Success bool }
	c.ok("session.tools.handlePendingToolCall", in(obj{"requestId": a.RequestID, "result": "x"}), &success)
	if !success.Success {
		t.Error("the answer did not count")
	}
	c.idle(0)
	d.ok("session.resume", in(obj{"disableResume": true}))
	c.ok("session.shutdown", in(obj{"type": "error", "reason": "broken"}))
	var down struct{ ShutdownType, ErrorReason string }
	d.awaitEvent("session.shutdown", &down)
	if down.ShutdownType != "error" || down.ErrorReason != "broken" {
		t.Errorf("%+v", down)
	}
	c.fails(-32010, "session.shutdown", in(nil))
}

func TestUserSettings(t *testing.T) {
	home := t.TempDir()
	w := playFiles(t, home, t.TempDir())
	c := w.connect(t)
	get := func() map[string]struct {
		Value     any
		IsDefault bool
	} {
		var out struct {
			Settings map[string]struct {
				Value     any
				IsDefault bool
			}
		}
		c.ok("user.settings.get", obj{}, &out)
		return out.Settings
	}
	if s := get(); s["autoLogin"].Value != true || !s["autoLogin"].IsDefault {
		t.Errorf("%+v", s)
	}
	if err := os.WriteFile(filepath.Join(home, "settings.json"), []byte(`{"theirs":{"a":1},"autoLogin":true}`), 0o600); err != nil {
		t.Fatal(err)
	}
	c.ok("user.settings.set", obj{"settings": obj{"autoLogin": false, "model": "m"}})
	if s := get(); s["autoLogin"].Value != false || s["autoLogin"].IsDefault {
		t.Errorf("%+v", s)
	}
	var model struct{ ModelID string }
	c.create(id1)
	c.ok("session.model.getCurrent", in(nil), &model)
	if model.ModelID != "m" {
		t.Errorf("model %q", model.ModelID)
	}
	c.fails(-32602, "user.settings.set", obj{"settings": obj{"autoLogin": "yes"}})
	c.fails(-32602, "user.settings.set", obj{"settings": obj{"nothing": true}})
	c.ok("user.settings.set", obj{"settings": obj{"autoLogin": nil}})
	raw, err := os.ReadFile(filepath.Join(home, "settings.json"))
	var kept map[string]any
	if err != nil || json.Unmarshal(raw, &kept) != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"theirs": map[string]any{"a": 1.0}, "model": "m"}, kept); diff != "" {
		t.Error(diff)
	}
	if err := os.WriteFile(filepath.Join(home, "settings.json"), []byte(`{`), 0o600); err != nil {
		t.Fatal(err)
	}
	c.ok("user.settings.reload", obj{})
	if msg := c.fails(-32603, "user.settings.get", obj{}); !strings.Contains(msg, "settings.json") {
		t.Error(msg)
	}
}

// hub is GitHub as far as accounts go.
func hub(t *testing.T) *httptest.Server {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !strings.HasPrefix(token, "token-of-") {
			http.Error(rw, `{"message":"Bad credentials"}`, http.StatusUnauthorized)
			return
		}
		body := obj{
			"login": strings.TrimPrefix(token, "token-of-"), "copilot_plan": "business", "endpoints": obj{"api": "http://127.0.0.1:1"},
			"quota_snapshots": obj{"chat": obj{"entitlement": 100, "overage_count": 2, "overage_permitted": true, "percent_remaining": 75, "timestamp_utc": "2026-04-30T00:00:00Z"}},
		}
		_ = json.NewEncoder(rw).Encode(body) // the client has gone otherwise
	}))
	t.Cleanup(srv.Close)
	return srv
}

func TestAccounts(t *testing.T) {
	srv := hub(t)
	rt, err := transom.Open(transom.Config{Store: memlog.New(), Dir: "/work", Getenv: func(name string) string {
		if name == "COPILOT_DEBUG_GITHUB_API_URL" {
			return srv.URL
		}
		return ""
	}})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{rt: rt, srv: server.New(server.Config{Runtime: rt})}
	t.Cleanup(func() { w.end(t); http.DefaultClient.CloseIdleConnections() })
	c := w.connect(t)
	var auth struct {
		AuthInfo *struct{ Type, Host, Login string }
	}
	current := func() string {
		auth.AuthInfo = nil
		c.ok("account.getCurrentAuth", obj{}, &auth)
		if auth.AuthInfo == nil {
			return ""
		}
		return auth.AuthInfo.Login
	}
	if who := current(); who != "" {
		t.Errorf("signed in as %s", who)
	}
	c.fails(-32001, "account.getQuota", obj{})
	c.fails(-32001, "account.login", obj{"token": "nobody's-token"})
	c.fails(-32602, "account.login", obj{"token": "token-of-ada", "login": "bob"})
	c.fails(-32602, "account.login", obj{})
	c.ok("account.login", obj{"host": "https://github.com", "token": "token-of-ada"})
	c.ok("account.login", obj{"host": "https://github.com", "token": "token-of-bob", "login": "bob"})
	if who := current(); who != "bob" || auth.AuthInfo.Type != "user" {
		t.Errorf("%+v", auth.AuthInfo)
	}
	var users []struct {
		AuthInfo struct{ Login string }
		Token    string
	}
	c.ok("account.getAllUsers", obj{}, &users)
	if len(users) != 2 || users[0].AuthInfo.Login != "ada" || users[1].Token != "token-of-bob" {
		t.Errorf("%+v", users)
	}
	var quota struct {
		QuotaSnapshots map[string]struct {
			EntitlementRequests, UsedRequests int
			ResetDate                         string
		}
	}
	c.ok("account.getQuota", obj{}, &quota)
	if q := quota.QuotaSnapshots["chat"]; q.EntitlementRequests != 100 || q.UsedRequests != 25 || q.ResetDate == "" {
		t.Errorf("%+v", quota)
	}
	var more struct{ HasMoreUsers bool }
	c.ok("account.logout", obj{"authInfo": obj{"type": "user", "host": "https://github.com", "login": "bob"}}, &more)
	if who := current(); who != "ada" || !more.HasMoreUsers {
		t.Errorf("after a logout: %s, %v", who, more)
	}
	c.fails(-32010, "account.logout", obj{"authInfo": obj{"host": "https://github.com", "login": "bob"}})

	var status struct {
		IsAuthenticated              bool
		AuthType, Login, CopilotPlan string
	}
	c.create(id1)
	set := func(credentials obj) { c.ok("session.gitHubAuth.setCredentials", in(obj{"credentials": credentials})) }
	c.ok("session.gitHubAuth.setCredentials", in(nil))
	for _, tc := range []struct {
		credentials       obj
		typ, login, plan  string
		isAuthenticatedNo bool
	}{
		{obj{"type": "user", "host": "https://github.com", "login": "eve", "copilotUser": obj{"copilot_plan": "free"}}, "user", "eve", "free", false},
		{obj{"type": "token", "host": "https://github.com", "token": "token-of-zoe"}, "token", "zoe", "business", false},
		{obj{"type": "token", "host": "https://github.com", "token": "nobody's-token"}, "token", "", "", true},
	} {
		set(tc.credentials)
		status.Login, status.CopilotPlan = "", ""
		c.ok("session.gitHubAuth.getStatus", in(nil), &status)
		if status.IsAuthenticated == tc.isAuthenticatedNo || status.AuthType != tc.typ || status.Login != tc.login || status.CopilotPlan != tc.plan {
			t.Errorf("%v: %+v", tc.credentials, status)
		}
	}
	c.fails(-32014, "session.gitHubAuth.setCredentials", in(obj{"credentials": obj{"type": "hmac"}}))
	c.fails(-32602, "session.gitHubAuth.setCredentials", in(obj{"credentials": obj{"type": "user"}}))
}

// What is registered as a secret is in no error and no child process.
func TestSecretFilter(t *testing.T) {
	t.Setenv("MY_VARIABLE", "the-secret-value")
	c := playFiles(t, t.TempDir(), t.TempDir()).connect(t)
	c.create(id1)
	c.ok("secrets.addFilterValues", obj{"values": []string{"the-secret-value"}})
	var ran struct{ Output string }
	c.ok("session.shell.executeUserRequested", in(obj{"requestId": "r", "command": "echo x$MY_VARIABLE"}), &ran)
	if ran.Output != "x\n" {
		t.Errorf("output %q", ran.Output)
	}
}
