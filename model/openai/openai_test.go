package openai

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/model/endpoint"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve starts a server and returns a provider for it, with a client of its own.
func serve(t testing.TB, h http.HandlerFunc, change func(*Config)) *Provider {
	t.Helper()
	srv := httptest.NewServer(h)
	client := srv.Client()
	t.Cleanup(func() { client.CloseIdleConnections(); srv.Close() })
	n := 0
	cfg := Config{Server: endpoint.Server{BaseURL: srv.URL + "/v1/", APIKey: "sk-secret-key-1234", HTTPClient: client,
		NewID: func() string { n++; return fmt.Sprintf("made_%d", n) }}}
	if change != nil {
		change(&cfg)
	}
	p, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func sse(events ...string) string {
	var b strings.Builder
	for _, e := range events {
		b.WriteString("data: " + e + "\n\n")
	}
	return b.String()
}

// choice is an event with one delta.
func choice(delta string) string {
	return `{"id":"r1","model":"m1","choices":[{"index":0,"delta":` + delta + `,"finish_reason":null}]}`
}

func calls(s string) string { return choice(`{"tool_calls":[` + s + `]}`) }

func finish(reason string) string {
	return `{"id":"r1","model":"m1","choices":[{"index":0,"delta":{},"finish_reason":"` + reason + `"}]}`
}

var ask = &model.Request{Model: "demo", Stream: true, Messages: []model.Message{
	{Role: model.User, Text: "hi"},
	{Role: model.Assistant, Calls: []model.Call{{ID: "taken", Name: "x"}}},
	{Role: model.ToolRole, CallID: "taken"},
}}

func call(id, name, args string) model.Call { return model.Call{ID: id, Name: name, Arguments: args} }

func TestStreams(t *testing.T) {
	usage := `{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":5},"completion_tokens_details":{"reasoning_tokens":2}}}`
	full := &model.Usage{InputTokens: 7, OutputTokens: 3, CacheReadTokens: 5, ReasoningTokens: 2}
	begin := `{"index":0,"id":"c1","type":"function","function":{"name":"look","arguments":""}}`
	tests := []struct {
		name, body string
		text       string
		reasoning  string
		field      string // of the reasoning
		calls      []model.Call
		finish     string
		usage      *model.Usage
	}{
		{name: "role, empty choices, content, usage, done",
			body: sse(choice(`{"role":"assistant","content":""}`), `{"id":"r1","choices":[]}`, `{"id":"r1"}`, choice(`{"content":"He"}`), choice(`{"content":"llo"}`), finish("stop"), usage, "[DONE]"),
			text: "Hello", finish: "stop", usage: full},
		{name: "CRLF, comments, other fields, no space",
			body: ": hi\r\nid: 3\r\nevent: message\r\ndata:" + choice(`{"content":"a"}`) + "\r\n\r\n: ping\r\n\r\ndata: " + finish("stop") + "\r\n\r\ndata: [DONE]\r\n\r\n",
			text: "a", finish: "stop"},
		{name: "byte order mark", body: "\xef\xbb\xbf" + sse(choice(`{"content":"a"}`), "[DONE]"), text: "a"},
		{name: "done is missing", body: sse(choice(`{"content":"a"}`), finish("stop")), text: "a", finish: "stop"},
		{name: "no newline at the end", body: sse(choice(`{"content":"a"}`)) + "data: " + finish("stop"), text: "a", finish: "stop"},
		{name: "done at the end without newline", body: sse(choice(`{"content":"a"}`)) + "data: [DONE]", text: "a"},
		{name: "no finish reason, but done", body: sse(choice(`{"content":"a"}`), "[DONE]"), text: "a"},
		{name: "an event over several lines",
			body: "data: {\"choices\":[{\"delta\":\ndata: {\"content\":\ndata: \"a\"}}]}\n\ndata: [DONE]\n\n", text: "a"},
		{name: "events without empty lines between",
			body: "data: " + choice(`{"content":"a"}`) + "\ndata: " + choice(`{"content":"b"}`) + "\ndata: [DONE]\n", text: "ab"},
		{name: "usage on every chunk, the last counts",
			body: sse(`{"choices":[{"delta":{"content":"a"}}],"usage":{"prompt_tokens":7,"completion_tokens":1}}`, `{"choices":[{"delta":{"content":"b"}}],"usage":null}`, usage, "[DONE]"),
			text: "ab", usage: full},
		{name: "arguments absent", body: sse(calls(`{"index":0,"id":"c1","function":{"name":"look"}}`), finish("tool_calls")), calls: []model.Call{call("c1", "look", "")}, finish: "tool_calls"},
		{name: "arguments null", body: sse(calls(`{"index":0,"id":"c1","function":{"name":"look","arguments":null}}`), finish("stop")), calls: []model.Call{call("c1", "look", "")}, finish: "stop"},
		{name: "arguments empty", body: sse(calls(begin), finish("tool_calls")), calls: []model.Call{call("c1", "look", "")}, finish: "tool_calls"},
		{name: "arguments in pieces, finish end_turn",
			body:  sse(calls(begin), calls(`{"index":0,"function":{"arguments":"{"}}`), calls(`{"index":0,"function":{"arguments":"}"}}`), finish("end_turn")),
			calls: []model.Call{call("c1", "look", "{}")}, finish: "end_turn"},
		{name: "arguments as an object", body: sse(calls(`{"index":0,"id":"c1","function":{"name":"look","arguments":{"a":[1,"x"]}}}`), "[DONE]"), calls: []model.Call{call("c1", "look", `{"a":[1,"x"]}`)}},
		{name: "call after text", body: sse(choice(`{"content":"t"}`), calls(begin), finish("stop")), text: "t", calls: []model.Call{call("c1", "look", "")}, finish: "stop"},
		{name: "call between texts", body: sse(choice(`{"content":"t"}`), calls(begin), choice(`{"content":"u"}`), "[DONE]"), text: "tu", calls: []model.Call{call("c1", "look", "")}},
		{name: "call after reasoning", body: sse(choice(`{"reasoning_content":"r"}`), calls(begin), "[DONE]"), reasoning: "r", field: "reasoning_content", calls: []model.Call{call("c1", "look", "")}},
		{name: "call in the last chunk",
			body: sse(`{"choices":[{"delta":{"tool_calls":[` + begin + `]},"finish_reason":"tool_calls"}]}`), calls: []model.Call{call("c1", "look", "")}, finish: "tool_calls"},
		{name: "id and name repeated",
			body:  sse(calls(`{"index":0,"id":"c1","function":{"name":"look","arguments":"{\"a\""}}`), calls(`{"index":0,"id":"c1","function":{"name":"look","arguments":":1}"}}`), "[DONE]"),
			calls: []model.Call{call("c1", "look", `{"a":1}`)}},
		{name: "id empty in later fragments",
			body:  sse(calls(begin), calls(`{"index":0,"id":"","function":{"name":"","arguments":"{}"}}`), "[DONE]"),
			calls: []model.Call{call("c1", "look", "{}")}},
		{name: "id late", body: sse(calls(`{"index":0,"function":{"name":"look","arguments":"{"}}`), calls(`{"index":0,"id":"c1","function":{"arguments":"}"}}`), "[DONE]"),
			calls: []model.Call{call("c1", "look", "{}")}},
		{name: "name late", body: sse(calls(`{"index":0,"id":"c1"}`), calls(`{"index":0,"function":{"name":"look","arguments":"{}"}}`), "[DONE]"),
			calls: []model.Call{call("c1", "look", "{}")}},
		{name: "id missing", body: sse(calls(`{"index":0,"function":{"name":"look","arguments":"{}"}}`), calls(`{"index":1,"function":{"name":"look"}}`), "[DONE]"),
			calls: []model.Call{call("made_1", "look", "{}"), call("made_2", "look", "")}},
		{name: "index absent", body: sse(calls(`{"id":"a","function":{"name":"one","arguments":"{"}}`), calls(`{"function":{"arguments":"}"}}`), calls(`{"id":"b","function":{"name":"two","arguments":"{}"}}`), "[DONE]"),
			calls: []model.Call{call("a", "one", "{}"), call("b", "two", "{}")}},
		{name: "index and id absent", body: sse(calls(`{"function":{"name":"one","arguments":"{}"}}`), calls(`{"function":{"name":"two","arguments":"{}"}}`), "[DONE]"),
			calls: []model.Call{call("made_1", "one", "{}"), call("made_2", "two", "{}")}},
		{name: "all calls have index 0", body: sse(calls(`{"index":0,"id":"a","function":{"name":"one","arguments":"{}"}}`), calls(`{"index":0,"id":"b","function":{"name":"two","arguments":"{}"}}`), "[DONE]"),
			calls: []model.Call{call("a", "one", "{}"), call("b", "two", "{}")}},
		{name: "fragments of two calls interleaved",
			body:  sse(calls(`{"index":0,"id":"a","function":{"name":"one","arguments":"{"}},{"index":1,"id":"b","function":{"name":"two","arguments":"["}}`), calls(`{"index":1,"function":{"arguments":"]"}},{"index":0,"function":{"arguments":"}"}}`), "[DONE]"),
			calls: []model.Call{call("a", "one", "{}"), call("b", "two", "[]")}},
		{name: "two calls share an id", body: sse(calls(`{"index":0,"id":"a","function":{"name":"one"}},{"index":1,"id":"a","function":{"name":"two"}}`), "[DONE]"),
			calls: []model.Call{call("a", "one", ""), call("made_1", "two", "")}},
		{name: "an id of the conversation, repeated in fragments", body: sse(calls(`{"index":0,"id":"taken","function":{"name":"one","arguments":"{"}}`), calls(`{"index":0,"id":"taken","function":{"name":"one","arguments":"}"}}`), "[DONE]"),
			calls: []model.Call{call("made_1", "one", "{}")}},
		{name: "old function_call", body: sse(choice(`{"function_call":{"name":"look","arguments":"{"}}`), choice(`{"function_call":{"arguments":"}"}}`), finish("function_call")),
			calls: []model.Call{call("made_1", "look", "{}")}, finish: "function_call"},
		{name: "content in parts", body: sse(choice(`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"a"},{"type":"text","text":"b"}]}`), "[DONE]"), text: "ab", reasoning: "hm"},
		{name: "reasoning", body: sse(choice(`{"reasoning":"r1 "}`), choice(`{"reasoning":"r2","reasoning_content":"r2"}`), choice(`{"content":"a"}`), "[DONE]"), text: "a", reasoning: "r1 r2", field: "reasoning"},
		{name: "refusal", body: sse(choice(`{"refusal":"No"}`), choice(`{"refusal":"."}`), finish("stop")), text: "No.", finish: "stop"},
		{name: "a message where a delta is due", body: sse(`{"choices":[{"message":{"role":"assistant","content":"a"},"finish_reason":"stop"}]}`), text: "a", finish: "stop"},
		{name: "escapes", body: sse(choice(`{"content":"\u00e9\n\"\\\/\ud83d\ude00 \ud83d."}`), "[DONE]"), text: "é\n\"\\/😀 \uFFFD."},
		{name: "a character cut in two", body: sse(choice(`{"content":"a\ud83d"}`), choice(`{"content":"\ude00b"}`), "[DONE]"), text: "a😀b"},
		{name: "a character cut in two in arguments",
			body:  sse(calls(`{"index":0,"id":"a","function":{"name":"x","arguments":"\ud83d"}}`), choice(`{"content":"c"}`), calls(`{"index":0,"function":{"arguments":"\ude00"}}`), "[DONE]"),
			calls: []model.Call{call("a", "x", "😀")}, text: "c"},
		{name: "half a character at the end", body: sse(choice(`{"content":"a\ud83d"}`), "[DONE]"), text: "a\uFFFD"},
		{name: "bytes that are not UTF-8", body: sse(choice("{\"content\":\"a\xff\"}"), "[DONE]"), text: "a\uFFFD"},
		{name: "null everywhere", body: sse(`{"id":null,"choices":[{"index":null,"delta":{"content":null,"tool_calls":null,"refusal":null,"role":null},"finish_reason":null}],"usage":null,"error":null}`, choice(`{"content":"a"}`), "[DONE]"), text: "a"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := serve(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				io.WriteString(w, tt.body)
			}, nil)
			got, err := model.Collect(p.Stream(t.Context(), ask))
			if err != nil {
				t.Fatal(err)
			}
			want := model.Message{Role: model.Assistant, Text: tt.text, Reasoning: tt.reasoning, ReasoningField: tt.field, Calls: tt.calls}
			if diff := cmp.Diff(want, got.Message); diff != "" {
				t.Error(diff)
			}
			if got.Finish != tt.finish || cmp.Diff(tt.usage, got.Usage) != "" {
				t.Errorf("finish %q, usage %+v", got.Finish, got.Usage)
			}
		})
	}
}

