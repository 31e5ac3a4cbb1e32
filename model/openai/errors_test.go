package openai

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/model/endpoint"
)

func TestErrors(t *testing.T) {
	tests := []struct {
		name    string
		status  int
		headers map[string]string
		body    string
		kind    model.ErrorKind
		again   bool
		after   time.Duration
		code    string
		want    string // in the message
	}{
		{"401 quoting the key", 401, nil, `{"error":{"message":"Incorrect API key provided: sk-secret-key-1234.","code":"invalid_api_key"}}`, model.Authentication, false, 0, "invalid_api_key",
			"(HTTP 401): Incorrect API key provided: [redacted]. Check the API key: COPILOT_PROVIDER_API_KEY"},
		{"401 quoting another key", 401, nil, `bad token: Bearer abcdefghijklmnop and ghp_0123456789abcdefghij`, model.Authentication, false, 0, "", "bad token: [redacted] and [redacted]"},
		{"403", 403, nil, `{"message":"no access"}`, model.Authentication, false, 0, "", "denied access (HTTP 403): no access. Check that the key may use this model"},
		{"404", 404, nil, `404 page not found`, model.Query, false, 0, "", "Check the base URL and the model name"},
		{"404 web page", 404, nil, `<!DOCTYPE html><html>long</html>`, model.Query, false, 0, "", "(HTTP 404). Check"},
		{"400", 400, nil, `{"error":"no such field"}`, model.Query, false, 0, "", "refused the request (HTTP 400): no such field."},
		{"422 detail", 422, nil, `{"detail":[{"loc":["body"],"msg":"x"}]}`, model.Query, false, 0, "", "HTTP 422"},
		{"context length", 400, nil, `{"error":{"message":"too long","code":"context_length_exceeded"}}`, model.ContextLimit, false, 0, "context_length_exceeded", "Clear or compact it"},
		{"429", 429, map[string]string{"Retry-After": "7"}, `{"error":{"message":"slow down","type":"requests"}}`, model.RateLimit, true, 7 * time.Second, "requests", "limits the rate of requests (HTTP 429): slow down."},
		{"429 ms", 429, map[string]string{"Retry-After": "7", "retry-after-ms": "1500"}, ``, model.RateLimit, true, 1500 * time.Millisecond, "", ""},
		{"429 quota", 429, nil, `{"error":{"message":"You exceeded your quota","code":"insufficient_quota"}}`, model.Quota, false, 0, "insufficient_quota", "Check plan and billing"},
		{"503 absurd wait", 503, map[string]string{"Retry-After": "1e300"}, ``, model.Query, true, 30 * 24 * time.Hour, "", "failed (HTTP 503)"},
		{"500 list", 500, nil, `[{"error":{"code":500,"message":"internal","status":"INTERNAL"}}]`, model.Query, true, 0, "500", "failed (HTTP 500): internal."},
		{"200 with an error", 200, nil, `{"error":{"message":"overloaded","code":502}}`, model.Query, true, 0, "502", "(HTTP 502): overloaded"},
		{"200 with a refused request", 200, nil, `{"error":{"message":"bad","type":"invalid_request_error"}}`, model.Query, false, 0, "invalid_request_error", "refused the request in its answer: bad."},
		{"200 not JSON", 200, nil, `oops`, model.Query, true, 0, "", `not JSON: "oops"`},
		{"200 cut JSON", 200, nil, `{"choices":[{"message":{"content":"par`, model.Query, true, 0, "", "not JSON"},
		{"200 nothing", 200, nil, ``, model.Query, true, 0, "", "empty answer"},
		{"200 web page", 200, map[string]string{"Content-Type": "text/html"}, `<html>`, model.Query, false, 0, "", "a web page"},
		{"no choices", 200, nil, `{"choices":[]}`, model.Query, true, 0, model.CodeEmptyAnswer, "sent an empty answer"},
		{"empty content", 200, nil, `{"choices":[{"message":{"content":""},"finish_reason":"stop"}]}`, model.Query, true, 0, model.CodeEmptyAnswer, "sent an empty answer"},
		{"filtered", 200, nil, `{"choices":[{"message":{"content":null},"finish_reason":"content_filter"}]}`, model.Query, false, 0, model.CodeEmptyAnswer, "content filter"},
		{"only reasoning", 200, nil, `{"choices":[{"message":{"reasoning":"r"},"finish_reason":"length"}]}`, model.Query, false, 0, model.CodeEmptyAnswer, "on reasoning"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := serve(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				for k, v := range tt.headers {
					w.Header().Set(k, v)
				}
				w.WriteHeader(tt.status)
				io.WriteString(w, tt.body)
			}, nil)
			req := *ask
			req.Stream = false
			_, err := model.Collect(p.Stream(t.Context(), &req))
			var e *model.Error
			if !errors.As(err, &e) {
				t.Fatalf("got %v", err)
			}
			if e.Kind != tt.kind || e.Retryable != tt.again || e.RetryAfter != tt.after || e.Code != tt.code || !strings.Contains(e.Msg, tt.want) {
				t.Errorf("got %+v", e)
			}
			if strings.Contains(e.Msg, "secret") || strings.Contains(e.Msg, "  ") || !strings.Contains(e.Msg, p.Endpoint()) {
				t.Errorf("message %q", e.Msg)
			}
			if tt.status >= 400 && e.Status != tt.status {
				t.Errorf("status %d", e.Status)
			}
		})
	}
}

