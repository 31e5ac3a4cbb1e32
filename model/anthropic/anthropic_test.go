package anthropic

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/model/endpoint"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memory is a server in memory.
type memory func(*http.Request) (*http.Response, error)

func (f memory) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// answer opens a provider whose server answers every request so.
func answer(t testing.TB, kind string, body []byte, change func(*Config)) *Provider {
	t.Helper()
	cfg := Config{Server: endpoint.Server{BaseURL: "http://x", HTTPClient: &http.Client{Transport: memory(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(bytes.NewReader(body))}, nil
	})}}}
	if change != nil {
		change(&cfg)
	}
	p, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// conversation has something of everything.
var conversation = &model.Request{
	Model: "claude-sonnet-4-5", ReasoningEffort: "low", Citations: true,
	Messages: []model.Message{
		{Role: model.System, Text: "S"}, {Role: model.Developer, Text: "D"},
		{Role: model.User, Text: "a\"\n\xff", Images: []model.Image{{Name: "p.png", MIMEType: "image/png", Data: "QUJD"}},
			Documents: []model.Document{{Title: "p.pdf", MIMEType: "application/pdf", Data: "UERG"}}},
		{Role: model.Assistant, Text: "Look.", Reasoning: "hm", EncryptedContent: `[{"type":"reasoning"}]`,
			ReasoningOpaque: `[{"type":"thinking","thinking":"hm","signature":"S1"},"text",0,{"type":"redacted_thinking","data":"D2"},1]`,
			Calls:           []model.Call{{ID: "1", Name: "t", Arguments: `{"x":1}`}, {ID: "b.2", Name: "u"}}},
		{Role: model.ToolRole, CallID: "1", Text: "r", Images: []model.Image{{Name: "at /q", MIMEType: "image/png", Data: "QUJE"}}},
		{Role: model.ToolRole, CallID: "b.2"},
		{Role: model.User, Text: "go"}, {Role: model.User, Text: " "}, {Role: model.User, Text: "on"},
	},
	Tools: []model.ToolDef{{Name: "z", Description: "d", Parameters: []byte(`{"type":"object"}`)}, {Name: "a"}},
}

func TestRequest(t *testing.T) {
	want := `{"model":"wire-claude-sonnet-4-5","max_tokens":99999,"thinking":{"type":"enabled","budget_tokens":2048},` +
		`"system":[{"type":"text","text":"S\n\nD","cache_control":{"type":"ephemeral"}}],` +
		`"tools":[{"name":"z","description":"d","input_schema":{"type":"object"}},{"name":"a","input_schema":{"type":"object","properties":{}},"cache_control":{"type":"ephemeral"}}],` +
		`"messages":[{"role":"user","content":[{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"UERG"},"title":"p.pdf","citations":{"enabled":true}},` +
		`{"type":"text","text":"a\"\n` + "\uFFFD" + `"},{"type":"text","text":"p.png"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QUJD"},"cache_control":{"type":"ephemeral"}}]},` +
		`{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"S1"},{"type":"text","text":"Look."},{"type":"tool_use","id":"1","name":"t","input":{"x":1}},` +
		`{"type":"redacted_thinking","data":"D2"},{"type":"tool_use","id":"b_2_ff76de191293a219","name":"u","input":{}}]},` +
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"r"},` +
		`{"type":"tool_result","tool_use_id":"b_2_ff76de191293a219"},{"type":"text","text":"at /q"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QUJE"}},{"type":"text","text":"go"},{"type":"text","text":"on","cache_control":{"type":"ephemeral"}}]}],"stream":true}`
	req := *conversation
	req.Stream = true
	got := string(AppendRequest(nil, &req, Encoding{Model: "wire-claude-sonnet-4-5", MaxTokens: 99999, Cache: true}))
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	back, err := DecodeRequest([]byte(got))
	if err != nil {
		t.Fatal(err)
	}
	if len(back.Messages) != 9 || back.Messages[0].Text != "S\n\nD" || len(back.Messages[3].Calls) != 2 || back.Messages[1].Documents[0].Title != "p.pdf" || back.Messages[2].Text != "p.png" || len(back.Messages[2].Images) != 1 || len(back.Messages[6].Images) != 1 {
		t.Errorf("read back as %+v", back)
	}
}

