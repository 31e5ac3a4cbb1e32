//go:build unix

package transom_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/tool"
)

// The hooks of a plugin are asked as those of a host are: what they deny is not run,
// by agents neither, what they say is read, before a clear and after it. A host's hook
// has the last word but for a denial.
func TestPluginHooks(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	dir, log := t.TempDir(), filepath.Join(t.TempDir(), "log")
	pack := filepath.Join(dir, "pack")
	t.Setenv("COPILOT_PROVIDER_API_KEY", "sk-of-the-runtime")
	put(t, filepath.Join(pack, "guard.sh"), `in=$(cat)
printf '%s\n' "$in" >> "$LOG"
env | grep -c sk-of- >> "$LOG"
case "$in" in
*forbidden*) echo "not that one" >&2; exit 2 ;;
*broken*) exit 3 ;;
esac`)
	put(t, filepath.Join(pack, "hooks.json"), `{"version":1,"hooks":{
		"sessionStart":[{"bash":"echo '{\"additionalContext\":\"House rules hold.\"}'"}],
		"preToolUse":[{"bash":"sh \"$PLUGIN_ROOT/guard.sh\"","env":{"LOG":"`+log+`"}}],
		"postToolUse":[{"matcher":"noted","bash":"echo '{\"additionalContext\":\"Seen by the pack.\"}'"},
			{"matcher":"unseen","bash":"exit 1"}],
		"sessionEnd":[{"bash":"echo ended >> '`+log+`'"}]}}`)
	sc := &script{replies: []model.Message{
		{Calls: []model.Call{{ID: "a", Name: "noted", Arguments: `{}`}, {ID: "b", Name: "forbidden", Arguments: `{}`}, {ID: "c", Name: "broken", Arguments: `{}`}, {ID: "d", Name: "unseen", Arguments: `{}`}}},
		call("t", "task", `{"agent_type":"helper","name":"h","description":"d","prompt":"do","mode":"sync"}`), call("e", "forbidden", `{}`), {Text: "agent done"},
		call("f", "clear", `{}`), call("g", "forbidden", `{}`), {Text: "done"},
	}}
	rt, err := transom.Open(transom.Config{Home: t.TempDir(), Provider: sc, Dir: dir, Getenv: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close(ctx)
	var mu sync.Mutex
	ran := map[string]int{}
	named := func(name string) tool.Tool {
		return tool.Tool{Name: name, Description: "d", Handler: func(context.Context, tool.Call) (tool.Result, error) {
			mu.Lock()
			defer mu.Unlock()
			ran[name]++
			return tool.Result{Text: name + " ran"}, nil
		}}
	}
	var s *transom.Session
	clear := tool.Tool{Name: "clear", Description: "d", IsTerminal: true, Handler: func(ctx context.Context, _ tool.Call) (tool.Result, error) {
		_, err := s.History().ClearContext(ctx, "SEED")
		return tool.Result{Text: "cleared"}, err
	}}
	s, err = rt.CreateSession(ctx, transom.SessionConfig{
		PluginDirectories: []string{"pack"}, OnPermission: transom.ApproveAll,
		Tools:  []tool.Tool{named("noted"), named("forbidden"), named("broken"), named("unseen"), clear},
		Agents: []transom.Agent{{Name: "helper", Prompt: "Help."}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if m, err := s.SendAndWait(ctx, transom.Message{Prompt: "go"}); err != nil || m == nil || m.Content != "done" {
		t.Fatalf("%+v %v", m, err)
	}
	window := func(n int) string {
		var b strings.Builder
		for _, m := range sc.requests[n].Messages[1:] {
			b.WriteString(string(m.Role) + ": " + m.Text + "\n")
		}
		return b.String()
	}
	for n, want := range map[int][]string{
		0: {"House rules hold."},
		1: {"noted ran\n\nSeen by the pack.", "not that one", "the hook gave no verdict: preToolUse of the plugin pack: it ended with exit code 3", "its result is withheld"},
		3: {"not that one"},
		6: {"SEED", "not that one"},
	} {
		for _, text := range want {
			if !strings.Contains(window(n), text) {
				t.Errorf("request %d does not say %q:\n%s", n, text, window(n))
			}
		}
	}
	if ran["noted"] != 1 || ran["forbidden"] != 0 || ran["broken"] != 0 || ran["unseen"] != 1 {
		t.Errorf("ran %v", ran)
	}
	if err := s.Close(ctx); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(raw)), "\n")
	clean := 0 // commands whose environment held no key
	for _, line := range lines {
		if line == "0" {
			clean++
		}
	}
	if lines[len(lines)-1] != "ended" || clean != 8 || strings.Contains(string(raw), "sk-of-the-runtime") {
		t.Errorf("the hooks wrote:\n%s", raw)
	}
	if !strings.Contains(string(raw), `"toolName":"forbidden"`) || !strings.Contains(string(raw), `"parentSessionId"`) {
		t.Errorf("the hooks were told:\n%s", raw)
	}
}
