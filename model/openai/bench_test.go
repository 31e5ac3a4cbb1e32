package openai

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/model/endpoint"
	"github.com/transom-run/transom/model/internal/wire"
)

// BenchmarkStream reports the cost of one streamed delta, from the bytes of an
// in-memory connection to the chunk.
func BenchmarkStream(b *testing.B) {
	const deltas = 1000
	one := `{"id":"chatcmpl-AbCdEf0123456789","object":"chat.completion.chunk","created":1764000000,"model":"gpt-5-mini-2026-01-01","service_tier":"default","system_fingerprint":"fp_0123456789","choices":[{"index":0,"delta":{"content":" token"},"logprobs":null,"finish_reason":null}],"usage":null}`
	body := strings.Repeat("data: "+one+"\n\n", deltas) + sse(finish("stop"), "[DONE]")
	p, err := New(Config{Server: endpoint.Server{BaseURL: "http://x/v1", HTTPClient: &http.Client{Transport: pipeTransport(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(strings.NewReader(body))}, nil
	})}}})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		for _, err := range p.Stream(b.Context(), ask) {
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/delta")
}

// BenchmarkDecode is the decoding alone.
func BenchmarkDecode(b *testing.B) {
	data := []byte(choice(`{"content":" token"}`))
	var dec decoder
	var d delta
	b.ReportAllocs()
	for b.Loop() {
		dec.decode(data, &d)
	}
}

// BenchmarkEncode writes a request of 100 messages.
func BenchmarkEncode(b *testing.B) {
	req := &model.Request{Model: "demo", Stream: true, Tools: []model.ToolDef{{Name: "t", Description: "A tool.", Parameters: []byte(`{"type":"object","properties":{"x":{"type":"string"}}}`)}}}
	for range 25 {
		req.Messages = append(req.Messages,
			model.Message{Role: model.User, Text: strings.Repeat("What does the file say?\n", 20)},
			model.Message{Role: model.Assistant, Calls: []model.Call{{ID: "call_0123456789", Name: "t", Arguments: `{"x":"some argument"}`}}},
			model.Message{Role: model.ToolRole, CallID: "call_0123456789", Text: strings.Repeat("1. package main \"x\"\n", 40)},
			model.Message{Role: model.Assistant, Text: strings.Repeat("It says this. ", 30)})
	}
	b.ReportAllocs()
	for b.Loop() {
		body := AppendRequest(make([]byte, 0, wire.RequestSize(req)), req, Encoding{})
		b.SetBytes(int64(len(body)))
	}
}
