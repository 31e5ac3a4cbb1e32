package replay

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/model/modelfile"
	"github.com/transom-run/transom/model/scripted"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func user(s string) model.Message { return model.Message{Role: model.User, Text: s} }

var tools = []model.ToolDef{{Name: "look"}, {Name: "clear"}}

// session plays a small session against a provider: a call, its result, a clear,
// a failure, an abort. dir and now are what changes from run to run.
func session(t *testing.T, p model.Provider, dir, now string, change func(*model.Request)) (out []*model.Response, errs []error) {
	t.Helper()
	ask := func(ctx context.Context, msgs ...model.Message) *model.Response {
		req := &model.Request{Model: "demo", Stream: true, Tools: tools, Messages: append([]model.Message{{Role: model.System, Text: "Work in " + dir}}, msgs...)}
		if change != nil {
			change(req)
		}
		r, err := model.Collect(p.Stream(ctx, req))
		r.ID = ""
		out, errs = append(out, r), append(errs, err)
		return r
	}
	first := user("<current_datetime>" + now + "</current_datetime>\n\nRead " + dir + "/a.txt with k3y-text")
	r := ask(t.Context(), first)
	history := []model.Message{first, r.Message}
	for _, c := range r.Message.Calls {
		history = append(history, model.Message{Role: model.ToolRole, CallID: c.ID, Text: "contents of " + dir + "\xff"})
	}
	r = ask(t.Context(), history...)
	ask(t.Context(), append(history, r.Message, user("again"))...)
	fresh := user("Fresh start.")
	ask(t.Context(), fresh) // fails
	ask(t.Context(), fresh) // the same again
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	ask(ctx, user("stall"))
	ask(t.Context(), first) // another session that asks the same
	ask(t.Context(), user("refused"))
	return out, errs
}

const script = `
models: [demo]
conversations:
  - when: {user: {contains: Read}}
    replies:
      - content: Looking.
        tool_calls: [{name: look, arguments: {path: "/proj/x/a.txt"}}, {name: look, arguments: {}}]
        usage: {input: 5, output: 2}
      - {content: "Read it.\nTwo lines, k3y-text.", chunk_size: 4, chunk_delay: 20ms, delay: 100ms, finish: end_turn}
  - when: {user: {equals: again}}
    replies: [{content: Again.}]
  - when: {user: {contains: Fresh}}
    replies: [{content: Fresh., failures: [{status: 429, message: slow down, retry_after: 1s}]}]
  - when: {user: {equals: stall}}
    replies: [{failures: [{stall: 0}]}]
  - when: {user: {equals: refused}}
    replies: [{failures: [{status: 401, message: no, times: always}]}]
`

func record(t *testing.T, cfg Config) (path string, out []*model.Response) {
	t.Helper()
	f, err := modelfile.Parse("script.yaml", []byte(script))
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "recorded.yaml")
	rec, err := Record(path, scripted.New(scripted.Config{File: f}), cfg)
	if err != nil {
		t.Fatal(err)
	}
	out, _ = session(t, rec, cfg.WorkDir, "2026-01-01T00:00:00Z", nil)
	if err := rec.Close(); err != nil {
		t.Fatal(err)
	}
	return path, out
}

func TestRecordAndReplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := Config{WorkDir: "/proj/x", Secrets: []string{"k3y-text"}}
		path, want := record(t, cfg)
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, not := range []string{"k3y-text", "/proj/x", "current_datetime"} {
			if strings.Contains(string(data), not) {
				t.Errorf("%q is in the file:\n%s", not, data)
			}
		}
		cfg.WorkDir = "/elsewhere/y"
		p, err := Open(path, cfg)
		if err != nil {
			t.Fatal(err)
		}
		got, errs := session(t, p, cfg.WorkDir, "2027-02-02T00:00:00Z", nil)
		want[0].Message.Calls[0].Arguments = `{"path":"/elsewhere/y/a.txt"}`
		want[6].Message.Calls[0].Arguments = `{"path":"/elsewhere/y/a.txt"}`
		want[1].Message.Text = "Read it.\nTwo lines, [redacted]."
		for i, err := range errs {
			var e *model.Error
			switch errors.As(err, &e); i {
			case 3:
				if e == nil || e.Status != 429 || e.RetryAfter != time.Second {
					t.Errorf("request %d: %v", i, err)
				}
			case 5:
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("request %d: %v", i, err)
				}
			case 7:
				if e == nil || e.Status != 401 || e.Retryable {
					t.Errorf("request %d: %v", i, err)
				}
			default:
				if diff := cmp.Diff(want[i], got[i]); err != nil || diff != "" {
					t.Errorf("request %d: %v\n%s\n%s", i, err, diff, data)
				}
			}
		}
		if rest := p.Rest(); len(rest) != 0 {
			t.Errorf("left: %v\n%s", rest, data)
		}
	})
}

