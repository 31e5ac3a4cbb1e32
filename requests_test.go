package transom_test

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/eventlog/memlog"
	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/tool"
)

func (s *script) newest() model.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests[len(s.requests)-1]
}

// seen is what the newest request shows of the conversation.
func (s *script) seen() (out []string) {
	for _, m := range s.newest().Messages[1:] {
		text := m.Text
		if _, rest, ok := strings.Cut(text, "</current_datetime>\n\n"); ok {
			lead, _, _ := strings.Cut(text, "<current_datetime>")
			text = lead + rest
		}
		for _, i := range m.Images {
			text += " [" + i.Name + "]"
		}
		out = append(out, string(m.Role)+" "+text)
	}
	return out
}

func TestRequestsAsConfigured(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	sc := &script{replies: texts(9)}
	rt, err := transom.Open(transom.Config{Store: memlog.New(), Provider: sc})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close(ctx)
	s, err := rt.CreateSession(ctx, transom.SessionConfig{
		ClientName: " my (app)\r\nX: y", ReasoningSummary: "auto", Citations: true, MaxAICredits: 30, ReasoningEffort: "high",
		Tools: []tool.Tool{{Name: "open"}, {Name: "secret"}}, HiddenTools: []string{"custom:s*"},
	})
	if err != nil {
		t.Fatal(err)
	}
	sendAndWait(t, ctx, s)
	r := sc.newest()
	if got := r.Headers["User-Agent"]; got != "transom (my appX: y)" || r.ReasoningSummary != "auto" || !r.Citations || r.ReasoningEffort != "high" || len(r.Tools) != 1 || r.Tools[0].Name != "open" {
		t.Errorf("agent %q, %+v", got, r)
	}
	if last := r.Messages[len(r.Messages)-1]; !strings.Contains(last.Text, "Remaining session limits: 30 AI credits.") || last.Role != model.User {
		t.Errorf("the last message is %+v", last)
	}
	if _, err := s.SendAndWait(ctx, transom.Message{Prompt: "go", RequestHeaders: map[string]string{"user-agent": "mine", "X-A": "b"}}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"user-agent": "mine", "X-A": "b"}, sc.newest().Headers); diff != "" {
		t.Error(diff)
	}
	none, name, shown, credits := "", "other", []string{}, 12.5
	if err := s.Resume(ctx, transom.ResumeConfig{ReasoningSummary: &none, ClientName: &name, HiddenTools: &shown, MaxAICredits: &credits, Tools: []tool.Tool{{Name: "secret"}}}); err != nil {
		t.Fatal(err)
	}
	sendAndWait(t, ctx, s)
	r = sc.newest()
	if r.Headers["User-Agent"] != "transom (other)" || r.ReasoningSummary != "" || !r.Citations || len(r.Tools) != 1 || !strings.Contains(r.Messages[len(r.Messages)-1].Text, "12.5 AI credits") {
		t.Errorf("after a resume: %+v", r)
	}
}

func TestAttachmentsAndVision(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	sc := &script{replies: append([]model.Message{{Calls: []model.Call{{ID: "c1", Name: "look", Arguments: "{}"}}}}, texts(9)...)}
	dir := t.TempDir()
	put(t, filepath.Join(dir, "a.txt"), "one\ntwo\n")
	rt, err := transom.Open(transom.Config{Store: memlog.New(), Provider: sc, Dir: dir, ApproveAll: true})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close(ctx)
	no, yes := false, true
	s, err := rt.CreateSession(ctx, transom.SessionConfig{Vision: &no, Tools: []tool.Tool{{Name: "look", Handler: func(context.Context, tool.Call) (tool.Result, error) {
		return tool.Result{Text: "looked", Binary: []tool.Binary{{Type: "image", MIMEType: "image/png", Data: "QUJD", Description: "at /q"}}}, nil
	}}}})
	if err != nil {
		t.Fatal(err)
	}
	given := []json.RawMessage{
		json.RawMessage(`{"type":"file","path":"a.txt","extra":{"b":1, "a":2}}`), json.RawMessage(`{"type":"blob","mimeType":"image/png","data":"QUJD","displayName":"p.png"}`),
		json.RawMessage(`{"type":"selection","filePath":"/x","displayName":"x.go","text":"y","selection":{"start":{"line":4},"end":{"line":4}}}`),
	}
	if _, err := s.SendAndWait(ctx, transom.Message{Prompt: "see", Attachments: given}); err != nil {
		t.Fatal(err)
	}
	lead := "<ide_selection>\nThe user has the following text selected in their IDE. This may or may not be related to their request.\nFile: x.go (line 5)\n```\ny\n```\n</ide_selection>\n\n"
	text := "user " + lead + "see\n\n\n\n<tagged_files>\n* " + dir + "/a.txt (2 lines)\n</tagged_files>"
	blinded := []string{text + "\n(p.png is not shown: the model in use takes no images.)", "assistant ", "tool looked"}
	if diff := cmp.Diff(blinded, sc.seen()); diff != "" {
		t.Error(diff)
	}
	same := "m"
	if err := s.Configure(ctx, transom.Configure{Model: &same, Vision: &yes}); err != nil {
		t.Fatal(err)
	}
	sendAndWait(t, ctx, s)
	if diff := cmp.Diff([]string{text + " [p.png]", "assistant ", "tool looked [at /q]", "assistant ok", "user go"}, sc.seen()); diff != "" {
		t.Error(diff)
	}
	if err := s.Configure(ctx, transom.Configure{Vision: &no}); err != nil {
		t.Fatal(err)
	}
	sendAndWait(t, ctx, s)
	if diff := cmp.Diff(blinded, sc.seen()[:3]); diff != "" {
		t.Error(diff)
	}
	other := "n"
	if err := s.Configure(ctx, transom.Configure{Model: &other}); err != nil { // nobody says what it can do
		t.Fatal(err)
	}
	sendAndWait(t, ctx, s)
	if got := sc.seen()[0]; got != text+" [p.png]" {
		t.Errorf("another model is shown %q", got)
	}
	raw, err := s.Messages()
	if err != nil {
		t.Fatal(err)
	}
	kept := false
	for _, e := range raw {
		var m struct {
			Type string
			Data struct{ Attachments []json.RawMessage }
		}
		if err := json.Unmarshal(e, &m); err != nil {
			t.Fatal(err)
		}
		if m.Type == "user.message" && len(m.Data.Attachments) > 0 {
			kept = true
			for i, a := range m.Data.Attachments {
				var want, got any
				if json.Unmarshal(given[i], &want) != nil || json.Unmarshal(a, &got) != nil || !cmp.Equal(want, got) {
					t.Errorf("attachment %d is kept as %s", i, a)
				}
			}
		}
	}
	if !kept {
		t.Error("the attachments are not in the log")
	}
	var e *transom.Error
	if _, err := s.Send(ctx, transom.Message{Prompt: "see", Attachments: []json.RawMessage{json.RawMessage(`{"path":"a.txt"}`)}}); !errors.As(err, &e) || e.Kind != transom.KindInvalidParams {
		t.Errorf("an attachment of no type: %v", err)
	}
	if _, err := s.Send(ctx, transom.Message{Prompt: "see", Attachments: []json.RawMessage{json.RawMessage(`{"type":"x","y":"` + strings.Repeat("z", transom.MaxPromptBytes) + `"}`)}}); !errors.As(err, &e) || e.Kind != transom.KindInvalidParams {
		t.Errorf("a huge attachment: %v", err)
	}
}