func TestBrokenStreams(t *testing.T) {
	tests := []struct{ name, body, want string }{
		{"cut after text", sse(choice(`{"content":"par"}`)), "ended its answer in the middle"},
		{"cut after a call began", sse(calls(`{"index":0,"id":"c","function":{"name":"x","arguments":"{"}}`)), "ended its answer in the middle"},
		{"cut in a line", sse(choice(`{"content":"par"}`)) + `data: {"choices":[{"del`, "not JSON"},
		{"nothing at all", "", "ended its answer in the middle"},
		{"error event", sse(choice(`{"content":"par"}`), `{"error":{"message":"boom","type":"server_error"}}`), "failed in its answer: boom."},
		{"error event by name", sse(choice(`{"content":"par"}`)) + "event: error\ndata: {\"message\":\"boom\"}\n\n", "boom"},
		{"not JSON", sse(choice(`{"content":"par"}`), `oops`), `not JSON: "oops"`},
		{"only keep-alives", ": ping\n\n: ping\n\n", "ended its answer in the middle"},
		{"done at once", sse("[DONE]"), "empty answer"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := serve(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				io.WriteString(w, tt.body)
			}, nil)
			_, err := model.Collect(p.Stream(t.Context(), ask))
			var e *model.Error
			if !errors.As(err, &e) || !e.Retryable || e.Kind != model.Query || !strings.Contains(e.Msg, tt.want) {
				t.Errorf("got %+v, want %q", err, tt.want)
			}
		})
	}
	t.Run("reset", func(t *testing.T) {
		p := serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, sse(choice(`{"content":"par"}`)))
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}, nil)
		got, err := model.Collect(p.Stream(t.Context(), ask))
		var e *model.Error
		if !errors.As(err, &e) || !e.Retryable || got.Message.Text != "par" {
			t.Errorf("got %+v", err)
		}
	})
	t.Run("reset after the finish reason", func(t *testing.T) {
		p := serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, sse(choice(`{"content":"all"}`), finish("stop")))
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}, nil)
		got, err := model.Collect(p.Stream(t.Context(), ask))
		if err != nil || got.Message.Text != "all" {
			t.Errorf("got %+v, %v", got, err)
		}
	})
}

