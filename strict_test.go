package transom_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/eventlog/memlog"
	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/model/endpoint"
	"github.com/transom-run/transom/model/modeltest"
	"github.com/transom-run/transom/tool"
)

// strictModel refuses what its wire's documentation does not have. It calls the tools
// of calls for the prompt "look", "clear_context" for "clear", and says "fine" to
// everything else.
type strictModel struct {
	*modeltest.Server // which looks at the order of messages, calls and results
	t                 *testing.T
	calls             []string
}

func (m *strictModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has gone
	}
	w.Header().Set("Content-Type", "application/json")
	if err = modeltest.CheckShape(r.URL.Path, body); err == nil && (r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json") {
		err = fmt.Errorf("%s of %q", r.Method, r.Header.Get("Content-Type"))
	}
	if err != nil {
		m.t.Errorf("%v\n%.3000s", err, body)
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"error":{"message":%q}}`, err.Error())
		return
	}
	var calls []string
	chats := m.Chats() // of a session, which asks one thing at a time
	messages := chats[len(chats)-1].Messages
	for i := len(messages) - 1; i > 0 && messages[i].Role == model.User; i-- {
		const stamp = "</current_datetime>\n\n" // what stands before every prompt
		text := messages[i].Text
		switch prompt := text[max(strings.LastIndex(text, stamp), 0):]; {
		case strings.HasPrefix(prompt, stamp+"look"):
			calls = m.calls
		case strings.HasPrefix(prompt, stamp+"clear"):
			calls = []string{"clear_context"}
		}
	}
	io.WriteString(w, thoughtful(r.URL.Path, calls))
}

// last checks how often the newest request has a text.
func (m *strictModel) last(text string, want int) {
	m.t.Helper()
	requests := m.Requests()
	body := string(requests[len(requests)-1].Body)
	if n := strings.Count(body, text); n != want {
		m.t.Errorf("%.20s stands %d times in the newest request, want %d:\n%.9000s", text, n, want, body)
	}
}

// thoughtful is an answer that has reasoning which must go back, with calls or "fine".
func thoughtful(path string, calls []string) string {
	var parts []string
	each := func(format string) string {
		for i, name := range calls {
			parts = append(parts, fmt.Sprintf(format, fmt.Sprintf("call-%s-%d", name, i), name))
		}
		return strings.Join(parts, ",")
	}
	text := len(calls) == 0
	switch {
	case strings.HasSuffix(path, "/messages"):
		parts = []string{`{"type":"thinking","thinking":"hm","signature":"c2ln"}`, `{"type":"redacted_thinking","data":"ZGF0YQ=="}`}
		if text {
			parts = append(parts, `{"type":"text","text":"fine"}`)
		}
		return `{"type":"message","role":"assistant","content":[` + each(`{"type":"tool_use","id":%q,"name":%q,"input":{}}`) + `],"stop_reason":"end_turn"}`
	case strings.HasSuffix(path, "/responses"):
		parts = []string{`{"type":"reasoning","id":"rs_1","status":"completed","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"c2ln"}`}
		if text {
			parts = append(parts, `{"type":"message","id":"m","role":"assistant","content":[{"type":"output_text","text":"fine","annotations":[]}]}`)
		}
		return `{"id":"r","status":"completed","output":[` + each(`{"type":"function_call","id":"fc_1","call_id":%q,"name":%q,"arguments":"{}"}`) + `]}`
	case text:
		return `{"choices":[{"message":{"content":"fine","refusal":null},"finish_reason":"stop"}]}`
	}
	return `{"choices":[{"message":{"content":null,"tool_calls":[` + each(`{"id":%q,"type":"function","function":{"name":%q,"arguments":"{}"}}`) + `]},"finish_reason":"tool_calls"}]}`
}

// oddSchemas are valid, and what strict providers refuse as they are.
var oddSchemas = map[string]string{
	"absent": ``, "none": `null`, "empty": `{}`, "anything": `true`, "bare": `{"type":"object"}`,
	"nullable": `{"type":["object","null"],"properties":{"a":{"type":"string"}}}`,
	"dialect":  `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"a":true}}`,
	"referred": `{"$ref":"#/definitions/In","definitions":{"In":{"type":"object","properties":{"a":{"type":"integer"}}}}}`,
	"good":     `{"type":"object","properties":{"a":{"type":"string"}},"required":[]}`,
}