func TestWhole(t *testing.T) {
	tests := []struct {
		name, body string
		want       model.Message
		finish     string
	}{
		{"several choices", `{"id":"x","choices":[
			{"index":0,"message":{"content":"First.","tool_calls":[{"id":"a","type":"function","function":{"name":"one","arguments":"{}"}}]},"finish_reason":"tool_calls"},
			{"index":0,"message":{"content":null,"tool_calls":[{"id":"b","type":"function","function":{"name":"two","arguments":""}}]},"finish_reason":"tool_calls"},
			{"index":0,"message":{"content":"Last."},"finish_reason":"stop"}],"usage":{"prompt_tokens":0,"completion_tokens":0}}`,
			model.Message{Role: model.Assistant, Text: "First.\n\nLast.", Calls: []model.Call{call("a", "one", "{}"), call("b", "two", "")}}, "stop"},
		{"calls without ids", `{"choices":[{"message":{"tool_calls":[{"function":{"name":"one","arguments":{"a":1}}},{"function":{"name":"one"}}]}}]}`,
			model.Message{Role: model.Assistant, Calls: []model.Call{call("made_1", "one", `{"a":1}`), call("made_2", "one", "")}}, ""},
		{"reasoning and parts", `{"choices":[{"message":{"reasoning_content":"r","content":[{"type":"text","text":"a"}]},"finish_reason":"stop"}]}`,
			model.Message{Role: model.Assistant, Text: "a", Reasoning: "r", ReasoningField: "reasoning_content"}, "stop"},
		{"refusal", `{"choices":[{"message":{"content":null,"refusal":"No."},"finish_reason":"stop"}]}`,
			model.Message{Role: model.Assistant, Text: "No."}, "stop"},
	}
	for _, tt := range tests {
		for _, stream := range []bool{false, true} { // a server may ignore stream
			t.Run(fmt.Sprint(tt.name, stream), func(t *testing.T) {
				p := serve(t, func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("Content-Type", "application/json; charset=utf-8")
					io.WriteString(w, tt.body)
				}, nil)
				req := *ask
				req.Stream = stream
				got, err := model.Collect(p.Stream(t.Context(), &req))
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tt.want, got.Message); diff != "" || got.Finish != tt.finish {
					t.Errorf("finish %q\n%s", got.Finish, diff)
				}
			})
		}
	}
}

