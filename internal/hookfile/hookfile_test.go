//go:build unix

package hookfile

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func parse(t testing.TB, text string) []Hook {
	t.Helper()
	hooks, problems, err := Parse([]byte(text), Source{Name: "p", Root: "/plug in"})
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	return hooks
}

// file is a file with one hook.
func file(event string, fields map[string]any) string {
	b, _ := json.Marshal(map[string]any{"version": 1, "hooks": map[string]any{event: []any{fields}}})
	return string(b)
}

// ask runs the hooks of an event in a directory, and returns their answer and what
// was warned of.
func ask(t testing.TB, hooks []Hook, event, input string) (out string, warned []string, err error) {
	t.Helper()
	dir := t.TempDir()
	r := Runner{
		Environ: func() []string { return []string{"PATH=" + os.Getenv("PATH"), "HOME=/h"} }, Dir: func() string { return dir },
		Warn: func(text string) { warned = append(warned, text) },
	}
	raw, err := r.Ask(context.Background(), hooks, event, json.RawMessage(input))
	return string(raw), warned, err
}

const call = `{"sessionId":"s","timestamp":0,"cwd":"/w","toolName":"bash","toolArgs":{"command":"ls"},"toolCallId":"c"}`

// Exit codes and outputs of commands, where they decide and where they do not.
func TestVerdicts(t *testing.T) {
	for name, tc := range map[string]struct {
		event, bash string
		out, warn   string // of the answer, of the warning; "" is none
		err         string
	}{
		"nothing":             {"preToolUse", `cat >/dev/null`, "", "", ""},
		"a text":              {"preToolUse", `echo checking`, "", "", ""},
		"allows":              {"preToolUse", `echo '{"permissionDecision":"allow"}'`, `{"permissionDecision":"allow"}`, "", ""},
		"denies":              {"preToolUse", `echo '{"permissionDecision":"deny","permissionDecisionReason":"no"}'`, `{"permissionDecision":"deny","permissionDecisionReason":"no"}`, "", ""},
		"exit 2":              {"preToolUse", `echo not here >&2; exit 2`, `{"permissionDecision":"deny","permissionDecisionReason":"not here"}`, "", ""},
		"exit 2 that allows":  {"preToolUse", `echo '{"permissionDecision":"allow","permissionDecisionReason":"r"}'; exit 2`, `{"permissionDecision":"deny","permissionDecisionReason":"r"}`, "", ""},
		"exit 1 that allows":  {"preToolUse", `echo '{"permissionDecision":"allow"}'; echo broken >&2; exit 1`, "", "", "exit code 1: broken"},
		"not there":           {"preToolUse", `no-such-program-here`, "", "", "exit code 127"},
		"killed":              {"preToolUse", `kill -9 $$`, "", "", "exit code 137"},
		"two objects":         {"preToolUse", `echo '{"permissionDecision":"allow"}'; echo '{"permissionDecision":"deny"}'`, "", "", "not one JSON object"},
		"too much":            {"preToolUse", `printf '{"a":"'; head -c 1100000 /dev/zero | tr '\0' x; printf '"}'`, "", "", "more than"},
		"progress":            {"preToolUse", "echo '{\"type\":\"progress\",\"message\":\"m\"}'\nprintf '{\\n\"permissionDecision\":\"ask\"}\\n'\necho '{\"type\":\"progress\"}'", `{"permissionDecision":"ask"}`, "", ""},
		"text above":          {"preToolUse", `echo checking; printf '{\n"permissionDecision":"deny"}'`, `{"permissionDecision":"deny"}`, "", ""},
		"text below":          {"preToolUse", `echo '{"permissionDecision":"allow"}'; echo checked`, "", "", "not one JSON object"},
		"much above":          {"preToolUse", `head -c 1100000 /dev/zero | tr '\0' '\n'; echo '{"permissionDecision":"deny"}'`, "", "", "more than"},
		"a list":              {"preToolUse", `printf '[\n{"a":1}\n]'`, "", "", ""},
		"byte order mark":     {"preToolUse", `printf '\357\273\277{"permissionDecision":"deny"}'`, `{"permissionDecision":"deny"}`, "", ""},
		"UTF-16":              {"preToolUse", `printf '\377\376{\0}\0'`, "", "", "UTF-16"},
		"in another case":     {"preToolUse", `echo '{"PermissionDecision":"deny","permissionDecision":"allow"}'`, `{"permissionDecision":"deny"}`, "", ""},
		"result":              {"postToolUse", `echo '{"additionalContext":"x"}'`, `{"additionalContext":"x"}`, "", ""},
		"result, exit 2":      {"postToolUse", `echo careful >&2; exit 2`, "", "careful", ""},
		"result, exit 1":      {"postToolUse", `exit 1`, "", "", "exit code 1"},
		"failure, exit 2":     {"postToolUseFailure", `echo try again; exit 2`, `{"additionalContext":"try again"}`, "", ""},
		"failure, exit 1":     {"postToolUseFailure", `exit 1`, "", "exit code 1", ""},
		"prompt":              {"userPromptSubmitted", `echo '{"modifiedPrompt":"other"}'`, "", "", ""},
		"prompt, exit 1":      {"userPromptSubmitted", `exit 1`, "", "exit code 1", ""},
		"start":               {"sessionStart", `echo '{"additionalContext":"c"}'`, `{"additionalContext":"c"}`, "", ""},
		"stop":                {"agentStop", `echo '{"decision":"block","reason":"more"}'`, `{"decision":"block","reason":"more"}`, "", ""},
		"in other words":      {"PreToolUse", `echo '{"hookSpecificOutput":{"permissionDecision":"deny","permissionDecisionReason":"no","updatedInput":{"a":1}}}'`, `"permissionDecision":"deny"`, "", ""},
		"in older words":      {"PreToolUse", `echo '{"decision":"block","reason":"no"}'`, `"permissionDecisionReason":"no"`, "", ""},
		"does not read stdin": {"preToolUse", `exec <&-; echo '{"permissionDecision":"allow"}'`, `{"permissionDecision":"allow"}`, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			hooks := parse(t, file(tc.event, map[string]any{"bash": tc.bash}))
			out, warned, err := ask(t, hooks, hooks[0].Event, strings.Replace(call, `"ls"`, `"`+strings.Repeat("x", 200_000)+`"`, 1))
			if out != tc.out && !(strings.HasPrefix(tc.out, `"`) && strings.Contains(out, tc.out)) {
				t.Errorf("answered %s, not %s", out, tc.out)
			}
			if (err != nil) != (tc.err != "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("error %v, not %q", err, tc.err)
			}
			if w := strings.Join(warned, " "); (w != "") != (tc.warn != "") || !strings.Contains(w, tc.warn) {
				t.Errorf("warned %q, not %q", w, tc.warn)
			}
		})
	}
}

