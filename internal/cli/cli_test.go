package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/goleak"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// result is what became of a command.
type result struct {
	out, err string
	code     int
}

// run plays a command line in this process, without the environment's settings.
func run(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	return runContext(t, t.Context(), strings.NewReader(stdin), args...)
}

func runContext(t *testing.T, ctx context.Context, stdin io.Reader, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var out, err bytes.Buffer
	code := execute(ctx, newTestRoot(stdin, &out, &err, args...))
	return result{out.String(), err.String(), code}
}

func newTestRoot(stdin io.Reader, stdout, stderr io.Writer, args ...string) *cobra.Command {
	root := &cobra.Command{Use: "transom", RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	root.AddCommand(Commands()...)
	root.SetArgs(append([]string{}, args...)) // never nil: that would mean the arguments of this process
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	return root
}

func (r result) want(t *testing.T, code int, texts ...string) {
	t.Helper()
	if r.code != code {
		t.Errorf("exit code %d, want %d\nstdout: %s\nstderr: %s", r.code, code, r.out, r.err)
	}
	for _, text := range texts {
		if !strings.Contains(r.out+r.err, text) {
			t.Errorf("%q is missing in\nstdout: %s\nstderr: %s", text, r.out, r.err)
		}
	}
}

// answers is a model that gives them in order.
type answers struct {
	mu  sync.Mutex
	all []model.Message
}

func (a *answers) Stream(context.Context, *model.Request) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		a.mu.Lock()
		m := a.all[0]
		a.all = a.all[1:]
		a.mu.Unlock()
		if m.Text != "" && !yield(model.Chunk{Text: m.Text}, nil) {
			return
		}
		for i, c := range m.Calls {
			if !yield(model.Chunk{Call: &model.CallChunk{Index: i, ID: c.ID, Name: c.Name, Arguments: c.Arguments}}, nil) {
				return
			}
		}
		yield(model.Chunk{Finish: "stop"}, nil)
	}
}

// clearedSession leaves a session behind that was cleared once.
func clearedSession(t *testing.T, home, id string) {
	t.Helper()
	ctx := t.Context()
	rt, err := transom.Open(transom.Config{Home: home, Model: "m", Provider: &answers{all: []model.Message{
		{Text: "hello"},
		{Text: "I start afresh.", Calls: []model.Call{{ID: "c1", Name: "clear_context", Arguments: `{"prompt":"the seed"}`}}},
		{Text: "fresh"},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	var s *transom.Session
	clear, err := tool.Func("clear_context", "", func(ctx context.Context, in struct {
		Prompt string `json:"prompt"`
	}) (string, error) {
		n, err := s.History().ClearContext(ctx, in.Prompt)
		return fmt.Sprintf("Cleared %d messages.", n), err
	})
	if err != nil {
		t.Fatal(err)
	}
	clear.IsTerminal = true
	s, err = rt.CreateSession(ctx, transom.SessionConfig{ID: id, Tools: []tool.Tool{clear}, OnPermission: transom.ApproveAll})
	if err != nil {
		t.Fatal(err)
	}
	for _, prompt := range []string{"first prompt", "second\nprompt"} {
		if _, err := s.SendAndWait(ctx, transom.Message{Prompt: prompt}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if err := rt.Close(ctx); err != nil {
		t.Fatal(err)
	}
}

func TestVersion(t *testing.T) {
	run(t, "", "version").want(t, CodeOK, "transom "+transom.Version, "protocol 3", runtime.Version())
	var v struct {
		Version         string
		ProtocolVersion int
		Go              string
	}
	r := run(t, "", "version", "--json")
	if err := json.Unmarshal([]byte(r.out), &v); err != nil || v.Version != transom.Version || v.ProtocolVersion != 3 || v.Go == "" {
		t.Errorf("got %+v, %v from %q", v, err, r.out)
	}
}

func TestHelp(t *testing.T) {
	run(t, "").want(t, CodeOK, "sessions", "version")
	for _, cmd := range Commands() {
		r := run(t, "", cmd.Name(), "--help")
		r.want(t, CodeOK, "transom "+cmd.Name())
		if cmd.Short == "" {
			t.Errorf("%s has no short help", cmd.Name())
		}
	}
}

func TestUsageErrors(t *testing.T) {
	for _, args := range [][]string{
		{"frob"}, {"--frob"}, {"version", "extra"}, {"version", "--frob"}, {"sessions", "frob"}, {"sessions", "rm"},
		{"sessions", "show", "a", "b"}, {"sessions", "show", "--json", "--window"},
	} {
		r := run(t, "", args...)
		r.want(t, CodeUsage, "transom: ")
		if r.out != "" {
			t.Errorf("%q wrote to stdout: %q", args, r.out)
		}
	}
}