func TestRequestOnTheWire(t *testing.T) {
	var path, query, auth, extra, body string
	p := serve(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		path, query, auth, extra, body = r.URL.Path, r.URL.RawQuery, r.Header.Get("Authorization"), r.Header.Get("X-Extra")+r.Header.Get("X-Once"), string(b)
		io.WriteString(w, `{"choices":[{"message":{"content":"ok"}}]}`)
	}, func(c *Config) {
		c.BaseURL = strings.TrimSuffix(c.BaseURL, "/") + "/chat/completions/?api-version=7"
		c.BearerToken = "wins-over-key"
		c.Headers = map[string]string{"X-Extra": "e"}
		c.WireModel = "on-the-wire"
	})
	_, err := model.Collect(p.Stream(t.Context(), &model.Request{
		Model: "demo", ReasoningEffort: "low", Headers: map[string]string{"X-Once": "o"},
		Messages: []model.Message{
			{Role: model.System, Text: "S"}, {Role: model.Developer, Text: "D"},
			{Role: model.User, Text: "a\"\n\x01\xff", Images: []model.Image{{Name: "p.png", MIMEType: "image/png", Data: "QUJD"}}},
			{Role: model.Assistant, Calls: []model.Call{{ID: "1", Name: "t", Arguments: `{"x":1}`}, {ID: "2", Name: "u"}}},
			{Role: model.ToolRole, CallID: "1", Text: "r", Images: []model.Image{{Name: "at /q", MIMEType: "image/png", Data: "QUJE"}}},
			{Role: model.ToolRole, CallID: "2", Text: ""},
			{Role: model.Assistant, Text: "", Reasoning: "secret thoughts"},
		},
		Tools: []model.ToolDef{{Name: "z", Description: "d", Parameters: []byte(`{"type":"object","$schema":"x"}`)}, {Name: "a"}},
	}))
	if err != nil {
		t.Fatal(err)
	}
	if path != "/v1/chat/completions" || query != "api-version=7" || auth != "Bearer wins-over-key" || extra != "eo" {
		t.Errorf("path %q, query %q, auth %q, headers %q", path, query, auth, extra)
	}
	want := `{"model":"on-the-wire","messages":[` +
		`{"role":"system","content":"S\n\nD"},` +
		`{"role":"user","content":[{"type":"text","text":"a\"\n\u0001` + "\uFFFD" + `"},{"type":"text","text":"p.png"},{"type":"image_url","image_url":{"url":"data:image/png;base64,QUJD"}}]},` +
		`{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"t","arguments":"{\"x\":1}"}},{"id":"2","type":"function","function":{"name":"u","arguments":"{}"}}]},` +
		`{"role":"tool","tool_call_id":"1","content":"r"},{"role":"tool","tool_call_id":"2","content":""},` +
		`{"role":"user","content":[{"type":"text","text":"at /q"},{"type":"image_url","image_url":{"url":"data:image/png;base64,QUJE"}}]},` +
		`{"role":"assistant","content":""}],` +
		`"tools":[{"type":"function","function":{"name":"z","description":"d","parameters":{"type":"object","$schema":"x"}}},{"type":"function","function":{"name":"a","parameters":{"type":"object","properties":{}}}}],` +
		`"reasoning_effort":"low"}`
	if diff := cmp.Diff(want, body); diff != "" {
		t.Error(diff)
	}
	req, err := DecodeRequest([]byte(body))
	if err != nil || req.Messages[1].Images[0].Data != "QUJD" || req.Messages[2].Calls[0].Arguments != `{"x":1}` || req.Tools[0].Name != "z" {
		t.Errorf("decoded %+v, %v", req, err)
	}
}