func TestThinking(t *testing.T) {
	loop := func(opaque string) []model.Message {
		return []model.Message{{Role: model.User, Text: "u"}, {Role: model.Assistant, ReasoningOpaque: opaque, Calls: []model.Call{{ID: "1", Name: "n"}}}, {Role: model.ToolRole, CallID: "1", Text: "r"}}
	}
	user := []model.Message{{Role: model.User, Text: "u"}}
	for _, tt := range []struct {
		model, effort, summary string
		bound                  int
		stream                 bool
		msgs                   []model.Message
		want                   string
	}{
		{"claude-sonnet-4-5", "", "", 0, true, user, `"max_tokens":32000,"messages"`},
		{"claude-sonnet-4-5", "", "", 0, false, user, `"max_tokens":16000,"messages"`},
		{"claude-3-5-haiku-latest", "high", "", 0, true, user, `"max_tokens":8192,"messages"`},
		{"claude-3-opus-20240229", "", "", 0, true, user, `"max_tokens":4096,"messages"`},
		{"qwen3", "high", "", 0, true, user, `"max_tokens":8192,"messages"`},
		{"claude-sonnet-4-20250514", "high", "", 0, true, user, `"budget_tokens":16384}`},
		{"claude-sonnet-4.5", "medium", "", 0, true, user, `"budget_tokens":8192}`},
		{"claude-opus-4-1-20250805", "max", "", 4000, true, user, `"budget_tokens":3000}`},
		{"claude-opus-4-1", "max", "", 1000, true, user, `"max_tokens":1000,"messages"`},
		{"claude-opus-4-6", "high", "", 0, true, user, `"thinking":{"type":"adaptive"},"output_config":{"effort":"high"}`},
		{"claude-sonnet-5", "minimal", "auto", 0, true, user, `"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"low"}`},
		{"claude-opus-4-6", "none", "", 0, true, user, `"max_tokens":32000,"messages"`},
		{"claude-sonnet-4-5", "low", "", 0, true, loop(`[{"type":"thinking","thinking":"","signature":"s"}]`), `"budget_tokens":2048}`},
		{"claude-sonnet-4-5", "low", "", 0, true, loop(""), `"max_tokens":32000,"messages"`},
	} {
		got := string(AppendRequest(nil, &model.Request{Model: tt.model, ReasoningEffort: tt.effort, ReasoningSummary: tt.summary, Stream: tt.stream, Messages: tt.msgs}, Encoding{MaxTokens: tt.bound}))
		if !strings.Contains(got, tt.want) || !json.Valid([]byte(got)) {
			t.Errorf("%s %s: %s", tt.model, tt.effort, got)
		}
	}
}

