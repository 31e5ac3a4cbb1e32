package builtin

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/transom-run/transom/tool"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// watchdog bounds what a test waits for.
const watchdog = 4 * time.Minute

// rig is a set with a working directory of an awkward name.
type rig struct {
	t   *testing.T
	set *Set
	reg *tool.Registry
	dir string
	n   int
}

func newRig(t *testing.T, configure ...func(*Config)) *rig {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, dir: filepath.Join(base, "a b ü 日本 'q' \"d\" $x")}
	must(t, os.MkdirAll(r.dir, 0o755))
	cfg := Config{Dir: func() string { return r.dir }, SessionDir: filepath.Join(base, "state"), Grace: 200 * time.Millisecond}
	for _, c := range configure {
		c(&cfg)
	}
	if r.set, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.set.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		if anyMarked(r.set.shells.nonce) {
			t.Error("Close left processes behind")
		}
	})
	if r.reg, err = tool.NewRegistry(r.set.Tools()); err != nil {
		t.Fatal(err)
	}
	return r
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (r *rig) path(names ...string) string {
	return filepath.Join(append([]string{r.dir}, names...)...)
}

func (r *rig) write(name, text string) string {
	r.t.Helper()
	p := r.path(name)
	must(r.t, os.MkdirAll(filepath.Dir(p), 0o755))
	must(r.t, os.WriteFile(p, []byte(text), 0o644))
	return p
}

func (r *rig) read(name string) string {
	r.t.Helper()
	b, err := os.ReadFile(r.path(name))
	must(r.t, err)
	return string(b)
}

// args builds arguments from pairs.
func args(pairs ...any) string {
	m := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i].(string)] = pairs[i+1]
	}
	b, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// prepare checks arguments as a session does before anything else.
func (r *rig) prepare(name, arguments string) (*tool.Compiled, tool.Call) {
	r.t.Helper()
	c, ok := r.reg.Lookup(name)
	if !ok {
		r.t.Fatalf("there is no tool %s", name)
	}
	raw, problem := c.Check(arguments)
	if problem != nil {
		r.t.Fatalf("%s %s: %s", name, arguments, problem.ModelText)
	}
	r.n++
	return c, tool.Call{ID: string(rune('a'+r.n%26)) + time.Now().String(), Name: name, Arguments: raw, Dir: r.dir}
}

// ask is what a person would be asked.
func (r *rig) ask(name, arguments string) tool.Permission {
	r.t.Helper()
	c, call := r.prepare(name, arguments)
	p, err := c.Permission(r.t.Context(), call)
	must(r.t, err)
	return p
}

// call asks, approves and runs.
func (r *rig) call(name, arguments string) tool.Outcome {
	r.t.Helper()
	c, call := r.prepare(name, arguments)
	if _, err := c.Permission(r.t.Context(), call); err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(r.t.Context(), watchdog)
	defer cancel()
	return tool.Run(ctx, c, call, nil)
}

// text is a call that has to succeed.
func (r *rig) text(name, arguments string) string {
	r.t.Helper()
	out := r.call(name, arguments)
	if !out.Success {
		r.t.Fatalf("%s %s failed: %s (%s)", name, arguments, out.ModelText, out.EventMessage)
	}
	return out.ModelText
}

// refusal is a call that has to fail, in words for the model.
func (r *rig) refusal(name, arguments, contains string) {
	r.t.Helper()
	out := r.call(name, arguments)
	if out.Success || !strings.Contains(out.ModelText, contains) {
		r.t.Fatalf("%s %s: success %v, %q; want a failure with %q", name, arguments, out.Success, out.ModelText, contains)
	}
}

func equal(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// until waits for something that comes by itself.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	over := time.After(watchdog)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-over:
			t.Fatalf("waited in vain: %s", what)
		}
	}
}