func TestReplayDiffers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := Config{WorkDir: "/proj/x"}
		path, _ := record(t, cfg)
		tests := []struct {
			name   string
			change func(*model.Request)
			want   string
		}{
			{"text", func(r *model.Request) { r.Messages[1].Text = "Read /proj/x/b.txt" }, "messages[1].content:\n  request: \"Read ${workdir}/b.txt\""},
			{"system", func(r *model.Request) { r.Messages[0].Text = "Work elsewhere" }, "messages[0].content"},
			{"tools", func(r *model.Request) { r.Tools = tools[:1] }, "tools[1]:\n  request: (nothing)\n  file:    clear"},
			{"model", func(r *model.Request) { r.Model = "other" }, "no rule holds"},
			{"one more message", func(r *model.Request) { r.Messages = append(r.Messages, user("more")) }, "messages[2]"},
		}
		for _, tt := range tests {
			p, err := Open(path, cfg)
			if err != nil {
				t.Fatal(err)
			}
			req := &model.Request{Model: "demo", Tools: tools, Messages: []model.Message{
				{Role: model.System, Text: "Work in /proj/x"}, user("Read /proj/x/a.txt with k3y-text")}}
			tt.change(req)
			_, err = model.Collect(p.Stream(t.Context(), req))
			var e *model.Error
			if !errors.As(err, &e) || e.Code != scripted.CodeNoReply || !strings.Contains(e.Msg, tt.want) || !strings.Contains(e.Msg, path) {
				t.Errorf("%s: %v", tt.name, err)
			}
			if len(p.Rest()) < 4 {
				t.Errorf("%s: rest %v", tt.name, p.Rest())
			}
		}
	})
}

func TestOptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path, _ := record(t, Config{WorkDir: "/proj/x", AnySystem: true, Chunks: true, Models: []modelfile.Model{{ID: "demo", ContextWindow: 7}}})
		f, err := modelfile.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		if f.Models[0].ContextWindow != 7 || f.Conversations[0].Messages[0].Content != "${system}" {
			t.Errorf("%+v", f)
		}
		var found bool
		for _, m := range f.Conversations[0].Messages {
			if strings.HasPrefix(m.Content, "Read it.") {
				found = true
				if len(m.Chunks) != 8 || m.Delay != 100*time.Millisecond || m.ChunkDelay != 20*time.Millisecond || m.Finish != "end_turn" {
					t.Errorf("%+v", m)
				}
			}
		}
		if !found {
			t.Error("the answer is not there")
		}
	})
}

func TestBadPath(t *testing.T) {
	if _, err := Record(filepath.Join(t.TempDir(), "no", "dir.yaml"), nil, Config{}); err == nil {
		t.Error("no error")
	}
	if _, err := Open("missing.yaml", Config{}); err == nil {
		t.Error("no error")
	}
	dir := filepath.Join(t.TempDir(), "d")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	rec, err := Record(filepath.Join(dir, "r.yaml"), scripted.New(scripted.Config{Replies: []modelfile.Message{scripted.Say("x")}}), Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	// The session goes on, the error comes at the end.
	if _, err := model.Collect(rec.Stream(t.Context(), &model.Request{})); err != nil {
		t.Error(err)
	}
	if rec.Close() == nil {
		t.Error("no error")
	}
}