// TestStrictProviders takes whole sessions to providers that refuse every field that
// their wire's documentation does not have: tools with odd schemas, a batch of calls,
// pictures and documents of the user and of results, reasoning that goes back, a clear,
// a summary, and a resume.
func TestStrictProviders(t *testing.T) {
	defer endpoint.CloseIdleConnections()
	for _, wire := range modelWires {
		for _, streaming := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/%v", wire.name, streaming), func(t *testing.T) { strictSession(t, &wire, streaming) })
		}
	}
}

func strictSession(t *testing.T, wire *modelWire, streaming bool) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	m := &strictModel{t: t}
	m.Server = modeltest.NewHandler(t, m)
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 4, 4))); err != nil {
		t.Fatal(err)
	}
	seen := base64.StdEncoding.EncodeToString(picture.Bytes())
	var s *transom.Session
	clear := tool.Tool{Name: "clear_context", IsTerminal: true, Handler: func(ctx context.Context, _ tool.Call) (tool.Result, error) {
		_, err := s.History().ClearContext(ctx, "SEED")
		return tool.Result{Text: "ANSWERED"}, err
	}}
	tools := []tool.Tool{clear}
	for name, schema := range oddSchemas {
		m.calls = append(m.calls, name)
		tools = append(tools, tool.Tool{Name: name, Parameters: json.RawMessage(schema), Handler: func(context.Context, tool.Call) (tool.Result, error) {
			return tool.Result{Text: "ANSWERED", Binary: []tool.Binary{{Data: seen, MIMEType: "image/png", Type: "image"}}}, nil
		}})
	}
	store := memlog.New()
	open := func() *transom.Runtime {
		rt, err := transom.Open(transom.Config{Store: store, ApproveAll: true, Retry: atOnce, Getenv: func(string) string { return "" }})
		if err != nil {
			t.Fatal(err)
		}
		return rt
	}
	rt := open()
	defer func() { rt.Close(context.Background()) }()
	cfg := wire.config
	cfg.BaseURL, cfg.APIKey = m.URL, "key"
	var err error
	s, err = rt.CreateSession(ctx, transom.SessionConfig{ID: "s", Model: "claude-sonnet-4-6", Provider: &cfg, Tools: tools, Streaming: streaming, ReasoningEffort: "high", ReasoningSummary: "detailed", Citations: true})
	if err != nil {
		t.Fatal(err)
	}
	fine := func(prompt string, attached ...string) {
		t.Helper()
		msg := transom.Message{Prompt: prompt}
		for _, a := range attached {
			msg.Attachments = append(msg.Attachments, json.RawMessage(a))
		}
		if got, err := s.SendAndWait(ctx, msg); err != nil || got.Content != "fine" {
			t.Fatalf("%s: %+v, %v", prompt, got, err)
		}
	}
	pdf := base64.StdEncoding.EncodeToString([]byte("%PDF-1.4\n%%EOF\n"))
	fine("look", `{"type":"blob","mimeType":"image/png","displayName":"p.png","data":"`+seen+`"}`, `{"type":"blob","mimeType":"application/pdf","displayName":"d.pdf","data":"`+pdf+`"}`)
	m.last(seen, 1+len(oddSchemas))
	m.last(pdf, 1)
	m.last("ANSWERED", len(oddSchemas))
	if wire.name != "completions" {
		m.last(`"c2ln"`, 1) // the reasoning before the calls
	}
	fine("hello")
	fine("clear")
	m.last("SEED", 1)
	m.last("ANSWERED", 0)
	fine("look")
	if _, err := s.History().Compact(ctx, "short"); err != nil {
		t.Fatal(err)
	}
	fine("hello")
	m.last("ANSWERED", 0)
	fine("look")
	if err := rt.Close(ctx); err != nil {
		t.Fatal(err)
	}
	rt = open()
	if s, err = rt.ResumeSession(ctx, "s", transom.ResumeConfig{Provider: &cfg, Tools: tools}); err != nil {
		t.Fatal(err)
	}
	fine("hello")
	m.last("ANSWERED", len(oddSchemas))
}
