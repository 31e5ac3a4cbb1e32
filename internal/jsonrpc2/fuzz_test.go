package jsonrpc2

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"testing"
	"unicode/utf8"
)

// script is a stream that plays fixed input and keeps the output.
type script struct {
	io.Reader
	out bytes.Buffer
}

func (s *script) Write(p []byte) (int, error) { return s.out.Write(p) }
func (s *script) Close() error                { return nil }

// FuzzFrame: any bytes end Serve with one of the documented outcomes, and what
// was written meanwhile is whole frames of valid messages.
func FuzzFrame(f *testing.F) {
	for _, seed := range []string{
		"",
		frame(request(1, "ping", "{}")),
		frame(request(1, "echo", `{"a":[1]}`)) + frame(request(1, "none", "[]")) + "Content-Length: 3\n\nabc",
		"content-length:2\r\nX: y\r\n\r\n{}",
		"Content-Length: -1\r\n\r\n",
		"Content-Length: 99999999999\r\n\r\n{",
		"Content-Length: 3000\r\n\r\n" + `{"id":1,"method":"m","params":"` + longName(2967) + `"}`,
		"GET / HTTP/1.1\r\n\r\n",
		"Content-Length: 5\r\n\r\n12",
		"\r\n\r\n",
		frame("") + frame("[]") + frame("\xff") + frame(`{"jsonrpc":"2.0","id":9,"result":1}`),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		s := &script{Reader: bytes.NewReader(input)}
		err := New(s, Config{Handler: HandlerFunc(pong), MaxFrameBytes: 2000}).Serve(context.Background())
		var bad *FrameError
		if err != nil && !errors.As(err, &bad) && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("Serve = %v", err)
		}
		out := newFrameReader(&s.out)
		for {
			n, err := out.header()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				t.Fatalf("wrote a bad header: %v", err)
			}
			body, err := out.body(n)
			if err != nil {
				t.Fatalf("wrote half a frame: %v", err)
			}
			if m, bad := decode(body); bad != nil || m.isRequest {
				t.Fatalf("wrote %s: %v", body, bad)
			}
		}
	})
}

// FuzzMessage compares decode with encoding/json, and feeding an outline in one
// piece with feeding it byte by byte.
func FuzzMessage(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":"b"}}`,
		` { "params" : [ 1 , "}" ] , "\u0069d" : "x\"" , "method":"\ud800","jsonrpc":"2.0" } `,
		`{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"m","data":[]}}`,
		`{"jsonrpc":"2.0","id":1,"result":null}`,
		`{"jsonrpc":"2.0","id":1.5,"method":"m"}`,
		`{"jsonrpc":"2.0","id":-0,"id":2,"method":"m"}`,
		`[{}]`, `{}`, `null`, `"`, ``, "\xff", `{"a":{"id":1},"id":[{"id":2}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		m, bad := decode(body)
		if bad != nil && (bad.Code != CodeParseError && bad.Code != CodeInvalidRequest || bad.Message == "") {
			t.Fatalf("answer %+v", bad)
		}
		if valid := json.Valid(body) && utf8.Valid(body); valid == (bad != nil && bad.Code == CodeParseError) {
			t.Fatalf("valid JSON: %v; answer: %v", valid, bad)
		}
		pieces := outline{keepID: true}
		for _, b := range body {
			pieces.feed([]byte{b})
		}
		if bad != nil {
			return
		}
		var whole outline
		whole.feed(body)
		if whole.spans != pieces.spans || whole.isObject != pieces.isObject {
			t.Fatalf("in pieces %+v, whole %+v", pieces.spans, whole.spans)
		}
		if id := string(bytes.TrimSpace(pieces.id)); id != string(m.ID) {
			t.Fatalf("skimmed id %q, decoded %q", id, m.ID)
		}
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(body, &fields); err != nil {
			t.Fatal(err)
		}
		if string(fields["id"]) != string(m.ID) {
			t.Fatalf("id %q, want %q", m.ID, fields["id"])
		}
		if !m.isRequest {
			if m.err == nil && string(m.result) != string(fields["result"]) {
				t.Fatalf("result %q, want %q", m.result, fields["result"])
			}
			return
		}
		var method string
		if err := json.Unmarshal(fields["method"], &method); err != nil || method != m.Method {
			t.Fatalf("method %q, want %q (%v)", m.Method, method, err)
		}
		if params := string(fields["params"]); params != string(m.Params) && !(params == "null" && m.Params == nil) {
			t.Fatalf("params %q, want %q", m.Params, params)
		}
	})
}