func TestCancelClosesTheConnection(t *testing.T) {
	gone := make(chan struct{})
	p := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, sse(choice(`{"content":"a"}`)))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		close(gone)
	}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := model.Collect(func(yield func(model.Chunk, error) bool) {
		for c, err := range p.Stream(ctx, ask) {
			cancel()
			if !yield(c, err) {
				return
			}
		}
	})
	var me *model.Error
	if !errors.Is(err, context.Canceled) || !errors.As(err, &me) || me.Retryable {
		t.Errorf("got %v", err)
	}
	wait(t, gone)
}

func TestLeavingClosesTheConnection(t *testing.T) {
	gone := make(chan struct{})
	p := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, sse(choice(`{"content":"a"}`), choice(`{"content":"b"}`)))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		close(gone)
	}, nil)
	for c, err := range p.Stream(t.Context(), ask) {
		if err != nil || c.Text != "a" {
			t.Errorf("got %+v, %v", c, err)
		}
		break
	}
	wait(t, gone)
}

func wait(t *testing.T, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(2 * time.Minute):
		t.Fatal("the connection is still open")
	}
}

func TestModels(t *testing.T) {
	p := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/models" || r.Header.Get("Authorization") != "Bearer sk-secret-key-1234" {
			http.Error(w, "?", 400)
		}
		io.WriteString(w, `{"object":"list","data":[{"id":"a","name":"A","capabilities":{"tokenizer":"o200k_base","supports":{"vision":true},"limits":{"max_context_window_tokens":128000,"max_output_tokens":5,"vision":{"supported_media_types":["image/png"],"max_prompt_images":3,"max_prompt_image_size":99}}}},
			{"id":"b","context_length":7,"billing":{"token_prices":{"batch_size":1,"default":{"context_max":5},"long_context":{"max_prompt_tokens":90}}}},7,{"id":"c","max_model_len":9},{"id":"d","meta":{"n_ctx_train":11}},{"name":"no id"}]}`)
	}, nil)
	got, err := p.Models(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range got {
		got[i].Raw = nil
	}
	want := []model.Info{{ID: "a", Name: "A", ContextWindow: 128000, MaxOutput: 5, Vision: true, Tokenizer: "o200k_base", Images: model.ImageLimits{Types: []string{"image/png"}, Count: 3, Bytes: 99}},
		{ID: "b", Name: "b", ContextWindow: 7, Tiers: map[string]int{"default": 5, "long_context": 90}}, {ID: "c", Name: "c", ContextWindow: 9}, {ID: "d", Name: "d", ContextWindow: 11}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
