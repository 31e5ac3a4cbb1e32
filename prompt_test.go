package transom_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/eventlog/memlog"
	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/tool"
)

// systemOf is the system message of the newest request, and the tools beside it.
func (s *script) systemOf(t *testing.T) (text, tools string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	req := s.requests[len(s.requests)-1]
	raw, err := json.Marshal(req.Tools)
	if err != nil {
		t.Fatal(err)
	}
	if m := req.Messages[0]; m.Role == model.System {
		text = m.Text
	}
	return text, string(raw)
}

func texts(n int) []model.Message {
	out := make([]model.Message, n)
	for i := range out {
		out[i].Text = "ok"
	}
	return out
}

func sendAndWait(t *testing.T, ctx context.Context, s *transom.Session) {
	t.Helper()
	if _, err := s.SendAndWait(ctx, transom.Message{Prompt: "go"}); err != nil {
		t.Fatal(err)
	}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestSamePrefix: the system message and the tools of an unchanged session are the
// same bytes over turns, a clear and a restart.
func TestSamePrefix(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	sc := &script{replies: append(texts(3), append([]model.Message{{Calls: []model.Call{{ID: "c1", Name: "clear", Arguments: "{}"}}}}, texts(5)...)...)}
	dir := t.TempDir()
	put(t, filepath.Join(dir, "AGENTS.md"), "Speak plainly.")
	store := memlog.New()
	open := func() *transom.Runtime {
		rt, err := transom.Open(transom.Config{Store: store, Provider: sc, Dir: dir, ApproveAll: true})
		if err != nil {
			t.Fatal(err)
		}
		return rt
	}
	rt := open()
	var clear func(ctx context.Context) error
	tools := []tool.Tool{{Name: "b"}, {Name: "a"}, {Name: "clear", Handler: func(ctx context.Context, _ tool.Call) (tool.Result, error) {
		return tool.Result{Text: "ok"}, clear(ctx)
	}}}
	for i := range 30 {
		tools = append(tools, tool.Tool{Name: fmt.Sprintf("tool_%d", i*7%30), Description: "One of thirty."})
	}
	msg := transom.SystemMessage{Mode: "customize", Content: "END", Sections: map[string]transom.SystemSection{"zz": {Action: "append", Content: "Z"}, "aa": {Action: "append", Content: "A"}, "tone": {Action: "remove"}}}
	s, err := rt.CreateSession(ctx, transom.SessionConfig{ID: "s", Tools: tools, SystemMessage: msg})
	if err != nil {
		t.Fatal(err)
	}
	clear = func(ctx context.Context) error {
		_, err := s.History().ClearContext(ctx, "SEED")
		return err
	}
	sendAndWait(t, ctx, s)
	text, defs := sc.systemOf(t)
	for _, want := range []string{"Current working directory: " + dir, "Speak plainly.", "A\n\nZ\n\nEND"} {
		if !strings.Contains(text, want) {
			t.Fatalf("no %q in\n%s", want, text)
		}
	}
	same := func(what string) {
		t.Helper()
		if got, gotDefs := sc.systemOf(t); got != text || gotDefs != defs {
			t.Errorf("%s: another prefix\n%s\n%s", what, got, gotDefs)
		}
	}
	sendAndWait(t, ctx, s)
	sendAndWait(t, ctx, s)
	same("a later turn")
	sendAndWait(t, ctx, s) // clears
	same("a clear")
	if err := rt.Close(ctx); err != nil {
		t.Fatal(err)
	}
	rt = open()
	defer rt.Close(ctx)
	shuffled := slices.Clone(tools) // as a host does that keeps them in a map
	rand.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	if s, err = rt.ResumeSession(ctx, "s", transom.ResumeConfig{Tools: shuffled, SystemMessage: &msg}); err != nil {
		t.Fatal(err)
	}
	sendAndWait(t, ctx, s)
	same("a restart")
	if again, err := rt.ResumeSession(ctx, "s", transom.ResumeConfig{}); err != nil {
		t.Fatal(err)
	} else if err := again.Close(ctx); err != nil {
		t.Fatal(err)
	}
	sendAndWait(t, ctx, s)
	same("a resume that says nothing of it")
}

// TestTransform: the host is asked before the first model call, and again only for
// what has changed; without an answer the model is not asked.
func TestTransform(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	sc := &script{replies: texts(9)}
	store := memlog.New()
	rt, err := transom.Open(transom.Config{Store: store, Provider: sc, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close(ctx)
	var asked atomic.Int32
	var broken atomic.Value
	broken.Store("")
	s, err := rt.CreateSession(ctx, transom.SessionConfig{
		SystemMessage: transom.SystemMessage{Mode: "customize", Sections: map[string]transom.SystemSection{"environment_context": {Action: "transform"}}},
		Answers:       []string{"systemMessage.transform"},
		OnRequest: func(_ context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
			asked.Add(1)
			switch b := broken.Load(); b {
			case "":
			case "error":
				return nil, errors.New("no idea")
			default:
				return json.RawMessage(b.(string)), nil
			}
			var p struct {
				SessionID string
				Sections  map[string]struct{ Content string }
			}
			if err := json.Unmarshal(params, &p); err != nil || method != "systemMessage.transform" || p.SessionID == "" || len(p.Sections) != 1 {
				t.Errorf("%s %s: %v", method, params, err)
			}
			return json.Marshal(map[string]any{"sections": map[string]any{
				"environment_context": map[string]any{"content": "MARK of " + p.Sections["environment_context"].Content}, "tone": nil,
			}})
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if asked.Load() != 0 {
		t.Error("asked before there is a message")
	}
	sendAndWait(t, ctx, s)
	sendAndWait(t, ctx, s)
	if text, _ := sc.systemOf(t); asked.Load() != 1 || !strings.Contains(text, "MARK of <environment_context>") {
		t.Errorf("asked %d times for\n%s", asked.Load(), text)
	}
	other := t.TempDir()
	if err := s.Configure(ctx, transom.Configure{Dir: &other}); err != nil {
		t.Fatal(err)
	}
	for _, b := range []string{"error", "null", "{}", `{"sections":[]}`} {
		broken.Store(b)
		before := len(sc.requests)
		if _, err := s.SendAndWait(ctx, transom.Message{Prompt: "go"}); err == nil || !strings.Contains(err.Error(), "there is no system message") {
			t.Errorf("%s: %v", b, err)
		}
		if len(sc.requests) != before {
			t.Errorf("%s: the model was asked", b)
		}
	}
	broken.Store("")
	sendAndWait(t, ctx, s)
	if text, _ := sc.systemOf(t); !strings.Contains(text, "MARK of") || !strings.Contains(text, other) {
		t.Errorf("in another directory:\n%s", text)
	}
	n, skip := asked.Load(), true
	if err := s.Configure(ctx, transom.Configure{SkipCustomInstructions: &skip}); err != nil {
		t.Fatal(err)
	}
	sendAndWait(t, ctx, s)
	if asked.Load() != n {
		t.Error("asked for a section that is as it was")
	}
}

func TestInstructionFiles(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	sc := &script{replies: texts(9)}
	store := memlog.New()
	dir, more := t.TempDir(), t.TempDir()
	put(t, filepath.Join(dir, ".github", "copilot-instructions.md"), "OF-THE-REPOSITORY")
	put(t, filepath.Join(more, ".github", "instructions", "x.instructions.md"), "OF-THE-HOST")
	rt, err := transom.Open(transom.Config{Store: store, Provider: sc, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close(ctx)
	has := func(s *transom.Session, want ...string) {
		t.Helper()
		sendAndWait(t, ctx, s)
		text, _ := sc.systemOf(t)
		for _, w := range []string{"OF-THE-REPOSITORY", "OF-THE-HOST", "OF-THE-ORGANIZATION"} {
			wanted := false
			for _, x := range want {
				wanted = wanted || x == w
			}
			if strings.Contains(text, w) != wanted {
				t.Errorf("%s is there: %v", w, !wanted)
			}
		}
	}
	s, err := rt.CreateSession(ctx, transom.SessionConfig{OrganizationInstructions: "OF-THE-ORGANIZATION"})
	if err != nil {
		t.Fatal(err)
	}
	has(s, "OF-THE-REPOSITORY", "OF-THE-ORGANIZATION")
	none, yes, no := "", true, false
	if err := s.Resume(ctx, transom.ResumeConfig{InstructionDirectories: []string{more}, OrganizationInstructions: &none}); err != nil {
		t.Fatal(err)
	}
	has(s, "OF-THE-REPOSITORY", "OF-THE-HOST")
	if got := s.Instructions(); len(got) != 2 || got[0].Name != ".github/copilot-instructions.md" || got[1].Text != "OF-THE-HOST" || got[0].Repository {
		t.Errorf("%+v", got)
	}
	if err := s.Configure(ctx, transom.Configure{SkipCustomInstructions: &yes}); err != nil {
		t.Fatal(err)
	}
	has(s)
	if err := s.Configure(ctx, transom.Configure{SkipCustomInstructions: &no}); err != nil {
		t.Fatal(err)
	}
	has(s, "OF-THE-REPOSITORY", "OF-THE-HOST")
	if err := s.Resume(ctx, transom.ResumeConfig{SystemMessage: &transom.SystemMessage{Mode: "replace", Content: "MINE"}}); err != nil {
		t.Fatal(err)
	}
	has(s)
	if text, _ := sc.systemOf(t); text != "MINE" {
		t.Errorf("replaced by %q", text)
	}
	for _, m := range []transom.SystemMessage{{Mode: "shout"}, {Mode: "customize", Sections: map[string]transom.SystemSection{"tone": {Action: "shout"}}}} {
		var e *transom.Error
		if _, err := rt.CreateSession(ctx, transom.SessionConfig{SystemMessage: m}); !errors.As(err, &e) || e.Kind != transom.KindInvalidParams {
			t.Errorf("%+v: %v", m, err)
		}
		if err := s.Resume(ctx, transom.ResumeConfig{SystemMessage: &m}); !errors.As(err, &e) || e.Kind != transom.KindInvalidParams {
			t.Errorf("resume %+v: %v", m, err)
		}
	}
}