func TestTooLarge(t *testing.T) {
	for _, stream := range []bool{false, true} {
		p := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if stream {
				w.Header().Set("Content-Type", "text/event-stream")
			}
			io.WriteString(w, "data: ")
			for range 100 {
				if _, err := io.WriteString(w, strings.Repeat("x", 10000)); err != nil {
					return
				}
			}
		}, func(c *Config) { c.MaxResponse = 50000 })
		req := *ask
		req.Stream = stream
		_, err := model.Collect(p.Stream(t.Context(), &req))
		var e *model.Error
		if !errors.As(err, &e) || e.Retryable || !strings.Contains(e.Msg, "longer than the limit of 50000 bytes") {
			t.Errorf("stream %v: %v", stream, err)
		}
	}
}

// pipeTransport answers in memory, so that the clock of a synctest bubble rules.
type pipeTransport func(*http.Request) (*http.Response, error)

func (f pipeTransport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestTimeouts(t *testing.T) {
	tests := []struct {
		name string
		rt   pipeTransport
		want string
		took time.Duration
	}{
		{"no answer", func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}, "did not begin to answer within 10m0s", 10 * time.Minute},
		{"stalled", func(r *http.Request) (*http.Response, error) {
			pr, pw := io.Pipe()
			go func() {
				for range 3 { // slow, but alive
					<-time.After(4 * time.Minute)
					io.WriteString(pw, sse(choice(`{"content":"a"}`)))
				}
				<-r.Context().Done()
				pw.CloseWithError(r.Context().Err())
			}()
			return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: pr}, nil
		}, "sent nothing for 5m0s", 17 * time.Minute},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, err := New(Config{Server: endpoint.Server{BaseURL: "http://x/v1", HTTPClient: &http.Client{Transport: tt.rt}}})
				if err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				_, err = model.Collect(p.Stream(t.Context(), ask))
				var e *model.Error
				if !errors.As(err, &e) || !e.Retryable || !strings.Contains(e.Msg, tt.want) {
					t.Errorf("got %v", err)
				}
				if took := time.Since(start); took != tt.took {
					t.Errorf("after %v", took)
				}
			})
		})
	}
}

func TestNoServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	p, err := New(Config{Server: endpoint.Server{BaseURL: "http://user:pass-word@" + addr + "/v1?key=0123456789abcdef"}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = model.Collect(p.Stream(t.Context(), ask))
	var e *model.Error
	if !errors.As(err, &e) || !e.Retryable || !strings.Contains(e.Msg, "cannot be reached") || !strings.Contains(e.Msg, "refused") {
		t.Errorf("got %v", err)
	}
	for _, secret := range []string{"pass-word", "0123456789abcdef"} {
		if strings.Contains(e.Msg, secret) || strings.Contains(e.Endpoint, secret) || strings.Contains(e.Err.Error(), secret) {
			t.Errorf("%q in %q", secret, e.Msg)
		}
	}
}

func TestRedirects(t *testing.T) {
	asked := false
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer other.Close()
	p := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	}, nil)
	_, err := model.Collect(p.Stream(t.Context(), ask))
	var e *model.Error
	if !errors.As(err, &e) || e.Retryable || asked || !strings.Contains(e.Msg, "leads to another host") {
		t.Errorf("asked %v: %v", asked, err)
	}
}

func TestUntrustedCertificate(t *testing.T) {
	srv := httptest.NewTLSServer(http.NotFoundHandler())
	defer srv.Close()
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	p, err := New(Config{Server: endpoint.Server{BaseURL: srv.URL}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = model.Collect(p.Stream(t.Context(), ask))
	var e *model.Error
	if !errors.As(err, &e) || e.Retryable || !strings.Contains(e.Msg, "SSL_CERT_FILE") {
		t.Errorf("got %v", err)
	}
}

func TestNewRefuses(t *testing.T) {
	for _, base := range []string{"", "localhost:11434", "ftp://x/v1", "http://", "http://a:secret@[::1", ":"} {
		_, err := New(Config{Server: endpoint.Server{BaseURL: base}})
		var e *model.Error
		if !errors.As(err, &e) || e.Kind != model.Setup || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", base, err)
		}
	}
}

func TestCancelledBefore(t *testing.T) {
	p := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("asked") }, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := model.Collect(p.Stream(ctx, ask))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
