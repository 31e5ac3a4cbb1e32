package responses

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
	cfg := Config{Server: endpoint.Server{BaseURL: "http://x/v1", HTTPClient: &http.Client{Transport: memory(func(*http.Request) (*http.Response, error) {
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
	Model: "gpt-5", ReasoningEffort: "low", ReasoningSummary: "auto",
	Messages: []model.Message{
		{Role: model.System, Text: "S"}, {Role: model.Developer, Text: "D"},
		{Role: model.User, Text: "a\"\n\xff", Images: []model.Image{{Name: "p.png", MIMEType: "image/png", Data: "QUJD"}},
			Documents: []model.Document{{Title: "p.pdf", MIMEType: "application/pdf", Data: "UERG"}}},
		{Role: model.Assistant, Text: "Look.", Reasoning: "hm", ReasoningOpaque: `[{"type":"thinking"}]`,
			EncryptedContent: `[{"type":"reasoning","summary":[],"encrypted_content":"E1"},"text",0,{"type":"reasoning","summary":[],"encrypted_content":"E2"},1]`,
			Calls:            []model.Call{{ID: "1", Name: "t", Arguments: `{"x":1}`}, {ID: "2", Name: "u"}}},
		{Role: model.ToolRole, CallID: "1", Text: "r", Images: []model.Image{{Name: "at /q", MIMEType: "image/png", Data: "QUJE"}}},
		{Role: model.ToolRole, CallID: "2"},
		{Role: model.User, Text: "go"}, {Role: model.User, Text: "on"},
	},
	Tools: []model.ToolDef{{Name: "z", Description: "d", Parameters: []byte(`{"type":"object"}`)}, {Name: "a"}},
}

func TestRequest(t *testing.T) {
	want := `{"model":"wire","instructions":"S\n\nD","input":[` +
		`{"type":"message","role":"user","content":[{"type":"input_file","filename":"p.pdf","file_data":"data:application/pdf;base64,UERG"},{"type":"input_text","text":"a\"\n` + "\uFFFD" + `"},{"type":"input_text","text":"p.png"},{"type":"input_image","image_url":"data:image/png;base64,QUJD","detail":"auto"}]},` +
		`{"type":"reasoning","summary":[],"encrypted_content":"E1"},` +
		`{"type":"message","role":"assistant","content":"Look."},` +
		`{"type":"function_call","call_id":"1","name":"t","arguments":"{\"x\":1}"},` +
		`{"type":"reasoning","summary":[],"encrypted_content":"E2"},` +
		`{"type":"function_call","call_id":"2","name":"u","arguments":"{}"},` +
		`{"type":"function_call_output","call_id":"1","output":"r"},` +
		`{"type":"function_call_output","call_id":"2","output":""},` +
		`{"type":"message","role":"user","content":[{"type":"input_text","text":"at /q"},{"type":"input_image","image_url":"data:image/png;base64,QUJE","detail":"auto"}]},` +
		`{"type":"message","role":"user","content":"go"},{"type":"message","role":"user","content":"on"}],` +
		`"tools":[{"type":"function","name":"z","description":"d","parameters":{"type":"object"},"strict":false},{"type":"function","name":"a","parameters":{"type":"object","properties":{}},"strict":false}],` +
		`"reasoning":{"effort":"low","summary":"auto"},"include":["reasoning.encrypted_content"],"max_output_tokens":99,"store":false}`
	got := string(AppendRequest(nil, conversation, Encoding{Model: "wire", Encrypted: true, MaxTokens: 99}))
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if !json.Valid([]byte(got)) {
		t.Error("not JSON")
	}
	back, err := DecodeRequest([]byte(got))
	if err != nil {
		t.Fatal(err)
	}
	if len(back.Messages) != 8 || back.Messages[0].Text != "S\n\nD" || len(back.Messages[2].Calls) != 2 || back.Messages[1].Documents[0].Title != "p.pdf" || back.ReasoningEffort != "low" {
		t.Errorf("read back as %+v", back)
	}
}

// TestOrderLost: what stands in EncryptedContent and does not fit the message
// costs nothing but the reasoning.
func TestOrderLost(t *testing.T) {
	for _, enc := range []string{"", "x", "[]", `[7,-1,"text","text",0,0]`, `{"a":1}`, "null", `[null,true,[]]`} {
		req := &model.Request{Messages: []model.Message{{Role: model.User, Text: "u"},
			{Role: model.Assistant, Text: "t", EncryptedContent: enc, Calls: []model.Call{{ID: "1", Name: "n"}}}, {Role: model.ToolRole, CallID: "1"}}}
		got := string(AppendRequest(nil, req, Encoding{}))
		if !json.Valid([]byte(got)) || strings.Count(got, `"content":"t"`) != 1 || strings.Count(got, `"type":"function_call"`) != 1 {
			t.Errorf("%q: %s", enc, got)
		}
	}
}

func TestEncryptedIsAskedFor(t *testing.T) {
	yes, no := true, false
	for _, tt := range []struct {
		model, wire, effort string
		set                 *bool
		want                bool
	}{
		{"gpt-5.4", "", "", nil, true}, {"openai/gpt-5-mini", "", "", nil, true}, {"o3", "", "", nil, true}, {"gpt-5", "my-deployment", "", nil, true},
		{"gpt-4o", "", "", nil, false}, {"gpt-5-chat-latest", "", "", nil, false}, {"qwen3", "", "", nil, false}, {"qwen3", "", "high", nil, true},
		{"gpt-5", "", "", &no, false}, {"qwen3", "", "", &yes, true},
	} {
		var body []byte
		p := answer(t, "application/json", nil, func(c *Config) {
			c.Reasoning, c.WireModel = tt.set, tt.wire
			c.HTTPClient = &http.Client{Transport: memory(func(r *http.Request) (*http.Response, error) {
				body, _ = io.ReadAll(r.Body)
				return nil, io.ErrUnexpectedEOF
			})}
		})
		model.Collect(p.Stream(t.Context(), &model.Request{Model: tt.model, ReasoningEffort: tt.effort, Messages: conversation.Messages}))
		if got := bytes.Contains(body, []byte(`"include"`)); got != tt.want {
			t.Errorf("%+v: %v", tt, got)
		}
		if !bytes.Contains(body, []byte(`"store":false`)) || bytes.Contains(body, []byte("previous_response_id")) {
			t.Errorf("%s", body)
		}
	}
}

// FuzzAnswer: no answer breaks the reading; calls come out with ids of their own,
// and whatever came can be sent back.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte("event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"a\\ud83d\"}\n\ndata: {\"type\":\"response.completed\",\"response\":{\"id\":\"r\"}}\n\n"))
	f.Add([]byte("data: {\"type\":\"response.output_item.added\",\"output_index\":0,\"item\":{\"type\":\"function_call\",\"call_id\":\"1\",\"name\":\"n\"}}\n\ndata: {\"type\":\"response.function_call_arguments.delta\",\"output_index\":0,\"delta\":\"{}\"}\n\ndata: {\"type\":\"response.completed\",\"response\":{}}\n\n"))
	f.Add([]byte(`{"id":"r","status":"completed","output":[{"type":"reasoning","encrypted_content":"E","summary":[{"text":"s"}]},{"type":"message","content":[{"text":"a"}]},{"type":"function_call","arguments":{"a":1}}]}`))
	f.Add([]byte("data: {\"type\":\"response.output_item.done\",\"item\":{\"type\":\"reasoning\",\"content\":\"x\",\"id\":\"\\ud800\"}}\n\ndata: {\"type\":\"response.output_item.done\",\"item\":{\"type\":\"message\",\"content\":\"x\"}}\n\ndata: {\"type\":\"response.incomplete\",\"response\":{\"output\":[1]}}\n\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, kind := range []string{"text/event-stream", "application/json"} {
			p := answer(t, kind, data, nil)
			got, err := model.Collect(p.Stream(t.Context(), conversation))
			ids := map[string]bool{"1": true, "2": true}
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
	f.Add([]byte(`{"input":"hi"}`))
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
	one := "event: response.output_text.delta\ndata: " + `{"type":"response.output_text.delta","sequence_number":42,"item_id":"msg_0123456789abcdef0123456789abcdef","output_index":0,"content_index":0,"delta":" token","logprobs":[],"obfuscation":"abcdefgh"}` + "\n\n"
	body := []byte(strings.Repeat(one, deltas) + "data: {\"type\":\"response.completed\",\"response\":{\"id\":\"r\",\"status\":\"completed\"}}\n\n")
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