// TestTurns: roles take turns whatever the window looks like.
func TestTurns(t *testing.T) {
	a := model.Message{Role: model.Assistant, Text: "a"}
	u := model.Message{Role: model.User, Text: "u"}
	for _, tt := range []struct {
		msgs []model.Message
		want string
	}{
		{[]model.Message{u, u}, `[{"role":"user","content":[{"type":"text","text":"u"},{"type":"text","text":"u"}]}]`},
		{[]model.Message{u, a, a, u}, `[{"role":"user","content":[{"type":"text","text":"u"}]},{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"text","text":"a"}]},{"role":"user","content":[{"type":"text","text":"u"}]}]`},
		{[]model.Message{u, {Role: model.Assistant}, u}, `[{"role":"user","content":[{"type":"text","text":"u"},{"type":"text","text":"u"}]}]`},
		{[]model.Message{a, u}, `[{"role":"user","content":[{"type":"text","text":"Go on."}]},{"role":"assistant","content":[{"type":"text","text":"a"}]},{"role":"user","content":[{"type":"text","text":"u"}]}]`},
		{[]model.Message{{Role: model.User, Documents: []model.Document{{Title: "n.txt", MIMEType: "text/plain", Data: "aGk="}}}}, `[{"role":"user","content":[{"type":"document","source":{"type":"text","media_type":"text/plain","data":"hi"},"title":"n.txt"}]}]`},
	} {
		got := string(AppendRequest(nil, &model.Request{Model: "m", Messages: tt.msgs}, Encoding{}))
		if want := `"messages":` + tt.want + "}"; !strings.HasSuffix(got, want) {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestHeaders(t *testing.T) {
	for _, tt := range []struct {
		base, key, bearer       string
		url, wantKey, wantToken string
	}{
		{"https://api.anthropic.com", "k", "", "https://api.anthropic.com/v1/messages", "k", ""},
		{"https://api.anthropic.com/v1/", "k", "b", "https://api.anthropic.com/v1/messages", "", "Bearer b"},
		{"http://x/anthropic/v1/messages?a=1", "", "", "http://x/anthropic/v1/messages?a=1", "", ""},
	} {
		var got *http.Request
		p := answer(t, "", nil, func(c *Config) {
			c.BaseURL, c.APIKey, c.BearerToken = tt.base, tt.key, tt.bearer
			c.HTTPClient = &http.Client{Transport: memory(func(r *http.Request) (*http.Response, error) {
				got = r
				return nil, io.ErrUnexpectedEOF
			})}
		})
		model.Collect(p.Stream(t.Context(), conversation))
		if got.URL.String() != tt.url || got.Header.Get("X-Api-Key") != tt.wantKey || got.Header.Get("Authorization") != tt.wantToken || got.Header.Get("Anthropic-Version") != Version {
			t.Errorf("%s: %s %v", tt.base, got.URL, got.Header)
		}
	}
}

func TestModels(t *testing.T) {
	p := answer(t, "application/json", []byte(`{"data":[{"id":"claude-a","display_name":"Claude A","max_input_tokens":200000,"max_tokens":64000,"capabilities":{"image_input":{"supported":true}}},{"id":"b"},{"x":1}]}`), nil)
	got, err := p.Models(t.Context())
	if err != nil || len(got) != 2 || got[0].ContextWindow != 200000 || got[0].MaxOutput != 64000 || !got[0].Vision || got[0].Name != "Claude A" || got[1].Name != "b" {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestOrderLost: what stands in ReasoningOpaque and does not fit the message
// costs nothing but the reasoning.
func TestOrderLost(t *testing.T) {
	for _, enc := range []string{"", "x", "[]", `[7,-1,"text","text",0,0]`, `{"a":1}`, "null", `[null,true,[]]`} {
		req := &model.Request{Messages: []model.Message{{Role: model.User, Text: "u"},
			{Role: model.Assistant, Text: "t", ReasoningOpaque: enc, Calls: []model.Call{{ID: "1", Name: "n"}}}, {Role: model.ToolRole, CallID: "1"}}}
		got := string(AppendRequest(nil, req, Encoding{}))
		if !json.Valid([]byte(got)) || strings.Count(got, `"text":"t"`) != 1 || strings.Count(got, `"type":"tool_use"`) != 1 {
			t.Errorf("%q: %s", enc, got)
		}
	}
}

// FuzzAnswer: no answer breaks the reading; calls come out with ids of their own,
// and whatever came can be sent back.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte("event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"r\",\"usage\":{\"input_tokens\":1}}}\n\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"a\\ud83d\"}}\n\ndata: {\"type\":\"message_stop\"}\n\n"))
	f.Add([]byte("data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"id\":\"1\",\"name\":\"n\",\"input\":{}}}\n\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{}\"}}\n\ndata: {\"type\":\"message_stop\"}\n\n"))
	f.Add([]byte(`{"type":"message","content":[{"type":"thinking","thinking":"t","signature":"\ud800"},{"type":"text","text":"a"},{"type":"tool_use","input":"{\"a\":\"\\ud83d\"}"}],"stop_reason":"tool_use"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, kind := range []string{"text/event-stream", "application/json"} {
			p := answer(t, kind, data, nil)
			got, err := model.Collect(p.Stream(t.Context(), conversation))
			ids := map[string]bool{"1": true, "b.2": true}
			for _, c := range got.Message.Calls {
				if err == nil && (c.ID == "" || ids[c.ID]) {
					t.Fatalf("id %q is empty or taken in %q", c.ID, data)
				}
				ids[c.ID] = true
			}
			if err != nil {
				continue
			}
			again := *conversation
			again.Messages = append(append([]model.Message{}, conversation.Messages...), got.Message)
			if body := AppendRequest(nil, &again, Encoding{}); !json.Valid(body) {
				t.Fatalf("%q is sent back as %s", data, body)
			}
		}
	})
}

// FuzzDecodeRequest: no body breaks a server.
func FuzzDecodeRequest(f *testing.F) {
	f.Add(AppendRequest(nil, conversation, Encoding{}))
	f.Add([]byte(`{"messages":[{"role":"user","content":"hi"}],"system":"s"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		req, err := DecodeRequest(body)
		if err != nil {
			return
		}
		again, err := DecodeRequest(AppendRequest(nil, req, Encoding{}))
		if err != nil {
			t.Fatalf("%q: %v", body, err)
		}
		if len(again.Tools) != len(req.Tools) {
			t.Errorf("%q: %s", body, cmp.Diff(req.Tools, again.Tools))
		}
	})
}

// BenchmarkStream reports the cost of one streamed delta.
func BenchmarkStream(b *testing.B) {
	const deltas = 1000
	one := "event: content_block_delta\ndata: " + `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" token"}}` + "\n\n"
	body := []byte(strings.Repeat(one, deltas) + "data: {\"type\":\"message_stop\"}\n\n")
	p := answer(b, "text/event-stream", body, nil)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		for _, err := range p.Stream(b.Context(), conversation) {
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/delta")
}
