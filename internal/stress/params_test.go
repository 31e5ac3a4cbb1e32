//go:build unix

package stress

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
)

// sessionIDs are the sessions that clients of a run fight over.
var sessionIDs = []string{"s0", "s1", "s2", "s3"}

// oddIDs are ids that should name no session; some of them may.
var oddIDs = []string{"nobody's", "../s0", "s0/../s1", "S0", strings.Repeat("x", 300), "a\x00b", ".", "\u202e"}

// dice makes what a client does next, from a seed.
type dice struct {
	*rand.Rand
	dir string // where sessions work
	// open are ids that were seen on requests and questions, the newest last.
	open func() []string
}

func (d dice) of(list ...string) string { return list[d.IntN(len(list))] }

// chance is true in n of 100 cases.
func (d dice) chance(n int) bool { return d.IntN(100) < n }

func (d dice) session() string {
	if d.chance(3) {
		return d.of("", "nobody's", "../s0", "s0/../s1", "S0", strings.Repeat("x", 300), "a\x00b", ".", "\u202e")
	}
	return sessionIDs[d.IntN(len(sessionIDs))]
}

// text is words, or what breaks readers of words.
func (d dice) text() string {
	switch d.IntN(12) {
	case 0:
		return ""
	case 1:
		return "\u2028 \u2029 \u0085 \x00 \r\n \ufeff"
	case 2:
		return strings.Repeat("long ", 4000)
	case 3:
		return "../../../etc/passwd"
	case 4:
		return `"}],"jsonrpc":"2.0"`
	case 5:
		return "\u202eabc\U0001F600e\u0301"
	}
	return fmt.Sprintf("word%d", d.IntN(1000))
}

// member is a value for a member of params: of the kind that it should be, mostly.
func (d dice) member(name string) any {
	if d.chance(6) {
		return []any{nil, true, -1, 1e300, "x", []any{}, obj{}, obj{"a": []any{obj{}}}, strings.Repeat("[", 50)}[d.IntN(9)]
	}
	switch name {
	case "sessionId", "remoteSessionId":
		return d.session()
	case "sessionIds":
		return []string{d.session(), d.session()}
	case "command":
		return d.of("echo x", "true", "sleep 0.02", "exit 3", "", "cat nothing")
	case "path", "newPath", "oldPath", "from", "to", "filename", "name", "directory", "file":
		return d.of("a.txt", "sub/b.txt", "sub", "../x", filepath.Join(filepath.Dir(d.dir), "outside"), "..", "", ".", "a\x00", "link", d.dir, strings.Repeat("d/", 200)+"x", "plan.md", "events.jsonl")
	case "workingDirectory", "cwd":
		return d.of(d.dir, d.dir, filepath.Dir(d.dir), "relative", "/nowhere", "")
	case "requestId", "id", "itemId", "processId", "handle", "toolCallId", "eventId", "cursor":
		if open := d.open(); len(open) > 0 && d.chance(70) {
			return open[d.IntN(len(open))]
		}
		return d.text()
	case "mode":
		return d.of("enqueue", "immediate", "plan", "interactive", "autopilot", "allow-all", "manual", "off", "nonsense")
	case "kind":
		return d.of("approve-once", "approve-for-session", "reject", "user-not-available", "no-result", "commands", "read", "write", "remote", "resumeLast")
	case "result", "response", "decision", "approval", "rule":
		return []any{obj{"kind": d.member("kind")}, obj{"textResultForLlm": d.text(), "resultType": d.of("success", "failure", "rejected", "denied", "x")}, d.text(), obj{"approved": true}}[d.IntN(4)]
	case "enabled", "paused", "wait", "wasFreeform", "all", "recursive", "approveAll", "required", "unrestricted", "overwrite", "streaming", "continuePendingWork", "disableResume", "dryRun":
		return d.chance(50)
	case "index", "fromIndex", "toIndex", "limit", "max", "offset", "count", "timeout", "waitMs", "maxAgeDays", "olderThanDays", "position":
		return d.IntN(12) - 1
	case "values", "paths", "types", "directories", "names", "keys", "rules", "add", "remove", "events":
		return []string{d.text() + "-xyzzy", d.text() + "-plugh"}
	case "settings":
		return obj{d.of("autoLogin", "model", "other"): d.member("x")}
	case "modelId", "model":
		return d.of("m", "m2", "", "none/such")
	case "level":
		return d.of("info", "warning", "error", "fatal")
	}
	return d.text()
}

// members are the names that params have, over all methods.
var members = strings.Fields(`prompt displayPrompt message mode agentMode model modelId reasoningEffort name title path newPath oldPath from to content
	text index fromIndex toIndex limit max offset cursor direction eventType types handle requestId id itemId processId command args signal timeout cwd
	workingDirectory result response decision error values settings enabled paused wait level summary sessionIds prefix context level kind rule rules add remove
	paths directories required approveAll unrestricted answer wasFreeform approved action question filename recursive overwrite days maxAgeDays dryRun
	toolCallId data token host login key approval url urls trusted input action events filter waitMs continuePendingWork disableResume position topic`)

// params are params for any method: an object that may fit, or may not.
func (d dice) params(session string) []byte {
	if d.chance(4) {
		return []byte(d.of("null", "[]", `"x"`, "7", "true", `{"sessionId":{}}`, `[{"sessionId":"s0"}]`, `{"sessionId":"s0","sessionId":"s1"}`))
	}
	p := obj{"sessionId": session}
	for range d.IntN(7) {
		name := members[d.IntN(len(members))]
		p[name] = d.member(name)
	}
	if d.chance(5) {
		delete(p, "sessionId")
	}
	return encode(p)
}

// encode is v as JSON.
func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		return []byte("{}")
	}
	return b
}

// garbage is a body that is no message, or one that nobody waits for.
func (d dice) garbage() []byte {
	return []byte(d.of("", "{", "[]", "null", "\xff\xfe", `{"jsonrpc":"2.0"}`, `{"jsonrpc":"2.0","id":99999999,"result":{}}`,
		`{"jsonrpc":"2.0","id":"x","error":{"code":1,"message":"m"}}`, `{"jsonrpc":"2.0","method":"session.send","params":{"sessionId":"s0","prompt":"notified"}}`,
		`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1}}`, `{"jsonrpc":"1.0","id":1,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":null,"method":"ping"}`, `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, strings.Repeat("[", 5000)))
}