// A hook that takes too long has not consented, and its whole group has ended when it
// is given up. Nor has one that the session no longer waits for.
func TestTime(t *testing.T) {
	hooks := parse(t, file("preToolUse", map[string]any{"bash": `sleep 300 & wait`, "timeoutSec": 0.5}))
	if _, _, err := ask(t, hooks, "preToolUse", call); err == nil || !strings.Contains(err.Error(), "did not end within 500ms") {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	gone := errors.New("the call was aborted")
	cancel(gone)
	r := Runner{Environ: os.Environ, Dir: t.TempDir}
	if _, err := r.Ask(ctx, parse(t, file("preToolUse", map[string]any{"bash": "sleep 300"})), "preToolUse", json.RawMessage(call)); !errors.Is(err, gone) {
		t.Errorf("%v", err)
	}
}

// Hooks run in their order with the same input; a denial ends the row, contexts are
// joined.
func TestOrder(t *testing.T) {
	hooks := parse(t, `{"hooks":{"preToolUse":[
		{"bash":"echo '{\"additionalContext\":\"a\",\"permissionDecision\":\"allow\"}'"},
		{"bash":"echo '{\"additionalContext\":\"b\",\"permissionDecision\":\"deny\"}'"},
		{"bash":"echo '{\"additionalContext\":\"c\",\"permissionDecision\":\"allow\"}'"}]}}`)
	out, _, err := ask(t, hooks, "preToolUse", call)
	if want := `{"additionalContext":"a\n\nb","permissionDecision":"deny"}`; out != want || err != nil {
		t.Errorf("%s %v, not %s", out, err, want)
	}
	// So does a decision that is not known, which denies as well.
	hooks = parse(t, `{"hooks":{"preToolUse":[
		{"bash":"echo '{\"permissionDecision\":\"block\"}'"}, {"bash":"echo '{\"permissionDecision\":\"allow\"}'"}]}}`)
	if out, _, err := ask(t, hooks, "preToolUse", call); out != `{"permissionDecision":"block"}` || err != nil {
		t.Errorf("%s %v", out, err)
	}
	if out, _, err := ask(t, hooks, "postToolUse", call); out != "" || err != nil {
		t.Errorf("an event without hooks: %s %v", out, err)
	}
}

// What a command is told, where it runs, and with which environment.
func TestCommand(t *testing.T) {
	out, _, err := ask(t, parse(t, file("preToolUse", map[string]any{"bash": `cat > in; printf '{"a":%s,"b":"%s"}' "$(cat in)" "$PLUGIN_ROOT|$CLAUDE_PLUGIN_ROOT|$COPILOT_PLUGIN_ROOT|$X|$(ls)"`, "env": map[string]string{"X": "${HOME}/$PLUGIN_ROOT/$NOBODY"}})), "preToolUse", call)
	want := `{"a":{"cwd":"/w","sessionId":"s","timestamp":0,"toolArgs":{"command":"ls"},"toolCallId":"c","toolName":"bash"},"b":"/plug in|/plug in|/plug in|/h//plug in/|in"}`
	if err != nil || out != want {
		t.Errorf("%v\n%s", err, cmp.Diff(want, out))
	}
	out, _, err = ask(t, parse(t, file("PreToolUse", map[string]any{"exec": "sh", "args": []string{"-c", `printf '{"a":%s,"b":"%s"}' "$(cat)" "$0"`, "${PLUGIN_ROOT}/x"}})), "preToolUse", call)
	want = `{"a":{"cwd":"/w","hook_event_name":"PreToolUse","session_id":"s","timestamp":"1970-01-01T00:00:00.000Z","tool_call_id":"c","tool_input":{"command":"ls"},"tool_name":"Bash"},"b":"/plug in/x"}`
	if err != nil || out != want {
		t.Errorf("%v\n%s", err, cmp.Diff(want, out))
	}
	out, _, err = ask(t, parse(t, file("PostToolUse", map[string]any{"bash": `printf '{"a":%s}' "$(cat)"`})), "postToolUse", `{"toolName":"mine","toolResult":{"resultType":"success","textResultForLlm":"t"}}`)
	if want = `{"a":{"hook_event_name":"PostToolUse","tool_name":"mine","tool_result":{"result_type":"success","text_result_for_llm":"t"}}}`; err != nil || out != want {
		t.Errorf("%v\n%s", err, cmp.Diff(want, out))
	}
	out, _, err = ask(t, parse(t, file("errorOccurred", map[string]any{"bash": `printf '{"a":%s}' "$(cat)"`})), "errorOccurred", `{"error":"down"}`)
	if want = `{"a":{"error":{"message":"down","name":"Error"}}}`; err != nil || out != want {
		t.Errorf("%v\n%s", err, cmp.Diff(want, out))
	}
}

// Which tools a hook is asked about.
func TestMatchers(t *testing.T) {
	for _, tc := range []struct {
		event, matcher, tool string
		asked                bool
	}{
		{"preToolUse", "bash|edit", "bash", true}, {"preToolUse", "bash|edit", "bash2", false}, {"preToolUse", "ba.*", "bash", true},
		{"preToolUse", "Bash", "bash", false}, {"PreToolUse", "Bash", "bash", true}, {"PreToolUse", "bash", "bash", true},
		{"PreToolUse", "Edit|Write", "create", true}, {"PreToolUse", "Edit|Write", "view", false}, {"PreToolUse", "*", "view", true},
		{"PreToolUse", "", "view", true}, {"PreToolUse", "Re.d", "view", true}, {"PreToolUse", "Task", "task", true}, {"PreToolUse", "mcp__.*", "s-t", false},
		{"postToolUse", "view", "bash", false}, {"preToolUse", "(?!view).*", "view", true}, // one that cannot be read is asked about all
	} {
		hooks, _, err := Parse([]byte(file(tc.event, map[string]any{"bash": `echo '{"x":1}'`, "matcher": tc.matcher})), Source{Name: "p"})
		if err != nil || len(hooks) != 1 {
			t.Fatalf("%+v: %v %v", tc, hooks, err)
		}
		out, _, err := ask(t, hooks, hooks[0].Event, `{"toolName":"`+tc.tool+`"}`)
		if (out != "") != tc.asked || err != nil {
			t.Errorf("%s %q about %s: %q %v", tc.event, tc.matcher, tc.tool, out, err)
		}
	}
	hooks := parse(t, `{"hooks":{"subagentStart":[{"bash":"echo '{\"x\":1}'","matcher":"joiner"}]}}`)
	if out, _, _ := ask(t, hooks, "subagentStart", `{"agentName":"joiner"}`); out == "" {
		t.Error("not asked about its agent")
	}
	if out, _, _ := ask(t, hooks, "subagentStart", `{"agentName":"other"}`); out != "" {
		t.Error("asked about another agent")
	}
}

// Files that are none, and hooks in them that cannot be used.
func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		`{`: "no file of hooks", `[]`: "no file of hooks", `{"version":2}`: "version is 2", `{"hooks":[]}`: "no file of hooks",
	} {
		if _, _, err := Parse([]byte(text), Source{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	hooks, problems, err := Parse([]byte("\ufeff"+`{"version":1,"hooks":{
		"preToolUse":[{"type":"http","url":"https://x"},{"command":"timely","timeoutSec":0},{"command":"kept","timeout":7}],
		"sessionStart":[{"bash":3},{},{"bash":"a","exec":"b"}],
		"postToolUse":[{"bash":"a","matcher":"("}],"notification":[{"bash":"a"}],"permissionRequest":[],
		"Stop":[{"hooks":[{"type":"command","command":"inner","timeout":1e300}]}]}}`), Source{Name: "p"})
	if err != nil || len(hooks) != 3 || hooks[0].Shell != "inner" || hooks[0].Event != "agentStop" || hooks[0].Limit != maxLimit ||
		hooks[1].Shell != "timely" || hooks[1].Limit != defaultLimit || hooks[2].Shell != "kept" || hooks[2].Limit != 7*time.Second {
		t.Errorf("%+v %v", hooks, err)
	}
	all := strings.Join(problems, "\n")
	for _, want := range []string{`type "http"`, "no command", "both exec", "its time of 0", "matcher", `"notification" are not run`, "its bash cannot be a JSON number"} {
		if !strings.Contains(all, want) {
			t.Errorf("no problem says %q:\n%s", want, all)
		}
	}
	if len(problems) != 7 {
		t.Errorf("%d problems:\n%s", len(problems), all)
	}
	if hooks, problems, err := Parse([]byte(`{"disableAllHooks":true,"hooks":{"preToolUse":[{"bash":"a"}]}}`), Source{}); hooks != nil || problems != nil || err != nil {
		t.Errorf("disabled: %v %v %v", hooks, problems, err)
	}
}

// A guard that cannot be read is not lost: its event's calls are denied, by a reason that
// names the file and what is wrong there. A lone hook is read as a list of one, and a time
// that is none as 30 s.
func TestGuardsAreKept(t *testing.T) {
	const deny = `{"permissionDecision":"deny"}`
	const good = `"bash":"echo '{\"permissionDecision\":\"deny\"}'"`
	for name, tc := range map[string]struct {
		hooks    string // of preToolUse
		out, err string
		problems int
	}{
		"an object":           {`{` + good + `}`, deny, "", 1},
		"a negative time":     {`[{` + good + `,"timeoutSec":-5}]`, deny, "", 1},
		"hardly any time":     {`[{"bash":"sleep 300","timeoutSec":1e-300}]`, "", "did not end within 1ns", 0},
		"a time as text":      {`[{"bash":"true","timeoutSec":"10"}]`, "", `a hook of "preToolUse" in hooks.json cannot be read: its timeoutSec cannot be a JSON string`, 1},
		"a text":              {`"./check.sh"`, "", "no object but a JSON string", 2},
		"null":                {`[null]`, "", "names no command", 1},
		"a misspelt command":  {`[{"comand":"./check.sh"}]`, "", "names no command", 1},
		"two commands":        {`[{"bash":"true","exec":"true"}]`, "", "both exec and a command line", 1},
		"a group of one":      {`[{"matcher":"bash","hooks":{"command":"true"}}]`, "", "its hooks cannot be a JSON object", 1},
		"a group in a group":  {`[{"hooks":[{"hooks":[{"command":"true"}]}]}]`, "", "names no command", 1},
		"several":             {`[{"bash":1},{"bash":2},{"bash":"true"}]`, "", "its bash cannot be a JSON number", 2},
		"too many":            {`[` + strings.Repeat(`{"bash":"true","matcher":"edit"},`, maxHooks) + `{"bash":"true"}]`, "", "more than 200", 1},
		"of another system":   {`[{"powershell":"exit 2"}]`, "", "", 1},
		"after one that says": {`[{` + good + `},{"bash":1}]`, deny, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			hooks, problems, err := Parse([]byte(`{"hooks":{"preToolUse":`+tc.hooks+`}}`), Source{Name: "the plugin p", File: "hooks.json"})
			if err != nil || len(problems) != tc.problems {
				t.Errorf("%v, problems %q", err, problems)
			}
			out, _, err := ask(t, hooks, "preToolUse", call)
			if out != tc.out || (err != nil) != (tc.err != "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%q, %v", out, err)
			}
		})
	}
	file := Unread(Source{Name: "the plugin p", File: "hooks.json"}, errors.New("it is gone"))
	if _, _, err := ask(t, []Hook{file}, "preToolUse", call); err == nil || !strings.Contains(err.Error(), "the hooks of hooks.json cannot be read: it is gone") {
		t.Errorf("a whole file: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(`{"version":1,"hooks":{"PreToolUse":[{"matcher":"Bash|Edit","hooks":[{"type":"command","command":"x","timeout":5}]}]}}`)
	f.Add(`{"hooks":{"subagentStop":[{"exec":"a","args":["${PLUGIN_ROOT}"],"env":{"A":"$B"},"cwd":"c"}]}}`)
	f.Add(`{"hooks":{"":[{"bash":"x"}]}}`)
	f.Fuzz(func(t *testing.T, text string) {
		hooks, _, err := Parse([]byte(text), Source{Name: "p", Root: "/p"})
		if err != nil && hooks != nil {
			t.Error("hooks of a file that is none")
		}
		for i := range hooks {
			h := &hooks[i]
			if h.Event == "" || h.unread == "" && (h.Shell == "" && len(h.Exec) == 0 || h.Limit <= 0 || h.Limit > maxLimit) {
				t.Errorf("%+v", h)
			}
			in := input{"toolName": json.RawMessage(`"bash"`), "timestamp": json.RawMessage("1")}
			h.match.hits(in.about(h)...)
			if _, err := in.payload(h); err != nil {
				t.Error(err)
			}
		}
	})
}
