package openai

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/model/endpoint"
)

// oracle is a chunk as encoding/json reads it.
type oracle struct {
	ID      *string `json:"id"`
	Choices []struct {
		Delta struct {
			Content   *string `json:"content"`
			ToolCalls []struct {
				ID       *string `json:"id"`
				Function struct {
					Name      *string `json:"name"`
					Arguments *string `json:"arguments"`
				} `json:"function"`
			} `json:"tool_calls"`
		} `json:"delta"`
		FinishReason *string `json:"finish_reason"`
	} `json:"choices"`
}

func str(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// plain reports whether no object in the text has a key twice, or a key that
// encoding/json would match by its letters alone. The two readers may differ
// there.
func plain(data []byte) bool {
	var walk func(dec *json.Decoder) bool
	walk = func(dec *json.Decoder) bool {
		tok, err := dec.Token()
		if err != nil {
			return false
		}
		d, ok := tok.(json.Delim)
		if !ok {
			return true
		}
		seen := map[string]bool{}
		for dec.More() {
			if d == '{' {
				key, err := dec.Token()
				k, _ := key.(string)
				if err != nil || seen[strings.ToLower(k)] || k != strings.ToLower(k) {
					return false
				}
				for _, other := range []string{"message", "refusal", "reasoning", "reasoning_content", "function_call", "ſ", "K"} {
					if strings.Contains(k, other) {
						return false
					}
				}
				seen[strings.ToLower(k)] = true
			}
			if !walk(dec) {
				return false
			}
		}
		_, err = dec.Token()
		return err == nil
	}
	return walk(json.NewDecoder(bytes.NewReader(data)))
}

// FuzzChunk compares the scanner with encoding/json, and checks that nothing in
// a chunk breaks it.
func FuzzChunk(f *testing.F) {
	for _, s := range []string{
		choice(`{"content":"a\u00e9\ud83d\ude00\n"}`), finish("stop"),
		calls(`{"index":0,"id":"c","function":{"name":"n","arguments":"{\"a\":1}"}}`),
		`{"choices":[],"usage":{"prompt_tokens":1e3,"completion_tokens":"7"}}`,
		`{"a":[[{}]],"b":"\\\"","choices":[{"delta":{"content":null}}]}`,
		`{"error":{"message":"x"}}`, `{"id":"\ud83d"}`, "{\"id\":\"\xff\"}", `{`, `{"a":}`, `{"a" "b"}`, `[1,2`, `{"choices":[{"delta":{"content":[{"text":"x"}]}}]}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var dec decoder
		var d delta
		ok := dec.decode(data, &d)
		whole := decoder{whole: true}
		var w delta
		whole.decode(data, &w)

		var o oracle
		if !bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte("{")) || json.Unmarshal(data, &o) != nil || !plain(data) {
			return
		}
		if !ok {
			t.Fatalf("refused %q", data)
		}
		text, fin := "", ""
		var ids, names, args []string
		for _, c := range o.Choices {
			text += str(c.Delta.Content)
			if s := str(c.FinishReason); s != "" {
				fin = s
			}
			for _, tc := range c.Delta.ToolCalls {
				ids, names, args = append(ids, str(tc.ID)), append(names, str(tc.Function.Name)), append(args, str(tc.Function.Arguments))
			}
		}
		if bytes.Contains(data, []byte(`\u`)) {
			// Halves of characters that meet across texts are joined here only.
			rest, _ := dec.rest()
			if strings.Count(d.text+rest, "\uFFFD") != strings.Count(text, "\uFFFD") {
				return
			}
			d.text += rest
		}
		if d.text != text || d.finish != fin || d.id != str(o.ID) || len(d.calls) < len(ids) {
			t.Fatalf("%q:\ngot  %+v\nwant %q %q %q %d", data, d, text, fin, str(o.ID), len(ids))
		}
		for i := range ids {
			c := d.calls[i]
			if c.ID != ids[i] || c.Name != names[i] || c.Args != args[i] && !bytes.Contains(data, []byte(`\u`)) {
				t.Fatalf("%q: call %d: got %+v, want %q %q %q", data, i, c, ids[i], names[i], args[i])
			}
		}
	})
}

// FuzzAnswer: no stream breaks the provider's reading, and calls come out whole.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(sse(calls(`{"index":0,"function":{"name":"x"}}`), "[DONE]")))
	f.Add([]byte(sse(choice(`{"content":"a"}`), finish("stop"))))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, kind := range []string{"text/event-stream", "application/json"} {
			p, err := New(Config{Server: endpoint.Server{BaseURL: "http://x", HTTPClient: &http.Client{Transport: pipeTransport(func(*http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(bytes.NewReader(data))}, nil
			})}}})
			if err != nil {
				t.Fatal(err)
			}
			var acc model.Accumulator
			ids := map[string]bool{}
			for c, err := range p.Stream(t.Context(), ask) {
				if err != nil {
					break
				}
				if c.Call != nil && c.Call.ID != "" {
					if ids[c.Call.ID] || c.Call.ID == "taken" {
						t.Fatalf("id %q twice", c.Call.ID)
					}
					ids[c.Call.ID] = true
				}
				acc.Add(c)
			}
			for _, c := range acc.Response().Message.Calls {
				if c.ID == "" {
					t.Fatalf("a call without an id in %q", data)
				}
			}
		}
	})
}
